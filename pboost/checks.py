"""Checks of what users pass: features, labels, weights, options. Inputs are never modified."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.values import as_array, shown

Array = NDArray[Any]
INT32_MAX = np.iinfo(np.int32).max
#: The largest number that can be predicted.
MOST_TARGET = 1e150
#: Beyond this a power of two may be no normal float64.
MOST_EXPONENT = 1000
#: Rows examined at a time, so that checks need little memory.
BLOCK = 65_536


@dataclass(frozen=True, slots=True)
class Features:
    """A feature matrix: `values` (n, d), float32 or float64, and column names or None."""

    values: Array
    names: tuple[str, ...] | None


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        expected = ", ".join(map(repr, choices))
        raise ValueError(f"{name}: expected one of {expected}, got {shown(value)}")
    return value


def check_integer(name: str, value: Any, *, least: int, most: int = INT32_MAX) -> int:
    """Return `value` as an int in [least, most]."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}: expected an integer, got {shown(value)}")
    if not least <= value <= most:
        given = shown(int(value))
        raise ValueError(f"{name}: expected an integer from {least} to {most}, got {given}")
    return int(value)


def check_number(
    name: str,
    value: Any,
    *,
    least: float,
    most: float = math.inf,
    open_least: bool = False,
    open_most: bool = False,
) -> float:
    """Return `value` as a finite float in [least, most], an end left out where it is open."""
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        raise TypeError(f"{name}: expected a number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:  # of an integer
        number = math.inf
    inside = (least < number if open_least else least <= number) and (
        number < most if open_most else number <= most
    )
    if not (inside and math.isfinite(number)):
        # Infinity is no finite number: the end is open there.
        left, right = "(" if open_least else "[", ")" if open_most or most == math.inf else "]"
        raise ValueError(
            f"{name}: expected a number in {left}{least}, {most}{right}, got {shown(value)}"
        )
    return number


def is_frame(X: Any) -> bool:
    """Whether `X` is a data frame: it has named columns."""
    return hasattr(X, "columns") and not isinstance(X, np.ndarray)


def column_names(X: Any) -> tuple[str, ...]:
    """Return the names of a data frame's columns."""
    return tuple(map(str, getattr(X, "column_names", X.columns)))  # pyarrow's, or the others'


def as_features(X: Any) -> Features:
    """Return `X` as a float matrix with its column names.

    Parameters
    ----------
    X : array_like of shape (n, d), or data frame
        NumPy array, anything with ``__array__``, nested sequences, a pandas data frame, or any
        other frame that narwhals knows.

    Returns
    -------
    Features
        float32 stays float32; everything else becomes float64. No copy where none is needed.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has no columns, or exceeds int32 in rows or columns.
    TypeError
        If a column is not numeric; it is named.
    """
    if is_frame(X):
        return _frame_features(X)
    if hasattr(X, "n_bins"):
        raise TypeError(
            f"X: expected a matrix or a data frame, got {type(X).__name__}, "
            "which only builders take"
        )
    try:
        values = X if type(X) is np.ndarray else np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X: expected a matrix of numbers: {error}") from None
    if values.ndim != 2:
        raise ValueError(
            f"X: expected two dimensions (rows, columns), got {values.ndim} "
            f"(shape {values.shape}); one row is X.reshape(1, -1)"
        )
    if values.dtype != np.float64 and values.dtype != np.float32:
        values = _to_float(values)
    check_size(values.shape)
    return Features(values, None)


def check_size(shape: tuple[int, ...]) -> None:
    """Raise ValueError if a matrix has no columns, or more rows or columns than int32 counts."""
    if shape[1] == 0:
        raise ValueError(f"X: expected at least one column, got shape {shape}")
    if max(shape) > INT32_MAX:
        raise ValueError(f"X: expected at most {INT32_MAX} rows and columns, got shape {shape}")


def _to_float(values: Array) -> Array:
    if values.dtype.kind in "biu" or values.dtype == np.float16:
        return values.astype(np.float32 if values.dtype == np.float16 else np.float64)
    if values.dtype.kind == "f":
        return values.astype(np.float64)
    if values.dtype.kind == "O":
        columns = [_object_column(values[:, j], f"column {j}") for j in range(values.shape[1])]
        return np.column_stack(columns) if columns else np.empty(values.shape)
    raise TypeError(f"X: expected numbers, got dtype {values.dtype}")


def _object_column(column: Array, label: str) -> Array:
    if any(isinstance(v, str | bytes | complex) for v in column):
        raise TypeError(f"X: {label} is not numeric")
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"X: {label} is not numeric") from None


def frame_columns(X: Any) -> tuple[tuple[str, ...], list[Array]]:
    """Return the names of the columns of a data frame, and their values of whatever type."""
    names = column_names(X)
    if len(set(names)) != len(names):
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise ValueError(f"X: two columns are named {twice!r}")
    check_size((len(X), len(names)))
    if hasattr(X, "iloc"):
        columns = [X.iloc[:, j].to_numpy() for j in range(len(names))]
    else:
        columns = _foreign_columns(X)
    return names, [np.asarray(column) for column in columns]


def _frame_features(X: Any) -> Features:
    names, columns = frame_columns(X)
    matrix = np.empty((len(X), len(names)), dtype=np.float64)
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        matrix[:, j] = numeric_column(column, f"column {name!r}")
    return Features(matrix, names)


def _foreign_columns(X: Any) -> list[Array]:
    try:
        import narwhals
    except ImportError:
        raise TypeError(
            f"X: reading a {type(X).__name__} needs narwhals: pip install 'pboost[frames]'"
        ) from None
    frame = narwhals.from_native(X, eager_only=True)
    return [frame[name].to_numpy() for name in frame.columns]


def numeric_column(column: Array, label: str) -> Array:
    """Return a column as numbers; TypeError if it holds anything else."""
    if column.dtype.kind in "biuf":
        return column
    if column.dtype.kind == "O":
        return _object_column(column, label)
    raise TypeError(f"X: {label} is not numeric (dtype {column.dtype})")


def check_has_rows(n: int) -> None:
    """Raise ValueError if there are no rows."""
    if not n:
        raise ValueError("X: expected at least one row, got none")


def check_finite(features: Features) -> None:
    """Raise ValueError naming the first column, and in it the first row, that is not finite."""
    values = features.values
    for start in range(0, len(values), BLOCK):
        if not np.isfinite(values[start : start + BLOCK]).all():
            break
    else:
        return
    for j in range(values.shape[1]):
        wrong = np.flatnonzero(~np.isfinite(values[:, j]))
        if len(wrong):
            label = f"column {j}" if features.names is None else f"column {features.names[j]!r}"
            row = int(wrong[0])
            raise ValueError(
                f"X: expected finite numbers, got {values[row, j]} in {label}, row {row}"
                + (f" (and {len(wrong) - 1} more in that column)" if len(wrong) > 1 else "")
            )


def as_labels(y: Any, n: int) -> tuple[Array, NDArray[np.bool_]]:
    """Return the two sorted label values, and for each row whether it has the second.

    Parameters
    ----------
    y : array_like of shape (n,)
        Labels: any two numbers, booleans or strings.
    n : int
        Number of rows of X.

    Raises
    ------
    ValueError
        If `y` is not one-dimensional, has another length, is empty, holds NaN, or does not hold
        exactly two values.
    """
    labels = _plain_labels(y, n)
    # A sort of all labels, as in numpy.unique, would cost more than a round of boosting.
    values = np.array([labels.min(), labels.max()]) if labels.dtype.kind != "U" else None
    if values is None or not ((labels == values[0]) | (labels == values[1])).all():
        values = np.unique(labels)
    if len(values) > 2:
        raise ValueError(
            f"y: expected two label values, got {len(values)}: for more than two classes there are "
            "fit_one_vs_rest and fit_samme"
        )
    if len(values) < 2 or values[0] == values[-1]:
        raise ValueError(f"y: expected two label values, got only {values.tolist()[0]!r}")
    return values, labels == values[1]


def as_classes(y: Any, n: int) -> tuple[Array, NDArray[np.int32]]:
    """Return the sorted label values, two or more, and for each row which it has.

    Raises as `as_labels` does, but for more than two values.
    """
    labels = _plain_labels(y, n)
    values, codes = np.unique(labels, return_inverse=True)
    if len(values) < 2:
        raise ValueError(f"y: expected at least two label values, got only {values.tolist()[0]!r}")
    return values, codes.astype(np.int32)


def _plain_labels(y: Any, n: int) -> Array:
    labels = plain_values(as_array("y", y), "y: expected labels")
    if labels.ndim != 1:
        raise ValueError(f"y: expected one dimension, got shape {labels.shape}")
    if len(labels) != n:
        raise ValueError(f"y: expected {n} labels, one per row of X, got {len(labels)}")
    if n == 0:
        raise ValueError("y: expected at least one row of each class, got no rows")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y: expected labels, got NaN or infinity")
    return labels


def as_targets(y: Any, n: int) -> NDArray[np.float64]:
    """Return the numbers to be predicted as float64 (n,).

    Raises
    ------
    ValueError
        If `y` is not one-dimensional, has another length, is empty, or holds what is not finite or
        beyond 1e150, whose square is no longer a number.
    TypeError
        If `y` does not hold numbers.
    """
    values = as_array("y", y)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"y: expected numbers, got dtype {values.dtype}")
    if values.shape != (n,):
        raise ValueError(f"y: expected {n} numbers, one per row of X, got shape {values.shape}")
    if n == 0:
        raise ValueError("y: expected at least one row, got no rows")
    targets = values.astype(np.float64)
    wrong = np.flatnonzero(~(np.abs(targets) <= MOST_TARGET))
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"y: expected finite numbers to {MOST_TARGET:g}, got {targets[row]} in row {row}"
        )
    return targets


def plain_values(values: Array, expected: str) -> Array:
    """Return values that are all numbers or all strings as an array of such; else TypeError."""
    if values.dtype.kind in "biufU":
        return values
    if values.dtype.kind == "T":
        values = values.astype(object)  # NumPy has no direct cast to strings of one length
    if values.dtype.kind == "O":
        if all(isinstance(v, str) for v in values.ravel()):
            return values.astype(np.str_)
        if all(isinstance(v, bool | np.bool_) for v in values.ravel()):
            return values.astype(np.bool_)
        if all(isinstance(v, int | np.integer) for v in values.ravel()):
            return values.astype(np.int64)
    raise TypeError(f"{expected} that are all numbers or all strings, got {values.dtype}")


def as_sigma(sigma: Any) -> Array:
    """Return standard deviations as float64: a number (), one per column (d,) or per cell (n, d).

    Raises
    ------
    TypeError
        If `sigma` is not numbers in an array.
    ValueError
        If it has more than two dimensions or holds what is not positive and finite.
    """
    if is_frame(sigma):
        raise TypeError("sigma: expected a number or an array, got a data frame")
    values = as_array("sigma", sigma)
    if values.dtype.kind not in "iuf":
        raise TypeError(f"sigma: expected numbers, got dtype {values.dtype}")
    if values.ndim > 2:
        raise ValueError(f"sigma: expected at most two dimensions, got shape {values.shape}")
    values = values.astype(np.float64)
    wrong = np.argwhere(~((values > 0) & np.isfinite(values)))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        raise ValueError(
            f"sigma: expected positive finite numbers, got {values[place]}"
            + (f" at {list(place)}" if place else "")
        )
    return values


def check_sigma_shape(sigma: Array, n: int, d: int) -> None:
    """Raise ValueError if standard deviations do not fit n rows of d columns."""
    if sigma.shape not in ((), (d,), (n, d)):
        raise ValueError(
            f"sigma: expected a number, shape ({d},) with one per column of X, or ({n}, {d}) with "
            f"one per cell, got shape {sigma.shape}"
        )


def as_weights(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    """Return `sample_weight` as float64 (n,), or None if it is None.

    Raises
    ------
    ValueError
        If the length differs, or a weight is negative, NaN or infinite, or all are 0.
    """
    if sample_weight is None:
        return None
    weights = as_array("sample_weight", sample_weight)
    if weights.dtype.kind not in "biuf":
        raise TypeError(f"sample_weight: expected numbers, got dtype {weights.dtype}")
    if weights.shape != (n,):
        raise ValueError(f"sample_weight: expected shape ({n},), got {weights.shape}")
    weights = weights.astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"sample_weight: expected finite numbers >= 0, got {weights[row]} in row {row}"
        )
    if not weights.any():
        raise ValueError("sample_weight: expected at least one weight > 0, all are 0")
    return weights


def scaled_weights(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Return weights times the power of two that brings the largest into [1/2, 1), and minus its
    exponent: sums of them, and of their products with squares, are numbers in any unit.
    """
    exponent = math.frexp(float(weights.max()))[1]
    if abs(exponent) > MOST_EXPONENT:  # the factor is no float64
        return np.ldexp(weights, -exponent), exponent
    return weights * math.ldexp(1.0, -exponent), exponent
