"""Columns made of X: sorted, or put into bins, a block of them at a time on each thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core import binning
from pboost.data.columns.columns import (
    MAX_BINS,
    NO_WEIGHT,
    ROW_MASK,
    BinnedColumns,
    SortedColumns,
    by_column,
    made,
    to_fixed_point,
    valued,
    with_bins,
)
from pboost.data.columns.prebuilt import (
    MOST_KNOWN,
    bin_levels,
    counted,
    flags,
    levels_among,
    most_bins,
    trimmed,
)
from pboost.data.columns.sampled_edges import Gather, code_rows, coded_columns, rows_of_edges
from pboost.data.node_inputs.sums import Projections
from pboost.data.read.check_xy import as_features, as_weights, check_has_rows, training_features
from pboost.data.read.codes import copied
from pboost.data.read.convert import Features
from pboost.data.read.table import EVERYTHING, Takes
from pboost.data.targets import weighed
from pboost.threads import Workers, check_stop
from pboost.values import (
    Array,
    FloatArray,
    IntArray,
    TableLike,
    check_choice,
    check_flag,
    check_integer,
    sealed,
)

#: Which rows make the edges of bins: of many some, or all.
BinEdges: TypeAlias = Literal["sample", "exact"]
EDGES: tuple[BinEdges, ...] = get_args(BinEdges)
#: Bytes of scratch per thread while sorting; more columns at a time read X with fewer misses.
SCRATCH_BYTES = 16_000_000


def sort_columns(X: TableLike, *, copy: bool = True, n_threads: int | None = None) -> SortedColumns:
    """Sort the columns of X once, for use by several fits.

    Parameters
    ----------
    X : array_like of shape (n, d), or data frame
        Numbers, some of which may be missing, and categories.
    copy : bool
        False keeps a reference to `X`, which must then not be changed while the columns are used:
        orders would stay as they are, and thresholds come from the new values.
    n_threads : int or None
        Threads, -1 for all; None: as many as the work is worth.

    Returns
    -------
    SortedColumns
        To be passed to a builder in place of `X`.

    Raises
    ------
    ValueError, TypeError
        If `X` is no table, or holds an infinity.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> columns = pb.data.sort_columns(np.array([[3.0], [1.0], [2.0]]))
    >>> columns.order(0).tolist()
    [1, 2, 0]
    """
    features = as_features(X)
    check_has_rows(len(features.values))
    features = training_features(features, None, EVERYTHING)
    if check_flag("copy", copy):
        is_shared = np.shares_memory(features.values, X)
        values = copied(features.values) if is_shared else features.values
        features = Features(sealed(values), features.names, features.table)
    rows = np.arange(len(features.values), dtype=np.int32)
    return sorted_columns(features, rows, MAX_BINS, n_threads)


def bin_columns(
    X: TableLike,
    *,
    max_bins: int = MAX_BINS,
    bin_edges: BinEdges = "sample",
    sample_weight: ArrayLike | None = None,
    keep_values: bool = False,
    n_threads: int | None = None,
) -> BinnedColumns:
    """Bin the columns of X once, for binned searches on large data.

    Of more than 200,000 rows of positive weight the edges are made from the 200,000 rows with the
    least hashes of their values. So they do not depend on the order of the rows, and a row of
    weight k is k rows. Least and largest values are those of all rows in any case.
    ``bin_edges="exact"`` makes them from all rows, which takes as long as sorting them.

    Parameters
    ----------
    X : array_like of shape (n, d), or data frame
        Numbers, some of which may be missing, and categories.
    max_bins : int
        Bins per column, 2 to 256, of about equal weight; equal values share a bin.
    bin_edges : {"sample", "exact"}
        Rows that make the edges: of more than 200,000 some, or all.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows; a row of weight 0 has a bin but no part in placing the edges.
    keep_values : bool
        Whether the columns keep a copy of the values, for what reads these:
        `pboost.observation.gaussian`, weak learners that add up columns, probit trees.
    n_threads : int or None
        Threads, -1 for all; None: as many as the work is worth.

    Returns
    -------
    BinnedColumns
        To be passed to a builder in place of `X`; with `keep_values` they are `BinnedValues`.

    Raises
    ------
    ValueError, TypeError
        If `X` is no table, or holds an infinity, or an option is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> pb.data.bin_columns(np.arange(6.0).reshape(6, 1), max_bins=2).codes.tolist()
    [[0, 0, 0, 1, 1, 1]]
    """
    check_choice("bin_edges", bin_edges, EDGES)
    features = as_features(X)
    check_has_rows(len(features.values))
    max_bins = check_integer("max_bins", max_bins, min_value=2, max_value=MAX_BINS)
    keep_values = check_flag("keep_values", keep_values)
    weights = as_weights(sample_weight, len(features.values))
    features = training_features(features, weights, EVERYTHING)
    fixed = NO_WEIGHT if weights is None else to_fixed_point(weights)[1]
    rows = np.arange(len(features.values), dtype=np.int32)
    if bin_edges == "exact":
        with Workers(n_threads, features.values.size) as workers:
            columns = all_binned(features, rows, max_bins, fixed, workers, None)
    else:
        columns = binned_columns(features, rows, max_bins, fixed, n_threads)
    return valued(columns, by_column(features.values)) if keep_values else columns


def sorted_columns(
    features: Features,
    rows: IntArray,
    max_bins: int,
    n_threads: int | None,
    projections: Projections | None = None,
) -> SortedColumns:
    """Sort the listed rows of checked features, or of projections of them."""
    d = features.n_features if projections is None else projections.n_inputs
    with Workers(n_threads, d * len(rows)) as workers:
        return columns_sorted(features, rows, max_bins, workers, projections)


def columns_sorted(
    features: Features,
    rows: IntArray,
    max_bins: int,
    workers: Workers,
    projections: Projections | None = None,
) -> SortedColumns:
    """Sort as `sorted_columns` does, on these threads."""
    gather, d = _gathering(features.values, projections)
    n_levels, n_missing = counted(features, d, projections is None)
    order = _sorted(gather, d, rows, workers, n_missing)
    return with_bins(
        features,
        rows,
        order,
        max_bins,
        workers,
        projections,
        n_missing=n_missing,
        n_levels=n_levels,
    )


def sorted_orders(values: Array, rows: IntArray, workers: Workers) -> IntArray:
    """Return the packed orders (d, n) of the listed rows of a matrix of finite numbers."""
    return _sorted(*_gathering(values, None), rows, workers)


def column_ranks(
    values: Array, rows: IntArray, order: IntArray | None, n_threads: int | None
) -> IntArray:
    """Return the ranks (d, n) of the listed rows of a matrix, equal values alike.

    `order` are their packed orders, where these are known.
    """
    with Workers(n_threads, len(rows) * values.shape[1]) as workers:
        order = sorted_orders(values, rows, workers) if order is None else order
        ranks = np.empty(order.shape, dtype=np.int32)

        def rank(first: int, last: int) -> None:
            binning.rank_rows(order[first:last], ranks[first:last])

        workers.run(rank, len(order))
    return ranks


def binned_columns(
    features: Features,
    rows: IntArray,
    max_bins: int,
    fixed: NDArray[np.int64],
    n_threads: int | None,
    projections: Projections | None = None,
) -> BinnedColumns:
    """Bin the listed rows of checked features, or of projections of them.

    `fixed` are the weights of the rows, or empty. The edges of many are those of a part of them.
    """
    gather, d = _gathering(features.values, projections)
    with Workers(n_threads, d * len(rows)) as workers:
        part, has_missing = rows_of_edges(features.values, rows, fixed, workers)
        if part is None:
            return all_binned(features, rows, max_bins, fixed, workers, projections)
        if has_missing:  # their code is that after the last bin
            max_bins = min(max_bins, MOST_KNOWN)
        of_part = fixed[part] if len(fixed) else fixed
        sampled = all_binned(features, rows[part], max_bins, of_part, workers, projections)
        n_levels, _ = counted(features, d, projections is None)
        return coded_columns(gather, rows, n_levels, sampled, workers)


def binned_features(
    features: Features, weights: FloatArray | None, max_bins: int, n_threads: int | None
) -> BinnedColumns:
    """Return the bins of the rows of positive weight; others are in any."""
    n, fixed = len(features.values), NO_WEIGHT
    rows = np.arange(n, dtype=np.int32)
    if weights is not None:
        rows = np.flatnonzero(weights).astype(np.int32)
        fixed = weighed(weights, rows, len(rows)).fixed.copy()
    columns = binned_columns(features, rows, max_bins, fixed, n_threads)
    if len(rows) == n:
        return columns
    codes = np.zeros((len(columns.codes), n), dtype=np.uint8)
    codes[:, rows] = columns.codes
    return replace(columns, codes=codes)


def codes_between(
    columns: BinnedColumns, values: Array, rows: IntArray, n_threads: int | None
) -> NDArray[np.uint8]:
    """Return the codes (d, m) of the listed rows of a matrix between the edges of bins."""
    with Workers(n_threads, columns.n_features * len(rows)) as workers:
        return code_rows(partial(binning.gather_columns, values), rows, columns, workers)[0]


def all_binned(
    features: Features,
    rows: IntArray,
    max_bins: int,
    fixed: NDArray[np.int64],
    workers: Workers,
    projections: Projections | None,
) -> BinnedColumns:
    """Bin as `binned_columns` does, with edges from all rows."""
    gather, d = _gathering(features.values, projections)
    n = len(rows)
    n_levels, n_missing = counted(features, d, projections is None)
    codes = np.empty((d, n), dtype=np.uint8)
    n_bins = np.empty(d, dtype=np.int32)
    bin_limit = min(max_bins, max(n, 1))
    # One place more for the missing, of which the ends are NaN.
    places = (
        bin_limit if n_levels is None else min(max(bin_limit, most_bins(n_levels)) + 1, MAX_BINS)
    )
    lower, upper = np.zeros((d, places)), np.zeros((d, places))
    bin_start = np.zeros((d, places + 1), dtype=np.int32)

    def keep(first: int, order: IntArray, columns: FloatArray) -> None:
        part = slice(first, first + len(order))
        missing = None if n_missing is None else n_missing[part]
        binning.bin_columns(
            order, max_bins, fixed, bin_start[part], n_bins[part], codes[part], missing
        )
        special = flags(missing, None if n_levels is None else n_levels[part])
        has_levels = levels_among(special, 0, len(order))
        for j in has_levels:
            assert n_missing is not None
            assert n_levels is not None
            at = first + j
            bin_levels(
                order[j : j + 1], n_missing, n_levels, columns[j].take, at, bin_start, n_bins, codes
            )
            lower[at, : n_bins[at]] = upper[at, : n_bins[at]] = np.arange(n_bins[at])
        for j in range(first, part.stop):
            edges = bin_start[j, : n_bins[j] + 1]
            if missing is not None and missing[j - first]:
                lower[j, n_bins[j]] = upper[j, n_bins[j]] = np.nan
            if j - first in has_levels:
                continue
            if edges[-1] == 0:  # missing everywhere
                lower[j, 0] = upper[j, 0] = np.nan
                continue
            column, sorted_rows = columns[j - first], order[j - first] & ROW_MASK
            lower[j, : n_bins[j]] = column[sorted_rows[edges[:-1]]]
            upper[j, : n_bins[j]] = column[sorted_rows[edges[1:] - 1]]

    _sort_blocks(gather, d, rows, None, keep, workers, n_missing)
    special = flags(n_missing, n_levels)
    bin_limit = most_bins(n_bins, special)
    lower, upper, bin_start = (
        trimmed(by_bin, size)
        for by_bin, size in ((lower, bin_limit), (upper, bin_limit), (bin_start, bin_limit + 1))
    )
    table = features.table if projections is None else None
    return made(
        BinnedColumns, codes, n_bins, lower, upper, features.names, special, table, bin_start
    )


def _sorted(
    gather: Gather, d: int, rows: IntArray, workers: Workers, n_missing: IntArray | None = None
) -> IntArray:
    order = np.empty((d, len(rows)), dtype=np.int32)
    _sort_blocks(gather, d, rows, order, None, workers, n_missing)
    return order


def _gathering(values: Array, projections: Projections | None) -> tuple[Gather, int]:
    """Return what writes columns of `values`, or of projections of them, and their number."""
    if projections is not None:
        return partial(projections.gather, values), projections.n_inputs
    return partial(binning.gather_columns, values), values.shape[1]


def _sort_blocks(
    gather: Gather,
    d: int,
    rows: IntArray,
    orders: IntArray | None,
    keep: Callable[[int, IntArray, FloatArray], None] | None,
    workers: Workers,
    n_missing: IntArray | None,
) -> None:
    """Sort blocks of d columns, into `orders` or to be taken by ``keep(first, order, columns)``.

    `n_missing` (d,) are told how many rows of each column are missing, where some may be.
    """
    n = len(rows)
    width = min(16, max(1, SCRATCH_BYTES // (8 * max(n, 1) * workers.n_threads)))

    def work(first: int, last: int) -> None:
        # One piece of memory, so that what a fit frees stays less than twice the largest, see
        # `_weighed` of the training data: columns, two of keys, and orders nobody keeps.
        n_columns = min(width, last - first)
        halves = 0 if orders is not None else -(-n_columns // 2)
        scratch = np.empty((n_columns + 2 + halves, n))
        items, spare = scratch[n_columns : n_columns + 2].view(np.uint64)
        buffers = scratch[n_columns + 2 :].view(np.int32).reshape(2 * halves, n)
        for start in range(first, last, width):
            check_stop()
            block = scratch[: min(width, last - start)]
            order = (buffers if orders is None else orders[start:])[: len(block)]
            gather(rows, start, block)
            check_stop()
            missing = None if n_missing is None else n_missing[start : start + len(block)]
            wrong = binning.sort_columns(block, order, items, spare, missing)
            if wrong >= 0:  # of a table in memory it is found before
                raise ValueError(
                    f"X: expected finite numbers{'' if missing is None else ', or missing ones'}, "
                    f"got others in column {start + wrong}; values may have changed on disk"
                )
            if keep is not None:
                keep(start, order, block)

    workers.run(work, d)


def read_once(X: TableLike, sample_weight: ArrayLike | None, takes: Takes) -> Any:
    """Return X as it is trained on, to be read from again: columns made before, or features."""
    if isinstance(X, SortedColumns | BinnedColumns):
        return X
    features = as_features(X)
    if features.table is None:
        return features
    return training_features(features, as_weights(sample_weight, features.n_rows), takes)
