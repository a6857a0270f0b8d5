"""Evaluation of graphs, joined exits included, against the walk of the twin."""

import numpy as np
import pytest
from compare import truncated
from reference.problems import SIZES, random_matrix, random_topology
from reference.walk import evaluate

import pboost as pb


def random_graph(rng, X, n_nodes, p_join=0.3):
    """Return a valid graph whose thresholds are values that occur in X."""
    n, d = X.shape
    feature = rng.integers(0, d, n_nodes)
    threshold = X[rng.integers(0, n, n_nodes), feature] if n else rng.normal(size=n_nodes)
    record = pb.models.TrainingRecord(np.ones(n_nodes + 1), np.ones(n_nodes + 1), "made up")
    return pb.models.DecisionGraph(
        feature=feature,
        threshold=threshold,
        next=random_topology(rng, n_nodes, p_join),
        vote=rng.normal(size=(n_nodes, 2)),
        classes=np.array([-1, 1]),
        n_features=d,
        feature_names=None,
        bias=float(rng.normal()),
        settings={},
        record=record,
    )


def twin_of(model, X):
    return evaluate(model.feature, model.threshold, model.next, model.vote, X, model.bias)


def check(model, X):
    score, nodes, features = twin_of(model, X)
    np.testing.assert_allclose(pb.decision_function(model, X), score, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(pb.prediction_cost(model, X), nodes)
    np.testing.assert_array_equal(pb.prediction_cost(model, X, unit="features"), features)
    np.testing.assert_array_equal(pb.predict(model, X), np.where(score > 0, 1, -1))
    probability = 1 / (1 + np.exp(-2 * score))
    np.testing.assert_allclose(
        pb.predict_proba(model, X), np.column_stack([1 - probability, probability]), atol=1e-12
    )


@pytest.mark.parametrize("n", SIZES)
def test_random_graphs(n):
    rng = np.random.default_rng([31, n])
    X = random_matrix(rng, n, 4)
    for n_nodes in (1, 2, 17):
        check(random_graph(rng, X, n_nodes), X)


@pytest.mark.parametrize("p_join", [0.0, 1.0])
@pytest.mark.parametrize("d", [1, 3, 70])
def test_trees_and_fully_joined_graphs(p_join, d):
    rng = np.random.default_rng([32, d])
    X = random_matrix(rng, 200, d)
    check(random_graph(rng, X, 150, p_join), X)


def test_score_does_not_depend_on_the_block():
    rng = np.random.default_rng(33)
    X = rng.normal(size=(30_001, 3))
    model = random_graph(rng, X, 40)
    full_scores = pb.decision_function(model, X)
    rows = np.concatenate(
        [pb.decision_function(model, X[i : i + 997]) for i in range(0, len(X), 997)]
    )
    assert full_scores.tobytes() == rows.tobytes()


def test_one_row_equals_many():
    rng = np.random.default_rng(34)
    X = random_matrix(rng, 50, 5)
    model = random_graph(rng, X, 30)
    full_scores = pb.decision_function(model, X)
    assert [pb.decision_function(model, X[i : i + 1])[0] for i in range(50)] == full_scores.tolist()


def test_no_rows():
    rng = np.random.default_rng(35)
    model = random_graph(rng, rng.normal(size=(5, 2)), 3)
    assert pb.decision_function(model, np.zeros((0, 2))).shape == (0,)
    assert pb.predict_proba(model, np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("p_join", [0.0, 0.3, 1.0])
def test_staged_scores_are_those_of_truncated_graphs(p_join):
    rng = np.random.default_rng(36)
    X = random_matrix(rng, 70, 3)
    model = random_graph(rng, X, 12, p_join)
    stages = list(pb.staged_decision_function(model, X))
    assert len(stages) == 12
    for t, score in enumerate(stages, start=1):
        np.testing.assert_allclose(score, twin_of(truncated(model, t), X)[0], atol=1e-12)
    np.testing.assert_allclose(stages[-1], pb.decision_function(model, X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("layout", ["F", "strided", "reversed", "float32", "int", "list"])
def test_layouts_of_the_rows(layout):
    rng = np.random.default_rng(37)
    X = rng.integers(0, 5, (300, 4)).astype(float)
    model = random_graph(rng, X, 20)
    forms = {
        "F": np.asfortranarray(X),
        "strided": np.repeat(X, 3, axis=1)[:, ::3],
        "reversed": X[::-1].copy()[::-1],
        "float32": X.astype(np.float32),
        "int": X.astype(np.int64),
        "list": X.tolist(),
    }
    expected = pb.decision_function(model, X)
    assert pb.decision_function(model, forms[layout]).tobytes() == expected.tobytes()
