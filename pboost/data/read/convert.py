"""Conversion of data frames, arrays and sequences to features or to rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.categories import ColumnReader
from pboost.data.read.frames import (
    Source,
    float_frame,
    frame_of_stream,
    of_array,
    of_frame,
    whole_column,
)
from pboost.data.read.numbers import PLAIN, has_rounded, matrix_to_float
from pboost.data.read.table import Table, column_order, positions
from pboost.values import INT32_MAX, Array, TableLike, reject_masked, shown


@dataclass(frozen=True, slots=True)
class Features:
    """A feature matrix: `values` (n, d), float32 or float64, and feature names or None.

    NaN is a missing value. Categorical features, ordered or not, contain category numbers, which
    `table` maps to categories; `table` is None if all features are numeric.

    Pass this object to other functions, not only its `values`: without the table, category numbers
    would be treated as numeric.
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
        """Number of features."""
        return self.values.shape[1]

    def take(self, rows: slice | NDArray[np.integer]) -> Features:
        """Return a subset of the rows."""
        return Features(self.values[rows], self.names, self.table)


def is_frame(X: TableLike) -> bool:
    """Return whether `X` is a data frame; raise TypeError for a lazy data frame."""
    if isinstance(X, np.ndarray):
        return False
    if hasattr(type(X), "collect"):
        raise TypeError(f"X: expected rows in memory, got a {type(X).__name__}; pass X.collect()")
    if hasattr(type(X), "compute"):
        raise TypeError(
            f"X: expected rows in memory, got a Dask {type(X).__name__}; fit to "
            "pboost.dask.rows(X, y), predict with pboost.dask.predict(model, X), or pass "
            "X.compute()"
        )
    return hasattr(X, "columns")


def is_series(X: TableLike) -> bool:
    """Return whether `X` is a row or column of a data frame."""
    return hasattr(type(X), "to_frame")


def as_table(X: Any) -> Any:
    """Convert a pandas Series to a data frame with one row; return anything else unchanged."""
    if not is_series(X):
        return X
    if hasattr(X, "iloc") and hasattr(X, "index"):
        return X.to_frame().T
    raise TypeError(
        f"X: expected a matrix, a data frame or a pandas Series, got a {type(X).__name__} without "
        "names; pass a data frame with one row"
    )


def column_names(X: Any) -> tuple[str, ...]:
    """Return the column names of a data frame."""
    return tuple(map(str, getattr(X, "column_names", X.columns)))  # pyarrow or another library


class Trained(NamedTuple):
    """Features of the training data: names or None, their number, and their description."""

    names: tuple[str, ...] | None
    n_features: int
    table: Table | None = None

    @property
    def known(self) -> Table:
        """Description of the features."""
        return Table.of_numbers(self.n_features) if self.table is None else self.table

    def places(self, names: tuple[str, ...] | None, d: int) -> list[int] | None:
        """Return the positions of the training features among d columns; None if unchanged."""
        order = column_order(self.names, names)
        if d != self.n_features:
            raise ValueError(f"X: expected {self.n_features} columns, got {d}")
        return order


def read_matrix(
    X: TableLike, categorical_features: object = None, trained: Trained | None = None
) -> Features:
    """Convert X to features; see `as_features`.

    With `trained`, features have the order and the category numbers of the training data.
    """
    return _read(X, categorical_features, trained, is_part=False)[0]


def read_rows(X: TableLike) -> tuple[Features, list[int]]:
    """Convert a part of the rows of a table; return the features and the text columns.

    Text columns are categorical only if most values in the whole table repeat.
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
    values = _as_matrix(X, is_new=trained is not None)
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
    """Read each column into the matrix; return features and undeclared categorical columns."""
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
        raise ValueError(f"X: expected distinct column names, got {twice!r} twice")
    check_size((len(X), len(names)))
    return names


def _as_matrix(X: Any, is_new: bool) -> Array:
    """Convert X to a two-dimensional array, of dtype object if values would change otherwise.

    `is_new` if the rows are passed to a fitted model.
    """
    is_matrix = type(X) is np.ndarray or type(X) is np.ma.MaskedArray
    is_sequence = not is_matrix and isinstance(X, list | tuple)
    if is_sequence and X and is_series(X[0]):
        raise TypeError(
            f"X: expected a matrix or a data frame, got a {type(X).__name__} of "
            f"{type(X[0]).__name__}, whose names would be ignored; pass a data frame"
        )
    if not is_matrix:
        reject_masked("X", X)
    first = X[0] if is_sequence and X else X
    if isinstance(first, Mapping):
        kind = "dict" if first is X else f"{type(X).__name__} of dicts"
        raise TypeError(
            f"X: expected a matrix or a data frame, got a {kind}; pass pandas.DataFrame([row]) for "
            "a row with names, or pandas.DataFrame(columns) for columns with names"
            + ("; pb.row_predictor(model) predicts single dicts" if is_new else "")
        )
    try:
        is_hidden = type(X) is np.ma.MaskedArray and np.ma.is_masked(X)
        values = X if is_hidden else np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X: expected a matrix of numbers: {error}") from None
    if values.ndim != 2:
        raise ValueError(
            f"X: expected two dimensions (rows, columns), got {values.ndim} "
            f"(shape {values.shape}); pass a single row as X.reshape(1, -1)"
        )
    if is_sequence and (values.dtype.kind == "U" or has_rounded(values)):
        values = np.asarray(X, dtype=object)
    return values


def _refuse_others(X: TableLike) -> None:
    """Raise TypeError for types that are not a matrix although NumPy may convert them."""
    if hasattr(X, "n_bins"):
        raise TypeError(
            f"X: expected a matrix or a data frame, got {type(X).__name__}, "
            "which only fit functions accept"
        )
    if is_series(X):
        raise TypeError(
            f"X: expected a matrix or a data frame, got a {type(X).__name__}; "
            "pass a single column as X.to_frame()"
        )
    refuse_sparse(X)
    refuse_path(X)


def refuse_path(X: TableLike) -> None:
    """Raise TypeError for the path of a file or folder; no function reads rows from a path as X."""
    if isinstance(X, str | bytes | os.PathLike):
        raise TypeError(
            f"X: expected a matrix or a data frame, got the path {shown(os.fspath(X))}; read the "
            "file first, for example with pandas.read_csv or pandas.read_parquet; for files larger "
            "than memory, fit to the columns of pb.data.bin_files or open_columns, and predict the "
            "batches of pyarrow.dataset.dataset(path).to_batches()"
        )


def is_sparse(X: TableLike) -> bool:
    """Return whether X is a sparse matrix or sparse array of SciPy."""
    return type(X) is not np.ndarray and hasattr(X, "tocsr") and hasattr(X, "nnz")


def refuse_sparse(X: TableLike) -> None:
    """Raise TypeError for a sparse matrix."""
    if is_sparse(X) or (hasattr(X, "toarray") and hasattr(X, "nnz")):
        raise TypeError(
            f"X: expected a matrix or a data frame, got a {type(X).__name__}; sparse matrices "
            "are not supported, pass X.toarray() or use fit_gradient_boosting"
        )


def sparse_rows(X: Any) -> RowTable:
    """Return a sparse matrix as rows that can be selected."""
    refuse_other_shapes(X)
    n, d = X.shape
    return RowTable(X.tocsr(), n, d, None, (d,))


def refuse_other_shapes(X: Any) -> None:
    """Raise an error for a sparse array that is not a matrix of numbers."""
    if X.ndim != 2:
        raise ValueError(
            f"X: expected two dimensions (rows, columns), got {X.ndim} (shape {X.shape})"
        )
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X: expected a sparse matrix of numbers, got dtype {X.dtype}")


def check_size(shape: tuple[int, ...]) -> None:
    """Raise ValueError if a matrix has no columns, or too many rows or columns for int32."""
    if shape[1] == 0:
        raise ValueError(f"X: expected at least one column, got shape {shape}")
    if max(shape) > INT32_MAX:
        raise ValueError(f"X: expected at most {INT32_MAX} rows and columns, got shape {shape}")


def frame_columns(X: TableLike) -> tuple[tuple[str, ...], list[Array]]:
    """Return the column names of a data frame, and the values of each column, of any type."""
    names = _checked_names(X)
    return names, [whole_column(source) for source in of_frame(X, len(names))]


@dataclass(frozen=True, slots=True, eq=False)
class RowTable:
    """An array or data frame whose rows can be selected.

    Attributes
    ----------
    source : ndarray or data frame
        The rows. Nested sequences are converted to arrays.
    n_rows : int
        Number of rows.
    n_features : int
        Number of columns; 1 for a one-dimensional array.
    names : tuple of str or None
        Column names of a data frame.
    row_shape : tuple of int or None
        Shape of a row of an array; () for a one-dimensional array.
    table : Table or None
        Description of the features, if X has been converted before.
    """

    source: Any
    n_rows: int
    n_features: int
    names: tuple[str, ...] | None
    row_shape: tuple[int, ...] | None
    table: Table | None = None

    def take(self, positions: NDArray[np.integer]) -> Any:
        """Return selected rows in the type of X, or as features if X has been converted."""
        rows = row_selector(self.source)(positions)
        return rows if self.table is None else Features(rows, self.names, self.table)


def as_rows(X: Any) -> RowTable:
    """Return X as rows that can be selected; only sequences are converted.

    Raises
    ------
    ValueError
        If X has no dimensions, no columns or too many rows, or contains masked values that cannot
        be replaced by NaN or None.
    TypeError
        If X is sorted or binned columns, or a sparse matrix.
    """
    if hasattr(X, "n_bins"):
        raise TypeError(f"X: expected an array or a data frame, got {type(X).__name__}")
    if is_frame(X):
        names = column_names(X)
        rows = RowTable(X, len(X), len(names), names, None)
    elif isinstance(X, Features):
        rows = RowTable(X.values, X.n_rows, X.n_features, X.names, X.values.shape[1:], X.table)
    else:
        values = as_array(X)
        if not values.ndim:
            refuse_path(X)
            raise ValueError("X: expected rows, got a single value")
        n_features = values.shape[1] if values.ndim > 1 else 1
        rows = RowTable(values, len(values), n_features, None, values.shape[1:])
    if rows.n_features < 1 or max(rows.n_rows, rows.n_features) > INT32_MAX:
        raise ValueError(
            f"X: expected at most {INT32_MAX} rows and 1 to {INT32_MAX} columns, got "
            f"{rows.n_rows} rows, {rows.n_features} columns"
        )
    return rows


def as_array(X: TableLike) -> Array:
    """Return X, which is not a data frame, as an array."""
    refuse_sparse(X)
    if type(X) is np.ma.MaskedArray:
        X = _with_holes(X)
    reject_masked("X", X)
    try:
        return np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X: expected rows of equal length: {error}") from None


def _with_holes(X: Array) -> Array:
    """Replace masked values by NaN or None; return X unchanged if this is not possible."""
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
    """Return a function that selects rows of an array or a data frame."""
    if hasattr(X, "iloc"):  # pandas and its like
        select: Callable[[NDArray[np.integer]], Any] = X.iloc.__getitem__
    elif is_frame(X) and hasattr(X, "take"):  # pyarrow
        select = X.take
    else:  # arrays; polars, narwhals
        select = X.__getitem__
    return select


def pick_columns(X: Any, order: list[int]) -> Any:
    """Return columns of a data frame by position."""
    if hasattr(X, "iloc"):
        return X.iloc[:, order]
    if hasattr(X, "take"):
        return X.select(order)
    return X[:, order]


def with_shuffled(X: Any, column: int, order: NDArray[np.integer]) -> Any:
    """Return a copy of an array or a data frame with one column permuted."""
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
