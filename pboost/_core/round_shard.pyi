from typing import Any

from numpy.typing import NDArray

STEP: Any
OF_MARGIN: list[str]

def farthest(arrays: object) -> tuple[float, float, float]: ...
def loss_scale(arrays: object, u: float, y: float, size: float) -> tuple[float, float]: ...
def slopes(arrays: object, scale: float) -> tuple[float, float, float]: ...
def sizes(arrays: object, steepest: float) -> tuple[int, int]: ...
def pack(arrays: object, gradient_scale: float, curvature_scale: float) -> None: ...
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
