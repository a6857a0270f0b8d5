"""Hard evaluation of a decision graph, row by row."""

from __future__ import annotations

import numpy as np

OUT = -1


def path(feature, threshold, next_, row):
    """Return the (node, exit) pairs that one row takes."""
    steps = []
    node = 0 if len(feature) else OUT
    while node != OUT:
        exit_ = 0 if float(row[feature[node]]) <= threshold[node] else 1
        steps.append((node, exit_))
        node = next_[node][exit_]
    return steps


def evaluate(feature, threshold, next_, vote, X, bias=0.0):
    """Return per row the score, the number of nodes met and of distinct features read."""
    score = np.full(len(X), float(bias))
    nodes = np.zeros(len(X))
    features = np.zeros(len(X))
    for i, row in enumerate(X):
        steps = path(feature, threshold, next_, row)
        for node, exit_ in steps:
            score[i] += vote[node][exit_]
        nodes[i] = len(steps)
        features[i] = len({int(feature[node]) for node, _ in steps})
    return score, nodes, features


def chain(n_nodes):
    """Return `next` of a graph in which both exits of every node lead to the node after it."""
    after = np.arange(1, n_nodes + 1)
    after[-1:] = OUT
    return np.column_stack([after, after])
