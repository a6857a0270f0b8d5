"""Soft labels and errors of measurement where scikit-learn routes them."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pboost.sklearn import AdaBoostClassifier, CartClassifier, RandomForestClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
SHARE = RNG.dirichlet([0.4, 0.4, 0.4], size=150)
NAMES = np.array(["ash", "elm", "oak"])
Y = NAMES[SHARE.argmax(axis=1)]
SOFT = {"y_proba": SHARE, "classes": NAMES}


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def by_hand(estimator, data, folds):
    """Return the accuracies in folds, of which y is not fitted."""
    return [
        clone(estimator).fit(data[a], y_proba=SHARE[a], classes=NAMES).score(data[b], Y[b])
        for a, b in folds
    ]


@pytest.mark.parametrize(
    "estimator",
    [
        CartClassifier(max_depth=3),
        RandomForestClassifier(n_estimators=4, random_state=0),
        AdaBoostClassifier(n_estimators=4),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_soft_labels_in_a_cross_validation(estimator):
    asking = clone(estimator).set_fit_request(y_proba=True, classes=True)
    folds = [(np.arange(150)[k::3], np.arange(150)[k + 1 :: 3]) for k in range(2)]
    validated = cross_validate(asking, X, Y, cv=folds, params=SOFT, error_score="raise")[
        "test_score"
    ]
    assert validated.tolist() == by_hand(estimator, X, folds)
    hard = cross_validate(estimator, X, Y, cv=folds)["test_score"]
    assert hard.tolist() != validated.tolist()


def test_soft_labels_through_a_pipeline_and_a_search():
    tree = CartClassifier(random_state=0).set_fit_request(y_proba=True, classes=True)
    piped = make_pipeline(StandardScaler(), tree)
    grid = {"cartclassifier__max_depth": [1, 3]}
    search = GridSearchCV(piped, grid, cv=3, error_score="raise").fit(X, Y, **SOFT)
    best = clone(search.best_estimator_[-1])
    full_model = best.fit(StandardScaler().fit_transform(X), **SOFT)
    np.testing.assert_array_equal(
        search.predict(X), full_model.predict(StandardScaler().fit_transform(X))
    )
    assert search.classes_.tolist() == NAMES.tolist()


def test_errors_of_rows_that_are_predicted():
    two = Y == "oak"
    sigma = RNG.exponential(size=X.shape)
    noisy = AdaBoostClassifier(n_estimators=4, observation="gaussian")
    asking = clone(noisy).set_fit_request(sigma=True).set_score_request(sigma=True)
    folds = [(np.arange(75), np.arange(75, 150)), (np.arange(75, 150), np.arange(75))]
    validated = cross_validate(asking, X, two, cv=folds, params={"sigma": sigma})["test_score"]
    for (a, b), score in zip(folds, validated, strict=True):
        fitted = clone(noisy).fit(X[a], two[a], sigma=sigma[a])
        assert score == fitted.score(X[b], two[b], sigma=sigma[b])
    piped = make_pipeline("passthrough", asking.set_predict_request(sigma=True))
    piped.fit(X, two, sigma=sigma)
    full = clone(noisy).fit(X, two, sigma=sigma)
    np.testing.assert_array_equal(
        piped.predict(X, sigma=2 * sigma), full.predict(X, sigma=2 * sigma)
    )
