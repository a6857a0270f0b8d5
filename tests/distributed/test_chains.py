"""Fits on partitions: the bits of the fit on one table, for every way to divide its rows."""

import re

import numpy as np
import pytest
from partitioned import PARTS, TABLES, contents, divided, fit_parted
from reference import shards as twin

import pboost as pb
from pboost.data.columns.columns import to_fixed_point
from pboost.distributed.engine import Serial, merge
from pboost.distributed.graph_partitions import SentCut, Shard, begin
from pboost.threads import Workers

OBSERVATIONS = {
    "flip": pb.observation.flip(0.1),
    "uniform": pb.observation.uniform(),
    "adatree2": pb.observation.adatree2(),
}


def both(table, n_parts, path, **options):
    """Return the bytes of the fits on one table and on partitions."""
    columns, y, weight = table
    X, labels, weights = divided(table, n_parts)
    full_model = pb.fit_adaboost(columns, y, sample_weight=weight, **options)
    parted = fit_parted("fit_adaboost", X, labels, sample_weight=weights, **options)
    assert parted.n_nodes == full_model.n_nodes
    return contents(full_model, path), contents(parted, path)


@pytest.mark.parametrize("name", TABLES)
def test_partitions_give_the_bytes_of_one_table(name, tmp_path):
    for n_parts in PARTS:
        full, parted = both(TABLES[name], n_parts, tmp_path, n_estimators=8)
        assert parted == full, n_parts


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_observations_of_tables(observation, tmp_path):
    for name in ("weights", "holes", "categories"):
        options = {"n_estimators": 6, "observation": OBSERVATIONS[observation]}
        full, parted = both(TABLES[name], 5, tmp_path, **options)
        assert parted == full, name


@pytest.mark.parametrize("criterion", ["gini", "entropy", "error"])
def test_criteria_and_limits(criterion, tmp_path):
    weak = pb.weak.stump(
        criterion, min_samples_leaf=30, min_weight_fraction=0.1, categorical_smoothing=0.5
    )
    for name in ("ties", "holes", "categories, weights"):
        options = {
            "n_estimators": 8,
            "weak_learner": weak,
            "votes": "symmetric",
            "learning_rate": 0.5,
        }
        full, parted = both(TABLES[name], 3, tmp_path, **options)
        assert parted == full, name


def test_threads_and_the_order_of_partitions_do_not_matter(tmp_path):
    X, y, weights = divided(TABLES["weights"], 5)
    actual = {
        contents(
            fit_parted(
                "fit_adaboost",
                X[::k],
                y[::k],
                sample_weight=weights[::k],
                n_estimators=6,
                n_threads=n_threads,
            ),
            tmp_path,
        )
        for k in (1, -1)
        for n_threads in (1, 2, 4)
    }
    assert len(actual) == 1


def test_weights_near_a_power_of_two_in_any_order(tmp_path):
    # Their float sums are 8, or just below it, depending on the order.
    weight = np.array([0.1, 0.7, 0.2, 0.9, 0.1, 0.3, 0.6, 1.1, 0.4, 0.6, 1.9, 1.1])
    y = np.arange(12) % 3 == 0
    columns = pb.data.bin_columns((np.arange(12.0) % 5)[:, None])
    sums, actual = set(), set()
    for seed in range(12):
        rows = np.random.default_rng(seed).permutation(12).astype(np.int32)
        sums.add(float(np.frexp(np.cumsum(weight[rows])[-1])[1]))
        model = pb.fit_adaboost(
            columns.select(rows),
            y[rows],
            sample_weight=weight[rows],
            n_estimators=2,
            observation=pb.observation.adatree2(),
        )
        actual.add(contents(model, tmp_path))
    assert len(sums) == 2
    assert len(actual) == 1


def shards_of(table, n_parts):
    columns, label, weights = divided(table, n_parts)
    weights_of_parts = weights or [None] * n_parts
    label = [np.asarray(part == "yes" if part.dtype.kind == "U" else part) for part in label]
    workers = Workers(1)
    return [
        Shard(c, part.astype(np.uint8), w, workers)
        for c, part, w in zip(columns, label, weights_of_parts, strict=True)
    ]


def some_cuts(columns, n):
    rng = np.random.default_rng(n)
    return [
        SentCut(
            int(rng.integers(columns.n_features)),
            (np.arange(256) > rng.integers(columns.n_bins.min())).astype(np.uint8),
            rng.uniform(0.5, 1.5, (2, 2)),
        )
        for _ in range(n)
    ]


def test_masses_are_those_of_the_twin():
    columns, y, _ = TABLES["holes, no weights"]
    rows = np.arange(40, dtype=np.int32)
    some = columns.select(rows), y[:40], None
    cuts = some_cuts(columns, 3)
    scale, _ = to_fixed_point(np.ones(40))
    n_codes = columns.n_bins + columns.special
    sent = [(c.feature, c.side, c.factors) for c in cuts]
    want = twin.edge_masses(some[0].codes, y[:40], np.ones(40), scale, n_codes, sent)
    shards = shards_of(some, 3)
    begin(Serial(shards), is_weighed=False)
    np.testing.assert_array_equal(merge([shard.masses(cuts) for shard in shards]), want)


def test_a_shard_that_lost_its_weights_replays_the_cuts():
    for name in ("holes", "numbers"):
        cuts = some_cuts(TABLES[name][0], 9)
        kept, lost = shards_of(TABLES[name], 2), shards_of(TABLES[name], 2)
        is_weighed = TABLES[name][2] is not None
        begin(Serial(kept), is_weighed)
        begun = begin(Serial(lost), is_weighed)
        for k in range(10):
            seen = [shard.masses(cuts[:k]) for shard in kept]
        lost[0].masses(cuts[:4])
        lost[0].begin(begun.exponent, begun.scale)
        again = [shard.masses(cuts) for shard in lost]
        np.testing.assert_array_equal(again, seen)


def test_callbacks_stop_and_see_what_they_see_of_one_table():
    X, y, _ = divided(TABLES["categories"], 4)
    columns, label, _ = TABLES["categories"]
    seen = [[], []]

    def note(to):
        return lambda step, record: to.append((step, record)) or step == 4

    first_model = pb.fit_adaboost(columns, label, n_estimators=9, callback=note(seen[0]))
    parted_model = fit_parted("fit_adaboost", X, y, n_estimators=9, callback=note(seen[1]))
    assert seen[0] == seen[1]
    assert len(seen[0]) == 4
    assert (
        first_model.record.stop_reason
        == parted_model.record.stop_reason
        == "stopped by the callback"
    )


def test_growth_ends_as_on_one_table(tmp_path):
    pure = pb.data.bin_columns(np.arange(6.0)[:, None]), np.array([0, 0, 0, 1, 1, 1]), None
    for table in (pure, (pb.data.bin_columns(np.zeros((4, 2))), np.array([0, 1, 1, 1]), None)):
        full, parted = both(table, 2, tmp_path, n_estimators=5)
        assert parted == full


def changed(kind):
    """Return arguments of which one is wrong, and what the error says."""
    X, y, weights = divided(TABLES["weights"], 3, seed=1)
    first, second, third = X
    four_columns = pb.data.bin_columns(np.ones((len(y[1]), 4)))
    holed = TABLES["holes"][0].select(np.arange(len(y[1]), dtype=np.int32))
    return {
        "not a list": ((first, y[0]), {}, TypeError, "X: expected a list with one entry per part"),
        "none": (([], []), {}, ValueError, "X: expected at least one partition"),
        "values": (([first, np.ones((3, 5))], y[:2]), {}, TypeError, "got ndarray in partition 1"),
        "columns": (([first, four_columns], y[:2]), {}, ValueError, "number of columns (5, 4)"),
        "bins": (
            ([first, pb.data.bin_columns(np.ones((9, 5)))], y[:2]),
            {},
            ValueError,
            "partition 1 differs",
        ),
        "holes": (([first, holed], y[:2]), {}, ValueError, "the features with missing values"),
        "labels of fewer": ((X, y[:2]), {}, ValueError, "y: expected 3 partitions, as in X, got 2"),
        "length": ((X, [y[0], y[1][:-1], y[2]]), {}, ValueError, "partition 1: y: expected"),
        "NaN": (
            ([first, second, third], [y[0], y[1], np.full(len(y[2]), np.nan)]),
            {},
            ValueError,
            "partition 2: y: missing label in row 0",
        ),
        "kinds": (
            (X, [y[0], y[1].astype(str), y[2]]),
            {},
            TypeError,
            "labels of one kind in all",
        ),
        "one label": ((X, [0 * part for part in y]), {}, ValueError, "at least two classes"),
        "weight of some": (
            (X, y),
            {"sample_weight": [*weights[:2], None]},
            ValueError,
            "None for partition 2",
        ),
        "weights of 0": (
            (X, y),
            {"sample_weight": [0 * w for w in weights]},
            ValueError,
            "all are zero",
        ),
        "weights of one class": (
            (X, y),
            {"sample_weight": [w * part for w, part in zip(weights, y, strict=True)]},
            ValueError,
            "expected both classes to have positive weight",
        ),
        "negative weight": (
            (X, y),
            {"sample_weight": [weights[0], weights[1] - 1, weights[2]]},
            ValueError,
            "partition 1: sample_weight: expected finite numbers >= 0",
        ),
        "weights too different": (
            (X, y),
            {"sample_weight": [np.full(len(y[0]), 1e-300), *(w * 1e300 for w in weights[1:])]},
            ValueError,
            "differ by more than floating point can hold",
        ),
        "exact search": (
            (X, y),
            {"weak_learner": pb.weak.stump(search="exact")},
            NotImplementedError,
            "rows.gather()",
        ),
        "fewer bins": (
            (X, y),
            {"weak_learner": pb.weak.stump(max_bins=4)},
            ValueError,
            "max_bins=4",
        ),
        "affine": ((X, y), {"weak_learner": pb.weak.affine()}, NotImplementedError, "weak.stump()"),
        "gaussian": (
            (X, y),
            {"observation": pb.observation.gaussian(0.1)},
            NotImplementedError,
            "rows.gather()",
        ),
        "rounds": ((X, y), {"n_estimators": 0}, ValueError, "n_estimators"),
        "unknown": ((X, y), {"num_boost_round": 5}, TypeError, "n_estimators"),
    }[kind]


@pytest.mark.parametrize(
    "what",
    [
        "not a list",
        "none",
        "values",
        "columns",
        "bins",
        "holes",
        "labels of fewer",
        "length",
        "NaN",
        "kinds",
        "one label",
        "weight of some",
        "weights of 0",
        "weights of one class",
        "negative weight",
        "weights too different",
        "exact search",
        "fewer bins",
        "affine",
        "gaussian",
        "rounds",
        "unknown",
    ],
)
def test_what_is_refused(what):
    (X, y), options, kind, message = changed(what)
    with pytest.raises(kind, match=re.escape(message)):
        fit_parted("fit_adaboost", X, y, **options)
