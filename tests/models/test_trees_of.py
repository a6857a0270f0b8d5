"""The record of the trees that a model is the sum of says all that its values need."""

from __future__ import annotations

import pickle
from dataclasses import replace

import exported
import inspected
import numpy as np
import pytest
from exported import EVERY, WITH_HOLES, decoded, made, rows_for
from oracle_learners import train_stump
from reference import tree_sum as twin
from sided_trees import random_forest, random_rows

import pboost as pb
from pboost.models.unroll import count_unrolled


def values_of(model, X):
    """Return decision values; of trees of several labels the shares."""
    has_shares = isinstance(model, pb.Tree | pb.Forest) and model.labels is not None
    many = has_shares and len(model.labels) > 2
    return pb.predict_proba(model, X) if many else pb.decision_function(model, X)


def assert_rebuilt(model, X, rows):
    trees = pb.trees_of(model)
    values = twin.values(trees, rows)
    expected = values_of(model, X)
    many = trees.link == "shares" and len(trees.labels) > 2
    found = values if many else twin.decision_values(trees, rows)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15 * (1 + twin.size(trees).max()))
    lead = np.abs(values if values.shape[1] == 1 else np.diff(np.sort(values))[:, -1:])[:, 0]
    clear = lead > 1e-12
    if trees.labels is None:
        np.testing.assert_allclose(twin.predictions(trees, rows), pb.predict(model, X), rtol=1e-14)
    else:
        assert np.array_equal(twin.predictions(trees, rows)[clear], pb.predict(model, X)[clear])
    if trees.labels is not None and trees.link != "none":
        share = pb.predict_proba(model, X)
        np.testing.assert_allclose(twin.probabilities(trees, rows), share, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kind", EVERY)
def test_values_labels_and_probabilities_are_rebuilt(kind):
    model = made(kind)
    rows = rows_for(model)
    X = decoded(model, rows)
    trees = pb.trees_of(model)
    assert np.array_equal(trees.rows(X), rows, equal_nan=True)
    if kind in WITH_HOLES:
        assert trees.n_sets
        assert np.isnan(rows).any()
    assert_rebuilt(model, X, rows)


@pytest.mark.parametrize("seed", range(6))
def test_trees_made_by_hand(seed):
    rng = np.random.default_rng(seed)
    n_classes = [2, 3, 0][seed % 3]
    forest = random_forest(rng, 5, 6, categories=(1, 4), n_classes=n_classes)
    rows = random_rows(rng, 120, 6, (1, 4))
    assert_rebuilt(forest, rows, rows)
    assert_rebuilt(forest[3], rows, rows)


def test_what_the_record_says():
    trees = pb.trees_of(made("votes"), exported.X[:50])
    assert trees.builder == "fit_boosted_tree"
    assert (trees.n_trees, trees.n_values, trees.aggregation, trees.comparison) == (
        1,
        3,
        "sum",
        "<=",
    )
    assert trees.n_nodes == 2 * made("votes").n_nodes + 1
    assert trees.labels.tolist() == ["ash", "elm", "oak"]
    assert repr(trees) == "<trees of fit_boosted_tree: 1 tree, 19 nodes>"
    assert pb.trees_of(made("forest")).aggregation == "mean"
    assert pb.trees_of(made("softmax")).target.tolist() == [0, 1, 2] * 3
    assert pb.trees_of(made("chain")).n_trees == made("chain").n_nodes
    assert pb.trees_of(made("chain")).depths.tolist() == [1] * made("chain").n_nodes
    assert pb.trees_of(pb.fit_adaboost(exported.PLAIN, exported.TWO, rounds=2)).missing is not None
    with pytest.raises(ValueError, match="read-only"):
        trees.value[0] = 1
    again = pickle.loads(pickle.dumps(trees))
    assert again.value.tobytes() == trees.value.tobytes()
    assert again.table == trees.table


def test_sets_are_those_of_levels():
    trees = pb.trees_of(made("cart"))
    number = int(trees.level_set[trees.level_set >= 0][0])
    assert [int(trees.sets[number, b // 64]) >> (b % 64) & 1 for b in range(256)] == [
        int(b in trees.levels(number)) for b in range(256)
    ]


# Graphs whose exits join


def shaped(nodes):
    """Return a ladder: both exits of every node lead to the next, but for one that skips it."""
    model = pb.fit_adaboost(exported.PLAIN, exported.TWO, rounds=nodes)
    n = model.n_nodes
    next_ = np.array([[i + 1, min(i + 2, n)] for i in range(n)])
    return replace(model, next=np.where(next_ >= n, -1, next_))


def test_paths_are_counted_before_they_are_made():
    ladder = shaped(300)
    fibonacci = [1, 1]
    while len(fibonacci) < ladder.n_nodes + 2:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    paths = fibonacci[ladder.n_nodes]
    assert count_unrolled(ladder) > 10**50
    with pytest.raises(
        ValueError, match=f"max_nodes: expected at least {count_unrolled(ladder)}, "
    ):
        pb.trees_of(ladder)
    assert abs(count_unrolled(ladder) / paths) < 10


@pytest.mark.parametrize("nodes", [1, 2, 3, 9])
def test_the_count_is_right(nodes):
    ladder = shaped(nodes)
    count = count_unrolled(ladder)
    assert pb.trees_of(ladder, max_nodes=count).n_nodes == count
    with pytest.raises(ValueError, match=f"got {count - 1}; export_c"):
        pb.trees_of(ladder, max_nodes=count - 1)
    assert_rebuilt(ladder, exported.PLAIN, exported.PLAIN)


def test_joints_cut_paths():
    """A sum of matryoshki that all paths meet between is a sum of their trees."""
    outer = made("matryoshka")
    trees = pb.trees_of(outer)
    assert trees.n_trees == outer.n_joints > 1


# Weights


WEIGHTED = [
    "chain", "tree", "matryoshka, soft", "votes", "gaussian", "forest", "softmax", "both ways",
    "nothing to learn",
]  # fmt: skip


@pytest.mark.parametrize("kind", WEIGHTED)
def test_weights_add_up(kind):
    model = made(kind)
    X = exported.X if kind in WITH_HOLES else exported.PLAIN
    trees = pb.trees_of(model, X)
    inner = np.flatnonzero(trees.feature >= 0)
    below = trees.weight[trees.children[inner] + trees.start[inner, None]].sum(axis=1)
    np.testing.assert_allclose(below, trees.weight[inner], rtol=1e-12)
    np.testing.assert_allclose(trees.weight[trees.root[:-1]], len(X), rtol=1e-12)


@pytest.mark.parametrize("kind", ["chain", "matryoshka", "cart, three", "logistic"])
def test_weights_of_exact_models_count_rows(kind):
    model, X = made(kind), exported.X
    trees = pb.trees_of(model, X)
    rows, expected = trees.rows(X), np.zeros(trees.n_nodes)
    for row in rows:
        for tree in range(trees.n_trees):
            expected[twin.leaf_of(trees, tree, row)] += 1
    is_leaf = trees.feature < 0
    assert np.array_equal(trees.weight[is_leaf], expected[is_leaf])


def test_weights_of_soft_models_are_masses(monkeypatch):
    model = made("soft tree")
    trees = pb.trees_of(model, exported.PLAIN)
    assert (trees.weight > 0).all()
    # A tree without joins has one path to each of its nodes.
    mass = pb.reach(model, exported.PLAIN, pb.predict(model, exported.PLAIN)).sum(axis=0)
    inner = trees.weight[trees.feature >= 0]
    np.testing.assert_allclose(np.sort(inner), np.sort(mass), rtol=1e-12)
    monkeypatch.setattr("pboost.models.unroll.CELLS", 40)  # two rows at a time
    again = pb.trees_of(model, exported.PLAIN)
    np.testing.assert_allclose(again.weight, trees.weight, rtol=1e-12)


def test_weights_of_training():
    forest = made("forest")
    assert np.array_equal(pb.trees_of(forest).weight, forest.weight)
    assert pb.trees_of(made("chain")).weight is None


# What is refused


@pytest.mark.parametrize(("kind", "said"), [
    ("affine", "got a DecisionGraph, whose nodes compare sums of columns.*weak=stump"),
    ("separators", "whose nodes compare sums"), ("linear", "whose nodes compare sums"),
    ("columns", "got a LinearModel, which is one linear function: see coefficients"),
    ("probit", "got a ProbitModel, .*coefficients"), ("probit tree", "leaves are linear functions"),
    ("sbpmt", "got a SubaggedProbitTrees, whose leaves"), ("bagging of chains", r"model\[i\]"),
])  # fmt: skip
def test_other_models_are_refused(kind, said):
    with pytest.raises(TypeError, match=f"model: expected a sum of trees.*{said}"):
        pb.trees_of(inspected.made(kind))


@pytest.mark.filterwarnings("ignore:X_cal. .* rows equal rows:UserWarning")
def test_models_that_hold_functions_are_refused():
    stop = pb.early_exit(made("forest"), exported.X, comparisons=9)
    with pytest.raises(TypeError, match=r"model\.model is the whole model"):
        pb.trees_of(stop)
    calibrated = pb.calibrate(made("forest"), exported.X, exported.TWO)
    with pytest.raises(TypeError, match=r"CalibratedModel, .*model\.model"):
        pb.trees_of(calibrated)
    with pytest.raises(TypeError, match="model: expected a model such as"):
        pb.trees_of("model")


def test_oracles_are_refused():
    weak = pb.weak.oracle(train_stump)
    model = pb.fit_adaboost(exported.PLAIN, exported.TWO, rounds=2, weak=weak, rng=0)
    with pytest.raises(TypeError, match="functions of a row"):
        pb.trees_of(model)


def test_options_are_checked():
    with pytest.raises(ValueError, match="max_nodes: expected an integer"):
        pb.trees_of(made("chain"), max_nodes=0)
    with pytest.raises(ValueError, match="X: expected at least one row"):
        pb.trees_of(made("chain"), exported.X[:0])
    with pytest.raises(ValueError, match="columns"):
        pb.trees_of(made("chain"), exported.X[:, :2])


@pytest.mark.parametrize(("field", "change", "said"), [
    ("children", lambda a: a[::-1], "children"),
    ("children", lambda a: np.where(a == a.max(), a.max() - 1, a), "must be the child of one"),
    ("missing", lambda a: a + 1, "missing: expected the child"),
    ("threshold", lambda a: a + 1, "threshold: expected 0"),
    ("threshold", lambda a: a * np.nan, "threshold: expected finite"),
    ("feature", lambda a: a + 9, "feature"),
    ("value", lambda a: a[:, :0], "value: expected shape"),
    ("bias", lambda a: a[:0], "shape .*, 0"), ("bias", lambda a: a + np.inf, "bias"),
    ("link", str.upper, "link: expected one of"),
    ("aggregation", str.upper, "aggregation: expected one of"),
    ("comparison", lambda a: "<", "comparison: expected one of"),
    ("root", lambda a: a[:-1], "root"),
    ("sets", lambda a: a | np.uint64(1 << 63), "levels below 255"),
    ("target", lambda a: [0], "no target of one"),
], ids=lambda v: v if isinstance(v, str) else "")  # fmt: skip
def test_damaged_records_are_refused(field, change, said):
    trees = pb.trees_of(made("cart, numbers"))
    with pytest.raises(ValueError, match=said):
        replace(trees, **{field: change(getattr(trees, field))})
