"""Sorting and binning of columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import reweight, sort
from pboost.data.arguments import as_weights
from pboost.data.blocks import copied
from pboost.data.columns import (
    MAX_BINS,
    NO_WEIGHT,
    ROW_MASK,
    SCRATCH_BYTES,
    Array,
    BinnedColumns,
    ProjectedColumns,
    SortedColumns,
    made,
    most_bins,
    sealed,
    trimmed,
    with_bins,
)
from pboost.data.features import Features, as_features, check_finite, check_has_rows
from pboost.data.projections import Projections
from pboost.threads import Workers, check_stop, resolve_threads
from pboost.values import check_flag, check_integer

#: Writes columns of the listed rows, the first of which is given, to the rows of a matrix.
Gather: TypeAlias = Callable[[NDArray[np.int32], int, NDArray[np.float64]], None]


def sort_columns(X: Any, *, copy: bool = True, n_threads: int | None = None) -> SortedColumns:
    """Sort the columns of X once, for use by several fits.

    Parameters
    ----------
    X : array_like of shape (n, d), or data frame
        Finite numbers.
    copy : bool
        False keeps a reference to `X`, which must then not be changed while the columns are used:
        orders would stay as they are, and thresholds come from the new values.
    n_threads : int or None
        Threads; None: as many as the work is worth.

    Returns
    -------
    SortedColumns
        To be passed to a builder in place of `X`.

    Raises
    ------
    ValueError, TypeError
        If `X` is not a matrix of finite numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> columns = pb.sort_columns(np.array([[3.0], [1.0], [2.0]]))
    >>> columns.order(0).tolist()
    [1, 2, 0]
    """
    features = as_features(X)
    check_has_rows(len(features.values))
    check_finite(features)
    if check_flag("copy", copy):
        is_shared = np.shares_memory(features.values, X)
        values = copied(features.values) if is_shared else features.values
        features = Features(sealed(values), features.names)
    rows = np.arange(len(features.values), dtype=np.int32)
    return sorted_columns(features, rows, MAX_BINS, n_threads)


def bin_columns(
    X: Any,
    *,
    max_bins: int = MAX_BINS,
    sample_weight: Any = None,
    n_threads: int | None = None,
) -> BinnedColumns:
    """Bin the columns of X once, for binned searches on large data.

    Parameters
    ----------
    X : array_like of shape (n, d), or data frame
        Finite numbers.
    max_bins : int
        Bins per column, 2 to 256, of about equal weight; equal values share a bin.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows; a row of weight 0 has a bin but no part in placing the edges.
    n_threads : int or None
        Threads; None: as many as the work is worth.

    Returns
    -------
    BinnedColumns
        To be passed to a builder in place of `X`.

    Raises
    ------
    ValueError, TypeError
        If `X` is not a matrix of finite numbers, or an option is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> pb.bin_columns(np.arange(6.0).reshape(6, 1), max_bins=2).codes.tolist()
    [[0, 0, 0, 1, 1, 1]]
    """
    features = as_features(X)
    check_has_rows(len(features.values))
    check_finite(features)
    max_bins = check_integer("max_bins", max_bins, least=2, most=MAX_BINS)
    weights = as_weights(sample_weight, len(features.values))
    fixed = NO_WEIGHT if weights is None else to_fixed_point(weights)[1]
    rows = np.arange(len(features.values), dtype=np.int32)
    return binned_columns(features, rows, max_bins, fixed, n_threads)


def to_fixed_point(weights: NDArray[np.float64], times: int = 1) -> tuple[float, NDArray[np.int64]]:
    """Return a power of two and the weights times it, rounded; their sum stays below 2**61.

    A power of two makes the image exact for integer weights, whatever their scale. The sum is of so
    many `times` these weights.
    """
    _, exponent = math.frexp(float(weights.sum()) * times)
    scale = float(np.ldexp(1.0, 61 - exponent))
    fixed = np.empty(len(weights), dtype=np.int64)
    reweight.to_fixed(weights, scale, fixed)
    return scale, fixed


def sorted_columns(
    features: Features,
    rows: NDArray[np.int32],
    max_bins: int,
    n_threads: int | None,
    projections: Projections | None = None,
) -> SortedColumns:
    """Sort the listed rows of checked features, or of projections of them."""
    gather, d = _gathering(features.values, projections)
    with Workers(resolve_threads(n_threads, d * len(rows))) as workers:
        order = _sorted(gather, d, rows, workers)
        found = with_bins(features.values, rows, order, max_bins, features.names, workers)
    if projections is None:
        return found
    return made(
        ProjectedColumns, found.source, found.rows, found.packed_order, found.bin_start,
        found.n_bins, found.codes, found.names, projections,
    )  # fmt: skip


def sorted_orders(values: Array, rows: NDArray[np.int32], workers: Workers) -> NDArray[np.int32]:
    """Return the packed orders (d, n) of the listed rows of a matrix of finite numbers."""
    return _sorted(*_gathering(values, None), rows, workers)


def binned_columns(
    features: Features,
    rows: NDArray[np.int32],
    max_bins: int,
    fixed: NDArray[np.int64],
    n_threads: int | None,
    projections: Projections | None = None,
) -> BinnedColumns:
    """Bin the listed rows of checked features, or of projections of them.

    `fixed` are the weights of the rows, or empty.
    """
    gather, d = _gathering(features.values, projections)
    n = len(rows)
    codes = np.empty((d, n), dtype=np.uint8)
    n_bins = np.empty(d, dtype=np.int32)
    most = min(max_bins, max(n, 1))
    lower, upper = np.zeros((d, most)), np.zeros((d, most))
    bin_start = np.zeros((d, most + 1), dtype=np.int32)

    def keep(first: int, order: NDArray[np.int32], columns: NDArray[np.float64]) -> None:
        here = slice(first, first + len(order))
        sort.bin_columns(order, max_bins, fixed, bin_start[here], n_bins[here], codes[here])
        for j in range(first, here.stop):
            edges = bin_start[j, : n_bins[j] + 1]
            column, sorted_rows = columns[j - first], order[j - first] & ROW_MASK
            lower[j, : n_bins[j]] = column[sorted_rows[edges[:-1]]]
            upper[j, : n_bins[j]] = column[sorted_rows[edges[1:] - 1]]

    with Workers(resolve_threads(n_threads, codes.size)) as workers:
        _sort_blocks(gather, d, rows, None, keep, workers)
    most = most_bins(n_bins)
    lower, upper, bin_start = (
        trimmed(by_bin, size)
        for by_bin, size in ((lower, most), (upper, most), (bin_start, most + 1))
    )
    return made(BinnedColumns, codes, n_bins, lower, upper, features.names, bin_start)


def _sorted(gather: Gather, d: int, rows: NDArray[np.int32], workers: Workers) -> NDArray[np.int32]:
    order = np.empty((d, len(rows)), dtype=np.int32)
    _sort_blocks(gather, d, rows, order, None, workers)
    return order


def _gathering(values: Array, projections: Projections | None) -> tuple[Gather, int]:
    """Return what writes columns of `values`, or of projections of them, and their number."""
    if projections is not None:
        return partial(projections.gather, values), projections.n_inputs
    gather = sort.gather_columns_float32 if values.dtype == np.float32 else sort.gather_columns
    return partial(gather, values), values.shape[1]


def _sort_blocks(
    gather: Gather,
    d: int,
    rows: NDArray[np.int32],
    orders: NDArray[np.int32] | None,
    keep: Callable[[int, NDArray[np.int32], NDArray[np.float64]], None] | None,
    workers: Workers,
) -> None:
    """Sort blocks of d columns, into `orders` or to be taken by ``keep(first, order, columns)``."""
    n = len(rows)
    width = min(16, max(1, SCRATCH_BYTES // (8 * max(n, 1) * workers.n_threads)))

    def work(first: int, last: int) -> None:
        items, spare = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.uint64)
        columns = np.empty((min(width, last - first), n))
        for start in range(first, last, width):
            check_stop()
            block = columns[: min(width, last - start)]
            if orders is None:
                order = np.empty(block.shape, dtype=np.int32)
            else:
                order = orders[start : start + len(block)]
            gather(rows, start, block)
            check_stop()
            sort.sort_columns(block, order, items, spare)
            if keep is not None:
                keep(start, order, block)

    workers.run(work, d)
