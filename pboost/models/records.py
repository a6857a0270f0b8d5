"""What is kept of a fit beside the model: how it went, and what rows out of the bags say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.array_checks import check_error
from pboost.models.stored import Stored, check_text, column, header
from pboost.values import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRecord(Stored):
    """What happened while a model was grown.

    Attributes
    ----------
    certificate : ndarray of float64, shape (n_nodes + 1,)
        The certificate before the first and after each node.
    cost : ndarray of float64, shape (n_nodes + 1,)
        Mean number of weak classifiers evaluated per training row (weighted), likewise.
    stop_reason : str
        Why growing ended, as a sentence.
    stages : ndarray of int32, shape (n_stages,), or None
        Numbers of nodes with which the model was what its first nodes are now, increasing; the
        last is `n_nodes`. None: each from 1 on. Collecting by sign changes votes of earlier nodes.
    validation : ndarray of float64, shape (n_grown + 1,), or None
        Share of the validation rows (weighted) on which the model with its first 0, 1, 2, … nodes
        errs; nodes that were grown and not kept included. None where growth was not validated.
    """

    certificate: FloatArray = field(metadata=column(np.float64, ndim=1, finite=False))
    cost: FloatArray = field(metadata=column(np.float64, finite=False))
    stop_reason: str = field(metadata=header(lambda value: isinstance(value, str)))
    stages: IntArray | None = field(default=None, metadata=column(np.int32, optional=True))
    validation: FloatArray | None = field(
        default=None, metadata=column(np.float64, finite=False, optional=True)
    )

    def check(self, n: int) -> None:
        """Raise ValueError if it is not that of a model of `n` nodes."""
        check_text(self, "stop_reason", "record.")
        for name in ("certificate", "cost"):
            values = getattr(self, name)
            if values.shape != (n + 1,):
                raise ValueError(f"record.{name}: expected shape ({n + 1},), got {values.shape}")
            if not (np.isfinite(values).all() and (values >= 0).all()):
                raise ValueError(f"record.{name}: expected finite numbers, none negative")
        errors = self.validation
        if errors is not None and not (
            errors.ndim == 1 and len(errors) > n and ((errors >= 0) & (errors <= 1)).all()
        ):
            raise ValueError(f"record.validation: expected at least {n + 1} numbers from 0 to 1")
        stages = self.stages
        if stages is None:
            return
        if not (stages.ndim == 1 and len(stages) and stages[0] >= 1 and stages[-1] == n):
            raise ValueError(f"record.stages: expected numbers of nodes, the last {n}")
        if not (stages[:-1] < stages[1:]).all():
            raise ValueError("record.stages: expected increasing numbers")


@dataclass(frozen=True, slots=True, eq=False)
class OutOfBag(Stored):
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

    called, file_prefix = "oob.", "oob_"

    members: IntArray = field(metadata=column(np.int32, positive=True))
    prediction: FloatArray = field(metadata=column(np.float64, finite=False))
    error: float = field(
        metadata=header(
            lambda value: True,
            own_name="oob_error",
            checked=lambda record, name: check_error("oob.error", record.error),
            to_file=lambda value: None if np.isnan(value) else float(value),
            from_file=lambda value: np.nan if value is None else value,
            keep=lambda value: float(value) if isinstance(value, np.floating) else value,
        )
    )

    def check_whole(self) -> None:
        """Check what is predicted of each row."""
        if self.members.ndim != 1 or self.prediction.shape[:1] != self.members.shape:
            raise ValueError("oob: expected a prediction for each row")
        if np.isinf(self.prediction).any():
            raise ValueError("oob.prediction: expected finite numbers, or NaN")

    def check(self, labels: NDArray[Any] | None) -> None:
        """Check that it is the record of a model with these labels, or of a regression."""
        shape = () if labels is None else (len(labels),)
        if self.prediction.shape[1:] != shape:
            raise ValueError(
                f"oob: expected predictions of shape (n, *{shape}), got {self.prediction.shape}"
            )
