"""Helpers live as long as the fit that they are for, and are found by compiled code only."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import pboost as pb
from pboost import threads
from pboost._core.team import Team


@pytest.fixture
def many_threads(monkeypatch):
    """Make the smallest work worth threads, of which the machine seems to have eight."""
    monkeypatch.setattr(threads, "MIN_CELLS", 1)
    monkeypatch.setattr(threads, "available_threads", lambda: 8)


def data(n=3000, d=7):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] * X[:, 1] > 0


def helpers():
    return [t for t in threading.enumerate() if "serve" in t.name]


@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_helpers_live_as_long_as_the_fit(many_threads, n_threads):
    seen = []
    pb.fit_gradient_boosting(
        *data(),
        n_estimators=3,
        n_threads=n_threads,
        callback=lambda *_: seen.append(len(helpers())),
    )
    assert seen == [n_threads - 1] * 3
    assert helpers() == []


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, SystemExit])
def test_helpers_end_with_a_fit_that_fails(many_threads, error):
    def fail(step, record):
        raise error

    with pytest.raises(error):
        pb.fit_gradient_boosting(*data(), n_estimators=3, n_threads=4, callback=fail)
    assert helpers() == []


def test_one_thread_has_no_helper(many_threads):
    seen = []
    X, y = data()
    pb.fit_gradient_boosting(
        X, y, n_estimators=2, n_threads=1, callback=lambda *_: seen.append(len(helpers()))
    )

    def nested():
        pb.fit_gradient_boosting(
            X, y, n_estimators=2, callback=lambda *_: seen.append(len(helpers()))
        )

    other = threading.Thread(target=nested)
    other.start()
    other.join()
    assert seen == [0] * 4


def test_a_team_that_is_not_asked_for_has_no_thread():
    with threads.Workers(3) as workers:
        assert helpers() == []
        address = workers.team
        assert address == workers.team != 0
        assert len(helpers()) == 2
    assert helpers() == []
    with threads.Workers(1) as workers:
        assert workers.team == 0


def test_helpers_sleep_and_are_told_to_leave_in_their_sleep():
    with threads.Workers(5) as workers:
        assert workers.team
        time.sleep(0.05)
        used = time.process_time()
        time.sleep(0.2)
        assert time.process_time() - used < 0.1
    assert helpers() == []


def test_teams_of_no_thread_and_helpers_of_no_number_are_refused():
    with pytest.raises(ValueError, match="expected one thread or more, got 0"):
        Team(0)
    team = Team(2)
    for who in (0, 2, -1):
        with pytest.raises(ValueError, match=f"expected a number from 1 to 1, got {who}"):
            team.serve(who)
    team.stop()
    team.serve(1)  # comes too late, and goes
    assert team.joined == [0]
