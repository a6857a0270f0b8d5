"""More than two classes, one round and one label after the other."""

from __future__ import annotations

import math

import numpy as np

LARGEST = math.log(2.0**52)


def best_label_stump(X, y, w):
    """Return the stump whose two sides each answer a label, of least weighted error."""
    best = None
    for j in range(X.shape[1]):
        values = np.unique(X[:, j])
        for threshold in (values[1:] + values[:-1]) / 2:
            sides = X[:, j] <= threshold, X[:, j] > threshold
            answers = [max(np.unique(y), key=lambda k: w[s & (y == k)].sum()) for s in sides]
            error = sum(w[s & (y != k)].sum() for s, k in zip(sides, answers, strict=True))
            if best is None or error < best[0] - 1e-12:
                best = (error, j, threshold, *answers)
    return best[1:]


def answer(stump, X):
    j, threshold, below, above = stump
    return np.where(X[:, j] <= threshold, below, above)


def samme(X, y, n_estimators, weight=None):
    """Return the stumps, their votes and the errors of all rounds."""
    classes = len(np.unique(y))
    w = np.ones(len(y)) if weight is None else np.array(weight, float)
    stumps, alpha, errors = [], [], []
    for _ in range(n_estimators):
        w = w / math.fsum(w)
        stump = best_label_stump(X, y, w)
        wrong = answer(stump, X) != y
        errors.append(math.fsum(w[wrong]))
        if errors[-1] == 0:
            stumps.append(stump)
            alpha.append(LARGEST + math.log(classes - 1) + sum(alpha))
            break
        vote = math.log((1 - errors[-1]) / errors[-1]) + math.log(classes - 1)
        if vote < 1e-12:
            break
        stumps.append(stump)
        alpha.append(vote)
        w = w * np.exp(vote * wrong)
    return stumps, np.array(alpha), np.array(errors)


def votes(stumps, alpha, X, labels):
    """Return the sums of the votes, (n, J)."""
    total = np.zeros((len(X), len(labels)))
    for stump, a in zip(stumps, alpha, strict=True):
        total += a * (answer(stump, X)[:, None] == np.asarray(labels)[None])
    return total
