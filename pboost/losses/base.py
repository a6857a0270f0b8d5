"""Base class of the losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from pboost._core.boost import exact_sum
from pboost._core.voting import half_log_odds
from pboost.losses.line_search import GroupCounts, line_search, newton_steps
from pboost.values import Array, FloatArray
from pboost.values.options import refuse_unknown


class RowSums(Protocol):
    """Sums of `values_of` over all rows; they do not depend on the order of the rows."""

    @property
    def n_classes(self) -> int:
        """Number of classes, if the targets are class numbers."""

    def exact(self, name: str) -> float:
        """Return the sum called `name`, whose summands are >= 0."""

    def fine(self, name: str) -> float:
        """Return the sum called `name`, whose summands have any sign."""


def values_of(name: str, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the summand of each row for the sum called `name`, which can be a class number."""
    if name == "above":
        # `compress` is up to eight times as fast as a boolean index.
        return weight.compress(y > 0)
    if name == "below":
        return weight.compress(y < 0)
    if name == "weight":
        return weight
    if name == "weighted":
        return weight * y
    return np.where(y == int(name), weight, 0.0)


class TableSums:
    """Sums over the rows of one table; see `RowSums`."""

    def __init__(self, y: FloatArray, weight: FloatArray, n_classes: int = 0) -> None:
        self._y, self._weight, self._n_classes = y, weight, n_classes

    @property
    def n_classes(self) -> int:
        """Number of classes, if the targets are class numbers."""
        return self._n_classes

    def exact(self, name: str) -> float:
        """Return the sum called `name`, whose summands are >= 0."""
        return exact_sum(values_of(name, self._y, self._weight))

    def fine(self, name: str) -> float:
        """Return the sum called `name`, whose summands have any sign."""
        values = values_of(name, self._y, self._weight)
        largest = float(np.abs(values).max(initial=0.0))
        if not 0.0 < largest < np.inf:
            return float(values.sum())
        return joined(largest, len(values), *fine_parts(values, largest, len(values)))


def _units(largest: float, n: int) -> tuple[int, int]:
    """Return bits and exponent so that float64 holds the sum of n rounded numbers exactly."""
    return 51 - n.bit_length(), math.frexp(largest)[1]


def fine_parts(values: FloatArray, largest: float, n: int) -> tuple[float, float]:
    """Return the sum of the rounded values and the sum of the rounding errors, both exact."""
    bits, exponent = _units(largest, n)
    values = np.ldexp(np.ldexp(values, -exponent), bits)
    integers = np.rint(values)
    return float(integers.sum()), float(np.rint(np.ldexp(values - integers, bits)).sum())


def joined(largest: float, n: int, integer_sum: float, finer: float) -> float:
    """Return the sum of n numbers, given the sums from `fine_parts`."""
    bits, exponent = _units(largest, n)
    return float(np.ldexp(integer_sum + math.ldexp(finer, -bits), exponent - bits))


#: Maximum decision value of a leaf with a single class: half the log odds of 2**52.
HALF_LIMIT = half_log_odds(1.0, 0.0, 0.0)
#: Maximum step of losses in which decision values are log odds or logarithms, about 36.
MOST_STEP = 2 * HALF_LIMIT
#: Names of the log loss in other libraries, for any number of classes.
LOG_LOSS = " logloss log deviance crossentropy cross_entropy"


@dataclass(frozen=True, slots=True)
class Loss:
    """Base class of the losses.

    A custom loss is a subclass that defines `value` and `gradient`. The targets y are -1 and +1, or
    numbers if `is_regression` is True. All functions take arrays y and f of float64 with the same
    shape, and return an array of that shape. The loss need not be convex in f. `check_loss`
    compares the gradient and the second derivative with finite differences.

    Attributes
    ----------
    name : str
        Name of the loss in options and models.
    is_regression : bool
        Whether y may be any number.
    limit : float
        Maximum absolute step of a decision value, for leaves in which the loss has no minimum. The
        default is about 36 for classification, and infinity for regression. Set a limit if
        predictions are exponentials of decision values.
    least : float
        Minimum of the target.
    domain : str
        Range of the target in error messages. Default: ">= `least`".
    is_newton : bool
        Whether Newton steps find the values of all leaves at once. The loss must be convex and have
        a second derivative.
    reported : float
        Factor of `value` in the losses that models report: 2 for the squared error, which gives the
        mean squared error, else 1.
    link : str
        How probabilities or predictions follow from decision values, see `TreeEnsemble`. "none" if
        exported models cannot compute them.
    is_multiclass : bool
        Whether y is a class number and f has one decision value per class.
    is_summed : bool
        Whether derivatives, leaf values and the constant need only sums over rows, so that the
        rows can be in partitions.
    max_delta_step : float or None
        Default of `max_delta_step` in regression.
    held : float
        Default of `l2_regularization` in classification and for the squared error, as a number of
        rows.
    shrinkage : float
        Default of `leaf_shrinkage`.
    random_strength, subsample : float, float or None
        Defaults of these options.
    kernel_at_0 : float or None
        Value of the compiled loss at f = 0, if it omits a constant of each row.
    elsewhere : str
        Lower-case names of this loss in other libraries.
    use : str
        When to use this loss, if a name in `elsewhere` stands for several losses.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> class LogCosh(pb.losses.Loss):
    ...     name, is_regression = "log cosh", True
    ...     def value(self, y, f):
    ...         return np.logaddexp(f - y, y - f)
    ...     def gradient(self, y, f):
    ...         return np.tanh(f - y)
    >>> loss = pb.losses.check_loss(LogCosh())
    >>> round(loss.constant(np.array([0.0, 0.1, 0.2, 9.0]), np.ones(4)), 4)
    0.4488
    """

    name: ClassVar[str] = ""
    is_regression: ClassVar[bool] = False
    limit: ClassVar[float] = MOST_STEP
    least: ClassVar[float] = -np.inf
    domain: ClassVar[str] = ""
    is_newton: ClassVar[bool] = False
    reported: ClassVar[float] = 1.0
    link: ClassVar[str] = "none"
    is_multiclass: ClassVar[bool] = False
    is_summed: ClassVar[bool] = False
    max_delta_step: ClassVar[float | None] = None
    held: ClassVar[float] = 2.0
    shrinkage: ClassVar[float] = 0.0
    random_strength: ClassVar[float] = 0.0
    subsample: ClassVar[float | None] = None
    kernel_at_0: ClassVar[float | None] = None
    elsewhere: ClassVar[str] = ""
    use: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        above = cls.__mro__[: cls.__mro__.index(Loss)]
        if cls.is_regression and not any("limit" in vars(base) for base in above):
            cls.limit = np.inf

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each decision value."""
        raise NotImplementedError(
            f"{type(self).__name__}: expected a method value(y, f), got none; define it"
        )

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the derivative in f, or a subgradient at a kink."""
        raise NotImplementedError(
            f"{type(self).__name__}: expected a method gradient(y, f), got none; define it"
        )

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the second derivative in f.

        Raises
        ------
        NotImplementedError
            If the loss has no useful second derivative.
        """
        raise NotImplementedError(f"the {self._called} loss has no second derivative")

    def probability(self, f: FloatArray) -> FloatArray:
        """Return the probability of the class +1 for each decision value.

        `predict_proba` calls this method. A custom loss for classification has probabilities if it
        defines the method; the result is an array of the shape of f with values in [0, 1].

        Raises
        ------
        NotImplementedError
            If decision values of this loss do not give probabilities.
        """
        is_custom = not type(self).__module__.startswith("pboost.")
        name = type(self).__name__
        raise NotImplementedError(
            f"decision values of the {self._called} loss do not give probabilities"
            + (f", because {name} does not define probability(f)" if is_custom else "")
        )

    def prediction(self, f: FloatArray) -> FloatArray:
        """Return the predicted number in regression: by default the decision value."""
        return f

    def omitted(self, y: FloatArray) -> FloatArray:
        """Return the part of the loss that compiled rounds omit, plus `kernel_at_0`."""
        return self.value(y, np.zeros(len(y)))

    def check_targets(self, y: FloatArray, rows: Array) -> None:
        """Raise ValueError if the loss does not allow a target; `rows` are the row numbers."""
        low = y < self.least
        if low.any():
            k = int(np.argmax(low))
            domain = self.domain or f">= {self.least:g}"
            raise ValueError(
                f"y: expected numbers {domain} for the {self._called} loss, got {y[k]:g} in row "
                f"{rows[k]}"
            )

    def constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the constant decision value that minimizes the total loss."""
        return self.leaf_value(y, np.zeros(len(y)), weight)

    def constant_of(self, sums: RowSums) -> Any:
        """Return the best constant, given sums over rows."""
        raise NotImplementedError(f"the {self} loss cannot compute its constant from sums")

    def leaf_value(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        direction: FloatArray | None = None,
    ) -> float:
        """Return the step along a direction that minimizes the total loss.

        Parameters
        ----------
        y, f : ndarray of float64, shape (n,)
            Targets and current decision values.
        weight : ndarray of float64, shape (n,)
            Weights >= 0 of the rows.
        direction : ndarray of float64, shape (n,), optional
            Change of each decision value with a step of 1. Default: 1.

        Returns
        -------
        float
            The step s that minimizes the weighted sum of ``value(y, f + s * direction)``. If the
            loss is not convex, s is a local minimum with a loss not above the loss at s = 0. No
            decision value changes by more than `limit`.
        """
        return line_search(self, y, f, weight, direction)

    def leaf_values(
        self, y: FloatArray, f: FloatArray, weight: FloatArray, count: GroupCounts
    ) -> FloatArray:
        """Return the `leaf_value` of each group of consecutive rows; `count` has their sizes."""
        if self.is_newton:
            return newton_steps(self, y, f, weight, count)
        cuts = np.cumsum(count)[:-1]
        parts = zip(*(np.split(array, cuts) for array in (y, f, weight)), strict=True)
        return np.array([self.leaf_value(*part) for part in parts])

    def slopes(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the second derivative."""
        return self.gradient(y, f), self.curvature(y, f)

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters of the loss, such as the level of a quantile."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: number for name, number in values.items() if isinstance(number, float)}

    def __str__(self) -> str:
        numbers = ", ".join(f"{number:g}" for number in self.parameters.values())
        return self._called + (f"({numbers})" if numbers else "")

    @property
    def _called(self) -> str:
        return self.name or type(self).__name__

    @property
    def has_curvature(self) -> bool:
        """Whether the loss has a second derivative."""
        return type(self).curvature is not Loss.curvature

    @property
    def predicts_scores(self) -> bool:
        """Whether predictions of a regression are the decision values."""
        return type(self).prediction is Loss.prediction


#: The built-in losses by name.
LOSSES: dict[str, Loss] = {}
_Kind = TypeVar("_Kind", bound=type[Loss])


def named(kind: _Kind) -> _Kind:
    """Register a built-in loss; its name can be used as an option and in stored models."""
    init: Any = kind.__init__
    known = [field.name for field in fields(kind)]

    @wraps(init)
    def explaining(self: Loss, *arguments: object, **options: object) -> None:
        refuse_unknown(options, known, kind.__name__)
        init(self, *arguments, **options)

    kind.__init__ = explaining  # type: ignore[method-assign, assignment]
    LOSSES[kind.name] = kind()
    return kind


#: Decision values for the check of derivatives; the grid avoids kinks at round numbers.
_GRID = np.linspace(-4.0, 4.0, 97) + 0.00317
_STEP = 1e-5
_TOLERANCE = 1e-3


def check_derivatives(loss: Any, with_curvature: bool) -> None:
    """Raise ValueError if a derivative of a loss differs from finite differences."""
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
    function_name = "value" if name == "gradient" else "gradient"
    below, middle, above = (_answers(function_name, function, y, f + k * _STEP) for k in (-1, 0, 1))
    left, right = (middle - below) / _STEP, (above - middle) / _STEP
    derivatives = _answers(name, derivative, y, f)
    slack = _TOLERANCE * (1 + np.abs(derivatives) + np.abs(right - left))
    wrong = (derivatives < np.minimum(left, right) - slack) | (
        derivatives > np.maximum(left, right) + slack
    )
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(
            f"loss: {name}(y, f): expected {(left[k] + right[k]) / 2:.6g} at y = {y[k]:g}, "
            f"f = {f[k]:g}, from finite differences of {function_name}(y, f), got "
            f"{derivatives[k]:.6g}"
        )


def _answers(name: str, function: Callable[..., Any], y: FloatArray, f: FloatArray) -> FloatArray:
    answers = np.asarray(function(y.copy(), f.copy()))
    if answers.shape != y.shape or answers.dtype.kind not in "iuf":
        raise ValueError(
            f"loss: {name}(y, f): expected numbers of shape {y.shape}, got {answers.dtype} of "
            f"shape {answers.shape}"
        )
    if not np.isfinite(answers).all():
        k = int(np.argmin(np.isfinite(answers)))
        raise ValueError(
            f"loss: {name}(y, f): expected finite numbers, got {answers[k]} at y = {y[k]:g}, "
            f"f = {f[k]:g}"
        )
    return answers.astype(np.float64)
