"""Trees whose rows go both ways where their value is missing, against a slow twin."""

import numpy as np
import pandas as pd
import pytest
from reference.both_ways import grown
from reference.split import impurity

import pboost as pb


def rows_with_holes(seed, n=40, n_classes=2):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 3)), 1) + 0.0
    score = np.nan_to_num(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    X[rng.random((n, 3)) < 0.2] = np.nan
    X[0] = np.nan
    w = [None, rng.integers(1, 4, n).astype(float), rng.exponential(size=n)][seed % 3]
    return X, y, w


def gini(sums):
    """Of weight and class masses."""
    return sums[0] - (sums[1:] ** 2).sum() / sums[0]


def squares(sums):
    """Of weight, sum and sum of squares."""
    return sums[2] - sums[1] ** 2 / sums[0]


def of_two(criterion):
    return lambda sums: impurity(criterion, sums[2], sums[1])


def preorder(node):
    yield node
    for child in node[5] if len(node) > 2 else ():
        yield from preorder(child)


def check(tree, twin, levels=(), *, exact=True):
    """Compare nodes with those of the twin, whatever splits that tie within rounding."""
    nodes = list(preorder(twin))
    assert tree.n_nodes == len(nodes)
    for k, node in enumerate(nodes):
        assert tree.weight[k] == pytest.approx(float(node[0][0]), rel=1e-9)
        assert tree.n_rows[k] == node[1]
        if tree.labels is None:
            assert tree.value[k] == pytest.approx(float(node[0][1] / node[0][0]), abs=1e-9)
        else:
            assert np.allclose(tree.value[k], (node[0][1:] / node[0][0]).astype(float), atol=1e-9)
        if len(node) == 2:
            assert tree.feature[k] == -1
            continue
        assert tree.column[k] == node[2]
        if exact and node[2] not in levels:
            assert tree.threshold[k] == node[3]
        assert tree.share[k] == pytest.approx(node[4], rel=1e-9)
        assert tree.missing[k] == (tree.share[k] > 0.5)


@pytest.mark.parametrize("search", ["exact", "binned"])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "kearns-mansour"])
def test_trees_are_those_of_the_twin(criterion, search):
    for seed in range(6):
        X, y, w = rows_with_holes(seed)
        limits = {"depth": 99, "min_leaf": 1 + seed % 3, "min_split": 2 + seed % 4}
        weights = np.ones(len(y)) if w is None else w
        twin = grown(X, np.eye(2)[y], weights, of_two(criterion), **limits)
        limits["max_depth"] = limits.pop("depth")
        tree = pb.fit_cart(
            X, y, criterion=criterion, sample_weight=w, missing="both", search=search, **limits
        )
        check(tree, twin, exact=search == "exact")  # bins end at edges of all rows


@pytest.mark.parametrize("n_classes", [3, 5])
def test_of_more_classes(n_classes):
    for seed in range(4):
        X, y, w = rows_with_holes(seed, n_classes=n_classes)
        weights = np.ones(len(y)) if w is None else w
        twin = grown(X, np.eye(n_classes)[y], weights, gini)
        check(pb.fit_cart(X, y, sample_weight=w, missing="both"), twin)


def test_of_numbers():
    for seed in range(6):
        X, y, w = rows_with_holes(seed)
        y = y + np.random.default_rng(seed).normal(size=len(y))
        weights = np.ones(len(y)) if w is None else w
        twin = grown(X, np.c_[y, y * y], weights, squares)
        tree = pb.fit_cart(X, y, task="regression", sample_weight=w, missing="both")
        check(tree, twin)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_sets_of_levels_are_the_best(task):
    for seed in range(6):
        X, y, w = rows_with_holes(seed)
        rng = np.random.default_rng([seed, 1])
        X[:, 0] = np.where(rng.random(len(y)) < 0.2, np.nan, rng.integers(0, 5, len(y)))
        weights = np.ones(len(y)) if w is None else w
        numbers = y + 0.1 * rng.normal(size=len(y))
        is_class = task == "classification"
        target = np.eye(2)[y] if is_class else np.c_[numbers, numbers**2]
        twin = grown(X, target, weights, gini if is_class else squares, depth=1, levels=(0,))
        tree = pb.fit_cart(
            X,
            y if is_class else numbers,
            task=task,
            sample_weight=w,
            max_depth=1,
            missing="both",
            categorical=[0],
        )
        if tree.n_nodes > 1 and twin[2] == 0 == tree.column[0]:
            after = [(tree.weight * tree.impurity)[1:].sum()]
            risk = gini if is_class else squares
            expected = float(sum(risk(child[0]) for child in twin[5]))
            assert after[0] == pytest.approx(expected, rel=1e-9)
        else:
            check(tree, twin)


def expected(tree, x, node=0):
    """Return the expected value of a row."""
    if tree.feature[node] < 0:
        return tree.value[node]
    value = x[tree.column[node]]
    if tree.feature[node] < tree.n_features:
        above = float(value > tree.threshold[node])
    else:
        words = tree.subset[tree.feature[node] - tree.n_features]
        above = 0.0 if np.isnan(value) else float(words[int(value) // 64] >> np.uint64(value) & 1)
    q = tree.share[node] if np.isnan(value) else above
    first, second = (expected(tree, x, child) for child in tree.children[node])
    return (1 - q) * first + q * second


def test_routes():
    X, y, w = rows_with_holes(7, 150, 3)
    for target, task in ((y, "classification"), (y * 1.5, "regression")):
        tree = pb.fit_cart(X, target, task=task, sample_weight=w, missing="both", max_depth=5)
        means = np.array([expected(tree, x) for x in X])
        hard = np.array([expected(_sharp(tree), x) for x in X])
        if task == "regression":
            assert np.allclose(pb.decision_function(tree, X, route="expected"), means)
            assert np.allclose(pb.predict(tree, X), hard)
            continue
        found = pb.predict_proba(tree, X, route="expected")
        assert np.allclose(found, means)
        assert np.allclose(found.sum(axis=1), 1)
        assert np.allclose(pb.predict_proba(tree, X), hard)
        assert (pb.evaluation_cost(tree, X) <= tree.depth).all()
    with pytest.raises(TypeError, match="no probabilities"):
        pb.predict_proba(tree, X, route="expected")
    with pytest.raises(ValueError, match="route"):
        pb.predict_proba(tree, X, route="sample")


class _sharp:  # noqa: N801
    """A tree whose rows take the likelier child."""

    def __init__(self, tree):
        self.tree, self.share = tree, tree.missing

    def __getattr__(self, name):
        return getattr(self.tree, name)


def test_where_no_row_is_missing():
    X, y, w = rows_with_holes(1, 100)
    X = np.nan_to_num(X)
    one, other = (pb.fit_cart(X, y, sample_weight=w, missing=m) for m in ("learn", "both"))
    assert other.share is None
    for name in ("feature", "threshold", "children", "value", "missing"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert np.array_equal(pb.predict_proba(other, X, route="expected"), pb.predict_proba(one, X))
    X[3, 0] = np.nan  # in one column only
    tree = pb.fit_cart(X, y, missing="both")
    assert np.isin(tree.share[tree.feature != 0], (0, 1)).all()


def test_parts_of_rows_add_up():
    X, y, w = rows_with_holes(2, 200, 3)
    tree = pb.fit_cart(X, y, sample_weight=w, missing="both")
    inner = tree.feature >= 0
    below = tree.children[inner]
    assert np.allclose(tree.weight[below].sum(axis=1), tree.weight[inner])
    mass = tree.value * tree.weight[:, None]
    assert np.allclose(mass[below].sum(axis=1), mass[inner])
    assert tree.n_leaves <= len(y)


def test_weight_is_copies():
    X, y, _ = rows_with_holes(8, 120)
    k = np.random.default_rng(8).integers(1, 4, len(y))
    one = pb.fit_cart(X, y, sample_weight=k.astype(float), missing="both", max_depth=2)
    other = pb.fit_cart(
        np.repeat(X, k, axis=0), np.repeat(y, k), missing="both", max_depth=2
    )  # as long as rows are not counted
    assert np.array_equal(one.feature, other.feature)
    assert np.array_equal(one.threshold, other.threshold)
    assert np.allclose(one.value, other.value, atol=1e-10)
    assert np.allclose(one.share, other.share, atol=1e-10)


def words(seed, n=150):
    X, y, w = rows_with_holes(seed, n)
    rng = np.random.default_rng([seed, 1])
    frame = pd.DataFrame(X, columns=list("abc"))
    colour = np.where(rng.random(n) < 0.6, np.where(y == 0, "red", "blue"), "green")
    frame["colour"] = np.where(rng.random(n) < 0.2, None, colour)
    return frame, y, w


def test_models_are_stored_and_told(tmp_path):
    frame, y, w = words(3)
    for model in (
        pb.fit_cart(frame, y, sample_weight=w, missing="both", max_depth=3),
        pb.fit_forest(frame, y, sample_weight=w, missing="both", members=5, rng=0),
    ):
        pb.save(model, tmp_path / "model.npz")
        again = pb.load(tmp_path / "model.npz")
        assert np.array_equal(again.share, model.share)
        for route in ("hard", "expected"):
            one, other = (pb.predict_proba(m, frame, route=route) for m in (model, again))
            assert np.array_equal(one, other)
            assert np.allclose(one.sum(axis=1), 1)
        assert pb.describe(again) == pb.describe(model)
    tree = pb.fit_cart(np.array([[1.0], [2.0], [3.0], [np.nan]]), [0, 0, 1, 1], missing="both")
    text = pb.describe(tree)
    assert "x[0] <= 2.5 or missing (66.7 %)" in text
    assert "x[0] >  2.5 or missing (33.3 %)" in text


def test_forests():
    X, y, _ = rows_with_holes(4, 200, 3)
    forest = pb.fit_forest(X, y, members=6, missing="both", rng=3)
    assert np.array_equal(
        forest.share, pb.fit_forest(X, y, members=6, missing="both", rng=3, n_threads=2).share
    )
    found = pb.predict_proba(forest, X, route="expected")
    each = [pb.predict_proba(tree, X, route="expected") for tree in forest]
    assert np.allclose(found, np.mean(each, axis=0))
    assert np.allclose(pb.predict_proba(forest[:2], X, route="expected"), np.mean(each[:2], axis=0))
    assert forest.oob.error < 0.6
    part = pb.fit_forest(X, y, members=4, missing="both", rng=3)
    more = pb.continue_fit(part, X, y, members=2)
    assert np.array_equal(more.share, forest.share)


def test_pruning():
    X, y, w = rows_with_holes(5, 150)
    tree = pb.fit_cart(X, y, sample_weight=w, missing="both")
    path = pb.prune_path(tree)
    assert (np.diff(path.n_leaves) < 0).all()
    assert (np.diff(path.risk) > -1e-9).all()
    assert path.risk[-1] == pytest.approx(tree.weight[0] * tree.impurity[0])
    for lam, n_leaves, risk in zip(path.lam, path.n_leaves, path.risk, strict=True):
        small = pb.prune(tree, lam)
        assert small.n_leaves == n_leaves
        leaves = small.feature < 0
        assert (small.weight * small.impurity)[leaves].sum() == pytest.approx(risk, abs=1e-9)
    with pytest.raises(NotImplementedError, match="both ways"):
        pb.prune_path(tree, X, y)


@pytest.mark.parametrize(
    "fit", [pb.fit_pruned_cart, pb.fit_stagewise, pb.fit_probit_tree], ids=lambda f: f.__name__
)
def test_what_is_not_implemented(fit):
    X, y, _ = rows_with_holes(6)
    with pytest.raises(NotImplementedError, match='"both" is not implemented for'):
        fit(X, y, missing="both")


def test_limits():
    X, y, _ = rows_with_holes(9, 300)
    steps = []
    tree = pb.fit_cart(
        X, y, missing="both", max_leaves=7, callback=lambda step, record: steps.append(record)
    )
    assert tree.n_leaves == 7
    assert len(steps) == 6
    assert steps[0].n_rows == 300
    assert steps[0].threshold == tree.threshold[0]
    assert pb.fit_cart(X, y, missing="both", max_depth=1).n_leaves == 2
    drawn = [pb.fit_cart(X, y, missing="both", features_per_split=1, rng=s) for s in (1, 1, 2)]
    assert np.array_equal(drawn[0].share, drawn[1].share)
    assert drawn[0].n_nodes != drawn[2].n_nodes or (drawn[0].feature != drawn[2].feature).any()
    every = pb.fit_cart(np.full((6, 2), np.nan), [0, 1, 0, 1, 1, 1], missing="both")
    assert every.n_nodes == 1
