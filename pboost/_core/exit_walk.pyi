from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

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
