"""Exact bin edges from the counts of rows in batches or partitions.

Each value is mapped to an integer key in the same order. A cell is a range of keys with the same
leading bits. The rows of each cell are counted, and the counts of partitions are added. Cells in
which a bin may end are divided and counted again until the bin edges are exact. The result is equal
to `binning.bin_columns` for a sorted column.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import binning
from pboost.data.columns.columns import MAX_BINS, BinnedColumns, made
from pboost.data.columns.prebuilt import MOST_KNOWN, ROW_MASK
from pboost.data.read.table import Table
from pboost.threads import Workers, check_stop
from pboost.values import Array, FloatArray, IntArray

#: Approximate number of cells of a feature that are counted in one pass.
CELLS = 1 << 18
#: A cell is divided by at least this number of bits.
LEAST_BITS = 2
_SIGN = np.uint64(1 << 63)
#: A bin is full at this fraction of its target weight, as in `binning.bin_columns`.
_SLACK = 1.0 - 1e-9


class Keys(NamedTuple):
    """Sorted keys of some rows of a feature, without missing values.

    Attributes
    ----------
    key : ndarray of uint64
        Integers in the same order as the values.
    mass : ndarray of int64, or None
        Weights of the rows in fixed point. None if all are 1.
    """

    key: NDArray[np.uint64]
    mass: NDArray[np.int64] | None


class Cells(NamedTuple):
    """Nonempty cells in increasing order, with their key ranges, row counts and weights."""

    lowest: NDArray[np.uint64]
    highest: NDArray[np.uint64]
    rows: NDArray[np.int64]
    mass: NDArray[np.int64]


class CellQuery(NamedTuple):
    """Cells to divide into smaller cells, whose rows are counted in the next pass.

    Attributes
    ----------
    lowest, highest : ndarray of uint64, shape (m,)
        First and last key of each cell.
    to : ndarray of uint8, shape (m,)
        Number of low key bits that vary within a smaller cell.
    """

    lowest: NDArray[np.uint64]
    highest: NDArray[np.uint64]
    to: NDArray[np.uint8]


def sorted_keys(values: Array, mass: NDArray[np.int64] | None) -> Keys:
    """Return the sorted keys of values, without NaN, and their weights."""
    every = np.asarray(values, dtype=np.float64) + 0.0  # turns -0.0 into 0.0
    rows = _order(every)
    key = every[rows].view(np.uint64)
    key ^= (key.view(np.int64) >> 63).view(np.uint64) | _SIGN
    return Keys(key, None if mass is None else mass[rows])


def _order(values: FloatArray) -> IntArray:
    """Return the rows in increasing order of value, without missing values."""
    n = len(values)
    order, missing = np.empty((1, n), dtype=np.int32), np.zeros(1, dtype=np.int32)
    items, spare = np.empty((2, n), dtype=np.uint64)
    if binning.sort_columns(values[None], order, items, spare, missing) >= 0:
        raise ValueError("X: expected finite numbers or missing values, got an infinity")
    known_rows: IntArray = order[0, : n - int(missing[0])] & ROW_MASK
    return known_rows


def _values(key: NDArray[np.uint64]) -> FloatArray:
    """Convert keys to values."""
    return np.where(key & _SIGN, key ^ _SIGN, ~key).view(np.float64)


def count_cells(keys: Keys, question: CellQuery) -> Cells:
    """Count the rows of a partition in each cell of a query."""
    key, mass = keys
    start = np.searchsorted(key, question.lowest, "left")
    size = np.searchsorted(key, question.highest, "right") - start
    n = int(size.sum())
    if n < len(key):
        before = np.cumsum(size) - size
        at = np.repeat(start - before, size) + np.arange(n)
        key, mass = key[at], None if mass is None else mass[at]
    first, last = _runs(key, np.repeat(np.arange(len(size), dtype=np.int32), size), question)
    rows = last + 1 - first
    return Cells(key[first], key[last], rows, rows if mass is None else _sums(mass, first))


def joined_cells(parts: Sequence[Cells], question: CellQuery) -> Cells:
    """Add up the counts of all partitions."""
    lowest, highest, rows, mass = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = _order(_values(lowest))
    lowest = lowest[order]
    cell = np.searchsorted(question.lowest, lowest, "right") - 1
    first, _ = _runs(lowest, cell, question)
    highest = np.maximum.reduceat(highest[order], first) if len(first) else highest
    return Cells(lowest[first], highest, _sums(rows[order], first), _sums(mass[order], first))


def _runs(
    key: NDArray[np.uint64], cell: IntArray | NDArray[np.intp], question: CellQuery
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and last position of the keys of each smaller cell."""
    prefix = key >> (question.to[0] if len(question.to) == 1 else question.to[cell])
    is_new = prefix[1:] != prefix[:-1]
    if len(question.to) > 1:
        is_new |= cell[1:] != cell[:-1]
    border = np.flatnonzero(is_new).astype(np.int64)
    some = min(len(key), 1)  # 0 if there are no keys
    return (
        np.concatenate([np.zeros(some, np.int64), border + 1]),
        np.concatenate([border, np.full(some, len(key) - 1, np.int64)]),
    )


def _sums(values: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.add.reduceat(values, first) if len(first) else values[:0]


class EdgeSearch:
    """Search for the bin edges of a feature by repeated counting.

    Parameters
    ----------
    max_bins : int
        Maximum number of bins, not counting the bin of missing values. It can be changed before
        the first call of `take`.
    is_weighed : bool
        Whether rows have weights.
    cells : int, optional
        Approximate number of cells per pass. Fewer cells need more passes.
    """

    def __init__(self, max_bins: int, is_weighed: bool, cells: int | None = None) -> None:
        self.max_bins, self._is_weighed = max_bins, is_weighed
        self._at_once = CELLS if cells is None else cells
        first, last = np.zeros(1, dtype=np.uint64), np.array([2**64 - 1], dtype=np.uint64)
        none = np.zeros(1, dtype=np.int64)
        self._cells = Cells(first, last, none, none)
        to = 64 - (self._at_once.bit_length() - 1)
        self._asked: CellQuery | None = CellQuery(first, last, np.array([to], dtype=np.uint8))
        self._cuts = False
        #: Lower and upper limits of the cumulative weight at the end of each bin.
        self._least, self._last = [0] * MAX_BINS, [2**63] * MAX_BINS

    def question(self) -> CellQuery | None:
        """Return the cells to count next, or None if all edges are known."""
        return self._asked

    def take(self, counted: Cells) -> None:
        """Store the requested counts, summed over all partitions."""
        asked, cells = self._asked, self._cells
        assert asked is not None
        kept = ~np.isin(cells.lowest, asked.lowest)
        every = [
            np.concatenate([before[kept], new]) for before, new in zip(cells, counted, strict=True)
        ]
        order = np.argsort(every[0])
        self._cells = Cells(*(array[order] for array in every))
        self._ask()

    def _ask(self) -> None:
        """Select the cells to divide and count next."""
        lowest, highest, rows, _ = self._cells
        is_one = (rows == 1) | (lowest == highest)
        self._cuts = self._cuts or len(is_one) > self.max_bins
        active = ~is_one
        if self._cuts:
            may_end = self._may_end(is_one)
            kept = self._join(~may_end)
            active = (active & may_end)[kept]
        if not active.any():
            self._asked = None
            return
        lowest, highest, rows, _ = (array[active] for array in self._cells)
        low = np.frexp((lowest ^ highest).astype(np.float64))[1].astype(np.int64)
        bits = next(
            (
                k
                for k in range(64, LEAST_BITS, -1)
                if np.minimum(rows, 2.0 ** np.minimum(low, k)).sum() <= self._at_once
            ),
            LEAST_BITS,
        )
        to = np.where(rows <= 2.0**bits, 0, np.maximum(low - bits, 0))
        self._asked = CellQuery(lowest, highest, to.astype(np.uint8))

    def _target(self, total: int, held: int, left: int) -> tuple[int, int]:
        """Return bounds on the cumulative weight at which a bin is full."""
        rest = total - held
        if not self._is_weighed:
            target = held + _wanted_rows(rest, left)
            return target, target
        want, rounding = rest * (10**9 - 1) // (left * 10**9), (rest >> 48) + 2
        return held + max(0, want - rounding), held + want + rounding

    def _may_end(self, is_one: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of the cells in which a bin may end."""
        below = np.cumsum(self._cells.mass)
        n, total = len(below), int(below[-1])
        change = np.zeros(n + 1, dtype=np.int64)
        first = last = held = max_count = 0
        for b in range(self.max_bins - 1):
            left = self.max_bins - b
            self._least[b] = max(self._least[b], self._target(total, held, left)[0])
            self._last[b] = min(self._last[b], self._target(total, max_count, left)[1])
            first = max(first, int(below.searchsorted(self._least[b])))
            last = min(max(last, int(below.searchsorted(self._last[b]))), n - 1)
            if first >= n:
                break
            change[first] += 1
            change[last + 1] -= 1
            held = max(held, self._least[b])
            if is_one[first]:
                held = int(below[first])
                first += 1
            max_count = int(below[last])
            last += 1
        may_end: NDArray[np.bool_] = np.cumsum(change[:-1]) > 0
        return may_end

    def _join(self, is_dull: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Merge neighboring cells in which no bin ends; return the first cell of each group."""
        starts = ~is_dull
        starts[0] = True
        starts[1:] |= is_dull[1:] != is_dull[:-1]
        at = np.flatnonzero(starts)
        lowest, highest, rows, mass = self._cells
        last = np.append(at[1:], len(starts)) - 1
        self._cells = Cells(
            lowest[at], highest[last], np.add.reduceat(rows, at), np.add.reduceat(mass, at)
        )
        return at

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Return the last value below and the first value above each edge."""
        assert self._asked is None
        lowest, highest, _, _ = self._cells
        last = np.array(self._ends() if self._cuts else range(len(lowest)), dtype=np.intp)[:-1]
        return _values(highest[last]), _values(lowest[last + 1])

    def _ends(self) -> list[int]:
        """Return the last cell of each bin, as in `binning.bin_columns` for a sorted column."""
        below: list[int] = np.cumsum(self._cells.mass).tolist()
        n, total = len(below), below[-1]
        ends: list[int] = []
        start = held = 0
        while start < n:
            left = self.max_bins - len(ends)
            if left == 1:
                end = n - 1
            elif not self._is_weighed:
                end = bisect_left(below, held + _wanted_rows(total - held, left), start)
            else:
                end = self._weighed_end(below, start, held, left)
            ends.append(end)
            start, held = end + 1, below[end]
        return ends

    @staticmethod
    def _weighed_end(below: Sequence[int], start: int, held: int, left: int) -> int:
        want = float(below[-1] - held) / left * _SLACK
        cells = range(start, len(below) - 1)
        return start + bisect_left(cells, True, key=lambda k: float(below[k] - held) >= want)


def _wanted_rows(rest: int, left: int) -> int:
    return max(1, math.ceil(rest / left * _SLACK))


def most_known(max_bins: int, has_missing: object) -> int:
    """Return the maximum number of bins, not counting the bin of missing values."""
    return min(max_bins, MOST_KNOWN) if has_missing else max_bins


def level_ends(n_levels: int) -> tuple[FloatArray, FloatArray]:
    """Return the values below and above each bin edge of a categorical feature."""
    level = np.arange(n_levels, dtype=np.float64)
    return level[:-1], level[1:]


def bins_between(
    ends: Sequence[tuple[FloatArray, FloatArray]],
    names: tuple[str, ...] | None,
    table: Table | None,
) -> BinnedColumns:
    """Build `BinnedColumns` with no rows from the values below and above each bin edge."""
    d = len(ends)
    n_bins = np.array([len(below) + 1 for below, _ in ends], dtype=np.int32)
    lower, upper = np.zeros((2, d, int(n_bins.max())))
    for j, (below, above) in enumerate(ends):
        upper[j, : len(below)] = below
        lower[j, 1 : len(above) + 1] = above
        if len(below):  # the minimum and the maximum are set when rows are encoded
            lower[j, 0], upper[j, len(below)] = below[0], above[-1]
    none = np.empty((d, 0), dtype=np.uint8)
    return made(BinnedColumns, none, n_bins, lower, upper, names, None, table, None)


#: Maximum number of cells of all features in a pass, and minimum number per feature.
MOST_CELLS, LEAST_CELLS = 1 << 23, 1 << 14


class BatchCounts:
    """Counts of rows for the edge searches of all features, collected pass by pass.

    Parameters
    ----------
    n_levels : ndarray of int32, shape (d,)
        Number of categories of each feature, 0 for numeric features. Each category has a bin.
    is_weighed : bool
        Whether rows have weights.
    """

    def __init__(self, n_levels: IntArray, is_weighed: bool) -> None:
        self._n_levels = n_levels
        numbers = np.flatnonzero(n_levels == 0).tolist()
        cells = min(CELLS, max(LEAST_CELLS, MOST_CELLS // max(len(numbers), 1)))
        self._searches = {j: EdgeSearch(MAX_BINS, is_weighed, cells) for j in numbers}
        self._start()

    def _start(self) -> None:
        questions = {j: search.question() for j, search in self._searches.items()}
        self._sums = {j: _Sum(asked) for j, asked in questions.items() if asked is not None}

    def limit(self, max_bins: int, has_missing: NDArray[np.bool_]) -> None:
        """Set the maximum number of bins after features with missing values are known."""
        for j, search in self._searches.items():
            search.max_bins = most_known(max_bins, has_missing[j])

    @property
    def asked(self) -> dict[int, CellQuery]:
        """Cells to count in this pass, by feature."""
        return {j: counted.asked for j, counted in self._sums.items()}

    def join(self, counted: Mapping[int, Cells]) -> None:
        """Add counts from another process."""
        for j, cells in counted.items():
            self._sums[j].add(cells)

    def add(self, values: Array, mass: NDArray[np.int64] | None, workers: Workers) -> None:
        """Count the rows of a batch."""
        asked = list(self._sums)

        def work(first: int, last: int) -> None:
            for j in asked[first:last]:
                check_stop()
                self._sums[j].add(count_cells(sorted_keys(values[:, j], mass), self._sums[j].asked))

        workers.run_each(work, len(asked))

    def take(self) -> bool:
        """Finish a pass; return whether another pass is needed."""
        for j, counted in self._sums.items():
            self._searches[j].take(counted.merged())
        self._start()
        return len(self._sums) > 0

    def bins(self, names: tuple[str, ...] | None, table: Table | None) -> BinnedColumns:
        """Return `BinnedColumns` with the exact edges and without rows."""
        ends = [
            self._searches[j].ends() if j in self._searches else level_ends(n)
            for j, n in enumerate(self._n_levels.tolist())
        ]
        return bins_between(ends, names, table)


class _Sum:
    """Sum of the counts of batches for one feature."""

    def __init__(self, asked: CellQuery) -> None:
        self.asked = asked
        self._parts: list[Cells] = []
        self._n_new = 0

    def add(self, cells: Cells) -> None:
        self._parts.append(cells)
        self._n_new += len(cells.rows)
        # Merge when the counts have doubled, so that each count is merged only a few times.
        if self._n_new > max(LEAST_CELLS, 2 * len(self._parts[0].rows)):
            self._parts, self._n_new = [self.merged()], 0

    def merged(self) -> Cells:
        return joined_cells(self._parts, self.asked)
