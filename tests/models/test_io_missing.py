"""Files of graphs that know where missing values go, and which levels are in sets."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from model_files import (
    assert_same,
    forge,
    forge_column,
    header_of,
    members_of,
    refused,
    tree,
    zip_up,
)

import pboost as pb
from pboost.data.node_inputs.inputs import Subsets

SETS = Subsets(4, [2, 0], [[5, 0, 0, 0], [0, 0, 0, 1 << 62]])


def with_sets(**changes):
    return tree(
        feature=[4, 1, 5], threshold=[0.5, 0.1, 0.5], missing=[1, 0, 0], inputs=SETS, **changes
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


@pytest.mark.parametrize("n_nodes", [0, 1, 3, 8, 9, 1000])
def test_sides_are_kept_in_the_header(path, n_nodes):
    sides = np.random.default_rng(n_nodes).integers(0, 2, n_nodes)
    model = tree(n_nodes=n_nodes, missing=sides)
    pb.save(model, path)
    assert_same(model, pb.load(path))
    assert pb.load(path).missing.tolist() == sides.tolist()
    plain = path.with_name("plain")
    pb.save(tree(n_nodes=n_nodes), plain)
    members, before = members_of(path), members_of(plain)
    assert {name: members[name] for name in members if name != "header.npy"} == {
        name: before[name] for name in before if name != "header.npy"
    }
    fields, known = header_of(members), header_of(before)
    assert fields.pop("missing") == np.packbits(sides.astype(np.uint8)).tobytes().hex()
    assert fields.pop("digest") != known.pop("digest")
    assert fields == known


def test_without_sides_nothing_is_kept(path):
    pb.save(tree(), path)
    members = members_of(path)
    assert "missing" not in header_of(members)
    assert pb.load(path).missing is None


def test_sides_are_exits():
    with pytest.raises(ValueError, match="missing: expected 0 or 1 for each node"):
        tree(missing=[0.0, 0.25, 1.0])


def test_sets_round_trip_with_a_column_of_sides(path):
    model = with_sets()
    pb.save(model, path)
    columns = header_of(members_of(path))["columns"]
    assert [columns[name]["dtype"] for name in ("missing", "subset", "subset_column")] == [
        "|u1",
        "<u8",
        "<i4",
    ]
    loaded = pb.load(path)
    assert_same(model, loaded)
    assert loaded.inputs.n_columns == 4
    assert_same(model, pickle.loads(pickle.dumps(model)))


@pytest.mark.parametrize("bits", ["", "0000", "0g", 3, None, ["00"], "é0"])
def test_wrong_bits_are_named(path, bits):
    pb.save(tree(missing=[1, 0, 1]), path)
    members = members_of(path)
    fields = header_of(members)
    zip_up(path, forge(members, missing=bits))
    if bits is None:  # which leaves the field out
        assert pb.load(path).missing is None
    else:
        refused(path, forge(members, missing=bits), "header: bad value of 'missing'")
    assert fields["missing"] == "a0"


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([0, 1], np.uint8), r"missing: expected shape \(3,\)"),
        (np.array([0, 1, 2], np.uint8), "missing: expected 0 or 1 for each node"),
        (np.array([0, 1, 0.5]), "column 'missing': unexpected dtype float64"),
        (np.array([0, 1, 1], np.int64), "column 'missing': unexpected dtype"),
    ],
)
def test_wrong_columns_are_named(path, array, message):
    pb.save(tree(), path)
    refused(path, forge_column(members_of(path), "missing", array), message)


def test_both_are_refused(path):
    pb.save(tree(missing=[1, 0, 1]), path)
    both = forge_column(members_of(path), "missing", np.array([1, 0, 1], np.uint8))
    refused(path, both, "in the header or as an array, not both")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"missing": None}, "missing: expected an array"),
        ({"feature": [6, 1, 5]}, r"feature: expected values in \[0, 6\)"),
        ({"inputs": Subsets(5, [2], [[1, 0, 0, 0]])}, "n_columns: expected 4, got 5"),
        ({"inputs": Subsets(4, [4, 0], np.zeros((2, 4)))}, r"column: expected values in \[0, 4\)"),
        ({"inputs": Subsets(4, [-1, 0], np.zeros((2, 4)))}, "column: expected values"),
        (
            {"inputs": Subsets(4, [1, 0], [[0, 0, 0, 1 << 63]] * 2)},
            "member: expected categories below",
        ),
        (
            {"threshold": [0.5, 0.5, 0.25]},
            "threshold: expected 0.5 in nodes that use category sets",
        ),
        ({"inputs": Subsets(4, [1, 0], np.zeros((2, 3)))}, r"subsets: expected column \(k,\)"),
        ({"inputs": Subsets(4, [1, 0], np.zeros((1, 4)))}, r"subsets: expected column \(k,\)"),
    ],
)
def test_sets_that_are_wrong(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(with_sets(), **changes)


def test_part_of_the_sets_is_refused(path):
    pb.save(with_sets(), path)
    members = members_of(path)
    columns = header_of(members)["columns"]
    for gone in ("subset", "subset_column"):
        left = {name: entry for name, entry in columns.items() if name != gone}
        kept = {name: content for name, content in members.items() if name != f"{gone}.npy"}
        refused(path, forge(kept, columns=left), "expected all or none of the arrays")
    more = members
    for name, dtype in (("start", "<i4"), ("index", "<i4"), ("coefficient", "<f8")):
        more = forge_column(more, f"projection_{name}", np.array([0, 1], dtype))
    refused(path, more, "expected one of projections, separators and sets")


def test_prefix_keeps_sides_and_the_sets_that_are_read():
    model = with_sets()
    two = pb.models.truncate(model, 2)
    assert two.missing.tolist() == [1, 0]
    assert two.feature.tolist() == [4, 1]
    assert [array.tolist() for array in two.inputs.arrays()] == [[2], [[5, 0, 0, 0]]]
    last = dataclasses.replace(model, feature=[1, 5, 4], threshold=[0.1, 0.5, 0.5])
    assert pb.models.truncate(last, 2).feature.tolist() == [1, 4]
    assert pb.models.truncate(last, 2).inputs.column.tolist() == [0]
    assert pb.models.truncate(last, 1).inputs is None
    votes = np.stack([model.vote, -model.vote], axis=-1)
    several = dataclasses.replace(model, vote=votes, bias=np.zeros(2))
    assert all(item.missing.tolist() == [1, 0, 0] for item in several.by_vote())
