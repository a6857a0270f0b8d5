"""What the generators of problems share: labels -1 and +1, checks of rows that are judged."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.features import as_features, check_finite
from pboost.values import FloatArray

Labels: TypeAlias = NDArray[np.int64]


def signs(positive: NDArray[np.bool_]) -> Labels:
    """Return the label +1 where `positive`, -1 elsewhere."""
    return np.where(positive, np.int64(1), np.int64(-1))


def as_rows(X: Any, n_columns: int, *, more: bool = False) -> FloatArray:
    """Return `X` as finite float64 rows with `n_columns` columns, or with `more`."""
    features = as_features(X)
    check_finite(features)
    found = features.values.shape[1]
    if found < n_columns or (found > n_columns and not more):
        wanted = f"{n_columns} columns{' or more' if more else ''}"
        raise ValueError(f"X: expected {wanted}, got {found}")
    return features.values.astype(np.float64, copy=False)


def as_bits(X: FloatArray) -> NDArray[np.bool_]:
    """Return rows of zeros and ones as booleans."""
    wrong = np.argwhere((X != 0) & (X != 1))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise ValueError(
            f"X: expected zeros and ones, got {X[row, column]} in column {column}, row {row}"
        )
    return X == 1
