"""scikit-learn's tree and AdaBoost, where the answer is unique."""

import numpy as np
import pytest
from compare import stump
from reference.problems import CRITERIA, distinct_matrix
from reference.split import all_cuts, is_strictly_best
from reference.walk import path

import pboost as pb

pytest.importorskip("sklearn.tree")
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier


def noisy_data(seed, n=400, d=4):
    """Distinct float32-representable values, neighbours further apart than sklearn's 1e-7."""
    rng = np.random.default_rng(seed)
    X = distinct_matrix(rng, n, d)
    score = X[:, 0] + X[:, 1] / 2 + rng.normal(scale=n / 40, size=n)
    return X, np.where(score > np.median(score), 1, -1), rng.uniform(0.5, 2, n)


def strict_nodes(model, X, y, weight, options):
    """Return for every node whether its split, and each one above it, is strictly best."""
    strict = np.zeros(model.n_nodes, dtype=bool)
    arriving = [(0, np.ones(len(y), dtype=bool))]
    while arriving:
        node, rows = arriving.pop()
        if not is_strictly_best(X[rows], y[rows], weight[rows], **options):
            continue
        strict[node] = True
        below = X[:, model.feature[node]] <= model.threshold[node]
        for child, inside in zip(model.next[node], (rows & below, rows & ~below), strict=True):
            if child >= 0:
                arriving.append((child, inside))
    return strict


def check_tree(X, y, weight, held_out, max_depth):
    """Compare predictions on the rows whose whole path is of strictly best splits."""
    model = pb.fit_boosted_tree(
        X,
        y,
        max_nodes=None,
        weak_learner=stump("gini"),
        smoothing=0.0,
        max_depth=max_depth,
        sample_weight=weight,
    )
    peer = DecisionTreeClassifier(max_depth=max_depth, random_state=0)
    peer.fit(X, y, sample_weight=weight)
    strict = strict_nodes(model, X, y, weight, {"criterion": "gini"})
    unique = np.array(
        [
            all(strict[node] for node, _ in path(model.feature, model.threshold, model.next, row))
            for row in held_out
        ]
    )
    np.testing.assert_array_equal(
        pb.predict(model, held_out)[unique], peer.predict(held_out)[unique]
    )
    if strict.all():  # sklearn also splits pure nodes whose impurity rounds to more than 0
        assert peer.get_n_leaves() - 1 >= model.n_nodes
    return unique.mean()


@pytest.mark.full_for("None-0.2")
@pytest.mark.parametrize(("max_depth", "share"), [(3, 0.8), (5, 0.6), (None, 0.2)])
def test_tree_predicts_like_sklearn(max_depth, share):
    shares = []
    for seed in range(6):
        X, y, weight = noisy_data(seed)
        rng = np.random.default_rng([seed, 1])
        held_out = rng.uniform(-1, X.max() + 1, (500, X.shape[1])).astype(np.float32)
        shares.append(check_tree(X, y, weight, held_out.astype(float), max_depth))
    assert np.mean(shares) > share  # else the comparison says nothing


def test_one_column_full_tree_predicts_like_sklearn():
    """Random weights and one column: nearly every split of the full tree is strictly best."""
    shares = []
    for seed in range(6):
        rng = np.random.default_rng([seed, 2])
        X = distinct_matrix(rng, 200, 1)
        y = np.where(rng.random(200) < 0.5 + 0.4 * np.sin(X[:, 0] / 4), 1, -1)
        held_out = rng.uniform(-1, X.max() + 1, (300, 1)).astype(np.float32).astype(float)
        shares.append(check_tree(X, y, rng.uniform(0.5, 2, 200), held_out, None))
    assert np.mean(shares) > 0.9


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("ties", [False, True])
def test_every_split_of_a_tree_is_the_best_there_is(criterion, ties):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 5)).astype(np.float32).astype(float)
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=len(X)) > 0, 1, -1)
    if ties:
        X = np.round(X * 4) / 4
    weight = rng.uniform(0.5, 2, len(X))
    model = pb.fit_boosted_tree(
        X, y, max_nodes=60, weak_learner=stump(criterion), sample_weight=weight
    )
    assert model.n_nodes == 60
    arrives = np.zeros((model.n_nodes, len(X)), dtype=bool)
    for i, row in enumerate(X):
        for node, _ in path(model.feature, model.threshold, model.next, row):
            arrives[node, i] = True
    for node, rows in enumerate(arrives):
        cuts = all_cuts(X[rows], y[rows], weight[rows], criterion)
        value = {(j, t): v for j, t, v in cuts}
        chosen = value[int(model.feature[node]), float(model.threshold[node])]
        assert chosen <= min(value.values()) + 1e-11 * weight[rows].sum(), node


def check_adaboost(X, y, weight, rounds):
    model = pb.fit_adaboost(
        X,
        y,
        n_estimators=rounds,
        weak_learner=stump("gini"),
        votes="symmetric",
        smoothing=0.0,
        sample_weight=weight,
    )
    peer = AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=1), n_estimators=rounds, random_state=0
    ).fit(X, y, sample_weight=weight)
    assert model.n_nodes == len(peer.estimators_) == rounds
    # sklearn's weights are ln((1-e)/e), twice our votes; its decision is the mean of their
    # +-votes, counted once per class.
    scale = peer.estimator_weights_.sum() / 4
    for rows in (X, X + 1 / 16):
        ours, theirs = pb.decision_function(model, rows), peer.decision_function(rows) * scale
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
    for ours, theirs, t in zip(
        pb.staged_decision_function(model, X),
        peer.staged_decision_function(X),
        range(1, rounds + 1),
        strict=True,
    ):
        partial = peer.estimator_weights_[:t].sum() / 4
        np.testing.assert_allclose(ours, theirs * partial, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_adaboost_decision_function(seed):
    X, y, weight = noisy_data([seed, 4], n=500, d=6)
    check_adaboost(X, y, weight, 50)


def test_adaboost_on_breast_cancer():
    """Ranks of the real columns: sklearn takes values within 1e-7 for equal."""
    data, target = load_breast_cancer(return_X_y=True)
    X = np.column_stack([np.unique(column, return_inverse=True)[1] for column in data.T]) / 4
    weight = np.random.default_rng(5).uniform(0.5, 2, len(X))
    check_adaboost(X, target, weight, 50)
