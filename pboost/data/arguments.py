"""Checks of what users pass: options, weights, errors of measurement. Inputs stay as they are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.values import INT32_MAX, as_array

Array = NDArray[Any]
#: The most nodes or leaves of one tree: the kernels count both exits of each.
MOST_NODES = INT32_MAX // 2
#: Beyond this a power of two may be no normal float64.
MOST_EXPONENT = 1000


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


def check_answers(h: Any, n: int, what: str) -> NDArray[np.float64]:
    """Return the answers of a hypothesis as float64 (n,); a number stands for a constant."""
    found = np.asarray(h)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"{what}: expected real numbers, got dtype {found.dtype}")
    answers = found.astype(np.float64, copy=False)
    if answers.ndim and answers.shape != (n,):
        raise ValueError(f"{what}: expected {n} answers, one per row, got shape {answers.shape}")
    answers = np.broadcast_to(answers, (n,))
    wrong = np.flatnonzero(~np.isfinite(answers))
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(f"{what}: expected finite numbers, got {answers[row]} for row {row}")
    return answers
