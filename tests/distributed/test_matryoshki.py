"""Matryoshki of rows in partitions: the bytes of that of one table."""

import gc
import re

import numpy as np
import pytest
from partitioned import PARTS, TABLES, bin_parts, contents, divided, fit_parted

import pboost as pb
from pboost.distributed.graph_growth import PortShard

SHAPES = {
    "nested": {"shape": (3, 3)},
    "deep": {"shape": (2, 2, 2), "observation": pb.observation.adatree2()},
    "joined": {"shape": (4, 3), "join": "all", "observation": pb.observation.half()},
    "greedy": {"growth": "greedy", "max_nodes": 12, "smoothing": 0.0},
    "soft": {"shape": (3, 2), "observation": pb.observation.uniform()},
    "soft, greedy": {"growth": "greedy", "max_nodes": 9, "observation": pb.observation.flip(0.1)},
    "by sign": {"shape": (3, 3), "collect": "sign"},
    "deep, by sign": {
        "shape": (2, 2, 2),
        "collect": "sign",
        "join": "all",
        "observation": pb.observation.adatree2(),
    },
    "greedy, by sign": {"growth": "greedy", "max_nodes": 12, "collect": "sign"},
    "soft, greedy, by sign": {
        "growth": "greedy",
        "max_nodes": 9,
        "collect": "sign",
        "observation": pb.observation.uniform(),
    },
}


def both(table, n_parts, path, **options):
    """Return the bytes of the models of one table and of partitions."""
    columns, y, weight = table
    X, labels, weights = divided(table, n_parts)
    full_model = pb.fit_matryoshka(columns, y, sample_weight=weight, **options)
    parted = fit_parted("fit_matryoshka", X, labels, sample_weight=weights, **options)
    assert parted.n_nodes == full_model.n_nodes
    return contents(full_model, path), contents(parted, path)


@pytest.mark.parametrize("name", TABLES)
def test_partitions_give_the_bytes_of_one_table(name, tmp_path):
    for n_parts, options in zip((*PARTS, 3, 4, *PARTS), SHAPES.values(), strict=True):
        full, parted = both(TABLES[name], n_parts, tmp_path, **options)
        assert parted == full, n_parts


def test_weights_that_are_not_needed_are_let_go(monkeypatch):
    maximum, answer = [], PortShard.masses

    def count(self, told):
        actual = answer(self, told)
        maximum.append(len(self._ports))
        return actual

    monkeypatch.setattr(PortShard, "masses", count)
    X, labels, _ = divided(TABLES["numbers"], 2)
    gc.disable()
    try:
        fit_parted("fit_matryoshka", X, labels, shape=(3, 20), join="all")
    finally:
        gc.enable()
    # Of a tree of three nodes four exits are open, each with a weight and a reach; while they are
    # joined there are sums of some, too. Sixty nodes make some hundreds.
    assert max(maximum) <= 24


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"shape": (0,)}, ValueError, "shape: expected"),
        ({"max_nodes": 3}, ValueError, 'max_nodes: expected None with growth="nested"'),
        (
            {"weak_learner": pb.weak.affine()},
            NotImplementedError,
            "expected weak.stump() for rows in partitions",
        ),
        (
            {"observation": pb.observation.sampled()},
            NotImplementedError,
            "partitions support exact observations",
        ),
    ],
    ids=["shape", "nodes", "affine", "drawn"],
)
def test_refusals(options, error, message):
    X, labels, weights = divided(TABLES["holes"], 2)
    with pytest.raises(error, match=re.escape(message)):
        fit_parted("fit_matryoshka", X, labels, sample_weight=weights, **options)


def test_an_empty_model():
    X = bin_parts([np.zeros((2, 1)), np.zeros((3, 1))])
    model = fit_parted("fit_matryoshka", X, [[0, 1], [1, 1, 1]])
    assert model.n_nodes == 0
