"""Models of many more columns than their files have bytes.

`n_features` is a number in the header: a file of a few kilobytes can say 2**31 - 1. `describe` and
the command line then made a name for each column. Only columns that are read are named.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from model_files import forge, members_of, tree, zip_up

import pboost as pb
from pboost.data.node_inputs import ColumnNames
from pboost.models.text import input_names

COLUMNS, OF_TREES = 2**31 - 1, 2**25 - 1
X, Y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]


def widened(tmp_path, model, n_features, **fields):
    """The model, loaded from a file that says that there are so many columns."""
    path = tmp_path / "model.npz"
    pb.save(model, path)
    zip_up(path, forge(members_of(path), n_features=n_features, **fields))
    assert path.stat().st_size < 10_000
    return pb.load(path)


@pytest.mark.parametrize(
    ("model", "n_features"),
    [
        (tree(feature_names=None), COLUMNS),
        (pb.fit_boosted_tree(X, Y, nodes=2, weak=pb.weak.affine()), COLUMNS),
        (pb.fit_boosted_tree(X, Y, nodes=2, weak=pb.weak.separator()), COLUMNS),
        (pb.fit_cart(X, Y), OF_TREES),
        (pb.fit_forest(X, Y, members=2, rng=0), OF_TREES),
        (pb.fit_stagewise(X, Y, steps=2, loss="logistic"), OF_TREES),
    ],
    ids=["graph", "affine", "separator", "tree", "forest", "stagewise"],
)
def test_descriptions_name_the_columns_that_are_read(tmp_path, model, n_features):
    # Without the means of columns, of which there is one each, as in files of format 1.0.
    model = widened(tmp_path, model, n_features, projection_fill=None)
    tracemalloc.start()
    try:
        said = pb.describe(model)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert f"{n_features} features" in said
    assert most < 10_000_000


def test_a_file_has_means_of_all_columns_or_of_none(tmp_path):
    model = pb.fit_boosted_tree(X, Y, nodes=2, weak=pb.weak.affine())
    tracemalloc.start()
    try:
        with pytest.raises(pb.ModelFileError, match=f"fill: expected {COLUMNS} finite numbers"):
            widened(tmp_path, model, COLUMNS)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 10_000_000


def test_composites_name_columns_of_members(tmp_path):
    model = pb.fit_one_vs_rest(pb.fit_boosted_tree, X, [0, 0, 1, 2], nodes=1)
    members = tuple(widened(tmp_path, one, COLUMNS) for one in model.models)
    wide = type(model)(members, model.labels, model.settings)
    pb.save(wide, tmp_path / "wide.npz")
    assert wide.n_features == COLUMNS
    assert "x[0] <= " in pb.describe(pb.load(tmp_path / "wide.npz"))


def test_names_are_made_one_by_one():
    names = ColumnNames(None, COLUMNS)
    assert len(names) == COLUMNS
    assert (names[0], names[COLUMNS - 1], names[-1]) == ("x[0]", f"x[{COLUMNS - 1}]", names[-1])
    assert list(names[3:5]) == ["x[3]", "x[4]"]
    with pytest.raises(IndexError):
        names[COLUMNS]
    named = ColumnNames(("a", "b"), 2)
    assert (named[1], *named[:1], len(named)) == ("b", "a", 2)
    assert tuple(input_names(tree())) == tree().feature_names


def test_importances_of_a_forest_are_added_up(tmp_path):
    forest = pb.fit_forest(X, Y, members=20, rng=0)
    wide = widened(tmp_path, forest, 100_000)
    tracemalloc.start()
    try:
        found = pb.feature_importances(wide)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 5 * found.nbytes
    each = [pb.feature_importances(one) for one in forest]
    assert found[:1].tolist() == np.mean(each, axis=0).tolist()
    assert not found[1:].any()
