"""Builders in wrappers that have options of their own: these were called unknown."""

import functools

import numpy as np

import pboost as pb

X = np.arange(20.0).reshape(-1, 1)
Y = np.arange(20) // 7


def test_options_of_the_wrapper_are_known():
    seen = []

    @functools.wraps(pb.fit_cart)
    def fit(X, y, extra=1, **options):
        seen.append(extra)
        return pb.fit_cart(X, y, **options)

    pb.fit_bagging(fit, X, Y, n_estimators=2, rng=0, extra=2)
    pb.fit_one_vs_rest(fit, X, Y, extra=3)
    assert seen == [2, 2, 3, 3, 3]


def test_many_integers_are_looked_at_without_products():
    # Their squares have a sum that is no bound: numbers below 2**53, and many of them.
    many = np.full((5000, 2), 2**52, dtype=np.int64)
    many[:, 1] = np.arange(5000)
    model = pb.fit_boosted_tree(many, many[:, 1] > 2500, max_nodes=1)
    assert model.feature.tolist() == [1]
