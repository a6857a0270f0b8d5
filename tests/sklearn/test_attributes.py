"""Attributes and methods that scikit-learn's estimators have, and what they mean there."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb

pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
from sklearn import ensemble, tree
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, r2_score

import pboost.sklearn
from pboost.sklearn import (
    AdaBoostClassifier,
    CartClassifier,
    CartRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    MatryoshkaClassifier,
    ProbitTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    SBPMTClassifier,
    SoftTreeClassifier,
)

X, CODES = load_iris(return_X_y=True)
TWO = CODES > 0
NUMBERS = X[:, 2] - X[:, 0]
#: All that a fitted estimator may have or not.
NAMES = {
    "apply",
    "decision_path",
    "estimators_",
    "get_depth",
    "get_n_leaves",
    "n_iter_",
    "oob_score_",
    "predict_log_proba",
    "train_score_",
    "tree_",
    "validation_score_",
}
OF_TREE = {"apply", "decision_path", "get_depth", "get_n_leaves", "tree_"}
OF_BAGS = {"estimators_", "oob_score_"}
OF_ROUNDS = {"n_iter_", "train_score_"}
LOG = {"predict_log_proba"}


def small_forest(kind, **options):
    return kind(n_estimators=5, random_state=0, **options)


@pytest.mark.parametrize(
    ("estimator", "y", "names"),
    [
        (CartClassifier(), CODES, OF_TREE | LOG),
        (CartRegressor(), NUMBERS, OF_TREE),
        (ProbitTreeClassifier(), CODES, OF_TREE | LOG | {"n_iter_"}),
        (small_forest(RandomForestClassifier), CODES, OF_BAGS | LOG | {"apply"}),
        (small_forest(RandomForestRegressor), NUMBERS, OF_BAGS | {"apply"}),
        (
            small_forest(RandomForestRegressor, bootstrap=False, max_samples=1.0),
            NUMBERS,
            {"apply", "estimators_"},
        ),
        (small_forest(SBPMTClassifier), CODES, OF_BAGS | LOG | {"n_iter_"}),
        (GradientBoostingClassifier(n_estimators=3), CODES, OF_ROUNDS | LOG | {"apply"}),
        (GradientBoostingClassifier(n_estimators=3, loss="hinge"), TWO, OF_ROUNDS | {"apply"}),
        (GradientBoostingClassifier(n_estimators=3, loss="exponential"), CODES, LOG | {"n_iter_"}),
        (GradientBoostingRegressor(n_estimators=3), NUMBERS, OF_ROUNDS | {"apply"}),
        (
            GradientBoostingRegressor(n_estimators=3, validation=0.2, random_state=0),
            NUMBERS,
            OF_ROUNDS | {"apply", "validation_score_"},
        ),
        (AdaBoostClassifier(n_estimators=3), TWO, OF_ROUNDS | LOG),
        (
            AdaBoostClassifier(n_estimators=3, validation=0.2, random_state=0),
            TWO,
            OF_ROUNDS | LOG | {"validation_score_"},
        ),
        (SoftTreeClassifier(max_nodes=5), TWO, OF_ROUNDS | LOG | {"get_depth", "get_n_leaves"}),
        (MatryoshkaClassifier(shape=(2, 2)), CODES, LOG | {"n_iter_"}),
    ],
    ids=lambda value: str(value) if isinstance(value, BaseEstimator) else "",
)
def test_has_what_its_model_has(estimator, y, names):
    estimator.fit(X, y)
    assert {name for name in NAMES if hasattr(estimator, name)} == names


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (GradientBoostingClassifier(quality=1), CODES),
        (GradientBoostingClassifier(quality=1, loss="log_loss"), TWO),
        (GradientBoostingRegressor(quality=1), NUMBERS),
    ],
)
def test_values_that_replace_auto(estimator, y):
    assert not hasattr(estimator, "n_estimators_")
    estimator.fit(X, y)
    settings = estimator.model_.settings
    for name in ("leaf_shrinkage", "random_strength", "subsample"):
        assert getattr(estimator, f"{name}_") == settings[name] != "auto"
    assert estimator.learning_rate_ == 0.3
    assert estimator.n_estimators_ == estimator.n_iter_
    assert estimator.growth_ in ("independent", "pooled", "symmetric")


@pytest.mark.parametrize("name", [n for n in pboost.sklearn.__all__ if n[0].isupper()])
def test_attributes_come_with_a_fit(name):
    estimator = getattr(pboost.sklearn, name)()
    assert not [n for n in NAMES if n.endswith("_") and hasattr(estimator, n)]


@pytest.mark.parametrize(
    ("ours", "theirs", "y"),
    [
        (CartClassifier(), tree.DecisionTreeClassifier(random_state=0), CODES),
        (CartRegressor(), tree.DecisionTreeRegressor(random_state=0), NUMBERS),
    ],
)
def test_single_trees(ours, theirs, y):
    ours.fit(X, y)
    theirs.fit(X, y)
    model = ours.model_
    assert ours.tree_ is model
    assert (ours.get_depth(), ours.get_n_leaves()) == (model.depth, model.n_leaves)
    leaf, path = ours.apply(X), ours.decision_path(X)
    np.testing.assert_array_equal(leaf, pb.inspection.apply(model, X))
    assert leaf.shape == theirs.apply(X).shape
    assert path.format == theirs.decision_path(X).format
    assert path.shape == (len(X), model.n_nodes)
    assert set(path.data.tolist()) == {1}
    for row, nodes in enumerate(pb.inspection.decision_path(model, X)):
        np.testing.assert_array_equal(path[row].indices, nodes)
    # A row reaches the last of its nodes.
    np.testing.assert_array_equal(model.leaf[path.indices[path.indptr[1:] - 1]], leaf)


def test_probit_trees():
    probit = ProbitTreeClassifier().fit(X, CODES)
    model = probit.model_
    assert probit.tree_ is model.partition
    assert probit.get_n_leaves() == model.n_leaves
    np.testing.assert_array_equal(probit.apply(X), pb.inspection.apply(model, X))
    np.testing.assert_array_equal(
        probit.decision_path(X).sum(axis=1).ravel(),
        [list(map(len, pb.inspection.decision_path(probit.tree_, X)))],
    )
    assert probit.n_iter_ == model.taken.max()


def test_boosted_trees_have_a_size():
    soft = SoftTreeClassifier(max_nodes=9).fit(X, CODES == 1)
    longest = pb.prediction_cost(soft.model_, X).max()
    assert soft.get_depth() >= longest
    assert soft.get_n_leaves() == np.count_nonzero(soft.model_.next == -1)


@pytest.mark.parametrize("weight", [None, np.arange(1.0, 151.0)], ids=["equal", "weighted"])
def test_out_of_bag(weight):
    classifier = RandomForestClassifier(n_estimators=30, random_state=0).fit(X, CODES, weight)
    oob = classifier.model_.oob
    known = oob.n_estimators > 0
    weight_of_known = None if weight is None else weight[known]
    said = oob.prediction[known].argmax(axis=1)
    right = accuracy_score(CODES[known], said, sample_weight=weight_of_known)
    assert classifier.oob_score_ == pytest.approx(right)
    assert classifier.oob_score_ == 1 - oob.error

    regressor = RandomForestRegressor(n_estimators=30, random_state=0).fit(X, NUMBERS, weight)
    oob = regressor.model_.oob
    known = oob.n_estimators > 0
    weight_of_known = None if weight is None else weight[known]
    score = r2_score(NUMBERS[known], oob.prediction[known], sample_weight=weight_of_known)
    assert regressor.oob_score_ == pytest.approx(score)
    assert (
        RandomForestRegressor(n_estimators=3, random_state=0).fit(X, np.ones(150)).oob_score_ == 1.0
    )


def test_members():
    forest = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, CODES)
    theirs = ensemble.RandomForestClassifier(5).fit(X, CODES)
    assert len(forest.estimators_) == len(theirs.estimators_)
    np.testing.assert_array_equal(forest.estimators_[3].predict(X), pb.predict(forest.model_[3], X))
    assert forest.apply(X).shape == theirs.apply(X).shape
    np.testing.assert_array_equal(forest.apply(X), pb.inspection.apply(forest.model_, X))
    subagged = SBPMTClassifier(n_estimators=3, random_state=0).fit(X, CODES)
    assert len(subagged.estimators_) == subagged.n_iter_ == 3


@pytest.mark.parametrize("name", ["validation", "none"])
def test_scores_of_gradient_boosting(name):
    kept = {"validation": 0.2} if name == "validation" else {}
    ours = GradientBoostingRegressor(n_estimators=8, random_state=0, **kept).fit(X, NUMBERS)
    theirs = ensemble.HistGradientBoostingRegressor(
        max_iter=8, early_stopping=True, scoring="loss"
    ).fit(X, NUMBERS)
    assert ours.train_score_.shape == (ours.n_iter_ + 1,)
    assert theirs.train_score_.shape == (theirs.n_iter_ + 1,)
    np.testing.assert_array_equal(ours.train_score_, -ours.model_.training_loss)
    assert (np.diff(ours.train_score_) >= 0).all()
    assert len(list(ours.staged_predict(X))) == ours.n_iter_
    if kept:
        np.testing.assert_array_equal(ours.validation_score_, -ours.model_.validation_loss)
        assert len(ours.validation_score_) > ours.n_iter_
    many = GradientBoostingClassifier(n_estimators=4).fit(X, CODES)
    assert many.n_iter_ == 4
    assert many.apply(X).shape == (150, 12)


def test_scores_of_graphs():
    graph = AdaBoostClassifier(n_estimators=9, validation=0.2, random_state=0).fit(X, TWO)
    record = graph.model_.record
    np.testing.assert_array_equal(graph.train_score_, -record.certificate)
    np.testing.assert_array_equal(graph.validation_score_, 1 - record.validation)
    assert graph.n_iter_ == graph.model_.n_nodes
    assert graph.train_score_.shape == (graph.n_iter_ + 1,)


def test_logarithms_of_probabilities():
    for estimator in (CartClassifier(), AdaBoostClassifier(n_estimators=3)):
        estimator.fit(X, CODES)
        np.testing.assert_array_equal(
            np.exp(estimator.predict_log_proba(X)).round(12), estimator.predict_proba(X).round(12)
        )
    noisy = AdaBoostClassifier(n_estimators=3, observation="gaussian", sigma=0.1).fit(X, TWO)
    np.testing.assert_array_equal(
        noisy.predict_log_proba(X, sigma=0.5), np.log(noisy.predict_proba(X, sigma=0.5))
    )
