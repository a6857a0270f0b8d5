"""Bin edges from a subsample of the rows: time saved, and effect on models.

    python -m asv_bench.peers.edges --quick
    python -m asv_bench.peers.edges --data folder

Run it from the root of a checkout with a built pboost. Data sets in the folder, or in the folder
of the environment variable PBOOST_DATA, are used if pandas is installed: files ``name.csv.gz``
whose first line has the column names, ending in ``target``. Uses one thread.
"""

from __future__ import annotations

import argparse
import os
import statistics
from functools import partial
from pathlib import Path

import numpy as np

import pboost as pb
from asv_bench.benchmarks.common import additive
from asv_bench.peers.report import Table, number
from asv_bench.peers.tables import cpu
from pboost.data.columns import sampled_bin_edges as sampled_edges

SIZES = [(100_000, 20), (1_000_000, 20), (1_000_000, 100)]
TRAIN_SHARE, SAMPLE_SHARE = 0.8, 0.2
#: Positive class (one-vs-rest), and number of divisions.
SETS = {
    "covertype": ("2", 24),
    "skin": ("1", 3),
    "fars": ("No_Injury", 10),
    "adult_census": (">50K", 80),
    "electricity": ("UP", 160),
    "magic04": ("g", 40),
    "kddcup99_10pct": ("normal", 4),
}
SIMULATED = 4


def with_part(rows, function):
    """Call a function while edges come from a subsample of this many rows."""
    default = sampled_edges.SAMPLE_ROWS
    sampled_edges.SAMPLE_ROWS = rows
    try:
        return function()
    finally:
        sampled_edges.SAMPLE_ROWS = default


def times(sizes, reps):
    """Return the table of `bin_columns` times."""
    rows = []
    for size in sizes:
        X, _ = additive(*size)
        result = [], []
        for _ in range(reps):
            for seconds, part in zip(result, (size[0], sampled_edges.SAMPLE_ROWS), strict=True):
                work = partial(cpu, partial(pb.data.bin_columns, X, n_threads=1))
                seconds.append(with_part(part, work)[0] / X.size * 1e9)
        ratio = statistics.median(b / a for a, b in zip(*result, strict=True))
        rows.append([str(size), *(number(statistics.median(of)) for of in result), f"{ratio:.2f}"])
    heads = ["size", "edges of all rows", "of 200,000", "ratio"]
    return Table(f"bin_columns, CPU ns per value, {reps} pairs", heads, rows)


def read(path, positive, n_rows):
    """Return the features and the classes 0/1 of a file."""
    import pandas

    frame = pandas.read_csv(path)
    frame = frame if n_rows is None else frame.sample(n_rows, random_state=0)
    y = (frame.pop("target").astype(str) == positive).to_numpy().astype(int)
    for name in frame:
        if not pandas.api.types.is_numeric_dtype(frame[name]):
            frame[name] = frame[name].astype("category")
    return frame, y


def log_loss(model, X, y):
    p = np.clip(pb.predict_proba(model, X)[:, 1], 1e-15, 1 - 1e-15)
    return -float(np.mean(np.log(np.where(y == 1, p, 1 - p))))


def measures(X, y, X_test, y_test):
    """Return the log loss of gradient boosting, and the error of AdaBoost."""
    free = {"l2_regularization": 0.0, "min_child_weight": 0.0}  # only bins affect the result
    trees = pb.fit_gradient_boosting(
        X, y, n_estimators=50, max_depth=6, search="binned", n_threads=1, **free
    )
    stumps = pb.fit_adaboost(
        X, y, n_estimators=200, weak_learner=pb.weak.stump(search="binned"), n_threads=1
    )
    error = 100 * float(np.mean(pb.predict(stumps, X_test) != y_test))
    return log_loss(trees, X_test, y_test), error


def compared(name, divisions):
    """Return a row of the accuracy table; each division is (X, y, X_test, y_test)."""
    pairs = []
    for data in divisions:
        n = len(data[1])
        part = sampled_edges.SAMPLE_ROWS if n > 2 * sampled_edges.SAMPLE_ROWS else n // 5
        pairs.append([with_part(rows, partial(measures, *data)) for rows in (n, part)])
    result = np.array(pairs)  # division, edges, measure
    change = 100 * (result[:, 1, 0] / result[:, 0, 0] - 1)
    apart = result[:, 1, 1] - result[:, 0, 1]
    loss, error = result.mean(axis=0).T
    return [
        name,
        f"{n:,}",
        f"{part:,}",
        str(len(pairs)),
        *(f"{v:.4f}" for v in loss),
        spread(change),
        *(f"{v:.2f}" for v in error),
        spread(apart),
    ]


def spread(values):
    """Return the mean and its standard error."""
    return f"{values.mean():+.2f} ± {values.std(ddof=1) / len(values) ** 0.5:.2f}"


def divided(X, y, times):
    """Yield random divisions into training and test rows."""
    for seed in range(times):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = np.split(order, [int(TRAIN_SHARE * len(y))])
        yield X.iloc[train], y[train], X.iloc[test], y[test]


def simulated(n_rows, times):
    """Yield synthetic problems of the benchmarks."""
    for seed in range(times):
        yield *additive(n_rows, 20, seed=2 * seed), *additive(n_rows // 4, 20, seed=2 * seed + 1)


def accuracy(folder, quick):
    """Return the table of accuracy losses."""
    few = 2 if quick else None
    rows = [compared("simulated", simulated(5_000 if quick else 1_000_000, few or SIMULATED))]
    for name, (positive, times) in SETS.items():
        path = folder / f"{name}.csv.gz"
        if path.exists():
            X, y = read(path, positive, 5_000 if quick else None)
            rows.append(compared(name, divided(X, y, few or times)))
    heads = [
        "set",
        "rows",
        "of which edges",
        "divisions",
        "log loss, all rows",
        "a part",
        "change in %",
        "error of AdaBoost in %, all",
        "a part",
        "change",
    ]
    return Table("50 trees of depth 6, 200 stumps, binned", heads, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows, once")
    parser.add_argument("--reps", type=int, default=9)
    parser.add_argument("--data", type=Path, default=os.environ.get("PBOOST_DATA"))
    options = parser.parse_args()
    sizes, reps = ([(5_000, 5)], 1) if options.quick else (SIZES, options.reps)
    folder = Path(options.data or ".")
    tables = times(sizes, reps), accuracy(folder, options.quick)
    print("\n\n".join(table.text() for table in tables))


if __name__ == "__main__":
    main()
