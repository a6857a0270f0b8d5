"""The best stump for rows that all go on together, and the weight update after it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pboost._core import reweight, split
from pboost.columns import MAX_BINS, SortedColumns
from pboost.data import TrainingData
from pboost.graph import FloatArray
from pboost.grow import Masses
from pboost.threads import Workers
from pboost.weak import CRITERIA, Stump

#: Features per histogram pass: ranges given to threads are multiples of it.
GROUP = 4


@dataclass(frozen=True, slots=True)
class Cut:
    """A stump found by a search: where it cuts, and the class masses that it sends to each exit."""

    feature: int
    cut_bin: int
    position: int
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


class StumpSearch:
    """Search and weight update over one set of columns; holds the work arrays.

    Parameters
    ----------
    data : TrainingData
        Columns and classes.
    weak : Stump
        Criterion and limits.
    workers : Workers
        Threads.
    """

    def __init__(self, data: TrainingData, weak: Stump, workers: Workers) -> None:
        d = data.columns.n_features
        self._data, self._workers = data, workers
        self._criterion = CRITERIA.index(weak.criterion)
        self._min_weight, self._min_count = weak.min_weight, weak.min_count
        columns = data.columns
        self._order = data.searched_order()
        self._bin_start = (
            columns.bin_start
            if isinstance(columns, SortedColumns)
            else _bin_starts(columns.codes, columns.n_bins)
        )
        self._edge = np.empty((d, 2, MAX_BINS + 1), dtype=np.int64)
        self._bound = np.empty((d, MAX_BINS))
        self._best = np.empty(d)

    def fill_fixed(self, weights: Weights) -> None:
        """Write the fixed-point images of weights, and their masses."""
        reweight.to_fixed(weights.real, weights.scale, weights.fixed)
        middle = self._data.n_negative
        weights.masses = (int(weights.fixed[:middle].sum()), int(weights.fixed[middle:].sum()))

    def best(self, weights: Weights) -> Cut | None:
        """Return the best stump for rows of these weights, None where no cut is legal."""
        negative, positive = weights.masses
        limits = (
            self._criterion, self._data.n_rows, self._data.n_negative, negative, positive,
            math.ceil(self._min_weight * (negative + positive)), self._min_count,
        )  # fmt: skip
        n_bins = self._data.columns.n_bins

        def work(first: int, last: int) -> None:
            split.search(
                self._data.columns.codes, self._order, self._bin_start, n_bins, weights.fixed,
                limits, first, last, self._edge, self._bound, self._best,
            )  # fmt: skip

        self._workers.run(work, len(n_bins), GROUP)
        found = split.locate(
            self._order, self._bin_start, n_bins, weights.fixed, limits, self._edge,
            self._bound, self._best,
        )  # fmt: skip
        if found is None:
            return None
        feature, cut_bin, position, n0, p0 = found
        masses = (float(n0), float(p0)), (float(negative - n0), float(positive - p0))
        return Cut(feature, cut_bin, position, masses)

    def side_masses(self, cut: Cut, source: FloatArray, scratch: Weights) -> FloatArray:
        """Return the masses (side, class) that a cut makes of other weights.

        Each class is brought to full precision by a power of two of its own, however little of it
        there is, and is returned in its own unit.
        """
        middle = self._data.n_negative
        sums = np.array([source[:middle].sum(), source[middle:].sum()])
        unit = np.ldexp(1.0, -np.frexp(sums)[1])
        scratch.scale = 2.0**60
        self.reweight(cut, np.stack([unit, unit]), source, scratch)
        total = np.array(scratch.masses, dtype=np.float64)
        self.reweight(cut, np.stack([unit, 0 * unit]), source, scratch)
        below = np.array(scratch.masses, dtype=np.float64)
        return np.stack([below, total - below])

    def thresholds(self, cuts: list[Cut]) -> FloatArray:
        """Return the thresholds of cuts."""
        places = np.array([(c.feature, c.cut_bin, c.position) for c in cuts], dtype=np.intp)
        feature, cut_bin, position = places.reshape(-1, 3).T
        return np.asarray(self._data.columns.threshold(feature, cut_bin, position))

    def reweight(self, cut: Cut, factors: FloatArray, source: FloatArray, target: Weights) -> None:
        """Multiply the source weight of each row by the factor (side, class) of its side.

        The products, their fixed-point images in the target's scale and their masses are written
        to `target`, whose weights may be the source.
        """
        data, codes = self._data, self._data.columns.codes[cut.feature]
        starts = self._bin_start[cut.feature]
        inside = cut.position < int(starts[cut.cut_bin + 1])

        def work(start: int, stop: int) -> tuple[int, int]:
            return reweight.reweight(
                codes, cut.cut_bin, inside, data.n_negative, factors, target.scale, start, stop,
                source, target.real, target.fixed,
            )  # fmt: skip

        parts = self._workers.run(work, data.n_rows)
        if inside:
            change = reweight.reweight_bin(
                self._order[cut.feature], starts[cut.cut_bin], cut.position,
                starts[cut.cut_bin + 1], data.n_negative, factors, target.scale, target.real,
                target.fixed,
            )  # fmt: skip
            parts.append(change)
        target.masses = (sum(p[0] for p in parts), sum(p[1] for p in parts))


def _bin_starts(codes: np.ndarray, n_bins: np.ndarray) -> np.ndarray:
    """Return the number of rows below each bin edge, (d, 257), from the codes alone."""
    starts = np.zeros((len(codes), MAX_BINS + 1), dtype=np.int32)
    for feature, code in enumerate(codes):
        np.cumsum(np.bincount(code, minlength=MAX_BINS), out=starts[feature, 1:])
    return starts
