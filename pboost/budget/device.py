"""Models of at most so many bytes on a small device."""

from __future__ import annotations

import numpy as np

from pboost.budget.candidates import Fits, Fitted, first, joints_of, path_of
from pboost.data.read.convert import Features
from pboost.export.c_file import c_size
from pboost.models.early_exit import Trajectory
from pboost.values import FloatArray

#: Of how many parts of a model bytes are counted; those between them are interpolated.
COUNTED = 64


def bytes_of(model: Fitted) -> FloatArray:
    """Return about how many bytes the parts of a model take, of 0, 1, … joints."""
    joints = joints_of(model)
    counted = np.unique(np.linspace(1, joints, min(COUNTED, joints)).round().astype(np.intp))
    sizes = [c_size(first(model, int(joint))) for joint in counted]
    return np.interp(np.arange(joints + 1), [0, *counted], [0, *sizes])


def costly_path(fits: Fits, model: Fitted, X: Features) -> Trajectory:
    """Return the path of rows through a model, whose costs are what budgets are counted in."""
    path = path_of(model, X, fits.prices)
    if not fits.is_device:
        return path
    return path._replace(cost=np.repeat(bytes_of(model)[:, None], X.n_rows, axis=1))


def fitted_in_bytes(whole: Fits, family: str, joints: int, most: float) -> Fitted | None:
    """Return the longest part of a family's model, fitted to all rows, that takes no more.

    Of at most so many joints; None where there is none.
    """
    model = whole.of(family)
    fits = np.flatnonzero(bytes_of(model)[: joints + 1] <= most)
    for joint in range(int(fits[-1]), 0, -1):
        part = first(model, joint)
        if c_size(part) <= most:
            return part
    return None
