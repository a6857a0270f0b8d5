"""The picture of a decision graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.check_xy import check_has_rows
from pboost.inspection.graph_drawing import Drawn, draw
from pboost.models.base import Model
from pboost.models.evaluate.graph_walk import asks_functions, hard_exits, passages, reach
from pboost.models.evaluate.new_rows import as_graph, count_rows, match_columns
from pboost.models.nodes import OUT, Graph
from pboost.models.stored import TrainingRecord
from pboost.models.text import input_names, named_labels, of_missing, question, signed
from pboost.values import FloatArray

#: Cells of what is known of rows at exits that are held at once.
CELLS = 1 << 22
#: Colours that differ, and the labels that a legend can list.
COLOURS = 10


def plot_graph(
    model: Model,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    most_labels: int = 60,
    ax: Any = None,
) -> Any:
    """Draw a decision graph, with matplotlib: nodes, exits with their votes, and where they join.

    Parameters
    ----------
    model : DecisionGraph
        A fitted model: a chain, a tree, a matryoshka or another graph.
    X : array_like of shape (n, d), or data frame, optional
        Rows whose shares at nodes and exits are shown, under the answers assumed in training, see
        `reach`. Default: those of the weighted training rows, where they follow from the record.
    y : array_like of shape (n,), optional
        Labels of X; needed where the answers assumed in training depend on the class.
    most_labels : int
        The most nodes of a graph whose nodes and exits have texts; larger ones are drawn without.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: in a new figure, which pyplot does not know of.

    Returns
    -------
    matplotlib.axes.Axes
        Nodes stand in layers by the longest path that leads to them, and edges lead down. An edge
        has the colour of the label for which its exit votes most, and is the wider the more rows
        take it; where that is not known, thin. In an SVG, node i has the id ``node-i``, the edge of
        its exit k ``edge-i-k``, and the exit itself, where it leads out of the graph, ``out-i-k``.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If the model is no decision graph: `plot_tree` draws trees.
    ValueError
        If X has other columns than the training data or no rows; see `reach` for others.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = pb.fit_matryoshka(X, X[:, 0] * X[:, 1] > 0, shape=(3, 2), collect="additive")
    >>> ax = pb.plot_graph(model, X)
    >>> model.n_nodes, len([edge.get_gid() for edge in ax.patches])
    (5, 10)
    """
    model = as_graph(model, "plot_graph")
    if X is None and y is not None:
        raise ValueError("y: expected None without X, whose labels they are")
    passed = _passed_in_training(model) if X is None else _passed_by(model, X, y)
    names = input_names(model)
    asked = []
    for node in range(model.n_nodes):
        asked.append(question(model, names, node) + of_missing(model, node)[0])
    vote = model.vote.reshape(model.n_nodes, 2, model.n_votes)
    best = np.argmax(vote, axis=2) if model.n_votes > 1 else (vote[:, :, 0] > 0).astype(int)
    labels = model.labels.tolist()

    def said(node: int, exit_: int) -> str:
        votes = vote[node, exit_]
        if len(votes) == 1:
            return signed(votes)
        return f"{labels[best[node, exit_]]}: {votes.max():+.4f}"

    colour = [(f"C{a % COLOURS}", f"C{b % COLOURS}") for a, b in best.tolist()]
    legend = [(str(label), f"C{k}") for k, label in enumerate(labels)]
    drawn = Drawn(
        model.next,
        asked,
        [(said(node, 0), said(node, 1)) for node in range(model.n_nodes)],
        colour,
        _at_nodes(model) if X is None else passed.sum(axis=1),
        passed,
        legend if len(legend) <= COLOURS else [],
        f"no nodes: every row gets {signed(model.bias)}, labels {named_labels(model.labels)}",
    )
    ax = draw(drawn, most_labels, ax)
    if model.n_nodes and np.any(model.bias):
        ax.set_title(f"every row starts with vote {signed(model.bias)}")
    return ax


def _at_nodes(model: Graph) -> FloatArray:
    """Return the shares of the training rows that came to the nodes, which each added to the cost.

    NaN where the record does not say.
    """
    share = np.diff(model.record.cost)
    is_known = model.n_nodes and abs(share[0] - 1) < 1e-6 and (share >= 0).all()
    return share if is_known else np.full(model.n_nodes, np.nan)


def _passed_in_training(model: Graph) -> FloatArray:
    """Return the shares (n_nodes, 2) that took the exits in training, as far as they follow.

    A node that one exit leads to has the rows of this exit, and its other exit the rest.
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


def _passed_by(model: Graph, X: Any, y: ArrayLike | None) -> FloatArray:
    """Return the shares (n_nodes, 2) of rows that take the exits, under the assumed answers."""
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
        found = reach(doubled, features.take(part), None if label is None else label[part])
        passed += found.sum(axis=0).reshape(-1, 3)[:, 1:]
    return passed / n


def _with_exits(model: Graph) -> Graph:
    """Return the graph in which each exit is a node of its own, with one way on."""
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
