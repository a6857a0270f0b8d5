"""Speedup by a second thread: interleaved fits with one and two threads, in wall time.

    python -m asv_bench.peers.second_thread --quick

Run it from the root of a checkout with a built pboost, on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial
from pathlib import Path

import pboost as pb
from asv_bench.benchmarks.common import additive
from asv_bench.peers.__main__ import as_rst, machine
from asv_bench.peers.boosted import SEVEN, problem
from asv_bench.peers.report import Table

N_FEATURES = 20


def stagewise(steps, **options):
    return partial(
        pb.fit_gradient_boosting, **{"loss": "log_loss", "n_estimators": steps, **options}
    )


def boosted(search):
    """Return a fit of the boosting rounds only, on sorted or binned columns."""
    columns = {"exact": pb.data.sort_columns, "binned": pb.data.bin_columns}[search]
    return lambda X: columns(X), partial(pb.fit_adaboost, n_estimators=100)


def as_it_is(X):
    return X


#: Rows, rounds, preparation of X, and fit.
JOBS = {
    "fit_gradient_boosting, depth 3": (100_000, 100, as_it_is, stagewise(100, max_depth=3)),
    "fit_gradient_boosting, depth 6": (100_000, 100, as_it_is, stagewise(100, max_depth=6)),
    "the same": (1_000_000, 50, as_it_is, stagewise(50, max_depth=6)),
    SEVEN: (100_000, 20, as_it_is, stagewise(20, max_depth=6, loss="softmax")),
    "fit_adaboost, exact rounds": (100_000, 100, *boosted("exact")),
    "fit_adaboost, binned rounds": (100_000, 100, *boosted("binned")),
}


def pairs(fit, n_pairs):
    """Return wall and CPU seconds of each run, with one and with two threads."""
    result = {1: [], 2: []}
    for k in range(n_pairs):
        for n_threads in (1, 2) if k % 2 else (2, 1):
            wall, processor = time.perf_counter(), time.process_time()
            fit(n_threads=n_threads)
            used = time.perf_counter() - wall, time.process_time() - processor
            result[n_threads].append(used)
    return result


def row_of(name, n_rows, n_rounds, found):
    first, two = ([wall for wall, _ in found[n]] for n in (1, 2))
    ratio = statistics.median(a / b for a, b in zip(first, two, strict=True))
    processor = min(cpu for _, cpu in found[2]) / min(cpu for _, cpu in found[1])
    return (
        name,
        f"{n_rows:,}",
        str(n_rounds),
        f"{min(first):.3f}",
        f"{min(two):.3f}",
        f"{min(first) / min(two):.2f}",
        f"{ratio:.2f}",
        f"{processor:.2f}",
    )


HEADER = (
    "fit",
    "rows",
    "rounds",
    "1 thread, s",
    "2 threads, s",
    "speed-up",
    "median of pairs",
    "processor time",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--only", nargs="*", default=[""], help="parts of the names of fits")
    parser.add_argument("--quick", action="store_true", help="few rows: to see that it works")
    parser.add_argument("--rst", type=Path)
    options = parser.parse_args()
    rows = []
    for name, (n_rows, n_rounds, prepare, fit) in JOBS.items():
        if any(part in name for part in options.only):
            n_rows = n_rows // 50 if options.quick else n_rows
            X, y = problem(n_rows, SEVEN)[:2] if name == SEVEN else additive(n_rows, N_FEATURES, 0)
            X = prepare(X)
            rows.append(row_of(name, n_rows, n_rounds, pairs(partial(fit, X, y), options.pairs)))
            print(*rows[-1], sep="  ", flush=True)
    table = Table(f"Second thread: wall time, {N_FEATURES} features", HEADER, rows)
    remarks = [f"Times are the minimum of {options.pairs} interleaved runs. {machine([])}"]
    if options.rst:
        options.rst.write_text(as_rst([table], remarks), encoding="utf-8")


if __name__ == "__main__":
    main()
