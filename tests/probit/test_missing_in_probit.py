"""Missing values in ProbitBoost and in leaves of probit trees: the twin, and what they count as."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference.probitboost import boost, boost_leaf, filled

import pboost as pb
from pboost._core import probit, tree_walk


def problem(seed, n=90, d=4, share=0.2, dtype=np.float64):
    r = np.random.default_rng([14, seed])
    X = r.normal(size=(n, d)) * 10.0 ** r.integers(-3, 3, d) + r.normal(size=d)
    score = (X - X.mean(axis=0)) / X.std(axis=0) @ r.normal(size=d)
    y = score + r.normal(size=n) > 0
    X[r.random(X.shape) < share] = np.nan
    return X.astype(dtype), y, r.uniform(0.1, 3, n)


@pytest.mark.parametrize("safeguard", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(5))
def test_builder_equals_the_twin(seed, dtype, safeguard):
    X, y, weight = problem(seed, dtype=dtype)
    model = pb.fit_probitboost(X, y, max_iter=30, safeguard=safeguard, sample_weight=weight)
    Z, means = filled(X, weight)
    b, slopes, chosen, lengths, risks = boost(
        Z, np.where(y, 1.0, -1.0), weight, 30, safeguard=safeguard
    )
    assert model.feature.tolist() == chosen
    assert model.length.tolist() == lengths
    np.testing.assert_allclose(model.mean, means, rtol=1e-12)
    np.testing.assert_allclose(model.slopes, slopes, rtol=1e-9)
    np.testing.assert_allclose(model.intercept, b, rtol=1e-9)
    np.testing.assert_allclose(model.risk, risks, rtol=1e-11)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_leaves_equal_the_twin(n_classes):
    r = np.random.default_rng(n_classes)
    n, d = 400, 5
    X, weight = r.normal(size=(n, d)), r.uniform(0.1, 3, n)
    label = np.digitize(X[:, 0] + r.normal(size=n), np.linspace(-1, 1, n_classes - 1))
    X[r.random(X.shape) < 0.3] = np.nan
    order = r.permutation(n)
    groups = [order[:150], order[150:190], order[190:]]
    X[groups[1], 1] = np.nan  # nothing is known there
    X[groups[2], 2] = np.where(r.random(210) < 0.5, np.nan, 7.5)  # and here it is constant
    rows = np.concatenate(groups).astype(np.int32)
    starts = np.cumsum([0, *map(len, groups)]).astype(np.int32)
    models = 1 if n_classes == 2 else n_classes
    coefficient = np.full((3, models, 1 + d), np.nan)
    taken, means = np.zeros((3, models), dtype=np.int32), np.full((3, d), np.nan)
    probit.boost_leaves(
        X,
        rows,
        starts,
        label.astype(np.int32),
        weight,
        n_classes,
        9,
        0.0,
        True,
        coefficient,
        taken,
        means=means,
    )
    values = np.empty((n, models))
    tree_walk.leaf_values(X, rows, starts, coefficient, taken, 0, n, np.empty(d), values, means)
    for leaf, here in enumerate(groups):
        Z, expected_means = filled(X[here], weight[here])
        expected, steps = boost_leaf(Z, label[here], weight[here], n_classes, 9, safeguard=True)
        assert taken[leaf].tolist() == steps.tolist()
        np.testing.assert_allclose(means[leaf], expected_means, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(coefficient[leaf], expected, rtol=1e-8, atol=1e-8)
        at = (
            coefficient[leaf, :, 0]
            + np.where(np.isnan(X[here]), means[leaf], X[here]) @ coefficient[leaf, :, 1:].T
        )
        np.testing.assert_allclose(
            values[starts[leaf] : starts[leaf + 1]], at, rtol=1e-12, atol=1e-12
        )
    assert means[1, 1] == 0.0
    assert (coefficient[1, :, 2] == 0).all()
    assert means[2, 2] == 7.5
    assert (coefficient[2, :, 3] == 0).all()


def test_rows_to_predict():
    X, y, weight = problem(7)
    model = pb.fit_probitboost(X, y, max_iter=20, sample_weight=weight)
    full = np.where(np.isnan(X), model.mean, X)
    np.testing.assert_array_equal(pb.decision_function(model, X), pb.decision_function(model, full))
    score = pb.decision_function(model, X)
    risk = weight @ -np.log(pb.predict_proba(model, X)[np.arange(len(y)), y.astype(int)])
    assert abs(risk / weight.sum() - model.risk[-1]) < 1e-9
    *_, last = pb.staged_decision_function(model, X)
    np.testing.assert_array_equal(last, score)
    for i in range(9):
        np.testing.assert_array_equal(pb.decision_function(model, X[i : i + 1]), score[i : i + 1])
    # Of one row: what a missing value counts as is the part of its column.
    parts = model.contributions(X[:1])
    np.testing.assert_allclose(parts.sum(), score[0])


def test_data_without_holes():
    """The model is that of before, and knows what to do with holes in rows to predict."""
    X, y, weight = problem(3, share=0.0)
    model = pb.fit_probitboost(X, y, max_iter=20, sample_weight=weight)
    np.testing.assert_allclose(model.mean, np.average(X, axis=0, weights=weight), rtol=1e-12)
    holed = X.copy()
    holed[::3, 1] = np.nan
    full = np.where(np.isnan(holed), model.mean, X)
    np.testing.assert_array_equal(
        pb.decision_function(model, holed), pb.decision_function(model, full)
    )
    assert (pb.predict_proba(model, np.full((1, 4), np.nan)) > 0).all()


def test_files_keep_the_means(tmp_path):
    X, y, _ = problem(2)
    model = pb.fit_probitboost(X, y, max_iter=10)
    pb.save(model, tmp_path / "model")
    read = pb.load(tmp_path / "model")
    np.testing.assert_array_equal(read.mean, model.mean)
    np.testing.assert_array_equal(pb.predict_proba(read, X), pb.predict_proba(model, X))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinities_stay_refused(value):
    X, y, _ = problem(2)
    X[5, 2] = value
    with pytest.raises(ValueError, match="column 2, row 5"):
        pb.fit_probitboost(X, y)
    model = pb.fit_probitboost(X[6:], y[6:])
    with pytest.raises(ValueError, match="column 2, row 5"):
        pb.predict(model, X)


def test_nothing_is_known():
    y = np.arange(20) % 3 == 0
    X = np.full((20, 2), np.nan)
    model = pb.fit_probitboost(X, y, max_iter=50)
    assert model.feature.tolist() == [-1] * len(model)
    np.testing.assert_allclose(pb.predict_proba(model, X)[:, 1], y.mean())


def test_models_made_without_means_refuse_holes():
    X, y, _ = problem(2, share=0.0)
    model = pb.fit_probitboost(X, y, max_iter=5)
    X[4, 1] = np.nan
    with pytest.raises(ValueError, match="column 1, row 4"):
        pb.predict(replace(model, mean=None), X)


# Trees


def tree_problem(seed, n=300, d=4, classes=2):
    r = np.random.default_rng([15, seed])
    X = r.normal(size=(n, d)).round(2)
    score = X[:, 0] * np.where(X[:, 1] > 0, 1, -1) + 0.7 * r.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    X[r.random(X.shape) < 0.2] = np.nan
    weight = r.exponential(size=n)
    weight[r.random(n) < 0.1] = 0
    return X, y, weight


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("search", ["exact", "binned"])
def test_trees_equal_the_twin(classes, search):
    for seed in range(3):
        X, y, weight = tree_problem(seed, classes=classes)
        tree = pb.fit_probit_tree(
            X, y, max_depth=2, min_samples_leaf=30, max_iter=8, sample_weight=weight, search=search
        )
        leaf, values = tree.partition.leaf[tree.partition.nodes_of(X)], tree.values(X)
        assert tree.n_leaves > 1
        assert tree.mean is None
        for number in np.unique(leaf):
            positions = np.flatnonzero((leaf == number) & (weight > 0))
            Z, means = filled(X[positions], weight[positions])
            expected, steps = boost_leaf(
                Z, y[positions], weight[positions], classes, 8, safeguard=True
            )
            np.testing.assert_allclose(tree.leaf_mean[number], means, rtol=1e-12, atol=1e-15)
            assert tree.taken[number].tolist() == steps.tolist()
            if (steps < 0).any():
                continue
            np.testing.assert_allclose(tree.coefficient[number], expected, rtol=1e-7, atol=1e-8)
            actual = np.where(
                np.isnan(X[leaf == number]), tree.leaf_mean[number], X[leaf == number]
            )
            at = actual @ tree.coefficient[number, :, 1:].T + tree.coefficient[number, :, 0]
            np.testing.assert_allclose(values[leaf == number], at, rtol=1e-10, atol=1e-10)


def test_trees_answer_rows_one_by_one(tmp_path):
    X, y, weight = tree_problem(7)
    tree = pb.fit_probit_tree(
        X, y, max_depth=3, min_samples_leaf=20, max_iter=8, sample_weight=weight
    )
    score = pb.decision_function(tree, X)
    first = np.concatenate([pb.decision_function(tree, X[i : i + 1]) for i in range(70)])
    np.testing.assert_array_equal(first, score[:70])
    single = pb.decision_function(tree, X.astype(np.float32).astype(np.float64))
    np.testing.assert_array_equal(pb.decision_function(tree, X.astype(np.float32)), single)
    for i in range(5):
        np.testing.assert_allclose(tree.contributions(X[i : i + 1]).sum(), score[i])
        np.testing.assert_allclose(tree.vote_parts(X[i : i + 1]).sum(), score[i])
    pb.save(tree, tmp_path / "tree")
    read = pb.load(tmp_path / "tree")
    np.testing.assert_array_equal(read.leaf_mean, tree.leaf_mean)
    np.testing.assert_array_equal(pb.decision_function(read, X), score)
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="column 1, row 3"):
        pb.predict(tree, X)


def test_values_beyond_the_largest_number():
    """Where terms overflow, holes count as their means, too."""
    X, y, weight = tree_problem(7)
    tree = pb.fit_probit_tree(
        X, y, max_depth=1, min_samples_leaf=20, max_iter=8, sample_weight=weight
    )
    steep = replace(tree, coefficient=tree.coefficient * 1e300)
    line = pb.fit_probitboost(X, y, max_iter=8, sample_weight=weight)
    X = X[~np.isnan(X).all(axis=1)]
    far = np.where(np.isnan(X), np.nan, 1e300 * X)
    leaf = tree.partition.leaf[tree.partition.nodes_of(far)]
    slopes = tree.coefficient[leaf, 0, 1:]
    terms = np.where(np.isnan(X), tree.leaf_mean[leaf] / 1e300, X) * slopes
    maximum = np.finfo(float).max
    np.testing.assert_array_equal(steep.values(far)[:, 0], np.sign(terms.sum(axis=1)) * maximum)
    first = np.array([steep.values(row[None])[0, 0] for row in far])
    np.testing.assert_array_equal(first, steep.values(far)[:, 0])
    far *= 1e7
    expected = (np.where(np.isnan(X), line.mean / 1e307, X) @ line.slopes) * 1e307
    np.testing.assert_allclose(
        pb.decision_function(line, far), np.clip(expected, -maximum, maximum)
    )


def test_trees_of_data_without_holes(tmp_path):
    X, y, weight = tree_problem(8)
    full = np.nan_to_num(X)
    tree = pb.fit_probit_tree(
        full, y, max_depth=3, min_samples_leaf=20, max_iter=8, sample_weight=weight
    )
    assert tree.leaf_mean is None
    np.testing.assert_allclose(tree.mean, np.average(full, axis=0, weights=weight), atol=1e-11)
    leaf = tree.partition.leaf[tree.partition.nodes_of(X)]
    at = np.where(np.isnan(X), tree.mean, X)
    terms = np.einsum("ij,ij->i", at, tree.coefficient[leaf, 0, 1:])
    scores = pb.decision_function(tree, X)
    np.testing.assert_allclose(scores, terms + tree.coefficient[leaf, 0, 0], atol=1e-10)
    pb.save(tree, tmp_path / "tree")
    np.testing.assert_array_equal(pb.decision_function(pb.load(tmp_path / "tree"), X), scores)
    with pytest.raises(ValueError, match="expected finite numbers, got nan"):
        pb.predict(replace(tree, mean=None), X)


@pytest.mark.parametrize("one_vs_all", ["tree", "leaf"])
@pytest.mark.parametrize("classes", [2, 3])
def test_sbpmt(classes, one_vs_all, tmp_path):
    X, y, weight = tree_problem(9, classes=classes)
    options = {
        "n_estimators": 3,
        "n_boosting_rounds": 3,
        "max_iter": 5,
        "one_vs_rest": one_vs_all,
        "rng": 0,
    }
    model = pb.fit_sbpmt(X, y, sample_weight=weight, **options)
    share = pb.predict_proba(model, X)
    assert np.mean(pb.predict(model, X) == y) > 0.7
    # Members are models by themselves, and their trees probit trees.
    np.testing.assert_allclose(pb.predict_proba(model[:1], X), model.said_at(0, X))
    tree = model.tree(1)
    part = slice(model.leaf[model.trees.root[1]], None)
    assert tree.leaf_mean.shape == (tree.n_leaves, 4)
    assert len(model.leaf_mean[part]) >= tree.n_leaves
    first = np.concatenate([pb.predict_proba(model, X[i : i + 1]) for i in range(20)])
    np.testing.assert_array_equal(first, share[:20])
    pb.save(model, tmp_path / "model")
    np.testing.assert_array_equal(pb.predict_proba(pb.load(tmp_path / "model"), X), share)
    seen = model.oob.prediction
    assert np.isfinite(seen[model.oob.n_estimators > 0]).all()
    full = pb.fit_sbpmt(np.nan_to_num(X), y, sample_weight=weight, **options)
    assert full.leaf_mean is None
    assert np.isfinite(pb.predict_proba(full, X)).all()


@pytest.mark.parametrize("fit", [pb.fit_probit_tree, pb.fit_sbpmt])
def test_where_missing_values_go_is_an_option_of_trees(fit):
    X, y, _ = problem(0, n=120)
    options = (
        {} if fit is pb.fit_probit_tree else {"n_estimators": 2, "n_boosting_rounds": 2, "rng": 0}
    )
    model = fit(X, y, missing="learn", **options)
    assert model.settings["missing"] == "learn"
    assert np.array_equal(pb.predict_proba(model, X), pb.predict_proba(fit(X, y, **options), X))
    row = int(np.isnan(X[:, 0]).argmax())
    message = "X: expected finite numbers, got missing values in column 0|got nan in column 0"
    with pytest.raises(ValueError, match=message):
        fit(X, y, missing="error", **options)
    assert np.isnan(X[row, 0])
    clean = np.nan_to_num(X)
    refusing = fit(clean, y, missing="error", **options)
    assert refusing.settings["missing"] == "error"
    probabilities = pb.predict_proba(fit(clean, y, **options), X)
    assert np.array_equal(pb.predict_proba(refusing, X), probabilities)
    with pytest.raises(ValueError, match="missing: expected one of"):
        fit(X, y, missing="drop", **options)
