from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def weakest_links(
    children: Array, risk: Array, price: Array, gain: Array, saved: Array, work: Array
) -> None: ...
