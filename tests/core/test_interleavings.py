"""Threads that fit and predict at once, on models that they share, find what one thread finds.

    PBOOST_INTERLEAVINGS=10000 python -m pytest tests/core/test_interleavings.py

runs so many: in each, three threads do random work in an order that chance decides, on models
that no one has asked before, so that what models keep for later is made by several at once.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

import pboost as pb
from pboost import threads

N = int(os.environ.get("PBOOST_INTERLEAVINGS", "60"))
THREADS, STEPS, MODELS = 3, 4, 3
RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(130, 4)), 1)
X[RNG.random(130) < 0.1, 0] = np.nan
X[:, 3] = RNG.integers(0, 5, 130)
SCORE = np.nan_to_num(X[:, 0]) * X[:, 1] + X[:, 2]
TWO, THREE = SCORE > 0, np.digitize(SCORE, [-0.5, 0.5])
LEVELS = {"categorical_features": [3]}
ADATREE = pb.observation.adatree2()
FITS = {
    "chain": partial(pb.fit_adaboost, X, TWO, n_estimators=6, **LEVELS),
    "bins": partial(
        pb.fit_adaboost, X, TWO, n_estimators=4, weak_learner=pb.weak.stump(search="binned")
    ),
    "joins": partial(pb.fit_matryoshka, X, TWO, shape=(3, 3), join="all", **LEVELS),
    "soft tree": partial(pb.fit_boosted_tree, X[:, 1:], TWO, max_nodes=5, observation=ADATREE),
    "votes": partial(pb.fit_boosted_tree, X, THREE, max_nodes=4, **LEVELS),
    "affine": partial(
        pb.fit_adaboost,
        X,
        TWO,
        n_estimators=2,
        weak_learner=pb.weak.affine(n_directions=3, seed=1),
        **LEVELS,
    ),
    "separators": partial(
        pb.fit_adaboost, X, TWO, n_estimators=2, weak_learner=pb.weak.separator(2), **LEVELS
    ),
    "linear": partial(
        pb.fit_real_adaboost, X, TWO, n_estimators=3, weak_learner=pb.weak.feature(), **LEVELS
    ),
    "cart": partial(pb.fit_cart, X, TWO, max_depth=4, **LEVELS),
    "forest": partial(pb.fit_random_forest, X, THREE, n_estimators=3, rng=0, **LEVELS),
    "sum": partial(
        pb.fit_gradient_boosting, X, TWO, loss="log_loss", n_estimators=3, max_depth=2, **LEVELS
    ),
    "softmax": partial(
        pb.fit_gradient_boosting,
        X,
        THREE,
        loss="softmax",
        n_estimators=2,
        max_leaf_nodes=4,
        **LEVELS,
    ),
    "probit": lambda n_threads=1: pb.fit_probitboost(X, TWO, max_iter=3, **LEVELS),
    "early": lambda **of: pb.early_exit(
        pb.fit_adaboost(X[:80], TWO[:80], n_estimators=9, **LEVELS, **of),
        X[80:],
        mean_comparisons=5,
        length=None,
    ),
}
QUESTIONS = {
    "labels": pb.predict,
    "probabilities": pb.predict_proba,
    "comparisons": pb.prediction_cost,
    "columns": partial(pb.prediction_cost, unit="features"),
}


def _rows(model):
    return X[:, 1:] if model.n_features == 3 else X


def _answer(model, question):
    return QUESTIONS[question](model, _rows(model)).tobytes()


@pytest.fixture(scope="module")
def alone():
    """Return each model as it is in a file, and what it answers."""
    models = {name: fit() for name, fit in FITS.items()}
    stored = {name: pickle.dumps(model) for name, model in models.items()}
    answers = {
        (name, question): _answer(model, question)
        for name, model in models.items()
        for question in QUESTIONS
    }
    return stored, answers


def _work(shared, expected, seed, start, wrong):
    """Do some steps: fits on one thread or two, and questions to the models that are shared."""
    rng = np.random.default_rng(seed)
    names = list(shared)
    start.wait()
    for _ in range(STEPS):
        question = str(rng.choice(list(QUESTIONS)))
        if rng.random() < 0.25:
            name = str(rng.choice(list(FITS)))
            model = FITS[name](n_threads=int(rng.integers(1, 3)))
        else:
            name = str(rng.choice(names))
            model = shared[name]
        if _answer(model, question) != expected[name, question]:
            wrong.append((name, question))


def _all_at_once(stored, expected, seed):
    rng = np.random.default_rng(seed)
    names = rng.choice(list(FITS), MODELS, replace=False).tolist()
    shared, wrong = {name: pickle.loads(stored[name]) for name in names}, []
    start, errors = threading.Barrier(THREADS, timeout=60), []

    def run(number):
        try:
            _work(shared, expected, (seed, number), start, wrong)
        except BaseException as error:  # one thread's must not be lost
            errors.append(error)

    every = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in every:
        thread.start()
    for thread in every:
        thread.join()
    assert not errors, f"interleaving {seed}: {errors}"
    assert not wrong, f"interleaving {seed}: {wrong}"


@pytest.mark.full
def test_threads_that_fit_and_predict_at_once_find_what_one_finds(alone, monkeypatch):
    monkeypatch.setattr(threads, "MIN_CELLS", 1)
    monkeypatch.setattr(threads, "available_threads", lambda: 2)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for seed in range(N):
            _all_at_once(*alone, seed)
    finally:
        sys.setswitchinterval(usual)


def _calls():
    """Return calls whose time is spent in kernels, and one whose time is not."""
    many = np.random.default_rng(0).normal(size=(100_000, 4))
    y = many[:, 0] * many[:, 1] > 0
    few = many[:500], y[:500]
    return {
        "fit": partial(pb.fit_adaboost, many, y, n_estimators=9, n_threads=1),
        "tree": partial(pb.predict, pb.fit_cart(*few), many),
        "forest": partial(pb.predict, pb.fit_random_forest(*few, n_estimators=9, rng=0), many),
        "no kernel": lambda: sum(k for k in range(500_000)),
    }


@pytest.mark.parametrize(
    ("name", "lets"),
    [
        ("fit", True),
        ("tree", True),
        ("forest", True),
        ("no kernel", False),
    ],
)
def test_kernels_let_other_threads_run(name, lets):
    """Nobody asks a thread to let others run here: they run where it does so by itself."""
    call, counted, stop = _calls()[name], [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)  # the caller may go on

    other = threading.Thread(target=count)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    other.start()
    try:
        until, maximum = time.monotonic() + 20, 0
        while maximum <= 50 and time.monotonic() < until:  # the processor may be busy elsewhere
            before = counted[0]
            call()
            maximum = max(maximum, counted[0] - before)
            until = until if lets else 0.0
    finally:
        stop.set()
        sys.setswitchinterval(usual)
        other.join()
    assert (maximum > 50) is lets
