"""Fits to samples that contain no rows of some classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pboost.data.node_inputs.functions import Oracles
from pboost.data.read.check_xy import AbsentClassError, as_features
from pboost.data.read.convert import RowTable
from pboost.data.targets import Classes, SoftLabels, fitted
from pboost.models.graph import DecisionGraph
from pboost.models.schema import TrainingRecord
from pboost.values import (
    Array,
    FloatArray,
    half_log_odds,
)

#: Value of the setting "builder" of a model that predicts a single class.
CONSTANT = "constant"
ONLY_CLASS = "all rows have the same class"


def fit_present(
    fit: Callable[..., Any],
    X: Any,
    y: Any,
    weights: FloatArray,
    options: Mapping[str, Any],
    rows: RowTable,
    classes: Classes,
) -> Any:
    """Call ``fit(X, y, sample_weight=weights, **options)``; leave out absent classes if necessary.

    If `fit` raises `AbsentClassError` because it requires rows of every class, it is called with
    the classes that are present. If only one class is present, the result is a constant model.

    Parameters
    ----------
    fit : callable
        A fit function.
    X, y, weights, options
        Arguments of `fit`.
    rows : RowTable
        The rows of X.
    classes : Classes
        The classes of the rows.
    """
    try:
        return fitted(fit, X, y, {"sample_weight": weights, **options})
    except AbsentClassError as error:
        if classes.classes is None:
            raise
        values, codes = classes.classes, classes.label
        mass = weights
        if classes.entries is not None:
            at = classes.entries.rows
            mass = weights[at] * y.share[at, codes]
        is_there = np.bincount(codes[mass > 0], minlength=len(values)) >= error.min_rows
        if is_there.all():  # no class is absent, so the error has another cause
            raise
    if not is_there.any():
        is_there[np.argmax(np.bincount(codes, mass, minlength=len(values)))] = True
    first = int(np.argmax(is_there))
    if is_there.sum() == 1:
        return constant_model(rows, values, first)
    # Rows of absent classes have no weight, so any class can be assigned to them.
    if isinstance(y, SoftLabels):
        part = y.share[:, is_there]
        total = part.sum(axis=1)
        weights = weights * total
        part[total == 0, 0] = 1.0
        y = SoftLabels(values[is_there], part / part.sum(axis=1, keepdims=True))
        return fitted(fit, X, y, {"sample_weight": weights, **options})
    kept = is_there[codes]
    return fit(
        X,
        values[np.where(kept, codes, first)],
        sample_weight=np.where(kept, weights, 0.0),
        **options,
    )


def constant_model(rows: RowTable, classes: Array, code: int) -> DecisionGraph:
    """Return a model without nodes that predicts one class for all rows."""
    pair = np.sort([code, code + 1 if code + 1 < len(classes) else code - 1])
    is_second = bool(pair[1] == code)
    vote = half_log_odds(float(is_second), float(not is_second), 0.0)
    record = TrainingRecord(np.array([math.exp(-abs(vote))]), np.zeros(1), ONLY_CLASS)
    none, pairs = np.empty(0), np.empty((0, 2))
    return DecisionGraph(
        none.astype(np.int32),
        none,
        pairs.astype(np.int32),
        pairs,
        classes[pair],
        rows.n_features,
        rows.names,
        vote,
        {"builder": CONSTANT},
        record,
        # Only graphs of functions support rows that are not numeric, so the list of functions is
        # empty.
        inputs=None if _are_numbers(rows) else Oracles((), True, rows.row_shape),
    )


def is_constant(model: object) -> bool:
    """Return whether a model was made by `constant_model`."""
    return isinstance(model, DecisionGraph) and model.settings.get("builder") == CONSTANT


def named_options(options: Mapping[str, object], models: list[Any]) -> dict[str, Any]:
    """Return the options in the form in which models store them; objects become names."""
    fitted = next((model for model in models if not is_constant(model)), None)
    if fitted is None:
        return {name: _named(value) for name, value in options.items()}
    named = getattr(fitted, "settings", {})
    return {name: named.get(name, value) for name, value in options.items()}


def _named(value: object) -> Any:
    """Return the value of an option in a form that can be stored in a file."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    settings = getattr(value, "settings", None)
    return settings() if callable(settings) else getattr(value, "__name__", type(value).__name__)


def _are_numbers(rows: RowTable) -> bool:
    """Return whether rows form a numeric matrix."""
    try:
        as_features(rows.source)
    except (TypeError, ValueError):
        return False
    return True
