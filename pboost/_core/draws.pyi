from typing import Any

from numpy.typing import NDArray

def draw(
    hashes: NDArray[Any],
    rows: NDArray[Any],
    seed: int,
    number: int,
    limit: int,
    drawn: NDArray[Any],
    team: int,
) -> int: ...
def leave_out(arrays: object, rows: NDArray[Any]) -> None: ...
def keep(arrays: object, rows: NDArray[Any]) -> None: ...
def insert_others(arrays: object) -> None: ...
def add_others(
    arrays: object,
    nodes: NDArray[Any],
    children: NDArray[Any],
    subset: NDArray[Any],
    rows: NDArray[Any],
) -> None: ...
def sum_all(arrays: object) -> None: ...
def word_sums(arrays: object, spans: NDArray[Any], sums: NDArray[Any]) -> None: ...
