"""Columns as the searches read them: sorted once, or binned once, and shared by many fits.

Both kinds can be passed to a builder in place of X, so that several models, or the same builder
with other settings, need not sort again.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal, TypeAlias, TypeGuard, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from pboost._core import binning, voting
from pboost._core.binning import select_codes
from pboost.data.columns.prebuilt import (
    HOLES,
    LEVELS,
    bin_levels,
    bin_starts,
    check_bins,
    check_dimensions,
    check_orders,
    check_shapes,
    check_source,
    checked_names,
    flags,
    kept,
    level_of,
    levels_among,
    most_bins,
    row_numbers,
    trimmed,
)
from pboost.data.columns.prebuilt import (
    MAX_BINS as MAX_BINS,
)
from pboost.data.columns.prebuilt import (
    ROW_MASK as ROW_MASK,
)
from pboost.data.node_inputs.sums import Projections
from pboost.data.read.codes import blocks
from pboost.data.read.convert import Features
from pboost.data.read.table import Table
from pboost.threads import Workers
from pboost.values import Array, FloatArray, IntArray, TableLike, sealed

SearchKind: TypeAlias = Literal["auto", "exact", "binned"]
SEARCHES: tuple[SearchKind, ...] = get_args(SearchKind)
#: Rows from which ``search="auto"`` is binned: there the sorted order alone fills gigabytes.
AUTO_BINNED_ROWS = 10_000_000
#: Rows times directions from which that of affine weak classifiers is, for the same reason.
AUTO_BINNED_CELLS = 100_000_000


#: Columns that kernels read together: ranges given to threads are multiples of it.
GROUP = 4
NO_WEIGHT = np.empty(0, dtype=np.int64)
#: What is greater is missing.
MOST_FLOAT = np.finfo(np.float64).max
#: The arrays of columns that can never be changed, and their dtypes.
ARRAYS: dict[str, type[np.generic]] = {
    **dict.fromkeys(("rows", "packed_order", "bin_start", "n_bins"), np.int32),
    **dict.fromkeys(("codes", "special"), np.uint8),
    **dict.fromkeys(("lower", "upper"), np.float64),
}
C = TypeVar("C", bound="SortedColumns | BinnedColumns")


def midpoint(below: Any, above: Any) -> Any:
    """Return thresholds t with below <= t < above, midway where that is representable.

    Above all values lie those that are missing: the threshold to these is the greatest float64.
    """
    middle = below / 2 + above / 2
    threshold = np.where((below <= middle) & (middle < above), middle, below)
    return np.where(np.isnan(above), MOST_FLOAT, threshold)


def made(kind: type[C], *values: Any) -> C:
    """Return columns that were made here: their arrays are sealed, and need no check."""
    columns = object.__new__(kind)
    for part, value in zip(fields(kind), values, strict=True):
        is_sealed = value is not None and part.name in ARRAYS
        object.__setattr__(columns, part.name, sealed(value) if is_sealed else value)
    return columns


def _places(n_bins: int) -> int:
    """Return how many places for bins columns made elsewhere may have, that have so many."""
    return min(max(n_bins, 1), MAX_BINS)


def inside_bin(feature: int) -> ValueError:
    """Return what is raised where bins do not tell on which side of a threshold rows lie."""
    return ValueError(
        "X: expected no threshold of the model inside a bin, got one in searched column "
        f'{feature}: use a weak learner with search="exact"'
    )


class _Columns:
    """Base of columns, some of whose fields are arrays that never change."""

    __slots__ = ()

    codes: NDArray[np.uint8]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n_rows} rows, {self.n_features} features>"

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), tuple(getattr(self, name) for name in self._given())

    def _given(self) -> list[str]:
        """Return the fields that columns made elsewhere are given."""
        return [part.name for part in fields(self) if part.init]  # type: ignore[arg-type]

    def _keep(self) -> None:
        """Make sure that arrays made elsewhere cannot change."""
        for name in self._given():
            if name in ARRAYS and getattr(self, name) is not None:
                object.__setattr__(self, name, kept(name, getattr(self, name), ARRAYS[name]))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.codes.shape[1]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.codes.shape[0]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SortedColumns(_Columns):
    """Columns sorted once: orders, ties and rank bins. Made by `sort_columns`.

    The arrays, but for `source`, cannot be written. Columns that are made in another way, or come
    from a pickle, are checked, which takes less time than sorting, and arrays that could still be
    changed are copied; files mapped to be read (``numpy.memmap`` with ``mode="r"``) are not.

    Attributes
    ----------
    source : ndarray, shape (n_source, d)
        The values; sorted values are read from it through `rows` and `order`. Where it is the
        caller's own (``sort_columns(X, copy=False)``) it must not change: orders and bins would
        stay, and thresholds would be those of the new values.
    rows : ndarray of int32, shape (n,)
        Row of `source` that each row stands for.
    packed_order : ndarray of int32, shape (d, n)
        Rows of each column in increasing order of value, ties by row; the sign bit is set where
        the value equals the one before.
    bin_start : ndarray of int32, shape (d, b + 1)
        First position of each rank bin in the sorted order, closed by n; b is the largest of
        `n_bins`.
    n_bins : ndarray of int32, shape (d,)
        Number of bins of each column.
    codes : ndarray of uint8, shape (d, n)
        Rank bin of each row.
    names : tuple of str or None
        Column names.
    special : ndarray of uint8, shape (d,), or None
        1 of columns with missing values, which stand last in the order, tied to one another, and
        have the code ``n_bins[j]``; plus 2 of categories, whose codes are the numbers of their
        levels. None where there are none.
    table : Table or None
        What the columns are; None where they are numbers and none is missing.
    """

    source: Array
    rows: IntArray
    packed_order: IntArray
    bin_start: IntArray
    n_bins: IntArray
    codes: NDArray[np.uint8]
    names: tuple[str, ...] | None
    special: NDArray[np.uint8] | None = None
    table: Table | None = None

    def __post_init__(self) -> None:
        self._check_arrays()
        if self.source.shape[1] != self.n_features:
            raise ValueError(
                f"source: expected {self.n_features} columns, got {self.source.shape[1]}"
            )
        self._check_orders(partial(binning.gather_columns, self.source, self.rows))

    def _check_arrays(self) -> None:
        """Make sure that arrays made elsewhere fit together and cannot change."""
        self._keep()
        check_dimensions(self, {"packed_order": 2, "codes": 2, "bin_start": 2})
        (d, n), bins = self.codes.shape, _places(self.bin_start.shape[1] - 1)
        check_shapes(
            self,
            {"rows": (n,), "packed_order": (d, n), "bin_start": (d, bins + 1), "n_bins": (d,)},
        )
        names = check_source(self.source, self.rows, self.names, self.special)
        object.__setattr__(self, "names", names)

    def _check_orders(self, gather: Callable[[int, Array], None]) -> None:
        with Workers(None, self.codes.size) as workers:
            workers.run(partial(check_orders, self, gather), self.n_features)

    def order(self, feature: int) -> IntArray:
        """Return the rows of a column in increasing order of value."""
        return self.packed_order[feature] & ROW_MASK

    def tied(self, feature: int) -> NDArray[np.bool_]:
        """Return, along the sorted order, whether a value equals the one before."""
        return self.packed_order[feature] < 0

    def sorted_values(self, feature: int) -> FloatArray:
        """Return the values of a column in increasing order."""
        return self.values(feature, self.order(feature))

    def values(self, feature: Any, row: Any) -> FloatArray:
        """Return the values of rows in columns, elementwise."""
        values: FloatArray = self.source[self.rows[row], feature].astype(np.float64)
        return values

    def n_below(self, feature: int, order: IntArray, threshold: float) -> int:
        """Return how many of rows in the order of a column, packed, do not exceed a threshold.

        Missing rows do.
        """

        def value(entry: Any) -> float:
            number = float(self.values(feature, entry & ROW_MASK))
            return number if number == number else math.inf

        return bisect_right(order, threshold, key=value)

    def bin_below(self, feature: int, threshold: float) -> int:
        """Return the last rank bin at or below a threshold, -1 if there is none."""
        position = self.n_below(feature, self.packed_order[feature], threshold)
        starts = self.bin_start[feature, : self.n_bins[feature] + 1]
        cut_bin = int(np.searchsorted(starts, position)) - 1
        if starts[cut_bin + 1] != position:
            raise inside_bin(feature)
        return cut_bin

    def threshold(self, feature: Any, cut_bin: Any, position: Any) -> Any:
        """Return the threshold between the sorted rows ``position - 1`` and ``position``."""
        below, above = (self.packed_order[feature, position + k] & ROW_MASK for k in (-1, 0))
        return midpoint(self.values(feature, below), self.values(feature, above))

    def bin_ranges(self, feature: int) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest value in each bin of a column."""
        edge = self.bin_start[feature, : self.n_bins[feature] + 1]
        order = self.packed_order[feature]
        lower, upper = order[edge[:-1]] & ROW_MASK, order[edge[1:] - 1] & ROW_MASK
        return self.values(feature, lower), self.values(feature, upper)

    def select(self, rows: IntArray, max_bins: int, n_threads: int | None = None) -> SortedColumns:
        """Return the columns of the listed rows, in the order listed, without sorting again."""
        rows = row_numbers(rows, self.n_rows)
        with Workers(n_threads, self.packed_order.size) as workers:
            return self.select_among(rows, max_bins, workers)

    def select_among(self, rows: IntArray, max_bins: int, workers: Workers) -> SortedColumns:
        """Return the columns as `select` does, on these threads."""
        order = self.select_order(rows, workers)
        n_missing = n_levels = None
        if self.special is not None:
            n_levels = np.where(self.special & LEVELS, self.n_bins, 0)
            n_missing = np.zeros(self.n_features, dtype=np.int32)
            for j in np.flatnonzero(self.special & HOLES).tolist():
                n_missing[j] = np.count_nonzero(self.codes[j, rows] == self.n_bins[j])
        return with_bins(
            Features(self.source, self.names, self.table),
            self.rows[rows],
            order,
            max_bins,
            workers,
            n_missing=n_missing,
            n_levels=n_levels,
        )

    def select_order(self, rows: IntArray, workers: Workers) -> IntArray:
        """Return the packed orders (d, n) of the listed rows, numbered in the order listed."""
        renumber = np.full(self.n_rows, -1, dtype=np.int32)
        renumber[rows] = np.arange(len(rows), dtype=np.int32)
        if np.count_nonzero(renumber >= 0) != len(rows):
            raise ValueError("rows: expected each row once at most")
        order = np.empty((self.n_features, len(rows)), dtype=np.int32)

        def work(first: int, last: int) -> None:
            binning.select_rows(self.packed_order[first:last], renumber, order[first:last])

        workers.run(work, self.n_features, cells=2 * self.n_rows)
        return order


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProjectedColumns(SortedColumns):
    """Projections of the source, sorted; each is made anew where its values are needed."""

    projections: Projections = field(default=None)  # type: ignore[assignment]  # always given

    def __post_init__(self) -> None:
        self._check_arrays()
        self.projections.validate(self.source.shape[1])
        if self.projections.n_inputs != self.n_features:
            raise ValueError(f"projections: expected {self.n_features}, one for each column")
        self._check_orders(partial(self.projections.gather, self.source, self.rows))

    def values(self, feature: Any, row: Any) -> FloatArray:
        """Return the values of rows in projections, elementwise."""
        which, rows = np.broadcast_arrays(np.asarray(feature, np.int32), self.rows[row])
        values = self.projections.pairs(self.source, rows.ravel(), which.ravel())
        return values.reshape(rows.shape)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinnedColumns(_Columns):
    """Columns as bin codes only, a fifth of the memory of sorted ones. Made by `bin_columns`.

    The arrays cannot be written; those of columns made in another way are checked, and copied, as
    with `SortedColumns`.

    Attributes
    ----------
    codes : ndarray of uint8, shape (d, n)
        Bin of each row.
    n_bins : ndarray of int32, shape (d,)
        Number of bins of each column.
    lower, upper : ndarray of float64, shape (d, b)
        Least and largest value in each bin; b is the largest of `n_bins`.
    names : tuple of str or None
        Column names.
    special : ndarray of uint8, shape (d,), or None
        As in `SortedColumns`; `lower` and `upper` are NaN in the bin of missing rows.
    table : Table or None
        As in `SortedColumns`.
    bin_start : ndarray of int32, shape (d, b + 1), or None
        Number of rows below each bin, closed by n; None where they have not been counted.
    """

    codes: NDArray[np.uint8]
    n_bins: IntArray
    lower: FloatArray
    upper: FloatArray
    names: tuple[str, ...] | None
    special: NDArray[np.uint8] | None = None
    table: Table | None = None
    bin_start: IntArray | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._keep()
        check_dimensions(self, {"codes": 2, "lower": 2})
        d, bins = self.n_features, _places(self.lower.shape[1])
        check_shapes(self, {"n_bins": (d,), "lower": (d, bins), "upper": (d, bins)})
        check_bins(self, bins)
        object.__setattr__(self, "names", checked_names(self.names, d))

    def bin_below(self, feature: int, threshold: float) -> int:
        """Return the last bin at or below a threshold, -1 if there is none."""
        n_bins = self.n_bins[feature]
        cut_bin = int(np.searchsorted(self.upper[feature, :n_bins], threshold, "right")) - 1
        if cut_bin + 1 < n_bins and self.lower[feature, cut_bin + 1] <= threshold:
            raise inside_bin(feature)
        return cut_bin

    def threshold(self, feature: Any, cut_bin: Any, position: Any) -> Any:
        """Return the threshold at the upper edge of a bin."""
        return midpoint(self.upper[feature, cut_bin], self.lower[feature, cut_bin + 1])

    def bin_ranges(self, feature: int) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest value in each bin of a column."""
        n_bins = self.n_bins[feature]
        return self.lower[feature, :n_bins], self.upper[feature, :n_bins]

    def select(
        self, rows: IntArray, n_threads: int | None = None, *, all_rows: bool = False
    ) -> BinnedColumns:
        """Return the columns of the listed rows, in the order listed, with the same bins.

        `all_rows` says that these are all rows, each once. If they stand in this order already,
        nothing is copied.
        """
        rows = row_numbers(rows, self.n_rows)
        if all_rows and self.bin_start is not None and _are_numbered(rows):
            return self
        codes = np.empty((self.n_features, len(rows)), dtype=np.uint8)
        bin_start, counted = self.bin_start, all_rows and self.bin_start is not None
        if bin_start is None or not counted:
            places = most_bins(self.n_bins, self.special) + 1
            bin_start = np.zeros((self.n_features, places), dtype=np.int32)

        def work(first: int, last: int) -> None:
            part = slice(first, last)
            counts = None if counted else bin_start[part]
            select_codes(self.codes[part], rows, codes[part], counts)

        with Workers(n_threads, codes.size) as workers:
            workers.run(work, self.n_features, GROUP, len(rows))
        return self.with_codes(codes, bin_start, rows)

    def with_codes(
        self, codes: NDArray[np.uint8], bin_start: IntArray | None, rows: IntArray
    ) -> BinnedColumns:
        """Return the listed rows, of which these are the codes."""
        return remade(self, codes=codes, bin_start=bin_start)


def remade(columns: BinnedColumns, **others: Any) -> BinnedColumns:
    """Return columns made here with other values of some fields, without values of rows."""
    names = [part.name for part in fields(BinnedColumns)]
    return made(BinnedColumns, *(others.get(name, getattr(columns, name)) for name in names))


def listed_values(source: Array, rows: IntArray) -> Array:
    """Return the listed rows of a source; the source itself where these are all, in their order."""
    is_all_rows = len(rows) == len(source) and _are_numbered(rows)
    return source if is_all_rows else source[rows]


def _are_numbered(rows: IntArray) -> bool:
    """Return whether rows are 0, 1, 2 and so on."""
    return all(
        bool(
            (
                rows[block] == np.arange(block.start, min(block.stop, len(rows)), dtype=rows.dtype)
            ).all()
        )
        for block in blocks(rows)
    )


def with_bins(
    features: Features,
    rows: IntArray,
    order: IntArray,
    max_bins: int,
    workers: Workers,
    projections: Projections | None = None,
    *,
    n_missing: IntArray | None = None,
    n_levels: IntArray | None = None,
) -> SortedColumns:
    """Return sorted columns of the listed rows, given their orders; makes the rank bins.

    `n_missing` and `n_levels` (d,) are how many rows are missing, and how many levels there are.
    """
    d, n = order.shape
    special = flags(n_missing, n_levels)
    if special is None:
        n_missing = None
    bin_start = bin_starts(d, min(max_bins, max(n, 1)), n_levels, special)
    n_bins = np.empty(d, dtype=np.int32)
    codes = np.empty((d, n), dtype=np.uint8)

    def work(first: int, last: int) -> None:
        part = slice(first, last)
        missing = None if n_missing is None else n_missing[part]
        binning.bin_columns(
            order[part], max_bins, NO_WEIGHT, bin_start[part], n_bins[part], codes[part], missing
        )
        for j in levels_among(special, first, last):
            assert n_missing is not None
            assert n_levels is not None
            value = partial(level_of, features.values, rows, j)
            bin_levels(order[j : j + 1], n_missing, n_levels, value, j, bin_start, n_bins, codes)

    workers.run(work, d, cells=2 * n)
    bin_start = trimmed(bin_start, most_bins(n_bins, special) + 1)
    parts = features.values, rows, order, bin_start, n_bins, codes, features.names, special
    if projections is None:
        return made(SortedColumns, *parts, features.table)
    return made(ProjectedColumns, *parts, None, projections)


def to_fixed_point(weights: FloatArray, times: int = 1) -> tuple[float, NDArray[np.int64]]:
    """Return a power of two and the weights times it, rounded; their sum stays below 2**61.

    A power of two makes the image exact for integer weights, whatever their scale. The sum is of so
    many `times` these weights.
    """
    scale = fixed_scale_of(float(weights.sum()) * times)
    return scale, in_fixed_point(weights, scale)


def fixed_scale_of(total: float) -> float:
    """Return the power of two that brings a sum of weights to 2**60 at least, below 2**61."""
    return float(np.ldexp(1.0, 61 - math.frexp(total)[1]))


def in_fixed_point(weights: FloatArray, scale: float) -> NDArray[np.int64]:
    """Return weights times a scale, rounded."""
    fixed = np.empty(len(weights), dtype=np.int64)
    voting.to_fixed(weights, scale, fixed)
    return fixed


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinnedValues(BinnedColumns):
    """BinnedColumns with the values of their rows. Made by ``bin_columns(X, keep_values=True)``.

    Searches read the codes; what reads values, as `pboost.observation.gaussian` or the leaves of
    `fit_sbpmt`, has them. Those of a folder stay on disk and are mapped.

    Attributes
    ----------
    codes, n_bins, lower, upper, names, special, table : optional
        As in `BinnedColumns`.
    source : ndarray of float64 or float32, shape (n_source, d)
        The values, as a rule column by column in memory.
    rows : ndarray of int32, shape (n,)
        Row of `source` that each row stands for.
    """

    source: Array = field(default=None)  # type: ignore[arg-type]  # always given
    rows: IntArray = field(default=None)  # type: ignore[arg-type]  # always given

    def __post_init__(self) -> None:
        super(BinnedValues, self).__post_init__()
        if self.rows.shape != (self.n_rows,):
            raise ValueError(f"rows: expected shape ({self.n_rows},), got {self.rows.shape}")
        check_source(self.source, self.rows, self.names, self.special)
        if self.source.shape[1] != self.n_features:
            raise ValueError(
                f"source: expected {self.n_features} columns, got {self.source.shape[1]}"
            )

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        """Return what a pickle holds: of the source only the rows that are meant."""
        kind, arguments = super(BinnedValues, self).__reduce__()
        if len(self.rows) != len(self.source):
            rows = np.arange(len(self.rows), dtype=np.int32)
            arguments = *arguments[:-2], by_column(self.source[self.rows]), rows
        return kind, arguments

    def with_codes(
        self, codes: NDArray[np.uint8], bin_start: IntArray | None, rows: IntArray
    ) -> BinnedValues:
        """Return the listed rows, of which these are the codes."""
        return valued(
            super(BinnedValues, self).with_codes(codes, bin_start, rows),
            self.source,
            self.rows[rows],
        )

    def values(self, feature: int) -> FloatArray:
        """Return the values of all rows in a column, (n,)."""
        return self.source[self.rows, feature].astype(np.float64)

    def features(self) -> Features:
        """Return the rows as values alone."""
        return Features(listed_values(self.source, self.rows), self.names, self.table)


def valued(columns: BinnedColumns, source: Array, rows: IntArray | None = None) -> BinnedValues:
    """Return columns made here with their values, those of the listed rows of a source."""
    if rows is None:
        rows = np.arange(len(source), dtype=np.int32)
    arrays = (getattr(columns, part.name) for part in fields(BinnedColumns))
    return made(BinnedValues, *arrays, source, rows)


def by_column(values: Array) -> Array:
    """Return a copy of a matrix whose columns lie in one piece each, which cannot be changed."""
    matrix = np.array(values, order="F")
    matrix.flags.writeable = False
    return matrix


def lacks_values(X: TableLike) -> TypeGuard[BinnedColumns]:
    """Return whether these are columns that hold no values."""
    return isinstance(X, BinnedColumns) and not isinstance(X, BinnedValues)


def values_in_bins(columns: BinnedColumns, rows: Array) -> Array:
    """Return the listed rows, or what is on the same side of every edge of bins."""
    if isinstance(columns, BinnedValues):
        values: Array = columns.source[columns.rows[rows]]
        return values
    parts = zip(columns.lower, columns.codes, strict=True)
    return np.column_stack([lower[codes[rows]] for lower, codes in parts])


def check_summed(columns: object, kind: str) -> None:
    """Raise ValueError where weak classifiers compare what is made of values, not known here."""
    if lacks_values(columns):
        raise ValueError(
            f"X: expected a matrix, a data frame or SortedColumns for weak classifiers {kind}, "
            "got BinnedColumns, which do not hold the values that are added up; "
            "bin_columns(X, keep_values=True) keeps them"
        )


def values_of(X: TableLike) -> Any:
    """Return the values of columns that keep them as features; anything else as it is."""
    return X.features() if isinstance(X, BinnedValues) else X
