"""Rows that leave where their labels cannot change any more have the labels of the whole model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from oracle_learners import train_stump
from shallow import fit_shallow

import pboost as pb
from pboost.models.early_exit_model import trajectory
from pboost.models.evaluate.exits import joints_left, proven_exits, rest_of
from pboost.models.graph_arrays import OUT, rest_of_nodes
from pboost.models.schema import TrainingRecord

RNG = np.random.default_rng(21)
X = RNG.normal(size=(400, 4)).round(1)
SIGNAL = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * RNG.normal(size=400)
Y, ZONE = SIGNAL > 0, np.digitize(SIGNAL, [-0.5, 0.5])
ROWS = RNG.normal(scale=1.5, size=(3000, 4)).round(1)
MODELS = {
    "chain": lambda: pb.fit_adaboost(X, Y, n_estimators=40),
    "chain of trees": lambda: pb.fit_matryoshka(X, Y, shape=(6, 12), join="all"),
    "joined by sign": lambda: pb.fit_matryoshka(X, Y, shape=(4, 4, 3)),
    "tree": lambda: pb.fit_boosted_tree(X, Y, max_nodes=30),
    "chain, votes": lambda: pb.fit_matryoshka(X, ZONE, shape=(6, 12), join="all"),
    "oblique": lambda: pb.fit_adaboost(X, Y, n_estimators=9, weak_learner=pb.weak.linear()),
    "functions": lambda: pb.fit_adaboost(
        X, Y, n_estimators=9, weak_learner=pb.weak.oracle(train_stump)
    ),
    "stagewise": lambda: fit_shallow(X, Y, loss="log_loss", n_estimators=30),
    "softmax": lambda: fit_shallow(X, ZONE, loss="softmax", n_estimators=15),
    "vectors": lambda: fit_shallow(
        X, ZONE, loss="softmax", n_estimators=15, multi_strategy="multi_output_tree"
    ),
    "forest": lambda: pb.fit_random_forest(X, Y, n_estimators=20, rng=0),
    "forest of three": lambda: pb.fit_random_forest(X, ZONE, n_estimators=20, rng=0),
    "votes": lambda: pb.fit_samme(
        X, ZONE, base_learner=partial(pb.fit_cart, max_depth=2), n_estimators=12
    ),
    "bags": lambda: pb.fit_bagging(pb.fit_cart, X, Y, n_estimators=7, rng=0, max_depth=3),
    "bags of shares": lambda: pb.fit_bagging(
        pb.fit_cart, X, ZONE, n_estimators=7, rng=0, max_depth=3, voting="soft"
    ),
    "probit trees": lambda: pb.fit_sbpmt(
        X, Y, n_estimators=4, n_boosting_rounds=2, max_iter=5, rng=0
    ),
    "probit votes": lambda: pb.fit_sbpmt(
        X, ZONE, n_estimators=4, n_boosting_rounds=2, max_iter=5, rng=0, voting="hard"
    ),
    "cart": lambda: pb.fit_cart(X, Y),
    "rest": lambda: pb.fit_one_vs_rest(pb.fit_adaboost, X, ZONE, n_estimators=3),
}
NO_JOINTS = ("cart", "rest")


def whole_labels(model, rows):
    """Return the labels of decision values, of shares where there are none."""
    try:
        return model.labels_of(pb.decision_function(model, rows))
    except TypeError:
        return model.classes[pb.predict_proba(model, rows).argmax(axis=1)]


@pytest.mark.parametrize("kind", MODELS)
def test_labels_are_those_of_the_whole_model(kind):
    model = MODELS[kind]()
    left = model.leave_proven(ROWS)
    labels = whole_labels(model, ROWS)
    np.testing.assert_array_equal(model.labels_of(left.score), labels)
    np.testing.assert_array_equal(pb.predict(model, ROWS), labels)
    single = ROWS.astype(np.float32)
    np.testing.assert_array_equal(pb.predict(model, single), whole_labels(model, single))
    np.testing.assert_array_equal(pb.predict(model, ROWS[:1]), labels[:1])
    cost = pb.prediction_cost(model, ROWS, exit="proven")
    full_cost = pb.prediction_cost(model, ROWS, exit="none")
    np.testing.assert_array_equal(cost, left.cost)
    np.testing.assert_array_equal(full_cost, pb.prediction_cost(model, ROWS))
    assert (cost <= full_cost).all()
    assert (cost.mean() < 0.95 * full_cost.mean()) == (kind not in NO_JOINTS)


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind not in NO_JOINTS])
def test_the_compiled_walk_leaves_no_later_than_at_the_joints(kind):
    model = MODELS[kind]()
    score, cost = trajectory(model, ROWS)
    joint = joints_left(score, model.proven())
    left = model.leave_proven(ROWS)
    assert (left.cost <= cost[joint, np.arange(len(ROWS))]).all()
    if kind in ("stagewise", "softmax", "forest", "votes", "chain"):
        np.testing.assert_array_equal(left.joint, joint)


def random_graph(rng, n, n_votes, votes, is_chain):
    """Return a graph whose votes are drawn from `votes`, many of them equal."""
    next_ = np.empty((n, 2), dtype=np.int32)
    for node in range(n):
        ahead = [node + 1] if is_chain else range(node + 1, min(n, node + 4) + 1)
        next_[node] = rng.choice(ahead, size=2)
        next_[node, rng.integers(2)] = node + 1
    next_[next_ >= n] = OUT
    shape = (n, 2) if n_votes == 1 else (n, 2, n_votes)
    return pb.models.DecisionGraph(
        rng.integers(0, 4, n).astype(np.int32),
        rng.normal(size=n).round(1),
        next_,
        rng.choice(votes, size=shape),
        np.arange(max(2, n_votes)),
        4,
        None,
        float(rng.choice(votes)) if n_votes == 1 else rng.choice(votes, size=n_votes),
        {"builder": "random"},
        TrainingRecord(np.ones(n + 1), np.zeros(n + 1), "drawn"),
        missing=np.zeros(n),
    )


TENTHS = np.arange(-5, 6) / 10
VOTES = {
    "tenths": TENTHS,
    "ties": np.array([-1.0, 0.0, 1.0]),
    "sizes": np.array([0.1, -0.1, 1e8, -1e8, 3e-9]),
    "tiny": np.array([5e-324, -5e-324, 1e-310, 0.0]),
    "huge": TENTHS * 1e305,
}


@pytest.mark.parametrize("votes", VOTES)
@pytest.mark.parametrize("n_votes", [1, 3])
@pytest.mark.parametrize("is_chain", [True, False])
def test_labels_of_votes_that_tie_or_round(votes, n_votes, is_chain):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        model = random_graph(rng, int(rng.integers(1, 40)), n_votes, VOTES[votes], is_chain)
        labels = model.labels_of(model.leave_proven(ROWS[:800]).score)
        score = pb.decision_function(model, ROWS[:800])
        np.testing.assert_array_equal(labels, model.labels_of(score))
        np.testing.assert_array_equal(labels, pb.predict(model, ROWS[:800]))


@pytest.mark.parametrize("kind", ["stagewise", "softmax", "forest", "votes"])
def test_labels_of_leaves_that_tie_or_round(kind):
    model = MODELS[kind]()
    rng = np.random.default_rng(0)
    for values in (TENTHS, VOTES["ties"]):
        if kind == "votes":
            changed = replace(model, alpha=rng.choice(np.abs(values), size=len(model.alpha)))
        elif kind == "forest":
            share = rng.choice(np.arange(11) / 10, size=len(model.feature))
            changed = replace(model, value=np.column_stack([1 - share, share]))
        else:
            leaves = np.where(model.trees.feature < 0, 1.0, 0.0)
            value = leaves * rng.choice(values, size=len(leaves))
            bias = 0.0 if kind == "stagewise" else np.zeros(3)
            changed = replace(model, trees=replace(model.trees, value=value), bias=bias)
        labels = changed.labels_of(changed.leave_proven(ROWS).score)
        np.testing.assert_array_equal(labels, whole_labels(changed, ROWS))
        np.testing.assert_array_equal(pb.predict(changed, ROWS), labels)


@pytest.mark.parametrize("seed", range(10))
def test_the_rest_is_that_of_all_paths(seed):
    rng = np.random.default_rng(seed)
    model = random_graph(rng, 8, 1 + 2 * (seed % 2), TENTHS, False)
    vote = model.vote.reshape(8, 2, -1)

    def sums(node):
        if node == OUT:
            return [np.zeros(vote.shape[2])]
        return [vote[node, k] + rest for k in range(2) for rest in sums(int(model.next[node, k]))]

    rest = rest_of_nodes(model)
    for node in range(8):
        every = np.array(sums(node))
        np.testing.assert_allclose(rest.low[node], every.min(axis=0), atol=1e-15)
        np.testing.assert_allclose(rest.high[node], every.max(axis=0), atol=1e-15)


def test_sums_of_multiples_of_a_tenth():
    """Each sum has another rounding, and many are 0 but for that."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        votes = rng.choice(TENTHS, size=(12, 2))
        side = rng.integers(0, 2, size=(12, 2000))
        terms = np.take_along_axis(votes, side, axis=1)
        score = np.add.accumulate(np.vstack([np.zeros((1, 2000)), terms]))
        rest = rest_of(votes.min(axis=1)[:, None], votes.max(axis=1)[:, None])
        actual = joints_left(score, proven_exits(rest))
        end, every = score[-1] > 0, np.arange(2000)
        np.testing.assert_array_equal(score[actual, every] > 0, end)
        assert (actual < 12).any()


def test_what_is_refused():
    numbers = fit_shallow(X, X[:, 0], n_estimators=3)
    with pytest.raises(NotImplementedError, match="a prediction is final only at the last stage"):
        pb.prediction_cost(numbers, X, exit="proven")
    assert pb.prediction_cost(numbers, X, exit="none").max() <= 9
    model = MODELS["chain"]()
    with pytest.raises(NotImplementedError, match='use exit="none" for other units'):
        pb.prediction_cost(model, X, unit="features", exit="proven")
    with pytest.raises(ValueError, match="exit: expected one of"):
        pb.prediction_cost(model, X, exit="sure")


@pytest.mark.filterwarnings("ignore:X_cal. .* rows equal rows:UserWarning")
def test_exits_of_a_calibrated_model():
    full = MODELS["stagewise"]()
    model = pb.early_exit(full, X, mean_comparisons=20)
    custom_cost = pb.prediction_cost(model, ROWS)
    assert custom_cost.mean() < pb.prediction_cost(model, ROWS, exit="proven").mean() < 90
    for how in ("none", "proven"):
        np.testing.assert_array_equal(
            pb.prediction_cost(model, ROWS, exit=how), pb.prediction_cost(full, ROWS, exit=how)
        )


@pytest.mark.parametrize(
    "fit",
    [
        pb.fit_adaboost,
        pb.fit_boosted_tree,
        pb.fit_matryoshka,
        pb.fit_oblique_tree,
        pb.fit_real_adaboost,
        partial(pb.fit_samme, base_learner=pb.fit_cart),
    ],
)
def test_models_without_nodes_cost_nothing(fit):
    model = fit(np.zeros((6, 2)), [0, 1] * 3)
    assert model.n_nodes == 0
    for exit_ in ("none", "proven"):
        assert pb.prediction_cost(model, X[:3, :2], exit=exit_).tolist() == [0.0] * 3
