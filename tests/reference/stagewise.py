"""Forward stagewise additive modelling, step by step, with leaf values found on grids."""

from __future__ import annotations

import numpy as np

from reference.cart import fit_cart
from reference.losses import best_step, derivatives


def response(name, y, f, weight, limit):
    """Return targets and weights of least squares: Newton steps, or the negative gradient."""
    target, of_target = np.zeros(len(y)), np.zeros(len(y))
    for i in range(len(y)):
        if name == "squared":
            slope, bend = 2 * (f[i] - y[i]), 2.0
        else:
            _, slope, bend = derivatives(name, float(y[i] * f[i]))
            slope *= y[i]
        if bend is None:
            target[i], of_target[i] = -slope, weight[i]
            continue
        if abs(slope) > limit * bend:
            bend = abs(slope) / limit
        target[i], of_target[i] = -slope / bend, weight[i] * bend
    return target, of_target


def hinge_step(y, f, weight):
    """Return the middle of the kinks at which the loss is least."""
    kinks = (1 - y * f) * y
    total = np.array([(weight * np.maximum(0, 1 - y * (f + s))).sum() for s in kinks])
    best = kinks[total <= total.min() + 1e-12]
    return best.min() / 2 + best.max() / 2


def leaf_of(nodes, x):
    at = 0
    while nodes[at].feature >= 0:
        node = nodes[at]
        at = node.first if x[node.feature] <= node.threshold else node.second
    return at


def fit_stagewise(
    X, y, loss, *, steps, rate, weight, max_depth, start, min_leaf=1, max_step=np.inf
):
    """Return the decision values of the rows before the first tree and after each."""
    most = min(loss.limit, 1e3)

    def step(f, rows):
        if loss.name == "hinge":
            return hinge_step(y[rows], f[rows], weight[rows])
        d = np.ones(rows.sum())
        return best_step(loss, y[rows], f[rows], weight[rows], d, -most, most)[0]

    everyone = np.ones(len(y), dtype=bool)
    f = np.zeros(len(y))
    if start == "constant":
        f = f + step(f, everyone)
    stages = [f]
    for _ in range(steps):
        target, of_target = response(loss.name, y, f, weight, loss.limit)
        nodes = fit_cart(
            X, target, criterion="squared", sample_weight=of_target, max_depth=max_depth,
            min_leaf=min_leaf,
        )  # fmt: skip
        leaf = np.array([leaf_of(nodes, x) for x in X])
        value = np.zeros(len(nodes))
        for at in np.unique(leaf):
            value[at] = rate * np.clip(step(f, leaf == at), -max_step, max_step)
        f = f + value[leaf]
        stages.append(f)
    return stages
