"""Features that are sorted or binned once and shared by several fits.

Pass `SortedColumns` or `BinnedColumns` to a fit function in place of X to avoid sorting the data
for each model.
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
#: For at least this number of rows, ``search="auto"`` uses bins, to save memory.
AUTO_BINNED_ROWS = 10_000_000
#: Affine weak classifiers use bins if rows times directions are at least this number.
AUTO_BINNED_CELLS = 100_000_000


#: Number of features that kernels read together. Each thread processes a multiple of it.
GROUP = 4
NO_WEIGHT = np.empty(0, dtype=np.int64)
#: Largest finite threshold. Only missing values are above it.
MOST_FLOAT = np.finfo(np.float64).max
#: Arrays that are read-only, and their dtypes.
ARRAYS: dict[str, type[np.generic]] = {
    **dict.fromkeys(("rows", "packed_order", "bin_start", "n_bins"), np.int32),
    **dict.fromkeys(("codes", "special"), np.uint8),
    **dict.fromkeys(("lower", "upper"), np.float64),
}
C = TypeVar("C", bound="SortedColumns | BinnedColumns")


def midpoint(below: Any, above: Any) -> Any:
    """Return thresholds t with below <= t < above. Use the midpoint if representable.

    Missing values sort last; the threshold below them is the largest float64.
    """
    middle = below / 2 + above / 2
    threshold = np.where((below <= middle) & (middle < above), middle, below)
    return np.where(np.isnan(above), MOST_FLOAT, threshold)


def made(kind: type[C], *values: Any) -> C:
    """Build columns from trusted values, without checks, and make their arrays read-only."""
    columns = object.__new__(kind)
    for part, value in zip(fields(kind), values, strict=True):
        is_sealed = value is not None and part.name in ARRAYS
        object.__setattr__(columns, part.name, sealed(value) if is_sealed else value)
    return columns


def _places(n_bins: int) -> int:
    """Return `n_bins`, limited to the allowed range."""
    return min(max(n_bins, 1), MAX_BINS)


def inside_bin(feature: int) -> ValueError:
    """Return the error for a threshold inside a bin."""
    return ValueError(
        f"X: expected bin edges at the thresholds of the model, got a threshold inside a bin of "
        f"column {feature}; "
        'use a weak learner with search="exact"'
    )


class _Columns:
    """Base class of sorted and binned columns, whose arrays are read-only."""

    __slots__ = ()

    codes: NDArray[np.uint8]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n_rows} rows, {self.n_features} features>"

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), tuple(getattr(self, name) for name in self._given())

    def _given(self) -> list[str]:
        """Return the names of the constructor's fields."""
        return [part.name for part in fields(self) if part.init]  # type: ignore[arg-type]

    def _keep(self) -> None:
        """Make the arrays passed by the user read-only, with a copy if necessary."""
        for name in self._given():
            if name in ARRAYS and getattr(self, name) is not None:
                object.__setattr__(self, name, kept(name, getattr(self, name), ARRAYS[name]))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.codes.shape[1]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.codes.shape[0]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SortedColumns(_Columns):
    """Features that are sorted once: orders, ties and rank bins. Created by `sort_columns`.

    All arrays except `source` are read-only. Columns that you construct yourself or unpickle are
    validated, which takes less time than sorting. Writable arrays are copied; read-only memory maps
    (``numpy.memmap`` with ``mode="r"``) are not copied.

    Attributes
    ----------
    source : ndarray, shape (n_source, d)
        The feature values. Sorted values are read from it through `rows` and `order`. With
        ``sort_columns(X, copy=False)`` it is the caller's array and must not be modified:
        thresholds would be computed from the new values, but in the old order.
    rows : ndarray of int32, shape (n,)
        Index in `source` of each row.
    packed_order : ndarray of int32, shape (d, n)
        Rows of each feature in increasing order of value, with ties in row order. The sign bit is
        set if the value equals the previous one.
    bin_start : ndarray of int32, shape (d, b + 1)
        First position of each rank bin in the sorted order, followed by n; b is the maximum of
        `n_bins`.
    n_bins : ndarray of int32, shape (d,)
        Number of bins of each feature.
    codes : ndarray of uint8, shape (d, n)
        Rank bin of each row.
    names : tuple of str or None
        Feature names.
    special : ndarray of uint8, shape (d,), or None
        Bit flags: 1 for features with missing values, which come last in the order, are tied with
        each other and have the code ``n_bins[j]``; 2 for categorical features, whose codes are
        category numbers. None if no feature has a flag.
    table : Table or None
        Description of the features. None if all are numeric without missing values.
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
        """Check that the arrays are consistent, and make them read-only."""
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
        """Return the rows sorted by a feature, in increasing order."""
        return self.packed_order[feature] & ROW_MASK

    def tied(self, feature: int) -> NDArray[np.bool_]:
        """Return, in sorted order, whether each value equals the previous one."""
        return self.packed_order[feature] < 0

    def sorted_values(self, feature: int) -> FloatArray:
        """Return the sorted values of a feature."""
        return self.values(feature, self.order(feature))

    def values(self, feature: Any, row: Any) -> FloatArray:
        """Return the values at pairs of features and rows, elementwise."""
        values: FloatArray = self.source[self.rows[row], feature].astype(np.float64)
        return values

    def n_below(self, feature: int, order: IntArray, threshold: float) -> int:
        """Count the rows of a packed order with a known value <= threshold."""

        def value(entry: Any) -> float:
            number = float(self.values(feature, entry & ROW_MASK))
            return number if number == number else math.inf

        return bisect_right(order, threshold, key=value)

    def bin_below(self, feature: int, threshold: float) -> int:
        """Return the last rank bin at or below a threshold, or -1."""
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
        """Return the minimum and the maximum of each bin of a feature."""
        edge = self.bin_start[feature, : self.n_bins[feature] + 1]
        order = self.packed_order[feature]
        lower, upper = order[edge[:-1]] & ROW_MASK, order[edge[1:] - 1] & ROW_MASK
        return self.values(feature, lower), self.values(feature, upper)

    def select(self, rows: IntArray, max_bins: int, n_threads: int | None = None) -> SortedColumns:
        """Return a subset of the rows, in the given order, without sorting again."""
        rows = row_numbers(rows, self.n_rows)
        with Workers(n_threads, self.packed_order.size) as workers:
            return self.select_among(rows, max_bins, workers)

    def select_among(self, rows: IntArray, max_bins: int, workers: Workers) -> SortedColumns:
        """Run `select` on existing worker threads."""
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
        """Return the packed orders (d, n) of a subset of the rows, which are renumbered."""
        renumber = np.full(self.n_rows, -1, dtype=np.int32)
        renumber[rows] = np.arange(len(rows), dtype=np.int32)
        if np.count_nonzero(renumber >= 0) != len(rows):
            raise ValueError("rows: expected each row at most once, got duplicates")
        order = np.empty((self.n_features, len(rows)), dtype=np.int32)

        def work(first: int, last: int) -> None:
            binning.select_rows(self.packed_order[first:last], renumber, order[first:last])

        workers.run(work, self.n_features, cells=2 * self.n_rows)
        return order


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProjectedColumns(SortedColumns):
    """Sorted projections of the source. Their values are not stored but recomputed."""

    projections: Projections = field(default=None)  # type: ignore[assignment]  # always given

    def __post_init__(self) -> None:
        self._check_arrays()
        self.projections.validate(self.source.shape[1])
        if self.projections.n_inputs != self.n_features:
            raise ValueError(f"projections: expected {self.n_features} projections, one per column")
        self._check_orders(partial(self.projections.gather, self.source, self.rows))

    def values(self, feature: Any, row: Any) -> FloatArray:
        """Return the values at pairs of projections and rows, elementwise."""
        which, rows = np.broadcast_arrays(np.asarray(feature, np.int32), self.rows[row])
        values = self.projections.pairs(self.source, rows.ravel(), which.ravel())
        return values.reshape(rows.shape)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinnedColumns(_Columns):
    """Binned features, which need a fifth of the memory of sorted features.

    Created by `bin_columns`.

    The arrays are read-only. Columns that you construct yourself are validated and copied, as with
    `SortedColumns`.

    Attributes
    ----------
    codes : ndarray of uint8, shape (d, n)
        Bin of each row.
    n_bins : ndarray of int32, shape (d,)
        Number of bins of each feature.
    lower, upper : ndarray of float64, shape (d, b)
        Minimum and maximum value in each bin; b is the maximum of `n_bins`.
    names : tuple of str or None
        Feature names.
    special : ndarray of uint8, shape (d,), or None
        As in `SortedColumns`. In the bin of missing values, `lower` and `upper` are NaN.
    table : Table or None
        As in `SortedColumns`.
    bin_start : ndarray of int32, shape (d, b + 1), or None
        Number of rows below each bin, followed by n. None if the rows have not been counted.
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
        """Return the last bin at or below a threshold, or -1."""
        n_bins = self.n_bins[feature]
        cut_bin = int(np.searchsorted(self.upper[feature, :n_bins], threshold, "right")) - 1
        if cut_bin + 1 < n_bins and self.lower[feature, cut_bin + 1] <= threshold:
            raise inside_bin(feature)
        return cut_bin

    def threshold(self, feature: Any, cut_bin: Any, position: Any) -> Any:
        """Return the threshold at the upper edge of a bin."""
        return midpoint(self.upper[feature, cut_bin], self.lower[feature, cut_bin + 1])

    def bin_ranges(self, feature: int) -> tuple[FloatArray, FloatArray]:
        """Return the minimum and the maximum of each bin of a feature."""
        n_bins = self.n_bins[feature]
        return self.lower[feature, :n_bins], self.upper[feature, :n_bins]

    def select(
        self, rows: IntArray, n_threads: int | None = None, *, all_rows: bool = False
    ) -> BinnedColumns:
        """Return a subset of the rows, in the given order, with the same bins.

        Pass ``all_rows=True`` if `rows` is a permutation of all rows.
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
        """Return columns of the selected rows, whose codes are already known."""
        return remade(self, codes=codes, bin_start=bin_start)


def remade(columns: BinnedColumns, **others: Any) -> BinnedColumns:
    """Return a copy with some fields replaced and without feature values."""
    names = [part.name for part in fields(BinnedColumns)]
    return made(BinnedColumns, *(others.get(name, getattr(columns, name)) for name in names))


def listed_values(source: Array, rows: IntArray) -> Array:
    """Return a subset of the rows of a source, or the source if all rows are selected in order."""
    is_all_rows = len(rows) == len(source) and _are_numbered(rows)
    return source if is_all_rows else source[rows]


def _are_numbered(rows: IntArray) -> bool:
    """Return whether the rows are 0, 1, 2, ..."""
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
    """Build sorted columns and their rank bins from packed orders.

    `n_missing` and `n_levels` (d,) are the numbers of missing values and of categories.
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
    """Scale weights by a power of two and round them; return the power and the integers.

    A power of two represents integer weights exactly. The sum of `times` copies of the weights
    stays below 2**61.
    """
    scale = fixed_scale_of(float(weights.sum()) * times)
    return scale, in_fixed_point(weights, scale)


def fixed_scale_of(total: float) -> float:
    """Return the power of two that scales a sum of weights to at least 2**60 and below 2**61."""
    return float(np.ldexp(1.0, 61 - math.frexp(total)[1]))


def in_fixed_point(weights: FloatArray, scale: float) -> NDArray[np.int64]:
    """Return the weights times a scale, rounded to integers."""
    fixed = np.empty(len(weights), dtype=np.int64)
    voting.to_fixed(weights, scale, fixed)
    return fixed


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinnedValues(BinnedColumns):
    """Binned features that also keep their values. Created by ``bin_columns(X, keep_values=True)``.

    Split searches read the codes. The values are for methods that need them, such as
    `pboost.observation.gaussian` or the leaves of `fit_sbpmt`. Values in a folder stay on disk and
    are memory-mapped.

    Attributes
    ----------
    codes, n_bins, lower, upper, names, special, table : optional
        As in `BinnedColumns`.
    source : ndarray of float64 or float32, shape (n_source, d)
        The feature values, usually in Fortran order.
    rows : ndarray of int32, shape (n,)
        Index in `source` of each row.
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
        """Pickle only the selected rows of the source."""
        kind, arguments = super(BinnedValues, self).__reduce__()
        if len(self.rows) != len(self.source):
            rows = np.arange(len(self.rows), dtype=np.int32)
            arguments = *arguments[:-2], by_column(self.source[self.rows]), rows
        return kind, arguments

    def with_codes(
        self, codes: NDArray[np.uint8], bin_start: IntArray | None, rows: IntArray
    ) -> BinnedValues:
        """Return columns of the selected rows, whose codes are already known."""
        return valued(
            super(BinnedValues, self).with_codes(codes, bin_start, rows),
            self.source,
            self.rows[rows],
        )

    def values(self, feature: int) -> FloatArray:
        """Return the values (n,) of a feature."""
        return self.source[self.rows, feature].astype(np.float64)

    def features(self) -> Features:
        """Return the rows as unbinned features."""
        return Features(listed_values(self.source, self.rows), self.names, self.table)


def valued(columns: BinnedColumns, source: Array, rows: IntArray | None = None) -> BinnedValues:
    """Return binned columns together with the values of their rows."""
    if rows is None:
        rows = np.arange(len(source), dtype=np.int32)
    arrays = (getattr(columns, part.name) for part in fields(BinnedColumns))
    return made(BinnedValues, *arrays, source, rows)


def by_column(values: Array) -> Array:
    """Return a read-only copy of a matrix in Fortran order."""
    matrix = np.array(values, order="F")
    matrix.flags.writeable = False
    return matrix


def lacks_values(X: TableLike) -> TypeGuard[BinnedColumns]:
    """Return whether X is binned without its values."""
    return isinstance(X, BinnedColumns) and not isinstance(X, BinnedValues)


def values_in_bins(columns: BinnedColumns, rows: Array) -> Array:
    """Return the values of rows, or the lower edges of their bins if no values are kept."""
    if isinstance(columns, BinnedValues):
        values: Array = columns.source[columns.rows[rows]]
        return values
    parts = zip(columns.lower, columns.codes, strict=True)
    return np.column_stack([lower[codes[rows]] for lower, codes in parts])


def check_summed(columns: object, kind: str) -> None:
    """Raise ValueError if weak classifiers of this kind need values and X has none."""
    if lacks_values(columns):
        raise ValueError(
            f"X: expected a matrix, a data frame or SortedColumns for weak classifiers {kind}, "
            "got BinnedColumns without values; use bin_columns(X, keep_values=True)"
        )


def values_of(X: TableLike) -> Any:
    """Return the features of binned columns that keep values; return anything else unchanged."""
    return X.features() if isinstance(X, BinnedValues) else X
