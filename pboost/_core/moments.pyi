from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def column_ends(X: Array, rows: Array, first: int, out: Array) -> None: ...
def column_moments(
    X: Array,
    rows: Array,
    weight: Array | None,
    origin: Array,
    unit: Array,
    first: int,
    out: Array,
) -> None: ...
