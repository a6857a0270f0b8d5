from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
TILE_ROWS: int

def walk_leaves(
    X: Array,
    steps: Array,
    root: Array,
    depth: Array,
    start: int,
    stop: int,
    tile: Array,
    leaf: Array,
) -> int: ...
def walk_sums(
    X: Array,
    steps: Array,
    root: Array,
    depth: Array,
    value: Array,
    start: int,
    stop: int,
    tile: Array,
    total: Array,
) -> int: ...
