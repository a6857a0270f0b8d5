"""Sums of votes that are no numbers.

A row evaluated alone took a decision value that was not finite for a value of X that was not, and
what followed it was never written: predictions came from uninitialised memory, and differed from
those of nine rows or more. Graphs of which a path has no finite sum are refused, and a row has the
same answer alone and among others, whatever the model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pboost as pb
from pboost.data.node_inputs.sums import Projections
from pboost.models.ensembles import OneVsRest, WeightedVote
from pboost.models.graph import DecisionGraph
from pboost.models.schema import TrainingRecord

MOST = np.finfo(np.float64).max
ROWS = np.array([[0.0], [1.0], [2.0], [3.0]])


def graph(vote, follow, **changes):
    n = len(vote)
    fields = {
        "feature": np.zeros(n),
        "threshold": np.full(n, 1.5),
        "next": np.asarray(follow).reshape(n, 2),
        "vote": np.asarray(vote, dtype=float).reshape(n, 2),
        "classes": np.array([0, 1]),
        "n_features": 1,
        "feature_names": None,
        "bias": 0.0,
        "settings": {},
        "record": TrainingRecord(np.ones(n + 1), np.zeros(n + 1), "made by hand"),
    }
    return DecisionGraph(**{**fields, **changes})


def assert_alone_as_among(model, X, function=pb.decision_function):
    many = function(model, np.concatenate([X] * 20))
    alone = np.concatenate([function(model, x[None]) for x in X])
    few = np.concatenate([function(model, X[:2]), function(model, X[2:])])
    assert np.array_equal(many[: len(X)], alone)
    assert np.array_equal(alone, few)
    assert np.isfinite(alone).all()


CHAIN = [[1, 1], [-1, -1]]
TREE = [[1, 2], [-1, -1], [-1, -1]]


@pytest.mark.parametrize(
    ("vote", "follow", "bias"),
    [
        ([[1e308, -1e308], [1e308, -1e308]], CHAIN, 0.0),
        ([[1e308, 1.0]], [[-1, -1]], 1e308),
        ([[1e308, 1.0], [1.0, 1e308], [1.0, 1.0]], TREE, 0.0),
        ([[MOST, 0.0]], [[-1, -1]], 0.0),
    ],
    ids=["chain", "bias", "tree", "no-room-for-rounding"],
)
def test_paths_without_a_finite_sum_are_refused(vote, follow, bias):
    with pytest.raises(ValueError, match=r"vote: .* finite sum along every path"):
        graph(vote, follow, bias=bias)


def test_large_votes_that_no_path_adds_up_are_not():
    X = ROWS
    # No two of them meet: each is at an exit of its own that leads out.
    model = graph([[1.0, 2.0], [1.7e308, -1.7e308], [1.7e308, -1.7e308]], TREE)
    assert_alone_as_among(model, X)
    assert pb.predict(model, X).tolist() == [1, 1, 0, 0]
    np.testing.assert_allclose(pb.predict_proba(model, X)[:, 1], [1.0, 1.0, 0.0, 0.0], atol=1e-307)
    walks = pb.decision_function(model, X, "sample", draws=50, rng=0)
    np.testing.assert_allclose(walks, pb.decision_function(model, X))
    np.testing.assert_allclose(pb.decision_function(model, X, "expected"), walks)


def test_long_chains_are_checked_in_one_pass():
    n = 50_000
    follow = np.repeat(np.append(np.arange(1, n), -1)[:, None], 2, axis=1)
    vote = np.full((n, 2), 1.7e308 / n)
    assert pb.decision_function(graph(vote, follow), ROWS)[0] == pytest.approx(1.7e308)
    with pytest.raises(ValueError, match="finite sum"):
        graph(2 * vote, follow)


@pytest.mark.parametrize("follow", [CHAIN, [[1, -1], [-1, -1]]], ids=["chain", "graph"])
def test_projections_that_overflow_answer_alike_alone_and_among_others(follow):
    inputs = Projections([0, 2, 3], [0, 1, 0], [1e308, -1e308, 1e308])
    model = graph([[1.0, 2.0], [4.0, 8.0]], follow, feature=[0, 1], inputs=inputs, n_features=2)
    X = np.array([[5.0, 5.0], [-5.0, 5.0], [5.0, -5.0], [0.0, 0.0], [1.0, 1.0]])
    assert_alone_as_among(model, X)
    values = pb.decision_function(model, X)
    assert list(pb.staged_decision_function(model, X))[-1].tolist() == values.tolist()
    assert [pb.explain(model, x).score for x in X] == values.tolist()
    # Infinite less infinite is no number, which is not above a threshold.
    assert pb.explain(model, X[0]).tests[0].answer == 0


def test_gaussian_answers_of_projections_that_overflow_are_refused():
    inputs = Projections([0, 2], [0, 1], [1e308, -1e308])
    model = graph([[1.0, 2.0]], [[-1, -1]], inputs=inputs, n_features=2, sigma=[0.1, 0.1])
    assert np.isfinite(pb.decision_function(model, [[1.0, 1.0]], "expected")).all()
    with pytest.raises(ValueError, match=r"X, sigma: .*finite"):
        pb.decision_function(model, [[5.0, 5.0]], "expected")


def test_linear_models_say_which_row_lies_too_far():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = pb.fit_real_adaboost(X, X[:, 0] > 0, n_estimators=20, weak_learner=pb.weak.feature())
    far = np.full((1, 2), 1e308)
    with pytest.raises(ValueError, match="row 0 is too far"):
        pb.decision_function(model, far)
    with pytest.raises(ValueError, match="row 12 is too far"):
        pb.decision_function(model, np.concatenate([X[:12], far]))
    with pytest.raises(ValueError, match="row 0 is too far"):
        list(pb.staged_decision_function(model, far))
    assert_alone_as_among(model, X)


def test_probit_models_of_far_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    line = pb.fit_probitboost(X, X[:, 0] - X[:, 1] > 0, max_iter=20)
    tree = pb.fit_probit_tree(X, X[:, 0] - X[:, 1] > 0, max_depth=1, max_iter=10)
    far = np.array([[1e308, 1e308], [-1e308, 1e308], [1e308, -1e308], [1e308, 0.0]])
    assert_alone_as_among(line, far)
    assert_alone_as_among(tree, far)


def test_sums_over_members_are_finite():
    stump = graph([[1.0, -1.0]], [[-1, -1]])
    shared = {"models": (stump, stump), "classes": np.array([0, 1]), "settings": {}, "error": []}
    with pytest.raises(ValueError, match=r"alpha, bias: .* finite sum"):
        WeightedVote(alpha=[1e308, 1e308], bias=[0.0, 0.0], stop_reason="", **shared)
    vote = WeightedVote(alpha=[8e307, 8e307], bias=[0.0, -1e307], stop_reason="", **shared)
    assert np.isfinite(vote.predict_proba(ROWS)).all()


def test_forests_and_stagewise_sums_are_finite():
    X, y = ROWS, np.array([0.0, 1e150, -1e150, 1.0])
    forest = pb.fit_random_forest(X, y, n_estimators=3, task="regression", rng=0)
    with pytest.raises(ValueError, match=r"value: .* finite sum"):
        replace(forest, value=np.full(len(forest.value), 1e308))
    model = pb.fit_gradient_boosting(X, [0, 0, 1, 1], n_estimators=3, loss="log_loss")
    with pytest.raises(ValueError, match=r"value, bias: .* finite sum"):
        replace(model, bias=MOST)


def test_bagged_numbers_have_a_mean_where_their_sum_is_none():
    X = ROWS
    bagging = pb.fit_bagging(
        pb.fit_cart,
        X,
        [0.0, 1.0, 2.0, 3.0],
        task="regression",
        n_estimators=2,
        bootstrap=False,
        rng=0,
    )
    large = tuple(replace(tree, value=np.full(len(tree.value), 1.5e308)) for tree in bagging.models)
    assert pb.predict(replace(bagging, models=large), X).tolist() == [1.5e308] * 4


def test_ensembles_of_two_classes_against_the_rest():
    X = np.random.default_rng(0).normal(size=(90, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = pb.fit_one_vs_rest(pb.fit_samme, X, y, base_learner=pb.fit_cart, n_estimators=3)
    assert isinstance(model, OneVsRest)
    assert pb.decision_function(model, X).shape == (90, 3)
    assert_alone_as_among(model, X, pb.predict_proba)


def test_votes_too_large_to_go_on_with():
    y, given = (
        [0, 0, 1, 1],
        {"weak_learner": pb.weak.stump(), "observation": pb.observation.exact()},
    )
    for joins in ({"n_estimators": 1}, {"max_nodes": 1}):
        model = graph([[-400.0, 400.0]], [[-1, -1]])
        with pytest.raises(ValueError, match="votes of at most 350"):
            pb.continue_fit(model, ROWS, y, **given, **joins)
    deep = graph([[-300.0, 300.0]] * 3, [[1, -1], [2, -1], [-1, -1]])
    with pytest.raises(ValueError, match="in a tree 700 along a path"):
        pb.continue_fit(deep, ROWS, y, max_nodes=1, **given)


def test_certificates_that_are_infinite():
    model = graph([[900.0, -900.0]], [[-1, -1]])
    assert pb.certificate(model, ROWS, [0, 0, 1, 1]) == np.inf
    # Rows without weight have no part in it.
    assert pb.certificate(model, ROWS, [1, 0, 0, 0], sample_weight=[1, 0, 1, 1]) == 0.0
    exact = replace(model, answer=np.broadcast_to([[0.0, 0.0], [1.0, 1.0]], (1, 2, 2)))
    assert pb.certificate(exact, ROWS, [1, 1, 0, 0]) == 0.0


def test_impurities_whose_products_with_weights_are_none():
    tree = pb.fit_cart(ROWS, [0.0, 1.0, 3.0, 9.0], task="regression")
    large = replace(tree, impurity=tree.impurity * 1e200, weight=tree.weight * 1e200)
    np.testing.assert_allclose(pb.feature_importances(large), pb.feature_importances(tree))
    with pytest.raises(ValueError, match="finite products of weight and impurity"):
        pb.prune(large, 1.0)


def test_columns_read_on_the_way_are_counted():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 4))
    tree = pb.fit_cart(X, rng.integers(0, 3, 200))
    read = [set() for _ in range(tree.n_nodes)]
    for node in np.flatnonzero(tree.feature >= 0):
        for child in tree.children[node]:
            read[child] = read[node] | {int(tree.feature[node])}
    expected = [len(read[node]) for node in tree.nodes_of(X)]
    assert pb.prediction_cost(tree, X, "features").tolist() == expected


def test_linear_models_of_the_least_scales_are_described():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = pb.fit_real_adaboost(X, X[:, 0] > 0, n_estimators=5, weak_learner=pb.weak.feature())
    tiny = replace(model, scale=model.scale * 1e-309)
    assert "coefficient +inf" in pb.describe(tiny)
    assert np.isfinite(pb.decision_function(tiny, model.center[None])).all()
