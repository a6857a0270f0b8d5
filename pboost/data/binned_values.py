"""Columns in bins that keep the values of their rows, for what compares or adds up values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns import BinnedColumns, listed_values, made
from pboost.data.convert import Features
from pboost.data.prebuilt_columns import check_source
from pboost.values import Array, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinnedValues(BinnedColumns):
    """BinnedColumns with the values of their rows. Made by ``bin_columns(X, values=True)``.

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

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a pickle holds: of the source only the rows that are meant."""
        kind, given = super(BinnedValues, self).__reduce__()
        if len(self.rows) != len(self.source):
            rows = np.arange(len(self.rows), dtype=np.int32)
            given = *given[:-2], by_column(self.source[self.rows]), rows
        return kind, given

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
    return made(
        BinnedValues,
        columns.codes,
        columns.n_bins,
        columns.lower,
        columns.upper,
        columns.names,
        columns.special,
        columns.table,
        columns.bin_start,
        source,
        rows,
    )


def by_column(values: Array) -> Array:
    """Return a copy of a matrix whose columns lie in one piece each, which cannot be changed."""
    found = np.array(values, order="F")
    found.flags.writeable = False
    return found


def lacks_values(X: Any) -> TypeGuard[BinnedColumns]:
    """Return whether these are columns that hold no values."""
    return isinstance(X, BinnedColumns) and not isinstance(X, BinnedValues)


def values_in_bins(columns: BinnedColumns, rows: NDArray[Any]) -> Array:
    """Return the listed rows, or what is on the same side of every edge of bins."""
    if isinstance(columns, BinnedValues):
        found: Array = columns.source[columns.rows[rows]]
        return found
    every = range(columns.n_features)
    return np.column_stack([value_in_bins(columns, number, rows) for number in every])


def value_in_bins(columns: BinnedColumns, number: int, rows: NDArray[Any]) -> Array:
    """Return what `values_in_bins` does, of one column."""
    if isinstance(columns, BinnedValues):
        found: Array = columns.source[columns.rows[rows], number]
        return found
    return columns.lower[number][columns.codes[number][rows]]


def check_summed(columns: Any, kind: str) -> None:
    """Raise ValueError where weak classifiers compare what is made of values, not known here."""
    if lacks_values(columns):
        raise ValueError(
            f"X: expected a matrix, a data frame or SortedColumns for weak classifiers {kind}, "
            "got BinnedColumns, which do not hold the values that are added up; "
            "bin_columns(X, values=True) keeps them"
        )


def values_of(X: Any) -> Any:
    """Return the values of columns that keep them as features; anything else as it is."""
    return X.features() if isinstance(X, BinnedValues) else X
