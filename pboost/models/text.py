"""Text descriptions of models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pboost.data.node_inputs.inputs import ColumnNames, Inputs, Subsets, names_in_sums
from pboost.data.read.table import listed
from pboost.models.base import Model, TwoClassModel
from pboost.models.graph_arrays import Graph
from pboost.models.schema import OutOfBag
from pboost.values import Array, FloatArray

#: Formats the splits of models that have no preprocessing.
PLAIN = Inputs()
#: Threshold of a node that separates missing values from all other values.
MOST = float(np.finfo(np.float64).max)


def headline(model: Model, *parts: str) -> str:
    """Return the first line of a description, with the features and the target at the end."""
    of = "numbers" if model.classes is None else f"labels [{named_labels(model.classes)}]"
    return ", ".join([*parts, counted(model.n_features, "feature"), of])


def named_labels(classes: Array) -> str:
    """Return the class labels as a list, shortened if there are many."""
    return listed([repr(label) for label in classes.tolist()], "classes")


def of_bags(oob: OutOfBag | None) -> list[str]:
    """Return a line with the out-of-bag error, or no line if it is unknown."""
    if oob is None or not np.isfinite(oob.error):
        return []
    return [f"out-of-bag error {oob.error:.6g}"]


def summary(model: TwoClassModel) -> list[str]:
    """Return the first lines of a description: size, classes, certificate and cost."""
    record = model.record
    node, unit = model.counted_in
    names = [repr(label) for label in model.classes.tolist()]
    is_many = bool(np.ndim(model.bias))
    named = named_labels(model.classes) if is_many else f"{names[0]} (-) and {names[1]} (+)"
    lines = [
        f"{model.settings.get('builder', 'model')}: {counted(model.n_nodes, node)}, "
        f"{counted(model.n_features, 'feature')}, labels {named}",
        f"certificate {record.certificate[-1]:.4g}"
        + (f" ({model.certificate_note})" if model.certificate_note else "")
        + f", mean cost {record.cost[-1]:.4g} {unit} per training row",
        f"stopped: {record.stop_reason}",
    ]
    if np.any(model.bias):
        lines.append(f"initial vote of every row: {signed(model.bias)}")
    return lines


def input_names(model: TwoClassModel) -> Sequence[str]:
    """Return the names of the inputs of nodes, such as ``x[j]`` for features without names."""
    if model.sums_features:
        columns = names_in_sums(model.feature_names, model.n_features, model.table)
    else:
        columns = ColumnNames(model.feature_names, model.n_features, model.table)
    return columns if model.inputs is None else model.inputs.names(columns)


def question(model: Graph, names: Sequence[str], node: int) -> str:
    """Return the condition of exit 0 of a node as text.

    `names` is the result of `input_names`.
    """
    number, threshold = int(model.feature[node]), float(model.threshold[node])
    if asks_if_missing(model, node):
        return f"{names[number]} is not missing"
    return (model.inputs or PLAIN).question(names, number, threshold)


def answer(model: Graph, names: Sequence[str], node: int, value: Callable[[int], float]) -> str:
    """Describe the value of a row at a node; return "" if the node is a plain comparison.

    `value` is a function that returns the value of an input for this row.
    """
    number, inputs = int(model.feature[node]), model.inputs or PLAIN
    row_value = value(number)
    if model.sides is None or not (np.isnan(row_value) or asks_if_missing(model, node)):
        return inputs.answer(names, number, value)
    if not np.isnan(row_value):
        return f"{names[number]} = {row_value:.6g} is not missing"
    is_above = bool(model.sides[node])
    if isinstance(inputs, Subsets) and number >= inputs.n_columns:
        column, levels = inputs.words(names, number)
        return f"{column} is missing, treated as {'' if is_above else 'other than '}{levels}"
    text = f"{names[number]} is missing"
    if asks_if_missing(model, node):
        return text
    return f"{text}, treated as {'>' if is_above else '<='} {model.threshold[node]:.6g}"


def asks_if_missing(model: Graph, node: int) -> bool:
    """Return whether a node separates missing values from all other values of a feature."""
    is_above = model.sides is not None and model.sides[node] == 1
    return bool(is_above and model.threshold[node] == MOST)


def of_missing(model: Graph, node: int) -> tuple[str, str]:
    """Return the note about missing values for each exit of a node.

    Both notes are empty if the feature had no missing values in training.
    """
    if model.table is None or model.sides is None or asks_if_missing(model, node):
        return "", ""
    number, inputs = int(model.feature[node]), model.inputs
    if isinstance(inputs, Subsets) and number >= inputs.n_columns:
        number = int(inputs.column[number - inputs.n_columns])
    if not model.table.has_missing[number]:
        return "", ""
    return ("", " or missing") if model.sides[node] else (" or missing", "")


def signed(vote: Any) -> str:
    """Format the vote of an exit, or its votes for several classes."""
    return " ".join(f"{number:+.4f}" for number in np.atleast_1d(vote).tolist())


def counted(n: int, singular: str, several: str = "") -> str:
    """Return a number with its noun, such as "1 tree" or "2 trees"."""
    return f"{n} {singular if n == 1 else several or singular + 's'}"


def equation(intercept: float, slopes: FloatArray, names: tuple[str, ...] | None) -> str:
    """Format a linear function; features without names are ``x[j]``."""
    columns = ColumnNames(names, len(slopes))
    terms = [f"{intercept:.6g}"]
    for j in np.flatnonzero(slopes).tolist():
        sign = "-" if slopes[j] < 0 else "+"
        terms.append(f"{sign} {abs(slopes[j]):.6g}*{columns[j]}")
    return " ".join(terms)


def sides_of(trees: Any, node: int, names: ColumnNames) -> list[str]:
    """Return the conditions that lead from a node of `Trees` to its two children."""
    number, threshold = int(trees.feature[node]), float(trees.threshold[node])
    if number >= len(names):
        sets = Subsets(trees.n_features, trees.subset_column, trees.subset)
        column = names[sets.column[number - len(names)]]
        return [f"{column} {sets.side(names, number, is_in)}" for is_in in (False, True)]
    if trees.asks_whether_missing(node):
        return [f"{names[number]} is not missing", f"{names[number]} is missing"]
    return [f"{names[number]} {sign} {threshold:.6g}" for sign in ("<=", "> ")]
