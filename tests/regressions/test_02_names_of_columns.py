"""Models of many more columns than their files have bytes.

`n_features` is a number in the header: a file of a few kilobytes can say 2**31 - 1. `describe` and
the command line then made a name for each column, and so did `to_sql` and `to_c`. Only columns
that are read are named, and a model has 2**25 - 1 at most.
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from measured import peak
from model_files import forge, members_of, tree, zip_up

import pboost as pb
from pboost.data.node_inputs.inputs import ColumnNames
from pboost.models.text import input_names

COLUMNS = 2**25 - 1
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
        (pb.fit_boosted_tree(X, Y, max_nodes=2, weak_learner=pb.weak.affine()), COLUMNS),
        (pb.fit_boosted_tree(X, Y, max_nodes=2, weak_learner=pb.weak.separator()), COLUMNS),
        (pb.fit_cart(X, Y), COLUMNS),
        (pb.fit_random_forest(X, Y, n_estimators=2, rng=0), COLUMNS),
        (pb.fit_gradient_boosting(X, Y, n_estimators=2, loss="log_loss"), COLUMNS),
    ],
    ids=["graph", "affine", "separator", "tree", "forest", "stagewise"],
)
def test_descriptions_name_the_columns_that_are_read(tmp_path, model, n_features):
    # Without the means of columns, of which there is one each, as in files of format 1.0.
    model = widened(tmp_path, model, n_features, projection_fill=None)
    tracemalloc.start()
    try:
        text = pb.describe(model)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert f"{n_features} features" in text
    assert peak < 10_000_000


def test_a_file_has_means_of_all_columns_or_of_none(tmp_path):
    model = pb.fit_boosted_tree(X, Y, max_nodes=2, weak_learner=pb.weak.affine())
    tracemalloc.start()
    try:
        with pytest.raises(
            pb.models.ModelFileError, match=f"fill: expected {COLUMNS} finite numbers"
        ):
            widened(tmp_path, model, COLUMNS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


def test_composites_name_columns_of_members(tmp_path):
    model = pb.fit_one_vs_rest(pb.fit_boosted_tree, X, [0, 0, 1, 2], max_nodes=1)
    members = tuple(widened(tmp_path, item, COLUMNS) for item in model.models)
    wide = type(model)(members, model.classes, model.settings)
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
    forest = pb.fit_random_forest(X, Y, n_estimators=20, rng=0)
    wide = widened(tmp_path, forest, 100_000)
    tracemalloc.start()
    try:
        importances = pb.feature_importances(wide)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * importances.nbytes
    each = [pb.feature_importances(item) for item in forest]
    assert importances[:1].tolist() == np.mean(each, axis=0).tolist()
    assert not importances[1:].any()


WIDE = {
    "graph": tree(feature_names=None),
    "affine": pb.fit_boosted_tree(X, Y, max_nodes=2, weak_learner=pb.weak.affine()),
    "cart": pb.fit_cart(X, Y),
    "forest": pb.fit_random_forest(X, Y, n_estimators=2, rng=0),
    "stagewise": pb.fit_gradient_boosting(X, Y, n_estimators=2, loss="log_loss"),
}


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("n_features", [2**31 - 1, 2**25, 10**30])
def test_more_columns_than_a_model_has(tmp_path, kind, n_features):
    with pytest.raises(
        pb.models.ModelFileError, match="n_features: expected an integer from 1 to 335544"
    ):
        widened(tmp_path, WIDE[kind], n_features, projection_fill=None)
    text = pb.export.to_json(WIDE["cart"]).replace('"n_features": 1', f'"n_features": {n_features}')
    with pytest.raises(
        pb.models.ModelFileError, match="n_features: expected an integer from 1 to 335544"
    ):
        pb.export.from_json(text)


@pytest.mark.parametrize("kind", ["graph", "cart", "forest", "stagewise"])
def test_exports_name_the_columns_that_are_read(tmp_path, kind):
    model = widened(tmp_path, WIDE[kind], COLUMNS)
    start = time.process_time()
    maximum = peak(
        lambda: (pb.export.to_sql(model, "t"), pb.export.from_json(pb.export.to_json(model)).depths)
    )
    assert maximum < 10_000_000
    file = tmp_path / "model.c"
    assert peak(lambda: pb.export.to_c(model, file)) < 2 * COLUMNS  # a byte: is it read?
    assert time.process_time() - start < 2
    assert "models of more than 65536 columns have no self-test" in file.read_text()
    assert file.stat().st_size < 10_000
    assert pb.export.to_sql(model, "t") == pb.export.to_sql(WIDE[kind], "t")
    with pytest.raises(NotImplementedError, match="models of at most 65536 columns"):
        pb.export.to_c(model, file, "int16", ranges=[[0.0], [1.0]])
