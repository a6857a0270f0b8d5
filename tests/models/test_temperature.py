"""Probabilities of chains are divided by a temperature, which the certificate determines."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from reference import temperature as reference

import pboost as pb

RNG = np.random.default_rng(5)
X = RNG.normal(size=(120, 3)).round(2)
NEW = RNG.normal(size=(200, 3)).round(2)
TWO = np.where(X[:, 0] + RNG.normal(size=120) > 0, "up", "down")
THREE = np.digitize(X[:, 0] - X[:, 1] + RNG.normal(size=120), [-0.7, 0.7])
WEIGHT = RNG.integers(1, 4, size=120).astype(float)
FLIP = pb.observation.flip(0.1)
CHAINS = {
    "stumps": partial(pb.fit_adaboost, X, TWO, n_estimators=30),
    "weights": partial(pb.fit_adaboost, X, TWO, n_estimators=30, sample_weight=WEIGHT),
    "three classes": partial(pb.fit_adaboost, X, THREE, n_estimators=90),
    "trees": partial(pb.fit_matryoshka, X, TWO, shape=(4, 6), join="all"),
    "trees, three classes": partial(
        pb.fit_matryoshka, X, THREE, shape=(8, 8), join="all", learning_rate=1.0
    ),
    "real-valued": partial(pb.fit_real_adaboost, X, TWO, n_estimators=20),
}
SINGLE = {
    "stump": partial(pb.fit_adaboost, X, TWO, n_estimators=1),
    "tree": partial(pb.fit_boosted_tree, X, TWO, max_nodes=9),
    "tree, three classes": partial(pb.fit_boosted_tree, X, THREE, max_nodes=9),
    "matryoshka": partial(pb.fit_matryoshka, X, TWO, shape=(3, 3)),
}


@pytest.fixture(scope="module")
def chains():
    return {name: fit() for name, fit in CHAINS.items()}


def raw(model):
    return replace(model, temperature=1.0)


@pytest.mark.parametrize("name", CHAINS)
def test_of_the_twin(chains, name):
    model = chains[name]
    target = THREE if "three" in name else TWO
    codes = np.searchsorted(model.classes, target).tolist()
    weights = WEIGHT if name == "weights" else np.ones(120)
    bound = reference.certificate(pb.decision_function(model, X).tolist(), codes, weights.tolist())
    t = reference.temperature(bound, len(model.classes))
    assert t > 1.05
    assert model.temperature == pytest.approx(t, rel=1e-9)
    expected = [
        reference.probabilities(score, t) for score in pb.decision_function(model, NEW).tolist()
    ]
    np.testing.assert_allclose(pb.predict_proba(model, NEW), expected, rtol=1e-9)


@pytest.mark.parametrize("name", CHAINS)
def test_decision_values_and_predictions_do_not_change(chains, name):
    model, plain = chains[name], raw(chains[name])
    assert np.array_equal(pb.decision_function(model, NEW), pb.decision_function(plain, NEW))
    assert np.array_equal(pb.predict(model, NEW), pb.predict(plain, NEW))
    share, before = pb.predict_proba(model, NEW), pb.predict_proba(plain, NEW)
    assert np.array_equal(model.classes[share.argmax(axis=1)], pb.predict(model, NEW))
    assert (share.max(axis=1) < before.max(axis=1)).all()


@pytest.mark.parametrize("name", SINGLE)
def test_single_trees_have_none(name):
    model = SINGLE[name]()
    assert model.temperature == 1
    score = pb.decision_function(model, NEW)
    expected = [reference.probabilities(each, 1.0) for each in score.tolist()]
    np.testing.assert_allclose(pb.predict_proba(model, NEW), expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["stumps", "three classes", "trees"])
def test_stages_are_truncated_models(chains, name):
    model = chains[name]
    stages = list(pb.staged_predict_proba(model, NEW))
    first = pb.models.truncate(model, 1)
    assert first.temperature == 1 <= pb.models.truncate(model, 9).temperature < model.temperature
    for size in (1, 4, 5, 9, model.n_nodes):
        shorter = pb.models.truncate(model, size)
        assert np.array_equal(stages[size - 1], pb.predict_proba(shorter, NEW))
    assert all(pb.models.truncate(raw(model), size).temperature == 1 for size in (1, 9))
    for shares, before in zip(
        pb.staged_predict_proba(raw(model), NEW),
        pb.staged_decision_function(model, NEW),
        strict=True,
    ):
        assert np.array_equal(shares, raw(model).probabilities(before))


def test_longer_chains_continue(chains):
    model = pb.continue_fit(pb.models.truncate(chains["stumps"], 20), X, TWO, n_estimators=10)
    assert model.temperature == chains["stumps"].temperature


def test_equal_weights_and_copies_have_the_same_temperature(chains):
    rows = np.repeat(np.arange(120), WEIGHT.astype(int))[::-1]
    copies = pb.fit_adaboost(X[rows], TWO[rows], n_estimators=30)
    assert copies.temperature == pytest.approx(chains["weights"].temperature, rel=1e-12)


def test_files(chains, tmp_path):
    for name in ("stumps", "trees, three classes"):
        model = chains[name]
        pb.save(model, tmp_path / "model.npz")
        for again in (pb.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
            assert again.temperature == model.temperature
            assert np.array_equal(pb.predict_proba(again, NEW), pb.predict_proba(model, NEW))
    pb.save(raw(model), tmp_path / "raw.npz")
    header = json.loads(np.load(tmp_path / "raw.npz")["header"].tobytes())
    assert "temperature" not in header
    assert pb.load(tmp_path / "raw.npz").temperature == 1


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf, "2", None])
def test_what_is_no_temperature(chains, value):
    with pytest.raises(ValueError, match=r"temperature: expected a finite number >= 1, got"):
        replace(chains["stumps"], temperature=value)


@pytest.mark.parametrize("name", ["stumps", "three classes", "trees"])
def test_exported_trees(chains, name):
    model = chains[name]
    trees = pb.export.from_json(pb.export.to_json(model))
    assert trees.temperature == model.temperature
    assert '"temperature"' not in pb.export.to_json(raw(model))
    score = pb.decision_function(model, NEW)
    values = np.column_stack([-score, score]) if score.ndim == 1 else score
    odds = np.exp(values / trees.temperature)
    expected = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(pb.predict_proba(model, NEW), expected, rtol=1e-12)
    bad = pb.export.to_json(model).replace('"temperature": ', '"temperature": -')
    with pytest.raises(pb.models.ModelFileError, match="temperature"):
        pb.export.from_json(bad)


def test_base_learners_have_none():
    fit = partial(pb.fit_adaboost, n_estimators=10)
    rest = pb.fit_one_vs_rest(fit, X, THREE)
    bags = pb.fit_bagging(fit, X, TWO, n_estimators=3, rng=0)
    for ensemble in (rest, bags):
        assert [model.temperature for model in ensemble.models] == [1.0] * len(ensemble.models)
    alone = np.column_stack([pb.predict_proba(model, NEW)[:, 1] for model in rest.models])
    expected = alone / alone.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(pb.predict_proba(rest, NEW), expected, rtol=1e-12)
    # Out-of-bag predictions use the same probabilities as the ensemble.
    out = bags.oob.n_estimators == 1
    of_members = np.array([pb.predict_proba(model, X) for model in bags.models])
    near = np.abs(of_members - bags.oob.prediction).max(axis=2).min(axis=0)
    assert out.any()
    assert near[out].max() < 1e-12


def test_wrappers_keep_decision_values(chains):
    model = chains["stumps"]
    calibrated = [pb.calibrate(each, NEW, pb.predict(model, NEW)) for each in (model, raw(model))]
    assert np.array_equal(*(pb.predict_proba(each, X) for each in calibrated))
    exits = [pb.early_exit(each, NEW, mean_comparisons=10) for each in (model, raw(model))]
    assert np.array_equal(*(pb.decision_function(each, X) for each in exits))
    share, before = (pb.predict_proba(each, X).max(axis=1) for each in exits)
    assert (share < before).all()


def test_a_certificate_that_is_rounded_to_0(chains):
    model = chains["stumps"]
    record = replace(model.record, certificate=np.zeros(31))
    largest = np.abs(model.vote).max(axis=1).sum()
    assert replace(model, record=record).temperature_of_chain(30) == pytest.approx(1 + largest / 2)


def test_values_that_differ_by_rounding_keep_their_class(chains):
    model = chains["three classes"]
    score = np.array([[0.1, np.nextafter(0.1, 1), 0.0], [1e-300, 0.0, 2e-300]])
    assert model.probabilities(score).argmax(axis=1).tolist() == [1, 2]
    share = chains["stumps"].probabilities(np.array([-1e-300, 1e-300]))
    assert share[1, 1] > share[1, 0]


def test_short_chains_of_three_classes_are_not_corrected():
    model = pb.fit_adaboost(X, THREE, n_estimators=9, learning_rate=0.1)
    assert model.temperature == 1 < pb.fit_adaboost(X, TWO, n_estimators=9).temperature


@pytest.mark.parametrize("target", ["two", "three"])
def test_log_loss_of_noisy_classes_is_lower(target):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1200, 4))
    y = np.digitize(rows[:, 0] + rng.normal(size=1200), [0.0] if target == "two" else [-0.5, 0.5])
    model = pb.fit_adaboost(rows[:150], y[:150], n_estimators=200)
    before, after = (
        -np.log(pb.predict_proba(each, rows[150:])[np.arange(1050), y[150:]]).mean()
        for each in (raw(model), model)
    )
    assert after < 0.95 * before


@pytest.fixture(scope="module")
def votes():
    shallow = partial(pb.fit_cart, max_depth=2)
    return {
        len(np.unique(y)): pb.fit_samme(X, y, base_learner=shallow, n_estimators=8)
        for y in (TWO, THREE)
    }


@pytest.mark.parametrize("n_classes", [2, 3])
def test_samme_of_the_twin(votes, n_classes, tmp_path):
    model = votes[n_classes]
    t = reference.temperature_of_votes(model.alpha.tolist(), model.error.tolist(), n_classes)
    assert t > 1.05
    assert model.temperature == pytest.approx(t, rel=1e-12)
    score = pb.decision_function(model, NEW).tolist()
    expected = [reference.probabilities(each, t) for each in score]
    share = pb.predict_proba(model, NEW)
    np.testing.assert_allclose(share, expected, rtol=1e-12)
    assert np.array_equal(pb.predict(model, NEW), pb.predict(raw(model), NEW))
    stages = list(pb.staged_predict_proba(model, NEW))
    for size in (1, 3, 8):
        assert np.array_equal(stages[size - 1], pb.predict_proba(model.first(size), NEW))
    assert model.first(1).temperature == 1 < model.first(3).temperature
    pb.save(model, tmp_path / "model.npz")
    assert np.array_equal(pb.predict_proba(pb.load(tmp_path / "model.npz"), NEW), share)
    fit = partial(pb.fit_samme, base_learner=partial(pb.fit_cart, max_depth=2), n_estimators=3)
    assert pb.fit_bagging(fit, X, TWO, n_estimators=1, rng=0)[0].temperature == 1


def test_exported_samme(votes):
    stumps = partial(pb.fit_cart, max_depth=1)
    model = pb.fit_samme(X, THREE, base_learner=stumps, n_estimators=5)
    trees = pb.models.as_tree_ensemble(model)
    assert (trees.link, trees.temperature) == ("softmax", model.temperature)


def test_samme_that_ends_without_errors():
    model = pb.fit_samme(X[:9], np.arange(9) > 4, base_learner=partial(pb.fit_cart, max_depth=9))
    assert len(model.models) == 1
    assert model.temperature == pytest.approx(1 + 0.5 * model.alpha[0] / 2)
    assert (pb.predict_proba(model, X[:9]).max(axis=1) < 0.99).all()
    rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    grows = [1, 9]

    def fit(X, y, sample_weight):
        return pb.fit_cart(X, y, sample_weight=sample_weight, max_depth=grows.pop(0))

    model = pb.fit_samme(rows, [0, 1, 0, 1], base_learner=fit)
    assert model.error[-1] == 0
    t = reference.temperature_of_votes(model.alpha.tolist(), model.error.tolist(), 2)
    assert model.temperature == pytest.approx(t)
    assert pb.predict(model, rows).tolist() == [0, 1, 0, 1]
    assert (pb.predict_proba(model, rows)[[0, 1, 2, 3], [0, 1, 0, 1]] > 0.9).all()
