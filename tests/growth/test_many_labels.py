"""Graphs with a vote for each label: their bounds, labels that are rare or absent, bad input."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import pboost as pb

RNG = np.random.default_rng(7)
X = RNG.normal(size=(120, 3))
Y = (X @ RNG.normal(size=(3, 4))).argmax(axis=1)
FITS = {
    "chain": partial(pb.fit_adaboost, n_estimators=15),
    "tree": partial(pb.fit_boosted_tree, max_nodes=12),
    "trees": partial(pb.fit_matryoshka, shape=(5, 4), join="all"),
    "soft": partial(pb.fit_boosted_tree, max_nodes=6, observation=pb.observation.adatree2()),
}
each = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)


def arrays(model):
    return [of.tobytes() for of in (model.feature, model.threshold, model.vote, model.next)] + [
        model.record.certificate.tobytes()
    ]


@pytest.mark.parametrize("seed", range(12))
def test_bounds_of_random_problems(seed):
    """Hamming loss and training error at every stage, of 3 to 12 labels, some of them rare."""
    rng = np.random.default_rng(seed)
    J, n = int(rng.integers(3, 13)), 150
    rows = rng.normal(size=(n, 4)).round(1)
    rows[rng.random(rows.shape) < 0.1 * (seed % 2)] = np.nan
    score = np.nan_to_num(rows) @ rng.normal(size=(4, J)) + rng.normal(size=J)
    y = (score + rng.normal(size=score.shape)).argmax(axis=1)
    y[:J] = np.arange(J)
    weight = rng.uniform(0.5, 2, n)
    smoothing, rate = float(rng.choice([0, 1e-4])), float(rng.choice([0.3, 1.0]))
    fit = [*FITS.values()][seed % 3]
    model = fit(rows, y, sample_weight=weight, smoothing=smoothing, learning_rate=rate)
    sign, actual = 2 * np.eye(J)[y] - 1, model.record.certificate[1:]
    for F, C in zip(pb.staged_decision_function(model, rows), actual, strict=True):
        assert np.average((sign * F <= 0).mean(axis=1), weights=weight) <= C * (1 + 1e-9)
        assert np.average(F.argmax(axis=1) != y, weights=weight) <= J / 2 * C * (1 + 1e-9)


@each
def test_labels_that_are_absent_at_nodes_change_nothing(fit):
    """With a least weight sums are those of all labels, else of those that some rows have."""
    every = fit(X, Y, weak_learner=pb.weak.stump(min_weight_fraction=1e-300))
    assert arrays(fit(X, Y, weak_learner=pb.weak.stump())) == arrays(every)


@each
def test_a_class_of_one_row(fit):
    y = np.where(np.arange(len(Y)) == 5, 9, Y)
    model = fit(X, y)
    assert model.classes.tolist() == [0, 1, 2, 3, 9]
    assert pb.certificate(model, X, y) == pytest.approx(pb.certificate(model), rel=1e-9)
    for share in (pb.predict_proba(model, X), *pb.staged_predict_proba(model, X)):
        np.testing.assert_allclose(share.sum(axis=1), 1)


@each
def test_classes_that_folds_or_validation_lack(fit):
    y = np.where(np.arange(len(Y)) < 2, 9, Y)
    with pytest.warns(UserWarning, match="class 9 has 2 rows"):
        table = pb.cross_validate(fit, X, y, cv=4, rng=0)
    assert np.isfinite(table.error).all()
    held = X[50:80], Y[50:80]
    model = fit(X[:50], y[:50], validation=held)
    assert 9 in model.classes
    assert len(model.record.validation) > 1
    with pytest.raises(ValueError, match=r"(?s)label.* got 9"):
        fit(X[50:80], Y[50:80], validation=(X[:50], y[:50]))


@each
def test_probabilities_of_labels(fit):
    share = np.full((len(Y), 4), 0.05)
    share[np.arange(len(Y)), Y] = 0.85
    model = fit(X, y_proba=share, classes=list("abcd"))
    assert model.classes.tolist() == list("abcd")
    bound = pb.certificate(model, X, y_proba=share)
    assert bound == pytest.approx(pb.certificate(model), rel=1e-9)
    with pytest.raises(ValueError, match="classes"):
        fit(X, y_proba=share, classes=list("abc"))
    with pytest.raises(ValueError, match="y_proba"):
        fit(X, y_proba=share * 2)
    with pytest.raises(ValueError, match="expected class labels of the model"):
        pb.certificate(model, X, np.array(list("abcz"))[Y])


@each
def test_weights_beyond_memory(fit, monkeypatch):
    def none_left(shape, dtype=float):
        raise MemoryError

    monkeypatch.setattr("pboost.growth.multiclass_graph.aligned", none_left)
    with pytest.raises(MemoryError, match=r"120 rows for 4 classes need \d+ bytes.*one_vs_rest"):
        fit(X, Y)


def test_levels_where_no_weight_of_a_label_is_left():
    rng = np.random.default_rng(1)
    level = rng.integers(0, 6, 120)
    rows = np.column_stack([level, rng.normal(size=120)])
    y = np.where(rng.random(120) < 0.5, level % 4, rng.integers(0, 4, 120))
    fit = partial(
        pb.fit_matryoshka, shape=(31, 30), join="all", smoothing=0.0, categorical_features=[0]
    )
    with np.errstate(invalid="raise"):
        model = fit(rows, y, learning_rate=1.0)
    assert np.mean(pb.predict(model, rows) != y) < 0.2
