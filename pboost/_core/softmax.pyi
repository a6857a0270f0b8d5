from typing import Any

from numpy.typing import NDArray

BLOCK: int
WORK: int

def use_simd_level(level: int) -> None: ...
def shares(
    scores: NDArray[Any],
    label: NDArray[Any],
    weight: NDArray[Any] | None,
    are_copies: bool,
    per_limit: float,
    residual: NDArray[Any],
    loss: NDArray[Any],
    steepest: NDArray[Any],
    most: NDArray[Any],
    team: int = 0,
    share: int = 0,
) -> None: ...
def count_roots(
    codes: NDArray[Any],
    bins: NDArray[Any],
    residual: NDArray[Any],
    weight: NDArray[Any] | None,
    are_copies: bool,
    block: int,
    per_limit: float,
    steepest: NDArray[Any],
    most: NDArray[Any],
    start: int,
    stop: int,
    work: NDArray[Any],
    masses: NDArray[Any],
    team: int = 0,
) -> None: ...
