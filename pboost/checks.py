"""Checks of what users pass: options, weights, errors of measurement. Inputs stay as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.values import as_array, shown

Array = NDArray[Any]
INT32_MAX = np.iinfo(np.int32).max
#: The most nodes or leaves of one tree: the kernels count both exits of each.
MOST_NODES = INT32_MAX // 2
#: Beyond this a power of two may be no normal float64.
MOST_EXPONENT = 1000


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


def as_sigma(sigma: Any) -> Array:
    """Return standard deviations as float64: a number (), one per column (d,) or per cell (n, d).

    Raises
    ------
    TypeError
        If `sigma` is not numbers in an array.
    ValueError
        If it hides values by a mask, has more than two dimensions or holds what is not positive and
        finite.
    """
    if hasattr(sigma, "columns"):
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
        If the length differs, or a weight is hidden by a mask, negative, NaN or infinite, or all
        are 0.
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
