"""The best cut of columns whose missing rows go both ways.

A row without a value takes exit 1 with probability q, the share of the known rows' reach above the
cut. Cuts are scored with the masses of all rows, those of the missing ones divided so: what a
column does not know it cannot separate, and columns with and without holes compare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import both
from pboost.data.columns import MAX_BINS
from pboost.data.special_columns import HOLES, LEVELS, has
from pboost.data.training import TrainingData
from pboost.threads import Workers
from pboost.values import FloatArray, IntArray
from pboost.weak.smoothed_levels import pull_of, smoothed_away

#: What kernels read as limits, see `StumpSearch._limits`.
Limits: TypeAlias = tuple[int, int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Cuts:
    """The cuts of one column, in the order in which of equal ones the first is taken.

    Attributes
    ----------
    below : ndarray of int64, shape (3, k)
        Masses of the known rows below: class -1, class +1, reach. The last are those of all.
    count : ndarray of int32, shape (k,)
        Number of known rows below.
    levels : list of int or None
        Of a column of levels those above each cut, as bits; of a few more cuts besides.
    absent : int
        The levels without mass.
    """

    below: NDArray[np.int64]
    count: IntArray
    levels: list[int] | None = None
    absent: int = 0


#: The best cut: its column; how many known rows lie below, or the place of its bin; q; and sets of
#: levels, those above and those without mass.
Found: TypeAlias = tuple[int, int, float, tuple[int, int] | None]


class BothWays:
    """Search of the columns with holes, whose missing rows go both ways.

    Attributes
    ----------
    columns : list of int
        These columns.
    others : list of (int, int)
        Ranges of the others.
    """

    def __init__(self, data: TrainingData, smoothing: float, workers: Workers) -> None:
        assert data.columns.special is not None
        assert data.columns.bin_start is not None
        self._data, self._smoothing, self._workers = data, smoothing, workers
        self._special, self._start = data.columns.special, data.columns.bin_start
        self._codes, self._n_bins = data.columns.codes, data.columns.n_bins
        is_holed = (self._special & HOLES) > 0
        self.columns = np.flatnonzero(is_holed).tolist()
        ends = np.flatnonzero(np.diff(is_holed, prepend=True, append=True)).tolist()
        self.others = list(zip(ends[::2], ends[1::2], strict=True))
        #: Reach of the rows at the end of a chain, which all reach.
        self.start = data.fixed.copy()

    def find(
        self, weight: NDArray[np.int64], reach: NDArray[np.int64], limits: Limits, best: FloatArray
    ) -> Found | None:
        """Return the best cut; None if that is of a column without holes, or there is none.

        `best` (2 d,) are the least scores of all others, to which those of these columns are added.
        """

        def work(first: int, last: int) -> None:
            for feature in self.columns[first:last]:
                scores = self._scores(self._cuts(feature, weight, reach, limits), limits)
                best[feature] = scores.min(initial=math.inf)

        self._workers.run(work, len(self.columns), cells=4 * len(weight))
        least = float(best.min())
        limit = both.score_limit(limits[0], least, float(limits[3]) + float(limits[4]))
        feature = int(np.argmax(best <= limit))
        if least == math.inf or feature not in self.columns:
            return None
        cuts = self._cuts(feature, weight, reach, limits)
        place = int(np.argmax(self._scores(cuts, limits) <= limit))
        r, known = cuts.below[2, [place, -1]].tolist()
        share = (known - r) / known
        if cuts.levels is not None:
            return feature, place, share, (cuts.levels[place], cuts.absent)
        return feature, int(cuts.count[place]) if self._data.exact else place, share, None

    def _scores(self, cuts: Cuts, limits: Limits) -> FloatArray:
        criterion, _, _, negative, positive, min_weight, min_leaf = limits
        k = len(cuts.count)
        scores = np.empty(k)
        both.score_cuts(
            criterion, cuts.below, cuts.count, k, negative, positive, min_weight, min_leaf, scores
        )
        return scores[:-1]

    def _cuts(
        self, feature: int, weight: NDArray[np.int64], reach: NDArray[np.int64], limits: Limits
    ) -> Cuts:
        """Return the cuts of a column between values, bins or levels."""
        n_bins, middle = int(self._n_bins[feature]), self._data.n_negative
        starts = self._start[feature, : n_bins + 1]
        if self._data.exact and not has(self._special, LEVELS, feature):
            order = self._data.order[feature, : starts[-1]]
            below, count = np.empty((3, len(order)), np.int64), np.empty(len(order), np.int32)
            k = both.sorted_cuts(order, weight, reach, middle, below, count)
            return Cuts(np.ascontiguousarray(below[:, :k]), count[:k]) if k else _none()
        mass = np.empty((3, MAX_BINS), dtype=np.int64)
        both.masses_by_code(self._codes[feature], weight, reach, middle, mass)
        mass = mass[:, :n_bins]
        count = np.diff(starts)
        if has(self._special, LEVELS, feature):
            return self._sets(mass, count, limits)
        if not n_bins:
            return _none()
        return Cuts(np.cumsum(mass, axis=1), np.cumsum(count, dtype=np.int32))

    def _sets(self, mass: NDArray[np.int64], count: IntArray, limits: Limits) -> Cuts:
        """Return the cuts of a column by sets of levels: ends of their order by the share of +1.

        Each level stands for its part of the missing rows, too. Where shares are smoothed, each
        level is tried against the others besides.
        """
        present = np.flatnonzero(mass[0] + mass[1] > 0)
        if not len(present):
            return _none()
        absent = sum(1 << b for b in range(len(count)) if b not in set(present.tolist()))
        mass, count = mass[:, present], count[present]
        _, n, _, negative, positive, _, _ = limits
        known = mass.sum(axis=1)
        part = mass[2] / max(int(known[2]), 1)
        up = mass[1] + part * (positive - int(known[1]))
        down = mass[0] + part * (negative - int(known[0]))
        whole = negative, positive
        pull, node = pull_of(self._smoothing, down, up, whole, n), positive / (negative + positive)
        share = (up + pull * node) / (up + down + pull)
        order = np.argsort(share, kind="stable")
        above = [1 << b for b in present[order].tolist()]
        tail = [sum(above[i + 1 :]) for i in range(len(above))]
        below, total = np.cumsum(mass[:, order], axis=1), count.sum()
        counts = np.cumsum(count[order])
        if pull > 0:
            single = known[:, None] - mass[:, order]
            below = np.column_stack([below[:, :-1], single, known])
            counts = np.concatenate([counts[:-1], total - count[order], [total]])
            tail = [*tail[:-1], *above, 0]
            # What is scored are smoothed masses of as many rows.
            apart = ((up + down) * (share - node))[order]
            left = np.concatenate([np.cumsum(apart)[:-1], apart.sum() - apart, [0.0]])
            missing = below[2] / max(int(known[2]), 1)
            high = below[1] + missing * (positive - int(known[1]))
            low = below[0] + missing * (negative - int(known[0]))
            moved = smoothed_away(left, apart.sum(), low, high, whole)
            moved = np.clip(
                moved,
                -np.minimum(below[1], known[0] - below[0]),
                np.minimum(below[0], known[1] - below[1]),
            )
            moved[-1] = 0
            below[0] -= moved
            below[1] += moved
        return Cuts(np.ascontiguousarray(below), counts.astype(np.int32), tail, absent)


def _none() -> Cuts:
    """Return the cuts of a column without known rows."""
    return Cuts(np.zeros((3, 1), dtype=np.int64), np.zeros(1, dtype=np.int32))


def holed(data: TrainingData) -> bool:
    """Return whether nodes compare columns of which some have holes."""
    special = data.columns.special
    return data.inputs is None and special is not None and bool((special & HOLES).any())
