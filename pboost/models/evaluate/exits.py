"""When rows leave a model at its joints, see `pboost.models.early_exit_model`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.values import FloatArray, IntArray

#: The least positive number.
LEAST = float(np.finfo(np.float64).smallest_subnormal)


class Exits(NamedTuple):
    """When rows leave at the joints 0, ..., T - 1; 0 is before the first node.

    Of one decision value J = 1, and rows leave where it is at least `high` or at most `low`; of
    more they leave where the lead of the largest over that of each other label j is at least
    ``high[:, j] - low[:, k]``, with k the label of the largest.
    """

    high: FloatArray
    low: FloatArray


class NodeExits(NamedTuple):
    """`Exits` at the nodes of a graph, or the rounds of trees, as kernels take them.

    `checked` (n,): whether any row can leave there; `passed` (n,): the joints before.
    """

    high: FloatArray
    low: FloatArray
    checked: NDArray[np.uint8]
    passed: IntArray


class Left(NamedTuple):
    """The values (n, ...) with which rows leave, after how many joints, and comparisons (n,)."""

    score: FloatArray
    joint: NDArray[np.integer]
    cost: FloatArray


class Rest(NamedTuple):
    """What is still added to the values of a row after each of T joints, or nodes.

    At least and at most, (T, V); the largest sum of sizes on a path, `size`, of so many `terms`.
    """

    low: FloatArray
    high: FloatArray
    size: float
    terms: int


def proven_exits(rest: Rest) -> Exits:
    """Return where rows can leave since nothing that is added later can change their labels.

    Values are sums with rounding errors: of n terms the last differs from what bounds say by at
    most 2 n u times the sum of the sizes, u = 2**-53, and the difference of two by twice that. The
    double is kept to spare, and more than 0, so that ties go on. Of one value the sign must be that
    of the label already: values with which rows leave speak for their labels.
    """
    spare = (rest.terms + 2) * 2.0**-51 * rest.size
    if rest.high.shape[1] == 1:
        high, low = spare - rest.low, -spare - rest.high
        return by_sign(np.nextafter(high, np.inf), np.nextafter(low, -np.inf))
    return Exits(np.nextafter(rest.high + spare, np.inf), rest.low)


def by_sign(high: FloatArray, low: FloatArray) -> Exits:
    """Return exits of one value at which it is positive or not."""
    return Exits(np.maximum(high, LEAST), np.minimum(low, 0.0))


def rest_of(low: FloatArray, high: FloatArray, start: FloatArray | float = 0.0) -> Rest:
    """Return what the rest of T terms (T, V) adds, each of which lies between two numbers."""
    size = np.maximum(np.abs(low), np.abs(high)).sum(axis=0) + np.abs(start)
    after = np.add.accumulate(low[::-1])[::-1], np.add.accumulate(high[::-1])[::-1]
    return Rest(*after, float(np.max(size)), len(low))


def of_means(exits: Exits) -> Exits:
    """Return exits of the sums of the first 0, 1, ... terms as those of their means."""
    number = np.arange(len(exits.high))[:, None]
    high, low = (of / np.maximum(number, 1) for of in exits)
    high[0] = np.inf  # of none
    low[0] = -np.inf if low.shape[1] == 1 else 0.0
    return by_sign(high, low) if low.shape[1] == 1 else Exits(high, low)


def voting_exits(n_members: int, n_votes: int) -> Exits:
    """Return when labels cannot change any more of means of shares, each from 0 to 1."""
    highest = np.ones((n_members, n_votes))
    rest = rest_of(-highest if n_votes == 1 else 0 * highest, highest)
    return of_means(proven_exits(rest._replace(size=2.0 * n_members)))


def exits_of(threshold: FloatArray, n_votes: int) -> Exits:
    """Return when rows leave where the size of a value, or the least lead, is at a threshold."""
    high = np.repeat(threshold[:, None], n_votes, axis=1)
    return Exits(high, -high if n_votes == 1 else np.zeros_like(high))


def joints_left(
    score: FloatArray, exits: Exits, may: NDArray[np.bool_] | None = None
) -> NDArray[np.intp]:
    """Return the joint (n,) at which rows leave whose values are (T + 1, n) or (T + 1, n, J).

    T of rows that go to the end. With `may` (T, n): which rows may leave at each joint.
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
    """Return how sure decision values (n,) are, their sizes; of (n, J) the lead of the largest."""
    if score.ndim == 1:
        return np.abs(score)
    two = np.partition(score, -2, axis=1)[:, -2:]
    return two[:, 1] - two[:, 0]


def sizes_at_end(score: FloatArray, end: FloatArray) -> FloatArray:
    """Return by how much the last values `end` speak for the labels that `score` speaks for."""
    if score.ndim == 1:
        return np.where(score > 0, end, -end)
    rows, best = np.arange(len(score)), score.argmax(axis=1)
    others = end.copy()
    others[rows, best] = -np.inf
    return end[rows, best] - others.max(axis=1)
