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
def leave_trees(
    X: Array,
    steps: Array,
    root: Array,
    depth: Array,
    value: Array,
    node_depth: Array | None,
    bias: Array,
    is_mean: bool,
    high: Array,
    low: Array,
    checked: Array,
    start: int,
    stop: int,
    tile: Array,
    work: Array,
    score: Array,
    joint: Array,
    cost: Array,
    holes: tuple[Array, Array] | None = None,
    sets: tuple[Array, Array, Array] | None = None,
) -> int: ...
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
def weakest_links(
    children: Array, risk: Array, price: Array, gain: Array, saved: Array, work: Array
) -> None: ...
