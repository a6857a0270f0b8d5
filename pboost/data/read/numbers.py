"""Values of columns as numbers: which are floats, which are rounded, which are missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.codes import copied
from pboost.values import Array, first_false, shown

#: All integers to this size are float64 numbers; of those beyond only some are.
EXACT = 2**53
#: What to do with text that is not known to be categories.
ENCODE = "; pb.data.one_hot(X) makes columns of zeros and ones of it"
#: The same, where columns can be named.
NAME_OR_ENCODE = "; name columns of categories in categorical_features=[...], or make numbers of them by pb.data.one_hot(X)"
#: Numbers of which the squares add up to less are all smaller than that.
SMALL = float(EXACT) ** 2
#: So many numbers or fewer are multiplied faster than compared.
FEW = 4096
PLAIN = (np.dtype(np.float64), np.dtype(np.float32))
#: Names of the types of values that are missing, besides None and NaN.
MISSING = ("NAType", "NaTType")


def matrix_to_float(values: Array) -> Array:
    """Return a matrix of numbers as float64, or float32."""
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
    """Return True only if no number is beyond the integers that are all float64; fast for a row."""
    if numbers.size > FEW:  # of many numbers BLAS makes work for all its threads
        return bool(numbers.max() <= EXACT and numbers.min() >= -EXACT)
    return bool(np.vdot(numbers, numbers) < SMALL)  # unlike dot() without warnings


def has_rounded(values: Array) -> bool:
    """Return whether integers of a nested sequence may have been rounded to make these floats."""
    if values.dtype.kind != "f" or are_small(values):
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


def _inexact(label: str, row: int, value: object) -> ValueError:
    return ValueError(
        f"X: {label}, row {row} holds {value}, an integer beyond 2**53 that is no float64; others "
        "would count as equal to it. Subtract a number from the column, or pass floats"
    )


def to_numbers(column: Array, label: str, first: int = 0, of_text: str = ENCODE) -> Array:
    """Return a column as float64 or float32, the same numbers; an error if they are no such.

    What a mask hides is missing, and so NaN. The first row of the column is called `first`;
    `of_text` ends what is said of text.
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
    """Return a column as numbers; TypeError if it holds anything else."""
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
        raise TypeError(f"X: {label} is not numeric: row {first + row} holds {shown(column[row])}")
    if any(type(v).__name__ == "NAType" for v in column):
        column = np.array([np.nan if is_missing(v) else v for v in column], dtype=object)
    try:
        numbers = column.astype(np.float64)
    except OverflowError:
        row = first + next(i for i, v in enumerate(column) if _is_number(v) is None)
        raise ValueError(
            f"X: {label}, row {row} holds a number beyond the range of float64"
        ) from None
    except (TypeError, ValueError):
        row = next(i for i, v in enumerate(column) if _is_number(v) is False)
        raise TypeError(
            f"X: {label} is not numeric: row {first + row} holds {shown(column[row])}"
        ) from None
    if (row := first_rounded(column, numbers)) >= 0:
        raise _inexact(label, first + row, column[row])
    return numbers


def first_rounded(values: Array, numbers: NDArray[np.float64]) -> int:
    """Return the place of the first of some objects that is no float64; -1 if there is none."""
    for row in np.flatnonzero(np.abs(numbers) >= EXACT).tolist():
        if isinstance(values[row], int | np.integer) and int(values[row]) != int(numbers[row]):
            return row
    return -1


def _is_number(value: Any) -> bool | None:
    """Return whether a value is a number or None; None if it is beyond the range of float64."""
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
    """Return a list or an array of strings as an array that stores strings.

    Such arrays drop NUL characters at the end of strings, so that two strings could become one.
    """
    refuse_nul(values, expected)
    return np.asarray(values, dtype=np.str_)


def refuse_nul(values: Any, expected: str) -> None:
    """Raise ValueError, which begins with what was `expected`, for strings that end with NUL."""
    for value in values.ravel().tolist() if isinstance(values, np.ndarray) else values:
        if isinstance(value, str) and value.endswith("\0"):
            raise ValueError(
                f"{expected} without a NUL character at the end, which NumPy drops, got "
                f"{str.__repr__(value)}; strip it: value.rstrip('\\0')"
            )


def is_missing(value: object) -> bool:
    """Whether this stands for no value: None, NaN, or what pandas has for it."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in MISSING
