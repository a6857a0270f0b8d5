"""Sums of trees with losses of numbers: the twin, scikit-learn, weights, files, targets."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from reference.stagewise import fit_gradient_boosting
from shallow import fit_shallow

import pboost as pb
from pboost.losses import (
    Absolute,
    AbsolutePercentage,
    Expectile,
    Gamma,
    Huber,
    LogCosh,
    Poisson,
    Quantile,
    Tweedie,
)

OBJECTS = [Absolute(), Huber(0.5), Quantile(0.8), Poisson()]
#: These differ only in functions that tests of losses and rounds compare.
OTHERS = [AbsolutePercentage(), Expectile(0.8), LogCosh(), Gamma(), Tweedie(1.3)]
EVERY = [*OBJECTS, *(pytest.param(loss, marks=pytest.mark.full) for loss in OTHERS)]


def numbers(loss, n=400, seed=0):
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, 3))
    mean = X[:, 0] ** 2 + X[:, 1]
    if loss.link == "exp":
        counts = r.poisson(np.exp(np.sin(2 * X[:, 0]) + X[:, 1] / 2)).astype(float)
        return X, counts + 0.5 if loss.name == "gamma" else counts
    return X, mean + 0.5 * r.standard_t(2, n)


@pytest.mark.parametrize("loss", OBJECTS, ids=str)
def test_equals_the_twin(loss):
    X, y = numbers(loss, 60, 3)
    weight = np.random.default_rng(1).uniform(0.5, 2, 60)
    model = pb.fit_gradient_boosting(
        X,
        y,
        loss=loss,
        n_estimators=4,
        learning_rate=0.5,
        max_depth=2,
        min_samples_leaf=3,
        sample_weight=weight,
        max_delta_step=None,
        search="exact",
    )
    stages = fit_gradient_boosting(
        X,
        y,
        loss,
        n_estimators=4,
        rate=0.5,
        weight=weight,
        max_depth=2,
        start="constant",
        min_samples_leaf=3,
        max_delta_step=np.inf,
    )
    actual = [np.full(60, model.bias), *pb.staged_decision_function(model, X)]
    for ours, theirs in zip(actual, stages, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("search", ["exact", "binned"])
@pytest.mark.parametrize("loss", EVERY, ids=str)
def test_learns_and_lowers_the_loss(loss, search):
    X, y = numbers(loss)
    new, truth = numbers(loss, 2000, 9)
    model = fit_shallow(X, y, loss=loss, n_estimators=60, search=search)
    assert (np.diff(model.training_loss) <= 1e-12).all()
    score = pb.decision_function(model, X)
    assert loss.value(y, score).mean() == pytest.approx(model.training_loss[-1], rel=1e-9)
    constant = loss.value(truth, np.full(2000, model.bias)).mean()
    most = 0.75 if loss in OBJECTS else 0.9
    assert loss.value(truth, pb.decision_function(model, new)).mean() < most * constant
    predicted = pb.predict(model, X)
    assert np.array_equal(predicted, np.exp(score) if loss.link == "exp" else score)
    assert np.array_equal(list(pb.staged_predict(model, X))[-1], predicted)
    if loss.name == "quantile":
        assert np.mean(y <= predicted) == pytest.approx(0.8, abs=0.03)
    if loss.name == "poisson":
        assert predicted.mean() == pytest.approx(y.mean(), rel=0.02)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Absolute(), {"loss": "absolute_error"}),
        (Quantile(0.8), {"loss": "quantile", "alpha": 0.8}),
    ],
)
def test_is_gradient_boosting_of_scikit_learn(ours, theirs):
    """Leaves of an odd number of rows have one best value; the rest is the same up to ties."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    X, y = numbers(ours, 1000)
    new, truth = numbers(ours, 5000, 5)
    options = {"learning_rate": 0.1, "max_depth": 3}
    peer = ensemble.GradientBoostingRegressor(n_estimators=100, random_state=0, **theirs, **options)
    peer.fit(X, y)
    model = pb.fit_gradient_boosting(X, y, loss=ours, n_estimators=100, search="exact", **options)
    error, known = (
        ours.value(truth, f).mean() for f in (pb.predict(model, new), peer.predict(new))
    )
    assert error == pytest.approx(known, rel=0.03)


@pytest.mark.parametrize("loss", EVERY, ids=str)
def test_weight_k_is_k_copies(loss):
    X, y = numbers(loss)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    for search in ("exact", "binned"):
        options = {"loss": loss, "n_estimators": 10, "search": search}
        first_model = pb.fit_gradient_boosting(X, y, sample_weight=weight, **options)
        other = pb.fit_gradient_boosting(X.repeat(weight, axis=0), y.repeat(weight), **options)
        f, g = (pb.decision_function(model, X) for model in (first_model, other))
        np.testing.assert_allclose(f, g, atol=1e-9)


@pytest.mark.parametrize("loss", EVERY, ids=str)
def test_saved_described_continued(loss, tmp_path):
    X, y = numbers(loss)
    model = pb.fit_gradient_boosting(X, y, loss=loss, n_estimators=4)
    pb.save(model, tmp_path / "m.npz")
    again = pb.load(tmp_path / "m.npz")
    assert again.loss == model.loss == loss
    assert again.settings == model.settings
    assert np.array_equal(pb.predict(model, X), pb.predict(again, X))
    assert f"loss {loss}" in pb.describe(model)
    assert f"loss {loss}" in repr(model)
    more = pb.continue_fit(again, X, y, n_estimators=2)
    assert more.loss == loss
    assert np.array_equal(more.trees.value[: len(model.trees.value)], model.trees.value)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"name": "huber"}, r"loss: expected the parameters \['delta'\], got \[\]"),
        ({"name": "huber", "delta": 1.0, "q": 2}, "loss: expected the parameters"),
        ({"name": "huber", "delta": -1.0}, "delta: expected a number in"),
        ({"name": "huber", "delta": "1"}, "delta: expected a number"),
        ({"name": ["huber"]}, "loss: expected one of"),
        ("huber", "loss: expected the parameters"),
        ({}, "loss: expected one of"),
    ],
)
def test_damaged_files(said, message):
    from pboost.models.gradient_boosting import NamedLoss

    with pytest.raises((ValueError, TypeError), match=message):
        NamedLoss().read("loss", {"loss": said}, {})


def test_targets_beyond_the_range_are_named():
    X, y = numbers(Poisson())
    y[7] = -1.0
    message = r"y: expected numbers >= 0 for the poisson loss, got -1 in row 7"
    with pytest.raises(ValueError, match=message):
        pb.fit_gradient_boosting(X, y, loss="poisson")
    weight = np.ones(len(y))
    weight[7] = 0.0
    assert (
        len(pb.fit_gradient_boosting(X, y, loss="poisson", sample_weight=weight, n_estimators=2))
        == 2
    )
    with pytest.raises(ValueError, match=r"validation: y: expected numbers >= 0 .* in row 7"):
        pb.fit_gradient_boosting(X, np.abs(y), loss="poisson", validation=(X, y))
    with pytest.raises(
        ValueError, match=r"y: expected at least one number above 0 .* got 0 in all of 400 rows"
    ):
        pb.fit_gradient_boosting(X, 0 * y, loss="poisson")
    with pytest.raises(ValueError, match='task: expected "regression" with loss="poisson"'):
        pb.fit_gradient_boosting(X, y > 0, loss="poisson", task="classification")


def test_steps_of_counts_are_bounded_where_none_was_counted():
    X, y = numbers(Poisson())
    y[X[:, 0] > 0.5] = 0.0
    model = fit_shallow(X, y, loss="poisson", n_estimators=3, learning_rate=1.0)
    assert model.settings["max_delta_step"] == 4.0
    assert model.trees.value.min() == -4.0
    assert np.isfinite(pb.decision_function(model, X)).all()


def test_cross_validation_is_of_means():
    X, y = numbers(Poisson())
    fit = partial(fit_shallow, loss="poisson", n_estimators=30)
    validated = pb.cross_validate(fit, X, y, task="regression", cv=3, rng=0)
    assert np.mean(validated.error) < 0.7 * y.var()


@pytest.mark.parametrize("search", ["exact", "binned"])
def test_an_outlier_beside_two_rows_does_not_draw_them(search):
    """Where the loss is linear for most rows, a short Newton step is no sign of its least."""
    X = np.arange(3.0)[:, None]
    y = np.array([3.4, 3.8, 1e12])
    options = {
        "n_estimators": 1,
        "learning_rate": 1.0,
        "init": "zero",
        "min_samples_leaf": 3,
        "max_delta_step": None,
    }
    model = pb.fit_gradient_boosting(X, y, loss="huber", search=search, **options)
    assert pb.predict(model, X) == pytest.approx([4.1] * 3, abs=1e-3)


@pytest.mark.parametrize("search", ["binned", "exact"])
@pytest.mark.parametrize("mean", [1e-100, 1e-20, 1e20, 1e100, 1e140])
def test_counts_of_any_size_have_the_predictions_of_others(mean, search):
    """The first decision value was no further than 36.04 from 0."""
    X, y = numbers(Poisson())
    fit = partial(fit_shallow, X, loss="poisson", n_estimators=10, search=search)
    first, other = fit(y), fit(y * mean)
    assert other.bias == pytest.approx(np.log(y.mean()) + np.log(mean), rel=1e-14)
    expected = pb.predict(first, X)
    np.testing.assert_allclose(pb.predict(other, X) / mean, expected, rtol=1e-9)
    assert expected.sum() == pytest.approx(y.sum(), rel=0.1)
