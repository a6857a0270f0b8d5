"""What a tree of a sum is fitted to, and what its leaves add, of any loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.losses import Loss
from pboost.values import FloatArray, first_false


class Steps(NamedTuple):
    """What leaves add: `rate` times a step of `most` at most, one of Newton's or the best one.

    `l2` is what is added to the curvature of a leaf, where the largest weight of a row is 1; `sums`
    is in how many words those of derivatives are, see `fit_stagewise`.
    """

    rate: float
    most: float
    solved: bool
    l2: float
    sums: str = "auto"


#: The largest derivative of a loss of one's own: sums of squares are then numbers.
MOST_DERIVATIVE = 1e150


def check_size(loss: Loss, y: FloatArray, f: FloatArray, rows: NDArray[Any]) -> None:
    """Raise ValueError for derivatives that no tree can be fitted to; `rows` as of `slopes_of`."""
    for name, values in _derivatives(loss, y, f, rows).items():
        if (k := first_false(np.abs(values) <= MOST_DERIVATIVE)) >= 0:
            raise ValueError(
                f"loss: {name}(y, f): expected a number of at most {MOST_DERIVATIVE:g} in size, "
                f"got {values[k]} of row {rows[k]}, where y = {y[k]:g}, f = {f[k]:g}"
            )


def are_too_large(loss: Loss, y: FloatArray, f: FloatArray, rows: NDArray[Any]) -> bool:
    """Return whether derivatives are as `check_size` refuses them."""
    found = _derivatives(loss, y, f, rows).values()
    return any(not (np.abs(values) <= MOST_DERIVATIVE).all() for values in found)


def _derivatives(
    loss: Loss, y: FloatArray, f: FloatArray, rows: NDArray[Any]
) -> dict[str, FloatArray]:
    with np.errstate(all="ignore"):
        found = {"gradient": _numbers("gradient", loss.gradient(y, f), y, f, rows)}
        if loss.has_curvature:
            found["curvature"] = _numbers("curvature", loss.curvature(y, f), y, f, rows)
    return found


def slopes_of(
    loss: Loss, y: FloatArray, f: FloatArray, weight: FloatArray, rows: NDArray[Any]
) -> tuple[FloatArray, FloatArray]:
    """Return the weighted gradients and curvatures; of a loss without curvature weights are those.

    `rows` are what errors call the rows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        gradient = _numbers("gradient", loss.gradient(y, f), y, f, rows)
        curvature = np.ones(len(y))
        if loss.has_curvature:
            found = _numbers("curvature", loss.curvature(y, f), y, f, rows)
            raised = np.maximum(found, np.abs(gradient) / loss.limit)
            # A row without gradient or curvature has no part; a gradient alone no Newton step.
            if raised.any() and not gradient[raised == 0].any():
                curvature = raised
        return weight * gradient, weight * curvature


def _numbers(
    name: str, found: FloatArray, y: FloatArray, f: FloatArray, rows: NDArray[Any]
) -> FloatArray:
    """Return derivatives of rows; ValueError if one is NaN, or a curvature negative."""
    wrong = np.isnan(found) if name == "gradient" else ~(found >= 0)
    if wrong.any():
        k = int(np.argmax(wrong))
        wanted = "a number" if name == "gradient" else "a number >= 0"
        raise ValueError(
            f"loss: {name}(y, f): expected {wanted}, got {found[k]} of row {rows[k]}, where "
            f"y = {y[k]:g}, f = {f[k]:g}"
        )
    return found


def working_response(
    loss: Loss, y: FloatArray, f: FloatArray, weight: FloatArray, rows: NDArray[Any] | None = None
) -> tuple[FloatArray, FloatArray] | None:
    """Return the targets and weights of a least-squares step; None where they are not finite.

    The largest weight is 1.
    """
    rows = np.arange(len(y)) if rows is None else rows
    gradient = _numbers("gradient", loss.gradient(y, f), y, f, rows)
    target, of_target = -gradient, weight
    if loss.has_curvature:
        found = _numbers("curvature", loss.curvature(y, f), y, f, rows)
        curvature = np.maximum(found, np.abs(gradient) / loss.limit)
        some = curvature > 0
        # A row without gradient or curvature has no part; a gradient alone has no Newton step.
        if not gradient[~some].any() and some.any():
            with np.errstate(over="ignore", invalid="ignore"):
                target = np.divide(-gradient, curvature, out=np.zeros(len(y)), where=some)
            of_target = weight * np.where(some, curvature, 0.0)
    if not (np.isfinite(target).all() and 0 < of_target.sum() < np.inf):
        return None
    # Curvatures can all be near the smallest number; only their ratios matter.
    return target, of_target / of_target.max()
