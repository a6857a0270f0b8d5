"""Subagged boosted trees of any kind, one member, round and row after the other.

`grow(X, y, w)` returns a function of rows to values (n, J), or (n,) of two classes, as the trees of
probit_tree.py are. The subsamples are given.
"""

from __future__ import annotations

import math

import numpy as np

MOST = math.log(2.0**52 - 1)  # log odds of an error of 2**-52


def label_of(value):
    """Return the class of one row from its values: the first of the largest."""
    if np.ndim(value) == 0:
        return int(value > 0)
    return max(range(len(value)), key=lambda k: (value[k], -k))


def boost(X, y, w, classes, n_boosting_rounds, learning_rate, grow):
    """Return the trees of one member, their votes, the errors of all rounds, and why it ended."""
    w = np.array(w, float)
    trees, votes, errors, reason = [], [], [], "rounds"
    for round_ in range(n_boosting_rounds):
        w = w / math.fsum(w)
        tree = grow(X, y, w)
        wrong = np.array([label_of(v) != k for v, k in zip(tree(X), y, strict=True)])
        error = math.fsum(w[wrong])
        errors.append(error)
        extra = math.log(classes - 1) if classes > 2 else 0.0
        if error == 0:
            trees.append(tree)
            votes.append(math.fsum(votes) + learning_rate * MOST + extra)
            reason = "perfect"
            break
        if error >= 1 - 1 / classes:
            if round_ == 0:
                trees.append(tree)
                votes.append(1.0)
            reason = "chance"
            break
        vote = learning_rate * math.log((1 - error) / error) + extra
        trees.append(tree)
        votes.append(vote)
        w = np.array([a * math.exp(vote) if bad else a for a, bad in zip(w, wrong, strict=True)])
    return trees, votes, errors, reason


def answer(trees, votes, X, classes):
    """Return the label of a member for each row: the first of those with most votes."""
    actual = []
    values = [tree(X) for tree in trees]
    for i in range(len(X)):
        total = [
            math.fsum(a for a, v in zip(votes, values, strict=True) if label_of(v[i]) == k)
            for k in range(classes)
        ]
        if classes == 2:
            signed = [a if label_of(v[i]) else -a for a, v in zip(votes, values, strict=True)]
            actual.append(int(math.fsum(signed) > 0))
        else:
            actual.append(max(range(classes), key=lambda k, of=total: (of[k], -k)))
    return np.array(actual)


def sbpmt(X, y, bags, classes, n_boosting_rounds, learning_rate, grow, weight=None):
    """Return the members, each as `boost` returns it."""
    weight = np.ones(len(X)) if weight is None else weight
    return [
        boost(X[r], y[r], weight[r], classes, n_boosting_rounds, learning_rate, grow) for r in bags
    ]


def shares(members, X, classes):
    """Return the share (n, J) of the members that answer each class."""
    counts = np.zeros((len(X), classes))
    for trees, votes, *_ in members:
        for i, k in enumerate(answer(trees, votes, X, classes)):
            counts[i, k] += 1
    return counts / len(members)


def averages(members, X, probability):
    """Return the mean (n, J) of the members' means, by votes, of ``probability(tree, X)``."""
    of_members = []
    for trees, votes, *_ in members:
        part = [a * probability(t, X) for t, a in zip(trees, votes, strict=True)]
        of_members.append(sum(part) / math.fsum(votes))
    return sum(of_members) / len(of_members)
