"""Rows of X as the user gave it, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.features import column_names, is_frame, refuse_sparse
from pboost.values import INT32_MAX, refuse_masked

#: Names in a message.
MOST_NAMED = 10


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


def column_order(names: tuple[str, ...] | None, found: tuple[str, ...] | None) -> list[int] | None:
    """Return the places of the columns of training among those found, None where they stay."""
    if names is None or found is None or names == found:
        return None
    there, known = set(found), set(names)
    missing = [name for name in names if name not in there]
    unknown = [name for name in found if name not in known]
    if missing or unknown:
        raise ValueError(
            "X: other columns than in training"
            + (f"; missing: {_listed(missing)}" if missing else "")
            + (f"; unknown: {_listed(unknown)}" if unknown else "")
        )
    if len(set(names)) < len(names):
        raise ValueError(
            "X: two columns have the same name, so that they must stand as in training"
        )
    place = {name: j for j, name in enumerate(found)}
    return [place[name] for name in names]


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown}, ... ({len(names)} columns)"
