"""Models in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs import ColumnNames
from pboost.data.table import listed
from pboost.models.base import Model, TwoClassModel
from pboost.models.stored import OutOfBag
from pboost.values import FloatArray


def headline(model: Model, *said: str) -> str:
    """Return the first line of a text: what is said, the columns, and what is predicted."""
    of = "numbers" if model.labels is None else f"labels [{named_labels(model.labels)}]"
    return ", ".join([*said, counted(model.n_features, "feature"), of])


def named_labels(labels: NDArray[Any]) -> str:
    """Return labels as a line lists them, of many the first ones."""
    return listed([repr(label) for label in labels.tolist()], "labels")


def of_bags(oob: OutOfBag | None) -> list[str]:
    """Return what is said of rows out of the bags, if anything is known."""
    if oob is None or not np.isfinite(oob.error):
        return []
    return [f"out-of-bag error {oob.error:.6g}"]


def summary(model: TwoClassModel) -> list[str]:
    """Return what is said of the whole model, its labels, certificate and cost."""
    record = model.record
    node, unit = model.counted_in
    names = [repr(label) for label in model.labels.tolist()]
    is_many = bool(np.ndim(model.bias))
    named = named_labels(model.labels) if is_many else f"{names[0]} (-) and {names[1]} (+)"
    lines = [
        f"{model.settings.get('builder', 'model')}: {counted(model.n_nodes, node)}, "
        f"{counted(model.n_features, 'feature')}, labels {named}",
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
    columns = ColumnNames(model.feature_names, model.n_features, model.table)
    return columns if model.inputs is None else model.inputs.names(columns)


def signed(vote: Any) -> str:
    """Return a vote, or the several of an exit, in words."""
    return " ".join(f"{one:+.4f}" for one in np.atleast_1d(vote).tolist())


def counted(n: int, one: str, several: str = "") -> str:
    """Return a number of things with their noun."""
    return f"{n} {one if n == 1 else several or one + 's'}"


def equation(intercept: float, slopes: FloatArray, names: tuple[str, ...] | None) -> str:
    """Return a linear function in words; columns are ``x[j]`` without names."""
    columns = ColumnNames(names, len(slopes))
    terms = [f"{intercept:.6g}"]
    for j in np.flatnonzero(slopes).tolist():
        sign = "-" if slopes[j] < 0 else "+"
        terms.append(f"{sign} {abs(slopes[j]):.6g}*{columns[j]}")
    return " ".join(terms)
