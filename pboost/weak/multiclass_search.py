"""Stump search for rows with one weight per class (AdaBoost.MH)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import multiclass as kernels
from pboost.data.columns.columns import MAX_BINS, ROW_MASK
from pboost.data.columns.prebuilt import HOLES, has, levels_among, most_bins
from pboost.data.training_data import TrainingData
from pboost.threads import Workers
from pboost.values import Array, FloatArray, IntArray
from pboost.weak.stump_search import Affine, ColumnLearner, Stump, StumpCut, StumpSearch

#: Splits are tied if their scores differ by less than this fraction of the weight (`split.pxd`).
TIE = 1e-12
Sums = NDArray[np.int64]
#: Size of a cache line in bytes.
LINE = 64


@dataclass(frozen=True, slots=True, eq=False)
class SearchNode:
    """The sums and factors that a search reads at a node.

    Attributes
    ----------
    sums : ndarray of int64, shape (d, 2, size)
        For each column, sums of the initial weights by bin and class, in the layout of the kernels.
        The first part contains sums over all rows and the row counts; the second part contains the
        sums over the rows of each class.
    totals : ndarray of int64, shape (2 k + 1,)
        The sums over all bins: k sums over all rows, k sums over the rows of each class, and the
        row count.
    for_it, against : ndarray of float64, shape (k,)
        Factors by which the initial weights have changed, for rows of each class and for other
        rows.
    mass : float
        Sum of the current weights of all classes.
    rows, classes, weight, scale :
        Arguments with which `LabelSearch.sums` computed `sums`.
    """

    sums: Sums
    totals: Sums
    for_it: FloatArray
    against: FloatArray
    mass: float
    rows: IntArray
    classes: IntArray
    weight: FloatArray
    scale: float

    @property
    def factor(self) -> FloatArray:
        """Factors (3, k): for rows of a class, for other rows, and their geometric mean."""
        return np.stack([self.for_it, self.against, np.sqrt(self.for_it * self.against)])

    @property
    def in_lanes(self) -> tuple[Sums, FloatArray]:
        """The totals and factors, in the layout of the kernel."""
        k = len(self.for_it)
        width = math.prod(kernels.lanes_of(k))
        totals, factor = np.zeros((2, width), dtype=np.int64), np.zeros((3, width))
        totals[0, :k], totals[0, k], totals[1, :k] = (
            self.totals[:k],
            self.totals[-1],
            self.totals[k:-1],
        )
        factor[:, :k] = self.factor
        return totals, factor

    def column(self, column: int) -> Sums:
        """Return the sums of each bin of a column (bins, 2 k + 1), in the order of `totals`."""
        k = len(self.for_it)
        blocks, lanes = kernels.lanes_of(k)
        every, own_sums = self.sums[column]
        bins = len(own_sums) // (blocks * lanes)
        every = every.reshape(blocks, bins, lanes).swapaxes(0, 1).reshape(bins, -1)
        parts = every[:, :k], own_sums.reshape(-1, bins)[:k].T, every[:, k : k + 1]
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class LevelCuts:
    """Splits of a categorical feature; in case of a tie, the first split is chosen.

    Attributes
    ----------
    score : ndarray of float64
        Scores for each side of missing values. Each split divides an order of the categories into
        two parts. With smoothing, the scores of one category against all others follow.
    sides : tuple of int
        The sides of missing values to try; -1 if there are none.
    orders : ndarray of int32, shape (m, categories)
        Orders of the categories at the node, as indices into `present`.
    present : ndarray of int32
        The categories at the node.
    n_levels : int
        Number of categories of the feature.
    """

    score: FloatArray
    sides: tuple[int, ...]
    orders: IntArray
    present: IntArray
    n_levels: int

    def of(self, cut: int) -> tuple[int, tuple[int, int]]:
        """Return the side of missing values, and bit masks of upper and absent categories."""
        side, k = divmod(cut, len(self.score) // len(self.sides))
        row, length = divmod(k, len(self.present))
        above = self.orders[row, length + 1 :] if row < len(self.orders) else np.array([length])
        members = sum(1 << level for level in self.present[above].tolist())
        absent = (1 << self.n_levels) - 1 - sum(1 << level for level in self.present.tolist())
        return self.sides[side], (members, absent)


def aligned(shape: tuple[int, ...], dtype: type[np.generic] = np.int64) -> Array:
    """Return an uninitialized array of 8-byte numbers that is aligned to a cache line."""
    n = math.prod(shape)
    room = np.empty(n + LINE // 8, dtype=dtype)
    start = -room.ctypes.data % LINE // 8
    return room[start : start + n].reshape(shape)


class LabelSearch(StumpSearch):
    """Search for the best multiclass stump."""

    def __init__(self, data: TrainingData, weak: ColumnLearner, workers: Workers) -> None:
        super().__init__(data, weak, workers)
        self._bins = most_bins(data.columns.n_bins, data.columns.special)
        d = data.columns.n_features
        self._levels = levels_among(self._special, 0, d)
        self._spare = np.empty(data.n_rows, dtype=np.int32)
        self._found = np.empty((d, 1 if self._special is None else 2, self._bins))
        #: Lower bounds on the scores within each bin; None if only bin edges are searched.
        self._within = np.empty_like(self._found) if data.exact else None
        assert data.problem.classes is not None
        self.n_labels = len(data.problem.classes)
        #: Whether sums of all classes are needed, because each side has a minimum weight.
        self.needs_all = weak.min_weight_fraction > 0

    def sums(self, rows: IntArray, weight: FloatArray, scale: float, classes: IntArray) -> Sums:
        """Return the sums of scaled weights for k of the classes, in the layout of `SearchNode`."""
        d = len(self._found)
        blocks, lanes = kernels.lanes_of(len(classes))
        try:
            sums = aligned((d, 2, blocks * lanes * self._bins))
        except MemoryError:
            size = 16 * d * blocks * lanes * self._bins
            raise MemoryError(
                f"y: the sums for {len(classes)} classes take {size} bytes per node, which exceeds "
                "the available memory; use fit_one_vs_rest, which trains one class at a time"
            ) from None
        work = partial(
            kernels.add_up,
            self._columns.codes,
            rows,
            weight,
            self.data.label,
            scale,
            classes,
            self._places(classes),
            sums,
        )
        self.workers.run_shared(work, d, 2, len(rows) * (blocks + 1))
        return sums

    def _places(self, classes: IntArray) -> IntArray:
        """Return the position of each class in `classes`, -1 for other classes."""
        place = np.full(self.n_labels, -1, dtype=np.int32)
        place[classes] = np.arange(len(classes), dtype=np.int32)
        return place

    def best_at(self, node: SearchNode) -> StumpCut | None:
        """Return the best stump, or None if no split is allowed."""
        scores, min_mass, lanes = self._found, self._min_weight_fraction * node.mass, node.in_lanes
        work = partial(
            kernels.search,
            node.sums,
            self._columns.n_bins,
            len(node.classes),
            *lanes,
            min_mass,
            self._min_samples_leaf,
            scores,
            bound=self._within,
        )
        if self._special is not None:
            work = partial(work, special=self._special)
        self.workers.run(work, len(scores), 1, self._bins * len(node.totals))
        sets = {j: self._cuts_of_levels(node, lanes, min_mass, j) for j in self._levels}
        by_column = scores.min(axis=(1, 2))
        for j, cuts in sets.items():
            by_column[j] = cuts.score.min(initial=math.inf)
        inside = None
        if self._within is not None:
            inside = partial(
                kernels.Inside,
                self._order,
                self._bin_start,
                self._at(node),
                node.weight,
                self.data.label,
                node.scale,
                node.classes,
                self._places(node.classes),
                node.sums,
                *lanes,
                min_mass,
                self._min_samples_leaf,
            )
            self._look_inside(inside, by_column, 0.5 * TIE * node.mass)
        limit = by_column.min() + 0.5 * TIE * node.mass
        if not limit < math.inf:
            return None
        column = int(np.argmax(by_column <= limit))
        if column in sets:
            side, levels = sets[column].of(int(np.argmax(sets[column].score <= limit)))
            return StumpCut(column, (), 0, 0, side=side, levels=levels)
        return self._located(node, column, float(limit), inside)

    def _at(self, node: SearchNode) -> NDArray[np.uint8]:
        """Return a mask of the rows at a node."""
        is_at = np.zeros(self._n_rows, dtype=np.uint8)
        is_at[node.rows] = 1
        return is_at

    def _look_inside(
        self, inside: Callable[[], kernels.Inside], by_column: FloatArray, tie: float
    ) -> None:
        """Search within the bins, and update the lowest scores of bins and columns."""
        assert self._within is not None
        best, within, inside_scores = (
            float(by_column.min()),
            self._within,
            np.empty_like(self._within),
        )

        def work(start: int, stop: int) -> None:
            inside().search(self._columns.n_bins, within, best, tie, inside_scores, start, stop)

        self.workers.run(work, len(inside_scores), 1, self._n_rows)
        np.minimum(self._found, inside_scores, out=self._found)
        np.minimum(by_column, inside_scores.min(axis=(1, 2)), out=by_column)

    def _located(
        self,
        node: SearchNode,
        column: int,
        limit: float,
        inside: Callable[[], kernels.Inside] | None,
    ) -> StumpCut:
        """Return the first split of a column with a score of at most `limit`."""
        of_column = self._found[column]
        look, cut_bin = divmod(int(np.argmax(of_column.ravel() <= limit)), self._bins)
        side = 1 - look if self._missing(node, column) is not None else -1
        last, starts = int(self._columns.n_bins[column]), self._bin_start[column]
        position = -1
        if inside is not None:
            position = inside().first(column, cut_bin, last if look else -1, limit)
        if position < 0:
            position = int(starts[cut_bin + 1])
        if side == 1 and not node.column(column)[cut_bin + 1 : last, -1].any():
            rows = self._order[column, position : starts[cut_bin + 1]] & ROW_MASK
            if not np.isin(rows, node.rows).any():
                cut_bin, position = (
                    last - 1,
                    int(starts[last]),
                )  # only missing values are above the split
        return StumpCut(column, (), cut_bin, position, side=side)

    def _missing(self, node: SearchNode, column: int) -> Sums | None:
        """Return the sums of the rows with a missing value, or None if there are none."""
        if not has(self._special, HOLES, column):
            return None
        sums: Sums = node.column(column)[self._columns.n_bins[column]]
        return sums if sums[-1] else None

    def _cuts_of_levels(
        self, node: SearchNode, lanes: tuple[Sums, FloatArray], min_mass: float, column: int
    ) -> LevelCuts:
        """Return the splits of a categorical feature."""
        n, k = int(self._columns.n_bins[column]), len(node.classes)
        present, order = np.empty(n, dtype=np.int32), np.empty((k, n), dtype=np.int32)
        score = np.empty(2 * (k + 1) * n)
        n_here, n_orders, n_sides = kernels.search_levels(
            node.sums[column],
            n,
            k,
            *lanes,
            min_mass,
            self._min_samples_leaf,
            self._smoothing,
            has(self._special, HOLES, column),
            present,
            order,
            score,
        )
        size = n_here * (n_orders + (self._smoothing > 0))
        sides = (1, 0) if n_sides == 2 else (-1,)
        return LevelCuts(
            score[: n_sides * size], sides, order[:n_orders, :n_here], present[:n_here], n
        )

    def part(self, cut: StumpCut, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return the rows below a split and the rows above, each in their original order."""
        parted = rows.copy()
        codes, sides = self._columns.codes[cut.feature], self.side_of_codes(cut)
        if self._divides_a_bin(cut):
            codes, sides = self.sides_of_rows(cut), np.arange(MAX_BINS, dtype=np.uint8)
        n_below = kernels.part(parted, codes, sides, self._spare)
        return parted[:n_below], parted[n_below:]

    def _divides_a_bin(self, cut: StumpCut) -> bool:
        end = int(self._bin_start[cut.feature, cut.cut_bin + 1])
        return cut.levels is None and cut.position < end

    def sides_of_rows(self, cut: StumpCut) -> NDArray[np.uint8]:
        """Return the side of each row, (n,)."""
        sides: NDArray[np.uint8] = self.side_of_codes(cut).take(self._columns.codes[cut.feature])
        if self._divides_a_bin(cut):
            end = self._bin_start[cut.feature, cut.cut_bin + 1]
            sides[self._order[cut.feature, cut.position : end] & ROW_MASK] = 1
        return sides


def refusal(weak: Any, observation: Any) -> str:
    """Return the name of the option that requires a binary problem, or an empty string."""
    if not observation.takes_many:
        return f"with observation={type(observation).__name__}"
    if type(weak) not in (Stump, Affine):
        return f"with weak_learner={type(weak).__name__}"
    if weak.criterion != "kearns_mansour":
        return f"with criterion={weak.criterion!r}"
    return ""
