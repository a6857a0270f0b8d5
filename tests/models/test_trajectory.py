"""What models say and have compared at their joints."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import pboost as pb
from pboost.models.early_exit_model import trajectory
from pboost.models.graph_arrays import OUT, joints_of

RNG = np.random.default_rng(3)
X = RNG.normal(size=(150, 4))
Y = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * RNG.normal(size=150) > 0
ZONE = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])
SUMS = {
    "chain": (20, lambda: pb.fit_adaboost(X, Y, n_estimators=20)),
    "chain of trees": (6, lambda: pb.fit_matryoshka(X, Y, shape=(5, 6), join="all")),
    "three deep": (3, lambda: pb.fit_matryoshka(X, Y, shape=(2, 3, 3), join="all")),
    "joined by sign": (1, lambda: pb.fit_matryoshka(X, Y, shape=(2, 3))),
    "tree": (1, lambda: pb.fit_boosted_tree(X, Y, max_nodes=8)),
    "chain, votes": (5, lambda: pb.fit_matryoshka(X, ZONE, shape=(6, 5), join="all")),
    "sums of columns": (
        8,
        lambda: pb.fit_adaboost(X, Y, n_estimators=8, weak_learner=pb.weak.linear()),
    ),
    "stagewise": (7, lambda: pb.fit_gradient_boosting(X, Y, loss="log_loss", n_estimators=7)),
    "numbers": (7, lambda: pb.fit_gradient_boosting(X, X[:, 0] ** 2, n_estimators=7)),
    "softmax": (4, lambda: pb.fit_gradient_boosting(X, ZONE, loss="softmax", n_estimators=4)),
    "vectors": (
        4,
        lambda: pb.fit_gradient_boosting(
            X, ZONE, loss="softmax", n_estimators=4, multi_strategy="multi_output_tree"
        ),
    ),
    "votes": (
        3,
        lambda: pb.fit_samme(
            X, ZONE, base_learner=partial(pb.fit_cart, max_depth=2), n_estimators=3
        ),
    ),
}
MEANS = {
    "forest": (5, lambda: pb.fit_random_forest(X, Y, n_estimators=5, rng=0)),
    "forest of three": (5, lambda: pb.fit_random_forest(X, ZONE, n_estimators=5, rng=0)),
    "forest of numbers": (
        5,
        lambda: pb.fit_random_forest(X, X[:, 0], n_estimators=5, rng=0, task="regression"),
    ),
    "bags": (3, lambda: pb.fit_bagging(pb.fit_cart, X, Y, n_estimators=3, rng=0, max_depth=3)),
    "bags of numbers": (
        3,
        lambda: pb.fit_bagging(
            pb.fit_cart, X, X[:, 0], n_estimators=3, rng=0, task="regression", max_depth=3
        ),
    ),
    "probit trees": (
        3,
        lambda: pb.fit_sbpmt(X, Y, n_estimators=3, n_boosting_rounds=2, max_iter=5, rng=0),
    ),
    "of three": (
        2,
        lambda: pb.fit_sbpmt(X, ZONE, n_estimators=2, n_boosting_rounds=2, max_iter=5, rng=0),
    ),
}
OTHERS = {
    "cart": (1, lambda: pb.fit_cart(X, ZONE, max_depth=2)),
    "probit": (1, lambda: pb.fit_probitboost(X, Y, max_iter=5)),
    "rest": (1, lambda: pb.fit_one_vs_rest(pb.fit_adaboost, X, ZONE, n_estimators=3)),
    "linear": (
        1,
        lambda: pb.fit_real_adaboost(X, Y, n_estimators=4, weak_learner=pb.weak.feature()),
    ),
}
EVERY = SUMS | MEANS | OTHERS


def final(model, rows):
    """Return decision values, or shares where there are none."""
    try:
        return pb.decision_function(model, rows)
    except TypeError:
        return pb.predict_proba(model, rows)


@pytest.mark.parametrize("kind", EVERY)
def test_the_last_state_is_the_decision_value(kind):
    joints, fit = EVERY[kind]
    model = fit()
    score, cost = trajectory(model, X)
    full = final(model, X)
    assert score.shape == (joints + 1, *full.shape)
    assert cost.shape == (joints + 1, len(X))
    if kind in SUMS or kind.startswith("forest"):
        assert score[-1].tobytes() == full.tobytes()
    else:
        np.testing.assert_allclose(score[-1], full, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(cost[-1], pb.prediction_cost(model, X))
    assert (np.diff(cost, axis=0) > 0).all()
    assert not cost[0].any()


@pytest.mark.parametrize("kind", ["chain", "stagewise", "softmax", "vectors", "votes"])
def test_states_are_those_of_the_stages(kind):
    model = EVERY[kind][1]()
    stages = list(pb.staged_decision_function(model, X))
    score = trajectory(model, X).score
    assert score[1:].tobytes() == np.array(stages).tobytes()
    np.testing.assert_array_equal(score[0], np.broadcast_to(model.bias, score[0].shape))


@pytest.mark.parametrize("kind", ["chain of trees", "three deep", "chain, votes"])
def test_states_of_graphs_are_those_of_their_first_nodes(kind):
    model = EVERY[kind][1]()
    score, cost = trajectory(model, X)
    for k, joint in enumerate(joints_of(model.next).tolist(), start=1):
        first = pb.models.truncate(model, joint)
        assert score[k].tobytes() == pb.decision_function(first, X).tobytes()
        np.testing.assert_array_equal(cost[k], pb.prediction_cost(first, X))


@pytest.mark.parametrize("kind", ["forest", "forest of three", "forest of numbers"])
def test_states_of_forests_are_those_of_their_first_trees(kind):
    model = EVERY[kind][1]()
    score, cost = trajectory(model, X)
    assert not score[0].any()
    for k in range(1, 6):
        assert score[k].tobytes() == final(model[:k], X).tobytes()
        np.testing.assert_array_equal(cost[k], pb.prediction_cost(model[:k], X))


def test_of_no_rows_and_of_no_nodes():
    model = SUMS["chain"][1]()
    assert trajectory(model, X[:0]).score.shape == (21, 0)
    empty = pb.fit_adaboost(np.ones((4, 1)), [0, 1, 1, 1], n_estimators=3)
    score, cost = trajectory(empty, np.ones((2, 1)))
    np.testing.assert_array_equal(score[1], pb.decision_function(empty, np.ones((2, 1))))
    assert not cost.any()


def paths(next_, node=0):
    """Yield the nodes of every path from a node on."""
    if node == OUT:
        yield ()
        return
    for to in set(next_[node].tolist()):
        yield from ((node, *rest) for rest in paths(next_, to))


@pytest.mark.parametrize("seed", range(30))
def test_joints_are_on_every_path(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    next_ = np.empty((n, 2), dtype=np.int32)
    for node in range(n):
        ahead = [*range(node + 1, min(n, node + 3)), *([OUT] if rng.random() < 0.3 else [])]
        next_[node] = rng.choice(ahead or [OUT], size=2)
    on_all = set.intersection(*(set(path) for path in paths(next_)))
    reached = set.union(*(set(path) for path in paths(next_)))
    if reached == set(range(n)):
        assert joints_of(next_).tolist() == sorted(on_all - {0})
    assert all(a < b for a, b in pairwise(joints_of(next_).tolist()))
