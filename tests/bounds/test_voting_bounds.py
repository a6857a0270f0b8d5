"""Bounds of votes: exact sums, simulations, and what AdaBoost does."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from reference import bounds as bounds_reference
from reference import voting as reference
from scipy.optimize import linprog

import pboost as pb
from pboost import bounds

GAMMAS = [Fraction(0), Fraction(1, 100), Fraction(1, 4), Fraction(2, 5), Fraction(1, 2)]


@pytest.mark.parametrize("gamma", [*GAMMAS, Fraction(-1, 10)])
@pytest.mark.parametrize("T", [0, 1, 7, 50, 300])
def test_crowd_error_is_the_exact_sum(T, gamma):
    expected = float(reference.crowd_error(T, gamma))
    assert bounds.crowd_error(T, float(gamma)) == pytest.approx(expected, rel=1e-11, abs=1e-300)


def test_crowd_error_is_that_of_simulated_voters():
    rng = np.random.default_rng(0)
    right = (rng.random((40_000, 21)) < 0.6).sum(axis=1)
    assert np.mean(right <= 10) == pytest.approx(bounds.crowd_error(10, 0.1), abs=0.01)


def test_crowd_bound():
    T, gamma = np.arange(0, 400)[:, None], np.linspace(0, 0.5, 51)
    exact, bound = bounds.crowd_error(T, gamma), bounds.crowd_bound(T, gamma)
    assert bound.shape == (400, 51)
    assert (exact <= bound).all()
    assert (bound <= np.exp(-4 / 5 * gamma**2 * T)).all()
    mu = 2.25
    assert bounds.crowd_bound(1, 0.25) == pytest.approx(np.exp(-((mu - 1) ** 2) / (2 * mu)))


def test_training_error_bound():
    rng = np.random.default_rng(0)
    gammas = rng.uniform(-0.5, 0.5, (3, 4, 9))
    actual, simple = (bounds.training_error_bound(gammas, simple=s) for s in (False, True))
    assert actual.shape == simple.shape == (3, 4)
    assert (actual <= simple).all()
    for i, j in np.ndindex(3, 4):
        first = 1.0
        for gamma in gammas[i, j]:
            first *= 2 * np.sqrt((0.5 - gamma) * (0.5 + gamma))
        assert actual[i, j] == pytest.approx(first, rel=1e-12)
        assert simple[i, j] == pytest.approx(np.exp(-2 * sum(gammas[i, j] ** 2)), rel=1e-12)
    assert bounds.training_error_bound([]) == 1.0
    assert type(bounds.training_error_bound([0.1])) is float
    assert bounds.training_error_bound([0.1, 0.5]) == 0.0


def test_training_error_bound_is_the_certificate_of_adaboost():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where(X.sum(axis=1) + rng.normal(size=200) > 0, 1, -1)
    options = {"votes": "symmetric", "smoothing": 0}
    model = pb.fit_adaboost(X, y, n_estimators=30, weak_learner=pb.weak.stump("error"), **options)
    # A vote of +-1/2 ln((1 - e)/e) tells the edge 1/2 - e = tanh(vote)/2.
    gammas = np.tanh(np.abs(model.vote[:, 0])) / 2
    assert bounds.training_error_bound(gammas) == pytest.approx(pb.certificate(model), rel=1e-9)
    assert np.mean(pb.predict(model, X) != y) <= bounds.training_error_bound(gammas)


@pytest.mark.parametrize("step", [0.0, 0.25, 0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("gamma", [-0.4, 0.0, 1e-9, 0.1, 0.45, 0.5 - 2**-40])
def test_training_error_bound_of_a_step(gamma, step):
    expected = float(bounds_reference.step_factor(0.5 - gamma, step))
    assert bounds.training_error_bound([gamma], step=step) == pytest.approx(expected, rel=1e-13)
    actual = bounds.training_error_bound([[gamma] * 7], step=step)
    assert actual == pytest.approx([expected**7], rel=1e-12)


def test_training_error_bound_at_the_known_steps():
    gammas = np.linspace(-0.5, 0.5, 101)[:, None]
    e = (0.5 - gammas)[:, 0]
    root, other = np.sqrt(e), np.sqrt(1 - e)
    textbook = bounds.training_error_bound(gammas, step=1)
    assert textbook == pytest.approx(2 * root * other, rel=1e-14)
    assert (textbook == bounds.training_error_bound(gammas)).all()
    half = bounds.training_error_bound(gammas, step=0.5)
    assert half == pytest.approx((e * (1 - e)) ** 0.25 * (root + other), rel=1e-14)
    assert bounds.training_error_bound(gammas, step=2) == pytest.approx(np.ones(101), rel=1e-15)
    assert bounds.training_error_bound(gammas, step=0) == pytest.approx(np.ones(101), rel=1e-15)
    assert bounds.training_error_bound([0.5], step=0.5) == 0.0


@pytest.mark.parametrize("step", [0.1, 0.5, 1.0, 1.7])
def test_simple_training_error_bound_is_larger_for_every_step(step):
    gammas = np.linspace(-0.5, 0.5, 401)[:, None]
    exact, simple = (bounds.training_error_bound(gammas, simple=s, step=step) for s in (0, 1))
    assert (exact <= simple * (1 + 1e-15)).all()
    # Equal in the second order.
    small = np.array([1e-3])
    assert 1 - bounds.training_error_bound(small, step=step) == pytest.approx(
        1 - bounds.training_error_bound(small, simple=True, step=step), rel=1e-5
    )


@pytest.mark.parametrize("rate", [0.3, 0.5, 1.0])
def test_training_error_bound_of_a_step_is_the_certificate_at_that_learning_rate(rate):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where(X.sum(axis=1) + rng.normal(size=200) > 0, 1, -1)
    options = {"votes": "symmetric", "smoothing": 0, "learning_rate": rate}
    model = pb.fit_adaboost(X, y, n_estimators=30, weak_learner=pb.weak.stump("error"), **options)
    gammas = np.tanh(np.abs(model.vote[:, 0]) / rate) / 2
    actual = bounds.training_error_bound(gammas, step=rate)
    assert actual == pytest.approx(pb.certificate(model), rel=1e-9)


def greatest_error(rounds, error, step):
    """Return the greatest training error of a vote whose members all have this weighted error.

    A linear programme over the shares of the rows that each set of members misclassifies.
    """
    wrong = np.array(list(itertools.product([0, 1], repeat=rounds)))
    factor = ((1 - error) / error) ** step
    before = np.cumsum(wrong, axis=1) - wrong
    rows = [factor**b * (w - error) for b, w in zip(before.T, wrong.T, strict=True)]
    tied_or_wrong = (2 * wrong.sum(axis=1) >= rounds).astype(float)
    actual = linprog(-tied_or_wrong, A_eq=[*rows, np.ones(len(wrong))], b_eq=[0.0] * rounds + [1.0])
    return -actual.fun


@pytest.mark.parametrize(("rounds", "times"), [(7, 1.565), (9, 2.894)])
def test_half_a_step_needs_its_own_bound(rounds, times):
    """The error that the published update can leave exceeds the bound for the whole step."""
    edges = np.full(rounds, 0.45)
    full, half = (greatest_error(rounds, 0.05, step) for step in (1.0, 0.5))
    assert full <= bounds.training_error_bound(edges)
    assert half / bounds.training_error_bound(edges) == pytest.approx(times, abs=1e-3)
    assert half <= bounds.training_error_bound(edges, step=0.5)


@pytest.mark.parametrize("step", [0.25, 0.5, 1.0])
def test_boosted_probit_trees_keep_the_bound_of_their_step(step):
    """Boosted probit trees on all rows; the votes and the updates are those of algorithm 3."""
    wrong = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 2)).round(1)
        y = (X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=40) > 0).astype(int)
        options = {
            "n_estimators": 1,
            "max_depth": 1,
            "min_samples_split": 4,
            "min_samples_leaf": 2,
            "voting": "hard",
        }
        model = pb.fit_sbpmt(
            X,
            y,
            n_estimators=1,
            n_boosting_rounds=6,
            max_samples=None,
            learning_rate=step,
            **options,
        )
        bound = bounds.training_error_bound(0.5 - model.error[0, : len(model.alpha)], step=step)
        error = np.mean(pb.predict(model, X) != y)
        assert error <= bound + 1e-12
        wrong += error > 0
    assert wrong > 20


@pytest.mark.parametrize("rich", [{"size": 4000.0}, {"size": 1.0}, {"vc": 3.0}])
@pytest.mark.parametrize("theta", [0.2, 0.3, 1.0])
@pytest.mark.parametrize("m", [1e3, 1e6, 1e9])
def test_margin_bound_is_nearly_the_least_over_all_integers(rich, theta, m):
    actual = bounds.margin_generalization_bound(0.02, m, theta, confidence_level=0.95, **rich)
    every = [reference.margin_bound(0.02, m, theta, 0.05, N, **rich) for N in range(1, 4400)]
    assert min(1.0, min(every)) <= actual * (1 + 1e-12)
    assert actual <= min(1.0, min(every)) * 1.002


@pytest.mark.full
def test_margin_bound_holds_for_votes():
    """Votes of random stumps among 40, on rows of random labels: their true error is 1/2."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        m = 20_000
        answers = rng.choice([-1.0, 1.0], (m, 40))
        votes = answers.sum(axis=0) / m + 0.01 * rng.normal(size=40)  # chosen by the labels
        margin = answers @ votes / np.abs(votes).sum()
        for theta in (0.1, 0.5, 0.9):
            share = np.mean(margin <= theta)
            bound = bounds.margin_generalization_bound(
                share, m, theta, size=80, confidence_level=0.95
            )
            assert bound >= 0.5


def test_margin_bound_falls_with_rows_and_margin():
    m, theta = np.logspace(3, 10, 15)[:, None], np.linspace(0.1, 1, 10)
    for rich in ({"size": 100}, {"vc": 5}):
        actual = bounds.margin_generalization_bound(0.0, m, theta, **rich)
        assert actual.shape == (15, 10)
        assert (np.diff(actual, axis=0) <= 1e-12).all()
        assert (np.diff(actual, axis=1) <= 1e-3).all()
        assert actual.min() < 0.05
        assert actual.max() == 1.0
    assert type(bounds.margin_generalization_bound(0.0, 10, 0.1, vc=20)) is float
    assert bounds.margin_generalization_bound(0.0, 10, 0.1, vc=20) == 1.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: bounds.crowd_error(1.5, 0.1), ValueError, "T: expected integers, got 1.5"),
        (lambda: bounds.crowd_error(-1, 0.1), ValueError, "T: expected finite numbers >= 0"),
        (lambda: bounds.crowd_error(1, 0.6), ValueError, "gamma: expected numbers in"),
        (lambda: bounds.crowd_bound(1, -0.1), ValueError, "gamma: expected numbers in"),
        (lambda: bounds.crowd_bound([1, 2], [0, 0, 0]), ValueError, "T, gamma: expected shapes"),
        (lambda: bounds.training_error_bound(0.1), ValueError, "gammas: expected one edge per"),
        (lambda: bounds.training_error_bound([0.6]), ValueError, "gammas: expected numbers in"),
        (lambda: bounds.training_error_bound([0.1], step=2.1), ValueError, "step: expected a num"),
        (lambda: bounds.training_error_bound([0.1], step=-1), ValueError, "step: expected a numb"),
        (lambda: bounds.training_error_bound([0.1], step="1"), TypeError, "step: expected a numb"),
        (
            lambda: bounds.margin_generalization_bound(0, 1, 0.1),
            TypeError,
            "size, vc: expected one of the two, got none",
        ),
        (
            lambda: bounds.margin_generalization_bound(0, 1, 0.1, size=2, vc=2),
            TypeError,
            "size, vc: expected one of the two, got both",
        ),
        (
            lambda: bounds.margin_generalization_bound(0, 1, 0.0, size=2),
            ValueError,
            "theta: expected numbers",
        ),
        (
            lambda: bounds.margin_generalization_bound(0, 1, 0.1, size=0.5),
            ValueError,
            "size: expected finite numbers >= 1",
        ),
        (
            lambda: bounds.margin_generalization_bound(0, 1, 0.1, vc=1, confidence_level=1.0),
            ValueError,
            "confidence_level: expected numbers",
        ),
    ],
)
def test_what_is_wrong_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
