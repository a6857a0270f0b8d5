"""Shrunk leaf values, and the number of trees that follows from them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from reference.shrinkage import shrunk_values
from shallow import PLAIN
from softmax_cases import assert_same_model

import pboost as pb
from pboost._core import boost, shrinkage
from pboost.trees import boosting_loop


def table(n=240, seed=0):
    """Return features with missing values, classes and row weights that are copies."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    label = np.where(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0, 1, 0)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, label, rng.integers(1, 4, n).astype(float)


def fit(X, y=None, **options):
    options = {"max_depth": 4, "leaf_shrinkage": 2.0, **PLAIN, **options}
    return pb.fit_gradient_boosting(X, y, **options)


def rows_in_nodes(tree, X):
    """Return which nodes are on the path of each row, shape (n, n_nodes)."""
    visited = np.zeros((len(X), tree.n_nodes))
    for row, path in enumerate(pb.inspection.decision_path(tree, X)):
        visited[row, path] = 1.0
    return visited


@pytest.mark.parametrize("weights", ["none", "copies", "fractions"])
@pytest.mark.parametrize("strength", [0.5, 2.0])
def test_leaf_values_are_those_of_the_twin(weights, strength):
    X, label, copies = table()
    weight = {
        "none": np.ones(240),
        "copies": copies,
        "fractions": np.random.default_rng(5).uniform(0.5, 2.0, 240),
    }
    weight = weight[weights]
    unit = weight.mean() if weights == "fractions" else 1.0
    options = {"n_estimators": 1, "init": "zero", "leaf_update": "newton", "learning_rate": 0.5}
    options["sample_weight"] = None if weights == "none" else weight
    plain = fit(X, label, leaf_shrinkage=0.0, **options)
    model = fit(X, label, leaf_shrinkage=strength, **options)
    tree = model.trees[0]
    np.testing.assert_array_equal(tree.feature, plain.trees[0].feature)
    gradient, hessian = np.where(label, -0.5, 0.5), np.full(240, 0.25)
    args = tree.children, gradient, hessian, weight / unit, 2.0, strength
    expected = shrunk_values(rows_in_nodes(plain.trees[0], X), *args)
    leaf = tree.feature < 0
    rounding = 1e-4 if weights == "fractions" else 1e-12  # packed sums round weighted gradients
    np.testing.assert_allclose(tree.value[leaf], 0.5 * expected[leaf], rtol=0, atol=rounding)
    assert np.abs(tree.value - plain.trees[0].value).max() > 0.1


def test_noise_is_shrunk_and_signal_is_not():
    X = np.repeat(np.arange(8.0), 20)[:, None]
    signal = np.array([0.0, 3.0, 1.0, 5.0, 2.0, 9.0, 4.0, 7.0])[X[:, 0].astype(int)]
    noise = np.random.default_rng(0).normal(size=len(X))
    for y, low, high in ((signal, 0.95, 1.0), (noise, 0.0, 0.3)):
        models = [fit(X, y, n_estimators=3, leaf_shrinkage=c, task="regression") for c in (0, 2)]
        plain, shrunk = (np.var(pb.predict(model, X)) for model in models)
        assert low <= shrunk / plain <= high


@pytest.mark.parametrize(
    "options",
    [{}, {"max_leaf_nodes": 7}, {"histogram_precision": "wide"}, {"loss": "softmax"}],
    ids=str,
)
def test_threads_orders_copies_and_partitions(options):
    X, label, copies = table()
    options = {"n_estimators": 4, **options}
    model = fit(X, label, sample_weight=copies, **options)
    assert_same_model(model, fit(X, label, sample_weight=copies, n_threads=2, **options))
    order = np.random.default_rng(1).permutation(len(X))
    assert_same_model(model, fit(X[order], label[order], sample_weight=copies[order], **options))
    rows = np.repeat(np.arange(len(X)), copies.astype(int))
    assert_same_model(model, fit(X[rows], label[rows], **options))
    parts = np.array_split(np.arange(len(X)), 3)
    source = pb.partitions(
        [X[k] for k in parts], [label[k] for k in parts], sample_weight=[copies[k] for k in parts]
    )
    assert_same_model(model, fit(source, **options))


@pytest.mark.parametrize("is_residual", [True, False])
def test_sums_of_squares_are_exact_with_tiny_weights(is_residual):
    """Light rows can have far larger gradients than the unit, which the heavy ones determine."""
    n, weight = 50, np.full(50, 1e-7)
    weight[0], gradient = 1.0, np.full(n, 0.9)
    gradient[0] = largest = 1e-6
    weighted = gradient if is_residual else gradient * weight
    arrays = SimpleNamespace(
        codes=np.zeros((1, n), dtype=np.uint8),
        share=8192,
        team=0,
        y=gradient,
        f=gradient,
        weight=weight,
        loss_code=boost.OF_SHARES,
        per_limit=1.0,
        parameter=0.0,
        are_copies=False,
        is_wide=False,
        residual=gradient if is_residual else None,
        packed=weighted.view(np.int64),
    )
    squares = np.empty(n)
    scale = shrinkage.square_scale(False, True, n)
    shrinkage.note_squares(arrays, 2.0**18 / largest, scale, squares)
    assert (squares == np.rint(squares)).all()
    assert 0 < squares[0] < squares[1]
    assert squares.sum() <= 2.0**52


def test_bounds_hold_for_shrunk_values():
    X, label, _ = table()
    model = fit(X, label, n_estimators=5, max_delta_step=0.3, learning_rate=1.0)
    assert np.abs(model.trees.value).max() <= 0.3
    X = np.nan_to_num(X)
    model = fit(X, label, n_estimators=20, monotonic_cst={0: 1})
    assert pb.inspection.is_monotone(model, 0)


def test_rows_of_any_scale():
    """The scale of a regression target does not change which part of a value is kept."""
    X, _, _ = table()
    y = np.nan_to_num(X[:, 0]) + np.random.default_rng(2).normal(size=len(X))
    models = [fit(X, y * k, n_estimators=3, task="regression") for k in (1.0, 2.0**200)]
    np.testing.assert_array_equal(models[0].trees.value * 2.0**200, models[1].trees.value)


def test_refused():
    X, label, _ = table()
    with pytest.raises(NotImplementedError, match=r"leaf_shrinkage: .*search=\"binned\""):
        fit(X, label, search="exact")
    with pytest.raises(NotImplementedError, match=r"leaf_shrinkage: .*one_output_per_tree"):
        fit(X, label, loss="softmax", multi_strategy="multi_output_tree")
    with pytest.raises(ValueError, match="leaf_shrinkage: expected a number"):
        fit(X, label, leaf_shrinkage=-1.0)


def test_number_of_trees(monkeypatch):
    """With little noise there are more trees; settings have the number."""
    for name, value in (("DECIDED_BY", 0.3), ("FEW_ROUNDS", 0.8)):
        monkeypatch.setattr(boosting_loop, name, value)
    X, _, _ = table()
    noise, signal = np.random.default_rng(0).integers(0, 2, len(X)), np.nan_to_num(X[:, 0]) > 0
    cases = (noise, 0.6, 8), (signal, 1.0, 12), (signal, 0.6, 20)
    for y, least, expected in cases:
        monkeypatch.setattr(boosting_loop, "MORE_ROUNDS", ((0.6, 0.6, 1.2), (1.0, least, 2.0)))
        model = fit(X, y, n_estimators="auto")
        assert len(model.trees) == model.settings["n_estimators"] == expected
        assert_same_model(model, fit(X, y, n_estimators=expected))
    stopped = fit(X, noise, n_estimators="auto", callback=lambda step, record: step == 2)
    assert len(stopped.trees) == 2
    assert stopped.settings["n_estimators"] == 8
    assert len(fit(X, noise, n_estimators="auto", learning_rate=0.05).trees) == 16
    with pytest.raises(ValueError, match=r"n_estimators: .*auto"):
        fit(X, noise, n_estimators="all")


def test_quality_sets_the_learning_rate():
    X, label, _ = table()
    for quality, rate in ((1, 0.3), (3, 0.1), (5, 0.025)):
        model = fit(X, label, n_estimators=2, quality=quality)
        assert model.settings["learning_rate"] == rate
        assert_same_model(model, fit(X, label, n_estimators=2, learning_rate=rate))
    model = fit(X, label, n_estimators=2, quality=5, learning_rate=0.5)
    assert model.settings["learning_rate"] == 0.5
    with pytest.raises(ValueError, match="quality: expected an integer from 1 to 5, got 6"):
        fit(X, label, quality=6)
