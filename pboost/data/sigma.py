"""Standard deviations of features with error bars, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from pboost.data.check_xy import as_numbers
from pboost.values import Array, first_false


def as_sigma(sigma: Any) -> Array:
    """Return standard deviations as float64: a number (), one per column (d,) or per cell (n, d).

    0 is that of what is exact; of several they may be NaN, where there is no value.

    Raises
    ------
    TypeError
        If `sigma` is not numbers in an array.
    ValueError
        If it hides values by a mask, has more than two dimensions or holds what is negative or
        infinite.
    """
    if hasattr(sigma, "columns"):
        raise TypeError("sigma: expected a number or an array, got a data frame")
    values = as_numbers("sigma", sigma, "iuf")
    if values.ndim > 2:
        raise ValueError(f"sigma: expected at most two dimensions, got shape {values.shape}")
    is_right = (values >= 0) & np.isfinite(values)
    if (at := first_false(is_right | np.isnan(values) if values.ndim else is_right)) >= 0:
        place = [int(index) for index in np.unravel_index(at, values.shape)]
        raise ValueError(
            f"sigma: expected finite numbers of at least 0, got {values.flat[at]}"
            + (f" at {place}" if place else "")
        )
    return values


def check_sigma_shape(sigma: Array, n: int, d: int) -> None:
    """Raise ValueError if standard deviations do not fit n rows of d columns."""
    if sigma.shape not in ((), (d,), (n, d)):
        raise ValueError(
            f"sigma: expected a number, shape ({d},) with one per column of X, or ({n}, {d}) with "
            f"one per cell, got shape {sigma.shape}"
        )
