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
def loss(
    Z: Array,
    weight: Array,
    n_negative: int,
    point: Array,
    sigma: float,
    slope: Array,
    gradient: Array,
) -> float: ...
def screen(
    Z: Array,
    weight: Array,
    n_negative: int,
    pair: Array,
    angle: Array,
    best: Array,
    at: Array,
    which: Array,
) -> None: ...

GROUP_LANES: int
WORK_SETS: int

def bundle(
    codes: NDArray[Any],
    wanted: NDArray[Any],
    first: NDArray[Any],
    code: NDArray[Any],
    side: NDArray[Any],
    work: NDArray[Any],
) -> None: ...
def interleave(
    codes: NDArray[Any],
    lane: NDArray[Any],
    code: NDArray[Any],
    side: NDArray[Any],
    groups: NDArray[Any],
    first: int,
    last: int,
) -> None: ...
