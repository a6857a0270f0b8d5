"""One-hot encoded features in gradient boosting: time saved by bundling them.

    python -m asv_bench.peers.bundles --quick
    python -m asv_bench.peers.bundles --data folder --rst docs/benchmarks/bundles_table.rst

Run it from the root of a checkout with a built pboost. Data sets in the folder, or in the folder
of the environment variable PBOOST_DATA, are used if pandas is installed: files ``name.csv.gz``
whose first line has the column names, ending in ``target``. Categories and numeric features with at
most twelve values are one-hot encoded, and the largest class is compared with the rest. Fits 100
trees of depth 6, with and without bundles, and verifies that the models are bit-identical. Times
are CPU times of one thread, medians of interleaved pairs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import pboost as pb
from asv_bench.peers.__main__ import START
from asv_bench.peers.report import Table, number
from asv_bench.peers.tables import cpu
from pboost.trees.tree_rounds import lanes_of

SETS = (
    "adult_census",
    "fars",
    "covertype",
    "kddcup99_10pct",
    "mushroom",
    "nursery",
    "obesity",
    "tic_tac_toe",
    "vote",
    "breast_cancer",
    "colic_orig",
    "labor",
)
MOST_ROWS, FEW_VALUES = 100_000, 12
PARTS = ("feature", "threshold", "missing", "children", "value", "impurity", "weight")


def read(path: Path) -> tuple[Any, Any]:
    """Return the one-hot encoded table of a file, and the classes 0/1."""
    import pandas

    frame = pandas.read_csv(path)
    frame = frame.sample(min(len(frame), MOST_ROWS), random_state=0)
    target = frame.pop("target").astype(str)
    levels = [
        name
        for name in frame
        if not pandas.api.types.is_numeric_dtype(frame[name]) or frame[name].nunique() <= FEW_VALUES
    ]
    X = pandas.get_dummies(frame, columns=levels).astype(float)
    return X.to_numpy(), (target == target.mode()[0]).to_numpy().astype(int)


def simulated(rng: Any, n: int = 5_000) -> tuple[Any, Any]:
    """Return ten numeric features and one-hot encoded features with 4 and 40 categories."""
    level = [rng.integers(0, size, n)[:, None] == np.arange(size) for size in (4, 40)]
    X = np.hstack([rng.normal(size=(n, 10)), *level])
    return X, (X @ rng.normal(size=X.shape[1]) > 0).astype(int)


def alone(function: Any) -> Any:
    """Call a function without bundling."""
    with mock.patch("pboost._core.derived.bundle", return_value=None):
        return function()


def is_same(one: Any, other: Any) -> bool:
    """Return whether two models are bit-identical."""
    trees = (np.array_equal(getattr(one.trees, k), getattr(other.trees, k)) for k in PARTS)
    return all(trees) and np.array_equal(one.training_loss, other.training_loss)


def compared(name: str, X: Any, y: Any, reps: int) -> list[str]:
    """Return a row of the table."""
    fit = partial(pb.fit_gradient_boosting, X, y, n_estimators=100, max_depth=6, n_threads=1)
    times = np.array([[cpu(fit)[0], alone(partial(cpu, fit))[0]] for _ in range(reps)])
    ratio = statistics.median(times[:, 0] / times[:, 1])
    lanes = len(lanes_of(pb.data.bin_columns(X, n_threads=1)).column)
    seconds = (number(statistics.median(of)) for of in times.T)
    same = "yes" if is_same(fit(), alone(fit)) else "no"
    return [name, f"{len(X):,}", str(X.shape[1]), str(lanes), *seconds, f"{ratio:.2f}", same]


def main(arguments: list[str] | None = None) -> int:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser("python -m asv_bench.peers.bundles", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a simulated set only, once")
    parser.add_argument("--reps", type=int, default=5, help="pairs; default 5")
    parser.add_argument("--data", type=Path, default=os.environ.get("PBOOST_DATA"))
    parser.add_argument("--rst", type=Path, metavar="FILE", help="write the table, too")
    options = parser.parse_args(arguments)
    reps = 1 if options.quick else options.reps
    rows = [compared("simulated", *simulated(np.random.default_rng(0)), reps)]
    for name in () if options.quick or options.data is None else SETS:
        path = Path(options.data) / f"{name}.csv.gz"
        if path.exists():
            rows.append(compared(name, *read(path), reps))
    heads = ["set", "rows", "columns", "lanes", "s", "alone", "ratio", "same bits"]
    table = Table("100 trees of depth 6, one-hot columns", heads, rows)
    print(table.text())
    if options.rst:
        text = "\n".join([":orphan:", "", START, "", table.rst(), ""])
        options.rst.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
