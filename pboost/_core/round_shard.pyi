from typing import Any

from numpy.typing import NDArray

STEP: Any
OF_MARGIN: list[str]

def farthest(arrays: object) -> tuple[float, float, float]: ...
def loss_scale(arrays: object, u: float, y: float, size: float) -> tuple[float, float]: ...
def slopes(arrays: object, scale: float) -> tuple[float, float, float]: ...
def sizes(arrays: object, steepest: float) -> tuple[int, int]: ...
def pack(arrays: object, gradient_scale: float, curvature_scale: float) -> None: ...
def count(arrays: object, start: int, stop: int, out: NDArray[Any]) -> None: ...
def part(
    arrays: object,
    start: int,
    stop: int,
    feature: int,
    above: NDArray[Any],
    with_words: bool,
) -> int: ...
def are_pure(arrays: object, start: int, stop: int, gradient: float, curvature: float) -> bool: ...
def squares(arrays: object, start: int, stop: int) -> float: ...
def gather(arrays: object, start: int, stop: int) -> tuple[float, float, float, float, int]: ...
def sums(
    arrays: object,
    start: int,
    stop: int,
    step: float,
    is_raised: bool,
    slope_scale: float,
    bend_scale: float,
) -> tuple[float, float]: ...
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
