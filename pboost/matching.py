"""X and y as a given model needs them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.checks import Features, as_features, check_finite
from pboost.graph import DecisionGraph, FloatArray


def match_columns(model: DecisionGraph, X: Any) -> Features:
    """Return X as features with the model's columns in the model's order."""
    features = as_features(X)
    names, found = model.feature_names, features.names
    if names is not None and found is not None and names != found:
        missing = [name for name in names if name not in found]
        unknown = [name for name in found if name not in names]
        if missing or unknown:
            raise ValueError(
                "X: other columns than in training"
                + (f"; missing: {', '.join(missing)}" if missing else "")
                + (f"; unknown: {', '.join(unknown)}" if unknown else "")
            )
        features = Features(features.values[:, [found.index(name) for name in names]], names)
    if features.values.shape[1] != model.n_features:
        raise ValueError(f"X: expected {model.n_features} columns, got {features.values.shape[1]}")
    return features


def input_values(model: DecisionGraph, X: Any) -> FloatArray:
    """Return the finite numbers (n, n_inputs) that the nodes of a model compare, made of rows X."""
    features = match_columns(model, X)
    check_finite(features)
    if model.inputs is None:
        return np.ascontiguousarray(features.values, dtype=np.float64)
    return model.inputs.values(features.values)


def is_second_label(model: DecisionGraph, y: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Return whether each label is the model's second one."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y: expected {n} labels, one per row of X, got shape {labels.shape}")
    second = np.asarray(labels == model.labels[1], dtype=bool)
    if not (second | np.asarray(labels == model.labels[0], dtype=bool)).all():
        raise ValueError(f"y: expected labels of the model, {model.labels.tolist()}")
    return second
