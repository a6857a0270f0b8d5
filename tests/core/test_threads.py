"""Models are the same, bit for bit, for any number of threads; and how many threads there are."""

from __future__ import annotations

import os
import threading
import time

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
    options = {"weak": weak, "sample_weight": weight}
    models = [
        pb.fit_adaboost(X, y, rounds=40, n_threads=n, **options)
        if builder == "adaboost"
        else pb.fit_boosted_tree(X, y, nodes=60, n_threads=n, **options)
        for n in (1, 2, 4, 7)
    ]
    for model in models[1:]:
        assert_identical(models[0], model)


def test_threads_are_really_used(many_threads, problem, monkeypatch):
    seen = set()
    run = threads.Workers.run

    def spy(self, work, n, multiple=1):
        def noted(start, stop):
            seen.add(threading.get_ident())
            return work(start, stop)

        return run(self, noted, n, multiple)

    monkeypatch.setattr(threads.Workers, "run", spy)
    X, y, _ = problem
    pb.fit_adaboost(X, y, rounds=20, n_threads=2)
    assert len(seen) >= 2


def test_predictions_do_not_depend_on_threads(many_threads, problem, monkeypatch):
    X, y, _ = problem
    model = pb.fit_boosted_tree(X, y, nodes=60)
    score, cost = pb.decision_function(model, X), pb.evaluation_cost(model, X)
    monkeypatch.setattr(threads, "available_threads", lambda: 1)
    assert pb.decision_function(model, X).tobytes() == score.tobytes()
    assert pb.evaluation_cost(model, X).tobytes() == cost.tobytes()


@pytest.mark.parametrize("n", [1, 5, 8, 9, 64, 100])
@pytest.mark.parametrize("multiple", [1, 4, 64])
@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
def test_ranges_cover_once(n, multiple, n_threads):
    with threads.Workers(n_threads) as workers:
        ranges = workers.run(lambda start, stop: (start, stop), n, multiple)
    assert [i for start, stop in ranges for i in range(start, stop)] == list(range(n))
    assert all(start % multiple == 0 for start, _ in ranges)
    assert len(ranges) <= n_threads


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
        found = workers.run_each(lambda start, stop: done.append(start) or (start, stop), 9)
    assert found == [(i, i + 1) for i in range(9)]
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
    monkeypatch.setattr(threads, "available_threads", lambda: 8)
    assert threads.resolve_threads(None, 10) == 1
    assert threads.resolve_threads(None, 100 * threads.MIN_CELLS) == 8
    assert threads.resolve_threads(3, 100 * threads.MIN_CELLS) == 3
    assert threads.resolve_threads(16, 100 * threads.MIN_CELLS) == 8
    assert threads.resolve_threads(8, 2 * threads.MIN_CELLS) == 2


def test_worker_threads_stay_serial(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 8)
    found = []
    thread = threading.Thread(
        target=lambda: found.append(threads.resolve_threads(None, 100 * threads.MIN_CELLS))
    )
    thread.start()
    thread.join()
    assert found == [1]
