"""Losses: what an additive model minimises, as functions of the label and the decision value.

Each has its value, gradient, curvature, link to a probability and best constant. Margins from -1e6
to 1e6 neither overflow nor cancel, but the exponential's values beyond the numbers are infinite.
"""

from __future__ import annotations

from typing import TypeAlias

from pboost.losses import labels, numbers
from pboost.losses.base import LOSSES as LOSSES
from pboost.losses.base import Loss, check_derivatives
from pboost.losses.labels import *  # noqa: F403
from pboost.losses.numbers import *  # noqa: F403
from pboost.losses.pointers import CompiledLoss, compiled
from pboost.values import shown
from pboost.values.peers import value_here

__all__ = ["Loss", "check_loss", "compiled"]
__all__ += labels.__all__
__all__ += numbers.__all__
#: The losses that can be given by name.
LossName: TypeAlias = labels.LabelLoss | numbers.NumberLoss


def is_of_package(loss: object) -> bool:
    """Return whether a loss is one that the package knows by its name and numbers."""
    return isinstance(loss, Loss) and type(LOSSES.get(loss.name)) is type(loss)


def check_loss(loss: object) -> Loss:
    """Return a loss, given by name or as one of your own, whose derivatives are compared.

    Parameters
    ----------
    loss : str or Loss
        "exponential", "log_loss", "hinge" or "probit", of two labels; "softmax", of any number;
        "squared_error", "absolute_error", "huber", "quantile" or "poisson", of numbers; of one's
        own parameters as ``Huber(2.0)`` and ``Quantile(0.9)``.
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
            known = loss.lower()
            meant = [(of.name, of.use) for of in LOSSES.values() if known in of.elsewhere.split()]
            hint = value_here(loss, LOSSES, meant)
            raise ValueError(f"loss: expected one of {names} or a Loss, got {loss!r}{hint}")
        return LOSSES[loss]
    if not isinstance(loss, Loss):
        raise TypeError(f"loss: expected a name or a pboost.losses.Loss, got {shown(loss)}")
    # Of compiled ones the rows say what is wrong.
    if not is_of_package(loss) and not isinstance(loss, CompiledLoss):
        check_derivatives(loss, type(loss).curvature is not Loss.curvature)
    return loss
