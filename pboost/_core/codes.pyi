from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def list_rows(kind: Array, wanted: int, rows: Array) -> None: ...
def select_codes(
    codes: Array, rows: Array, selected: Array, bin_start: Array | None = None
) -> None: ...
