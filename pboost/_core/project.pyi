from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def project_rows(
    X: Array,
    rows: Array,
    start: Array,
    index: Array,
    coefficient: Array,
    fill: Array | None,
    first: int,
    out: Array,
) -> None: ...
def project_pairs(
    X: Array,
    rows: Array,
    which: Array,
    start: Array,
    index: Array,
    coefficient: Array,
    fill: Array | None,
    out: Array,
) -> None: ...
def sum_rows(
    X: Array,
    index: Array,
    coefficient: Array,
    fill: Array,
    constant: float,
    first: int,
    out: Array,
    center: Array | None = None,
    scale: Array | None = None,
) -> None: ...
