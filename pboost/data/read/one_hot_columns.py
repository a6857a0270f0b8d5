"""One-hot encoding of categorical features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.check_xy import missing_places, places_among, plain_values
from pboost.data.read.convert import (
    check_size,
    frame_columns,
    is_frame,
    refuse_sparse,
)
from pboost.data.read.numbers import numeric_column, to_numbers
from pboost.data.read.table import column_label, column_order, positions, written
from pboost.values import (
    Array,
    FloatArray,
    TableLike,
    check_choice,
    first_false,
    freeze,
    reject_masked,
)

__all__ = ["OneHot", "fit_one_hot", "one_hot"]
#: Treatment of unknown categories.
Unknown: TypeAlias = Literal["error", "zeros"]


@dataclass(frozen=True, slots=True, eq=False)
class OneHot:
    """One-hot encoder of categorical features. Created by `fit_one_hot`.

    Attributes
    ----------
    columns : tuple of int
        Positions of the categorical features, in increasing order.
    values : tuple of ndarray
        Sorted categories of each categorical feature: numbers, booleans or strings. Read-only.
    n_features : int
        Number of features before encoding.
    feature_names : tuple of str or None
        Feature names before encoding, if known.
    """

    columns: tuple[int, ...]
    values: tuple[Array, ...]
    n_features: int
    feature_names: tuple[str, ...] | None

    @property
    def names(self) -> tuple[str, ...]:
        """Feature names after encoding, such as ``colour=red`` or ``x[2]=1``.

        Other features keep their names, or are called ``x[j]`` if X has no names.
        """
        names: list[str] = []
        for j in range(self.n_features):
            name = f"x[{j}]" if self.feature_names is None else self.feature_names[j]
            if j in self.columns:
                values = self.values[self.columns.index(j)].tolist()
                names += [f"{name}={written(value)}" for value in values]
            else:
                names.append(name)
        return tuple(names)

    def transform(self, X: TableLike, unknown: Unknown = "error") -> FloatArray:
        """Replace each categorical feature of X by one column of zeros and ones per category.

        Parameters
        ----------
        X : array_like of shape (n, n_features), or data frame
            Rows with the same features as in training. Data frame columns may be in any order.
        unknown : {"error", "zeros"}
            Whether to raise an error for unknown categories, or encode them as zeros.

        Returns
        -------
        ndarray of float64, shape (n, len(names))
            Encoded features in the order of `names`. The columns of a categorical feature are in
            the order of its categories.

        Raises
        ------
        ValueError
            If a feature or a value is missing, or a category is unknown.
        TypeError
            If a feature that is not encoded is not numeric, or a categorical feature has changed
            between numbers and strings.
        """
        check_choice("unknown", unknown, get_args(Unknown))
        table_names, columns, n_rows = _read(X)
        order = column_order(self.feature_names, table_names)
        if order is not None:
            columns = [columns[j] for j in order]
        if len(columns) != self.n_features:
            raise ValueError(f"X: expected {self.n_features} columns, got {len(columns)}")
        names = table_names if self.feature_names is None else self.feature_names
        result = np.zeros((n_rows, len(self.names)))
        at = 0
        for j, column in enumerate(columns):
            label = column_label(names, j)
            if j in self.columns:
                values = self.values[self.columns.index(j)]
                row, code = _codes(column, values, label, unknown)
                result[row, at + code] = 1
                at += len(values)
            else:
                result[:, at] = to_numbers(column, label)
                at += 1
        return result


def fit_one_hot(X: TableLike, columns: Sequence[str | int] | None = None) -> OneHot:
    """Create a one-hot encoder from the categories that occur in X.

    Parameters
    ----------
    X : array_like of shape (n, d), or data frame
        Training rows. An array can contain objects or strings.
    columns : sequence of str or int, optional
        Names (for a data frame) or positions of the categorical features. By default all
        non-numeric features. Pass `columns` if numbers represent categories.

    Returns
    -------
    OneHot
        Its method ``transform`` encodes rows. Categories that are declared by the dtype of a
        column but do not occur in X are not included.

    Raises
    ------
    ValueError
        If a column does not exist or is listed twice, if a value is missing (None, NaN), or if two
        encoded columns would have the same name.
    TypeError
        If a column contains values other than numbers, booleans and strings, or mixed types.

    Examples
    --------
    >>> import pboost as pb
    >>> encoding = pb.data.fit_one_hot([["red", 1.5], ["blue", 2.0], ["red", 0.5]])
    >>> encoding.names
    ('x[0]=blue', 'x[0]=red', 'x[1]')
    >>> encoding.transform([["blue", 3.0], ["green", 4.0]], unknown="zeros").tolist()
    [[1.0, 0.0, 3.0], [0.0, 0.0, 4.0]]
    """
    names, table_columns, n_rows = _read(X)
    if not n_rows:
        raise ValueError(f"X: expected at least one row, got shape (0, {len(table_columns)})")
    if columns is None:
        chosen = [j for j, column in enumerate(table_columns) if not _is_numeric(column)]
    else:
        chosen = positions("columns", columns, names, len(table_columns))
    values = [np.unique(_categories(table_columns[j], column_label(names, j))) for j in chosen]
    encoding = OneHot(tuple(chosen), tuple(freeze(v) for v in values), len(table_columns), names)
    made = Counter(encoding.names)
    twice = next((name for name in made if made[name] > 1), None)
    if twice is not None:
        raise ValueError(
            f"X: expected distinct names after encoding, got {twice!r} twice; rename a column"
        )
    return encoding


def one_hot(
    X: TableLike, columns: Sequence[str | int] | None = None
) -> tuple[FloatArray, tuple[str, ...]]:
    """Replace each categorical feature by one column of zeros and ones per category.

    Training and test rows can contain different categories. To encode both in the same way,
    use `fit_one_hot`.

    Parameters
    ----------
    X : array_like of shape (n, d), or data frame
        Rows to encode. An array can contain objects or strings.
    columns : sequence of str or int, optional
        Names (for a data frame) or positions of the categorical features. By default all
        non-numeric features. Pass `columns` if numbers represent categories.

    Returns
    -------
    values : ndarray of float64, shape (n, m)
        Encoded features, in the order of the original columns. The columns of a categorical feature
        are in the sorted order of its categories.
    names : tuple of str
        Names of the m columns, such as ``colour=red`` or ``x[2]=1``.

    Raises
    ------
    ValueError
        If a column does not exist or is listed twice, if a value is missing (None, NaN), or if two
        encoded columns would have the same name.
    TypeError
        If a column contains values other than numbers, booleans and strings, or mixed types.

    Examples
    --------
    >>> import pboost as pb
    >>> values, names = pb.data.one_hot([["red", 1.5], ["blue", 2.0], ["red", 0.5]])
    >>> names
    ('x[0]=blue', 'x[0]=red', 'x[1]')
    >>> values.tolist()
    [[0.0, 1.0, 1.5], [1.0, 0.0, 2.0], [0.0, 1.0, 0.5]]

    >>> X, y = pb.datasets.monks(1)
    >>> values, names = pb.data.one_hot(X, columns=range(6))
    >>> values.shape, names[:4]
    ((432, 17), ('x[0]=1', 'x[0]=2', 'x[0]=3', 'x[1]=1'))
    """
    encoding = fit_one_hot(X, columns)
    return encoding.transform(X), encoding.names


def _read(X: Any) -> tuple[tuple[str, ...] | None, list[Array], int]:
    """Return the column names of X or None, the columns, and the number of rows."""
    if is_frame(X):
        return *frame_columns(X), len(X)
    refuse_sparse(X)
    reject_masked("X", X)
    # NumPy would convert a mixture of numbers and strings to strings; keep objects.
    values = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    if values.ndim != 2:
        raise ValueError(f"X: expected two dimensions (rows, columns), got shape {values.shape}")
    check_size(values.shape)
    return None, list(values.T), len(values)


def _is_numeric(column: Array) -> bool:
    try:
        numeric_column(column, "")
    except TypeError:
        return False
    return True


def _categories(column: Array, label: str) -> Array:
    """Return a categorical column as numbers, booleans or strings; reject missing values."""
    if missing := missing_places(column):
        row = missing[0]
        raise ValueError(f"X: expected a value in {label}, row {row}, got {column[row]}")
    if _is_numeric(column):
        return numeric_column(column, label)
    return plain_values(column, f"X: expected values of {label}")


def _codes(
    column: Array, values: Array, label: str, unknown: str
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows with a known category, and the position of the category in `values`."""
    held = _categories(column, label)
    if len(held) and (held.dtype.kind == "U") != (values.dtype.kind == "U"):
        kinds = ("numbers", "strings")
        is_text = held.dtype.kind == "U"
        raise TypeError(
            f"X: expected {kinds[not is_text]} in {label}, as in the rows of fit_one_hot, "
            f"got {kinds[is_text]}"
        )
    code, known = places_among(values, held)
    if unknown == "error" and (row := first_false(known)) >= 0:
        raise ValueError(
            f"X: expected one of the {len(values)} known categories of {label}, got "
            f"{held[row].item()!r} in row {row}"
        )
    return np.flatnonzero(known), code[known]
