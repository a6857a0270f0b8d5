"""The best stump by brute force: try every legal cut.

Sums run in extended precision and from both ends, so that the mass of either side has a small
relative error, however small the side is.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

#: Values within this share of the total weight count as equally good.
TOLERANCE = 1e-12


def midpoint(a, b):
    """Return a threshold t with a <= t < b, halfway where float64 has such a number."""
    a, b = float(a), float(b)
    t = a / 2 + b / 2
    return t if a <= t < b else a


def impurity(criterion, plus, minus):
    """Return the criterion of one side, in units of mass; 0 if the side is empty or pure.

    A criterion that is no name is a function of the share of a class.
    """
    plus, minus = np.asarray(plus), np.asarray(minus)
    total = plus + minus
    safe = np.where(total > 0, total, 1)
    if callable(criterion):
        return total * criterion(plus / safe)
    if criterion == "kearns_mansour":
        return 2 * np.sqrt(plus) * np.sqrt(minus)
    if criterion == "gini":
        return 4 * plus * (minus / safe)
    if criterion == "error":
        return 2 * np.minimum(plus, minus)
    if criterion == "entropy":
        value = 0
        for part in (plus, minus):
            share = np.where(part > 0, part / safe, 1)
            value = value - part * np.log2(share)
        return value
    raise ValueError(criterion)


def cut_masses(x, y, w, thresholds):
    """Return the masses (below+, below-, above+, above-) and counts (below, above) of cuts."""
    order = np.argsort(x, kind="stable")
    below = np.searchsorted(x[order], thresholds, side="right")  # rows with x <= threshold
    masses = []
    for label in (1, -1):
        mass = np.where(y[order] == label, w[order], 0).astype(np.longdouble)
        from_left = np.concatenate([[0], np.cumsum(mass)])
        from_right = np.concatenate([np.cumsum(mass[::-1])[::-1], [0]])
        masses.append((from_left[below], from_right[below]))
    (below_plus, above_plus), (below_minus, above_minus) = masses
    return (below_plus, below_minus, above_plus, above_minus), (below, len(x) - below)


def neighbour_midpoints(x):
    """Return the midpoints of neighbouring distinct values, ascending."""
    distinct = np.unique(x)
    return np.array([midpoint(a, b) for a, b in pairwise(distinct)])


def all_cuts(X, y, w, criterion, *, edges=None, min_weight_fraction=0.0, min_samples_leaf=1):
    """Return (feature, threshold, value) of every legal cut, in that order.

    Parameters
    ----------
    edges : list of arrays or None
        The thresholds to try in each column; None: all midpoints.
    """
    total = np.asarray(w, dtype=np.longdouble).sum()
    cuts = []
    for j in range(X.shape[1]):
        x = X[:, j].astype(np.float64)
        thresholds = neighbour_midpoints(x) if edges is None else edges[j]
        if len(thresholds) == 0:
            continue
        (bp, bm, ap, am), counts = cut_masses(x, y, w, thresholds)
        value = impurity(criterion, bp, bm) + impurity(criterion, ap, am)
        legal = np.ones(len(thresholds), dtype=bool)
        for mass, count in ((bp + bm, counts[0]), (ap + am, counts[1])):
            legal &= (
                (mass > 0)
                & (mass >= min_weight_fraction * total)
                & (count >= max(min_samples_leaf, 1))
            )
        cuts += [(j, float(thresholds[i]), value[i]) for i in np.flatnonzero(legal)]
    return cuts


def best_stump(X, y, w, criterion="kearns_mansour", **options):
    """Return (feature, threshold) of the best legal cut, or None.

    Of equally good cuts the first in the order of features, then thresholds. Options as in
    `all_cuts`.
    """
    cuts = all_cuts(X, y, w, criterion, **options)
    if not cuts:
        return None
    total = np.asarray(w, dtype=np.longdouble).sum()
    limit = min(value for _, _, value in cuts) + TOLERANCE * total
    return next((j, t) for j, t, value in cuts if value <= limit)


def is_strictly_best(X, y, w, criterion="gini", gap=1e-9, **options):
    """Whether one cut is better than all others by more than `gap` of the total weight."""
    values = sorted(value for _, _, value in all_cuts(X, y, w, criterion, **options))
    return len(values) == 1 or values[1] - values[0] > gap * np.sum(w)
