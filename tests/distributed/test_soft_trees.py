"""Soft trees of rows in partitions: the bytes of the tree of one table."""

import math
import re

import numpy as np
import pytest
from partitioned import PARTS, TABLES, contents, divided, fit_parted

import pboost as pb
from pboost.distributed.engine import exact_parts, exact_sum

ANSWERS = {
    "flip": pb.observation.flip(0.1),
    "half": pb.observation.half(),
    "uniform": pb.observation.uniform(),
    "adatree2": pb.observation.adatree2(),
}
OPTIONS = {
    "look_ahead": {"growth": "look_ahead", "smoothing": 0.0},
    "largest_error": {"growth": "largest_error", "learning_rate": 0.5},
    "breadth_first": {"growth": "breadth_first", "max_depth": 3, "max_nodes": None},
    "to a target": {"target_certificate": 0.8, "max_nodes": 200},
    "limits": {
        "weak_learner": pb.weak.stump(
            "gini", min_samples_leaf=9, min_weight_fraction=0.1, categorical_smoothing=0.5
        )
    },
}


def both(table, n_parts, path, **options):
    """Return the bytes of the trees of one table and of partitions."""
    columns, y, weight = table
    X, labels, weights = divided(table, n_parts)
    options = {"max_nodes": 12, "observation": ANSWERS["adatree2"], **options}
    full_model = pb.fit_boosted_tree(columns, y, sample_weight=weight, **options)
    parted = fit_parted("fit_boosted_tree", X, labels, sample_weight=weights, **options)
    assert parted.n_nodes == full_model.n_nodes
    return contents(full_model, path), contents(parted, path)


@pytest.mark.parametrize("name", TABLES)
def test_partitions_give_the_bytes_of_one_table(name, tmp_path):
    for n_parts, answers in zip(PARTS, ANSWERS.values(), strict=True):
        full, parted = both(TABLES[name], n_parts, tmp_path, observation=answers)
        assert parted == full, n_parts


@pytest.mark.parametrize("options", OPTIONS)
def test_options_mean_what_they_mean_of_one_table(options, tmp_path):
    for name in ("holes", "categories, weights"):
        full, parted = both(TABLES[name], 3, tmp_path, **OPTIONS[options])
        assert parted == full, name


def test_tiny_weights_at_deep_exits(tmp_path):
    rng = np.random.default_rng(1)
    weight = 10.0 ** -rng.integers(0, 300, 200)
    table = pb.data.bin_columns(rng.normal(size=(200, 3))), rng.integers(0, 2, 200), weight
    full, parted = both(table, 4, tmp_path, max_nodes=40, observation=ANSWERS["uniform"])
    assert parted == full


def test_sums_of_parts_are_rounded_once():
    rng = np.random.default_rng(0)
    numbers = rng.random(1000) * 10.0 ** rng.integers(-300, 1, 1000)
    numbers[:4] = 5e-324, 0.0, 1.0, 2.0**-1022
    for some in (numbers, numbers[:4], np.ones(7), np.full(3, 0.1), np.zeros(2)):
        parts = [exact_parts(part) for part in np.array_split(some, 3)]
        assert exact_sum(sum(parts)) == math.fsum(some)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"observation": pb.observation.exact(), "max_nodes": 0},
            ValueError,
            "max_nodes: expected",
        ),
        ({"max_nodes": None}, ValueError, "set max_nodes or max_depth"),
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
    ids=["nodes", "no end", "affine", "drawn"],
)
def test_refusals(options, error, message):
    X, labels, weights = divided(TABLES["holes"], 2)
    options = {"observation": ANSWERS["half"], **options}
    with pytest.raises(error, match=re.escape(message)):
        fit_parted("fit_boosted_tree", X, labels, sample_weight=weights, **options)
