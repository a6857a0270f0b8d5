"""Members of subagged boosted probit trees: AdaBoost on one subsample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core.votes import half_log_odds
from pboost.cart_data import CartProblem
from pboost.graph import FloatArray, IntArray
from pboost.grow import NO_VOTE
from pboost.multiclass import LEAST_WEIGHT
from pboost.probit_growth import GrownProbit, ProbitGrower
from pboost.probit_tree import ProbitProblem, risk_of_groups
from pboost.probit_values import chosen, without
from pboost.sbpmt_model import chance
from pboost.threads import Workers


class Fitted(NamedTuple):
    """A tree, and values (n, K), classes and weights of its rows, leaf after leaf.

    The rows are those of the newest tree of a grower.
    """

    tree: GrownProbit
    rows: IntArray
    values: FloatArray
    y: IntArray
    weight: FloatArray
    starts: IntArray


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
    problems: Sequence[CartProblem],
    bag: FloatArray,
    rounds: int,
    step: float,
    stop: IntArray,
) -> Member:
    """Return AdaBoost of probit trees on the rows of positive weight.

    Parameters
    ----------
    task : ProbitProblem
        Data and options.
    problems : sequence of CartProblem
        That of the task, or one for each class against the others: as many trees are grown in a
        round.
    bag : ndarray of float64, shape (n,)
        Weights of the rows.
    rounds : int
        Greatest number of rounds.
    step : float
        Factor of the log odds in votes.
    stop : ndarray of int32, shape (1,)
        Once it is not 0 the work ends with InterruptedError.
    """
    label, labels = task.problem.label, task.problem.labels
    assert labels is not None
    rows, j = np.flatnonzero(bag), len(labels)
    class_rows = np.bincount(label[rows], minlength=j)
    fitted: list[Fitted] = []
    alpha: list[float] = []
    errors: list[float] = []
    least = np.where(bag > 0, LEAST_WEIGHT, 0.0)
    w = bag / bag.max()
    with Workers(1) as workers:
        growers = [
            ProbitGrower(problem, task.X, bag, task.limits, task.leaves, workers, stop=stop)
            for problem in problems
        ]
        for round_ in range(rounds):
            w /= w.take(rows).sum()  # which rows of weight 0 do not change, not even by rounding
            grown = [_grow(grower, w, stop) for grower in growers]
            if len(grown) == 1:
                order: NDArray[Any] = grown[0].rows
                values = grown[0].values
            else:
                order, values = rows, _side_by_side(grown, rows, class_rows == 0)
            wrong = order[chosen(values) != label.take(order)]
            errors.append(float(w.take(wrong).sum()))
            vote, is_last = _vote(errors[-1], j, step, alpha)
            if is_last and errors[-1] > 0 and round_ > 0:
                break
            fitted += grown
            alpha.append(vote)
            if is_last:
                break
            w[wrong] *= math.exp(vote)
            w /= w.max()
            np.maximum(w, least, out=w)
    trees = [one.tree for one in fitted]
    return Member(trees, alpha, errors, _risk(fitted), np.flatnonzero(bag == 0), class_rows)


def _grow(grower: ProbitGrower, w: FloatArray, stop: IntArray) -> Fitted:
    """Return the tree for these weights."""
    if stop[0]:
        raise InterruptedError
    tree = grower.grow(w)
    rows = tree.rows
    y, weight = grower.label.take(rows), w.take(rows)
    return Fitted(tree, rows, grower.values(tree), y, weight, tree.starts.copy())


def _side_by_side(grown: Sequence[Fitted], rows: NDArray[np.intp], lost: Any) -> FloatArray:
    """Return the values (n, J) of the trees of all classes at rows, those of lost ones least."""
    values = np.empty((int(rows[-1]) + 1, len(grown)))
    for k, one in enumerate(grown):
        values[one.rows, k] = one.values[:, 0]
    return without(values[rows], lost)


def _risk(fitted: Sequence[Fitted]) -> FloatArray:
    """Return the weighted mean loss (leaves, K) of the leaves of several trees."""
    ends = np.cumsum([0, *(len(one.y) for one in fitted)])
    starts = [one.starts[:-1] + end for one, end in zip(fitted, ends, strict=False)]
    return risk_of_groups(
        np.concatenate([one.values for one in fitted]),
        np.concatenate([one.y for one in fitted]),
        np.concatenate([one.weight for one in fitted]),
        np.concatenate([*starts, ends[-1:]]),
    )


def _vote(error: float, n_classes: int, step: float, before: list[float]) -> tuple[float, bool]:
    """Return the vote of a tree of this weighted error, and whether it ends the boosting."""
    more = math.log(n_classes - 1) if n_classes > 2 else 0.0
    vote = step * 2 * half_log_odds(1 - error, error, 0.0) + more
    if error == 0.0:
        return sum(before) + vote, True
    if error >= chance(n_classes) or vote <= NO_VOTE:
        return 1.0, True
    return vote, False
