"""Functions of trees: evaluation, files, importances; and what is refused."""

import pickle

import numpy as np
import pandas as pd
import pytest
from carts import assert_identical

import pboost as pb
from pboost.trees.cart import resolve_features

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = np.where(X[:, 0] > 0.5, "c", np.where(X[:, 1] > 0, "b", "a"))
Z = X[:, 0] + X[:, 1] ** 2
for array in (X, Y, Z):
    array.setflags(write=False)


def walk(tree, row):
    """Return the nodes through which a row goes."""
    path = [0]
    while tree.feature[path[-1]] >= 0:
        node = path[-1]
        path.append(int(tree.children[node, int(row[tree.feature[node]] > tree.threshold[node])]))
    return path


@pytest.fixture(params=["classification", "regression"])
def tree(request):
    return pb.fit_cart(X, Y if request.param == "classification" else Z, task=request.param)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 63, 64, 65, 200])
def test_walks(tree, n):
    rows = np.random.default_rng(1).normal(size=(n, 4))
    paths = [walk(tree, row) for row in rows]
    ends = np.array([path[-1] for path in paths], dtype=int)
    assert [path.tolist() for path in pb.inspection.decision_path(tree, rows)] == paths
    np.testing.assert_array_equal(pb.inspection.apply(tree, rows), tree.leaf[ends])
    np.testing.assert_array_equal(pb.prediction_cost(tree, rows), [len(p) - 1 for p in paths])
    read = [len({int(tree.feature[i]) for i in path[:-1]}) for path in paths]
    np.testing.assert_array_equal(pb.prediction_cost(tree, rows, "features"), read)
    if tree.classes is None:
        np.testing.assert_array_equal(pb.predict(tree, rows), tree.value[ends])
        np.testing.assert_array_equal(pb.decision_function(tree, rows), tree.value[ends])
    else:
        share = pb.predict_proba(tree, rows)
        np.testing.assert_array_equal(share, tree.value[ends])
        np.testing.assert_array_equal(pb.predict(tree, rows), tree.classes[share.argmax(axis=1)])


def test_layouts_and_types(tree):
    rows = X.astype(np.float32)
    expected = pb.inspection.apply(tree, rows.astype(float))
    for same in (rows, np.asfortranarray(rows), np.repeat(rows, 2, axis=0)[::2], rows.tolist()):
        np.testing.assert_array_equal(pb.inspection.apply(tree, same), expected)


def test_frames():
    frame = pd.DataFrame(X, columns=["p", "q", "r", "s"])
    tree = pb.fit_cart(frame, Y)
    assert tree.feature_names == ("p", "q", "r", "s")
    np.testing.assert_array_equal(pb.predict(tree, frame[["s", "q", "r", "p"]]), Y)
    assert "p <= " in pb.describe(tree)
    with pytest.raises(ValueError, match="missing: p"):
        pb.predict(tree, frame[["q", "r", "s"]])
    rise = pb.inspection.permutation_importance(tree, frame[["s", "q", "r", "p"]], Y, rng=0)
    assert rise.mean(axis=1).argsort()[2:].tolist() in ([0, 1], [1, 0])


def test_decision_values_of_two_classes():
    tree = pb.fit_cart(X, Y == "a", max_depth=2)
    share = pb.predict_proba(tree, X)
    np.testing.assert_array_equal(pb.decision_function(tree, X), share[:, 1] - share[:, 0])
    assert tree.classes.dtype == bool
    np.testing.assert_array_equal(pb.predict(tree, X), share[:, 1] > share[:, 0])


def test_what_a_tree_has_not():
    many, numbers = pb.fit_cart(X, Y), pb.fit_cart(X, Z, task="regression")
    with pytest.raises(TypeError, match="3 classes"):
        pb.decision_function(many, X)
    with pytest.raises(TypeError, match="no probabilities"):
        pb.predict_proba(numbers, X)
    with pytest.raises(TypeError, match="route='expected', got a Tree, whose nodes have no votes"):
        pb.decision_function(numbers, X, "expected")


@pytest.mark.parametrize("prune", [False, True])
def test_files_and_pickles(tree, prune, tmp_path):
    y = Z if tree.classes is None else Y
    if prune:
        tree = pb.fit_pruned_cart(X, y, task=tree.task, cv=3, rng=0)
    path = tmp_path / "tree.npz"
    pb.save(tree, path)
    content = path.read_bytes()
    for other in (pb.load(path), pickle.loads(pickle.dumps(tree))):
        assert_identical(tree, other)
        assert pb.describe(tree) == pb.describe(other)
        assert str(tree.pruning) == str(other.pruning)
        np.testing.assert_array_equal(pb.predict(tree, X), pb.predict(other, X))
        pb.save(other, path)
        assert path.read_bytes() == content


def test_a_damaged_file(tree, tmp_path):
    path = tmp_path / "tree.npz"
    pb.save(tree, path)
    content = bytearray(path.read_bytes())
    content[content.index(b"threshold.npy") + 145] ^= 1  # of the first value
    path.write_bytes(content)
    with pytest.raises(pb.models.ModelFileError):
        pb.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("feature", lambda a: np.where(a == a.max(), 4, a)),
        ("feature", lambda a: a[:-1]),
        ("children", lambda a: np.where(a < 0, a, np.roll(a, 1, axis=1))),
        ("children", lambda a: np.where(a < 0, a, 1)),
        ("children", lambda a: np.zeros_like(a)),
        ("value", lambda a: a * np.nan),
        ("value", lambda a: -a - 1),
        ("weight", lambda a: -a),
        ("threshold", lambda a: a + np.inf),
    ],
)
def test_bad_trees(name, change):
    tree = pb.fit_cart(X, Y)
    arrays = {column: getattr(tree, column) for column in pb.models.single_tree.TREE_COLUMNS}
    arrays[name] = change(arrays[name])
    rest = {"classes": tree.classes, "n_features": 4, "feature_names": None, "settings": {}}
    with pytest.raises(ValueError, match=name if name != "feature" else "."):
        pb.models.Tree(**arrays, **rest, stop_reason="")


def test_arrays_cannot_be_written(tree):
    with pytest.raises(ValueError):
        tree.threshold[0] = 1.0
    with pytest.raises(ValueError):
        tree.value.setflags(write=True)


def test_importances_of_impurity(tree):
    importances = pb.feature_importances(tree)
    risk = tree.weight * tree.impurity
    expected = np.zeros(4)
    for node in np.flatnonzero(tree.feature >= 0):
        expected[tree.feature[node]] += risk[node] - risk[tree.children[node]].sum()
    np.testing.assert_allclose(importances, expected / expected.sum(), atol=1e-12)
    assert importances[2:].max() < 0.2


def test_importances_without_gain():
    assert pb.feature_importances(pb.fit_cart([[0.0], [0.0]], ["a", "b"])).tolist() == [0.0]


def test_importances_by_permutation(tree):
    y = Z if tree.classes is None else Y
    before = X.copy()
    rise = pb.inspection.permutation_importance(tree, X, y, n_repeats=5, rng=1)
    np.testing.assert_array_equal(X, before)
    assert rise.shape == (4, 5)
    draw = np.random.default_rng(1)
    shuffled = X.copy()
    shuffled[:, 0] = draw.permutation(X[:, 0])
    predicted = pb.predict(tree, shuffled)
    error = ((predicted - y) ** 2).mean() if tree.classes is None else (predicted != y).mean()
    assert rise[0, 0] == pytest.approx(error)  # the tree is without error on its training rows
    graph = pb.fit_boosted_tree(X, Y == "a", max_nodes=5)
    assert pb.inspection.permutation_importance(graph, X, Y == "a", rng=0)[1].mean() > 0.1


def test_cross_validation_of_trees():
    validated = pb.cross_validate(pb.fit_cart, X, Y, cv=4, rng=0)
    assert np.isnan(validated.certificate).all()
    assert "certificate" not in validated.summary()
    error = []
    for fold in range(4):
        test = validated.test_fold == fold
        tree = pb.fit_cart(X[~test], Y[~test])
        error.append((pb.predict(tree, X[test]) != Y[test]).mean())
        assert validated.n_nodes[fold] == tree.n_nodes
        counts = [np.count_nonzero(test & (label == Y)) for label in "abc"]
        sizes = np.unique(Y, return_counts=True)[1]
        np.testing.assert_allclose(counts, sizes / 4, atol=1)
    np.testing.assert_array_equal(validated.error, error)
    with pytest.warns(UserWarning, match="class 'c' has 1 row, fewer than the 2 folds"):
        pb.cross_validate(pb.fit_cart, X[:12], np.array(list("aaaaaaaaabbc")), cv=2)


def test_a_class_without_weight():
    weight = (Y != "b").astype(float)
    tree = pb.fit_cart(X, Y, sample_weight=weight)
    assert tree.classes.tolist() == ["a", "b", "c"]
    assert (pb.predict_proba(tree, X)[:, 1] == 0).all()
    single = pb.fit_cart(X, Y, sample_weight=(Y == "b").astype(float))
    assert (single.n_leaves, set(pb.predict(single, X))) == (1, {"b"})


def test_constant_targets_and_columns():
    tree = pb.fit_cart(X, np.full(200, 0.1), task="regression")
    assert (tree.n_leaves, tree.value[0], tree.impurity[0]) == (1, 0.1, 0.0)
    tree = pb.fit_cart(np.ones((200, 2)), Y)
    assert tree.n_leaves == 1
    np.testing.assert_allclose(tree.value[0], np.unique(Y, return_counts=True)[1] / 200)
    assert "1 leaf" in pb.describe(tree)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": np.full(200, "a")}, "y: expected at least two classes"),
        ({"y": np.where(X[:, 0] > 0, np.nan, 1)}, "y: missing label in row"),
        ({"y": Y[1:]}, "y: expected 200 labels"),
        ({"y": np.where(X[:, 0] > 0, np.nan, 1), "task": "regression"}, "y: expected finite"),
        ({"y": np.full(200, np.inf), "task": "regression"}, "y: expected finite"),
        ({"y": np.full(200, 1e200), "task": "regression"}, "y: expected finite"),
        ({"y": Z[1:], "task": "regression"}, "y: expected 200 numbers"),
        ({"task": "regression"}, "y: expected numbers"),
        ({"task": "ranking"}, "task: "),
        ({"task": "classification", "criterion": "squared_error"}, "criterion: "),
        ({"criterion": "kearns_mansour"}, "criterion: expected two classes .*, got 3"),
        ({"task": "regression", "criterion": "gini", "y": Z}, "criterion: "),
        ({"max_depth": 0}, "max_depth: "),
        ({"min_samples_leaf": 0}, "min_samples_leaf: "),
        ({"min_samples_leaf": 1.5}, "min_samples_leaf: "),
        ({"min_samples_split": 1}, "min_samples_split: "),
        ({"max_leaf_nodes": 0}, "max_leaf_nodes: "),
        ({"max_leaf_nodes": 4, "growth": "depth_first"}, "max_leaf_nodes: "),
        ({"growth": "breadth_first"}, "growth: "),
        ({"max_features": 0}, "max_features: "),
        ({"max_features": 5}, "max_features: .* from 1 to 4"),
        ({"max_features": 0.0}, "max_features: "),
        ({"max_features": 1.5}, "max_features: "),
        ({"max_features": np.nan}, "max_features: "),
        ({"max_features": "all"}, "max_features: "),
        ({"search": "fast"}, "search: "),
        ({"max_bins": 1}, "max_bins: "),
        ({"sample_weight": -np.ones(200)}, "sample_weight: "),
        ({"sample_weight": np.zeros(200)}, "sample_weight: "),
        ({"sample_weight": np.full(200, 1e308)}, "sample_weight: .*finite sum"),
        ({"callback": 3}, "callback: "),
        ({"rng": "seed"}, "rng: "),
        ({"X": pb.data.bin_columns(X), "search": "exact"}, "search: "),
        ({"X": pb.data.sort_columns(X), "search": "binned"}, "search: "),
    ],
)
def test_bad_options(options, message):
    options = dict(options)
    rows, y = options.pop("X", X), options.pop("y", Y)
    with pytest.raises((ValueError, TypeError), match=message):
        pb.fit_cart(rows, y, **options)


@pytest.mark.parametrize(
    ("max_features", "d", "expected"),
    [
        ("sqrt", 20, 4),
        ("log2", 20, 4),
        ("sqrt", 1, 1),
        ("log2", 1, 1),
        (0.5, 7, 4),
        (0.01, 7, 1),
        (1.0, 7, 7),
        (3, 7, 3),
        (None, 7, 7),
    ],
)
def test_number_of_columns(max_features, d, expected):
    assert resolve_features(max_features, d) == expected


def test_bad_rows(tree):
    for call in (pb.predict, pb.inspection.apply, pb.inspection.decision_path, pb.prediction_cost):
        with pytest.raises(ValueError, match="inf in column 2, row 1"):
            call(tree, [[0, 0, 0, np.nan], [0, 0, np.inf, 0]])
        with pytest.raises(ValueError, match="4 columns"):
            call(tree, X[:, :3])
    with pytest.raises(TypeError, match="tree: "):
        pb.inspection.apply(pb.fit_adaboost(X, Y == "a", n_estimators=2), X)
