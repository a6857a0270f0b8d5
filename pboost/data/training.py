"""Training data as the builders read it: rows class by class, columns, weights in fixed point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core.codes import list_rows
from pboost.data import projections, separators
from pboost.data.arguments import as_weights, scaled_weights
from pboost.data.columns import MAX_BINS, NO_WEIGHT, BinnedColumns, SortedColumns, made
from pboost.data.derived import GrownInputs, Inputs
from pboost.data.features import Features, as_features, check_finite, check_size
from pboost.data.projections import Projections
from pboost.data.rows import Rows, as_rows
from pboost.data.sorting import binned_columns, sorted_columns, to_fixed_point
from pboost.data.targets import AbsentClassError, as_labels
from pboost.values import IntArray
from pboost.weak.learners import Affine, ColumnLearner, Linear, RowLearner, Separator, Weak

#: What a row is that takes no part, beside 0 and 1 for its class.
_LEFT_OUT = np.uint8(2)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingData:
    """What one fit works on, and may change in place.

    Rows of weight 0 are left out; the others are renumbered class by class, class -1 first, each
    class in the order given. So the class of a row is a comparison, and a histogram adds one
    weight per cell.

    Attributes
    ----------
    columns : SortedColumns or BinnedColumns
        Of the renumbered rows.
    exact : bool
        Whether the search is exact.
    n_negative : int
        Number of rows of class -1.
    weight : ndarray of float64, shape (n,)
        Weights in a scale in which their sum is of the order of 1 per row.
    fixed : ndarray of int64, shape (n,)
        ``weight * scale``, rounded.
    scale : float
        A power of two.
    labels : ndarray, shape (2,)
        The two label values.
    rows : ndarray of int32, shape (n,)
        Row of X as given that each row stands for.
    n_features : int
        Number of columns of X.
    names : tuple of str or None
        Their names.
    n_given : int
        Number of rows of X as given.
    source : ndarray, shape (n_source, d), or None
        Values; None where they are not known.
    source_rows : ndarray of int32, shape (n,)
        Row of `source` that each row stands for.
    inputs : Inputs or None
        What nodes compare, where it is not columns of X: `columns` then hold projections, or, where
        they are made at the nodes, the columns of X.
    given : Rows or None
        X as given, for weak learners that read rows; `columns` are then empty.
    """

    columns: SortedColumns | BinnedColumns
    exact: bool
    n_negative: int
    weight: NDArray[np.float64]
    fixed: NDArray[np.int64]
    scale: float
    labels: NDArray[Any]
    rows: NDArray[np.int32]
    n_features: int
    names: tuple[str, ...] | None
    n_given: int
    source: NDArray[Any] | None
    source_rows: NDArray[np.int32]
    inputs: Inputs | None = None
    given: Rows | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""
        return len(self.weight)

    @property
    def cells(self) -> int:
        """Number of rows times columns that a search reads."""
        return max(self.columns.codes.size, self.n_rows)

    def searched_order(self) -> NDArray[np.int32]:
        """Return the sorted orders (d, n) of an exact search; without columns of a binned one."""
        if self.exact and isinstance(self.columns, SortedColumns):
            return self.columns.packed_order
        return np.empty((self.columns.n_features, 0), dtype=np.int32)

    def values(self, feature: int) -> NDArray[np.float64]:
        """Return what `feature` counts of each row, as float64 (n,)."""
        assert self.source is not None
        if self.inputs is None:
            return self.source[self.source_rows, feature].astype(np.float64)
        assert isinstance(self.inputs, Projections)
        column = np.empty((1, self.n_rows))
        self.inputs.gather(self.source, self.source_rows, feature, column)
        return column[0]

    def class_masses(self) -> tuple[int, int]:
        """Return the fixed-point mass of class -1 and of class +1."""
        return int(self.fixed[: self.n_negative].sum()), int(self.fixed[self.n_negative :].sum())

    def model_columns(self, feature: IntArray) -> dict[str, Any]:
        """Return the fields of a model that say what its nodes read, given columns of these."""
        if self.inputs is None:
            return {"feature": feature}
        kept, position = np.unique(feature, return_inverse=True)
        return {"feature": position.astype(np.int32), "inputs": self.inputs.select(kept)}


def prepare(X: Any, y: Any, sample_weight: Any, weak: Weak, n_threads: int | None) -> TrainingData:
    """Check the arguments of a builder and arrange them for training.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features.
    y : array_like of shape (n,)
        Labels, two values.
    sample_weight : array_like of shape (n,) or None
        Weights >= 0; weight k stands for k copies of a row.
    weak : Weak
        Decides what the columns are and whether columns are sorted or binned.
    n_threads : int or None
        Threads for sorting.

    Returns
    -------
    TrainingData
    """
    if isinstance(weak, RowLearner):
        return _prepare_rows(X, y, sample_weight)
    if isinstance(weak, Separator | Linear):
        return _prepare_grown(X, y, sample_weight, weak, n_threads)
    assert isinstance(weak, ColumnLearner)
    is_columns = isinstance(X, SortedColumns | BinnedColumns)
    features = None if is_columns else as_features(X)
    n, n_features = (X.n_rows, X.n_features) if features is None else features.values.shape
    check_size((n, n_features))
    labels, is_positive = as_labels(y, n)
    weights = as_weights(sample_weight, n)
    if features is not None:
        check_finite(features)
    rows, n_negative = _rows_by_class(is_positive, weights)
    exact = _is_exact(X, weak, n)
    source, source_rows = _source(X, features, rows)
    inputs = _projections(source, source_rows, weights, rows, weak)
    columns: SortedColumns | BinnedColumns
    if isinstance(X, BinnedColumns):
        columns = X.select(rows, n_threads, all_rows=len(rows) == n)
    elif isinstance(X, SortedColumns) and (exact or weights is None) and inputs is None:
        columns = X.select(rows, weak.max_bins, n_threads)
    else:
        assert source is not None
        values = Features(source, X.names if features is None else features.names)
        if exact:
            columns = sorted_columns(values, source_rows, weak.max_bins, n_threads, inputs)
        else:
            # Bins of equal weight, so that weight k gives the bins of k copies.
            bin_weight = NO_WEIGHT if weights is None else to_fixed_point(_scaled(weights[rows]))[1]
            columns = binned_columns(
                values, source_rows, weak.max_bins, bin_weight, n_threads, inputs
            )
    # Made after the columns: sorting needs the most memory.
    weight, scale, fixed = _row_weights(weights, rows)
    return TrainingData(
        columns, exact, n_negative, weight, fixed, scale, labels, rows, n_features, columns.names,
        n, source, source_rows, inputs,
    )  # fmt: skip


def _prepare_grown(
    X: Any, y: Any, sample_weight: Any, weak: Separator | Linear, n_threads: int | None
) -> TrainingData:
    """Arrange the arguments of a builder for learners that make what nodes compare on the way."""
    data = prepare(X, y, sample_weight, weak.stump, n_threads)
    if data.source is None:
        raise _no_values("that are separators or linear")
    kind = separators if isinstance(weak, Separator) else projections
    return replace(data, inputs=GrownInputs(kind.joined))


def _projections(
    source: NDArray[Any] | None,
    source_rows: NDArray[np.int32],
    weights: NDArray[np.float64] | None,
    rows: NDArray[np.int32],
    weak: ColumnLearner,
) -> Projections | None:
    """Return what the weak learner makes of the columns, None where it reads them as they are."""
    if not isinstance(weak, Affine):
        return None
    if source is None:
        raise _no_values("that are affine")
    return weak.projections(
        source, source_rows, None if weights is None else _scaled(weights[rows])
    )


def _no_values(kind: str) -> ValueError:
    """Return what is raised where nodes compare what is made of values, and these are not known."""
    return ValueError(
        f"X: expected a matrix, a data frame or SortedColumns for weak classifiers {kind}, "
        "got BinnedColumns, which do not hold the values that are added up"
    )


def _prepare_rows(X: Any, y: Any, sample_weight: Any) -> TrainingData:
    """Arrange the arguments of a builder for a weak learner that is given rows of X."""
    given = as_rows(X)
    labels, is_positive = as_labels(y, given.n_rows)
    weights = as_weights(sample_weight, given.n_rows)
    rows, n_negative = _rows_by_class(is_positive, weights)
    weight, scale, fixed = _row_weights(weights, rows)
    none = np.empty((0, MAX_BINS))
    codes, n_bins = np.empty((0, len(rows)), dtype=np.uint8), np.empty(0, dtype=np.int32)
    columns = made(BinnedColumns, codes, n_bins, none, none, None, None)
    return TrainingData(
        columns, False, n_negative, weight, fixed, scale, labels, rows, given.n_features,
        given.names, given.n_rows, None, rows, given=given,
    )  # fmt: skip


def _row_weights(
    weights: NDArray[np.float64] | None, rows: NDArray[np.int32]
) -> tuple[NDArray[np.float64], float, NDArray[np.int64]]:
    """Return the weights of rows, and the scale and values of their fixed-point images."""
    if weights is None:
        scale, one = to_fixed_point(np.ones(1), len(rows))
        # One piece of memory: all that a fit frees is then less than twice the largest, which is
        # what allocators keep for the next fit instead of clearing new pages.
        both = np.empty((2, len(rows)))
        weight, fixed = both[0], both[1].view(np.int64)
        weight.fill(1.0)
        fixed.fill(one[0])
        return weight, scale, fixed
    weight = _scaled(weights[rows])
    return weight, *to_fixed_point(weight)


def _source(
    X: Any, features: Features | None, rows: NDArray[np.int32]
) -> tuple[NDArray[Any] | None, NDArray[np.int32]]:
    """Return the values, None where they are not known, and which of their rows."""
    if features is not None:
        return features.values, rows
    return (X.source, X.rows[rows]) if isinstance(X, SortedColumns) else (None, rows)


def _rows_by_class(
    is_positive: NDArray[np.bool_], weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.int32], int]:
    """Return the rows of positive weight, class -1 first, and the number of that class."""
    kind, n_kept = is_positive.view(np.uint8), len(is_positive)
    if weights is not None:
        kind = np.where(weights > 0, kind, _LEFT_OUT)
        n_kept = int(np.count_nonzero(weights))
    n_positive = int(np.count_nonzero(is_positive if weights is None else kind == 1))
    n_negative = n_kept - n_positive
    if not n_negative or not n_positive:
        raise AbsentClassError("sample_weight: expected both classes to have positive weight")
    rows = np.empty(n_kept, dtype=np.int32)
    list_rows(kind, 0, rows[:n_negative])
    list_rows(kind, 1, rows[n_negative:])
    return rows, n_negative


def _scaled(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights times the power of two that brings the largest into [1/2, 1)."""
    scaled, _ = scaled_weights(weights)
    if not (scaled > 0).all():
        raise ValueError("sample_weight: the weights differ by more than floating point can hold")
    return scaled


def _is_exact(X: Any, weak: ColumnLearner, n: int) -> bool:
    if isinstance(X, BinnedColumns):
        if weak.search == "exact":
            raise ValueError('weak: search="exact" needs SortedColumns or X, got BinnedColumns')
        if int(X.n_bins.max(initial=0)) > weak.max_bins:
            raise ValueError(
                f"weak: max_bins={weak.max_bins}, but the BinnedColumns have up to "
                f"{int(X.n_bins.max())} bins"
            )
        return False
    if isinstance(X, SortedColumns) and weak.search == "auto" and not isinstance(weak, Affine):
        return True
    return weak.resolve_search(n) == "exact"
