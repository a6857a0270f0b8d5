"""Models in words: the whole graph as text, and the path of one row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pboost.checks import is_frame
from pboost.graph import ABOVE, BELOW, OUT, DecisionGraph
from pboost.matching import input_values


@dataclass(frozen=True, slots=True)
class PathTest:
    """One test on the path of a row.

    Attributes
    ----------
    node : int
        Index of the weak classifier.
    name : str
        What it compares, such as the name of a column, ``x[j]`` where columns have no names.
    value : float
        The row's value there.
    threshold : float
        What the value is compared with.
    answer : int
        Exit taken: 0 for ``value <= threshold``, 1 for ``value > threshold``.
    vote : float
        Vote of that exit.
    total : float
        Decision value after it.
    """

    node: int
    name: str
    value: float
    threshold: float
    answer: int
    vote: float
    total: float

    def __str__(self) -> str:
        sign = "<=" if self.answer == BELOW else "> "
        return (
            f"node {self.node}: {self.name} = {self.value:.6g} {sign} {self.threshold:.6g}, "
            f"vote {self.vote:+.4f}, total {self.total:+.4f}"
        )


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a row gets its label: the tests on its path, their answers and votes.

    Attributes
    ----------
    tests : tuple of PathTest
        In the order in which they are evaluated.
    bias : float
        Decision value before the first test.
    score : float
        Decision value after the last.
    label : object
        Predicted label.
    """

    tests: tuple[PathTest, ...]
    bias: float
    score: float
    label: Any

    def __str__(self) -> str:
        lines = [str(test) for test in self.tests]
        return "\n".join([*lines, f"decision value {self.score:+.4f}: {self.label}"])


def explain(model: DecisionGraph, x: Any) -> Explanation:
    """Return the path of one row through the graph: tests, answers and votes.

    Parameters
    ----------
    model : DecisionGraph
        A fitted model.
    x : array_like of shape (d,) or (1, d), or data frame of one row
        The row.

    Returns
    -------
    Explanation
        Its string is one line per test.

    Raises
    ------
    ValueError
        If `x` is not one row of finite numbers with the model's columns.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, ["no", "no", "yes", "yes"], nodes=1)
    >>> print(pb.explain(model, [2.5]))
    node 0: x[0] = 2.5 >  1.5, vote +4.2587, total +4.2587
    decision value +4.2587: yes
    """
    if not is_frame(x):
        x = np.atleast_2d(np.asarray(x))
    values = input_values(model, x)
    if len(values) != 1:
        raise ValueError(f"x: expected one row, got {len(values)}")
    row, names = values[0], input_names(model)
    tests, total, node = [], model.bias, 0 if model.n_nodes else OUT
    while node != OUT:
        feature, threshold = int(model.feature[node]), float(model.threshold[node])
        answer = ABOVE if row[feature] > threshold else BELOW
        vote = float(model.vote[node, answer])
        total += vote
        value = float(row[feature])
        tests.append(PathTest(node, names[feature], value, threshold, answer, vote, total))
        node = int(model.next[node, answer])
    return Explanation(tuple(tests), model.bias, total, model.labels[int(total > 0)].item())


def describe(model: DecisionGraph) -> str:
    """Return the model as text: a summary, then one line per weak classifier.

    Parameters
    ----------
    model : DecisionGraph
        A fitted model.

    Returns
    -------
    str
        For each node its test and, for either exit, the vote and where it leads.

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
    names = input_names(model)
    record = model.record
    minus, plus = (repr(label) for label in model.labels.tolist())
    lines = [
        f"{model.settings.get('builder', 'model')}: {_count(model.n_nodes, 'node')}, "
        f"{_count(model.n_features, 'feature')}, labels {minus} (-) and {plus} (+)",
        f"certificate {record.certificate[-1]:.4g}"
        + (f" ({model.certificate_note})" if model.certificate_note else "")
        + f", mean cost {record.cost[-1]:.4g} comparisons per training row",
        f"stopped: {record.stop_reason}",
    ]
    if model.bias:
        lines.append(f"every row starts with vote {model.bias:+.4f}")
    for node in range(model.n_nodes):
        below, above = (
            f"vote {model.vote[node, exit_]:+.4f}, {_where(int(model.next[node, exit_]))}"
            for exit_ in (BELOW, ABOVE)
        )
        name = names[model.feature[node]]
        lines.append(f"node {node}: {name} <= {model.threshold[node]:.6g}: {below}; else {above}")
    return "\n".join(lines)


def input_names(model: DecisionGraph) -> tuple[str, ...]:
    """Return how the numbers are written that nodes compare; columns are ``x[j]`` without names."""
    columns = model.feature_names or tuple(f"x[{j}]" for j in range(model.n_features))
    return columns if model.inputs is None else model.inputs.names(columns)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


def _where(node: int) -> str:
    return "out" if node == OUT else f"to node {node}"
