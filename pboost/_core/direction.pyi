from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

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
