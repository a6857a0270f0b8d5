"""Parameters of the estimators: those of the builders, what they mean, and what is said of them."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pboost as pb

pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
from sklearn.base import clone

import pboost.sklearn
from pboost.sklearn import (
    AdaBoostClassifier,
    CartClassifier,
    GradientBoostingClassifier,
    ObliqueTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    SBPMTClassifier,
    SoftTreeClassifier,
)

CLASSES = [getattr(pboost.sklearn, name) for name in pboost.sklearn.__all__ if name[0].isupper()]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.normal(size=120) > 1
#: What estimators have under another name, or say themselves.
OTHERS = {"X", "y", "y_proba", "classes", "sample_weight", "task", "callback", "progress"}
RENAMED = {"rng": "random_state", "n_threads": "n_jobs"}
#: Defaults that are not those of the builders.
OWN = {
    SoftTreeClassifier: {"observation"},
    GradientBoostingClassifier: {"loss"},
    pboost.sklearn.GradientBoostingRegressor: {"loss"},
}


@pytest.fixture
def given(monkeypatch):
    """Return a function that fits an estimator, and returns the options that its builder got."""

    def fit(estimator, X=X, y=Y, **data):
        cls, builder, seen = type(estimator), type(estimator).builder, []

        def spy(*args, **options):
            seen.append((args, options))
            return builder(*args, **options)

        spy.__signature__, spy.__name__ = inspect.signature(builder), builder.__name__
        monkeypatch.setattr(cls, "builder", staticmethod(spy))
        estimator.fit(X, y, **data)
        monkeypatch.undo()
        return seen

    return fit


@pytest.mark.parametrize("cls", CLASSES)
def test_options_of_the_builder_are_parameters(cls):
    parameters = cls().get_params()
    for name, option in inspect.signature(cls.builder).parameters.items():
        if name in OTHERS:
            assert name not in parameters
            continue
        default = parameters[RENAMED.get(name, name)]
        if name == "min_samples_leaf" and default is None:
            continue
        if name not in OWN.get(cls, set()):
            assert default == getattr(option.default, "kind", option.default)


@pytest.mark.parametrize("cls", CLASSES)
def test_docstring_says_what_there_is(cls):
    text = inspect.getdoc(cls)
    assert "{" not in re.sub(r'\{"[^}]*\}', "", text)
    section = text.split("Parameters\n----------\n")[1].split("\n\n")[0]
    entries = re.findall(r"^(\w+) : .*, default=(.*)\n((?:    .+\n?)+)", section, re.MULTILINE)
    assert {name: default for name, default, _ in entries} == {
        name: repr(p.default) for name, p in inspect.signature(cls).parameters.items()
    }
    assert "`rng`" not in section
    assert max(map(len, section.splitlines())) < 130


def test_names_and_options_mean_objects(given):
    estimator = AdaBoostClassifier(
        n_estimators=3, weak_learner="affine", n_directions=12, min_samples_leaf=4
    )
    ((_, options),) = given(estimator)
    assert options["weak_learner"] == pb.weak.affine(n_directions=12, min_samples_leaf=4)
    assert options["observation"] == pb.observation.exact()
    estimator.set_params(
        weak_learner=pb.weak.stump("gini"), n_directions=None, min_samples_leaf=None
    )
    ((_, options),) = given(estimator.set_params(observation="flip", flip_rate=0.1))
    assert options["weak_learner"] is estimator.weak_learner
    assert options["observation"] == pb.observation.flip(0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"n_directions": 9},
            "n_directions: expected None with weak_learner='stump', got 9; .* 'affine'",
        ),
        (
            {"weak_learner": pb.weak.stump(), "min_samples_leaf": 2},
            "min_samples_leaf: .* set the options of an object directly",
        ),
        (
            {"weak_learner": "stumps"},
            "weak_learner: expected one of 'stump', .* or an object of pboost.weak",
        ),
        ({"observation": "flip"}, "rate: expected a value with observation='flip', got None"),
        ({"flip_rate": 0.2}, "flip_rate: expected None with observation='exact', got 0.2"),
        ({"route": "sample"}, "route: expected one of 'hard', 'expected'"),
        ({"n_estimators": 0}, "n_estimators: expected an integer from 1"),
    ],
)
def test_wrong_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        AdaBoostClassifier(**options).fit(X, Y)


def test_unknown_parameters_are_named():
    with pytest.raises(TypeError, match=r"n_estimator: AdaBoostClassifier .* mean n_estimators"):
        AdaBoostClassifier(n_estimator=3)
    with pytest.raises(TypeError, match="num_trees: use `n_estimators`"):
        RandomForestClassifier(num_trees=10)
    with pytest.raises(ValueError, match="Invalid parameter 'callback'"):
        AdaBoostClassifier().set_params(callback=print)


def test_threads(given):
    for n_jobs in (None, 2, -1):
        ((_, options),) = given(CartClassifier(n_jobs=n_jobs))
        assert options["n_threads"] == n_jobs


def test_seeds():
    def shares(random_state):
        forest = RandomForestClassifier(n_estimators=5, random_state=random_state)
        return forest.fit(X, Y).predict_proba(X)

    same = shares(0)
    np.testing.assert_array_equal(shares(0), same)
    np.testing.assert_array_equal(shares(np.random.default_rng(0)), same)
    drawn = shares(np.random.RandomState(0))
    np.testing.assert_array_equal(shares(np.random.RandomState(0)), drawn)
    state = np.random.RandomState(0)
    assert (shares(state) != shares(state)).any()
    assert (shares(None) != shares(None)).any()


def test_class_weight_is_a_weight(given):
    ((_, options),) = given(CartClassifier(class_weight={False: 2.0, True: 0.5}))
    np.testing.assert_array_equal(options["sample_weight"], np.where(Y, 0.5, 2.0))
    assert options["min_samples_leaf"] == 20
    own = RNG.random(120)
    tree = CartClassifier(class_weight="balanced", min_samples_leaf=3)
    ((_, options),) = given(tree, sample_weight=own)
    balance = 120 / 2 / np.where(Y, Y.sum(), 120 - Y.sum())
    np.testing.assert_allclose(options["sample_weight"], own * balance)
    assert options["min_samples_leaf"] == 3
    ((_, options),) = given(CartClassifier())
    assert options["min_samples_leaf"] == 1
    soft = SoftTreeClassifier(class_weight="balanced")
    assert given(soft)[0][1]["weak_learner"] == pb.weak.stump(min_samples_leaf=20)
    assert (
        given(soft.set_params(weak_learner="separator"))[0][1]["weak_learner"]
        == pb.weak.separator()
    )
    for estimator in (ObliqueTreeClassifier(), SBPMTClassifier(n_estimators=2, random_state=0)):
        weighted = clone(estimator).set_params(class_weight={False: 1000, True: 1e-3})
        assert (weighted.fit(X, Y).predict(X) == 0).mean() > (
            estimator.fit(X, Y).predict(X) == 0
        ).mean()


def test_data_are_read_once(given):
    for array in (X, np.asfortranarray(X), X.astype(np.float32)):
        (((actual, labels), _),) = given(CartClassifier(), array)
        assert np.shares_memory(actual, array)
        assert labels.base is Y or labels is Y


@pytest.mark.parametrize("cls", [RandomForestRegressor, CartClassifier, SoftTreeClassifier])
def test_frames_are_read_by_the_builder(cls, given):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    (((actual, labels), _),) = given(cls(), frame, Y)
    assert actual is frame
    assert np.shares_memory(labels, Y)


def run(*arguments):
    path = os.pathsep.join([str(Path(pb.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    ).stdout


@pytest.mark.full
def test_without_scikit_learn():
    code = """
import sys
sys.modules["sklearn"] = None
import pboost
try:
    import pboost.sklearn
except ImportError as error:
    print(error)
"""
    assert 'needs scikit-learn 1.6 or later: pip install "pboosting[sklearn]"' in run("-c", code)


@pytest.mark.full
def test_without_docstrings():
    code = "from pboost.sklearn import CartClassifier as C; print(C.__doc__, C(max_depth=2))"
    assert run("-OO", "-c", code).strip() == "None CartClassifier(max_depth=2)"


def test_parameters_of_weak_learners_are_described_as_theirs():
    """A least share of the weight, not the sum of Hessians that gradient boosting has."""
    text = " ".join(SoftTreeClassifier.__doc__.split())
    assert (
        "min_weight_fraction : float, default=None Minimum fraction of the node's weight on each "
        "side" in text
    )
    assert "Hessian" not in text
