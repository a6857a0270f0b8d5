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
def rounded_key(key: float) -> float: ...
def decrease(before: float, lowered: float) -> float: ...

Array = NDArray[Any]

def reweight(
    codes: Array,
    cut_bin: int,
    leave_bin: bool,
    n_negative: int,
    factor: Array,
    scale: float,
    source: Array,
    weight: Array,
    fixed: Array,
    start: int,
    stop: int,
    team: int = 0,
    side: Array | None = None,
) -> tuple[int, int]: ...
def reweight_bin(
    order: Array,
    start: int,
    position: int,
    stop: int,
    n_negative: int,
    factor: Array,
    scale: float,
    weight: Array,
    fixed: Array,
) -> tuple[int, int]: ...
def reweight_rows(
    above: Array,
    n_negative: int,
    coefficient: Array,
    scale: float,
    source: Array,
    weight: Array,
    fixed: Array,
    start: int,
    stop: int,
) -> tuple[int, int]: ...
def exit_sums(
    above: Array, weight: Array, n_negative: int, scale: float, start: int, stop: int, sums: Array
) -> None: ...
def to_fixed(weight: Array, scale: float, fixed: Array) -> int: ...
def scale_weights(
    source: Array,
    rows: Array | None,
    weight: Array,
    fixed: Array,
    in_any_order: bool = False,
) -> tuple[int, float]: ...
def two_shares(score: NDArray[Any], shares: NDArray[Any]) -> None: ...
def use_simd_level(most: int) -> None: ...
