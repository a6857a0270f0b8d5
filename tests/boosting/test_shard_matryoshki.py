"""Matryoshki of rows in partitions: the bytes of that of one table."""

import gc
import multiprocessing
import os
import re
import signal

import numpy as np
import pytest
from partitioned import PARTS, TABLES, contents, divided

import pboost as pb
from pboost.weak.port_shards import PortShard

SHAPES = {
    "nested": {"shape": (3, 3)},
    "deep": {"shape": (2, 2, 2), "observation": pb.observation.adatree2()},
    "joined": {"shape": (4, 3), "join": "all", "observation": pb.observation.half()},
    "greedy": {"growth": "greedy", "nodes": 12, "smoothing": 0.0},
    "soft": {"shape": (3, 2), "observation": pb.observation.uniform()},
    "soft, greedy": {"growth": "greedy", "nodes": 9, "observation": pb.observation.flip(0.1)},
    "by sign": {"shape": (3, 3), "collect": "sign"},
    "deep, by sign": {
        "shape": (2, 2, 2),
        "collect": "sign",
        "join": "all",
        "observation": pb.observation.adatree2(),
    },
    "greedy, by sign": {"growth": "greedy", "nodes": 12, "collect": "sign"},
    "soft, greedy, by sign": {
        "growth": "greedy",
        "nodes": 9,
        "collect": "sign",
        "observation": pb.observation.uniform(),
    },
}


def both(table, n_parts, path, processes=None, **options):
    """Return the bytes of the models of one table and of partitions."""
    columns, y, weight = table
    X, labels, weights = divided(table, n_parts)
    whole = pb.fit_matryoshka(columns, y, sample_weight=weight, **options)
    parted = pb.shards.fit_matryoshka(
        X, labels, sample_weight=weights, n_processes=processes, **options
    )
    assert parted.n_nodes == whole.n_nodes
    return contents(whole, path), contents(parted, path)


@pytest.mark.parametrize("name", TABLES)
def test_partitions_give_the_bytes_of_one_table(name, tmp_path):
    for n_parts, options in zip((*PARTS, 3, 4, *PARTS), SHAPES.values(), strict=True):
        whole, parted = both(TABLES[name], n_parts, tmp_path, **options)
        assert parted == whole, n_parts


def test_a_process_that_is_killed_makes_its_weights_again(tmp_path):
    columns, y, weight = TABLES["holes"]
    X, labels, weights = divided(TABLES["holes"], 3)
    killed = []

    def kill(step, record):
        if step == 4:
            process = multiprocessing.active_children()[0]
            killed.append(process.pid)
            os.kill(process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
            process.join()

    options = {"shape": (3, 3), "observation": pb.observation.adatree2(), "collect": "sign"}
    whole = pb.fit_matryoshka(columns, y, sample_weight=weight, **options)
    parted = pb.shards.fit_matryoshka(
        X, labels, sample_weight=weights, n_processes=2, callback=kill, **options
    )
    assert len(killed) == 1
    assert contents(parted, tmp_path) == contents(whole, tmp_path)


def test_weights_that_are_not_needed_are_let_go(monkeypatch):
    most, answer = [], PortShard.masses

    def count(self, told):
        found = answer(self, told)
        most.append(len(self._ports))
        return found

    monkeypatch.setattr(PortShard, "masses", count)
    X, labels, _ = divided(TABLES["numbers"], 2)
    gc.disable()
    try:
        pb.shards.fit_matryoshka(X, labels, shape=(3, 20), join="all")
    finally:
        gc.enable()
    # Of a tree of three nodes four exits are open, each with a weight and a reach; while they are
    # joined there are sums of some, too. Sixty nodes make some hundreds.
    assert max(most) <= 24


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"shape": (0,)}, ValueError, "shape: expected"),
        ({"nodes": 3}, ValueError, 'nodes: belongs to growth="greedy"'),
        ({"weak": pb.weak.affine()}, NotImplementedError, "weak.stump() of partitions"),
        ({"observation": pb.observation.sampled()}, NotImplementedError, "have a table"),
        ({"n_processes": 2, "n_threads": 2}, NotImplementedError, "n_threads"),
    ],
    ids=["shape", "nodes", "affine", "drawn", "threads"],
)
def test_refusals(options, error, message):
    X, labels, weights = divided(TABLES["holes"], 2)
    with pytest.raises(error, match=re.escape(message)):
        pb.shards.fit_matryoshka(X, labels, sample_weight=weights, **options)


def test_an_empty_model():
    X = pb.shards.bin_columns([np.zeros((2, 1)), np.zeros((3, 1))])
    model = pb.shards.fit_matryoshka(X, [[0, 1], [1, 1, 1]])
    assert model.n_nodes == 0
