"""Export of tree models to TreeSHAP. Category sets become thresholds on category codes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pboost.data.node_inputs.inputs import WORDS
from pboost.data.read.table import MOST_LEVELS
from pboost.export.onnx_treelite import needed
from pboost.models.as_trees import as_trees
from pboost.models.base import Model
from pboost.models.tree_ensemble import (
    LEAF,
    NO_SET,
    TreeEnsemble,
    positive_weights,
    values_of_sum,
)
from pboost.values import TableLike, check_integer


class Runs(NamedTuple):
    """Intervals of feature values at a node, with thresholds `cut` between them."""

    cut: list[float]
    side: list[int]

    @property
    def copies(self) -> tuple[int, int]:
        """Number of intervals that go to each child."""
        return self.side.count(0), self.side.count(1)


def _runs_of_set(trees: TreeEnsemble, number: int) -> Runs:
    """Return at least two intervals of category codes for a set. The last interval may be empty."""
    is_in = np.zeros(MOST_LEVELS + 1, dtype=np.int8)
    is_in[trees.categories(number)] = 1
    is_in[MOST_LEVELS] = (
        1 - is_in[MOST_LEVELS - 1] if (is_in[:MOST_LEVELS] == is_in[0]).all() else is_in[-2]
    )
    last = np.flatnonzero(np.diff(is_in))
    return Runs((last + 0.5).tolist(), is_in[np.append(last, MOST_LEVELS)].tolist())


def _runs(trees: TreeEnsemble) -> dict[int, Runs]:
    """Return the intervals of all inner nodes. Children come before their parents."""
    sets = [_runs_of_set(trees, number) for number in range(trees.n_sets)]
    runs = {}
    for node in np.flatnonzero(trees.feature != LEAF)[::-1].tolist():
        number = int(trees.category_set[node])
        is_set = number != NO_SET
        runs[node] = sets[number] if is_set else Runs([float(trees.threshold[node])], [0, 1])
    return runs


def _count(trees: TreeEnsemble, runs: dict[int, Runs]) -> int:
    """Return the number of nodes after sets are replaced by thresholds."""
    size, below = [1] * trees.n_nodes, (trees.children + trees.start[:, None]).tolist()
    for node, of in runs.items():
        copies = zip(of.copies, below[node], strict=True)
        size[node] = len(of.cut) + sum(n * size[child] for n, child in copies)
    return sum(size[root] for root in trees.root[:-1].tolist())


def by_thresholds(trees: TreeEnsemble, max_nodes: int) -> TreeEnsemble:
    """Replace category sets by thresholds, or raise a ValueError if there are too many nodes.

    A set is replaced by several nodes with thresholds on the category codes. The subtrees are
    repeated for each interval of codes. The weight of a child is divided among its intervals. SHAP
    values do not depend on this division, because all these nodes use the same feature.
    """
    if not trees.n_sets:
        return trees
    runs = _runs(trees)
    size = _count(trees, runs)
    if size > max_nodes:
        raise ValueError(
            f"max_nodes: expected at least {size}, the number of nodes after category sets are "
            f"replaced by thresholds, got {max_nodes}; to_json, to_onnx and to_treelite support "
            "sets"
        )
    known = np.zeros(trees.n_nodes) if trees.weight is None else trees.weight
    below = trees.children + trees.start[:, None]

    def left(node: int, run: int) -> float:
        """Return the weight of a node without its first `run` intervals."""
        of = runs[node]
        shares = [of.side[run:].count(k) / n for k, n in enumerate(of.copies)]
        return float(known[below[node]] @ shares)

    assert trees.missing is not None
    node, children, root = list[int](), list[list[int]](), [0]
    threshold, missing, weight = list[float](), list[int](), list[float]()
    for first in trees.root[:-1].tolist():
        waiting = [(first, 0, 1.0, -1, 0)]  # (node, interval, share of the weight, parent, branch)
        while waiting:
            number, run, share, parent, exit_ = waiting.pop()
            place = len(node) - root[-1]
            if parent >= 0:
                children[root[-1] + parent][exit_] = place
            node.append(number)
            children.append([LEAF, LEAF])
            weight.append(share * (left(number, run) if run else known[number]))
            if number not in runs:
                threshold.append(0.0)
                missing.append(0)
                continue
            of = runs[number]
            threshold.append(of.cut[run])
            missing.append(int(trees.missing[number] != of.side[run]))
            ends = [(int(below[number, k]), 0, share / n, place) for k, n in enumerate(of.copies)]
            if run + 1 < len(of.cut):
                waiting.append((number, run + 1, share, place, 1))
            else:
                waiting.append((*ends[of.side[run + 1]], 1))
            waiting.append((*ends[of.side[run]], 0))
        root.append(len(node))
    return replace(
        trees,
        root=np.array(root, np.int32),
        feature=trees.feature[node],
        threshold=np.array(threshold),
        children=np.array(children),
        missing=np.array(missing, np.uint8),
        category_set=np.full(len(node), NO_SET),
        value=trees.value[node],
        sets=np.empty((0, WORDS), np.uint64),
        weight=None if trees.weight is None else np.array(weight),
    )


# Export to shap and shapiq


def to_shap(
    model: Model | TreeEnsemble, X: TableLike | None = None, *, max_nodes: int = 100_000
) -> dict[str, Any]:
    """Return a model as a dictionary for ``shap.TreeExplainer``.

    SHAP values and the expected value add up to the decision values or, for trees and forests, to
    the class shares. Rounding errors of TreeSHAP grow with the number of different features on a
    path. Rows to explain must be passed as ``as_tree_ensemble(model).rows(X)``.

    Parameters
    ----------
    model : fitted model of pboost, or TreeEnsemble
        A model that is a sum of trees, or the result of `as_tree_ensemble`.
    X : array_like of shape (n, d), or data frame, optional
        Rows that define the weights of the nodes, see `as_tree_ensemble`. The expected value is the
        mean over these rows. `X` is required for decision graphs, which do not store weights. For a
        soft tree, the observation model defines how a row is divided among the nodes.
    max_nodes : int
        Maximum number of nodes of the trees. Category sets increase the number of nodes: they are
        converted to thresholds on category codes, and subtrees are repeated for each interval.

    Returns
    -------
    dict
        Dictionary with ``trees``, ``base_offset`` and dtypes. A node without rows gets a weight of
        2**-30 times the weight of its tree.

    Raises
    ------
    TypeError, ValueError
        If the weights of the nodes are unknown. See also `as_tree_ensemble`.

    References
    ----------
    .. [1] S. M. Lundberg et al., From local explanations to global understanding with explainable
       AI for trees, Nature Machine Intelligence 2 (2020).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> trees = pb.export.to_shap(pb.fit_adaboost(X, [0, 1, 0, 1], n_estimators=2), X)["trees"]
    >>> len(trees), trees[0]["node_sample_weight"].tolist()
    (2, [4.0, 1.0, 3.0])
    """
    trees = by_thresholds(as_trees(model, X, max_nodes), max_nodes)
    if trees.weight is None:
        raise ValueError(
            "X: expected rows that define the weights of nodes, such as the training data, got "
            "None; a decision graph does not store these weights"
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
    model: Model | TreeEnsemble,
    X: TableLike | None = None,
    *,
    value: int = 0,
    max_nodes: int = 100_000,
) -> list[Any]:
    """Return a model as a list of trees for ``shapiq.TreeExplainer``.

    shapiq explains feature interactions. The rows to explain must not have missing values, because
    shapiq does not support them.

    Parameters
    ----------
    model : fitted model of pboost, or TreeEnsemble
        A model that is a sum of trees, or the result of `as_tree_ensemble`.
    X : array_like of shape (n, d), or data frame, optional
        Rows that define the weights of the nodes, see `to_shap`.
    value : int
        Index of the decision value to explain, if the model has several values.
    max_nodes : int
        Maximum number of nodes of the trees, see `to_shap`.

    Returns
    -------
    list of shapiq.explainer.tree.TreeModel
        The trees that have splits. Constants, such as `TreeEnsemble.bias`, are added to the first
        tree.

    Raises
    ------
    ImportError
        If shapiq is not installed: ``pip install "pboosting[shap]"``.
    TypeError, ValueError
        If no tree has a split. See also `to_shap`.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.twonorm(100, rng=0)
    >>> trees = pb.export.to_shapiq(pb.fit_adaboost(X, y, n_estimators=5), X)  # doctest: +SKIP
    >>> shapiq.TreeExplainer(trees, max_order=2).explain(X[0])  # doctest: +SKIP
    """
    trees = by_thresholds(as_trees(model, X, max_nodes), max_nodes)
    column = check_integer("value", value, min_value=0, max_value=trees.n_values - 1)
    parts = to_shap(trees, max_nodes=max_nodes)["trees"]
    base = float(trees.bias[column])
    constants = [float(tree["values"][0, column]) for tree in parts if len(tree["values"]) == 1]
    asked = [tree for tree in parts if len(tree["values"]) > 1]
    if not asked:
        raise ValueError("model: expected trees with splits for shapiq, got only constants")
    make = needed("shapiq.explainer.tree", "to_shapiq", "shap").TreeModel
    names = ("children_left", "children_right", "features", "thresholds", "node_sample_weight")
    shapiq_trees = []
    for place, tree in enumerate(asked):
        more = base + sum(constants) if place == 0 else 0.0
        values = tree["values"][:, column] + more
        shapiq_trees.append(make(values=values, **{name: np.array(tree[name]) for name in names}))
    return shapiq_trees
