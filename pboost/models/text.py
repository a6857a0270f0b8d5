"""Models in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pboost.data.derived import ColumnNames, Inputs
from pboost.models.base import Model, Predictor, TwoClassModel, TwoClassPredictor
from pboost.models.graph import ABOVE, BELOW, OUT
from pboost.models.new_rows import check_model
from pboost.values import FloatArray

#: How tests of columns are written.
_NO_INPUTS = Inputs()


def describe(model: Model) -> str:
    """Return the model as text: a summary, then one line per weak classifier.

    Parameters
    ----------
    model : DecisionGraph
        A fitted model.

    Returns
    -------
    str
        For each node its test and, for either exit, the vote and where it leads. Of a model of
        several members, each of them, indented.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, ["no", "no", "yes", "yes"], nodes=1)
    >>> print(pb.describe(model))
    fit_boosted_tree: 1 node, 1 feature, labels 'no' (-) and 'yes' (+)
    certificate 0.01414, mean cost 1 comparisons per training row
    stopped: no exit can be split
    node 0: x[0] <= 1.5: vote -4.2587, out; else vote +4.2587, out
    """
    check_model(model)
    if isinstance(model, Predictor):
        return model.describe()
    names, lines = input_names(model), summary(model)
    for node in range(model.n_nodes):
        below, above = (
            f"vote {model.vote[node, exit_]:+.4f}, {_where(int(model.next[node, exit_]))}"
            for exit_ in (BELOW, ABOVE)
        )
        name, threshold = names[model.feature[node]], float(model.threshold[node])
        question = _NO_INPUTS if model.inputs is None else model.inputs
        test = question.question(name, threshold)
        lines.append(f"node {node}: {test}: {below}; else {above}")
    return "\n".join(lines)


def summary(model: TwoClassModel) -> list[str]:
    """Return what is said of the whole model, its labels, certificate and cost."""
    record = model.record
    minus, plus = (repr(label) for label in model.labels.tolist())
    nodes, unit = (
        ("round", "answers") if isinstance(model, TwoClassPredictor) else ("node", "comparisons")
    )
    lines = [
        f"{model.settings.get('builder', 'model')}: {_count(model.n_nodes, nodes)}, "
        f"{_count(model.n_features, 'feature')}, labels {minus} (-) and {plus} (+)",
        f"certificate {record.certificate[-1]:.4g}"
        + (f" ({model.certificate_note})" if model.certificate_note else "")
        + f", mean cost {record.cost[-1]:.4g} {unit} per training row",
        f"stopped: {record.stop_reason}",
    ]
    if model.bias:
        lines.append(f"every row starts with vote {model.bias:+.4f}")
    return lines


def input_names(model: TwoClassModel) -> Sequence[str]:
    """Return how the numbers are written that nodes compare; columns are ``x[j]`` without names."""
    columns = ColumnNames(model.feature_names, model.n_features)
    return columns if model.inputs is None else model.inputs.names(columns)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


def _where(node: int) -> str:
    return "out" if node == OUT else f"to node {node}"


def equation(intercept: float, slopes: FloatArray, names: tuple[str, ...] | None) -> str:
    """Return a linear function in words; columns are ``x[j]`` without names."""
    columns = ColumnNames(names, len(slopes))
    terms = [f"{intercept:.6g}"]
    for j in np.flatnonzero(slopes).tolist():
        sign = "-" if slopes[j] < 0 else "+"
        terms.append(f"{sign} {abs(slopes[j]):.6g}*{columns[j]}")
    return " ".join(terms)
