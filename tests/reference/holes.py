"""The best stump of columns with missing values, or of levels, by brute force from the definition.

A column with missing values stands twice: first they are +infinity, then -infinity. A column of
levels is cut by every set of the levels that have weight.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from reference.split import TOLERANCE, cut_masses, impurity, neighbour_midpoints

MOST = np.finfo(np.float64).max


def all_cuts(X, y, w, criterion, *, edges=None, min_weight_fraction=0.0, min_samples_leaf=1):
    """Return (feature, threshold, side, value) of every legal cut, in the order of preference.

    `side` is that of missing values, -1 where no row has none; `edges` are the thresholds to try.
    """
    total, cuts = np.asarray(w, dtype=np.longdouble).sum(), []
    for j in range(X.shape[1]):
        x = X[:, j].astype(np.float64)
        holes, known = np.isnan(x), x[~np.isnan(x)]
        inner = neighbour_midpoints(known) if edges is None else np.asarray(edges[j], dtype=float)
        copies = [(-1, x, inner)]
        if holes.any():
            above, below = (np.where(holes, value, x) for value in (np.inf, -np.inf))
            copies = [(1, above, np.append(inner, MOST)), (0, below, inner)]
        for side, values, thresholds in copies:
            (bp, bm, ap, am), counts = cut_masses(values, y, w, thresholds)
            value = impurity(criterion, bp, bm) + impurity(criterion, ap, am)
            legal = np.ones(len(thresholds), dtype=bool)
            for mass, count in ((bp + bm, counts[0]), (ap + am, counts[1])):
                legal &= (
                    (mass > 0)
                    & (mass >= min_weight_fraction * total)
                    & (count >= max(min_samples_leaf, 1))
                )
            cuts += [(j, float(thresholds[i]), side, value[i]) for i in np.flatnonzero(legal)]
    return cuts


def best_stump(X, y, w, criterion="kearns_mansour", **options):
    """Return (feature, threshold, side) of the first of the best legal cuts, or None."""
    cuts = all_cuts(X, y, w, criterion, **options)
    if not cuts:
        return None
    limit = min(cut[3] for cut in cuts) + TOLERANCE * np.asarray(w, dtype=np.longdouble).sum()
    return next(cut[:3] for cut in cuts if cut[3] <= limit)


def best_subset(level, y, w, criterion="kearns_mansour", min_samples_leaf=1):
    """Return the least criterion of a set of levels (NaN: missing), whatever the set and side."""
    holes = np.isnan(level)
    present = np.unique(level[~holes])
    actual = np.inf
    for size in range(len(present) + 1):
        for chosen in combinations(present, size):
            for side in (True, False) if holes.any() else (False,):
                above = np.isin(level, chosen) | (holes & side)
                if min(above.sum(), (~above).sum()) < max(min_samples_leaf, 1):
                    continue
                actual = min(actual, of_sides(above, y, w, criterion))
    return actual


def of_sides(above, y, w, criterion):
    """Return the criterion of two sides."""
    w = np.asarray(w, dtype=np.longdouble)
    parts = [(w[side & (y > 0)].sum(), w[side & (y < 0)].sum()) for side in (above, ~above)]
    if min(map(sum, parts)) <= 0:
        return np.inf
    return sum(impurity(criterion, *part) for part in parts)
