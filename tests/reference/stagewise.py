"""Forward stagewise additive modelling, step by step, with leaf values found on grids."""

from __future__ import annotations

import math

import numpy as np

from reference.cart import fit_cart
from reference.losses import best_step, derivatives


def of_numbers(loss, y, f):
    """Return slope and curvature, if it counts, of the losses of numbers."""
    if loss.name == "squared_error":
        return f - y, 1.0
    if loss.name == "absolute_error":
        return float((f > y) - 1.0 * (f < y)), None
    if loss.name == "quantile":
        return (1 - loss.quantile) * (f > y) - loss.quantile * (f < y), None
    if loss.name == "huber":
        return min(max(f - y, -loss.delta), loss.delta), None
    return math.exp(f) - y, math.exp(f)


def response(loss, y, f, weight, limit):
    """Return targets and weights of least squares: Newton steps, or the negative gradient."""
    target, of_target = np.zeros(len(y)), np.zeros(len(y))
    for i in range(len(y)):
        if loss.is_regression:
            slope, bend = of_numbers(loss, y[i], f[i])
        else:
            _, slope, bend = derivatives(loss.name, float(y[i] * f[i]))
            slope *= y[i]
        if bend is None:
            target[i], of_target[i] = -slope, weight[i]
            continue
        if abs(slope) > limit * bend:
            bend = abs(slope) / limit
        target[i], of_target[i] = -slope / bend, weight[i] * bend
    return target, of_target


def kink_step(loss, y, f, weight):
    """Return the middle of the kinks at which the loss is least."""
    kinks = (1 - y * f) * y if loss.name == "hinge" else y - f
    total = np.array([(weight * loss.value(y, f + s)).sum() for s in kinks])
    best = kinks[total <= total.min() + 1e-12]
    return best.min() / 2 + best.max() / 2


def leaf_of(nodes, x):
    at = 0
    while nodes[at].feature >= 0:
        node = nodes[at]
        at = node.first if x[node.feature] <= node.threshold else node.second
    return at


def fit_gradient_boosting(
    X,
    y,
    loss,
    *,
    n_estimators,
    rate,
    weight,
    max_depth,
    start,
    min_samples_leaf=1,
    max_delta_step=np.inf,
):
    """Return the decision values of the rows before the first tree and after each."""
    minimum = min(loss.limit, 1e3)

    def step(f, rows):
        if loss.name in ("hinge", "absolute_error", "quantile"):
            return kink_step(loss, y[rows], f[rows], weight[rows])
        d = np.ones(rows.sum())
        return best_step(loss, y[rows], f[rows], weight[rows], d, -minimum, minimum)[0]

    everyone = np.ones(len(y), dtype=bool)
    f = np.zeros(len(y))
    if start == "constant":
        f = f + step(f, everyone)
    stages = [f]
    for _ in range(n_estimators):
        target, of_target = response(loss, y, f, weight, loss.limit)
        nodes = fit_cart(
            X,
            target,
            criterion="squared_error",
            sample_weight=of_target,
            max_depth=max_depth,
            min_samples_leaf=min_samples_leaf,
        )
        leaf = np.array([leaf_of(nodes, x) for x in X])
        value = np.zeros(len(nodes))
        for at in np.unique(leaf):
            value[at] = rate * np.clip(step(f, leaf == at), -max_delta_step, max_delta_step)
        f = f + value[leaf]
        stages.append(f)
    return stages
