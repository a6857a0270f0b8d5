"""Losses for positive targets whose decision value is the log of the mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.losses.base import Loss, named
from pboost.losses.line_search import GroupCounts
from pboost.losses.regression import LogMeanLoss, check_any_positive
from pboost.values import Array, FloatArray, check_number

__all__ = ["Gamma", "Tweedie"]
#: The names of these losses.
LogLinkLoss: TypeAlias = Literal["gamma", "tweedie"]


class _MeanLoss(LogMeanLoss):
    """Base class: half the deviance of a distribution whose variance is a power p of the mean.

    With the mean exp(f), the gradient is exp((2 - p) f) - y exp((1 - p) f).
    """

    __slots__ = ()
    kernel_at_0: ClassVar[float | None] = 0.0

    @property
    def _power(self) -> float:
        raise NotImplementedError

    def _terms(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return exp((2 - p) f) and y exp((1 - p) f)."""
        with np.errstate(over="ignore", invalid="ignore"):
            of_mean, of_target = np.exp((2 - self._power) * f), y * np.exp((1 - self._power) * f)
        return of_mean, np.where(y > 0, of_target, 0.0)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return exp((2 - p) f) - y exp((1 - p) f)."""
        of_mean, of_target = self._terms(y, f)
        return of_mean - of_target

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return (2 - p) exp((2 - p) f) + (p - 1) y exp((1 - p) f)."""
        of_mean, of_target = self._terms(y, f)
        return (2 - self._power) * of_mean + (self._power - 1) * of_target

    def leaf_values(
        self, y: FloatArray, f: FloatArray, weight: FloatArray, count: GroupCounts
    ) -> FloatArray:
        """Return, for each group, the log of the ratio of the two terms of the gradient."""
        start = np.cumsum(count) - count
        has_rows = np.maximum.reduceat(weight, start) > 0
        of_target = _log_sums((1 - self._power) * f, weight * y, start, count)
        of_mean = _log_sums((2 - self._power) * f, weight, start, count)
        with np.errstate(invalid="ignore"):
            step = np.clip(of_target - of_mean, -self.limit, self.limit)
        return np.where(has_rows, step, 0.0)


def _log_sums(
    exponent: FloatArray, factor: FloatArray, start: NDArray[np.intp], count: GroupCounts
) -> FloatArray:
    """Return the log of the sum of factor * exp(exponent) for each group of rows."""
    group, used = np.repeat(np.arange(len(count)), count), factor > 0
    largest = np.maximum.reduceat(np.where(used, exponent, -np.inf), start)
    shift = np.where(largest > -np.inf, largest, 0.0)
    terms = np.where(used, factor * np.exp(np.where(used, exponent - shift[group], 0.0)), 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.add.reduceat(terms, start)) + shift


@named
@dataclass(frozen=True, slots=True)
class Gamma(_MeanLoss):
    """Gamma loss for positive targets: half the deviance, y exp(-f) + f - ln y - 1.

    f estimates the log of the mean; `pboost.predict` returns the mean, exp(f). The loss does not
    depend on the unit of y: it measures relative errors.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> loss, y = pb.losses.Gamma(), np.array([1.0, 2.0, 6.0])
    >>> round(float(np.exp(loss.constant(y, np.ones(3)))), 6)
    3.0
    """

    name: ClassVar[str] = "gamma"
    elsewhere: ClassVar[str] = "reg:gamma gamma_deviance gammaregression"
    least: ClassVar[float] = math.ulp(0.0)
    domain: ClassVar[str] = "> 0"

    @property
    def _power(self) -> float:
        return 2.0

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return y exp(-f) + f - ln y - 1."""
        with np.errstate(over="ignore"):
            # Rounding errors can make a loss of 0 negative.
            return np.maximum(y * np.exp(-f) + f + self.omitted(y), 0.0)

    def omitted(self, y: FloatArray) -> FloatArray:
        """Return -ln y - 1, and -1 for rows without a target."""
        return -np.log(np.where(y > 0, y, 1.0)) - 1


@named
@dataclass(frozen=True, slots=True)
class Tweedie(_MeanLoss):
    """Tweedie loss for targets y >= 0, some of which are 0: half the deviance.

    The variance of y is proportional to mean**power. f estimates the log of the mean;
    `pboost.predict` returns the mean, exp(f). The loss is ``exp((2 - p) f) / (2 - p) + y exp((1 -
    p) f) / (p - 1)``, minus its minimum over f.

    Parameters
    ----------
    power : float in (1, 2)
        Power p. 1 would be the Poisson loss, and 2 the gamma loss. Default: 1.5.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> loss, y = pb.losses.Tweedie(1.2), np.array([0.0, 0.0, 6.0])
    >>> round(float(np.exp(loss.constant(y, np.ones(3)))), 6)
    2.0
    """

    power: float = 1.5

    name: ClassVar[str] = "tweedie"
    elsewhere: ClassVar[str] = "reg:tweedie tweedie_deviance"
    max_delta_step: ClassVar[float | None] = 4.0
    least: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        value = check_number(
            "power", self.power, min_value=1.0, max_value=2.0, open_min=True, open_max=True
        )
        object.__setattr__(self, "power", value)

    @property
    def _power(self) -> float:
        return self.power

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return half the deviance."""
        of_mean, of_target = self._terms(y, f)
        result = of_mean / (2 - self.power) + of_target / (self.power - 1) + self.omitted(y)
        # Rounding errors can make a loss of 0 negative.
        return np.maximum(result, 0.0)

    def omitted(self, y: FloatArray) -> FloatArray:
        """Return minus the minimum over f of the other terms."""
        return np.asarray(-(y ** (2 - self.power)) / ((self.power - 1) * (2 - self.power)))

    def check_targets(self, y: FloatArray, rows: Array) -> None:
        """Raise ValueError if a target is negative, or if all are 0."""
        Loss.check_targets(self, y, rows)
        check_any_positive(self, y, rows)
