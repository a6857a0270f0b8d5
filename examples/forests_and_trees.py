"""Forests and boosted trees against a published table, by 10-fold cross-validation on its data.

The source is T. Qin and W.-M. Huang, "On subbagging boosted probit model trees", Table 2: its
columns RandomForest and AdaBoost.M1. Run as ``python forests_and_trees.py --data folder``, or with
the folder in the environment variable PBOOST_DATA. The folder holds files ``name.csv.gz``: a line
of column names, the last of which is ``target``; ``__cat`` in a name marks a categorical column,
and an empty field is a missing value. Incomplete rows are left out; sets without a file are listed.
Prints tables, in the form of reStructuredText; ``--rst file`` writes them to a file, too.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oblique_trees import arguments, read, table

import pboost as pb

FOLDS, QUICK_FOLDS = 10, 3
MEMBERS, QUICK_MEMBERS = 100, 10
QUICK_SETS = 3
SEED = 0
#: The folds of the source.
PRINTED_FOLDS = 10
#: Limits of the boosted trees: those that R's rpart has by default.
BOOSTED_TREE = {"max_depth": 30, "min_split": 20, "min_leaf": 7}
FOREST, BOOSTED, PRUNED = "forest", "boosted trees", "pruned tree"
#: Table 2: by data set, the file, and the mean and the standard deviation over the folds of the
#: accuracy in % of RandomForest and of AdaBoost.M1 (100 trees).
TABLE_2 = {
    "Iris": ("iris", (94.67, 5.26), (94.00, 7.34)),
    "Glass": ("glass", (77.09, 9.57), (73.26, 9.60)),
    "Ionosphere": ("ionosphere", (93.68, 3.84), (93.68, 3.39)),
    "Diabetes": ("diabetes_early", (97.69, 1.52), (97.50, 2.04)),
    "Breast-Cancer": ("breast_cancer_wdbc", (96.34, 4.27), (96.16, 3.62)),
    "Balance-scale": ("balance_scale", (83.53, 4.08), (85.46, 3.86)),
    "Pima-indians": ("pima", (76.57, 6.12), (73.31, 6.03)),
    "Raisin": ("raisin", (86.44, 4.02), (86.89, 4.68)),
    "Tic-tac-toe": ("tic_tac_toe", (99.16, 1.08), (99.58, 0.73)),
    "Biodegradation": ("biodegradation", (87.20, 2.47), (86.54, 1.64)),
    "BHP": ("bhp", (100.00, 0.00), (100.00, 0.00)),
    "Banknote": ("banknote", (99.34, 0.94), (99.64, 0.52)),
    "Obesity": ("obesity", (95.03, 1.12), (97.44, 1.03)),
    "Waveform+noise": ("waveform_noise", (85.36, 2.08), (84.56, 2.02)),
    "Pendigits": ("pendigits", (99.21, 0.25), (98.57, 0.25)),
    "Letter": ("letter", (96.85, 0.24), (96.12, 0.36)),
}
#: The columns of Table 2, by the learner that is compared with them.
RIVALS = {FOREST: "RandomForest", BOOSTED: "AdaBoost.M1"}


@dataclass(frozen=True)
class DataSet:
    """A set of Table 2 whose data are there.

    Attributes
    ----------
    name : str
        As in Table 2.
    X : ndarray, shape (n, d)
        Columns of categories are replaced by one column of zeros and ones per value.
    y : ndarray of str, shape (n,)
        Labels.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """Cross-validation of one learner on one set.

    Attributes
    ----------
    mean, deviation : float
        Mean and standard deviation over the folds of the accuracy in %.
    folds : int
        Their number.
    seconds : float
        Median time of a fit.
    """

    mean: float
    deviation: float
    folds: int
    seconds: float = math.nan


#: By learner.
Outcomes = dict[str, Outcome]


def data_sets(folder: Path, quick: bool) -> tuple[list[DataSet], dict[str, str]]:
    """Return the sets whose data are there, and why others are left out."""
    found, left_out = [], {}
    for name, (file, *_) in TABLE_2.items():
        data = read(folder / f"{file}.csv.gz", drop=True)
        if isinstance(data, str):
            left_out[name] = data
        else:
            found.append(DataSet(name, *data))
    return (found[:QUICK_SETS] if quick else found), left_out


def learners(members: int) -> dict[str, Callable[..., Any]]:
    """Return what is compared, by its name in the tables."""
    tree = partial(pb.fit_cart, n_threads=1, **BOOSTED_TREE)
    return {
        FOREST: partial(pb.fit_forest, members=members, rng=SEED, n_threads=1),
        BOOSTED: partial(pb.fit_samme, base=tree, rounds=members),
        PRUNED: partial(pb.fit_pruned_cart, rng=SEED, n_threads=1),
    }


def outcomes_on(data: DataSet, quick: bool) -> Outcomes:
    """Return the outcomes of all learners on a set, on the same folds."""
    rarest = int(np.unique(data.y, return_counts=True)[1].min())
    folds = min(QUICK_FOLDS if quick else FOLDS, rarest)
    found = {}
    for name, fit in learners(QUICK_MEMBERS if quick else MEMBERS).items():
        run = pb.cross_validate(fit, data.X, data.y, folds=folds, rng=SEED)
        accuracy = 100 * (1 - run.error)
        found[name] = Outcome(
            float(accuracy.mean()),
            float(accuracy.std(ddof=1)),
            folds,
            float(np.median(run.fit_seconds)),
        )
    return found


def printed(name: str, learner: str) -> Outcome:
    """Return what Table 2 says of the counterpart of a learner."""
    return Outcome(*TABLE_2[name][1 + list(RIVALS).index(learner)], PRINTED_FOLDS)


def verdict(ours: Outcome, theirs: Outcome) -> str:
    """Return how our accuracy compares with a printed one."""
    more = round(ours.mean - theirs.mean, 9)
    variance = ours.deviation**2 / ours.folds + theirs.deviation**2 / theirs.folds
    if abs(more) > 2 * math.sqrt(variance):
        return "better" if more > 0 else "no"
    return "yes"


def comparison(found: list[DataSet], results: list[Outcomes], learner: str) -> str:
    """Return the table of our accuracies beside the printed ones, and the number that agree."""
    rows = [["data set", "rows", "folds", "ours", "paper", "difference", "within 2 s.e."]]
    verdicts = []
    for data, of in zip(found, results, strict=True):
        ours, theirs = of[learner], printed(data.name, learner)
        verdicts.append(verdict(ours, theirs))
        cells = [f"{one.mean:.2f} ± {one.deviation:.2f}" for one in (ours, theirs)]
        cells += [f"{ours.mean - theirs.mean:+.2f}", verdicts[-1]]
        rows.append([data.name, str(len(data.y)), str(ours.folds), *cells])
    n, near = len(verdicts), len(verdicts) - verdicts.count("no")
    count = (
        f"{near} of {n} sets ({100 * near / n:.0f} %) are within two standard errors of the "
        f"paper's {RIVALS[learner]}, or better; {verdicts.count('better')} better by more.\n"
    )
    title = f"Accuracy in %: {learner}, and {RIVALS[learner]} of the paper"
    return f"{table(title, rows)}\n{count}"


def learners_table(found: list[DataSet], results: list[Outcomes]) -> str:
    """Return the table of accuracies and times of all learners."""
    rows = [["data set", *results[0]]]
    for data, of in zip(found, results, strict=True):
        cells = [f"{one.mean:.2f} ({1000 * one.seconds:.0f})" for one in of.values()]
        rows.append([data.name, *cells])
    means = [np.mean([of[name].mean for of in results]) for name in results[0]]
    rows.append(["mean", *(f"{mean:.2f}" for mean in means)])
    return table("Accuracy in % (ms per fit), one thread", rows)


def tables(found: list[DataSet], left_out: dict[str, str], results: list[Outcomes]) -> str:
    """Return all tables."""
    parts = [comparison(found, results, learner) for learner in RIVALS]
    parts.append(learners_table(found, results))
    if left_out:
        reasons = ", ".join(f"{name} ({why})" for name, why in left_out.items())
        parts.append(f"Left out: {reasons}.\n")
    return "\n".join(parts)


def main(argv: list[str] | None = None) -> None:
    """Cross-validate, print the tables and write them if wanted."""
    quick = f"the first {QUICK_SETS} sets, {QUICK_FOLDS} folds, {QUICK_MEMBERS} trees"
    parser, options, folder = arguments(__doc__, quick, argv)
    found, left_out = data_sets(folder, options.quick)
    if not found:
        parser.error(f"no data: {folder} has no file of a data set of Table 2")
    results = []
    for data in found:
        start = time.perf_counter()
        results.append(outcomes_on(data, options.quick))
        print(f"{data.name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    text = tables(found, left_out, results)
    print(text)
    if options.rst:
        options.rst.write_text(f":orphan:\n\n.. tables start here\n\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main()
