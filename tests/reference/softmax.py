"""Rounds of boosting several classes on bins: the same as the kernel's to the last bit.

A tree of class k is one of the log loss of two classes, of k against the others.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np

from pboost.losses import LOSSES
from reference import round_losses as losses
from reference import rounds as twin

FINE = 256


def log(x, less_1):
    """Return ln(x), given x - 1."""
    m, k = np.frexp(x)
    low = m < math.sqrt(0.5)
    m, k = np.where(low, 2 * m, m), k - low
    above = np.where(k == 0, less_1, m - 1.0)
    s = above / (above + 2.0)
    z = s * s
    zz, c = z * z, [1.0 / (2 * i + 1) for i in range(11)]
    z4 = zz * zz
    part = [(c[i] + z * c[i + 1]) + zz * (c[i + 2] + z * c[i + 3]) for i in (0, 4)]
    c8 = (c[8] + z * c[9]) + zz * c[10]
    actual = 2.0 * s * (part[0] + z4 * (part[1] + z4 * c8))
    return k * 6.93147180369123816490e-01 + (actual + k * 1.90821492927058770002e-10)


def shares(f, label):
    """Return the residuals of the classes, (J, n) as the scores, and the losses of rows."""
    is_own = np.arange(len(f))[:, None] == label
    f = f - f.max(axis=0)
    own, e = f[label, np.arange(len(label))], losses.exp(f)
    others = np.zeros(len(label))
    for k in range(len(f)):
        others += np.where(is_own[k], 0.0, e[k])
    total = others + losses.exp(own)
    value = log(total, np.where(own == 0, others, total - 1.0)) - own
    share = 1.0 / total
    return np.where(is_own, others * -share, e * share), value


def total(terms):
    """Return the sum of numbers >= 0, whatever their order."""
    scale = losses.scale_of(2.0 * terms.max(), (terms > 0).sum())
    return np.rint(terms * scale).sum() / scale


def fit(
    columns,
    label,
    n_classes,
    weight,
    *,
    bias,
    n_estimators,
    rate,
    depth,
    min_samples_leaf=1,
    l2=0.0,
    smoothing=0.0,
    most=math.inf,
    solved=True,
    listed=None,
    sums="auto",
    **held,
):
    """Return the trees, class after class in each round, and the scores (J, n) of all rows."""
    logistic = LOSSES["log_loss"]
    limit, of_shares = logistic.limit, SimpleNamespace(name="shares")
    f = np.repeat(np.asarray(bias)[:, None], len(label), axis=1)
    rate, most = rate * (0.5 if n_classes == 2 else 1.0), min(most, limit)

    def mean(value):
        return total(np.where(weight > 0, weight * value, 0.0)) / total(weight)

    residual, value = shares(f, label)
    actual = twin.Fit([], [], f, [mean(value)])
    bounds = held.pop("comparisons", None)
    for t in range(n_estimators):
        if bounds is not None:
            held |= twin.comparing(bounds, t, weight)
        rows = np.flatnonzero(weight > 0)
        held["grown_on"] = None if listed is None else listed[t]
        for k in range(n_classes):
            g, size = residual[k], np.abs(residual[k])
            h = np.maximum(size * (1.0 - size), size * (1.0 / limit))
            bits = twin.bits_of(weight * g, sums, (weight > 0).sum())
            parts = (
                columns,
                weight * g,
                weight * h,
                rows,
                depth,
                min_samples_leaf,
                l2,
                smoothing,
                bits,
            )
            grown = twin.Grown(*parts, t * n_classes + k + 1, most=most, **held)
            nodes = twin.preorder(grown.root)
            if listed is not None:
                nodes = twin.with_all(grown)
            values = np.zeros(len(nodes))
            for e, node in enumerate(nodes):
                if node.feature < 0:
                    values[e] = rate * step(node, grown, g, weight, of_shares, l2, most, solved)
            reached = {id(node): values[e] for e, node in enumerate(nodes)}
            for i in range(len(label)):
                f[k, i] += reached[id(twin.leaf_of(grown.root, columns, i))]
            actual.trees.append(nodes)
            actual.values.append(values)
        residual, value = shares(f, label)
        actual.mean_loss.append(mean(value))
    return actual


def step(node, grown, residual, weight, loss, l2, most, solved):
    """Return what a leaf adds, before the rate: by the words of its rows if they are enough."""
    at, (g, h) = node.rows, grown.sums(node.rows)
    guess = -(grown.scale[1] / grown.scale[0]) * g / (h + grown.l2)
    if not solved and h >= FINE * len(at):
        return min(max(guess, -most), most)
    limit = LOSSES["log_loss"].limit
    leaf = twin.Leaf(loss, None, residual[at], weight[at], limit, l2, most)
    return leaf.solved(guess) if solved else leaf.newton()
