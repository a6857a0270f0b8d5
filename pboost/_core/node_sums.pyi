from typing import Any

from numpy.typing import NDArray

def count_cells(
    codes: NDArray[Any],
    rows: NDArray[Any],
    label: NDArray[Any],
    mass: NDArray[Any],
    first: int,
    last: int,
    cells: NDArray[Any],
) -> None: ...
def coarse_shift_of(heaviest: float, n: int) -> int: ...
def full_shift_of(total: int, shift: int) -> int: ...
def begin_moments(arrays: object, e: int, least: float, most: float) -> float: ...
def centre_moments(arrays: object, e: int, least: float, most: float, above: int) -> None: ...
def end_moments(
    arrays: object, e: int, least: float, most: float, scale: float, found: NDArray[Any]
) -> None: ...
