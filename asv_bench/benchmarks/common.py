"""Data and measurements for all benchmarks."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np

#: Slope of the log odds per standard deviation of the signal; the Bayes error is 0.20.
STRENGTH = 2.3
TEST_ROWS = 20_000


def additive(n_rows, n_features, seed=0):
    """Return float32 standard normal features and classes 0/1 from a noisy additive rule.

    The log odds are a weighted sum of sines, one per feature, with decreasing weight and increasing
    frequency. Stumps can learn it, but a small number of stumps is not enough. The rule depends
    only on the number of features, so another seed gives test data.
    """
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_rows, n_features), dtype=np.float32)
    frequency = np.linspace(0.5, 3.0, n_features)
    weight = 0.9 ** np.arange(n_features)
    # Variance of sin(c x) for a standard normal x.
    variance = weight**2 * (1 - np.exp(-2 * frequency**2)) / 2
    scale = STRENGTH / np.sqrt(variance.sum())
    log_odds = np.zeros(n_rows)
    for j in range(n_features):
        log_odds += scale * weight[j] * np.sin(frequency[j] * X[:, j])
    y = random.random(n_rows) < 1 / (1 + np.exp(-log_odds))
    return X, y.astype(np.int32)


def problems(n_rows, n_features):
    """Return the training data by size, for `setup_cache`."""
    return {(n, d): additive(n, d) for n in n_rows for d in n_features}


def row_weights(n_rows):
    """Return different weights for all rows."""
    return np.random.default_rng(3).uniform(0.5, 1.5, n_rows)


class Stopwatch:
    """A callback that records the CPU time at the end of each step of a fit."""

    def __init__(self):
        self.seconds = []

    def __call__(self, step, record):
        self.seconds.append(time.process_time())

    def median_step(self):
        """Return the median CPU time of a step, excluding the first and the setup."""
        return float(np.median([after - before for before, after in pairwise(self.seconds)]))


def median_cpu(function, *arguments, repeats=5, **options):
    """Return the median CPU time of a call, in seconds."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function(*arguments, **options)
        seconds.append(time.process_time() - start)
    return float(np.median(seconds))


def test_error(score, y):
    """Return the fraction of rows on the wrong side of 0."""
    return float(np.mean((np.asarray(score) > 0) != (y > 0)))


test_error.__test__ = False  # not a test, despite its name
