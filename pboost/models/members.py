"""What members of models answer, which may be objects of other packages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.check_xy import plain_values
from pboost.models.attribution import among
from pboost.models.base import Model, predict, predict_proba
from pboost.values import FloatArray

#: What is not known of members that are no models of this package.
READING = "which columns a {} reads"


def is_foreign(member: Any) -> bool:
    """Return whether a member is no model of this package but an object with ``predict``."""
    return not isinstance(member, Model)


def check_known(member: Any, what: str = "what evaluating a {} costs") -> Model:
    """Return a member that is a model of this package; of others this is not known."""
    if is_foreign(member):
        raise NotImplementedError(f"model: {what.format(type(member).__name__)} is not known")
    known: Model = member
    return known


def answers(member: Any, X: Any, n: int, labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return the positions among `labels` of what a classifier answers to the n rows X."""
    found = np.asarray(member.predict(X) if is_foreign(member) else predict(member, X))
    if found.shape != (n,):
        raise ValueError(f"base: expected {n} predictions, got shape {found.shape}")
    if found.dtype.kind == "O":
        found = plain_values(found, "base: expected predictions")
    codes = np.searchsorted(labels, found).clip(0, len(labels) - 1)
    wrong = np.flatnonzero(labels[codes] != found)
    if len(wrong):
        raise ValueError(
            f"base: expected predictions among the labels {labels.tolist()}, got "
            f"{found[wrong[0]].item()!r}"
        )
    return codes


def said_by(model: Any, X: Any, labels: NDArray[Any] | None, vote: str) -> FloatArray:
    """Return what a member says (n, J) of each row, or its number.

    Its probabilities, where these are asked for and it has any; else 1 for its answer.
    """
    if labels is not None and vote == "average" and not is_foreign(model):
        try:
            share = predict_proba(model, X)
            _codes(labels, model.labels)
            return among(share, labels, model.labels)
        except NotImplementedError:  # of a loss without probabilities
            pass
    said = np.asarray(model.predict(X) if is_foreign(model) else predict(model, X))
    if labels is None:
        return said.astype(np.float64)
    code = _codes(labels, said)
    return (code[:, None] == np.arange(len(labels))).astype(np.float64)


def _codes(labels: NDArray[Any], said: NDArray[Any]) -> NDArray[np.intp]:
    """Return the positions of labels among all."""
    code = np.minimum(np.searchsorted(labels, said), len(labels) - 1)
    if not (labels[code] == said).all():
        raise ValueError(f"fit: its models must predict the labels {labels.tolist()!r}")
    return code
