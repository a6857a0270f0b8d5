"""Graphs on rows with missing values and categories: every route is that of the definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference import graph as reference

import pboost as pb
from pboost._core import walk
from pboost.data.node_inputs.inputs import Subsets
from pboost.models.evaluate import kernel_walk
from pboost.models.schema import TrainingRecord

D = 4  # columns 2 and 3 are categories where there are sets
SIZES = (0, 1, 5, 8, 9, 63, 64, 65, 200)


def graph(rng, kind, n, *, sets=False):
    """Return a random graph: a chain, a tree, or one whose exits join."""
    next_ = np.full((n, 2), -1)
    if kind == "chain":
        next_[:-1] = np.arange(1, n)[:, None]
    elif kind == "tree":
        exits = [(0, 0), (0, 1)]
        for node in range(1, n):
            next_[exits.pop(int(rng.integers(len(exits))))] = node
            exits += [(node, 0), (node, 1)]
    else:
        for node in range(1, n):
            next_[node - 1, int(rng.integers(2))] = node
        free = np.argwhere(next_[:-2] < 0)
        for node, exit_ in free[rng.random(len(free)) < 0.5]:
            next_[node, exit_] = rng.integers(node + 1, n)
    feature, threshold = rng.integers(0, D, n), np.round(rng.normal(size=n), 1)
    threshold[rng.random(n) < 0.1] = np.finfo(float).max
    inputs = None
    if sets:
        k = 7
        member = rng.integers(0, 2**63, (k, 4), dtype=np.uint64)
        member[:, 3] &= np.uint64(2**63 - 1)
        inputs = Subsets(D, rng.integers(2, 4, k), member)
        feature = np.where(feature > 1, D + rng.integers(0, k, n), feature)
        threshold[feature >= D] = 0.5
    missing = rng.integers(0, 2, n).astype(float)
    return pb.models.DecisionGraph(
        feature=feature,
        threshold=threshold,
        next=next_,
        vote=rng.normal(size=(n, 2)),
        classes=np.array([0, 1]),
        n_features=D,
        feature_names=None,
        bias=0.25,
        settings={},
        record=TrainingRecord(np.linspace(1, 0.1, n + 1), np.ones(n + 1), "made up"),
        missing=missing,
        inputs=inputs,
    )


def rows(rng, n, *, share=0.2, dtype=np.float64, order="C"):
    X = np.round(rng.normal(size=(n, D)), 1)
    X[:, 2:] = rng.integers(-1, 256, (n, 2))
    X[rng.random(n) < 0.1, 2] = 1.5
    holes = rng.random((n, D)) < share
    holes[n // 3 : n // 2] = False  # of some tiles no value is missing
    X[holes] = np.nan
    return np.asarray(X, dtype=dtype, order=order)


def expected(model, X):
    return np.array([reference.score(model, row) for row in X.astype(float).tolist()])


GRAPHS = [
    pytest.param(kind, sets, id=f"{kind}{', sets' * sets}")
    for kind in ("chain", "tree", "graph")
    for sets in (False, True)
]


@pytest.mark.parametrize(("kind", "sets"), GRAPHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_hard_route(kind, sets, dtype, order):
    rng = np.random.default_rng([len(kind), sets])
    for n in SIZES:
        model = graph(rng, kind, int(rng.integers(1, 20)), sets=sets)
        X = rows(rng, n, dtype=dtype, order=order)
        actual, right = pb.decision_function(model, X), expected(model, X)
        assert actual.tobytes() == right.tobytes()
        assert pb.decision_function(model, X[::-1])[::-1].tobytes() == right.tobytes()
        assert pb.decision_function(model, np.repeat(X, 2, axis=1)[:, ::2]).tobytes() == (
            right.tobytes()
        )
        single = [pb.decision_function(model, X[i : i + 1])[0] for i in range(n)]
        assert np.array(single).tobytes() == right.tobytes()
        lengths = [len(list(reference.path(model, row))) for row in X.astype(float).tolist()]
        assert pb.prediction_cost(model, X).tolist() == lengths
        columns = [len(reference.columns_read(model, row)) for row in X.astype(float).tolist()]
        assert pb.prediction_cost(model, X, "features").tolist() == columns
        stages = list(pb.staged_decision_function(model, X))
        assert stages[-1].tobytes() == right.tobytes()


@pytest.mark.parametrize(("kind", "sets"), GRAPHS)
def test_many_rows_on_threads(kind, sets, monkeypatch):
    monkeypatch.setattr("pboost.threads.MIN_CELLS", 1)
    monkeypatch.setattr("pboost.threads.available_threads", lambda: 3)
    rng = np.random.default_rng([7, len(kind), sets])
    model = graph(rng, kind, 60, sets=sets)
    X = rows(rng, 1000, share=0.01)
    X[:500][np.isnan(X[:500])] = 0.0
    scores = pb.decision_function(model, X)
    assert scores.tobytes() == expected(model, X).tobytes()
    assert pb.decision_function(model, X).tobytes() == scores.tobytes()
    if not sets:
        clean = np.nan_to_num(X)
        plain = replace(model, missing=None)
        for n in (1, 20, 1000):
            assert pb.decision_function(model, clean[:n]).tobytes() == (
                pb.decision_function(plain, clean[:n]).tobytes()
            )


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("sets", [False, True])
def test_every_variant_of_the_kernels(level, sets):
    rng = np.random.default_rng([level, sets])
    model, X = graph(rng, "chain", 50, sets=sets), rows(rng, 300)
    walk.use_simd_level(level)
    try:
        actual = kernel_walk.walk_rows(model, X, False)[0]
    finally:
        walk.use_simd_level(2)
    assert actual.tobytes() == expected(model, X).tobytes()


@pytest.mark.parametrize(("kind", "sets"), GRAPHS)
@pytest.mark.parametrize("answers", ["certain", "tables", "gaussian"])
def test_expectations(kind, sets, answers):
    rng = np.random.default_rng([9, len(kind), sets])
    model, sigma = graph(rng, kind, 7, sets=sets), None
    if answers == "tables":
        model = replace(model, answer=rng.random((7, 2, 2)))
    elif answers == "gaussian":
        sigma = [0.3, 0.5, 0.0, 0.0]
        model = replace(model, sigma=sigma)
    X, y = rows(rng, 40), rng.integers(0, 2, 40)
    reach, loss, score = np.zeros((40, 7)), np.zeros(40), np.zeros(40)
    for i, row in enumerate(X.tolist()):
        for share, total, nodes in reference.walks(model, row, int(y[i]), sigma):
            reach[i, nodes] += share
            loss[i] += share * np.exp(-total if y[i] else total)
            score[i] += share * total
    np.testing.assert_allclose(pb.inspection.reach(model, X, y), reach, rtol=1e-9, atol=1e-12)
    bound = pb.certificate(model, X, y)
    np.testing.assert_allclose(bound, loss.mean(), rtol=1e-9)
    if answers != "tables":
        bound = pb.decision_function(model, X, "expected")
        np.testing.assert_allclose(bound, score, rtol=1e-9, atol=1e-9)
        draws = pb.decision_function(model, X, "sample", rng=0, draws=4000)
        np.testing.assert_allclose(draws, score, atol=0.35)
    if answers == "certain":
        assert model.is_exact
        np.testing.assert_allclose(score, expected(model, X), atol=1e-12)


def test_sigma_is_read_of_what_is_known_only():
    rng = np.random.default_rng(3)
    model = replace(graph(rng, "tree", 9), sigma=np.full(D, np.nan))
    X = rows(rng, 30)
    noise = np.full(X.shape, 0.5)
    scores = pb.decision_function(model, X, "expected", sigma=noise)
    for i, row in enumerate(X.tolist()):
        score = sum(p * total for p, total, _ in reference.walks(model, row, 0, [0.5] * D))
        np.testing.assert_allclose(scores[i], score, rtol=1e-9, atol=1e-12)
    gaps = np.where(np.isnan(X), 7.0, noise)
    assert pb.decision_function(model, X, "expected", sigma=gaps).tobytes() == scores.tobytes()


@pytest.mark.parametrize("kind", ["chain", "tree", "graph"])
@pytest.mark.parametrize("sets", [False, True])
def test_one_row_explained(kind, sets):
    rng = np.random.default_rng([5, len(kind), sets])
    for _ in range(10):
        model = graph(rng, kind, 12, sets=sets)
        X = rows(rng, 6, share=0.5)
        for row in X:
            right = reference.score(model, row.tolist())
            explanation = pb.explain(model, row)
            assert explanation.score == right
            steps = list(reference.path(model, row.tolist()))
            assert [(test.node, test.answer) for test in explanation.tests] == steps
            np.testing.assert_allclose(
                explanation.contributions.sum() + explanation.bias, right, rtol=1e-12
            )
            by_column = np.zeros(D)
            for node, exit_ in steps:
                column = int(model.feature[node])
                column = column if column < D else int(model.inputs.column[column - D])
                by_column[column] += model.vote[node, exit_]
            np.testing.assert_allclose(explanation.contributions, by_column, rtol=1e-12)


@pytest.mark.parametrize("kind", ["chain", "tree", "graph"])
@pytest.mark.parametrize("n", [1, 8, 200, 1000])
def test_infinities_and_unknown_sides_are_refused(kind, n):
    rng = np.random.default_rng([n, len(kind)])
    model, X = graph(rng, kind, 10), np.asfortranarray(rows(rng, n))
    plain = replace(model, missing=None)
    X = np.nan_to_num(X)
    X[-1, 1] = np.nan
    with pytest.raises(ValueError, match=f"got nan in column 1, row {n - 1}.*impute missing"):
        pb.decision_function(plain, X)
    with pytest.raises(ValueError, match="got nan in column 1"):
        pb.prediction_cost(plain, X, "features")
    for value in (np.inf, -np.inf):
        X[n // 2, 2] = value
        for ask in (pb.decision_function, pb.prediction_cost, pb.inspection.reach):
            with pytest.raises(ValueError, match=rf"got -?inf in column 2, row {n // 2}"):
                ask(model, X)
    both = graph(rng, kind, 10, sets=True)
    with pytest.raises(ValueError, match=rf"got -inf in column 2, row {n // 2}"):
        pb.decision_function(both, X)


def test_several_votes():
    rng = np.random.default_rng(8)
    first, X = graph(rng, "chain", 10, sets=True), rows(rng, 50)
    votes = np.stack([first.vote, -first.vote], axis=-1)
    model = replace(first, vote=votes, bias=np.array([0.25, -0.25]))
    scores = pb.decision_function(model, X)
    assert scores[:, 0].tobytes() == expected(first, X).tobytes()
    assert pb.prediction_cost(model, X, "features").tolist() == (
        pb.prediction_cost(first, X, "features").tolist()
    )


@pytest.mark.parametrize("n_nodes", [1, 5])
def test_margins_and_certificate(n_nodes):
    rng = np.random.default_rng(n_nodes)
    model, X = graph(rng, "graph", n_nodes + 2, sets=True), rows(rng, 90)
    y, weight = rng.integers(0, 2, 90), rng.random(90)
    score = expected(model, X)
    sign = np.where(y, 1, -1)
    np.testing.assert_allclose(pb.inspection.margins(model, X, y), np.tanh(score * sign / 2))
    loss = np.average(np.exp(-score * sign), weights=weight)
    np.testing.assert_allclose(pb.certificate(model, X, y, sample_weight=weight), loss)


def test_importances_count_a_column_once():
    model = graph(np.random.default_rng(2), "chain", 30, sets=True)
    fall = -np.diff(model.record.certificate)
    column = np.where(model.feature < D, model.feature, 0)
    is_set = model.feature >= D
    column[is_set] = model.inputs.column[model.feature[is_set] - D]
    importances = pb.feature_importances(model)
    np.testing.assert_allclose(importances, np.bincount(column, fall, D) / fall.sum())
