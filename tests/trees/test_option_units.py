"""Regularization parameters and `cost_tradeoff` have the same scale as in other libraries."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from shallow import PLAIN, fit_shallow

import pboost as pb
from pboost.losses import LOSSES

GOLDEN = Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import fits  # noqa: E402

ONE = {"n_estimators": 1, "learning_rate": 1.0, "init": "zero", "max_delta_step": None, **PLAIN}
HALVES = np.repeat([[0.0], [1.0]], 5, axis=0)
NUMBERS = np.repeat([-1.0, 1.0], 5)


def has_split(X, y, **options):
    model = pb.fit_gradient_boosting(
        X, y, **{**ONE, "l2_regularization": 0.0, "max_depth": 1, **options}
    )
    return len(model.trees.feature) > 1


def test_derivatives_of_the_squared_loss():
    y, f = np.array([0.0, 3.0]), np.array([2.0, -1.0])
    loss = LOSSES["squared_error"]
    assert loss.gradient(y, f).tolist() == [2.0, -4.0]
    assert loss.curvature(y, f).tolist() == [1.0, 1.0]
    assert loss.value(y, f).tolist() == [2.0, 8.0]
    assert loss.reported == 2.0


@pytest.mark.parametrize("leaf_update", ["line_search", "newton"])
@pytest.mark.parametrize("times", [1.0, 1e-3, 1e6])
def test_l2_is_a_number_of_rows(leaf_update, times):
    y = np.ones(5)
    weight = {} if times == 1 else {"sample_weight": np.full(5, times)}
    model = pb.fit_gradient_boosting(
        np.zeros((5, 1)),
        y,
        task="regression",
        l2_regularization=times,
        leaf_update=leaf_update,
        **ONE,
        **weight,
    )
    assert pb.predict(model, [[0.0]])[0] == pytest.approx(5 / 6, rel=1e-12)


@pytest.mark.parametrize("sums", ["packed", "wide"])
def test_min_weight_is_a_number_of_rows(sums):
    of = {"task": "regression", "histogram_precision": sums}
    actual = [has_split(HALVES, NUMBERS, min_child_weight=minimum, **of) for minimum in (5, 5.1)]
    assert actual == [True, False]
    twice = {"sample_weight": np.full(10, 2.0), **of}
    actual = [
        has_split(HALVES, NUMBERS, min_child_weight=minimum, **twice) for minimum in (10, 10.1)
    ]
    assert actual == [True, False]


def newton_gain(loss, y, above, f=0.0):
    """Return G**2 / H of both sides less that of the node."""
    f = np.full(len(y), f)
    g, h = loss.gradient(y, f), loss.curvature(y, f)
    parts = (np.ones(len(y), dtype=bool), ~above, above)
    full, *sides = (g[rows].sum() ** 2 / h[rows].sum() for rows in parts)
    return sum(sides) - full


SIGNS = np.repeat([-1.0, 1.0, -1.0, 1.0], [6, 1, 2, 6])
COUNTS = np.repeat([0.0, 1.0, 2.0, 5.0], [6, 1, 2, 6])
CASES = {
    "squared_error": (SIGNS, "regression"),
    "log_loss": (SIGNS, "classification"),
    "exponential": (SIGNS, "classification"),
    "probit": (SIGNS, "classification"),
    "poisson": (COUNTS, "regression"),
}


@pytest.mark.parametrize("search", ["independent", "pooled", "best first"])
@pytest.mark.parametrize("name", CASES)
def test_min_gain_is_the_whole_newton_gain(name, search):
    """Halves of it, the old unit, would make the split at twice the number."""
    (y, task), above = CASES[name], np.arange(15) >= 7
    more = {"growth": search} if search != "best first" else {"max_leaf_nodes": 2}
    gain = newton_gain(LOSSES[name], y, above)
    actual = [
        has_split(
            above[:, None] * 1.0, y, loss=name, task=task, min_split_gain=gain * times, **more
        )
        for times in (0.999, 1.001)
    ]
    assert actual == [True, False]


@pytest.mark.parametrize("trees", ["one_output_per_tree", "multi_output_tree"])
def test_min_gain_of_softmax_is_that_of_each_class_or_of_all(trees):
    y, x = np.repeat([0, 1, 2], 6), np.repeat([0.0, 1.0], [6, 12])
    g, h = 1 / 3 - (y[:, None] == np.arange(3)), 2 / 9

    def score(rows):
        return g[rows].sum(axis=0) ** 2 / (h * rows.sum())

    gains = score(x == 0) + score(x == 1) - score(x >= 0)
    assert gains.tolist() == pytest.approx([18.0, 4.5, 4.5])
    gain = gains.sum() if trees == "multi_output_tree" else gains.max()
    options = {
        "loss": "softmax",
        "multi_strategy": trees,
        "l2_regularization": 0.0,
        "max_depth": 1,
        **ONE,
    }
    splits = [
        np.count_nonzero(
            pb.fit_gradient_boosting(
                x[:, None], y, min_split_gain=gain * times, **options
            ).trees.feature
            == 0
        )
        for times in (0.999, 1.001)
    ]
    assert splits == [1, 0]


@pytest.mark.parametrize("name", ["squared_error", "log_loss"])
def test_price_tradeoff_is_in_units_of_the_losses_that_are_reported(name):
    """The split takes 10 from the sum of squared errors; of log losses half of its gain."""
    y = NUMBERS if name == "squared_error" else (NUMBERS > 0).astype(int)
    taken = 10.0 if name == "squared_error" else newton_gain(LOSSES[name], NUMBERS, NUMBERS > 0) / 2
    feature_costs = {
        "feature_costs": [0.75],
        "comparison_cost": 0.25,
        "loss": name,
    }  # 1 for each row
    actual = [
        has_split(HALVES, y, cost_tradeoff=times * taken / 10, **feature_costs)
        for times in (0.999, 1.001)
    ]
    assert actual == [True, False]
    if name == "squared_error":
        model = fit_shallow(HALVES, y, loss=name, task="regression", l2_regularization=0.0, **ONE)
        assert model.training_loss.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("search", ["binned", "exact"])
def test_reported_losses_of_numbers_are_mean_squared_errors(search):
    r = np.random.default_rng(0)
    X, weight = r.normal(size=(90, 2)), r.uniform(0.5, 2.0, 90)
    y, held = X[:, 0] * X[:, 1], np.arange(90) % 3 == 0
    model = pb.fit_gradient_boosting(
        X[~held],
        y[~held],
        n_estimators=4,
        sample_weight=weight[~held],
        search=search,
        validation=(X[held], y[held], weight[held]),
    )
    for rows, losses in ((~held, model.training_loss), (held, model.validation_loss)):
        stages = [np.full(90, model.bias), *pb.staged_predict(model, X)]
        errors = [np.average((y - f)[rows] ** 2, weights=weight[rows]) for f in stages]
        np.testing.assert_allclose(losses[: len(errors)], errors, rtol=1e-9)


def test_auto_l2_of_labels_with_the_squared_loss_is_one_row():
    options = {"loss": "squared_error", "task": "classification", "n_estimators": 8}
    X, y = fits.X, fits.TWO
    auto = pb.fit_gradient_boosting(X, y, **options)
    first_model = pb.fit_gradient_boosting(X, y, l2_regularization=1.0, **options)
    assert np.array_equal(auto.trees.value, first_model.trees.value)
