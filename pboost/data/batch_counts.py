"""Edges of bins from all rows of a table that is read in parts: what all columns count."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pboost.data import exact_edges
from pboost.data.columns import MAX_BINS, BinnedColumns
from pboost.data.exact_edges import (
    Cells,
    EdgeSearch,
    Question,
    bins_between,
    count_cells,
    joined_cells,
    level_ends,
    most_known,
    sorted_keys,
)
from pboost.data.table import Table
from pboost.threads import Workers, check_stop
from pboost.values import Array, IntArray

#: Cells of all columns that are counted in a pass, and of one at least: of more columns each has
#: fewer, and there are more passes.
MOST_CELLS, LEAST_CELLS = 1 << 23, 1 << 14


class BatchCounts:
    """Counts the rows of batches, or of partitions, for the searches of all columns, pass by pass.

    Parameters
    ----------
    n_levels : ndarray of int32, shape (d,)
        Number of levels of columns, which have a bin each; 0 of numbers, which are counted.
    is_weighed : bool
        Whether rows have masses.
    """

    def __init__(self, n_levels: IntArray, is_weighed: bool) -> None:
        self._n_levels = n_levels
        numbers = np.flatnonzero(n_levels == 0).tolist()
        cells = min(exact_edges.CELLS, max(LEAST_CELLS, MOST_CELLS // max(len(numbers), 1)))
        self._searches = {j: EdgeSearch(MAX_BINS, is_weighed, cells) for j in numbers}
        self._start()

    def _start(self) -> None:
        found = {j: search.question() for j, search in self._searches.items()}
        self._sums = {j: _Sum(asked) for j, asked in found.items() if asked is not None}

    def limit(self, max_bins: int, has_missing: NDArray[np.bool_]) -> None:
        """Set the most bins of columns, once it is known which miss values."""
        for j, search in self._searches.items():
            search.max_bins = most_known(max_bins, has_missing[j])

    @property
    def asked(self) -> dict[int, Question]:
        """What must be counted of columns, in this pass."""
        return {j: counted.asked for j, counted in self._sums.items()}

    def join(self, found: Mapping[int, Cells]) -> None:
        """Take in what has been counted of some rows elsewhere, as it is `asked`."""
        for j, cells in found.items():
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
        """Take what all batches have counted; returns whether they must be counted again."""
        for j, counted in self._sums.items():
            self._searches[j].take(counted.whole())
        self._start()
        return len(self._sums) > 0

    def bins(self, names: tuple[str, ...] | None, table: Table | None) -> BinnedColumns:
        """Return the bins between the edges found; they hold no row."""
        ends = [
            self._searches[j].ends() if j in self._searches else level_ends(n)
            for j, n in enumerate(self._n_levels.tolist())
        ]
        return bins_between(ends, names, table)


class _Sum:
    """Adds up what batches have counted of a column."""

    def __init__(self, asked: Question) -> None:
        self.asked = asked
        self._parts: list[Cells] = []
        self._n_new = 0

    def add(self, cells: Cells) -> None:
        self._parts.append(cells)
        self._n_new += len(cells.rows)
        # As many are joined as there are, so that each is joined a few times.
        if self._n_new > max(LEAST_CELLS, 2 * len(self._parts[0].rows)):
            self._parts, self._n_new = [self.whole()], 0

    def whole(self) -> Cells:
        return joined_cells(self._parts, self.asked)
