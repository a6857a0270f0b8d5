"""The best stump for rows that all go on together, and the weight update after it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pboost._core import reweight, split
from pboost.data.columns import GROUP, ROW_MASK, SortedColumns, most_bins
from pboost.data.training import TrainingData
from pboost.threads import Workers
from pboost.values import FloatArray, IntArray
from pboost.weak.learners import CRITERIA, ColumnLearner
from pboost.weak.search import Cut, WeakSearch, Weights


@dataclass(frozen=True, slots=True)
class StumpCut(Cut):
    """A stump: where its column is cut, as a bin and as a position in the sorted order.

    `threshold` is None unless it was given.
    """

    cut_bin: int
    position: int
    threshold: float | None = None


class StumpSearch(WeakSearch):
    """Search and weight update over one set of columns; holds the work arrays.

    Parameters
    ----------
    data : TrainingData
        Columns and classes.
    weak : ColumnLearner
        Criterion and limits.
    workers : Workers
        Threads.
    """

    def __init__(self, data: TrainingData, weak: ColumnLearner, workers: Workers) -> None:
        super().__init__(data, workers)
        self._columns, self._n_rows = data.columns, data.n_rows
        d = data.columns.n_features
        self._criterion = CRITERIA.index(weak.criterion)
        self._min_weight, self._min_count = weak.min_weight, weak.min_count
        self._order = data.searched_order()
        assert data.columns.bin_start is not None
        self._bin_start = data.columns.bin_start
        bins = most_bins(data.columns.n_bins)
        self._edge = np.empty((d, 2, bins + 1), dtype=np.int64)
        self._bound = np.empty((d, bins))
        self._best, self._least = np.empty(d), np.empty(1)

    def best(self, weights: Weights) -> StumpCut | None:
        """Return the best stump for rows of these weights, None where no cut is legal."""
        negative, positive = weights.masses
        limits = self._limits(negative, positive)
        columns = self._order, self._bin_start, self._columns.n_bins
        self._least[0] = math.inf
        work = partial(
            split.search, self._columns.codes, *columns, weights.fixed, limits, self._edge,
            self._bound, self._best, self._least,
        )  # fmt: skip
        self.workers.run(work, len(self._best), GROUP, self._n_rows)
        found = split.locate(*columns, weights.fixed, limits, self._edge, self._bound, self._best)
        if found is None:
            return None
        feature, cut_bin, position, n0, p0 = found
        masses = (float(n0), float(p0)), (float(negative - n0), float(positive - p0))
        return StumpCut(feature, masses, cut_bin, position)

    def cut_at(self, feature: int, threshold: float, weights: Weights) -> StumpCut:
        """Return a stored stump as a cut of these rows; a side may be empty."""
        cut_bin, position, below = self.place(feature, threshold)
        negative = int(weights.fixed[below[below < self.data.n_negative]].sum())
        n0, p0 = negative, int(weights.fixed[below].sum()) - negative
        n, p = weights.masses
        masses = (float(n0), float(p0)), (float(n - n0), float(p - p0))
        return StumpCut(feature, masses, cut_bin, position, threshold)

    def place(self, feature: int, threshold: float) -> tuple[int, int, IntArray]:
        """Return where a threshold cuts its column, as a bin and a position, and the rows below."""
        columns, starts = self.data.columns, self._bin_start[feature]
        if self.data.exact and isinstance(columns, SortedColumns):
            order = columns.packed_order[feature]
            position = columns.n_below(feature, order, threshold)
            n_bins = columns.n_bins[feature]
            cut_bin = int(np.searchsorted(starts[: n_bins + 1], position)) - 1
            return cut_bin, position, order[:position] & ROW_MASK
        cut_bin = columns.bin_below(feature, threshold)
        below = np.flatnonzero(columns.codes[feature] <= cut_bin).astype(np.int32)
        return cut_bin, int(starts[cut_bin + 1]), below

    def _limits(self, negative: int, positive: int) -> tuple[int, int, int, int, int, int, int]:
        """Return what the kernels read as `Limits`."""
        return (
            self._criterion, self._n_rows, self.data.n_negative, negative, positive,
            math.ceil(self._min_weight * (negative + positive)), self._min_count,
        )  # fmt: skip

    def thresholds(self, cuts: Sequence[StumpCut]) -> FloatArray:
        """Return the thresholds of cuts."""
        found = [c for c in cuts if c.threshold is None]
        places = np.array([(c.feature, c.cut_bin, c.position) for c in found], dtype=np.intp)
        feature, cut_bin, position = places.reshape(-1, 3).T
        thresholds = np.array([c.threshold for c in cuts], dtype=np.float64)
        thresholds[np.isnan(thresholds)] = self.data.columns.threshold(feature, cut_bin, position)
        return thresholds

    def model_columns(self, cuts: Sequence[StumpCut]) -> dict[str, Any]:
        """Return the fields of a model that say what its nodes compare."""
        columns = super().model_columns(cuts)
        return columns | self.data.model_columns(columns["feature"])

    def reweight(
        self, cut: StumpCut, factors: FloatArray, source: FloatArray, target: Weights
    ) -> None:
        """Multiply the source weight of each row by the factor (side, class) of its side.

        The products, their fixed-point images in the target's scale and their masses are written
        to `target`, whose weights may be the source.
        """
        data, codes = self.data, self.data.columns.codes[cut.feature]
        starts = self._bin_start[cut.feature]
        inside = cut.position < int(starts[cut.cut_bin + 1])

        def work(start: int, stop: int) -> tuple[int, int]:
            return reweight.reweight(
                codes, cut.cut_bin, inside, data.n_negative, factors, target.scale, start, stop,
                source, target.real, target.fixed,
            )  # fmt: skip

        parts = self.workers.run(work, self._n_rows)
        if inside:
            mass = reweight.reweight_bin(
                self._order[cut.feature], starts[cut.cut_bin], cut.position,
                starts[cut.cut_bin + 1], data.n_negative, factors, target.scale, target.real,
                target.fixed,
            )  # fmt: skip
            parts.append(mass)
        target.masses = (sum(p[0] for p in parts), sum(p[1] for p in parts))
