"""Early exits: the decision values at which rows stop at the stages of a model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.values import FloatArray, IntArray

#: The smallest positive number.
LEAST = float(np.finfo(np.float64).smallest_subnormal)


class Exits(NamedTuple):
    """Thresholds of the decision values at stages 0, ..., T - 1. Stage 0 precedes all nodes.

    With one decision value, J = 1, a row stops if the value is at least `high` or at most `low`.
    With more, it stops if the largest value, of class k, exceeds the value of each other class j by
    at least ``high[:, j] - low[:, k]``.
    """

    high: FloatArray
    low: FloatArray


class NodeExits(NamedTuple):
    """`Exits` at the nodes of a graph or at the rounds of trees, in the kernel's format.

    `checked` (n,) marks the nodes where rows can stop; `passed` (n,) counts the earlier stages.
    """

    high: FloatArray
    low: FloatArray
    checked: NDArray[np.uint8]
    passed: IntArray


class Left(NamedTuple):
    """Decision values (n, ...), stages (n,) and comparisons (n,) at which rows stop."""

    score: FloatArray
    joint: NDArray[np.integer]
    cost: FloatArray


class Rest(NamedTuple):
    """Bounds of the sum of the remaining votes at each of T stages or nodes.

    `low` and `high` have shape (T, V). `size` is the largest sum of absolute votes on a path, and
    `terms` the number of votes.
    """

    low: FloatArray
    high: FloatArray
    size: float
    terms: int


def proven_exits(rest: Rest) -> Exits:
    """Return the early exits after which no later vote can change the predicted class.

    Decision values have rounding errors: a sum of n terms differs from its bounds by at most 2 n u
    times the sum of absolute terms, u = 2**-53, and the difference of two sums by twice as much.
    Twice this amount is added as a margin. The margin must be positive, so that rows with ties do
    not stop. A single value must already have the sign of the final class.
    """
    spare = (rest.terms + 2) * 2.0**-51 * rest.size
    if rest.high.shape[1] == 1:
        high, low = spare - rest.low, -spare - rest.high
        return by_sign(np.nextafter(high, np.inf), np.nextafter(low, -np.inf))
    return Exits(np.nextafter(rest.high + spare, np.inf), rest.low)


def by_sign(high: FloatArray, low: FloatArray) -> Exits:
    """Return exits for one value, whose sign must already indicate the class."""
    return Exits(np.maximum(high, LEAST), np.minimum(low, 0.0))


def rest_of(low: FloatArray, high: FloatArray, start: FloatArray | float = 0.0) -> Rest:
    """Return the `Rest` for the lower and upper bounds (T, V) of T terms."""
    size = np.maximum(np.abs(low), np.abs(high)).sum(axis=0) + np.abs(start)
    after = np.add.accumulate(low[::-1])[::-1], np.add.accumulate(high[::-1])[::-1]
    return Rest(*after, float(np.max(size)), len(low))


def of_means(exits: Exits) -> Exits:
    """Convert exits for the sums of the first 0, 1, ... terms to exits for their means."""
    number = np.arange(len(exits.high))[:, None]
    high, low = (of / np.maximum(number, 1) for of in exits)
    high[0] = np.inf  # there is no mean of 0 terms
    low[0] = -np.inf if low.shape[1] == 1 else 0.0
    return by_sign(high, low) if low.shape[1] == 1 else Exits(high, low)


def voting_exits(n_members: int, n_votes: int) -> Exits:
    """Return the exits after which the class of a mean of probabilities cannot change."""
    highest = np.ones((n_members, n_votes))
    rest = rest_of(-highest if n_votes == 1 else 0 * highest, highest)
    return of_means(proven_exits(rest._replace(size=2.0 * n_members)))


def exits_of(threshold: FloatArray, n_votes: int) -> Exits:
    """Return exits for thresholds of the confidence, see `EarlyExitModel`."""
    high = np.repeat(threshold[:, None], n_votes, axis=1)
    return Exits(high, -high if n_votes == 1 else np.zeros_like(high))


def joints_left(
    score: FloatArray, exits: Exits, may: NDArray[np.bool_] | None = None
) -> NDArray[np.intp]:
    """Return the stage (n,) at which rows with values (T + 1, n) or (T + 1, n, J) stop.

    The stage is T for rows that pass all stages. `may` (T, n) marks stages at which rows may stop.
    """
    high, low, n_stages = exits.high, exits.low, len(score) - 1
    leaves = np.ones((n_stages + 1, score.shape[1]), dtype=bool)
    if score.ndim == 2:
        leaves[:-1] = (score[:-1] >= high) | (score[:-1] <= low)
    for t in range(n_stages if score.ndim == 3 else 0):
        best = score[t].argmax(axis=1)
        lead = np.take_along_axis(score[t], best[:, None], axis=1) - score[t]
        is_settled = lead >= high[t] - low[t][best][:, None]
        is_settled[np.arange(len(best)), best] = True
        leaves[t] = is_settled.all(axis=1)
    if may is not None:
        leaves[:-1] &= may
    return leaves.argmax(axis=0)


def sizes(score: FloatArray) -> FloatArray:
    """Return the absolute value (n,), or the largest minus the second largest of J values."""
    if score.ndim == 1:
        return np.abs(score)
    two = np.partition(score, -2, axis=1)[:, -2:]
    return two[:, 1] - two[:, 0]


def sizes_at_end(score: FloatArray, end: FloatArray) -> FloatArray:
    """Return the final margin of the class that `score` predicts, given the last values `end`."""
    if score.ndim == 1:
        return np.where(score > 0, end, -end)
    rows, best = np.arange(len(score)), score.argmax(axis=1)
    others = end.copy()
    others[rows, best] = -np.inf
    return end[rows, best] - others.max(axis=1)
