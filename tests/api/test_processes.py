"""Interrupts, forks and workers, each in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from interrupt import is_soon, processor_seconds

BUILDERS = {
    "adaboost": "pb.fit_adaboost(X, y, n_estimators={size}, weak_learner=weak, n_threads=2)",
    "tree": "pb.fit_boosted_tree(X, y, max_nodes=None, weak_learner=weak, n_threads=2)",
}
SUM = (
    "pb.fit_gradient_boosting(X, y, loss='log_loss', n_estimators={size}, max_depth=6, n_threads=2)"
)
PREAMBLE = """
import faulthandler, json, os, signal, sys, threading, time
import numpy as np
import pboost as pb
faulthandler.dump_traceback_later(100, exit=True)
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
def data(n, d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] * X[:, 1] + rng.normal(size=n) > 0, 1, -1)
"""


def script(body):
    return [sys.executable, "-c", PREAMBLE + textwrap.dedent(body)]


def run(body):
    done = subprocess.run(script(body), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("search", ["exact", "binned"])
@pytest.mark.parametrize("delay", [0.1, 0.6])
def test_interrupt_ends_a_fit_within_a_second(builder, search, delay):
    body = f"""
    X, y = data(1000, 3)
    weak = pb.weak.stump(search="{search}")
    before = pb.fit_adaboost(X, y, n_estimators=20, n_threads=2)
    small = X, y
    X, y = data(500_000 if {builder!r} == "tree" else 200_000, 20)
    print("started", flush=True)
    try:
        {BUILDERS[builder].format(size=1_000_000)}
        print(json.dumps(None))
    except KeyboardInterrupt:
        caught = time.monotonic(), time.process_time()
        after = pb.fit_adaboost(*small, n_estimators=20, n_threads=2)
        same = after.vote.tobytes() == before.vote.tobytes()
        print(json.dumps([*caught, same]), flush=True)
    """
    with subprocess.Popen(
        script(body), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "started\n"
        time.sleep(delay)
        used, sent = processor_seconds(process.pid), time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 0, err
    answer = json.loads(out.splitlines()[-1])
    assert answer is not None, "the fit was over before it could be interrupted"
    caught, processor, same = answer
    assert is_soon(caught - sent, processor - used)
    assert same


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_no_helper_is_left_after_an_interrupt():
    left = run(f"""
    X, y = data(200_000, 20)
    before, left = threading.active_count(), []
    for k in range(8):
        timer = threading.Timer(0.2 + 0.03 * k, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            {SUM.format(size=1_000_000)}
        except KeyboardInterrupt:
            timer.join()
            # One that was just being started is not waited for, but ends by itself.
            end = time.monotonic() + 2
            while threading.active_count() > before and time.monotonic() < end:
                time.sleep(0.01)
            left.append(threading.active_count() - before)
    print(json.dumps(left))
    """)
    assert left == [0] * 8


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.full
@needs_fork
@pytest.mark.parametrize("builder", BUILDERS)
def test_fork_after_a_fit_with_threads(builder):
    same = run(f"""
    X, y = data(60_000, 8)
    weak = pb.weak.stump(search="exact")
    fit = lambda: {BUILDERS[builder].format(size=10)}
    before = fit()
    before_scores = pb.decision_function(before, X)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        again = fit()
        same = again.vote.tobytes() == before.vote.tobytes()
        same &= pb.decision_function(again, X).tobytes() == before_scores.tobytes()
        os.write(writer, b"1" if same else b"0")
        os._exit(0)
    os.waitpid(child, 0)
    parent_too = fit().vote.tobytes() == before.vote.tobytes()
    print(json.dumps([os.read(reader, 1) == b"1", parent_too]))
    """)
    assert same == [True, True]


@pytest.mark.full
@needs_fork
def test_fork_while_another_thread_fits():
    assert (
        run("""
    X, y = data(60_000, 8)
    fit = lambda rounds: pb.fit_adaboost(X, y, n_estimators=rounds, n_threads=2)
    fit(1)  # a child must not be forked while another thread imports
    stop = threading.Event()
    other = threading.Thread(target=lambda: pb.fit_adaboost(
        X, y, n_estimators=100_000, n_threads=2, callback=lambda step, record: stop.is_set()))
    other.start()
    time.sleep(0.3)
    good = 0
    for _ in range(5):
        child = os.fork()
        if child == 0:
            os._exit(0 if fit(3).n_nodes == 3 else 1)
        good += os.waitpid(child, 0)[1] == 0
    stop.set()
    other.join()
    print(json.dumps(good))
    """)
        == 5
    )


@pytest.mark.full
@needs_fork
def test_fork_in_a_callback():
    """The child goes on with the fit, without the helper that it has not inherited."""
    assert run("""
    X, y = data(60_000, 8)
    child, helpers = None, []
    def fork(step, record):
        global child
        if step == 3:
            helpers.append(threading.active_count() - 1)
            child = os.fork()
            helpers.append(threading.active_count() - 1)
    def fit(callback=None):
        model = pb.fit_gradient_boosting(
            X, y, n_estimators=6, max_depth=6, n_threads=2, callback=callback
        )
        return pb.decision_function(model, X).tobytes()
    same = fit(fork) == fit()
    if child == 0:
        os._exit(0 if same and helpers == [1, 0] else 1)
    print(json.dumps(same and helpers == [1, 1] and os.waitpid(child, 0)[1] == 0))
    """)


@pytest.mark.full
@needs_fork
def test_fork_while_another_thread_has_a_helper():
    assert run("""
    X, y = data(60_000, 8)
    fit = lambda **options: pb.fit_gradient_boosting(X, y, max_depth=6, n_threads=2, **options)
    stop, started = threading.Event(), threading.Event()
    def go_on(step, record):
        started.set()
        return stop.is_set()
    other = threading.Thread(target=lambda: fit(n_estimators=100_000, callback=go_on))
    other.start()
    started.wait()
    good = 0
    for _ in range(9):
        child = os.fork()
        if child == 0:
            os._exit(0 if len(fit(n_estimators=3)) == 3 else 1)
        good += os.waitpid(child, 0)[1] == 0
    stop.set()
    other.join()
    print(json.dumps([good, threading.active_count()]))
    """) == [9, 1]


@needs_fork
@pytest.mark.quick
def test_multiprocessing_fork_workers():
    assert run("""
    import multiprocessing
    X, y = data(30_000, 6)
    def votes(rounds):
        return pb.fit_adaboost(X, y, n_estimators=rounds, n_threads=2).vote.tobytes()
    here = [votes(r) for r in (3, 4, 5, 6)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        there = pool.map(votes, (3, 4, 5, 6))
    print(json.dumps(here == there))
    """)


@pytest.mark.full
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib_workers(backend):
    pytest.importorskip("joblib")
    assert run(f"""
    import joblib
    X, y = data(30_000, 6)
    def votes(rounds, X, y):
        model = pb.fit_adaboost(X, y, n_estimators=rounds)
        return model.vote.tobytes(), pb.predict(model, X).tobytes()
    here = [votes(r, X, y) for r in (3, 4, 5, 6)]
    there = joblib.Parallel(n_jobs=2, backend={backend!r})(
        joblib.delayed(votes)(r, X, y) for r in (3, 4, 5, 6))
    print(json.dumps(here == there))
    """)


@pytest.mark.full
def test_workers_do_not_oversubscribe():
    """A worker that may use one thread starts no others during a fit."""
    pytest.importorskip("joblib")
    extra = run("""
    import joblib
    X, y = data(200_000, 8)
    def extra_threads(X, y):
        before = threading.active_count()
        seen = []
        pb.fit_adaboost(X, y, n_estimators=5,
                        callback=lambda step, record: seen.append(threading.active_count()))
        return max(seen) - before
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        print(json.dumps(joblib.Parallel(n_jobs=2)(
            joblib.delayed(extra_threads)(X, y) for _ in range(2))))
    """)
    assert extra == [0, 0]


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="needs affinities")
def test_threads_stay_within_the_affinity():
    assert (
        run("""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    X, y = data(200_000, 8)
    before, seen = threading.active_count(), []
    pb.fit_adaboost(X, y, n_estimators=5,
                    callback=lambda step, record: seen.append(threading.active_count()))
    print(json.dumps(max(seen) - before))
    """)
        == 0
    )


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
@pytest.mark.parametrize(
    "call",
    [
        "pb.fit_adaboost(X, y, n_estimators=1)",
        "pb.fit_boosted_tree(X, y, max_nodes=1)",
        "pb.data.sort_columns(X)",
    ],
)
def test_more_rows_than_int32(call):
    """Refused before anything of that size is made."""
    message = run(f"""
    import resource
    X = np.broadcast_to(np.zeros((1, 1)), (2**31, 1))
    y = np.broadcast_to(np.int8(1), 2**31)
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    try:
        {call}
    except ValueError as error:
        print(json.dumps(str(error)))
    """)
    assert "2147483647" in message.replace(",", "") or "2**31" in message or "int32" in message
