from typing import Any

from numpy.typing import NDArray

def tails(z: NDArray[Any], out: NDArray[Any]) -> None: ...

Array = NDArray[Any]
Limits = tuple[int, int, int, int, int, int, int]
SIZES: tuple[int, int]

def use_simd_level(level: int) -> None: ...
def fill_crossing(
    value: Array,
    threshold: Array,
    sigma: float,
    span: Array,
    offset: Array,
    crossing: Array,
) -> None: ...
def search(
    codes: Array,
    cell: Array,
    bin_start: Array,
    n_bins: Array,
    weight: Array,
    limits: Limits,
    slice_start: Array,
    span: Array,
    offset: Array,
    crossing: Array,
    first: int,
    last: int,
    mass: Array,
    score: Array,
    special: Array | None = None,
) -> None: ...
def search_edges(
    edge: Array,
    bin_start: Array,
    n_bins: Array,
    limits: tuple[Any, ...],
    slice_start: Array,
    span: Array,
    offset: Array,
    crossing: Array,
    mass: Array,
    score: Array,
    special: Array | None = None,
) -> None: ...
def locate(
    n_bins: Array,
    limits: Limits,
    score: Array,
    special: Array | None = None,
    other: int = -1,
    other_score: float = ...,
) -> tuple[int, int] | None: ...
def probabilities(
    value: Array,
    threshold: float,
    sigma: Array,
    start: int,
    stop: int,
    above: Array,
) -> None: ...
def draw(
    above: Array,
    rows: Array,
    n_negative: int,
    key: int,
    question: int,
    first: int,
    last: int,
    start: int,
    stop: int,
    fixed: Array,
    count: Array,
    mass: Array,
) -> None: ...
def propagate(
    X: Array,
    feature: Array,
    threshold: Array,
    next_: Array,
    vote: Array,
    answer: Array,
    sigma: Array,
    label: Array,
    bias: Array,
    reach: Array,
    work: Array,
    score: Array,
    loss: Array,
    missing: Array | None = None,
) -> None: ...
def sample(
    X: Array,
    feature: Array,
    threshold: Array,
    next_: Array,
    vote: Array,
    answer: Array,
    sigma: Array,
    key: int,
    first: int,
    last: int,
    start: int,
    stop: int,
    total: Array,
    missing: Array | None = None,
) -> None: ...
def uniforms(key: int, node: int, row: int, out: Array) -> None: ...
