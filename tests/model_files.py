"""What the tests of model files share: a model to save, and files to tamper with."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile

import numpy as np
import pytest

from pboost.models import ModelFileError
from pboost.models.files import digest, load
from pboost.models.graph import COLUMNS, DecisionGraph
from pboost.models.schema import TrainingRecord

POSIX = pytest.mark.skipif(os.name != "posix", reason="POSIX signals, links and permissions")


def tree(labels=(0, 1), *, n_nodes=3, **changes):
    """A small graph: node 0 leads to 1 and 2, and every further node is an only child."""
    rng = np.random.default_rng(n_nodes)
    follow = np.full((n_nodes, 2), -1)
    if n_nodes >= 2:
        follow[0, 0] = 1
    if n_nodes >= 3:
        follow[0, 1] = 2
        follow[2:-1, 1] = np.arange(3, n_nodes)
    fields = {
        "feature": rng.integers(0, 4, n_nodes),
        "threshold": rng.normal(size=n_nodes),
        "next": follow,
        "vote": rng.normal(size=(n_nodes, 2)),
        "classes": np.asarray(labels),
        "n_features": 4,
        "feature_names": ("a", "b", "größe", "d \ud800 \x00"),
        "bias": 0.0,
        "settings": {
            "builder": "fit_boosted_tree",
            "max_nodes": n_nodes,
            "max_depth": None,
            "weak_learner": {"criterion": "gini", "min_weight_fraction": 0.1},
        },
        "record": TrainingRecord(
            np.linspace(1, 0.1, n_nodes + 1), np.linspace(0, 2, n_nodes + 1), "3 nodes were grown"
        ),
    }
    return DecisionGraph(**{**fields, **changes})


def assert_same(a, b):
    for name in (*COLUMNS, "classes"):
        x, y = getattr(a, name), getattr(b, name)
        assert x.dtype == y.dtype, name
        assert x.shape == y.shape, name
        assert x.tobytes() == y.tobytes(), name
        assert not y.flags.writeable
    np.testing.assert_array_equal(a.missing, b.missing)
    for name in ("certificate", "cost", "validation"):
        np.testing.assert_array_equal(getattr(a.record, name), getattr(b.record, name))
    for name in ("n_features", "feature_names", "bias", "settings"):
        assert getattr(a, name) == getattr(b, name), name
    assert a.record.stop_reason == b.record.stop_reason
    assert (a.inputs is None) == (b.inputs is None)
    for x, y in zip(arrays_of(a.inputs), arrays_of(b.inputs), strict=True):
        assert x.dtype == y.dtype
        assert x.tobytes() == y.tobytes()
        assert not y.flags.writeable


def arrays_of(inputs):
    """Return the arrays of a model's inputs, none where it reads columns."""
    return () if inputs is None else inputs.arrays()


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def zip_up(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def npy(array, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), **options)
    return buffer.getvalue()


def header_of(members):
    return json.loads(np.load(io.BytesIO(members["header.npy"])).tobytes())


def forge(members, *, sealed=True, **fields):
    """Members with other header fields; `sealed` with a digest that fits them."""
    header = {**header_of(members), **fields}
    header = {key: value for key, value in header.items() if value is not None}
    if sealed:
        header["digest"] = digest(header)
    return {**members, "header.npy": npy(np.frombuffer(json.dumps(header).encode(), np.uint8))}


def forge_column(members, name, array, **options):
    """Members with another column, its digests made to fit."""
    content = npy(array, **options)
    entry = {
        "dtype": np.asarray(array).dtype.str,
        "shape": list(np.shape(array)),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    columns = {**header_of(members)["columns"], name: entry}
    return forge({**members, f"{name}.npy": content}, columns=columns)


def refused(path, members, message):
    """Members that `load` refuses as a file, naming it."""
    zip_up(path, members)
    with pytest.raises(ModelFileError, match=message) as raised:
        load(path)
    assert str(raised.value).startswith(str(path))
