"""Binning of large tables: edges from a sample of the rows, then codes of all rows.

The sample depends only on the set of distinct rows, not on their order, on duplicates or on the
number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import binning
from pboost.data.columns.columns import MAX_BINS, BinnedColumns, midpoint, remade
from pboost.data.columns.prebuilt import flags, levels_among, most_bins
from pboost.threads import Workers, check_stop
from pboost.values import Array, FloatArray, IntArray

#: Maximum number of distinct rows from which the edges are computed.
SAMPLE_ROWS = 200_000
#: Number of columns and rows of a block that fits into the L2 cache.
WIDTH, HEIGHT = 32, 1000
#: ``gather(rows, first, columns)`` writes features `first`, `first + 1`, ... to `columns`.
Gather: TypeAlias = Callable[[IntArray, int, FloatArray], None]


def rows_of_edges(
    values: Array, rows: IntArray, fixed: NDArray[np.int64], workers: Workers
) -> tuple[NDArray[np.intp] | None, bool]:
    """Return the rows that determine the bin edges, and whether a hashed row has a missing value.

    For small data, return None (all rows) and False. Otherwise return the rows of positive weight
    with the `SAMPLE_ROWS` smallest hashes. `fixed` contains the weights, or is empty.
    """
    if (np.count_nonzero(fixed) if len(fixed) else len(rows)) <= SAMPLE_ROWS:
        return None, False
    hashed, has_missing = hashed_rows(values, rows, workers)
    greatest = greatest_hash(hashed if not len(fixed) else hashed[fixed > 0])
    if greatest is None:
        return None, has_missing
    taken = hashed <= greatest
    if len(fixed):
        taken &= fixed > 0
    return np.flatnonzero(taken), has_missing


def hashed_rows(values: Array, rows: IntArray, workers: Workers) -> tuple[NDArray[np.uint64], bool]:
    """Return the hashes of rows, and whether a value is missing."""
    hashed = np.empty(len(rows), dtype=np.uint64)

    def work(first: int, last: int) -> bool:
        key = np.empty(values.shape[1], dtype=np.uint64)
        return binning.hash_rows(values, rows[first:last], key, hashed[first:last])

    return hashed, any(workers.run(work, len(rows), cells=values.shape[1]))


def greatest_hash(hashed: NDArray[np.uint64]) -> np.uint64 | None:
    """Return the `SAMPLE_ROWS`-th smallest hash, or None if no distinct hash is larger."""
    share = 1.1 * SAMPLE_ROWS / len(hashed)
    while True:
        # Sort only the smallest hashes. Double their share if too few are distinct.
        some = hashed[hashed < np.uint64(share * 2.0**64)] if share < 1.0 else hashed.copy()
        some.sort()
        distinct = some[np.flatnonzero(some[1:] != some[:-1])]  # without the last one
        if len(distinct) >= SAMPLE_ROWS:
            return np.uint64(distinct[SAMPLE_ROWS - 1])
        if share >= 1.0:
            return None
        share *= 2.0


def coded_columns(
    gather: Gather,
    rows: IntArray,
    n_levels: IntArray | None,
    sampled: BinnedColumns,
    workers: Workers,
) -> BinnedColumns:
    """Bin rows with the edges of a sample."""
    codes, ends = code_rows(gather, rows, sampled, workers)
    return with_ends(codes, ends, n_levels, sampled)


class Ends(NamedTuple):
    """Minimum and maximum of each bin, and number of rows, each of shape (d, 256)."""

    lower: FloatArray
    upper: FloatArray
    n_rows: IntArray


def joined_ends(parts: Iterable[Ends], d: int) -> Ends:
    """Combine the ranges and counts of bins from several blocks of rows."""
    lower, upper, count = _no_ends(d)
    for lowest, greatest, some in parts:
        np.minimum(lower, lowest, out=lower)
        np.maximum(upper, greatest, out=upper)
        count += some
    return Ends(lower, upper, count)


def _no_ends(d: int) -> Ends:
    shape = d, MAX_BINS
    return Ends(np.full(shape, np.inf), np.full(shape, -np.inf), np.zeros(shape, dtype=np.int32))


def code_rows(
    gather: Gather, rows: IntArray, sampled: BinnedColumns, workers: Workers
) -> tuple[NDArray[np.uint8], Ends]:
    """Return the codes of rows, and the ends of their bins."""
    d, n, n_bins = sampled.n_features, len(rows), sampled.n_bins
    edge = _edges(sampled)
    codes = np.empty((d, n), dtype=np.uint8)

    def work(first: int, last: int) -> Ends:
        scratch = np.empty(WIDTH * HEIGHT)
        ends = _no_ends(d)
        for start in range(0, d, WIDTH):
            part = slice(start, min(start + WIDTH, d))
            arrays = [of[part] for of in (edge, n_bins, codes, *ends)]
            for row in range(first, last, HEIGHT):
                check_stop()
                listed = rows[row : min(row + HEIGHT, last)]
                k, m = part.stop - start, len(listed)
                columns = scratch[: k * m].reshape(k, m)
                gather(listed, start, columns)
                binning.code_columns(columns, row, *arrays)
        return ends

    # Threads process blocks of rows, so that each cache line is read once.
    return codes, joined_ends(workers.run(work, n, multiple=HEIGHT), d)


def with_ends(
    codes: NDArray[np.uint8], ends: Ends, n_levels: IntArray | None, sampled: BinnedColumns
) -> BinnedColumns:
    """Build columns from codes and bin ranges. `ends` is modified in place."""
    (lower, upper, count), d, n_bins = ends, sampled.n_features, sampled.n_bins
    place, known = np.arange(MAX_BINS), n_bins[:, None]
    n_missing = np.where(place == known, count, 0).sum(axis=1).astype(np.int32)
    special = flags(n_missing, n_levels)
    by_level = levels_among(special, 0, d)
    lower[by_level] = upper[by_level] = place
    n_places = most_bins(n_bins, special)
    for end in (lower, upper):
        end[place >= known] = 0.0
        end[(place == known) & (n_missing[:, None] > 0) | np.isinf(end)] = np.nan
    bin_start = np.zeros((d, n_places + 1), dtype=np.int32)
    np.cumsum(count[:, :n_places], axis=1, out=bin_start[:, 1:])
    lower, upper = lower[:, :n_places].copy(), upper[:, :n_places].copy()
    return remade(
        sampled, codes=codes, lower=lower, upper=upper, special=special, bin_start=bin_start
    )


def _edges(sampled: BinnedColumns) -> FloatArray:
    """Return the thresholds between bins as (d, 255), padded with infinity."""
    edge = np.full((sampled.n_features, MAX_BINS - 1), np.inf)
    between = midpoint(sampled.upper[:, :-1], sampled.lower[:, 1:])
    is_edge = np.arange(between.shape[1]) < sampled.n_bins[:, None] - 1
    edge[:, : between.shape[1]][is_edge] = between[is_edge]
    return edge


class RowSample:
    """Sample of the distinct rows with the smallest hashes, at most `SAMPLE_ROWS`.

    Parameters
    ----------
    d : int
        Number of features.

    Attributes
    ----------
    is_part : bool
        Whether the data contain more distinct rows than the sample.
    """

    def __init__(self, d: int) -> None:
        self._hashed = np.empty(0, dtype=np.uint64)
        self._values, self._mass = np.empty((0, d)), np.empty(0, dtype=np.int64)
        self._limit = np.uint64(2**64 - 1)
        self._new: list[tuple[NDArray[np.uint64], FloatArray, NDArray[np.int64]]] = []
        self._n_new = 0
        self.is_part = False

    def add(
        self, values: Array, hashed: NDArray[np.uint64], mass: NDArray[np.int64] | None
    ) -> None:
        """Add rows, given their hashes and weights (default 1); ignore rows of weight 0."""
        is_in = hashed <= self._limit
        if mass is not None:
            is_in &= mass > 0
        at = np.flatnonzero(is_in)
        if not len(at):
            return
        row_mass = np.ones(len(at), dtype=np.int64) if mass is None else mass[at]
        self._new.append((hashed[at], values[at].astype(np.float64), row_mass))
        self._n_new += len(at)
        if self._n_new > SAMPLE_ROWS:
            self._join()

    def _join(self) -> None:
        """Merge new rows into the sample."""
        before = self._hashed, self._values, self._mass
        hashes, values, masses = zip(before, *self._new, strict=True)
        hashed, mass = np.concatenate(hashes), np.concatenate(masses)
        self._hashed, first, which = np.unique(hashed, return_index=True, return_inverse=True)
        joined = np.zeros(len(first), dtype=np.int64)
        np.add.at(joined, which, mass)
        self._values, self._mass = np.concatenate(values)[first], joined
        self._new, self._n_new = [], 0
        limit = SAMPLE_ROWS
        if len(self._hashed) > limit:
            self.is_part, self._limit = True, self._hashed[limit - 1]
            self._hashed, self._values = self._hashed[:limit], self._values[:limit]
            self._mass = self._mass[:limit]

    def rows(self) -> tuple[FloatArray, NDArray[np.int64]]:
        """Return the distinct rows (m, d) and their total weights."""
        if self._new:
            self._join()
        return self._values, self._mass
