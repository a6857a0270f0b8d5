"""Losses with a log link, expectile, log cosh, percentage and focal loss: derivatives and constants
by other formulas, scikit-learn and LightGBM."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb
from pboost.losses import (
    AbsolutePercentage,
    Expectile,
    Focal,
    Gamma,
    LogCosh,
    Tweedie,
    check_loss,
)

RNG = np.random.default_rng(0)
F = RNG.normal(size=400) * 3
POSITIVE = RNG.gamma(2.0, np.exp(F / 2))
NUMBERS = F + RNG.standard_t(2, 400)
SIGN = np.where(RNG.random(400) < 0.5, -1.0, 1.0)
LOSSES = [
    (Gamma(), POSITIVE),
    (Tweedie(), np.where(POSITIVE < 0.5, 0.0, POSITIVE)),
    (Tweedie(1.05), np.where(POSITIVE < 0.5, 0.0, POSITIVE)),
    (Expectile(0.9), NUMBERS),
    (LogCosh(), NUMBERS),
    (AbsolutePercentage(), NUMBERS),
    (Focal(), SIGN),
    (Focal(0.5), SIGN),
    (Focal(0.0), SIGN),
]


@pytest.mark.parametrize(("loss", "y"), LOSSES, ids=lambda value: str(value)[:13])
def test_derivatives_are_differences_of_the_value(loss, y):
    """In extended precision, so that many digits of a difference count."""
    y, f, h = y.astype(np.longdouble), F.astype(np.longdouble), np.longdouble(1e-7)
    apart = (np.abs(y - f) > 1e-3) | (loss.link != "identity" and not loss.is_regression)
    slope = (loss.value(y, f + h) - loss.value(y, f - h)) / (2 * h)
    expected = loss.gradient(y, f)
    np.testing.assert_allclose(slope[apart], expected[apart], rtol=1e-7, atol=1e-9)
    if loss.is_newton or loss.has_curvature:
        bend = (loss.gradient(y, f + h) - loss.gradient(y, f - h)) / (2 * h)
        actual = loss.slopes(y, f)[1]
        bend = np.maximum(bend, 0.0) if loss.name == "focal" else bend
        np.testing.assert_allclose(actual[apart], bend[apart], rtol=1e-6, atol=1e-8)


def test_values_by_other_formulas():
    p = 1 / (1 + np.exp(-SIGN * F))
    for gamma in (0.0, 0.5, 2.0, 5.0):
        loss = Focal(gamma)
        np.testing.assert_allclose(loss.value(SIGN, F), -((1 - p) ** gamma) * np.log(p), rtol=1e-9)
        # The derivative of Lin et al., appendix B.
        slope = SIGN * (1 - p) ** gamma * (gamma * p * np.log(p) + p - 1)
        np.testing.assert_allclose(loss.gradient(SIGN, F), slope, rtol=1e-9)
    np.testing.assert_allclose(Focal(0.0).curvature(SIGN, F), p * (1 - p), rtol=1e-9)
    np.testing.assert_allclose(
        LogCosh().value(NUMBERS, F), np.log(np.cosh(NUMBERS - F)), rtol=1e-9, atol=1e-15
    )
    far = LogCosh().value(np.array([1e6, 1e-9]), np.zeros(2))
    np.testing.assert_allclose(far, [1e6 - np.log(2), 0.5e-18], rtol=1e-15)
    size = np.abs(NUMBERS - F)
    np.testing.assert_allclose(
        AbsolutePercentage().value(NUMBERS, F), size / np.maximum(1, np.abs(NUMBERS))
    )
    # Powers near 1 and 2 are the Poisson and the gamma loss.
    y = POSITIVE
    np.testing.assert_allclose(
        Tweedie(1 + 1e-7).gradient(y, F), check_loss("poisson").gradient(y, F), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        Tweedie(2 - 1e-9).value(y, F), Gamma().value(y, F), rtol=1e-4, atol=1e-5
    )
    assert Gamma().value(np.array([1e-300, 1e300]), np.log([1e-300, 1e300])).max() < 1e-12


@pytest.mark.parametrize(
    ("loss", "y", "peer"),
    [
        (Gamma(), POSITIVE, ("HalfGammaLoss", {})),
        (Tweedie(1.3), np.floor(POSITIVE), ("HalfTweedieLoss", {"power": 1.3})),
    ],
    ids=["gamma", "tweedie"],
)
def test_derivatives_and_constants_are_those_of_scikit_learn(loss, y, peer):
    module = pytest.importorskip("sklearn._loss.loss")
    metrics = pytest.importorskip("sklearn.metrics")
    peer = getattr(module, peer[0])(**peer[1])
    slope, bend = peer.gradient_hessian(y_true=y, raw_prediction=F)
    np.testing.assert_allclose(loss.gradient(y, F), slope, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(loss.curvature(y, F), bend, rtol=1e-12, atol=1e-14)
    weight = RNG.uniform(0.5, 2, len(y))
    start = peer.fit_intercept_only(y_true=y, sample_weight=weight)
    assert loss.constant(y, weight) == pytest.approx(float(np.squeeze(start)), rel=1e-12)
    power = 2.0 if loss.name == "gamma" else 1.3
    deviance = metrics.mean_tweedie_deviance(y, np.exp(F), power=power)
    assert 2 * loss.value(y, F).mean() == pytest.approx(deviance, rel=1e-12)


def test_constants():
    y, weight = np.array([0.0, 1.0, 2.0, 3.0, 100.0]), np.ones(5)
    assert Tweedie().constant(y, weight) == pytest.approx(np.log(21.2), rel=1e-15)
    assert Gamma().constant(y[1:], weight[1:]) == pytest.approx(np.log(26.5), rel=1e-15)
    # The expectile e of level a: a E(y - e)+ = (1 - a) E(e - y)+.
    e = Expectile(0.9).constant(y, weight)
    above, below = np.maximum(y - e, 0).sum(), np.maximum(e - y, 0).sum()
    assert 0.9 * above == pytest.approx(0.1 * below, rel=1e-9)
    assert Expectile().constant(y, weight) == pytest.approx(21.2, rel=1e-12)
    # The gradients of log cosh are bounded, so it is near the median.
    c = LogCosh().constant(y, weight)
    assert np.tanh(y - c).sum() == pytest.approx(0.0, abs=1e-9)
    assert AbsolutePercentage().constant(y, weight) == 1.0  # of weights 1, 1, 1/2, 1/3, 1/100
    sign, of_sign = np.array([-1.0, 1.0]), np.array([3.0, 1.0])
    assert Focal(0.0).constant(sign, of_sign) == pytest.approx(-np.log(3), rel=1e-9)
    c = Focal(2.0).constant(sign, of_sign)
    assert (of_sign * Focal(2.0).gradient(sign, np.full(2, c))).sum() == pytest.approx(0, abs=1e-9)
    assert -np.log(3) < c < 0
    assert Tweedie().leaf_value(y, np.full(5, 800.0), weight) == -Tweedie.limit
    assert Gamma().leaf_value(np.full(2, 3.0), np.full(2, np.log(6.0)), np.ones(2)) == (
        pytest.approx(-np.log(2.0), rel=1e-15)
    )


@pytest.mark.parametrize(("loss", "y"), LOSSES[:6], ids=lambda value: str(value)[:13])
def test_compiled_rounds_take_the_steps_of_python(loss, y):
    """A subclass is a loss of a user, which compiled code does not know."""
    X = np.column_stack([F, RNG.normal(size=400)])
    options = {"n_estimators": 5, "max_depth": 3, "growth": "independent", "leaf_shrinkage": 0.0}
    options |= {"max_delta_step": None}
    weight = RNG.integers(1, 4, 400) / 2
    first = pb.fit_gradient_boosting(X, y, loss=loss, sample_weight=weight, **options)
    own = type("Own", (type(loss),), {"name": "own"})(**loss.parameters)
    other = pb.fit_gradient_boosting(X, y, loss=own, sample_weight=weight, **options)
    assert (first.trees.feature == other.trees.feature).all()
    np.testing.assert_allclose(first.trees.value, other.trees.value, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(first.training_loss, other.training_loss, rtol=1e-9)
    assert first.training_loss[-1] < first.training_loss[0]


def test_focal_loss_of_gamma_0_is_the_log_loss():
    X = np.column_stack([F, RNG.normal(size=400)])
    options = {"n_estimators": 5, "growth": "independent", "leaf_shrinkage": 1.0}
    options |= {"random_strength": 0.0, "subsample": None}
    first, other = (
        pb.fit_gradient_boosting(X, SIGN * F > 1, loss=loss, **options)
        for loss in (Focal(0.0), "log_loss")
    )
    assert (first.trees.feature == other.trees.feature).all()
    np.testing.assert_allclose(first.trees.value, other.trees.value, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(pb.predict_proba(first, X), pb.predict_proba(other, X), rtol=1e-7)


def test_targets_outside_the_domain_name_their_row():
    X, y = F[:, None], POSITIVE.copy()
    y[7] = 0.0
    with pytest.raises(ValueError, match=r"y: expected numbers > 0 for the gamma loss, .* row 7"):
        pb.fit_gradient_boosting(X, y, loss="gamma")
    with pytest.raises(ValueError, match=r"at least one number above 0 for the tweedie loss"):
        pb.fit_gradient_boosting(X, 0 * y, loss="tweedie")
    with pytest.raises(ValueError, match=r"validation: y: expected numbers > 0 .* in row 7"):
        pb.fit_gradient_boosting(X, POSITIVE, loss="gamma", validation=(X, y))
    with pytest.raises(ValueError, match='task: expected "regression" with loss="gamma"'):
        pb.fit_gradient_boosting(X, y > 1, loss="gamma", task="classification")


@pytest.mark.full
@pytest.mark.parametrize(
    ("loss", "options"),
    [
        (Gamma(), {"objective": "gamma"}),
        (Tweedie(1.3), {"objective": "tweedie", "tweedie_variance_power": 1.3}),
        (AbsolutePercentage(), {"objective": "mape"}),
    ],
    ids=str,
)
def test_is_about_as_accurate_as_lightgbm(loss, options):
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(2)
    X = rng.normal(size=(6000, 4))
    mean = np.exp(np.sin(2 * X[:, 0]) + X[:, 1] / 2 + 1)
    y = rng.gamma(2.0, mean / 2) * (1.0 if loss.name == "gamma" else rng.poisson(2.0, 6000) / 2)
    train, test = slice(0, 3000), slice(3000, 6000)
    peer = lightgbm.LGBMRegressor(
        n_estimators=100, learning_rate=0.1, num_leaves=15, verbose=-1, n_jobs=1, **options
    ).fit(X[train], y[train])
    model = pb.fit_gradient_boosting(X[train], y[train], loss=loss, n_estimators=100, max_depth=4)
    f = pb.decision_function(model, X[test])
    known = peer.predict(X[test], raw_score=True)
    assert loss.value(y[test], f).mean() < 1.02 * loss.value(y[test], known).mean()
