from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def use_simd_level(level: int) -> None: ...
def lanes_of(k: int) -> tuple[int, int]: ...
def add_up(
    codes: Array,
    rows: Array,
    weight: Array,
    label: Array,
    scale: float,
    used: Array,
    place: Array,
    sums: Array,
    first: int,
    last: int,
    team: int = 0,
) -> None: ...
def take(
    rows: Array,
    label: Array,
    factor: Array,
    scale: float,
    weight: Array,
    start: Array,
    found: Array,
) -> None: ...
def search(
    sums: Array,
    n_bins: Array,
    k: int,
    whole: Array,
    factor: Array,
    min_mass: float,
    min_count: int,
    found: Array,
    first: int,
    last: int,
    special: Array | None = None,
    bound: Array | None = None,
) -> None: ...
def search_levels(
    sums: Array,
    n_levels: int,
    k: int,
    whole: Array,
    factor: Array,
    min_mass: float,
    min_count: int,
    smoothing: float,
    has_holes: bool,
    here: Array,
    order: Array,
    score: Array,
) -> tuple[int, int, int]: ...

class Inside:
    def __init__(
        self,
        order: Array,
        bin_start: Array,
        here: Array,
        weight: Array,
        label: Array,
        scale: float,
        used: Array,
        place: Array,
        sums: Array,
        whole: Array,
        factor: Array,
        min_mass: float,
        min_count: int,
    ) -> None: ...
    def search(
        self,
        n_bins: Array,
        bound: Array,
        best: float,
        tie: float,
        found: Array,
        first: int,
        last: int,
    ) -> None: ...
    def first(self, f: int, b: int, missing: int, limit: float) -> int: ...

def part(rows: Array, codes: Array, above: Array, spare: Array) -> int: ...
