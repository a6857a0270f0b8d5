"""Fits on partitions go on: the bytes of the model that goes on in one table."""

import re

import numpy as np
import pytest
from partitioned import (
    PARTS,
    TABLES,
    VALUED,
    bin_parts,
    contents,
    continue_parted,
    divided,
    fit_parted,
    send_few_rows,
)

import pboost as pb

GAUSSIAN = pb.observation.gaussian(0.3)
#: Builders, what is fitted and what is added.
GRAPHS = {
    "chain": ("fit_adaboost", {"n_estimators": 5}, {"n_estimators": 6}),
    "symmetric": ("fit_adaboost", {"n_estimators": 5, "votes": "symmetric"}, {"n_estimators": 4}),
    "adatree2": (
        "fit_adaboost",
        {"n_estimators": 4, "observation": pb.observation.adatree2()},
        {"n_estimators": 5},
    ),
    "uncertain from then on": (
        "fit_adaboost",
        {"n_estimators": 4},
        {"n_estimators": 3, "observation": pb.observation.flip(0.1), "smoothing": 0.01},
    ),
    "soft tree": (
        "fit_boosted_tree",
        {"max_nodes": 4, "observation": pb.observation.uniform()},
        {"max_nodes": 4},
    ),
    "breadth": (
        "fit_boosted_tree",
        {"max_nodes": 3, "observation": pb.observation.flip(0.2)},
        {"max_nodes": 4, "growth": "breadth_first", "weak_learner": pb.weak.stump("gini")},
    ),
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_graphs_go_on_as_in_one_table(kind, tmp_path):
    builder, options, more = GRAPHS[kind]
    names = ("numbers", "ties", "weights", "holes", "categories, weights")
    for n_parts, name in zip((*PARTS, 3), names, strict=True):
        columns, y, weight = VALUED[name]
        X, labels, weights = divided(TABLES[name], n_parts)
        first = getattr(pb, builder)(columns, y, sample_weight=weight, **options)
        full_model = pb.continue_fit(first, columns, y, sample_weight=weight, **more)
        model = continue_parted(first, X, labels, sample_weight=weights, **more)
        assert contents(model, tmp_path) == contents(full_model, tmp_path), name
        assert model.n_nodes > first.n_nodes


TREES = {
    "best": ({"max_nodes": 6}, {"max_nodes": 5}),
    "breadth": ({"max_nodes": 4, "growth": "breadth_first"}, {"max_nodes": 7}),
    "limits": (
        {"max_nodes": 5, "max_depth": 4, "weak_learner": pb.weak.stump("gini", min_samples_leaf=9)},
        {"max_nodes": 4},
    ),
    "no nodes": (
        {"max_nodes": 1, "weak_learner": pb.weak.stump(min_samples_leaf=150)},
        {"max_nodes": 3},
    ),
}


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("few", [True, False])
def test_trees_of_exact_answers_go_on_as_in_one_table(kind, few, tmp_path, monkeypatch):
    options, more = TREES[kind]
    if few:
        send_few_rows(monkeypatch)
    names = "numbers", "ties", "weights", "holes", "categories, weights", "large weights"
    for n_parts, name in zip((1, 2, 3, 5, 16, 2), names, strict=True):
        columns, y, weight = VALUED[name]
        X, labels, weights = divided(TABLES[name], n_parts)
        first = pb.fit_boosted_tree(columns, y, sample_weight=weight, **options)
        full_model = pb.continue_fit(first, columns, y, sample_weight=weight, **more)
        model = continue_parted(first, X, labels, sample_weight=weights, **more)
        assert contents(model, tmp_path) == contents(full_model, tmp_path), name


def test_trees_go_on_with_other_rows(tmp_path, monkeypatch):
    send_few_rows(monkeypatch)
    columns, y, _ = VALUED["categories"]
    first = pb.fit_boosted_tree(columns, y, max_nodes=8)
    rows = np.flatnonzero(np.random.default_rng(2).random(len(y)) < 0.3).astype(np.int32)
    full_model = pb.continue_fit(first, columns.select(rows), y[rows], max_nodes=4)
    parts = rows[:11], rows[11:]
    plain = TABLES["categories"][0]
    model = continue_parted(
        first, [plain.select(r) for r in parts], [y[r] for r in parts], max_nodes=4
    )
    assert contents(model, tmp_path) == contents(full_model, tmp_path)


def test_one_longer_fit_gives_the_votes(tmp_path):
    X, labels, weights = divided(TABLES["weights"], 4)
    first = fit_parted("fit_adaboost", X, labels, sample_weight=weights, n_estimators=5)
    longer = continue_parted(first, X, labels, sample_weight=weights, n_estimators=5)
    at_once = fit_parted("fit_adaboost", X, labels, sample_weight=weights, n_estimators=10)
    for name in ("vote", "threshold", "feature"):
        assert getattr(longer, name).tobytes() == getattr(at_once, name).tobytes()
    assert longer.record.certificate.tobytes() == at_once.record.certificate.tobytes()


def test_other_rows_whose_bins_are_cut_by_thresholds(tmp_path):
    rng = np.random.default_rng(5)
    X, other = rng.normal(size=(200, 3)), rng.normal(size=(150, 3)).round(1)
    y, labels = X[:, 0] > rng.normal(size=200), other[:, 0] > rng.normal(size=150)
    parts = [other[:20], other[20:]], [labels[:20], labels[20:]]
    for values in (False, True):
        columns = pb.data.bin_columns(other, max_bins=9, keep_values=values)
        binned = bin_parts(parts[0], max_bins=9, keep_values=values)
        first = pb.fit_gradient_boosting(X, y, n_estimators=5)
        full_model = pb.continue_fit(first, columns, labels, n_estimators=5)
        model = continue_parted(first, binned, parts[1], n_estimators=5)
        assert contents(model, tmp_path) == contents(full_model, tmp_path)
        first = pb.fit_adaboost(X, y, n_estimators=5)
        with pytest.raises(ValueError, match="got a threshold inside a bin"):
            pb.continue_fit(first, columns, labels, n_estimators=5)
        with pytest.raises(ValueError, match="got a threshold inside a bin"):
            continue_parted(first, binned, parts[1], n_estimators=5)
        first = pb.fit_adaboost(pb.data.bin_columns(other, max_bins=9), labels, n_estimators=5)
        rows = rng.permutation(150)[:90].astype(np.int32)
        full_model = pb.continue_fit(first, columns.select(rows), labels[rows], n_estimators=4)
        halves = [columns.select(rows[:30]), columns.select(rows[30:])]
        model = continue_parted(
            first, halves, [labels[rows[:30]], labels[rows[30:]]], n_estimators=4
        )
        assert contents(model, tmp_path) == contents(full_model, tmp_path)


SUMS = {
    "log_loss": {"loss": "log_loss"},
    "newton": {"loss": "exponential", "leaf_update": "newton"},
    "drawn": {"loss": "log_loss", "max_features_per_tree": 2, "max_features": 1, "rng": 3},
    "numbers": {"loss": "squared_error", "growth": "independent"},
    "held out": {"loss": "log_loss", "validation": 0.3, "n_iter_no_change": 2, "rng": 8},
}


@pytest.mark.parametrize("kind", SUMS)
def test_sums_go_on_as_in_one_table(kind, tmp_path):
    names = ("numbers", "weights", "holes", "categories, weights", "large weights")
    for n_parts, name in zip((*PARTS, 3), names, strict=True):
        columns, y, weight = TABLES[name]
        y = np.unique(y, return_inverse=True)[1] * 1.5 if kind == "numbers" else y
        options = {"n_estimators": 4, **SUMS[kind]}
        first = pb.fit_gradient_boosting(columns, y, sample_weight=weight, **options)
        full_model = pb.continue_fit(first, columns, y, sample_weight=weight, n_estimators=3)
        cuts = np.sort(np.random.default_rng(n_parts).integers(0, len(y), n_parts - 1))
        rows = np.split(np.arange(len(y), dtype=np.int32), cuts)
        model = continue_parted(
            first,
            [columns.select(r) for r in rows],
            [y[r] for r in rows],
            n_estimators=3,
            sample_weight=None if weight is None else [weight[r] for r in rows],
        )
        assert contents(model, tmp_path) == contents(full_model, tmp_path), name
    rows = columns.select(np.arange(60, dtype=np.int32)), y[:60]
    if kind != "held out":
        with pytest.raises(ValueError, match="validation: expected None, because the model was"):
            continue_parted(first, [rows[0]], [rows[1]], n_estimators=3, validation=rows)


def test_validation_rows_are_given_once_more(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 4)), rng.integers(0, 2, 200)
    held = rng.normal(size=(50, 4)), rng.integers(0, 2, 50)
    first = pb.fit_gradient_boosting(pb.data.bin_columns(X), y, n_estimators=3, validation=held)
    full_model = pb.continue_fit(first, pb.data.bin_columns(X), y, n_estimators=3, validation=held)
    parts = bin_parts([X[:30], X[30:]])
    labels = [y[:30], y[30:]]
    model = continue_parted(first, parts, labels, n_estimators=3, validation=held)
    assert contents(model, tmp_path) == contents(full_model, tmp_path)


def refused():
    """Return models, options, and what is said of them."""
    columns, y, _ = TABLES["numbers"]
    chain = pb.fit_adaboost(columns, y, n_estimators=3)
    nested = pb.fit_matryoshka(columns, y, shape=(2, 2))
    forest = pb.fit_random_forest(columns, y, n_estimators=2, rng=0)
    total = pb.fit_gradient_boosting(columns, y, n_estimators=2)
    exact = pb.fit_gradient_boosting(columns.codes.T * 1.0, y, n_estimators=2, search="exact")
    hinge = pb.fit_gradient_boosting(columns, y, n_estimators=2, loss="hinge")
    words = pb.fit_adaboost(columns, np.where(y, "a", "b"), n_estimators=2)
    fewer = pb.fit_adaboost(columns.codes.T[:, :3] * 1.0, y, n_estimators=2)
    missing = NotImplementedError
    return [
        (chain, {"max_nodes": 2}, missing, "On partitions, continue chains with n_estimators"),
        (nested, {"n_estimators": 2}, missing, "rows.gather()"),
        (
            forest,
            {"n_estimators": 2},
            ValueError,
            "expected the rows of the first fit in the same order",
        ),
        (hinge, {"n_estimators": 2}, missing, "loss: hinge requires all rows"),
        (exact, {"n_estimators": 2}, missing, "search: 'exact' requires"),
        (
            words,
            {"n_estimators": 2},
            ValueError,
            "y: expected the classes of the model, ['a', 'b'], got",
        ),
        (fewer, {"n_estimators": 2}, ValueError, "X: expected 3 features, got 5"),
        (total, {"max_nodes": 2}, TypeError, "max_nodes, model: expected a DecisionGraph"),
        (forest, {"max_nodes": 2}, TypeError, "max_nodes, model: expected a DecisionGraph"),
        (chain, {}, ValueError, "n_estimators, max_nodes: expected exactly one of them, got none"),
        (total, {"n_estimators": 0}, ValueError, "n_estimators"),
        (chain, {"n_estimators": 2, "weak_learner": pb.weak.affine()}, missing, "weak.stump()"),
        (
            chain,
            {"n_estimators": 2, "observation": GAUSSIAN},
            ValueError,
            "observations that are not gauss",
        ),
    ]


def test_what_is_refused():
    X, labels, _ = divided(TABLES["numbers"], 2)
    for model, options, kind, said in refused():
        with pytest.raises(kind, match=re.escape(said)):
            continue_parted(model, X, labels, **options)
