from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

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
