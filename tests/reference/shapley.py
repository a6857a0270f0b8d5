"""Shapley values of trees by their definition: a sum over all sets of known features."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np

from reference import tree_sum as twin


def mean_by_weight(trees, tree, row, known):
    """Return the mean value (K,) of a tree if only some features of a row are known, by weight."""
    root = int(trees.root[tree])

    def mean(node):
        if trees.feature[node] < 0:
            return trees.value[node]
        below = [root + int(child) for child in trees.children[node]]
        if trees.feature[node] in known:
            return mean(below[int(twin.goes_to_second(trees, node, row))])
        weight = trees.weight[below]
        return (weight[0] * mean(below[0]) + weight[1] * mean(below[1])) / weight.sum()

    return mean(root)


def mean_by_rows(trees, tree, row, known, background, weight=None):
    """Return the mean value (K,) of a tree if the other features are those of background rows."""
    rows = background.copy()
    rows[:, list(known)] = row[list(known)]
    leaves = [twin.leaf_of(trees, tree, mixed) for mixed in rows]
    return np.average(trees.value[leaves], axis=0, weights=weight)


def known_values(trees, row, mean):
    """Return the decision values (J,) for each set of known features; see `mean_by_weight`."""
    values = {}
    for size in range(trees.n_features + 1):
        for known in combinations(range(trees.n_features), size):
            total = np.zeros(trees.n_values)
            for tree in range(trees.n_trees):
                output = slice(None) if trees.target is None else [trees.target[tree]]
                total[output] += mean(trees, tree, row, known)
            if trees.aggregation == "mean":
                total /= trees.n_trees
            values[frozenset(known)] = trees.bias + total
    return values


def shapley_values(trees, row, mean=mean_by_weight):
    """Return the Shapley values (d, J) of a row, and the value without known features."""
    d, value = trees.n_features, known_values(trees, row, mean)
    parts = np.zeros((d, trees.n_values))
    for known, without in value.items():
        for j in set(range(d)) - known:
            share = factorial(len(known)) * factorial(d - len(known) - 1) / factorial(d)
            parts[j] += share * (value[known | {j}] - without)
    return parts, value[frozenset()]


def interaction_values(trees, row, mean=mean_by_weight):
    """Return the interaction values (d, d, J) of a row; each row sums to a Shapley value."""
    d, value = trees.n_features, known_values(trees, row, mean)
    parts = np.zeros((d, d, trees.n_values))
    for known, without in value.items():
        for i, j in combinations(sorted(set(range(d)) - known), 2):
            share = factorial(len(known)) * factorial(d - len(known) - 2) / factorial(d - 1) / 2
            both = value[known | {i, j}] - value[known | {i}] - value[known | {j}] + without
            parts[i, j] += share * both
            parts[j, i] += share * both
    total, _ = shapley_values(trees, row, mean)
    for j in range(d):
        parts[j, j] = total[j] - parts[j].sum(axis=0)
    return parts
