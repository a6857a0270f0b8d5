from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

VOTES: tuple[str, ...]
TIE: float
NO_VOTE: float
VOTE_LIMIT: float

class SplitStep:
    votes: tuple[float, float]
    shrink: float
    perfect: bool
    factors: NDArray[np.float64]

class VoteRule:
    kind: str
    smoothing: float
    learning_rate: float
    def __init__(self, kind: str, smoothing: float, learning_rate: float) -> None: ...
    def step(self, masses: Sequence[Any]) -> SplitStep: ...

def half_log_odds(positive: float, negative: float, smoothing: float) -> float: ...
def step_of(masses: Sequence[Any], votes: Sequence[float]) -> SplitStep: ...
