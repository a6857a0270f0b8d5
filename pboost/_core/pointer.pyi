from typing import Any

from numpy.typing import NDArray

def address_of(capsule: object) -> tuple[int, str | None]: ...
def slopes(
    function: int,
    y: NDArray[Any],
    f: NDArray[Any],
    gradient: NDArray[Any],
    curvature: NDArray[Any],
) -> None: ...
def values(function: int, y: NDArray[Any], f: NDArray[Any], value: NDArray[Any]) -> None: ...
def integrals(function: int, y: NDArray[Any], f: NDArray[Any], value: NDArray[Any]) -> None: ...
def leaf_steps(
    function: int,
    y: NDArray[Any],
    f: NDArray[Any],
    weight: NDArray[Any],
    count: NDArray[Any],
    limit: float,
    room: NDArray[Any],
    step: NDArray[Any],
) -> None: ...
