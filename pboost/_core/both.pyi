from numpy import float64, int32, int64, uint8
from numpy.typing import NDArray

def sorted_cuts(
    order: NDArray[int32],
    weight: NDArray[int64],
    reach: NDArray[int64],
    n_negative: int,
    below: NDArray[int64],
    count: NDArray[int32],
) -> int: ...
def masses_by_code(
    codes: NDArray[uint8],
    weight: NDArray[int64],
    reach: NDArray[int64],
    n_negative: int,
    mass: NDArray[int64],
) -> None: ...
def score_cuts(
    criterion: int,
    below: NDArray[int64],
    count: NDArray[int32],
    k: int,
    negative: int,
    positive: int,
    min_weight: int,
    min_count: int,
    out: NDArray[float64],
) -> None: ...
def score_limit(criterion: int, best: float, total: float) -> float: ...
