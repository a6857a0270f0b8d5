"""Ways from votes to probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from example_modules import imported

import pboost as pb

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def example():
    names = ("many_classes", "many_classes_families", "oblique_trees", "table_command")
    with imported("vote_probabilities", *names) as module:
        yield module


def test_ways(example):
    rng = np.random.default_rng(0)
    score = rng.normal(size=(4000, 3))
    truth = (3 * score + rng.gumbel(size=score.shape)).argmax(axis=1)
    ways = {**example.KNOWN, **{w: fit(score, truth) for w, fit in example.HELD_OUT.items()}}
    loss = {}
    for way, probabilities in ways.items():
        said = probabilities(score)
        np.testing.assert_allclose(said.sum(axis=1), 1)
        loss[way] = example.log_loss(said, truth)
    assert min(loss, key=loss.get) == "softmax, one factor fitted"
    assert ways["softmax, one factor fitted"].args[0] == pytest.approx(3, abs=0.2)


def test_figures_are_those_of_the_models(example):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0, 1])
    split = example.Split(X[:200], y[:200], X[200:], y[200:], ())
    actual = example.outcomes(split)
    tree = pb.fit_boosted_tree(X[:200], y[:200], max_nodes=63)
    share = pb.predict_proba(tree, X[200:])[np.arange(100), y[200:]]
    assert actual["one tree: softmax of F"][0] == pytest.approx(-np.log(share).mean())
    assert len(actual) == 4 * 6
    assert np.isfinite(list(actual.values())).all()
    assert "chain, 50 comparisons" in example.tables({"some, split 0": actual})
