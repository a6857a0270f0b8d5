"""Gradient boosting on synthetic text and one-hot data, compared with LightGBM and XGBoost.

``python sparse_text.py --rst sparse_table.rst`` fits 100 trees of depth 6 with one thread, and
prints CPU times (fit, with all conversions, and prediction) and log losses of test rows. Fits of
the libraries alternate, and times are medians of ``--repeats`` fits, or of one fit if it takes
more than 20 s. Requires LightGBM and XGBoost.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import pboost as pb

N_TREES, RATE, SLOW = 100, 0.1, 20.0
TEST_SHARE = 0.25


def text(n: int, n_words: int, *, weighted: bool, seed: int = 0) -> tuple[Any, Any]:
    """Return word counts, or tf-idf weights, of texts with 70 to 149 words, and two classes.

    Frequencies of words follow Zipf's law. 400 words change the log odds of the class.
    """
    rng = np.random.default_rng(seed)
    share = np.cumsum(1.0 / (np.arange(n_words) + 5.0))
    length = rng.integers(70, 150, n)
    row = np.repeat(np.arange(n), length)
    word = np.minimum(np.searchsorted(share / share[-1], rng.random(len(row))), n_words - 1)
    column = rng.permutation(n_words)[word]
    X = sparse.csr_array((np.ones(len(row)), (row, column)), shape=(n, n_words))
    X.sum_duplicates()
    frequent = np.argsort(-np.bincount(X.indices, minlength=n_words), kind="stable")
    effect, n_often = np.zeros(n_words), min(300, n_words // 4)
    effect[rng.choice(frequent[:n_often], n_often // 3, replace=False)] = 0.8
    rest = frequent[n_often : 11 * n_often]
    effect[rng.choice(rest, min(300, len(rest)), replace=False)] = 1.5
    score = X.sign() @ (effect * rng.normal(size=n_words))
    y = (score - score.mean() + 0.7 * rng.logistic(size=n) > 0).astype(int)
    if weighted:
        frequency = np.bincount(X.indices, minlength=n_words)
        X.data *= np.log(n / np.maximum(frequency, 1))[X.indices]
        X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1)), np.diff(X.indptr))
    return X, y


def one_hot(n: int, n_columns: int, seed: int = 1) -> tuple[Any, Any]:
    """Return 30 one-hot features whose categories share the columns by a hash, and two classes."""
    rng = np.random.default_rng(seed)
    score, columns = np.zeros(n), np.empty((n, 30), dtype=np.int64)
    for k in range(30):
        n_categories = int(10 ** rng.uniform(1, 5))
        category = (n_categories ** rng.random(n)).astype(np.int64)
        score += (0.5 * rng.normal(size=n_categories + 1))[category]
        columns[:, k] = (category * 2654435761 + k * 40503 * 65599) % 1000003 * 7919 % n_columns
    X = sparse.csr_array((np.ones(30 * n), columns.ravel(), np.arange(0, 30 * n + 1, 30)))
    X.resize((n, n_columns))
    X.sum_duplicates()
    X.data[:] = 1.0
    return X, (score - score.mean() - 1 + rng.logistic(size=n) > 0).astype(int)


DATA: dict[str, Callable[[int, int], tuple[Any, Any]]] = {
    "word counts": lambda n, d: text(n, d, weighted=False),
    "tf-idf": lambda n, d: text(n, d, weighted=True),
    "one-hot": lambda n, d: one_hot(n, d),
}


def with_pboost(X: Any, y: Any) -> Any:
    """Fit gradient boosting with the regularization of the other libraries."""
    options = {"leaf_shrinkage": 0, "subsample": None, "leaf_update": "newton"}
    return fit_pboost(X, y, **options)


def with_defaults(X: Any, y: Any) -> Any:
    """Fit gradient boosting with the default shrinkage, subsample and line search."""
    return fit_pboost(X, y)


def fit_pboost(X: Any, y: Any, **options: Any) -> Any:
    """Fit gradient boosting with further options."""
    model = pb.fit_gradient_boosting(
        X,
        y,
        n_estimators=N_TREES,
        learning_rate=RATE,
        max_depth=6,
        l2_regularization=1.0,
        min_child_weight=1.0,
        n_threads=1,
        **options,
    )
    return lambda rows: pb.predict_proba(model, rows)


def with_lightgbm(X: Any, y: Any, **options: Any) -> Any:
    """Fit LightGBM, which needs the row-wise layout here to finish in time."""
    import lightgbm

    model = lightgbm.LGBMClassifier(
        n_estimators=N_TREES,
        learning_rate=RATE,
        max_depth=6,
        num_leaves=64,
        reg_lambda=1.0,
        min_child_weight=1.0,
        min_child_samples=1,
        force_row_wise=True,
        n_jobs=1,
        verbose=-1,
    )
    return model.fit(X, y).predict_proba


def with_xgboost(X: Any, y: Any) -> Any:
    """Fit XGBoost with its histogram method."""
    import xgboost

    model = xgboost.XGBClassifier(
        n_estimators=N_TREES,
        learning_rate=RATE,
        max_depth=6,
        reg_lambda=1.0,
        min_child_weight=1.0,
        tree_method="hist",
        n_jobs=1,
    )
    return model.fit(X, y).predict_proba


LIBRARIES: dict[str, Callable[[Any, Any], Any]] = {
    "pboost": with_pboost,
    "pboost, defaults": with_defaults,
    "LightGBM": with_lightgbm,
    "XGBoost": with_xgboost,
}


def measured(fit: Callable[[Any, Any], Any], train: Any, test: Any) -> tuple[float, float, float]:
    """Return the CPU seconds of a fit and of a prediction, and the log loss of the test rows."""
    start = time.process_time()
    predict_proba = fit(*train)
    middle = time.process_time()
    share = predict_proba(test[0])[:, 1]
    end = time.process_time()
    loss = -np.log(np.where(test[1] == 1, share, 1 - share)).mean()
    return middle - start, end - middle, float(loss)


def compared(name: str, n: int, d: int, repeats: int) -> dict[str, Any]:
    """Return the median results of all libraries on a data set with n training rows."""
    n_test = int(n * TEST_SHARE)
    X, y = DATA[name](n + n_test, d)
    train, test = (X[:n], y[:n]), (X[n:], y[n:])
    results: dict[str, list[tuple[float, float, float]]] = {library: [] for library in LIBRARIES}
    for _ in range(repeats):
        for library, fit in LIBRARIES.items():
            if not results[library] or results[library][0][0] < SLOW:
                results[library].append(measured(fit, train, test))
    return {library: np.median(runs, axis=0) for library, runs in results.items()}


def table(results: dict[str, dict[str, Any]]) -> str:
    """Return the results as a table in reStructuredText."""
    lines = [
        ":orphan:",
        "",
        ".. tables start here",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "",
    ]
    cells = ["data", *(f"{library}: {what}" for library in LIBRARIES for what in ("fit", "loss"))]
    rows = [cells]
    for name, of_libraries in results.items():
        numbers = ((f"{run[0]:.2f}", f"{run[2]:.4f}") for run in of_libraries.values())
        rows.append([name, *(cell for pair in numbers for cell in pair)])
    for row in rows:
        lines += [f"   {' ' if k else '*'} - {cell}" for k, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compare the libraries and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=20_000, help="number of training rows")
    parser.add_argument("--columns", type=int, default=20_000, help="number of features")
    parser.add_argument("--repeats", type=int, default=3, help="number of fits")
    parser.add_argument("--data", nargs="*", default=[*DATA], help="data sets")
    parser.add_argument("--rst", type=Path, help="file for the table")
    given = parser.parse_args()
    results = {}
    for name in given.data:
        of_libraries = compared(name, given.rows, given.columns, given.repeats)
        for library, run in of_libraries.items():
            print(
                f"{name}, {library}: fit {run[0]:.2f} s, predict {run[1]:.3f} s, loss {run[2]:.4f}"
            )
        results[f"{name}, {given.rows:,} x {given.columns:,}"] = of_libraries
    if given.rst is not None:
        given.rst.write_text(table(results), encoding="utf-8")


if __name__ == "__main__":
    main()
