"""Training data of classification and regression trees, shared by several fits or for one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core.reweight import scale_weights
from pboost.data.arguments import as_weights, scaled_weights
from pboost.data.blocks import copied
from pboost.data.columns import (
    AUTO_BINNED_ROWS,
    MAX_BINS,
    NO_WEIGHT,
    BinnedColumns,
    SortedColumns,
    midpoint,
)
from pboost.data.features import Features, as_features, check_finite, check_size
from pboost.data.sorting import binned_columns, sorted_columns, sorted_orders, to_fixed_point
from pboost.data.targets import as_classes, as_targets
from pboost.threads import Workers
from pboost.values import FloatArray, IntArray

_NO_ORDER = np.empty(0, dtype=np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class CartProblem:
    """X and y as trees of any row weights are fitted to them.

    Attributes
    ----------
    columns : SortedColumns, BinnedColumns or ndarray
        X; a matrix is sorted for each tree.
    labels : ndarray, shape (J,), or None
        Label values, None of a regression.
    label : ndarray of int32, shape (n,)
        Class of each row; empty of a regression.
    y : ndarray of float64, shape (n,)
        Targets times ``2**-exponent``, below 1; empty of a classification.
    exponent : int
        See `y`.
    names : tuple of str or None
        Names of the columns.
    """

    columns: SortedColumns | BinnedColumns | NDArray[Any]
    labels: NDArray[Any] | None
    label: IntArray
    y: FloatArray
    exponent: int
    names: tuple[str, ...] | None

    @property
    def n_rows(self) -> int:
        """Number of rows of X."""
        columns = self.columns
        return len(columns) if isinstance(columns, np.ndarray) else columns.n_rows

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        columns = self.columns
        return columns.shape[1] if isinstance(columns, np.ndarray) else columns.n_features

    def sorted_once(self, n_threads: int | None) -> CartProblem:
        """Return the problem with columns that several trees share."""
        if not isinstance(self.columns, np.ndarray):
            return self
        features = Features(self.columns, self.names)
        rows = np.arange(self.n_rows, dtype=np.int32)
        return replace(self, columns=sorted_columns(features, rows, MAX_BINS, n_threads))

    def values(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return rows of X, or what is on the same side of every threshold of a tree."""
        columns = self.columns
        if isinstance(columns, np.ndarray):
            return columns[rows]
        if isinstance(columns, SortedColumns):
            return columns.source[columns.rows[rows]]
        values = np.empty((len(rows), self.n_features))
        for j in range(self.n_features):
            values[:, j] = columns.lower[j][columns.codes[j][rows]]
        return values

    def thresholds(self, feature: IntArray, low: IntArray, high: IntArray) -> FloatArray:
        """Return thresholds between rows of X, or between bins, of columns."""
        columns = self.columns
        if isinstance(columns, BinnedColumns):
            return np.asarray(columns.threshold(feature, low, None))
        if isinstance(columns, SortedColumns):
            below, above = columns.values(feature, low), columns.values(feature, high)
        else:
            below = columns[low, feature].astype(np.float64)
            above = columns[high, feature].astype(np.float64)
        return np.asarray(midpoint(below, above))

    def weighted(self, weights: FloatArray | None, workers: Workers) -> CartData:
        """Return the data of one tree; rows of weight 0 are left out."""
        n = self.n_rows
        if weights is None:
            rows = np.arange(n, dtype=np.int32)
        else:
            rows = np.flatnonzero(weights > 0).astype(np.int32)
        columns = self.columns
        if isinstance(columns, BinnedColumns):
            weight, fixed, exponent, scale = _scaled_and_fixed(weights, None, n)
            return CartData(
                self, rows, weight, fixed, self.label, self.y, exponent, scale,
                _NO_ORDER.reshape(self.n_features, 0),
            )  # fmt: skip
        if self.labels is not None:
            # Class by class, as the search of two classes wants them.
            rows = rows.take(_by_class(self.label.take(rows)))
        weight, fixed, exponent, scale = _scaled_and_fixed(weights, rows, len(rows))
        if isinstance(columns, SortedColumns):
            order = columns.select_order(rows, workers)
        else:
            order = sorted_orders(columns, rows, workers)
        return CartData(
            self, rows, weight, fixed, self.label.take(rows) if len(self.label) else self.label,
            self.y[rows] if len(self.y) else self.y, exponent, scale, order,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class CartData:
    """What one fit works on, and may change in place.

    Rows are numbered anew where columns are sorted, class by class; binned columns are shared, and
    rows keep their numbers.

    Attributes
    ----------
    problem : CartProblem
        X and y.
    rows : ndarray of int32, shape (n,)
        Rows of X of positive weight; where columns are sorted, row i here is ``rows[i]`` there.
    weight : ndarray of float64
        Weights times ``2**-weight_exponent``, 1 at most.
    fixed : ndarray of int64
        ``weight * scale``, rounded.
    label, y : ndarray
        As in `CartProblem`, of the rows here.
    weight_exponent : int
        See `weight`.
    scale : float
        A power of two.
    order : ndarray of int32, shape (d, n)
        Sorted orders; without columns where these are binned.
    """

    problem: CartProblem
    rows: IntArray
    weight: FloatArray
    fixed: NDArray[np.int64]
    label: IntArray
    y: FloatArray
    weight_exponent: int
    scale: float
    order: IntArray

    @property
    def exact(self) -> bool:
        """Whether the search is exact."""
        return not isinstance(self.problem.columns, BinnedColumns)

    def thresholds(self, feature: IntArray, low: IntArray, high: IntArray) -> FloatArray:
        """Return thresholds between rows, or between bins, of columns."""
        if self.exact:
            low, high = self.rows[low], self.rows[high]
        return self.problem.thresholds(feature, low, high)

    def own(self) -> CartData:
        """Return the data with orders of their own, so that these can be fitted to again."""
        return CartData(
            self.problem, self.rows, self.weight, self.fixed, self.label, self.y,
            self.weight_exponent, self.scale, copied(self.order),
        )  # fmt: skip


def cart_problem(
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    task: str,
    search: str,
    max_bins: int,
    n_threads: int | None,
) -> tuple[CartProblem, FloatArray | None]:
    """Check the arguments of a builder of trees; returns the problem and the row weights.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features.
    y : array_like of shape (n,)
        Labels, or numbers of a regression.
    sample_weight : array_like of shape (n,) or None
        Weights >= 0.
    task : {"classification", "regression"}
        What `y` is.
    search : {"exact", "binned", "auto"}
        Which search the columns are made for.
    max_bins : int
        Bins of a binned search.
    n_threads : int or None
        Threads for binning.
    """
    is_columns = isinstance(X, SortedColumns | BinnedColumns)
    features = None if is_columns else as_features(X)
    n, d = (X.n_rows, X.n_features) if features is None else features.values.shape
    check_size((n, d))
    labels, label, targets, exponent = None, _NO_ORDER, np.empty(0), 0
    if task == "classification":
        labels, label = as_classes(y, n)
    else:
        targets = as_targets(y, n)
        exponent = int(np.frexp(np.abs(targets).max())[1])
        targets = np.ldexp(targets, -exponent)
    weights = as_weights(sample_weight, n)
    with np.errstate(over="ignore"):
        if weights is not None and not np.isfinite(weights.sum()):
            raise ValueError("sample_weight: expected weights with a finite sum")
    columns = X
    if features is not None:
        check_finite(features)
        columns = features.values
        if is_binned(search, n):
            columns = _binned(features, weights, max_bins, n_threads)
    elif isinstance(X, BinnedColumns):
        if search == "exact":
            raise ValueError('search: "exact" needs SortedColumns or X, got BinnedColumns')
    elif search == "binned":
        raise ValueError('search: "binned" needs BinnedColumns or X, got SortedColumns')
    names = X.names if features is None else features.names
    return CartProblem(columns, labels, label, targets, exponent, names), weights


def _binned(
    features: Features, weights: FloatArray | None, max_bins: int, n_threads: int | None
) -> BinnedColumns:
    """Return the bins of the rows of positive weight; others are in any."""
    n = len(features.values)
    if weights is None:
        rows = np.arange(n, dtype=np.int32)
        return binned_columns(features, rows, max_bins, NO_WEIGHT, n_threads)
    rows = np.flatnonzero(weights).astype(np.int32)
    fixed = to_fixed_point(scaled_weights(weights[rows])[0])[1]
    columns = binned_columns(features, rows, max_bins, fixed, n_threads)
    if len(rows) == n:
        return columns
    codes = np.zeros((len(columns.codes), n), dtype=np.uint8)
    codes[:, rows] = columns.codes
    return replace(columns, codes=codes)


def _by_class(label: IntArray) -> NDArray[np.intp]:
    """Return the rows class by class."""
    # NumPy sorts small integers by their digits.
    small = label.astype(np.int16) if label.max(initial=0) < 2**15 else label
    return np.argsort(small, kind="stable")


def is_binned(search: str, n: int) -> bool:
    """Return whether n rows are searched by bins."""
    return search == "binned" or (search == "auto" and n >= AUTO_BINNED_ROWS)


def _scaled_and_fixed(
    weights: FloatArray | None, rows: IntArray | None, n: int
) -> tuple[FloatArray, NDArray[np.int64], int, float]:
    """Return `weight`, `fixed`, `weight_exponent` and `scale` of the listed rows, or of all."""
    if weights is None:
        weight = np.ones(n)
        scale, fixed = to_fixed_point(weight)
        return weight, fixed, 0, scale
    weight, fixed = np.empty(n), np.empty(n, dtype=np.int64)
    exponent, scale = scale_weights(weights, rows, weight, fixed)
    return weight, fixed, exponent, scale
