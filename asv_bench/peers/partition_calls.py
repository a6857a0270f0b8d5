"""Cost of fits on partitions: calls, bytes, time and memory, compared with fits on one table.

    python -m asv_bench.peers.partition_calls [--rows 2e5] [--parts 2]
    python -m asv_bench.peers.partition_calls --memory [--rows 1e7] [--parts 20]

In the first table all partitions are in this process, so no time is spent on a network. Bytes are
the sizes of the pickles to send: the new content of each request, and the results of all partitions
together. Memory is the peak of the fit in addition to the partitions, by tracemalloc.

In the second table the partitions are on two workers of a Dask cluster. Memory is the increase of
the peak resident size during the fit: of the client, which calls the fit function, and of the
worker that needs most.
"""

from __future__ import annotations

import argparse
import gc
import pickle
import re
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pboost as pb
from pboost.distributed.engine import Serial

N_FEATURES = 20
#: Fit functions with their options, and the number of trees or rounds.
BUILDERS: dict[str, tuple[Callable[..., Any], dict[str, Any], int]] = {
    "AdaBoost, a round": (pb.fit_adaboost, {"n_estimators": 50}, 50),
    "boosted tree, depth 6": (pb.fit_boosted_tree, {"max_nodes": None, "max_depth": 6}, 1),
    "soft tree, a node": (
        pb.fit_boosted_tree,
        {"max_nodes": 15, "observation": pb.observation.flip(0.1)},
        15,
    ),
    "CART, depth 6": (pb.fit_cart, {"max_depth": 6}, 1),
    "random forest, a tree": (
        pb.fit_random_forest,
        {"n_estimators": 4, "max_depth": 8, "rng": 0},
        4,
    ),
    "gradient boosting, depth 3, a tree": (
        pb.fit_gradient_boosting,
        {"n_estimators": 20, "max_depth": 3, "growth": "independent"},
        20,
    ),
    "gradient boosting, depth 6, a tree": (
        pb.fit_gradient_boosting,
        {"n_estimators": 20, "max_depth": 6, "growth": "independent"},
        20,
    ),
    "matryoshka, a node": (pb.fit_matryoshka, {"shape": (4, 4)}, 16),
}


#: Fits of the memory table: fit function, and options in addition to a small number of rounds.
FITS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "AdaBoost": (pb.fit_adaboost, {"n_estimators": 10}),
    "boosted tree": (pb.fit_boosted_tree, {"max_nodes": 15}),
    "soft tree": (pb.fit_boosted_tree, {"max_nodes": 7, "observation": pb.observation.flip(0.1)}),
    "matryoshka": (pb.fit_matryoshka, {"shape": (4, 2)}),
    "CART": (pb.fit_cart, {"max_depth": 6}),
    "random forest": (pb.fit_random_forest, {"n_estimators": 3, "max_depth": 6, "rng": 0}),
    "gradient boosting": (
        pb.fit_gradient_boosting,
        {"n_estimators": 5, "max_depth": 6, "growth": "independent"},
    ),
}
#: Fit functions with `validation`.
VALIDATED = ("AdaBoost", "boosted tree", "soft tree", "gradient boosting")


class Counted(Serial):
    """An engine that counts calls and bytes."""

    calls = sent = answered = seen = 0

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Call the method `what` of every partition and return the results."""
        return self._noted((what, arguments), super().ask(what, *arguments))

    def masses(self, cuts: Any) -> list[Any]:
        """Return the results of `masses` from every partition."""
        new = list(cuts[Counted.seen :]) if len(cuts) > Counted.seen else list(cuts[-1:])
        Counted.seen = len(cuts)
        return self._noted(new, super().masses(cuts))

    def _noted(self, told: Any, found: list[Any]) -> list[Any]:
        Counted.calls += 1
        Counted.sent += len(pickle.dumps(told))
        Counted.answered += len(pickle.dumps(found))
        return found


def cpu(fit: Callable[[], Any]) -> float:
    """Return the CPU time of a call in ms."""
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


def resident(what: str) -> float:
    """Return the resident size of this process in MB: current "VmRSS" or peak "VmHWM"."""
    result = re.search(rf"{what}:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    assert result is not None
    return int(result[1]) / 1e3


def forget_peak() -> float:
    """Reset the peak resident size; return the current size in MB."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", "ascii")
    return resident("VmRSS")


def block(number: int, n: int) -> tuple[Any, Any]:
    """Return X and y of a partition."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n) > 0).astype(np.int8)


def memory(n: int, n_parts: int, threads: int) -> None:
    """Print the memory table."""
    import dask
    from distributed import Client, LocalCluster

    import pboost.dask

    workers = {"n_workers": 2, "threads_per_worker": threads, "dashboard_address": ":0"}
    with LocalCluster(processes=True, **workers) as cluster, Client(cluster) as client:
        made = [dask.delayed(block, nout=2)(k, n // n_parts) for k in range(n_parts)]
        X, y = zip(*made, strict=True)
        begun = forget_peak()
        client.run(forget_peak)
        rows = pboost.dask.rows(list(X), list(y), keep_values=True)
        print(f"{n} rows of {N_FEATURES} features in {n_parts} partitions; peak above idle, MB")
        print(f"{'':<36}{'client':>9}{'worker':>9}")
        reading = resident("VmHWM") - begun
        print(f"{'reading':<36}{reading:>9.0f}", flush=True)
        for name, (fit, options) in FITS.items():
            for validation in (None, 0.2) if name in VALIDATED else (None,):
                before, there = forget_peak(), client.run(forget_peak)
                more = {} if validation is None else {"validation": validation, "rng": 0}
                fit(rows, **options, **more)
                here = resident("VmHWM") - before
                after = client.run(resident, "VmHWM")
                maximum = max(after[worker] - size for worker, size in there.items())
                label = name if validation is None else f"{name}, validation={validation}"
                print(f"{label:<36}{here:>9.0f}{maximum:>9.0f}", flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=float, default=2e5)
    parser.add_argument("--parts", type=int, default=2)
    parser.add_argument("--memory", action="store_true", help="of a client and its workers")
    parser.add_argument("--threads", type=int, default=1, help="of a worker")
    options = parser.parse_args()
    n, rng = int(options.rows), np.random.default_rng(0)
    if options.memory:
        memory(n, options.parts, options.threads)
        return
    X = rng.normal(size=(n, N_FEATURES))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n) > 0).astype(int)
    columns = pb.data.bin_columns(X)
    parts = np.array_split(np.arange(n, dtype=np.int32), options.parts)
    rows = pb.partitions([columns.select(own) for own in parts], [y[own] for own in parts])
    print(f"{n} rows of {N_FEATURES} features in {options.parts} partitions; CPU ms, kB")
    head = f"{'calls':>9}{'kB sent':>11}{'kB answered':>12}"
    print(f"{'':<36}{head}{'one table':>11}{'partitions':>11}{'ratio':>7}{'MB peak':>9}")
    for name in BUILDERS:
        print(measured(name, columns, y, rows), flush=True)


if __name__ == "__main__":
    main()
