from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

def ratios(m: NDArray[Any], out: NDArray[Any]) -> None: ...
def excesses(m: NDArray[Any], out: NDArray[Any]) -> None: ...
def losses(m: NDArray[Any], out: NDArray[Any]) -> None: ...
def use_simd_level(most: int) -> None: ...

Array = NDArray[Any]

def boost_leaves(
    X: Array,
    rows: Array,
    starts: Array,
    label: Array,
    weight: Array,
    n_classes: int,
    steps: int,
    tol: float,
    safeguard: bool,
    coefficient: Array,
    taken: Array,
    path: tuple[Array, Array, Array] | None = None,
    first: int = 0,
    last: int = -1,
    stop: Array | None = None,
    means: Array | None = None,
) -> None: ...
def put_beside(values: Array, listed: Array, place: Array, k: int, out: Array) -> None: ...
def mistakes(
    values: Array, listed: Array, label: Array, weight: Array, wrong: Array, work: Array
) -> tuple[int, float]: ...
def normalise(weight: Array, rows: Array, work: Array) -> None: ...
def raise_weights(
    weight: Array, rows: Array, wrong: Array, n_wrong: int, factor: float
) -> None: ...
def margins(values: Array, listed: Array, label: Array, out: Array) -> None: ...
def mean_losses(
    loss: Array, listed: Array, starts: Array, weight: Array, work: Array, out: Array
) -> None: ...

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
