"""Probabilities of chains with and without their temperature: log losses and calibration errors.

Run as ``python chain_probabilities.py --data folder``, or set the environment variable PBOOST_DATA
to the folder; data sets and folds are as in the module ``default_boosters``. ``--second folder``
adds a second group of sets. Each set is divided into five stratified folds, of which the first two
are test sets. Models have their default parameters. The expected calibration error is the mean
absolute difference between the probability of the predicted class and its frequency, in 15 bins of
the probability. Prints reStructuredText tables; ``--rst file`` also writes them to a file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from default_boosters import QUICK_ROWS, QUICK_SETS, DataSet, data_sets, folds_of
from oblique_trees import table
from table_command import arguments, publish

import pboost as pb

TASKS = ("binary", "multiclass")
MOST_ROWS, FOLDS, BINS = 2500, 2, 15
#: Probabilities below this are raised to it, as in cross_validate.
LEAST = 2.0**-52
Array = Any


def samme(X: Array, y: Array, categorical_features: Any, n_threads: int) -> Any:
    """Fit SAMME with its default base learner."""
    base = partial(pb.fit_cart, max_depth=3, categorical_features=categorical_features)
    return pb.fit_samme(X, y, base_learner=base)


LEARNERS: dict[str, Callable[..., Any]] = {
    "fit_adaboost": pb.fit_adaboost,
    'fit_matryoshka, join="all"': partial(pb.fit_matryoshka, join="all"),
    "fit_samme": samme,
}


def losses(probabilities: Array, truth: Array) -> list[float]:
    """Return the log loss and the expected calibration error."""
    of_truth = probabilities[np.arange(len(truth)), truth]
    largest = probabilities.max(axis=1)
    bin_of = np.minimum((largest * BINS).astype(int), BINS - 1)
    # By bin, the number of right predictions minus the sum of the probabilities.
    excess = np.bincount(bin_of, (probabilities.argmax(axis=1) == truth) - largest)
    return [
        float(-np.log(np.maximum(of_truth, LEAST)).mean()),
        float(np.abs(excess).sum() / len(truth)),
    ]


def outcome(data: DataSet, fit: Callable[..., Any]) -> Array:
    """Return the losses (2, 2) without and with the temperature, means over the folds."""
    fold, result = folds_of(data), []
    for k in range(FOLDS):
        is_test = fold == k
        model = fit(
            data.X[~is_test],
            data.y[~is_test],
            categorical_features=data.categories or None,
            n_threads=1,
        )
        models = replace(model, temperature=1.0), model
        X, y = data.X[is_test], data.y[is_test]
        result.append([losses(pb.predict_proba(each, X), y) for each in models])
    return np.mean(result, axis=0)


def group_table(title: str, sets: list[DataSet]) -> str:
    """Return the table of a group of data sets."""
    rows = [["learner", "classes", "sets", "log loss", "with T", "lower on", "ECE", "with T"]]
    for name, fit in LEARNERS.items():
        for task in TASKS:
            all_losses = [outcome(data, fit) for data in sets if data.task == task]
            if not all_losses:
                continue
            of = np.array(all_losses)
            (loss, ece), (loss_with, ece_with) = of.mean(axis=0)
            lower = f"{np.count_nonzero(of[:, 1, 0] < of[:, 0, 0])} of {len(of)}"
            numbers = [f"{x:.3f}" for x in (loss, loss_with, ece, ece_with)]
            kind = "2" if task == "binary" else "more"
            rows.append([name, kind, str(len(of)), *numbers[:2], lower, *numbers[2:]])
        print(f"{title}: {name}", file=sys.stderr)
    return table(title, rows)


def main(argv: list[str] | None = None) -> None:
    """Print the tables, and optionally write them."""
    _, options, folder = arguments(
        __doc__,
        f"{QUICK_SETS} sets of each task, {QUICK_ROWS} rows",
        argv,
        second="folder of the second group of data sets",
    )
    groups: dict[str, Path] = {"First group": folder}
    if options.second is not None:
        groups["Second group"] = options.second
    parts = []
    for title, path in groups.items():
        sets = [
            data
            for data in data_sets(path, QUICK_ROWS if options.quick else MOST_ROWS)
            if data.task in TASKS
        ]
        if options.quick:
            sets = [
                data
                for task in TASKS
                for data in [each for each in sets if each.task == task][:QUICK_SETS]
            ]
        parts.append(group_table(title, sets))
    publish("\n".join(parts), options.rst)


if __name__ == "__main__":
    main()
