"""Error against budget: what models say that may take so many comparisons of a row, on real data.

Run as ``python budgets.py --data folder --results file``, or with the folder in the environment
variable PBOOST_DATA; it holds files as the module ``published_table`` describes them. Each set has
at most 3,750 rows (many classes: 2,500), drawn once, which are divided into five folds, twice. For
each budget of mean comparisons `fit_within_budget` chooses a model on four of the folds, and so
does validation among settings of other libraries, whose categories and holes are used as they are
where they can be; "exit" says that rows may leave their sums early, too. ``--large`` adds two sets
of at most 50,000 rows to train with, and one fold of each.

Outcomes are appended to the file, one line each, and not worked out again by the next run, so that
a run can be stopped at any time; the first fold of all sets comes before the second. ``--peers``
fits other libraries only, ``--own`` this package only, ``--tables`` nothing. Prints tables, in the
form of reStructuredText, of the folds that are complete; ``--rst file`` writes them to a file, too.
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
#: Budgets whose models `fit_within_budget` chooses in one call: small ones need no long sums.
CALLS = (BUDGETS[:2], BUDGETS[2:])
#: Files by their kind. One label, after a stroke or else the most frequent, is told from others.
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
#: Large sets have so many rows to train with, and at most a fourth of that to test with.
LARGE, LARGE_ROWS, LARGE_NAME = ("covertype", "electricity"), 62_500, "{}, large"
QUICK_SETS, QUICK_ROWS = 2, 250
OURS, EXIT = "pboost", "{}, exit"


@dataclass(frozen=True)
class DataSet:
    """Rows, and the fold of each in each repetition."""

    name: str
    kind: str
    rows: Rows
    folds: tuple[NDArray[np.intp], ...]

    def divided(self, repetition: int, fold: int) -> tuple[Rows, Rows]:
        """Return rows to train with and rows to test with."""
        test = self.folds[repetition] == fold
        return tuple(
            replace(self.rows, X=self.rows.X[of], y=self.rows.y[of]) for of in (~test, test)
        )


#: What is known: the figures by set, repetition, fold, method and budget.
Key = tuple[str, int, int, str, int]
Known = dict[Key, dict[str, Any]]


# Data


def data_set(path: Path, kind: str, most: int, name: str | None = None) -> DataSet:
    """Read a set; its divisions have the seeds 1000, 1001, …"""
    X, categories, y = of_file(path, path.name.removesuffix(".csv.gz"), kind, most)
    folds = tuple(dealt(y, FOLDS, 1000 + repetition) for repetition in range(REPETITIONS))
    name = name or f"{path.name.removesuffix('.csv.gz')}, {kind}"
    return DataSet(name, kind, Rows(X, y, categories), folds)


def data_sets(folder: Path, options: argparse.Namespace) -> list[DataSet]:
    """Return the sets whose files are there."""
    result = []
    for kind, names in SETS.items():
        for name in names[: QUICK_SETS if options.quick else None]:
            path = folder / f"{name}.csv.gz"
            if path.exists():
                result.append(
                    data_set(path, kind, QUICK_ROWS if options.quick else MOST_ROWS[kind])
                )
    return result


def divisions(
    found: list[DataSet], folder: Path, options: argparse.Namespace
) -> Iterator[tuple[DataSet, int, int]]:
    """Yield sets, repetitions and folds: the first fold of all sets, large ones, the second, …"""
    for number in range(1 if options.quick else options.folds):
        yield from ((of, *divmod(number, FOLDS)) for of in found)
        if number == 0 and options.large:
            for name in LARGE:
                path = folder / f"{name}.csv.gz"
                if path.exists():
                    yield data_set(path, TWO, LARGE_ROWS, LARGE_NAME.format(name)), 0, 0


# Outcomes


def stored(path: Path | None) -> Known:
    """Return the outcomes of earlier runs; a line that was cut off is none."""
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
    """Add an outcome to those known, and to the file."""
    known[key] = figures
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, figures]) + "\n")


def figures_of(answers: Answers, truth: NDArray[np.int64]) -> dict[str, Any]:
    """Return error in %, log loss, area under the ROC curve (of two classes) and comparisons."""
    share, cost = answers
    error, log_loss, _ = losses(share, truth)
    result = {"error": error, "log loss": log_loss, "comparisons": float(np.mean(cost))}
    if share.shape[1] == 2:
        result["AUC"] = 100 * area(share[:, 1], truth)
    return result


def area(score: NDArray[Any], truth: NDArray[np.int64]) -> float:
    """Return the share of pairs of rows in order, one of either label; ties count half."""
    ones = int(truth.sum())
    above = rankdata(score)[truth == 1].sum() - ones * (ones + 1) / 2
    return float(above / (ones * (len(truth) - ones)))


def run_peers(
    train: Rows, test: Rows, kind: str, key: Key, path: Path | None, known: Known
) -> None:
    """Add what is not known yet of other libraries, at all budgets."""
    data, repetition, fold, *_ = key
    for name, settings in peers(kind).items():
        both = {False: name, True: EXIT.format(name)}
        keys = {
            (budget, with_exit): (data, repetition, fold, of, budget)
            for budget in BUDGETS
            for with_exit, of in both.items()
        }
        if all(of in known for of in keys.values()):
            continue
        start = time.process_time()
        seed = 2000 + FOLDS * repetition + fold
        result = within(settings, train, test.X, BUDGETS, seed)
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


def run_own(train: Rows, test: Rows, key: Key, path: Path | None, known: Known) -> None:
    """Add what is not known yet of models of `fit_within_budget`, at all budgets."""
    data, repetition, fold, *_ = key
    for budgets in CALLS:
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
    """Fit what is not known yet, print the tables and write them if wanted."""
    parser, options, folder = arguments(
        __doc__,
        f"{QUICK_SETS} sets of each kind, {QUICK_ROWS} rows, one fold",
        argv,
        results="file of the outcomes of earlier runs, and of this one",
        large=(False, "two large sets, too, one fold of each"),
        own=(False, "fit this package only"),
        peers=(False, "fit other libraries only"),
        tables=(False, "fit nothing"),
        folds=(FOLDS * REPETITIONS, "number of folds"),
    )
    result = data_sets(folder, options)
    if not result:
        parser.error(f"no data: {folder} has no file of a data set")
    known = stored(options.results)
    for data, repetition, fold in () if options.tables else divisions(result, folder, options):
        start = time.perf_counter()
        train, test = data.divided(repetition, fold)
        key = data.name, repetition, fold, "", 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of others are theirs to heed
            if not options.own:
                run_peers(train, test, data.kind, key, options.results, known)
        if not options.peers:
            run_own(train, test, key, options.results, known)
        seconds = time.perf_counter() - start
        print(f"{data.name}, {repetition}, {fold}: {seconds:.0f} s", file=sys.stderr)
    publish(tables(known, BUDGETS, OURS), options.rst)


if __name__ == "__main__":
    main()
