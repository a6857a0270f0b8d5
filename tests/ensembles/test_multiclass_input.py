"""Models of several classes: what their functions refuse, and what their builders do."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

import pboost as pb

STUMPS = partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=3)


class Constant:
    def __init__(self, label):
        self.label = label

    def predict(self, X):
        return np.full(len(X), self.label)


def needs_rounds(X, y, *, rounds, sample_weight=None):
    return Constant(y[0])


class Certain:
    """Decision values as given, in place of a binary model."""

    classes = np.array([False, True])


def three(n=90, seed=0, labels=("ash", "elm", "oak")):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    code = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int) + (X[:, 1] > 0.3)
    return X, np.asarray(labels)[code]


@pytest.mark.parametrize("kind", ["rest", "samme"])
def test_functions_of_a_model(kind, tmp_path):
    X, y = three()
    model = (
        STUMPS(X, y) if kind == "rest" else pb.fit_samme(X, y, base_learner=STUMPS, n_estimators=3)
    )
    again = pickle.loads(pickle.dumps(model))
    assert (pb.decision_function(again, X) == pb.decision_function(model, X)).all()
    assert not again.classes.flags.writeable
    text = pb.describe(model)
    assert text.count("fit_adaboost: 3 nodes") == (3 if kind == "rest" else 9)
    assert ("'elm' against the rest:" in text) == (kind == "rest" or "base learner 2, vote" in text)
    assert "3 classes>" in repr(model)
    for ask in (
        lambda: pb.certificate(model),
        lambda: pb.inspection.reach(model, X),
        lambda: pb.models.truncate(model, 1),
        lambda: pb.continue_fit(model, X, y, n_estimators=1),
        *([] if kind == "rest" else [lambda: pb.decision_function(model, X, route="expected")]),
    ):
        with pytest.raises(TypeError, match="model: expected"):
            ask()
    pb.save(model, tmp_path / "model.npz")
    stored = pb.load(tmp_path / "model.npz")
    assert (pb.decision_function(stored, X) == pb.decision_function(model, X)).all()
    with pytest.raises(NotImplementedError, match='expected "nodes"'):
        pb.prediction_cost(model, X, "features")
    with pytest.raises(AttributeError):
        model.classes = y
    empty = pb.predict_proba(model, X[:0])
    assert empty.shape == (0, 3)


@pytest.mark.parametrize("fit", [pb.fit_real_adaboost, pb.fit_matryoshka])
def test_two_class_builders_name_the_others(fit):
    X, y = three()
    sizes = {pb.fit_real_adaboost: {"n_estimators": 2}, pb.fit_matryoshka: {"shape": (2,)}}
    with pytest.raises(ValueError, match=r"got 3: pb\.fit_one_vs_rest"):
        fit(X, y, **sizes.get(fit, {"max_nodes": 2}))


X9, Y9 = three(9)


def ivy(X, y, sample_weight):
    return Constant("ivy")


@pytest.mark.parametrize(
    ("fit", "error", "message"),
    [
        (
            lambda: pb.fit_one_vs_rest(3, X9, Y9),
            TypeError,
            "fit: expected a function .* got 3",
        ),
        (lambda: STUMPS(X9, ["a"] * 9), ValueError, "at least two classes, got only"),
        (lambda: STUMPS(X9, Y9[:8]), ValueError, "y: expected 9 labels"),
        (lambda: STUMPS(X9[:0], []), ValueError, "X: expected at least one row"),
        (lambda: STUMPS(X9, [np.nan] * 9), ValueError, "y: missing label in row 0"),
        (lambda: STUMPS(X9 * np.inf, Y9), ValueError, "X: expected finite numbers"),
        (
            lambda: STUMPS(X9, Y9, sample_weight=(Y9 != "elm") * 1.0),
            ValueError,
            "every class to have positive weight, got none for 'elm'",
        ),
        (
            lambda: pb.fit_one_vs_rest(
                pb.fit_gradient_boosting, X9, Y9, loss="hinge", n_estimators=2
            ),
            ValueError,
            "fit: decision values of the hinge loss do not give probabilities; one-vs-rest",
        ),
        (
            lambda: pb.fit_one_vs_rest(lambda X, y: Constant(1), X9, Y9),
            TypeError,
            "fit: expected a function that fits binary models, got",
        ),
        (
            lambda: pb.fit_samme(X9, Y9, base_learner=3, n_estimators=1),
            TypeError,
            "base_learner: expected a function .* got 3",
        ),
        (
            lambda: pb.fit_samme(
                X9, Y9, base_learner=lambda X, y, sample_weight: Constant("ivy"), n_estimators=1
            ),
            ValueError,
            "base_learner: expected predictions among the classes .* got 'ivy'",
        ),
        (
            lambda: pb.fit_samme(X9, Y9, base_learner=needs_rounds, n_estimators=1),
            TypeError,
            "rounds",
        ),
        (
            lambda: pb.fit_samme(pb.data.bin_columns(X9), Y9, base_learner=STUMPS, n_estimators=1),
            TypeError,
            "got BinnedColumns without values",
        ),
        (
            lambda: pb.fit_samme(X9, Y9, base_learner=STUMPS, n_estimators=0),
            ValueError,
            "n_estimators: expected",
        ),
        (
            lambda: pb.fit_samme(X9, Y9, base_learner=STUMPS, n_estimators=1, callback=1),
            TypeError,
            "callback: expected a function",
        ),
        (
            lambda: pb.models.OneVsRest((), np.arange(2), {}),
            ValueError,
            "models: expected one model per class",
        ),
        (
            lambda: pb.models.OneVsRest((Certain(), Constant(1)), np.arange(2), {}),
            ValueError,
            "models: expected a binary model with classes False and True for 1",
        ),
        (
            lambda: pb.models.WeightedVote((), [1.0], np.arange(2), [0.0, 0.0], {}, [], ""),
            ValueError,
            r"alpha: expected shape \(0,\)",
        ),
    ],
)
def test_what_is_wrong_is_named(fit, error, message):
    with pytest.raises(error, match=message):
        fit()
