"""Decision graphs with one vote per class: time by number of classes, memory, and xgboost.

    python -m asv_bench.peers.many_labels --quick

Run it from the root of a checkout with a built pboost, on an otherwise idle machine. Each fit runs
in a separate process with one thread; times are CPU times. xgboost grows one tree per class and
round (multi:softprob), with as many rounds as it needs for the error of the chain.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

import pboost as pb
from asv_bench.peers.__main__ import as_rst, machine
from asv_bench.peers.measure import run
from asv_bench.peers.report import NOTHING, Table
from pboost._core.multiclass import lanes_of
from pboost.threads import Workers
from pboost.weak.base import Weights
from pboost.weak.multiclass_search import LabelSearch, SearchNode, aligned
from pboost.weak.stump_search import StumpSearch

D, TEST_ROWS = 20, 20_000
FITS = {
    "chain of trees": partial(
        pb.fit_matryoshka, shape=(15, 20), join="all", learning_rate=0.5, n_threads=1
    ),
    "100 stumps": partial(pb.fit_adaboost, n_estimators=100, n_threads=1),
}
SEARCHED = (2, 3, 5, 10, 26)
#: Depths of xgboost's trees, and the largest number of rounds.
DEPTHS, MOST_ROUNDS = (3, 6), 200


def problem(n, n_labels):
    """Return training and test rows with their classes, the argmax of random functions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + TEST_ROWS, D), dtype=np.float32)
    slope = rng.normal(size=(n_labels, D)) * 0.9 ** np.arange(D)
    score = np.sin(1.5 * X) @ slope.T + 0.7 * rng.gumbel(size=(len(X), n_labels))
    for k in range(n_labels):
        score[:, k] += 0.7 * X[:, k % D] * X[:, (k + 7) % D]
    y = score.argmax(axis=1)
    return X[:n], y[:n], X[n:], y[n:]


def fitted(name, search, n, n_labels):
    """Return fit time in seconds, peak memory above the start in MB, and the test error."""
    X, y, X_test, y_test = problem(n, n_labels)
    fit = partial(FITS[name], weak_learner=pb.weak.stump(search=search))
    fit(X[:2000], y[:2000])
    cost, model = run(partial(fit, X, y), memory=True)
    return cost.cpu, cost.peak_mb, float(np.mean(pb.predict(model, X_test) != y_test))


def boosted(depth, error, n, n_labels):
    """Return the same for xgboost with enough rounds for an error, and the number of rounds."""
    import xgboost as xgb

    X, y, X_test, y_test = problem(n, n_labels)
    options = {
        "objective": "multi:softprob",
        "num_class": n_labels,
        "max_depth": depth,
        "eta": 0.3,
        "nthread": 1,
        "tree_method": "hist",
        "verbosity": 0,
        "eval_metric": "merror",
    }

    class Enough(xgb.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            return evals_log["test"]["merror"][-1] <= error

    def fit(rounds, **more):
        data = xgb.QuantileDMatrix(X, y, nthread=1)
        return xgb.train(options, data, rounds, verbose_eval=False, **more)

    evals = [(xgb.DMatrix(X_test, y_test), "test")]
    rounds = fit(MOST_ROUNDS, evals=evals, callbacks=[Enough()]).num_boosted_rounds()
    cost, model = run(partial(fit, rounds), memory=True)
    share = model.inplace_predict(X_test)
    return cost.cpu, cost.peak_mb, float(np.mean(share.argmax(axis=1) != y_test)), rounds


def searched(n, n_labels):
    """Return the seconds of a split search on all rows, by number of bins."""
    X, y, _, _ = problem(n, n_labels)
    weak = pb.weak.stump(search="binned")
    data = weak.arrange(weak.read(X, y, None, None), 1)
    with Workers(1) as workers:
        if n_labels == 2:
            weights = Weights(data.weight, data.fixed, data.scale, data.class_masses())
            look = partial(StumpSearch(data, weak, workers).best, weights)
        else:
            look = of_labels(data, LabelSearch(data, weak, workers), n_labels)
        look()
        return min(run(look)[0].cpu for _ in range(30))


def of_labels(data, search, n_labels):
    """Return the split search on all rows with equal weights."""
    rows, used = (np.arange(k, dtype=np.int32) for k in (data.n_rows, n_labels))
    weight = aligned((data.n_rows, math.prod(lanes_of(n_labels))), np.float64)
    weight[:, :n_labels], weight[:, n_labels:] = 1.0, 0.0
    scale = 2.0 ** (59 - math.frexp(data.n_rows * n_labels)[1])
    count = np.bincount(data.label, minlength=n_labels)
    full = np.concatenate([np.full(n_labels, data.n_rows), count]) * int(scale)
    ones, mass = np.ones(n_labels), float(full[:n_labels].sum())

    def look():
        sums = search.sums(rows, weight, scale, used)
        every = np.append(full, data.n_rows)
        search.best_at(SearchNode(sums, every, ones, ones, mass, rows, used, weight, scale))

    return look


def alone(function, *args):
    """Return the result of a function that runs in a separate process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *args).result()


def peak(function, *args):
    """Return the peak memory of a function that runs in a separate process.

    Freed memory is returned to the system at once there, so that it does not count for the peak.
    """
    os.environ["MALLOC_MMAP_THRESHOLD_"] = os.environ["MALLOC_TRIM_THRESHOLD_"] = "65536"
    try:
        return alone(function, *args)[1]
    finally:
        del os.environ["MALLOC_MMAP_THRESHOLD_"], os.environ["MALLOC_TRIM_THRESHOLD_"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--labels", type=int, nargs="*", default=[2, 7, 26])
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=["fits", "xgboost", "search"], default=None)
    parser.add_argument("--quick", action="store_true", help="few rows: to see that it works")
    parser.add_argument("--rst", type=Path)
    options = parser.parse_args()
    n = options.rows // 50 if options.quick else options.rows
    parts = options.only or ["fits", "xgboost", "search"]
    rows, first = [], {}

    def note(fit, n_labels, cost, base):
        seconds, maximum, error, *rounds = cost
        more = f", {rounds[0]} rounds" if rounds else ""
        times = NOTHING if base is None else f"{seconds / base:.2f}"
        memory = NOTHING if maximum is None or rounds else f"{maximum:.0f}"
        rows.append((fit + more, str(n_labels), f"{seconds:.3f}", times, memory, f"{error:.4f}"))
        print(*rows[-1], sep="  ", flush=True)

    for name in FITS:
        for search in ("binned", "exact"):
            for n_labels in options.labels:
                if "fits" not in parts:
                    continue
                costs = [alone(fitted, name, search, n, n_labels) for _ in range(options.reps)]
                maximum = peak(fitted, name, search, n, n_labels)
                cost = min(cost[0] for cost in costs), maximum, *costs[0][2:]
                base = first.setdefault((name, search), cost[0] if n_labels == 2 else None)
                note(f"{name}, {search}", n_labels, cost, base)
                if "xgboost" in parts and search == "binned" and "chain" in name and n_labels > 2:
                    for depth in DEPTHS:
                        other = alone(boosted, depth, cost[2], n, n_labels)
                        note(f"xgboost, depth {depth}", n_labels, other, None)
    header = ("fit", "labels", "CPU, s", "of two labels", "MB", "test error")
    tables = [Table(f"Many labels: {n:,} rows, {D} features, one thread", header, rows)]
    if "search" in parts:
        seconds = [min(alone(searched, n, k) for _ in range(options.reps)) for k in SEARCHED]
        result = [
            (str(k), f"{1e3 * s:.2f}", f"{s / seconds[0]:.2f}", f"{k / 2:.1f}")
            for k, s in zip(SEARCHED, seconds, strict=True)
        ]
        print(*result, sep="\n", flush=True)
        header = ("labels", "CPU, ms", "of two labels", "J / 2")
        tables.append(Table("Search of a node of all rows, by bins", header, result))
    if options.rst:
        options.rst.write_text(as_rst(tables, [machine([])]), encoding="utf-8")


if __name__ == "__main__":
    main()
