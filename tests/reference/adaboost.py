"""AdaBoost with domain-partitioned or symmetric votes, one round after the other."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reference.sort import bin_edges
from reference.split import TOLERANCE, best_stump

#: Half log odds beyond which float64 cannot tell a probability from 1.
VOTE_LIMIT = 0.5 * math.log(2.0**52)


class Chain(NamedTuple):
    feature: np.ndarray
    threshold: np.ndarray
    vote: np.ndarray
    certificate: np.ndarray
    bias: float
    stop_reason: str


def half_log_odds(plus, minus):
    """Return ½ ln(plus/minus), clipped to what a vote may be."""
    if plus == minus:
        return 0.0
    if minus == 0 or plus == 0:
        return VOTE_LIMIT if minus == 0 else -VOTE_LIMIT
    return min(max(0.5 * math.log(plus / minus), -VOTE_LIMIT), VOTE_LIMIT)


def domain_votes(sides, smoothing, learning_rate):
    """Each exit votes the half log odds of its own class masses."""
    delta = smoothing * sum(map(sum, sides))
    return [learning_rate * half_log_odds(a + delta, b + delta) for a, b in sides]


def symmetric_votes(sides, smoothing, learning_rate):
    """Each exit answers its majority label, where there is none -; both answers weigh the same."""
    total = sum(map(sum, sides))
    error = sum(min(side) for side in sides) / total
    vote = learning_rate * half_log_odds(1 - error + smoothing, error + smoothing)
    # Ties are common in later rounds; rounding must not break them.
    return [vote if a - b > TOLERANCE * total else -vote for a, b in sides]


def class_masses(w, y, inside):
    """Return the weight of class +1 and of class -1 among the rows `inside`."""
    return math.fsum(w[inside & (y > 0)]), math.fsum(w[inside & (y < 0)])


def only_bias(w, y, smoothing, learning_rate):
    """Return the vote of the entrance where nothing can be split, and its certificate."""
    plus, minus = class_masses(w, y, np.ones(len(y), dtype=bool))
    delta = smoothing * (plus + minus)
    bias = learning_rate * half_log_odds(plus + delta, minus + delta)
    return bias, math.fsum(w * np.exp(-bias * y))


def fit_adaboost(
    X,
    y,
    *,
    n_estimators,
    criterion="kearns_mansour",
    votes="domain",
    smoothing=1e-4,
    learning_rate=1.0,
    sample_weight=None,
    max_bins=None,
    min_weight_fraction=0.0,
    min_samples_leaf=1,
):
    """Boost stumps; `y` holds -1 and +1. `max_bins` None: exact search, else binned."""
    X = np.asarray(X, dtype=np.float64)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
    X, y, weight = X[weight > 0], np.asarray(y)[weight > 0], weight[weight > 0]
    edges = None if max_bins is None else bin_edges(X, weight, max_bins)
    vote_rule = {"domain": domain_votes, "symmetric": symmetric_votes}[votes]

    w = weight / math.fsum(weight)
    feature, threshold, vote, certificate = [], [], [], [1.0]
    reason = "rounds"
    while len(feature) < n_estimators:
        stump = best_stump(
            X,
            y,
            w,
            criterion,
            edges=edges,
            min_weight_fraction=min_weight_fraction,
            min_samples_leaf=min_samples_leaf,
        )
        if stump is None:
            reason = "no split is left"
            break
        below = X[:, stump[0]] <= stump[1]
        sides = [class_masses(w, y, below), class_masses(w, y, ~below)]
        both = vote_rule(sides, smoothing, learning_rate)
        if max(map(abs, both)) < 1e-12:
            reason = "no split is left that changes the weights"
            break
        w = w * np.exp(-np.where(below, both[0], both[1]) * y)
        feature.append(stump[0])
        threshold.append(stump[1])
        vote.append(both)
        certificate.append(math.fsum(w))
        if all(min(side) == 0 for side in sides) or certificate[-1] == 0:
            reason = "the certificate is 0"
            break

    bias = 0.0
    if not feature:
        bias, certificate[0] = only_bias(w, y, smoothing, learning_rate)
    return Chain(
        np.array(feature, dtype=int),
        np.array(threshold, dtype=float),
        np.array(vote, dtype=float).reshape(-1, 2),
        np.array(certificate),
        bias,
        reason,
    )
