"""Base of the searches whose weak classifiers are trained on rows, and known by their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import reweight
from pboost.values import FloatArray
from pboost.weak.search import Cut, WeakSearch, Weights
from pboost.weak.votes import Masses

#: Rows of less real weight are not there: kernels keep weights from becoming subnormal.
NO_WEIGHT = 1e-250


@dataclass(frozen=True, slots=True, eq=False)
class SideCut(Cut):
    """A weak classifier, and the answers that it gave.

    Attributes
    ----------
    codes : ndarray of uint8, shape (n,)
        Side of each row, 0 for rows that do not arrive; empty if it has not been asked.
    """

    codes: NDArray[np.uint8]


class SideSearch(WeakSearch):
    """Search whose cuts hold the side of each row."""

    def arriving(self, weights: Weights) -> NDArray[np.intp]:
        """Return the rows that are there."""
        return np.flatnonzero(weights.real > NO_WEIGHT)

    def by_class(self, weights: Weights, factor: FloatArray) -> FloatArray:
        """Return the real weights times a factor of each class."""
        middle, real = self.data.n_negative, weights.real.copy()
        real[:middle] *= factor[0]
        real[middle:] *= factor[1]
        return real

    def masses(self, codes: NDArray[np.uint8], weights: Weights) -> Masses:
        """Return the fixed-point masses (side, class)."""
        middle, above = self.data.n_negative, weights.fixed * codes
        negative, positive = int(above[:middle].sum()), int(above[middle:].sum())
        n, p = weights.masses
        return (float(n - negative), float(p - positive)), (float(negative), float(positive))

    def sides(self, cut: SideCut) -> NDArray[np.bool_]:
        """Return whether each row lies above."""
        return cut.codes > 0

    def reweight(
        self, cut: SideCut, factors: FloatArray, source: FloatArray, target: Weights
    ) -> None:
        """Multiply the source weight of each row by the factor (side, class) of its side."""

        def work(start: int, stop: int) -> tuple[int, int]:
            return reweight.reweight(
                cut.codes, 0, False, self.data.n_negative, factors, target.scale, start, stop,
                source, target.real, target.fixed,
            )  # fmt: skip

        parts = self.workers.run(work, self.data.n_rows)
        target.masses = (sum(p[0] for p in parts), sum(p[1] for p in parts))

    def thresholds(self, cuts: Sequence[Any]) -> FloatArray:
        """Return 0, up to which exit 0 is taken."""
        return np.zeros(len(cuts))
