"""Boosted trees of rows in partitions: the bytes of the tree of one table."""

import re

import numpy as np
import pytest
from partitioned import PARTS, TABLES, contents, divided, fit_parted

import pboost as pb


def small_weights():
    """Return a table of weights so different that those of nodes are made anew."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 4)), 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = np.where(rng.random(300) < 0.3, 1e-150, 10.0 ** -rng.integers(0, 14, 300))
    return pb.data.bin_columns(X, max_bins=40), rng.integers(0, 2, 300), weight


ALL = {**TABLES, "small weights": small_weights()}
OPTIONS = {
    "look_ahead": {"growth": "look_ahead", "smoothing": 0.0},
    "largest_error": {"growth": "largest_error", "learning_rate": 0.5},
    "breadth_first": {"growth": "breadth_first", "max_depth": 4},
    "to a target": {"target_certificate": 0.5, "max_nodes": None},
    "whole": {"max_nodes": None},
    "limits": {
        "weak_learner": pb.weak.stump(
            "gini", min_samples_leaf=9, min_weight_fraction=0.1, categorical_smoothing=0.5
        )
    },
    "error": {"weak_learner": pb.weak.stump("error", min_weight_fraction=0.02)},
}


def both(table, n_parts, path, **options):
    """Return the bytes of the trees of one table and of partitions."""
    columns, y, weight = table
    X, labels, weights = divided(table, n_parts)
    whole = pb.fit_boosted_tree(columns, y, sample_weight=weight, **options)
    parted = fit_parted("fit_boosted_tree", X, labels, sample_weight=weights, **options)
    assert parted.n_nodes == whole.n_nodes
    return contents(whole, path), contents(parted, path)


@pytest.mark.parametrize("name", ALL)
def test_partitions_give_the_bytes_of_one_table(name, tmp_path):
    for n_parts in PARTS:
        whole, parted = both(ALL[name], n_parts, tmp_path, max_nodes=20)
        assert parted == whole, n_parts


@pytest.mark.parametrize("options", OPTIONS)
def test_options_mean_what_they_mean_of_one_table(options, tmp_path):
    for name in ("numbers", "holes", "small weights", "categories, weights"):
        whole, parted = both(ALL[name], 3, tmp_path, **OPTIONS[options])
        assert parted == whole, name


def test_weights_are_made_anew_where_little_mass_is_left(tmp_path):
    columns, y, weight = ALL["small weights"]
    whole = pb.fit_boosted_tree(columns, y, sample_weight=weight, max_nodes=None)
    reach = np.diff(whole.record.cost)
    assert reach.min() < 2.0**-22  # of a mass below 2 ** 40, at a node that is split
    X, labels, weights = divided(ALL["small weights"], 3)
    kept = []

    def note(step, record):
        kept.append(record)

    pb.fit_boosted_tree(columns, y, sample_weight=weight, max_nodes=None, callback=note)
    n = len(kept)
    parted = fit_parted(
        "fit_boosted_tree", X, labels, sample_weight=weights, max_nodes=None, callback=note
    )
    assert kept[:n] == kept[n:]
    assert contents(parted, tmp_path) == contents(whole, tmp_path)


def test_growth_without_a_split(tmp_path):
    for values in (np.zeros((4, 2)), np.arange(8.0).reshape(4, 2)):
        table = pb.data.bin_columns(values), np.array([0, 1, 1, 1]), None
        whole, parted = both(table, 2, tmp_path)
        assert parted == whole


REFUSED = {
    "affine": ({"weak_learner": pb.weak.affine()}, NotImplementedError, "weak.stump()"),
    "exact": (
        {"weak_learner": pb.weak.stump(search="exact")},
        NotImplementedError,
        "rows.gather()",
    ),
    "growth": ({"growth": "depth_first"}, ValueError, "growth"),
    "too light": ({"sample_weight": 1e-320}, ValueError, "more than floating point can hold"),
    "one class": ({"sample_weight": 0.0}, ValueError, "both classes to have positive weight"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what):
    options, kind, said = REFUSED[what]
    X, y, _ = divided(TABLES["holes, no weights"], 3)
    if "sample_weight" in options:
        light = options["sample_weight"]
        options = {"sample_weight": [np.where(part > 0, 1e5, light) for part in y]}
    with pytest.raises(kind, match=re.escape(said)):
        fit_parted("fit_boosted_tree", X, y, **options)
