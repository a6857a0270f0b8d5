"""The best set of levels of a category, judged by the gradients of several classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.values import FloatArray


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

    def scores(self, below: FloatArray) -> FloatArray:
        """Return the scores of cuts with these sums below, (m, S, 2); -1 where there is none."""
        l2, factor, unit = self.judged
        k = len(l2)
        (g, h), (gl, hl) = self.total[:k].T, below[:, :k].transpose(2, 0, 1)
        gr, hr = g - gl, h - hl
        dl, dr = hl + l2, hr + l2
        with np.errstate(divide="ignore", invalid="ignore"):
            score = summed((gl * gl * dr + gr * gr * dl) / (dl * dr) * factor)
        rows = below[:, -1, 1] if below.shape[1] > k else hl[:, 0]
        is_legal = (rows >= self.least) & (self.whole - rows >= self.least)
        if self.min_weight > 0:
            is_legal &= summed(hl * unit) >= self.min_weight
            is_legal &= summed(hr * unit) >= self.min_weight
        return np.where(is_legal, score, -1.0)

    @property
    def least(self) -> int:
        """The least number on a side: of rows, or of units of curvature, which is as much."""
        return self.min_leaf

    @property
    def whole(self) -> float:
        """That of the node."""
        counted = len(self.total) > self.judged.shape[1]
        return float(self.total[-1 if counted else 0, 1])


class LevelCut(NamedTuple):
    """A set of levels, those above.

    Attributes
    ----------
    score : float
        What it is judged by.
    above, here : ndarray of int
        The levels above, and all that are at the node.
    side : int
        The side of missing rows, -1 where there are none.
    below : ndarray of float64, shape (S, 2)
        The sums below.
    """

    score: float
    above: NDArray[np.intp]
    here: NDArray[np.intp]
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
    n_labels = judge.judged.shape[1]
    rows = column[n_labels if len(column) > n_labels else 0, 1]
    here = np.flatnonzero(rows[:n_levels])
    if not len(here):
        return None
    known = column[:, :, here].transpose(2, 0, 1)
    (g, h), (whole, bend) = known[:, :n_labels].T, judge.total[:n_labels].T
    pull = judge.smoothing * (bend / judge.n_rows)
    keys = -(g.T + pull * (whole / bend)) / (h.T + pull)
    orders = np.argsort(keys, axis=0, kind="stable").T
    left = np.add.accumulate(known[orders], axis=1).reshape(-1, *known.shape[1:])
    if judge.smoothing > 0:
        left = np.concatenate([left, known.sum(axis=0) - known])
    is_missing = has_holes and rows[n_levels] > 0
    parts = [left, left + column[:, :, n_levels]] if is_missing else [left]
    below = np.concatenate(parts)
    score = judge.scores(below)
    best = int(score.argmax())
    if not score[best] >= 0:
        return None
    turn, k = divmod(best, len(left))
    order, length = divmod(k, len(here))
    above = orders[order, length + 1 :] if order < n_labels else np.array([length])
    side = 1 - turn if is_missing else -1
    return LevelCut(float(score[best]), here[above], here, side, below[best])
