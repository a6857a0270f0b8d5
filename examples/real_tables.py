"""Native handling of missing values and categories, compared with encoding and other libraries.

Run as ``python real_tables.py --data folder``, or set the environment variable PBOOST_DATA to the
folder, with files as described in the module ``published_table``. Each data set has at most 2,000
rows, drawn once. There are three parts:

* Five fit functions on the original tables, the same functions with one-hot encoding and mean
  imputation, and lightgbm and scikit-learn's HistGradientBoosting, which also support missing
  values and categories. They use the same 10 divisions into 5 folds.
* The increase of the error by an irrelevant feature with 200 categories, for three fit functions
  and several values of `categorical_smoothing`. The feature is drawn ``--draws`` times.
* Errors on the original tables for the same values, from which the default was chosen.

Prints reStructuredText tables; ``--rst file`` also writes them to a file. With ``--results file``
outcomes are stored and reused by the next run.
"""

from __future__ import annotations

import importlib
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oblique_trees import as_it_is, one_hot_and_means, table
from table_command import Results, arguments, publish, stored, write

import pboost as pb

FOLDS, REPEATS, QUICK_REPEATS = 5, 10, 1
#: Number of draws of the random feature, and of divisions to compare `categorical_smoothing`.
DRAWS, CHOICE_REPEATS = 20, 2
MOST_ROWS, QUICK_ROWS = 2000, 200
SEED = 0
#: Kinds of data sets.
WORDS, AT_RANDOM, LARGE = "missing values or categories", "removed at random", "removed where large"
COMPLETE = "complete"
SETS = {
    WORDS: (
        "adult_census",
        "breast_cancer",
        "colic_orig",
        "diabetes_early",
        "electricity",
        "labor",
        "monks1_uci",
        "monks2_uci",
        "monks3_uci",
        "mushroom",
        "tic_tac_toe",
        "vote",
        "bhp",
        "fars",
        "kddcup99_10pct",
        "nursery",
        "obesity",
    ),
    AT_RANDOM: (
        "banknote",
        "breast_cancer_wdbc",
        "ionosphere",
        "magic04",
        "pima",
        "raisin",
        "spambase",
        "glass",
    ),
}
SETS[LARGE] = SETS[AT_RANDOM]
#: Fraction of cells to remove. In "removed where large" they are removed from the largest `TOP` of
#: each column, with the same total fraction.
REMOVED, TOP = 0.2, 0.3
#: Categories of the random feature, and the data sets that it is added to.
LEVELS, WITH_LEVELS = 200, ("banknote", "magic04", "pima")
SMOOTHINGS = (0, 1, 2, 3, 5)
NATIVE, ENCODED = "as it is", "one-hot, means"
#: Rounds of AdaBoost with the random feature.
FEW_ROUNDS = 50
#: Names of the fit functions in the tables: all, those with `categorical_smoothing`, and those with
#: the random feature.
BUILDERS = ("AdaBoost", "soft tree", "pruned CART", "forest", "SBPMT")
SMOOTHED, LEVEL_BUILDERS = BUILDERS[:4], ("AdaBoost", "pruned CART", "forest")
DRAWING = (pb.fit_pruned_cart, pb.fit_random_forest, pb.fit_sbpmt)
#: Largest number of categories in HistGradientBoosting.
MOST_LEVELS = 255


@dataclass(frozen=True)
class DataSet:
    """A data set without preprocessing.

    Attributes
    ----------
    name, kind : str
        Name of the file, and kind of data set.
    X : ndarray of float64, shape (n, d)
        NaN is a missing value; categories are numbers.
    categories : tuple of int
        Columns of categories.
    y : ndarray of int64, shape (n,)
        Class numbers.
    has_levels : bool
        Whether each division into folds adds a random categorical feature.
    """

    name: str
    kind: str
    X: NDArray[np.float64]
    categories: tuple[int, ...]
    y: NDArray[np.int64]
    has_levels: bool = False

    def key(self) -> str:
        """Return the key of the stored outcomes."""
        return f"{self.name}, {self.kind}{', random levels' if self.has_levels else ''}"


#: Predicts new rows from training rows, their classes, the categorical columns and a seed.
Learner = Callable[
    [NDArray[np.float64], NDArray[Any], NDArray[np.float64], tuple[int, ...], int], NDArray[Any]
]
# Results are the errors in % of each division into folds, by data set and learner.


# Data


def data_sets(folder: Path, kinds: dict[str, tuple[str, ...]], quick: bool) -> list[DataSet]:
    """Return the data sets whose files exist."""
    result = []
    for kind, names in kinds.items():
        for name in names[: 1 if quick else None]:
            path = folder / f"{name}.csv.gz"
            if path.exists():
                data = numbered(*as_it_is(path, QUICK_ROWS if quick else MOST_ROWS))
                result.append(with_holes(DataSet(name, kind, *data)))
    return result


def numbered(
    X: NDArray[np.float64], categories: tuple[int, ...], target: NDArray[Any]
) -> tuple[NDArray[np.float64], tuple[int, ...], NDArray[np.int64]]:
    """Return a data set with class numbers, without classes of fewer rows than folds."""
    _, y, counts = np.unique(target, return_inverse=True, return_counts=True)
    kept = counts[y] >= FOLDS
    return X[kept], categories, np.unique(y[kept], return_inverse=True)[1]


def with_holes(data: DataSet) -> DataSet:
    """Return the data set with the cells removed that its kind defines."""
    if data.kind in (WORDS, COMPLETE):
        return data
    share = np.full(data.X.shape, REMOVED)
    if data.kind == LARGE:
        share = np.where(np.quantile(data.X, 1 - TOP, axis=0) < data.X, REMOVED / TOP, 0.0)
    gone = np.random.default_rng(SEED).random(data.X.shape) < share
    return replace(data, X=np.where(gone, np.nan, data.X))


def folds_of(y: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Assign rows to folds, stratified by class."""
    order = rng.permutation(len(y))
    fold = np.empty(len(y), dtype=np.intp)
    fold[order[np.argsort(y[order], kind="stable")]] = np.arange(len(y)) % FOLDS
    return fold


# Learners


def native(
    fit: Callable[..., Any], X: Any, y: Any, new: Any, categories: Any, seed: int
) -> NDArray[Any]:
    """Predict with a model of the original table."""
    return pb.predict(seeded(fit, seed)(X, y, categorical_features=categories), new)


def encoded(
    fit: Callable[..., Any], X: Any, y: Any, new: Any, categories: Any, seed: int
) -> NDArray[Any]:
    """Predict with a model of one-hot encoded and mean-imputed features."""
    rows, others = one_hot_and_means(X, new, categories)
    return pb.predict(seeded(fit, seed)(rows, y), others)


def seeded(fit: Callable[..., Any], seed: int) -> Callable[..., Any]:
    """Return a fit function with a seed, if it is random."""
    builder = fit.func if isinstance(fit, partial) else fit
    return partial(fit, rng=seed) if builder in DRAWING else fit


def with_lightgbm(X: Any, y: Any, new: Any, categories: Any, seed: int) -> NDArray[Any]:
    """Predict with lightgbm and its handling of missing values and categories."""
    lightgbm = importlib.import_module("lightgbm")
    model = lightgbm.LGBMClassifier(n_jobs=1, verbose=-1, random_state=seed)
    model.fit(X, y, categorical_feature=list(categories))
    return model.predict(new)


def with_histograms(X: Any, y: Any, new: Any, categories: Any, seed: int) -> NDArray[Any]:
    """Predict with HistGradientBoosting; categories beyond the 255 most common are missing."""
    ensemble = importlib.import_module("sklearn.ensemble")
    X, new = X.copy(), new.copy()
    for j in categories:
        levels, counts = np.unique(X[~np.isnan(X[:, j]), j], return_counts=True)
        coded = np.sort(levels[np.argsort(-counts, kind="stable")][:MOST_LEVELS])
        for rows in (X, new):
            code = np.searchsorted(coded, rows[:, j])
            is_coded = np.append(coded, np.nan)[code] == rows[:, j]
            rows[:, j] = np.where(is_coded, code, np.nan)
    model = ensemble.HistGradientBoostingClassifier(
        random_state=seed, categorical_features=list(categories)
    )
    model.fit(X, y)
    return model.predict(new)


def builders(
    is_two: bool, smoothing: float | None = None, rounds: int | None = None
) -> dict[str, Callable[..., Any]]:
    """Return the compared fit functions; binary ones are used one-vs-rest for multiclass data."""
    stump = (
        {}
        if smoothing is None
        else {"weak_learner": pb.weak.stump(categorical_smoothing=smoothing)}
    )
    trees = {} if smoothing is None else {"categorical_smoothing": smoothing}
    less = {} if rounds is None else {"n_estimators": rounds}
    adaboost = partial(pb.fit_adaboost, n_threads=1, **less, **stump)
    soft = partial(pb.fit_boosted_tree, observation=pb.observation.adatree2(), n_threads=1, **stump)
    if not is_two:
        adaboost, soft = (partial(pb.fit_one_vs_rest, fit) for fit in (adaboost, soft))
    return {
        "AdaBoost": adaboost,
        "soft tree": soft,
        "pruned CART": partial(pb.fit_pruned_cart, n_threads=1, **trees),
        "forest": partial(pb.fit_random_forest, n_threads=1, **trees),
        "SBPMT": partial(pb.fit_sbpmt, n_threads=1),
    }


def handlings(data: DataSet) -> dict[str, Learner]:
    """Return the learners for a data set of the first part."""
    result: dict[str, Learner] = {}
    for name, fit in builders(is_two(data)).items():
        result[f"{name}, {NATIVE}"] = partial(native, fit)
        result[f"{name}, {ENCODED}"] = partial(encoded, fit)
    return result | peers()


def is_two(data: DataSet) -> bool:
    """Return whether a data set is binary."""
    return int(data.y.max()) == 1


def peers() -> dict[str, Learner]:
    """Return the learners of the other libraries that are installed, with default options."""
    known = {"lightgbm": with_lightgbm, "sklearn": with_histograms}
    names = {"lightgbm": "lightgbm", "sklearn": "HistGradientBoosting"}
    result: dict[str, Learner] = {}
    for module, learner in known.items():
        try:
            importlib.import_module(module)
        except ImportError:
            continue
        result[names[module]] = learner
    return result


def beside_levels(data: DataSet) -> dict[str, Learner]:
    """Return the three learners with and without the random feature."""
    if not data.has_levels:
        fits = builders(is_two(data), rounds=FEW_ROUNDS)
        return {f"{name}, alone": partial(native, fits[name]) for name in LEVEL_BUILDERS}
    return {
        f"{name}, {smoothing}": partial(native, fit)
        for smoothing in SMOOTHINGS
        for name, fit in builders(is_two(data), smoothing, FEW_ROUNDS).items()
        if name in LEVEL_BUILDERS
    }


def smoothed(data: DataSet) -> dict[str, Learner]:
    """Return the learners for each value of `categorical_smoothing`."""
    return {
        f"{name}, {smoothing}": partial(native, fit)
        for smoothing in SMOOTHINGS
        for name, fit in builders(is_two(data), smoothing).items()
        if name in SMOOTHED
    }


# Outcomes


def error(learner: Learner, data: DataSet, repeat: int) -> float:
    """Return the error in % of one division into folds."""
    rng = np.random.default_rng([SEED, repeat])
    fold = folds_of(data.y, rng)
    X, categories = data.X, data.categories
    if data.has_levels:
        levels = rng.integers(LEVELS, size=(len(X), 1))
        X, categories = np.hstack([X, levels]), (*categories, X.shape[1])
    wrong = np.empty(len(fold), dtype=bool)
    for k in range(FOLDS):
        test = fold == k
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of other libraries
            said = learner(X[~test], data.y[~test], X[test], categories, repeat)
        wrong[test] = said != data.y[test]
    return 100 * float(np.mean(wrong))


def run(
    sets: Iterable[DataSet],
    learners: Callable[[DataSet], dict[str, Learner]],
    repeats: int,
    known: Results,
    store: Callable[[], None],
) -> None:
    """Compute the missing outcomes; `store` is called after each learner on a data set."""
    for data in sets:
        of = known.setdefault(data.key(), {})
        start, is_new = time.perf_counter(), False
        for name, learner in learners(data).items():
            errors = of.setdefault(name, [])
            if len(errors) >= repeats:
                continue
            errors += [error(learner, data, k) for k in range(len(errors), repeats)]
            is_new = True
            store()
        if is_new:
            print(f"{data.key()}: {time.perf_counter() - start:.0f} s", file=sys.stderr)


# Tables


def mean_of(results: Results, data: DataSet, name: str) -> float:
    """Return the mean error of a learner on a data set."""
    return float(np.mean(results[data.key()][name]))


def difference(of: Iterable[float]) -> str:
    """Return the mean difference with its standard error."""
    values = np.array(list(of))
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():+.2f} ± {error:.2f}"


def by_set(kind: str, sets: list[DataSet], results: Results) -> str:
    """Return the table of the errors on each data set of a kind."""
    rivals = list(peers())
    rows = [["set", "rows", *BUILDERS, *rivals]]
    for data in sets:
        mean = partial(mean_of, results, data)
        pairs = [[mean(f"{name}, {how}") for how in (NATIVE, ENCODED)] for name in BUILDERS]
        cells = [" / ".join(f"{value:.1f}" for value in pair) for pair in pairs]
        cells += [f"{mean(name):.1f}" for name in rivals]
        rows.append([data.name, str(len(data.y)), *cells])
    return table(f"Error in %, {kind}: {NATIVE} / {ENCODED}", rows)


def differences(sets: list[DataSet], results: Results) -> str:
    """Return the table of paired differences over data sets of each kind, and over all."""
    kinds = {kind: [data for data in sets if data.kind == kind] for kind in SETS}
    groups = {**{kind: of for kind, of in kinds.items() if of}, "all": sets}
    heads = [f"{name} ({len(of)} sets)" for name, of in groups.items()]
    rows = [["builder", *heads, *(f"- {rival}" for rival in peers())]]
    for name in BUILDERS:
        ours = f"{name}, {NATIVE}"
        compared = [(of, f"{name}, {ENCODED}") for of in groups.values()]
        compared += [(sets, rival) for rival in peers()]
        cells = [
            difference(mean_of(results, d, ours) - mean_of(results, d, other) for d in of)
            for of, other in compared
        ]
        rows.append([name, *cells])
    title = f"Errors of tables as they are minus errors with {ENCODED}; and minus errors of others"
    return table(title, rows)


def of_levels(sets: list[DataSet], results: Results) -> str:
    """Return the table of error increases by the random feature, by `categorical_smoothing`."""
    rows = [["builder", "set", "error alone", *map(str, SMOOTHINGS)]]
    for name in LEVEL_BUILDERS:
        more = []
        for data in sets:
            alone = np.array(results[data.key()][f"{name}, alone"])
            of = results[replace(data, has_levels=True).key()]
            more.append([np.array(of[f"{name}, {smoothing}"]) - alone for smoothing in SMOOTHINGS])
            cells = [difference(costs) for costs in more[-1]]
            rows.append([name, data.name, f"{alone.mean():.1f}", *cells])
        rows.append([name, "mean", "", *map(difference, np.mean(more, axis=0))])
    title = (
        f"Error in % added by a feature with {LEVELS} random categories, by categorical_smoothing"
    )
    return table(title, rows)


def of_smoothing(sets: list[DataSet], results: Results) -> str:
    """Return the table of errors and differences by `categorical_smoothing`."""
    base = SMOOTHINGS[0]
    rows = [["builder", f"error at {base}", *(f"{item} - {base}" for item in SMOOTHINGS[1:])]]
    for name in SMOOTHED:
        means = [[mean_of(results, d, f"{name}, {item}") for d in sets] for item in SMOOTHINGS]
        cells = [difference(np.subtract(of, means[0])) for of in means[1:]]
        rows.append([name, f"{np.mean(means[0]):.2f}", *cells])
    title = f"categorical_smoothing: error in %, {len(sets)} sets with categories, and differences"
    return table(title, rows)


def main(argv: list[str] | None = None) -> None:
    """Cross-validate, print the tables and optionally write them."""
    quick = f"the first set of each kind, {QUICK_ROWS} rows, once"
    parser, options, folder = arguments(
        __doc__,
        quick,
        argv,
        results="file of the outcomes of earlier runs, and of this one",
        draws=(DRAWS, "how often columns of random levels are drawn"),
    )
    sets = data_sets(folder, SETS, options.quick)
    if not sets:
        parser.error(f"no data: {folder} has no file of a data set")
    of_words = [data for data in sets if data.categories]
    alone = data_sets(folder, {COMPLETE: WITH_LEVELS}, options.quick)
    beside = [replace(data, has_levels=True) for data in alone]
    results = stored(options.results)
    for some, learners, repeats in (
        (of_words, smoothed, CHOICE_REPEATS),
        ([*alone, *beside], beside_levels, options.draws),
        (sets, handlings, REPEATS),
    ):
        times = QUICK_REPEATS if options.quick else repeats
        run(some, learners, times, results, partial(write, options.results, results))
    parts = [by_set(kind, [d for d in sets if d.kind == kind], results) for kind in SETS]
    parts += [differences(sets, results), ".. levels start here\n", of_levels(alone, results)]
    publish("\n".join([*parts, of_smoothing(of_words, results)]), options.rst)


if __name__ == "__main__":
    main()
