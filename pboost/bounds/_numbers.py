"""Checks and broadcasting of numeric arguments."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from pboost.values import FloatArray, as_array, shown


def as_numbers(
    name: str, value: object, minimum: float, maximum: float = math.inf, *, positive: bool = False
) -> FloatArray:
    """Return `value` as finite float64 numbers in [minimum, maximum]; exclude 0 if `positive`.

    Raises
    ------
    TypeError
        If `value` does not contain numbers.
    ValueError
        If a number is outside the range; the message contains the first one.
    """
    array = as_array(name, value)
    is_number = array.dtype.kind in "iuf"
    if array.dtype.kind == "O":  # large integers and fractions
        is_number = all(isinstance(v, Real) and not isinstance(v, bool) for v in array.flat)
    if not is_number:
        raise TypeError(f"{name}: expected numbers, got {shown(value)}")
    try:
        numbers = array.astype(np.float64)
    except OverflowError:
        raise ValueError(f"{name}: expected numbers below 2**1024, got {shown(value)}") from None
    inside = (numbers >= minimum) & (numbers <= maximum) & np.isfinite(numbers)
    if positive:
        inside &= numbers > 0
    if not inside.all():
        if maximum < math.inf:
            expected = f"numbers in [{minimum:g}, {maximum:g}]"
        else:
            expected = f"finite numbers {'> 0' if positive else f'>= {minimum:g}'}"
        raise ValueError(f"{name}: expected {expected}, got {numbers[~inside].flat[0]}")
    return numbers


def as_integers(name: str, value: ArrayLike, minimum: float) -> FloatArray:
    """Return `value` as float64 numbers that are integers >= minimum."""
    numbers = as_numbers(name, value, minimum)
    if (wrong := numbers[numbers != np.floor(numbers)]).size:
        raise ValueError(f"{name}: expected integers, got {wrong.flat[0]}")
    return numbers


def align(names: str, *arrays: FloatArray) -> list[FloatArray]:
    """Return the arrays in a common shape.

    Raises
    ------
    ValueError
        If the shapes are not compatible.
    """
    try:
        return list(np.broadcast_arrays(*arrays))
    except ValueError:
        shapes = ", ".join(str(shape) for shape in dict.fromkeys(a.shape for a in arrays))
        raise ValueError(
            f"{names}: expected shapes that broadcast together, got {shapes}"
        ) from None


def plain(result: FloatArray) -> float | FloatArray:
    """Return a float for a single number, else the array."""
    return float(result) if np.ndim(result) == 0 else result
