"""Data frames, sequences and objects, as numbers or as rows of anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.blocks import copied
from pboost.values import INT32_MAX, Array, first_false, refuse_masked

#: All integers to this size are float64 numbers; of those beyond only some are.
EXACT = 2**53
#: What to do with a column of text.
ENCODE = "; pb.one_hot(X) makes columns of zeros and ones of it"
#: Numbers of which the squares add up to less are all smaller than that.
SMALL = float(EXACT) ** 2
#: So many numbers or fewer are multiplied faster than compared.
FEW = 4096
PLAIN = (np.dtype(np.float64), np.dtype(np.float32))


@dataclass(frozen=True, slots=True)
class Features:
    """A feature matrix: `values` (n, d), float32 or float64, and column names or None."""

    values: Array
    names: tuple[str, ...] | None
    table: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.values.shape[1]


def is_frame(X: Any) -> bool:
    """Whether `X` is a data frame: it has named columns. TypeError if it has not been read yet."""
    if isinstance(X, np.ndarray):
        return False
    if hasattr(type(X), "collect"):
        raise TypeError(f"X: expected rows, got a {type(X).__name__}; pass X.collect()")
    return hasattr(X, "columns")


def is_series(X: Any) -> bool:
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


def read_matrix(X: Any) -> tuple[Array, tuple[str, ...] | None]:
    """Return X as floats (n, d), and the names of its columns; see `as_features`."""
    if type(X) is not list and type(X) is not np.ndarray:
        if is_frame(X):
            return _read_frame(X)
        _refuse_others(X)
    is_matrix = type(X) is np.ndarray
    is_sequence = not is_matrix and isinstance(X, list | tuple)
    if is_sequence and X and is_series(X[0]):
        raise TypeError(
            f"X: expected a matrix or a data frame, got a {type(X).__name__} of "
            f"{type(X[0]).__name__}, whose names would be ignored; make a data frame of them"
        )
    if not is_matrix:
        refuse_masked("X", X)
    try:
        values = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X: expected a matrix of numbers: {error}") from None
    if values.ndim != 2:
        raise ValueError(
            f"X: expected two dimensions (rows, columns), got {values.ndim} "
            f"(shape {values.shape}); one row is X.reshape(1, -1)"
        )
    if is_sequence and has_rounded(values):
        values = np.asarray(X, dtype=object)
    if values.dtype not in PLAIN:
        values = _to_float(values)
    check_size(values.shape)
    return values, None


def _refuse_others(X: Any) -> None:
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


def refuse_sparse(X: Any) -> None:
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


def _to_float(values: Array) -> Array:
    if values.dtype == np.float16:
        return copied(values, np.float32, "K")
    if values.dtype.kind == "O":
        columns = [to_numbers(values[:, j], f"column {j}") for j in range(values.shape[1])]
        return np.column_stack(columns) if columns else np.empty(values.shape)
    if values.dtype.kind not in "biuf":
        found = f"text{ENCODE}" if values.dtype.kind in "UT" else f"dtype {values.dtype}"
        raise TypeError(f"X: expected numbers, got {found}")
    numbers = copied(values, np.float64, "K")
    if values.itemsize == 8 and not _are_small(numbers) and (at := first_inexact(values)) >= 0:
        row, column = divmod(at, values.shape[1])
        raise _inexact(f"column {column}", row, values[row, column])
    return numbers


def _are_small(numbers: Array) -> bool:
    """Return True only if no number is beyond the integers that are all float64; fast for a row."""
    if numbers.size > FEW:  # of many numbers BLAS makes work for all its threads
        return bool(numbers.max() <= EXACT and numbers.min() >= -EXACT)
    return bool(np.vdot(numbers, numbers) < SMALL)  # unlike dot() without warnings


def has_rounded(values: Array) -> bool:
    """Return whether integers of a nested sequence may have been rounded to make these floats."""
    if values.dtype.kind != "f" or _are_small(values):
        return False
    return bool((np.abs(values) >= EXACT).any())


def first_inexact(values: Array) -> int:
    """Return the place of the first integer that is no float64, in C order; -1 if there is none."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not values.size:
        return -1
    if values.max() <= EXACT and values.min() >= -EXACT:
        return -1
    flat = values.ravel()
    size = flat.astype(np.uint64)
    size = np.where(flat < 0, ~size + 1, size)
    lowest = np.maximum(size & (~size + 1), 1)  # the lowest bit that is set
    is_exact = size // lowest <= EXACT
    return first_false(is_exact)


def _inexact(label: str, row: int, value: Any) -> ValueError:
    return ValueError(
        f"X: {label}, row {row} holds {value}, an integer beyond 2**53 that is no float64; others "
        "would count as equal to it. Subtract a number from the column, or pass floats"
    )


def to_numbers(column: Array, label: str) -> Array:
    """Return a column as float64 or float32, the same numbers; an error if they are no such."""
    numbers = numeric_column(column, label)
    if (at := first_inexact(numbers)) >= 0:
        raise _inexact(label, at, numbers[at])
    return numbers if numbers.dtype.kind == "f" else numbers.astype(np.float64)


def _object_column(column: Array, label: str) -> Array:
    if any(isinstance(v, str | bytes | complex) for v in column):
        is_text = any(isinstance(v, str) for v in column)
        raise TypeError(f"X: {label} is not numeric{ENCODE if is_text else ''}")
    if any(type(v).__name__ == "NAType" for v in column):
        column = np.array([np.nan if is_missing(v) else v for v in column], dtype=object)
    try:
        numbers = column.astype(np.float64)
    except OverflowError:
        row = next(i for i, v in enumerate(column) if _is_beyond(v))
        raise ValueError(
            f"X: {label}, row {row} holds a number beyond the range of float64"
        ) from None
    except (TypeError, ValueError):
        raise TypeError(f"X: {label} is not numeric") from None
    if (row := first_rounded(column, numbers)) >= 0:
        raise _inexact(label, row, column[row])
    return numbers


def first_rounded(values: Array, numbers: NDArray[np.float64]) -> int:
    """Return the place of the first of some objects that is no float64; -1 if there is none."""
    for row in np.flatnonzero(np.abs(numbers) >= EXACT).tolist():
        if isinstance(values[row], int | np.integer) and int(values[row]) != int(numbers[row]):
            return row
    return -1


def _is_beyond(value: Any) -> bool:
    try:
        float(value)
    except OverflowError:
        return True
    return False


def is_missing(value: Any) -> bool:
    """Whether this stands for no value: None, NaN, or what pandas has for it."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def frame_columns(X: Any) -> tuple[tuple[str, ...], list[Array]]:
    """Return the names of the columns of a data frame, and their values of whatever type."""
    names = column_names(X)
    if len(set(names)) != len(names):
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise ValueError(f"X: two columns are named {twice!r}")
    check_size((len(X), len(names)))
    if hasattr(X, "iloc"):
        columns = [X.iloc[:, j].to_numpy() for j in range(len(names))]
    elif hasattr(X, "num_columns"):  # a table or a batch of pyarrow, which narwhals does not know
        columns = [X.column(j).to_numpy(zero_copy_only=False) for j in range(len(names))]
    else:
        columns = _foreign_columns(X)
    return names, [np.asarray(column) for column in columns]


def _read_frame(X: Any) -> tuple[Array, tuple[str, ...]]:
    names, columns = frame_columns(X)
    matrix = np.empty((len(X), len(names)), dtype=np.float64)
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        matrix[:, j] = to_numbers(column, f"column {name!r}")
    return matrix, names


def _foreign_columns(X: Any) -> list[Array]:
    try:
        import narwhals
    except ImportError:
        raise TypeError(
            f'X: reading a {type(X).__name__} needs narwhals: pip install "pboost[frames]"'
        ) from None
    frame = narwhals.from_native(X, eager_only=True)
    return [frame[name].to_numpy() for name in frame.columns]


def numeric_column(column: Array, label: str) -> Array:
    """Return a column as numbers; TypeError if it holds anything else."""
    if column.dtype.kind in "biuf":
        return column
    if column.dtype.kind == "O":
        return _object_column(column, label)
    found = ENCODE if column.dtype.kind in "UT" else f" (dtype {column.dtype})"
    raise TypeError(f"X: {label} is not numeric{found}")


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
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
    """

    source: Any
    n_rows: int
    n_features: int
    names: tuple[str, ...] | None
    row_shape: tuple[int, ...] | None

    def take(self, positions: NDArray[np.integer]) -> Any:
        """Return rows in the type of X."""
        return row_selector(self.source)(positions)


def as_rows(X: Any) -> Rows:
    """Return X as rows of anything; nothing is converted but sequences.

    Raises
    ------
    ValueError
        If X has no rows and columns to take, or too many, or hides values by a mask.
    TypeError
        If X is sorted or binned columns, or a sparse matrix.
    """
    if hasattr(X, "n_bins"):
        raise TypeError(
            f"X: expected an array or a data frame, got {type(X).__name__}, which holds no rows"
        )
    if is_frame(X):
        names = column_names(X)
        rows = Rows(X, len(X), len(names), names, None)
    elif isinstance(X, Features):
        rows = Rows(X.values, X.n_rows, X.n_features, X.names, X.values.shape[1:])
    else:
        X = as_array(X)
        if not X.ndim:
            raise ValueError("X: expected rows, got a single value")
        n_features = X.shape[1] if X.ndim > 1 else 1
        rows = Rows(X, len(X), n_features, None, X.shape[1:])
    if rows.n_features < 1 or max(rows.n_rows, rows.n_features) > INT32_MAX:
        raise ValueError(
            f"X: expected 1 to {INT32_MAX} columns and at most as many rows, got "
            f"{rows.n_rows} rows, {rows.n_features} columns"
        )
    return rows


def as_array(X: Any) -> NDArray[Any]:
    """Return X, no data frame, as an array."""
    refuse_sparse(X)
    refuse_masked("X", X)
    try:
        return np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X: expected rows of equal length: {error}") from None


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
