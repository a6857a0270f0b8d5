"""The boosted tree, node by node, with a boolean mask for every open exit."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reference.adaboost import class_masses, domain_votes, only_bias
from reference.keys import first_largest, rounded
from reference.sort import bin_edges
from reference.split import best_stump


class Tree(NamedTuple):
    feature: np.ndarray
    threshold: np.ndarray
    next: np.ndarray
    vote: np.ndarray
    certificate: np.ndarray
    cost: np.ndarray
    bias: float


class Exit(NamedTuple):
    parent: tuple[int, int] | None  # node and exit, None at the entrance
    depth: int
    rows: np.ndarray  # mask of the rows that arrive
    bound: float  # sum of their weights
    stump: tuple[int, float]  # its best split


def next_exit(open_exits, growth):
    """Return the position of the exit to split; the list is in the order of opening."""
    if growth == "breadth_first":
        return 0
    return first_largest([rounded(exit_.bound) for exit_ in open_exits])


def fit_tree(
    X,
    y,
    *,
    max_nodes=None,
    criterion="kearns_mansour",
    growth="largest_bound",
    max_depth=None,
    smoothing=1e-4,
    learning_rate=1.0,
    sample_weight=None,
    max_bins=None,
    min_weight_fraction=0.0,
    min_samples_leaf=1,
):
    """Grow a boosted tree; `y` holds -1 and +1. `max_bins` None: exact search, else binned.

    Splits are judged by the mass D of the rows at a node, votes by the boosted weights w.
    """
    X = np.asarray(X, dtype=np.float64)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
    X, y, weight = X[weight > 0], np.asarray(y)[weight > 0], weight[weight > 0]
    edges = None if max_bins is None else bin_edges(X, weight, max_bins)
    max_depth = math.inf if max_depth is None else max_depth
    max_nodes = math.inf if max_nodes is None else max_nodes

    D = weight / math.fsum(weight)
    w = D.copy()
    open_exits = []  # only those that can be split

    def open_exit(parent, depth, rows):
        if depth >= max_depth or 0 in class_masses(D, y, rows):
            return
        stump = best_stump(
            X[rows],
            y[rows],
            D[rows],
            criterion,
            edges=edges,
            min_weight_fraction=min_weight_fraction,
            min_samples_leaf=min_samples_leaf,
        )
        if stump is not None:
            open_exits.append(Exit(parent, depth, rows, math.fsum(w[rows]), stump))

    feature, threshold, next_, vote = [], [], [], []
    certificate, cost = [1.0], [0.0]
    open_exit(None, 0, np.ones(len(y), dtype=bool))
    while open_exits and len(feature) < max_nodes:
        chosen = open_exits.pop(next_exit(open_exits, growth))
        node, (j, t) = len(feature), chosen.stump
        if chosen.parent is not None:
            next_[chosen.parent[0]][chosen.parent[1]] = node
        sides = [chosen.rows & (X[:, j] <= t), chosen.rows & (X[:, j] > t)]
        both = domain_votes([class_masses(w, y, s) for s in sides], smoothing, learning_rate)
        for rows, v in zip(sides, both, strict=True):
            w[rows] *= np.exp(-v * y[rows])
        feature.append(j)
        threshold.append(t)
        next_.append([-1, -1])
        vote.append(both)
        certificate.append(math.fsum(w))
        cost.append(cost[-1] + math.fsum(D[chosen.rows]))
        for exit_, rows in enumerate(sides):
            open_exit((node, exit_), chosen.depth + 1, rows)

    bias = 0.0
    if not feature:
        bias, certificate[0] = only_bias(w, y, smoothing, learning_rate)
    return Tree(
        np.array(feature, dtype=int),
        np.array(threshold, dtype=float),
        np.array(next_, dtype=int).reshape(-1, 2),
        np.array(vote, dtype=float).reshape(-1, 2),
        np.array(certificate),
        np.array(cost),
        bias,
    )
