"""The best set of levels of a category, judged by the gradients of several classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pboost._core import softmax
from pboost.values import FloatArray, IntArray


class Judge(NamedTuple):
    """What cuts of a node are judged by.

    Attributes
    ----------
    judged : ndarray of float64, shape (3, J)
        Of each class what is added to the curvature of a side, what its part of a score counts,
        and the unit of its curvatures.
    total : ndarray of float64, shape (S, 2)
        Sums of gradients and curvatures of the node, S being J, or one more with numbers of rows.
    n_rows, min_leaf : int
        Rows of the node, and the least number on a side.
    min_weight : float
        The least sum over classes of the curvatures of a side.
    smoothing : float
        Rows of the node whose steps the steps of a level, that give the order, are mixed with.
    """

    judged: FloatArray
    total: FloatArray
    n_rows: int
    min_leaf: int
    min_weight: float
    smoothing: float


class LevelCut(NamedTuple):
    """A set of levels, those above.

    Attributes
    ----------
    score : float
        What it is judged by.
    above, here : ndarray of int32
        The levels above, and all that are at the node.
    side : int
        The side of missing rows, -1 where there are none.
    below : ndarray of float64, shape (S, 2)
        The sums below.
    """

    score: float
    above: IntArray
    here: IntArray
    side: int
    below: FloatArray


def summed(terms: FloatArray) -> FloatArray:
    """Return the sum over the last dimension, one term after another."""
    found: FloatArray = np.add.accumulate(terms, axis=-1)[..., -1]
    return found


def best_set(column: FloatArray, n_levels: int, has_holes: bool, judge: Judge) -> LevelCut | None:
    """Return the best set of a column of masses (S, 2, levels), the first of equal ones.

    Levels are put in order by the step of a class, and beginnings of the order tried as what is
    below, for one class after the other; with smoothing all but each level, too. First with missing
    rows above, then below.
    """
    here, above = np.empty((2, n_levels), dtype=np.int32)
    below = np.empty(judge.total.shape)
    score, n_here, n_above, side = softmax.best_levels(
        column, n_levels, has_holes, *judge, here, above, below
    )
    if score < 0:
        return None
    return LevelCut(score, above[:n_above], here[:n_here], side, below)
