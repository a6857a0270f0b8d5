"""Losses: values in many digits, minimisers, links, and the check of a user's own."""

from __future__ import annotations

import dataclasses
import math
import pickle
from functools import partial

import numpy as np
import pytest
from reference import losses as reference

import pboost as pb
from pboost.losses import LOSSES, Loss, check_loss
from pboost.losses.line_search import kink_search

NAMES = ["exponential", "log_loss", "squared_error", "hinge", "probit"]
MARGINS = np.concatenate(
    [-np.logspace(6, -3, 19), [0.0], np.logspace(-3, 6, 19), np.linspace(-40, 40, 33)]
)
PROBABLE = ["exponential", "log_loss", "probit"]


def sample(seed, n=40):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.6, 1.0, -1.0)
    y[:2] = -1, 1
    return y, rng.normal(size=n), rng.uniform(0, 2, n) * (rng.random(n) < 0.8) + 0.01 * (n > 2)


@pytest.mark.parametrize("label", [-1.0, 1.0])
@pytest.mark.parametrize("name", NAMES)
def test_values_in_many_digits(name, label):
    loss = check_loss(name)
    y, f = np.full(len(MARGINS), label), label * MARGINS
    expected = [reference.derivatives(name, float(m)) for m in MARGINS]
    close = {"rtol": 3e-13, "atol": np.finfo(float).tiny}
    np.testing.assert_allclose(loss.value(y, f), [e[0] for e in expected], **close)
    np.testing.assert_allclose(label * loss.gradient(y, f), [e[1] for e in expected], **close)
    if name == "hinge":
        with pytest.raises(NotImplementedError, match="hinge loss has no second derivative"):
            loss.curvature(y, f)
    else:
        np.testing.assert_allclose(loss.curvature(y, f), [e[2] for e in expected], **close)


@pytest.mark.parametrize("name", NAMES)
def test_known_losses_pass_the_check_of_derivatives(name):
    own = type("Own", (type(LOSSES[name]),), {})()
    assert check_loss(own) is own
    assert check_loss(LOSSES[name]) is LOSSES[name]


@pytest.mark.parametrize("name", PROBABLE)
def test_link_is_the_population_minimiser(name):
    loss = check_loss(name)
    y = np.array([-1.0, 1.0])
    for p in (1e-12, 0.01, 0.3, 0.5, 0.9):
        best = loss.constant(y, np.array([1 - p, p]))
        assert loss.probability(np.array([best]))[0] == pytest.approx(p, rel=1e-9)
    far = loss.probability(np.array([-1e6, 1e6]))
    assert far.tolist() == [0.0, 1.0]


def test_links():
    assert check_loss("exponential").probability(np.array([1.0])) == 1 / (1 + math.exp(-2))
    assert check_loss("log_loss").probability(np.array([1.0])) == 1 / (1 + math.exp(-1))
    phi = 0.5 * math.erfc(-1 / math.sqrt(2))
    assert check_loss("probit").probability(np.array([1.0]))[0] == pytest.approx(phi, rel=1e-15)
    actual = check_loss("squared_error").probability(np.array([-3.0, 0.5, 1.0, 2.0]))
    assert actual.tolist() == [0.0, 0.75, 1.0, 1.0]
    with pytest.raises(NotImplementedError, match="hinge loss do not give probabilities"):
        check_loss("hinge").probability(np.array([1.0]))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NAMES)
def test_leaf_values_are_best(name, seed):
    loss = check_loss(name)
    y, f, weight = sample(seed)
    direction = np.random.default_rng(seed + 100).normal(size=len(y)) + 0.5
    zero = np.zeros(len(y))
    for d in (None, direction):
        for start in (zero, f):
            leaf_values = loss.leaf_value(y, start, weight, d)
            along = np.ones(len(y)) if d is None else d
            _, minimum = reference.best_step(loss, y, start, weight, along, -6, 6)
            total = (weight * loss.value(y, start + leaf_values * along)).sum()
            assert total <= minimum * (1 + 1e-12)
    assert loss.constant(y, weight) == pytest.approx(
        Loss.leaf_value(loss, y, zero, weight), abs=1e-6 if name != "hinge" else 1e-9
    )


@pytest.mark.parametrize("name", NAMES)
def test_rows_without_weight_and_zero_directions(name):
    loss = check_loss(name)
    y, f, weight = sample(5)
    leaf_values = loss.leaf_value(y, f, weight)
    assert (
        loss.leaf_value(np.append(y, 1.0), np.append(f, 500.0), np.append(weight, 0.0))
        == leaf_values
    )
    assert loss.leaf_value(y, f, weight, np.zeros(len(y))) == 0.0
    assert loss.leaf_value(y, f, np.zeros(len(y))) == 0.0
    with_rest = loss.leaf_value(
        np.append(y, 1.0), np.append(f, 0.0), np.append(weight, 1.0), np.append(0 * y + 1, 0.0)
    )
    assert with_rest == pytest.approx(leaf_values, abs=1e-9)


@pytest.mark.parametrize(("name", "most"), [("exponential", 18.0218), ("log_loss", 36.0437)])
def test_one_class_is_bounded(name, most):
    loss, y = check_loss(name), np.ones(3)
    assert loss.constant(y, y) == pytest.approx(most, abs=1e-3)
    assert loss.leaf_value(-y, 0 * y, y) == pytest.approx(-most, abs=1e-3)
    assert loss.leaf_value(y, 0 * y, y, 2 * y) == pytest.approx(most / 2, abs=1e-3)


def test_one_class_of_probit():
    loss, y = check_loss("probit"), np.ones(3)
    share = loss.probability(np.array([-loss.constant(y, y)]))[0]
    assert share == pytest.approx(1 / (1 + 2.0**52), rel=1e-9)


def test_exponential_far_from_zero():
    """Decision values of which the loss itself is not a finite number."""
    loss, y = check_loss("exponential"), np.array([-1.0, 1.0])
    assert loss.leaf_value(y, np.array([5e5, 5e5]), np.ones(2)) == -loss.limit
    f = np.array([-9000.0, -9000.0])
    assert loss.leaf_value(y, f, np.array([1.0, 1.0])) == loss.limit
    assert loss.leaf_value(y, np.array([-8.0, -8.0]), np.ones(2)) == pytest.approx(8.0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("far", [-1e6, 1e6])
def test_searches_far_from_zero_end(name, far):
    loss = check_loss(name)
    y, _, weight = sample(3)
    step = loss.leaf_value(y, np.full(len(y), far), weight)
    assert math.isfinite(step)
    # Towards where the constant is, or not at all.
    assert step * far <= 0


def test_hinge_is_exact():
    loss = check_loss("hinge")
    y = np.array([1.0, 1.0, -1.0])
    assert loss.constant(y, np.ones(3)) == 1.0
    assert loss.constant(y, np.array([1.0, 1.0, 2.0])) == 0.0  # the middle of [-1, 1]
    assert loss.constant(-y, np.ones(3)) == -1.0
    assert loss.constant(np.ones(2), np.ones(2)) == 1.0
    assert loss.constant(-np.ones(2), np.ones(2)) == -1.0
    # All margins beyond 1: no step lowers the loss, and the nearest kink is found.
    assert kink_search(np.array([-2.0, -1.0]), np.array([1.0, 1.0]), np.ones(2)) == -1.0


class Ramp(Loss):
    """A loss that is not convex: 1 - tanh of the margin."""

    name = "ramp"

    def value(self, y, f):
        return 1 - np.tanh(y * f)

    def gradient(self, y, f):
        return -y / np.cosh(np.clip(y * f, -300, 300)) ** 2


@pytest.mark.parametrize("seed", range(20))
def test_searches_of_other_losses_never_climb(seed):
    loss = check_loss(Ramp())
    y, f, weight = sample(seed, 12)
    d = np.random.default_rng(seed).normal(size=12)
    step = loss.leaf_value(y, f, weight, d)
    assert step != 0
    assert (weight * loss.value(y, f + step * d)).sum() < (weight * loss.value(y, f)).sum()


def test_probabilities_of_a_custom_loss():
    class Link(Ramp):
        def probability(self, f):
            return 1 / (1 + np.exp(-f))

    X = np.arange(8.0)[:, None]
    y = np.array(list("aaabbbab"))
    without, model = (
        pb.fit_gradient_boosting(X, y, loss=loss, n_estimators=2) for loss in (Ramp(), Link())
    )
    for ask in (pb.predict_proba, partial(pb.predict, threshold=0.2)):
        with pytest.raises(NotImplementedError) as caught:
            ask(without, X)
        assert str(caught.value) == (
            "model: decision values of the ramp loss do not give probabilities, because Ramp does "
            "not define probability(f); use pb.predict or pb.decision_function, or pb.calibrate "
            "to get probabilities"
        )
    second = 1 / (1 + np.exp(-pb.decision_function(without, X)))
    np.testing.assert_allclose(pb.predict_proba(model, X), np.column_stack([1 - second, second]))


def test_losses_of_the_package_without_probabilities():
    X = np.arange(8.0)[:, None]
    model = pb.fit_gradient_boosting(X, X[:, 0] > 3, loss="hinge", n_estimators=2)
    with pytest.raises(NotImplementedError, match=r"the hinge loss .* probabilities; use pb\.pred"):
        pb.predict_proba(model, X)


def test_quantile_loss_of_a_user():
    class Quantile(Loss):
        name, is_regression = "quantile", True

        def value(self, y, f):
            return np.where(y > f, 0.9 * (y - f), 0.1 * (f - y))

        def gradient(self, y, f):
            return np.where(y > f, -0.9, 0.1)

    class Limited(Quantile):
        limit = 5.0

    y = 1e6 * np.arange(11.0)
    assert check_loss(Quantile()).constant(y, np.ones(11)) == pytest.approx(9e6, rel=1e-9)
    assert check_loss(Limited()).constant(y, np.ones(11)) == 5.0


class Shifted(Ramp):
    def gradient(self, y, f):
        return super().gradient(y, f) + 0.1


class Flat(Ramp):
    def curvature(self, y, f):
        return np.ones_like(f)


class Scalar(Ramp):
    def value(self, y, f):
        return 1.0


class Log(Ramp):
    def value(self, y, f):
        with np.errstate(all="ignore"):
            return np.log(y * f)


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        ("savage", ValueError, "loss: expected one of 'exponential', .*'tweedie' or a Loss, got"),
        (3, TypeError, "loss: expected a name or a pboost.losses.Loss, got 3"),
        (Shifted(), ValueError, r"loss: gradient\(y, f\): expected .* differences of value"),
        (Flat(), ValueError, r"loss: curvature\(y, f\): expected .* differences of gradient"),
        (Scalar(), ValueError, r"loss: value\(y, f\): expected numbers of shape"),
        (Log(), ValueError, r"loss: value\(y, f\): expected finite numbers, got nan"),
        (Loss(), NotImplementedError, r"Loss: expected a method value\(y, f\)"),
    ],
    ids=["name", "type", "gradient", "curvature", "shape", "finite", "base"],
)
def test_what_is_wrong_is_named(loss, error, message):
    with pytest.raises(error, match=message):
        check_loss(loss)


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_values(name):
    loss = check_loss(name)
    assert loss.name == name
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert dataclasses.is_dataclass(loss)
    y, f = np.array([1.0, -1.0]), np.array([0.5, 2.0])
    y.flags.writeable = f.flags.writeable = False
    loss.leaf_value(y, f, np.ones(2), np.ones(2))
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
        loss.name = "other"


def test_exponential_leaf_is_the_vote_of_adaboost():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.where(X[:, 0] + rng.normal(size=200) > 0, 1.0, -1.0)
    model = pb.fit_adaboost(X, y, n_estimators=2, smoothing=0)
    first, second = (X[:, model.feature[t]] > model.threshold[t] for t in range(2))
    f = model.vote[0, first.astype(int)]
    actual = check_loss("exponential").leaf_value(y[second], f[second], np.ones(second.sum()))
    assert actual == pytest.approx(model.vote[1, 1], rel=1e-9)


def sizes_of(r, n, groups):
    return np.diff([0, *np.sort(r.choice(np.arange(1, n), groups - 1, replace=False)), n])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("far", [0.1, 1.0, 5.0, 30.0])
def test_values_of_many_leaves_are_those_of_each(name, far):
    """Some groups have rows of one class, some rows without weight, some weights near 0."""
    loss, r = LOSSES[name], np.random.default_rng(round(10 * far))
    n, groups = 600, 40
    count = sizes_of(r, n, groups)
    group = np.repeat(np.arange(groups), count)
    y = r.choice([-1.0, 1.0], n)
    y[group % 7 == 0] = 1.0
    f, weight = far * r.normal(size=n), r.exponential(size=n)
    weight[r.random(n) < 0.1] = 0.0
    weight[group == 3] = 0.0
    weight[group % 5 == 4] *= 1e-200
    leaf_values = loss.leaf_values(y, f, weight, count)
    stop = np.cumsum(count)
    each = [
        loss.leaf_value(y[a:b], f[a:b], weight[a:b])
        for a, b in zip(stop - count, stop, strict=True)
    ]
    np.testing.assert_allclose(leaf_values, each, rtol=1e-9, atol=1e-9)
    # No slope is left at those within the bounds.
    if loss.is_newton:
        inside = np.abs(leaf_values) < loss.limit
        assert inside.sum() > 10
        slope = np.bincount(group, weight * loss.gradient(y, f + leaf_values[group]))
        size = np.bincount(group, weight * np.abs(loss.gradient(y, f + leaf_values[group])))
        assert (np.abs(slope) <= 1e-11 * size)[inside].all()


@pytest.mark.parametrize("name", ["log_loss", "probit"])
def test_leaves_at_the_bound_and_at_rest(name):
    loss = LOSSES[name]
    y, count = np.array([1.0, 1.0, -1.0, 1.0, -1.0, -1.0]), np.array([2, 2, 2])
    leaf_values = loss.leaf_values(y, np.zeros(6), np.ones(6), count)
    assert leaf_values.tolist() == [loss.limit, 0.0, -loss.limit]
    far = loss.leaf_values(y, -700 * y, np.ones(6), count)
    assert far.tolist() == [loss.limit, 0.0, -loss.limit]
    assert np.isfinite(loss.leaf_values(y, 1e6 * y, np.ones(6), count)).all()
    slope, bend = loss.slopes(y, 3 * y)
    np.testing.assert_allclose(slope, loss.gradient(y, 3 * y), rtol=1e-14)
    np.testing.assert_allclose(bend, loss.curvature(y, 3 * y), rtol=1e-13)
