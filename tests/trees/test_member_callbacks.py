"""Callbacks of the builders of many members, and how members end when they are interrupted."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from subagged import FAST, assert_same_model, problem

import pboost as pb
from pboost import threads
from pboost.probit.sbpmt import boost
from pboost.probit.tree import probit_problem
from pboost.threads import check_stop
from pboost.trees.cart import FitData
from pboost.trees.parallel_members import train_members


def forest(X, y, **options):
    return pb.fit_random_forest(X, y, **{"n_estimators": 20, "max_depth": 3, "rng": 0, **options})


def bagging(X, y, **options):
    more = {"n_estimators": 20, "max_depth": 2, "rng": 0, **options}
    return pb.fit_bagging(pb.fit_cart, X, y, **more)


def sbpmt(X, y, **options):
    return pb.fit_sbpmt(X, y, **{**FAST, "n_estimators": 20, "rng": 0, **options})


def regressions(X, y, **options):
    return forest(X, X[:, 1] + y, task="regression", **options)


def tree_for_each(X, y, **options):
    return sbpmt(X, y, one_vs_rest="tree", voting="soft", **options)


FITS = {
    "forest": forest,
    "bagging": bagging,
    "sbpmt": sbpmt,
    "regressions": regressions,
    "tree for each": tree_for_each,
}


@pytest.fixture(params=[1, 2])
def n_threads(request, monkeypatch):
    """One thread, or two, however small the data and the machine."""
    monkeypatch.setattr(threads, "MIN_CELLS", 1)
    monkeypatch.setattr(threads, "available_threads", lambda: 2)
    return request.param


def assert_same(a, b, X):
    assert len(a) == len(b)
    assert np.array_equal(pb.predict(a, X), pb.predict(b, X))
    assert np.array_equal(a.oob.prediction, b.oob.prediction, equal_nan=True)
    assert a.oob.error == b.oob.error
    if isinstance(a, pb.models.SubaggedProbitTrees):
        for name in ("coefficient", "alpha", "class_rows"):
            assert np.array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("name", FITS)
def test_sees_each_member_in_order_and_stops(name, n_threads):
    fit, (X, y) = FITS[name], problem(120, classes=3)
    seen = []

    def look(step, record):
        seen.append((step, record))
        return step == 3

    model = fit(X, y, n_threads=n_threads, callback=look)
    assert [step for step, _ in seen] == [1, 2, 3]
    assert_same(model, fit(X, y, n_estimators=3, n_threads=1), X)
    parts = model.models if name == "bagging" else list(model)
    for step, record in seen:
        # One member leaves rows out of its bag, but not all.
        assert record.oob_error == fit(X, y, n_estimators=step, n_threads=1).oob.error
        part = parts[step - 1]
        assert np.array_equal(pb.predict(record.model, X), pb.predict(part, X))


@pytest.mark.parametrize("name", FITS)
def test_that_does_not_stop_changes_nothing(name, n_threads):
    fit, (X, y) = FITS[name], problem(90)
    plain, steps = fit(X, y, n_estimators=9), []
    model = fit(X, y, n_estimators=9, n_threads=n_threads, callback=lambda n, _: steps.append(n))
    assert_same(model, plain, X)
    assert model.settings == plain.settings
    assert steps == list(range(1, 10))


@pytest.mark.parametrize("name", FITS)
def test_that_is_none_or_fails(name, n_threads):
    fit, (X, y) = FITS[name], problem(90)
    with pytest.raises(TypeError, match="callback: expected a function or None, got 1"):
        fit(X, y, callback=1)

    def fails(step, record):
        raise LookupError(f"at {step}")

    with pytest.raises(LookupError, match="at 1"):
        fit(X, y, callback=fails, n_threads=n_threads)


def test_a_stopped_model_is_written_and_read(tmp_path):
    X, y = problem(90, classes=3)
    model = sbpmt(X, y, callback=lambda step, _: step == 2)
    pb.save(model, tmp_path / "model.npz")
    assert_same_model(pb.load(tmp_path / "model.npz"), model)


# Ctrl-C


def test_members_on_other_threads_are_told_to_end():
    ended = []
    main, both = threading.main_thread(), threading.Barrier(2, timeout=30)

    def train(member):
        both.wait()
        if threading.current_thread() is main:
            raise KeyboardInterrupt
        until = time.monotonic() + 30
        try:
            while time.monotonic() < until:
                check_stop()
                time.sleep(0.001)
        finally:
            ended.append((member, time.monotonic() < until))

    with pytest.raises(KeyboardInterrupt):
        train_members(train, 8, 2, None, print)
    # Those after the first two are not begun.
    assert ended in ([(0, True)], [(1, True)])


ALONE = {
    "adaboost": lambda X, y: pb.fit_adaboost(X, y, n_estimators=3),
    "tree": lambda X, y: pb.fit_boosted_tree(X, y, max_nodes=3),
    "soft": lambda X, y: pb.fit_matryoshka(X, y, shape=(2,), observation=pb.observation.half()),
    "topdown": lambda X, y: pb.fit_topdown_tree(
        X, y, max_nodes=3, impurity=lambda q: 4 * q * (1 - q)
    ),
    "cart": pb.fit_cart,
    "probitboost": lambda X, y: pb.fit_probitboost(X, y, max_iter=10**9, safeguard=False),
    "probit tree": lambda X, y: pb.fit_probit_tree(X, y, max_depth=1),
    "columns": lambda X, y: pb.fit_real_adaboost(
        X, y, n_estimators=3, weak_learner=pb.weak.feature()
    ),
    "stagewise": lambda X, y: pb.fit_gradient_boosting(X, y, loss="log_loss", n_estimators=3),
    "sort": lambda X, y: pb.data.sort_columns(X),
}


@pytest.mark.parametrize("builder", ALONE)
def test_members_end_once_they_are_told(builder, monkeypatch):
    """Whatever is trained on a thread of another call looks whether that has ended."""
    X, y = problem(60)
    monkeypatch.setattr(threads._here, "stop", np.ones(1, dtype=np.int32))
    with pytest.raises(InterruptedError):
        ALONE[builder](X, y)


@pytest.mark.parametrize("rounds", [1, 3])
def test_boosting_ends_once_it_is_told(rounds, monkeypatch):
    X, y = problem(60)
    options = {"max_depth": 1, "min_samples_leaf": 5, "n_estimators": 3, "search": "exact"}
    task = probit_problem(FitData(X, y, None, 1, np.random.default_rng(0)), options)
    arguments = (task, [task.problem], task.weights, rounds, 0.5)
    assert 1 <= len(boost(*arguments).trees) <= rounds
    monkeypatch.setattr(threads._here, "stop", np.ones(1, dtype=np.int32))
    with pytest.raises(InterruptedError):
        boost(*arguments)


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
@pytest.mark.clock
def test_ctrl_c_ends_all_threads_of_sbpmt(n_threads):
    X, y = np.arange(60.0)[:, None], np.arange(60) % 2
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.3, send).start()
    with pytest.raises(KeyboardInterrupt):
        pb.fit_sbpmt(
            X,
            y,
            n_estimators=8,
            n_boosting_rounds=1,
            max_iter=3_000_000,
            max_depth=0,
            tol=None,
            safeguard=False,
            n_threads=n_threads,
        )
    assert time.monotonic() - sent[0] < 5
