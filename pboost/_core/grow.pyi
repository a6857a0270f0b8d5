from typing import Any

from numpy.typing import NDArray

STATE: dict[str, Any]
STATUS: dict[int, str]
AHEAD: dict[str, int]
GROWTH: dict[str, int]

def work_size(n_classes: int) -> int: ...
def begin_root(arrays: object) -> None: ...
def split_given(
    arrays: object,
    e: int,
    feature: int,
    place: int,
    missing: int,
    below: float,
    above: float,
    *,
    cells: NDArray[Any] | None = None,
    side: NDArray[Any] | None = None,
) -> None: ...
def grow(arrays: object, cells: int, large: int) -> str: ...
def search_pending(
    arrays: object, first: int, last: int, found: float, work: NDArray[Any]
) -> float: ...
def split_ahead(
    arrays: object,
    nodes: NDArray[Any],
    numbers: NDArray[Any],
    cells: list[NDArray[Any]],
    side: NDArray[Any],
) -> None: ...
def partition_pending(arrays: object, first: int, last: int, spare: NDArray[Any]) -> None: ...
def preorder(
    array: NDArray[Any],
    found: NDArray[Any],
    rows: NDArray[Any],
    place: NDArray[Any],
    children: NDArray[Any],
) -> int: ...
def part_rows(
    codes: NDArray[Any],
    rows: NDArray[Any],
    bounds: NDArray[Any],
    spare: NDArray[Any],
    node: NDArray[Any],
    child: NDArray[Any],
    feature: NDArray[Any],
    side: NDArray[Any],
) -> None: ...
def count_cells(
    codes: NDArray[Any],
    rows: NDArray[Any],
    stop: NDArray[Any],
    label: NDArray[Any],
    mass: NDArray[Any],
    first: int,
    last: int,
    cells: NDArray[Any],
) -> None: ...
def sum_above(
    rows: NDArray[Any],
    stop: NDArray[Any],
    weight: NDArray[Any],
    y: NDArray[Any],
    numbers: NDArray[Any],
    found: NDArray[Any],
) -> None: ...
def sum_squares(
    rows: NDArray[Any],
    stop: NDArray[Any],
    weight: NDArray[Any],
    y: NDArray[Any],
    numbers: NDArray[Any],
    found: NDArray[Any],
) -> None: ...
def coarse_shift_of(heaviest: float, n: int) -> int: ...
def full_shift_of(total: int, shift: int) -> int: ...
def begin_moments(arrays: object, e: int, least: float, most: float) -> float: ...
def centre_moments(arrays: object, e: int, least: float, most: float, above: int) -> None: ...
def end_moments(
    arrays: object, e: int, least: float, most: float, scale: float, found: NDArray[Any]
) -> None: ...
