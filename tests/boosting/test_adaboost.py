"""Rounds of AdaBoost against the twin."""

import numpy as np
import pytest
from compare import assert_equals_twin, fit_like_adaboost
from reference.adaboost import fit_adaboost
from reference.problems import Problem, random_options, random_problem

import pboost as pb


def check(problem, rounds, options, case):
    X, y, weight = problem
    twin = fit_adaboost(X, y, n_estimators=rounds, sample_weight=weight, **options)
    model = fit_like_adaboost(problem, n_estimators=rounds, **options)
    assert_equals_twin(model, twin, (case, options))
    assert model.is_chain
    np.testing.assert_allclose(model.record.cost, np.arange(model.n_nodes + 1))
    return model, twin


@pytest.mark.parametrize("votes", ["domain", "symmetric"])
@pytest.mark.parametrize("max_bins", [None, 4, 256])
@pytest.mark.parametrize("block", range(3))
def test_random_problems(votes, max_bins, block):
    for case in range(block * 8, block * 8 + 8):
        rng = np.random.default_rng([11, case])
        options = random_options(rng) | {"votes": votes, "max_bins": max_bins}
        options["smoothing"] = float(rng.choice([0.0, 1e-4, 0.01]))
        options["learning_rate"] = float(rng.choice([1.0, 0.3]))
        check(random_problem(rng), 25, options, case)


@pytest.mark.parametrize("votes", ["domain", "symmetric"])
@pytest.mark.parametrize("max_bins", [None, 256])
@pytest.mark.parametrize("n", [257, 1000])
def test_noisy_continuous_data(votes, max_bins, n):
    rng = np.random.default_rng([12, n])
    X = rng.normal(size=(n, 4))
    y = np.where(X @ [1, 1, -1, 0] + rng.normal(size=n) > 0, 1, -1)
    problem = Problem(X, y, rng.uniform(0.5, 1, n))
    model, _ = check(problem, 30, {"votes": votes, "max_bins": max_bins}, n)
    assert model.n_nodes == 30


@pytest.mark.parametrize("votes", ["domain", "symmetric"])
@pytest.mark.parametrize("smoothing", [0.0, 1e-4])
def test_a_perfect_classifier_ends_it(votes, smoothing):
    problem = Problem(np.arange(6.0)[:, None], np.array([-1, -1, -1, 1, 1, 1]), None)
    model, _ = check(problem, 10, {"votes": votes, "smoothing": smoothing}, "")
    assert model.n_nodes == 1
    assert "certificate is 0" in model.record.stop_reason
    if smoothing == 0:  # the infinite vote is clipped
        np.testing.assert_allclose(np.abs(model.vote), 0.5 * np.log(2.0**52))
        assert 0 < model.record.certificate[-1] < 1e-7


@pytest.mark.parametrize("votes", ["domain", "symmetric"])
def test_nothing_to_split(votes):
    problem = Problem(np.ones((5, 2)), np.array([1, 1, 1, 1, -1]), None)
    model, twin = check(problem, 10, {"votes": votes, "smoothing": 0.0}, "")
    assert model.n_nodes == 0
    assert model.bias == pytest.approx(0.5 * np.log(4))
    assert model.record.certificate.tolist() == pytest.approx([0.8])
    assert twin.stop_reason in model.record.stop_reason
    assert pb.decision_function(model, np.zeros((3, 2))).tolist() == [model.bias] * 3


@pytest.mark.parametrize("votes", ["domain", "symmetric"])
def test_a_node_that_changes_no_weight_is_not_added(votes):
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
    problem = Problem(X, np.array([-1, 1, 1, -1]), None)
    model, twin = check(problem, 10, {"votes": votes}, "xor")
    assert model.n_nodes == 0
    assert model.bias == 0
    assert twin.stop_reason == "no split is left that changes the weights"
    assert twin.stop_reason in model.record.stop_reason


def test_symmetric_votes_run_dry():
    """After one constant answer the two classes weigh the same and nothing is left."""
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
    problem = Problem(X, np.array([-1, 1, 1, -1]), np.array([1.0, 2, 2, 1]))
    options = {"votes": "symmetric", "smoothing": 0.0}
    model, _ = check(problem, 10, options, "weighted xor")
    assert model.n_nodes == 1
    assert "no split is left" in model.record.stop_reason


@pytest.mark.full
@pytest.mark.parametrize("smoothing", [0.0, 0.01])
def test_rounding_does_not_decide_a_tied_majority(smoothing):
    """One side holds a + b of one class and c = a + b of the other, but for rounding."""
    options = {"votes": "symmetric", "smoothing": smoothing}
    X = np.array([0, 0, 0, 1, 1], dtype=float)[:, None]
    for tenths in np.ndindex(8, 8):
        a, b = np.add(tenths, 1)
        for factor in (1.0, 0.1, 0.3, 3.7, 1 / 3, 1e-200):
            weight = np.array([a, b, a + b, a + b, 1]) * 0.1 * factor
            problem = Problem(X, np.array([1, 1, -1, -1, 1]), weight)
            model, _ = check(problem, 4, options, (a, b, factor))
            assert model.vote[0, 0] < 0


def test_rounds_reached():
    rng = np.random.default_rng(13)
    problem = random_problem(rng, 80, 3)
    model = fit_like_adaboost(problem, n_estimators=3)
    assert model.n_nodes == 3
    assert "round" in model.record.stop_reason
