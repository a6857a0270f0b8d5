"""Losses of numbers: values, quantiles with weights, leaves of many groups, targets, parameters."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pboost as pb
from pboost.losses import (
    LOSSES,
    Absolute,
    AbsolutePercentage,
    Expectile,
    Gamma,
    Huber,
    LogCosh,
    Loss,
    Poisson,
    Quantile,
    Tweedie,
    check_loss,
)
from pboost.losses.line_search import quantiles

OBJECTS = [
    *(Absolute(), Huber(), Huber(0.3), Quantile(), Quantile(0.9), Poisson()),
    *(AbsolutePercentage(), Expectile(0.8), LogCosh(), Gamma(), Tweedie(1.3)),
]


def sample(loss, seed, n=41, ties=False):
    r = np.random.default_rng(seed)
    y = r.poisson(2.0, n).astype(float) if loss.least == 0 else r.standard_t(2, n)
    if loss.name == "gamma":
        y = np.abs(y) + 0.5
    if ties:
        y = np.round(y)
    return (
        y,
        np.round(r.normal(size=n), 1 if ties else 17),
        r.uniform(0, 2, n) * (r.random(n) < 0.8),
    )


def grid_least(loss, y, f, weight, d):
    """Return the least total loss, by a grid that is made finer around its best point."""
    low, high = -12.0, 12.0
    for _ in range(12):
        steps = np.linspace(low, high, 201)
        total = [float((weight * loss.value(y, f + s * d)).sum()) for s in steps]
        k = int(np.argmin(total))
        low, high = steps[max(k - 1, 0)], steps[min(k + 1, 200)]
    return total[k]


@pytest.mark.parametrize("loss", OBJECTS, ids=str)
def test_derivatives_are_those_of_the_value(loss):
    own = type("Own", (type(loss),), {})(**loss.parameters)
    assert check_loss(own) is own
    assert check_loss(loss) is loss
    y, f, _ = sample(loss, 0)
    assert (loss.value(y, f) >= -1e-15).all()
    best = np.log(y + (y == 0)) if loss.link == "exp" else y
    assert loss.value(y, best)[y > 0].max() < 1e-14


def test_values():
    y, f = np.array([0.0, 0.0, 3.0]), np.array([0.5, -4.0, 0.0])
    assert Absolute().value(y, f).tolist() == [0.5, 4.0, 3.0]
    assert Huber(2.0).value(y, f).tolist() == [0.125, 6.0, 4.0]
    np.testing.assert_allclose(Quantile(0.9).value(y, f), [0.05, 3.6, 2.7])
    expected = [np.exp(0.5), np.exp(-4.0), 1 + 3 * np.log(3) - 3]
    np.testing.assert_allclose(Poisson().value(y, f), expected, rtol=1e-15)
    assert Poisson().prediction(np.array([0.0, 1.0, 1000.0])).tolist() == [1.0, np.e, np.inf]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", OBJECTS, ids=str)
def test_leaf_values_are_best(loss, seed, ties):
    y, f, weight = sample(loss, seed, ties=ties)
    direction = np.random.default_rng(seed + 100).normal(size=len(y)) + 0.5
    for d in (None, direction):
        leaf_values = loss.leaf_value(y, f, weight, d)
        along = np.ones(len(y)) if d is None else d
        minimum = grid_least(loss, y, f, weight, along)
        assert (weight * loss.value(y, f + leaf_values * along)).sum() <= minimum * (1 + 1e-12)
    assert loss.leaf_value(y, f, 0 * y) == 0.0


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("loss", OBJECTS, ids=str)
def test_values_of_many_leaves_are_those_of_each(loss, ties):
    y, f, weight = sample(loss, 7, 600, ties)
    r = np.random.default_rng(1)
    count = np.diff([0, *np.sort(r.choice(np.arange(1, 600), 39, replace=False)), 600])
    group = np.repeat(np.arange(40), count)
    weight[group == 3] = 0.0
    weight[group % 5 == 4] *= 1e-200
    y[group == 6] = max(loss.least, 0.0)
    stop = np.cumsum(count)
    each = [
        loss.leaf_value(y[a:b], f[a:b], weight[a:b])
        for a, b in zip(stop - count, stop, strict=True)
    ]
    leaf_values = loss.leaf_values(y, f, weight, count)
    np.testing.assert_allclose(leaf_values, each, rtol=1e-9, atol=1e-9)
    if loss.least >= 0:
        assert leaf_values[6] == -loss.limit


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_quantiles_are_the_middle_of_where_the_loss_is_least(share):
    r = np.random.default_rng(0)
    for n in range(1, 30):
        y = np.round(r.normal(size=n), 1)
        for weight in (np.ones(n), r.integers(1, 5, n).astype(float)):
            full = y.repeat(weight.astype(int))
            expected = np.quantile(full, share, method="averaged_inverted_cdf")
            count = np.array([n])
            # A third is no binary number: weights of thirds are not exact copies of whole ones.
            for scale in (1.0, 1 / 3, 1e-150, 1e150):
                assert quantiles(y, weight * scale, count, share)[0] == pytest.approx(expected)
                value = Quantile(share).leaf_value(y, 0 * y, weight * scale)
                assert value == pytest.approx(expected)


def test_constants():
    y, weight = np.array([0.0, 1.0, 2.0, 3.0, 100.0]), np.ones(5)
    assert Absolute().constant(y, weight) == 2.0
    assert Absolute().constant(y[:4], weight[:4]) == 1.5
    assert Quantile(0.8).constant(y, weight) == 51.5
    assert Poisson().constant(y, weight) == pytest.approx(np.log(21.2), rel=1e-15)
    assert Huber(1e9).constant(y, weight) == pytest.approx(21.2, rel=1e-12)
    assert Huber(1e-3).constant(y, weight) == pytest.approx(2.0, abs=1e-3)
    assert Poisson().leaf_value(y, np.full(5, 800.0), weight) == -Poisson.limit


@pytest.mark.parametrize("exponent", [-500, -40, 40, 500])
def test_residuals_of_any_size(exponent):
    y, f, weight = sample(Absolute(), 2)
    scale = 2.0**exponent
    for loss, scaled in (
        (Absolute(), Absolute()),
        (Quantile(0.7), Quantile(0.7)),
        (Huber(0.5), Huber(0.5 * scale)),
        (Expectile(0.7), Expectile(0.7)),
    ):
        count = np.array([20, 21])
        leaf_values = scaled.leaf_values(y * scale, f * scale, weight, count)
        np.testing.assert_allclose(
            leaf_values / scale, loss.leaf_values(y, f, weight, count), rtol=1e-9
        )


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Huber(0), ValueError, "delta: expected a number in"),
        (lambda: Huber("1"), TypeError, "delta: expected a number"),
        (lambda: Quantile(1.0), ValueError, "quantile: expected a number in"),
        (lambda: Quantile(90), ValueError, "quantile: expected a number in"),
        (lambda: Tweedie(2), ValueError, "power: expected a number in"),
        (lambda: Expectile(0), ValueError, "alpha: expected a number in"),
        (lambda: pb.losses.Focal(-1), ValueError, "gamma: expected a number in"),
        (lambda: check_loss("quantiles"), ValueError, "loss: expected one of 'exponential'"),
    ],
)
def test_bad_parameters(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_parameters_are_values():
    assert Huber(2) == Huber(2.0)
    assert Huber(2.0) != Huber()
    assert LOSSES["huber"] == Huber()
    assert (str(Huber(2)), str(Quantile(0.25)), str(Absolute())) == (
        "huber(2)",
        "quantile(0.25)",
        "absolute_error",
    )
    for loss in OBJECTS:
        assert pickle.loads(pickle.dumps(loss)) == loss


class OwnGamma(Loss):
    """A user's loss of positive numbers, of which the check must not ask for others."""

    name, is_regression, least = "gamma", True, 1e-9

    def value(self, y, f):
        return y * np.exp(-f) + f + np.log(y)

    def gradient(self, y, f):
        return 1 - y * np.exp(-f)

    def prediction(self, f):
        return np.exp(f)


@pytest.mark.full
def test_a_loss_with_a_least_target_and_a_link():
    assert check_loss(OwnGamma()).least == 1e-9
    X = np.arange(8.0)[:, None]
    y = np.exp(X[:, 0])
    model = pb.fit_gradient_boosting(X, y, loss=OwnGamma(), n_estimators=50, learning_rate=0.5)
    score = pb.decision_function(model, X)
    assert np.array_equal(pb.predict(model, X), np.exp(score))
    with pytest.raises(ValueError, match=r"y: expected numbers >= 1e-09 for the gamma loss, got 0"):
        pb.fit_gradient_boosting(X, np.floor(y) * (X[:, 0] != 3), loss=OwnGamma())
