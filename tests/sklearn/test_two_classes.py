"""Decision values of two classes are (n,), as scikit-learn reads them; what fits can predict."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb

pytest.importorskip("sklearn")

from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import TunedThresholdClassifierCV, cross_val_score

from pboost import sklearn as estimators

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=120) > 0, "yes", "no")
Z = np.digitize(X[:, 0], [-0.5, 0.5])
P = np.column_stack([Y == "no", Y == "yes"]) * 0.8 + 0.1
SOFTMAX = {"loss": "softmax", "n_estimators": 12}
CLASSIFIERS = {
    **{
        f"stagewise, {loss}": estimators.GradientBoostingClassifier(loss=loss, n_estimators=4)
        for loss in ("log_loss", "exponential", "hinge", "probit", "softmax")
    },
    "stagewise, own softmax": estimators.GradientBoostingClassifier(
        loss=pb.losses.Softmax(), n_estimators=4
    ),
    "stagewise, one tree": estimators.GradientBoostingClassifier(
        multi_strategy="multi_output_tree", **SOFTMAX
    ),
    "adaboost": estimators.AdaBoostClassifier(n_estimators=4),
    "adaboost, symmetric": estimators.AdaBoostClassifier(n_estimators=4, votes="symmetric"),
    "soft tree": estimators.SoftTreeClassifier(max_nodes=3),
    "soft tree, expected": estimators.SoftTreeClassifier(
        max_nodes=3, observation="half", route="expected"
    ),
    "matryoshka": estimators.MatryoshkaClassifier(shape=(2, 2)),
    "oblique tree": estimators.ObliqueTreeClassifier(max_depth=1, n_stumps=2),
    "probit tree": estimators.ProbitTreeClassifier(max_iter=3),
    "sbpmt": estimators.SBPMTClassifier(
        n_estimators=2, n_boosting_rounds=2, max_iter=3, random_state=0
    ),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_decision_values_of_two_classes(name):
    model = CLASSIFIERS[name].fit(X, Y)
    score = model.decision_function(X)
    assert score.shape == (len(X),)
    np.testing.assert_array_equal(model.classes_[(score > 0).astype(int)], model.predict(X))
    if hasattr(model, "staged_decision_function"):
        staged = list(model.staged_decision_function(X))
        assert {item.shape for item in staged} == {(len(X),)}
        np.testing.assert_allclose(staged[-1], score, rtol=1e-12, atol=1e-12)
        labels = list(model.staged_predict(X))
        for values, item in zip(staged, labels, strict=True):
            np.testing.assert_array_equal(model.classes_[(values > 0).astype(int)], item)
    if hasattr(model, "predict_proba"):
        second = model.predict_proba(X)[:, 1]
        assert (np.diff(second[np.argsort(score, kind="stable")]) >= -1e-12).all()
        assert model.fit(X, Z).decision_function(X).shape == (len(X), 3)
    assert model.fit(X, y_proba=P).decision_function(X).shape == (len(X),)


def test_softmax_has_the_log_odds():
    model = estimators.GradientBoostingClassifier(**SOFTMAX).fit(X, Y)
    first, second = model.predict_proba(X).T
    np.testing.assert_allclose(model.decision_function(X), np.log(second / first), rtol=1e-9)
    assert pb.decision_function(model.model_, X).shape == (len(X), 2)  # a value of each label


@pytest.mark.full
@pytest.mark.parametrize("trees", ["one_output_per_tree", "multi_output_tree"])
def test_what_scikit_learn_does_with_decision_values(trees):
    model = estimators.GradientBoostingClassifier(multi_strategy=trees, **SOFTMAX)
    area = roc_auc_score(Y, model.fit(X, Y).decision_function(X))
    assert area == roc_auc_score(Y, model.predict_proba(X)[:, 1]) > 0.9
    scores = cross_val_score(model, X, Y, scoring="roc_auc", cv=2, error_score="raise")
    assert (scores > 0.5).all()
    for method in ("sigmoid", "isotonic"):
        calibrated = CalibratedClassifierCV(model, method=method, cv=2).fit(X, Y)
        assert roc_auc_score(Y, calibrated.predict_proba(X)[:, 1]) > 0.8
    tuned = TunedThresholdClassifierCV(
        model, response_method="decision_function", cv=2, scoring="balanced_accuracy"
    )
    assert tuned.fit(X, Y).score(X, Y) > 0.7


def test_displays():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot
    from sklearn.inspection import DecisionBoundaryDisplay
    from sklearn.metrics import DetCurveDisplay, PrecisionRecallDisplay, RocCurveDisplay

    model = estimators.GradientBoostingClassifier(**SOFTMAX).fit(X, Y)
    method = {"response_method": "decision_function"}
    for display in (RocCurveDisplay, PrecisionRecallDisplay, DetCurveDisplay):
        display.from_estimator(model, X, Y, **method)
    shown = DecisionBoundaryDisplay.from_estimator(model, X, grid_resolution=5, **method)
    assert shown.response.shape == (5, 5)
    pyplot.close("all")


OF_CLASS = {
    "adatree2": "adatree2",
    "uniform": "uniform",
    "adatree2()": pb.observation.adatree2(0.5),
    "sampled": pb.observation.sampled(base=pb.observation.uniform()),
}
GRAPHS = {
    "adaboost": estimators.AdaBoostClassifier(n_estimators=3),
    "soft tree": estimators.SoftTreeClassifier(max_nodes=3),
    "matryoshka": estimators.MatryoshkaClassifier(shape=(2, 2)),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("of_class", OF_CLASS)
@pytest.mark.parametrize("y", [Y, Z], ids=["two", "three"])
def test_answers_that_depend_on_the_class_have_no_expected_route(name, of_class, y):
    model = GRAPHS[name].set_params(observation=OF_CLASS[of_class], route="expected")
    with pytest.raises(
        ValueError, match=r"^route: expected 'hard' with observation '(ada|uni|sam)"
    ):
        model.fit(X, y)
    assert not hasattr(model, "model_")


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("observation", ["exact", "flip", "half", "gaussian", "sampled"])
def test_other_answers_have_one(name, observation):
    own = {"flip": {"flip_rate": 0.2}, "gaussian": {"sigma": 0.3}}.get(observation, {})
    if observation == "sampled":
        observation = pb.observation.sampled(base=pb.observation.half(), max_draws=5)
    model = type(GRAPHS[name])(observation=observation, route="expected", **own).fit(X, Y)
    assert model.predict(X).shape == model.decision_function(X).shape == (len(X),)


def test_the_default_soft_tree_predicts_by_the_expected_route_only_if_it_can():
    model = estimators.SoftTreeClassifier(route="expected")
    with pytest.raises(ValueError, match=r"^route: expected 'hard' with observation 'adatree2'"):
        model.fit(X, Y)
    assert model.set_params(observation="half").fit(X, Y).score(X, Y) > 0.5
