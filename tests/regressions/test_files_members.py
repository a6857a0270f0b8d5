"""Models whose members do not fit together, what is no file, and models made by hand.

Members of other labels or columns were found out by the rows that were to be predicted, with an
IndexError or worse; a pipe or ``/dev/zero`` was read for ever.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from model_files import POSIX, forge_column, members_of, refused

import pboost as pb
from pboost.models import ModelFileError
from pboost.models.files import join_files
from pboost.models.graph import DecisionGraph

RNG = np.random.default_rng(3)
X = RNG.normal(size=(80, 3))
VALUE = X[:, 0] + 0.3 * X[:, 1] * X[:, 2]
TWO = VALUE > 0
THREE = np.digitize(VALUE, [-0.5, 0.5])
STUMP = pb.fit_boosted_tree(X, TWO, max_nodes=1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


def written(path, model):
    pb.save(model, path)
    return members_of(path)


def packed(*models):
    files = []
    for model in models:
        pb.save(model, "member.npz")
        with open("member.npz", "rb") as file:
            files.append(file.read())
    return join_files(files)


WHOLE = {
    "rest": pb.fit_one_vs_rest(pb.fit_boosted_tree, X, THREE, max_nodes=1),
    "samme": pb.fit_samme(X, THREE, base_learner=partial(pb.fit_cart, max_depth=1), n_estimators=2),
    "bagging": pb.fit_bagging(pb.fit_boosted_tree, X, TWO, n_estimators=3, max_nodes=2, rng=0),
}
OTHER_COLUMNS = pb.fit_boosted_tree(X[:, :2], TWO, max_nodes=1)
NAMED, RENAMED = (replace(STUMP, feature_names=names) for names in (tuple("abc"), tuple("xyz")))
MEMBERS = [
    ("bagging", (STUMP, STUMP, OTHER_COLUMNS), "same features, got 3 features, and 2 features"),
    ("bagging", (STUMP, pb.fit_cart(X, THREE)), r"classes among \[False, True\], got classes \[0"),
    ("bagging", (STUMP, pb.fit_cart(X, X[:, 0], task="regression")), "got classes None"),
    ("bagging", (STUMP, pb.fit_cart(X, np.where(TWO, "a", "b"))), "got classes"),
    ("rest", (STUMP, STUMP, OTHER_COLUMNS), "same features, got 3 features, and 2 features"),
    ("rest", (NAMED, STUMP, RENAMED), "features named 'a', 'b', 'c', and 3 features named 'x'"),
    ("samme", (pb.fit_cart(X, THREE), OTHER_COLUMNS), "same features"),
    ("samme", (pb.fit_cart(X, THREE), pb.fit_cart(X, THREE + 1)), "got classes"),
    ("samme", (pb.fit_cart(X, THREE), pb.fit_cart(X, X[:, 0], task="regression")), "classes None"),
]


@pytest.mark.parametrize(("kind", "models", "message"), MEMBERS)
def test_members_that_disagree(path, kind, models, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    members = written(path, WHOLE[kind])
    for name, array in packed(*models).items():
        members = forge_column(members, name, array)
    refused(path, members, f"not a valid model: models: .*{message}")


def test_members_that_agree(path):
    # Some of them have names, some know fewer classes, and one is an ensemble itself.
    fewer = pb.fit_cart(X, np.where(THREE == 2, 1, THREE))
    inner = replace(WHOLE["samme"], models=(fewer, *WHOLE["samme"].models[1:]))
    model = replace(WHOLE["samme"], models=(inner, *WHOLE["samme"].models[1:]))
    pb.save(model, path)
    assert np.array_equal(pb.predict(pb.load(path), X), pb.predict(model, X))
    assert pb.load(path).n_features == 3


# What is no file.


@POSIX
def test_devices_and_pipes(tmp_path):
    for device in ("/dev/zero", "/dev/null", "/dev/urandom"):
        if os.path.exists(device):
            with pytest.raises(ModelFileError, match=f"{device}: expected a file, got a device"):
                pb.load(device)
    os.mkfifo(tmp_path / "pipe")
    os.symlink(tmp_path / "pipe", tmp_path / "link")
    for name in ("pipe", "link"):
        with pytest.raises(ModelFileError, match=f"{name}: expected a file, got a pipe"):
            pb.load(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        pb.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        pb.load(tmp_path / "none.npz")


@POSIX
def test_links_to_files_are_followed(tmp_path, path):
    pb.save(STUMP, path)
    os.symlink(path, tmp_path / "link")
    assert isinstance(pb.load(tmp_path / "link"), DecisionGraph)


# By hand.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {"observation": 1.5}}, r"settings\['observation'\]"),
        ({"n_features": 2.0}, "n_features: expected an integer"),
        ({"feature_names": ["a", "b", "c"]}, "feature_names: expected a tuple"),
        ({"feature_names": (1, 2, 3)}, "feature_names: expected a tuple"),
        ({"bias": "0"}, "bias: expected a finite number"),
        ({"record": replace(STUMP.record, stop_reason=None)}, "stop_reason: expected a string"),
    ],
)
def test_models_made_by_hand(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(STUMP, **changes)
