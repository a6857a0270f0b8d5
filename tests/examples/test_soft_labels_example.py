"""The comparison of soft labels with those of a majority: its numbers are those of its models."""

from __future__ import annotations

import numpy as np
import pytest
from example_modules import imported

RIGHT = np.array([0.55, 0.7, 0.8])


@pytest.fixture(scope="module")
def example():
    with imported("soft_labels", "oblique_trees", "table_command") as module:
        yield module


def test_posteriors_are_those_of_bayes(example):
    y = np.random.default_rng(0).integers(0, 2, 200_000)
    votes = example.votes_of(y, RIGHT, np.random.default_rng(1))
    np.testing.assert_allclose((votes == y[:, None]).mean(axis=0), RIGHT, atol=0.005)
    share = example.posterior(votes, RIGHT)
    for pattern in ([1, 1, 1], [1, 0, 0], [0, 0, 1]):
        rows = (votes == pattern).all(axis=1)
        assert y[rows].mean() == pytest.approx(share[rows][0], abs=0.015)
    certain = example.certainty(RIGHT)
    assert np.where(y == 1, share, 1 - share).mean() == pytest.approx(certain, abs=0.003)
    p = np.linspace(0, 1, 5)
    np.testing.assert_allclose(example.unmixed(p * certain + (1 - p) * (1 - certain), certain), p)


def test_the_factor_is_found_again(example):
    rng = np.random.default_rng(0)
    score, certain = rng.normal(size=50_000), example.certainty(RIGHT)
    y = (rng.random(50_000) < 1 / (1 + np.exp(-2 * 1.7 * score))).astype(int)
    soft = example.posterior(example.votes_of(y, RIGHT, rng), RIGHT)
    assert example.scaled(score, soft, certain) == pytest.approx(1.7, rel=0.1)


def test_soft_labels_err_less_than_the_majority(example):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1500, 4))
    y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    actual = example.outcomes(X, y, 2)
    assert list(actual) == list(example.KINDS)
    assert actual["labels"][0] < actual["soft"][0] < actual["majority"][0]
    assert actual["soft, scaled"][1] < actual["soft"][1]
