"""Smoothed leaves of a single tree: shares, subtrees, certificates, weights."""

from __future__ import annotations

import numpy as np
import pytest
from reference import leaf_smoothing as twin

import pboost as pb
from pboost.budget.leaf_smoothing import PRIOR_ROWS, smoothed
from pboost.data.read.check_xy import as_features

rng = np.random.default_rng(5)
X = rng.normal(size=(120, 3))
SCORE = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=120)
TARGETS = {"two": SCORE > 0.3, "many": np.digitize(SCORE, [-0.5, 0.5])}
WEIGHT = rng.integers(1, 4, 120) / 2


@pytest.fixture(params=TARGETS)
def case(request):
    """Return a smoothed tree, the unsmoothed tree and the class masses of its rows."""
    y = TARGETS[request.param]
    tree = pb.fit_boosted_tree(X, y, max_nodes=9, growth="look_ahead", sample_weight=WEIGHT)
    mass = (y[:, None] == tree.classes) * WEIGHT[:, None]
    return smoothed(tree, as_features(X, None), mass), tree, mass


@pytest.mark.parametrize("size", [1, 4, 9])
def test_shares_and_certificates_of_each_subtree(case, size):
    model, _, mass = case
    part = pb.models.truncate(model, size)
    share = twin.shares_of(part, X, mass, X, PRIOR_ROWS)
    assert pb.predict_proba(part, X) == pytest.approx(share, rel=1e-9)
    expected = twin.certificate_of(share, mass)
    assert part.record.certificate[-1] == pytest.approx(expected, rel=1e-9)


def test_the_splits_stay(case):
    model, tree, _ = case
    for name in ("feature", "threshold", "next"):
        assert np.array_equal(getattr(model, name), getattr(tree, name))
    assert pb.predict_proba(tree, X).max() > 0.99 > pb.predict_proba(model, X).max()


def test_a_tree_without_nodes_stays():
    tree = pb.fit_boosted_tree(np.ones((6, 1)), [0, 0, 0, 0, 1, 1])
    assert smoothed(tree, as_features(np.ones((6, 1)), None), np.eye(2)[[0, 0, 0, 0, 1, 1]]) is tree
