from typing import Any

from numpy.typing import NDArray

def square_scale(is_wide: bool, is_weighted: bool, n_copies: int) -> float: ...
def note_squares(
    arrays: object, gradient_scale: float, scale: float, squares: NDArray[Any]
) -> None: ...
def sum_listed(squares: NDArray[Any], rows: NDArray[Any]) -> float: ...
def leaf_sums(
    arrays: object,
    nodes: NDArray[Any],
    squares: NDArray[Any],
    weights: NDArray[Any] | None,
    sums: NDArray[Any],
) -> None: ...
def shrink_leaves(
    nodes: NDArray[Any],
    children: NDArray[Any],
    spread: NDArray[Any],
    square_unit: float,
    weight_unit: float,
    step: NDArray[Any],
    shrinkage: float,
    row_weight: float,
    l2: float,
    most: float,
    rate: float,
    unit: float,
) -> float: ...
