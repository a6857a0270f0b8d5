"""Trees that say where missing values go, and that test sets of levels: fields, parts and files."""

import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from sided_trees import random_forest, random_tree

import pboost as pb
from pboost.models.random_forest import join_trees
from pboost.models.single_tree import SIDES, TREE_COLUMNS
from pboost.trees.pruning import collapsed

FIELDS = (*TREE_COLUMNS, *SIDES)


def assert_same(one, other):
    for name in FIELDS:
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        assert a is None or (a.dtype == b.dtype and np.array_equal(a, b)), name


def asked_by(tree):
    """Return what the nodes of a tree test, however the sets are numbered."""
    actual = []
    for number in tree.feature.tolist():
        k = number - tree.n_features
        actual.append(number if k < 0 else (int(tree.subset_column[k]), tree.subset[k].tobytes()))
    return actual


@pytest.fixture
def forest():
    return random_forest(np.random.default_rng(0), 6, 4, categories=(1, 3))


def test_parts_of_a_forest_take_along_their_sides_and_sets(forest):
    trees = list(forest)
    assert_same(join_trees(trees, forest.settings, None), forest)
    assert_same(forest[:], forest)
    assert_same(join_trees(trees[2:5], forest.settings, None), forest[2:5])
    for tree in trees:
        used = np.unique(tree.feature[tree.feature >= 4]) - 4
        assert len(used) == tree.n_sets  # no others


def test_equal_sets_are_kept_once():
    rng = np.random.default_rng(1)
    trees = [random_tree(rng, 2, categories=(0, 1), depth=3) for _ in range(3)]
    forest = join_trees([*trees, *trees], {}, None)
    assert forest.n_sets == len({t for tree in trees for t in asked_by(tree) if t != -1})
    for tree, item in zip([*trees, *trees], forest, strict=True):
        assert asked_by(tree) == asked_by(item)


def test_trees_of_which_one_knows_no_sides_are_joined_without():
    rng = np.random.default_rng(2)
    first, other = random_tree(rng, 3), replace(random_tree(rng, 3), missing=None)
    assert join_trees([first, other], {}, None).missing is None


def test_collapsed_nodes_lose_their_sets_and_sides():
    tree = random_tree(np.random.default_rng(3), 3, categories=(0, 1, 2), depth=5)
    at = np.zeros(tree.n_nodes, dtype=bool)
    at[tree.children[0, 1]] = True
    actual = collapsed(tree, at, {})
    kept = int(tree.children[0, 1])
    assert asked_by(actual) == [*asked_by(tree)[:kept], -1]
    assert actual.missing.tolist() == [*tree.missing[:kept].tolist(), 0]
    assert actual.n_sets == len({t for t in asked_by(actual) if t != -1})


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("categories", [(), (0, 2)])
@pytest.mark.parametrize("clean", [False, True])
def test_files_and_pickles_hold_sides_and_sets(tmp_path, n_classes, categories, clean):
    rng, path = np.random.default_rng(4), tmp_path / "model.npz"
    options = {"categories": categories, "n_classes": n_classes, "clean": clean}
    tree = random_tree(rng, 3, **options)
    for model in (tree, random_forest(rng, 3, 3, **options)):
        pb.save(model, path)
        assert_same(pb.load(path), model)
        assert_same(pickle.loads(pickle.dumps(model)), model)
        with zipfile.ZipFile(path) as archive:
            names = {name.removesuffix(".npy") for name in archive.namelist()}
        by_reach = np.array_equal(model.missing, model.heavier_child())
        assert by_reach or not clean
        assert ("missing" in names) == (not by_reach)
        assert {"subset", "subset_column"} & names == ({*SIDES[1:]} if categories else set())
        pb.save(pb.load(path), tmp_path / "again.npz")
        assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_sides_that_follow_the_weights_are_no_member(tmp_path):
    X, y = np.arange(20.0).reshape(-1, 1), np.arange(20) % 7 > 2
    tree = pb.fit_cart(X, y)
    assert tree.missing.dtype == np.uint8
    assert tree.missing.any()
    for node in range(tree.n_nodes):
        first, second = tree.children[node]
        heavier = first != -1 and tree.weight[second] > tree.weight[first]
        assert tree.missing[node] == heavier
    pb.save(tree, tmp_path / "model.npz")
    header = np.load(tmp_path / "model.npz")["header"].tobytes()
    assert b'"missing":"reach"' in header
    other = replace(tree, missing=np.where(tree.feature >= 0, 1 - tree.missing, 0))
    pb.save(other, tmp_path / "model.npz")
    assert np.load(tmp_path / "model.npz")["missing"].dtype.str == "|u1"
    assert b'"missing":"reach"' not in np.load(tmp_path / "model.npz")["header"].tobytes()


def test_sums_of_trees_take_along_sides_and_sets(tmp_path):
    rng = np.random.default_rng(5)
    fitted = pb.fit_gradient_boosting(rng.normal(size=(30, 3)), rng.normal(size=30), n_estimators=4)
    trees = random_forest(rng, 4, 3, categories=(1,), n_classes=0)
    model = replace(fitted, trees=trees)
    assert_same(pb.models.truncate(model, 2).trees, trees[:2])
    pb.save(model, tmp_path / "model.npz")
    assert_same(pb.load(tmp_path / "model.npz").trees, trees)
    pb.save(fitted, tmp_path / "model.npz")
    assert_same(pb.load(tmp_path / "model.npz").trees, fitted.trees)


def changed(tree, **values):
    return lambda: replace(tree, **values)


def test_wrong_sides_and_sets_are_refused():
    tree = random_tree(np.random.default_rng(6), 3, categories=(0, 1), depth=3)
    leaf = tree.feature == -1
    is_set = tree.feature >= 3
    for make, expected in (
        (changed(tree, missing=np.where(leaf, 1, tree.missing)), "missing: expected 0 or 1"),
        (changed(tree, missing=np.where(leaf, 0, 2)), "missing: expected 0 or 1"),
        (changed(tree, missing=tree.missing[1:]), "missing: expected shape"),
        (changed(tree, missing=None), "missing: expected an array"),
        (changed(tree, subset=None), "subset: expected both subset and subset_column"),
        (changed(tree, subset_column=None), "feature: expected values in"),
        (changed(tree, subset=tree.subset[:, :3]), "subset: expected shape"),
        (changed(tree, subset_column=tree.subset_column + 3), "subset_column: expected values in"),
        (changed(tree, feature=np.where(is_set, 3 + tree.n_sets, tree.feature)), "feature: exp"),
        (changed(tree, threshold=np.where(is_set, 0.25, tree.threshold)), "threshold: expected"),
        (
            changed(tree, subset=tree.subset | np.uint64(1 << 63)),
            "subset: expected category codes below",
        ),
    ):
        with pytest.raises(ValueError, match=expected):
            make()


def test_a_file_says_in_one_way_where_missing_values_go(tmp_path):
    from pboost.models.single_tree import Tree

    tree = random_tree(np.random.default_rng(7), 3)
    header, arrays = tree.parts()
    assert_same(Tree.from_parts(header, arrays), tree)
    for said in ("other", 1, "reach"):
        with pytest.raises(ValueError, match="missing: expected 'reach'"):
            Tree.from_parts({**header, "missing": said}, arrays)
    without = {name: array for name, array in arrays.items() if name != "missing"}
    assert Tree.from_parts(header, without).missing is None
    assert np.array_equal(
        Tree.from_parts({**header, "missing": "reach"}, without).missing, tree.heavier_child()
    )
