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
