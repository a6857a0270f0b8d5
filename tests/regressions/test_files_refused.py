"""Files that hold no model.

A loaded model could raise an IndexError or a KeyError where it was used, or `load` itself could; a
pipe or ``/dev/zero`` was read for ever. Whatever is wrong is said by `load`, as a `ModelFileError`
that names it; of models made by hand as a `ValueError`.
"""

from __future__ import annotations

import hashlib
import io
import struct
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from model_files import forge, forge_column, header_of, members_of, npy, refused, tree, zip_up

import pboost as pb

RNG = np.random.default_rng(3)
X = RNG.normal(size=(80, 3))
VALUE = X[:, 0] + 0.3 * X[:, 1] * X[:, 2]
TWO = VALUE > 0
THREE = np.digitize(VALUE, [-0.5, 0.5])

MODELS = {
    "graph": pb.fit_boosted_tree(X, TWO, max_nodes=3),
    "linear": pb.fit_real_adaboost(X, TWO, n_estimators=4, weak_learner=pb.weak.feature()),
    "tree": pb.fit_pruned_cart(X, TWO, cv=3, rng=0),
    "forest": pb.fit_random_forest(X, THREE, n_estimators=4, rng=0),
    "numbers": pb.fit_random_forest(X, X[:, 1], n_estimators=3, task="regression", rng=0),
    "stagewise": pb.fit_gradient_boosting(X, TWO, n_estimators=3, loss="log_loss"),
    "probit": pb.fit_probitboost(X, TWO, max_iter=4),
    "probit-tree": pb.fit_probit_tree(X, TWO, max_depth=1, max_iter=3),
    "sbpmt": pb.fit_sbpmt(
        X, TWO, n_estimators=3, n_boosting_rounds=2, max_depth=1, max_iter=2, rng=0
    ),
    "rest": pb.fit_one_vs_rest(pb.fit_boosted_tree, X, THREE, max_nodes=1),
    "samme": pb.fit_samme(X, THREE, base_learner=partial(pb.fit_cart, max_depth=1), n_estimators=2),
    "bagging": pb.fit_bagging(pb.fit_boosted_tree, X, TWO, n_estimators=3, max_nodes=2, rng=0),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


def written(path, kind):
    pb.save(MODELS[kind], path)
    return members_of(path)


def array_of(members, name):
    return np.load(io.BytesIO(members[f"{name}.npy"])).copy()


@pytest.mark.parametrize("kind", MODELS)
def test_they_load_as_they_are(path, kind):
    members = written(path, kind)
    zip_up(path, members)
    assert np.array_equal(pb.predict(pb.load(path), X), pb.predict(MODELS[kind], X))


# What the header says.

HEADERS = {
    "graph": [
        ({"n_features": 0}, "n_features: expected an integer from 1"),
        ({"n_features": 2**25}, "n_features: expected an integer from 1 to 33554431"),
        ({"n_features": 2**31 - 1}, "n_features: expected an integer from 1"),
        ({"feature_names": ["a", "b"]}, "feature_names: expected 3 names"),
        ({"bias": 1}, "bad value of 'bias'"),
        ({"settings": {"observation": 1.5}}, r"settings\['observation'\]: expected a table"),
        ({"settings": {"weak_learner": "stump"}}, r"settings\['weak_learner'\]: expected a table"),
        ({"settings": {"builder": 1}}, r"settings\['builder'\]: expected a string"),
        ({"settings": {"growth": []}}, r"settings\['growth'\]: expected a string"),
        ({"settings": {"votes": None}}, r"settings\['votes'\]: expected a string"),
        ({"settings": {"smoothing": "0"}}, r"settings\['smoothing'\]: expected a number"),
        ({"settings": {"learning_rate": 10**400}}, r"settings\['learning_rate'\]: expected a num"),
        ({"settings": {"max_depth": True}}, r"settings\['max_depth'\]: expected an integer"),
        ({"settings": {"max_depth": -3}}, r"settings\['max_depth'\]: expected an integer"),
        ({"settings": {"continued": 3}}, r"settings\['continued'\]: expected a list"),
        ({"settings": {"continued": [3]}}, r"settings\['continued'\]: expected a list"),
    ],
    "tree": [
        ({"chosen": -1}, "pruning.chosen: expected an index"),
        ({"chosen": 10**30}, "pruning.chosen: expected an index"),
        ({"chosen": 1.0}, "pruning.chosen: expected an integer, got 1.0"),
        ({"settings": {"criterion": 3}}, r"settings\['criterion'\]: expected a string"),
        ({"n_features": 2**25}, "n_features: expected an integer from 1 to 33554431"),
    ],
    "forest": [
        ({"oob_error": -0.5}, "oob.error: expected a number >= 0"),
        ({"oob_error": [1]}, "oob.error: expected a number >= 0"),
        ({"oob_error": "0.5"}, "oob.error: expected a number >= 0"),
        ({"oob_error": True}, "oob.error: expected a number >= 0"),
        ({"oob_error": 10**30}, "oob.error: expected numbers from 0 to 1"),
        ({"oob_error": 1.5}, "oob.error: expected numbers from 0 to 1"),
        ({"oob_error": 10**400}, "oob.error: expected a number >= 0"),
    ],
    "stagewise": [
        ({"loss": "mine"}, "loss: expected one of"),
        ({"loss": {}}, "loss: expected one of"),
        ({"bias": 1}, "bias: expected a number"),
        ({"bias": 1.797693e308}, "value, bias: .*finite sum"),
    ],
    "probit": [({"intercept": "0"}, "intercept: expected a number")],
    "sbpmt": [
        ({"voting": ["hard"]}, "voting: expected one of"),
        ({"voting": None}, "voting: expected one of"),
    ],
    "bagging": [
        ({"n_features": 0}, "n_features: expected an integer from 1"),
        ({"n_features": -5}, "n_features: expected an integer from 1"),
        (
            {"n_features": 7},
            "models: expected models with the same features, got 7 features, and 3",
        ),
        ({"n_features": True}, "bad value of 'n_features'"),
        ({"settings": {"builder": []}}, r"settings\['builder'\]: expected a string"),
    ],
    "rest": [({"settings": {"builder": 0}}, r"settings\['builder'\]: expected a string")],
}


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [(kind, *case) for kind, cases in HEADERS.items() for case in cases],
)
def test_fields_of_the_header(path, kind, fields, message):
    refused(path, forge(written(path, kind), **fields), f"not a valid model: {message}|{message}")


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [40, 900])
def test_headers_nested_deep(path, depth):
    settings = {"builder": "fit_boosted_tree", "shape": nested(depth)}
    members = written(path, "graph")
    refused(
        path, forge(members, settings=settings), "header: expected at most 32 levels of nesting"
    )
    with pytest.raises(TypeError, match=r"model\.settings\['shape'\].*: expected at most 32"):
        pb.save(replace(MODELS["graph"], settings=settings), path)


def test_what_is_saved_can_be_loaded(path):
    for depth in range(25, 40):
        model = replace(MODELS["graph"], settings={"shape": nested(depth)})
        try:
            pb.save(model, path)
        except TypeError:
            assert depth > 28
            continue
        assert pb.load(path).settings == model.settings


# What the arrays hold.


def fill(name, value):
    return lambda members: {name: np.full_like(array_of(members, name), value)}


def put(name, place, value):
    def change(members):
        array = array_of(members, name)
        array[place] = value
        return {name: array}

    return change


def swap(first, second):
    return lambda members: {
        first: array_of(members, second),
        second: array_of(members, first),
    }


def reshaped(name, *shape):
    return lambda members: {name: array_of(members, name).reshape(shape)}


def no_booleans(members):
    return {"classes": np.array([0, 2], dtype=np.uint8).view(np.bool_)}


WRAPPING = np.array([0, 2**31 - 1, -(2**31), -1], dtype=np.int32)
ARRAYS = {
    "graph": [
        (put("vote", (0, 0), 1.7e308), None),
        (fill("vote", 1.2e308), "vote: .*finite sum along every path"),
        (no_booleans, "classes: expected booleans"),
    ],
    "linear": [
        (fill("step", 1e308), "step, bias: .*finite sum"),
        (reshaped("certificate", -1, 1), "certificate: expected 1 dimensions"),
    ],
    "tree": [
        (fill("pruning_error", 1.5), r"pruning\.error: expected numbers from 0 to 1"),
        (fill("pruning_error", np.nan), r"pruning\.error: expected numbers >= 0"),
        (fill("pruning_ccp_alpha", -1.0), r"pruning\.ccp_alpha: expected numbers >= 0"),
        (fill("pruning_n_leaves", 0), r"pruning\.n_leaves: expected positive"),
    ],
    "forest": [
        (
            lambda m: {"root": np.append(WRAPPING, array_of(m, "root")[-1])},
            "root: expected numbers",
        ),
        (reshaped("root", 1, -1), "root: expected numbers"),
        (fill("oob_n_estimators", -1), r"oob\.n_estimators: expected numbers >= 0"),
        (fill("oob_prediction", 0.7), r"oob\.prediction: expected numbers that sum to 1"),
        (fill("oob_prediction", 1e300), r"oob\.prediction: expected numbers from 0 to 1"),
        (fill("oob_prediction", np.inf), r"oob\.prediction: expected finite"),
        (
            lambda m: {"oob_prediction": array_of(m, "oob_prediction")[:, :2]},
            r"oob\.prediction: expected shape",
        ),
    ],
    "numbers": [
        (lambda m: {"value": np.where(array_of(m, "feature") < 0, 1e308, 0.0)}, "value: .*finite"),
    ],
    "stagewise": [
        (fill("training_loss", np.nan), "training_loss: expected numbers"),
        (fill("value", 1e308), "value: .*finite sum"),
    ],
    "probit": [
        (fill("risk", -1.0), "risk: expected numbers >= 0"),
        (fill("length", 2.0), "length: expected numbers > 0"),
        (fill("step", 1e308), "step: .*finite sum"),
        (no_booleans, "classes: expected booleans"),
    ],
    "probit-tree": [
        (fill("value", 1e308), "value: expected probabilities"),
        (swap("coefficient", "spread"), "coefficient: expected shape"),
        (fill("risk", -0.5), "risk: expected numbers >= 0"),
        (fill("spread", -1.0), "spread: expected numbers >= 0"),
        (fill("weight", 0.0), "weight: expected a number > 0 for the root"),
    ],
    "sbpmt": [
        (swap("coefficient", "spread"), "coefficient: expected 3 dimensions"),
        (swap("error", "alpha"), "error: expected 2 dimensions"),
        (fill("risk", -0.5), "risk: expected numbers >= 0"),
        (fill("spread", -1.0), "spread: expected numbers >= 0"),
        (fill("class_rows", -1), "class_rows: expected numbers >= 0"),
        (fill("error", -1.0), "error: expected numbers from 0 to 1"),
        (fill("error", 1.5), "error: expected numbers from 0 to 1"),
        (fill("error", np.inf), "error: expected"),
        (fill("alpha", 1.7e308), "alpha: .*finite sum"),
        (fill("weight", 0.0), "weight: expected a number > 0 at each root"),
        (lambda m: {"start": np.append(WRAPPING, array_of(m, "start")[-1])}, "class_rows: expect"),
        (reshaped("start", 2, -1), "start: expected 1 dimensions"),
        (
            lambda m: {"oob_prediction": array_of(m, "oob_prediction")[:, 0]},
            r"oob\.prediction: expected shape",
        ),
    ],
    "samme": [
        (fill("alpha", 1.7e308), "alpha, bias: .*finite sum"),
        (fill("error", -1.0), "error: expected numbers >= 0"),
        (fill("error", 1.5), "error: expected numbers from 0 to 1"),
        (reshaped("error", 1, -1), "error: expected 1 dimensions"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        pytest.param(kind, *case, id=f"{kind}-{i}")
        for kind, cases in ARRAYS.items()
        for i, case in enumerate(cases)
    ],
)
def test_arrays(path, kind, change, message):
    members = written(path, kind)
    for name, array in change(members).items():
        members = forge_column(members, name, array)
    if message is None:
        zip_up(path, members)
        assert np.isfinite(pb.decision_function(pb.load(path), X)).all()
    else:
        refused(path, members, f"not a valid model: {message}")


def test_labels_that_are_no_text(path):
    pb.save(tree(("a", "b")), path)
    members = members_of(path)
    content = bytearray(members["classes.npy"])
    content[-4:] = struct.pack("<I", 0x7FFFFFFF)
    columns = header_of(members)["columns"]
    columns["classes"]["sha256"] = hashlib.sha256(content).hexdigest()
    refused(
        path, forge({**members, "classes.npy": bytes(content)}, columns=columns), "classes: exp"
    )


@pytest.mark.parametrize("shape", [(0, 2**63), (2**62, 0, 2**62), (0, -1), (2**70, 0), (True, 0)])
def test_shapes_that_no_array_has(path, shape):
    members = written(path, "graph")
    header = np.lib.format.header_data_from_array_1_0(np.zeros((0, 2)))
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {**header, "shape": shape})
    content = buffer.getvalue()
    columns = header_of(members)["columns"]
    columns["vote"]["sha256"] = hashlib.sha256(content).hexdigest()
    refused(path, forge({**members, "vote.npy": content}, columns=columns), r"vote\.npy'")


def test_content_of_an_array_that_numpy_writes(path):
    members = written(path, "graph")
    content = npy(np.zeros(2, dtype=[("a", "<f8"), ("b", "<i4")]))
    columns = header_of(members)["columns"]
    columns["threshold"]["sha256"] = hashlib.sha256(content).hexdigest()
    members = forge({**members, "threshold.npy": content}, columns=columns)
    refused(path, members, "column 'threshold': unexpected dtype")
