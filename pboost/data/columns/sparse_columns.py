"""Sparse features, and their bins: only values other than 0 are stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import sparse
from pboost.data.columns.columns import midpoint
from pboost.data.columns.splitmix import STEP, bits_of, mix
from pboost.data.read.convert import check_size, refuse_other_shapes
from pboost.threads import check_stop
from pboost.values import Array, FloatArray, IntArray

#: Number of values that a kernel call reads.
CALL_VALUES = 2_000_000
#: Largest number of bins on each side of 0.
MOST_BINS = 254
#: With ``min_samples_in_bin="auto"``: the minimum, and the largest share of the rows.
MIN_SAMPLES, MAX_SHARE = 100, 0.01
#: With "auto", features with values in a larger share of the rows have bins of any size.
DENSE_SHARE = 0.3


@dataclass(frozen=True, slots=True, eq=False)
class SparseFeatures:
    """A sparse matrix without stored zeros, by column.

    Attributes
    ----------
    start : ndarray of int64, shape (d + 1,)
        Position of the first value of each column.
    rows : ndarray of int32, shape (nnz,)
        Row of each value, in increasing order within a column.
    data : ndarray of float64, shape (nnz,)
        The values.
    n_rows : int
        Number of rows.
    min_samples : int or None
        Minimum number of rows in a bin, if a side of 0 has several bins. None for "auto".
    names, table : None
        Sparse matrices have no feature names, and all features are numeric.
    """

    start: NDArray[np.int64]
    rows: IntArray
    data: FloatArray
    n_rows: int
    min_samples: int | None
    names: tuple[str, ...] | None = None
    table: Any = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.start) - 1


def read_sparse(X: Any, min_samples: int | None = None) -> SparseFeatures:
    """Convert a sparse matrix or array of SciPy, which is not changed.

    Raises
    ------
    ValueError, TypeError
        If X is not a matrix of real numbers, has no columns, or contains infinite values.
    NotImplementedError
        If X contains missing values.
    """
    refuse_other_shapes(X)
    check_size(X.shape)
    columns = X.tocsc()
    if not columns.has_canonical_format:
        columns = columns.copy() if columns is X else columns
        columns.sum_duplicates()
    start, rows, data = columns.indptr.astype(np.int64), columns.indices, columns.data
    data = np.asarray(data, dtype=np.float64)
    if not data.all():
        kept = data != 0
        start = np.concatenate([[0], np.cumsum(kept)])[start]
        rows, data = rows[kept], data[kept]
    _check_values(start, rows, data)
    rows = rows.astype(np.int32, copy=False)
    return SparseFeatures(start, rows, data, X.shape[0], min_samples)


def _check_values(start: NDArray[np.int64], rows: Array, data: FloatArray) -> None:
    """Raise an error for the first value that is not finite."""
    if np.isfinite(data).all():
        return
    wrong = int(np.argmin(np.isfinite(data)))
    where = f"column {int(np.searchsorted(start, wrong, 'right')) - 1}, row {rows[wrong]}"
    if np.isnan(data[wrong]):
        raise NotImplementedError(
            f"X: expected no missing values in a sparse matrix, got NaN in {where}; impute missing "
            "values or pass X.toarray()"
        )
    raise ValueError(f"X: expected finite numbers, got {data[wrong]} in {where}")


@dataclass(frozen=True, slots=True, eq=False)
class SparseColumns:
    """Bins of sparse features, and the rows on both sides of 0; see ``pboost/_core/sparse.pyx``.

    Attributes
    ----------
    first_bin : ndarray of int64, shape (d + 1,)
        Position of the first bin of each feature.
    zero : ndarray of int32, shape (d,)
        Number of bins of negative values of each feature.
    has_zero : ndarray of uint8, shape (d,)
        Whether some row is 0. The bin of 0 follows those of negative values.
    lower, upper : ndarray of float64, shape (n_bins,)
        Smallest and largest value in each bin.
    list_start : ndarray of int64, shape (2 * d + 1,)
        Position of the first row of each list. List ``2 * f`` has the rows in the bins of negative
        values of feature f, and the next list the rows in the bins of positive values.
    list_rows : ndarray of int32, shape (k,)
        The rows of the lists, in increasing order within a list.
    list_bins : ndarray of uint8, shape (k,)
        Their bins, numbered outward from 0.
    largest : ndarray of int32, shape (2 * d,)
        Number of rows in the fullest bin of each list.
    n_rows : int
        Number of rows.
    names, table, special : None
        As in `SparseFeatures`.
    """

    first_bin: NDArray[np.int64]
    zero: IntArray
    has_zero: NDArray[np.uint8]
    lower: FloatArray
    upper: FloatArray
    list_start: NDArray[np.int64]
    list_rows: IntArray
    list_bins: NDArray[np.uint8]
    largest: IntArray
    n_rows: int
    names: tuple[str, ...] | None = None
    table: Any = None
    special: Any = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.zero)

    def threshold(self, feature: Any, cut_bin: Any, position: Any = None) -> Any:
        """Return the threshold at the upper edge of a bin."""
        at = self.first_bin[feature] + cut_bin
        return midpoint(self.upper[at], self.lower[at + 1])

    def hashes(self) -> NDArray[np.uint64]:
        """Return the sum of the hashes of the bins of each row; see `row_draws.row_hashes`."""
        n_bins = np.diff(self.first_bin)
        feature = np.repeat(np.arange(self.n_features, dtype=np.uint64), n_bins)
        of_bins = mix(bits_of(self.lower) + STEP * (feature + np.uint64(1)))
        at_zero = self.first_bin[:-1] + np.minimum(self.zero, n_bins - 1)
        of_bins -= np.repeat(of_bins[at_zero], n_bins)
        first = np.empty(2 * self.n_features, dtype=np.int64)
        first[::2] = self.first_bin[:-1] + self.zero - 1
        first[1::2] = self.first_bin[:-1] + self.zero + self.has_zero
        total = np.zeros(self.n_rows, dtype=np.uint64)
        sparse.add_hashes(self.list_start, self.list_rows, self.list_bins, first, of_bins, total)
        return total


def ranges_of_cost(costs: Array) -> Iterator[tuple[int, int]]:
    """Yield ranges of items for kernel calls of a tenth of a second; Ctrl-C stops between them."""
    calls = np.cumsum(costs, dtype=np.int64) // CALL_VALUES
    ends = [*(np.flatnonzero(np.diff(calls)) + 1).tolist(), len(costs)]
    for part in pairwise([0, *ends]):
        check_stop()
        yield part


def _sizes(min_samples: int | None, n_rows: int) -> tuple[int, int]:
    """Return the minimum number of rows in a bin, and the number of values above which it is 1."""
    if min_samples is not None:
        return min_samples, n_rows
    return max(1, min(MIN_SAMPLES, int(MAX_SHARE * n_rows))), int(DENSE_SHARE * n_rows)


def bin_sparse(
    features: SparseFeatures, weights: FloatArray | None, max_bins: int
) -> SparseColumns:
    """Bin the values of each feature, by the rows of positive weight.

    A feature has a bin of zeros, and on each side bins with about equal numbers of rows. All rows
    are listed in these bins.
    """
    start, n, d = features.start, features.n_rows, features.n_features
    n_values = np.diff(start)
    has_zero = (n_values < n).astype(np.uint8)
    is_used = np.empty(0, np.uint8) if weights is None else (weights > 0).astype(np.uint8)
    first_bin, zero = np.empty(d + 1, np.int64), np.empty(d, np.int32)
    list_start, largest = np.empty(2 * d + 1, np.int64), np.empty(2 * d, np.int32)
    work, spare = np.empty((2, int(n_values.max(initial=0)) + 1))
    lower, upper = np.empty((2, len(features.data) + d))
    min_samples, many = _sizes(features.min_samples, n if weights is None else int(is_used.sum()))
    first_bin[0] = list_start[0] = 0
    for part in ranges_of_cost(n_values):
        sparse.bin_values(
            *part,
            start,
            features.rows,
            features.data,
            is_used,
            min(max_bins - 1, MOST_BINS),
            min_samples,
            many,
            has_zero,
            first_bin,
            zero,
            lower,
            upper,
            work,
            spare,
            np.empty(len(work), np.intp),
        )
    lower, upper = lower[: first_bin[-1]].copy(), upper[: first_bin[-1]].copy()
    threshold = midpoint(upper, np.append(lower[1:], 0.0))
    list_rows = np.empty(len(features.rows), np.int32)
    list_bins = np.empty(len(features.rows), np.uint8)
    for part in ranges_of_cost(n_values):
        sparse.list_rows(
            *part,
            start,
            features.rows,
            features.data,
            first_bin,
            zero,
            has_zero,
            threshold,
            list_start,
            list_rows,
            list_bins,
            largest,
        )
    lists = list_start, list_rows[: list_start[-1]], list_bins[: list_start[-1]], largest
    return SparseColumns(first_bin, zero, has_zero, lower, upper, *lists, n)
