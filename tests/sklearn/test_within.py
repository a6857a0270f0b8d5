"""The most accurate estimators within a budget."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pboost as pb

pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_validate

from pboost.sklearn import BudgetClassifier, BudgetRegressor, cost_scorer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
SIGNAL = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * RNG.normal(size=240)
TARGETS = {
    "two": np.where(SIGNAL > 0, "yes", "no"),
    "three": np.digitize(SIGNAL, [-0.5, 0.5]),
    "numbers": SIGNAL,
}
FITTED: dict = {}


def fitted(target):
    if target not in FITTED:
        kind = BudgetRegressor if target == "numbers" else BudgetClassifier
        FITTED[target] = kind(mean_comparisons=6, cv=2, random_state=0).fit(X, TARGETS[target])
    return FITTED[target]


@pytest.mark.full_for("three", "two")
@pytest.mark.parametrize("target", TARGETS)
def test_estimator_is_the_model_of_the_builder(target):
    estimator, y = fitted(target), TARGETS[target]
    task = "regression" if target == "numbers" else "classification"
    model = pb.fit_within_budget(X, y, mean_comparisons=6, cv=2, rng=0, task=task)
    assert pb.describe(estimator.model_) == pb.describe(model)
    np.testing.assert_array_equal(estimator.predict(X), pb.predict(model, X))
    curve = estimator.curve_
    assert curve.shape[1] == 4
    assert curve[-1, 0] == 6
    if target != "numbers":
        known = getattr(model, "curve", None)  # a single tree has it in its settings
        np.testing.assert_array_equal(curve, model.settings["curve"] if known is None else known)
        assert estimator.classes_.tolist() == np.unique(y).tolist()
        assert estimator.predict(X).dtype == y.dtype
        share = estimator.predict_proba(X)
        np.testing.assert_array_equal(
            estimator.classes_[share.argmax(axis=1)], estimator.predict(X)
        )
    assert cost_scorer(estimator, X) == -pb.prediction_cost(model, X).mean()
    assert 0 < estimator.prediction_cost_ <= 6
    other = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(other.predict(X), estimator.predict(X))


@pytest.mark.full
def test_settings_after_the_fit_are_those_of_the_next():
    estimator = clone(fitted("two")).fit(X, TARGETS["two"])
    before, cost = estimator.predict(X), estimator.prediction_cost_
    estimator.set_params(mean_comparisons=2)
    np.testing.assert_array_equal(estimator.predict(X), before)
    assert estimator.prediction_cost_ == cost
    assert estimator.fit(X, TARGETS["two"]).prediction_cost_ <= 2


@pytest.mark.full
def test_budgets():
    y = TARGETS["two"]
    assert BudgetClassifier(cv=2).get_params()["mean_comparisons"] is None
    usual = BudgetClassifier(cv=2, random_state=0).fit(X[:90], y[:90])
    assert usual.model_.budget == 50
    worst = BudgetClassifier(max_comparisons=3, cv=2, random_state=0).fit(X, y)
    assert pb.prediction_cost(worst.model_, 3 * X).max() <= 3
    paid = BudgetClassifier(
        mean_feature_cost=2, feature_costs=[1.0, 1.0, 9.0], cv=2, random_state=0
    ).fit(X, y)
    assert pb.prediction_cost(paid.model_, X, unit="feature_cost").mean() <= 2


def test_cross_validation_of_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"]).mask(RNG.random(X.shape) < 0.1)
    frame["kind"] = RNG.choice(["u", "v"], size=len(X))
    validated = cross_validate(
        BudgetClassifier(mean_comparisons=4, cv=2, random_state=0),
        frame,
        TARGETS["two"],
        cv=2,
        scoring={"accuracy": "accuracy", "cost": cost_scorer},
        error_score="raise",
    )
    assert (validated["test_cost"] >= -5).all()


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: BudgetClassifier().predict(X), NotFittedError, "not fitted"),
        (lambda: BudgetClassifier().curve_, NotFittedError, "not fitted"),
        (lambda: BudgetClassifier().prediction_cost_, NotFittedError, "not fitted"),
        (lambda: fitted("two").predict(X[:, :2]), ValueError, "expecting 3 features"),
        (lambda: BudgetClassifier().fit(X, np.ones(240)), ValueError, "got one class, 1.0"),
        (
            lambda: BudgetClassifier(mean_comparisons=[2, 5]).fit(X, TARGETS["two"]),
            TypeError,
            r"mean_comparisons: expected a single budget, got .* pboost.fit_within_budget",
        ),
        (
            lambda: BudgetRegressor(
                mean_comparisons=5, mean_feature_cost=2, feature_costs=[1, 1, 1]
            ).fit(X, SIGNAL),
            ValueError,
            "mean_feature_cost: expected no other budget",
        ),
        (
            lambda: BudgetClassifier(mean_comparisons=0.5).fit(X, TARGETS["two"]),
            ValueError,
            "mean_comparisons: expected a number in .1",
        ),
        (
            lambda: BudgetClassifier().fit(X, TARGETS["two"], sample_weight=np.ones(240)),
            TypeError,
            "sample_weight",
        ),
        (lambda: BudgetClassifier(class_weight="balanced"), TypeError, "class_weight"),
    ],
    ids=[
        "predict",
        "curve",
        "cost",
        "columns",
        "class",
        "list",
        "price",
        "least",
        "weight",
        "class_weight",
    ],
)
def test_bad_input(call, error, said):
    with pytest.raises(error, match=said):
        call()
