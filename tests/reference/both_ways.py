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
        if (w[side & known].sum() <= 0 or plus + minus < min_weight * w.sum()
                or (side & known).sum() < max(min_leaf, 1)):  # fmt: skip
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
