"""Shapley values: their definition on small models of every kind, threads, and refused models."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

import exported
import numpy as np
import pytest
from exported import EVERY, WITH_HOLES, decoded, made, rows_for
from reference import shapley as twin
from reference import tree_sum
from sided_trees import random_forest, random_rows

import pboost as pb
from pboost import threads
from pboost._core import interventional, shapley
from pboost.models.evaluate import shapley as sh
from pboost.models.tree_ensemble import positive_weights


def background_of(kind):
    """Return the training rows of models without node weights, else None."""
    if pb.models.as_tree_ensemble(made(kind)).weight is not None:
        return None
    if kind.startswith("nothing"):
        return np.ones((9, 2))
    return exported.X if kind in WITH_HOLES else exported.PLAIN


def shap_of(kind, rows, **options):
    return pb.shap_values(made(kind), decoded(made(kind), rows), **options)


def assert_close(actual, expected, trees, tolerance=1e-12):
    size = 1 + tree_sum.size(trees).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * size)


@pytest.mark.parametrize("kind", EVERY)
def test_values_are_shapley_values_and_add_up(kind):
    background = background_of(kind)
    trees = pb.models.as_tree_ensemble(made(kind), background)
    rows = rows_for(made(kind), 40)
    shap = shap_of(kind, rows, method="path_dependent", background=background)
    values = shap.values.reshape(40, trees.n_features, -1)
    base = np.atleast_1d(shap.base_values)
    assert_close(values.sum(axis=1) + base, tree_sum.values(trees, rows), trees)
    for row, parts in zip(rows[:2], values, strict=False):
        expected, mean = twin.shapley_values(trees, row)
        assert_close(parts, expected, trees)
        assert_close(base, mean, trees)
    np.testing.assert_array_equal(shap.data, rows)


@pytest.mark.parametrize("with_tables", [True, False])
@pytest.mark.parametrize("kind", EVERY)
def test_interventional_values_are_shapley_values_and_add_up(kind, with_tables, monkeypatch):
    if not with_tables:
        monkeypatch.setattr("pboost.models.evaluate.shapley.MAX_CELLS", 0)
    trees = pb.models.as_tree_ensemble(made(kind))
    background, rows = rows_for(made(kind), 7, seed=1), rows_for(made(kind), 40)
    weight = np.arange(7.0)
    program = sh.compile_background(trees, background, weight)
    assert (len(program.others) > 0) <= (not with_tables)
    values = program.values(rows, 1)
    assert_close(values.sum(axis=1) + program.base, tree_sum.values(trees, rows), trees)
    mean = partial(twin.mean_by_rows, background=background, weight=weight)
    for row, parts in zip(rows[:1], values, strict=False):
        expected, base = twin.shapley_values(trees, row, mean)
        assert_close(parts, expected, trees)
        assert_close(program.base, base, trees)


@pytest.mark.parametrize("kind", ["cart, three", "tree", "softmax", "forest", "nothing to learn"])
def test_interactions_are_interaction_values(kind):
    background = background_of(kind)
    trees = pb.models.as_tree_ensemble(made(kind), background)
    rows = rows_for(made(kind), 12)
    shap = shap_of(kind, rows, method="path_dependent", background=background, interactions=True)
    pairs = shap.interaction_values.reshape(12, trees.n_features, trees.n_features, -1)
    values = shap.values.reshape(12, trees.n_features, -1)
    assert_close(pairs.sum(axis=1), values, trees)
    np.testing.assert_array_equal(pairs, np.swapaxes(pairs, 1, 2))
    for row, parts in zip(rows[-2:], pairs[-2:], strict=True):
        assert_close(parts, twin.interaction_values(trees, row), trees)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(25))
def test_random_trees_have_shapley_values(seed):
    """Trees with any sides of missing values, sets of categories, and features that recur."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        d = int(rng.integers(1, 5))
        forest = random_forest(rng, 3, d, categories=(0,), n_classes=int(rng.choice([0, 2, 3])))
        trees = pb.models.as_tree_ensemble(forest)
        trees = replace(trees, weight=positive_weights(trees))
        rows = random_rows(rng, 9, d, categories=(0,))
        rows[:, 0] = np.minimum(rows[:, 0], 69)
        background = partial(twin.mean_by_rows, background=rows[1:])
        paths = sh.compile_paths(trees)
        by_rows = sh.compile_background(trees, rows[1:], None)
        for program, mean in [(paths, twin.mean_by_weight), (by_rows, background)]:
            expected, base = twin.shapley_values(trees, rows[0], mean)
            assert_close(program.values(rows[:1], 1)[0], expected, trees)
            assert_close(program.base, base, trees)
        pairs = twin.interaction_values(trees, rows[0])
        assert_close(paths.interactions(rows[:1], 1)[0], pairs, trees)


WITH_ROWS = {"background": np.random.default_rng(1).normal(size=(20, 30))}


@pytest.fixture(scope="module")
def deep():
    """A forest whose paths compare more than 16 features, and rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 30))
    y = np.digitize((X**2).sum(axis=1), [27, 33])
    return pb.fit_random_forest(X, y, n_estimators=3, max_features=1, rng=0), X[:160]


def test_deep_trees_add_up_to_class_shares(deep):
    model, X = deep
    shap = pb.shap_values(model, X)
    assert shap.values.shape == (160, 30, 3)
    assert shap.classes == (0, 1, 2)
    total = shap.values.sum(axis=1) + shap.base_values
    np.testing.assert_allclose(total, pb.predict_proba(model, X), rtol=0, atol=1e-12)


def test_values_do_not_depend_on_threads_rows_or_simd_level(deep, monkeypatch):
    monkeypatch.setattr(threads, "MIN_CELLS", 1)
    monkeypatch.setattr(threads, "available_threads", lambda: 8)
    model, X = deep
    shallow = pb.fit_gradient_boosting(X, X[:, 0] * X[:, 1], n_estimators=5)
    for fitted, options in [(model, {}), (model, WITH_ROWS), (shallow, WITH_ROWS)]:
        expected = pb.shap_values(fitted, X, n_threads=1, **options).values
        for n in (2, 4):
            actual = pb.shap_values(fitted, X, n_threads=n, **options).values
            np.testing.assert_array_equal(actual, expected)
        for level in (0, 1, 2):
            shapley.use_simd_level(level)
            interventional.use_simd_level(level)
            actual = pb.shap_values(fitted, X[:45], **options).values
            np.testing.assert_array_equal(actual, expected[:45])
    few = X[:9]
    expected = pb.shap_values(model, few, interactions=True, n_threads=1)
    for n in (2, 3):
        actual = pb.shap_values(model, few, interactions=True, n_threads=n)
        np.testing.assert_array_equal(actual.interaction_values, expected.interaction_values)
    np.testing.assert_allclose(expected.interaction_values.sum(axis=1), expected.values, atol=1e-12)


def test_trees_are_compiled_once(monkeypatch):
    model, X = pb.fit_cart(exported.PLAIN, exported.TWO, max_depth=2), exported.PLAIN
    expected = pb.shap_values(model, X).values
    rows = {"background": X[:9], "background_weight": np.arange(9)}
    by_rows = pb.shap_values(model, X, **rows).values
    module = "pboost.inspection.shapley_values"
    monkeypatch.setattr(f"{module}.compile_paths", None)
    monkeypatch.setattr(f"{module}.compile_background", lambda *_: None)
    np.testing.assert_array_equal(pb.shap_values(model, X).values, expected)
    np.testing.assert_array_equal(pb.shap_values(model, X, **rows).values, by_rows)
    with pytest.raises(AttributeError):  # other weights
        pb.shap_values(model, X, background=X[:9])


@pytest.mark.parametrize("fit", [pb.fit_boosted_tree, pb.fit_cart])
def test_platt_calibration_scales_the_values(fit):
    X, y = exported.PLAIN, exported.TWO
    model = fit(X[:70], y[:70])
    calibrated = pb.calibrate(model, X[70:], y[70:], method="platt")
    shap = pb.shap_values(calibrated, X, method="path_dependent", background=X)
    total = shap.values.sum(axis=1) + shap.base_values
    np.testing.assert_allclose(total, pb.decision_function(calibrated, X), rtol=0, atol=1e-12)
    steps = pb.calibrate(model, X[70:], y[70:], method="isotonic")
    with pytest.raises(TypeError, match=r"Platt's method.*pass model.model"):
        pb.shap_values(steps, X)


def test_models_that_are_refused():
    model, X = made("tree"), exported.X
    with pytest.raises(ValueError, match="background: expected rows that define the weights"):
        pb.shap_values(model, X)
    with pytest.raises(ValueError, match=r"max_nodes: expected at least \d+"):
        pb.shap_values(model, X, background=X, max_nodes=3)
    fresh = rows_for(made("log_loss"), 99)
    stopped = pb.early_exit(made("log_loss"), decoded(made("log_loss"), fresh), mean_comparisons=9)
    with pytest.raises(TypeError, match=r"early exits; pass the full model, model.model"):
        pb.shap_values(stopped, X)
    with pytest.raises(ValueError, match="background: expected rows with the method"):
        pb.shap_values(model, X, method="interventional")
    with pytest.raises(ValueError, match="background: expected at least one row"):
        pb.shap_values(model, X, background=X[:0])
    with pytest.raises(ValueError, match="background_weight: expected shape"):
        pb.shap_values(model, X, background=X, background_weight=[1.0])
    with pytest.raises(ValueError, match="background_weight: expected None"):
        pb.shap_values(made("cart"), X, background_weight=np.ones(len(X)))
    with pytest.raises(NotImplementedError, match=r"interactions: .*method='path_dependent'"):
        pb.shap_values(model, X, background=X, interactions=True)
    with pytest.raises(ValueError, match="method: expected one of"):
        pb.shap_values(model, X, method="path")
    with pytest.raises(ValueError, match="X: expected finite numbers"):
        pb.shap_values(made("one tree a round"), np.full((1, 2), np.inf))


@pytest.mark.full  # shap is slow to import
def test_explanation_of_shap():
    pytest.importorskip("shap", reason="shap is not installed")
    shap = shap_of("softmax", rows_for(made("softmax"), 5))
    explanation = shap.explanation()
    np.testing.assert_array_equal(explanation.values, shap.values)
    assert explanation.base_values.shape == (5, 3)
    assert explanation.feature_names == ["x[0]", "x[1]", "x[2]", "x[3]"]
    assert explanation.output_names == ["ash", "elm", "oak"]


def test_explanation_needs_shap(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r"explanation needs shap: pip install"):
        shap_of("cart", rows_for(made("cart"), 2)).explanation()
