"""Trees for TreeSHAP, with thresholds between level numbers in place of sets of levels."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.convert import TableLike
from pboost.data.subsets import LEVELS, WORDS
from pboost.export.runtimes import needed
from pboost.models.base import Model
from pboost.models.tree_record import LEAF, NO_SET, TreeSum
from pboost.models.trees_of import as_trees
from pboost.values import FloatArray, check_integer


class Runs(NamedTuple):
    """The level numbers in order: `cut` between runs of them, and to which child each run goes."""

    cut: list[float]
    side: list[int]

    @property
    def copies(self) -> tuple[int, int]:
        """The number of runs that go to either child."""
        return self.side.count(0), self.side.count(1)


class Copied(NamedTuple):
    """A node of trees without sets: a node of the trees with them, and one of its runs."""

    node: int
    run: int
    #: By what weights of the node are multiplied.
    factor: float
    parent: int
    exit: int


def runs_of(trees: TreeSum, number: int) -> Runs:
    """Return the runs of the levels of a set; at least two, the last of which may have no level."""
    is_in = np.zeros(LEVELS + 1, dtype=np.int8)
    is_in[trees.levels(number)] = 1
    is_in[LEVELS] = 1 - is_in[LEVELS - 1] if (is_in[:LEVELS] == is_in[0]).all() else is_in[-2]
    last = np.flatnonzero(np.diff(is_in))
    return Runs((last + 0.5).tolist(), is_in[np.append(last, LEVELS)].tolist())


def count_by_thresholds(trees: TreeSum, runs: list[Runs]) -> int:
    """Return the number of nodes of the trees when sets are comparisons of level numbers."""
    size, start = [1] * trees.n_nodes, trees.start.tolist()
    for node in np.flatnonzero(trees.feature != LEAF)[::-1].tolist():
        number = int(trees.level_set[node])
        copies = (1, 1) if number == NO_SET else runs[number].copies
        below = trees.children[node].tolist()
        size[node] = sum(copies) - 1
        size[node] += sum(n * size[start[node] + k] for n, k in zip(copies, below, strict=True))
    return sum(size[root] for root in trees.root[:-1].tolist())


def by_thresholds(trees: TreeSum, max_nodes: int) -> TreeSum:
    """Return the same trees without sets; ValueError where they have more than so many nodes.

    A set is a chain of comparisons, in which what follows is repeated for each run of levels. The
    weight of a child is divided among its runs; TreeSHAP finds the same however it is divided,
    as all of them compare one column.
    """
    if not trees.n_sets:
        return trees
    runs = [runs_of(trees, number) for number in range(trees.n_sets)]
    size = count_by_thresholds(trees, runs)
    if size > max_nodes:
        raise ValueError(
            f"max_nodes: expected at least {size}, the nodes of the trees where tests of sets of "
            f"levels are comparisons of level numbers, got {max_nodes}; to_json, to_onnx and "
            "to_treelite hold the sets themselves"
        )
    copies, root = [], [0]
    for tree in range(trees.n_trees):
        copies += _copied(trees, tree, runs)
        root.append(len(copies))
    node, _, factor, _, _ = map(np.array, zip(*copies, strict=True))
    children = np.full((len(copies), 2), LEAF)
    first = np.repeat(root[:-1], np.diff(root))
    for here, one in enumerate(copies):
        if one.parent >= 0:
            children[first[here] + one.parent, one.exit] = here - first[here]
    of_set = trees.level_set[node] != NO_SET
    threshold, missing = trees.threshold[node], np.array(trees.missing)[node]
    for here in np.flatnonzero(of_set).tolist():
        own, run = runs[trees.level_set[node[here]]], copies[here].run
        threshold[here] = own.cut[run]
        missing[here] = missing[here] != own.side[run]
    return replace(
        trees,
        root=np.array(root, np.int32),
        feature=trees.feature[node],
        threshold=threshold,
        children=children,
        missing=missing,
        level_set=np.full(len(node), NO_SET),
        value=trees.value[node],
        sets=np.empty((0, WORDS), np.uint64),
        weight=_weights(trees, copies, factor, runs),
    )


def _copied(trees: TreeSum, tree: int, runs: list[Runs]) -> list[Copied]:
    """Return the nodes of one tree without sets, in preorder."""
    root = int(trees.root[tree])
    found: list[Copied] = []
    waiting = [Copied(root, 0, 1.0, -1, 0)]
    while waiting:
        one = waiting.pop()
        here, below = len(found), (trees.children[one.node] + root).tolist()
        found.append(one)
        if trees.feature[one.node] == LEAF:
            continue
        number = int(trees.level_set[one.node])
        if number == NO_SET:
            waiting += [Copied(below[k], 0, one.factor, here, k) for k in (1, 0)]
            continue
        cut, side = runs[number]
        factor = [one.factor / n for n in runs[number].copies]
        k, after = side[one.run], side[one.run + 1]
        if one.run + 1 < len(cut):
            waiting.append(one._replace(run=one.run + 1, parent=here, exit=1))
        else:
            waiting.append(Copied(below[after], 0, factor[after], here, 1))
        waiting.append(Copied(below[k], 0, factor[k], here, 0))
    return found


def _weights(
    trees: TreeSum, copies: list[Copied], factor: NDArray[np.float64], runs: list[Runs]
) -> NDArray[np.float64] | None:
    """Return the weights of copied nodes: at a run, what is left of the node's."""
    if trees.weight is None:
        return None
    weight = trees.weight[[one.node for one in copies]] * factor
    for here, one in enumerate(copies):
        number = int(trees.level_set[one.node])
        if number != NO_SET and one.run:
            own, start = runs[number], trees.start[one.node]
            below = trees.weight[trees.children[one.node] + start]
            left = [own.side[one.run :].count(k) / own.copies[k] for k in (0, 1)]
            weight[here] = one.factor * float(below @ left)
    return weight


# TreeSHAP, which divides the value of a row among its columns

#: The least weight of a node, as a share of that of its tree: TreeSHAP refuses empty leaves.
LEAST = 2.0**-30


def to_shap(
    model: Model | TreeSum, X: TableLike | None = None, *, max_nodes: int = 100_000
) -> dict[str, Any]:
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
    model: Model | TreeSum, X: TableLike | None = None, *, value: int = 0, max_nodes: int = 100_000
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
        of = np.repeat(trees.target, np.diff(trees.root))
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
