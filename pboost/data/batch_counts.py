"""Edges of bins from all rows of a table that is read in batches: what all columns count."""

from __future__ import annotations

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
    most_known,
    sorted_keys,
)
from pboost.data.table import Table
from pboost.threads import Workers, check_stop
from pboost.values import Array

#: Cells of all columns that are counted in a pass, and of one at least: of more columns each has
#: fewer, and there are more passes.
MOST_CELLS, LEAST_CELLS = 1 << 23, 1 << 14


class BatchCounts:
    """Counts the rows of batches for the searches of all columns, pass by pass.

    Parameters
    ----------
    d : int
        Number of columns.
    is_weighed : bool
        Whether rows have masses.
    """

    def __init__(self, d: int, is_weighed: bool) -> None:
        cells = min(exact_edges.CELLS, max(LEAST_CELLS, MOST_CELLS // d))
        self._searches = [EdgeSearch(MAX_BINS, is_weighed, cells) for _ in range(d)]
        self._start()

    def _start(self) -> None:
        found = [search.question() for search in self._searches]
        self._sums = {j: _Sum(asked) for j, asked in enumerate(found) if asked is not None}

    def limit(self, max_bins: int, has_missing: NDArray[np.bool_]) -> None:
        """Set the most bins of columns, once it is known which miss values."""
        for search, has in zip(self._searches, has_missing.tolist(), strict=True):
            search.max_bins = most_known(max_bins, has)

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
        return bins_between([search.ends() for search in self._searches], names, table)


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
