from typing import Any

from numpy.typing import NDArray

GROUP_LANES: int
WORK_SETS: int

def bundle(
    codes: NDArray[Any],
    wanted: NDArray[Any],
    first: NDArray[Any],
    code: NDArray[Any],
    side: NDArray[Any],
    work: NDArray[Any],
) -> None: ...
def interleave(
    codes: NDArray[Any],
    lane: NDArray[Any],
    code: NDArray[Any],
    side: NDArray[Any],
    groups: NDArray[Any],
    first: int,
    last: int,
) -> None: ...
