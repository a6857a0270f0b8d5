"""Plots of decision graphs and of trees in models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.node_inputs.inputs import ColumnNames, Inputs, Subsets, names_in_sums
from pboost.data.read.check_xy import check_has_rows
from pboost.inspection.graph_drawing import Drawn, draw
from pboost.models.as_trees import as_tree_ensemble
from pboost.models.base import Model, check_model
from pboost.models.evaluate.graph_walk import asks_functions, hard_exits, passages, reach
from pboost.models.evaluate.match_input import as_graph, count_rows, match_columns
from pboost.models.graph import DecisionGraph
from pboost.models.graph_arrays import OUT, Graph
from pboost.models.probit_trees import ProbitTree, slope_order
from pboost.models.schema import TrainingRecord
from pboost.models.subagged import SubaggedProbitTrees
from pboost.models.text import (
    MOST,
    equation,
    input_names,
    named_labels,
    of_missing,
    question,
    signed,
)
from pboost.models.tree_ensemble import LEAF, NO_SET, TreeEnsemble
from pboost.values import FloatArray, TableLike, check_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Maximum number of cells of the reach matrix that are held in memory at once.
CELLS = 1 << 22
#: Number of distinct colors, and of classes that a legend can list.
COLOURS = 10


def plot_graph(
    model: Model,
    X: TableLike | None = None,
    y: ArrayLike | None = None,
    *,
    max_labeled_nodes: int = 60,
    ax: Axes | None = None,
) -> Axes:
    """Draw the nodes, edges and votes of a decision graph with matplotlib.

    Parameters
    ----------
    model : DecisionGraph
        A fitted model: a chain, a tree, a matryoshka or another graph.
    X : array_like of shape (n, d), or data frame, optional
        Rows whose shares at nodes and exits are shown. The shares are computed with the observation
        model of training (see `reach`). By default, the shares of the weighted training rows are
        shown if they can be derived from the training record.
    y : array_like of shape (n,), optional
        Classes of X; required if the observation model depends on the class.
    max_labeled_nodes : int
        Graphs with more nodes than this are drawn without texts.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created that is not registered with pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        Nodes are drawn in layers by the longest path that leads to them, with edges pointing down.
        Edges have the color of the class with the largest vote at their exit. Their width grows
        with the share of rows that take them; edges with an unknown share are thin. In an SVG, node
        i has the id ``node-i``, the edge of its exit k has ``edge-i-k``, and an exit that leads out
        of the graph has ``out-i-k``. The left exit, "yes", is exit 0, or exit 1 if the node has a
        set of categories.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If the model is not a decision graph; draw trees with `plot.tree`.
    ValueError
        If the features of X differ from the training data, X has no rows, or `reach` raises an
        error.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = pb.fit_matryoshka(X, X[:, 0] * X[:, 1] > 0, shape=(3, 2), collect="additive")
    >>> ax = pb.plot.graph(model, X)
    >>> model.n_nodes, len([edge.get_gid() for edge in ax.patches])
    (5, 10)
    """
    graph = as_graph(model, "plot.graph")
    if X is None and y is not None:
        raise ValueError("y: expected None without X, got classes; pass the rows X as well")
    passed = _passed_in_training(graph) if X is None else _passed_by(graph, X, y)
    names = input_names(graph)
    is_set = _has_set(graph)
    asked = []
    for node in range(graph.n_nodes):
        is_in = bool(is_set[node])
        text = names[int(graph.feature[node])] if is_in else question(graph, names, node)
        asked.append(text + of_missing(graph, node)[is_in])
    vote = graph.vote.reshape(graph.n_nodes, 2, graph.n_votes)
    best = np.argmax(vote, axis=2) if graph.n_votes > 1 else (vote[:, :, 0] > 0).astype(int)
    classes = graph.classes.tolist()

    def exit_text(node: int, exit_: int) -> str:
        votes = vote[node, exit_]
        if len(votes) == 1:
            return signed(votes)
        return f"{classes[best[node, exit_]]}: {votes.max():+.4f}"

    colour = [(f"C{a % COLOURS}", f"C{b % COLOURS}") for a, b in best.tolist()]
    legend = [(str(label), f"C{k}") for k, label in enumerate(classes)]
    drawn = Drawn(
        graph.next,
        asked,
        [(exit_text(node, 0), exit_text(node, 1)) for node in range(graph.n_nodes)],
        colour,
        _at_nodes(graph) if X is None else passed.sum(axis=1),
        passed,
        legend if len(legend) <= COLOURS else [],
        f"no nodes: every row gets {signed(graph.bias)}, classes {named_labels(graph.classes)}",
    )
    ax = draw(_yes_first(drawn, is_set), max_labeled_nodes, ax)
    if graph.n_nodes and np.any(graph.bias):
        ax.set_title(f"initial vote of every row: {signed(graph.bias)}")
    return ax


def _has_set(model: Graph) -> NDArray[np.bool_]:
    """Return whether each node splits by a set of categories."""
    inputs = model.inputs
    n_plain = inputs.n_columns if isinstance(inputs, Subsets) else np.inf
    is_set: NDArray[np.bool_] = model.feature >= n_plain
    return is_set


def _yes_first(drawn: Drawn, is_set: NDArray[np.bool_]) -> Drawn:
    """Swap the exits of nodes with a category set, because exit 1 has the categories in the set."""
    order = np.where(is_set[:, None], [1, 0], [0, 1])

    def swapped(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        return [(pair[a], pair[b]) for pair, (a, b) in zip(pairs, order.tolist(), strict=True)]

    return replace(
        drawn,
        next=np.take_along_axis(drawn.next, order, axis=1),
        exit_texts=swapped(drawn.exit_texts),
        colour=swapped(drawn.colour),
        passed=np.take_along_axis(drawn.passed, order, axis=1),
        is_swapped=is_set,
    )


def _at_nodes(model: Graph) -> FloatArray:
    """Return the share of training rows that reached each node, or NaN if it is not recorded."""
    share = np.diff(model.record.cost)
    is_known = model.n_nodes and abs(share[0] - 1) < 1e-6 and (share >= 0).all()
    return share if is_known else np.full(model.n_nodes, np.nan)


def _passed_in_training(model: Graph) -> FloatArray:
    """Return the share of training rows that took each exit (n_nodes, 2), or NaN if unknown.

    The share of a node with a single incoming exit is the share of that exit. The other exit of its
    parent has the remaining share.
    """
    share, leads = _at_nodes(model), model.next
    passed = np.full(leads.shape, np.nan)
    into: dict[int, list[tuple[int, int]]] = {}
    for node, pair in enumerate(leads.tolist()):
        for exit_, to in enumerate(pair):
            into.setdefault(to, []).append((node, exit_))
    into.pop(OUT, None)
    unknown = {to: list(exits) for to, exits in into.items()}
    waiting = list(unknown)
    while waiting:
        to = waiting.pop()
        if len(unknown[to]) != 1:
            continue
        node, exit_ = unknown[to].pop()
        known = [passed[exit_of] for exit_of in into[to] if exit_of != (node, exit_)]
        passed[node, exit_] = max(share[to] - sum(known), 0.0)
        other = 1 - exit_
        if np.isnan(passed[node, other]):
            passed[node, other] = max(share[node] - passed[node, exit_], 0.0)
            end = int(leads[node, other])
            if end != OUT:
                unknown[end].remove((node, other))
                waiting.append(end)
    return passed


def _passed_by(model: Graph, X: TableLike, y: ArrayLike | None) -> FloatArray:
    """Return the share of rows that take each exit (n_nodes, 2) in the observation model."""
    if not count_rows(model, X):
        check_has_rows(0)
    passed = np.zeros(model.next.shape)
    if model.is_exact and not model.is_estimated:
        n, take = hard_exits(model, X)
        for node, (_, above) in enumerate(passages(model, n, take)):
            passed[node] = np.count_nonzero(~above), np.count_nonzero(above)
        return passed / n
    if not model.n_nodes:
        return passed
    doubled = _with_exits(model)
    if asks_functions(model):
        return reach(doubled, X, y).mean(axis=0).reshape(-1, 3)[:, 1:]
    features = match_columns(model, X)
    n, at_once = len(features.values), max(1, CELLS // doubled.n_nodes)
    label = None if y is None else np.asarray(y)
    for first in range(0, n, at_once):
        part = slice(first, first + at_once)
        reached = reach(doubled, features.take(part), None if label is None else label[part])
        passed += reached.sum(axis=0).reshape(-1, 3)[:, 1:]
    return passed / n


def _with_exits(model: Graph) -> Graph:
    """Return the graph with an extra node on each exit, so that `reach` counts exits."""
    n = model.n_nodes
    node = np.repeat(np.arange(n), 3)
    on = np.where(model.next == OUT, OUT, 3 * model.next)
    leads = np.repeat(np.column_stack([np.zeros(n, np.int32), on]), 2, axis=1).reshape(3 * n, 2)
    leads[::3] = np.arange(n)[:, None] * 3 + [1, 2]
    zeros = np.zeros(3 * n + 1)
    return replace(
        model,
        feature=model.feature[node],
        threshold=model.threshold[node],
        next=leads.astype(np.int32),
        vote=model.vote[node],
        answer=None if model.answer is None else model.answer[node],
        missing=None if model.missing is None else model.missing[node],
        record=TrainingRecord(zeros, zeros, "each exit is a node"),
    )


# Trees of models

#: Number of class colors, and the color of leaves without a class.
COLOURS, PLAIN = 10, "0.4"


class OneTree(NamedTuple):
    """A tree with the texts and colors of its leaves.

    `node` is the range of its nodes in `trees`. `leaf_texts` and `colour` are indexed by
    the node number, which is 0 at the root.
    """

    trees: TreeEnsemble
    node: slice
    leaf_texts: dict[int, str]
    colour: dict[int, str]
    classes: list[object]
    title: str


def plot_tree(
    model: Model,
    X: TableLike | None = None,
    *,
    tree: int = 0,
    max_labeled_nodes: int = 60,
    max_terms: int = 3,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw one tree of a model and its leaf values with matplotlib.

    Parameters
    ----------
    model : Tree, RandomForest, GradientBoostingModel or another model
        A fitted tree or a model made of trees (see `as_tree_ensemble`). A graph with merged exits
        is divided into trees where exits merge; use `plot.graph` to draw the whole graph.
    X : array_like of shape (n, d), or data frame, optional
        Rows whose shares at nodes and leaves are shown. By default, the shares of the weighted
        training rows are shown if the model stores them.
    tree : int
        Index of the tree, starting at 0.
    max_labeled_nodes : int
        Trees with more inner nodes than this are drawn without texts.
    max_terms : int
        Number of features shown in the equation of a leaf: the features with the largest
        coefficient times spread.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created that is not registered with pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        The text of a leaf is the most frequent class with its share, a predicted value, a
        contribution to the decision value, or an equation f. SVG ids are named as in `plot.graph`,
        with splits numbered in preorder.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If the model is not an ensemble of trees; the error message suggests an alternative.
    ValueError
        If the model has no such tree, or X has other features than the training data.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "b", "b", "b"]
    >>> ax = pb.plot.tree(pb.fit_cart(X, y))
    >>> [text.get_text() for text in ax.texts if text.get_gid() == "out-0-0"]
    ['yes\na: 1\n25 %']
    """
    check_model(model)
    check_integer("max_terms", max_terms, min_value=1)
    check_integer("tree", tree, min_value=0)
    one_tree = _one_tree(model, X, tree, max_terms)
    ax = draw(_drawn(model, one_tree), max_labeled_nodes, ax)
    if one_tree.title:
        ax.set_title(one_tree.title)
    return ax


def _drawn(model: Model, one_tree: OneTree) -> Drawn:
    """Return the tree as a graph in which splits are nodes and leaves are ends of exits."""
    trees, start = one_tree.trees, one_tree.node.start
    feature, children = trees.feature[one_tree.node], trees.children[one_tree.node]
    inner = np.flatnonzero(feature != LEAF)
    number = np.full(len(feature), OUT, dtype=np.int32)
    number[inner] = np.arange(len(inner))
    names = ColumnNames(model.feature_names, model.n_features, model.table)
    weight = _shares(trees.weight, one_tree.node)
    pairs = children[inner].tolist()
    legend = [(str(label), f"C{k}") for k, label in enumerate(one_tree.classes)]
    drawn = Drawn(
        number[children[inner]],
        [_question(trees, names, start + int(node)) for node in inner],
        [(one_tree.leaf_texts.get(a, ""), one_tree.leaf_texts.get(b, "")) for a, b in pairs],
        [(one_tree.colour.get(a, PLAIN), one_tree.colour.get(b, PLAIN)) for a, b in pairs],
        weight[inner],
        weight[children[inner]].reshape(-1, 2),
        legend if len(legend) <= COLOURS else [],
        one_tree.leaf_texts.get(0, ""),
    )
    return _yes_first(drawn, trees.category_set[one_tree.node][inner] != NO_SET)


def _shares(weight: FloatArray | None, node: slice) -> FloatArray:
    """Return node weights relative to the root, NaN if unknown."""
    if weight is None or not weight[node.start] > 0:
        return np.full(node.stop - node.start, np.nan)
    shares: FloatArray = weight[node] / weight[node.start]
    return shares


def _question(trees: TreeEnsemble, names: ColumnNames, node: int) -> str:
    """Return the split condition of a node, including missing values."""
    column, threshold = int(trees.feature[node]), float(trees.threshold[node])
    missing = 0 if trees.missing is None else int(trees.missing[node])
    is_set = bool(trees.category_set[node] != NO_SET)
    if is_set:
        sets = trees.sets[trees.category_set[node : node + 1]]
        test = Subsets(trees.n_features, trees.feature[node : node + 1], sets)
        question = test.names(names)[trees.n_features]
    elif missing and threshold == MOST:
        return f"{names[column]} is not missing"
    else:
        question = Inputs().question(names, column, threshold)
    has_missing = trees.table is not None and trees.table.has_missing[column]
    return f"{question} or missing" if has_missing and missing == is_set else question


@singledispatch
def _one_tree(model: Model, X: TableLike | None, tree: int, max_terms: int) -> OneTree:
    """Return a tree of a model. If X is passed, its rows determine the node weights."""
    try:
        trees = as_tree_ensemble(model, X)
    except TypeError as error:
        if isinstance(model, DecisionGraph):
            raise TypeError(f"{error}; plot.graph draws it") from None
        raise
    _check_number(tree, trees.n_trees)
    node = slice(*trees.root[tree : tree + 2].tolist())
    value, texts, colour = trees.value[node], {}, {}
    classes = [] if trees.classes is None else trees.classes.tolist()
    for leaf in np.flatnonzero(trees.feature[node] == LEAF).tolist():
        texts[leaf], colour[leaf] = _of_values(trees, classes, value[leaf], tree)
    title = "" if trees.n_trees == 1 else f"tree {tree} of {trees.n_trees}"
    if trees.target is not None:
        title += f", for class {classes[trees.target[tree]]!r}"
        classes = []
    return OneTree(trees, node, texts, colour, classes, title)


def _of_values(
    trees: TreeEnsemble, classes: list[object], value: FloatArray, tree: int
) -> tuple[str, str]:
    """Return the text and the color of a leaf."""
    if not classes:
        is_part = trees.builder == "fit_gradient_boosting"
        return (signed(value) if is_part else f"{value[0]:.5g}"), PLAIN
    if trees.link == "shares" or len(value) > 1:
        best = int(np.argmax(value))
        number = f"{value[best]:.3g}" if trees.link == "shares" else f"{value[best]:+.4f}"
        return f"{classes[best]}: {number}", f"C{best % COLOURS}"
    if trees.target is not None:  # each tree belongs to a class; positive values favor this class
        return signed(value), f"C{trees.target[tree] % COLOURS}" if value[0] > 0 else PLAIN
    return signed(value), f"C{int(value[0] > 0)}"


@_one_tree.register
def _(model: ProbitTree, X: TableLike | None, tree: int, max_terms: int) -> OneTree:
    _check_number(tree, 1)
    return _with_equations(model, X, max_terms, "")


@_one_tree.register
def _(model: SubaggedProbitTrees, X: TableLike | None, tree: int, max_terms: int) -> OneTree:
    n = len(model.trees)
    _check_number(tree, n)
    title = f"tree {tree} of {n}"
    if model.is_tree_per_class:
        title += f", for class {model.classes[tree % model.trees_per_round].item()!r}"
    return _with_equations(model.tree(tree), X, max_terms, title)


def _check_number(tree: int, n_trees: int) -> None:
    if tree >= n_trees:
        raise ValueError(f"tree: expected a number below {n_trees}, got {tree}")


def _with_equations(model: ProbitTree, X: TableLike | None, max_terms: int, title: str) -> OneTree:
    """Return a tree with leaf texts that contain one linear function per class."""
    trees = as_tree_ensemble(model.partition, X)
    names = tuple(names_in_sums(model.feature_names, model.n_features, model.table))
    classes, texts = model.classes.tolist(), {}
    for leaf, functions in zip(
        np.flatnonzero(trees.feature == LEAF).tolist(), model.coefficient, strict=True
    ):
        lines = [_shortened(function, model.spread, names, max_terms) for function in functions]
        if len(lines) == 1:
            texts[leaf] = f"f = {lines[0]}"
        else:
            texts[leaf] = "\n".join(
                f"{label}: {line}" for label, line in zip(classes, lines, strict=True)
            )
    return OneTree(trees, slice(0, trees.n_nodes), texts, {}, [], title)


def _shortened(
    function: FloatArray, spread: FloatArray, names: tuple[str, ...], max_terms: int
) -> str:
    """Return the largest terms of a linear function as text."""
    slopes = function[1:].copy()
    left_out = slope_order(slopes, spread)[max_terms:]
    n_more = int(np.count_nonzero(slopes[left_out]))
    slopes[left_out] = 0.0
    # Few digits are enough here; `describe` shows more.
    rounded = np.array([float(f"{value:.3g}") for value in slopes])
    text = equation(float(f"{function[0]:.3g}"), rounded, names)
    text = f"{text} + {n_more} more" if n_more else text
    # Lines may break before a sign, but not after it.
    return text.replace(" + ", " +\N{NO-BREAK SPACE}").replace(" - ", " -\N{NO-BREAK SPACE}")
