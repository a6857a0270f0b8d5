from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
N_STATES_OF_NODE: int

def keep_splits(
    array: Array, mass: Array, complexity: float, state: Array, stack: Array
) -> None: ...
def list_rows(
    array: Array,
    order: Array,
    rows: Array,
    exact: bool,
    ascending: Array,
    leaf_of: Array,
    listed: Array,
    starts: Array,
) -> int: ...
def set_constants(
    equation: Array, taken: Array, starts: Array, score: Callable[[int], float]
) -> None: ...
def leaf_values(
    X: Array,
    listed: Array,
    starts: Array,
    equation: Array,
    taken: Array,
    start: int,
    stop: int,
    work: Array,
    out: Array,
    means: Array | None = None,
) -> None: ...
def walk_values(
    X: Array,
    steps: Array,
    root: Array,
    depth: Array,
    leaf: Array,
    equation: Array,
    taken: Array,
    start: int,
    stop: int,
    tile: Array,
    out: Array,
    means: Array | None = None,
    holes: tuple[Array, Array] | None = None,
    sets: tuple[Array, Array, Array] | None = None,
    added: Array | None = None,
    row: Array | None = None,
) -> int: ...
