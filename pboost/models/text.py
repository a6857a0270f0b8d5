"""Models in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pboost.data.derived import ColumnNames
from pboost.models.base import TwoClassModel
from pboost.models.nodes import Graph
from pboost.values import FloatArray


def summary(model: TwoClassModel) -> list[str]:
    """Return what is said of the whole model, its labels, certificate and cost."""
    record = model.record
    is_graph, one = isinstance(model, Graph), np.ndim(model.bias) == 0
    nodes, unit = ("node", "comparisons") if is_graph else ("round", "answers")
    names = [repr(label) for label in model.labels.tolist()]
    named = f"{names[0]} (-) and {names[1]} (+)" if one else ", ".join(names)
    lines = [
        f"{model.settings.get('builder', 'model')}: {_count(model.n_nodes, nodes)}, "
        f"{_count(model.n_features, 'feature')}, labels {named}",
        f"certificate {record.certificate[-1]:.4g}"
        + (f" ({model.certificate_note})" if model.certificate_note else "")
        + f", mean cost {record.cost[-1]:.4g} {unit} per training row",
        f"stopped: {record.stop_reason}",
    ]
    if np.any(model.bias):
        lines.append(f"every row starts with vote {signed(model.bias)}")
    return lines


def input_names(model: TwoClassModel) -> Sequence[str]:
    """Return how the numbers are written that nodes compare; columns are ``x[j]`` without names."""
    columns = ColumnNames(model.feature_names, model.n_features)
    return columns if model.inputs is None else model.inputs.names(columns)


def signed(vote: Any) -> str:
    """Return a vote, or the several of an exit, in words."""
    return " ".join(f"{one:+.4f}" for one in np.atleast_1d(vote).tolist())


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


def equation(intercept: float, slopes: FloatArray, names: tuple[str, ...] | None) -> str:
    """Return a linear function in words; columns are ``x[j]`` without names."""
    columns = ColumnNames(names, len(slopes))
    terms = [f"{intercept:.6g}"]
    for j in np.flatnonzero(slopes).tolist():
        sign = "-" if slopes[j] < 0 else "+"
        terms.append(f"{sign} {abs(slopes[j]):.6g}*{columns[j]}")
    return " ".join(terms)
