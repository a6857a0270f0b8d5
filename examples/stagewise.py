"""Gradient boosting in pboost and in scikit-learn: accuracy and time on the same folds.

Run as ``python stagewise.py --data folder``, or set the environment variable PBOOST_DATA to the
folder. It contains files ``name.csv.gz``, whose first line has the column names, ending in
``target``. Prints a reStructuredText table; ``--rst file`` also writes it to a file. All models
have 100 trees of depth 3, a learning rate of 0.1, and one thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from oblique_trees import read, table
from table_command import arguments, publish

import pboost as pb
from pboost.data.resampling import assign_folds

SETS = ("pima", "spambase", "magic04")
FOLDS, SEED = 5, 0
TREES, QUICK_TREES = 100, 5
#: Number of rows to draw from larger data sets.
MOST_ROWS = 8000
COMMON = {"learning_rate": 0.1, "max_depth": 3}
EXACT, BINNED = "exact", "binned"
GRADIENT, HISTOGRAM = "GradientBoosting", "HistGradientBoosting"


def learners(trees: int) -> dict[str, Callable[[Any, Any], Any]]:
    """Return functions of X and y that fit a model with ``predict``, by name."""
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier

    def ours(search: str) -> Callable[[Any, Any], Any]:
        def fit(X: Any, y: Any) -> Any:
            return pb.fit_gradient_boosting(
                X, y, loss="log_loss", n_estimators=trees, search=search, n_threads=1, **COMMON
            )

        return fit

    return {
        EXACT: ours("exact"),
        BINNED: ours("binned"),
        GRADIENT: lambda X, y: GradientBoostingClassifier(
            n_estimators=trees, random_state=SEED, **COMMON
        ).fit(X, y),
        HISTOGRAM: lambda X, y: HistGradientBoostingClassifier(
            max_iter=trees, early_stopping=False, min_samples_leaf=1, random_state=SEED, **COMMON
        ).fit(X, y),
    }


def outcomes(X: Any, y: Any, trees: int) -> dict[str, tuple[float, float, float]]:
    """Return the mean and standard deviation of the accuracy in %, and the median fit time."""
    from threadpoolctl import threadpool_limits  # a dependency of scikit-learn

    fold = assign_folds(y, None, FOLDS, np.random.default_rng(SEED))
    fits = learners(trees)
    right: dict[str, list[float]] = {name: [] for name in fits}
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    # Learners alternate on each fold, so that other load on the machine affects all of them.
    for k in range(FOLDS):
        train, test = fold != k, fold == k
        for name, fit in fits.items():
            with threadpool_limits(1):
                start = time.perf_counter()
                model = fit(X[train], y[train])
                seconds[name].append(time.perf_counter() - start)
            right[name].append(100 * float(np.mean(model.predict(X[test]) == y[test])))
    return {
        name: (float(np.mean(of)), float(np.std(of, ddof=1)), float(np.median(seconds[name])))
        for name, of in right.items()
    }


def line(name: str, X: Any, of: dict[str, tuple[float, float, float]]) -> list[str]:
    """Return a table row: accuracies, and times relative to the exact search."""
    unit = of[EXACT][2]
    cells = [f"{mean:.2f} ± {sd:.2f} ({seconds / unit:.2f})" for mean, sd, seconds in of.values()]
    return [name, str(len(X)), *cells]


def main(argv: list[str] | None = None) -> None:
    """Cross-validate, print the table and optionally write it."""
    quick = f"the first set, {QUICK_TREES} trees"
    parser, options, folder = arguments(__doc__, quick, argv)
    rows = [["data set", "rows", EXACT, BINNED, GRADIENT, HISTOGRAM]]
    for name in SETS[: 1 if options.quick else None]:
        data = read(folder / f"{name}.csv.gz")
        if isinstance(data, str):
            parser.error(f"{name}: {data}")
        X, y = few(*data)
        rows.append(line(name, X, outcomes(X, y, QUICK_TREES if options.quick else TREES)))
        print(f"{name}: done", file=sys.stderr)
    text = table("Accuracy in % (time of a fit, exact search: 1)", rows)
    publish(text, options.rst)


def few(X: Any, y: Any) -> tuple[Any, Any]:
    """Return `MOST_ROWS` random rows, or all if there are fewer."""
    if len(y) <= MOST_ROWS:
        return X, y
    rows = np.random.default_rng(SEED).choice(len(y), MOST_ROWS, replace=False)
    return X[rows], y[rows]


if __name__ == "__main__":
    main()
