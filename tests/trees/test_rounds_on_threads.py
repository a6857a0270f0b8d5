"""Rounds of boosting that several threads share: the same bits as those of one."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest
from round_cases import (
    as_copies,
    bundled_case,
    limits,
    pooled_case,
    restrained_case,
    special_case,
    steps_and_limits,
    weighed,
)
from special_problems import problem

import pboost as pb
from pboost import threads
from pboost.losses import LOSSES
from pboost.trees import tree_rounds as module
from pboost.trees.gradients import Steps
from pboost.trees.regularization import Restraints
from pboost.trees.tree_rounds import Rounds

#: What a tree is, whatever its numbers were while it grew.
OF_NODES = (
    "feature",
    "low",
    "high",
    "missing",
    "depth",
    "gradient",
    "curvature",
    "mean",
    "loss",
    "spread",
)


@pytest.fixture
def small_shares(monkeypatch):
    """Let threads share what a few rows are, and the machine seem to have eight."""
    monkeypatch.setattr(module, "SHARE_ROWS", 8)
    monkeypatch.setattr(threads, "MIN_CELLS", 1)
    monkeypatch.setattr(threads, "available_threads", lambda: 8)


def grown(case, workers):
    """Return the bits of three trees, of the decision values and the losses after each."""
    columns, y, loss, weight, listed, options = case
    held = Restraints(**{k: v for k, v in options.items() if k in Restraints.__slots__})
    step, limit = steps_and_limits(options)
    f = np.full(len(y), options["bias"])
    rounds = Rounds(columns, y, loss, weighed(weight), f, limit, step, held, workers)
    actual = []
    for t in range(3):
        rows = np.flatnonzero(weight > 0) if listed is None else listed[t]
        tree = rounds.grow(rows.astype(np.int32))
        if tree is not None:
            actual += [tree.nodes[name].tobytes() for name in OF_NODES]
            actual += [tree.children.tobytes(), tree.subset.tobytes(), tree.mass.tobytes()]
            actual.append((tree.nodes["stop"] - tree.nodes["start"]).tobytes())
        actual += [rounds.f.tobytes(), rounds.mean_loss]
    return actual


@pytest.mark.parametrize("make", [special_case, restrained_case, bundled_case, pooled_case])
@pytest.mark.parametrize("seed", range(0, 120, 40))
def test_rounds_do_not_depend_on_threads(small_shares, make, seed):
    for number in range(seed, seed + 40):
        case = make(number)
        if number % 4 == 1:
            case = as_copies(case, number)[0]
        expected = grown(case, None)
        for n_threads in (2, 4, 8):
            with threads.Workers(n_threads) as workers:
                assert grown(case, workers) == expected, f"case {number}, {n_threads} threads"


OPTIONS = {
    "plain": {},
    "independent": {"growth": "independent"},
    "symmetric": {"growth": "symmetric"},
    "in parts": {"max_depth": 8},
    "wide": {"histogram_precision": "wide"},
    "newton": {"leaf_update": "newton"},
    "exponential": {"loss": "exponential"},
    "hinge": {"loss": "hinge"},
    "leaves": {"max_leaf_nodes": 20, "max_depth": None},
    "drawn": {"max_features_per_tree": 5, "max_features": 3, "rng": 0},
    "bag": {"subsample": 0.5, "rng": 0},
    "validation": {"validation": 0.3, "rng": 0},
    "softmax": {"loss": "softmax"},
    "softmax of five": {"loss": "softmax"},
    "interactions": {"interaction_cst": [[0, 1, 2], [2, 3]]},
    "monotone": {"monotonic_cst": {0: 1, 4: -1}},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_models_do_not_depend_on_threads(small_shares, monkeypatch, name):
    """Where shares are of several blocks, too, and where growth is cut into many calls."""
    monkeypatch.setattr(module, "SHARE_ROWS", 512)
    if name == "in parts":
        monkeypatch.setattr(threads, "CELLS_PER_CALL", 5000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 11))
    y = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=len(X)) > 0
    if name == "softmax of five":
        y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2], [-1.5, -0.5, 0.5, 1.5])
    options = {"loss": "log_loss", "n_estimators": 6, "max_depth": 6} | OPTIONS[name]
    scores = []
    for n_threads in (1, 2, 4, 8):
        model = pb.fit_gradient_boosting(X, y, n_threads=n_threads, **options)
        scores.append(
            [
                pb.decision_function(model, X).tobytes(),
                model.training_loss.tobytes(),
                *(tree.value.tobytes() for tree in model.trees),
            ]
        )
    assert scores[1:] == scores[:1] * 3


def test_one_large_node_after_another_is_shared(small_shares):
    """Trees whose splits leave a few rows aside are chains, and most rows lie in one leaf."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    y = 5.0 ** np.minimum(X[:, 0] * 3, 9) + rng.normal(size=len(X))
    scores = [
        pb.decision_function(
            pb.fit_gradient_boosting(X, y, n_estimators=9, max_depth=9, n_threads=n), X
        )
        for n in (1, 2, 8)
    ]
    assert scores[0].tobytes() == scores[1].tobytes() == scores[2].tobytes()


def test_slots_of_wide_tables_are_those_of_one_thread(small_shares, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 60))
    y = X[:, 0] + X[:, 1] * X[:, 2] > 0
    fit = [pb.fit_gradient_boosting(X, y, n_estimators=4, n_threads=n) for n in (1, 4)]
    monkeypatch.setattr(module, "SLOT_BYTES", 0)
    fit += [pb.fit_gradient_boosting(X, y, n_estimators=4, n_threads=n) for n in (1, 4)]
    assert len({pb.decision_function(model, X).tobytes() for model in fit}) == 1


def test_helpers_really_help():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 20))
    y = X[:, 0] * X[:, 1] + rng.normal(size=len(X)) > 0
    columns = problem(X, y.astype(int), None, {}, 2, 255)
    step = Steps(0.1, 4.0, True, 0.0, "auto")
    with threads.Workers(2) as workers:
        rounds = Rounds(
            columns,
            2.0 * y - 1.0,
            LOSSES["log_loss"],
            weighed(np.ones(len(y))),
            np.zeros(len(y)),
            limits(6),
            step,
            workers=workers,
        )
        until = time.monotonic() + 60  # another process may have the second processor
        while workers.helped < 20 and time.monotonic() < until:
            rounds.grow(np.arange(len(y)))
        assert workers.helped >= 20


def test_threads_that_change_places_often(small_shares):
    """The interpreter turns to another thread as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        case = special_case(7)
        expected = grown(case, None)
        for n_threads in range(2, 9):
            for _ in range(10):
                with threads.Workers(n_threads) as workers:
                    assert grown(case, workers) == expected
    finally:
        sys.setswitchinterval(before)
