from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
POINTS: int
OPS: int
FIRST: int
PLAN_SIZE: int
OP_BYTES: int
CHUNK_ROWS: int

def use_simd_level(level: int) -> None: ...
def factor_size(n_points: Any) -> Any: ...
def measure(trees: tuple[Array, ...], max_depth: int, plan: Array) -> None: ...
def compile_trees(
    trees: tuple[Array, ...],
    point: Array,
    weight: Array,
    max_depth: int,
    plan: Array,
    ops: Array,
    factor: Array,
    value: Array,
    first_tree: int,
    last_tree: int,
) -> None: ...
def work_size(
    max_depth: int, n_points: int, n_used: int, n_outputs: int, with_pairs: bool
) -> int: ...
def add_values(
    X: Array,
    used: Array,
    program: tuple[Array, ...],
    max_depth: int,
    start: int,
    stop: int,
    memory: Array,
    out: Array | None,
    pairs: Array | None = None,
) -> None: ...
