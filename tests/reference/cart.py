"""Classification and regression trees, and their pruning, node by node with masks of rows."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from reference.keys import decrease
from reference.split import midpoint

#: Splits whose criteria differ by this share of the node's weight (squared error: of the node's
#: sum of squares) are equally good.
TIE = 1e-12


class Node(NamedTuple):
    feature: int  # -1: a leaf
    threshold: float
    value: Any  # shares of the classes, or the mean
    impurity: float
    weight: float
    n_rows: int
    depth: int
    first: int = -1
    second: int = -1


def impurity_of_shares(share, criterion):
    if criterion == "gini":
        return float(sum(p * (1 - p) for p in share))
    if criterion == "entropy":
        return float(-sum(p * math.log2(p) for p in share if p > 0))
    if criterion == "error":
        return float(1 - max(share))
    return float(2 * np.sqrt(share[0] * share[1]))


def contents(y, weight, criterion, n_classes):
    """Return the value and the impurity of the rows of a node."""
    total = weight.sum()
    if criterion == "squared_error":
        mean = y[0] + (weight * (y - y[0])).sum() / total
        return mean, float((weight * (y - mean) ** 2).sum() / total)
    share = np.array([weight[y == k].sum() for k in range(n_classes)]) / total
    return share, impurity_of_shares(share, criterion)


def risk(y, weight, criterion, n_classes):
    return weight.sum() * contents(y, weight, criterion, n_classes)[1]


def cuts(x, edges):
    """Return the thresholds that part the values of a column: all, or those of bin edges."""
    distinct = np.unique(x)
    if edges is None:
        return [midpoint(a, b) for a, b in pairwise(distinct)]
    actual, sides = [], set()
    for edge in edges:
        n_below = int((distinct <= edge).sum())
        if 0 < n_below < len(distinct) and n_below not in sides:
            sides.add(n_below)
            actual.append(edge)
    return actual


def cost_of(feature_costs, paid, feature):
    """Return what a comparison costs a row that has paid for some columns."""
    has = {item for column in paid for item in feature_costs.item[column].tolist()}
    items = (item for item in feature_costs.item[feature].tolist() if item >= 0 and item not in has)
    return feature_costs.comparison + sum(feature_costs.cost[item] for item in items)


def best_cut(
    X,
    y,
    weight,
    criterion,
    n_classes,
    min_samples_leaf=1,
    edges=None,
    columns=None,
    feature_costs=None,
    paid=(),
):
    """Return (risk after, feature, threshold) of the best cut, the first of those equally good.

    Where columns have prices it is the cut that lowers the risk most for what it costs rows that
    have paid for some columns; of columns equally good the cheapest.
    """
    actual = []
    for j in range(X.shape[1]) if columns is None else sorted(columns):
        for threshold in cuts(X[:, j], None if edges is None else edges[j]):
            below = X[:, j] <= threshold
            if min(below.sum(), (~below).sum()) < min_samples_leaf:
                continue
            after = sum(risk(y[s], weight[s], criterion, n_classes) for s in (below, ~below))
            actual.append((after, j, threshold))
    if not actual:
        return None
    unit = risk(y, weight, criterion, n_classes) if criterion == "squared_error" else weight.sum()
    if feature_costs is not None:
        cost = {j: cost_of(feature_costs, paid, j) for _, j, _ in actual}
        before = risk(y, weight, criterion, n_classes)
        maximum = max((before - after) / cost[j] for after, j, _ in actual)
        good = [j for after, j, _ in actual if before - after + TIE * unit >= maximum * cost[j]]
        chosen = min(good, key=lambda j: (cost[j], j))
        actual = [cut for cut in actual if cut[1] == chosen]
    minimum = min(after for after, _, _ in actual)
    return next(cut for cut in actual if cut[0] <= minimum + TIE * unit)


def is_pure(y):
    return (y == y[0]).all()


def fit_cart(
    X,
    y,
    *,
    criterion,
    n_classes=0,
    sample_weight=None,
    max_depth=np.inf,
    min_samples_leaf=1,
    min_samples_split=2,
    max_leaf_nodes=None,
    edges=None,
    feature_costs=None,
):
    """Grow a tree; `y` holds codes 0, 1, … or numbers. Returns its nodes in preorder."""
    X, y = np.asarray(X, float), np.asarray(y)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
    used = weight > 0
    X, y, weight = X[used], y[used], weight[used]

    def look(rows, paid):
        """A node as a leaf, its rows and its best cut; `paid` are the columns on the way to it."""
        depth = len(paid)
        value, impurity = contents(y[rows], weight[rows], criterion, n_classes)
        leaf = Node(-1, 0.0, value, impurity, weight[rows].sum(), len(rows), depth)
        may = depth < max_depth and len(rows) >= min_samples_split and not is_pure(y[rows])
        at = (X[rows], y[rows], weight[rows], criterion, n_classes, min_samples_leaf, edges)
        return leaf, rows, best_cut(*at, feature_costs=feature_costs, paid=paid) if may else None

    tree = {(): look(np.arange(len(y)), ())}  # by the sides taken on the way
    split = set()
    while max_leaf_nodes is None or len(split) + 1 < max_leaf_nodes:
        open_ = [path for path, (_, _, cut) in tree.items() if cut and path not in split]
        if not open_:
            break

        def gain(path):
            leaf, _, cut = tree[path]
            return decrease(leaf.weight * leaf.impurity, leaf.weight * leaf.impurity - cut[0])

        path = max(open_, key=gain)
        _, rows, (_, feature, threshold) = tree[path]
        below = X[rows, feature] <= threshold
        paid = [tree[path[:k]][2][1] for k in range(len(path) + 1)]
        split.add(path)
        for side, mask in enumerate((below, ~below)):
            tree[(*path, side)] = look(rows[mask], paid)
    return in_preorder(tree, split)


def in_preorder(tree, split):
    paths = sorted(tree)
    place = {path: i for i, path in enumerate(paths)}
    nodes = []
    for path in paths:
        leaf, _, cut = tree[path]
        if path in split:
            leaf = leaf._replace(
                feature=cut[1],
                threshold=cut[2],
                first=place[(*path, 0)],
                second=place[(*path, 1)],
            )
        nodes.append(leaf)
    return nodes


def subtrees(nodes, at=0):
    """Yield every subtree with the same root, as the set of its leaves."""
    yield frozenset([at])
    if nodes[at].feature >= 0:
        pairs = product(subtrees(nodes, nodes[at].first), subtrees(nodes, nodes[at].second))
        for first, second in pairs:
            yield first | second


def best_subtree(nodes, ccp_alpha, slack=1e-9):
    """Return the leaves of the smallest subtree with the least cost, by trying all."""
    actual = []
    for leaves in subtrees(nodes):
        cost = sum(nodes[i].weight * nodes[i].impurity for i in leaves) + ccp_alpha * len(leaves)
        actual.append((cost, len(leaves), leaves))
    minimum = min(cost for cost, _, _ in actual)
    return min((f for f in actual if f[0] <= minimum + slack), key=lambda f: f[1])[2]
