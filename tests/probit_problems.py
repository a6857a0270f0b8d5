"""What the tests of probit trees share."""

import numpy as np


def problem(seed, n=60, d=3, classes=2):
    rng = np.random.default_rng([71, seed])
    X = rng.normal(size=(n, d)).round(2)
    score = X[:, 0] * np.where(X[:, 1] > 0, 1, -1) + 0.7 * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    weight = rng.exponential(size=n)
    weight[rng.random(n) < 0.1] = 0
    return X, y, weight
