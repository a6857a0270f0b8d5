"""Weights of classes as weights of rows, of labels and of soft labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from pboost.data.read.check_xy import as_weights
from pboost.data.targets import SoftLabels
from pboost.values import FloatArray, check_number, shown


def with_class_weights(
    y: NDArray[Any] | SoftLabels, class_weight: Any, sample_weight: Any
) -> tuple[NDArray[Any] | SoftLabels, FloatArray]:
    """Return labels, and weights of rows times those of their classes."""
    _check(class_weight)
    weights = as_weights(sample_weight, len(y.share if isinstance(y, SoftLabels) else y))
    if isinstance(y, SoftLabels):
        y, balance = _soft(y, class_weight)
    else:
        balance = compute_sample_weight(class_weight, y)
    return y, balance if weights is None else weights * balance


def _check(class_weight: Any) -> None:
    """Raise for what is neither "balanced" nor weights of classes."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        return
    if not isinstance(class_weight, Mapping):
        hint = ""
        if isinstance(class_weight, str) and class_weight == "balanced_subsample":
            hint = "; rows have the same weights in all bags"
        raise (ValueError if isinstance(class_weight, str) else TypeError)(
            "class_weight: expected 'balanced' or a dict of weights by class, got "
            f"{shown(class_weight)}{hint}"
        )
    for label, weight in class_weight.items():
        check_number(f"class_weight[{label!r}]", weight, least=0.0)


def _soft(y: SoftLabels, class_weight: Any) -> tuple[SoftLabels, FloatArray]:
    """Return soft labels and weights whose products are the shares times the weights of classes."""
    if class_weight == "balanced":
        mass = y.share.sum(axis=0)
        wanted = np.full(len(mass), len(y.share) / len(mass))
        factor = np.divide(wanted, mass, out=np.zeros(len(mass)), where=mass > 0)
    else:
        factor = compute_class_weight(class_weight, classes=y.labels, y=y.labels)
    share = y.share * factor
    total = share.sum(axis=1)
    of_weight = total > 0
    share[~of_weight] = y.share[~of_weight]
    share[of_weight] /= total[of_weight, None]
    return SoftLabels(y.labels, share), total
