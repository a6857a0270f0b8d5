"""Model files that were made to take memory are refused before they do."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from measured import FREE, OF_FILES, peak
from model_files import forge, forge_column, header_of, members_of, npy, zip_up

import pboost as pb
from pboost.models.files import MAX_DEPTH

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 3))
Y = np.where(X[:, 0] > 0, "yes", "no")
SOURCES = {
    "tree": pb.fit_cart(X, Y, max_depth=2),
    "graph": pb.fit_boosted_tree(X, Y, max_nodes=3),
    "holes": pb.fit_cart(np.where(RNG.random(X.shape) < 0.1, np.nan, X), Y, max_depth=2),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


def members(path, kind):
    pb.save(SOURCES[kind], path)
    return members_of(path)


def is_refused(path, message=None, free=FREE):
    def load():
        with pytest.raises(pb.models.ModelFileError, match=message):
            pb.load(path)

    assert peak(load) < OF_FILES * path.stat().st_size + free


def with_text(members, text):
    return {**members, "header.npy": npy(np.frombuffer(text.encode(), np.uint8))}


PIECES = [
    "[0],",
    "{},",
    '{"":0},',
    '"ab",',
    '"",',
    "1e1,",
    "-9,",
    "[[]],",
    '"\\ud83d\\ude00",',
    "0,",
]


@pytest.mark.parametrize("piece", PIECES)
def test_headers_of_many_small_things(monkeypatch, path, piece):
    monkeypatch.setattr("pboost.values.json_texts.FREE_BYTES", 0)
    said = members(path, "tree")
    header = header_of(said)
    header["version"] = [9, 9]
    text = json.dumps(header, separators=(",", ":"))
    text = text[:-1] + ',"more":[' + piece * (60_000 // len(piece)) + "0]}"
    zip_up(path, with_text(said, text))
    is_refused(path, free=60_000)


def test_headers_that_end_nowhere(path):
    for text in ("[" * 100_000, '{"":' * 100_000, '\\"' * 50_000):
        zip_up(path, with_text(members(path, "tree"), text))
        is_refused(path, "header: (expected JSON|expected at most 32 levels of nesting)")


BIG = 500_000
ARRAYS = {
    "labels of a letter": ("tree", "classes", np.full(BIG, "z")),
    "labels of bytes": ("tree", "classes", np.full(BIG, 2, dtype=np.int8)),
    "places": ("tree", "feature", np.full(BIG, 7, dtype=np.int32)),
    "children": ("tree", "children", np.full((BIG, 2), 7, dtype=np.int32)),
    "values": ("tree", "value", np.full((BIG, 2), 0.5)),
    "next": ("graph", "next", np.full((BIG, 2), 2**31 - 1, dtype=np.int32)),
    "kinds of columns": ("holes", "category_kind", np.full(BIG, 8, dtype=np.uint8)),
    "lists of levels": ("holes", "category_start", np.arange(BIG, dtype=np.int32)),
    "columns of levels": ("holes", "category_column", np.full(BIG, 1, dtype=np.int32)),
    "words": ("holes", "category_text", np.full(BIG, "z")),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_large_arrays(path, kind):
    source, name, array = ARRAYS[kind]
    zip_up(path, forge_column(members(path, source), name, array))
    is_refused(path, free=2_000_000)


def test_models_within_models(path):
    pb.save(SOURCES["tree"], path)
    zip_up(path, forge_column(members_of(path), "value", np.full((BIG, 2), 0.5)))
    inner = path.read_bytes()
    model = pb.fit_bagging(pb.fit_cart, X, Y, n_estimators=1, rng=0)
    pb.save(model, path)
    outer = members_of(path)
    for _ in range(MAX_DEPTH):
        for name, array in (
            ("models", np.frombuffer(inner, np.uint8)),
            ("model_start", np.array([0, len(inner)])),
        ):
            outer = forge_column(outer, name, array)
        zip_up(path, outer)
        inner = path.read_bytes()
    is_refused(path, "model 0: " * MAX_DEPTH, free=2_000_000)


def test_many_members(path):
    body, directory, content = b"", [], npy(np.zeros(1, np.uint8))
    common = struct.pack("<5H3L2H", 20, 0x800, 0, 0, 33, zlib.crc32(content), 0, 0, 4, 0)
    for k in range(3000):
        directory.append(b"PK\1\2" + struct.pack("<H", 20) + common)
        directory.append(struct.pack("<3H2L", 0, 0, 0, 0, 0) + b"%04x" % k)
    body = b"".join(directory)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 3000, 3000, len(body), 0, 0)
    path.write_bytes(body + end)
    is_refused(path, "expected at most 1000 members", free=300_000)


def test_messages_are_short(path):
    said = members(path, "tree")
    for fields in (  # each is wrong
        {"stop_reason": ["x" * 9] * 9000},
        {"n_features": 10**4000},
        {"settings": "x" * 99_999},
        {"feature_names": ["x" * 99] * 999},
    ):
        zip_up(path, forge(said, **fields))
        with pytest.raises(pb.models.ModelFileError) as raised:
            pb.load(path)
        assert len(str(raised.value)) < 1000
    many = replace(SOURCES["graph"], feature_names=None)
    with pytest.raises(ValueError, match="classes: expected") as raised:
        replace(many, classes=np.arange(9000))
    assert len(str(raised.value)) < 200


def test_members_come_in_their_order(path):
    model = pb.fit_bagging(pb.fit_cart, X, Y, n_estimators=5, rng=0)
    pb.save(model, path)
    assert [m.n_nodes for m in pb.load(path).models] == [m.n_nodes for m in model.models]
    assert pb.predict_proba(pb.load(path), X).tobytes() == pb.predict_proba(model, X).tobytes()
