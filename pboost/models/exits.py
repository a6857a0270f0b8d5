"""When rows leave a model at its joints, see `pboost.models.trajectory`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.values import FloatArray, IntArray


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


def exits_of(threshold: FloatArray, n_votes: int) -> Exits:
    """Return when rows leave where the size of a value, or the least lead, is at a threshold."""
    high = np.repeat(threshold[:, None], n_votes, axis=1)
    return Exits(high, -high if n_votes == 1 else np.zeros_like(high))


def joints_left(score: FloatArray, exits: Exits) -> NDArray[np.intp]:
    """Return the joint (n,) at which rows leave whose values are (T + 1, n) or (T + 1, n, J).

    T of rows that go to the end.
    """
    high, low, n_joints = exits.high, exits.low, len(score) - 1
    leaves = np.ones((n_joints + 1, score.shape[1]), dtype=bool)
    if score.ndim == 2:
        leaves[:-1] = (score[:-1] >= high) | (score[:-1] <= low)
        return leaves.argmax(axis=0)
    for t in range(n_joints):
        best = score[t].argmax(axis=1)
        lead = np.take_along_axis(score[t], best[:, None], axis=1) - score[t]
        is_settled = lead >= high[t] - low[t][best][:, None]
        is_settled[np.arange(len(best)), best] = True
        leaves[t] = is_settled.all(axis=1)
    return leaves.argmax(axis=0)


def sizes(score: FloatArray) -> FloatArray:
    """Return how sure decision values (n,) are, their sizes; of (n, J) the lead of the largest."""
    if score.ndim == 1:
        return np.abs(score)
    two = np.partition(score, -2, axis=1)[:, -2:]
    lead: FloatArray = two[:, 1] - two[:, 0]
    return lead


def sizes_at_end(score: FloatArray, end: FloatArray) -> FloatArray:
    """Return by how much the last values `end` speak for the labels that `score` speaks for."""
    if score.ndim == 1:
        return np.where(score > 0, end, -end)
    rows, best = np.arange(len(score)), score.argmax(axis=1)
    others = end.copy()
    others[rows, best] = -np.inf
    lead: FloatArray = end[rows, best] - others.max(axis=1)
    return lead
