"""Probabilistic labels and majority votes of annotators who err, as training targets.

Run as ``python soft_labels.py --data folder``, or set the environment variable PBOOST_DATA to the
folder. It contains files ``name.csv.gz``, whose first line has the column names, ending in
``target``. Prints a reStructuredText table; ``--rst file`` also writes it to a file.

Five annotators are simulated, each with a known probability of being right. Models are fitted to
the true classes, to majority votes, and to the class probabilities given the votes. All are tested
on the true classes. Models that learn these probabilities are underconfident, because votes are
uncertain even if the class is not. `unmixed` corrects this bias. `scaled` calibrates the correction
on held-out rows with votes but without true classes.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oblique_trees import read, table
from scipy.optimize import minimize_scalar
from table_command import arguments, publish

import pboost as pb

SETS = (
    "banknote",
    "pima",
    "magic04",
    "spambase",
    "ionosphere",
    "raisin",
    "breast_cancer_wdbc",
)
DRAWS, QUICK_DRAWS = 5, 1
ANNOTATORS, RIGHT = 5, (0.55, 0.8)
MOST_ROWS, TRAINED, FITTED = 3000, 0.6, 0.75
BOOSTING = {"n_estimators": 50, "learning_rate": 0.5}
#: Probabilities are clipped at this distance from 0 and 1 in logarithms.
LEAST = 1e-6
KINDS = ("labels", "majority", "soft", "soft, unmixed", "soft, scaled")


def votes_of(y: NDArray[Any], right: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Return the votes of annotators for classes 0 and 1, (n, annotators)."""
    is_right = rng.random((len(y), len(right))) < right
    return np.where(is_right, y[:, None], 1 - y[:, None])


def posterior(votes: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the probability of class 1 given the votes, for equal prior probabilities."""
    odds = np.where(votes == 1, 1, -1) @ np.log(right / (1 - right))
    return 1 / (1 + np.exp(-odds))


def certainty(right: NDArray[Any]) -> float:
    """Return the expected posterior probability of the true class."""
    votes = np.array([*itertools.product((0, 1), repeat=len(right))])
    chance = np.where(votes == 1, right, 1 - right).prod(axis=1)
    return float(chance @ posterior(votes, right))


def unmixed(share: NDArray[Any], certain: float) -> NDArray[Any]:
    """Return the probability of class 1, given the mean posterior `share`.

    If class 1 has probability p, the mean posterior is ``p c + (1 - p) (1 - c)``, where c is the
    expected posterior of the true class.
    """
    return np.clip((share - (1 - certain)) / (2 * certain - 1), 0.0, 1.0)


def scaled(score: NDArray[Any], soft: NDArray[Any], certain: float) -> float:
    """Return the factor of decision values that fits the soft labels of new rows best.

    Decision values times the factor are half log odds of class 1; mean posteriors are compared.
    """

    def loss(power: float) -> float:
        share = 1 / (1 + np.exp(-2 * 2.0**power * score))
        mean = np.clip(share * certain + (1 - share) * (1 - certain), LEAST, 1 - LEAST)
        return -float(np.mean(soft * np.log(mean) + (1 - soft) * np.log(1 - mean)))

    return float(2.0 ** minimize_scalar(loss, bounds=(-6, 6), method="bounded").x)


def measured(share: NDArray[Any], y: NDArray[Any]) -> tuple[float, float]:
    """Return the error in % and the log loss of probabilities of class 1."""
    of_truth = np.where(y == 1, share, 1 - share).clip(LEAST, 1 - LEAST)
    return 100 * float(np.mean((share > 0.5) != y)), float(-np.mean(np.log(of_truth)))


def outcomes(X: Any, y: Any, seed: int) -> dict[str, tuple[float, float]]:
    """Return error and log loss of each kind of model, for one draw of rows and annotators."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[:MOST_ROWS]
    X, y = X[rows], (y[rows] == np.unique(y)[1]).astype(int)
    train = rng.random(len(y)) < TRAINED
    right = rng.uniform(*RIGHT, ANNOTATORS)
    votes = votes_of(y, right, rng)
    majority = (votes.mean(axis=1) > 0.5).astype(int)
    soft, certain = posterior(votes, right), certainty(right)
    models = {
        "labels": pb.fit_adaboost(X[train], y[train], **BOOSTING),
        "majority": pb.fit_adaboost(X[train], majority[train], **BOOSTING),
        "soft": pb.fit_adaboost(X[train], y_proba=soft[train], **BOOSTING),
    }
    share = {name: pb.predict_proba(model, X[~train])[:, 1] for name, model in models.items()}
    share["soft, unmixed"] = unmixed(share["soft"], certain)
    part = train & (rng.random(len(y)) < FITTED)
    other, held = pb.fit_adaboost(X[part], y_proba=soft[part], **BOOSTING), train & ~part
    factor = scaled(pb.decision_function(other, X[held]), soft[held], certain)
    score = pb.decision_function(models["soft"], X[~train])
    share["soft, scaled"] = 1 / (1 + np.exp(-2 * factor * score))
    return {name: measured(of, y[~train]) for name, of in share.items()}


def main(argv: list[str] | None = None) -> None:
    """Fit the models, print the table and optionally write it."""
    parser, options, folder = arguments(__doc__, "the first set, one draw", argv)
    rows = [["data set", *KINDS]]
    for name in SETS[: 1 if options.quick else None]:
        data = read(folder / f"{name}.csv.gz")
        if isinstance(data, str):
            parser.error(f"{name}: {data}")
        draws = [outcomes(*data, seed) for seed in range(QUICK_DRAWS if options.quick else DRAWS)]
        means = {kind: np.mean([draw[kind] for draw in draws], axis=0) for kind in KINDS}
        rows.append([name, *(f"{error:.1f} ({loss:.3f})" for error, loss in means.values())])
        print(f"{name}: done", file=sys.stderr)
    text = table(f"Test error in % (log loss), means of {len(draws)} draws", rows)
    publish(text, options.rst)


if __name__ == "__main__":
    main()
