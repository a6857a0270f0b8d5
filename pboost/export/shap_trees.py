"""Trees for TreeSHAP, which divides the value of a row among its columns."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from pboost.export.level_tests import by_thresholds
from pboost.export.packages import needed
from pboost.models.base import Model
from pboost.models.tree_record import LEAF, TreeSum
from pboost.models.trees_of import as_trees
from pboost.values import FloatArray, check_integer

#: The least weight of a node, as a share of that of its tree: TreeSHAP refuses empty leaves.
LEAST = 2.0**-30


def to_shap(model: Model | TreeSum, X: Any = None, *, max_nodes: int = 100_000) -> dict[str, Any]:
    """Return a model as the dictionary that ``shap.TreeExplainer`` takes.

    The sums of SHAP values and the expected value are the values of a `TreeSum`: decision values,
    of trees and forests shares of the labels. Rounding errors are those of TreeSHAP's recurrence,
    and grow with the number of different columns on a path. What explains rows needs them as the
    trees read them, ``trees_of(model).rows(X)``.

    Parameters
    ----------
    model : DecisionGraph, Tree, Forest, StagewiseModel, a model of models, or TreeSum
        A fitted model, see `trees_of`, or its trees.
    X : array_like of shape (n, d), or data frame, optional
        Rows by which nodes are weighted, see `trees_of`: the expected value is the mean over them.
        Needed of graphs, which do not know weights; a soft one has then those of its answers.
    max_nodes : int
        The most nodes that the trees may have. Tests of sets of levels become comparisons of level
        numbers, and what follows them is repeated for each run of levels.

    Returns
    -------
    dict
        Of ``trees``, ``base_offset`` and dtypes. Nodes to which no row comes have a weight of
        2**-30 of their tree.

    Raises
    ------
    TypeError, ValueError
        As in `trees_of`; and if no weights are known.

    References
    ----------
    .. [1] S. M. Lundberg et al., From local explanations to global understanding with explainable
       AI for trees, Nature Machine Intelligence 2 (2020).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> trees = pb.to_shap(pb.fit_adaboost(X, [0, 1, 0, 1], rounds=2), X)["trees"]
    >>> len(trees), trees[0]["node_sample_weight"].tolist()
    (2, [4.0, 1.0, 3.0])
    """
    trees = by_thresholds(as_trees(model, X, max_nodes), max_nodes)
    if trees.weight is None:
        raise ValueError(
            "X: expected rows by which nodes are weighted, such as those of the fit, as a graph "
            "does not know how many came to its nodes; got None"
        )
    value, weight = values_of_sum(trees), positive_weights(trees)
    side = np.zeros(trees.n_nodes, np.intp) if trees.missing is None else trees.missing
    missing = trees.children[np.arange(trees.n_nodes), side]
    columns: dict[str, Any] = {
        "children_left": trees.children[:, 0],
        "children_right": trees.children[:, 1],
        "children_default": missing,
        "features": trees.feature,
        "thresholds": trees.threshold,
        "values": value,
        "node_sample_weight": weight,
    }
    return {
        "trees": [
            {name: array[first:stop] for name, array in columns.items()}
            for first, stop in pairwise(trees.root.tolist())
        ],
        "base_offset": trees.bias.copy(),
        "internal_dtype": np.float64,
        "input_dtype": np.float64,
    }


def to_shapiq(
    model: Model | TreeSum, X: Any = None, *, value: int = 0, max_nodes: int = 100_000
) -> list[Any]:
    """Return a model as the list of trees that ``shapiq.TreeExplainer`` takes.

    It explains interactions of columns. What it explains are rows without missing values: shapiq
    does not know where these go.

    Parameters
    ----------
    model : DecisionGraph, Tree, Forest, StagewiseModel, a model of models, or TreeSum
        A fitted model, see `trees_of`, or its trees.
    X : array_like of shape (n, d), or data frame, optional
        Rows by which nodes are weighted, see `to_shap`.
    value : int
        Which of several values is explained, by its number from 0.
    max_nodes : int
        The most nodes that the trees may have, see `to_shap`.

    Returns
    -------
    list of shapiq.explainer.tree.TreeModel
        Trees that compare columns; the rest, `TreeSum.bias` among it, is in the first of them.

    Raises
    ------
    ImportError
        If shapiq is not installed: the extra ``shap``.
    TypeError, ValueError
        As in `to_shap`; and if no tree compares a column.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.twonorm(100, rng=0)
    >>> found = pb.to_shapiq(pb.fit_adaboost(X, y, rounds=5), X)  # doctest: +SKIP
    >>> shapiq.TreeExplainer(found, max_order=2).explain(X[0])  # doctest: +SKIP
    """
    trees = by_thresholds(as_trees(model, X, max_nodes), max_nodes)
    column = check_integer("value", value, least=0, most=trees.n_values - 1)
    parts = to_shap(trees, max_nodes=max_nodes)["trees"]
    base = float(trees.bias[column])
    constants = [float(tree["values"][0, column]) for tree in parts if len(tree["values"]) == 1]
    asked = [tree for tree in parts if len(tree["values"]) > 1]
    if not asked:
        raise ValueError("model: expected trees that compare columns for shapiq, got numbers only")
    make = needed("shapiq.explainer.tree", "to_shapiq", "shap").TreeModel
    names = ("children_left", "children_right", "features", "thresholds", "node_sample_weight")
    found = []
    for place, tree in enumerate(asked):
        more = base + sum(constants) if place == 0 else 0.0
        values = tree["values"][:, column] + more
        found.append(make(values=values, **{name: np.array(tree[name]) for name in names}))
    return found


def values_of_sum(trees: TreeSum) -> FloatArray:
    """Return what each node adds to each of J values, (n_nodes, J), where they are summed up."""
    value = trees.value
    if trees.target is not None:
        of = trees.by_node(trees.target)
        value = np.where(of[:, None] == np.arange(trees.n_values), value, 0.0)
    return value / trees.n_trees if trees.aggregation == "mean" else value


def positive_weights(trees: TreeSum) -> FloatArray:
    """Return weights of which none is 0, those of nodes the sums of those of their children."""
    assert trees.weight is not None
    start = trees.start
    weight = np.maximum(trees.weight, LEAST * np.maximum(trees.weight[start], LEAST))
    for node in np.flatnonzero(trees.feature != LEAF)[::-1].tolist():  # children first
        weight[node] = weight[trees.children[node] + start[node]].sum()
    return weight
