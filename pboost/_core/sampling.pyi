from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def draw(
    above: Array,
    rows: Array,
    n_negative: int,
    key: int,
    question: int,
    first: int,
    last: int,
    start: int,
    stop: int,
    fixed: Array,
    count: Array,
    mass: Array,
) -> None: ...
