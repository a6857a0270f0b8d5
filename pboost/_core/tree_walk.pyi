from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
TILE_ROWS: int
MANY: int

def use_simd_level(level: int) -> None: ...
def has_ranks() -> bool: ...
def lay_out(
    feature: Array,
    threshold: Array,
    next_: Array,
    vote: Array,
    bias: float,
    work: Array,
    steps: Array,
    value: Array,
) -> int: ...
def walk_leaves(
    X: Array,
    steps: Array,
    root: Array,
    depth: Array,
    start: int,
    stop: int,
    tile: Array,
    leaf: Array,
    holes: tuple[Array, Array] | None = None,
    sets: tuple[Array, Array, Array] | None = None,
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
    ranked: tuple[Array, Array, Array, Array, Array, int, bool] | None = None,
    ranked_holes: tuple[Array, Array, Array, Array, Array, int, bool] | None = None,
    rank: Array | None = None,
    holes: tuple[Array, Array] | None = None,
    sets: tuple[Array, Array, Array] | None = None,
) -> int: ...
