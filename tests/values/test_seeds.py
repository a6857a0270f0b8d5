"""`rng`: what random numbers follow from."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import pboost as pb
from pboost.values import as_generator

X = np.random.default_rng(0).normal(size=(80, 3))
Y = X[:, 0] + X[:, 1] > 0
State = np.random.RandomState

DRAWING = {
    "adaboost": lambda rng: pb.fit_adaboost(X, Y, n_estimators=4, validation=0.3, rng=rng),
    "forest": lambda rng: pb.fit_random_forest(X, Y, n_estimators=4, rng=rng),
    "bagging": lambda rng: pb.fit_bagging(pb.fit_cart, X, Y, n_estimators=4, rng=rng),
    "one-vs-rest": lambda rng: pb.fit_one_vs_rest(
        partial(pb.fit_gradient_boosting, loss="log_loss", n_estimators=3),
        X,
        Y,
        subsample=0.5,
        rng=rng,
    ),
    "sbpmt": lambda rng: pb.fit_sbpmt(
        X, Y, n_estimators=3, n_boosting_rounds=1, max_iter=2, rng=rng
    ),
}


def test_a_random_state_is_a_seed():
    """Of four numbers, the same on every platform."""
    seed = State(7).randint(2**32, size=4, dtype=np.uint32)
    expected = np.random.default_rng(seed).random(5)
    assert np.array_equal(as_generator(State(7)).random(5), expected)
    assert expected[0] == pytest.approx(0.3968008864067547, abs=1e-15)


def test_a_random_state_goes_on():
    """A program that hands one from call to call draws new numbers each time, and the same ones."""
    shared, again = State(7), State(7)
    first, second = (as_generator(shared).random(5) for _ in range(2))
    assert not np.array_equal(first, second)
    assert np.array_equal([as_generator(again).random(5) for _ in range(2)], [first, second])
    assert shared.randint(10**6) == again.randint(10**6)


@pytest.mark.parametrize("name", DRAWING)
def test_fits(name):
    fit = DRAWING[name]
    first, same, other = (pb.decision_function(fit(State(n)), X) for n in (1, 1, 2))
    assert first.tobytes() == same.tobytes()
    assert first.tobytes() != other.tobytes()


def test_folds_and_data():
    folds = [pb.cross_validate(pb.fit_cart, X, Y, cv=3, rng=State(n)).test_fold for n in (1, 1)]
    assert np.array_equal(*folds)
    first, same = (pb.datasets.twonorm(9, rng=State(3))[0] for _ in range(2))
    assert np.array_equal(first, same)


@pytest.mark.parametrize("rng", [np.random, State, "7", 7.0, True, [7]])
def test_what_is_none(rng):
    with pytest.raises(
        TypeError, match=r"^rng: expected None, an integer, a SeedSequence, a numpy"
    ):
        as_generator(rng)
