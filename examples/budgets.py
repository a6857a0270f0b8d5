"""Test error within budgets of comparisons per row, for pboost and other libraries on real data.

Run as ``python budgets.py --data folder --results file``, or set the environment variable
PBOOST_DATA to the folder, with files as described in the module ``published_table``. Each data set
has at most 3,750 rows (multiclass 2,500), drawn once and divided into five folds, twice. For each
budget of mean comparisons, `fit_within_budget` chooses a model on four folds. For other libraries,
validation chooses among candidates; they receive missing values and categories if supported. "exit"
marks ensembles with early exits. ``--large`` adds two data sets of at most 50,000 training rows,
with one fold each. ``--fresh`` uses only data sets that had no part in the development, with at
most 1,500 rows and budgets up to 50.

Outcomes are appended to the file, one per line, and reused by the next run, so a run can be
stopped at any time. The first fold of all data sets comes before the second. ``--peers`` fits only
other libraries, ``--own`` only pboost, ``--tables`` nothing. Prints reStructuredText tables of the
complete folds; ``--rst file`` also writes them to a file.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from boosted_sets import MANY, TWO, of_file
from budget_choice import Answers, dealt, within
from budget_peers import Rows, peers
from budget_tables import tables
from many_classes import losses
from numpy.typing import NDArray
from scipy.stats import rankdata
from table_command import arguments, publish

import pboost as pb

BUDGETS = (5, 10, 20, 50, 100, 200, 500)
#: Budgets of each call of `fit_within_budget`; small budgets do not need large ensembles.
CALLS = (BUDGETS[:2], BUDGETS[2:])
#: Files by kind. A slash is followed by the positive class, by default the most frequent class.
SETS = {
    TWO: (
        "ionosphere",
        "diabetes_early",
        "breast_cancer_wdbc",
        "pima",
        "raisin",
        "biodegradation",
        "banknote",
        "breast_cancer",
        "bupa",
        "colic_orig",
        "vote",
        "adult_census",
        "skin",
        "magic04",
        "spambase",
        "electricity",
        "higgs_sample",
        "tic_tac_toe",
        "monks1_uci",
        "monks2_uci",
        "monks3_uci",
        "led_even",
        "led_even_17",
        "xd6_noise10",
        "mushroom",
        "covertype",
        "waveform_noise",
        "satimage",
        "obesity",
        "fars",
    ),
    MANY: (
        "glass",
        "balance_scale",
        "obesity",
        "waveform_noise",
        "satimage",
        "pendigits",
        "letter",
        "nursery",
        "covertype",
        "fars",
    ),
}
MOST_ROWS, FOLDS, REPETITIONS = {TWO: 3750, MANY: 2500}, 5, 2
#: Large data sets have this many training rows, and at most a quarter of that for testing.
LARGE, LARGE_ROWS, LARGE_NAME = ("covertype", "electricity"), 62_500, "{}, large"
#: Data sets that had no part in the development.
FRESH = {
    TWO: (
        "saheart",
        "mammographic",
        "phoneme",
        "banana",
        "spectfheart",
        "musk1",
        "coil2000",
        "mlc_churn",
        "cells",
        "credit_es",
        "mdrr",
        "rotterdam",
        "orange_juice",
    )
}
FRESH_ROWS, FRESH_CALLS = {TWO: 1500}, ((5, 10, 20, 50),)
QUICK_SETS, QUICK_ROWS = 2, 250
OURS, EXIT = "pboost", "{}, exit"


@dataclass(frozen=True)
class DataSet:
    """A data set, with the fold of each row in each repetition."""

    name: str
    kind: str
    rows: Rows
    folds: tuple[NDArray[np.intp], ...]

    def divided(self, repetition: int, fold: int) -> tuple[Rows, Rows]:
        """Return training rows and test rows."""
        test = self.folds[repetition] == fold
        return tuple(
            replace(self.rows, X=self.rows.X[of], y=self.rows.y[of]) for of in (~test, test)
        )


#: The budgets of each call of `fit_within_budget`.
Calls = tuple[tuple[int, ...], ...]
#: Results: the figures by data set, repetition, fold, method and budget.
Key = tuple[str, int, int, str, int]
Known = dict[Key, dict[str, Any]]


# Data


def data_set(path: Path, kind: str, most: int, name: str | None = None) -> DataSet:
    """Read a data set; its divisions have the seeds 1000, 1001, ..."""
    X, categories, y = of_file(path, path.name.removesuffix(".csv.gz"), kind, most)
    folds = tuple(dealt(y, FOLDS, 1000 + repetition) for repetition in range(REPETITIONS))
    name = name or f"{path.name.removesuffix('.csv.gz')}, {kind}"
    return DataSet(name, kind, Rows(X, y, categories), folds)


def data_sets(folder: Path, options: argparse.Namespace) -> list[DataSet]:
    """Return the data sets whose files exist."""
    result = []
    sets, most_rows = (FRESH, FRESH_ROWS) if options.fresh else (SETS, MOST_ROWS)
    for kind, names in sets.items():
        for name in names[: QUICK_SETS if options.quick else None]:
            path = folder / f"{name}.csv.gz"
            if path.exists():
                result.append(
                    data_set(path, kind, QUICK_ROWS if options.quick else most_rows[kind])
                )
    return result


def divisions(
    found: list[DataSet], folder: Path, options: argparse.Namespace
) -> Iterator[tuple[DataSet, int, int]]:
    """Yield data sets, repetitions and folds: the first fold of all data sets, then the others."""
    for number in range(1 if options.quick else options.folds):
        yield from ((of, *divmod(number, FOLDS)) for of in found)
        if number == 0 and options.large:
            for name in LARGE:
                path = folder / f"{name}.csv.gz"
                if path.exists():
                    yield data_set(path, TWO, LARGE_ROWS, LARGE_NAME.format(name)), 0, 0


# Outcomes


def stored(path: Path | None) -> Known:
    """Return the outcomes of earlier runs, without incomplete lines."""
    known: Known = {}
    if path is not None and path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                key, figures = json.loads(line)
            except ValueError:
                continue
            known[tuple(key)] = figures
    return known


def append(path: Path | None, known: Known, key: Key, figures: dict[str, Any]) -> None:
    """Add an outcome to the results and to the file."""
    known[key] = figures
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, figures]) + "\n")


def figures_of(answers: Answers, truth: NDArray[np.int64]) -> dict[str, Any]:
    """Return error in %, log loss, area under the ROC curve (if binary) and comparisons."""
    share, cost = answers
    error, log_loss, _ = losses(share, truth)
    result = {"error": error, "log loss": log_loss, "comparisons": float(np.mean(cost))}
    if share.shape[1] == 2:
        result["AUC"] = 100 * area(share[:, 1], truth)
    return result


def area(score: NDArray[Any], truth: NDArray[np.int64]) -> float:
    """Return the area under the ROC curve."""
    ones = int(truth.sum())
    above = rankdata(score)[truth == 1].sum() - ones * (ones + 1) / 2
    return float(above / (ones * (len(truth) - ones)))


def run_peers(
    train: Rows, test: Rows, kind: str, calls: Calls, key: Key, path: Path | None, known: Known
) -> None:
    """Compute the missing results of other libraries, for all budgets."""
    data, repetition, fold, *_ = key
    every = sum(calls, ())
    for name, settings in peers(kind).items():
        both = {False: name, True: EXIT.format(name)}
        keys = {
            (budget, with_exit): (data, repetition, fold, of, budget)
            for budget in every
            for with_exit, of in both.items()
        }
        if all(of in known for of in keys.values()):
            continue
        start = time.process_time()
        seed = 2000 + FOLDS * repetition + fold
        result = within(settings, train, test.X, every, seed)
        seconds = time.process_time() - start
        for which, (answers, plan) in result.items():
            figures = {
                **figures_of(answers, test.y),
                "seconds": seconds,
                "setting": plan.setting,
                "rounds": None if plan.threshold is None else len(plan.threshold),
                "at": plan.budget,
            }
            append(path, known, keys[which], figures)


def run_own(
    train: Rows, test: Rows, calls: Calls, key: Key, path: Path | None, known: Known
) -> None:
    """Compute the missing results of `fit_within_budget`, for all budgets."""
    data, repetition, fold, *_ = key
    for budgets in calls:
        keys = [(data, repetition, fold, OURS, budget) for budget in budgets]
        if all(of in known for of in keys):
            continue
        start = time.process_time()
        models = pb.fit_within_budget(
            train.X,
            train.y,
            mean_comparisons=list(budgets),
            categorical_features=list(train.categories),
            rng=FOLDS * repetition + fold,
            n_threads=1,
        )
        seconds = time.process_time() - start
        for of, model in zip(keys, models, strict=True):
            share = pb.predict_proba(model, test.X)
            figures = figures_of((share, pb.prediction_cost(model, test.X)), test.y)
            full = getattr(model, "model", model)
            figures["whole"] = float(np.mean(pb.prediction_cost(full, test.X)))
            append(path, known, of, {**figures, "seconds": seconds})


def main(argv: list[str] | None = None) -> None:
    """Compute the missing results, print the tables and optionally write them."""
    parser, options, folder = arguments(
        __doc__,
        f"{QUICK_SETS} sets of each kind, {QUICK_ROWS} rows, one fold",
        argv,
        results="file of the outcomes of earlier runs, and of this one",
        large=(False, "two large sets, too, one fold of each"),
        fresh=(False, "sets that had no part in the development"),
        own=(False, "fit this package only"),
        peers=(False, "fit other libraries only"),
        tables=(False, "fit nothing"),
        folds=(FOLDS * REPETITIONS, "number of folds"),
    )
    result = data_sets(folder, options)
    if not result:
        parser.error(f"no data: {folder} has no file of a data set")
    known = stored(options.results)
    calls = FRESH_CALLS if options.fresh else CALLS
    for data, repetition, fold in () if options.tables else divisions(result, folder, options):
        start = time.perf_counter()
        train, test = data.divided(repetition, fold)
        key = data.name, repetition, fold, "", 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of other libraries
            if not options.own:
                run_peers(train, test, data.kind, calls, key, options.results, known)
        if not options.peers:
            run_own(train, test, calls, key, options.results, known)
        seconds = time.perf_counter() - start
        print(f"{data.name}, {repetition}, {fold}: {seconds:.0f} s", file=sys.stderr)
    publish(tables(known, sum(calls, ()), OURS), options.rst)


if __name__ == "__main__":
    main()
