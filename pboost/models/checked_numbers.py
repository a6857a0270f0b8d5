"""What arrays of numbers must be together: places that increase, shares, sums that are finite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.values import FloatArray

#: The largest sum of absolute values: the largest number, less what rounding can add to it.
MOST_SUM = float(np.finfo(np.float64).max) * (1 - 2.0**-20)
#: The largest share, with what rounding can add to a sum of them.
MOST_SHARE = 1 + 1e-6


def check_offsets(name: str, start: NDArray[Any], end: int) -> None:
    """Check that numbers say where parts begin: increasing, from 0 to `end`."""
    # Differences of int32 could overflow.
    if not (
        start.ndim == 1
        and len(start) > 1
        and start[0] == 0
        and start[-1] == end
        and (start[:-1] < start[1:]).all()
    ):
        raise ValueError(f"{name}: expected numbers that increase from 0 to {end}")


def check_shares(name: str, shares: Any, are_whole: bool = False) -> None:
    """Check that numbers, where they are known, are in [0, 1]; whole: that rows sum to 1."""
    if (np.less(shares, 0) | np.greater(shares, MOST_SHARE)).any():
        raise ValueError(f"{name}: expected numbers from 0 to 1, or NaN")
    if are_whole and (np.abs(shares.sum(axis=1) - 1) > MOST_SHARE - 1).any():
        raise ValueError(f"{name}: expected shares that sum to 1 in each row, or NaN")


def check_sum(name: str, terms: FloatArray, start: float | FloatArray = 0.0) -> None:
    """Check that a sum of numbers is finite, whatever their signs and order.

    Of a matrix, the sums of the columns.
    """
    with np.errstate(over="ignore"):
        total = np.abs(terms).sum(axis=0) + abs(start)
    if not (total <= MOST_SUM).all():
        raise ValueError(f"{name}: expected numbers whose absolute values have a finite sum")
