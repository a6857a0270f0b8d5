"""Time to choose a model within a budget, compared with one fit of other libraries.

    python -m asv_bench.peers.budgets --quick
    python -m asv_bench.peers.budgets
    python -m asv_bench.peers.budgets --rows 100000 --threads 2

Run it from the root of a checkout with a built pboost. `fit_within_budget` runs with its three
folds for 50 comparisons (or `--comparisons`), on the binary problem of ``boosted.py`` with 20
features. Installed peers fit 100 trees of depth 6 with one thread. Times are CPU times in one
process, medians of interleaved rounds. Times of candidates within a choice are those of the longest
fit, including the teacher that it imitates or the parts that it combines."""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
from collections import defaultdict
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

import pboost as pb
from asv_bench.peers import boosted
from asv_bench.peers.report import Table, number
from asv_bench.peers.tables import cpu
from pboost.budget.candidates import Fits

DEPTH, TREES = 6, 100
#: Models that some candidates imitate or combine; they are fitted once.
PARTS = {
    "distilled mixture": "mixture",
    "distilled gradient boosting": "gradient boosting",
    "mixture": "long sum of trees",
}
PEERS = ("lightgbm, quantised", "lightgbm, by rows", "lightgbm, by columns", "xgboost hist")


class Clock:
    """CPU seconds of each candidate's fit, including the parts that it uses."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self._within: list[float] = []
        self._of = Fits.of

    def once(self, fits: Any, name: str) -> Any:
        """Fit once, and record the time."""
        if name in fits.made:
            return fits.made[name]
        self._within.append(0.0)
        seconds, model = cpu(partial(self._of, fits, name))
        alone = seconds - self._within.pop()
        if self._within:
            self._within[-1] += seconds
        # Include the time of a part that was fitted before.
        part = PARTS.get(name)
        self.seconds[name].append(alone + (self.seconds[part][-1] if part else 0.0))
        return model


def peer(name: str, X: Any, y: Any) -> None:
    """Fit a peer."""
    boosted.FITS[boosted.PEERS[name]](name, X, y, DEPTH, TREES, "")


def ours(X: Any, y: Any, comparisons: float, threads: int) -> tuple[float, float, Clock]:
    """Return CPU and wall seconds of a choice, and the times of its candidates."""
    clock, start = Clock(), time.perf_counter()
    with mock.patch.object(Fits, "of", lambda *given: clock.once(*given)):
        seconds, _ = cpu(
            partial(
                pb.fit_within_budget, X, y, mean_comparisons=comparisons, rng=0, n_threads=threads
            )
        )
    return seconds, time.perf_counter() - start, clock


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser("python -m asv_bench.peers.budgets", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1,000 rows, once")
    parser.add_argument("--reps", type=int, default=3, help="rounds; default 3")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--comparisons", type=float, default=50.0)
    parser.add_argument("--threads", type=int, default=1, help="of fit_within_budget")
    options = parser.parse_args(arguments)
    n, reps = (1000, 1) if options.quick else (options.rows, options.reps)
    X, y, *_ = boosted.problem(n, "two classes")
    few, names = slice(500), []
    for name in PEERS:
        with contextlib.suppress(ImportError):
            peer(name, X[few], y[few])  # excludes imports and one-time setup
            names.append(name)
    pb.fit_within_budget(X[few], y[few], mean_comparisons=options.comparisons, rng=0)
    peers, result = defaultdict(list), []
    for _ in range(reps):
        for name in names:
            peers[name].append(cpu(partial(peer, name, X, y))[0])
        result.append(ours(X, y, options.comparisons, options.threads))
    minimum = min(map(statistics.median, peers.values()), default=np.nan)

    def row(name: str, seconds: float, *more: str) -> list[str]:
        return [name, number(seconds), number(seconds / minimum), *more]

    spent, wall = (statistics.median(of[k] for of in result) for k in (0, 1))
    rows = [row(name, statistics.median(of)) for name, of in peers.items()]
    rows.append(row("pboost, fit_within_budget", spent))
    rows.append(["pboost, fit_within_budget, wall", number(wall), ""])
    for name in result[0][2].seconds:
        first = statistics.median(max(of[2].seconds[name]) for of in result)
        rows.append(row(f"its candidate, {name}", first))
    title = f"{n:,} rows, {options.comparisons:g} comparisons, {options.threads} threads"
    print(Table(title, ["", "s", "times the best peer"], rows).text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
