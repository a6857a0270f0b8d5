"""Forests of rows in partitions: the bytes of the forest of one table, its record with them."""

import pickle
import re

import numpy as np
import pytest
from partitioned import TABLES, bin_parts, contents, continue_parted, fit_parted

import pboost as pb
from pboost.distributed.trees import BagShard
from pboost.trees.parallel_members import Tally

OPTIONS = {
    "subsamples": {"bootstrap": False, "max_samples": 0.4},
    "all rows": {"bootstrap": False},
    "few": {"max_samples": 7},
    "limits": {"max_depth": 3, "min_samples_leaf": 5, "criterion": "entropy"},
    "leaves": {"max_leaf_nodes": 5, "max_features": None},
    "prices": {"feature_costs": {0: 2.0, 1: 1.0}},
}


def of_numbers(table):
    columns, y, weight = table
    numbers = np.random.default_rng(0).normal(size=len(y)) * 1e3 + (y == y[0])
    return columns, numbers, weight


def both(table, n_parts, path, **options):
    """Return the bytes of the forests of one table and of partitions of it, some of them empty."""
    columns, y, weight = table
    at = np.sort(np.random.default_rng(n_parts).integers(0, len(y) + 1, n_parts - 1))
    rows = np.split(np.arange(len(y), dtype=np.int32), at)
    options = {"n_estimators": 4, "rng": 3, **options}
    full_model = pb.fit_random_forest(columns, y, sample_weight=weight, **options)
    parted = fit_parted(
        "fit_random_forest",
        [columns.select(of) for of in rows],
        [y[of] for of in rows],
        sample_weight=None if weight is None else [weight[of] for of in rows],
        **options,
    )
    return contents(full_model, path), contents(parted, path)


@pytest.mark.full_for("numbers", "ties", "weights", "weights that add up to 1")
@pytest.mark.parametrize("name", TABLES)
def test_partitions_give_the_bytes_of_one_table(name, tmp_path):
    for n_parts in (1, 2, 5, 16):
        full, parted = both(TABLES[name], n_parts, tmp_path)
        assert parted == full, n_parts
    full, parted = both(of_numbers(TABLES[name]), 3, tmp_path, task="regression", n_estimators=2)
    assert parted == full


@pytest.mark.parametrize("options", OPTIONS)
def test_options_mean_what_they_mean_of_one_table(options, tmp_path):
    for name in ("holes, no weights", "categories, weights"):
        full, parted = both(TABLES[name], 3, tmp_path, **OPTIONS[options])
        assert parted == full, name


def test_more_labels_than_two(tmp_path):
    columns, y, weight = TABLES["weights"]
    three = np.array(["a", "b", "c"])[(y + np.arange(len(y)) // 90) % 3]
    full, parted = both((columns, three, weight), 4, tmp_path)
    assert parted == full


def test_a_callback_is_told_of_members_and_may_stop():
    columns, y, _ = TABLES["numbers"]
    told = []
    forest = fit_parted(
        "fit_random_forest",
        [columns],
        [y],
        n_estimators=9,
        rng=0,
        callback=lambda step, record: told.append(record.oob_error) or step == 3,
    )
    assert len(forest) == len(told) == 3
    assert told[-1] == forest.oob.error


@pytest.fixture
def in_parts():
    """Rows in three partitions, and the forest of three trees of one table."""
    columns, y, weight = TABLES["categories, weights"]
    rows = np.split(np.arange(len(y), dtype=np.int32), [90, 200])
    parts = [columns.select(of) for of in rows], [y[of] for of in rows]
    source = pb.partitions(*parts, sample_weight=[weight[of] for of in rows])
    return source, pb.fit_random_forest(columns, y, sample_weight=weight, n_estimators=3, rng=3)


def test_the_record_of_each_row_is_made_when_it_is_read(in_parts):
    source, full = in_parts
    forest = pb.fit_random_forest(source, n_estimators=3, rng=3)
    assert forest.oob.error == full.oob.error
    assert not hasattr(forest.oob, "found")
    np.testing.assert_array_equal(forest.oob.prediction, full.oob.prediction)
    np.testing.assert_array_equal(forest.oob.n_estimators, full.oob.n_estimators)
    again = pickle.loads(pickle.dumps(pb.fit_random_forest(source, n_estimators=3, rng=3)))
    np.testing.assert_array_equal(again.oob.prediction, full.oob.prediction)


@pytest.mark.parametrize("at", [2, 4])
def test_a_partition_that_begins_anew_hears_of_all_trees(in_parts, monkeypatch, at):
    source, full = in_parts
    tallied, calls = BagShard.tallied, iter(range(99))

    def forgetful(shard, *given):
        if next(calls) == at:
            shard._n_told, shard._bags, shard._tally = 0, [], Tally(shard._y, shard._whole, 2)
        return tallied(shard, *given)

    monkeypatch.setattr(BagShard, "tallied", forgetful)
    forest = pb.fit_random_forest(
        source, n_estimators=3, rng=3, callback=lambda step, record: False
    )
    assert forest.oob.error == full.oob.error
    np.testing.assert_array_equal(forest.oob.prediction, full.oob.prediction)


@pytest.mark.parametrize("name", ["categories, weights", "holes", "numbers"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_forest_goes_on_in_partitions(name, task, tmp_path):
    columns, y, weight = TABLES[name] if task == "classification" else of_numbers(TABLES[name])
    options = {"rng": 3, "task": task, "max_depth": 4}
    first = pb.fit_random_forest(columns, y, sample_weight=weight, n_estimators=2, **options)
    full_model = pb.continue_fit(first, columns, y, n_estimators=3, sample_weight=weight)

    def continued(rows):
        return continue_parted(
            first,
            [columns.select(of) for of in rows],
            [y[of] for of in rows],
            sample_weight=None if weight is None else [weight[of] for of in rows],
            n_estimators=3,
        )

    for n_parts in (1, 2, 3, 5, 16):
        rows = np.array_split(np.arange(len(y), dtype=np.int32), n_parts)
        assert contents(continued(rows), tmp_path) == contents(full_model, tmp_path)
    with pytest.raises(ValueError, match="expected the rows of the first fit in the same order"):
        continued(rows[::-1])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_estimators": 0}, ValueError, "n_estimators"),
        ({"max_samples": 0.0}, ValueError, "max_samples"),
        ({"max_samples": 500, "bootstrap": False}, ValueError, "max_samples: expected at most 300"),
        ({"task": "classification", "criterion": "squared_error"}, ValueError, "criterion"),
        ({"search": "exact"}, NotImplementedError, "search"),
        ({"bootstrap": 1}, TypeError, "bootstrap"),
    ],
    ids=str,
)
def test_what_is_refused(options, error, message):
    columns, y, _ = TABLES["numbers"]
    with pytest.raises(error, match=re.escape(message)):
        fit_parted("fit_random_forest", [columns], [y], **options)


def test_targets_of_rows_of_weight_0_have_no_effect():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(60, 2)), np.ones(60)
    y = 1e-10 * (X[:, 0] + rng.normal(size=60))
    weight[7], large = 0.0, y.copy()
    large[7] = 1e150
    parts = bin_parts([X[:20], X[20:]])
    first, other = (
        fit_parted(
            "fit_random_forest",
            parts,
            [of[:20], of[20:]],
            task="regression",
            n_estimators=3,
            rng=0,
            sample_weight=[weight[:20], weight[20:]],
        )
        for of in (y, large)
    )
    assert len(np.unique(pb.predict(first, X))) > 5
    np.testing.assert_array_equal(pb.predict(first, X), pb.predict(other, X))
