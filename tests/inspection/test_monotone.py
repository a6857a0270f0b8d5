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


@pytest.mark.full_for("squared-*", "*-best", "exponential-newton", "probit-newton")
@pytest.mark.parametrize("leaf_step", ["best", "newton"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "exponential", "hinge", "probit"])
def test_constrained_columns_are_proven_and_seen_to_be_monotone(loss, leaf_step):
    if loss == "hinge" and leaf_step == "newton":
        pytest.skip("without curvature")
    X, y = rows_with_holes()
    target = y if loss == "squared" else np.where(y > 0, "b", "a")
    options = {
        "loss": loss,
        "steps": 40,
        "max_depth": 5,
        "learning_rate": 0.5,
        "categorical": [4],
        "leaf_step": leaf_step,
    }
    ways = {0: 1, 1: -1}
    model = pb.fit_stagewise(X, target, monotone=ways, **options)
    free = pb.fit_stagewise(X, target, **options)
    rng = np.random.default_rng(1)
    n = 100_000
    rows = X[rng.integers(0, len(X), n)]
    for j, way in ways.items():
        assert pb.is_monotone(model, j, way)
        assert not pb.is_monotone(model, j, -way)
        assert not pb.is_monotone(free, j)
        low, high = rows.copy(), rows.copy()
        pair = np.sort(rng.choice(X[~np.isnan(X[:, j]), j], (2, n)), axis=0)
        low[:, j], high[:, j] = pair
        rise = pb.decision_function(model, high) - pb.decision_function(model, low)
        assert (way * rise >= 0).all()
        assert rise.any()
    assert not pb.is_monotone(model, 2)


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
            categorical=[4],
        )
        for j, way in product(range(4), (1, -1)):
            proven, seen = pb.is_monotone(tree, j, way), is_monotone_on_grid(tree, j, way)
            assert proven == seen
            actual.add((proven, bool((tree.column == j).any())))
    assert actual >= {(True, True), (False, True), (True, False)}


def test_forests_and_what_has_no_proof():
    X, y = rows_with_holes(300)
    forest = pb.fit_forest(X, y, members=3, task="regression", categorical=[4], rng=0)
    assert not pb.is_monotone(forest, 0)
    with pytest.raises(ValueError, match="column: expected one of numbers, got column 4, a cat"):
        pb.is_monotone(forest, 4)
    with pytest.raises(ValueError, match="column: "):
        pb.is_monotone(forest, 5)
    with pytest.raises(ValueError, match="direction: expected None, 1 or -1, got 2"):
        pb.is_monotone(forest, 1, 2)
    for model in (pb.fit_cart(X, y > 0), pb.fit_adaboost(X, y > 0, rounds=3)):
        with pytest.raises(NotImplementedError, match="model: expected a sum of trees"):
            pb.is_monotone(model, 0)
    with pytest.raises(ValueError, match="monotone: expected columns of numbers, got column 4"):
        pb.fit_stagewise(X, y, categorical=[4], monotone={4: 1})
    with pytest.raises(ValueError, match="monotone: expected different columns"):
        pb.fit_stagewise(X, y, monotone=[(1, 1), (1, -1)])
