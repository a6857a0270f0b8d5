"""Model files of every kind load, and the models answer what they answered when they were made."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import pboost as pb

sys.path.insert(0, str(Path(__file__).parent))
import golden_models as golden
import hashes
from digests import digest

FILES, RECORD = golden.files(), golden.record()
DIGESTS = RECORD["digests"]
#: Answers that are not those at first to the last bit: what is in units of how far the columns of
#: given rows spread, which was 3e-9 too large for a column whose values differ in the last bits;
#: and trees that go on with gaussian answers, whose masses are sums of integers now.
TOLERANCE = {"coefficients of rows.": 1e-8, "continue_fit": 1e-12}
OTHERS = ("probit", "sbpmt", "tree_gaussian")


@pytest.fixture(scope="module")
def exactly():
    return RECORD["fingerprint"] == hashes.fingerprint()


def tolerance(path, name):
    if not path.stem.startswith(OTHERS):
        return None
    return next((rtol for start, rtol in TOLERANCE.items() if name.startswith(start)), None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_answers(path, exactly):
    model = pb.load(path)
    target = path.stem.split(".")[1]
    actual, expected = dict(golden.outputs(model, target)), golden.expected(path)
    missing = expected.keys() - actual.keys()
    assert not missing
    for name, value in expected.items():
        answer = actual[name]
        assert answer.shape == value.shape, name
        if value.dtype.kind != "f":
            assert answer.tolist() == value.tolist(), name
        elif (rtol := tolerance(path, name)) is not None:
            np.testing.assert_allclose(answer, value, rtol=rtol, err_msg=name)
        elif exactly:
            assert answer.tobytes() == value.tobytes(), name
        else:
            np.testing.assert_allclose(answer, value, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_loads_the_model_that_was_saved_and_saves_it_again(path, tmp_path):
    model, expected = pb.load(path), DIGESTS[path.stem]
    assert digest(model) == expected
    pb.save(model, tmp_path / "again.npz")
    assert digest(pb.load(tmp_path / "again.npz")) == expected


def test_files_are_converted(tmp_path, monkeypatch):
    """With the same format on both sides."""
    pickles, copies = tmp_path / "pickles", tmp_path / "models"
    pickles.mkdir()
    golden._unpack(pickles)
    copies.mkdir()
    for path in FILES:
        (copies / path.name).write_bytes(b"old")
    monkeypatch.setattr(golden, "MODELS", copies)
    golden._pack(pickles)
    for path in FILES[:3]:
        assert digest(pb.load(copies / path.name)) == DIGESTS[path.stem]


def test_there_is_a_file_of_every_kind_and_every_function_is_asked():
    assert {golden.kind_of(path) for path in FILES} >= {
        "decision-graph",
        "linear",
        "tree",
        "random-forest",
        "gradient-boosting",
        "probit",
        "probit-tree",
        "subagged-probit-trees",
        "one-vs-rest",
        "weighted-vote",
        "bagging",
    }
    asked = {name for path in FILES for name in golden.expected(path)}
    functions = (
        "predict",
        "predict_proba",
        "decision_function",
        "staged_decision_function[0]",
        "staged_predict[0]",
        "staged_predict_proba[0]",
        "expected",
        "sampled",
        "reach",
        "reach by class",
        "cost",
        "cost in features",
        "cost in stumps",
        "certificate",
        "certificate of rows",
        "margins",
        "normalized_margins",
        "margin_error",
        "margin_bound",
        "margin_curve",
        "describe",
        "explain.total",
        "apply",
        "decision_path[0]",
        "feature_importances",
        "permutation_importance",
        "coefficients.slopes",
        "coefficients of rows.mean",
        "cost_complexity_pruning_path.ccp_alpha",
        "prune",
        "truncate",
        "continue_fit",
        "oob.prediction",
        "fields.classes",
    )
    assert asked >= set(functions)


def test_a_file_and_its_answers_belong_together():
    path = golden.MODELS / "chain.two.npz"
    other = golden.expected(golden.MODELS / "tree.two.npz")
    answer = golden.expected(path)["decision_function"]
    assert answer.tobytes() != other["decision_function"].tobytes()
