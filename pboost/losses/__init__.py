"""Losses of additive models, as functions of the target and the decision value.

Each loss has a value, a gradient, a second derivative, a link to probabilities and a best constant.
Margins from -1e6 to 1e6 cause neither overflow nor cancellation, except that the exponential loss
can be infinite.
"""

from __future__ import annotations

from typing import TypeAlias

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
from pboost.values import shown
from pboost.values.parameter_aliases import value_here

__all__ = ["Loss", "check_loss", "compiled", "from_gradients"]
__all__ += labels.__all__
__all__ += numbers.__all__
__all__ += means.__all__
#: The losses that can be selected by name.
LossName: TypeAlias = labels.LabelLoss | numbers.NumberLoss | means.LogLinkLoss


def is_of_package(loss: object) -> bool:
    """Return whether a loss is built in, so that compiled code can compute it."""
    return isinstance(loss, Loss) and type(LOSSES.get(loss.name)) is type(loss)


def check_loss(loss: object) -> Loss:
    """Return a loss given by name, or check the derivatives of a custom loss.

    Parameters
    ----------
    loss : str or Loss
        "exponential", "log_loss", "hinge", "probit" or "focal" for two classes; "softmax" for any
        number of classes; "squared_error", "absolute_error", "huber", "quantile", "expectile",
        "log_cosh" or "mape" for regression; "poisson", "gamma" or "tweedie" for regression with a
        log link. For other parameters pass an object such as ``Huber(2.0)`` or ``Tweedie(1.2)``. A
        custom
        loss is a subclass of `Loss` that defines `value` and `gradient`.

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
        if loss not in LOSSES:
            names = ", ".join(map(repr, LOSSES))
            known = loss.lower()
            meant = [(of.name, of.use) for of in LOSSES.values() if known in of.elsewhere.split()]
            hint = value_here(loss, LOSSES, meant)
            raise ValueError(f"loss: expected one of {names} or a Loss, got {loss!r}{hint}")
        return LOSSES[loss]
    if not isinstance(loss, Loss):
        raise TypeError(f"loss: expected a name or a pboost.losses.Loss, got {shown(loss)}")
    # The derivatives of functions are checked on the training rows.
    if not is_of_package(loss) and not isinstance(loss, CompiledLoss | GradientLoss):
        check_derivatives(loss, type(loss).curvature is not Loss.curvature)
    return loss
