from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

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
