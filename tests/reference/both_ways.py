"""The best stump where rows whose value is missing go both ways, by brute force.

At a cut they lie above with probability q, the share of the known rows' reach there.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from reference.split import TOLERANCE, impurity, neighbour_midpoints

LONG = np.longdouble


def divided(above, known, reach):
    """Return q, and the probability of each row to lie above; None where a side has no reach."""
    reached = np.where(known, reach, 0.0).astype(LONG)
    q = reached[above & known].sum() / reached.sum() if reached.sum() else LONG(0)
    return (q, np.where(known, above, q).astype(LONG)) if 0 < q < 1 else None


def scored(above, known, y, w, reach, criterion, *, min_weight=0.0, min_leaf=1):
    """Return the criterion of a cut, and q; None where it is not legal."""
    found = divided(above, known, reach)
    if found is None:
        return None
    q, p = found
    w = w.astype(LONG)
    score = LONG(0)
    for share, side in ((1 - p, ~above), (p, above)):
        plus, minus = ((w * share)[y == label].sum() for label in (1, -1))
        if (
            w[side & known].sum() <= 0
            or plus + minus < min_weight * w.sum()
            or (side & known).sum() < max(min_leaf, 1)
        ):
            return None
        score += impurity(criterion, plus, minus)
    return score, float(q)


def best_stump(X, y, w, reach, criterion="kearns-mansour", *, edges=None, **limits):
    """Return (feature, threshold, q) of the first of the best legal cuts, or None."""
    cuts = []
    for j in range(X.shape[1]):
        known = ~np.isnan(X[:, j])
        tried = neighbour_midpoints(X[known, j]) if edges is None else edges[j]
        for threshold in tried:
            found = scored(X[:, j] > threshold, known, y, w, reach, criterion, **limits)
            if found is not None:
                q = found[1] if not known.all() else None
                cuts.append((found[0], j, float(threshold), q))
    if not cuts:
        return None
    limit = min(cut[0] for cut in cuts) + TOLERANCE * w.astype(LONG).sum()
    return next(cut[1:] for cut in cuts if cut[0] <= limit)


def best_subset(level, y, w, reach, criterion="kearns-mansour"):
    """Return the least criterion of a set of levels, whatever the set."""
    known = ~np.isnan(level)
    present = np.unique(level[known])
    sets = (s for size in range(1, len(present)) for s in combinations(present, size))
    scores = (scored(np.isin(level, s), known, y, w, reach, criterion) for s in sets)
    return min((found[0] for found in scores if found is not None), default=LONG(np.inf))


def grown(X, target, w, impurity_of, *, depth=99, min_leaf=1, min_split=2, levels=()):
    """Return a tree as nested tuples: (sums, rows) of a leaf, else with (column, cut, q, children).

    `target` (n, m) is what is summed up, times weights; ``impurity_of(sums)`` is weight times
    impurity of (weight, *sums). A cut is a threshold, or a frozenset of the levels above.
    """
    start = np.ones(len(w))
    return _grown(X, target, w, start, impurity_of, depth, min_leaf, min_split, levels)


def _sums(target, w):
    return np.concatenate([[w.sum()], (w[:, None] * target).sum(axis=0)]).astype(LONG)


def _grown(X, target, w, part, risk, depth, min_leaf, min_split, levels):
    here = _sums(target, w * part)
    rows = np.flatnonzero(part > 0)
    leaf = here, len(rows)
    is_pure = (target[rows] == target[rows[0]]).all()
    if is_pure or depth == 0 or part.sum() < min_split - 1e-9:
        return leaf
    found = []
    for j in range(X.shape[1]):
        x = X[:, j]
        known = ~np.isnan(x) & (part > 0)
        values = np.unique(x[known])
        if j in levels:
            sets = [s for k in range(1, len(values)) for s in combinations(values, k)]
            cuts = [(frozenset(s), np.isin(x, s)) for s in sets]
        else:
            cuts = [(t, x > t) for t in neighbour_midpoints(x[known])]
        for cut, above in cuts:
            mass = (w * part)[known]
            q = mass[above[known]].sum() / mass.sum()
            sides = [part * np.where(known, above == side, q if side else 1 - q) for side in (0, 1)]
            if min(side.sum() for side in sides) < min_leaf - 1e-9 or not 0 < q < 1:
                continue
            score = sum(risk(_sums(target, w * side)) for side in sides)
            found.append((score, j, cut, q, sides))
    if not found:
        return leaf
    least = min(one[0] for one in found)
    _, j, cut, q, sides = next(one for one in found if one[0] <= least + 1e-11 * here[0])
    children = [
        _grown(X, target, w, s, risk, depth - 1, min_leaf, min_split, levels) for s in sides
    ]
    return *leaf, j, cut, q, children
