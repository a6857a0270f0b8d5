"""Losses given by a function that returns gradients and second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from pboost.losses.base import HALF_LIMIT, Loss
from pboost.losses.classification import logistic
from pboost.values import FloatArray, check_choice, check_number, shown

#: How predictions follow from decision values.
LinkName: TypeAlias = Literal["identity", "log", "logit"]
#: A function of targets, decision values and sample weights.
GradientFunction: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray], Any]
#: Maximum absolute initial decision value, as for targets.
MOST_CONSTANT = 1e150
#: Places in (0, 1) and weights of the rule that integrates gradients.
_PLACES, _WEIGHTS = (
    (part + shift) / 2
    for part, shift in zip(np.polynomial.legendre.leggauss(8), (1.0, 0.0), strict=True)
)


@dataclass(frozen=True, slots=True)
class GradientLoss(Loss):
    """A regression loss given by a function of its derivatives; see `from_gradients`."""

    function: GradientFunction | None = field(repr=False)
    start: float

    name: ClassVar[str] = "from_gradients"
    called_link: ClassVar[LinkName] = "identity"
    link: ClassVar[str] = "identity"
    is_regression: ClassVar[bool] = True
    limit: ClassVar[float] = np.inf

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss minus the loss at f = 0: the integral of the gradient."""
        parts = (
            weight * self.gradient(y, place * f)
            for place, weight in zip(_PLACES, _WEIGHTS, strict=True)
        )
        return np.asarray(f * sum(parts))

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the gradient that the function returns."""
        return self.slopes(y, f)[0]

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the second derivative that the function returns."""
        return self.slopes(y, f)[1]

    def slopes(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the second derivative."""
        if self.function is None:
            raise ValueError(
                "loss: expected the function of from_gradients, which is not in model files; to "
                "continue training, pass the model dataclasses.replace(model, loss="
                f"pb.losses.from_gradients(f, {self.called_link!r}, {self.start:g}))"
            )
        result = self.function(self._targets(y), np.array(f), np.ones(len(f)))
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise ValueError(
                "loss: expected a function (y, decision_values, sample_weight) -> (gradient, "
                f"hessian), got {shown(result)}"
            )
        gradient, hessian = (np.asarray(part, dtype=np.float64) for part in result)
        if not gradient.shape == hessian.shape == f.shape:
            raise ValueError(
                f"loss: expected a gradient and a hessian of shape {f.shape}, got shapes "
                f"{gradient.shape} and {hessian.shape}"
            )
        return gradient, hessian

    def constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the initial decision value."""
        return self.start

    def _targets(self, y: FloatArray) -> FloatArray:
        """Return a copy of the targets for the function."""
        return np.array(y)

    @property
    def parameters(self) -> dict[str, float]:
        """No parameters, because the function determines the loss."""
        return {}


class LogGradientLoss(GradientLoss):
    """A regression loss with a log link, given by a function of its derivatives."""

    __slots__ = ()
    called_link: ClassVar[LinkName] = "log"
    link: ClassVar[str] = "exp"
    limit: ClassVar[float] = 2 * HALF_LIMIT
    max_delta_step: ClassVar[float | None] = 4.0

    def prediction(self, f: FloatArray) -> FloatArray:
        """Return exp(f)."""
        with np.errstate(over="ignore"):
            return np.exp(f)


class LogitGradientLoss(GradientLoss):
    """A loss for two classes with log odds, given by a function of its derivatives."""

    __slots__ = ()
    called_link: ClassVar[LinkName] = "logit"
    link: ClassVar[str] = "log odds"
    is_regression: ClassVar[bool] = False
    limit: ClassVar[float] = 2 * HALF_LIMIT

    def probability(self, f: FloatArray) -> FloatArray:
        """Return 1 / (1 + exp(-f))."""
        return logistic(f)

    def _targets(self, y: FloatArray) -> FloatArray:
        """Return 0 for the first class and 1 for the second."""
        return np.asarray((y + 1) / 2)


_KINDS: dict[str, type[GradientLoss]] = {
    kind.called_link: kind for kind in (GradientLoss, LogGradientLoss, LogitGradientLoss)
}


def gradient_loss(
    function: GradientFunction | None, link: LinkName, constant: float
) -> GradientLoss:
    """Return the loss of `from_gradients`; without a function, it only predicts."""
    check_choice("link", link, get_args(LinkName))
    start = check_number("constant", constant, min_value=-MOST_CONSTANT, max_value=MOST_CONSTANT)
    return _KINDS[link](function, start)


def from_gradients(
    function: GradientFunction, link: LinkName = "identity", constant: float = 0.0
) -> Loss:
    """Return a loss from a function that computes gradients and Hessians, as in other libraries.

    Parameters
    ----------
    function : callable
        Function ``(y, decision_values, sample_weight) -> (gradient, hessian)`` of arrays (n,). The
        derivatives of a row may depend only on this row, and Hessians must be >= 0.
        `sample_weight` contains ones, because pboost multiplies the derivatives by the weights
        itself; so functions written for LightGBM or XGBoost can be used without changes.
    link : {"identity", "log", "logit"}
        How predictions follow from decision values f. "identity": f. "log": exp(f). "logit": the
        probability ``1 / (1 + exp(-f))`` of the second class; y is then 0 or 1.
    constant : float
        Initial decision value of all rows.

    Returns
    -------
    Loss
        A loss for `fit_gradient_boosting`. Leaf values are Newton steps, unless
        ``leaf_update="line_search"`` is passed. Reported losses are the loss minus the loss at f =
        0, computed by integrating the gradient, which takes eight more calls of the function per
        round.

    Notes
    -----
    Model files contain the link and the constant, but not the function. A loaded model predicts and
    can be exported; `continue_fit` raises an error that shows how to add the function.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, or, during a fit, if the function returns other values.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> def asymmetric(y, f, sample_weight):
    ...     hessian = np.where(f > y, 1.0, 4.0)
    ...     return hessian * (f - y), hessian
    >>> X, y = [[0.0], [0.0], [1.0], [1.0]], [0.0, 1.0, 5.0, 6.0]
    >>> model = pb.fit_gradient_boosting(X, y, loss=pb.losses.from_gradients(asymmetric))
    >>> pb.predict(model, [[0.0], [1.0]]).round(1).tolist()
    [0.8, 5.8]
    """
    if not callable(function):
        raise TypeError(
            "function: expected a function (y, decision_values, sample_weight), got "
            f"{shown(function)}"
        )
    return gradient_loss(function, link, constant)
