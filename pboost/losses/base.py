"""What all losses have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from pboost._core.boost import exact_sum
from pboost._core.voting import half_log_odds
from pboost.losses.search import GroupCounts, line_search, newton_steps
from pboost.values import Array, FloatArray


class RowSums(Protocol):
    """Sums of `values_of` over all rows, whatever their order."""

    @property
    def n_classes(self) -> int:
        """Number of classes whose numbers are targets."""

    def exact(self, name: str) -> float:
        """Return the sum of numbers >= 0."""

    def fine(self, name: str) -> float:
        """Return the sum of numbers: of whole numbers, and of the remainders."""


def values_of(name: str, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Return numbers to add up, by their name: those of a class by its number."""
    if name == "above":
        # An index by a mask takes eight times as long where labels are mixed.
        return weight.compress(y > 0)
    if name == "below":
        return weight.compress(y < 0)
    if name == "weight":
        return weight
    if name == "weighted":
        return weight * y
    return np.where(y == int(name), weight, 0.0)


class TableSums:
    """`RowSums` of rows in one table."""

    def __init__(self, y: FloatArray, weight: FloatArray, n_classes: int = 0) -> None:
        self._y, self._weight, self._n_classes = y, weight, n_classes

    @property
    def n_classes(self) -> int:
        """Number of classes whose numbers are targets."""
        return self._n_classes

    def exact(self, name: str) -> float:
        """Return the sum of numbers >= 0."""
        return exact_sum(values_of(name, self._y, self._weight))

    def fine(self, name: str) -> float:
        """Return the sum of numbers: of whole numbers, and of the remainders."""
        values = values_of(name, self._y, self._weight)
        largest = float(np.abs(values).max(initial=0.0))
        if not 0.0 < largest < np.inf:
            return float(values.sum())
        return joined(largest, len(values), *fine_parts(values, largest, len(values)))


def _units(largest: float, n: int) -> tuple[int, int]:
    """Return bits and exponent of n numbers of this size: float64 holds the sum of such numbers."""
    return 51 - n.bit_length(), math.frexp(largest)[1]


def fine_parts(values: FloatArray, largest: float, n: int) -> tuple[float, float]:
    """Return the sums of some of n numbers, `largest` in size: of whole numbers and of remainders."""
    bits, exponent = _units(largest, n)
    values = np.ldexp(np.ldexp(values, -exponent), bits)
    integers = np.rint(values)
    return float(integers.sum()), float(np.rint(np.ldexp(values - integers, bits)).sum())


def joined(largest: float, n: int, integer_sum: float, finer: float) -> float:
    """Return the sum of n numbers, given those of `fine_parts`."""
    bits, exponent = _units(largest, n)
    return float(np.ldexp(integer_sum + math.ldexp(finer, -bits), exponent - bits))


#: Largest decision value of a leaf of one class: half log odds of 2**52.
HALF_LIMIT = half_log_odds(1.0, 0.0, 0.0)
#: What other libraries call the log loss, of any number of classes.
LOG_LOSS = " logloss log deviance crossentropy cross_entropy"


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
    least : float
        Least number that y may be.
    is_newton : bool
        Whether Newton steps find the values of all leaves at once: of convex, curved losses.
    reported : float
        The factor of `value` in the losses that models report: 2 for the squared loss, so that they
        are mean squared errors, else 1.
    link : str
        How probabilities or predictions follow from decision values, see `TreeEnsemble`; "none" if
        the function is not known to other formats.
    is_multiclass : bool
        Whether y is the number of a class, and f has a score for each class.
    is_summed : bool
        Whether derivatives, leaf values and the constant are sums over rows, so that partitions can
        be added up.
    max_delta_step : float or None
        The default bound on the value of a leaf in a regression.
    held : float
        The default `l2_regularization` of a classification, as a number of rows.
    kernel_at_0 : float or None
        What the compiled loss is at f = 0, if it leaves out a constant of each row.
    elsewhere : str
        The names that other libraries have for it, in small letters.
    use : str
        When it is meant, if such a name means several losses.

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
    limit: ClassVar[float] = 2 * HALF_LIMIT
    least: ClassVar[float] = -np.inf
    is_newton: ClassVar[bool] = False
    reported: ClassVar[float] = 1.0
    link: ClassVar[str] = "none"
    is_multiclass: ClassVar[bool] = False
    is_summed: ClassVar[bool] = False
    max_delta_step: ClassVar[float | None] = None
    held: ClassVar[float] = 2.0
    kernel_at_0: ClassVar[float | None] = None
    elsewhere: ClassVar[str] = ""
    use: ClassVar[str] = ""

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

    def prediction(self, f: FloatArray) -> FloatArray:
        """Return the number that is predicted, in a regression: the decision value itself."""
        return f

    def check_targets(self, y: FloatArray, rows: Array) -> None:
        """Raise ValueError if numbers y are not as this loss needs them; `rows` are their rows."""
        low = y < self.least
        if low.any():
            k = int(np.argmax(low))
            raise ValueError(
                f"y: expected numbers >= {self.least:g} for the {self._called} loss, got {y[k]:g} "
                f"in row {rows[k]}"
            )

    def constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the number of least total loss as decision value of all rows."""
        return self.leaf_value(y, np.zeros(len(y)), weight)

    def constant_of(self, sums: RowSums) -> Any:
        """Return the best constant, given sums over rows, of which it is a function."""
        raise NotImplementedError(f"the {self} loss has no constant that follows from sums")

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
        self, y: FloatArray, f: FloatArray, weight: FloatArray, count: GroupCounts
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
    def parameters(self) -> dict[str, float]:
        """The numbers that tell it from others of its name."""
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
        """Whether what is predicted in a regression is the decision value."""
        return type(self).prediction is Loss.prediction


#: The losses of the package, by their names.
LOSSES: dict[str, Loss] = {}
_Kind = TypeVar("_Kind", bound=type[Loss])


def named(kind: _Kind) -> _Kind:
    """List a loss of the package: its name is then an option, and models with it can be stored."""
    LOSSES[kind.name] = kind()
    return kind


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
            f"loss: {name}(y, f): expected {(left[k] + right[k]) / 2:.6g}, by differences of the "
            f"{function_name}, at y = {y[k]:g}, f = {f[k]:g}, got {derivatives[k]:.6g}"
        )


def _answers(name: str, function: Callable[..., Any], y: FloatArray, f: FloatArray) -> FloatArray:
    answers = np.asarray(function(y.copy(), f.copy()))
    if answers.shape != y.shape or answers.dtype.kind not in "iuf":
        raise ValueError(
            f"loss: {name}(y, f): expected numbers of shape {y.shape}, got {answers.dtype} of shape "
            f"{answers.shape}"
        )
    if not np.isfinite(answers).all():
        k = int(np.argmin(np.isfinite(answers)))
        raise ValueError(
            f"loss: {name}(y, f): expected finite numbers, got {answers[k]} at y = {y[k]:g}, "
            f"f = {f[k]:g}"
        )
    return answers.astype(np.float64)
