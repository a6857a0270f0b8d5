"""Boosted trees of partitions: how often these are asked, and the bits of one table."""

import numpy as np
import pytest
from partitioned import TABLES, bin_parts, contents, divided, fit_parted

import pboost as pb
from pboost.distributed import engine as engines
from pboost.distributed import round_partitions as round_shards

PARTS = (1, 2, 3, 5, 16)


@pytest.fixture
def asked(monkeypatch):
    """Return a list of what partitions are asked."""
    actual, masses = [], engines.Serial.masses

    def counting(self, told):
        actual.append(told[-1])
        return masses(self, told)

    monkeypatch.setattr(engines.Serial, "masses", counting)
    return actual


def normal_rows(n=4000, d=5, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(2)
    score = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n)
    return X, np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)


def calls_per_tree(asked, steps):
    """Return how many questions a tree takes, of those from the first tree on."""
    first = next(k for k, item in enumerate(asked) if isinstance(item, round_shards.MaxMargin))
    return (len(asked) - first - 2) / steps  # two are of the start


@pytest.mark.parametrize("growth", ["independent", "pooled", "symmetric"])
@pytest.mark.parametrize("depth", [1, 3, 6])
def test_calls_of_a_tree_depend_on_its_depth_only(growth, depth, asked):
    X, y = normal_rows()
    parts = bin_parts([X[:1500], X[1500:]])
    options = {"n_estimators": 10, "max_depth": depth, "growth": growth}
    fit_parted("fit_gradient_boosting", parts, [y[:1500], y[1500:]], **options)
    assert calls_per_tree(asked, 10) <= 2 * depth + 6
    splits = [item for item in asked if isinstance(item, round_shards.SplitNodes)]
    assert len(splits) <= 10 * depth


def test_a_bound_on_leaves_takes_about_a_call_a_level(asked):
    X, y = normal_rows()
    parts = bin_parts([X[:1500], X[1500:]])
    model = fit_parted(
        "fit_gradient_boosting",
        parts,
        [y[:1500], y[1500:]],
        n_estimators=5,
        max_leaf_nodes=31,
        max_depth=None,
    )
    splits = [item for item in asked if isinstance(item, round_shards.SplitNodes)]
    depth = max(tree.depth for tree in model.trees)
    assert len(splits) <= 5 * (depth + 2)


@pytest.mark.parametrize("name", ["numbers", "holes", "categories, weights"])
@pytest.mark.parametrize("n_parts", PARTS)
def test_any_number_of_partitions_gives_the_bytes(name, n_parts, tmp_path):
    columns, y, weight = TABLES[name]
    X, labels, weights = divided(TABLES[name], n_parts)
    for k, options in enumerate(({"max_depth": 6}, {"max_leaf_nodes": 9}, {"min_samples_leaf": 8})):
        options = {
            "n_estimators": 3,
            "growth": ("independent", "independent", "pooled")[k],
            **options,
        }
        full_model = pb.fit_gradient_boosting(columns, y, sample_weight=weight, **options)
        parted = fit_parted("fit_gradient_boosting", X, labels, sample_weight=weights, **options)
        assert contents(parted, tmp_path) == contents(full_model, tmp_path), options


@pytest.mark.parametrize("options", [{}, {"max_leaf_nodes": 50}, {"max_depth": 9}], ids=str)
def test_masses_that_have_no_room_are_asked_for_again(options, tmp_path, monkeypatch):
    monkeypatch.setattr("pboost.trees.tree_rounds.SLOT_BYTES", 1 << 17)
    X, y = normal_rows()
    options = {
        "n_estimators": 2,
        "max_depth": None if "max_leaf_nodes" in options else 7,
        **options,
    }
    full_model = pb.fit_gradient_boosting(
        pb.data.bin_columns(X), y, growth="independent", **options
    )
    parts = bin_parts([X[:1500], X[1500:]])
    parted = fit_parted(
        "fit_gradient_boosting", parts, [y[:1500], y[1500:]], growth="independent", **options
    )
    assert contents(parted, tmp_path) == contents(full_model, tmp_path)
