"""Models are the same, bit for bit, for any number of threads; and how many threads there are."""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import fields, is_dataclass
from functools import partial

import numpy as np
import pytest
from compare import assert_identical

import pboost as pb
from pboost import threads


@pytest.fixture
def many_threads(monkeypatch):
    """Make the smallest work worth threads, of which the machine seems to have eight."""
    monkeypatch.setattr(threads, "MIN_CELLS", 1)
    monkeypatch.setattr(threads, "available_threads", lambda: 8)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3001, 7))
    X[:, 3] = X[:, 3].round(1)
    y = X[:, 0] * X[:, 1] + X[:, 3] + rng.normal(size=3001) > 0
    return X, y, rng.integers(0, 4, 3001)


@pytest.mark.parametrize("search", ["exact", "binned"])
@pytest.mark.parametrize("builder", ["adaboost", "tree"])
def test_models_do_not_depend_on_threads(many_threads, problem, builder, search):
    X, y, weight = problem
    weak = pb.weak.stump(search=search)
    options = {"weak_learner": weak, "sample_weight": weight}
    models = [
        pb.fit_adaboost(X, y, n_estimators=40, n_threads=n, **options)
        if builder == "adaboost"
        else pb.fit_boosted_tree(X, y, max_nodes=60, n_threads=n, **options)
        for n in (1, 2, 4, 7)
    ]
    for model in models[1:]:
        assert_identical(models[0], model)


def test_pool_threads_are_really_used(many_threads, problem, monkeypatch):
    seen = set()
    run = threads.Workers.run

    def spy(self, work, n, *size, **cells):
        def noted(start, stop):
            seen.add(threading.get_ident())
            time.sleep(0.001)  # or else one thread may do all of it
            return work(start, stop)

        return run(self, noted, n, *size, **cells)

    monkeypatch.setattr(threads.Workers, "run", spy)
    X, y, _ = problem
    pb.fit_boosted_tree(X, y, max_nodes=20, n_threads=2)
    assert len(seen) >= 2


def test_shared_ranges_cover_once(monkeypatch):
    """Each is for all threads, and has no more cells than they may work on at once.

    Where that is less than one piece for each thread, it is one piece for each.
    """
    monkeypatch.setattr(threads, "CELLS_PER_CALL", 40)
    for n_threads, limit in (1, 8), (3, 24):
        with threads.Workers(n_threads) as workers:
            ranges = workers.run_shared(lambda *item: item, 100, 4, cells=5)
            full = workers.run_shared(lambda *item: item, 5, 4, cells=1000)
            long = workers.run_shared(lambda *item: item, 25, 4, cells=1000)
            assert {team for *_, team in ranges} == {workers.team}
        assert [i for start, stop, _ in ranges for i in range(start, stop)] == list(range(100))
        assert all(start % 4 == 0 and stop - start <= limit for start, stop, _ in ranges)
        assert [stop - start for start, stop, _ in full] == ([4, 1] if n_threads == 1 else [5])
        assert [stop - start for start, stop, _ in long[:2]] == [4 * n_threads, 4 * n_threads]


def test_helpers_take_part_in_boosting(many_threads, monkeypatch):
    helped, leave = [], threads.Workers.__exit__

    def spy(self, *error):
        helped.append(self.helped)
        return leave(self, *error)

    monkeypatch.setattr(threads.Workers, "__exit__", spy)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 20))
    until = time.monotonic() + 60  # another process may have the second processor
    while sum(helped) < 20 and time.monotonic() < until:
        pb.fit_adaboost(X, X[:, 0] > X[:, 1], n_estimators=20, n_threads=2)
    assert sum(helped) >= 20


def test_predictions_do_not_depend_on_threads(many_threads, problem, monkeypatch):
    X, y, _ = problem
    model = pb.fit_boosted_tree(X, y, max_nodes=60)
    score, cost = pb.decision_function(model, X), pb.prediction_cost(model, X)
    monkeypatch.setattr(threads, "available_threads", lambda: 1)
    assert pb.decision_function(model, X).tobytes() == score.tobytes()
    assert pb.prediction_cost(model, X).tobytes() == cost.tobytes()


@pytest.mark.parametrize("n", [1, 5, 8, 9, 64, 100])
@pytest.mark.parametrize("multiple", [1, 4, 64])
@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
def test_ranges_cover_once(n, multiple, n_threads):
    with threads.Workers(n_threads) as workers:
        ranges = workers.run(lambda start, stop: (start, stop), n, multiple)
    assert [i for start, stop in ranges for i in range(start, stop)] == list(range(n))
    assert all(start % multiple == 0 for start, _ in ranges)
    assert len(ranges) <= n_threads


@pytest.mark.parametrize("multiple", [1, 4])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_large_work_is_cut(monkeypatch, multiple, n_threads):
    """Into ranges of no more cells than may be worked on between looks at signals."""
    monkeypatch.setattr(threads, "CELLS_PER_CALL", 40)
    with threads.Workers(n_threads) as workers:
        ranges = workers.run(lambda start, stop: (start, stop), 100, multiple, cells=5)
        full = workers.run(lambda start, stop: (start, stop), 5, multiple, cells=1000)
    assert [i for start, stop in ranges for i in range(start, stop)] == list(range(100))
    assert all(start % multiple == 0 for start, _ in ranges)
    assert {stop - start for start, stop in ranges[:-1]} <= {7, 8}
    assert len(full) == -(-5 // multiple)


CUT = {
    "adaboost": lambda X, y, n: pb.fit_adaboost(X, y, n_estimators=9, n_threads=n),
    "binned": lambda X, y, n: pb.fit_adaboost(
        X, y, n_estimators=9, n_threads=n, weak_learner=pb.weak.stump(search="binned")
    ),
    "look_ahead": lambda X, y, n: pb.fit_boosted_tree(
        X, y, max_nodes=30, growth="look_ahead", n_threads=n
    ),
    "tree": lambda X, y, n: pb.fit_boosted_tree(X, y, max_nodes=30, n_threads=n),
    "affine": lambda X, y, n: pb.fit_adaboost(
        X, y, n_estimators=5, weak_learner=pb.weak.affine(n_directions=9, n_terms=3), n_threads=n
    ),
    "linear": lambda X, y, n: pb.fit_boosted_tree(
        X, y, max_nodes=3, weak_learner=pb.weak.linear(), n_threads=n
    ),
    "separator": lambda X, y, n: pb.fit_boosted_tree(
        X, y, max_nodes=3, weak_learner=pb.weak.separator(n_stumps=3), n_threads=n
    ),
    "gaussian": lambda X, y, n: pb.fit_boosted_tree(
        X, y, max_nodes=5, observation=pb.observation.gaussian(0.3), n_threads=n
    ),
    "sampled": lambda X, y, n: pb.fit_adaboost(
        X, y, n_estimators=5, observation=pb.observation.sampled(7), rng=0, n_threads=n
    ),
    "flip": lambda X, y, n: pb.fit_matryoshka(
        X, y, shape=(2, 2), observation=pb.observation.flip(0.1), n_threads=n
    ),
    "columns": lambda X, y, n: pb.fit_real_adaboost(
        X, y, n_estimators=5, weak_learner=pb.weak.feature(), n_threads=n
    ),
}


@pytest.mark.parametrize("builder", CUT)
def test_models_do_not_depend_on_the_ranges(many_threads, problem, monkeypatch, builder):
    X, y, _ = problem
    X, y = X[:1001], y[:1001]
    plain = CUT[builder](X, y, 1)
    monkeypatch.setattr(threads, "CELLS_PER_CALL", 700)
    for n_threads in (1, 3):
        assert_same_arrays(plain, CUT[builder](X, y, n_threads))


def assert_same_arrays(one, other):
    """All arrays have the same bits."""
    for f in fields(one):
        a, b = getattr(one, f.name), getattr(other, f.name)
        if is_dataclass(a):
            assert_same_arrays(a, b)
        elif isinstance(a, np.ndarray):
            assert a.tobytes() == b.tobytes(), f.name


def answers(X):
    rng = np.random.default_rng(1)
    y = X[:, 0] * X[:, 1] > 0
    forest = pb.fit_random_forest(X, y, n_estimators=5, rng=0)
    flip = pb.fit_boosted_tree(X, y, max_nodes=9, observation=pb.observation.flip(0.1))
    gauss = pb.fit_adaboost(X, y, n_estimators=5, observation=pb.observation.gaussian(0.3))
    affine = pb.fit_adaboost(X, y, n_estimators=5, weak_learner=pb.weak.affine(n_directions=9))
    cells = rng.uniform(0.1, 0.2, X.shape)
    return [
        pb.predict_proba(forest, X),
        pb.inspection.apply(forest, X),
        pb.decision_function(flip, X, route="expected"),
        pb.decision_function(flip, X, route="sample", rng=1, draws=9),
        pb.decision_function(gauss, X, route="expected", sigma=cells),
        pb.decision_function(gauss, X, route="sample", rng=1, draws=5000, sigma=cells),
        pb.inspection.reach(gauss, X, sigma=cells),
        np.array(pb.certificate(flip, X, y)),
        pb.prediction_cost(flip, X, unit="features"),
        pb.prediction_cost(affine, X),
        pb.decision_function(affine, X),
        pb.predict_proba(pb.fit_sbpmt(X, y, n_estimators=2, n_boosting_rounds=2, rng=0), X),
    ]


@pytest.mark.full
def test_answers_do_not_depend_on_the_ranges(many_threads, problem, monkeypatch):
    X = problem[0][:200]
    plain = answers(X)
    monkeypatch.setattr(threads, "CELLS_PER_CALL", 300)
    monkeypatch.setattr(pb.models.evaluate.graph_walk, "CELLS_PER_CALL", 300)
    for item, other in zip(plain, answers(X), strict=True):
        assert item.tobytes() == other.tobytes()


@pytest.mark.parametrize("nested", [False, True])
def test_other_threads_are_told_to_end(nested):
    """Also in work that begins workers of its own."""
    main, both, ended = threading.main_thread(), threading.Barrier(2, timeout=30), []

    def wait(start, stop):
        threads.check_stop()
        time.sleep(0.001)

    def work(start, stop):
        both.wait()
        if threading.current_thread() is main:
            raise KeyboardInterrupt
        until = time.monotonic() + 30
        try:
            while time.monotonic() < until:
                with threads.Workers(1 + nested) as workers:
                    workers.run(wait, 10)
        except InterruptedError:
            ended.append(start)

    with pytest.raises(KeyboardInterrupt), threads.Workers(2) as workers:
        workers.run_each(work, 100)
    assert ended in ([0], [1])
    threads.check_stop()  # this thread goes on


def test_errors_of_other_threads_arrive():
    def work(start, stop):
        if start:
            raise KeyError(start)

    with threads.Workers(3) as workers, pytest.raises(KeyError):
        workers.run(work, 9)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_each_is_done_once(n_threads):
    done = []
    with threads.Workers(n_threads) as workers:
        actual = workers.run_each(lambda start, stop: done.append(start) or (start, stop), 9)
    assert actual == [(i, i + 1) for i in range(9)]
    assert sorted(done) == list(range(9))


@pytest.mark.parametrize("bad", [0, 5])
def test_an_error_ends_the_others(bad):
    done = []

    def work(start, stop):
        done.append(start)
        if start == bad:
            raise IndexError(start)
        time.sleep(0.002)

    with threads.Workers(2) as workers, pytest.raises(IndexError):
        workers.run_each(work, 500)
    assert len(done) < 250


def test_limits(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads.available_threads() == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert threads.available_threads() <= (os.cpu_count() or 1)
    with monkeypatch.context() as other:  # a browser says how many processors there are
        other.setattr(sys, "platform", "emscripten")
        other.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
        assert threads.available_threads() == 1
        assert threads.resolve_threads(8, 100 * threads.MIN_CELLS) == 1
    monkeypatch.setattr(threads, "available_threads", lambda: 8)
    assert threads.resolve_threads(None, 10) == 1
    assert threads.resolve_threads(None, 100 * threads.MIN_CELLS) == 8
    assert threads.resolve_threads(3, 100 * threads.MIN_CELLS) == 3
    assert threads.resolve_threads(16, 100 * threads.MIN_CELLS) == 8
    assert threads.resolve_threads(8, 2 * threads.MIN_CELLS) == 2
    assert threads.resolve_threads(-1, 100 * threads.MIN_CELLS) == 8
    assert threads.resolve_threads(np.int64(-1), 3 * threads.MIN_CELLS) == 3


@pytest.mark.parametrize("n_threads", [0, -2, -(10**30), 2**31])
def test_other_numbers_are_refused(n_threads):
    message = "^n_threads: expected an integer >= 1, -1 for all available threads, or None"
    with pytest.raises(ValueError, match=message):
        threads.resolve_threads(n_threads, 1)
    X, y = np.arange(4.0)[:, None], [0, 1, 1, 0]
    with pytest.raises(ValueError, match=message):
        pb.fit_cart(X, y, n_threads=n_threads)
    with pytest.raises(TypeError, match=r"^n_threads: expected an integer, got -1\.0"):
        pb.fit_cart(X, y, n_threads=-1.0)


def test_models_on_all_threads(many_threads, problem):
    X, y, _ = problem
    fits = (
        partial(pb.fit_adaboost, n_estimators=5),
        partial(pb.fit_random_forest, n_estimators=3, rng=0),
        partial(pb.fit_bagging, partial(pb.fit_cart, max_depth=3), n_estimators=3, rng=0),
        partial(pb.fit_sbpmt, n_estimators=2, n_boosting_rounds=1, max_iter=2, rng=0),
        partial(pb.fit_gradient_boosting, loss="log_loss", n_estimators=2),
    )
    for fit in fits:
        first, every = (fit(X, y, n_threads=n) for n in (1, -1))
        score = [pb.predict_proba(model, X) for model in (first, every)]
        assert score[0].tobytes() == score[1].tobytes()
    pb.fit_adaboost(pb.data.sort_columns(X, n_threads=-1), y, n_estimators=1)
    pb.fit_adaboost(pb.data.bin_columns(X, n_threads=-1), y, n_estimators=1)


def test_worker_threads_stay_serial(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 8)
    actual = []
    thread = threading.Thread(
        target=lambda: actual.append(threads.resolve_threads(None, 100 * threads.MIN_CELLS))
    )
    thread.start()
    thread.join()
    assert actual == [1]


def test_all_threads_are_all_of_them_in_a_worker_thread_too(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 8)
    with threads.Workers(2) as workers:
        actual = workers.run_each(
            lambda *_: threads.resolve_threads(-1, 100 * threads.MIN_CELLS), 2
        )
    assert actual == [8, 8]
