from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
TILE_ROWS: int
MANY: int

def use_simd_level(level: int) -> None: ...
def is_chain(next_: Array) -> bool: ...
def unreached(next_: Array) -> int: ...
def walk(
    X: Array,
    feature: Array,
    threshold: Array,
    next_: Array,
    vote: Array,
    is_chain: bool,
    bias: float,
    n_features: int,
    start: int,
    stop: int,
    score: Array,
    tile: Array | None = None,
    count: Array | None = None,
    projections: tuple[Array, Array, Array, Array | None] | None = None,
    separators: tuple[Array, Array, Array, Array, Array, Array | None] | None = None,
    several: tuple[Array, Array | None] | None = None,
) -> int: ...
def walk_sides(
    X: Array,
    feature: Array,
    threshold: Array,
    next_: Array,
    vote: Array,
    bias: float,
    missing: Array,
    start: int,
    stop: int,
    score: Array,
    count: Array | None = None,
    sets: tuple[Array, Array] | None = None,
    made: tuple[Array, Array, Array, Array] | None = None,
    tile: Array | None = None,
    several: tuple[Array, Array | None] | None = None,
) -> int: ...
def count_features(
    X: Array,
    feature: Array,
    threshold: Array,
    next_: Array,
    start: Array,
    index: Array,
    last_row: Array,
    count: Array,
    missing: Array | None = None,
) -> None: ...
def leave_graph(
    X: Array,
    feature: Array,
    threshold: Array,
    next_: Array,
    vote: Array,
    bias: Array,
    high: Array,
    low: Array,
    checked: Array,
    passed: Array,
    n_joints: int,
    start: int,
    stop: int,
    score: Array,
    joint: Array,
    cost: Array,
    missing: Array | None = None,
    sets: tuple[Array, Array] | None = None,
    projections: tuple[Any, ...] | None = None,
    separators: tuple[Any, ...] | None = None,
) -> int: ...
