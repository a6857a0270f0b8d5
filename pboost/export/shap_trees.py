"""Trees for TreeSHAP, with thresholds between level numbers in place of sets of levels."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pboost.data.node_inputs.inputs import WORDS
from pboost.data.read.table import MOST_LEVELS
from pboost.export.runtimes import needed
from pboost.models.base import Model
from pboost.models.tree_record import LEAF, NO_SET, TreeEnsemble
from pboost.models.trees_of import as_trees
from pboost.values import FloatArray, TableLike, check_integer


class Runs(NamedTuple):
    """The values that a node tests, in order: `cut` between runs of them, and each run's child."""

    cut: list[float]
    side: list[int]

    @property
    def copies(self) -> tuple[int, int]:
        """The number of runs that go to either child."""
        return self.side.count(0), self.side.count(1)


def _runs_of_set(trees: TreeEnsemble, number: int) -> Runs:
    """Return the runs of the levels of a set; at least two, the last of which may have no level."""
    is_in = np.zeros(MOST_LEVELS + 1, dtype=np.int8)
    is_in[trees.categories(number)] = 1
    is_in[MOST_LEVELS] = (
        1 - is_in[MOST_LEVELS - 1] if (is_in[:MOST_LEVELS] == is_in[0]).all() else is_in[-2]
    )
    last = np.flatnonzero(np.diff(is_in))
    return Runs((last + 0.5).tolist(), is_in[np.append(last, MOST_LEVELS)].tolist())


def _runs(trees: TreeEnsemble) -> dict[int, Runs]:
    """Return the runs of all nodes that are no leaves, children first."""
    sets = [_runs_of_set(trees, number) for number in range(trees.n_sets)]
    runs = {}
    for node in np.flatnonzero(trees.feature != LEAF)[::-1].tolist():
        number = int(trees.category_set[node])
        is_set = number != NO_SET
        runs[node] = sets[number] if is_set else Runs([float(trees.threshold[node])], [0, 1])
    return runs


def _count(trees: TreeEnsemble, runs: dict[int, Runs]) -> int:
    """Return the number of nodes of the trees when sets are comparisons of level numbers."""
    size, below = [1] * trees.n_nodes, (trees.children + trees.start[:, None]).tolist()
    for node, of in runs.items():
        copies = zip(of.copies, below[node], strict=True)
        size[node] = len(of.cut) + sum(n * size[child] for n, child in copies)
    return sum(size[root] for root in trees.root[:-1].tolist())


def by_thresholds(trees: TreeEnsemble, max_nodes: int) -> TreeEnsemble:
    """Return the same trees without sets; ValueError where they have more than so many nodes.

    A set is a chain of comparisons, in which what follows is repeated for each run of levels. The
    weight of a child is divided among its runs; TreeSHAP finds the same however it is divided,
    as all of them compare one column.
    """
    if not trees.n_sets:
        return trees
    runs = _runs(trees)
    size = _count(trees, runs)
    if size > max_nodes:
        raise ValueError(
            f"max_nodes: expected at least {size}, the nodes of the trees where tests of sets of "
            f"levels are comparisons of level numbers, got {max_nodes}; to_json, to_onnx and "
            "to_treelite hold the sets themselves"
        )
    known = np.zeros(trees.n_nodes) if trees.weight is None else trees.weight
    below = trees.children + trees.start[:, None]

    def left(node: int, run: int) -> float:
        """Return the weight of a node less that of the runs before."""
        of = runs[node]
        shares = [of.side[run:].count(k) / n for k, n in enumerate(of.copies)]
        return float(known[below[node]] @ shares)

    assert trees.missing is not None
    node, children, root = list[int](), list[list[int]](), [0]
    threshold, missing, weight = list[float](), list[int](), list[float]()
    for first in trees.root[:-1].tolist():
        waiting = [(first, 0, 1.0, -1, 0)]  # node, run, share of its weight, parent and exit
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


# TreeSHAP, which divides the value of a row among its columns

#: The least weight of a node, as a share of that of its tree: TreeSHAP refuses empty leaves.
LEAST = 2.0**-30


def to_shap(
    model: Model | TreeEnsemble, X: TableLike | None = None, *, max_nodes: int = 100_000
) -> dict[str, Any]:
    """Return a model as the dictionary that ``shap.TreeExplainer`` takes.

    The sums of SHAP values and the expected value are the values of a `TreeEnsemble`: decision
    values, of trees and forests shares of the labels. Rounding errors are those of TreeSHAP's
    recurrence, and grow with the number of different columns on a path. What explains rows needs
    them as the trees read them, ``as_tree_ensemble(model).rows(X)``.

    Parameters
    ----------
    model : DecisionGraph, Tree, RandomForest, GradientBoostingModel, a model of models, or
    TreeEnsemble
        A fitted model, see `as_tree_ensemble`, or its trees.
    X : array_like of shape (n, d), or data frame, optional
        Rows by which nodes are weighted, see `as_tree_ensemble`: the expected value is the mean
        over them. Needed of graphs, which do not know weights; a soft one has then those of its
        answers.
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
        As in `as_tree_ensemble`; and if no weights are known.

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
    model: Model | TreeEnsemble,
    X: TableLike | None = None,
    *,
    value: int = 0,
    max_nodes: int = 100_000,
) -> list[Any]:
    """Return a model as the list of trees that ``shapiq.TreeExplainer`` takes.

    It explains interactions of columns. What it explains are rows without missing values: shapiq
    does not know where these go.

    Parameters
    ----------
    model : DecisionGraph, Tree, RandomForest, GradientBoostingModel, a model of models, or
    TreeEnsemble
        A fitted model, see `as_tree_ensemble`, or its trees.
    X : array_like of shape (n, d), or data frame, optional
        Rows by which nodes are weighted, see `to_shap`.
    value : int
        Which of several values is explained, by its number from 0.
    max_nodes : int
        The most nodes that the trees may have, see `to_shap`.

    Returns
    -------
    list of shapiq.explainer.tree.TreeModel
        Trees that compare columns; the rest, `TreeEnsemble.bias` among it, is in the first of them.

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
    >>> found = pb.export.to_shapiq(pb.fit_adaboost(X, y, n_estimators=5), X)  # doctest: +SKIP
    >>> shapiq.TreeExplainer(found, max_order=2).explain(X[0])  # doctest: +SKIP
    """
    trees = by_thresholds(as_trees(model, X, max_nodes), max_nodes)
    column = check_integer("value", value, min_value=0, max_value=trees.n_values - 1)
    parts = to_shap(trees, max_nodes=max_nodes)["trees"]
    base = float(trees.bias[column])
    constants = [float(tree["values"][0, column]) for tree in parts if len(tree["values"]) == 1]
    asked = [tree for tree in parts if len(tree["values"]) > 1]
    if not asked:
        raise ValueError("model: expected trees that compare columns for shapiq, got numbers only")
    make = needed("shapiq.explainer.tree", "to_shapiq", "shap").TreeModel
    names = ("children_left", "children_right", "features", "thresholds", "node_sample_weight")
    shapiq_trees = []
    for place, tree in enumerate(asked):
        more = base + sum(constants) if place == 0 else 0.0
        values = tree["values"][:, column] + more
        shapiq_trees.append(make(values=values, **{name: np.array(tree[name]) for name in names}))
    return shapiq_trees


def values_of_sum(trees: TreeEnsemble) -> FloatArray:
    """Return what each node adds to each of J values, (n_nodes, J), where they are summed up."""
    value = trees.value
    if trees.target is not None:
        of = trees.by_node(trees.target)
        value = np.where(of[:, None] == np.arange(trees.n_values), value, 0.0)
    return value / trees.n_trees if trees.aggregation == "mean" else value


def positive_weights(trees: TreeEnsemble) -> FloatArray:
    """Return weights of which none is 0, those of nodes the sums of those of their children."""
    assert trees.weight is not None
    start = trees.start
    weight = np.maximum(trees.weight, LEAST * np.maximum(trees.weight[start], LEAST))
    for node in np.flatnonzero(trees.feature != LEAF)[::-1].tolist():  # children first
        weight[node] = weight[trees.children[node] + start[node]].sum()
    return weight
