"""Many rows walk through a graph without joins as a tree: the same bits, and no other trace."""

import copy
import dataclasses
import pickle
import threading

import numpy as np
import pytest
from reference.problems import random_matrix, random_topology

import pboost as pb
from pboost._core import tree_walk
from pboost.models.evaluate import kernel_walk
from pboost.models.schema import TrainingRecord

MANY = kernel_walk.MANY_IN_TREES


def made(X, next_, rng, bias=None, vote=None):
    """Return a graph whose thresholds are values that occur in X."""
    n_nodes, (n, d) = len(next_), X.shape
    feature = rng.integers(0, d, n_nodes)
    record = TrainingRecord(np.ones(n_nodes + 1), np.ones(n_nodes + 1), "made up")
    return pb.models.DecisionGraph(
        feature=feature,
        threshold=X[rng.integers(0, n, n_nodes), feature],
        next=next_,
        vote=rng.normal(size=(n_nodes, 2)) if vote is None else vote,
        classes=np.array([-1, 1]),
        n_features=d,
        feature_names=None,
        bias=float(rng.normal()) if bias is None else bias,
        settings={},
        record=record,
    )


def path(n_nodes):
    """Return the topology of a tree of which each node has one child, now below and now above."""
    next_ = np.full((n_nodes, 2), -1)
    next_[np.arange(n_nodes - 1), np.arange(n_nodes - 1) % 2] = np.arange(1, n_nodes)
    return next_


def tree_of(model):
    """Return the tree as which a graph is laid out; () where it cannot be, None if not yet."""
    return (model.memo["laid_out"] or ()) if "laid_out" in model.memo else None


def bits(model, X):
    """Return the decision values as bytes, and those of the walk from node to node."""
    walked, _ = kernel_walk.walk_rows(model, X, True)
    return pb.decision_function(model, X).tobytes(), walked.tobytes()


@pytest.mark.parametrize("n_nodes", [2, 3, 7, 31, 200, 1000])
@pytest.mark.parametrize("n", [700, 704, 1003])
def test_random_trees_have_the_bits_of_the_graph(n_nodes, n):
    rng = np.random.default_rng([51, n_nodes, n])
    X = random_matrix(rng, n, 5)
    model = made(X, random_topology(rng, n_nodes, 0.0), rng)
    laid_out, walked = bits(model, X)
    assert tree_of(model) or model.is_chain
    assert laid_out == walked
    parts = [pb.decision_function(model, X[i : i + 9]) for i in range(0, n, 9)]
    assert np.concatenate(parts).tobytes() == walked
    *_, last = pb.staged_decision_function(model, X)
    np.testing.assert_allclose(last, np.frombuffer(walked), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_nodes", [12, 13, 14, 40, 700])
def test_deep_trees(n_nodes):
    rng = np.random.default_rng([52, n_nodes])
    X = random_matrix(rng, 500, 3)
    model = made(X, path(n_nodes), rng)
    laid_out, walked = bits(model, X)
    assert tree_of(model)[2].tolist() == [n_nodes]
    assert laid_out == walked


@pytest.mark.parametrize("form", ["C", "F", "reversed rows", "reversed columns", "strided"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layouts_of_the_rows(form, dtype):
    rng = np.random.default_rng(53)
    X = rng.normal(size=(700, 4)).astype(dtype)
    model = made(X.astype(np.float64), random_topology(rng, 100, 0.0), rng)
    forms = {
        "C": X,
        "F": np.asfortranarray(X),
        "reversed rows": X[::-1].copy()[::-1],
        "reversed columns": X[:, ::-1].copy()[:, ::-1],
        "strided": np.repeat(X, 3, axis=1)[:, ::3],
    }
    assert bits(model, forms[form])[0] == bits(model, X)[1]
    assert tree_of(model)


@pytest.mark.parametrize("bias", [0.0, -0.0, 5e-324, 1e300])
def test_zeros_and_numbers_that_cancel(bias):
    rng = np.random.default_rng(54)
    X = rng.normal(size=(700, 2))
    sizes = np.array([0.0, -0.0, 5e-324, 1e-17, 1.0, -1e300])
    model = made(X, random_topology(rng, 60, 0.0), rng, bias, rng.choice(sizes, (60, 2)))
    assert len(set(bits(model, X))) == 1
    model = made(X, path(5), rng, bias, np.full((5, 2), -0.0))
    assert len(set(bits(model, X))) == 1


@pytest.mark.parametrize("n_threads", [1, 3])
def test_threads_do_not_matter(n_threads, monkeypatch):
    monkeypatch.setattr(pb.threads, "MIN_CELLS", 1)
    monkeypatch.setattr(pb.threads, "available_threads", lambda: n_threads)
    rng = np.random.default_rng(55)
    X = rng.normal(size=(1000, 3))
    assert len(set(bits(made(X, random_topology(rng, 80, 0.0), rng), X))) == 1


def test_fitted_trees():
    rng = np.random.default_rng(56)
    X = rng.normal(size=(600, 4)).round(1)
    y = X[:, 0] + X[:, 1] + rng.normal(size=600) > 0
    for options in ({}, {"observation": pb.observation.flip(0.1)}, {"learning_rate": 0.3}):
        model = pb.fit_boosted_tree(X, y, max_nodes=40, **options)
        assert len(set(bits(model, X))) == 1
        assert tree_of(model)


def test_what_is_not_laid_out():
    rng = np.random.default_rng(57)
    X = rng.normal(size=(MANY, 3))
    y = X[:, 0] * X[:, 1] > 0
    few = made(X, random_topology(rng, 9, 0.0), rng)
    for rows in (X[:0], X[:1], X[: MANY - 1]):
        pb.decision_function(few, rows)
    large = made(X, random_topology(rng, kernel_walk.NODES_PER_ROW * MANY + 1, 0.0), rng)
    chain = pb.fit_adaboost(X, y, n_estimators=5)
    affine = pb.fit_boosted_tree(X, y, max_nodes=5, weak_learner=pb.weak.affine())
    joined = made(X, random_topology(rng, 60, 0.5), rng)
    for model in (large, chain, affine, joined):
        assert len(set(bits(model, X))) == 1
    assert all(tree_of(model) is None for model in (few, large, chain, affine))
    assert tree_of(joined) == ()


@pytest.mark.parametrize("column", [0, 2])
def test_values_that_are_not_finite_are_refused(column):
    rng = np.random.default_rng(58)
    X = rng.normal(size=(700, 3))
    model = made(X, random_topology(rng, 30, 0.0), rng)
    X[650, column] = np.nan
    with pytest.raises(ValueError, match=f"nan in column {column}, row 650"):
        pb.decision_function(model, X)


def laid_out_model():
    rng = np.random.default_rng(59)
    X = rng.normal(size=(700, 3))
    return X, made(X, random_topology(rng, 300, 0.0), rng)


def test_the_layout_is_not_pickled_and_not_copied():
    X, model = laid_out_model()
    before = pickle.dumps(model)
    score = pb.decision_function(model, X)
    assert tree_of(model)
    assert pickle.dumps(model) == before
    for other in (pickle.loads(before), copy.copy(model), copy.deepcopy(model)):
        assert tree_of(other) is None
        assert pb.decision_function(other, X).tobytes() == score.tobytes()
    other = dataclasses.replace(model, bias=model.bias + 1.0)
    assert len(set(bits(other, X))) == 1


def test_the_layout_is_not_saved(tmp_path):
    X, model = laid_out_model()
    pb.save(model, tmp_path / "before.npz")
    pb.decision_function(model, X)
    assert tree_of(model)
    pb.save(model, tmp_path / "after.npz")
    assert (tmp_path / "before.npz").read_bytes() == (tmp_path / "after.npz").read_bytes()
    assert tree_of(pb.load(tmp_path / "after.npz")) is None
    assert "laid_out" not in repr(model)


def test_threads_may_ask_at_once(monkeypatch):
    X, model = laid_out_model()
    expected = kernel_walk.walk_rows(model, X, True)[0].tobytes()
    lay_out, both, actual = tree_walk.lay_out, threading.Barrier(2), []

    def at_once(*arguments):
        both.wait(10)
        depth = lay_out(*arguments)
        both.wait(10)
        return depth

    monkeypatch.setattr(tree_walk, "lay_out", at_once)
    ask = lambda: actual.append(pb.decision_function(model, X).tobytes())  # noqa: E731
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert actual == [expected, expected]
    assert pb.decision_function(model, X).tobytes() == expected  # without another layout


def test_arrays_of_different_sizes_are_refused():
    _, model = laid_out_model()
    n = model.n_nodes
    arrays = model.feature, model.threshold, model.next, model.vote, model.bias
    for work, size in ((n - 1, 2 * n + 1), (n, 2 * n)):
        with pytest.raises(ValueError, match=r"^lay_out: "):
            tree_walk.lay_out(
                *arrays,
                np.empty((3, work), np.int32),
                np.empty(16 * size, np.uint8),
                np.empty(size),
            )
