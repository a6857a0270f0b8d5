from typing import Any

from numpy.typing import NDArray

ROOT_BLOCK: int
ROOT_WORK: int

def use_simd_level(level: int) -> None: ...
def shares(
    scores: NDArray[Any],
    label: NDArray[Any],
    weight: NDArray[Any] | None,
    are_copies: bool,
    per_limit: float,
    residual: NDArray[Any],
    loss: NDArray[Any],
    steepest: NDArray[Any],
    most: NDArray[Any],
    team: int = 0,
    share: int = 0,
) -> None: ...
def count_roots(
    codes: NDArray[Any],
    bins: NDArray[Any],
    residual: NDArray[Any],
    weight: NDArray[Any] | None,
    are_copies: bool,
    block: int,
    per_limit: float,
    steepest: NDArray[Any],
    most: NDArray[Any],
    start: int,
    stop: int,
    work: NDArray[Any],
    masses: NDArray[Any],
    team: int = 0,
) -> None: ...

VECTOR_WORK: int

def pack(arrays: object, scale: NDArray[Any], start: int, stop: int) -> None: ...
def count(
    arrays: object,
    start: int,
    stop: int,
    masses: NDArray[Any],
    work: NDArray[Any],
    first: int,
    last: int,
) -> None: ...
def subtract(
    arrays: object, masses: NDArray[Any], part: NDArray[Any], first: int, last: int
) -> None: ...
def search(
    arrays: object,
    masses: NDArray[Any],
    total: NDArray[Any],
    score: NDArray[Any],
    cut: NDArray[Any],
    first: int,
    last: int,
) -> None: ...
def choose(
    arrays: object,
    masses: NDArray[Any],
    total: NDArray[Any],
    score: NDArray[Any],
    cut: NDArray[Any],
    below: NDArray[Any],
) -> tuple[int, float, float]: ...
def best_levels(
    column: NDArray[Any],
    n_levels: int,
    has_holes: bool,
    judged: NDArray[Any],
    total: NDArray[Any],
    n_rows: float,
    least_rows: float,
    least_weight: float,
    smoothing: float,
    here: NDArray[Any],
    above: NDArray[Any],
    below: NDArray[Any],
) -> tuple[float, int, int, int]: ...
def part(
    arrays: object, start: int, stop: int, feature: int, cut: int, table: NDArray[Any]
) -> int: ...
def add(
    arrays: object,
    leaf: NDArray[Any],
    value: NDArray[Any],
    scores: NDArray[Any],
    first: int,
    last: int,
) -> None: ...
def take(among: NDArray[Any], wanted: int, key: int, path: int, number: int) -> None: ...
def unit_of(most: float, bits: int) -> float: ...
