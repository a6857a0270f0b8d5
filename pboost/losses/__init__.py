"""Losses: what an additive model minimises, as functions of the label and the decision value.

Each has its value, gradient, curvature, link to a probability and best constant. Margins from -1e6
to 1e6 neither overflow nor cancel, but the exponential's values beyond the numbers are infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core import probit as kernel
from pboost._core.votes import half_log_odds
from pboost.losses._differences import check_derivatives
from pboost.values import FloatArray, shown

__all__ = ["Exponential", "Hinge", "Logistic", "Loss", "Probit", "Squared", "check_loss"]

Counts: TypeAlias = NDArray[np.signedinteger[Any]]

#: Bound on a step where the loss names none.
FAR = 2.0**60
#: Relative width at which a search ends.
WIDTH = 1e-13
#: Share of all slopes that counts as none.
FLAT = 1e-13
#: The same of sums of few terms.
ROUNDING = 1e-15
#: Newton step, relative to where it leads, after which the next would be lost in rounding.
NEAR = 1e-8
#: Step so small that no more than an absolute precision of its product with `NEAR` is asked for.
TINY = 1e-6
#: Largest decision value of a leaf of one class: half log odds of 2**52.
HALF_LIMIT = half_log_odds(1.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Loss:
    """Base of the losses; a loss of your own derives from it and defines `value` and `gradient`.

    Labels y are -1 and +1, or numbers where `is_regression`. y and f are arrays of float64 of one
    shape; what is returned has that shape. Minimisers along a line are then searched for with the
    gradient. The value need not be convex in f: a search never ends above where it began.
    `check_loss` compares the gradient, and the curvature if there is one, with differences.

    Attributes
    ----------
    name : str
        How the loss is called in options and records.
    is_regression : bool
        Whether y may be any number.
    limit : float
        Bound on what is added to a decision value, where rows of one class have no minimum.
    is_newton : bool
        Whether Newton steps find the values of all leaves at once: of convex, curved losses.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> class Huber(pb.losses.Loss):
    ...     name, is_regression = "huber", True
    ...     def value(self, y, f):
    ...         size = np.abs(y - f)
    ...         return np.where(size < 1, size**2 / 2, size - 0.5)
    ...     def gradient(self, y, f):
    ...         return np.clip(f - y, -1, 1)
    >>> huber = pb.losses.check_loss(Huber())
    >>> round(huber.constant(np.array([0.0, 0.1, 0.2, 9.0]), np.ones(4)), 6)
    0.433333
    """

    name: ClassVar[str] = ""
    is_regression: ClassVar[bool] = False
    limit: ClassVar[float] = 2 * HALF_LIMIT
    is_newton: ClassVar[bool] = False

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each decision value."""
        raise NotImplementedError(f"{type(self).__name__}: a loss defines value(y, f)")

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the derivative in f; at a kink any number between those on its sides."""
        raise NotImplementedError(f"{type(self).__name__}: a loss defines gradient(y, f)")

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the second derivative in f.

        Raises
        ------
        NotImplementedError
            If the loss has none that is of use.
        """
        raise NotImplementedError(f"the {self._called} loss has no curvature")

    def probability(self, f: FloatArray) -> FloatArray:
        """Return the probability of the label +1 of which f is the best decision value.

        Raises
        ------
        NotImplementedError
            If decision values of this loss are no probabilities.
        """
        raise NotImplementedError(
            f"decision values of the {self._called} loss do not tell probabilities"
        )

    def constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the number of least total loss as decision value of all rows."""
        return self.leaf_value(y, np.zeros(len(y)), weight)

    def leaf_value(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        direction: FloatArray | None = None,
    ) -> float:
        """Return the step of least total loss from decision values, in a direction.

        Parameters
        ----------
        y, f : ndarray of float64, shape (n,)
            Labels, and decision values so far.
        weight : ndarray of float64, shape (n,)
            Weights >= 0 of the rows.
        direction : ndarray of float64, shape (n,), optional
            What a step of 1 adds to each decision value; default: 1.

        Returns
        -------
        float
            s such that the weighted sum of ``value(y, f + s * direction)`` is least, or, where it
            is not convex, a local minimum not above s = 0. A step changes no decision value by
            more than `limit`.
        """
        return line_search(self, y, f, weight, direction)

    def leaf_values(
        self, y: FloatArray, f: FloatArray, weight: FloatArray, count: Counts
    ) -> FloatArray:
        """Return the `leaf_value` of each group, `count` rows after another."""
        if self.is_newton:
            return newton_steps(self, y, f, weight, count)
        cuts = np.cumsum(count)[:-1]
        parts = zip(*(np.split(array, cuts) for array in (y, f, weight)), strict=True)
        return np.array([self.leaf_value(*part) for part in parts])

    def slopes(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the curvature."""
        return self.gradient(y, f), self.curvature(y, f)

    @property
    def _called(self) -> str:
        return self.name or type(self).__name__


@dataclass(frozen=True, slots=True)
class Exponential(Loss):
    """exp(-y f): that of AdaBoost. f is half the log odds."""

    name: ClassVar[str] = "exponential"
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
        """Return the step of least total loss: half the log odds of the boosted weights."""
        # Loss so far is weight from now on; its scale does not matter.
        margin, some = y * f, weight > 0
        boosted = np.zeros(len(y))
        if some.any():
            np.exp(margin[some].min() - margin, out=boosted, where=some)
        boosted *= weight
        if direction is not None:
            return line_search(self, y, np.zeros(len(y)), boosted, direction)
        return half_log_odds(float(boosted[y > 0].sum()), float(boosted[y < 0].sum()), 0.0)


@dataclass(frozen=True, slots=True)
class Logistic(Loss):
    """ln(1 + exp(-y f)): the log loss. f is the log odds."""

    name: ClassVar[str] = "logistic"
    is_newton: ClassVar[bool] = True

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return ln(1 + exp(-y f))."""
        return np.logaddexp(0.0, -y * f)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return -y / (1 + exp(y f))."""
        return -y * logistic(-y * f)

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return p (1 - p) of the probability p."""
        return logistic(f) * logistic(-f)

    def slopes(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the curvature, of one exponential."""
        margin = y * f
        smaller = np.exp(-np.abs(margin))
        wrong = np.where(margin > 0, smaller, 1.0) / (1 + smaller)
        return -y * wrong, smaller / (1 + smaller) ** 2

    def probability(self, f: FloatArray) -> FloatArray:
        """Return 1 / (1 + exp(-f))."""
        return logistic(f)

    def constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the log odds."""
        return 2 * half_log_odds(float(weight[y > 0].sum()), float(weight[y < 0].sum()), 0.0)


@dataclass(frozen=True, slots=True)
class Squared(Loss):
    """(y - f)**2, for numbers as for labels. f is the mean."""

    name: ClassVar[str] = "squared"
    is_regression: ClassVar[bool] = True
    limit: ClassVar[float] = np.inf

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return (y - f)**2."""
        return (y - f) ** 2

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return 2 (f - y)."""
        return 2 * (f - y)

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return 2."""
        return np.full(np.shape(f), 2.0)

    def probability(self, f: FloatArray) -> FloatArray:
        """Return (1 + f) / 2, brought into [0, 1]: of labels -1 and +1, f is the mean."""
        return np.clip((1 + f) / 2, 0.0, 1.0)

    def leaf_value(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        direction: FloatArray | None = None,
    ) -> float:
        """Return the step of least total loss: weighted least squares."""
        d = np.ones(len(y)) if direction is None else direction
        scale = float(np.abs(d).max(initial=0.0))
        if scale == 0.0 or not weight.any():
            return 0.0
        d = d / scale
        below = float((weight * d * d).sum())
        return float((weight * d * (y - f)).sum()) / below / scale if below > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Hinge(Loss):
    """max(0, 1 - y f): that of support vector machines. f is +1 or -1, the likelier label."""

    name: ClassVar[str] = "hinge"
    limit: ClassVar[float] = np.inf

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return max(0, 1 - y f)."""
        return np.maximum(0.0, 1 - y * f)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return -y where y f < 1, else 0: a sub-gradient."""
        return np.where(y * f < 1, -y, 0.0)

    def leaf_value(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        direction: FloatArray | None = None,
    ) -> float:
        """Return the step of least total loss, exactly: the middle, where several are best."""
        d = y if direction is None else y * direction
        # Row n costs weight * max(0, 1 - m - s d): a kink at (1 - m) / d.
        return kink_search(1 - y * f, d, weight)


@dataclass(frozen=True, slots=True)
class Probit(Loss):
    """-ln Phi(y f), Phi the normal distribution function."""

    name: ClassVar[str] = "probit"
    is_newton: ClassVar[bool] = True
    #: -Phi^-1(1 / (1 + 2**52)), the counterpart of `HALF_LIMIT`.
    limit: ClassVar[float] = 8.125890664701906

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return -ln Phi(y f)."""
        return _each(kernel.losses, y * f)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return -y r(y f), with r = phi / Phi."""
        return -y * _each(kernel.ratios, y * f)

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return r(m) (m + r(m)) of the margin m = y f, a number in (0, 1)."""
        margin = y * f
        return _each(kernel.ratios, margin) * _each(kernel.excesses, margin)

    def slopes(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the curvature, of one r."""
        margin = y * f
        ratio = _each(kernel.ratios, margin)
        return -y * ratio, ratio * _each(kernel.excesses, margin)

    def probability(self, f: FloatArray) -> FloatArray:
        """Return Phi(f)."""
        return np.exp(-_each(kernel.losses, f))

    def constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the quantile of the share of the label +1."""
        from scipy.special import ndtri  # not at import: see _tree_bound.terms_at_2

        above, below = float(weight[y > 0].sum()), float(weight[y < 0].sum())
        if not above + below:
            return 0.0
        # The smaller share: the other is rounded where it is near 1.
        smaller = min(above, below) / (above + below)
        size = -float(ndtri(smaller)) if smaller > 0 else self.limit
        return min(size, self.limit) * (1.0 if above >= below else -1.0)


LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (Exponential(), Logistic(), Squared(), Hinge(), Probit())
}


def check_loss(loss: Any) -> Loss:
    """Return a loss, given by name or as one of your own, whose derivatives are compared.

    Parameters
    ----------
    loss : {"exponential", "logistic", "squared", "hinge", "probit"} or Loss
        One of your own derives from `Loss` and defines `value` and `gradient`.

    Returns
    -------
    Loss

    Raises
    ------
    TypeError
        If it is neither a name nor a `Loss`.
    ValueError
        If the name is unknown; or if a function of it does not return one finite number for each
        row, or the gradient or the curvature is not what differences say, on a grid of decision
        values from -4 to 4.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> y, f = np.array([-1.0, 1.0]), np.array([0.0, 2.0])
    >>> pb.losses.check_loss("hinge").value(y, f).tolist()
    [1.0, 0.0]
    """
    if isinstance(loss, str):
        if loss not in LOSSES:
            names = ", ".join(map(repr, LOSSES))
            raise ValueError(f"loss: expected one of {names} or a Loss, got {loss!r}")
        return LOSSES[loss]
    if not isinstance(loss, Loss):
        raise TypeError(f"loss: expected a name or a pboost.losses.Loss, got {shown(loss)}")
    if type(loss) not in {type(known) for known in LOSSES.values()}:
        check_derivatives(loss, type(loss).curvature is not Loss.curvature)
    return loss


def logistic(x: ArrayLike) -> FloatArray:
    """Return 1 / (1 + exp(-x)) in the form that neither overflows nor cancels."""
    x = np.asarray(x, dtype=np.float64)
    smaller = np.exp(-np.abs(x))
    return np.where(x > 0, 1.0, smaller) / (1 + smaller)


def _each(function: Callable[[NDArray[Any], NDArray[Any]], None], m: ArrayLike) -> FloatArray:
    """Return what a kernel makes of each number of an array."""
    margins = np.ascontiguousarray(m, dtype=np.float64)
    out = np.empty_like(margins)
    function(margins.ravel(), out.reshape(-1))
    return out


class _Line:
    """The total loss and its slope along a line, downhill from 0; a step of 1 moves f by 1."""

    def __init__(
        self, loss: Loss, y: FloatArray, f: FloatArray, weight: FloatArray, d: FloatArray
    ) -> None:
        self.loss, self.y, self.f, self.d = loss, y, f, d
        self.weight = weight / weight.max()
        self.sign = 1.0
        if self.slope(0.0) > 0:
            self.sign = -1.0
        self.start = self.value(0.0)

    def value(self, t: float) -> float:
        """Return the total loss."""
        with np.errstate(over="ignore"):
            return float((self.weight * self.loss.value(self.y, self._at(t))).sum())

    def slope(self, t: float) -> float:
        """Return the derivative of the total loss."""
        with np.errstate(over="ignore", invalid="ignore"):
            terms = self.weight * self.d * self.loss.gradient(self.y, self._at(t))
            return self.sign * float(terms.sum())

    def falls(self, t: float) -> bool:
        """Whether the loss is not above that at 0, and falls."""
        return self.slope(t) < 0 and self.value(t) <= self.start

    def _at(self, t: float) -> FloatArray:
        return self.f + self.sign * t * self.d


def line_search(
    loss: Loss,
    y: FloatArray,
    f: FloatArray,
    weight: FloatArray,
    direction: FloatArray | None = None,
) -> float:
    """Return the step s of least weighted loss at f + s * direction, bounded by ``loss.limit``.

    The slope is followed downhill until it rises or the bound is reached, and its sign change is
    enclosed. Of a loss that is not convex this is a local minimum; it is never above s = 0.
    """
    d = np.ones(len(y)) if direction is None else direction
    size = float(np.abs(d).max(initial=0.0))
    kept = (weight > 0) & (d != 0)
    if not kept.any():
        return 0.0
    line = _Line(loss, y[kept], f[kept], weight[kept], d[kept] / size)
    if not line.slope(0.0) < 0:
        return 0.0
    low, high, most = 0.0, 1.0, min(loss.limit, FAR)
    while high < most and line.falls(high):
        low, high = high, 2 * high
    if high >= most:
        high = most
        if line.falls(most):
            return line.sign * most / size
    low, high = _enclose(line, low, high)
    best = min((high, low), key=line.value)
    return line.sign * best / size if line.value(best) <= line.start else 0.0


def _enclose(line: _Line, low: float, high: float) -> tuple[float, float]:
    """Return narrow bounds of a minimum between a step where the loss falls and one beyond it."""
    at_low, at_high = line.slope(low), line.slope(high)
    for round_ in range(200):
        if high - low <= WIDTH * high:
            break
        middle = low + (high - low) / 2
        if round_ % 2 and 0 < at_high < np.inf and at_low > -np.inf:
            # A secant, kept off the ends, which otherwise move by ever less.
            secant = low + (high - low) * at_low / (at_low - at_high)
            margin = (high - low) / 1000
            middle = min(max(secant, low + margin), high - margin)
        if not low < middle < high:
            break
        if line.falls(middle):
            low, at_low = middle, line.slope(middle)
        else:
            high, at_high = middle, line.slope(middle)
    return low, high


class _Groups:
    """Groups of rows, one after another, and the slopes of their losses along steps."""

    def __init__(self, loss: Loss, y: FloatArray, f: FloatArray, weight: FloatArray,
                 count: Counts) -> None:  # fmt: skip
        self.loss, self.y, self.f, self.weight = loss, y, f, weight
        self.number = np.arange(len(count))
        self._count(count)
        heaviest = np.maximum.reduceat(weight, self.start)
        self.weight = weight / np.where(heaviest > 0, heaviest, 1.0)[self.group]

    def _count(self, count: Counts) -> None:
        self.count = count
        self.start = np.concatenate([[0], np.cumsum(count)[:-1]])
        self.group = np.repeat(np.arange(len(count)), count)

    def slopes(self, step: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the slope, the curvature and the sum of sizes of slopes of each group."""
        slope, bend = self.loss.slopes(self.y, self.f + step[self.group])
        terms = self.weight * slope
        total = np.add.reduceat
        bends = total(self.weight * bend, self.start)
        return total(terms, self.start), bends, total(np.abs(terms), self.start)

    def keep(self, groups: NDArray[np.bool_]) -> None:
        """Drop the other groups."""
        rows = groups[self.group]
        self.y, self.f, self.weight = self.y[rows], self.f[rows], self.weight[rows]
        self.number = self.number[groups]
        self._count(self.count[groups])


def newton_steps(
    loss: Loss, y: FloatArray, f: FloatArray, weight: FloatArray, count: Counts
) -> FloatArray:
    """Return the step of least weighted loss of groups of rows, all at once; the loss is convex.

    `count` are the numbers of rows of the groups, which stand one after another. Newton steps are
    kept within the bounds that the signs of slopes have shown, and halve them otherwise.
    """
    groups = _Groups(loss, y, f, weight, count)
    found, at = np.zeros(len(count)), np.zeros(len(count))
    slope, bend, size = groups.slopes(at)
    end = np.where(slope < 0, loss.limit, -loss.limit)
    far = np.sign(groups.slopes(end)[0]) == np.sign(slope)
    flat = np.abs(slope) <= ROUNDING * size
    found[far & ~flat] = end[far & ~flat]
    low, high = np.minimum(end, 0.0), np.maximum(end, 0.0)
    done = far | flat
    for _ in range(200):
        if done.all():
            break
        if done.any():
            groups.keep(~done)
            at, slope, bend, low, high = (part[~done] for part in (at, slope, bend, low, high))
        low, high = np.where(slope < 0, at, low), np.where(slope > 0, at, high)
        with np.errstate(all="ignore"):
            following = at - slope / bend
        inside = (low < following) & (following < high)
        following = np.where(inside, following, low + (high - low) / 2)
        moved = np.abs(following - at)
        near = np.where(inside, NEAR * np.maximum(np.abs(following), TINY), 0.0)
        found[groups.number] = at = following
        done = (moved <= near) | (high - low <= WIDTH * np.abs(at))
        if not done.all():
            slope, bend, _ = groups.slopes(at)
            done |= slope == 0
    return found


def kink_search(a: FloatArray, d: FloatArray, weight: FloatArray) -> float:
    """Return the s that minimises the sum of weight * max(0, a - s d).

    The middle, where it is an interval; the end nearest the kinks, where that is unbounded.
    """
    kept = (weight > 0) & (d != 0)
    if not kept.any():
        return 0.0
    a, d, weight = a[kept], d[kept], weight[kept]
    kink = a / d
    order = np.argsort(kink, kind="stable")
    kink, turn = kink[order], (weight * np.abs(d))[order]
    flat = FLAT * float(turn.sum())
    before = -float((weight * d)[d > 0].sum())
    slope = before + np.cumsum(turn)  # to the right of each kink
    if before >= -flat:
        return float(kink[0])
    k = int(np.argmax(slope >= -flat)) if slope[-1] >= -flat else len(kink) - 1
    if slope[k] <= flat and k + 1 < len(kink):
        return float(kink[k] / 2 + kink[k + 1] / 2)
    return float(kink[k])
