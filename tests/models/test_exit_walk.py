"""Compiled walks that rows leave are those of whole trajectories, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb
from pboost.models.early_exit_model import leave, trajectory
from pboost.models.evaluate.exits import Exits

RNG = np.random.default_rng(11)
X = RNG.normal(size=(700, 6)).round(1)
SIGNAL = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * RNG.normal(size=700)
Y, ZONE = SIGNAL > 0, np.digitize(SIGNAL, [-0.5, 0.5])
HOLES = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
LEVELS = HOLES.copy()
LEVELS[:, 5] = RNG.integers(0, 5, 700)
SHAPE = {"shape": (6, 9), "join": "all"}
MODELS = {
    "chain": lambda X, **o: pb.fit_adaboost(X, Y, n_estimators=30, **o),
    "chain of trees": lambda X, **o: pb.fit_matryoshka(X, Y, **SHAPE, **o),
    "chain, votes": lambda X, **o: pb.fit_matryoshka(X, ZONE, **SHAPE, **o),
    "stagewise": lambda X, **o: pb.fit_gradient_boosting(
        X, Y, loss="log_loss", n_estimators=20, **o
    ),
    "deep": lambda X, **o: pb.fit_gradient_boosting(
        X, Y, loss="hinge", n_estimators=9, max_depth=14, **o
    ),
    "softmax": lambda X, **o: pb.fit_gradient_boosting(
        X, ZONE, loss="softmax", n_estimators=8, **o
    ),
    "vectors": lambda X, **o: pb.fit_gradient_boosting(
        X, ZONE, loss="softmax", n_estimators=8, multi_strategy="multi_output_tree", **o
    ),
    "forest": lambda X, **o: pb.fit_random_forest(X, Y, n_estimators=12, rng=0, **o),
    "forest of three": lambda X, **o: pb.fit_random_forest(X, ZONE, n_estimators=12, rng=0, **o),
}
TABLES = {"plain": (X, {}), "holes": (HOLES, {}), "levels": (LEVELS, {"categorical_features": [5]})}


def drawn_exits(model, seed):
    """Return exits at some of the joints, of a size at which rows leave everywhere."""
    rng = np.random.default_rng(seed)
    shape = model.n_stages, model.n_votes
    size = np.std(trajectory(model, X).score[-1]) * rng.uniform(0.2, 2)
    high = np.where(rng.random((shape[0], 1)) < 0.4, np.inf, size * rng.uniform(0.2, 1, shape))
    low = -high * rng.uniform(0.5, 1, shape) if shape[1] == 1 else -rng.uniform(0, size / 9, shape)
    return Exits(high, low)


def agree(model, rows, exits):
    compiled = model.node_exits(exits)
    assert compiled is not None
    actual, twin = leave(model, rows, exits, compiled), leave(model, rows, exits)
    np.testing.assert_array_equal(actual.joint, twin.joint)
    np.testing.assert_array_equal(actual.cost, twin.cost)
    assert (actual.score + 0.0).tobytes() == (twin.score + 0.0).tobytes()
    return actual


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("kind", MODELS)
def test_walks_are_those_of_trajectories(kind, table):
    rows, options = TABLES[table]
    model = MODELS[kind](rows, **options)
    joints = set()
    for seed in range(4):
        exits = drawn_exits(model, seed)
        actual = agree(model, rows, exits)
        joints.update(actual.joint.tolist())
        first = [leave(model, rows[i : i + 1], exits, model.node_exits(exits)) for i in range(9)]
        for i in range(9):
            assert first[i].score.tobytes() == actual.score[i : i + 1].tobytes()
            assert (first[i].joint[0], first[i].cost[0]) == (actual.joint[i], actual.cost[i])
        if table == "plain":
            agree(model, rows.astype(np.float32), exits)
            agree(model, np.asfortranarray(rows)[::3], exits)
            agree(model, rows[:0], exits)
    assert len(joints) > 2


@pytest.mark.parametrize("kind", ["softmax", "forest of three"])
def test_rows_whose_lead_is_just_enough(kind):
    model = MODELS[kind](X)
    score = trajectory(model, X).score[:-1]
    two = np.sort(score, axis=2)
    lead = two[..., 2] - two[..., 1]  # after 0, 1, ... rounds of each row
    left = 0
    for row in range(0, 700, 28):
        for above in (False, True):
            high = np.nextafter(lead[:, row], np.inf) if above else lead[:, row]
            high = np.where(np.arange(len(high)) == len(high) - 2, high, np.inf)
            high = np.repeat(high[:, None], 3, axis=1)
            actual = agree(model, X, Exits(high, np.zeros_like(high)))
            left += actual.joint[row] < len(high)
    assert left == 25


@pytest.mark.parametrize("weak", [pb.weak.linear(), pb.weak.affine(seed=0), pb.weak.separator()])
@pytest.mark.parametrize("rows", [X, HOLES], ids=["plain", "holes"])
def test_graphs_of_sums(weak, rows):
    model = pb.fit_adaboost(rows, Y, n_estimators=6, weak_learner=weak)
    agree(model, rows, drawn_exits(model, 0))


@pytest.mark.parametrize("kind", ["chain", "stagewise"])
def test_infinity_is_refused_and_named(kind):
    model = MODELS[kind](X)
    rows = X.copy()
    rows[300, 3] = np.inf
    exits = drawn_exits(model, 0)
    with pytest.raises(ValueError, match="column 3"):
        leave(model, rows, exits, model.node_exits(exits))
