"""Subagged boosted probit trees compared with the published table, by 10-fold cross-validation.

The source is T. Qin and W.-M. Huang, "On subbagging boosted probit model trees", Table 2. Run as
``python sbpmt_table.py --data folder``, or set the environment variable PBOOST_DATA to the folder,
with files as described in the module ``published_table``. On the same folds it runs `fit_sbpmt`
with the options of the paper, with the options of the published code, and with the latter but one
tree for all classes; `fit_random_forest`; and XGBoost if installed. Prints reStructuredText tables;
``--rst file`` also writes them to a file. With ``--results file`` outcomes are stored and reused by
the next run.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oblique_trees import table
from published_table import METHODS, DataSet, Outcome, data_sets, folds_of, printed, verdict
from table_command import arguments, publish

import pboost as pb

FOLDS, QUICK_FOLDS = 10, 3
SEED = 0
PAPER, CODE, SHARED = "SBPMT", "SBPMT as coded", "shared trees"
FOREST, XGBOOST = "forest", "xgboost"
#: The options of section 6.2 of the paper.
PAPER_OPTIONS: dict[str, Any] = {
    "n_estimators": 21,
    "n_boosting_rounds": 5,
    "max_iter": 100,
    "max_samples": 0.7,
    "max_depth": 6,
    "min_samples_leaf": 20,
    "min_samples_split": 2,
    "complexity": 0.0,
    "tol": None,
    "safeguard": True,
    "learning_rate": 0.5,
    "voting": "hard",
    "one_vs_rest": "tree",
}
#: Options with --quick.
QUICK: dict[str, Any] = {"n_estimators": 3, "n_boosting_rounds": 2, "max_iter": 10}
MEMBERS, QUICK_MEMBERS = 100, 10
#: Data set with zeros in place of missing values, in all columns except the first.
WITH_ZEROS = "Pima-indians"

#: Predicts the classes of rows with a fitted model.
Predict = Callable[[NDArray[Any]], NDArray[Any]]
#: Fits a model to rows, classes and categorical columns.
Fit = Callable[[NDArray[Any], NDArray[Any], tuple[int, ...]], Predict]
#: Outcomes by learner.
Outcomes = dict[str, Outcome]


def prepared(data: DataSet) -> DataSet:
    """Return the data set with the zeros of Pima-indians imputed, as in the script of the paper.

    Zeros are replaced by the column mean, which includes zeros; `Pregnancies` may be 0.
    """
    if data.name != WITH_ZEROS:
        return data
    X = data.X.copy()
    X[:, 1:] = np.where(X[:, 1:] == 0, X[:, 1:].mean(axis=0), X[:, 1:])
    return replace(data, X=X)


def own(
    fit: Callable[..., Any], X: NDArray[Any], y: NDArray[Any], categories: tuple[int, ...]
) -> Predict:
    """Predict with a model of pboost."""
    return partial(pb.predict, fit(X, y, categorical_features=list(categories)))


def fit_xgboost(
    rounds: int, X: NDArray[Any], y: NDArray[Any], categories: tuple[int, ...]
) -> Predict:
    """Predict with XGBoost, with trees on 70 % of the rows, as in the paper."""
    import xgboost

    labels, codes = np.unique(y, return_inverse=True)
    kinds = ["c" if j in categories else "q" for j in range(X.shape[1])]
    native = {"enable_categorical": True, "feature_types": kinds} if categories else {}
    model = xgboost.XGBClassifier(
        n_estimators=rounds, subsample=0.7, random_state=SEED, n_jobs=1, verbosity=0, **native
    )
    model.fit(X, codes)
    return lambda rows: labels[model.predict(rows)]


def learners(quick: bool) -> dict[str, Fit]:
    """Return the learners by their names in the tables."""
    less = QUICK if quick else {}
    trees = QUICK_MEMBERS if quick else MEMBERS
    sbpmt = partial(pb.fit_sbpmt, rng=SEED, n_threads=1)
    as_coded = {**PAPER_OPTIONS, **pb.models.published_sbpmt_options()}
    result = {
        PAPER: partial(own, partial(sbpmt, **{**PAPER_OPTIONS, **less})),
        CODE: partial(own, partial(sbpmt, **{**as_coded, **less})),
        SHARED: partial(own, partial(sbpmt, **{**as_coded, "one_vs_rest": "leaf", **less})),
        FOREST: partial(
            own, partial(pb.fit_random_forest, n_estimators=trees, rng=SEED, n_threads=1)
        ),
    }
    if importlib.util.find_spec("xgboost"):
        result[XGBOOST] = partial(fit_xgboost, trees)
    return result


def cross_validated(fit: Fit, data: DataSet, fold: NDArray[Any]) -> Outcome:
    """Return the outcome of a learner on these folds."""
    accuracy, seconds = [], []
    for k in range(fold.max() + 1):
        test = fold == k
        start = time.perf_counter()
        predict = fit(data.X[~test], data.y[~test], data.categories)
        seconds.append(time.perf_counter() - start)
        accuracy.append(100 * float(np.mean(predict(data.X[test]) == data.y[test])))
    mean, deviation = float(np.mean(accuracy)), float(np.std(accuracy, ddof=1))
    return Outcome(mean, deviation, len(accuracy), float(np.median(seconds)))


def outcomes_on(data: DataSet, quick: bool, known: Outcomes, store: Callable[[], None]) -> Outcomes:
    """Return the outcomes of all learners on a data set; `store` is called after each new one."""
    folds = folds_of(data, QUICK_FOLDS if quick else FOLDS)
    first = partial(
        pb.fit_random_forest, n_estimators=1, rng=SEED, categorical_features=list(data.categories)
    )
    fold = pb.cross_validate(first, data.X, data.y, cv=folds, rng=SEED).test_fold
    for name, fit in learners(quick).items():
        if name not in known:
            known[name] = cross_validated(fit, data, fold)
            print(f"{data.name}, {name}: {known[name].seconds:.3g} s per fit", file=sys.stderr)
            store()
    return known


def comparison(found: list[DataSet], results: list[Outcomes], learner: str) -> str:
    """Return the table of our accuracies and the published ones, with a summary."""
    rows = [["data set", "ours", "paper", "difference", "within 2 s.e."]]
    verdicts = []
    for data, of in zip(found, results, strict=True):
        ours, theirs = of[learner], printed(data.name, METHODS[0])
        verdicts.append(verdict(ours, theirs))
        cells = [f"{item.mean:.2f} ± {item.deviation:.2f}" for item in (ours, theirs)]
        rows.append([data.name, *cells, f"{ours.mean - theirs.mean:+.2f}", verdicts[-1]])
    means = [
        np.mean([of[learner].mean for of in results]),
        np.mean([printed(data.name, METHODS[0]).mean for data in found]),
    ]
    rows.append(["mean", *(f"{mean:.2f}" for mean in means), f"{means[0] - means[1]:+.2f}", ""])
    n, near = len(verdicts), len(verdicts) - verdicts.count("no")
    count = (
        f"On {near} of {n} sets, the accuracy is within two standard errors of the paper's SBPMT "
        "or better. It is better by more than two standard errors on "
        f"{verdicts.count('better')} of these sets.\n"
    )
    return f"{table(f'Accuracy in %: {learner}, and SBPMT of the paper', rows)}\n{count}"


def side_by_side(found: list[DataSet], results: list[Outcomes]) -> str:
    """Return the table of the mean accuracies of all learners and all columns of the paper."""
    names = list(results[0])
    short = [method.replace("(100)", "").replace("GradientBoost", "gbm") for method in METHODS]
    rows = [["data set", "rows", "folds", *names, *(f"[QH] {method}" for method in short)]]
    every = []
    for data, of in zip(found, results, strict=True):
        line = [*(of[name].mean for name in names)]
        line += [printed(data.name, method).mean for method in METHODS]
        every.append(line)
        folds = str(of[names[0]].folds)
        rows.append([data.name, str(len(data.y)), folds, *(f"{mean:.2f}" for mean in line)])
    rows.append(["mean", "", "", *(f"{mean:.2f}" for mean in np.mean(every, axis=0))])
    return table("Mean accuracy in % of what was run here, and of the columns of the paper", rows)


def times(found: list[DataSet], results: list[Outcomes]) -> str:
    """Return the table of fit times."""
    rows = [["data set", *results[0]]]
    for data, of in zip(found, results, strict=True):
        rows.append([data.name, *(f"{1000 * of[name].seconds:.0f}" for name in results[0])])
    return table("Milliseconds per fit on the rows of all folds but one, median, one thread", rows)


def tables(found: list[DataSet], left_out: dict[str, str], results: list[Outcomes]) -> str:
    """Return all tables."""
    parts = [comparison(found, results, learner) for learner in (PAPER, CODE)]
    parts += [side_by_side(found, results), times(found, results)]
    if left_out:
        stop_reasons = ", ".join(f"{name} ({why})" for name, why in left_out.items())
        parts.append(f"These data sets are left out: {stop_reasons}.\n")
    return "\n".join(parts)


def stored(path: Path | None) -> dict[str, Outcomes]:
    """Return the outcomes of an earlier run, by data set."""
    if path is None or not path.exists():
        return {}
    text = json.loads(path.read_text(encoding="utf-8"))
    return {name: {who: Outcome(*item) for who, item in of.items()} for name, of in text.items()}


def write(path: Path | None, results: dict[str, Outcomes]) -> None:
    """Store outcomes for a later run."""
    if path is not None:
        text = {name: {who: astuple(o) for who, o in of.items()} for name, of in results.items()}
        path.write_text(json.dumps(text, indent=1), encoding="utf-8")


def main(argv: list[str] | None = None) -> None:
    """Cross-validate, print the tables and optionally write them."""
    quick = f"the first sets, {QUICK_FOLDS} folds, {QUICK['n_estimators']} members"
    parser, options, folder = arguments(
        __doc__, quick, argv, results="file of the outcomes of earlier runs, and of this one"
    )
    result, left_out = data_sets(folder, options.quick)
    if not result:
        parser.error(f"no data: {folder} has no file of a data set of Table 2")
    results = stored(options.results)
    for data in map(prepared, result):
        known = results.setdefault(data.name, {})
        outcomes_on(data, options.quick, known, partial(write, options.results, results))
    text = tables(result, left_out, [results[data.name] for data in result])
    publish(text, options.rst)


if __name__ == "__main__":
    main()
