"""Rows with missing values, and levels in sets, on their way through trees: against a slow walk."""

from dataclasses import replace

import numpy as np
import pytest
from sided_trees import leaves_of, random_forest, random_rows, random_tree

import pboost as pb
from pboost._core import tree_walk
from pboost.models.random_forest import join_trees

LAYOUTS = [("C", np.float64), ("F", np.float64), ("C", np.float32), ("F", np.float32)]


def summed(forest, X):
    """Return the sums over trees of the values of the leaves, tree after tree."""
    total = np.zeros((len(X), *forest.value.shape[1:]))
    for tree, node in zip(forest, leaves_of(forest, X).T, strict=True):
        total += tree.value[node]
    return total


@pytest.mark.parametrize("categories", [(), (1, 4)])
@pytest.mark.parametrize(("order", "dtype"), LAYOUTS)
@pytest.mark.parametrize("n", [0, 1, 2, 23, 24, 64, 65, 200])
def test_leaves_and_sums_are_those_of_the_definition(n, order, dtype, categories):
    rng = np.random.default_rng([1, n, len(categories)])
    forest = random_forest(rng, 9, 5, categories=categories, n_classes=3, depth=6)
    X = random_rows(rng, n, 5, categories, dtype=dtype, order=order)
    kept = X.copy()
    expected = leaves_of(forest, X)
    assert np.array_equal(forest.nodes_of(X), expected)
    assert np.array_equal(np.isnan(X), np.isnan(kept))
    for tree, node in zip(forest, expected.T, strict=True):
        assert np.array_equal(tree.nodes_of(X), node)
    total = summed(forest, X)
    assert (forest.total(X) == total).all()
    assert (pb.predict_proba(forest, X) == total / 9).all()
    single = [forest.total(X[i : i + 1]) for i in range(n)]
    assert not n or (np.concatenate(single) == total).all()


@pytest.mark.parametrize("depth", [1, 3, 8, 13, 20])
@pytest.mark.parametrize("holes", [0.0, 0.02, 1.0])
def test_trees_on_ranks_and_deep_trees(depth, holes):
    rng = np.random.default_rng([2, depth])
    d = 3
    trees = [random_tree(rng, d, depth=min(depth, 7), n_classes=2) for _ in range(20)]
    forest = join_trees(trees, {}, None)
    X = random_rows(rng, 150, d, holes=holes)
    assert (forest.total(X) == summed(forest, X)).all()
    if tree_walk.has_ranks() and depth in (3, 8):
        assert forest.ranked is not None
        assert (forest.memo.get("ranked_holes") is not None) == bool(holes)
    if depth > 12:  # a path that turns back and forth
        n = 2 * depth + 1
        feature, children = np.full(n, -1), np.full((n, 2), -1)
        feature[:-1:2] = rng.integers(0, d, depth)
        children[:-1:2, 0], children[:-1:2, 1] = np.arange(1, n, 2), np.arange(2, n, 2)
        deep = replace(
            trees[0],
            feature=feature,
            threshold=np.where(feature < 0, 0.0, 1.0),
            children=children,
            value=rng.dirichlet([1, 1], n),
            impurity=np.ones(n),
            weight=np.ones(n),
            n_rows=np.ones(n),
            missing=np.where(feature < 0, 0, rng.random(n) < 0.8),
        )
        assert deep.depth == depth
        assert np.array_equal(deep.nodes_of(X)[:, None], leaves_of(deep, X))


@pytest.mark.parametrize("level", [0, 1, 2])
def test_variants_of_the_kernel_on_ranks(level):
    rng = np.random.default_rng(3)
    forest, X = random_forest(rng, 30, 4, depth=4), random_rows(rng, 130, 4)
    expected = summed(forest, X)
    try:
        tree_walk.use_simd_level(level)
        assert (forest.total(X) == expected).all()
    finally:
        tree_walk.use_simd_level(2)


def test_rows_without_holes_make_nothing_more():
    rng = np.random.default_rng(4)
    forest = random_forest(rng, 5, 3)
    X = random_rows(rng, 100, 3, holes=0.0)
    forest.total(X), forest.nodes_of(X)
    assert forest.memo.keys() <= {"ranked"}
    X[40, 1] = np.nan
    assert (forest.total(X) == summed(forest, X)).all()
    assert "holes" in forest.memo


def test_threads_agree():
    rng = np.random.default_rng(5)
    forest = random_forest(rng, 12, 4, categories=(2,), depth=8)
    X = random_rows(rng, 3000, 4, (2,), holes=0.01)
    parts = [forest.total(X[i : i + 500]) for i in range(0, 3000, 500)]
    assert (forest.total(X) == np.concatenate(parts)).all()


@pytest.mark.parametrize("kind", ["tree", "forest", "sum"])
def test_what_has_no_sides_refuses_missing_values_and_all_refuse_infinities(kind):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    model = {
        "tree": lambda: pb.fit_cart(X, y, task="regression"),
        "forest": lambda: pb.fit_random_forest(X, y, task="regression", n_estimators=3),
        "sum": lambda: pb.fit_gradient_boosting(X, y, n_estimators=3),
    }[kind]()
    X[7, 1] = np.nan
    assert np.isfinite(pb.predict(model, X)).all()
    old = (
        replace(model, trees=replace(model.trees, missing=None))
        if kind == "sum"
        else replace(model, missing=None)
    )
    with pytest.raises(ValueError, match=r"column 1, row 7"):
        pb.predict(old, X)
    X[9, 2] = -np.inf
    for asked in (model, old):
        with pytest.raises(ValueError, match=r"column . *row|column ., row"):
            pb.predict(asked, X)
    with pytest.raises(ValueError, match="column 2, row 9"):
        pb.predict(model, X)
