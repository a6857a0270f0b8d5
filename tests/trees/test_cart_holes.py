"""Trees on columns with holes and categories, against the twin."""

from dataclasses import replace

import numpy as np
import pytest
from reference.cart import risk
from reference.tables import best_cut, risk_of_cut, set_cuts
from reference.tables import fit_tree as fit_twin
from special_problems import asked_of, draw, edges_of, problem

import pboost as pb
from pboost.data.targets import IMPURITIES
from pboost.growth.tree import CartLimits
from pboost.trees.cart import fit_tree
from pboost.trees.random_forest import nodes_of_rows

KINDS = [(2, "gini"), (2, "entropy"), (2, "error"), (2, "kearns_mansour"), (0, "squared_error")]
KINDS += [(3, "gini"), (3, "entropy"), (5, "error"), (7, "gini")]


def limits(criterion, d, **more):
    options = {
        "depth": 2**31 - 1,
        "leaves": 2**20,
        "min_samples_leaf": 1,
        "min_samples_split": 2,
        **more,
    }
    return CartLimits(criterion, **{"features": d, "growth": "depth_first", **options})


def check(seed, n_classes, criterion, max_bins, *, smoothing=0.0, n_threads=1, **drawn):
    """A tree is that of the twin."""
    rng = np.random.default_rng(seed)
    X, y, weight, levels = draw(rng, n_classes, **drawn)
    options = {
        "min_samples_leaf": int(rng.choice([1, 1, 2, 5])),
        "min_samples_split": int(rng.choice([2, 2, 6])),
    }
    depth = int(rng.integers(1, 5)) if rng.random() < 0.5 else 2**31 - 1
    of = problem(X, y, weight, levels, n_classes, max_bins)
    if X.shape[1] == 0:
        return
    own = limits(criterion, X.shape[1], depth=depth, categorical_smoothing=smoothing, **options)
    tree = fit_tree(of, weight, own, {}, 0, n_threads)
    twin = fit_twin(
        X,
        y,
        criterion=criterion,
        n_classes=n_classes,
        sample_weight=weight,
        max_depth=depth,
        edges=edges_of(of.columns, levels),
        levels=levels,
        smoothing=smoothing,
        **options,
    )
    expected = [(n.feature, n.threshold, n.missing, n.subset, n.n_rows) for n in twin]
    assert asked_of(tree) == expected, seed
    np.testing.assert_allclose(tree.weight, [n.weight for n in twin], rtol=1e-9)
    np.testing.assert_allclose(tree.value, [n.value for n in twin], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("n_classes", "criterion"), KINDS)
@pytest.mark.parametrize("max_bins", [None, 5, 256])
def test_numbers(n_classes, criterion, max_bins):
    for case in range(20):
        check([91, case, n_classes, len(criterion)], n_classes, criterion, max_bins, categories=0)


@pytest.mark.full_for("0.5-None-*", "2.0-*", "*-5-error", "*-None-3-entropy")
@pytest.mark.parametrize(("n_classes", "criterion"), KINDS)
@pytest.mark.parametrize("max_bins", [None, 5])
@pytest.mark.parametrize("smoothing", [0.0, 0.5, 2.0])
def test_categories(n_classes, criterion, max_bins, smoothing):
    for case in range(15):
        seed = [92, case, n_classes, len(criterion)]
        check(seed, n_classes, criterion, max_bins, smoothing=smoothing)


@pytest.mark.parametrize(("n_classes", "criterion"), KINDS)
def test_smoothing_takes_from_what_a_set_lowers(n_classes, criterion):
    """No cut counts with a lower risk than it has, nor with a higher one than the node has."""
    for case in range(40):
        rng = np.random.default_rng([97, case, n_classes, len(criterion)])
        X, y, weight, _ = draw(rng, n_classes, numbers=0, categories=1)
        w = np.ones(len(y)) if weight is None else weight
        x, y, w = X[w > 0, 0], y[w > 0], w[w > 0]
        tried = list(set_cuts(0, x, y, w, n_classes, float(rng.choice([0.1, 0.5, 2.0]))))
        counts = [risk_of_cut(cut, y, w, criterion, n_classes) for cut in tried]
        own = [risk_of_cut(cut._replace(kept=1.0), y, w, criterion, n_classes) for cut in tried]
        node = risk(y, w, criterion, n_classes)
        for low, count in zip(own, counts, strict=True):
            assert low - 1e-9 * node <= count <= node * (1 + 1e-9)


@pytest.mark.full
@pytest.mark.parametrize(("n_classes", "criterion"), KINDS[:5])
@pytest.mark.parametrize("max_bins", [None, 5])
def test_the_best_of_all_sets(n_classes, criterion, max_bins):
    """Beginnings of the order are as good as any set of levels; 120 cases each, 1200 in all."""
    for case in range(120):
        rng = np.random.default_rng([93, case, n_classes, len(criterion)])
        X, y, weight, levels = draw(
            rng, n_classes, n=int(rng.integers(6, 60)), numbers=0, categories=1
        )
        of = problem(X, y, weight, levels, n_classes, max_bins)
        tree = fit_tree(of, weight, limits(criterion, 1, depth=1), {}, 0, 1)
        w = np.ones(len(y)) if weight is None else weight
        best = best_cut(
            X[w > 0], y[w > 0], w[w > 0], criterion, n_classes, levels=levels, every=True
        )
        if tree.n_nodes == 1:
            assert best is None or len(np.unique(y[w > 0])) == 1
            continue
        after = (tree.weight * tree.impurity)[1:].sum()
        assert after <= best.after + 1e-9 * (tree.weight * tree.impurity)[0] + 1e-12


@pytest.mark.parametrize("n_classes", [2, 0])
@pytest.mark.parametrize("max_bins", [None, 256])
def test_rows_reach_the_leaves_in_which_they_were_counted(n_classes, max_bins):
    for case in range(15):
        rng = np.random.default_rng([94, case, n_classes])
        X, y, weight, levels = draw(rng, n_classes, n=150)
        of = problem(X, y, weight, levels, n_classes, max_bins)
        if not X.shape[1]:
            continue
        criterion = "gini" if n_classes else "squared_error"
        tree = fit_tree(of, weight, limits(criterion, X.shape[1]), {}, 0, 1)
        rows = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
        count = np.bincount(nodes_of_rows(tree, of, rows), minlength=tree.n_nodes)
        np.testing.assert_array_equal(count, np.where(tree.feature == -1, tree.n_rows, 0))


@pytest.mark.parametrize("growth", ["depth_first", "best_first"])
@pytest.mark.parametrize("max_bins", [None, 256])
def test_threads_give_the_same_tree(growth, max_bins, monkeypatch):
    """Large nodes are searched and partitioned by several threads."""
    monkeypatch.setattr("pboost.threads.MIN_CELLS", 200)
    for n_classes, criterion in ((2, "gini"), (3, "entropy"), (0, "squared_error")):
        rng = np.random.default_rng([95, n_classes])
        X, y, _, levels = draw(rng, n_classes, n=600, numbers=4, categories=2, share=0.2)
        of = problem(X, y, None, levels, n_classes, max_bins)
        own = limits(criterion, X.shape[1], features=3)
        trees = [fit_tree(of, None, replace(own, growth=growth), {}, 7, k) for k in (1, 2)]
        assert asked_of(trees[0]) == asked_of(trees[1])


def test_columns_that_are_drawn():
    """A column with holes is drawn once, and is not constant where some rows have its value."""
    X = np.array([[1.0, 0, 5], [np.nan, 0, 5], [1, 0, 5], [np.nan, 0, 5]])
    y = np.array([0, 1, 0, 1])
    of = problem(X, y, None, {}, 2)
    for key in range(20):
        tree = fit_tree(of, None, limits("gini", 3, features=1), {}, key, 1)
        assert asked_of(tree)[0][:3] == (0, np.finfo(float).max, 1)


def test_all_rows_missing():
    X = np.full((6, 2), np.nan)
    tree = pb.fit_cart(X, [0, 1, 0, 1, 1, 1])
    assert tree.n_nodes == 1
    assert pb.predict(tree, X).tolist() == [1] * 6


def test_options():
    X = np.array([[1.0], [np.nan], [2.0], [3.0]])
    y = [0, 1, 0, 1]
    with pytest.raises(ValueError, match="nan in column 0, row 1"):
        pb.fit_cart(X, y, missing="error")
    with pytest.raises(ValueError, match="categorical_smoothing"):
        pb.fit_cart(X, y, categorical_smoothing=-1.0)


@pytest.mark.full
@pytest.mark.parametrize("n_classes", [3, 5, 10])
@pytest.mark.parametrize(
    ("criterion", "hits", "share"), [("gini", 0.95, 0.996), ("entropy", 0.9, 0.992)]
)
def test_sets_of_more_classes_are_nearly_the_best(n_classes, criterion, hits, share):
    """Beginnings along the first component, and single levels, against all sets of levels."""
    actual = []
    for case in range(300):
        rng = np.random.default_rng([96, case, n_classes])
        size = int(rng.integers(3, 9))
        mass = rng.integers(0, 10, (size, n_classes)).astype(float)
        mass[np.arange(size), rng.integers(0, n_classes, size)] += 1
        mass[0] += 1  # every class is there
        level, label = np.nonzero(mass)
        weight = mass[level, label]
        of = problem(level[:, None].astype(float), label, weight, {0: size}, n_classes)
        tree = fit_tree(of, weight, limits(criterion, 1, depth=1), {}, 0, 1)
        total = (tree.weight * tree.impurity)[0]
        above = np.arange(1, 2**size - 1)[:, None] >> np.arange(size) & 1
        sides = np.concatenate([above @ mass, (1 - above) @ mass])
        part = sides / sides.sum(axis=1, keepdims=True)
        risk = sides.sum(axis=1) * IMPURITIES[criterion](part)
        after = (risk[: len(above)] + risk[len(above) :]).min()
        actual.append((total - (tree.weight * tree.impurity)[1:].sum()) / (total - after))
    assert np.mean(np.array(actual) > 1 - 1e-9) >= hits
    assert np.mean(actual) >= share
