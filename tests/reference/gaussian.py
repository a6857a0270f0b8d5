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
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        z = (np.asarray(x, float) - threshold) / sigma
    z = np.where(np.isnan(z), -np.inf, z)  # at the threshold without error
    likely, unlikely = np.where(np.abs(z) > CERTAIN, [[1.0], [0.0]], [ndtr(abs(z)), ndtr(-abs(z))])
    return np.where(z > 0, unlikely, likely), np.where(z > 0, likely, unlikely)


def rounded_sigma(sigma):
    """Return one of at most LEVELS standard deviations for each row of a column."""
    distinct = np.unique(sigma)
    if len(distinct) <= LEVELS:
        return sigma
    actual = np.empty(len(sigma))
    for k in range(LEVELS):
        here = distinct[len(distinct) * k // LEVELS : len(distinct) * (k + 1) // LEVELS]
        inside = (sigma >= here[0]) & (sigma <= here[-1])
        actual[inside] = math.sqrt(here[0]) * math.sqrt(here[-1])
    return actual


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

    def best_stump(
        self, y, w, criterion="kearns_mansour", min_weight_fraction=0.0, min_samples_leaf=1
    ):
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
                legal = all(sum(m) > 0 and sum(m) >= min_weight_fraction * total for m in masses)
                if legal and min(n_below, len(y) - n_below) >= min_samples_leaf:
                    cuts.append((j, float(t), sum(impurity(criterion, *m) for m in masses)))
        if not cuts:
            return None
        limit = min(value for *_, value in cuts) + TOLERANCE * total
        return next((j, t) for j, t, value in cuts if value <= limit)


class HoledColumns:
    """What the search knows of rows some of whose values are missing (NaN)."""

    def __init__(self, X, sigma, weight, max_bins):
        self.X, self.sigma = np.asarray(X, float), np.broadcast_to(sigma, np.shape(X))
        self.weight, self.max_bins = weight, max_bins

    def best_stump(
        self, y, w, criterion="kearns_mansour", min_weight_fraction=0.0, min_samples_leaf=1
    ):
        """Return (feature, threshold, side) of least expected criterion; missing rows lie above,
        then below, with certainty; -1 where none has weight."""
        total, cuts = np.asarray(w, np.longdouble).sum(), []
        for j, x in enumerate(self.X.T):
            holes = np.isnan(x)
            known = np.flatnonzero(~holes)
            places, edges = np.zeros(len(x)), np.empty(0)
            if len(known):
                minimum = min(self.max_bins, 255) if holes.any() else self.max_bins
                of_rows = None if self.weight is None else self.weight[known]
                codes, edges = rank_bins(x[known], of_rows, minimum)
                for b in np.unique(codes):
                    here = known[codes == b]
                    places[here] = midpoint(x[here].min(), x[here].max())
            sigma = np.zeros(len(x))
            sigma[known] = rounded_sigma(self.sigma[known, j]) if len(known) else 0.0
            looks = [(-1, edges)]
            if w[holes].any():
                last = [np.finfo(float).max] if len(known) else []
                looks = [(1, np.append(edges, last)), (0, edges)]
            for side, thresholds in looks:
                for t in thresholds:
                    below, above = exit_probabilities(places, t, sigma)
                    below[holes], above[holes] = (0.0, 1.0) if side == 1 else (1.0, 0.0)
                    hard = np.where(holes, side == 1, x > t)
                    cut = self._judged(y, w, criterion, (below, above), hard)
                    if (
                        cut[0] > 0
                        and cut[0] >= min_weight_fraction * total
                        and cut[1] >= min_samples_leaf
                    ):
                        cuts.append((j, float(t), side, cut[2]))
        if not cuts:
            return None
        limit = min(value for *_, value in cuts) + TOLERANCE * total
        return next(cut[:3] for cut in cuts if cut[3] <= limit)

    def _judged(self, y, w, criterion, exits, hard):
        """Return the least mass and the least number of rows of a side, and the criterion."""
        masses = [
            [(w * q)[y == label].astype(np.longdouble).sum() for label in (1, -1)] for q in exits
        ]
        value = sum(impurity(criterion, *m) for m in masses)
        return min(map(sum, masses)), min(hard.sum(), (~hard).sum()), value
