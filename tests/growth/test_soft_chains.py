"""AdaBoost whose answers are uncertain: against the twin, and what theory says of it."""

import math

import numpy as np
import pytest
from compare import assert_same_model
from reference import adaboost
from reference.problems import Problem, random_problem
from reference.soft import fit_soft_chain
from soft_models import (
    NEEDS_CLASS,
    OBSERVATIONS,
    assert_certified,
    assert_equals_soft_twin,
    assert_evaluated,
    draw_options,
    expected_error,
    library,
    noisy,
    shrinks,
)

import pboost as pb


def fit(problem, **options):
    return library(pb.fit_adaboost, problem, **options)


def check(problem, options, case=""):
    X, y, weight = problem
    twin = fit_soft_chain(X, y, sample_weight=weight, **options)
    model = fit(problem, **options)
    assert_equals_soft_twin(model, twin, (case, options))
    assert model.is_chain
    return model, twin


# Against the twin


@pytest.mark.parametrize("votes", ["domain", "symmetric"])
@pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
def test_random_problems(observation, votes):
    for case in range(20):
        rng = np.random.default_rng([61, case])
        options = draw_options(rng) | {"observation": observation, "votes": votes}
        check(random_problem(rng), options | {"n_estimators": 15}, case)


@pytest.mark.parametrize("votes", ["domain", "symmetric"])
@pytest.mark.parametrize("observation", ["flip", "adatree2"])
@pytest.mark.parametrize("max_bins", [None, 32])
def test_continuous_data(observation, votes, max_bins):
    options = {"observation": observation, "rate": 0.1, "votes": votes, "max_bins": max_bins}
    model, _ = check(noisy(62, n=300), options | {"n_estimators": 25})
    assert model.n_nodes == 25


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("n", [2, 3])
def test_few_rows(observation, n):
    problem = Problem(np.arange(float(n))[:, None], np.array([1, -1, 1])[:n], None)
    for smoothing in (0.0, 1e-4):
        options = {"observation": observation, "rate": 0.2, "smoothing": smoothing}
        check(problem, options | {"n_estimators": 6}, n)


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_nothing_to_split(observation):
    problem = Problem(np.ones((5, 2)), np.array([1, 1, 1, 1, -1]), None)
    model, _ = check(problem, {"observation": observation, "n_estimators": 3, "smoothing": 0.0})
    assert model.n_nodes == 0
    assert model.bias == pytest.approx(0.5 * np.log(4))


def test_a_perfect_classifier_of_noisy_answers_is_no_end():
    """Each exit gets both classes, and asking again makes the answer surer."""
    problem = Problem(np.arange(6.0)[:, None], np.array([-1, -1, -1, 1, 1, 1]), None)
    options = {"observation": "flip", "rate": 0.1, "n_estimators": 10, "smoothing": 0.0}
    model, _ = check(problem, options)
    assert model.n_nodes == 10
    np.testing.assert_allclose(model.record.certificate, 0.6 ** np.arange(11), rtol=1e-9)


# What theory says


@pytest.mark.parametrize("votes", ["domain", "symmetric"])
def test_flip_at_rate_zero_is_exact(votes):
    for case in range(8):
        rng = np.random.default_rng([63, case])
        problem = random_problem(rng)
        options = {"n_estimators": 12, "votes": votes, "smoothing": 1e-4}
        exact = fit(problem, **options)
        assert_same_model(exact, fit(problem, observation="flip", rate=0.0, **options))
        twin = adaboost.fit_adaboost(problem.X, problem.y, sample_weight=problem.weight, **options)
        np.testing.assert_array_equal(exact.threshold, twin.threshold)


@pytest.mark.parametrize("votes", ["domain", "symmetric"])
@pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
def test_certificate_and_reach(observation, votes):
    for case in range(4):
        rng = np.random.default_rng([64, case])
        options = draw_options(rng) | {"observation": observation, "votes": votes}
        problem = random_problem(rng)
        model = fit(problem, n_estimators=[3, 6, 30][case % 3], **options)
        assert_certified(model, problem, case)
        assert_evaluated(model, problem, observation in NEEDS_CLASS)


@pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
def test_the_certificate_is_the_product_of_z(observation):
    """Of Z = sum over exits of 2 sqrt(W+ W-), for votes that are not smoothed."""
    problem = noisy(65)
    model = fit(problem, observation=observation, rate=0.1, n_estimators=12, smoothing=0.0)
    factors = shrinks(model, problem)
    np.testing.assert_allclose(np.cumprod(factors), model.record.certificate[1:], rtol=1e-9)
    assert model.record.certificate[-1] <= factors.max() ** model.n_nodes * (1 + 1e-12)
    if observation in ("flip", "adatree2"):
        assert factors.max() < 1


@pytest.mark.parametrize("votes", ["domain", "symmetric"])
@pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
def test_expected_error_is_below_the_certificate(observation, votes):
    problem = noisy(66, n=60)
    for learning_rate in (1.0, 0.5):
        options = {"observation": observation, "rate": 0.1, "votes": votes}
        options["learning_rate"] = learning_rate
        for rounds in (1, 3, 8):
            model = fit(problem, n_estimators=rounds, **options)
            assert expected_error(model, problem) <= model.record.certificate[-1]


def test_half_learns_how_frequent_the_classes_are():
    problem = noisy(67)
    model = fit(problem, observation="half", n_estimators=10, smoothing=0.0)
    plus = problem.weight[problem.y > 0].sum() / problem.weight.sum()
    assert model.n_nodes == 1
    assert "no split is left that changes the weights" in model.record.stop_reason
    np.testing.assert_allclose(model.vote, 0.5 * np.log(plus / (1 - plus)), rtol=1e-9)
    assert model.record.certificate[-1] == pytest.approx(2 * math.sqrt(plus * (1 - plus)))


def test_uniform_is_certified_while_it_does_not_learn():
    """The certificate falls, the error of the hard route stays."""
    problem = noisy(68, n=300)
    model = fit(problem, observation="uniform", n_estimators=200)
    hard = pb.predict(model, problem.X) != problem.y
    error = problem.weight[hard].sum() / problem.weight.sum()
    assert model.record.certificate[-1] < error / 2


@pytest.mark.parametrize("observation", ["flip", "adatree2"])
def test_weights_are_copies_of_rows(observation):
    rng = np.random.default_rng(69)
    X, y, _ = noisy(69, n=40)
    copies = rng.integers(0, 4, 40)
    full = Problem(np.repeat(X, copies, axis=0), np.repeat(y, copies), None)
    options = {"observation": observation, "rate": 0.1, "n_estimators": 10}
    assert_same_model(fit(Problem(X, y, copies * 0.25), **options), fit(full, **options))
