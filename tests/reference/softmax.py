"""Rounds of boosting several classes on bins: the same as the kernel's to the last bit.

A tree of class k is one of the log loss of two classes, of k against the others, at the log odds.
"""

from __future__ import annotations

import math

import numpy as np

from pboost.losses import LOSSES
from reference import round_losses as losses
from reference import rounds as twin


def ln(x):
    m, k = np.frexp(x)
    low = m < math.sqrt(0.5)
    m, k = np.where(low, 2 * m, m), k - low
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    zz, c = z * z, [1.0 / (2 * i + 1) for i in range(10)]
    z4 = zz * zz
    part = [(c[i] + z * c[i + 1]) + zz * (c[i + 2] + z * c[i + 3]) for i in (0, 4)]
    found = 2.0 * s * (part[0] + z4 * (part[1] + z4 * (c[8] + z * c[9])))
    return k * 6.93147180369123816490e-01 + (found + k * 1.90821492927058770002e-10)


def log_odds(f):
    """Return the log odds of each class against the others, (J, n) as the scores."""
    most, first = f.max(axis=0), f.argmax(axis=0)
    e = losses.exp(f - most)
    rest = np.zeros(f.shape[1])
    for k in range(len(f)):
        rest += np.where(first == k, 0.0, e[k])
    is_first = np.arange(len(f))[:, None] == first
    return (f - most) - ln(np.where(is_first, rest, (1.0 + rest) - e))


def mean_loss(f, label, weight):
    own = log_odds(f)[label, np.arange(len(label))]
    value = losses.log_1_plus(losses.exp(-np.abs(own))) + np.where(own < 0, -own, 0.0)
    terms = np.where(weight > 0, weight * value, 0.0)
    return total(terms) / total(weight)


def total(terms):
    """Return the sum of numbers >= 0, whatever their order."""
    scale = losses.scale_of(2.0 * terms.max(), (terms > 0).sum())
    return np.rint(terms * scale).sum() / scale


def fit(
    columns, label, n_classes, weight, *, bias, steps, rate, depth, min_leaf=1, l2=0.0,
    smoothing=0.0, most=math.inf, solved=True, listed=None, sums="auto",
):  # fmt: skip
    """Return the trees, class after class in each round, and the scores (J, n) of all rows."""
    logistic = LOSSES["logistic"]
    f = np.repeat(np.asarray(bias)[:, None], len(label), axis=1)
    found = twin.Fit([], [], f, [mean_loss(f, label, weight)])
    rate, most = rate * (1.0 - 1.0 / n_classes), min(most, logistic.limit)
    for t in range(steps):
        rows = np.flatnonzero(weight > 0) if listed is None else listed[t]
        odds = log_odds(f)
        for k in range(n_classes):
            y, z = np.where(label == k, 1.0, -1.0), odds[k]
            slopes = twin.slopes(logistic, y, z, weight, logistic.limit)[:2]
            bits = twin.bits_of(slopes[0], sums, (weight > 0).sum())
            grown = twin.Grown(columns, *slopes, rows, depth, min_leaf, l2, smoothing, bits)
            nodes = twin.preorder(grown.root)
            values = np.zeros(len(nodes))
            for e, node in enumerate(nodes):
                if node.feature < 0:
                    at = node.rows
                    leaf = twin.Leaf(logistic, y[at], z[at], weight[at], logistic.limit, l2, most)
                    g, h = grown.sums(at)
                    guess = -(grown.scale[1] / grown.scale[0]) * g / (h + grown.l2)
                    values[e] = rate * (leaf.solved(guess) if solved else leaf.newton())
            reached = {id(node): values[e] for e, node in enumerate(nodes)}
            for i in range(len(y)):
                f[k, i] += reached[id(twin.leaf_of(grown.root, columns, i))]
            found.trees.append(nodes)
            found.values.append(values)
        found.mean_loss.append(mean_loss(f, label, weight))
    return found
