from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def sort_columns(
    columns: Array, order: Array, items: Array, spare: Array, n_missing: Array | None = None
) -> int: ...
def gather_columns(X: Array, rows: Array, first: int, columns: Array) -> None: ...
def bin_columns(
    order: Array,
    max_bins: int,
    weight: Array,
    bin_start: Array,
    n_bins: Array,
    codes: Array,
    n_missing: Array | None = None,
) -> None: ...
def select_rows(order: Array, renumber: Array, selected: Array) -> None: ...
def rank_rows(order: Array, rank: Array) -> None: ...
def check_sorted(
    order: Array,
    columns: Array,
    bin_start: Array,
    n_bins: Array,
    codes: Array,
    seen: Array,
    special: Array | None = None,
) -> int: ...
def use_simd_level(level: int) -> None: ...
def hash_rows(X: Array, rows: Array, key: Array, hashed: Array) -> bool: ...
def code_columns(
    columns: Array,
    first: int,
    edge: Array,
    n_bins: Array,
    codes: Array,
    lower: Array,
    upper: Array,
    count: Array,
) -> None: ...
def list_rows(kind: Array, wanted: int, rows: Array) -> None: ...
def select_codes(
    codes: Array, rows: Array, selected: Array, bin_start: Array | None = None
) -> None: ...
