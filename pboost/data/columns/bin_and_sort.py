"""Sort or bin blocks of features of X on several threads."""

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
from pboost.data.columns.sampled_bin_edges import Gather, code_rows, coded_columns, rows_of_edges
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

#: Rows that determine the bin edges: a sample of large data, or all rows.
BinEdges: TypeAlias = Literal["sample", "exact"]
EDGES: tuple[BinEdges, ...] = get_args(BinEdges)
#: Bytes of scratch memory per thread while sorting. Larger blocks cause fewer cache misses.
SCRATCH_BYTES = 16_000_000


def sort_columns(X: TableLike, *, copy: bool = True, n_threads: int | None = None) -> SortedColumns:
    """Sort the features of X once, for use by several fits.

    Parameters
    ----------
    X : array_like of shape (n, d), or data frame
        Numeric and categorical features; missing values are allowed.
    copy : bool
        False keeps a reference to `X` and saves memory. Do not modify `X` while the columns are in
        use: thresholds would be computed from the new values, but in the old order.
    n_threads : int or None
        Number of threads; -1 uses all cores. None chooses a number that suits the amount of work.

    Returns
    -------
    SortedColumns
        Pass it to a fit function in place of `X`.

    Raises
    ------
    ValueError, TypeError
        If `X` is not a table or contains an infinity.

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
    """Bin the features of X once, for binned searches on large data.

    Parameters
    ----------
    X : array_like of shape (n, d), or data frame
        Numeric and categorical features; missing values are allowed.
    max_bins : int
        Maximum number of bins per feature, 2 to 256. Bins have about equal weight; equal values
        share a bin.
    bin_edges : {"sample", "exact"}
        "sample" computes the edges from at most 200,000 rows. "exact" uses all rows, which takes as
        long as sorting them.
    sample_weight : array_like of shape (n,), optional
        Sample weights. Rows of weight 0 are binned but do not influence the edges.
    keep_values : bool
        Whether to keep a copy of the values. `pboost.observation.gaussian`, weak learners that
        combine features, and probit trees need it.
    n_threads : int or None
        Number of threads; -1 uses all cores. None chooses a number that suits the amount of work.

    Returns
    -------
    BinnedColumns
        Pass it to a fit function in place of `X`. With `keep_values` it is a `BinnedValues`.

    Raises
    ------
    ValueError, TypeError
        If `X` is not a table or contains an infinity, or if an option is out of range.

    Notes
    -----
    The sample consists of the 200,000 rows of positive weight with the smallest hashes of their
    values. The edges therefore do not depend on the order of the rows, and a row of weight k counts
    as k rows. The minimum and the maximum always come from all rows.

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
    """Sort a subset of the rows by each feature or projection."""
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
    """Run `sorted_columns` on existing worker threads."""
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
    """Sort the rows of a matrix of finite numbers; return the packed orders (d, n)."""
    return _sorted(*_gathering(values, None), rows, workers)


def column_ranks(
    values: Array, rows: IntArray, order: IntArray | None, n_threads: int | None
) -> IntArray:
    """Return the ranks (d, n) of the rows by each feature. Equal values have equal ranks.

    `order` is the packed order of the rows, or None to compute it.
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
    """Bin a subset of the rows by each feature or projection, with edges from a sample.

    `fixed` contains the weights in fixed point, or is empty.
    """
    gather, d = _gathering(features.values, projections)
    with Workers(n_threads, d * len(rows)) as workers:
        part, has_missing = rows_of_edges(features.values, rows, fixed, workers)
        if part is None:
            return all_binned(features, rows, max_bins, fixed, workers, projections)
        if has_missing:  # missing values have the code after the last bin
            max_bins = min(max_bins, MOST_KNOWN)
        of_part = fixed[part] if len(fixed) else fixed
        sampled = all_binned(features, rows[part], max_bins, of_part, workers, projections)
        n_levels, _ = counted(features, d, projections is None)
        return coded_columns(gather, rows, n_levels, sampled, workers)


def binned_features(
    features: Features, weights: FloatArray | None, max_bins: int, n_threads: int | None
) -> BinnedColumns:
    """Bin the rows of positive weight; other rows get code 0."""
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
    """Return the codes (d, m) of rows of a matrix, given the bins."""
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
    """Bin a subset of the rows by each feature or projection, with exact edges."""
    gather, d = _gathering(features.values, projections)
    n = len(rows)
    n_levels, n_missing = counted(features, d, projections is None)
    codes = np.empty((d, n), dtype=np.uint8)
    n_bins = np.empty(d, dtype=np.int32)
    bin_limit = min(max_bins, max(n, 1))
    # Add a bin for missing values. Its ends are NaN.
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
            if edges[-1] == 0:  # all values are missing
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
    """Return a function that copies features or projections. Also return their number."""
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
    """Sort blocks of features into `orders`, or pass them to ``keep(first, order, columns)``.

    `n_missing` (d,), if given, is filled with the number of missing values of each feature.
    """
    n = len(rows)
    width = min(16, max(1, SCRATCH_BYTES // (8 * max(n, 1) * workers.n_threads)))

    def work(first: int, last: int) -> None:
        # Allocate once to limit the memory that the allocator keeps; see `weighed` in
        # data/targets.py.
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
            if wrong >= 0:  # tables in memory are checked earlier
                raise ValueError(
                    f"X: expected finite numbers{'' if missing is None else ' or missing values'}, "
                    f"got an invalid value in column {start + wrong}; the file may have changed"
                )
            if keep is not None:
                keep(start, order, block)

    workers.run(work, d)


def read_once(X: TableLike, sample_weight: ArrayLike | None, takes: Takes) -> Any:
    """Return X in a form that can be read several times: checked features or prepared columns."""
    if isinstance(X, SortedColumns | BinnedColumns):
        return X
    features = as_features(X)
    if features.table is None:
        return features
    return training_features(features, as_weights(sample_weight, features.n_rows), takes)
