"""Oblique trees compared with a published table, by 10-fold cross-validation on the same domains.

The source is C. Henry, R. Nock and F. Nielsen, "Real boosting a la carte with an application to
boosting oblique decision trees", IJCAI 2007, Table 1. Run as ``python oblique_trees.py --data
folder``, or set the environment variable PBOOST_DATA to the folder. It contains files
``name.csv.gz``, whose first line has the column names. The last column is ``target``, ``__cat`` in
a name marks a categorical feature, and an empty field is a missing value. Domains without missing
values are one-hot encoded; the others are used unchanged. Domains without a file are listed. Prints
reStructuredText tables; ``--rst file`` also writes them to a file.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from table_command import arguments, each_timed, publish

import pboost as pb

STUMPS = (50, 200)
FOLDS, QUICK_FOLDS = 10, 3
SEEDS, QUICK_SEEDS = 5, 1
QUICK_DOMAINS = 3
#: Number of cells above which only one cross-validation is run.
LARGE = 100_000
RIVALS = ("OC1", "AdaBoost+C4.5")
#: Table 1: the file of each domain, and the errors in % of BoostODT with 50 and 200 stumps, of OC1
#: and of AdaBoost with C4.5.
TABLE_1 = {
    "Adult-strech": ("adult_stretch", 0.00, 0.00, 0.15, 0.00),
    "Breast-cancer": ("breast_cancer", 28.67, 27.27, 37.76, 33.92),
    "Breast-cancer-w.": ("breast_cancer_w", 3.72, 3.86, 6.01, 4.43),
    "Bupa": ("bupa", 28.12, 28.12, 37.97, 31.59),
    "Colic": ("colic", 17.66, 18.21, 23.91, 18.21),
    "Colic.ORIG": ("colic_orig", 13.86, 15.76, 16.03, 32.07),
    "Credit-a": ("credit_a", 14.64, 14.93, 20.43, 15.51),
    "Credit-g": ("credit_g", 26.50, 25.40, 31.10, 28.40),
    "Diabetes": ("pima", 25.91, 23.44, 34.64, 29.82),
    "Hepatitis": ("hepatitis", 20.65, 18.71, 20.65, 18.71),
    "Ionosphere": ("ionosphere", 7.41, 6.27, 9.12, 7.41),
    "Kr-vs-kp": ("kr_vs_kp", 3.38, 3.35, 3.69, 0.69),
    "Labor": ("labor", 10.53, 10.53, 15.79, 12.28),
    "LEDeven": ("led_even", 15.25, 14.75, 9.75, 10.50),
    "LEDeven+17": ("led_even_17", 22.75, 21.50, 38.25, 30.75),
    "Monks1": ("monks1_uci", 25.36, 25.36, 0.00, 2.16),
    "Monks2": ("monks2_uci", 1.00, 0.67, 0.33, 26.96),
    "Monks3": ("monks3_uci", 1.44, 2.17, 2.71, 2.53),
    "Mushroom": ("mushroom", 0.00, 0.00, 0.05, 0.00),
    "Parity": ("parity", 47.66, 47.27, 46.88, 44.14),
    "Sick": ("sick", 2.15, 1.91, 2.41, 1.09),
    "Sonar": ("sonar", 13.94, 12.50, 33.17, 18.27),
    "Vote": ("vote", 3.91, 3.45, 4.37, 5.29),
    "XD6": ("xd6_noise05", 20.57, 18.77, 5.33, 5.40),
    "Yellow-small": ("yellow_small", 0.00, 0.00, 0.00, 0.00),
}


@dataclass(frozen=True)
class Domain:
    """A domain whose data file exists.

    Attributes
    ----------
    name : str
        Name in Table 1.
    X : ndarray, shape (n, d)
        Features. Categories are one-hot encoded. If there are missing values, categories are
        category numbers instead, and NaN is a missing value.
    y : ndarray of bool, shape (n,)
        Whether a row is in the second class.
    categories : tuple of int
        Columns of category numbers.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.bool_]
    categories: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Cross-validation of one learner on one domain: error in %, and seconds of one fit."""

    error: float
    seconds: float


#: Outcomes by learner.
Outcomes = dict[str, Outcome]


# Data


def read(path: Path, drop: bool = False) -> tuple[NDArray[np.float64], NDArray[Any]] | str:
    """Return X and the classes of a file, or the reason why it cannot be used.

    Categories are one-hot encoded. With `drop`, incomplete rows are left out.
    """
    if not path.exists():
        return "no data"
    X, categories, target = as_it_is(path)
    is_integer = ~np.isnan(X).any(axis=1)
    if not (drop or is_integer.all()):
        return "missing values"
    X, _ = pb.data.one_hot(X[is_integer], list(categories))
    return X, target[is_integer]


def native(path: Path) -> tuple[NDArray[np.float64], NDArray[Any], tuple[int, ...]]:
    """Return X, classes and categorical columns; without missing values, as from `read`."""
    X, categories, target = as_it_is(path)
    if np.isnan(X).any():
        return X, target, categories
    return pb.data.one_hot(X, list(categories))[0], target, ()


def as_it_is(
    path: Path, most_rows: int | None = None
) -> tuple[NDArray[np.float64], tuple[int, ...], NDArray[Any]]:
    """Return X, its categorical columns and the classes of a file.

    NaN is a missing value, and categories are numbers. At most `most_rows` rows are drawn.
    """
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        names, *lines = file.read().splitlines()
    if most_rows is not None and len(lines) > most_rows:
        rows = np.random.default_rng(0).choice(len(lines), most_rows, replace=False)
        lines = [lines[row] for row in np.sort(rows)]
    heads, *cells = csv.reader([names, *lines])
    *columns, target = (np.array(column, dtype=object) for column in zip(*cells, strict=True))
    X = np.full((len(cells), len(columns)), np.nan)
    categories = tuple(j for j, head in enumerate(heads[:-1]) if "__cat" in head)
    for j, column in enumerate(columns):
        known = column != ""
        is_category = j in categories
        values = np.unique(column[known], return_inverse=True)[1] if is_category else column[known]
        X[known, j] = values.astype(np.float64)
    return X, categories, target.astype(str)


def one_hot_and_means(
    X: NDArray[np.float64], new: NDArray[np.float64], categories: Iterable[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return training rows and new rows, one-hot encoded and mean-imputed.

    The means are from the training rows, also for the encoded columns. Categories that do not occur
    in the training rows have no column.
    """
    parts: list[list[NDArray[np.float64]]] = [[], []]
    for j in range(X.shape[1]):
        known = X[~np.isnan(X[:, j]), j]
        for part, rows in zip(parts, (X, new), strict=True):
            column = rows[:, j : j + 1]
            if j in categories:
                column = np.where(np.isnan(column), np.nan, column == np.unique(known))
            part.append(column)
    values, others = (np.hstack(part) for part in parts)
    known = ~np.isnan(values)
    mean = np.where(known, values, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return tuple(np.where(np.isnan(rows), mean, rows) for rows in (values, others))


def domains(folder: Path, quick: bool) -> tuple[list[Domain], dict[str, str]]:
    """Return the domains whose data files exist, and the reasons why others are left out."""
    result, left_out = [], {}
    for name, (file, *_) in TABLE_1.items():
        path = folder / f"{file}.csv.gz"
        if not path.exists():
            left_out[name] = "no data"
            continue
        X, target, categories = native(path)
        result.append(Domain(name, X, target == max(target), categories))
    return (result[:QUICK_DOMAINS] if quick else result), left_out


# Learners


def own(stumps: int) -> str:
    """Return the name of a tree of pboost."""
    return f"{stumps} stumps"


def cross_validated(stumps: int, domain: Domain, quick: bool) -> Outcome:
    """Return the outcome of an oblique tree, averaged over several seeds of the folds."""
    is_large = domain.X.size > LARGE
    n_seeds = QUICK_SEEDS if quick or is_large else SEEDS
    fit = partial(
        pb.fit_oblique_tree,
        n_stumps=stumps,
        categorical_features=list(domain.categories),
        n_threads=1,
    )
    runs = [
        pb.cross_validate(fit, domain.X, domain.y, cv=folds_of(domain, quick), rng=seed)
        for seed in range(n_seeds)
    ]
    wrong = np.mean([np.average(run.error, weights=np.bincount(run.test_fold)) for run in runs])
    seconds = np.median([run.fit_seconds for run in runs])
    return Outcome(100 * float(wrong), float(seconds))


def folds_of(domain: Domain, quick: bool) -> int:
    """Return the number of folds, such that each has rows of both classes."""
    rarer = int(min(domain.y.sum(), (~domain.y).sum()))
    return min(QUICK_FOLDS if quick else FOLDS, rarer)


def peer(fit: Callable[..., Any], domain: Domain, quick: bool) -> Outcome:
    """Return the outcome of another library, with the first of the seeds."""
    stump = partial(pb.fit_adaboost, n_estimators=1)
    folds = folds_of(domain, quick)
    fold = pb.cross_validate(stump, domain.X, domain.y, cv=folds, rng=0).test_fold
    wrong, seconds = 0, []
    for k in range(folds):
        train, test = fold != k, fold == k
        start = time.perf_counter()
        predict = fit(domain.X[train], domain.y[train], domain.categories)
        seconds.append(time.perf_counter() - start)
        wrong += int((predict(domain.X[test]) != domain.y[test]).sum())
    return Outcome(100 * wrong / len(fold), float(np.median(seconds)))


def fit_obliquetree(
    X: NDArray[Any], y: NDArray[np.bool_], categories: tuple[int, ...]
) -> Callable[[NDArray[Any]], Any]:
    """Predict with obliquetree and its defaults; its oblique splits reject missing values."""
    from obliquetree import Classifier

    def columns(rows: NDArray[Any]) -> NDArray[np.float64]:
        return one_hot_and_means(X, rows, categories)[1]

    model = Classifier(use_oblique=True, random_state=0)
    model.fit(columns(X), y.astype(np.float64))
    return lambda rows: np.asarray(model.predict(columns(rows))).reshape(len(rows)) > 0.5


def fit_ydf(
    X: NDArray[Any], y: NDArray[np.bool_], categories: tuple[int, ...]
) -> Callable[[NDArray[Any]], Any]:
    """Predict with a sparse oblique tree of ydf, without pruning."""
    import ydf

    def columns(rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
        result = {"X": np.delete(rows, categories, axis=1)}
        for j in categories:
            levels = rows[:, j]
            result[f"x{j}"] = np.where(
                np.isnan(levels), "", np.char.add("level ", levels.astype(str))
            )
        return {name: column for name, column in result.items() if column.size}

    ydf.verbose(0)
    learner = ydf.CartLearner(
        label="y", split_axis="SPARSE_OBLIQUE", validation_ratio=0.0, num_threads=1, random_seed=0
    )
    model = learner.train({**columns(X), "y": y.astype(np.int64)})
    return lambda rows: model.predict(columns(rows)) > 0.5


def peers() -> dict[str, Callable[..., Any]]:
    """Return the other libraries that are installed."""
    known = {"obliquetree": fit_obliquetree, "ydf": fit_ydf}
    return {name: fit for name, fit in known.items() if importlib.util.find_spec(name)}


def outcomes_on(domain: Domain, quick: bool) -> Outcomes:
    """Return the outcomes of all learners on a domain."""
    result = {own(k): cross_validated(k, domain, quick) for k in STUMPS}
    return result | {name: peer(fit, domain, quick) for name, fit in peers().items()}


# Tables


def standard_error(percent: float, n: int) -> float:
    """Return the standard error in % of an error in % that was measured on n rows."""
    return math.sqrt(percent * (100 - percent) / n)


def verdict(ours: float, printed: float, n: int) -> str:
    """Return the comparison of our error with a published error, both measured on n rows."""
    apart = math.hypot(standard_error(ours, n), standard_error(printed, n))
    if ours <= printed:
        return "better" if ours < printed - 2 * apart else "yes"
    return "yes" if ours <= printed + 2 * apart else "no"


def table(title: str, rows: list[list[str]]) -> str:
    """Return a readable reStructuredText table; the first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    border = "  ".join("=" * width for width in widths)
    padded = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in rows]
    lines = [border, padded[0], border, *padded[1:], border]
    return "\n".join([f".. table:: {title}", "", *(f"   {line.rstrip()}" for line in lines), ""])


def comparison(found: list[Domain], results: list[Outcomes], k: int) -> str:
    """Return the table of our errors and the published ones, for the k-th number of stumps."""
    head = ["domain", "rows", "ours", "paper", "within 2 s.e.", *RIVALS]
    rows = [head]
    for domain, of in zip(found, results, strict=True):
        ours, n = of[own(STUMPS[k])].error, len(domain.y)
        _, *printed = TABLE_1[domain.name]
        cells = [f"{ours:.2f} ± {standard_error(ours, n):.2f}", f"{printed[k]:.2f}"]
        cells += [verdict(ours, printed[k], n), *(f"{p:.2f}" for p in printed[2:])]
        rows.append([domain.name, str(n), *cells])
    return table(f"Error in % with {STUMPS[k]} stumps", rows)


def wins(found: list[Domain], results: list[Outcomes]) -> str:
    """Return the table of wins with sign tests, without ties."""
    rows = [["", *(f"{who}, {own(k)}" for who in ("ours", "paper") for k in STUMPS)]]
    for r, rival in enumerate(RIVALS):
        cells = []
        for who in ("ours", "paper"):
            for k in range(len(STUMPS)):
                less = []
                for domain, of in zip(found, results, strict=True):
                    _, *printed = TABLE_1[domain.name]
                    error = of[own(STUMPS[k])].error if who == "ours" else printed[k]
                    less.append(round(printed[2 + r] - error, 9))
                won, lost = sum(x > 0 for x in less), sum(x < 0 for x in less)
                p = binomtest(won, won + lost, alternative="greater").pvalue if won + lost else 1.0
                cells.append(f"{won} : {lost} (p = {p:.3f})")
        rows.append([f"against {rival}", *cells])
    return table("Domains won : lost on the domains above, and the p-value of a sign test", rows)


def geometric_mean(values: list[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def times(found: list[Domain], results: list[Outcomes]) -> str:
    """Return the table of fit times and errors of all learners in this run."""
    rows = [["learner", "ms per fit, geometric mean", "mean error in %", "best on"]]
    errors = {name: np.array([of[name].error for of in results]) for name in results[0]}
    minimum = np.min(list(errors.values()), axis=0)
    for name, error in errors.items():
        mean = geometric_mean([of[name].seconds for of in results])
        best = int((error <= minimum + 1e-9).sum())
        rows.append([name, f"{1000 * mean:.1f}", f"{error.mean():.2f}", f"{best} domains"])
    return table(f"Learners on the {len(found)} domains, one thread", rows)


def tables(found: list[Domain], left_out: dict[str, str], results: list[Outcomes]) -> str:
    """Return all tables."""
    parts = [comparison(found, results, k) for k in range(len(STUMPS))]
    for k, stumps in enumerate(STUMPS):
        near = [
            verdict(of[own(stumps)].error, TABLE_1[domain.name][1 + k], len(domain.y)) != "no"
            for domain, of in zip(found, results, strict=True)
        ]
        parts.append(
            f"With {stumps} stumps, the errors on {sum(near)} of {len(near)} domains "
            f"({100 * sum(near) / len(near):.0f} %) are within two standard errors of the "
            "paper, or better.\n"
        )
    parts += [wins(found, results), times(found, results)]
    if left_out:
        stop_reasons = ", ".join(f"{name} ({why})" for name, why in left_out.items())
        parts.append(f"These data sets are left out: {stop_reasons}.\n")
    return "\n".join(parts)


def main(argv: list[str] | None = None) -> None:
    """Cross-validate, print the tables and optionally write them."""
    quick = f"the first {QUICK_DOMAINS} domains, {QUICK_FOLDS} folds, once"
    parser, options, folder = arguments(__doc__, quick, argv)
    result, left_out = domains(folder, options.quick)
    if not result:
        parser.error(f"no data: {folder} has no file of a domain of Table 1")
    results = each_timed(result, lambda domain: outcomes_on(domain, options.quick))
    text = tables(result, left_out, results)
    publish(text, options.rst)


if __name__ == "__main__":
    main()
