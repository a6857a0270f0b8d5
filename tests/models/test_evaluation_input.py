"""Bad input of functions that take a fitted model: a clear error that names the argument."""

import re

import numpy as np
import pandas as pd
import pytest

import pboost as pb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
CHAIN = pb.fit_adaboost(X, Y, n_estimators=3)
LINEAR = pb.fit_real_adaboost(X, Y, n_estimators=3, weak_learner=pb.weak.feature())

OF_MODELS = {
    "decision_function": lambda m: pb.decision_function(m, X),
    "expected": lambda m: pb.decision_function(m, X, "expected"),
    "predict": lambda m: pb.predict(m, X),
    "predict_proba": lambda m: pb.predict_proba(m, X),
    "staged": lambda m: list(pb.staged_decision_function(m, X)),
    "prediction_cost": lambda m: pb.prediction_cost(m, X),
    "features read": lambda m: pb.prediction_cost(m, X, "features"),
    "certificate": lambda m: pb.certificate(m),
    "certificate of data": lambda m: pb.certificate(m, X, Y),
    "reach": lambda m: pb.inspection.reach(m, X),
    "truncate": lambda m: pb.models.truncate(m, 1),
    "describe": pb.describe,
    "explain": lambda m: pb.explain(m, X[0]),
    "margins": lambda m: pb.inspection.margins(m, X, Y),
}


@pytest.mark.parametrize("function", OF_MODELS.values(), ids=OF_MODELS)
@pytest.mark.parametrize(
    "value", [None, 3, "model.npz", pb.fit_adaboost], ids=["none", "number", "path", "builder"]
)
def test_no_model(function, value):
    with pytest.raises(TypeError, match=r"^model: expected a model, such as fit_adaboost returns"):
        function(value)
    function(CHAIN)


@pytest.mark.parametrize("model", [CHAIN, LINEAR], ids=["chain", "linear"])
def test_means_of_no_rows(model):
    for function in (
        lambda A, y: pb.certificate(model, A, y),
        lambda A, y: pb.inspection.margin_error(model, A, y, 0.1),
        lambda A, y: pb.inspection.margin_bound(model, A, y, 0.1),
    ):
        with pytest.raises(ValueError, match=r"^X: expected at least one row"):
            function(X[:0], Y[:0])
        assert function(X[:1], Y[:1]) >= 0


@pytest.mark.parametrize("model", [CHAIN, LINEAR], ids=["chain", "linear"])
@pytest.mark.parametrize("route", ["hard", "expected"])
def test_walks_belong_to_one_route(model, route):
    with pytest.raises(ValueError, match=rf"^draws: .*{route}"):
        pb.decision_function(model, X, route, draws=2)
    assert pb.decision_function(model, X, "sample", draws=2).shape == (60,)


@pytest.mark.parametrize("route", ["hard", "expected", "sample"])
@pytest.mark.parametrize("draws", [0, -1, 1.5, True])
def test_bad_draws(route, draws):
    with pytest.raises((ValueError, TypeError), match=r"^draws: expected an integer"):
        pb.decision_function(CHAIN, X, route, draws=draws)


def test_answers_that_depend_on_the_class_only_since_the_model_was_continued():
    """The model's own settings name answers that do not; the error must not name them."""
    model = pb.continue_fit(CHAIN, X, Y, max_nodes=3, observation=pb.observation.adatree2())
    for function in (
        lambda: pb.inspection.reach(model, X),
        lambda: pb.decision_function(model, X, "expected"),
        lambda: pb.decision_function(model, X, "sample"),
    ):
        with pytest.raises(ValueError, match=r"^model: .*depends on the class") as caught:
            function()
        assert "exact" not in str(caught.value)
    assert pb.inspection.reach(model, X, Y).shape == (60, model.n_nodes)


class FirstColumn:
    """Answers by the sign of the first column."""

    def fit(self, X, y, sample_weight):
        pass

    def predict_proba(self, X):
        p = (np.asarray(X)[:, 0] > 0).astype(float)
        return np.stack([1 - p, p], axis=1)


def test_two_columns_of_one_name_cannot_be_put_in_order():
    frame = pd.DataFrame(X, columns=["a", "a", "b"])
    model = pb.fit_adaboost(
        frame, Y, n_estimators=1, weak_learner=pb.weak.from_estimator(FirstColumn())
    )
    assert pb.predict(model, frame).shape == (60,)
    with pytest.raises(ValueError, match=r"^X: .* two columns have the same name"):
        pb.predict(model, frame.iloc[:, [2, 1, 0]])


def test_ends_of_ranges_are_written_as_they_are():
    for text, call in (
        ("[0.0, 0.5)", lambda: pb.observation.flip(0.5)),
        ("(0.0, 1.0)", lambda: pb.fit_boosted_tree(X, Y, max_nodes=2, target_certificate=1.0)),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            call()


def test_numbers_of_threads_are_integers_of_any_kind():
    model = pb.fit_adaboost(X, Y, n_estimators=3, n_threads=np.int64(1))
    assert (model.vote == CHAIN.vote).all()
    for value, error in ((0, ValueError), (True, TypeError), (1.5, TypeError)):
        with pytest.raises(error, match=r"^n_threads"):
            pb.fit_adaboost(X, Y, n_estimators=3, n_threads=value)


def test_a_clock_that_is_not_finite():
    noisy = pb.observation.sampled("stopwatch", clock=lambda: float("nan"))
    with pytest.raises(RuntimeError, match=r"^clock: round 1: expected a finite time, got nan"):
        pb.fit_adaboost(X, Y, n_estimators=3, observation=noisy, rng=0)


@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e300, 1.7e308])
def test_certificate_of_weights_of_any_size(weight):
    model = pb.fit_adaboost(X, Y, n_estimators=3, sample_weight=np.full(60, weight))
    bound = pb.certificate(model, X, Y, sample_weight=np.full(60, weight))
    assert bound == pytest.approx(pb.certificate(model), rel=1e-12)


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_errors_of_projections_in_any_unit(unit):
    """Of numbers whose squares are 0 or infinite."""
    weak = pb.weak.affine(n_directions=8)
    fits = [
        pb.fit_boosted_tree(
            X[:, :2] * scale,
            Y,
            max_nodes=5,
            weak_learner=weak,
            observation=pb.observation.gaussian(scale / 4),
        )
        for scale in (1.0, unit)
    ]
    np.testing.assert_allclose(fits[1].vote, fits[0].vote, rtol=1e-6)
    np.testing.assert_allclose(
        pb.decision_function(fits[1], X[:, :2] * unit, "expected"),
        pb.decision_function(fits[0], X[:, :2], "expected"),
        rtol=1e-6,
    )
