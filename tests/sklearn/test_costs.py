"""Comparisons as an attribute and as a score, and searches that trade for them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pboost as pb

pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pboost.sklearn
from pboost.sklearn import (
    AdaBoostClassifier,
    CartClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    best_within_budget,
    cheapest_within_standard_error,
    cost_scorer,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
SIGNAL = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * RNG.normal(size=150)
Y = np.digitize(SIGNAL, [0.0, 1.0])
FEW = {
    "n_boosting_rounds": 5,
    "max_iter": 4,
    "n_estimators": 4,
    "max_nodes": 5,
    "n_stumps": 5,
    "cv": 2,
    "random_state": 0,
    "mean_comparisons": 5,
}
#: What is grown on rows that are drawn, or on which exits are set, costs others somewhat else.
NEAR = ("RandomForest", "SBPMT", "Budget")


@pytest.mark.parametrize("name", [name for name in pboost.sklearn.__all__ if name[0].isupper()])
def test_every_estimator_has_a_cost(name):
    estimator = getattr(pboost.sklearn, name)()
    options = {key: value for key, value in FEW.items() if key in estimator.get_params()}
    for instead, option in (("weak_learner", "n_stumps"), ("shape", "max_nodes")):
        if instead in estimator.get_params():
            options.pop(option, None)
    estimator.set_params(**options)
    with pytest.raises(NotFittedError):
        _ = estimator.prediction_cost_
    with pytest.raises(NotFittedError):
        cost_scorer(estimator, X)
    estimator.fit(X, Y if is_classifier(estimator) else SIGNAL)
    cost = pb.prediction_cost(estimator.model_, X).mean()
    near = 0.3 if name.startswith(NEAR) else 1e-9
    if name != "SoftTreeClassifier":  # expected, with answers that err
        assert estimator.prediction_cost_ == pytest.approx(cost, rel=near)
    assert cost_scorer(estimator, X, Y) == -cost


def test_cost_of_a_pipeline():
    piped = make_pipeline(StandardScaler(), CartClassifier(max_depth=2)).fit(X, Y)
    assert (
        cost_scorer(piped, X)
        == -pb.prediction_cost(piped[-1].model_, StandardScaler().fit_transform(X)).mean()
    )
    assert cost_scorer(make_pipeline(CartClassifier(max_depth=1)).fit(X, Y), X) == -1
    for other in (DummyClassifier().fit(X, Y), make_pipeline(DummyClassifier()).fit(X, Y), 3):
        with pytest.raises(TypeError, match=r"estimator: expected one of pboost\.sklearn"):
            cost_scorer(other, X)


def results(scores, costs):
    """Return results of a search: scores (folds, settings), and costs."""
    of_folds = {f"split{k}_test_score": np.array(row) for k, row in enumerate(scores)}
    cost = -np.array(costs, dtype=float)
    return {
        "mean_test_score": np.mean(scores, axis=0),
        "mean_test_cost": cost,
        **of_folds,
        "split0_test_cost": cost,
        "split0_train_score": np.zeros(len(costs)),
    }


def test_the_cheapest_that_is_about_as_good():
    scores = [[0.80, 0.90, 0.92, 0.92], [0.80, 0.88, 0.88, 0.88]]
    actual = results(scores, [1, 5, 9, 7])
    # The standard error of the best, 0.90, is 0.02.
    assert cheapest_within_standard_error()(actual) == 1
    assert cheapest_within_standard_error(standard_errors=0)(actual) == 3
    assert cheapest_within_standard_error(standard_errors=4.9)(actual) == 1
    assert cheapest_within_standard_error(standard_errors=5.1)(actual) == 0
    first = results([[0.7, 0.9, 0.9]], [1, 5, 4])
    assert cheapest_within_standard_error()(first) == 2
    failed = results([[np.nan, 0.9, 0.9]], [np.nan, 5, 4])
    assert cheapest_within_standard_error()(failed) == 2
    assert best_within_budget(4.5)(failed) == 2


def test_the_best_within_a_budget():
    actual = results([[0.7, 0.9, 0.9, 0.95]], [1, 5, 4, 9])
    assert [best_within_budget(budget)(actual) for budget in (1, 3, 4, 8, 9, 100)] == [
        0,
        0,
        2,
        2,
        3,
        3,
    ]
    with pytest.raises(
        ValueError, match="mean_comparisons: expected at least 1, what the cheapest"
    ):
        best_within_budget(0.5)(actual)


@pytest.mark.parametrize(
    "make",
    [cheapest_within_standard_error, lambda **names: best_within_budget(3, **names)],
    ids=["least", "within"],
)
def test_wrong_names(make):
    actual = results([[0.7, 0.9]], [1, 5])
    with pytest.raises(ValueError, match="names of scorers, 'score', 'cost', got 'accuracy'"):
        make(score="accuracy")(actual)
    with pytest.raises(ValueError, match="got 'comparisons'"):
        make(cost="comparisons")(actual)
    with pytest.raises(ValueError, match="all values of 'score' are NaN"):
        make()(results([[np.nan, np.nan]], [1, 5]))


def test_bad_numbers():
    with pytest.raises(ValueError, match="standard_errors: expected a number"):
        cheapest_within_standard_error(standard_errors=-1)
    with pytest.raises(ValueError, match="mean_comparisons: expected a number"):
        best_within_budget(np.nan)


def test_searches():
    scoring = {"score": "accuracy", "cost": cost_scorer}
    search = GridSearchCV(
        AdaBoostClassifier(),
        {"n_estimators": [1, 5, 25]},
        cv=3,
        scoring=scoring,
        refit=best_within_budget(10),
        error_score="raise",
    )
    search = pickle.loads(pickle.dumps(search)).fit(X, Y)
    assert search.best_params_["n_estimators"] in (1, 5)
    assert search.cv_results_["mean_test_cost"].tolist() == [-1, -5, -25]
    assert search.predict(X).shape == (150,)
    cheap = search.set_params(refit=cheapest_within_standard_error(standard_errors=1e9)).fit(X, Y)
    assert cheap.best_params_ == {"n_estimators": 1}


def test_early_exits_count_in_the_score():
    estimator = GradientBoostingClassifier(n_estimators=20).fit(X, Y)
    small = pb.early_exit(
        estimator.model_, X + 1e-9, mean_comparisons=0.3 * estimator.prediction_cost_
    )
    full = cost_scorer(estimator, X)
    estimator.model_ = small
    assert cost_scorer(estimator, X) > 0.5 * full
    assert estimator.prediction_cost_ == small.cost


def test_forests_know_the_cost_of_their_bags():
    forest = RandomForestClassifier(n_estimators=3, random_state=0).fit(X, Y)
    assert forest.prediction_cost_ == pytest.approx(
        sum(tree.mean_prediction_cost for tree in forest.model_)
    )
