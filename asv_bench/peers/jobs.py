"""Jobs: the measurements for each table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from asv_bench.peers.libraries import DEPTH_TREE, FULL_TREE, PREDICT, STUMPS

#: Libraries by kind of measurement.
LIBRARIES = {"stumps": STUMPS, "full tree": FULL_TREE, "tree": DEPTH_TREE, "predict": PREDICT}
JOBS = ("stumps", "setup", "threads", "memory", "tree", "predict", "row")
Size = tuple[int, int]

NOT_INSTALLED = "not installed"
ROUNDS = 100  # of a whole fit, and of the models for predictions
DEPTH = 6
PREDICTED: Size = (100_000, 20)
SIZES: dict[str, list[Size]] = {
    "stumps": [(10_000, 20), (100_000, 20), (100_000, 100), (1_000_000, 20)],
    "setup": [(10_000, 20), (100_000, 20), (100_000, 100), (1_000_000, 20)],
    "threads": [(100_000, 20), (1_000_000, 20)],
    "memory": [(1_000_000, 20)],
    "full tree": [(10_000, 20), (100_000, 20)],
    "tree": [(100_000, 20)],
}
QUICK_SIZES: dict[str, list[Size]] = {
    "stumps": [(10_000, 20), (100_000, 20)],
    "setup": [(10_000, 20), (100_000, 20)],
    "threads": [(100_000, 20)],
    "memory": [(100_000, 20)],
    "full tree": [(10_000, 20)],
    "tree": [(10_000, 20)],
}


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement: its kind, the library, the size of the data, depth and threads."""

    kind: str
    library: str
    n: int
    d: int
    depth: int | None = None
    threads: int = 1

    def __str__(self) -> str:
        depth = "" if self.depth is None else f", depth {self.depth}"
        threads = f", {self.threads} threads" if self.threads > 1 else ""
        return f"{self.kind} {self.n:,} x {self.d}{depth}: {self.library}{threads}"


def sizes_of(job: str, sizes: list[Size] | None, quick: bool) -> list[Size]:
    """Return the sizes of a job; `sizes` are the user's choice."""
    return sizes or (QUICK_SIZES if quick else SIZES)[job]


def cases(jobs: Iterable[str], sizes: list[Size] | None, quick: bool) -> list[list[Case]]:
    """Return the distinct measurements, in groups to interleave."""
    groups: dict[tuple[str, int, int], dict[Case, None]] = {}
    for job in jobs:
        for case in _cases(job, sizes, quick):
            kind = "stumps" if case.kind == "floor" else case.kind
            groups.setdefault((kind, case.n, case.d), {})[case] = None
    return [list(group) for group in groups.values()]


def _cases(job: str, sizes: list[Size] | None, quick: bool) -> Iterable[Case]:
    if job in ("predict", "row"):
        yield from (Case("predict", key, *PREDICTED) for key in PREDICT)
        if job == "predict":
            yield Case("predict", "pboost-exact", *PREDICTED, threads=2)
    elif job == "tree":
        for n, d in sizes_of("full tree", sizes, quick):
            yield from (Case("full tree", key, n, d) for key in FULL_TREE)
        for n, d in sizes_of("tree", sizes, quick):
            yield from (Case("tree", key, n, d, DEPTH) for key in DEPTH_TREE)
    else:
        for n, d in sizes_of(job, sizes, quick):
            for key in STUMPS:
                if job != "threads" or key.startswith("pboost"):
                    yield Case("stumps", key, n, d)
                if job in ("stumps", "threads") and key.startswith("pboost"):
                    yield Case("stumps", key, n, d, threads=2)
            if job == "stumps":
                yield Case("floor", "floor", n, d)
