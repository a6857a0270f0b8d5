"""Partitions in processes: the same bytes, also where one of them is killed."""

import multiprocessing
import os
import signal

import numpy as np
import pytest
from partition_servers import ended, silent

import pboost as pb
from pboost.growth import shard_processes


def problem():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(500, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) > rng.normal(size=500)).astype(int)
    weight = rng.random(500)
    at = [100, 100, 350]
    return X, y, weight, [np.split(a, at) for a in (X, y, weight)]


def same(one, other):
    names = ("feature", "threshold", "vote", "missing", "answer")
    assert all(getattr(one, n).tobytes() == getattr(other, n).tobytes() for n in names)
    assert one.record.certificate.tobytes() == other.record.certificate.tobytes()
    assert one.settings == other.settings


def children():
    return {child.pid for child in multiprocessing.active_children()}


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_a_killed_process_costs_time_and_nothing_else():
    X, y, weight, (parts, labels, weights) = problem()
    options = {"rounds": 12, "observation": pb.observation.adatree2()}
    whole = pb.fit_adaboost(pb.bin_columns(X), y, sample_weight=weight, **options)
    before, killed = children(), []

    def kill(step, record):
        if step == 7:
            killed.append(max(children() - before))
            os.kill(killed[-1], signal.SIGKILL)

    columns = pb.shards.bin_columns(parts)
    model = pb.shards.fit_adaboost(
        columns, labels, sample_weight=weights, n_processes=2, callback=kill, **options
    )
    assert len(killed) == 1
    assert children() == before
    same(model, whole)


@pytest.mark.parametrize(
    ("serve", "said"), [(ended, "ended 1 times"), (silent, "has not answered")]
)
def test_no_wait_is_without_an_end(serve, said, monkeypatch):
    _, _, _, (parts, labels, _) = problem()
    monkeypatch.setattr(shard_processes, "serve", serve)
    monkeypatch.setattr(shard_processes, "PATIENCE", 10.0 if serve is ended else 0.2)
    monkeypatch.setattr(shard_processes, "RESTARTS", 0)
    before = children()
    with pytest.raises(RuntimeError, match=said):
        pb.shards.fit_adaboost(pb.shards.bin_columns(parts), labels, n_processes=1)
    assert children() == before


def test_options():
    _, _, _, (parts, labels, _) = problem()
    columns = pb.shards.bin_columns(parts)
    with pytest.raises(NotImplementedError, match="n_threads: processes have one thread"):
        pb.shards.fit_adaboost(columns, labels, n_processes=2, n_threads=2)
    with pytest.raises(ValueError, match="n_processes"):
        pb.shards.fit_adaboost(columns, labels, n_processes=0)
