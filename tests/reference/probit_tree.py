"""Probit model trees, leaf after leaf, on rows selected by masks; and rpart's rule of pruning."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from reference.cart import fit_cart
from reference.probitboost import boost


def walk(nodes, x):
    """Return the leaf of one row."""
    at = 0
    while nodes[at].feature >= 0:
        node = nodes[at]
        at = node.first if x[node.feature] <= node.threshold else node.second
    return at


def undone(nodes, complexity):
    """Return the nodes whose splits are undone: recursion over (node, cap)."""
    threshold = complexity * risk_of(nodes[0])
    leaves = set()

    def visit(at, cap):
        """Return risk, splits and gain of what is left below a node."""
        node, own = nodes[at], risk_of(nodes[at])
        cap = min(own, cap)
        if node.feature < 0 or cap <= threshold:
            leaves.add(at)
            return own, 0, threshold
        own_first, own_second = risk_of(nodes[node.first]), risk_of(nodes[node.second])
        first = visit(node.first, cap - threshold)
        maximum = max((own - first[0]) / (first[1] + 1), own - own_first)
        second = visit(node.second, min(maximum, cap) - threshold)

        def gain():
            return (own - sides[0][0] - sides[1][0]) / (sides[0][1] + sides[1][1] + 1)

        sides = [first, second]
        collapsed = [(own_first, 0), (own_second, 0)]
        order = [0, 1] if second[2] > first[2] else [1, 0]
        for side in order:
            if gain() <= (first, second)[side][2]:
                break
            sides[side] = collapsed[side]
        if gain() <= threshold:
            leaves.add(at)
            return own, 0, threshold
        return sides[0][0] + sides[1][0], sides[0][1] + sides[1][1] + 1, gain()

    visit(0, math.inf)
    return leaves


def risk_of(node):
    """Return the weight misclassified at a node."""
    return node.weight * (1 - max(node.value))


def fit_probit_tree(
    X,
    y,
    *,
    n_classes,
    max_depth=6,
    min_samples_leaf=20,
    min_samples_split=2,
    max_iter=100,
    tol=None,
    safeguard=True,
    complexity=0.0,
    sample_weight=None,
):
    """Return the nodes, which of them are leaves, and for each of these its equations.

    An equation is (intercept, slopes, steps); steps -1 where all rows are of the class, -2 where
    none is.
    """
    X, y = np.asarray(X, float), np.asarray(y)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
    nodes = fit_cart(
        X,
        y,
        criterion="gini",
        n_classes=n_classes,
        sample_weight=weight,
        max_depth=max_depth,
        min_samples_leaf=min_samples_leaf,
        min_samples_split=min_samples_split,
    )
    if complexity > 0:
        cut = undone(nodes, complexity)
        nodes = [n._replace(feature=-1) if i in cut else n for i, n in enumerate(nodes)]
    actual = {}
    at = np.array([walk(nodes, x) for x in X])
    for leaf in sorted(set(at[weight > 0].tolist())):
        rows = (at == leaf) & (weight > 0)
        actual[leaf] = [
            equation(X[rows], y[rows] == k, weight[rows], max_iter, tol, safeguard)
            for k in ([1] if n_classes == 2 else range(n_classes))
        ]
    return nodes, actual


def equation(X, is_own, weight, steps, tol, safeguard):
    if is_own.all() or not is_own.any():
        n = len(is_own)
        size = NormalDist().inv_cdf((n + 0.5) / (n + 1))
        zero = np.zeros(X.shape[1])
        return (size, zero, -1) if is_own.all() else (-size, zero, -2)
    intercept, slopes, chosen, _, _ = boost(
        X, np.where(is_own, 1.0, -1.0), weight, steps, tol, safeguard
    )
    return intercept, slopes, len(chosen)


def values(nodes, equations, X):
    """Return the values (n, K) of rows; a class without rows is below the others."""
    actual = []
    for x in np.asarray(X, float):
        row = []
        for intercept, slopes, _ in equations[walk(nodes, x)]:
            row.append(intercept + math.fsum(slopes * x))
        absent = [taken == -2 for _, _, taken in equations[walk(nodes, x)]]
        if len(row) > 1 and any(absent):
            minimum = min(v for v, none in zip(row, absent, strict=True) if not none)
            below = math.nextafter(minimum, -math.inf)
            row = [min(v, below) if none else v for v, none in zip(row, absent, strict=True)]
        actual.append(row)
    return np.array(actual)


def in_preorder(nodes):
    """Return the nodes that are reached, in preorder."""
    actual, stack = [], [0]
    while stack:
        at = stack.pop()
        actual.append(at)
        if nodes[at].feature >= 0:
            stack += [nodes[at].second, nodes[at].first]
    return actual
