"""Rows on which a fitted model is calibrated: read, and checked, in one place."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.bounds._binomial import hypergeometric_tail
from pboost.data.read.check_xy import class_codes
from pboost.data.row_digest import Digest, Seen, hashes, seen_among
from pboost.models.base import Model, check_model
from pboost.models.evaluate.new_rows import count_rows, match_columns, reads_columns, table_for
from pboost.values import shown

#: Rows were seen if so large a share of them is, more than is natural, and if chance finds as many
#: with this probability at most.
LEAST_SHARE, MOST_CHANCE = 0.1, 1e-4


class Calibration(NamedTuple):
    """Rows that a model of labels was not fitted to, and the numbers of their labels."""

    X: Any
    code: NDArray[np.intp]
    #: How many rows each label of the model has.
    counts: NDArray[np.intp]
    #: Hashes of the rows, None where the model reads no columns.
    hashed: Digest | None

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
    return Calibration(X_cal, code, counts, hashes_of_unseen(model, X_cal, stacklevel=4))


def hashes_of_unseen(model: Model, X_cal: Any, stacklevel: int = 3) -> Digest | None:
    """Return the hashes of calibration rows; warn if the model has seen them.

    None where the model reads no columns. Of tables with few different rows many are found by
    nature, see `Seen`; only more than these are told.
    """
    if not reads_columns(model):
        return None
    hashed = hashes(match_columns(model, X_cal).values)
    for known in model.digests():
        seen = seen_among(known, hashed)
        if is_seen(seen):
            n = len(hashed)
            about = "" if seen.compared == n else "about "
            warnings.warn(
                f"X_cal: {about}{round(n * seen.found / seen.compared)} of {n} calibration rows "
                f"equal rows that the model was fitted to or set by, where {seen.natural:.0%} "
                "would be natural: what is found on them does not hold for new rows; pass rows "
                "that the model has not seen",
                UserWarning,
                stacklevel=stacklevel,
            )
            break
    return hashed


def is_seen(seen: Seen) -> bool:
    """Return whether more rows are found in a digest than new rows would be."""
    if not seen.found:
        return False
    share = seen.found / seen.compared
    if share - seen.natural < LEAST_SHARE * (1 - seen.natural):
        return False
    chance = hypergeometric_tail(seen.found, seen.compared, seen.repeated, seen.rows)
    return chance <= MOST_CHANCE
