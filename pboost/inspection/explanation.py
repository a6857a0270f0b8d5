"""What happens to rows in models: the path of one in words, those of many through a tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pboost.data.convert import as_array, is_frame, is_series
from pboost.data.functions import Oracles
from pboost.models.forest import Forest
from pboost.models.graph import DecisionGraph
from pboost.models.new_rows import as_graph, input_values, match_rows, table_for
from pboost.models.node_walk import goes_right
from pboost.models.nodes import ABOVE, BELOW, OUT
from pboost.models.probit_trees import ProbitTree
from pboost.models.text import input_names
from pboost.models.trees import LEAF, Tree, tree_only
from pboost.values import IntArray


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
    said : str
        What was found, in words, where it is no comparison.
    """

    node: int
    name: str
    value: float
    threshold: float
    answer: int
    vote: float
    total: float
    said: str = ""

    def __str__(self) -> str:
        sign = "<=" if self.answer == BELOW else "> "
        said = self.said or f"{self.name} = {self.value:.6g} {sign} {self.threshold:.6g}"
        return f"node {self.node}: {said}, vote {self.vote:+.4f}, total {self.total:+.4f}"


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
    x : array_like of shape (d,) or (1, d), Series, or data frame of one row
        The row. The values of a pandas Series go by their names, its index.

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
    model = as_graph(model, "explain")
    value_of, names = _row_values(model, x), input_names(model)
    tests, total, node = [], model.bias, 0 if model.n_nodes else OUT
    while node != OUT:
        feature, threshold = int(model.feature[node]), float(model.threshold[node])
        value = value_of(feature)
        answer = ABOVE if goes_right(value, threshold) else BELOW
        vote = float(model.vote[node, answer])
        total += vote
        said = model.inputs is not None and model.inputs.answer(names[feature], value)
        test = PathTest(node, names[feature], value, threshold, answer, vote, total, said or "")
        tests.append(test)
        node = int(model.next[node, answer])
    return Explanation(tuple(tests), model.bias, total, model.labels[int(total > 0)].item())


def _row_values(model: DecisionGraph, x: Any) -> Callable[[int], float]:
    """Return the function that gives the numbers that nodes compare, of one row."""
    if isinstance(model.inputs, Oracles):
        functions, shape, x = model.inputs, model.inputs.row_shape, table_for(model, x)
        if not is_frame(x):
            x = as_array(x)
            # One row as the function would be given it, or a matrix of one row.
            x = x[None] if x.shape == shape or (shape is None and x.ndim == 1) else x
        rows = match_rows(model, x)
        _check_one(rows.n_rows)
        return lambda number: float(functions.value(number, rows, np.arange(1))[0])
    if not (is_series(x) or is_frame(x)):
        x = ([[x]], [x], x)[min(np.ndim(x), 2)]
    values = input_values(model, x)
    _check_one(len(values))
    return lambda feature: float(values[0, feature])


def _check_one(n_rows: int) -> None:
    if n_rows != 1:
        raise ValueError(f"x: expected one row, got {n_rows}")


def apply(tree: Tree | Forest | ProbitTree, X: Any) -> IntArray:
    """Return the leaf that each row reaches.

    Parameters
    ----------
    tree : Tree, ProbitTree or Forest
        A fitted tree, or forest.
    X : array_like of shape (n, d), or data frame
        Finite numbers, with the columns of training.

    Returns
    -------
    ndarray of int32, shape (n,); of a forest (n, n_trees)
        Numbers of leaves, from 0 on, from left to right; ``tree.leaf`` has them by node,
        of a ProbitTree ``tree.partition.leaf``.

    Examples
    --------
    >>> import pboost as pb
    >>> tree = pb.fit_cart([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "c"])
    >>> pb.apply(tree, [[0.5], [2.2], [9.0]]).tolist()
    [0, 1, 2]
    """
    if isinstance(tree, Forest):
        return tree.leaves_of(X)
    if isinstance(tree, ProbitTree):
        tree = tree.partition
    return tree_only(tree).leaf[tree.nodes_of(X)]


def decision_path(tree: Tree, X: Any) -> list[IntArray]:
    """Return the nodes through which each row goes.

    Parameters
    ----------
    tree : Tree
        A fitted tree.
    X : array_like of shape (n, d), or data frame
        Finite numbers, with the columns of training.

    Returns
    -------
    list of ndarray of int32
        For each row its nodes, from the root to the leaf.

    Examples
    --------
    >>> import pboost as pb
    >>> tree = pb.fit_cart([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "c"])
    >>> [path.tolist() for path in pb.decision_path(tree, [[0.5], [9.0]])]
    [[0, 1], [0, 2, 4]]
    """
    ends = tree_only(tree).nodes_of(X)
    parent = parents(tree)
    paths = {}
    for leaf in np.unique(ends).tolist():
        path = [leaf]
        while path[-1]:
            path.append(int(parent[path[-1]]))
        paths[leaf] = np.array(path[::-1], dtype=np.int32)
    return [paths[leaf] for leaf in ends.tolist()]


def parents(tree: Tree) -> IntArray:
    """Return the parent of each node, -1 of the root."""
    parent = np.full(tree.n_nodes, -1, dtype=np.int32)
    inner = np.flatnonzero(tree.feature != LEAF)
    parent[tree.children[inner].ravel()] = np.repeat(inner, 2)
    return parent
