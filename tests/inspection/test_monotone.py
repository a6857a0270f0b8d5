"""Monotone columns: proven on models, and seen on pairs of rows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pboost as pb


def rows_with_holes(n=3000, seed=0):
    """Return rows with holes and a category in the last column, and numbers to predict."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 4] = rng.integers(0, 7, n)
    y = X[:, 0] + np.sin(4 * X[:, 0]) - X[:, 1] * (X[:, 2] > 0) + 0.3 * X[:, 4] + rng.normal(size=n)
    X[rng.random((n, 5)) < 0.1] = np.nan
    return X, y


@pytest.mark.full_for("squared_error-*", "*-line_search", "exponential-newton", "probit-newton")
@pytest.mark.parametrize("leaf_update", ["line_search", "newton"])
@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "exponential", "hinge", "probit"])
def test_constrained_columns_are_proven_and_seen_to_be_monotone(loss, leaf_update):
    if loss == "hinge" and leaf_update == "newton":
        pytest.skip("without curvature")
    X, y = rows_with_holes()
    target = y if loss == "squared_error" else np.where(y > 0, "b", "a")
    options = {
        "loss": loss,
        "n_estimators": 40,
        "max_depth": 5,
        "learning_rate": 0.5,
        "categorical_features": [4],
        "leaf_update": leaf_update,
    }
    ways = {0: 1, 1: -1}
    model = pb.fit_gradient_boosting(X, target, monotonic_cst=ways, **options)
    free = pb.fit_gradient_boosting(X, target, **options)
    rng = np.random.default_rng(1)
    n = 100_000
    rows = X[rng.integers(0, len(X), n)]
    for j, way in ways.items():
        assert pb.inspection.is_monotone(model, j, way)
        assert not pb.inspection.is_monotone(model, j, -way)
        assert not pb.inspection.is_monotone(free, j)
        low, high = rows.copy(), rows.copy()
        pair = np.sort(rng.choice(X[~np.isnan(X[:, j]), j], (2, n)), axis=0)
        low[:, j], high[:, j] = pair
        rise = pb.decision_function(model, high) - pb.decision_function(model, low)
        assert (way * rise >= 0).all()
        assert rise.any()
    assert not pb.inspection.is_monotone(model, 2)


def is_monotone_on_grid(tree, j, way):
    """Look at every row of values between thresholds and, elsewhere, of none."""
    grid = []
    for k in range(tree.n_features):
        cuts = np.unique(tree.threshold[tree.column == k])
        cuts = cuts[cuts < 1e300]
        values = [-1e9, *(cuts[:-1] + np.diff(cuts) / 2), 1e9] if len(cuts) else [0.0]
        if tree.table is not None and tree.table.values_of(k) is not None:
            values = [*range(7), np.nan]
        elif k != j and tree.missing is not None:
            values.append(np.nan)
        grid.append(values)
    rows = np.array(list(product(*grid)))
    value = way * tree.predict(rows).reshape([len(values) for values in grid])
    return bool((np.diff(value, axis=j) >= 0).all())


def test_of_one_tree_the_proof_is_exact():
    rng = np.random.default_rng(0)
    actual = set()
    for seed in range(40):
        X, y = rows_with_holes(60 if seed % 2 else 12, seed)
        if seed % 3 == 0:
            y = np.round(2 * np.nan_to_num(X[:, 0])) + 5 * (X[:, 2] > 0)
        tree = pb.fit_cart(
            X,
            y,
            task="regression",
            max_depth=int(rng.integers(1, 5)),
            categorical_features=[4],
        )
        for j, way in product(range(4), (1, -1)):
            proven, seen = (
                pb.inspection.is_monotone(tree, j, way),
                is_monotone_on_grid(tree, j, way),
            )
            assert proven == seen
            actual.add((proven, bool((tree.column == j).any())))
    assert actual >= {(True, True), (False, True), (True, False)}


def test_forests_and_what_has_no_proof():
    X, y = rows_with_holes(300)
    forest = pb.fit_random_forest(
        X, y, n_estimators=3, task="regression", categorical_features=[4], rng=0
    )
    assert not pb.inspection.is_monotone(forest, 0)
    with pytest.raises(
        ValueError, match="feature: expected a numerical feature, got column 4, which is cat"
    ):
        pb.inspection.is_monotone(forest, 4)
    with pytest.raises(ValueError, match="feature: "):
        pb.inspection.is_monotone(forest, 5)
    with pytest.raises(ValueError, match="direction: expected None, 1 or -1, got 2"):
        pb.inspection.is_monotone(forest, 1, 2)
    for model in (pb.fit_cart(X, y > 0), pb.fit_adaboost(X, y > 0, n_estimators=3)):
        with pytest.raises(NotImplementedError, match="model: expected a gradient boosting model"):
            pb.inspection.is_monotone(model, 0)
    with pytest.raises(
        ValueError, match="monotonic_cst: expected numerical features, got column 4"
    ):
        pb.fit_gradient_boosting(X, y, categorical_features=[4], monotonic_cst={4: 1})
    each = pb.fit_gradient_boosting(X, y, n_estimators=3, monotonic_cst=[0, 1, 0, 0, 0])
    named = pb.fit_gradient_boosting(X, y, n_estimators=3, monotonic_cst={1: 1})
    assert np.array_equal(each.trees.value, named.trees.value)
    assert each.settings["monotonic_cst"] == [0, 1, 0, 0, 0]
    with pytest.raises(ValueError, match="monotonic_cst: expected distinct columns"):
        pb.fit_gradient_boosting(X, y, monotonic_cst=[(1, 1), (1, -1)])
