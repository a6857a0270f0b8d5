"""The best stump for rows that have a weight for each of J labels (AdaBoost.MH)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import labels as kernels
from pboost.data.special_columns import HOLES, has, levels_among, most_bins
from pboost.data.training import TrainingData
from pboost.threads import Workers
from pboost.values import FloatArray, IntArray
from pboost.weak.stump_search import Affine, ColumnLearner, Stump, StumpCut, StumpSearch

#: Share of the mass within which two cuts are equally good, as in `criteria.pxd`.
TIE = 1e-12
Sums = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """What a search needs of a node.

    Attributes
    ----------
    sums : ndarray of int64, shape (d, bins, 2 k + 1)
        For each bin of a column the weights, at the root of the tree, of k labels: those of all
        rows, those of the rows of each label, and the number of rows.
    whole : ndarray of int64, shape (2 k + 1,)
        The same of all rows.
    for_it, against : ndarray of float64, shape (k,)
        By what the weights of the rows of a label, and of the others, have been multiplied since.
    mass : float
        Sum of all weights now, of all labels.
    """

    sums: Sums
    whole: Sums
    for_it: FloatArray
    against: FloatArray
    mass: float

    @property
    def factor(self) -> FloatArray:
        """Factors as the kernel reads them, (3, k)."""
        return np.stack([self.for_it, self.against, np.sqrt(self.for_it * self.against)])


@dataclass(frozen=True, slots=True, eq=False)
class LevelCuts:
    """Cuts of a column of levels, in the order in which of equal ones the first is taken.

    Attributes
    ----------
    score : ndarray of float64
        For each side of missing rows: of the prefixes of each order, and then, perhaps, of each
        level above the others.
    sides : tuple of int
        The sides of missing rows; -1 where there are none.
    orders : ndarray of int, shape (m, levels)
        Orders of the levels at the node, as places in `here`.
    here : ndarray of int
        The levels at the node.
    n_levels : int
        Number of all levels.
    """

    score: FloatArray
    sides: tuple[int, ...]
    orders: NDArray[np.intp]
    here: NDArray[np.intp]
    n_levels: int

    def of(self, cut: int) -> tuple[int, tuple[int, int]]:
        """Return the side of missing rows, and the levels above and those that are not here."""
        side, k = divmod(cut, len(self.score) // len(self.sides))
        row, length = divmod(k, len(self.here))
        above = self.orders[row, length + 1 :] if row < len(self.orders) else np.array([length])
        members = sum(1 << level for level in self.here[above].tolist())
        absent = (1 << self.n_levels) - 1 - sum(1 << level for level in self.here.tolist())
        return self.sides[side], (members, absent)


class LabelSearch(StumpSearch):
    """Search over one set of columns."""

    def __init__(self, data: TrainingData, weak: ColumnLearner, workers: Workers) -> None:
        super().__init__(data, weak, workers)
        self._bins = most_bins(data.columns.n_bins, data.columns.special)
        d = data.columns.n_features
        self._levels = levels_among(self._special, 0, d)
        self._found = np.empty((d, 1 if self._special is None else 2, self._bins))
        #: Whether sums are those of all labels: each side has its share of the whole mass.
        self.needs_all = weak.min_weight > 0

    def sums(self, rows: IntArray, fixed: NDArray[np.int64], labels: NDArray[np.intp]) -> Sums:
        """Return the sums (d, bins, 2 k + 1) of some rows for k of the labels."""
        d, n_labels = len(self._found), fixed.shape[1]
        weight = fixed.take(rows, axis=0)
        if len(labels) < n_labels:
            weight = weight.take(labels, axis=1)
        place = np.full(n_labels, -1, dtype=np.int32)
        place[labels] = np.arange(len(labels), dtype=np.int32)
        own = place[self.data.label[rows]]
        sums = np.empty((d, self._bins, 2 * len(labels) + 1), dtype=np.int64)
        work = partial(kernels.add_up, self._columns.codes, rows, weight, own, sums)
        self.workers.run(work, d, 4, len(rows) * (len(labels) + 2))
        return sums

    def best_at(self, node: Node) -> StumpCut | None:
        """Return the best stump, None where no cut is legal."""
        found, d = self._found, len(self._found)
        least = self._min_weight * node.mass
        work = partial(
            kernels.search, node.sums, self._columns.n_bins, node.whole, node.factor, least,
            self._min_leaf, found,
        )  # fmt: skip
        if self._special is not None:
            work = partial(work, special=self._special)
        self.workers.run(work, d, 1, self._bins * len(node.whole))
        sets = {j: self._cuts_of_levels(node, j, least) for j in self._levels}
        by_column = found.min(axis=(1, 2))
        for j, cuts in sets.items():
            by_column[j] = cuts.score.min(initial=math.inf)
        limit = by_column.min() + 0.5 * TIE * node.mass
        if not limit < math.inf:
            return None
        column = int(np.argmax(by_column <= limit))
        if column in sets:
            side, levels = sets[column].of(int(np.argmax(sets[column].score <= limit)))
            return StumpCut(column, (), 0, 0, side=side, levels=levels)
        look, cut_bin = divmod(int(np.argmax(found[column].ravel() <= limit)), self._bins)
        side = 1 - look if self._missing(node, column) is not None else -1
        last = int(self._columns.n_bins[column])
        if side == 1 and not node.sums[column, cut_bin + 1 : last, -1].any():
            cut_bin = last - 1  # only missing rows lie above
        position = int(self._bin_start[column, cut_bin + 1])
        return StumpCut(column, (), cut_bin, position, side=side)

    def _missing(self, node: Node, column: int) -> Sums | None:
        """Return the sums of the rows without a value, None where there are none."""
        if not has(self._special, HOLES, column):
            return None
        found: Sums = node.sums[column, self._columns.n_bins[column]]
        return found if found[-1] else None

    def _cuts_of_levels(self, node: Node, column: int, least: float) -> LevelCuts:
        """Return the cuts of a column of levels.

        Levels are put in order by the share of a label, and prefixes tried, for one label after
        the other; with smoothing each level against the rest, too.
        """
        sums = node.sums[column, : self._columns.n_bins[column]]
        here, k = np.flatnonzero(sums[:, -1]), len(node.for_it)
        missing, known = self._missing(node, column), sums[here]
        own, whole = node.whole[k : 2 * k], node.whole[:k]
        mixed = np.flatnonzero((own > 0) & (own < whole))
        orders = np.argsort(self._shares(node, known)[:, mixed], axis=0, kind="stable").T
        left = np.cumsum(known[orders], axis=1).reshape(-1, len(node.whole))
        if self._smoothing > 0:
            left = np.concatenate([left, known.sum(axis=0) - known])
        sides: tuple[int, ...] = (-1,)
        parts = [left]
        if missing is not None:
            sides, parts = (1, 0), [left, left + missing]
        score = np.concatenate([self._scores(node, part, least) for part in parts])
        return LevelCuts(score, sides, orders, here, len(sums))

    def _shares(self, node: Node, sums: Sums) -> FloatArray:
        """Return the shares (levels, k) of labels by which levels are put in order, in 2**-40."""
        k = len(node.for_it)

        def masses(sums: Sums) -> tuple[FloatArray, FloatArray]:
            own = node.for_it * sums[..., k : 2 * k]
            return own, own + node.against * (sums[..., :k] - sums[..., k : 2 * k])

        (own, mass), (of_node, whole) = masses(sums), masses(node.whole)
        pull = self._smoothing * whole / node.whole[-1]
        share = (own + pull * (of_node / whole)) / np.maximum(mass + pull, 1e-300)
        return np.rint(share * 2.0**40)  # equal but for rounding is equal

    def _scores(self, node: Node, left: Sums, least: float) -> FloatArray:
        """Return what the kernel would of cuts with these sums below (m, 2 k + 1)."""
        k, right = len(node.for_it), node.whole - left
        score = np.zeros(len(left))
        masses = []
        roots = []
        for part in (left, right):
            own, other = part[:, k : 2 * k], part[:, :k] - part[:, k : 2 * k]
            masses.append((node.for_it * own + node.against * other).sum(axis=1))
            roots.append(np.sqrt(own.astype(np.float64) * other.astype(np.float64)))
        for j, both in enumerate(node.factor[2]):
            score += both * (roots[0][:, j] + roots[1][:, j])
        is_legal = np.minimum(left[:, -1], right[:, -1]) >= self._min_leaf
        if least > 0:
            is_legal &= (masses[0] >= least) & (masses[1] >= least)
        return np.where(is_legal, score, math.inf)

    def is_above(self, cut: StumpCut, rows: IntArray) -> NDArray[np.bool_]:
        """Return whether rows lie above a cut."""
        codes = self._columns.codes[cut.feature].take(rows)
        if cut.levels is None and cut.side < 0:
            return codes > cut.cut_bin
        return self._side_of_codes(cut)[codes] > 0


def refusal(weak: Any) -> str:
    """Return why a weak learner takes two labels only, nothing if it takes more."""
    if type(weak) not in (Stump, Affine):
        return f"with weak={type(weak).__name__}"
    if weak.criterion != "kearns-mansour":
        return f"with criterion={weak.criterion!r}"
    if weak.search == "exact":
        return 'with search="exact"'
    return 'with missing="both"' if weak.goes_both else ""
