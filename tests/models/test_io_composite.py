"""Model files of models that are made of models."""

from __future__ import annotations

import io
import pickle
import zipfile
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from model_files import forge, forge_column, header_of, members_of, zip_up

import pboost as pb
from pboost.models import ModelFileError
from pboost.models.files import join_files

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])]
TWO = X[:, 0] > X[:, 1]
STUMPS = partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=3)
STUMP = pb.weak.stump("gini")
MODELS = {
    "rest": lambda: STUMPS(X, Y),
    "rest of linear": lambda: pb.fit_one_vs_rest(
        pb.fit_real_adaboost, X, Y, n_estimators=3, weak_learner=pb.weak.feature()
    ),
    "rest of matryoshki": lambda: pb.fit_one_vs_rest(
        pb.fit_matryoshka, X, Y, shape=(2, 2), weak_learner=pb.weak.affine(seed=1)
    ),
    "samme": lambda: pb.fit_samme(
        X, Y, base_learner=partial(pb.fit_cart, max_depth=2), n_estimators=4
    ),
    "samme of rest": lambda: pb.fit_samme(X, Y, base_learner=STUMPS, n_estimators=2),
    "samme without members": lambda: pb.fit_samme(
        np.ones((90, 1)), Y, base_learner=partial(pb.fit_cart, max_depth=1), n_estimators=3
    ),
    "bagging": lambda: pb.fit_bagging(pb.fit_cart, X, Y, n_estimators=4, rng=0, max_depth=3),
    "bagging of boosting": lambda: pb.fit_bagging(
        pb.fit_boosted_tree,
        X,
        TWO,
        n_estimators=3,
        rng=0,
        max_nodes=5,
        weak_learner=STUMP,
        observation=pb.observation.flip(0.1),
    ),
    "bagging of stagewise": lambda: pb.fit_bagging(
        partial(pb.fit_gradient_boosting, n_estimators=3),
        X,
        X[:, 0],
        task="regression",
        n_estimators=2,
        rng=0,
        loss="squared_error",
    ),
    "bagging of samme": lambda: pb.fit_bagging(
        partial(pb.fit_samme, base_learner=STUMPS, n_estimators=2), X, Y, n_estimators=2, rng=0
    ),
    "without rows out of bags": lambda: pb.fit_bagging(
        pb.fit_random_forest, X, Y, n_estimators=2, rng=0, max_samples=90, bootstrap=False
    ),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


@pytest.fixture
def members(path):
    pb.save(MODELS["samme"](), path)
    return members_of(path)


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_saved_comes_back(kind, path):
    model = MODELS[kind]()
    pb.save(model, path)
    first = path.read_bytes()
    again = pb.load(path)
    pb.save(again, path)
    assert path.read_bytes() == first
    assert type(again) is type(model)
    assert len(again.models) == len(model.models)
    assert [type(member) for member in again.models] == [type(member) for member in model.models]
    rows = X[:, :1] if kind == "samme without members" else X
    assert np.array_equal(pb.predict(again, rows), pb.predict(model, rows))
    if model.classes is not None:
        assert again.classes.dtype == model.classes.dtype
        assert np.array_equal(pb.predict_proba(again, rows), pb.predict_proba(model, rows))
    assert again.settings == pickle.loads(pickle.dumps(model)).settings
    assert pb.describe(again) == pb.describe(model)
    assert again.feature_names == model.feature_names
    if "bag" in kind:
        assert np.array_equal(again.oob.n_estimators, model.oob.n_estimators)
        assert np.array_equal(again.oob.prediction, model.oob.prediction, equal_nan=True)
        assert np.array_equal(again.oob.error, model.oob.error, equal_nan=True)
    if kind.startswith("samme"):
        assert np.array_equal(again.error, model.error)
        assert again.stop_reason == model.stop_reason


def test_names_of_columns_are_kept(path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abc"))
    model = pb.fit_samme(frame, Y, base_learner=STUMPS, n_estimators=2)
    pb.save(model, path)
    again = pb.load(path)
    assert again.feature_names == model.feature_names == ("a", "b", "c")
    swapped = frame[["c", "a", "b"]]
    assert np.array_equal(pb.predict(again, swapped), pb.predict(model, frame))


def test_members_are_model_files(path):
    model = STUMPS(X, Y)
    pb.save(model, path)
    with np.load(path, allow_pickle=False) as file:
        start, content = file["model_start"], file["models"]
    assert len(start) == 4
    path.write_bytes(content[start[1] : start[2]].tobytes())
    assert np.array_equal(pb.decision_function(pb.load(path), X), model.decision_function(X)[:, 1])


class Constant:
    def predict(self, X):
        return np.full(len(X), "elm")


def majority(X, y, weight, rng):
    """Train a weak classifier that is a function."""
    return lambda X, rng: np.where(X[:, 0] > 0, 1, -1)


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (
            lambda: pb.fit_bagging(lambda X, y, sample_weight: Constant(), X, Y, n_estimators=1),
            r"model\.models\[0\]: expected a model, .* got <.*Constant",
        ),
        (
            lambda: pb.fit_bagging(
                partial(pb.fit_adaboost, n_estimators=1),
                X,
                TWO,
                n_estimators=2,
                rng=0,
                weak_learner=pb.weak.oracle(majority),
            ),
            r"model\.models\[0\]: cannot store weak classifiers that are functions",
        ),
        (
            lambda: pb.fit_one_vs_rest(
                pb.fit_real_adaboost,
                X,
                Y,
                n_estimators=1,
                weak_learner=pb.weak.hypothesis(lambda X, y, weight, rng: lambda X: X[:, 0]),
            ),
            r"model\.models\[0\]: a FunctionEnsemble cannot be saved",
        ),
        (
            lambda: pb.fit_bagging(
                lambda X, y, sample_weight, note: pb.fit_cart(X, y),
                X,
                Y,
                n_estimators=1,
                note=print,
            ),
            r"model\.settings\['note'\]: expected a value that JSON can",
        ),
    ],
    ids=["foreign", "oracle", "hypotheses", "option"],
)
def test_what_cannot_be_stored_says_so(path, fit, message):
    model = fit()
    path.write_bytes(b"old")
    with pytest.raises(TypeError, match=message):
        pb.save(model, path)
    assert path.read_bytes() == b"old"


def nested(depth):
    model = MODELS["bagging"]()
    for _ in range(depth - 1):
        model = pb.models.ensembles.Bagging(
            (model,),
            *(
                getattr(model, name)
                for name in ("classes", "n_features", "feature_names", "settings", "oob")
            ),
        )
    return model


def test_depth_is_bounded(path):
    pb.save(nested(8), path)
    content = path.read_bytes()
    assert np.array_equal(pb.predict(pb.load(path), X), pb.predict(nested(1), X))
    with pytest.raises(TypeError, match="at most 8 levels deep"):
        pb.save(nested(9), path)
    files = join_files([content])
    members = members_of(path)
    for name, array in files.items():
        members = forge_column(members, name, array)
    zip_up(path, members)
    with pytest.raises(ModelFileError, match=r"(model 0: ){8}.*at most 8 levels deep"):
        pb.load(path)


@pytest.mark.full
def test_no_flipped_byte_changes_the_model(path):
    model = MODELS["samme"]()
    pb.save(model, path)
    content = path.read_bytes()
    expected = pb.predict_proba(model, X)
    for i in (*range(0, len(content) - 2000, 23), *range(len(content) - 2000, len(content))):
        damaged = bytearray(content)
        damaged[i] ^= (0x01, 0x80, 0xFF)[i % 3]
        path.write_bytes(damaged)
        try:
            loaded = pb.load(path)
        except ModelFileError:
            continue
        assert type(loaded) is type(model)
        assert np.array_equal(pb.predict_proba(loaded, X), expected)


def test_truncated_file(path, members):
    content = path.read_bytes()
    for length in (*range(0, len(content), 97), *range(len(content) - 30, len(content))):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"model\.npz: "):
            pb.load(path)


def column(members, name):
    return np.load(io.BytesIO(members[f"{name}.npy"]))


def test_damaged_member_is_named(path, members):
    start, models = column(members, "model_start"), column(members, "models").copy()
    models[start[1] : start[1] + 4] = 0
    zip_up(path, forge_column(members, "models", models))
    with pytest.raises(ModelFileError, match=r"model\.npz: model 1: .*damaged"):
        pb.load(path)
    for wrong in (start[1:], start[:-1], start[::-1], np.zeros_like(start), start[:0], [start]):
        zip_up(path, forge_column(members, "model_start", np.array(wrong, dtype=np.int64)))
        with pytest.raises(ModelFileError, match="'model_start': expected"):
            pb.load(path)


def test_members_of_members_are_not_compressed(path, members):
    squeezed = io.BytesIO()
    with zipfile.ZipFile(squeezed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", bytes(10**6))
    for name, array in join_files([squeezed.getvalue()]).items():
        members = forge_column(members, name, array)
    zip_up(path, members)
    with pytest.raises(ModelFileError, match=r"model 0: .*expected an uncompressed member"):
        pb.load(path)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("alpha", [1.0], r"alpha: expected shape \(4,\)"),
        ("alpha", [1.0, np.nan, 1.0, 1.0], "alpha: expected finite"),
        ("bias", [0.0], r"bias: expected shape \(3,\)"),
        ("classes", ["oak", "elm", "ash"], "classes: expected sorted"),
        ("classes", [["ash", "elm", "oak"]], "classes: expected sorted"),
    ],
)
def test_model_that_fails_validation(path, members, name, array, message):
    array = np.asarray(array, dtype=column(members, name).dtype)
    zip_up(path, forge_column(members, name, array))
    with pytest.raises(ModelFileError, match=rf"not a valid model: .*{message}"):
        pb.load(path)


@pytest.mark.parametrize(
    ("kind", "model", "message"),
    [
        ("one-vs-rest", "samme", r"models: expected (one model per class|a binary model)"),
        ("tree", "samme", "column .* is (unknown|missing)"),
        ("bagging", "samme", "column .* is (unknown|missing)"),
        ("weighted-vote", "bagging", "column .* is (unknown|missing)"),
    ],
)
def test_headers_of_another_kind(path, kind, model, message):
    pb.save(MODELS[model](), path)
    members = members_of(path)
    if kind == "one-vs-rest":
        columns = header_of(members)["columns"]
        for name in ("alpha", "bias", "error"):
            members.pop(f"{name}.npy")
            columns.pop(name)
        members = forge(members, columns=columns)
    zip_up(path, forge(members, kind=kind))
    with pytest.raises(ModelFileError, match=message):
        pb.load(path)


def test_files_say_how_members_vote_where_they_are_averaged(path):
    """The file of those that say a label is what it always was."""
    average = MODELS["bagging"]()
    pb.save(average, path)
    members = members_of(path)
    assert column(members, "voting").tolist() == ["soft"]
    assert pb.load(path).voting == "soft"
    pb.save(replace(average, voting="hard"), path)
    assert members_of(path).keys() == members.keys() - {"voting.npy"}
    again = pb.load(path)
    assert again.voting == "hard"
    votes = np.mean([pb.predict(m, X)[:, None] == again.classes for m in again.models], axis=0)
    assert np.array_equal(pb.predict_proba(again, X), votes)
    pb.save(MODELS["bagging of stagewise"](), path)
    assert "voting.npy" not in members_of(path)
    for wrong in (["mean"], [], ["soft", "soft"], [1]):
        zip_up(
            path, forge_column(members, "voting", np.array(wrong, dtype=None if wrong else "<U7"))
        )
        with pytest.raises(ModelFileError, match="voting: expected one of"):
            pb.load(path)


def test_bagging_that_fails_validation(path):
    pb.save(MODELS["bagging"](), path)
    members = members_of(path)
    for name, array in (
        ("oob_n_estimators", np.zeros(3, np.int32)),
        ("oob_prediction", np.zeros(90)),
        ("oob_prediction", np.zeros((90, 2))),
    ):
        zip_up(path, forge_column(members, name, array))
        with pytest.raises(ModelFileError, match="not a valid model: oob"):
            pb.load(path)
    changed = members
    for name, array in join_files([]).items():
        changed = forge_column(changed, name, array)
    zip_up(path, changed)
    with pytest.raises(ModelFileError, match="models: expected at least one"):
        pb.load(path)
    zip_up(path, forge(members, oob_error="small"))
    with pytest.raises(ModelFileError, match="not a valid model: "):
        pb.load(path)
    zip_up(path, forge(members, n_features="3"))
    with pytest.raises(ModelFileError, match=r"header: .*n_features"):
        pb.load(path)
