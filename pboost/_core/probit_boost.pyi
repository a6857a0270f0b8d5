from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def boost_leaves(
    X: Array,
    rows: Array,
    starts: Array,
    label: Array,
    weight: Array,
    n_classes: int,
    steps: int,
    tol: float,
    safeguard: bool,
    coefficient: Array,
    taken: Array,
    path: tuple[Array, Array, Array] | None = None,
    first: int = 0,
    last: int = -1,
    stop: Array | None = None,
    means: Array | None = None,
) -> None: ...
def choose_level(most: int) -> None: ...
