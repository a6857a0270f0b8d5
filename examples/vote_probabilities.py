"""What probabilities votes for many classes stand for: log losses and Brier scores on real data.

Run as ``python vote_probabilities.py --data folder``, or with the folder in the environment
variable PBOOST_DATA; sets and their divisions are those of the module ``many_classes``. Chains of
trees are cut at some numbers of comparisons per row, and one tree is whole. The decision values F
become probabilities in some ways. Factors and logistic functions of F that are fitted are fitted to
a fifth of the training rows, with the values of a model of the same size that has not seen them.
Prints tables, in the form of reStructuredText; ``--rst file`` writes them to a file, too. With
``--results file`` outcomes are stored after each set, and not worked out again by the next run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from many_classes import MOST_ROWS, QUICK_ROWS, QUICK_SETS, SETS, divided, losses, read
from many_classes_families import Split
from numpy.typing import NDArray
from oblique_trees import table
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, softmax
from table_command import Results, arguments, publish, stored, write

import pboost as pb

BUDGETS = (20, 50, 200)  # mean comparisons per training row
FIFTH = 5
Floats = NDArray[np.float64]
Fitted = Callable[[Floats], Floats]


# Ways


def by_sum(odds: Floats) -> Floats:
    """Return numbers (rows, labels) divided by their sums."""
    odds = np.maximum(odds, 1e-300)
    return odds / odds.sum(axis=1, keepdims=True)


def scaled(factor: float, score: Floats) -> Floats:
    """Return the softmax of decision values times a factor."""
    result: Floats = softmax(factor * score, axis=1)
    return result


def half_log_odds(score: Floats) -> Floats:
    """Return the probabilities of each label against the others, divided by their sum."""
    return by_sum(expit(2 * score))


def log_loss(said: Floats, truth: NDArray[np.int64]) -> float:
    """Return the mean log loss."""
    return float(-np.log(np.maximum(said[np.arange(len(truth)), truth], 1e-300)).mean())


def with_factor(score: Floats, truth: NDArray[np.int64]) -> Fitted:
    """Return the softmax with the factor of least log loss."""

    def loss(exponent: float) -> float:
        return log_loss(scaled(np.exp(exponent), score), truth)

    return partial(scaled, np.exp(minimize_scalar(loss, bounds=(-4, 2), method="bounded").x))


def label_by_label(score: Floats, truth: NDArray[np.int64]) -> Fitted:
    """Return logistic functions (Platt) of the decision value of each label, divided by the sum."""
    lines = []
    for label, values in enumerate(score.T):
        is_it = truth == label
        # Platt's targets, which are not quite 0 and 1.
        target = np.where(is_it, (is_it.sum() + 1) / (is_it.sum() + 2), 1 / ((~is_it).sum() + 2))

        def loss(line: Floats, values: Any = values, target: Any = target) -> float:
            z = line[0] * values + line[1]
            return float(np.mean(np.logaddexp(0, z) - target * z))

        lines.append(minimize(loss, [1.0, 0.0], method="BFGS").x)
    slope, shift = np.transpose(lines)
    return lambda score: by_sum(expit(slope * score + shift))


#: Ways that know the decision values only, and those that are fitted to rows held out.
KNOWN: dict[str, Fitted] = {
    "softmax of F": partial(scaled, 1.0),
    "softmax of F / 2": partial(scaled, 0.5),
    "softmax of 2 F": partial(scaled, 2.0),
    "1 / (1 + exp(-2 F)), divided by the sum": half_log_odds,
}
HELD_OUT: dict[str, Callable[[Floats, NDArray[np.int64]], Fitted]] = {
    "softmax, one factor fitted": with_factor,
    "a logistic function of each label fitted": label_by_label,
}


# Models


def chain(X: Floats, y: NDArray[np.int64], categories: tuple[int, ...]) -> dict[str, Any]:
    """Return chains of trees with mean comparisons within budgets."""
    model = pb.fit_matryoshka(
        X, y, shape=(15, 80), join="all", categorical_features=categories, n_threads=1
    )
    result = {}
    for budget in BUDGETS:
        low, high = 1, model.n_nodes + 1
        while high - low > 1:
            middle = (low + high) // 2
            fits = pb.prediction_cost(pb.models.truncate(model, middle), X).mean() <= budget
            low, high = (middle, high) if fits else (low, middle)
        result[f"chain, {budget} comparisons"] = pb.models.truncate(model, low)
    return result


def models(X: Floats, y: NDArray[np.int64], categories: tuple[int, ...]) -> dict[str, Any]:
    """Return all models of some rows."""
    tree = pb.fit_boosted_tree(X, y, max_nodes=63, categorical_features=categories, n_threads=1)
    return {**chain(X, y, categories), "one tree": tree}


def outcomes(split: Split) -> dict[str, list[float]]:
    """Return the log loss and the Brier score of each model and way."""
    order = np.random.default_rng(0).permutation(len(split.y))
    order = order[np.argsort(split.y[order], kind="stable")]
    held = np.zeros(len(split.y), dtype=np.bool_)
    held[order[::FIFTH]] = True
    held[np.unique(split.y, return_index=True)[1]] = False  # all labels are among the others
    X, y, categories = split.X, split.y, split.categories
    result = {}
    others = models(X[~held], y[~held], categories)
    for name, model in models(X, y, categories).items():
        score = pb.decision_function(model, split.X_test)
        before = pb.decision_function(others[name], X[held])
        ways = {**KNOWN, **{way: fit(before, y[held]) for way, fit in HELD_OUT.items()}}
        for way, probabilities in ways.items():
            result[f"{name}: {way}"] = losses(probabilities(score), split.y_test)[1:]
    return result


def tables(results: Results) -> str:
    """Return the tables of both losses."""
    first = next(iter(results.values()))
    names = list(dict.fromkeys(key.partition(": ")[0] for key in first))
    parts = []
    for k, loss in enumerate(("Log loss", "Brier score")):
        rows = [["", *names]]
        for way in (*KNOWN, *HELD_OUT):
            of = [[sets[f"{name}: {way}"][k] for sets in results.values()] for name in names]
            rows.append([way, *(f"{np.mean(each):.3f}" for each in of)])
        parts.append(table(f"{loss}, means of {len(results)} divisions", rows))
    return "\n".join(parts)


def main(argv: list[str] | None = None) -> None:
    """Fit all models, print the tables and write them if wanted."""
    quick = f"the first {QUICK_SETS} sets, {QUICK_ROWS} rows"
    parser, options, folder = arguments(
        __doc__,
        quick,
        argv,
        results="file of the outcomes of earlier runs, and of this one",
        splits=(1, "number of divisions"),
    )
    names = [name for name in SETS if (folder / f"{name}.csv.gz").exists()]
    names = names[:QUICK_SETS] if options.quick else names
    if not names:
        parser.error(f"no data: {folder} has no file of a data set")
    results = stored(options.results)
    for name in names:
        start = time.perf_counter()
        for number in range(options.splits):
            key = f"{name}, split {number}"
            if key not in results:
                rows = read(folder / f"{name}.csv.gz", QUICK_ROWS if options.quick else MOST_ROWS)
                results[key] = outcomes(divided(*rows, number))
                write(options.results, results)
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    publish(tables(results), options.rst)


if __name__ == "__main__":
    main()
