from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def reweight(
    codes: Array,
    cut_bin: int,
    leave_bin: bool,
    n_negative: int,
    factor: Array,
    scale: float,
    source: Array,
    weight: Array,
    fixed: Array,
    start: int,
    stop: int,
    team: int = 0,
    side: Array | None = None,
) -> tuple[int, int]: ...
def reweight_bin(
    order: Array,
    start: int,
    position: int,
    stop: int,
    n_negative: int,
    factor: Array,
    scale: float,
    weight: Array,
    fixed: Array,
) -> tuple[int, int]: ...
def reweight_rows(
    above: Array,
    n_negative: int,
    coefficient: Array,
    scale: float,
    source: Array,
    weight: Array,
    fixed: Array,
    start: int,
    stop: int,
) -> tuple[int, int]: ...
def exit_sums(
    above: Array, weight: Array, n_negative: int, scale: float, start: int, stop: int, sums: Array
) -> None: ...
def to_fixed(weight: Array, scale: float, fixed: Array) -> int: ...
def scale_weights(
    source: Array,
    rows: Array | None,
    weight: Array,
    fixed: Array,
    in_any_order: bool = False,
) -> tuple[int, float]: ...
