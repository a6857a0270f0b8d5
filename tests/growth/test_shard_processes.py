"""Partitions in processes: the same bytes, also where some of them are killed, at any moment."""

import multiprocessing
import os
import random
import signal
import threading
import time

import numpy as np
import pytest
from partition_servers import Rows, ThreadContext, begins_to_answer, ended

import pboost as pb
from pboost.growth import shard_processes
from pboost.growth.shard_processes import Processes

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kill -9, and pipes that are sockets")
OPTIONS = {"rounds": 6, "observation": pb.observation.adatree2()}


def problem():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(500, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) > rng.normal(size=500)).astype(int)
    weight = rng.random(500)
    at = [100, 100, 350]
    return X, y, weight, [np.split(a, at) for a in (X, y, weight)]


X, Y, WEIGHT, (PARTS, LABELS, WEIGHTS) = problem()
COLUMNS = pb.shards.bin_columns(PARTS)
WHOLE = pb.fit_adaboost(pb.bin_columns(X), Y, sample_weight=WEIGHT, **OPTIONS)


def fitted(**options):
    return pb.shards.fit_adaboost(
        COLUMNS, LABELS, sample_weight=WEIGHTS, n_processes=2, **OPTIONS | options
    )


def same(one, other):
    names = ("feature", "threshold", "vote", "missing", "answer")
    assert all(getattr(one, n).tobytes() == getattr(other, n).tobytes() for n in names)
    assert one.record.certificate.tobytes() == other.record.certificate.tobytes()
    assert one.settings == other.settings


def children():
    return {child.pid for child in multiprocessing.active_children()}


@pytest.fixture
def threads(monkeypatch):
    """Threads for processes, which start at once."""
    context = ThreadContext()
    monkeypatch.setattr(shard_processes.multiprocessing, "get_context", lambda kind: context)
    yield context
    for process in context.processes:
        process.join(5)
    assert not context.running()


def test_a_killed_process_costs_time_and_nothing_else():
    before, killed = children(), []

    def kill(step, record):
        if step == 4:
            killed.append(max(children() - before))
            os.kill(killed[-1], signal.SIGKILL)

    same(fitted(callback=kill), WHOLE)
    assert len(killed) == 1
    assert children() == before


@pytest.mark.parametrize("n_killed", [1, 2])
@pytest.mark.parametrize(
    ("what", "time"),
    [("load", 0), ("extent", 0), ("scaled_sum", 0), ("begin", 0), ("masses", 0), ("masses", 5)],
)
@pytest.mark.parametrize("is_told", [False, True], ids=["before", "after"])
def test_a_process_may_die_in_every_phase(what, time, n_killed, is_told, threads, monkeypatch):
    told, write = [], shard_processes.write

    def kill_and_write(connection, message):
        if is_told:
            write(connection, message)
        told.append(message[0])
        if message[0] == what and told.count(what) == 2 * time + 2:  # both have been asked
            for process in threads.running()[-n_killed:]:
                process.kill()
        if not is_told:
            write(connection, message)

    monkeypatch.setattr(shard_processes, "write", kill_and_write)
    same(fitted(), WHOLE)
    assert len(threads.processes) == 2 + n_killed


def test_processes_may_die_at_any_moment(threads, monkeypatch):
    monkeypatch.setattr(shard_processes, "RESTARTS", 10**6)
    draw, is_over = random.Random(5), threading.Event()

    def kill():
        while not is_over.wait(draw.random() * 0.02):
            if running := threads.running():
                draw.choice(running).kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        while len(threads.processes) < 50:
            same(fitted(), WHOLE)
    finally:
        is_over.set()
        killer.join()


def test_a_stopped_process_is_told_something_for_a_limited_time(monkeypatch):
    # More than a pipe holds: it is waited for while it is told.
    rows, write = np.zeros((4, 300_000), dtype=np.uint8), shard_processes.write
    before = children()

    def stop_and_write(connection, message):
        (pid,) = children() - before
        os.kill(pid, signal.SIGSTOP)
        write(connection, message)

    monkeypatch.setattr(shard_processes, "write", stop_and_write)
    monkeypatch.setattr(shard_processes, "PATIENCE", 0.2)
    said = r"process 0 .* has not answered 'load' within 0\.2 seconds"
    with Processes([(rows,)], 1, Rows) as engine, pytest.raises(RuntimeError, match=said):
        engine.ask("extent")
    assert children() == before


def test_a_process_that_stops_in_an_answer_is_waited_for_in_vain(threads, monkeypatch):
    monkeypatch.setattr(shard_processes, "serve", begins_to_answer)
    monkeypatch.setattr(shard_processes, "PATIENCE", 0.2)
    with pytest.raises(RuntimeError, match=r"process 0 .* not answered 'load' within 0\.2 seconds"):
        fitted()


def test_a_process_that_stops_in_a_round_ends_the_fit_with_an_error(threads, monkeypatch):
    monkeypatch.setattr(shard_processes, "PATIENCE", 0.2)
    answered = shard_processes.answered

    def slow(shards, cuts, workers, what, arguments):
        if what == "masses" and arguments[0] == 3:
            time.sleep(0.5)
        return answered(shards, cuts, workers, what, arguments)

    monkeypatch.setattr(shard_processes, "answered", slow)
    with pytest.raises(RuntimeError, match=r"has not answered 'masses' within 0\.2 seconds"):
        fitted()


def test_what_always_ends_is_not_started_for_ever(threads, monkeypatch):
    monkeypatch.setattr(shard_processes, "serve", ended)
    with pytest.raises(RuntimeError, match="ended 4 times, the last time with exit code"):
        fitted()
    assert len(threads.processes) == 2 + shard_processes.RESTARTS


def test_another_release_is_refused_before_work_begins(threads, monkeypatch):
    serve = shard_processes.serve
    monkeypatch.setattr(shard_processes, "serve", lambda there, version: serve(there, "0.1"))
    with pytest.raises(RuntimeError, match=r"one release of pboost, but 0\.1 asks a process that"):
        fitted()


def test_errors_of_a_process_are_raised_here(threads):
    with Processes([(None,)], 1, Rows) as engine, pytest.raises(TypeError, match="no rows"):
        engine.ask("extent")


def test_large_arrays_are_sent_by_themselves():
    here, there = multiprocessing.Pipe()
    found = []
    reader = threading.Thread(target=lambda: found.append(shard_processes.read(there)))
    reader.start()
    sent = COLUMNS[2:], np.arange(70_000.0), np.arange(10.0), np.zeros((0, 3)), "text"
    shard_processes.write(here, sent)
    reader.join()
    ((columns, *arrays, text),) = found
    assert text == "text"
    for ours, theirs in zip(sent[1:4], arrays, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert [c.codes.tobytes() for c in columns] == [c.codes.tobytes() for c in sent[0]]
    here.close()
    with pytest.raises(EOFError):
        shard_processes.read(there)
    there.close()


def test_options():
    with pytest.raises(NotImplementedError, match="n_threads: processes have one thread"):
        fitted(n_threads=2)
    with pytest.raises(ValueError, match="n_processes"):
        pb.shards.fit_adaboost(COLUMNS, LABELS, n_processes=0)
