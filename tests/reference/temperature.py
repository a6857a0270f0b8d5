"""Temperatures of chains of graphs and of SAMME, and probabilities, row by row."""

from __future__ import annotations

import math


def certificate(scores, codes, weights):
    """Return the weighted mean of exp(-yH); with several values, also the mean over the classes."""
    total = 0.0
    for score, code, weight in zip(scores, codes, weights, strict=True):
        if isinstance(score, list):
            losses = [math.exp(-h if k == code else h) for k, h in enumerate(score)]
            total += weight * sum(losses) / len(losses)
        else:
            total += weight * math.exp(-score if code else score)
    return total / sum(weights)


def temperature(bound, n_classes):
    """Return the temperature for a certificate."""
    fall = math.log(1 / bound)
    if n_classes == 2:
        return 1 + fall / 2
    return 1 + 0.3 * (fall - 1) if fall > 1 else 1.0


def probabilities(score, t):
    """Return the probabilities of one row from half log odds, or from one value per class."""
    if not isinstance(score, list):
        score = [-score, score]
    odds = [math.exp((h - max(score)) / t) for h in score]
    return [each / sum(odds) for each in odds]


def temperature_of_votes(alpha, error, n_classes):
    """Return the temperature of SAMME from votes and weighted errors."""
    if len(alpha) == 1 and error[0] > 0:
        return 1.0
    bound = 1.0
    for a, e in zip(alpha, error, strict=True):
        bound *= (1 - e) * math.exp(-a * (n_classes - 1) / n_classes) + e * math.exp(a / n_classes)
    scale = (n_classes - 1) / n_classes * (4 + math.log(n_classes - 1))
    return 1 + math.log(1 / bound) / scale
