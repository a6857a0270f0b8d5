"""Losses that are C functions: the ways to give one, what is called, leaves, what is refused."""

from __future__ import annotations

import copy
import ctypes
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import cython_special, pbdv
from shallow import fit_shallow

import pboost as pb
from pboost.losses import LOSSES, compiled

PLACE = ctypes.POINTER(ctypes.c_double)
SLOPES = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_double, PLACE, PLACE)
VALUE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)


def of(name):
    """Return C functions of a loss of the package."""
    loss = LOSSES[name]

    def slopes(y, f, g, h):
        gradient, curvature = loss.slopes(np.array([y]), np.array([f]))
        g[0], h[0] = gradient[0], curvature[0]

    return SLOPES(slopes), VALUE(lambda y, f: loss.value(np.array([y]), np.array([f]))[0])


def data(n=200):
    r = np.random.default_rng(0)
    X = r.normal(size=(n, 3))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * r.normal(size=n)


def test_ways_to_give_a_function():
    slopes, _ = of("squared_error")
    address = ctypes.cast(slopes, ctypes.c_void_p).value
    y, f = np.array([1.0, 2.0]), np.array([0.5, 4.0])
    for given in (slopes, address, np.int64(address), SimpleNamespace(address=address)):
        loss = compiled(given, name="mine")
        assert loss.gradient(y, f).tolist() == [-0.5, 2.0]
        assert loss.curvature(y, f).tolist() == [1.0, 1.0]
        assert str(loss) == "mine"
        assert loss.is_regression


def test_a_compiled_function_in_a_capsule():
    """A function of SciPy that has this signature: no loss, but called without Python."""
    loss = compiled(cython_special.__pyx_capi__["pbdv"])
    y, f = np.meshgrid([0.0, 1.0, 2.5], np.linspace(-2, 2, 9))
    for item, expected in zip(loss.slopes(y, f), pbdv(y, f), strict=True):
        np.testing.assert_allclose(item, expected, rtol=1e-12)


@pytest.mark.full_for(
    "log_loss-classification-binned-line_search", "log_loss-classification-exact-line_search"
)
@pytest.mark.parametrize("leaf_update", ["line_search", "newton"])
@pytest.mark.parametrize("search", ["binned", "exact"])
@pytest.mark.parametrize(
    ("name", "task"), [("squared_error", "regression"), ("log_loss", "classification")]
)
def test_fits_are_those_of_the_loss_of_the_package(name, task, search, leaf_update):
    X, y = data()
    y = y if task == "regression" else y > 0
    slopes, value = of(name)
    options = {
        "n_estimators": 5,
        "search": search,
        "leaf_update": leaf_update,
        "max_delta_step": 4.0,
    }
    options |= {"l2_regularization": 0.0, "min_child_weight": 0.0}  # best steps of others know none
    known = fit_shallow(X, y, loss=name, task=task, **options)
    for own in (compiled(slopes, task=task, value=value), compiled(slopes, task=task)):
        model = fit_shallow(X, y, loss=own, **options)
        assert np.array_equal(model.trees.feature, known.trees.feature)
        np.testing.assert_allclose(model.trees.value, known.trees.value, atol=1e-7)
        zero = 0.0
        if not own.of_value:
            target = y if task == "regression" else np.where(y, 1.0, -1.0)
            zero = LOSSES[name].value(target, np.zeros(len(y))).mean()
        known_loss = known.training_loss / LOSSES[name].reported  # C functions know of no factor
        np.testing.assert_allclose(model.training_loss + zero, known_loss, rtol=1e-6)


def test_leaves_far_away_and_without_curvature():
    slopes, _ = of("log_loss")
    y = np.ones(3)
    loss = compiled(slopes, task="classification")
    assert loss.constant(y, y) == pytest.approx(loss.limit, rel=1e-9)
    assert loss.constant(-y, y) == pytest.approx(-loss.limit, rel=1e-9)
    assert loss.leaf_values(y, 0 * y, 0 * y, np.array([3])).tolist() == [0.0]

    @SLOPES
    def median(y, f, g, h):
        g[0], h[0] = (f > y) - 1.0 * (f < y), 0.0

    actual = compiled(median).leaf_values(
        np.array([1e5, 2.0, 3.0, 1e9]), np.zeros(4), np.ones(4), np.array([3, 1])
    )
    np.testing.assert_allclose(actual, [3.0, 1e9], rtol=1e-12)
    with pytest.raises(ValueError, match="groups without rows"):
        loss.leaf_values(y, y, y, np.array([3, 0]))


def test_derivatives_that_are_no_numbers_are_named():
    @SLOPES
    def wrong(y, f, g, h):
        g[0], h[0] = (np.nan if f > 0.3 else f - y), 1.0

    X, y = data()
    with pytest.raises(ValueError, match=r"loss: gradient.* expected a number, got nan in row \d+"):
        pb.fit_gradient_boosting(X, y, loss=compiled(wrong), n_estimators=30)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e308])
@pytest.mark.parametrize("options", [{}, {"search": "exact"}, {"init": "zero"}])
@pytest.mark.parametrize("name", ["gradient", "curvature"])
def test_derivatives_that_are_too_large_are_named(bad, options, name):
    """No tree was grown, which raised IndexError, or trees had impurities that are no numbers."""

    @SLOPES
    def wrong(y, f, g, h):
        is_wrong = y > 1.0
        g[0] = bad if is_wrong and name == "gradient" else f - y
        h[0] = abs(bad) if is_wrong and name == "curvature" else 1.0

    X, y = data()
    with pytest.raises(ValueError, match=rf"loss: {name}.* at most 1e\+150, got .* in row \d+"):
        pb.fit_gradient_boosting(X, y, loss=compiled(wrong), n_estimators=30, **options)


def test_what_is_compiled_is_neither_stored_nor_copied(tmp_path):
    X, y = data()
    loss = compiled(of("squared_error")[0], name="mine")
    model = pb.fit_gradient_boosting(X, y, loss=loss, n_estimators=2)
    assert repr(model) == "<fit_gradient_boosting: 2 trees, 3 features, loss mine>"
    with pytest.raises(TypeError, match="the loss 'mine' is a function, which cannot be saved"):
        pb.save(model, tmp_path / "m.npz")
    with pytest.raises(TypeError, match="the mine loss is a compiled function"):
        pickle.dumps(model)
    assert copy.deepcopy(loss) is copy.copy(loss) is loss
    assert pb.losses.check_loss(loss) is loss


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        (lambda y, f: 0, {}, TypeError, "derivatives: .* for a Python function"),
        (True, {}, TypeError, "derivatives: expected the address"),
        (0, {}, ValueError, "derivatives: expected a positive address"),
        (VALUE(0), {}, TypeError, "derivatives: expected a function .* other argument types"),
        (1, {"value": "a"}, TypeError, "value: expected the address"),
        (1, {"value": SLOPES(0)}, TypeError, "value: expected a function .* other argument types"),
        (cython_special.__pyx_capi__["ellipj"], {}, TypeError, "got a capsule of void"),
        (1, {"task": "ranking"}, ValueError, "task: "),
        (1, {"name": ""}, TypeError, "name: expected a non-empty string"),
    ],
)
def test_what_is_wrong_is_named(given, options, error, message):
    with pytest.raises(error, match=message):
        compiled(given, **options)
