"""The values of trees, row after row, from what their record says and nothing else."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np


def goes_to_second(trees, node, row):
    value = float(row[trees.feature[node]])
    number = int(trees.category_set[node])
    if math.isnan(value):
        assert trees.missing is not None
        return bool(trees.missing[node])
    if number < 0:
        assert trees.comparison == "<="
        return not value <= trees.threshold[node]
    level = int(value)
    return bool(int(trees.sets[number, level // 64]) >> (level % 64) & 1)


def leaf_of(trees, tree, row):
    root = int(trees.root[tree])
    node = root
    while trees.feature[node] != -1:
        node = root + int(trees.children[node, int(goes_to_second(trees, node, row))])
    return node


def values(trees, X):
    """Return the values (n, J) of rows."""
    n_trees, n_values = len(trees.root) - 1, len(trees.bias)
    actual = np.zeros((len(X), n_values))
    for row, total in zip(X, actual, strict=True):
        for tree in range(n_trees):
            leaf = leaf_of(trees, tree, row)
            if trees.target is None:
                total += trees.value[leaf]
            else:
                total[trees.target[tree]] += trees.value[leaf, 0]
    if trees.aggregation == "mean":
        actual /= n_trees
    return actual + trees.bias


def size(trees):
    """Return the sum (J,) of the largest absolute values of leaves and the bias."""
    maximum = [np.abs(trees.value[a:b]).max(axis=0) for a, b in pairwise(trees.root)]
    return np.abs(trees.bias) + np.sum(maximum, axis=0)


def decision_values(trees, X):
    """Return what `decision_function` returns."""
    actual = values(trees, X)
    if trees.link == "shares":
        return actual[:, 1] - actual[:, 0]
    return actual[:, 0] if actual.shape[1] == 1 else actual


def share_of(link, value):
    if link == "half log odds":
        return 1 / (1 + math.exp(-2 * value))
    if link == "log odds":
        return 1 / (1 + math.exp(-value))
    if link == "probit":
        return math.erfc(-value / math.sqrt(2)) / 2
    assert link == "lead"
    return min(max((1 + value) / 2, 0.0), 1.0)


def probabilities(trees, X):
    """Return what `predict_proba` returns."""
    actual = values(trees, X) / trees.temperature
    if trees.link == "shares":
        return actual
    if trees.link == "softmax":
        odds = np.exp(actual - actual.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)
    share = np.vectorize(lambda value: share_of(trees.link, value))(actual)
    if share.shape[1] == 1:
        return np.hstack([1 - share, share])
    share[~share.any(axis=1)] = 1
    return share / share.sum(axis=1, keepdims=True)


def predictions(trees, X):
    """Return what `predict` returns."""
    actual = values(trees, X)
    if trees.classes is None:
        actual = actual[:, 0]
        return np.exp(actual) if trees.link == "exp" else actual
    if actual.shape[1] == 1:
        return trees.classes[(actual[:, 0] > 0).astype(int)]
    return trees.classes[actual.argmax(axis=1)]
