"""What builders need of a weak learner that is bound to training data.

A search returns the best weak classifier for weighted rows as a `Cut`: two sides, and the class
masses on either. Whatever it looked at, the sides can be read off one code per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import reweight
from pboost.data.training import TrainingData
from pboost.threads import Workers
from pboost.values import FloatArray
from pboost.weak.votes import Masses


@dataclass(frozen=True, slots=True)
class Cut:
    """A weak classifier found by a search, and the class masses on either of its sides.

    Attributes
    ----------
    feature : int
        What it reads: a column, or the position among those of its kind.
    masses : tuple
        Fixed-point masses (side, class).
    """

    feature: int
    masses: Masses


@dataclass(slots=True, eq=False)
class Weights:
    """Weights of all rows at one open exit.

    Attributes
    ----------
    real : ndarray of float64, shape (n,)
        The weights.
    fixed : ndarray of int64, shape (n,)
        ``real * scale``, rounded.
    scale : float
        A power of two.
    masses : tuple of int
        Fixed-point mass of class -1 and of class +1.
    """

    real: FloatArray
    fixed: NDArray[np.int64]
    scale: float
    masses: tuple[int, int]


class WeakSearch:
    """Base of the searches: one weak learner on one set of training rows.

    Parameters
    ----------
    data : TrainingData
        Rows and classes.
    workers : Workers
        Threads.
    """

    def __init__(self, data: TrainingData, workers: Workers) -> None:
        self.data, self.workers = data, workers

    def best(self, weights: Weights) -> Cut | None:
        """Return the weak classifier for rows of these weights, None where there is none."""
        raise NotImplementedError

    def best_by_reach(self, weights: Weights, by_class: FloatArray) -> Cut | None:
        """Return the weak classifier for a node of a tree of exact answers.

        The weights times `by_class` are reach masses, with which some learners train.
        """
        return self.best(weights)

    def cut_at(self, feature: int, threshold: float, weights: Weights) -> Cut:
        """Return a stored weak classifier as a cut of these rows, with their masses."""
        raise NotImplementedError

    def reweight(self, cut: Any, factors: FloatArray, source: FloatArray, target: Weights) -> None:
        """Multiply the source weight of each row by the factor (side, class) of its side.

        The products, their fixed-point images in the target's scale and their masses are written
        to `target`, whose weights may be the source.
        """
        raise NotImplementedError

    def sides(self, cut: Any) -> NDArray[np.bool_]:
        """Return whether each row lies above a cut."""
        n = self.data.n_rows
        target = Weights(np.empty(n), np.empty(n, dtype=np.int64), 1.0, (0, 0))
        self.reweight(cut, np.array([[1.0, 1.0], [2.0, 2.0]]), np.ones(n), target)
        return target.fixed > 1

    def thresholds(self, cuts: Sequence[Any]) -> FloatArray:
        """Return the thresholds of cuts."""
        raise NotImplementedError

    def model_columns(self, cuts: Sequence[Any]) -> dict[str, Any]:
        """Return the fields of a model that say what its nodes compare."""
        feature = np.array([cut.feature for cut in cuts], dtype=np.int32)
        return {"feature": feature, "threshold": self.thresholds(cuts)}

    def fill_fixed(self, weights: Weights) -> None:
        """Write the fixed-point images of weights, and their masses."""
        reweight.to_fixed(weights.real, weights.scale, weights.fixed)
        middle = self.data.n_negative
        weights.masses = (int(weights.fixed[:middle].sum()), int(weights.fixed[middle:].sum()))

    def side_masses(self, cut: Cut, source: FloatArray, scratch: Weights) -> FloatArray:
        """Return the masses (side, class) that a cut makes of other weights.

        Each class is brought to full precision by a power of two of its own, however little of it
        there is, and is returned in its own unit.
        """
        middle = self.data.n_negative
        sums = np.array([source[:middle].sum(), source[middle:].sum()])
        unit = np.ldexp(1.0, -np.frexp(sums)[1])
        scratch.scale = 2.0**60
        self.reweight(cut, np.stack([unit, unit]), source, scratch)
        total = np.array(scratch.masses, dtype=np.float64)
        self.reweight(cut, np.stack([unit, 0 * unit]), source, scratch)
        below = np.array(scratch.masses, dtype=np.float64)
        return np.stack([below, total - below])
