"""The functions of a model, given models of every kind."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from shallow import fit_shallow

import pboost as pb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] + 0.5 * RNG.normal(size=120) > 0
ZONE = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])
STUMPS = partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=3)


def best_column(X, y, weight, rng):
    """Return the column that goes best with the labels, as a weak hypothesis."""
    j = int(np.argmax(np.abs((weight * y) @ X)))
    return lambda X: X[:, j]


TWO_CLASS = {
    "graph": lambda: pb.fit_boosted_tree(X, Y, max_nodes=4),
    "linear": lambda: pb.fit_real_adaboost(X, Y, n_estimators=4, weak_learner=pb.weak.feature()),
    "hypotheses": lambda: pb.fit_real_adaboost(
        X, Y, n_estimators=2, weak_learner=pb.weak.hypothesis(best_column)
    ),
}
OTHERS = {
    "tree": lambda: pb.fit_cart(X, Y, max_depth=2),
    "three classes": lambda: pb.fit_cart(X, ZONE, max_depth=2),
    "regression": lambda: pb.fit_cart(X, X[:, 0] + X[:, 1], task="regression", max_depth=2),
    "stagewise": lambda: pb.fit_gradient_boosting(
        X, Y, loss="log_loss", n_estimators=5, learning_rate=0.5
    ),
    "probit": lambda: pb.fit_probitboost(X, Y, max_iter=5),
    "rest": lambda: STUMPS(X, ZONE),
    "rest of trees": lambda: pb.fit_one_vs_rest(pb.fit_cart, X, ZONE, max_depth=2),
    "samme": lambda: pb.fit_samme(
        X, ZONE, base_learner=partial(pb.fit_cart, max_depth=2), n_estimators=3
    ),
    "tree of probits": lambda: pb.fit_probit_tree(X, Y, max_depth=1, max_iter=9),
    "tree of probits, classes": lambda: pb.fit_probit_tree(X, ZONE, max_depth=1, max_iter=9),
    "forest": lambda: pb.fit_random_forest(X, ZONE, n_estimators=3, max_depth=3, rng=0),
    "bagging": lambda: pb.fit_bagging(pb.fit_cart, X, ZONE, n_estimators=3, rng=0, max_depth=3),
    "sbpmt": lambda: pb.fit_sbpmt(
        X, ZONE, n_estimators=3, n_boosting_rounds=2, max_iter=5, min_samples_leaf=10, rng=0
    ),
    "sbpmt of two": lambda: pb.fit_sbpmt(
        X, Y, n_estimators=3, n_boosting_rounds=2, max_iter=5, rng=0
    ),
    "samme of rest": lambda: pb.fit_samme(X, ZONE, base_learner=STUMPS, n_estimators=2),
}
EVERY = {**TWO_CLASS, **OTHERS}


@pytest.mark.parametrize("kind", EVERY)
def test_evaluation(kind):
    model = EVERY[kind]()
    y = {"regression": X[:, 0] + X[:, 1]}.get(
        kind, Y if model.classes is not None and len(model.classes) == 2 else ZONE
    )
    predicted = pb.predict(model, X)
    if kind == "regression":
        assert np.mean((predicted - y) ** 2) < 0.6 * np.var(y)
        with pytest.raises(TypeError, match="no probabilities"):
            pb.predict_proba(model, X)
    else:
        share = pb.predict_proba(model, X)
        np.testing.assert_array_equal(predicted, model.classes[share.argmax(axis=1)])
        np.testing.assert_allclose(share.sum(axis=1), 1)
        assert np.mean(predicted == y) > 0.6
    assert (pb.prediction_cost(model, X) >= 1).all()
    assert model.settings["builder"] in pb.describe(model)
    rise = pb.inspection.permutation_importance(model, X, y, n_repeats=2, rng=0)
    assert rise.shape == (3, 2)
    assert rise[0].mean() > 0.05
    staged = ("samme", "stagewise", "probit", "sbpmt")
    if kind in TWO_CLASS or kind == "rest" or kind.startswith(staged):
        stages = list(pb.staged_predict(model, X))
        sizes = {"samme": lambda: len(model.models), "rest": lambda: 3}
        sizes |= dict.fromkeys(("stagewise", "sbpmt"), lambda: len(model))
        assert len(stages) == sizes.get(kind.split()[0], lambda: model.n_nodes)()
        np.testing.assert_array_equal(stages[-1], predicted)
        shares = list(pb.staged_predict_proba(model, X))
        assert len(shares) == len(stages)
        for labels, at in zip(stages, shares, strict=True):
            np.testing.assert_array_equal(model.classes[at.argmax(axis=1)], labels)
        np.testing.assert_allclose(shares[-1], share, rtol=1e-12)
    else:
        with pytest.raises(NotImplementedError, match="has no stages"):
            pb.staged_decision_function(model, X)


@pytest.mark.parametrize("kind", [kind for kind in EVERY if kind != "graph"])
def test_functions_of_graphs_refuse_the_others(kind):
    model = EVERY[kind]()
    for ask in (
        lambda: pb.inspection.reach(model, X),
        lambda: pb.continue_fit(model, X, Y, max_nodes=1),
        *([] if kind == "stagewise" else [lambda: pb.models.truncate(model, 1)]),
    ):
        with pytest.raises(TypeError, match="model: expected a "):
            ask()


@pytest.mark.parametrize("kind", EVERY)
def test_who_has_a_certificate_and_margins(kind):
    model = EVERY[kind]()
    asked = [
        lambda: pb.certificate(model),
        lambda: pb.certificate(model, X, Y),
        lambda: pb.inspection.margins(model, X, Y),
        lambda: pb.inspection.margin_error(model, X, Y, 0.0),
        lambda: pb.inspection.margin_curve(model, X, Y, [0.0]),
        lambda: pb.inspection.margin_curve(lambda X, y: model, X, Y, [0.0], cv=2),
    ]
    if kind != "rest":  # whose members have routes
        asked.append(lambda: pb.decision_function(model, X, "expected"))
    if kind in TWO_CLASS:
        for ask in asked:
            ask()
        np.testing.assert_allclose(pb.certificate(model, X, Y), pb.certificate(model))
        return
    for ask in [*asked, lambda: pb.inspection.normalized_margins(model, X, Y)]:
        with pytest.raises(TypeError, match=r"model: expected a DecisionGraph.* got a \w+, who"):
            ask()


@pytest.mark.parametrize("kind", [kind for kind in EVERY if kind != "regression"])
def test_cross_validation(kind):
    model = EVERY[kind]()
    y = Y if len(model.classes) == 2 else ZONE
    result = pb.cross_validate(lambda X, y: model, X, y, cv=2)
    size = model.n_nodes
    if kind.startswith(("rest", "samme", "bagging")):
        assert size == sum(member.n_nodes for member in model.models)
    assert result.n_nodes.tolist() == [size, size]
    assert np.isfinite(result.certificate).all() == (kind in TWO_CLASS)
    assert ("certificate" in result.summary()) == (kind in TWO_CLASS)
    np.testing.assert_allclose(result.error.mean(), np.mean(pb.predict(model, X) != y))
    np.testing.assert_allclose(result.cost.mean(), pb.prediction_cost(model, X).mean())


def test_shuffling_needs_columns_of_training():
    class Constant:
        def predict(self, X):
            return np.zeros(len(X), int)

    model = pb.fit_samme(
        X, ZONE, base_learner=lambda X, y, sample_weight: Constant(), n_estimators=1
    )
    with pytest.raises(TypeError, match="stores its training features"):
        pb.inspection.permutation_importance(model, X, ZONE)


def test_probabilities_of_tiny_decision_values_are_largest_for_the_label_predicted():
    """Those of both labels are equal in float64, but the sign of the value decides."""
    X = np.array([[-1.0], [1.0]])
    tiny = 1e-17
    graph = pb.fit_adaboost(X, [0, 1], n_estimators=1)
    graph = replace(graph, vote=np.array([[-tiny, tiny]]), bias=0.0)
    models = [
        graph,
        replace(pb.fit_probitboost(X, [0, 1], max_iter=1), slopes=[tiny], intercept=0.0),
    ]
    for loss in ("exponential", "log_loss", "squared_error", "probit"):
        model = fit_shallow(
            X, [0, 1], loss=loss, task="classification", n_estimators=1, init="zero", max_depth=1
        )
        value = np.sign(model.trees.value) * tiny
        models.append(replace(model, trees=replace(model.trees, value=value)))
    for model in models:
        np.testing.assert_allclose(pb.decision_function(model, X), [-tiny, tiny], err_msg=model)
        share = pb.predict_proba(model, X)
        np.testing.assert_array_equal(share.argmax(axis=1), [0, 1], repr(model))
        np.testing.assert_array_equal(pb.predict(model, X), [0, 1])
        np.testing.assert_allclose(share, 0.5, rtol=1e-15)


def test_probabilities_of_a_link_that_is_not_one_half_at_zero_are_kept():
    class Skew(pb.losses.Loss):
        name = "skew"

        def value(self, y, f):
            return np.logaddexp(0.0, -y * (f + 1))

        def gradient(self, y, f):
            return -y / (1 + np.exp(y * (f + 1)))

        def probability(self, f):
            return 1 / (1 + np.exp(-f - 1))

    X = np.arange(4.0)[:, None]
    model = pb.fit_gradient_boosting(
        X, [0, 1, 0, 1], loss=Skew(), n_estimators=1, learning_rate=0.01
    )
    score, share = pb.decision_function(model, X), pb.predict_proba(model, X)
    np.testing.assert_allclose(share[:, 1], 1 / (1 + np.exp(-score - 1)), rtol=1e-14)
    np.testing.assert_allclose(share.sum(axis=1), 1.0, rtol=1e-14)


def test_rows_far_beyond_those_of_training():
    """Terms of probit models that overflow: the sign counts, as in a tree of one leaf."""
    y = X[:, 0] - X[:, 1] + 0.5 * np.random.default_rng(1).normal(size=len(X)) > 0
    model = pb.fit_probitboost(1e-300 * X, y, max_iter=20)
    tree = pb.fit_probit_tree(1e-300 * X, y, max_iter=20, max_depth=0)
    far = 1e200 * X
    score = pb.decision_function(model, far)
    assert np.isfinite(score).all()
    np.testing.assert_array_equal(score, pb.decision_function(tree, far))
    np.testing.assert_array_equal(score > 0, X @ (model.slopes / 1e300) > 0)
    np.testing.assert_allclose(pb.predict_proba(model, far).sum(axis=1), 1)
    stages = list(pb.staged_decision_function(model, far))
    assert np.isfinite(stages).all()
    np.testing.assert_array_equal(stages[-1], score)
