"""Data and comparisons for tests of subagged boosted probit trees."""

from __future__ import annotations

import numpy as np

FAST = {
    "n_estimators": 4,
    "n_boosting_rounds": 3,
    "max_iter": 6,
    "max_depth": 2,
    "min_samples_leaf": 8,
    "min_samples_split": 2,
    "complexity": 0.0,
    "tol": None,
    "safeguard": True,
}


def problem(n=150, d=3, classes=2, seed=0):
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, d))
    value = X[:, 0] + np.abs(X[:, 1]) + 0.4 * r.normal(size=n)
    return X, np.digitize(value, np.quantile(value, np.arange(1, classes) / classes))


def assert_same_model(a, b):
    for name in ("coefficient", "taken", "alpha", "start", "class_rows"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for name in ("root", "feature", "threshold", "children", "value", "weight"):
        assert np.array_equal(getattr(a.trees, name), getattr(b.trees, name)), name
    assert np.array_equal(a.error, b.error, equal_nan=True)
    assert np.array_equal(a.oob.prediction, b.oob.prediction, equal_nan=True)
    assert np.array_equal(a.oob.n_estimators, b.oob.n_estimators)
    assert a.oob.error == b.oob.error or np.isnan(a.oob.error)
    assert a.settings == b.settings
    assert a.voting == b.voting
