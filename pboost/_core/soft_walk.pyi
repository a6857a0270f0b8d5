from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def reach(
    X: Array,
    feature: Array,
    threshold: Array,
    next_: Array,
    answer: Array,
    sigma: Array,
    label: Array,
    out: Array,
) -> None: ...
def expected(
    X: Array,
    feature: Array,
    threshold: Array,
    next_: Array,
    vote: Array,
    answer: Array,
    sigma: Array,
    label: Array,
    bias: float,
    work: Array,
    score: Array,
    loss: Array,
) -> None: ...
def sample(
    X: Array,
    feature: Array,
    threshold: Array,
    next_: Array,
    vote: Array,
    answer: Array,
    sigma: Array,
    bias: float,
    key: int,
    draws: int,
    start: int,
    stop: int,
    score: Array,
) -> None: ...
def uniforms(key: int, node: int, row: int, out: Array) -> None: ...
