"""Forests and bagging: bags, out-of-bag records, threads, equality with single trees."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import pboost as pb
from pboost._core import tree_walk
from pboost.models import random_forest as ranked_trees


def problem(n=300, d=5, seed=0):
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, d))
    return X, (X[:, 0] + X[:, 1] ** 2 + 0.5 * r.normal(size=n) > 0.7).astype(int)


def same(a, b):
    if a is None or b is None:
        return a is b
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def assert_same_forest(a, b):
    for name in ("root", "feature", "threshold", "children", "value", "impurity", "weight"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert same(a.oob.prediction, b.oob.prediction)
    assert a.oob.error == b.oob.error


@pytest.mark.parametrize("search", ["exact", "binned"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_one_member_on_all_rows_is_fit_cart(task, search):
    X, y = problem()
    y = y if task == "classification" else X[:, 0] + 0.1 * X[:, 1]
    w = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    options = {"task": task, "search": search, "max_depth": 7, "sample_weight": w}
    forest = pb.fit_random_forest(
        X, y, n_estimators=1, bootstrap=False, max_features=None, **options
    )
    tree = pb.fit_cart(X, y, **options)
    for name in ("feature", "threshold", "children", "value", "weight", "n_rows"):
        assert np.array_equal(getattr(forest[0], name), getattr(tree, name)), name
    assert np.array_equal(pb.predict(forest, X), pb.predict(tree, X))
    # The rows of weight 0 are in no bag, and have no part in the error.
    assert np.array_equal(forest.oob.n_estimators, w == 0)
    assert np.isnan(forest.oob.error)


@pytest.mark.parametrize("search", ["exact", "binned"])
def test_threads_do_not_matter(search):
    X, y = problem(30_000, 8)
    options = {"n_estimators": 9, "max_depth": 6, "search": search, "rng": 3}
    assert_same_forest(
        pb.fit_random_forest(X, y, n_threads=1, **options),
        pb.fit_random_forest(X, y, n_threads=2, **options),
    )


def test_first_trees_do_not_depend_on_the_number_of_members():
    X, y = problem()
    few, many = (pb.fit_random_forest(X, y, n_estimators=k, rng=7) for k in (2, 5))
    assert np.array_equal(few.threshold, many.threshold[: few.root[-1]])


@pytest.mark.parametrize(("replace", "bag"), [(True, None), (True, 100), (False, 100)])
def test_rows_out_of_bag_are_out_of_bag(replace, bag):
    """A column that tells rows apart: a tree is right on its bag, whatever the labels."""
    n = 300
    r = np.random.default_rng(0)
    X, y = np.arange(n, dtype=float)[:, None], r.permutation(np.repeat(["a", "b", "c"], n // 3))
    forest = pb.fit_random_forest(X, y, n_estimators=40, bootstrap=replace, max_samples=bag, rng=1)
    for tree in forest:
        right = pb.predict(tree, X) == y
        drawn = int(tree.n_rows[0])
        assert drawn == bag if not replace else drawn < n
        # Rows in the bag are right, so at most those out of it are wrong.
        assert (~right).sum() <= n - drawn
    share = forest.oob.n_estimators.mean() / len(forest)
    at_all = 1 - (1 - 1 / n) ** (bag or n) if replace else bag / n
    assert abs(share - (1 - at_all)) < 0.02
    # One member alone: its prediction for rows out of the bag, nothing for others.
    first_model = pb.fit_random_forest(
        X, y, n_estimators=1, bootstrap=replace, max_samples=bag, rng=1
    )
    out = first_model.oob.n_estimators == 1
    assert out.sum() == n - first_model[0].n_rows[0]
    assert np.array_equal(first_model.oob.prediction[out], pb.predict_proba(first_model, X[out]))
    assert np.isnan(first_model.oob.prediction[~out]).all()
    wrong = np.argmax(first_model.oob.prediction[out], axis=1) != np.searchsorted(
        ["a", "b", "c"], y[out]
    )
    assert first_model.oob.error == pytest.approx(wrong.mean(), abs=1e-15)
    assert (pb.predict(first_model, X)[~out] == y[~out]).all()


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_all_rows_in_the_bag(task):
    """Nothing is out of the bag, as with all rows drawn once, or with few rows."""
    X, y = problem(60)
    forest = pb.fit_random_forest(X, y, n_estimators=3, task=task, bootstrap=False, rng=0)
    assert np.array_equal(pb.predict(forest, X), y)
    assert np.isnan(forest.oob.error)
    assert not forest.oob.n_estimators.any()
    drawn = set()
    for seed in range(20):
        few = pb.fit_random_forest([[0.0], [1.0]], [0, 1], n_estimators=1, task=task, rng=seed)
        drawn.add(int(few.oob.n_estimators.sum()))
    assert drawn == {0, 1}


def test_weights_whose_sums_overflow_in_a_bag():
    X, y = problem(30)
    weight = np.where(np.arange(30) == 0, 1.7e308, 1.0)
    for fit in (
        pb.fit_random_forest,
        lambda *given, **how: pb.fit_bagging(pb.fit_cart, *given, **how),
    ):
        with pytest.raises(ValueError, match="sample_weight: expected weights with a finite sum"):
            fit(X, y, n_estimators=2, sample_weight=weight, rng=0)


@pytest.mark.full
def test_out_of_bag_error_is_that_of_new_rows():
    X, y = problem(4000)
    new, truth = problem(4000, seed=5)
    forest = pb.fit_random_forest(X, y, n_estimators=40, rng=0)
    assert abs(forest.oob.error - (pb.predict(forest, new) != truth).mean()) < 0.02
    numbers = X[:, 0] ** 2 + X[:, 1]
    forest = pb.fit_random_forest(X, numbers, task="regression", n_estimators=40, rng=0)
    error = np.mean((pb.predict(forest, new) - new[:, 0] ** 2 - new[:, 1]) ** 2)
    assert forest.oob.error == pytest.approx(error, rel=0.25)
    assert error < 0.2 * numbers.var()


@pytest.mark.full
def test_accuracy_is_that_of_scikit_learn():
    ensemble = pytest.importorskip("sklearn.ensemble")
    X, y = problem(1500, 8)
    new, truth = problem(4000, 8, seed=5)
    theirs = ensemble.RandomForestClassifier(100, random_state=0).fit(X, y).score(new, truth)
    ours = (pb.predict(pb.fit_random_forest(X, y, rng=0), new) == truth).mean()
    assert ours > theirs - 0.01


def test_columns_and_binned_columns_give_the_same_forest():
    X, y = problem()
    options = {"n_estimators": 5, "rng": 2}
    assert_same_forest(
        pb.fit_random_forest(X, y, search="exact", **options),
        pb.fit_random_forest(pb.data.sort_columns(X), y, **options),
    )
    assert_same_forest(
        pb.fit_random_forest(X, y, search="binned", max_bins=32, **options),
        pb.fit_random_forest(pb.data.bin_columns(X, max_bins=32), y, **options),
    )


def test_prediction_is_the_mean_of_the_trees():
    X, y = problem(200)
    y = y + 2 * (X[:, 2] > 1)
    forest = pb.fit_random_forest(X, y, n_estimators=7, rng=0)
    new = problem(77, seed=2)[0]
    mean = sum(pb.predict_proba(tree, new) for tree in forest) / 7
    assert np.array_equal(pb.predict_proba(forest, new), mean)
    assert np.allclose(mean.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert np.array_equal(pb.predict(forest, new), forest.classes[mean.argmax(axis=1)])
    leaves = np.column_stack([pb.inspection.apply(tree, new) for tree in forest])
    assert np.array_equal(pb.inspection.apply(forest, new), leaves)
    importance = np.mean([pb.feature_importances(tree) for tree in forest], axis=0)
    assert np.array_equal(pb.feature_importances(forest), importance)
    cost = sum(pb.prediction_cost(tree, new) for tree in forest)
    assert np.array_equal(pb.prediction_cost(forest, new), cost)


def test_values_that_are_not_finite_are_refused():
    X, y = problem()
    forest = pb.fit_random_forest(X, y, n_estimators=2, rng=0)
    X[5, 1] = np.inf
    with pytest.raises(ValueError, match="X: "):
        pb.predict(forest, X)
    with pytest.raises(ValueError, match="X: "):
        pb.fit_random_forest(X, y, n_estimators=2)


def test_class_without_rows_in_a_bag():
    X, _ = problem(60)
    y = np.zeros(60, dtype=int)
    y[0] = 1
    forest = pb.fit_random_forest(X, y, n_estimators=20, max_samples=10, rng=0)
    assert forest.value.shape[1] == 2
    assert any(tree.n_nodes == 1 for tree in forest)
    assert np.isfinite(pb.predict_proba(forest, X)).all()


def test_files_and_pickles(tmp_path):
    X, y = problem()
    new = problem(50, seed=3)[0]
    for task, target in (("classification", np.array(["no", "yes"])[y]), ("regression", X[:, 0])):
        forest = pb.fit_random_forest(X, target, task=task, n_estimators=4, rng=0, max_depth=5)
        pb.save(forest, tmp_path / "forest.npz")
        for copy in (pb.load(tmp_path / "forest.npz"), pickle.loads(pickle.dumps(forest))):
            assert_same_forest(forest, copy)
            assert np.array_equal(pb.predict(copy, new), pb.predict(forest, new))


def test_models_are_frozen():
    X, y = problem()
    forest = pb.fit_random_forest(X, y, n_estimators=2, rng=0)
    with pytest.raises(AttributeError):
        forest.root = None
    for array in (forest.threshold, forest.oob.prediction):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_root_is_checked():
    X, y = problem()
    forest = pb.fit_random_forest(X, y, n_estimators=3, rng=0)
    _, arrays = forest.members()
    header = {"n_features": 5, "feature_names": None, "settings": {}}
    for root in (
        [0, 1],
        [0, 5, 3, forest.root[-1]],
        [1, *forest.root[1:]],
        [0, 2, forest.root[-1]],
    ):
        with pytest.raises(ValueError, match=r"root|feature|children"):
            pb.models.RandomForest.from_parts(header, {**arrays, "root": np.array(root)})


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"max_features": 6}, "max_features"),
        ({"max_features": 0}, "max_features"),
        ({"max_features": 1.5}, "max_features"),
        ({"max_features": "all"}, "max_features"),
        ({"max_samples": 0}, "max_samples"),
        ({"max_samples": 301, "bootstrap": False}, "max_samples"),
        ({"task": "ranking"}, "task"),
        ({"max_depth": 0}, "max_depth"),
    ],
)
def test_bad_options(options, match):
    X, y = problem()
    with pytest.raises(ValueError, match=f"^{match}: "):
        pb.fit_random_forest(X, y, **options)


def test_bad_types_and_targets():
    X, y = problem()
    with pytest.raises(TypeError, match=r"^bootstrap: "):
        pb.fit_random_forest(X, y, bootstrap="yes")
    with pytest.raises(TypeError, match=r"^rng: "):
        pb.fit_random_forest(X, y, rng="seed")
    with pytest.raises(ValueError, match=r"^y: "):
        pb.fit_random_forest(X, np.zeros(300))
    with pytest.raises(ValueError, match=r"^y: "):
        pb.fit_random_forest(X, np.full(300, np.nan), task="regression")
    forest = pb.fit_random_forest(X, X[:, 0], task="regression", n_estimators=2, rng=0)
    with pytest.raises(TypeError, match="no probabilities"):
        pb.predict_proba(forest, X)
    with pytest.raises(IndexError, match="tree: "):
        forest[2]


def ranked_problem(kind, depth, n=3000, d=4):
    r = np.random.default_rng(depth)
    X = r.normal(size=(n, d)).round(2)
    score = X.sum(axis=1) + r.normal(size=n)
    if kind == "regression":
        return X, score
    return X, score > 0 if kind == "two" else np.digitize(score, [-1, 1])


@pytest.mark.parametrize("kind", ["two", "three", "regression"])
@pytest.mark.parametrize("depth", range(1, 9))
@pytest.mark.parametrize("max_bins", [8, 200, None])
def test_sums_on_ranks_are_those_of_the_walk(kind, depth, max_bins):
    X, y = ranked_problem(kind, depth)
    task = "regression" if kind == "regression" else "classification"
    options = {"task": task, "n_estimators": 40, "max_depth": depth, "rng": 0}
    search = {"search": "exact"} if max_bins is None else {"search": "binned", "max_bins": max_bins}
    forest = pb.fit_random_forest(X, y, max_features=None, **search, **options)
    assert (forest.ranked is not None) == tree_walk.has_ranks()
    if forest.ranked is not None and depth > 6:  # ranks of 8 bits or of 16
        assert forest.ranked.is_narrow == (max_bins is not None)
    # Values at thresholds, and on either side of them; the last tile is not full.
    cuts = np.resize(forest.threshold[forest.feature >= 0], X.shape)
    rows = np.vstack([X, cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf)])[:-7]
    total = sum(tree.value[tree.nodes_of(rows)] for tree in forest)
    try:
        for level in range(3):
            tree_walk.use_simd_level(level)
            assert np.array_equal(forest.total(rows), total.reshape(len(rows), -1))
            assert np.array_equal(forest.total(rows[:40]), total[:40].reshape(40, -1))
    finally:
        tree_walk.use_simd_level(2)


def test_ranks_are_not_used_where_a_walk_is_faster_or_they_do_not_fit(monkeypatch):
    X, y = problem()
    assert pb.fit_random_forest(X, y, n_estimators=3).ranked is None  # deep
    wide = np.random.default_rng(0).normal(size=(len(y), 40))
    alone = pb.fit_random_forest(wide, y, n_estimators=1, max_depth=8, rng=0)
    assert alone.ranked is None  # few nodes are reached, and ranks are to be found in 40 columns
    shallow = {"n_estimators": 60, "max_depth": 5, "min_samples_leaf": 5, "rng": 0}
    forest = pb.fit_random_forest(X, y, **shallow)
    assert (forest.ranked is not None) == tree_walk.has_ranks()
    monkeypatch.setattr(ranked_trees, "NO_EDGE", 40)
    walked = pb.fit_random_forest(X, y, **shallow)
    assert walked.ranked is None
    assert np.array_equal(pb.predict_proba(walked, X), pb.predict_proba(forest, X))


def test_rows_on_ranks_must_be_finite():
    X, y = problem()
    forest = pb.fit_random_forest(X, y, n_estimators=60, max_depth=5, rng=0)
    X[70, 3] = np.nan
    pb.predict(forest, X)
    with pytest.raises(ValueError, match="nan in column 3, row 70"):
        pb.predict(replace(forest, missing=None), X)
    X[70, 3] = np.inf
    with pytest.raises(ValueError, match="inf in column 3, row 70"):
        pb.predict(forest, X)
