"""Data frames, sequences and objects, as numbers or as rows of anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.frames import (
    Source,
    float_frame,
    frame_of_stream,
    of_array,
    of_frame,
    whole_column,
)
from pboost.data.read.levels import ColumnReader
from pboost.data.read.numbers import PLAIN, has_rounded, matrix_to_float
from pboost.data.read.table import Table, column_order, positions
from pboost.values import INT32_MAX, Array, TableLike, reject_masked


@dataclass(frozen=True, slots=True)
class Features:
    """A feature matrix: `values` (n, d), float32 or float64, and column names or None.

    NaN is a missing value. A categorical column, ordered or not, holds numbers of categories, and
    the `table` says which category each number is; the table is None if there is no such column.

    This is the type of rows that have been read. Code that passes rows on must pass Features:
    `values` alone look like a matrix of the user, and would be read a second time, the numbers of
    categories as if they were categories.
    """

    values: Array
    names: tuple[str, ...] | None
    table: Table | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.values.shape[1]

    def take(self, rows: slice | NDArray[np.integer]) -> Features:
        """Return some of the rows."""
        return Features(self.values[rows], self.names, self.table)


def is_frame(X: TableLike) -> bool:
    """Whether `X` is a data frame: it has named columns. TypeError if it has not been read yet."""
    if isinstance(X, np.ndarray):
        return False
    for ask in ("collect", "compute"):
        if hasattr(type(X), ask):
            raise TypeError(f"X: expected rows, got a {type(X).__name__}; pass X.{ask}()")
    return hasattr(X, "columns")


def is_series(X: TableLike) -> bool:
    """Whether `X` is one row or column of a data frame."""
    return hasattr(type(X), "to_frame")


def as_table(X: Any) -> Any:
    """Return `X`, as a data frame of one row where it is a series whose values have names."""
    if not is_series(X):
        return X
    if hasattr(X, "iloc") and hasattr(X, "index"):
        return X.to_frame().T
    raise TypeError(
        f"X: expected a matrix, a data frame or a pandas Series, got a {type(X).__name__}, whose "
        "values have no names; one row is a data frame of one row"
    )


def column_names(X: Any) -> tuple[str, ...]:
    """Return the names of a data frame's columns."""
    return tuple(map(str, getattr(X, "column_names", X.columns)))  # pyarrow's, or the others'


class Trained(NamedTuple):
    """The columns that a model was trained on: names or None, their number, and their table."""

    names: tuple[str, ...] | None
    n_features: int
    table: Table | None = None

    @property
    def known(self) -> Table:
        """What the columns were."""
        return Table.of_numbers(self.n_features) if self.table is None else self.table

    def places(self, names: tuple[str, ...] | None, d: int) -> list[int] | None:
        """Return the places of the columns among d that have these names, None where they stay."""
        order = column_order(self.names, names)
        if d != self.n_features:
            raise ValueError(f"X: expected {self.n_features} columns, got {d}")
        return order


def read_matrix(
    X: TableLike, categorical_features: object = None, trained: Trained | None = None
) -> Features:
    """Return X as floats, its names and levels; see `as_features`.

    With `trained`, columns stand in the order of training, and level numbers are those of training.
    """
    return _read(X, categorical_features, trained, is_part=False)[0]


def read_rows(X: TableLike) -> tuple[Features, list[int]]:
    """Return some rows of a table as `read_matrix` does, and which columns are text by chance.

    The latter are categories by their values alone, if those of all rows are not mostly different.
    """
    return (X, []) if isinstance(X, Features) else _read(X, None, None, is_part=True)


def _read(
    X: TableLike, categorical_features: object, trained: Trained | None, is_part: bool
) -> tuple[Features, list[int]]:
    if type(X) is not list and type(X) is not np.ndarray:
        if not is_frame(X) and hasattr(X, "__arrow_c_stream__") and not is_series(X):
            X = frame_of_stream(X)
        if is_frame(X):
            return _read_frame(X, categorical_features, trained, is_part)
        _refuse_others(X)
    values = _as_matrix(X)
    check_size(values.shape)
    d = values.shape[1]
    if trained is None:
        known, named = None, positions("categorical_features", categorical_features, None, d)
    else:
        trained.places(None, d)
        known, named = trained.known, trained.known.categorical
    if not (named or isinstance(values, np.ma.MaskedArray) or values.dtype.kind == "O"):
        return Features(values if values.dtype in PLAIN else matrix_to_float(values), None), []
    matrix = np.empty(values.shape, dtype=values.dtype if values.dtype in PLAIN else np.float64)
    sources = [of_array(values[:, j]) for j in range(d)]
    names = None if trained is None else trained.names
    return _filled(matrix, sources, names, named, ColumnReader(known, takes_text=False))


def _read_frame(
    X: Any, categorical_features: Any, trained: Trained | None, is_part: bool
) -> tuple[Features, list[int]]:
    names = _checked_names(X)
    d, order = len(names), None
    if trained is None:
        known, named = None, positions("categorical_features", categorical_features, names, d)
    else:
        order = trained.places(names, d)
        names = names if order is None else tuple(names[j] for j in order)
        known, named = trained.known, trained.known.categorical
    if not named and (matrix := float_frame(X)) is not None:
        return Features(matrix if order is None else matrix[:, order], names), []
    sources = of_frame(X, d)
    if order is not None:
        sources = [sources[j] for j in order]
    matrix = np.empty((len(X), d), dtype=np.float64)
    reader = ColumnReader(known, takes_text=True, is_part=is_part)
    return _filled(matrix, sources, names, named, reader)


def _filled(
    matrix: Array,
    sources: list[Source],
    names: tuple[str, ...] | None,
    named: Sequence[int],
    reader: ColumnReader,
) -> tuple[Features, list[int]]:
    """Return the columns as floats, each read into its own of the matrix, and the undeclared."""
    columns_read = [
        reader.read(
            source, matrix[:, j], f"column {j if names is None else repr(names[j])}", j in named, j
        )
        for j, source in enumerate(sources)
    ]
    levels, order = zip(*columns_read, strict=True)
    table = reader.known
    if table is None and any(values is not None for values in (*levels, *order)):
        table = Table(levels, np.zeros(len(columns_read), dtype=np.bool_), order=order)
    return Features(matrix, names, table), reader.undeclared


def _checked_names(X: Any) -> tuple[str, ...]:
    names = column_names(X)
    if len(set(names)) != len(names):
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise ValueError(f"X: two columns are named {twice!r}")
    check_size((len(X), len(names)))
    return names


def _as_matrix(X: Any) -> Array:
    """Return X as an array of two dimensions, of objects where another would change values."""
    is_matrix = type(X) is np.ndarray or type(X) is np.ma.MaskedArray
    is_sequence = not is_matrix and isinstance(X, list | tuple)
    if is_sequence and X and is_series(X[0]):
        raise TypeError(
            f"X: expected a matrix or a data frame, got a {type(X).__name__} of "
            f"{type(X[0]).__name__}, whose names would be ignored; make a data frame of them"
        )
    if not is_matrix:
        reject_masked("X", X)
    first = X[0] if is_sequence and X else X
    if isinstance(first, Mapping):
        kind = "dict" if first is X else f"{type(X).__name__} of dicts"
        raise TypeError(
            f"X: expected a matrix or a data frame, got a {kind}; a row with names is "
            "pandas.DataFrame([row]), and columns with names are pandas.DataFrame(columns)"
        )
    try:
        is_hidden = type(X) is np.ma.MaskedArray and np.ma.is_masked(X)
        values = X if is_hidden else np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X: expected a matrix of numbers: {error}") from None
    if values.ndim != 2:
        raise ValueError(
            f"X: expected two dimensions (rows, columns), got {values.ndim} "
            f"(shape {values.shape}); one row is X.reshape(1, -1)"
        )
    if is_sequence and (values.dtype.kind == "U" or has_rounded(values)):
        values = np.asarray(X, dtype=object)
    return values


def _refuse_others(X: TableLike) -> None:
    """Raise TypeError for what is no matrix though NumPy might make one of it."""
    if hasattr(X, "n_bins"):
        raise TypeError(
            f"X: expected a matrix or a data frame, got {type(X).__name__}, "
            "which only builders take"
        )
    if is_series(X):
        raise TypeError(
            f"X: expected a matrix or a data frame, got a {type(X).__name__}; "
            "one column is X.to_frame()"
        )
    refuse_sparse(X)


def refuse_sparse(X: TableLike) -> None:
    """Raise TypeError if this is a sparse matrix."""
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError(
            f"X: expected a matrix or a data frame, got a {type(X).__name__}: sparse matrices are "
            "not supported; pass X.toarray()"
        )


def check_size(shape: tuple[int, ...]) -> None:
    """Raise ValueError if a matrix has no columns, or more rows or columns than int32 counts."""
    if shape[1] == 0:
        raise ValueError(f"X: expected at least one column, got shape {shape}")
    if max(shape) > INT32_MAX:
        raise ValueError(f"X: expected at most {INT32_MAX} rows and columns, got shape {shape}")


def frame_columns(X: TableLike) -> tuple[tuple[str, ...], list[Array]]:
    """Return the names of the columns of a data frame, and their values of whatever type."""
    names = _checked_names(X)
    return names, [whole_column(source) for source in of_frame(X, len(names))]


@dataclass(frozen=True, slots=True, eq=False)
class RowTable:
    """An array or a data frame of which rows can be taken.

    Attributes
    ----------
    source : ndarray or data frame
        X; nested sequences are arrays here.
    n_rows : int
        Number of rows.
    n_features : int
        Number of columns; 1 where X has one dimension.
    names : tuple of str or None
        Column names of a data frame.
    row_shape : tuple of int or None
        Shape of one row of an array; () where X has one dimension.
    table : Table or None
        What the columns of X are, if it was read before.
    """

    source: Any
    n_rows: int
    n_features: int
    names: tuple[str, ...] | None
    row_shape: tuple[int, ...] | None
    table: Table | None = None

    def take(self, positions: NDArray[np.integer]) -> Any:
        """Return rows in the type of X; numbers of levels as features, which know what they are."""
        rows = row_selector(self.source)(positions)
        return rows if self.table is None else Features(rows, self.names, self.table)


def as_rows(X: Any) -> RowTable:
    """Return X as rows of anything; nothing is converted but sequences.

    Raises
    ------
    ValueError
        If X has no rows and columns to take, or too many; or is a sequence that holds masks, or
        hides by a mask what can be neither NaN nor None.
    TypeError
        If X is sorted or binned columns, or a sparse matrix.
    """
    if hasattr(X, "n_bins"):
        raise TypeError(
            f"X: expected an array or a data frame, got {type(X).__name__}, which holds no rows"
        )
    if is_frame(X):
        names = column_names(X)
        rows = RowTable(X, len(X), len(names), names, None)
    elif isinstance(X, Features):
        rows = RowTable(X.values, X.n_rows, X.n_features, X.names, X.values.shape[1:], X.table)
    else:
        X = as_array(X)
        if not X.ndim:
            raise ValueError("X: expected rows, got a single value")
        n_features = X.shape[1] if X.ndim > 1 else 1
        rows = RowTable(X, len(X), n_features, None, X.shape[1:])
    if rows.n_features < 1 or max(rows.n_rows, rows.n_features) > INT32_MAX:
        raise ValueError(
            f"X: expected 1 to {INT32_MAX} columns and at most as many rows, got "
            f"{rows.n_rows} rows, {rows.n_features} columns"
        )
    return rows


def as_array(X: TableLike) -> Array:
    """Return X, no data frame, as an array."""
    refuse_sparse(X)
    if type(X) is np.ma.MaskedArray:
        X = _with_holes(X)
    reject_masked("X", X)
    try:
        return np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X: expected rows of equal length: {error}") from None


def _with_holes(X: Array) -> Array:
    """Return what a mask hides as NaN or None; as it is where nothing is hidden, or is neither."""
    hidden, kind = np.ma.getmaskarray(X), X.dtype.kind
    if not hidden.any():
        return X
    if kind == "f":
        return np.where(hidden, X.dtype.type(np.nan), np.ma.getdata(X))
    if kind in "biu" and X.ndim == 2:
        return read_matrix(X).values
    if kind not in "OUT":
        return X
    values = np.ma.getdata(X).astype(object)
    values[hidden] = None
    return values


def row_selector(X: Any) -> Callable[[NDArray[np.integer]], Any]:
    """Return the function that takes rows of an array or a data frame."""
    if hasattr(X, "iloc"):  # pandas and its like
        select: Callable[[NDArray[np.integer]], Any] = X.iloc.__getitem__
    elif is_frame(X) and hasattr(X, "take"):  # pyarrow
        select = X.take
    else:  # arrays; polars, narwhals
        select = X.__getitem__
    return select


def pick_columns(X: Any, order: list[int]) -> Any:
    """Return columns of a data frame, by position."""
    if hasattr(X, "iloc"):
        return X.iloc[:, order]
    if hasattr(X, "take"):
        return X.select(order)
    return X[:, order]


def with_shuffled(X: Any, column: int, order: NDArray[np.integer]) -> Any:
    """Return an array or a data frame in which one column has the values of other rows."""
    if isinstance(X, np.ndarray):
        shuffled = X.copy()
        where = (slice(None), column) if X.ndim > 1 else slice(None)
        shuffled[where] = X[where][order]
    elif hasattr(X, "iloc"):  # pandas and its like
        shuffled = X.copy()
        shuffled.isetitem(column, X.iloc[order, column].set_axis(X.index))
    elif hasattr(X, "take"):  # pyarrow
        shuffled = X.set_column(column, X.schema.field(column), X.column(column).take(order))
    else:
        shuffled = X.with_columns(X[:, column][order])
    return shuffled
