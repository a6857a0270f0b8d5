"""Decision graphs as trees: each path from a joint to the next is one of a tree of its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs.inputs import WORDS, Subsets
from pboost.data.read.check_xy import check_has_rows
from pboost.models.base import predict
from pboost.models.graph import DecisionGraph
from pboost.models.new_rows import match_columns
from pboost.models.nodes import OUT, Graph, joints_of
from pboost.models.soft_walk import reach
from pboost.models.stored import TrainingRecord
from pboost.values import FloatArray, IntArray

#: Cells of what is known of rows at nodes that are held at once.
CELLS = 1 << 22


class Unrolled(NamedTuple):
    """The trees of a graph, nodes in preorder.

    `root` and `children` are those of a `TreeSum`, `node` the nodes of the graph, OUT in leaves,
    and `value` the sums (n, J) of the votes on the paths.
    """

    root: IntArray
    node: IntArray
    children: IntArray
    value: FloatArray


def count_unrolled(graph: Graph) -> int:
    """Return the number of nodes that the trees of a graph have, leaves included."""
    ends, total = ends_of(graph), 0
    for first, stop in pairwise(ends):
        below: dict[int, int] = {}
        for node in range(stop - 1, first - 1, -1):
            below[node] = 1 + sum(below.get(to, 1) for to in graph.next[node].tolist())
        total += below[first]
    return total or 1


def ends_of(graph: Graph) -> list[int]:
    """Return the first node, the others through which every path leads, and the end."""
    return [0, *joints_of(graph.next).tolist(), graph.n_nodes] if graph.n_nodes else [0]


def unroll(graph: Graph) -> Unrolled:
    """Return the trees of a graph: from each joint to the next one; of a chain, stumps."""
    ends = ends_of(graph)
    vote = graph.vote.reshape(graph.n_nodes, 2, graph.n_votes)
    trees = [_unrolled(graph.next, a, b) for a, b in pairwise(ends)]
    if not trees:
        trees = [(np.array([OUT]), np.array([[OUT, OUT]]))]
    node, children = (np.concatenate(parts).astype(np.int32) for parts in zip(*trees, strict=True))
    root = np.cumsum([0, *(len(tree[0]) for tree in trees)], dtype=np.int32)
    value = np.zeros((len(node), graph.n_votes))
    start = np.repeat(root[:-1], np.diff(root))
    for at in np.flatnonzero(node != OUT).tolist():  # parents first
        value[children[at] + start[at]] = value[at] + vote[node[at]]
    return Unrolled(root, node, children, value)


def _unrolled(next_: IntArray, first: int, stop: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the nodes (m,) of a graph on all paths from one until `stop`, and the children."""
    leads = next_[first:stop].tolist()
    node: list[int] = []
    children: list[list[int]] = []
    waiting = [(first, -1, 0)]
    while waiting:
        at, parent, exit_ = waiting.pop()
        here = len(node)
        if parent >= 0:
            children[parent][exit_] = here
        is_out = at == OUT or at >= stop
        node.append(OUT if is_out else at)
        children.append([OUT, OUT])
        if not is_out:
            waiting += [(leads[at - first][exit_], here, exit_) for exit_ in (1, 0)]
    return np.array(node), np.array(children)


def tests_of(graph: Graph, node: IntArray) -> dict[str, Any]:
    """Return feature, threshold, missing, level_set and sets of nodes (m,), OUT for leaves."""
    is_leaf = node == OUT

    def at_nodes(values: NDArray[Any], of_leaf: Any) -> NDArray[Any]:
        found = np.full(len(node), of_leaf, dtype=values.dtype)
        found[~is_leaf] = values[node[~is_leaf]]
        return found

    column: NDArray[Any] = graph.feature
    level_set = np.full(graph.n_nodes, OUT, dtype=np.int32)
    sets = np.empty((0, WORDS), dtype=np.uint64)
    if isinstance(graph.inputs, Subsets):
        is_set = column >= graph.n_features
        level_set[is_set] = column[is_set] - graph.n_features
        column = np.append(np.arange(graph.n_features), graph.inputs.column)[column]
        sets = graph.inputs.member
    return {
        "feature": at_nodes(column, OUT),
        "threshold": at_nodes(np.where(level_set == OUT, graph.threshold, 0.0), 0.0),
        "missing": None if graph.missing is None else at_nodes(graph.missing > 0, False),
        "level_set": at_nodes(level_set, OUT),
        "sets": sets,
    }


def reach_of(graph: DecisionGraph, trees: Unrolled, X: Any) -> FloatArray:
    """Return the expected number of rows that come to each node of the trees of a graph.

    Under the answers assumed in training; where these depend on the class of a row, it is taken
    for the label predicted.
    """
    features = match_columns(graph, X)
    check_has_rows(len(features.values))
    if not graph.n_nodes:
        return np.full(len(trees.node), float(len(features.values)))
    paths = _as_graph(graph, trees)
    total = np.zeros(len(trees.node))
    at_once = max(1, CELLS // len(trees.node))
    for first in range(0, len(features.values), at_once):
        rows = features.take(slice(first, first + at_once))
        label = predict(graph, rows) if graph.needs_class else None
        total += reach(paths, rows, label).sum(axis=0)
    return total


def _as_graph(graph: DecisionGraph, trees: Unrolled) -> DecisionGraph:
    """Return the graph of all nodes of the trees: leaves are nodes that lead to the next tree."""
    is_leaf, n = trees.node == OUT, len(trees.node)
    start, end = (
        np.repeat(ends, np.diff(trees.root)) for ends in (trees.root[:-1], trees.root[1:])
    )
    after = np.where(end == n, OUT, end)
    # Node 0 stands for leaves, where nothing is asked.
    node = np.where(is_leaf, 0, trees.node)
    answer = None if graph.answer is None else graph.answer[node]
    return replace(
        graph,
        feature=graph.feature[node],
        threshold=graph.threshold[node],
        next=np.where(is_leaf[:, None], after[:, None], trees.children + start[:, None]),
        vote=np.zeros((n, *graph.vote.shape[1:])),
        answer=answer,
        missing=None if graph.missing is None else graph.missing[node],
        record=TrainingRecord(np.zeros(n + 1), np.zeros(n + 1), "unrolled"),
    )
