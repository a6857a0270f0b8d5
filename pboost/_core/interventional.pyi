from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
OPS: int
UNIQUE: int
CELLS: int
COUNTS: int
FIRST: int
PLAN_SIZE: int
OP_BYTES: int
CHUNK_ROWS: int

def use_simd_level(level: int) -> None: ...
def measure_tables(trees: tuple[Array, ...], max_depth: int, plan: Array) -> None: ...
def work_size(max_depth: int, n_used: int, n_outputs: int) -> int: ...
def make_tables(
    trees: tuple[Array, ...],
    background: Array,
    weight: Array,
    used: Array,
    plan: Array,
    shares: Array,
    max_depth: int,
    ops: Array,
    table: Array,
    memory: Array,
    counts: Array,
    cells: Array,
    nodes: Array,
    first_tree: int,
    last_tree: int,
) -> None: ...
def add_tables(
    X: Array,
    used: Array,
    plan: Array,
    ops: Array,
    table: Array,
    sets: Array,
    n_values: int,
    max_depth: int,
    start: int,
    stop: int,
    memory: Array,
    out: Array,
) -> None: ...
def add_pairs(
    X: Array,
    background: Array,
    weight: Array,
    used: Array,
    trees: tuple[Array, ...],
    which: Array,
    shares: Array,
    target: Array | None,
    start: int,
    stop: int,
    side: Array,
    work: Array,
    out: Array,
) -> None: ...
