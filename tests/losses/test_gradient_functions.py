"""Losses of functions of gradients and Hessians: the losses of the package, files, errors."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

import pboost as pb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 3))
TWO = X[:, 0] * X[:, 1] + X[:, 2] + RNG.normal(size=500) > 0
COUNT = RNG.poisson(np.exp(X[:, 0])).astype(float)
WEIGHT = RNG.integers(1, 4, 500)


def log_loss(y, f, sample_weight):
    assert set(np.unique(y)) <= {0.0, 1.0}
    assert (sample_weight == 1).all()
    p = 1 / (1 + np.exp(-f))
    return (p - y) * sample_weight, p * (1 - p) * sample_weight


def squared(y, f, sample_weight):
    y -= f  # may be done: it is a copy
    return -y, np.ones(len(f))


def poisson(y, f, sample_weight):
    return [np.exp(f) - y, np.exp(f)]


def start_of(name, y):
    return float(pb.losses.check_loss(name).constant(y, WEIGHT.astype(float)))


CASES = {
    "log_loss": (log_loss, "logit", TWO, start_of("log_loss", 2.0 * TWO - 1)),
    "squared_error": (squared, "identity", COUNT, start_of("squared_error", COUNT)),
    "poisson": (poisson, "log", COUNT, start_of("poisson", COUNT)),
}
OPTIONS = {"n_estimators": 8, "growth": "independent", "subsample": None, "leaf_shrinkage": 0.0}
OPTIONS |= {"random_strength": 0.0, "l2_regularization": 0.0, "sample_weight": WEIGHT}


@pytest.mark.parametrize("search", ["binned", "exact"])
@pytest.mark.parametrize("name", CASES)
def test_equals_the_loss_of_the_package(name, search, tmp_path):
    function, link, y, start = CASES[name]
    loss = pb.losses.from_gradients(function, link, start)
    before = y.copy()
    options = {**OPTIONS, "search": search, "task": None}
    if search == "exact":
        options |= {"leaf_shrinkage": "auto", "subsample": "auto", "random_strength": "auto"}
        options["l2_regularization"] = "auto"
    if name == "squared_error":
        options["task"] = "regression"
    model = pb.fit_gradient_boosting(X, y, loss=loss, **options)
    known = pb.fit_gradient_boosting(X, y, loss=name, leaf_update="newton", **options)
    assert np.array_equal(y, before)
    assert model.settings["leaf_update"] == "newton"
    assert (model.trees.feature == known.trees.feature).all()
    np.testing.assert_allclose(model.trees.value, known.trees.value, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pb.predict(model, X), pb.predict(known, X), rtol=1e-9)
    # The reported loss is the loss minus the loss at 0.
    reported = known.loss.reported
    fall = known.training_loss[0] - known.training_loss
    np.testing.assert_allclose(
        reported * (model.training_loss[0] - model.training_loss), fall, rtol=1e-6, atol=1e-12
    )
    pb.save(model, tmp_path / "m.npz")
    again = pb.load(tmp_path / "m.npz")
    assert np.array_equal(pb.predict(again, X), pb.predict(model, X))
    assert pb.models.as_tree_ensemble(again).link == pb.models.as_tree_ensemble(known).link
    assert again.bias == start
    assert str(again.loss) == "from_gradients"
    with pytest.raises(ValueError, match=r"loss: expected the function .* dataclasses\.replace"):
        pb.continue_fit(again, X, y, n_estimators=2)
    if search == "binned":
        pb.export.to_c(again, tmp_path / "m.c")
        options = {**options, "n_estimators": 10}
        full = pb.fit_gradient_boosting(X, y, loss=loss, **options)
        more = dataclasses.replace(again, loss=loss)
        for first in (more, pickle.loads(pickle.dumps(model))):
            continued = pb.continue_fit(first, X, y, n_estimators=2, sample_weight=WEIGHT)
            assert np.array_equal(continued.trees.value, full.trees.value)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda y, f, w: f, r"expected a function .* -> \(gradient, hessian\), got a ndarray"),
        (lambda y, f, w: (f, f[:3]), r"of shape \(500,\), got shapes \(500,\) and \(3,\)"),
        (lambda y, f, w: (f, f - 1), "curvature.*: expected a number >= 0, got -1.0 in row 0"),
        (lambda y, f, w: (f * np.nan, f), "gradient.*: expected a number, got nan in row 0"),
    ],
)
def test_results_that_are_no_derivatives(function, message):
    with pytest.raises(ValueError, match=message):
        pb.fit_gradient_boosting(X, COUNT, loss=pb.losses.from_gradients(function))


def test_bad_arguments_and_files():
    with pytest.raises(TypeError, match="function: expected a function"):
        pb.losses.from_gradients("log_loss")
    with pytest.raises(ValueError, match="link: expected one of 'identity', 'log', 'logit'"):
        pb.losses.from_gradients(squared, "probit")
    with pytest.raises(ValueError, match="constant: expected a number in"):
        pb.losses.from_gradients(squared, constant=np.inf)
    loss = pb.losses.from_gradients(squared)
    rows = pb.partitions([X], [COUNT])
    with pytest.raises(NotImplementedError, match="loss: from_gradients requires all rows"):
        pb.fit_gradient_boosting(rows, loss=loss)
    from pboost.models.gradient_boosting import NamedLoss

    for stored in ({"link": "probit", "constant": 0.0}, {"link": "log", "constant": "0"}, {}):
        with pytest.raises((ValueError, TypeError), match=r"link|constant|loss"):
            NamedLoss().read("loss", {"loss": {"name": "from_gradients", **stored}}, {})
