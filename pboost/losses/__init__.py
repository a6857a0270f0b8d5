"""Losses of additive models, as functions of the target and the decision value.

Each loss has a value, a gradient, a second derivative, a link to probabilities and a best constant.
Margins from -1e6 to 1e6 cause neither overflow nor cancellation, except that the exponential loss
can be infinite.
"""

from __future__ import annotations

from typing import TypeAlias, get_args

from pboost.losses import classification as labels
from pboost.losses import log_link as means
from pboost.losses import regression as numbers
from pboost.losses.base import LOSSES as LOSSES
from pboost.losses.base import Loss, check_derivatives
from pboost.losses.c_functions import CompiledLoss, compiled
from pboost.losses.classification import *  # noqa: F403
from pboost.losses.gradient_functions import GradientLoss, from_gradients
from pboost.losses.log_link import *  # noqa: F403
from pboost.losses.regression import *  # noqa: F403
from pboost.values import hint_missing_call, shown
from pboost.values.parameter_aliases import value_here

__all__ = ["Loss", "check_loss", "compiled", "from_gradients"]
__all__ += labels.__all__
__all__ += numbers.__all__
__all__ += means.__all__
#: The losses that can be selected by name.
LossName: TypeAlias = labels.LabelLoss | numbers.NumberLoss | means.LogLinkLoss
NAMES: tuple[str, ...] = (
    *get_args(labels.LabelLoss),
    *get_args(numbers.NumberLoss),
    *get_args(means.LogLinkLoss),
)


#: Names of the second derivative in other libraries. Without this check they would be ignored.
_HESSIANS = ("hess", "hessian", "second_derivative")


def _hint_name(loss: str) -> str:
    """Return a hint for an unknown name of a loss, or ""."""
    known = loss.lower()
    if known == numbers.Quantile.name or known in numbers.Quantile.elsewhere.split():
        return "; for a quantile pass pb.losses.Quantile(0.9), for the median 'absolute_error'"
    meant = [(of.name, of.use) for of in LOSSES.values() if known in of.elsewhere.split()]
    return value_here(loss, NAMES, meant)


def _check_methods(loss: Loss) -> None:
    """Raise TypeError if a custom loss calls its second derivative by another name."""
    name = next((name for name in _HESSIANS if hasattr(loss, name)), "")
    if name and not loss.has_curvature:
        raise TypeError(
            f"loss: expected the second derivative of {type(loss).__name__} as a method "
            f"curvature(y, f), got {name}; rename the method"
        )


def is_of_package(loss: object) -> bool:
    """Return whether a loss is built in, so that compiled code can compute it."""
    return isinstance(loss, Loss) and type(LOSSES.get(loss.name)) is type(loss)


def check_loss(loss: object) -> Loss:
    """Return a loss given by name, or check the derivatives of a custom loss.

    Parameters
    ----------
    loss : str or Loss
        "exponential", "log_loss", "hinge", "probit" or "focal" for two classes; "softmax" for any
        number of classes; "squared_error", "absolute_error", "huber", "expectile", "log_cosh" or
        "mape" for regression; "poisson", "gamma" or "tweedie" for regression with a log link. For
        quantiles pass ``Quantile(0.9)``, and for other parameters an object such as ``Huber(2.0)``
        or ``Tweedie(1.2)``. A custom loss is an object of a subclass of `Loss` that defines `value`
        and `gradient`.

    Returns
    -------
    Loss

    Raises
    ------
    TypeError
        If `loss` is neither a name nor a `Loss`.
    ValueError
        If the name is unknown, if a function of the loss does not return one finite number per row,
        or if a derivative differs from finite differences on a grid of decision values from -4 to
        4.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> y, f = np.array([-1.0, 1.0]), np.array([0.0, 2.0])
    >>> pb.losses.check_loss("hinge").value(y, f).tolist()
    [1.0, 0.0]
    """
    if isinstance(loss, str):
        if loss not in NAMES:
            names = ", ".join(map(repr, NAMES))
            raise ValueError(
                f"loss: expected one of {names} or a Loss, got {loss!r}{_hint_name(loss)}"
            )
        return LOSSES[loss]
    if not isinstance(loss, Loss):
        hint = hint_missing_call(loss)
        if callable(loss) and not isinstance(loss, type):
            hint = (
                "; for a function that returns gradients and Hessians, pass "
                "pb.losses.from_gradients(function)"
            )
        raise TypeError(f"loss: expected a name or a pboost.losses.Loss, got {shown(loss)}{hint}")
    _check_methods(loss)
    # The derivatives of functions are checked on the training rows.
    if not is_of_package(loss) and not isinstance(loss, CompiledLoss | GradientLoss):
        check_derivatives(loss, type(loss).curvature is not Loss.curvature)
    return loss
