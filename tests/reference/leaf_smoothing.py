"""Smoothed class shares in the leaves of a tree, row by row."""

from __future__ import annotations

import numpy as np


def leaf_of(tree, row):
    """Return the last node and exit on the path of a row."""
    node, leaf = 0, None
    while node >= 0:
        exit_ = int(row[tree.feature[node]] > tree.threshold[node])
        leaf, node = (node, exit_), int(tree.next[node, exit_])
    return leaf


def shares_of(tree, X, mass, new, prior_rows):
    """Return the class shares of new rows: all rows together count as `prior_rows` rows."""
    prior = mass.mean(axis=0)
    leaves = [leaf_of(tree, row) for row in X]
    result = []
    for row in new:
        same = [leaf == leaf_of(tree, row) for leaf in leaves]
        total = mass[same].sum(axis=0) + prior_rows * prior
        result.append(total / total.sum())
    return np.array(result)


def certificate_of(share, mass):
    """Return the mean of exp(-F) for the class of a row and exp(F) for the others.

    F is the logarithm of the share of a class, less its mean over the classes.
    """
    score = np.log(share)
    score -= score.mean(axis=1, keepdims=True)
    other = mass.sum(axis=1, keepdims=True) - mass
    return (mass * np.exp(-score) + other * np.exp(score)).sum() / (mass.sum() * mass.shape[1])
