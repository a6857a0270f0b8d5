"""Gradient boosting with default parameters, compared with the defaults of other libraries.

Run as ``python default_boosters.py --data folder``, or set the environment variable PBOOST_DATA to
the folder. It contains ``INDEX.csv`` with the columns ``file``, ``task`` or ``n_classes``, and the
files in the format of the module ``published_table``. Sets with more than ``--rows`` rows are
sampled once. Each set is divided into five stratified folds, of which the first ``--folds`` are
test sets. Losses are the log loss and the RMSE, and times are CPU times of a fit and its
predictions with one thread. The libraries that are not installed are left out.

Prints reStructuredText tables; ``--rst file`` also writes them to a file. With ``--results file``
outcomes are stored with the versions of the libraries. The next run reuses the outcomes of other
libraries.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from oblique_trees import as_it_is, table
from table_command import Results, arguments, publish, stored, write

import pboost as pb

#: Columns of the first group that serve as regression targets, by file; its sets have classes.
TARGETS = {
    "electricity": "nswprice",
    "obesity": "Weight",
    "pima": "BMI",
    "magic04": "fWidth",
    "bupa": "gammagt",
    "banknote": "entropy",
    "adult_census": "age",
}
TASKS = {"binary": "log loss", "multiclass": "log loss", "regression": "RMSE"}
FOLDS, FEWEST_OF_CLASS = 5, 5
#: Losses below this value count as this value in ratios.
LEAST_LOSS = 0.002
QUICK_ROWS, QUICK_SETS = 200, 3
Array = Any
Predict = Callable[[Array], Array]


class DataSet(NamedTuple):
    """A data set. Missing values are NaN. `categories` are the columns of numbered categories."""

    name: str
    task: str
    X: Array
    y: Array
    categories: list[int]


# ------------------------------------------------------------------------------------- data


def data_sets(folder: Path, most_rows: int) -> Iterator[DataSet]:
    """Yield the data sets of a folder."""
    with open(folder / "INDEX.csv", encoding="utf-8") as file:
        index = list(csv.DictReader(file))
    for row in index:
        name = row["file"].removesuffix(".csv.gz")
        task = row.get("task") or ("binary" if row["n_classes"] == "2" else "multiclass")
        yield read(folder, name, task, most_rows)
    if "task" not in index[0]:
        for name, target in TARGETS.items():
            yield read(folder, name, "regression", most_rows, target)


def read(folder: Path, name: str, task: str, most_rows: int, target: str | None = None) -> DataSet:
    """Read a file. With `target`, this column is predicted and the class is left out."""
    X, categories, labels = as_it_is(folder / f"{name}.csv.gz", most_rows)
    if target is not None:
        goal = columns_of(folder / f"{name}.csv.gz").index(target)
        X = X[~np.isnan(X[:, goal])]
        X, labels = np.delete(X, goal, axis=1), X[:, goal]
        categories = tuple(j - (j > goal) for j in categories)
    if task == "regression":
        y = labels.astype(float)
        y = y / y.std()
    else:
        y = codes_of(labels)
        kept = np.bincount(y)[y] >= FEWEST_OF_CLASS
        X, y = X[kept], codes_of(y[kept])
    return DataSet(f"{name} {target or ''}".strip(), task, X, y, list(categories))


def columns_of(path: Path) -> list[str]:
    """Return the names of the columns of a file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return [name.removesuffix("__cat") for name in next(csv.reader(file))]


def codes_of(labels: Array) -> Array:
    """Return the number of each label in sorted order."""
    return np.unique(labels, return_inverse=True)[1]


def folds_of(data: DataSet) -> Array:
    """Return the fold of each row."""
    order = np.random.default_rng(1000).permutation(len(data.y))
    if data.task != "regression":
        order = order[np.argsort(data.y[order], kind="stable")]
    fold = np.empty(len(order), dtype=int)
    fold[order] = np.arange(len(order)) % FOLDS
    return fold


# ------------------------------------------------------------------------------- libraries


def of_pboost(data: DataSet, X: Array, y: Array, options: dict[str, Any]) -> Predict:
    """Fit gradient boosting of pboost."""
    task: Any = "regression" if data.task == "regression" else "classification"
    model = pb.fit_gradient_boosting(
        X, y, task=task, categorical_features=data.categories or None, n_threads=1, **options
    )
    return lambda rows: (pb.predict if task == "regression" else pb.predict_proba)(model, rows)


def of_lightgbm(data: DataSet, X: Array, y: Array, options: dict[str, Any]) -> Predict:
    """Fit LightGBM."""
    import lightgbm

    kind = lightgbm.LGBMRegressor if data.task == "regression" else lightgbm.LGBMClassifier
    model = kind(n_jobs=1, verbose=-1, **options)
    model.fit(X, y, categorical_feature=data.categories or "auto")
    return answers(data, model)


def of_xgboost(data: DataSet, X: Array, y: Array, options: dict[str, Any]) -> Predict:
    """Fit XGBoost."""
    import pandas
    import xgboost

    def frame(rows: Array) -> Any:
        columns = pandas.DataFrame(rows)
        for j in data.categories:
            levels = [str(int(v)) for v in np.unique(X[~np.isnan(X[:, j]), j])]
            columns[j] = pandas.Categorical(texts(rows[:, j], None), categories=levels)
        return columns

    kind = xgboost.XGBRegressor if data.task == "regression" else xgboost.XGBClassifier
    model = kind(n_jobs=1, enable_categorical=True, **options).fit(frame(X), y)
    return lambda rows: answers(data, model)(frame(rows))


def of_scikit_learn(data: DataSet, X: Array, y: Array, options: dict[str, Any]) -> Predict:
    """Fit HistGradientBoosting, with features of at most 255 categories as categories."""
    from sklearn import ensemble

    levels = {j: np.unique(X[~np.isnan(X[:, j]), j]) for j in data.categories}
    levels = {j: known for j, known in levels.items() if len(known) <= 255}

    def coded(rows: Array) -> Array:
        rows = rows.copy()
        for j, known in levels.items():
            place = np.minimum(np.searchsorted(known, rows[:, j]), len(known) - 1)
            rows[:, j] = np.where(known[place] == rows[:, j], place, np.nan)
        return rows

    kind = "Regressor" if data.task == "regression" else "Classifier"
    booster = getattr(ensemble, f"HistGradientBoosting{kind}")
    model = booster(categorical_features=list(levels) or None, **options).fit(coded(X), y)
    return lambda rows: answers(data, model)(coded(rows))


def of_catboost(data: DataSet, X: Array, y: Array, options: dict[str, Any]) -> Predict:
    """Fit CatBoost."""
    import catboost
    import pandas

    def frame(rows: Array) -> Any:
        columns = pandas.DataFrame(rows)
        for j in data.categories:
            columns[j] = texts(rows[:, j], "missing")
        return columns

    kind = catboost.CatBoostRegressor if data.task == "regression" else catboost.CatBoostClassifier
    quiet = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
    model = kind(cat_features=data.categories or None, **quiet, **options).fit(frame(X), y)
    return lambda rows: answers(data, model)(frame(rows))


def of_chimeraboost(data: DataSet, X: Array, y: Array, options: dict[str, Any]) -> Predict:
    """Fit ChimeraBoost."""
    import chimeraboost

    def mixed(rows: Array) -> Array:
        if not data.categories:
            return rows
        columns = rows.astype(object)
        for j in data.categories:
            columns[:, j] = texts(rows[:, j], "missing")
        return columns

    kind = "Regressor" if data.task == "regression" else "Classifier"
    booster = getattr(chimeraboost, f"ChimeraBoost{kind}")
    model = booster(thread_count=1, random_state=0, **options)
    model.fit(mixed(X), y, cat_features=data.categories or None)
    return lambda rows: answers(data, model)(mixed(rows))


def texts(codes: Array, missing: str | None) -> Array:
    """Return categories as texts."""
    return np.array([missing if np.isnan(v) else str(int(v)) for v in codes], dtype=object)


def answers(data: DataSet, model: Any) -> Predict:
    """Return the predictions of an estimator, or its probabilities."""
    return model.predict if data.task == "regression" else model.predict_proba


class Library(NamedTuple):
    """A library: its function, module, and options for 100 trees of depth 6 with rate 0.1."""

    fit: Callable[..., Predict]
    module: str
    equal: dict[str, Any]


LIBRARIES = {
    "pboost": Library(of_pboost, "pboost", {"n_estimators": 100}),
    "LightGBM": Library(of_lightgbm, "lightgbm", {"max_depth": 6, "num_leaves": 64}),
    "XGBoost": Library(of_xgboost, "xgboost", {"learning_rate": 0.1}),
    "HistGradientBoosting": Library(
        of_scikit_learn,
        "sklearn",
        {"max_depth": 6, "max_leaf_nodes": None, "early_stopping": False},
    ),
    "CatBoost": Library(of_catboost, "catboost", {"n_estimators": 100, "learning_rate": 0.1}),
    "ChimeraBoost": Library(
        of_chimeraboost, "chimeraboost", {"n_estimators": 100, "learning_rate": 0.1, "depth": 6}
    ),
}


def installed() -> dict[str, str]:
    """Return the names of the libraries that can be imported, with the versions of the peers."""
    names = {}
    for name, library in LIBRARIES.items():
        if importlib.util.find_spec(library.module):
            version = importlib.import_module(library.module).__version__
            names[name] = name if name == "pboost" else f"{name} {version}"
    return names


# ----------------------------------------------------------------------------- comparison


def outcome(data: DataSet, library: Library, options: dict[str, Any], n_folds: int) -> list[float]:
    """Return the mean loss over test folds, and the CPU time."""
    fold, losses, start = folds_of(data), [], time.process_time()
    for k in range(n_folds):
        is_test = fold == k
        predict = library.fit(data, data.X[~is_test], data.y[~is_test], options)
        losses.append(loss(data.task, data.y[is_test], np.asarray(predict(data.X[is_test]))))
    return [float(np.mean(losses)), time.process_time() - start]


def loss(task: str, y: Array, predicted: Array) -> float:
    """Return the RMSE or the log loss."""
    if task == "regression":
        return float(np.sqrt(np.mean((y - predicted) ** 2)))
    return float(-np.log(np.clip(predicted[np.arange(len(y)), y], 1e-6, 1)).mean())


def compared(pairs: list[tuple[list[float], list[float]]]) -> tuple[Array, float, float]:
    """Compare pairs of outcomes, one pair per data set.

    Returns the logarithms of the ratios of losses, the standard error of their mean, and the
    geometric mean of the ratios of CPU times.
    """
    own, other = np.array(pairs).transpose(1, 0, 2)
    ratio = np.log(np.maximum(own[:, 0], LEAST_LOSS) / np.maximum(other[:, 0], LEAST_LOSS))
    error = float(ratio.std(ddof=1)) / len(ratio) ** 0.5
    return ratio, error, float(np.exp(np.log(own[:, 1] / other[:, 1]).mean()))


def comparison(results: Results, names: dict[str, list[str]], peers: list[str]) -> str:
    """Return a table with a row for each task and peer."""
    from scipy.stats import wilcoxon

    rows = [
        ["task", "peer", "sets", "loss of pboost", "won : lost", "Wilcoxon's p", "CPU time"],
    ]
    for task in TASKS:
        for peer in peers:
            pairs = [
                (results[data]["pboost"], results[data][peer])
                for data in names[task]
                if {"pboost", peer} <= results.get(data, {}).keys()
            ]
            if len(pairs) < 2:
                continue
            ratio, error, cpu = compared(pairs)
            p = wilcoxon(ratio).pvalue if ratio.any() else 1.0
            rows.append(
                [
                    f"{task}, {TASKS[task]}",
                    peer,
                    str(len(ratio)),
                    f"{100 * ratio.mean():+.1f} ± {100 * error:.1f} %",
                    f"{int((ratio < 0).sum())} : {int((ratio > 0).sum())}",
                    f"{p:.3f}",
                    f"{cpu:.2f}",
                ]
            )
    return table("Losses and CPU times of pboost relative to other libraries", rows)


def main(argv: list[str] | None = None) -> None:
    """Compare the libraries on all sets of the folder."""
    warnings.filterwarnings("ignore")
    _, options, folder = arguments(
        __doc__,
        "three small sets of each task, a single fold",
        argv,
        results="file with the outcomes of earlier runs",
        rows=(2500, "largest number of rows of a set"),
        folds=(1, "number of test folds, 1 to 5"),
        equal=(False, "100 trees of depth 6, learning rate 0.1, instead of defaults"),
    )
    most_rows, n_folds = (QUICK_ROWS, 1) if options.quick else (options.rows, options.folds)
    results, libraries = stored(options.results), installed()
    names: dict[str, list[str]] = {task: [] for task in TASKS}
    for data in data_sets(folder, most_rows):
        if options.quick and len(names[data.task]) == QUICK_SETS:
            continue
        key = f"{data.name}, {data.task}, {most_rows} rows, {n_folds} folds"
        key += ", equal" if options.equal else ""
        names[data.task].append(key)
        of_set = results.setdefault(key, {})
        for name, with_version in libraries.items():
            if name == "pboost" or with_version not in of_set:
                equal = LIBRARIES[name].equal if options.equal else {}
                of_set[with_version] = outcome(data, LIBRARIES[name], equal, n_folds)
        write(options.results, results)
        print(data.name, file=sys.stderr)
    kept = {peer for keys in names.values() for key in keys for peer in results[key]}
    order = list(LIBRARIES)
    peers = sorted(kept - {"pboost"}, key=lambda peer: order.index(peer.split()[0]))
    publish(comparison(results, names, peers) + "\n", options.rst)


if __name__ == "__main__":
    main()
