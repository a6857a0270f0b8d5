"""Texts of JSON made to take memory are refused before they do."""

from __future__ import annotations

import functools
import json
import time

import numpy as np
import pandas as pd
import pytest
from measured import FREE, OF_TEXTS, peak

import pboost as pb

X, Y = np.arange(8.0).reshape(4, 2), ["no", "no", "yes", "yes"]
LONG = "x" * 16_000
MANY = 20_000


@functools.cache
def written() -> str:
    return pb.export.to_json(pb.fit_cart(X, Y))


def named(**fields) -> dict:
    return {**json.loads(written()), **fields}


def of_nodes(**fields) -> dict:
    said = named()
    said["trees"][0].update(fields)
    return said


def table(**fields) -> dict:
    """What is said of a table of two columns of text, one with a long level."""
    words = [f"{k:03}" for k in range(250)]
    said = {
        "category_kind": {"dtype": "u1", "values": [1, 1]},
        "category_column": {"dtype": "i4", "values": [0, 1]},
        "category_start": {"dtype": "i4", "values": [0, 250, 500]},
        "category_number": {"dtype": "f8", "values": []},
        "category_text": {"dtype": "U3", "values": [*words, *words]},
    }
    return named(table={**said, **fields})


WIDE = [f"{k:05}" for k in range(MANY)]
ATTACKS = {
    "labels of a wide dtype": named(classes={"dtype": "U16384", "values": [""] * 30_000}),
    "one long label": named(classes={"dtype": "U16000", "values": [*WIDE, LONG]}),
    "long doubles": named(classes={"dtype": "f16", "values": [0, 1]}),
    "a long string among numbers": of_nodes(feature=[LONG * 4, *[""] * MANY]),
    "a long string among rows": of_nodes(value=[[LONG * 4], *[[""]] * MANY]),
    "a long string among values": named(bias=[LONG * 4, *[""] * MANY]),
    "a long level": table(
        category_text={"dtype": "U16000", "values": [*WIDE, LONG]},
        category_column={"dtype": "i4", "values": [0, 0]},
        category_start={"dtype": "i4", "values": [0, 200, MANY + 1]},
        category_kind={"dtype": "u1", "values": [1, 0]},
    ),
    "names in one": named(feature_names="ab"),
    "numbers in a row": of_nodes(children=[[0] * MANY, [0]]),
}
#: Texts, of which each letter takes as much as it can.
PIECES = ['{"":', "[", "[0],", "{},", '{"":0},', '"ab",', "1e1,", "[[]],"]


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_takes_memory_is_refused(attack):
    text = json.dumps(ATTACKS[attack], separators=(",", ":"))

    def read():
        with pytest.raises(
            pb.models.ModelFileError, match="text: expected trees as written by to_json"
        ):
            pb.export.from_json(text)

    assert peak(read) < OF_TEXTS * len(text) + FREE


@pytest.mark.parametrize("piece", PIECES)
def test_texts_of_many_small_things(monkeypatch, piece):
    monkeypatch.setattr("pboost.values.json_texts.FREE_BYTES", 0)
    count = 40_000 // len(piece)
    for text in (piece * count, "[" + piece * count + "0]"):

        def read(text=text):
            with pytest.raises(pb.models.ModelFileError, match="text: "):
                pb.export.from_json(text)

        assert peak(read) < OF_TEXTS * len(text)


@pytest.mark.parametrize("text", ['\\"' * 50_000, '["' * 50_000, '"\\' * 50_001, "[" * 100_000])
def test_texts_that_end_nowhere_are_refused_at_once(text):
    start = time.process_time()
    with pytest.raises(
        pb.models.ModelFileError, match=r"text: (expected JSON|expected at most 32 levels)"
    ):
        pb.export.from_json(text)
    assert time.process_time() - start < 1


def test_strings_are_no_numbers():
    for said in (named(bias=["0", "1"]), of_nodes(weight=["1"] * 3), of_nodes(target="0")):
        with pytest.raises(pb.models.ModelFileError, match=r"expected (numbers|null)"):
            pb.export.from_json(json.dumps(said))


def test_a_level_that_is_longer_than_the_others_comes_back():
    rng = np.random.default_rng(0)
    columns = {
        name: rng.choice([f"{name}{k:03}" for k in range(100)], 400) for name in ("a", "b", "c")
    }
    columns["a"] = np.where(columns["a"] == "a007", "z" * 3000, columns["a"])
    frame = pd.DataFrame(columns)
    model = pb.fit_cart(frame, rng.random(400) > 0.5, max_depth=3)
    text = pb.export.to_json(model)
    again = []
    maximum = peak(lambda: again.append(pb.export.from_json(text)))
    assert again[0].table == model.table
    assert pb.export.to_json(again[0]) == text
    # The column with the long one takes 1.2 MB, the three together would take 3.6.
    assert maximum < 3_000_000
