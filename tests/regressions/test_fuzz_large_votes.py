"""Warnings and OverflowErrors of models, such as a file can hold, whose votes or rows are large."""

from dataclasses import replace

import numpy as np
import pytest

import pboost as pb

X, Y = np.arange(8.0).reshape(-1, 1), np.array([0, 0, 1, 0, 1, 1, 0, 1])


def large(model, vote=1e100):
    return replace(model, vote=np.full_like(model.vote, vote))


def test_the_certificate_of_large_votes_is_infinite():
    model = large(pb.fit_boosted_tree(X, Y, max_nodes=3))
    assert pb.certificate(model, X, Y) == np.inf
    # Not where all rows that have weight are right.
    assert pb.certificate(model, X, Y, sample_weight=Y) == 0.0
    assert pb.certificate(model, X, Y, sample_weight=Y + 0.5) == np.inf


@pytest.mark.parametrize("observation", [pb.observation.exact(), pb.observation.adatree2()])
@pytest.mark.parametrize("more", [{"max_nodes": 2}, {"n_estimators": 2}])
def test_large_votes_are_not_continued(observation, more):
    model = large(pb.fit_boosted_tree(X, Y, max_nodes=3, observation=observation))
    with pytest.raises(ValueError, match=r"votes"):
        pb.continue_fit(model, X, Y, **more)


def test_coefficients_of_columns_that_spread_too_much():
    model = pb.fit_probitboost(X, Y, max_iter=3)
    steep = replace(model, slopes=model.slopes * 1e200)
    with pytest.raises(ValueError, match=r"^X: expected features whose spread"):
        pb.inspection.coefficients(steep, X * 1e200)


@pytest.mark.parametrize("value", [1e200, 1.7e308])
def test_the_importance_of_columns_for_predictions_that_are_too_large(value):
    tree = pb.fit_cart(X, Y * 1.0, task="regression")
    tree = replace(tree, value=np.full_like(tree.value, value))
    with pytest.raises(ValueError, match=r"^model: expected predictions whose squared errors"):
        pb.inspection.permutation_importance(tree, X, Y, rng=0)
