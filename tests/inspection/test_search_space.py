"""Ranges of hyperparameters for a random search."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb
from pboost.inspection import SearchRange


@pytest.mark.parametrize(
    ("model", "fit"),
    [("gradient_boosting", pb.fit_gradient_boosting), ("random_forest", pb.fit_random_forest)],
)
@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("n_rows", [2, 100, 100_000])
def test_models_take_every_draw(model, fit, task, n_rows):
    space = pb.search_space(model, n_rows, task)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = X[:, 0] if task == "regression" else (X[:, 0] > 0).astype(int)
    for seed in range(2):
        options = {name: of.rvs(random_state=seed) for name, of in space.items()}
        fitted = fit(X, y, n_estimators=2, task=task, rng=0, **options)
        assert {name: fitted.settings[name] for name in options} == options


def test_more_rows_allow_deeper_trees_and_larger_leaves():
    few, many = (pb.search_space("gradient_boosting", n) for n in (300, 100_000))
    assert few["max_depth"].high < many["max_depth"].high
    assert few["min_samples_leaf"].high == 15 < many["min_samples_leaf"].high


@pytest.mark.parametrize(
    "of",
    [
        SearchRange(0.1, 10.0, log=True),
        SearchRange(-1.0, 1.0),
        SearchRange(1, 100, log=True, integer=True),
        SearchRange(2, 4, integer=True),
    ],
)
def test_draws_fill_the_range_evenly(of):
    random = np.random.RandomState(0)
    values = np.array([of.rvs(random_state=random) for _ in range(2000)])
    assert of.low <= values.min() < values.max() <= of.high
    if of.integer:
        assert all(isinstance(of.rvs(random_state=k), int) for k in range(3))
    if of.high == 4:
        np.testing.assert_allclose(np.bincount(values)[2:] / 2000, 1 / 3, atol=0.04)
    middle = np.sqrt(of.low * of.high) if of.log else (of.low + of.high) / 2
    if not of.integer:
        assert np.mean(values < middle) == pytest.approx(0.5, abs=0.04)
    elif of.log:  # the first integer has log(2) / log(101) of the probability
        assert np.mean(values == 1) == pytest.approx(0.15, abs=0.03)


def test_kinds_of_random_states():
    of = SearchRange(0.0, 1.0)
    assert of.rvs(random_state=3) == of.rvs(random_state=np.random.RandomState(3))
    assert 0 <= of.rvs(random_state=np.random.default_rng(0)) <= 1
    assert of.rvs() != of.rvs()


def test_optuna_suggests_from_the_same_range():
    asked = []

    class Trial:
        def suggest_int(self, name, low, high, log):
            asked.append((name, low, high, log))
            return 7

        def suggest_float(self, name, low, high, log):
            asked.append((name, low, high, log))
            return 0.5

    assert SearchRange(1, 9, log=True, integer=True).suggest(Trial(), "leaf") == 7
    assert SearchRange(0.0, 1.0).suggest(Trial(), "rate") == 0.5
    assert asked == [("leaf", 1, 9, True), ("rate", 0.0, 1.0, False)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("xgboost", 9), "model: expected .*'xgboost'"),
        (("random_forest", 1), "n_rows: expected an integer from 2 to 2147483647, got 1"),
        (("random_forest", 9, "rank"), "task: expected"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        pb.search_space(*arguments)
