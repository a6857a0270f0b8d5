"""Permissible functions: impurities of a node as functions of the share of one class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from pboost.values import FloatArray

#: f(z) of shares z, elementwise.
Impurity: TypeAlias = Callable[[FloatArray], Any]
#: Intervals of the grid on which a function is checked; shares are dyadic, so 1 - z is exact.
GRID = 1024
#: Departures from the conditions up to this are rounding.
ROUNDING = 1e-9


def values_of(impurity: Impurity, z: FloatArray) -> FloatArray:
    """Return f(z); TypeError or ValueError if that is not one finite number for each share."""
    try:
        with np.errstate(divide="ignore", invalid="ignore"):  # what it gives is checked
            found = np.asarray(impurity(z), dtype=np.float64)
    except Exception as error:  # a user's function can raise anything
        raise TypeError(
            f"impurity: expected a function that takes an array of shares, but it raised {error!r}"
        ) from error
    if found.shape != z.shape:
        raise TypeError(
            f"impurity: expected a function that returns an array like its argument, of shape "
            f"{z.shape}, got shape {found.shape}"
        )
    wrong = np.flatnonzero(~np.isfinite(found))
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(f"impurity: expected finite values, got f({z[at]:.6g}) = {found[at]}")
    return found


def check_permissible(impurity: Any) -> Impurity:
    """Return a function that is concave and symmetric with f(0) = f(1) = 0 and f(1/2) = 1.

    Checked at the multiples of 1/1024. The error says which condition fails, and where.
    """
    z = np.linspace(0, 1, GRID + 1)
    f = values_of(impurity, z)
    for at, expected in ((0, 0.0), (GRID, 0.0), (GRID // 2, 1.0)):
        if abs(f[at] - expected) > ROUNDING:
            raise ValueError(
                f"impurity: expected f({z[at]:g}) = {expected:g}, got {f[at]:.6g}: not permissible"
            )
    unlike = np.abs(f - f[::-1])
    if unlike.max() > ROUNDING:
        at = int(np.argmax(unlike))
        raise ValueError(
            f"impurity: expected f(z) = f(1 - z), got f({z[at]:.6g}) = {f[at]:.6g} and "
            f"f({z[-1 - at]:.6g}) = {f[-1 - at]:.6g}: not symmetric"
        )
    below = (f[:-2] + f[2:]) / 2 - f[1:-1]
    if below.max() > ROUNDING:
        at = int(np.argmax(below)) + 1
        raise ValueError(
            f"impurity: expected a concave function, got f({z[at]:.6g}) = {f[at]:.6g} below the "
            f"mean {f[at] + below[at - 1]:.6g} of its neighbours: not concave"
        )
    checked: Impurity = impurity
    return checked
