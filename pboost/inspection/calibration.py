"""Rows on which a fitted model is calibrated: read, and checked, in one place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.check_xy import class_codes
from pboost.models.base import Model, check_model
from pboost.models.new_rows import count_rows, table_for
from pboost.values import shown


class Calibration(NamedTuple):
    """Rows that a model of labels was not fitted to, and the numbers of their labels."""

    X: Any
    code: NDArray[np.intp]
    #: How many rows each label of the model has.
    counts: NDArray[np.intp]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.code)


def calibration_rows(
    model: Model, X_cal: Any, y_cal: Any, what: str, done: str = "bounded"
) -> Calibration:
    """Return calibration rows, checked; `what` is of rows of a label, and by others not `done`."""
    check_model(model)
    labels = model.labels
    if labels is None:
        raise NotImplementedError(
            "model: expected a classifier, whose errors can be counted, got a regression"
        )
    X_cal = table_for(model, X_cal)
    n = count_rows(model, X_cal)
    if not n:
        raise ValueError(f"X_cal: expected calibration rows, got none: nothing can be {done}")
    try:
        code = class_codes(labels, y_cal, n)
    except ValueError as error:
        raise ValueError(
            str(error).replace("y:", "y_cal:", 1).replace("of X,", "of X_cal,")
        ) from None
    counts = np.bincount(code, minlength=len(labels))
    if np.count_nonzero(counts) == 1:
        only = shown(labels[code[0]].item())
        raise ValueError(
            f"y_cal: expected rows of two labels or more, got {only} only: {what} of rows of other "
            f"labels cannot be {done}"
        )
    return Calibration(X_cal, code, counts)
