"""Sums of trees that several labels share: models, options, files, bad input."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from round_cases import HELD
from shallow import fit_shallow
from softmax_cases import assert_same_model, data, mean_loss

import pboost as pb
from pboost.trees.regularization import RESTRAINTS

ONE = {"multi_strategy": "multi_output_tree", "loss": "softmax"}


@pytest.mark.parametrize("leaf_update", ["line_search", "newton"])
def test_two_labels_are_the_log_loss(leaf_update):
    """Both gradients are the same but for the sign, and each value goes half of the way."""
    X, y = data(n_classes=2)
    options = {"n_estimators": 20, "l2_regularization": 1.0, "leaf_update": leaf_update}
    both = fit_shallow(X, y, **ONE, **options)
    first_model = fit_shallow(X, y, loss="log_loss", **options)
    assert both.trees.value.shape == (len(both.trees.feature), 2)
    assert np.array_equal(both.trees.feature, first_model.trees.feature)
    assert np.array_equal(both.trees.threshold, first_model.trees.threshold)
    np.testing.assert_allclose(
        pb.predict_proba(both, X), pb.predict_proba(first_model, X), atol=1e-5
    )


def test_one_leaf_adds_what_those_of_all_labels_do():
    X, y = data()
    options = {
        "n_estimators": 1,
        "max_depth": 1,
        "learning_rate": 1,
        "l2_regularization": 0.5,
        "leaf_update": "newton",
    }
    first_model = pb.fit_gradient_boosting(X, y, multi_strategy="multi_output_tree", **options)
    node, (tree,) = first_model.trees.nodes_of(X)[:, 0], first_model.trees
    share = np.exp(first_model.bias) / np.exp(first_model.bias).sum()
    for leaf in (1, 2):
        rows = node == leaf
        own = y[rows, None] == first_model.classes
        step = (own - share).sum(axis=0) / (
            (share * (1 - share)).sum() * 0 + rows.sum() * share * (1 - share) + 0.5
        )
        np.testing.assert_allclose(tree.value[leaf], step, rtol=1e-4)
    losses = []
    for j in range(4):
        for cut in np.sort(X[:, j])[:-1]:
            below, loss = X[:, j] <= cut, 0.0
            for rows in (below, ~below):
                g = (share - (y[rows, None] == first_model.classes)).sum(axis=0)
                loss += (g**2 / (rows.sum() * share * (1 - share) + 0.5)).sum()
            losses.append((loss, j, cut))
    _, j, cut = max(losses)
    assert tree.feature[0] == j
    assert abs(((X[:, j] <= cut) == (node == 1)).mean() - 1) < 0.02  # bins


def test_a_round_is_a_tree():
    X, y = data(n_classes=5)
    model = pb.fit_gradient_boosting(X, y, **ONE, n_estimators=12, max_leaf_nodes=8)
    assert (
        repr(model) == "<fit_gradient_boosting: 12 trees for 5 classes, 4 features, loss softmax>"
    )
    assert len(model) == len(model.trees) == 12
    assert (model.n_votes, model.n_trees) == (5, 1)
    score = pb.decision_function(model, X)
    by_hand = model.bias + sum(tree.predict(X) for tree in model.trees)
    np.testing.assert_allclose(score, by_hand, atol=1e-12)
    each = np.concatenate([pb.decision_function(model, X[i : i + 1]) for i in range(40)])
    assert np.array_equal(each, score[:40])
    stages = list(pb.staged_decision_function(model, X))
    np.testing.assert_allclose(stages[-1], score, atol=1e-12)
    for n in (1, 5):
        cut = pb.models.truncate(model, n)
        np.testing.assert_allclose(pb.decision_function(cut, X), stages[n - 1], atol=1e-12)
        assert_same_model(
            cut, pb.fit_gradient_boosting(X, y, **ONE, n_estimators=n, max_leaf_nodes=8)
        )
    cost = pb.prediction_cost(model, X)
    assert cost.tolist() == sum(pb.prediction_cost(tree, X) for tree in model.trees).tolist()
    loss = mean_loss(model, y, score)
    assert model.training_loss[-1] == pytest.approx(loss, rel=1e-12)
    assert loss < 0.8 * model.training_loss[0]


def test_explained_and_described():
    X, y = data()
    X[::7, 1] = np.nan
    model = pb.fit_gradient_boosting(X, y, **ONE, n_estimators=20)
    explanation = pb.explain(model, X[:1])
    assert explanation.contributions.shape == (4, 3)
    np.testing.assert_allclose(
        explanation.bias + explanation.contributions.sum(axis=0),
        pb.decision_function(model, X[:1])[0],
    )
    fall = -np.diff(model.training_loss)
    of_trees = np.array([pb.feature_importances(tree) for tree in model.trees])
    share = pb.feature_importances(model)
    np.testing.assert_allclose(share, fall @ of_trees / fall.sum(), rtol=1e-12)
    assert share[:3].min() > 3 * share[3]
    lines = pb.describe(model).splitlines()
    assert lines[0].startswith("fit_gradient_boosting: 20 trees for 3 classes, 4 features")
    assert sum(line.startswith("tree ") for line in lines) == 20
    with pytest.raises(NotImplementedError, match="one output per tree"):
        pb.inspection.is_monotone(model, 0)


@pytest.mark.parametrize("validation", [None, 0.2])
def test_saved_and_pickled(validation, tmp_path):
    X, y = data()
    model = pb.fit_gradient_boosting(X, y, **ONE, n_estimators=8, validation=validation, rng=0)
    pb.save(model, tmp_path / "m.npz")
    for again in (pb.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        assert_same_model(model, again)
        assert again.settings == model.settings
        assert np.array_equal(pb.decision_function(again, X), pb.decision_function(model, X))
        assert pb.describe(again) == pb.describe(model)


def test_wrong_parts_are_named():
    X, y = data()
    model = pb.fit_gradient_boosting(X, y, **ONE, n_estimators=3)
    trees = model.trees
    for parts, message in (
        ({"bias": model.bias[:2]}, "bias: expected 3 finite numbers"),
        ({"trees": replace(trees, value=trees.value[:, :2])}, "trees: expected values of shape"),
        ({"training_loss": model.training_loss[:2]}, "training_loss: expected shape"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(model, **parts)
    with pytest.raises(ValueError, match="value: expected shape"):
        replace(trees, value=trees.value[:, :, None])
    numbers = pb.fit_gradient_boosting(X, X[:, 0], n_estimators=3)
    with pytest.raises(ValueError, match="trees: expected values of shape"):
        replace(numbers, trees=replace(numbers.trees, value=numbers.trees.value[:, None]))


def test_options_change_models_and_are_kept():
    X, y = data(1000)
    X[::5, 0] = np.nan
    X[:, 3] = np.random.default_rng(0).integers(0, 6, 1000)
    options = {**ONE, "n_estimators": 2, "max_depth": 5, "rng": 1, "categorical_features": [3]}
    models = [
        pb.fit_gradient_boosting(X, y, **options, **more)
        for more in (
            {"l2_regularization": 5.0},
            {"min_samples_leaf": 30},
            {"subsample": 0.5},
            {"leaf_update": "newton"},
            *(held for held in HELD if "monotonic_cst" not in held),
        )
    ]
    values = [model.trees.value.tolist() for model in models]
    assert all(a != b for k, a in enumerate(values) for b in values[:k])
    assert all(tree.n_rows.min() >= 30 for tree in models[1].trees)
    assert all(tree.n_leaves <= 6 for tree in models[-2].trees)
    for model in models:
        more = pb.continue_fit(model, X, y, n_estimators=2)
        for name in (
            "multi_strategy",
            "l2_regularization",
            "min_samples_leaf",
            "subsample",
            "max_leaf_nodes",
            *RESTRAINTS,
        ):
            assert more.settings[name] == model.settings[name]
        assert np.array_equal(more.trees.value[: len(model.trees.value)], model.trees.value)
        assert more.training_loss[-1] < model.training_loss[-1]


def test_fits_go_on_as_one_fit():
    X, y = data()
    options = {**ONE, "subsample": 0.6, "max_features_per_tree": 3, "rng": 3}
    full_model = pb.fit_gradient_boosting(X, y, n_estimators=7, **options)
    assert_same_model(
        pb.continue_fit(pb.models.truncate(full_model, 3), X, y, n_estimators=4), full_model
    )


def test_validation_chooses_the_number_of_trees():
    X, y = data(600)
    new, truth = data(600, seed=4)
    options = {**ONE, "n_estimators": 200, "learning_rate": 0.4, "n_iter_no_change": 8}
    model = pb.fit_gradient_boosting(X, y, validation=(new, truth), **options)
    tried = model.validation_loss
    assert len(model) == tried.argmin() == len(tried) - 9
    losses = [mean_loss(model, truth, f) for f in pb.staged_decision_function(model, new)]
    np.testing.assert_allclose(losses, tried[1 : len(model) + 1])


def test_weights_and_soft_labels():
    X, y = data()
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(y)).astype(float)
    used, order = np.flatnonzero(weight), rng.permutation(len(y))
    options = {**ONE, "n_estimators": 5}
    model = pb.fit_gradient_boosting(X, y, sample_weight=weight, **options)
    for rows in (used, order):
        other = pb.fit_gradient_boosting(X[rows], y[rows], sample_weight=weight[rows], **options)
        assert_same_model(model, other)
    times = weight.astype(int)
    copies = pb.fit_gradient_boosting(X.repeat(times, 0), y.repeat(times), **options)
    f, g = (pb.decision_function(m, X) for m in (model, copies))
    np.testing.assert_allclose(f, g, atol=1e-3)
    labels = np.unique(y)
    share = (y[:, None] == labels).astype(float)
    soft = pb.fit_gradient_boosting(X, y_proba=share, classes=labels, **options)
    assert_same_model(soft, pb.fit_gradient_boosting(X, y, **options))
    mixed = pb.fit_gradient_boosting(
        X, y_proba=0.7 * share + 0.1, classes=labels, **ONE, n_estimators=100
    )
    probabilities = pb.predict_proba(mixed, X)
    assert np.abs(probabilities - 0.7 * share - 0.1).mean() < np.abs(probabilities - share).mean()


def test_callback_sees_each_tree():
    X, y = data()
    seen = []
    model = pb.fit_gradient_boosting(
        X, y, **ONE, n_estimators=3, callback=lambda step, of: seen.append(of)
    )
    assert [of.n_leaves for of in seen] == [tree.n_leaves for tree in model.trees]


def test_nothing_to_learn():
    y = np.array(["a", "b", "c"] * 10)
    model = pb.fit_gradient_boosting(np.ones((30, 2)), y, **ONE, n_estimators=10)
    np.testing.assert_allclose(pb.predict_proba(model, np.ones((1, 2))), 1 / 3, rtol=1e-12)
    # No split of equal rows gains anything.
    X = np.arange(40.0)[:, None]
    model = pb.fit_gradient_boosting(
        X, X[:, 0] // 10, **ONE, n_estimators=1, max_depth=9, l2_regularization=0.0
    )
    assert model.trees[0].n_leaves == 4


def test_separable_rows_stay_finite():
    X = np.arange(40.0)[:, None]
    y = np.array(["a", "b", "c", "d"])[(X[:, 0] // 10).astype(int)]
    model = pb.fit_gradient_boosting(
        X, y, **ONE, n_estimators=300, learning_rate=1, max_delta_step=None
    )
    assert (pb.predict(model, X) == y).all()
    assert np.isfinite(pb.decision_function(model, X)).all()
    assert np.isfinite(model.training_loss).all()


def test_as_many_labels_as_rows():
    X, y = np.arange(60.0)[:, None], [f"row {i}" for i in range(60)]
    model = pb.fit_gradient_boosting(X, y, **ONE, n_estimators=3)
    share = pb.predict_proba(model, X)
    assert share.shape == (60, 60)
    assert (np.diff(model.training_loss) < 0).all()


def test_what_is_refused():
    X, y = data()
    two = np.where(y == "class 1", "a", "b")
    with pytest.raises(
        ValueError, match='multi_strategy: expected "one_output_per_tree" with loss="log_loss"'
    ):
        pb.fit_gradient_boosting(X, two, multi_strategy="multi_output_tree")
    with pytest.raises(NotImplementedError, match=r'multi_strategy: .*search="exact"'):
        pb.fit_gradient_boosting(X, y, multi_strategy="multi_output_tree", search="exact")
    with pytest.raises(NotImplementedError, match=r"monotonic_cst: .*softmax"):
        pb.fit_gradient_boosting(X, y, multi_strategy="multi_output_tree", monotonic_cst={1: -1})
    with pytest.raises(ValueError, match="multi_strategy: expected one of"):
        pb.fit_gradient_boosting(X, y, multi_strategy="each")
