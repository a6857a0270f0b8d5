"""Members of subagged boosted probit trees: AdaBoost on one subsample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pboost._core import probit_round as kernel
from pboost._core.votes import half_log_odds
from pboost.data.training import Problem
from pboost.models.ensembles import chance
from pboost.models.probit_trees import LEAST
from pboost.probit.growth import GrownProbit, ProbitGrower
from pboost.probit.tree import ProbitProblem
from pboost.threads import Workers, check_stop
from pboost.values import FloatArray, IntArray
from pboost.weak.votes import NO_VOTE


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """AdaBoost of probit trees on one subsample.

    Attributes
    ----------
    trees : list of GrownProbit
        Its trees; those of a round one after another.
    alpha : list of float
        Votes of the rounds.
    error : list of float
        Weighted errors of all rounds.
    risk : ndarray of float64, shape (leaves, K)
        Weighted mean loss in the leaves of its trees.
    out : ndarray, shape (n_out,)
        The rows that are not in the subsample.
    class_rows : ndarray, shape (J,)
        Number of rows of each class in it.
    """

    trees: list[GrownProbit]
    alpha: list[float]
    error: list[float]
    risk: FloatArray
    out: NDArray[np.intp]
    class_rows: NDArray[np.intp]


def boost(
    task: ProbitProblem,
    problems: Sequence[Problem],
    bag: FloatArray,
    rounds: int,
    step: float,
) -> Member:
    """Return AdaBoost of probit trees on the rows of positive weight.

    Parameters
    ----------
    task : ProbitProblem
        Data and options.
    problems : sequence of Problem
        That of the task, or one for each class against the others: as many trees are grown in a
        round.
    bag : ndarray of float64, shape (n,)
        Weights of the rows.
    rounds : int
        Greatest number of rounds.
    step : float
        Factor of the log odds in votes.
    """
    label, labels = task.problem.label, task.problem.labels
    assert labels is not None
    rows, j = np.flatnonzero(bag).astype(np.int32), len(labels)
    class_rows = np.bincount(label.take(rows), minlength=j)
    trees: list[GrownProbit] = []
    risk: list[FloatArray] = []
    alpha: list[float] = []
    errors: list[float] = []
    w, wrong, work = bag / bag.max(), np.empty(len(rows), dtype=np.int32), np.empty(len(rows))
    beside = SideBySide(len(bag), rows, class_rows) if len(problems) > 1 else None
    with Workers(1) as workers:
        growers = [
            ProbitGrower(problem, task.X, bag, task.limits, task.leaves, workers)
            for problem in problems
        ]
        for round_ in range(rounds):
            kernel.normalise(w, rows, work)
            grown = [_grow(grower, w) for grower in growers]
            if beside is None:
                order, values = grown[0][0].rows, grown[0][1]
            else:
                order, values = rows, beside.values(grown)
            n_wrong, error = kernel.mistakes(values, order, label, w, wrong, work)
            errors.append(error)
            vote, is_last = _vote(error, j, step, alpha)
            if is_last and error > 0 and round_ > 0:
                break
            for grower, (tree, at) in zip(growers, grown, strict=True):
                trees.append(tree)
                risk.append(grower.risk(tree, at, w))
            alpha.append(vote)
            if is_last:
                break
            kernel.raise_weights(w, rows, wrong, n_wrong, math.exp(vote))
    out = np.flatnonzero(bag == 0)
    return Member(trees, alpha, errors, np.concatenate(risk), out, class_rows)


def _grow(grower: ProbitGrower, w: FloatArray) -> tuple[GrownProbit, FloatArray]:
    """Return the tree for these weights, and its values (n, K) at its rows."""
    check_stop()
    tree = grower.grow(w)
    return tree, grower.values(tree)


class SideBySide:
    """The values of the trees of all classes at listed rows of X, those of lost classes least."""

    def __init__(self, n: int, rows: IntArray, class_rows: NDArray[np.intp]) -> None:
        self.place = np.empty(n, dtype=np.int32)
        self.place[rows] = np.arange(len(rows), dtype=np.int32)
        self.found = class_rows.nonzero()[0].tolist()
        self.out = np.full((len(rows), len(class_rows)), LEAST)

    def values(self, grown: Sequence[tuple[GrownProbit, FloatArray]]) -> FloatArray:
        """Return the values (n, J); until the next round."""
        for k in self.found:
            tree, values = grown[k]
            kernel.put_beside(values, tree.rows, self.place, k, self.out)
        return self.out


def _vote(error: float, n_classes: int, step: float, before: list[float]) -> tuple[float, bool]:
    """Return the vote of a tree of this weighted error, and whether it ends the boosting."""
    more = math.log(n_classes - 1) if n_classes > 2 else 0.0
    vote = step * 2 * half_log_odds(1 - error, error, 0.0) + more
    if error == 0.0:
        return sum(before) + vote, True
    if error >= chance(n_classes) or vote <= NO_VOTE:
        return 1.0, True
    return vote, False
