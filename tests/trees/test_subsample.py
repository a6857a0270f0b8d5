"""`subsample`: which rows are drawn, and what trees take from the other rows."""

from __future__ import annotations

import numpy as np
import pytest
from reference import row_draws as twin
from softmax_cases import assert_same_model

import pboost as pb
from pboost.data.row_draws import RowDraws, row_hashes
from pboost.threads import Workers
from pboost.trees.tree_rounds import Rounds


def table(n=240, seed=0):
    """Return features with missing values, classes and row weights that are copies."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    label = np.where(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0, 1, 0)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, label, rng.integers(1, 4, n).astype(float)


def row_numbers(n):
    return np.arange(n, dtype=np.int32)


def fit(X, y=None, **options):
    return pb.fit_gradient_boosting(X, y, **{"subsample": 0.6, "n_estimators": 4, **options})


def test_draws_are_those_of_the_twin():
    X, label, _ = table(60)
    X[:, 3] = np.abs(X[:, 3])  # 0 is in the first bin
    y = np.where(label > 0, 1.5, -0.0) * 2.0 ** np.arange(60)
    columns = pb.data.bin_columns(X)
    ranges = [columns.bin_ranges(j) for j in range(4)]
    zero = [lower[min((upper < 0).sum(), len(upper) - 1)] for lower, upper in ranges]
    lowest = [
        [np.append(ranges[j][0], np.nan)[columns.codes[j, i]] for j in range(4)] for i in range(60)
    ]
    hashes = row_hashes(columns, y)
    expected = [twin.hash_of(lowest[i], zero, y[i]) for i in range(60)]
    assert hashes.tolist() == expected
    for number in range(3):
        actual = RowDraws(hashes, row_numbers(60), 0.3, 7).drawn(number)
        drawn = [i for i, h in enumerate(expected) if twin.is_drawn(h, number, 0.3, 7)]
        assert actual.tolist() == drawn


def test_draws_of_several_rounds_are_independent():
    X, label, _ = table(5000)
    hashes, rows = row_hashes(pb.data.bin_columns(X), label.astype(float)), row_numbers(5000)
    draws = RowDraws(hashes, rows, 0.4, 0)
    drawn = np.array([np.isin(rows, draws.drawn(number)) for number in range(30)])
    np.testing.assert_allclose(drawn.mean(axis=1), 0.4, atol=0.03)
    np.testing.assert_allclose(np.corrcoef(drawn) - np.eye(30), 0.0, atol=0.07)
    assert np.var(drawn.mean(axis=0)) < 1.2 * 0.4 * 0.6 / 30


@pytest.mark.parametrize("options", [{}, {"search": "exact"}, {"max_leaf_nodes": 6}], ids=str)
def test_splits_come_from_drawn_rows_and_values_from_all(options):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 6, (400, 3)).astype(float)
    y = X[:, 0] * X[:, 1] + rng.normal(size=400)
    options |= {"n_estimators": 1, "learning_rate": 1.0, "task": "regression", "max_depth": 3}
    if "search" not in options:
        options |= {"l2_regularization": 0.0, "leaf_shrinkage": 0.0, "growth": "independent"}
        options["random_strength"] = 0.0
    model = fit(X, y, **options)
    hashes = row_hashes(pb.data.bin_columns(X), y)
    seed = int(np.random.default_rng(0).integers(2**64, dtype=np.uint64))
    rows = RowDraws(hashes, row_numbers(400), 0.6, seed).drawn(0)
    weight = np.bincount(rows, minlength=400).astype(float)
    alone = fit(X, y, sample_weight=weight, **{**options, "subsample": None})
    assert model.trees[0].feature.tolist() == alone.trees[0].feature.tolist()
    np.testing.assert_array_equal(model.trees[0].threshold, alone.trees[0].threshold)
    leaf = pb.inspection.apply(model.trees[0], X)
    means = [y[leaf == k].mean() for k in leaf]
    np.testing.assert_allclose(pb.predict(model, X), means, atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_leaf_nodes": 7},
        {"min_samples_leaf": 5, "growth": "independent"},
        {"min_samples_leaf": 5},
        {"histogram_precision": "wide"},
        {"loss": "softmax"},
    ],
    ids=str,
)
def test_threads_orders_copies_and_partitions(options):
    X, label, copies = table()
    model = fit(X, label, sample_weight=copies, **options)
    assert_same_model(model, fit(X, label, sample_weight=copies, n_threads=2, **options))
    order = np.random.default_rng(1).permutation(len(X))
    assert_same_model(model, fit(X[order], label[order], sample_weight=copies[order], **options))
    if "min_samples_leaf" not in options:  # which counts rows
        rows = np.repeat(np.arange(len(X)), copies.astype(int))
        assert_same_model(model, fit(X[rows], label[rows], **options))
    parts = np.array_split(np.arange(len(X)), 3)
    source = pb.partitions(
        [X[k] for k in parts], [label[k] for k in parts], sample_weight=[copies[k] for k in parts]
    )
    assert_same_model(model, fit(source, **options))


@pytest.mark.parametrize(
    "options",
    [
        {"max_leaf_nodes": 7},
        {"categorical_features": [3], "categorical_smoothing": 0.0, "growth": "independent"},
        {"histogram_precision": "wide", "leaf_update": "newton"},
        {"loss": "softmax", "validation": 0.25},
    ],
    ids=str,
)
def test_trees_grown_on_drawn_rows_and_on_all_rows_are_equal(monkeypatch, options):
    """The other rows are inserted after growth, or are in the nodes with words of 0."""
    X, label, copies = table(300, 1)
    X[:, 3] = np.round(2 * X[:, 3])
    weight = np.where(np.arange(300) % 9, copies + 0.5 * (copies > 2), 0.0)
    model = fit(X, label, sample_weight=weight, **options)
    monkeypatch.setattr(Rounds, "grows_on_drawn", False)
    other = fit(X, label, sample_weight=weight, **options)
    assert_same_model(model, other)
    np.testing.assert_array_equal(model.trees.n_rows, other.trees.n_rows)


def test_threads_draw_the_same_rows():
    """Each thread lists the drawn rows of its ranges, and the lists are then joined."""
    rng = np.random.default_rng(2)
    hashes = rng.integers(2**64, size=50_000, dtype=np.uint64)
    rows = np.flatnonzero(rng.random(50_000) < 0.9).astype(np.int32)
    draws = RowDraws(hashes, rows, 0.3, 1)
    with Workers(2) as workers:
        drawn = draws.drawn(5, workers.team)
    assert drawn.tolist() == draws.drawn(5).tolist()
    assert 0.28 < len(drawn) / len(rows) < 0.32
    assert np.isin(drawn, rows).all()
    assert (np.diff(drawn) > 0).all()


def test_the_default_seed_is_zero():
    X, label, _ = table()
    model = fit(X, label)
    assert_same_model(model, fit(X, label))
    assert_same_model(model, fit(X, label, rng=0))
    assert not np.array_equal(model.training_loss, fit(X, label, rng=1).training_loss)
    assert_same_model(
        fit(X, label, n_estimators=6), pb.continue_fit(model, X, label, n_estimators=2)
    )


def test_a_draw_without_rows_uses_all():
    """With one row on average, many draws are empty."""
    X, label, _ = table(50)
    model = fit(X, label, subsample=1, n_estimators=30)
    n_leaves = {int((tree.feature < 0).sum()) for tree in model.trees}
    assert 1 in n_leaves
    assert max(n_leaves) > 8
    parts = np.array_split(np.arange(50), 2)
    source = pb.partitions([X[k] for k in parts], [label[k] for k in parts])
    assert_same_model(model, fit(source, subsample=1, n_estimators=30))


def test_more_rows_than_there_are():
    X, label, _ = table(50)
    with pytest.raises(ValueError, match=r"^subsample: expected at most 50, the number of rows"):
        fit(X, label, subsample=51)
    fit(X, label, subsample=60, sample_weight=np.full(50, 2.0) - (np.arange(50) < 10))
