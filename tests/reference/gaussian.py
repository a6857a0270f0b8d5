"""Features measured with a normal error: answers, and the best stump by brute force."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from reference.sort import rank_bins
from reference.split import TOLERANCE, impurity, midpoint

#: Standard deviations beyond which an answer is certain.
CERTAIN = 8.3
#: Different standard deviations by which a column is searched, where each cell has its own.
LEVELS = 2


def exit_probabilities(x, threshold, sigma):
    """Return the probability of exit 0 and of exit 1 for each value."""
    with np.errstate(over="ignore"):
        z = (np.asarray(x, float) - threshold) / sigma
    likely, unlikely = np.where(np.abs(z) > CERTAIN, [[1.0], [0.0]], [ndtr(abs(z)), ndtr(-abs(z))])
    return np.where(z > 0, unlikely, likely), np.where(z > 0, likely, unlikely)


def rounded_sigma(sigma):
    """Return one of at most LEVELS standard deviations for each row of a column."""
    distinct = np.unique(sigma)
    if len(distinct) <= LEVELS:
        return sigma
    found = np.empty(len(sigma))
    for k in range(LEVELS):
        here = distinct[len(distinct) * k // LEVELS : len(distinct) * (k + 1) // LEVELS]
        inside = (sigma >= here[0]) & (sigma <= here[-1])
        found[inside] = math.sqrt(here[0]) * math.sqrt(here[-1])
    return found


class NoisyColumns:
    """What the search knows of the rows: bins, the values that stand for them, and errors."""

    def __init__(self, X, sigma, weight, max_bins):
        self.places, self.edges, self.below = [], [], []
        self.sigma = sigma
        for x in np.asarray(X, float).T:
            codes, edges = rank_bins(x, weight, max_bins)
            place = np.empty(len(x))
            for b in np.unique(codes):
                here = x[codes == b]
                place[codes == b] = midpoint(here.min(), here.max())
            self.places.append(place)
            self.edges.append(edges)
            self.below.append(np.array([(x <= t).sum() for t in edges], dtype=int))

    def best_stump(self, y, w, criterion="kearns-mansour", min_weight=0.0, min_leaf=1):
        """Return (feature, threshold) of least expected criterion; ties as in `best_stump`."""
        total, cuts = np.asarray(w, np.longdouble).sum(), []
        for j, (place, edges) in enumerate(zip(self.places, self.edges, strict=True)):
            sigma = self.sigma[:, j]
            sigma = rounded_sigma(sigma)
            for t, n_below in zip(edges, self.below[j], strict=True):
                masses = [
                    [(w * q)[y == label].astype(np.longdouble).sum() for label in (1, -1)]
                    for q in exit_probabilities(place, t, sigma)
                ]
                legal = all(sum(m) > 0 and sum(m) >= min_weight * total for m in masses)
                if legal and min(n_below, len(y) - n_below) >= min_leaf:
                    cuts.append((j, float(t), sum(impurity(criterion, *m) for m in masses)))
        if not cuts:
            return None
        limit = min(value for *_, value in cuts) + TOLERANCE * total
        return next((j, t) for j, t, value in cuts if value <= limit)
