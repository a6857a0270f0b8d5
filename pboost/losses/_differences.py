"""Derivatives that a user wrote, compared with differences of what they are derivatives of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pboost.values import FloatArray

#: Decision values at which derivatives are compared; kinks at round numbers are not met.
_GRID = np.linspace(-4.0, 4.0, 97) + 0.00317
_STEP = 1e-5
_TOLERANCE = 1e-3


def check_derivatives(loss: Any, with_curvature: bool) -> None:
    """Raise ValueError if a loss's gradient, or its curvature, is not what differences say."""
    labels = np.array([-1.0, 1.0, *((-2.5, 0.3) if loss.is_regression else ())])
    labels = labels[labels >= loss.least]
    y, f = (part.ravel() for part in np.meshgrid(labels, _GRID))
    _check_derivative("gradient", loss.value, loss.gradient, y, f)
    if with_curvature:
        _check_derivative("curvature", loss.gradient, loss.curvature, y, f)


def _check_derivative(
    name: str,
    function: Callable[[FloatArray, FloatArray], FloatArray],
    derivative: Callable[[FloatArray, FloatArray], FloatArray],
    y: FloatArray,
    f: FloatArray,
) -> None:
    here = "value" if name == "gradient" else "gradient"
    below, middle, above = (_answers(here, function, y, f + k * _STEP) for k in (-1, 0, 1))
    left, right = (middle - below) / _STEP, (above - middle) / _STEP
    found = _answers(name, derivative, y, f)
    slack = _TOLERANCE * (1 + np.abs(found) + np.abs(right - left))
    wrong = (found < np.minimum(left, right) - slack) | (found > np.maximum(left, right) + slack)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(
            f"loss: {name}(y, f): expected {(left[k] + right[k]) / 2:.6g}, by differences of the "
            f"{here}, at y = {y[k]:g}, f = {f[k]:g}, got {found[k]:.6g}"
        )


def _answers(name: str, function: Callable[..., Any], y: FloatArray, f: FloatArray) -> FloatArray:
    found = np.asarray(function(y.copy(), f.copy()))
    if found.shape != y.shape or found.dtype.kind not in "iuf":
        raise ValueError(
            f"loss: {name}(y, f): expected numbers of shape {y.shape}, got {found.dtype} of shape "
            f"{found.shape}"
        )
    if not np.isfinite(found).all():
        k = int(np.argmin(np.isfinite(found)))
        raise ValueError(
            f"loss: {name}(y, f): expected finite numbers, got {found[k]} at y = {y[k]:g}, "
            f"f = {f[k]:g}"
        )
    return found.astype(np.float64)
