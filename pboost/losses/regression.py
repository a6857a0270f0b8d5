"""Losses for regression: functions of the residual y - f, or of counts with a log link."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from pboost.losses.base import MOST_STEP, Loss, RowSums, TableSums, named
from pboost.losses.line_search import GroupCounts, kink_search, line_search, quantiles
from pboost.values import Array, FloatArray, check_number

__all__ = [
    "Absolute",
    "AbsolutePercentage",
    "Expectile",
    "Huber",
    "LogCosh",
    "Poisson",
    "Quantile",
    "Squared",
]
#: The names of these losses, except `Quantile`, which requires a level.
NumberLoss: TypeAlias = Literal[
    "squared_error",
    "absolute_error",
    "huber",
    "poisson",
    "expectile",
    "log_cosh",
    "mape",
]


@named
@dataclass(frozen=True, slots=True)
class Squared(Loss):
    """Squared error (y - f)**2 / 2, for regression and for classes -1 and +1. f estimates the mean.

    The gradient is f - y and the second derivative is 1, as in LightGBM, XGBoost and scikit-learn.
    Models report the mean squared error, which is twice the mean of this loss.
    """

    name: ClassVar[str] = "squared_error"
    link: ClassVar[str] = "lead"
    is_summed: ClassVar[bool] = True
    held: ClassVar[float] = 1.0
    shrinkage: ClassVar[float] = 1.5
    random_strength: ClassVar[float] = 0.3
    subsample: ClassVar[float | None] = 0.8
    is_regression: ClassVar[bool] = True
    reported: ClassVar[float] = 2.0

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return (y - f)**2 / 2."""
        return 0.5 * (y - f) ** 2

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return f - y."""
        return f - y

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return 1."""
        return np.ones(np.shape(f))

    def probability(self, f: FloatArray) -> FloatArray:
        """Return (1 + f) / 2, clipped to [0, 1], since f is the mean of classes -1 and +1."""
        return np.clip((1 + f) / 2, 0.0, 1.0)

    def constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the mean; it does not depend on the order of the rows."""
        return self.constant_of(TableSums(y, weight))

    def constant_of(self, sums: RowSums) -> float:
        """Return the mean."""
        total = sums.fine("weight")
        return sums.fine("weighted") / total if total else 0.0

    def leaf_value(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        direction: FloatArray | None = None,
    ) -> float:
        """Return the best step by weighted least squares."""
        d = np.ones(len(y)) if direction is None else direction
        scale = float(np.abs(d).max(initial=0.0))
        if scale == 0.0 or not weight.any():
            return 0.0
        d = d / scale
        below = float((weight * d * d).sum())
        return float((weight * d * (y - f)).sum()) / below / scale if below > 0 else 0.0


@named
@dataclass(frozen=True, slots=True)
class Quantile(Loss):
    """Pinball loss: q (y - f) if y > f, else (1 - q) (f - y). f estimates the quantile q of y.

    Parameters
    ----------
    quantile : float in (0, 1)
        Level q of the quantile, the share of the targets below it. Default: 0.5, the median. A
        quantile cannot be selected by name, because it requires a level.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> pb.losses.Quantile(0.9).constant(np.arange(11.0), np.ones(11))
    9.0
    """

    quantile: float = 0.5

    name: ClassVar[str] = "quantile"
    elsewhere: ClassVar[str] = "pinball reg:quantileerror multiquantile"
    is_regression: ClassVar[bool] = True

    def __post_init__(self) -> None:
        value = check_number(
            "quantile", self.quantile, min_value=0.0, max_value=1.0, open_min=True, open_max=True
        )
        object.__setattr__(self, "quantile", value)

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return q (y - f) if y > f, else (1 - q) (f - y)."""
        return np.maximum(self.quantile * (y - f), (1 - self.quantile) * (f - y))

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the subgradient: -q if y > f, 1 - q if y < f, and 0 if they are equal."""
        return np.where(y > f, -self.quantile, np.where(y < f, 1 - self.quantile, 0.0))

    def leaf_value(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        direction: FloatArray | None = None,
    ) -> float:
        """Return the exact best step, the middle of an interval if several steps are best."""
        return _quantile_step(self.quantile, y - f, weight, direction)

    def leaf_values(
        self, y: FloatArray, f: FloatArray, weight: FloatArray, count: GroupCounts
    ) -> FloatArray:
        """Return the quantile of the residuals of each group."""
        return quantiles(y - f, weight, count, self.quantile)


@named
@dataclass(frozen=True, slots=True)
class Absolute(Loss):
    """Absolute error of y - f. f estimates the median, which is robust to outliers."""

    name: ClassVar[str] = "absolute_error"
    elsewhere: ClassVar[str] = "mean_absolute_error mae l1 lad regression_l1 reg:absoluteerror"
    is_regression: ClassVar[bool] = True

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the absolute value of y - f."""
        return np.abs(y - f)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the sign of f - y."""
        return np.sign(f - y)

    def leaf_value(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        direction: FloatArray | None = None,
    ) -> float:
        """Return the exact best step, the middle of an interval if several steps are best."""
        return _quantile_step(0.5, y - f, weight, direction)

    def leaf_values(
        self, y: FloatArray, f: FloatArray, weight: FloatArray, count: GroupCounts
    ) -> FloatArray:
        """Return the median of the residuals of each group."""
        return quantiles(y - f, weight, count, 0.5)


@named
@dataclass(frozen=True, slots=True)
class AbsolutePercentage(Loss):
    """Absolute percentage error: the absolute value of y - f, divided by max(1, abs(y)).

    f estimates a median of y with these factors as weights. As in LightGBM, targets between -1 and
    1 count as 1, so pass y in a unit in which typical targets are larger than 1.
    """

    name: ClassVar[str] = "mape"
    elsewhere: ClassVar[str] = "mean_absolute_percentage_error"
    is_regression: ClassVar[bool] = True
    limit: ClassVar[float] = np.inf

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the absolute value of y - f, divided by max(1, abs(y))."""
        return _per_target(y) * np.abs(y - f)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the sign of f - y, divided by max(1, abs(y))."""
        return _per_target(y) * np.sign(f - y)

    def leaf_value(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        direction: FloatArray | None = None,
    ) -> float:
        """Return the exact best step, the middle of an interval if several steps are best."""
        return _quantile_step(0.5, y - f, weight * _per_target(y), direction)

    def leaf_values(
        self, y: FloatArray, f: FloatArray, weight: FloatArray, count: GroupCounts
    ) -> FloatArray:
        """Return the weighted median of the residuals of each group."""
        return quantiles(y - f, weight * _per_target(y), count, 0.5)


def _per_target(y: FloatArray) -> FloatArray:
    return 1.0 / np.maximum(1.0, np.abs(y))


@named
@dataclass(frozen=True, slots=True)
class Expectile(Loss):
    """Squared error with different weights for both signs. f estimates an expectile of y.

    The loss is alpha (y - f)**2 if y > f, else (1 - alpha) (y - f)**2. With alpha = 0.5 it is half
    the squared error, and f estimates the mean.

    Parameters
    ----------
    alpha : float in (0, 1)
        Level of the expectile. Default: 0.5, the mean.

    References
    ----------
    .. [1] W. K. Newey and J. L. Powell, "Asymmetric least squares estimation and testing",
       Econometrica 55 (1987).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> loss = pb.losses.Expectile(0.8)
    >>> round(loss.constant(np.array([0.0, 1.0]), np.ones(2)), 6)
    0.8
    """

    alpha: float = 0.5

    name: ClassVar[str] = "expectile"
    elsewhere: ClassVar[str] = "reg:expectileerror"
    is_regression: ClassVar[bool] = True
    is_newton: ClassVar[bool] = True
    limit: ClassVar[float] = np.inf

    def __post_init__(self) -> None:
        value = check_number(
            "alpha", self.alpha, min_value=0.0, max_value=1.0, open_min=True, open_max=True
        )
        object.__setattr__(self, "alpha", value)

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return alpha (y - f)**2 if y > f, else (1 - alpha) (y - f)**2."""
        return 0.5 * self.curvature(y, f) * (y - f) ** 2

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return 2 alpha (f - y) if y > f, else 2 (1 - alpha) (f - y)."""
        return self.curvature(y, f) * (f - y)

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return 2 alpha if y > f, else 2 (1 - alpha)."""
        return np.where(f > y, 2.0 - 2.0 * self.alpha, 2.0 * self.alpha)


@named
@dataclass(frozen=True, slots=True)
class LogCosh(Loss):
    """ln cosh(y - f): quadratic near 0 and linear for errors above 1, like the Huber loss.

    Trees are fitted to the gradients tanh(f - y) with a second derivative of 1, because the true
    second derivative vanishes for large errors. Leaf values minimize the loss. Errors are measured
    in units of y; divide y by the size of the errors that should still count as small.
    """

    name: ClassVar[str] = "log_cosh"
    elsewhere: ClassVar[str] = "logcosh log-cosh"
    is_regression: ClassVar[bool] = True
    is_newton: ClassVar[bool] = True
    limit: ClassVar[float] = np.inf

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return ln cosh(y - f)."""
        size = np.abs(y - f)
        # ln((exp(2 r) + 1) / 2) - r; near 0 without cancellation.
        near = np.minimum(size, 1.0)
        small = np.log1p(2.0 * np.sinh(near / 2) ** 2)
        return np.where(size < 1.0, small, size + np.log1p(np.exp(-2.0 * size)) - math.log(2.0))

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return tanh(f - y)."""
        return np.tanh(f - y)

    def slopes(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return tanh(f - y) and its derivative, 1 / cosh(f - y)**2."""
        small = np.exp(-2.0 * np.abs(f - y))
        return np.tanh(f - y), 4.0 * small / (1.0 + small) ** 2


@named
@dataclass(frozen=True, slots=True)
class Huber(Loss):
    """Huber loss: squared error for residuals up to delta, and linear beyond.

    The loss is (y - f)**2 / 2 if abs(y - f) <= delta, else delta (abs(y - f) - delta / 2). Trees
    are fitted to the residuals, clipped at delta, with a second derivative of 1. Leaf values
    minimize the loss.

    Parameters
    ----------
    delta : float > 0
        Residual, in units of y, beyond which the loss is linear. A delta of 1.35 standard
        deviations of the noise has 95 % efficiency if the noise is normal.

    References
    ----------
    .. [1] P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical
       Statistics 35 (1964).
    """

    delta: float = 1.0

    name: ClassVar[str] = "huber"
    elsewhere: ClassVar[str] = "reg:pseudohubererror huberloss"
    is_regression: ClassVar[bool] = True
    is_newton: ClassVar[bool] = True

    def __post_init__(self) -> None:
        value = check_number("delta", self.delta, min_value=0.0, open_min=True)
        object.__setattr__(self, "delta", value)

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return (y - f)**2 / 2 up to delta, else delta (abs(y - f) - delta / 2)."""
        size = np.abs(y - f)
        near = np.minimum(size, self.delta)
        return near * (size - near / 2)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return f - y, clipped at delta."""
        return np.clip(f - y, -self.delta, self.delta)

    def slopes(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient, and its derivative: 0 if the gradient is clipped, else 1."""
        residual = f - y
        cut = np.clip(residual, -self.delta, self.delta)
        return cut, (np.abs(residual) <= self.delta).astype(np.float64)


class LogMeanLoss(Loss):
    """Base class of losses whose decision value is the log of the mean of the target."""

    __slots__ = ()
    link: ClassVar[str] = "exp"
    is_summed: ClassVar[bool] = True
    is_regression: ClassVar[bool] = True
    limit: ClassVar[float] = MOST_STEP

    def prediction(self, f: FloatArray) -> FloatArray:
        """Return the mean, exp(f)."""
        with np.errstate(over="ignore"):
            return np.exp(f)

    def constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the log of the mean, or -`limit` if the mean is 0."""
        return self.constant_of(TableSums(y, weight))

    def constant_of(self, sums: RowSums) -> float:
        """Return the log of the mean, or -`limit` if the mean is 0."""
        total, wanted = sums.fine("weight"), sums.fine("weighted")
        if not total:
            return 0.0
        return math.log(wanted) - math.log(total) if wanted else -self.limit

    def leaf_value(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        direction: FloatArray | None = None,
    ) -> float:
        """Return the best step: the log of the ratio of two sums."""
        if direction is not None:
            return line_search(self, y, f, weight, direction)
        return float(self.leaf_values(y, f, weight, np.array([len(y)]))[0])


@named
@dataclass(frozen=True, slots=True)
class Poisson(LogMeanLoss):
    """Poisson loss for counts y >= 0: half the deviance, exp(f) - y f + y ln y - y.

    f estimates the log of the mean; `pboost.predict` returns the mean, exp(f).
    """

    name: ClassVar[str] = "poisson"
    max_delta_step: ClassVar[float | None] = 4.0
    kernel_at_0: ClassVar[float | None] = 1.0
    elsewhere: ClassVar[str] = "count:poisson"
    least: ClassVar[float] = 0.0

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return exp(f) - y f + y ln y - y."""
        log = np.log(np.where(y > 0, y, 1.0))
        with np.errstate(over="ignore"):
            return np.exp(f) - y * f + y * log - y

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return exp(f) - y."""
        with np.errstate(over="ignore"):
            return np.exp(f) - y

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return exp(f)."""
        with np.errstate(over="ignore"):
            return np.exp(f)

    def check_targets(self, y: FloatArray, rows: Array) -> None:
        """Raise ValueError if a target is negative, or if all are 0."""
        Loss.check_targets(self, y, rows)
        check_any_positive(self, y, rows)

    def leaf_values(
        self, y: FloatArray, f: FloatArray, weight: FloatArray, count: GroupCounts
    ) -> FloatArray:
        """Return, for each group, the log of the ratio of the sums of y and of exp(f)."""
        start, group = np.cumsum(count) - count, np.repeat(np.arange(len(count)), count)
        used = weight > 0
        largest = np.maximum.reduceat(np.where(used, f, -np.inf), start)
        some = largest > -np.inf
        shift = np.where(some, largest, 0.0)
        mean = np.exp(np.where(used, f - shift[group], 0.0))
        wanted, predicted = (np.add.reduceat(weight * part, start) for part in (y, mean))
        with np.errstate(divide="ignore"):
            step = np.log(wanted) - np.log(np.where(some, predicted, 1.0)) - shift
        return np.where(some, np.clip(step, -self.limit, self.limit), 0.0)


def check_any_positive(loss: Loss, y: FloatArray, rows: Array) -> None:
    """Raise ValueError if all targets are 0; `rows` are the row numbers."""
    if not y.any():
        raise ValueError(
            f"y: expected at least one number above 0 for the {loss.name} loss, got 0 in all of "
            f"{len(y)} rows (the first is row {rows[0]})"
        )


def _quantile_step(
    share: float, residual: FloatArray, weight: FloatArray, direction: FloatArray | None
) -> float:
    """Return the step that minimizes the pinball loss of the residuals."""
    d = np.ones(len(residual)) if direction is None else direction
    both = np.concatenate([share * weight, (1 - share) * weight])
    return kink_search(np.append(residual, -residual), np.append(d, -d), both)
