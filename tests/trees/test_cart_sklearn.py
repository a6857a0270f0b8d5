"""scikit-learn's trees and pruning paths, where the answer is unique."""

import numpy as np
import pytest
from reference.cart import best_cut, cuts, risk
from reference.problems import distinct_matrix

import pboost as pb

pytest.importorskip("sklearn.tree")
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

TASKS = [(2, "gini"), (2, "entropy"), (4, "gini"), (5, "entropy"), (0, "squared_error")]


def problem(n_classes, seed=0, n=400, d=4):
    """Distinct float32-representable values, neighbours further apart than sklearn's 1e-7."""
    rng = np.random.default_rng([71, n_classes, seed])
    X = distinct_matrix(rng, n, d)
    score = X[:, 0] + X[:, 1] / 2 + rng.normal(scale=n / 10, size=n)
    y = (
        np.round(score)
        if not n_classes
        else np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    )
    return X, y, rng.uniform(0.5, 2, n)


def fits(X, y, weight, n_classes, criterion, **options):
    task = "classification" if n_classes else "regression"
    names = {
        "max_leaf_nodes": "max_leaf_nodes",
        "min_samples_leaf": "min_samples_leaf",
        "min_samples_split": "min_samples_split",
    }
    theirs = {names.get(name, name): value for name, value in options.items()}
    peer = (DecisionTreeClassifier if n_classes else DecisionTreeRegressor)(
        criterion=criterion if n_classes else "squared_error", random_state=0, **theirs
    )
    tree = pb.fit_cart(X, y, task=task, criterion=criterion, sample_weight=weight, **options)
    return tree, peer.fit(X, y, sample_weight=weight).tree_


def is_strictly_best(X, y, weight, criterion, n_classes, min_samples_leaf):
    best = best_cut(X, y, weight, criterion, n_classes, min_samples_leaf)
    for j in range(X.shape[1]):
        for threshold in cuts(X[:, j], None):
            below = X[:, j] <= threshold
            if (j, threshold) == best[1:] or min(below.sum(), (~below).sum()) < min_samples_leaf:
                continue
            after = sum(risk(y[s], weight[s], criterion, n_classes) for s in (below, ~below))
            if after <= best[0] + 1e-9 * weight.sum():
                return False
    return True


def compare(tree, peer, X, y, weight, criterion, n_classes, min_samples_leaf):
    """Compare node by node; return how many splits were compared, and how many were not unique."""
    waiting, compared, tied = [(0, 0, np.arange(len(y)))], 0, 0
    while waiting:
        a, b, rows = waiting.pop()
        value = peer.value[b, 0] if n_classes else peer.value[b, 0, 0]
        np.testing.assert_allclose(tree.value[a], value, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(tree.impurity[a], peer.impurity[b], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(tree.weight[a], peer.weighted_n_node_samples[b], rtol=1e-12)
        assert tree.n_rows[a] == peer.n_node_samples[b]
        if tree.feature[a] < 0:
            # sklearn also splits pure nodes whose impurity rounds to more than 0.
            assert peer.children_left[b] < 0 or tree.impurity[a] == 0
            continue
        if not is_strictly_best(
            X[rows], y[rows], weight[rows], criterion, n_classes, min_samples_leaf
        ):
            tied += 1
            continue
        compared += 1
        assert tree.feature[a] == peer.feature[b]
        assert tree.threshold[a] == peer.threshold[b]
        below = X[rows, tree.feature[a]] <= tree.threshold[a]
        waiting.append((tree.children[a, 0], peer.children_left[b], rows[below]))
        waiting.append((tree.children[a, 1], peer.children_right[b], rows[~below]))
    return compared, tied


@pytest.mark.full
@pytest.mark.parametrize(("n_classes", "criterion"), TASKS)
@pytest.mark.parametrize("min_samples_leaf", [1, 4])
def test_trees(n_classes, criterion, min_samples_leaf):
    X, y, weight = problem(n_classes)
    tree, peer = fits(X, y, weight, n_classes, criterion, min_samples_leaf=min_samples_leaf)
    compared, _ = compare(tree, peer, X, y, weight, criterion, n_classes, min_samples_leaf)
    assert compared > (70 if min_samples_leaf == 1 else 30)


@pytest.mark.full_for("2-entropy", "2-gini", "4-gini")
@pytest.mark.parametrize(("n_classes", "criterion"), TASKS)
def test_best_first(n_classes, criterion):
    X, y, weight = problem(n_classes, seed=1)
    tree, peer = fits(X, y, weight, n_classes, criterion, max_leaf_nodes=12, min_samples_leaf=5)
    compared, tied = compare(tree, peer, X, y, weight, criterion, n_classes, 5)
    assert (compared, tied) == (11, 0)
    assert peer.n_leaves == 12


@pytest.mark.full
@pytest.mark.parametrize(("n_classes", "criterion"), TASKS)
def test_depth_and_min_split(n_classes, criterion):
    X, y, weight = problem(n_classes, seed=2)
    tree, peer = fits(
        X, y, weight, n_classes, criterion, max_depth=4, min_samples_split=40, min_samples_leaf=3
    )
    compared, tied = compare(tree, peer, X, y, weight, criterion, n_classes, 3)
    assert tied == 0
    assert compared == peer.n_leaves - 1 == tree.n_leaves - 1


@pytest.mark.full_for("6-2-entropy", "6-2-gini", "6-4-gini")
@pytest.mark.parametrize(("n_classes", "criterion"), TASKS)
@pytest.mark.parametrize("min_samples_leaf", [6, 15])
def test_pruning_path(n_classes, criterion, min_samples_leaf):
    X, y, weight = problem(n_classes, seed=3)
    tree, peer = fits(X, y, weight, n_classes, criterion, min_samples_leaf=min_samples_leaf)
    path = pb.models.cost_complexity_pruning_path(tree)
    model = (DecisionTreeClassifier if n_classes else DecisionTreeRegressor)(
        criterion=criterion if n_classes else "squared_error",
        random_state=0,
        min_samples_leaf=min_samples_leaf,
    )
    theirs = model.cost_complexity_pruning_path(X, y, sample_weight=weight)
    # It also splits pure nodes whose impurity rounds to more than 0: their prices are 0, or nearly.
    ccp_alpha, risks = theirs.ccp_alphas * weight.sum(), theirs.impurities * weight.sum()
    last = np.append(np.diff(ccp_alpha) > 1e-9 * np.maximum(ccp_alpha[1:], 1), True)
    assert compare(tree, peer, X, y, weight, criterion, n_classes, min_samples_leaf)[1] == 0
    assert len(path.ccp_alpha) > 10
    np.testing.assert_allclose(path.ccp_alpha, ccp_alpha[last], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(path.risk, risks[last], rtol=1e-9, atol=1e-9)
