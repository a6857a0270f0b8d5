"""Gradient boosting in pboost and in other libraries: losses on the same rows.

Run as ``python boosted_sets.py --data folder``, or set the environment variable PBOOST_DATA to the
folder, with files as described in the module ``published_table``. Each data set has at most 4,000
rows (multiclass 2,000), drawn once, with its missing values and categories. Multiclass data sets
are used as one-vs-rest or as multiclass problems. All models have 100 trees, the learning rate 0.1
and the same depth, and otherwise default options. Tables also show other options of
`fit_gradient_boosting`, from which its defaults were chosen; some data sets were not used for this
choice. There are two divisions into five folds (multiclass one). Synthetic problems have separate
test rows and are repeated for each draw. Prints reStructuredText tables; ``--rst file`` also writes
them to a file. With ``--results file`` outcomes are stored after each data set and reused by the
next run.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oblique_trees import as_it_is, table
from table_command import Results, arguments, publish, stored, write

import pboost as pb

TWO, NUMBERS, MANY = "two classes", "regression", "many classes"
FOLDS, REPEATS = 5, {TWO: 2, NUMBERS: 2, MANY: 1}
MOST_ROWS, QUICK_ROWS = {TWO: 4000, NUMBERS: 4000, MANY: 2000}, 200
TREES, RATE, DEPTHS = 100, 0.1, (3, 6)
#: Numbers of trees at which line search and Newton updates are compared.
STAGES = (10, 30, TREES)
#: Probabilities are clipped at this value in the log loss.
LEAST = 1e-15
#: Files by kind of target: data sets used to choose the defaults, and data sets kept apart. A slash
#: is followed by the positive class (default: the most frequent class) or by the target column.
SETS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    TWO: (
        (
            "pima",
            "raisin",
            "tic_tac_toe",
            "biodegradation",
            "banknote",
            "bupa",
            "breast_cancer",
            "vote",
            "monks3_uci",
            "ionosphere",
            "xd6_noise10",
            "spambase",
            "magic04",
            "adult_census",
            "electricity",
            "waveform_noise",
        ),
        (
            "breast_cancer_wdbc",
            "diabetes_early",
            "colic_orig",
            "monks2_uci",
            "mushroom",
            "higgs_sample",
            "covertype",
            "letter/A",
            "skin",
            "led_even_17",
            "satimage",
        ),
    ),
    NUMBERS: (
        (
            "electricity/nswprice",
            "obesity/Weight",
            "pima/BMI",
            "magic04/fWidth",
            "biodegradation/SpMax_L",
            "raisin/Extent",
        ),
        (
            "bupa/gammagt",
            "banknote/entropy",
            "adult_census/age",
            "higgs_sample/x26",
            "covertype/elevation",
            "letter/x-bar",
            "magic04/fDist",
        ),
    ),
    MANY: (
        (
            "iris",
            "glass",
            "balance_scale",
            "obesity",
            "bhp",
            "waveform_noise",
            "nursery",
            "satimage",
            "pendigits",
            "letter",
        ),
        (),
    ),
}
#: Training sizes of synthetic problems, with the number of draws; and the number of test rows.
DRAWS = {10_000: 6, 100_000: 2}
TEST_ROWS, COLUMNS = 50_000, 20
#: Comparison of binary classifiers: mean difference of log losses, median ratio, number of data
#: sets with a lower loss, and difference of errors.
COMPARED = ["log loss", "median, %", "lower on", "error, %"]
OURS, NEWTON = "pboost", "leaf_update='newton'"
FREE, POOLED, SYMMETRIC = (f"growth={word!r}" for word in ("independent", "pooled", "symmetric"))
#: Options of tree growth.
GROWTHS: dict[str, dict[str, Any]] = {
    FREE: {"growth": "independent"},
    POOLED: {"growth": "pooled"},
    SYMMETRIC: {"growth": "symmetric"},
}
#: Options of `fit_gradient_boosting` that differ from its defaults.
OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    TWO: {
        OURS: {},
        NEWTON: {"leaf_update": "newton"},
        "l2_regularization=1": {"l2_regularization": 1.0},
        "l2_regularization=0": {"l2_regularization": 0.0},
        "l2_regularization=1, min_child_weight=1": {
            "l2_regularization": 1.0,
            "min_child_weight": 1.0,
        },
        **GROWTHS,
    },
    NUMBERS: {OURS: {}, "l2_regularization=1": {"l2_regularization": 1.0}, **GROWTHS},
    MANY: {
        OURS: {},
        NEWTON: {"leaf_update": "newton"},
        "l2_regularization=0": {"l2_regularization": 0.0},
        **GROWTHS,
    },
}


@dataclass(frozen=True)
class DataSet:
    """A data set, with the test fold of each row in each division, or -1.

    NaN is a missing value, and `categories` lists the columns of categories.
    """

    name: str
    kind: str
    group: str
    X: NDArray[Any]
    categories: tuple[int, ...]
    y: NDArray[Any]
    folds: tuple[NDArray[np.intp], ...]


#: Predictions of a learner at some sizes: probabilities of class 1 or of all classes, or values.
Said = dict[str, NDArray[np.float64]]
Learner = Callable[[DataSet, NDArray[Any], NDArray[Any], NDArray[Any], int], Said]
# Results are mean log loss and error in %, or root mean squared error, by data set and depth and by
# learner and size.


# Data


def data_sets(folder: Path, quick: bool) -> Iterator[DataSet]:
    """Yield the data sets whose files exist, and the synthetic problems."""
    for kind, groups in SETS.items():
        for group, names in zip(("chosen on", "apart"), groups, strict=True):
            for name in names[: 1 if quick else None]:
                path = folder / f"{name.partition('/')[0]}.csv.gz"
                if path.exists():
                    data = of_file(path, name, kind, QUICK_ROWS if quick else MOST_ROWS[kind])
                    divided = folds_of(data[2], kind, 1 if quick else REPEATS[kind])
                    yield DataSet(name, kind, group, *data, divided)
    for n, draws in {QUICK_ROWS: 2}.items() if quick else DRAWS.items():
        for kind in (TWO, NUMBERS):
            for draw in range(draws):
                yield drawn(kind, n, draw)


def of_file(
    path: Path, name: str, kind: str, most: int
) -> tuple[NDArray[np.float64], tuple[int, ...], NDArray[Any]]:
    """Return X, its categorical columns and the targets: classes 0, 1, ..., or numbers.

    Classes with fewer rows than folds are left out.
    """
    X, categories, target = as_it_is(path, most)
    said = name.partition("/")[2]
    if kind == TWO:
        labels, counts = np.unique(target, return_counts=True)
        first = said or labels[1 if len(labels) == 2 else np.argmax(counts)]
        return X, categories, (target == first).astype(np.int64)
    if kind == MANY:
        _, label, counts = np.unique(target, return_inverse=True, return_counts=True)
        kept = counts[label] >= FOLDS
        return X[kept], categories, np.unique(label[kept], return_inverse=True)[1].astype(np.int64)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        j = next(csv.reader(file)).index(said)
    known = ~np.isnan(X[:, j])
    left = tuple(k - (k > j) for k in categories)
    return np.delete(X[known], j, axis=1), left, X[known, j]


def folds_of(y: NDArray[Any], kind: str, repeats: int) -> tuple[NDArray[np.intp], ...]:
    """Assign rows to folds, stratified by class."""
    result = []
    for repeat in range(repeats):
        order = np.random.default_rng(1000 + repeat).permutation(len(y))
        if kind != NUMBERS:
            order = order[np.argsort(y[order], kind="stable")]
        fold = np.empty(len(y), dtype=np.intp)
        fold[order] = np.arange(len(y)) % FOLDS
        result.append(fold)
    return tuple(result)


def drawn(kind: str, n: int, draw: int) -> DataSet:
    """Return a sum of products, sines and noise with n training rows."""
    rng = np.random.default_rng(draw)
    X = rng.normal(size=(n + TEST_ROWS, COLUMNS)).astype(np.float32)
    z = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] + 0.5 * X[:, 4] * X[:, 5]
    z += rng.normal(size=len(z))
    y = z if kind == NUMBERS else (z > 0).astype(np.int64)
    fold = np.where(np.arange(len(y)) < n, -1, 0)
    return DataSet(f"draw {draw}", kind, f"{n:,} rows", X, (), y, (fold,))


# Learners


def shares(data: DataSet, found: Any) -> NDArray[np.float64]:
    """Return probabilities (rows, classes); for binary problems those of class 1."""
    said: NDArray[np.float64] = found[:, 1] if data.kind == TWO else found
    return said


def own(options: dict[str, Any], data: DataSet, X: Any, y: Any, new: Any, depth: int) -> Said:
    """Predict with pboost; for classification also with the first trees."""
    model = pb.fit_gradient_boosting(
        X,
        y,
        max_depth=depth,
        categorical_features=data.categories,
        n_estimators=TREES,
        learning_rate=RATE,
        task="regression" if data.kind == NUMBERS else "classification",
        n_threads=1,
        **options,
    )
    if data.kind == NUMBERS:
        return {"": pb.predict(model, new)}
    compared = data.kind == TWO and options in ({}, OPTIONS[TWO][NEWTON])
    stages = STAGES[:-1] if compared else ()
    text = {
        f" {k}": shares(data, pb.predict_proba(pb.models.truncate(model, k), new)) for k in stages
    }
    return {"": shares(data, pb.predict_proba(model, new)), **text}


def with_lightgbm(data: DataSet, X: Any, y: Any, new: Any, depth: int) -> Said:
    """Predict with lightgbm, with as many leaves as the depth allows."""
    lightgbm = importlib.import_module("lightgbm")
    options = {
        "objective": {TWO: "binary", NUMBERS: "regression", MANY: "multiclass"}[data.kind],
        "num_class": y.max() + 1 if data.kind == MANY else 1,
        "max_depth": depth,
        "num_leaves": 2**depth,
        "learning_rate": RATE,
        "num_threads": 1,
        "verbosity": -1,
    }
    rows = lightgbm.Dataset(X, y, params=options, categorical_feature=list(data.categories))
    return {"": lightgbm.train(options, rows, TREES).predict(new)}


def with_xgboost(data: DataSet, X: Any, y: Any, new: Any, depth: int) -> Said:
    """Predict with xgboost, for which unknown categories are missing."""
    xgboost = importlib.import_module("xgboost")
    types = ["c" if j in data.categories else "q" for j in range(X.shape[1])]
    objective = {TWO: "binary:logistic", NUMBERS: "reg:squarederror", MANY: "multi:softprob"}
    options = {
        "objective": objective[data.kind],
        "eta": RATE,
        **({"num_class": y.max() + 1} if data.kind == MANY else {}),
        "max_depth": depth,
        "nthread": 1,
        "tree_method": "hist",
        "verbosity": 0,
    }
    new = new.copy()
    for j in data.categories:
        new[~np.isin(new[:, j], X[:, j]), j] = np.nan
    rows, others = (
        xgboost.DMatrix(of, label, nthread=1, feature_types=types, enable_categorical=True)
        for of, label in ((X, y), (new, None))
    )
    return {"": xgboost.train(options, rows, TREES).predict(others)}


def with_histograms(data: DataSet, X: Any, y: Any, new: Any, depth: int) -> Said:
    """Predict with HistGradientBoosting; its rare categories are missing."""
    ensemble = importlib.import_module("sklearn.ensemble")
    X, new = X.copy(), new.copy()
    for j in data.categories:
        levels, counts = np.unique(X[~np.isnan(X[:, j]), j], return_counts=True)
        coded = np.sort(levels[np.argsort(-counts, kind="stable")][:255])
        for rows in (X, new):
            code = np.searchsorted(coded, rows[:, j])
            rows[:, j] = np.where(np.append(coded, np.nan)[code] == rows[:, j], code, np.nan)
    kind = "Regressor" if data.kind == NUMBERS else "Classifier"
    model = getattr(ensemble, f"HistGradientBoosting{kind}")(
        max_iter=TREES,
        max_depth=depth,
        max_leaf_nodes=2**depth,
        learning_rate=RATE,
        early_stopping=False,
        categorical_features=list(data.categories) or None,
    ).fit(X, y)
    numbers = data.kind == NUMBERS
    return {"": model.predict(new) if numbers else shares(data, model.predict_proba(new))}


def with_catboost(data: DataSet, X: Any, y: Any, new: Any, depth: int) -> Said:
    """Predict with catboost, whose categories are strings."""
    catboost, pandas = (importlib.import_module(name) for name in ("catboost", "pandas"))
    kind = "Regressor" if data.kind == NUMBERS else "Classifier"
    model = getattr(catboost, f"CatBoost{kind}")(
        iterations=TREES,
        learning_rate=RATE,
        depth=depth,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        random_seed=0,
        cat_features=list(data.categories),
    )
    if data.categories:
        X, new = (pandas.DataFrame(rows) for rows in (X, new))
        for j in data.categories:
            for rows in (X, new):
                rows[j] = [str(value) for value in rows[j]]
    model.fit(X, y)
    numbers = data.kind == NUMBERS
    return {"": model.predict(new) if numbers else shares(data, model.predict_proba(new))}


def learners(data: DataSet) -> dict[str, Learner]:
    """Return the learners for a data set."""
    ours = {name: partial(own, options) for name, options in OPTIONS[data.kind].items()}
    return {**ours, **peers()}


def peers() -> dict[str, Learner]:
    """Return the learners of the other libraries that are installed."""
    known = {
        "lightgbm": ("lightgbm", with_lightgbm),
        "xgboost hist": ("xgboost", with_xgboost),
        "HistGradientBoosting": ("sklearn", with_histograms),
        "catboost": ("catboost", with_catboost),
    }
    result: dict[str, Learner] = {}
    for name, (module, learner) in known.items():
        try:
            importlib.import_module(module)
        except ImportError:
            continue
        result[name] = learner
    return result


# Outcomes


def run(data: DataSet, results: Results) -> None:
    """Compute the missing results of a data set."""
    for depth in DEPTHS:
        of = results.setdefault(key(data, depth), {})
        for name, learner in learners(data).items():
            if name not in of:
                of |= {f"{name}{size}": means for size, means in outcome(data, learner, depth)}


def key(data: DataSet, depth: int) -> str:
    """Return the key of the stored outcomes."""
    return f"{data.kind}, {data.group}, {data.name}, depth {depth}"


def outcome(data: DataSet, learner: Learner, depth: int) -> Iterator[tuple[str, list[float]]]:
    """Yield the means over divisions and folds, by size."""
    result: dict[str, list[list[float]]] = {}
    for fold in data.folds:
        for k in range(fold.max() + 1):
            train, test = fold != k, fold == k
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings of other libraries
                said = learner(data, data.X[train], data.y[train], data.X[test], depth)
            for size, of in said.items():
                result.setdefault(size, []).append(losses(of, data.y[test]))
    for size, each in result.items():
        yield size, np.mean(each, axis=0).tolist()


def losses(said: NDArray[np.float64], truth: NDArray[Any]) -> list[float]:
    """Return the log loss and the error in %, or the root mean squared error."""
    if truth.dtype != np.int64:
        return [float(np.mean((said - truth) ** 2)) ** 0.5]
    if said.ndim == 1:
        share = np.where(truth == 1, said, 1 - said)
        wrong = share < 0.5
    else:
        share = said[np.arange(len(truth)), truth]
        wrong = said.argmax(axis=1) != truth
    loss = -np.log(np.clip(share, LEAST, 1.0))
    return [float(np.mean(loss)), 100 * float(np.mean(wrong))]


# Tables


def spread(values: NDArray[np.float64], digits: int) -> str:
    """Return the mean with its standard error."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():+.{digits}f} ± {error:.{digits}f}"


def against(ours: NDArray[np.float64], theirs: NDArray[np.float64], kind: str) -> list[str]:
    """Return cells that compare the figures (data sets, figures) of two learners."""
    with np.errstate(divide="ignore"):  # a loss can be 0
        ratio = 100 * np.log(theirs[:, 0] / ours[:, 0])
    count = f"{int((ratio < 0).sum())} of {len(ratio)}"
    if kind == NUMBERS:
        return [spread(ratio, 1), f"{np.median(ratio):+.1f}", count]
    loss, error = (spread(theirs[:, what] - ours[:, what], 4 - 2 * what) for what in (0, 1))
    return [loss, f"{np.median(ratio):+.1f}", count, error]


def figures(results: Results, sets: list[DataSet], depth: int, name: str) -> Any:
    """Return the figures (data sets, figures) of a learner; None if some are missing."""
    every = [results[key(data, depth)].get(name) for data in sets]
    return None if None in every else np.array(every)


def comparison(results: Results, sets: list[DataSet], depth: int, title: str) -> str:
    """Return the table that compares all learners with the defaults."""
    kind = sets[0].kind
    head = ["", *(["RMSE, %", *COMPARED[1:3]] if kind == NUMBERS else COMPARED)]
    ours, rows = figures(results, sets, depth, OURS), [head]
    for name in [*OPTIONS[kind], *peers()]:
        theirs = figures(results, sets, depth, name)
        if name != OURS and theirs is not None:
            rows.append([name, *against(ours, theirs, kind)])
    return table(f"{title}, depth {depth}", rows)


def leaf_steps(results: Results, sets: list[DataSet]) -> str:
    """Return the table that compares Newton updates with line search, by number of trees."""
    rows = [["depth", "trees", *COMPARED]]
    for depth in DEPTHS:
        for stage in STAGES:
            size = "" if stage == TREES else f" {stage}"
            best, newton = (figures(results, sets, depth, f"{of}{size}") for of in (OURS, NEWTON))
            rows.append([str(depth), str(stage), *against(best, newton, TWO)])
    return table("Newton steps minus line search", rows)


def by_set(results: Results, sets: list[DataSet], depth: int) -> str:
    """Return the table of the losses on each data set."""
    names = [OURS, *peers()]
    rows = [["data set", "rows", *names]]
    for data in sets:
        of = results[key(data, depth)]
        rows.append([data.name, f"{len(data.y):,}", *(f"{of[name][0]:.4g}" for name in names)])
    loss = "Root mean squared errors" if sets[0].kind == NUMBERS else "Log losses"
    return table(f"{loss}, depth {depth}", rows)


def tables(sets: list[DataSet], results: Results) -> str:
    """Return all tables: synthetic problems, real data, leaf updates, and each data set."""
    drawn_parts, parts, each, steps = [], [], [], ""
    for kind in SETS:
        of_kind = [data for data in sets if data.kind == kind]
        real = [data for data in of_kind if data.group in ("chosen on", "apart")]
        apart = [data for data in real if data.group == "apart"]
        for group in dict.fromkeys(data.group for data in of_kind if data not in real):
            some = [data for data in of_kind if data.group == group]
            title = f"Difference to the defaults of pboost, {kind}, {group}, {len(some)} draws"
            drawn_parts += [comparison(results, some, depth, title) for depth in DEPTHS]
        for some, said in ((real, "real sets"), (apart, "of them kept apart")):
            if some:
                title = f"Difference to the defaults of pboost, {kind}, {len(some)} {said}"
                parts += [comparison(results, some, depth, title) for depth in DEPTHS]
        if real:
            each += [by_set(results, real, depth) for depth in DEPTHS]
            steps = leaf_steps(results, real) if kind == TWO else steps
    return "\n".join(
        [
            *parts,
            ".. drawn problems start here\n",
            *drawn_parts,
            ".. leaf steps start here\n",
            steps,
            ".. each set starts here\n",
            *each,
        ]
    )


def main(argv: list[str] | None = None) -> None:
    """Cross-validate, print the tables and optionally write them."""
    quick = f"the first sets, {QUICK_ROWS} rows, one division into folds"
    parser, options, folder = arguments(
        __doc__, quick, argv, results="file of the outcomes of earlier runs, and of this one"
    )
    files = {
        name.partition("/")[0] for groups in SETS.values() for names in groups for name in names
    }
    if not any((folder / f"{file}.csv.gz").exists() for file in files):
        parser.error(f"no data: {folder} has no file of a data set")
    results, sets = stored(options.results), []
    for data in data_sets(folder, options.quick):
        start = time.perf_counter()
        run(data, results)
        write(options.results, results)
        seconds = time.perf_counter() - start
        print(f"{data.kind}, {data.group}, {data.name}: {seconds:.0f} s", file=sys.stderr)
        sets.append(replace(data, X=data.X[:0]))
    publish(tables(sets, results), options.rst)


if __name__ == "__main__":
    main()
