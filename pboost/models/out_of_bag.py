"""What the members of an ensemble say of the rows they were not trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.array_checks import check_error
from pboost.values import FloatArray, IntArray, freeze

#: Arrays of the record of rows out of the bags in files, and their dtypes.
OOB_MEMBERS: dict[str, np.dtype[Any] | None] = {
    "oob_members": np.dtype("<i4"),
    "oob_prediction": np.dtype("<f8"),
}


@dataclass(frozen=True, slots=True, eq=False)
class OutOfBag:
    """What the members of an ensemble predict for the training rows that they have not seen.

    Attributes
    ----------
    members : ndarray of int32, shape (n,)
        Number of members in whose bag the row was not.
    prediction : ndarray of float64, shape (n, J) or (n,)
        Mean of what they say: the shares of the classes; of a regression, the number. NaN where
        there are none.
    error : float
        Share of rows misclassified by them, or mean squared error, by weight, over the rows with
        such members; NaN if there are none.
    """

    members: IntArray
    prediction: FloatArray
    error: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", freeze(self.members, np.int32))
        object.__setattr__(self, "prediction", freeze(self.prediction, np.float64))
        if self.members.ndim != 1 or self.prediction.shape[:1] != self.members.shape:
            raise ValueError("oob: expected a prediction for each row")
        if not (self.members >= 0).all():
            raise ValueError("oob.members: expected numbers >= 0")
        if np.isinf(self.prediction).any():
            raise ValueError("oob.prediction: expected finite numbers, or NaN")
        check_error("oob.error", self.error)
        object.__setattr__(self, "error", float(self.error))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the field of a file's header and the arrays that hold the record."""
        arrays: dict[str, NDArray[Any]] = {
            "oob_members": self.members,
            "oob_prediction": self.prediction,
        }
        error = None if np.isnan(self.error) else self.error
        return {"oob_error": error}, arrays

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> OutOfBag | None:
        """Return the record of a file, None where there is none."""
        if not OOB_MEMBERS.keys() & arrays.keys():
            return None
        if not OOB_MEMBERS.keys() <= arrays.keys():
            raise ValueError("oob: the record is not complete")
        error = header.get("oob_error")
        error = np.nan if error is None else error
        return cls(arrays["oob_members"], arrays["oob_prediction"], error)


def check_out_of_bag(oob: OutOfBag, labels: NDArray[Any] | None) -> None:
    """Check that a record is that of a model with these labels, or of a regression."""
    shape = () if labels is None else (len(labels),)
    if oob.prediction.shape[1:] != shape:
        raise ValueError(
            f"oob: expected predictions of shape (n, *{shape}), got {oob.prediction.shape}"
        )
