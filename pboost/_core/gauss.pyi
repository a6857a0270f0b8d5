from typing import Any

from numpy.typing import NDArray

def tails(z: NDArray[Any], out: NDArray[Any]) -> None: ...
