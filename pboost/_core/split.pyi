from enum import IntEnum
from typing import Any

from numpy.typing import NDArray

Criterion: type[IntEnum]

Array = NDArray[Any]
Limits = tuple[int, int, int, int, int, int, int]

def search(
    codes: Array,
    order: Array,
    bin_start: Array,
    n_bins: Array,
    weight: Array,
    limits: Limits,
    edge: Array,
    bound: Array,
    best: Array,
    least_found: Array,
    first: int,
    last: int,
    team: int = 0,
    special: Array | None = None,
    smoothing: float = 0.0,
) -> None: ...
def search_edges(
    edge: Array,
    bin_start: Array,
    n_bins: Array,
    limits: Limits,
    bound: Array,
    best: Array,
    special: Array | None = None,
    smoothing: float = 0.0,
) -> None: ...
def locate(
    order: Array,
    bin_start: Array,
    n_bins: Array,
    weight: Array,
    limits: Limits,
    edge: Array,
    bound: Array,
    best: Array,
    special: Array | None = None,
    smoothing: float = 0.0,
) -> tuple[int, int, int, int, int, int, tuple[int, int] | None] | None: ...
