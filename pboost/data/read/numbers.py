"""Conversion of columns to floats, with checks of rounding and missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.codes import copied
from pboost.values import Array, first_false, shown

#: float64 represents all integers up to this size, but not all larger ones.
EXACT = 2**53
#: Hint for text in a numeric column.
ENCODE = "; encode it with pb.data.one_hot(X)"
#: Hint for text if categorical columns can be listed in an option.
NAME_OR_ENCODE = (
    "; pass categorical columns in categorical_features or encode them with pb.data.one_hot(X)"
)
#: If the sum of squares is below this limit, no absolute value exceeds EXACT.
SMALL = float(EXACT) ** 2
#: Up to this many numbers, a dot product is faster than comparisons.
FEW = 4096
PLAIN = (np.dtype(np.float64), np.dtype(np.float32))
#: Type names of missing values, besides None and NaN.
MISSING = ("NAType", "NaTType")


def matrix_to_float(values: Array) -> Array:
    """Convert a matrix of numbers to float64 or float32; reject other dtypes."""
    if values.dtype == np.float16:
        return copied(values, np.float32, "K")
    if values.dtype.kind not in "biuf":
        kind = f"text{NAME_OR_ENCODE}" if values.dtype.kind in "UT" else f"dtype {values.dtype}"
        raise TypeError(f"X: expected numbers, got {kind}")
    numbers = copied(values, np.float64, "K")
    if values.itemsize == 8 and not are_small(numbers) and (at := first_inexact(values)) >= 0:
        row, column = divmod(at, values.shape[1])
        raise _inexact(f"column {column}", row, values[row, column])
    return numbers


def are_small(numbers: Array) -> bool:
    """Return whether all absolute values are at most EXACT."""
    if numbers.size > FEW:  # for large arrays, BLAS would use several threads
        return bool(numbers.max() <= EXACT and numbers.min() >= -EXACT)
    return bool(np.vdot(numbers, numbers) < SMALL)  # unlike dot(), this emits no warnings


def has_rounded(values: Array) -> bool:
    """Return whether the conversion to these floats may have rounded integers of a sequence."""
    if values.dtype.kind != "f" or are_small(values):
        return False
    return bool((np.abs(values) >= EXACT).any())


def first_inexact(values: Array) -> int:
    """Return the index of the first integer that float64 cannot represent (in C order), or -1."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not values.size:
        return -1
    if values.max() <= EXACT and values.min() >= -EXACT:
        return -1
    flat = values.ravel()
    size = flat.astype(np.uint64)
    size = np.where(flat < 0, ~size + 1, size)
    lowest = np.maximum(size & (~size + 1), 1)  # the lowest nonzero bit
    is_exact = size // lowest <= EXACT
    return first_false(is_exact)


def _inexact(label: str, row: int, value: object) -> ValueError:
    return ValueError(
        f"X: {label}: expected numbers that float64 can represent, got the integer {value} in row "
        f"{row}; subtract an offset, or convert the column to floats to accept rounding"
    )


def to_numbers(column: Array, label: str, first: int = 0, of_text: str = ENCODE) -> Array:
    """Convert a column to float64 or float32; raise an error if a value would change.

    Masked values become NaN. `first` is the number of the first row in messages, and `of_text` is
    the hint for text.
    """
    hidden = np.ma.getmaskarray(column) if isinstance(column, np.ma.MaskedArray) else None
    if hidden is not None:
        column = np.where(hidden, np.zeros(1, column.dtype), np.ma.getdata(column))
    numbers = numeric_column(column, label, first, of_text)
    if (at := first_inexact(numbers)) >= 0:
        raise _inexact(label, first + at, numbers[at])
    if hidden is not None:
        is_float = numbers.dtype in PLAIN
        numbers = np.where(hidden, numbers.dtype.type(np.nan) if is_float else np.nan, numbers)
    return numbers if numbers.dtype.kind == "f" else numbers.astype(np.float64)


def numeric_column(column: Array, label: str, first: int = 0, of_text: str = ENCODE) -> Array:
    """Return a column as numbers; raise TypeError for other values."""
    if column.dtype.kind in "biuf":
        return column
    if column.dtype.kind == "O":
        return _object_column(column, label, first, of_text)
    kind = of_text if column.dtype.kind in "UT" else f" (dtype {column.dtype})"
    raise TypeError(f"X: {label} is not numeric{kind}")


def _object_column(column: Array, label: str, first: int, of_text: str) -> Array:
    if any(isinstance(v, str | bytes | complex) for v in column):
        if any(isinstance(v, str) for v in column):
            raise TypeError(f"X: {label} is not numeric{of_text}")
        row = next(i for i, v in enumerate(column) if isinstance(v, bytes | complex))
        raise TypeError(f"X: {label} is not numeric: got {shown(column[row])} in row {first + row}")
    if any(type(v).__name__ == "NAType" for v in column):
        column = np.array([np.nan if is_missing(v) else v for v in column], dtype=object)
    try:
        numbers = column.astype(np.float64)
    except OverflowError:
        row = first + next(i for i, v in enumerate(column) if _is_number(v) is None)
        raise ValueError(
            f"X: {label}: expected numbers in the range of float64, got a larger number in "
            f"row {row}"
        ) from None
    except (TypeError, ValueError):
        row = next(i for i, v in enumerate(column) if _is_number(v) is False)
        raise TypeError(
            f"X: {label} is not numeric: got {shown(column[row])} in row {first + row}"
        ) from None
    if (row := first_rounded(column, numbers)) >= 0:
        raise _inexact(label, first + row, column[row])
    return numbers


def first_rounded(values: Array, numbers: NDArray[np.float64]) -> int:
    """Return the index of the first object that float64 cannot represent, or -1."""
    for row in np.flatnonzero(np.abs(numbers) >= EXACT).tolist():
        if isinstance(values[row], int | np.integer) and int(values[row]) != int(numbers[row]):
            return row
    return -1


def _is_number(value: Any) -> bool | None:
    """Return True for a number or None, None for a number beyond float64, and False otherwise."""
    if isinstance(value, np.ndarray):
        return False
    try:
        float(value)
    except OverflowError:
        return None
    except (TypeError, ValueError):
        return value is None
    return True


def as_text(values: object, expected: str) -> Array:
    """Convert strings to an array of fixed-length strings; reject trailing NUL characters.

    NumPy drops trailing NUL characters, so that two strings could become equal.
    """
    refuse_nul(values, expected)
    return np.asarray(values, dtype=np.str_)


def refuse_nul(values: Any, expected: str) -> None:
    """Raise ValueError for strings with a trailing NUL; `expected` begins the message."""
    for value in values.ravel().tolist() if isinstance(values, np.ndarray) else values:
        if isinstance(value, str) and value.endswith("\0"):
            raise ValueError(
                f"{expected} without a trailing NUL character, which NumPy would drop, got "
                f"{str.__repr__(value)}; strip it with value.rstrip('\\0')"
            )


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, or a missing value of pandas."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in MISSING
