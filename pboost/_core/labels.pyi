from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def add_up(
    codes: Array, rows: Array, weight: Array, own: Array, sums: Array, first: int, last: int
) -> None: ...
def total(fixed: Array, label: Array, rows: Array, all_: Array, positive: Array) -> None: ...
def search(
    sums: Array,
    n_bins: Array,
    whole: Array,
    factor: Array,
    min_mass: float,
    min_count: int,
    found: Array,
    first: int,
    last: int,
    special: Array | None = None,
) -> None: ...
def reweight(
    label: Array,
    exit_: Array,
    for_it: Array,
    against: Array,
    scale: float,
    weight: Array,
    fixed: Array,
    start: int,
    stop: int,
) -> None: ...
