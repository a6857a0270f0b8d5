from typing import Any

from numpy.typing import NDArray

LANES: int

def bin_values(
    first: int,
    last: int,
    start: NDArray[Any],
    rows: NDArray[Any],
    values: NDArray[Any],
    is_used: NDArray[Any],
    max_bins: int,
    min_samples: int,
    many: int,
    has_zero: NDArray[Any],
    first_bin: NDArray[Any],
    zero: NDArray[Any],
    lower: NDArray[Any],
    upper: NDArray[Any],
    work: NDArray[Any],
    spare: NDArray[Any],
    count: NDArray[Any],
) -> None: ...
def list_rows(
    begin: int,
    end: int,
    start: NDArray[Any],
    rows: NDArray[Any],
    values: NDArray[Any],
    first_bin: NDArray[Any],
    zero: NDArray[Any],
    has_zero: NDArray[Any],
    threshold: NDArray[Any],
    list_start: NDArray[Any],
    list_rows: NDArray[Any],
    list_bins: NDArray[Any],
    largest: NDArray[Any],
) -> None: ...
def add_hashes(
    list_start: NDArray[Any],
    list_rows: NDArray[Any],
    list_bins: NDArray[Any],
    first: NDArray[Any],
    hashes: NDArray[Any],
    total: NDArray[Any],
) -> None: ...
def count_cells(
    first: int,
    last: int,
    list_start: NDArray[Any],
    list_stop: NDArray[Any],
    list_rows: NDArray[Any],
    count: NDArray[Any],
) -> None: ...
def fill_cells(
    first: int,
    last: int,
    list_start: NDArray[Any],
    list_stop: NDArray[Any],
    list_rows: NDArray[Any],
    list_bins: NDArray[Any],
    place: NDArray[Any],
    at: NDArray[Any],
    cells: NDArray[Any],
) -> None: ...
def begin(arrays: object) -> None: ...
def grow(arrays: object, cells: int) -> bool: ...
def add_others(
    arrays: object,
    nodes: NDArray[Any],
    children: NDArray[Any],
    lane_of: NDArray[Any],
    rows: NDArray[Any],
    f: NDArray[Any],
) -> None: ...
def sum_trees(
    row_start: NDArray[Any],
    columns: NDArray[Any],
    values: NDArray[Any],
    place: NDArray[Any],
    steps: NDArray[Any],
    root: NDArray[Any],
    depth: NDArray[Any],
    value: NDArray[Any],
    turns: int,
    start: int,
    stop: int,
    x: NDArray[Any],
    total: NDArray[Any],
) -> None: ...
