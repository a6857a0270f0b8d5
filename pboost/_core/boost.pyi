from typing import Any

from numpy.typing import NDArray

STATE: dict[str, Any]
LOSSES: dict[str, int]
BEHIND: int
OF_SHARES: int
GRADIENT_BITS: int
CURVATURE_BITS: int
WIDE_BITS: int
SETS_SIZE: int
FINE: int

def use_simd_level(level: int) -> None: ...
def slopes(arrays: object) -> tuple[float, float, float]: ...
def is_uneven(arrays: object, steepest: float) -> bool: ...
def units(arrays: object, steepest: float, most: float) -> tuple[float, float, int]: ...
def fix(arrays: object) -> NDArray[Any]: ...
def begin(arrays: object) -> None: ...
def begin_counted(arrays: object, masses: NDArray[Any], squares: float) -> None: ...
def take_open_masses(arrays: object, masses: NDArray[Any]) -> None: ...
def cut_open(arrays: object, is_pooled: bool, rows_by_bin: NDArray[Any] | None = None) -> None: ...
def open_sides(arrays: object, above: NDArray[Any]) -> None: ...
def split_open(
    arrays: object,
    counted: NDArray[Any],
    slot: NDArray[Any],
    masses: NDArray[Any],
    squares: NDArray[Any],
) -> None: ...
def grow(arrays: object, cells: int) -> bool: ...
def list_nodes(
    arrays: object,
    nodes: NDArray[Any],
    children: NDArray[Any],
    subset: NDArray[Any],
    place: NDArray[Any],
    mass: NDArray[Any],
    unit: float,
) -> None: ...
def solve_leaves(
    arrays: object,
    nodes: NDArray[Any],
    l2: float,
    most: float,
    rate: float,
    unit: float,
    solved: bool,
) -> None: ...
def newton_leaves(
    arrays: object,
    nodes: NDArray[Any],
    gradient: NDArray[Any],
    curvature: NDArray[Any],
    l2: float,
    most: float,
    rate: float,
) -> None: ...
def add_leaves(arrays: object, nodes: NDArray[Any]) -> None: ...
def exact_sum(values: NDArray[Any], copies: NDArray[Any] | None = None) -> float: ...
def sum_bound(values: NDArray[Any], copies: NDArray[Any] | None = None) -> tuple[float, float]: ...
def sum_scale(most: float, terms: float) -> float: ...
def scaled_sum(values: NDArray[Any], scale: float, copies: NDArray[Any] | None = None) -> float: ...

STEP: Any
OF_MARGIN: list[str]

def farthest(arrays: object) -> tuple[float, float, float]: ...
def loss_scale(arrays: object, u: float, y: float, size: float) -> tuple[float, float]: ...
def place_slopes(arrays: object, scale: float) -> tuple[float, float, float]: ...
def sizes(arrays: object, steepest: float) -> tuple[int, int]: ...
def pack(
    arrays: object,
    gradient_scale: float,
    curvature_scale: float,
    words: NDArray[Any] | None = None,
) -> None: ...
def count(arrays: object, spans: NDArray[Any], masses: NDArray[Any]) -> None: ...
def count_rows(arrays: object, spans: NDArray[Any], found: NDArray[Any]) -> None: ...
def split(
    arrays: object,
    spans: NDArray[Any],
    feature: NDArray[Any],
    above: NDArray[Any],
    counted: NDArray[Any],
    with_words: bool,
    n_below: NDArray[Any],
) -> None: ...
def look_at(
    arrays: object,
    spans: NDArray[Any],
    sums: NDArray[Any],
    mixed: NDArray[Any],
    squares: NDArray[Any],
) -> None: ...
def gather(arrays: object, spans: NDArray[Any], found: NDArray[Any]) -> None: ...
def sums(
    arrays: object,
    spans: NDArray[Any],
    step: NDArray[Any],
    is_raised: NDArray[Any],
    scale: NDArray[Any],
    found: NDArray[Any],
) -> None: ...
def add(arrays: object, f: NDArray[Any], spans: NDArray[Any], value: NDArray[Any]) -> None: ...
def begin_steps(
    arrays: object,
    steps: NDArray[Any],
    guess: NDArray[Any],
    l2: float,
    most: float,
    solved: bool,
) -> None: ...
def take_looks(
    arrays: object, steps: NDArray[Any], found: NDArray[Any], is_open: NDArray[Any]
) -> None: ...
