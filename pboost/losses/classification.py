"""Losses for classification: functions of the margin y f for classes -1 and +1, and softmax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pboost._core import probit as kernel
from pboost._core.voting import half_log_odds
from pboost.losses.base import HALF_LIMIT, LOG_LOSS, Loss, RowSums, TableSums, named
from pboost.losses.line_search import kink_search, line_search
from pboost.values import Array, FloatArray, check_number

__all__ = ["Exponential", "Focal", "Hinge", "Logistic", "Probit", "Softmax"]
#: The names of these losses.
LabelLoss: TypeAlias = Literal["exponential", "log_loss", "hinge", "probit", "softmax", "focal"]


@named
@dataclass(frozen=True, slots=True)
class Exponential(Loss):
    """Exponential loss exp(-y f) of AdaBoost. f estimates half the log odds."""

    name: ClassVar[str] = "exponential"
    link: ClassVar[str] = "half log odds"
    is_summed: ClassVar[bool] = True
    limit: ClassVar[float] = HALF_LIMIT

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return exp(-y f)."""
        with np.errstate(over="ignore"):
            return np.exp(-y * f)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return -y exp(-y f)."""
        return -y * self.value(y, f)

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return exp(-y f), as y**2 is 1."""
        return self.value(y, f)

    def probability(self, f: FloatArray) -> FloatArray:
        """Return 1 / (1 + exp(-2 f))."""
        return logistic(2 * np.clip(f, -1e300, 1e300))

    def leaf_value(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        direction: FloatArray | None = None,
    ) -> float:
        """Return the best step: half the log odds of the boosted weights."""
        # The current losses act as weights; their scale does not matter.
        margin, some = y * f, weight > 0
        boosted = np.zeros(len(y))
        if some.any():
            np.exp(margin[some].min() - margin, out=boosted, where=some)
        boosted *= weight
        if direction is not None:
            return line_search(self, y, np.zeros(len(y)), boosted, direction)
        return self.constant_of(TableSums(y, boosted))

    def constant_of(self, sums: RowSums) -> float:
        """Return half the log odds."""
        return half_log_odds(sums.exact("above"), sums.exact("below"), 0.0)


@named
@dataclass(frozen=True, slots=True)
class Logistic(Loss):
    """Log loss ln(1 + exp(-y f)). f estimates the log odds."""

    name: ClassVar[str] = "log_loss"
    shrinkage: ClassVar[float] = 2.0
    subsample: ClassVar[float | None] = 0.8
    link: ClassVar[str] = "log odds"
    is_summed: ClassVar[bool] = True
    elsewhere: ClassVar[str] = (
        "binary binary:logistic binary:logitraw binary_logloss bce binary_crossentropy" + LOG_LOSS
    )
    use: ClassVar[str] = "two classes"
    is_newton: ClassVar[bool] = True

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return ln(1 + exp(-y f))."""
        return np.logaddexp(0.0, -y * f)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return -y / (1 + exp(y f))."""
        return -y * logistic(-y * f)

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return p (1 - p) for the probability p."""
        return logistic(f) * logistic(-f)

    def slopes(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the second derivative, with a single exponential."""
        margin = y * f
        smaller = np.exp(-np.abs(margin))
        wrong = np.where(margin > 0, smaller, 1.0) / (1 + smaller)
        return -y * wrong, smaller / (1 + smaller) ** 2

    def probability(self, f: FloatArray) -> FloatArray:
        """Return 1 / (1 + exp(-f))."""
        return logistic(f)

    def constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the log odds."""
        return self.constant_of(TableSums(y, weight))

    def constant_of(self, sums: RowSums) -> float:
        """Return the log odds."""
        return 2 * half_log_odds(sums.exact("above"), sums.exact("below"), 0.0)


@named
@dataclass(frozen=True, slots=True)
class Focal(Loss):
    """Focal loss -(1 - p)**gamma ln p, with the probability p = 1 / (1 + exp(-y f)) of the class.

    Compared to the log loss, rows whose class is already probable have little weight. The
    probabilities 1 / (1 + exp(-f)) are less confident than those of the log loss; use
    `pboost.calibrate` if they should be calibrated. The loss is not convex: step searches find a
    local minimum, and negative second derivatives count as 0.

    Parameters
    ----------
    gamma : float >= 0
        How little weight probable rows have. 0 is the log loss. Default: 2.

    References
    ----------
    .. [1] T.-Y. Lin, P. Goyal, R. Girshick, K. He and P. Dollár, "Focal loss for dense object
       detection", ICCV (2017).
    """

    gamma: float = 2.0

    name: ClassVar[str] = "focal"
    link: ClassVar[str] = "log odds"
    is_summed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        value = check_number("gamma", self.gamma, min_value=0.0, max_value=100.0)
        object.__setattr__(self, "gamma", value)

    def _parts(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, ...]:
        """Return p, 1 - p, -ln p and (1 - p)**gamma."""
        margin = y * f
        p, q = logistic(margin), logistic(-margin)
        return p, q, np.logaddexp(0.0, -margin), np.exp(-self.gamma * np.logaddexp(0.0, margin))

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return -(1 - p)**gamma ln p."""
        _, _, log_loss, power = self._parts(y, f)
        return power * log_loss

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return -y (1 - p)**gamma (1 - p - gamma p ln p)."""
        p, q, log_loss, power = self._parts(y, f)
        return -y * power * (self.gamma * p * log_loss + q)

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the second derivative, or 0 where it is negative."""
        p, q, log_loss, power = self._parts(y, f)
        concave = self.gamma * log_loss * (self.gamma * p - q)
        return np.maximum(p * power * (concave + (2 * self.gamma + 1) * q), 0.0)

    def probability(self, f: FloatArray) -> FloatArray:
        """Return 1 / (1 + exp(-f))."""
        return logistic(f)

    def constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the best constant; it depends only on the weights of the classes."""
        return self.constant_of(TableSums(y, weight))

    def constant_of(self, sums: RowSums) -> float:
        """Return the best constant, given the weights of the classes."""
        weight = np.array([sums.exact("above"), sums.exact("below")])
        return line_search(self, np.array([1.0, -1.0]), np.zeros(2), weight)


@named
@dataclass(frozen=True, slots=True)
class Hinge(Loss):
    """Hinge loss max(0, 1 - y f) of support vector machines.

    f estimates the more likely class, +1 or -1.
    """

    name: ClassVar[str] = "hinge"
    elsewhere: ClassVar[str] = "binary:hinge"
    limit: ClassVar[float] = np.inf

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return max(0, 1 - y f)."""
        return np.maximum(0.0, 1 - y * f)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the subgradient: -y if y f < 1, else 0."""
        return np.where(y * f < 1, -y, 0.0)

    def leaf_value(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        direction: FloatArray | None = None,
    ) -> float:
        """Return the exact best step, the middle of an interval if several steps are best."""
        d = y if direction is None else y * direction
        # The loss of a row is weight * max(0, 1 - m - s d), with a kink at s = (1 - m) / d.
        return kink_search(1 - y * f, d, weight)


@named
@dataclass(frozen=True, slots=True)
class Probit(Loss):
    """Probit loss -ln Phi(y f), where Phi is the normal distribution function."""

    name: ClassVar[str] = "probit"
    link: ClassVar[str] = "probit"
    is_summed: ClassVar[bool] = True
    is_newton: ClassVar[bool] = True
    #: -Phi^-1(1 / (1 + 2**52)), which corresponds to `HALF_LIMIT`.
    limit: ClassVar[float] = 8.125890664701906

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return -ln Phi(y f)."""
        return _each(kernel.losses, y * f)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return -y r(y f) with r = phi / Phi."""
        return -y * _each(kernel.ratios, y * f)

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return r(m) (m + r(m)), a number in (0, 1), with m = y f and r = phi / Phi."""
        margin = y * f
        return _each(kernel.ratios, margin) * _each(kernel.excesses, margin)

    def slopes(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the second derivative, with a single evaluation of r."""
        margin = y * f
        ratio = _each(kernel.ratios, margin)
        return -y * ratio, ratio * _each(kernel.excesses, margin)

    def probability(self, f: FloatArray) -> FloatArray:
        """Return Phi(f)."""
        return np.exp(-_each(kernel.losses, f))

    def constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the normal quantile of the share of the class +1."""
        return self.constant_of(TableSums(y, weight))

    def constant_of(self, sums: RowSums) -> float:
        """Return the normal quantile of the share of the class +1."""
        from scipy.special import ndtri  # a local import keeps `import pboost` fast

        above, below = sums.exact("above"), sums.exact("below")
        if not above + below:
            return 0.0
        # Use the smaller share, because shares near 1 are rounded.
        smaller = min(above, below) / (above + below)
        size = -float(ndtri(smaller)) if smaller > 0 else self.limit
        return min(size, self.limit) * (1.0 if above >= below else -1.0)


def logistic(x: ArrayLike) -> FloatArray:
    """Return 1 / (1 + exp(-x)) without overflow or cancellation."""
    x = np.asarray(x, dtype=np.float64)
    if x.size == 1:  # Python numbers are faster for one row, with the same result
        number = x.item()
        small = float(np.exp(-abs(number)))
        result = np.empty(x.shape)
        result[...] = (1.0 if number > 0 else small) / (1 + small)
        return result
    smaller = np.exp(-np.abs(x))
    return np.where(x > 0, 1.0, smaller) / (1 + smaller)


def _each(function: Callable[[Array, Array], None], m: ArrayLike) -> FloatArray:
    """Apply a kernel function to each number of an array."""
    margins = np.ascontiguousarray(m, dtype=np.float64)
    out = np.empty_like(margins)
    function(margins.ravel(), out.reshape(-1))
    return out


@named
@dataclass(frozen=True, slots=True)
class Softmax(Loss):
    """Softmax loss -ln p of the class of a row, with p = exp(f) / sum(exp(f)).

    y is the class number, from 0, and f (n, J) has a decision value for each class. Each entry of
    the gradient and the second derivative is with respect to one decision value.
    """

    name: ClassVar[str] = "softmax"
    link: ClassVar[str] = "softmax"
    is_multiclass: ClassVar[bool] = True
    held: ClassVar[float] = 1.0
    shrinkage: ClassVar[float] = 1.5
    random_strength: ClassVar[float] = 0.3
    subsample: ClassVar[float | None] = 0.8
    elsewhere: ClassVar[str] = (
        "multiclass multi:softmax multi:softprob multi_logloss multinomial categorical_crossentropy"
        + LOG_LOSS
    )
    use: ClassVar[str] = "more classes"

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return ln(sum(exp(f))) minus f of the class."""
        largest = f.max(axis=-1)
        total = np.exp(f - largest[..., None]).sum(axis=-1)
        class_value = np.take_along_axis(f, y.astype(np.intp)[..., None], axis=-1)[..., 0]
        return np.log(total) + (largest - class_value)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return p, minus 1 for the class of the row."""
        return self.probability(f) - (np.arange(f.shape[-1]) == y[..., None])

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return p (1 - p)."""
        share = self.probability(f)
        return share * (1 - share)

    def probability(self, f: FloatArray) -> FloatArray:
        """Return exp(f) divided by the sum over the classes."""
        share = np.exp(f - f.max(axis=-1, keepdims=True))
        probability: FloatArray = share / share.sum(axis=-1, keepdims=True)
        return probability

    def constant(self, y: FloatArray, weight: FloatArray) -> Any:
        """Return the log of the share of each class, at least -`limit`."""
        return self.constant_of(TableSums(y, weight, int(y.max()) + 1))

    def constant_of(self, sums: RowSums) -> Any:
        """Return the log of the share of each class, at least -`limit`."""
        total = np.array([sums.exact(str(k)) for k in range(sums.n_classes)])
        return np.log(np.maximum(total / total.sum(), np.exp(-self.limit)))

    def leaf_value(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        direction: FloatArray | None = None,
    ) -> float:
        """Raise NotImplementedError, since there are several decision values."""
        raise NotImplementedError(
            "the softmax loss does not support line search, because each row has several decision "
            "values; use the log loss of each class against the other classes"
        )
