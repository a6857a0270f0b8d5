"""What fits on partitions cost: calls, bytes and time per builder, beside one table.

    python -m asv_bench.peers.partition_calls [--rows 2e5] [--parts 2]

All partitions are in this process, so no time is spent on a network. Bytes are those of
the pickles that would be sent: of what is new in each question, and of the answers of all
partitions together. Memory is the largest that the process of the fit has had beyond the
partitions, by tracemalloc.
"""

from __future__ import annotations

import argparse
import pickle
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import pboost as pb
from pboost.distributed.engines import Serial

N_FEATURES = 20
#: Builders with their options, and how many trees or rounds they make.
BUILDERS: dict[str, tuple[Callable[..., Any], dict[str, Any], int]] = {
    "AdaBoost, a round": (pb.fit_adaboost, {"rounds": 50}, 50),
    "boosted tree, depth 6": (pb.fit_boosted_tree, {"nodes": None, "max_depth": 6}, 1),
    "soft tree, a node": (
        pb.fit_boosted_tree,
        {"nodes": 15, "observation": pb.observation.flip(0.1)},
        15,
    ),
    "CART, depth 6": (pb.fit_cart, {"max_depth": 6}, 1),
    "random forest, a tree": (pb.fit_forest, {"members": 4, "max_depth": 8, "rng": 0}, 4),
    "gradient boosting, depth 3, a tree": (
        pb.fit_stagewise,
        {"steps": 20, "max_depth": 3, "growth": "free"},
        20,
    ),
    "gradient boosting, depth 6, a tree": (
        pb.fit_stagewise,
        {"steps": 20, "max_depth": 6, "growth": "free"},
        20,
    ),
    "matryoshka, a node": (pb.fit_matryoshka, {"shape": (4, 4)}, 16),
}


class Counted(Serial):
    """An engine that notes calls and bytes."""

    calls = sent = answered = seen = 0

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Call the method `what` of every shard and return the answers."""
        return self._noted((what, arguments), super().ask(what, *arguments))

    def masses(self, cuts: Any) -> list[Any]:
        """Return what `masses` returns, of every shard."""
        new = list(cuts[Counted.seen :]) if len(cuts) > Counted.seen else list(cuts[-1:])
        Counted.seen = len(cuts)
        return self._noted(new, super().masses(cuts))

    def _noted(self, told: Any, found: list[Any]) -> list[Any]:
        Counted.calls += 1
        Counted.sent += len(pickle.dumps(told))
        Counted.answered += len(pickle.dumps(found))
        return found


def cpu(fit: Callable[[], Any]) -> float:
    """Return the processor time of a call in ms."""
    start = time.process_time()
    fit()
    return 1e3 * (time.process_time() - start)


def measured(name: str, columns: Any, y: Any, rows: Any) -> str:
    """Return a line of the table."""
    fit, options, n = BUILDERS[name]
    options = {**options, "n_threads": 1}
    table = min(cpu(lambda: fit(columns, y, **options)) for _ in range(3))
    parts = min(cpu(lambda: fit(rows, **options)) for _ in range(3))
    import pboost.distributed.partitions as module

    plain, module.Serial = module.Serial, Counted
    Counted.calls = Counted.sent = Counted.answered = Counted.seen = 0
    tracemalloc.start()
    try:
        fit(rows, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        module.Serial = plain
    per = [Counted.calls / n, Counted.sent / n / 1e3, Counted.answered / n / 1e3]
    figures = f"{name:<36}{per[0]:9.1f}{per[1]:11.1f}{per[2]:12.1f}"
    return f"{figures}{table / n:11.2f}{parts / n:11.2f}{parts / table:7.2f}{peak / 1e6:9.1f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=float, default=2e5)
    parser.add_argument("--parts", type=int, default=2)
    options = parser.parse_args()
    n, rng = int(options.rows), np.random.default_rng(0)
    X = rng.normal(size=(n, N_FEATURES))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n) > 0).astype(int)
    columns = pb.bin_columns(X)
    parts = np.array_split(np.arange(n, dtype=np.int32), options.parts)
    rows = pb.partitions([columns.select(own) for own in parts], [y[own] for own in parts])
    print(f"{n} rows of {N_FEATURES} features in {options.parts} partitions; CPU ms, kB")
    head = f"{'calls':>9}{'kB sent':>11}{'kB answered':>12}"
    print(f"{'':<36}{head}{'one table':>11}{'partitions':>11}{'ratio':>7}{'MB peak':>9}")
    for name in BUILDERS:
        print(measured(name, columns, y, rows), flush=True)


if __name__ == "__main__":
    main()
