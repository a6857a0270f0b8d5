"""Model files of linear models: what is in them, and what is refused."""

from __future__ import annotations

import io

import numpy as np
import pytest
from model_files import forge, forge_column, header_of, members_of, zip_up

import pboost as pb
from pboost.models import ModelFileError

ARRAYS = ("feature", "step", "mu", "center", "scale")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = np.where(X[:, 1] + rng.normal(size=50) > 0, "yes", "no")
    return pb.fit_real_adaboost(X, y, n_estimators=4, weak_learner=pb.weak.feature())


@pytest.fixture
def members(model, path):
    pb.save(model, path)
    return members_of(path)


def test_same_model_same_bytes(model, path, members):
    first = path.read_bytes()
    pb.save(pb.load(path), path)
    assert path.read_bytes() == first
    assert header_of(members)["kind"] == "linear"
    others = {"classes", "certificate", "cost", "header"}
    assert set(members) == {f"{name}.npy" for name in {*ARRAYS, *others}}
    X = np.random.default_rng(1).normal(size=(20, 3))
    score = pb.decision_function(model, X)
    np.testing.assert_array_equal(pb.decision_function(pb.load(path), X), score)


@pytest.mark.full
def test_no_flipped_byte_changes_the_model(model, path, members):
    content = path.read_bytes()
    for i in range(0, len(content), 5):
        damaged = bytearray(content)
        damaged[i] ^= (0x01, 0x80, 0xFF)[i % 3]
        path.write_bytes(damaged)
        try:
            loaded = pb.load(path)
        except ModelFileError:
            continue
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("feature", [0, 1, 3, -1], r"feature: expected values in \[-1, 3\)"),
        ("feature", [0, 1, -2, -1], "feature: expected values"),
        ("feature", [0, 1], "feature: expected shape"),
        ("step", [1, 1, 1, np.nan], "step: expected finite"),
        ("mu", [[1, 1, 1, 1]], "mu: expected shape"),
        ("center", [0, 0], "center: expected shape"),
        ("scale", [1, 0, 1], "scale: expected numbers > 0"),
        ("classes", ["yes", "no"], "classes: expected two sorted"),
        ("classes", ["a", "b", "c"], "classes: expected shape"),
        ("certificate", [], r"record\.cost: expected shape \(0,\)"),
        ("certificate", [1, 1, 1], r"record\.cost: expected shape"),
        ("cost", [0, 1, 2, -1, 2], "cost: expected finite"),
    ],
)
def test_model_that_fails_validation(path, members, name, array, message):
    array = np.asarray(array, dtype=np.load(io.BytesIO(members[f"{name}.npy"])).dtype)
    zip_up(path, forge_column(members, name, array))
    with pytest.raises(ModelFileError, match=rf"not a valid model: .*{message}"):
        pb.load(path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "decision-graph"}, r"step|mu|center|scale"),
        ({"kind": "cloud"}, "'decision-graph' or .*'random-forest' or .*, got 'cloud'"),
        ({"kind": ["linear"]}, "kind"),
        ({"feature_names": ["a"]}, "feature_names: expected 3 names"),
        ({"n_features": 2}, "center: expected shape"),
    ],
)
def test_headers_that_do_not_fit(path, members, fields, message):
    zip_up(path, forge(members, **fields))
    with pytest.raises(ModelFileError, match=message):
        pb.load(path)
