"""Learners of the tests of oracles and estimators: stumps, sure or not."""

from __future__ import annotations

import numpy as np
from reference.split import best_stump


class StumpAnswer:
    def __init__(self, feature, threshold):
        self.feature, self.threshold = feature, threshold

    def __call__(self, X, rng):
        return np.where(np.asarray(X)[:, self.feature] > self.threshold, 1, -1)


def train_stump(X, y, weight, rng):
    """The best stump of the twins, as an oracle."""
    return StumpAnswer(*best_stump(np.asarray(X), y, weight))


class StumpEstimator:
    """The same as an estimator; sure of its answers to the degree `sure`."""

    def __init__(self, sure=1.0):
        self.sure = sure

    def fit(self, X, y, sample_weight):
        self.stump = train_stump(X, y, sample_weight, None)
        self.classes_ = np.array([-1, 1])

    def predict_proba(self, X):
        p = np.where(self.stump(X, None) > 0, self.sure, 1 - self.sure)
        return np.column_stack([1 - p, p])


def noisy_stump(rate):
    """Return the learner of stumps that err at a rate."""

    def train(X, y, weight, rng):
        stump = train_stump(X, y, weight, rng)

        def answer(X, rng):
            return stump(X, rng) * np.where(rng.random(len(X)) < rate, -1, 1)

        return answer

    return train
