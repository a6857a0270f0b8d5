from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def reweight_cut_bin(
    order: Array,
    bin_start: Array,
    cut_bin: int,
    position: int,
    n_negative: int,
    factor: Array,
    weight: Array,
) -> None: ...
def reweight(
    codes: Array,
    cut_bin: int,
    bin_is_done: bool,
    n_negative: int,
    factor: Array,
    scale: float,
    start: int,
    stop: int,
    weight: Array,
    fixed: Array,
) -> tuple[int, int]: ...
def to_fixed(weight: Array, scale: float, fixed: Array) -> int: ...
