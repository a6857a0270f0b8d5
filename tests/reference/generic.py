"""Generic greedy boosting by the letter of the theory, section 7: one row after the other."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reference.adaboost import VOTE_LIMIT
from reference.split import TOLERANCE, best_stump


class Run(NamedTuple):
    mu: list
    alpha: list
    weight: np.ndarray  # after the last step
    H: np.ndarray
    bound: float  # sum over paths of w(S_p) prod sqrt(1 - mu^2)


def generic_greedy(y, w, steps):
    """Run G²; `steps` are pairs of a mask of the rows that reach h, and h on all rows."""
    w, n = np.array(w, dtype=float), len(y)
    w = w / math.fsum(w)
    mus, alphas, H = [], [], np.zeros(n)
    paths = [() for _ in range(n)]
    for t, (reached, h) in enumerate(steps):
        rows = [i for i in range(n) if reached[i]]
        largest = max(abs(h[i]) for i in rows)
        mu = math.fsum(w[i] * y[i] * h[i] for i in rows) / (largest * math.fsum(w[i] for i in rows))
        alpha = math.log((1 + mu) / (1 - mu)) / (2 * largest)
        for i in rows:
            w[i] *= (1 - mu * y[i] * h[i] / largest) / (1 - mu**2)
            H[i] += alpha * h[i]
            paths[i] = (*paths[i], t)
        mus.append(mu)
        alphas.append(alpha)
    bound = 0.0
    for path in set(paths):
        mass = math.fsum(w[i] for i in range(n) if paths[i] == path)
        bound += mass * math.prod(math.sqrt(1 - mus[t] ** 2) for t in path)
    return Run(mus, alphas, w, H, bound)


class Real(NamedTuple):
    feature: list
    mu: list
    alpha: list
    H: np.ndarray
    certificate: list


def fit_real(X, y, *, n_estimators, answers, smoothing=0.0, learning_rate=1.0, sample_weight=None):
    """Boost on a chain; `answers(w)` returns (feature, h on all rows, its largest value) or None.

    With smoothing and shrinkage the weights follow the chord of exp(-alpha y h), whose slope is
    then another.
    """
    w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    start = w = w / math.fsum(w)
    H = np.zeros(len(y))
    feature, mus, alphas, certificate = [], [], [], [1.0]
    for _ in range(n_estimators):
        actual = answers(w)
        if actual is None:
            break
        j, h, largest = actual
        u = y * h / largest
        mu = math.fsum(w * u)
        right, wrong = (1 + mu) / 2 + smoothing, (1 - mu) / 2 + smoothing
        perfect = bool(np.all(u == np.sign(mu)))
        if wrong <= 0 or right <= 0 or (perfect and smoothing == 0):
            vote = VOTE_LIMIT if mu > 0 else -VOTE_LIMIT
        else:
            vote = min(max(0.5 * math.log(right / wrong), -VOTE_LIMIT), VOTE_LIMIT)
        vote *= learning_rate
        if abs(vote) < 1e-12:
            break
        slope = math.tanh(vote)
        w = w * (1 - slope * u)
        w = w / math.fsum(w)
        H = H + vote * (h / largest)
        feature.append(j)
        mus.append(mu)
        alphas.append(vote / largest)
        certificate.append(math.fsum(start * np.exp(-y * H)))
        if perfect:
            break
    return Real(feature, mus, alphas, H, certificate)


def columns(X, y, center, constant=True):
    """Return the `answers` of the columns themselves."""
    scaled = X - center
    scale = np.abs(scaled).max(axis=0)
    u = [column / s if s > 0 else column * 0 for column, s in zip(scaled.T, scale, strict=True)]
    if constant:
        u.append(np.ones(len(y)))

    def answers(w):
        sizes = [abs(math.fsum(w * y * h)) for h in u]
        best = next(j for j, size in enumerate(sizes) if size >= max(sizes) - TOLERANCE)
        return (-1 if best == X.shape[1] else best), u[best], 1.0

    return answers


def stumps(X, y, confidence, smoothing):
    """Return the `answers` of confidence-rated stumps."""

    def answers(w):
        actual = best_stump(X, y, w)
        if actual is None:
            return None
        j, t = actual
        below = X[:, j] <= t
        h = np.empty(len(y))
        for side in (below, ~below):
            p, n = math.fsum(w[side & (y > 0)]), math.fsum(w[side & (y < 0)])
            if confidence == "share":
                value = (p - n) / (p + n + 2 * smoothing)
            elif confidence == "sign":
                value = 1.0 if p - n > TOLERANCE else -1.0
            elif p + smoothing == 0 or n + smoothing == 0:
                value = VOTE_LIMIT if p > n else -VOTE_LIMIT
            else:
                value = 0.5 * math.log((p + smoothing) / (n + smoothing))
                value = min(max(value, -VOTE_LIMIT), VOTE_LIMIT)
            h[side] = value
        largest = np.abs(h).max()
        return (j, h, largest) if largest > 0 else None

    return answers
