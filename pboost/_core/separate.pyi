from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def separate_rows(
    X: Array,
    rows: Array,
    start: Array,
    column: Array,
    first: Array,
    edge: Array,
    value: Array,
    missing: Array | None,
    out: Array,
) -> None: ...
