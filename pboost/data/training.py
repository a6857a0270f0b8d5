"""What a fit works on: X, y and weights, read once; and their rows, arranged to be searched."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core.binning import list_rows
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
from pboost.data.columns.making import (
    binned_columns,
    binned_features,
    columns_sorted,
    sorted_columns,
    sorted_orders,
)
from pboost.data.columns.prebuilt import LEVELS
from pboost.data.node_inputs.fill import column_means
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
from pboost.data.read.convert import Features, RowTable, as_rows, check_size
from pboost.data.read.table import NUMBERS, Table, Takes
from pboost.data.row_digest import Digest, digest_of
from pboost.data.splits import HeldRows, HoldOut, trained_features
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

#: What a row is that takes no part, beside 0 and 1 for its class.
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
#: Makes projections of the listed rows of a matrix, given their weights.
Project: TypeAlias = Callable[[Floats, IntArray, FloatArray | None], Projections]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Problem:
    """X, y and weights, checked and read once; models of any row weights are fitted to them.

    Attributes
    ----------
    columns : Features, SortedColumns, BinnedColumns or Rows
        X; a matrix is sorted for each fit, `RowTable` are for weak learners that are given rows.
        Sorted and binned columns are those of the entries, where there are such.
    classes : ndarray, shape (J,), or None
        Label values, None of a regression.
    label : ndarray of integers, shape (n,)
        Class of each row; empty of a regression.
    weights : ndarray of float64, shape (n,), or None
        Weights of the rows, as given.
    names : tuple of str or None
        Names of the columns.
    y : ndarray of float64, shape (n,)
        Targets times ``2**-exponent``, below 1, and 0 of rows of weight 0; empty of a
        classification.
    exponent : int
        See `y`.
    table : Table or None
        What the columns are; None where they are numbers and none is missing.
    ranks : ndarray of int32, shape (d, n), or None
        Ranks of the rows in each column, equal values alike; None unless the sorted order of the
        rows of a node is made where it is asked for.
    entries : Entries or None
        Of soft labels, of which a row has several: `label` and `weights` are then those of the
        entries, and where rows are spoken of, entries are meant.
    seen : ndarray of uint64, or None
        Digest of the rows of X of positive weight, which models keep.
    held : HeldRows or None
        Rows that were held out before X was read, so that nothing of the columns depends on them;
        their weights are 0.
    elsewhere : object, or None
        What has the rows of a row source, of which there are none here.
    """

    columns: Features | SortedColumns | BinnedColumns | RowTable
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
        """Return the fields of a model that say what it was fitted to."""
        return {
            "classes": self.classes,
            "n_features": self.n_features,
            "feature_names": self.names,
            "table": self.table,
            "seen": self.seen,
        }

    @property
    def is_multiclass(self) -> bool:
        """Whether there are more classes than two."""
        return self.classes is not None and len(self.classes) > 2

    @property
    def first(self) -> NDArray[np.intp]:
        """The first entry of each row of X as it was given."""
        return np.arange(self.n_rows) if self.entries is None else self.entries.first

    def input_rows(self, rows: Array) -> Array:
        """Return which rows of X, as it was given, some rows are."""
        input_rows: Array = rows if self.entries is None else self.entries.rows[rows]
        return input_rows

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return self.columns.n_features

    def hold_out(self, hold: HoldOut) -> Problem:
        """Return the problem with weight 0 for the rows that are held out."""
        rows = np.arange(self.n_rows) if self.weights is None else np.flatnonzero(self.weights > 0)
        drawn = hold.draw(rows, self.classes, self.label, self.entries)
        weights = np.ones(self.n_rows) if self.weights is None else self.weights.copy()
        is_numeric = self.classes is None
        y = np.ldexp(self.y[drawn], self.exponent) if is_numeric else self.label[drawn]
        held = HeldRows(drawn, self.input_rows(drawn), weights[drawn], y)
        weights[drawn] = 0.0
        return replace(self, weights=weights, held=held)

    def scaled(self) -> Problem:
        """Return the problem of a regression, its targets divided by a power of two.

        The largest that a row of positive weight has is then below 1.
        """
        y = targets_that_count(self.y, self.weights)
        exponent = int(np.frexp(np.abs(y).max())[1])
        return replace(self, y=np.ldexp(y, -exponent), exponent=exponent)

    def in_sums(self) -> Problem:
        """Return the problem whose columns are those that are added up: levels have their own."""
        levels = indicators_of(self.table)
        if levels is None:
            return self
        columns = Features(levels.values(self.values(self.first)), None, levels.known())
        return replace(self, columns=columns, names=None, table=levels.known())

    def sorted_once(self, n_threads: int | None) -> Problem:
        """Return the problem with columns that several trees share."""
        if not isinstance(self.columns, Features):
            return self
        _, rows = self.source(np.arange(self.n_rows, dtype=np.int32))
        return replace(self, columns=sorted_columns(self.columns, rows, MAX_BINS, n_threads))

    def source(self, rows: IntArray) -> tuple[Any, IntArray]:
        """Return the values of X, None where they are not known, and where the listed rows are."""
        if isinstance(self.columns, SortedColumns | BinnedValues):
            return self.columns.source, self.columns.rows[rows]
        if isinstance(self.columns, Features):
            return self.columns.values, self.input_rows(rows)
        return None, rows

    def values(self, rows: Array) -> Floats:
        """Return rows of X, or what is on the same side of every threshold of a tree."""
        if isinstance(self.columns, BinnedColumns):
            return values_in_bins(self.columns, rows)
        source, listed = self.source(rows)
        return source[listed]

    def thresholds(self, feature: IntArray, low: IntArray, high: IntArray) -> FloatArray:
        """Return thresholds between rows of X, or between bins, of columns."""
        columns = self.columns
        if isinstance(columns, BinnedColumns):
            return np.asarray(columns.threshold(feature, low, None))
        (source, below), (_, above) = self.source(low), self.source(high)
        edges = (source[rows, feature].astype(np.float64) for rows in (below, above))
        return np.asarray(midpoint(*edges))

    def weighted(self, weights: FloatArray | None, workers: Workers) -> TrainingData:
        """Return the data of one tree; rows of weight 0 are left out.

        Rows are numbered anew where columns are sorted, class by class; binned columns are shared,
        and rows keep their numbers.
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
            # Class by class, as the search of two classes wants them.
            rows = rows.take(by_class(self.label.take(rows)))
        sorted_columns: SortedColumns | BinnedColumns = _NO_COLUMNS
        if self.table is not None:  # the codes say what is missing
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
        """Return the sorted columns of the listed rows; their codes tell what is missing."""
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
        """Return the data of one boosted model of two classes: rows of positive weight.

        They are numbered class by class, class -1 first, each class in the order given. So the
        class of a row is a comparison, and a histogram adds one weight per cell. What nodes
        compare is what `project` makes of the columns, if that is given. Of more classes there is
        the label of each row, too.
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
                # Bins of equal weight, so that weight k gives the bins of k copies.
                fixed = self._weighed(rows).fixed.copy() if is_weighed else NO_WEIGHT
                columns = binned_columns(values, source_rows, max_bins, fixed, n_threads, inputs)
        # Weights are made after the columns: sorting needs the most memory.
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
        """Return the data of weak learners that are given rows of X: `columns` are empty."""
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
        """Return the rows of positive weight, class -1 first, and the number of that class.

        Of more classes than two the number is 0.
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
        """Return the weights of the listed rows; ValueError if one is too small to count."""
        row_weights = weighed(self.weights, rows, len(rows), in_any_order=True)
        if self.weights is not None and not (row_weights.weight > 0).all():
            raise ValueError(
                "sample_weight: the weights differ by more than floating point can hold"
            )
        return row_weights


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TrainingData:
    """What one fit works on, and may change in place: the rows of positive weight.

    Attributes
    ----------
    problem : Problem
        X and y.
    rows : ndarray of int32, shape (n,)
        Row of X that each row stands for.
    weight : ndarray of float64, shape (n,)
        Weights times ``2**-weight_exponent``, 1 at most.
    fixed : ndarray of int64, shape (n,)
        ``weight * scale``, rounded.
    weight_exponent, scale : int, float
        See `weight` and `fixed`; `scale` is a power of two.
    exact : bool
        Whether the search is exact.
    order : ndarray of int32, shape (d, n)
        Sorted orders of an exact search, packed; without columns of a binned one.
    label, y : ndarray
        As in `Problem`, of the rows here; empty of data of boosted models.
    columns : SortedColumns or BinnedColumns
        Of the rows of a boosted model.
    n_negative : int
        Number of rows of class -1, which come first there.
    source : ndarray, shape (n_source, d), or None
        Values; None where they are not known.
    source_rows : ndarray of int32, shape (n,)
        Row of `source` that each row stands for.
    inputs : Inputs or None
        What nodes compare, where it is not columns of X: `columns` then hold projections, or, where
        they are made at the nodes, the columns of X.
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
        """Row of X, as it was given, that each row stands for."""
        return self.problem.input_rows(self.rows)

    @property
    def cells(self) -> int:
        """Number of rows times columns that a search reads."""
        return max(self.columns.codes.size, self.n_rows)

    def values(self, feature: int) -> FloatArray:
        """Return what `feature` counts of each row, as float64 (n,)."""
        if self.inputs is None:
            return self.source[self.source_rows, feature].astype(np.float64)
        assert isinstance(self.inputs, Projections)
        column = np.empty((1, self.n_rows))
        self.inputs.gather(self.source, self.source_rows, feature, column)
        return column[0]

    def by_class(self, values: Array) -> tuple[Any, Any]:
        """Return the sums of numbers of all rows, of class -1 and of class +1."""
        return values[: self.n_negative].sum().item(), values[self.n_negative :].sum().item()

    def class_masses(self) -> tuple[int, int]:
        """Return the fixed-point mass of class -1 and of class +1."""
        return self.by_class(self.fixed)

    def starting_weight(self) -> FloatArray:
        """Return the weights of the rows, in some unit, as they were before the fit."""
        weights = self.problem.weights
        if weights is None:
            return np.ones(self.n_rows)
        # In a unit in which their sum is a number.
        return np.ldexp(weights[self.rows], -self.weight_exponent)

    def class_sums(self) -> tuple[float, float]:
        """Return the sums of the starting weights of the classes, each rounded once."""
        return self.sums_by_class(self.starting_weight())

    def sums_by_class(self, weights: FloatArray) -> tuple[float, float]:
        """Return the sums of weights of rows of class -1 and of class +1, each rounded once."""
        return math.fsum(weights[: self.n_negative]), math.fsum(weights[self.n_negative :])

    def cuts_of_levels(
        self, feature: IntArray, threshold: FloatArray, members: Sequence[int]
    ) -> dict[str, Any]:
        """Return the fields of a model that say what its nodes ask, some of them for levels.

        `members` are the levels of exit 1 as bits of integers, 0 where a node does not ask for any:
        of a column of levels it asks whether one is missing.
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
        """Return the fields of a model that say what its nodes read, given columns of these."""
        if self.inputs is None:
            return {"feature": feature}
        return dict(zip(("feature", "inputs"), self.inputs.of_nodes(feature), strict=True))

    def thresholds(self, feature: IntArray, low: IntArray, high: IntArray) -> FloatArray:
        """Return thresholds between rows, or between bins, of columns."""
        if self.exact:
            low, high = self.rows[low], self.rows[high]
        return self.problem.thresholds(feature, low, high)

    def growing(self, joined: Callable[[Sequence[Any]], Inputs]) -> TrainingData:
        """Return the data for learners that make what nodes compare, to be `joined`, on the way."""
        check_summed(self.problem.columns, "that are separators or linear")
        return replace(self, inputs=GrownInputs(joined))

    def part(self, rows: NDArray[np.intp], weight: FloatArray) -> TrainingData:
        """Return the data of some rows, with other weights, but for their columns."""
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
        """Return the data with other columns of its rows."""
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
    """Check the arguments of a builder of boosted models.

    `two` says that there can be two labels only, see `as_classes`; `as_given` that X, rows of
    anything, stays as it is; `takes` what X may hold; `hold` which rows to hold out. Of two classes
    that of an entry is an uint8.
    """
    columns = as_rows(X) if as_given else _as_columns(X)
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
    columns: Features | SortedColumns | BinnedColumns | RowTable,
    class_data: Classes,
    y: FloatArray,
    sample_weight: ArrayLike | None,
    takes: Takes,
    hold: HoldOut | None,
) -> tuple[Problem, FloatArray | None]:
    """Return the problem of checked arguments, and the weights of the rows that are trained on."""
    n = columns.n_rows
    problem = Problem(columns=columns, **class_data._asdict(), names=columns.names, y=y)
    of_rows = class_data.weights_of_rows(sample_weight, n)
    problem = problem if hold is None else problem.hold_out(hold)
    trained = of_rows if problem.held is None else problem.held.without(of_rows, n)
    if isinstance(columns, Features):
        columns = trained_features(columns, trained, takes, hold)
    return replace(problem, columns=columns, seen=digest_of(columns, of_rows)), trained


class Binning(NamedTuple):
    """How columns are searched, in how many bins if so, and on how many threads these are made."""

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
    """Check the arguments of a builder of trees; X is binned for a binned search.

    `takes` says what X may hold, `hold` which rows to hold out.
    """
    columns = _as_columns(X)
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
    if isinstance(columns, Features) and is_binned(search, n):
        values, columns = columns.values, binned_features(columns, trained, max_bins, n_threads)
        if problem.held is not None:
            held, columns = problem.held.coded(columns, values, n_threads)
            problem = replace(problem, held=held)
    elif isinstance(columns, BinnedColumns):
        if search == "exact":
            raise ValueError('search: "exact" needs SortedColumns or X, got BinnedColumns')
    elif search == "binned":
        raise ValueError('search: "binned" needs BinnedColumns or X, got SortedColumns')
    check_taken(columns.table, names, takes)
    return replace(problem, columns=_of_entries(columns, class_data.entries), table=columns.table)


def is_binned(search: str, n: int, auto: int = AUTO_BINNED_ROWS) -> bool:
    """Return whether n rows are searched by bins; with "auto", so many or more."""
    return search == "binned" or (search == "auto" and n >= auto)


def _as_columns(X: TableLike) -> Features | SortedColumns | BinnedColumns:
    if not isinstance(X, SortedColumns | BinnedColumns):
        return as_features(X)
    check_size((X.n_rows, X.n_features))
    return X


def _searched_order(columns: SortedColumns | BinnedColumns, exact: bool) -> IntArray:
    """Return the sorted orders (d, n) of an exact search; without columns of a binned one."""
    if exact and isinstance(columns, SortedColumns):
        return columns.packed_order
    return np.empty((columns.n_features, 0), dtype=np.int32)


def _of_entries(columns: object, entries: Entries | None) -> Any:
    """Return columns that were sorted or binned before as those of the entries; others as given."""
    if entries is None or not isinstance(columns, SortedColumns | BinnedColumns):
        return columns
    if isinstance(columns, BinnedColumns):
        return columns.select(entries.rows)
    features = Features(columns.source, columns.names, columns.table)
    return sorted_columns(features, columns.rows[entries.rows], MAX_BINS, None)


Fit = TypeVar("Fit", bound=Callable[..., Any])


class Search(NamedTuple):
    """The search that a builder makes of the columns of X.

    Attributes
    ----------
    kind : {"auto", "exact", "binned"}
        Which.
    max_bins : int
        Bins of a binned search.
    takes_bins : bool
        Whether BinnedColumns can be given in place of X, as SortedColumns can.
    """

    kind: str = "auto"
    max_bins: int = MAX_BINS
    takes_bins: bool = True

    def resolved(self, n_rows: int) -> str:
        """Return "exact" or "binned" for data of `n_rows` rows."""
        check_choice("search", self.kind, SEARCHES)
        return "binned" if is_binned(self.kind, n_rows) else "exact"


_SEARCHED: dict[Callable[..., Any], Callable[[Mapping[str, Any]], Search | None]] = {}


def reads_columns(searched: Callable[[Mapping[str, Any]], Search | None]) -> Callable[[Fit], Fit]:
    """Declare a builder that takes columns in place of X, which `searched` tells by its options."""

    def declare(fit: Fit) -> Fit:
        _SEARCHED[fit] = searched
        return fit

    return declare


def column_search(fit: object, options: Mapping[str, object]) -> Search | None:
    """Return the search of a builder with these options; None where it cannot be given columns."""
    # A wrapper, which may look at X itself, is another function.
    searched = _SEARCHED.get(fit) if inspect.isfunction(fit) else None
    return None if searched is None else searched(options)


def search_option(options: Mapping[str, Any]) -> Search:
    """Return the search of builders whose own options say which it is."""
    return Search(options.get("search", "auto"), options.get("max_bins", MAX_BINS))


def check_values(X: TableLike, use: str = "to predict from") -> None:
    """Raise TypeError for columns that hold no values, and say what these would be for."""
    if lacks_values(X):
        raise TypeError(
            f"X: BinnedColumns hold no values {use}; pass X, SortedColumns or "
            "bin_columns(X, keep_values=True)"
        )


def rows_to_predict(X: TableLike) -> RowTable:
    """Return the rows of X, or of what is sorted, to predict from."""
    check_values(X)
    X = values_of(X)
    if not isinstance(X, SortedColumns):
        return as_rows(X)
    rows = as_rows(listed_values(X.source, X.rows))
    return replace(rows, names=X.names, table=X.table)
