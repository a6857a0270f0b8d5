"""Checked training data, and the rows in the order in which a split search reads them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core.binning import list_rows
from pboost.data.columns.bin_and_sort import (
    binned_columns,
    binned_features,
    columns_sorted,
    sorted_columns,
    sorted_orders,
)
from pboost.data.columns.columns import (
    AUTO_BINNED_ROWS,
    MAX_BINS,
    MOST_FLOAT,
    NO_WEIGHT,
    SEARCHES,
    BinnedColumns,
    BinnedValues,
    SortedColumns,
    check_summed,
    lacks_values,
    listed_values,
    made,
    midpoint,
    to_fixed_point,
    values_in_bins,
    values_of,
)
from pboost.data.columns.prebuilt import LEVELS
from pboost.data.columns.sparse_columns import SparseColumns, SparseFeatures, bin_sparse
from pboost.data.node_inputs.imputation import column_means
from pboost.data.node_inputs.inputs import GrownInputs, Inputs, Subsets, indicators_of
from pboost.data.node_inputs.sums import Projections
from pboost.data.read.check_xy import (
    AbsentClassError,
    as_features,
    as_targets,
    as_weights,
    check_taken,
    targets_that_count,
)
from pboost.data.read.convert import (
    Features,
    RowTable,
    as_rows,
    check_size,
    is_sparse,
    sparse_rows,
)
from pboost.data.read.table import NUMBERS, Table, Takes
from pboost.data.resampling import HeldRows, HoldOut, trained_features
from pboost.data.row_fingerprint import Digest, digest_of
from pboost.data.targets import (
    Classes,
    Entries,
    RowWeights,
    SoftLabels,
    by_class,
    classes_of_rows,
    numbers_given,
    rows_by_label,
    weighed,
)
from pboost.threads import Workers
from pboost.values import Array, FloatArray, Floats, IntArray, TableLike, check_choice

#: Class code of rows of weight 0 in a binary classification.
_LEFT_OUT = np.uint8(2)
_NO_ROWS = np.empty(0, dtype=np.int32)
_NO_NUMBERS = np.empty(0)
_NO_BINS = np.empty((0, MAX_BINS))
_NO_COLUMNS = made(
    BinnedColumns,
    np.empty((0, 0), dtype=np.uint8),
    _NO_ROWS,
    _NO_BINS,
    _NO_BINS,
    None,
    None,
    None,
    None,
)
#: The features of a problem.
AnyColumns: TypeAlias = (
    Features | SortedColumns | BinnedColumns | SparseFeatures | SparseColumns | RowTable
)
#: Function that creates projections for rows of a matrix and their weights.
Project: TypeAlias = Callable[[Floats, IntArray, FloatArray | None], Projections]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Problem:
    """X, y and sample weights of a fit, after all checks.

    Attributes
    ----------
    columns : Features, SortedColumns, BinnedColumns, SparseColumns or RowTable
        The features. A matrix is sorted for each fit. A `RowTable` is for weak learners that
        receive rows. If `entries` is set, sorted and binned columns have one row per entry.
    classes : ndarray, shape (J,), or None
        Class labels; None for a regression.
    label : ndarray of integers, shape (n,)
        Class of each row; empty for a regression.
    weights : ndarray of float64, shape (n,), or None
        Sample weights.
    names : tuple of str or None
        Feature names.
    y : ndarray of float64, shape (n,)
        Targets times ``2**-exponent``, below 1, and 0 for rows of weight 0. Empty for a
        classification.
    exponent : int
        Exponent of the power of two in `y`.
    table : Table or None
        Description of the features. None if all are numeric without missing values.
    ranks : ndarray of int32, shape (d, n), or None
        Ranks of the rows by each feature, with equal ranks for ties. Only set if nodes sort their
        rows on demand.
    entries : Entries or None
        Entries of class probabilities. If set, `label` and `weights` have one element per
        entry, and "row" means an entry.
    seen : ndarray of uint64, or None
        Digest of the rows of X of positive weight, which models store.
    held : HeldRows or None
        Validation rows, removed before X was read so that features do not depend on them. Their
        weights are 0.
    elsewhere : object, or None
        Object that stores the rows of a row source.
    """

    columns: AnyColumns
    classes: Array | None
    label: Array
    weights: FloatArray | None
    names: tuple[str, ...] | None
    y: FloatArray = field(default_factory=lambda: _NO_NUMBERS)
    exponent: int = 0
    table: Table | None = None
    entries: Entries | None = None
    ranks: IntArray | None = None
    seen: Digest | None = None
    held: HeldRows | None = None
    elsewhere: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows of X."""
        return len(self.label) or len(self.y)

    def model_fields(self) -> dict[str, Any]:
        """Return the fields of a model that describe its training data."""
        return {
            "classes": self.classes,
            "n_features": self.n_features,
            "feature_names": self.names,
            "table": self.table,
            "seen": self.seen,
        }

    @property
    def is_multiclass(self) -> bool:
        """Whether there are more than two classes."""
        return self.classes is not None and len(self.classes) > 2

    @property
    def first(self) -> NDArray[np.intp]:
        """The first entry of each row of X."""
        return np.arange(self.n_rows) if self.entries is None else self.entries.first

    def input_rows(self, rows: Array) -> Array:
        """Return the row numbers in X of rows or entries."""
        input_rows: Array = rows if self.entries is None else self.entries.rows[rows]
        return input_rows

    @property
    def n_features(self) -> int:
        """Number of features of X."""
        return self.columns.n_features

    def hold_out(self, hold: HoldOut) -> Problem:
        """Split off a validation set, whose rows get weight 0."""
        rows = np.arange(self.n_rows) if self.weights is None else np.flatnonzero(self.weights > 0)
        drawn = hold.draw(rows, self.classes, self.label, self.entries)
        weights = np.ones(self.n_rows) if self.weights is None else self.weights.copy()
        is_numeric = self.classes is None
        y = np.ldexp(self.y[drawn], self.exponent) if is_numeric else self.label[drawn]
        held = HeldRows(drawn, self.input_rows(drawn), weights[drawn], y)
        weights[drawn] = 0.0
        return replace(self, weights=weights, held=held)

    def scaled(self) -> Problem:
        """Divide the targets of a regression by a power of two, so that they are below 1."""
        y = targets_that_count(self.y, self.weights)
        exponent = int(np.frexp(np.abs(y).max())[1])
        return replace(self, y=np.ldexp(y, -exponent), exponent=exponent)

    def in_sums(self) -> Problem:
        """One-hot encode the categorical features, for models with sums of features."""
        levels = indicators_of(self.table)
        if levels is None:
            return self
        columns = Features(levels.values(self.values(self.first)), None, levels.known())
        return replace(self, columns=columns, names=None, table=levels.known())

    def sorted_once(self, n_threads: int | None) -> Problem:
        """Sort the features, for use by several trees."""
        if not isinstance(self.columns, Features):
            return self
        _, rows = self.source(np.arange(self.n_rows, dtype=np.int32))
        return replace(self, columns=sorted_columns(self.columns, rows, MAX_BINS, n_threads))

    def source(self, rows: IntArray) -> tuple[Any, IntArray]:
        """Return the matrix of values (or None), and the row numbers in this matrix."""
        if isinstance(self.columns, SortedColumns | BinnedValues):
            return self.columns.source, self.columns.rows[rows]
        if isinstance(self.columns, Features):
            return self.columns.values, self.input_rows(rows)
        return None, rows

    def values(self, rows: Array) -> Floats:
        """Return the values of rows of X. For binned columns, return values inside the bins."""
        if isinstance(self.columns, BinnedColumns):
            return values_in_bins(self.columns, rows)
        source, listed = self.source(rows)
        return source[listed]

    def thresholds(self, feature: IntArray, low: IntArray, high: IntArray) -> FloatArray:
        """Return thresholds between rows of X, or between bins."""
        columns = self.columns
        if isinstance(columns, BinnedColumns | SparseColumns):
            return np.asarray(columns.threshold(feature, low, None))
        (source, below), (_, above) = self.source(low), self.source(high)
        edges = (source[rows, feature].astype(np.float64) for rows in (below, above))
        return np.asarray(midpoint(*edges))

    def weighted(self, weights: FloatArray | None, workers: Workers) -> TrainingData:
        """Return the data of one tree, without rows of weight 0.

        Sorted features are renumbered, class by class. Binned features are shared and keep their
        row numbers.
        """
        n, columns = self.n_rows, self.columns
        rows = np.arange(n, dtype=np.int32)
        if weights is not None:
            rows = np.flatnonzero(weights > 0).astype(np.int32)
        if isinstance(columns, BinnedColumns):
            order = np.empty((self.n_features, 0), dtype=np.int32)
            return TrainingData(
                problem=self,
                rows=rows,
                **weighed(weights, None, n, in_any_order=True)._asdict(),
                exact=False,
                order=order,
                label=self.label,
                y=self.y,
                columns=columns,
            )
        if self.classes is not None:
            # The search for two classes needs the rows sorted by class.
            rows = rows.take(by_class(self.label.take(rows)))
        sorted_columns: SortedColumns | BinnedColumns = _NO_COLUMNS
        if self.table is not None:  # codes mark missing values
            sorted_columns = self._sorted(rows, workers)
            order = sorted_columns.packed_order.copy()
        elif self.ranks is not None:
            order = np.empty((self.n_features, 0), dtype=np.int32)
        elif isinstance(columns, SortedColumns):
            order = columns.select_order(rows, workers)
        else:
            order = sorted_orders(*self.source(rows), workers)
        return TrainingData(
            problem=self,
            rows=rows,
            **weighed(weights, rows, len(rows))._asdict(),
            exact=True,
            order=order,
            label=self.label.take(rows) if len(self.label) else self.label,
            y=self.y[rows] if len(self.y) else self.y,
            columns=sorted_columns,
        )

    def _sorted(self, rows: IntArray, workers: Workers) -> SortedColumns:
        """Return sorted columns of the selected rows."""
        if isinstance(self.columns, SortedColumns):
            return self.columns.select_among(rows, MAX_BINS, workers)
        source, listed = self.source(rows)
        return columns_sorted(Features(source, self.names, self.table), listed, MAX_BINS, workers)

    def arranged(
        self,
        n_threads: int | None,
        *,
        max_bins: int,
        exact: bool,
        project: Project | None = None,
    ) -> TrainingData:
        """Return the data of a boosted model: the rows of positive weight.

        Rows are sorted by class, class -1 first, otherwise in the original order. The class of a
        row then follows from its number. With `project`, nodes compare projections of the features.
        Multiclass data also contain the class of each row.
        """
        X, n = self.columns, self.n_rows
        rows, n_negative = self._rows_by_class()
        source, source_rows = self.source(rows)
        is_weighed = self.weights is not None
        inputs = None
        if project is not None:
            weight = self._weighed(rows).weight if is_weighed else None
            fill = column_means(source, source_rows, weight)
            inputs = replace(project(source, source_rows, weight), fill=fill)
        columns: SortedColumns | BinnedColumns
        if isinstance(X, BinnedColumns):
            columns = X.select(rows, n_threads, all_rows=len(rows) == n)
        elif isinstance(X, SortedColumns) and (exact or not is_weighed) and inputs is None:
            columns = X.select(rows, max_bins, n_threads)
        else:
            values = Features(source, self.names, self.table)
            if exact:
                columns = sorted_columns(values, source_rows, max_bins, n_threads, inputs)
            else:
                # Compute the bin edges with weights: a row of weight k counts as k copies.
                fixed = self._weighed(rows).fixed.copy() if is_weighed else NO_WEIGHT
                columns = binned_columns(values, source_rows, max_bins, fixed, n_threads, inputs)
        # Allocate weights after sorting, which needs the most memory.
        return TrainingData(
            problem=self,
            rows=rows,
            **self._weighed(rows)._asdict(),
            exact=exact,
            order=_searched_order(columns, exact),
            columns=columns,
            n_negative=n_negative,
            source=source,
            source_rows=source_rows,
            inputs=inputs,
            label=self.label[rows] if self.is_multiclass else _NO_ROWS,
        )

    def as_given(self) -> TrainingData:
        """Return the data of weak learners that receive rows of X; `columns` is empty."""
        rows, n_negative = self._rows_by_class()
        return TrainingData(
            problem=self,
            rows=rows,
            **self._weighed(rows)._asdict(),
            exact=False,
            order=_NO_ROWS,
            n_negative=n_negative,
        )

    def _rows_by_class(self) -> tuple[IntArray, int]:
        """Return the rows of positive weight sorted by class, and the number of rows of class -1.

        For a multiclass target the number is 0.
        """
        kind, weights = self.label, self.weights
        if self.is_multiclass:
            return rows_by_label(kind, weights, self.classes), 0
        if weights is not None:
            kind = np.where(weights > 0, kind, _LEFT_OUT)
        n_positive = int(np.count_nonzero(kind == 1 if weights is not None else kind))
        n_kept = self.n_rows if weights is None else int(np.count_nonzero(weights))
        n_negative = n_kept - n_positive
        if not n_negative or not n_positive:
            raise AbsentClassError("sample_weight: expected both classes to have positive weight")
        rows = np.empty(n_kept, dtype=np.int32)
        list_rows(kind, 0, rows[:n_negative])
        list_rows(kind, 1, rows[n_negative:])
        return rows, n_negative

    def _weighed(self, rows: IntArray) -> RowWeights:
        """Return the weights of rows; raise ValueError if one underflows."""
        row_weights = weighed(self.weights, rows, len(rows), in_any_order=True)
        if self.weights is not None and not (row_weights.weight > 0).all():
            raise ValueError(
                "sample_weight: expected weights of similar magnitude, got a ratio beyond float64; "
                "set tiny weights to 0"
            )
        return row_weights


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TrainingData:
    """The rows of positive weight in a fit, whose arrays may be modified in place.

    Attributes
    ----------
    problem : Problem
        X and y.
    rows : ndarray of int32, shape (n,)
        Row number in X of each row.
    weight : ndarray of float64, shape (n,)
        Weights times ``2**-weight_exponent``, at most 1.
    fixed : ndarray of int64, shape (n,)
        ``weight * scale``, rounded.
    weight_exponent, scale : int, float
        Factors in `weight` and `fixed`; `scale` is a power of two.
    exact : bool
        Whether the search is exact.
    order : ndarray of int32, shape (d, n)
        Packed sorted orders for an exact search; empty for a binned one.
    label, y : ndarray
        As in `Problem`, for these rows. Empty for boosted models.
    columns : SortedColumns or BinnedColumns
        Columns of the rows of a boosted model.
    n_negative : int
        Number of rows of class -1, which come first in a boosted model.
    source : ndarray, shape (n_source, d), or None
        Feature values, if they are kept.
    source_rows : ndarray of int32, shape (n,)
        Row number in `source` of each row.
    inputs : Inputs or None
        Inputs of the nodes, if they are not features of X. `columns` contains projections, or the
        features of X if the inputs are computed at the nodes.
    """

    problem: Problem
    rows: IntArray
    weight: FloatArray
    fixed: NDArray[np.int64]
    weight_exponent: int
    scale: float
    exact: bool
    order: IntArray
    label: Array = field(default_factory=lambda: _NO_ROWS)
    y: FloatArray = field(default_factory=lambda: _NO_NUMBERS)
    columns: SortedColumns | BinnedColumns = _NO_COLUMNS
    n_negative: int = 0
    source: Any = None
    source_rows: IntArray = field(default_factory=lambda: _NO_ROWS)
    inputs: Inputs | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""
        return len(self.rows)

    @property
    def given_rows(self) -> IntArray:
        """Row number in X of each row or entry."""
        return self.problem.input_rows(self.rows)

    @property
    def cells(self) -> int:
        """Number of rows times features in a search."""
        return max(self.columns.codes.size, self.n_rows)

    def values(self, feature: int) -> FloatArray:
        """Return the values (n,) of an input of the nodes, as float64."""
        if self.inputs is None:
            return self.source[self.source_rows, feature].astype(np.float64)
        assert isinstance(self.inputs, Projections)
        column = np.empty((1, self.n_rows))
        self.inputs.gather(self.source, self.source_rows, feature, column)
        return column[0]

    def by_class(self, values: Array) -> tuple[Any, Any]:
        """Return the sums of row values for class -1 and class +1."""
        return values[: self.n_negative].sum().item(), values[self.n_negative :].sum().item()

    def class_masses(self) -> tuple[int, int]:
        """Return the sums of fixed-point weights for class -1 and class +1."""
        return self.by_class(self.fixed)

    def starting_weight(self) -> FloatArray:
        """Return the sample weights before the fit, times a power of two."""
        weights = self.problem.weights
        if weights is None:
            return np.ones(self.n_rows)
        # Scale the weights, because their sum could overflow.
        return np.ldexp(weights[self.rows], -self.weight_exponent)

    def class_sums(self) -> tuple[float, float]:
        """Return the sums of sample weights for class -1 and class +1, each rounded once."""
        return self.sums_by_class(self.starting_weight())

    def sums_by_class(self, weights: FloatArray) -> tuple[float, float]:
        """Return the sums of weights for class -1 and class +1, each rounded once."""
        return math.fsum(weights[: self.n_negative]), math.fsum(weights[self.n_negative :])

    def cuts_of_levels(
        self, feature: IntArray, threshold: FloatArray, members: Sequence[int]
    ) -> dict[str, Any]:
        """Return the model fields for splits by thresholds and by category sets.

        The bits of `members` are the categories of exit 1. They are 0 for a split by threshold. A
        threshold on a categorical feature separates missing values from all categories.
        """
        words = [bits.to_bytes(MAX_BINS // 8, "little") for bits in members]
        member = np.frombuffer(b"".join(words), dtype="<u8").reshape(-1, MAX_BINS // 64)
        number, inputs = Subsets.of_tests(self.problem.n_features, feature, member)
        special = self.columns.special
        assert special is not None
        is_empty = (special[feature] & LEVELS > 0) & ~member.any(axis=1)
        threshold = np.where(is_empty, MOST_FLOAT, threshold)
        return {"feature": number, "inputs": inputs, "threshold": threshold}

    def model_columns(self, feature: IntArray) -> dict[str, Any]:
        """Return the model fields for splits on columns of this data."""
        if self.inputs is None:
            return {"feature": feature}
        return dict(zip(("feature", "inputs"), self.inputs.of_nodes(feature), strict=True))

    def thresholds(self, feature: IntArray, low: IntArray, high: IntArray) -> FloatArray:
        """Return thresholds between rows, or between bins, of features."""
        if self.exact:
            low, high = self.rows[low], self.rows[high]
        return self.problem.thresholds(feature, low, high)

    def growing(self, joined: Callable[[Sequence[Any]], Inputs]) -> TrainingData:
        """Return the data for weak learners that create inputs. `joined` merges the inputs."""
        check_summed(self.problem.columns, "that are separators or linear")
        return replace(self, inputs=GrownInputs(joined))

    def part(self, rows: NDArray[np.intp], weight: FloatArray) -> TrainingData:
        """Return a subset of the rows with new weights. `columns` remains unchanged."""
        scale, fixed = to_fixed_point(weight)
        return replace(
            self,
            rows=self.rows[rows],
            source_rows=self.source_rows[rows],
            weight=weight,
            fixed=fixed,
            scale=scale,
            n_negative=int(np.searchsorted(rows, self.n_negative)),
            inputs=None,
        )

    def with_columns(self, columns: SortedColumns | BinnedColumns, exact: bool) -> TrainingData:
        """Return the data with other columns for the same rows."""
        return replace(self, columns=columns, exact=exact, order=_searched_order(columns, exact))


def boosted_problem(
    X: TableLike,
    y: object,
    sample_weight: ArrayLike | None,
    two: str | None,
    *,
    as_given: bool = False,
    takes: Takes = NUMBERS,
    hold: HoldOut | None = None,
) -> Problem:
    """Check the arguments of a fit function for boosted models.

    For `two`, see `as_classes`. With `as_given`, X is not converted. `takes` are the supported
    kinds of features, and `hold` defines the validation set. Binary labels are stored as uint8.
    """
    columns: AnyColumns = as_rows(X) if as_given else _as_columns(X)
    class_data = classes_of_rows(y, sample_weight, columns.n_rows, two)
    if isinstance(y, SoftLabels):
        y.check_present()
    if len(class_data.classes) == 2:
        class_data = class_data._replace(label=class_data.label.astype(np.uint8))
    problem, _ = _begun(columns, class_data, _NO_NUMBERS, sample_weight, takes, hold)
    columns = problem.columns
    table = None if isinstance(columns, RowTable) else columns.table
    check_taken(table, columns.names, takes)
    return replace(problem, columns=_of_entries(columns, class_data.entries), table=table)


def _begun(
    columns: AnyColumns,
    class_data: Classes,
    y: FloatArray,
    sample_weight: ArrayLike | None,
    takes: Takes,
    hold: HoldOut | None,
) -> tuple[Problem, FloatArray | None]:
    """Return the problem for checked arguments, and the weights of the training rows."""
    n = columns.n_rows
    problem = Problem(columns=columns, **class_data._asdict(), names=columns.names, y=y)
    of_rows = class_data.weights_of_rows(sample_weight, n)
    problem = problem if hold is None else problem.hold_out(hold)
    trained = of_rows if problem.held is None else problem.held.without(of_rows, n)
    if isinstance(columns, Features):
        columns = trained_features(columns, trained, takes, hold)
    return replace(problem, columns=columns, seen=digest_of(columns, of_rows)), trained


class Binning(NamedTuple):
    """Settings of the split search."""

    search: str
    max_bins: int
    n_threads: int | None


def tree_problem(
    X: TableLike,
    y: object,
    sample_weight: ArrayLike | None,
    *,
    task: str,
    binning: Binning,
    takes: Takes = NUMBERS,
    hold: HoldOut | None = None,
) -> Problem:
    """Check the arguments of a fit function for trees, and bin X for a binned search.

    `takes` are the supported kinds of features, and `hold` defines the validation set.
    """
    columns: AnyColumns = _as_columns(X)
    n, names = columns.n_rows, columns.names
    search, max_bins, n_threads = binning
    targets = _NO_NUMBERS
    if task == "classification":
        class_data = classes_of_rows(y, sample_weight, n)
    else:
        targets = as_targets(numbers_given(y), n)
        class_data = Classes(None, _NO_ROWS, as_weights(sample_weight, n))
    with np.errstate(over="ignore"):
        if class_data.weights is not None and not np.isfinite(class_data.weights.sum()):
            raise ValueError("sample_weight: expected weights with a finite sum")
    problem, trained = _begun(columns, class_data, targets, sample_weight, takes, hold)
    if task == "regression":
        problem = problem.scaled()
    assert not isinstance(problem.columns, RowTable)
    columns = problem.columns
    if isinstance(columns, SparseFeatures):
        if class_data.entries is not None:
            raise NotImplementedError("y_proba: expected None with a sparse matrix; pass classes")
        columns = bin_sparse(columns, trained, max_bins)
    elif isinstance(columns, Features) and is_binned(search, n):
        values, columns = columns.values, binned_features(columns, trained, max_bins, n_threads)
        if problem.held is not None:
            held, columns = problem.held.coded(columns, values, n_threads)
            problem = replace(problem, held=held)
    elif isinstance(columns, BinnedColumns):
        if search == "exact":
            raise ValueError('search: expected "binned" or "auto" with BinnedColumns, got "exact"')
    elif search == "binned":
        raise ValueError('search: expected "exact" or "auto" with SortedColumns, got "binned"')
    check_taken(columns.table, names, takes)
    return replace(problem, columns=_of_entries(columns, class_data.entries), table=columns.table)


def is_binned(search: str, n: int, auto: int = AUTO_BINNED_ROWS) -> bool:
    """Return whether the search is binned. With "auto", it is binned for n >= `auto`."""
    return search == "binned" or (search == "auto" and n >= auto)


def _as_columns(X: TableLike) -> Features | SortedColumns | BinnedColumns | SparseFeatures:
    if not isinstance(X, SortedColumns | BinnedColumns | SparseFeatures):
        return as_features(X)
    check_size((X.n_rows, X.n_features))
    return X


def _searched_order(columns: SortedColumns | BinnedColumns, exact: bool) -> IntArray:
    """Return the sorted orders (d, n), or an empty array for a binned search."""
    if exact and isinstance(columns, SortedColumns):
        return columns.packed_order
    return np.empty((columns.n_features, 0), dtype=np.int32)


def _of_entries(columns: object, entries: Entries | None) -> Any:
    """Expand sorted or binned columns from rows to entries; return anything else unchanged."""
    if entries is None or not isinstance(columns, SortedColumns | BinnedColumns):
        return columns
    if isinstance(columns, BinnedColumns):
        return columns.select(entries.rows)
    features = Features(columns.source, columns.names, columns.table)
    return sorted_columns(features, columns.rows[entries.rows], MAX_BINS, None)


Fit = TypeVar("Fit", bound=Callable[..., Any])


class Search(NamedTuple):
    """Options of the split search of a fit function.

    Attributes
    ----------
    kind : {"auto", "exact", "binned"}
        Kind of search.
    max_bins : int
        Maximum number of bins of a binned search.
    takes_bins : bool
        Whether BinnedColumns are accepted in place of X, in addition to SortedColumns.
    """

    kind: str = "auto"
    max_bins: int = MAX_BINS
    takes_bins: bool = True

    def resolved(self, n_rows: int) -> str:
        """Return "exact" or "binned" for this number of rows."""
        check_choice("search", self.kind, SEARCHES)
        return "binned" if is_binned(self.kind, n_rows) else "exact"


_SEARCHED: dict[Callable[..., Any], Callable[[Mapping[str, Any]], Search | None]] = {}


def reads_columns(searched: Callable[[Mapping[str, Any]], Search | None]) -> Callable[[Fit], Fit]:
    """Register the split search of a fit function that accepts prepared columns."""

    def declare(fit: Fit) -> Fit:
        _SEARCHED[fit] = searched
        return fit

    return declare


def column_search(fit: object, options: Mapping[str, object]) -> Search | None:
    """Return the search of a fit function, or None if it does not accept prepared columns."""
    # Wrapper functions are not registered, because they may access X.
    searched = _SEARCHED.get(fit) if inspect.isfunction(fit) else None
    return None if searched is None else searched(options)


def search_option(options: Mapping[str, Any]) -> Search:
    """Return the search for the options `search` and `max_bins`."""
    return Search(options.get("search", "auto"), options.get("max_bins", MAX_BINS))


def check_values(X: TableLike, use: str = "to predict from") -> None:
    """Raise TypeError for columns without values; `use` completes the message."""
    if lacks_values(X):
        raise TypeError(
            f"X: expected values {use}, got BinnedColumns without values; pass X, SortedColumns or "
            "bin_columns(X, keep_values=True)"
        )


def rows_to_predict(X: TableLike) -> RowTable:
    """Return the rows of X for prediction; X can also be sorted or binned columns."""
    if is_sparse(X):
        return sparse_rows(X)
    check_values(X)
    X = values_of(X)
    if not isinstance(X, SortedColumns):
        return as_rows(X)
    rows = as_rows(listed_values(X.source, X.rows))
    return replace(rows, names=X.names, table=X.table)
