"""AUC, logarithmic loss, Brier score, absolute error and R squared, alone and of each fold."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import pboost as pb
from pboost.inspection import cross_validation as metrics

EPS = 2.0**-52


def drawn(seed, n_classes, n=80, ties=True, weighted=True):
    """Return shares with ties and zeros, classes, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, n_classes, n)
    share = rng.dirichlet(np.ones(n_classes), n)
    share[np.arange(n), code] += 0.3
    if ties:
        share = np.maximum(share - 0.2, 0).round(1) + (np.arange(n_classes) == 0) * 0.1
    share /= share.sum(axis=1, keepdims=True)
    return share, code, rng.integers(0, 4, n) * 0.7 if weighted else None


def slow_auc(score, is_one, weight):
    """Return the weighted share of pairs in order, equal ones counting one half."""
    won = pairs = 0.0
    for i in np.flatnonzero(is_one):
        for k in np.flatnonzero(~is_one):
            both = weight[i] * weight[k]
            pairs += both
            won += both * (score[i] > score[k]) + both * (score[i] == score[k]) / 2
    return won / pairs


each_draw = pytest.mark.parametrize(
    ("seed", "n_classes", "ties", "weighted"),
    [
        (0, 2, True, True),
        (1, 2, False, True),
        (2, 2, True, False),
        (3, 3, True, True),
        (4, 4, False, False),
    ],
)


@each_draw
def test_measures_of_probabilities(seed, n_classes, ties, weighted):
    share, code, weight = drawn(seed, n_classes, ties=ties, weighted=weighted)
    w = np.ones(len(code)) if weight is None else weight
    classes = [1] if n_classes == 2 else range(n_classes)
    areas = [slow_auc(share[:, k], code == k, w) for k in classes]
    np.testing.assert_allclose(metrics.auc(share, code, weight), np.mean(areas), rtol=1e-12)
    loss = brier = 0.0
    for row, k, item in zip(share, code, w, strict=True):
        loss -= item * math.log(min(max(row[k], EPS), 1 - EPS))
        brier += item * sum((row[c] - (c == k)) ** 2 for c in classes)
    np.testing.assert_allclose(metrics.log_loss(share, code, weight), loss / w.sum(), rtol=1e-12)
    np.testing.assert_allclose(
        metrics.brier_score(share, code, weight), brier / w.sum(), rtol=1e-12
    )


@each_draw
def test_measures_of_probabilities_are_those_of_scikit_learn(seed, n_classes, ties, weighted):
    peer = pytest.importorskip("sklearn.metrics")
    share, code, weight = drawn(seed, n_classes, ties=ties, weighted=weighted)
    given = share[:, 1] if n_classes == 2 else share
    several = {} if n_classes == 2 else {"multi_class": "ovr", "labels": range(n_classes)}
    expected = peer.roc_auc_score(code, given, sample_weight=weight, **several)
    np.testing.assert_allclose(metrics.auc(share, code, weight), expected, rtol=1e-12)
    expected = peer.log_loss(code, share, sample_weight=weight)
    np.testing.assert_allclose(metrics.log_loss(share, code, weight), expected, rtol=1e-12)
    if n_classes == 2:  # of more classes since scikit-learn 1.7
        expected = peer.brier_score_loss(code, given, sample_weight=weight)
        np.testing.assert_allclose(metrics.brier_score(share, code, weight), expected, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_measures_of_numbers(weighted):
    rng = np.random.default_rng(5)
    truth, actual = rng.normal(size=(2, 50))
    weight = rng.integers(0, 3, 50) * 1.0 if weighted else None
    w = np.ones(50) if weight is None else weight
    mean = (w * truth).sum() / w.sum()
    r2 = 1 - (w * (truth - actual) ** 2).sum() / (w * (truth - mean) ** 2).sum()
    absolute = (w * abs(truth - actual)).sum() / w.sum()
    for unit in (1.0, 1e-200, 1e150):
        pair = actual * unit, truth * unit, weight
        np.testing.assert_allclose(metrics.r2(*pair), r2, rtol=1e-12)
        np.testing.assert_allclose(metrics.absolute_error(*pair), absolute * unit, rtol=1e-12)
    peer = pytest.importorskip("sklearn.metrics")
    np.testing.assert_allclose(
        metrics.r2(actual, truth, weight),
        peer.r2_score(truth, actual, sample_weight=weight),
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        metrics.absolute_error(actual, truth, weight),
        peer.mean_absolute_error(truth, actual, sample_weight=weight),
        rtol=1e-12,
    )


def test_where_nothing_can_be_measured():
    share = np.array([[0.4, 0.6], [0.1, 0.9], [0.5, 0.5]])
    ones = np.ones(3, dtype=int)
    assert math.isnan(metrics.auc(share, ones))
    # Rows of weight 0 do not count.
    assert math.isnan(metrics.auc(share, np.array([0, 1, 1]), np.array([0.0, 1, 1])))
    assert math.isnan(metrics.r2(np.arange(3.0), np.full(3, 7.0)))
    assert math.isnan(metrics.r2(np.ones(1), np.zeros(1)))
    three = np.column_stack([share, np.zeros(3)])
    # A class without rows has no area; the others have.
    assert metrics.auc(three, np.array([0, 1, 1])) == (0.5 + 0.5) / 2
    certain = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert metrics.log_loss(certain, np.array([1, 0])) == -math.log(EPS)
    assert 0 < metrics.log_loss(certain, np.array([0, 1])) < 1e-15


def test_weights_can_be_large_and_small():
    share, code, weight = drawn(6, 2)
    for measure in (metrics.auc, metrics.log_loss, metrics.brier_score):
        expected = measure(share, code, weight)
        for unit in (2.0**1000, 2.0**-1000):
            assert measure(share, code, weight * unit) == expected


# Of each fold


class Recorder:
    """A fit that keeps its models."""

    def __init__(self, fit):
        self.fit, self.models = fit, []

    def __call__(self, X, y, **options):
        self.models.append(self.fit(X, y, **options))
        return self.models[-1]


def labelled(n_classes, n=90, seed=0):
    rng = np.random.default_rng(seed)
    code = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 3)) + code[:, None], np.array(["a", "b", "c"])[code], code


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("n_classes", "fit"),
    [
        (2, partial(pb.fit_adaboost, n_estimators=5)),
        (2, partial(pb.fit_bagging, pb.fit_cart, n_estimators=4)),
        (3, partial(pb.fit_random_forest, n_estimators=4)),
        (3, partial(pb.fit_samme, base_learner=partial(pb.fit_cart, max_depth=2), n_estimators=3)),
    ],
)
def test_folds_of_a_classification(n_classes, fit, weighted):
    X, y, code = labelled(n_classes)
    weight = np.random.default_rng(1).integers(1, 4, 90) * 1.0 if weighted else None
    fit = Recorder(fit)
    result = pb.cross_validate(fit, X, y, cv=4, rng=1, sample_weight=weight)
    for fold, model in enumerate(fit.models):
        test = result.test_fold == fold
        probabilities = (
            pb.predict_proba(model, X[test]),
            code[test],
            weight[test] if weighted else None,
        )
        assert result.auc[fold] == metrics.auc(*probabilities)
        assert result.log_loss[fold] == metrics.log_loss(*probabilities)
        assert result.brier[fold] == metrics.brier_score(*probabilities)
    assert result.mae is result.r2 is None
    text = str(result)
    assert f"\n  AUC                  {result.auc.mean():.4g}\n" in text
    assert f"\n  log loss             {result.log_loss.mean():.4g}\n" in text
    assert f"\n  Brier score          {result.brier.mean():.4g}\n" in text
    assert "absolute_error" not in text
    again = pickle.loads(pickle.dumps(result))
    assert str(again) == text


@pytest.mark.parametrize("weighted", [False, True])
def test_folds_of_a_regression(weighted):
    X, _, code = labelled(3)
    y = X[:, 0] + code
    weight = np.random.default_rng(1).integers(1, 4, 90) * 1.0 if weighted else None
    fit = Recorder(partial(pb.fit_cart, task="regression", max_depth=3))
    result = pb.cross_validate(fit, X, y, task="regression", cv=4, rng=1, sample_weight=weight)
    for fold, model in enumerate(fit.models):
        test = result.test_fold == fold
        predicted = pb.predict(model, X[test]), y[test], weight[test] if weighted else None
        assert result.mae[fold] == metrics.absolute_error(*predicted)
        assert result.r2[fold] == metrics.r2(*predicted)
    assert result.auc is result.log_loss is result.brier is None
    assert f"\n  mean absolute error  {result.mae.mean():.4g}\n" in str(result)
    assert f"\n  R squared            {result.r2.mean():.4g}\n" in str(result)


def test_models_without_probabilities_have_an_area():
    X, y, code = labelled(2)
    fit = Recorder(partial(pb.fit_gradient_boosting, loss="hinge", n_estimators=5))
    result = pb.cross_validate(fit, X, y, cv=3, rng=1)
    for fold, model in enumerate(fit.models):
        test = result.test_fold == fold
        score = pb.decision_function(model, X[test])
        expected = slow_auc(score, code[test] == 1, np.ones(test.sum()))
        np.testing.assert_allclose(result.auc[fold], expected, rtol=1e-12)
    assert np.isnan(result.log_loss).all()
    assert np.isnan(result.brier).all()
    assert "AUC" in str(result)
    assert "log loss" not in str(result)


def test_classes_that_are_not_in_a_fold():
    """Three rows of a class: some training and some test rows know it, others do not."""
    X, _, code = labelled(2, n=60)
    code[:3] = 2
    fit = Recorder(partial(pb.fit_cart, max_depth=3))
    with pytest.warns(UserWarning, match="fewer than the 20 folds"):
        result = pb.cross_validate(fit, X, code, cv=20, rng=0)
    for fold, model in enumerate(fit.models):
        test = result.test_fold == fold
        share = np.zeros((test.sum(), 3))
        share[:, model.classes] = pb.predict_proba(model, X[test])
        assert result.brier[fold] == metrics.brier_score(share, code[test])
        assert len(set(code[test])) > 1 or math.isnan(result.auc[fold])
    some = replace(result, auc=np.where(np.arange(20) < 5, np.nan, 0.75))
    assert "AUC                  0.75 (15 of 20 folds)" in str(some)
