"""Trees of rows in partitions: the bytes of the tree of one table, however its rows are divided."""

import re

import numpy as np
import pytest
from partitioned import PARTS, TABLES, contents, divided, fit_parted, send_few_rows
from reference import shards as twin

import pboost as pb
from pboost.distributed.tree_partitions import (
    NodeQuery,
    Queries,
    ShardArrays,
    Splits,
    TreeShard,
    begin,
)
from pboost.growth.tree import grow_tree
from pboost.threads import Workers
from pboost.trees.cart import TreeOptions, cart_limits
from pboost.values.options import filled

OPTIONS = {
    "whole": {},
    "entropy, shallow": {"criterion": "entropy", "max_depth": 3, "categorical_smoothing": 0.5},
    "best first": {"max_leaf_nodes": 9, "criterion": "error"},
    "prices": {
        "feature_costs": {0: 3.0, 1: 1.0, "both": 2.0},
        "cost_groups": {"both": [1, 2]},
        "max_depth": 5,
    },
    "columns drawn": {"min_samples_leaf": 7, "max_features": 2, "rng": 3},
}


def of_three(table):
    """Return a table with three labels, of which one column says something."""
    columns, y, weight = table
    label = np.array(["u", "v", "x"])[np.random.default_rng(0).integers(0, 3, len(y))]
    return columns, np.where(columns.codes[1] > columns.n_bins[1] // 2, "u", label), weight


def of_numbers(table):
    """Return a table with numbers to be predicted, of which one column says something."""
    columns, y, weight = table
    return columns, np.random.default_rng(1).normal(size=len(y)) + columns.codes[1] / 5, weight


def small_weights():
    """Return a table of weights so different that those of nodes are made anew, or too small."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 4)), 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = np.where(rng.random(300) < 0.3, 1e-280, 10.0 ** -rng.integers(0, 14, 300))
    return pb.data.bin_columns(X, max_bins=40), rng.integers(0, 2, 300), weight


ALL = {**TABLES, "small weights": small_weights()}


def both(table, n_parts, path, **options):
    """Return the bytes of the trees of one table and of partitions."""
    columns, y, weight = table
    if y.dtype.kind == "f":
        options = {**options, "task": "regression", "criterion": "squared_error"}
    X, labels, weights = divided(table, n_parts)
    full_model = pb.fit_cart(columns, y, sample_weight=weight, **options)
    parted = fit_parted("fit_cart", X, labels, sample_weight=weights, **options)
    return contents(full_model, path), contents(parted, path)


@pytest.mark.parametrize("name", ALL)
def test_partitions_give_the_bytes_of_one_table(name, tmp_path):
    table = ALL[name]
    for given, sizes in ((table, PARTS), (of_three(table), (5,)), (of_numbers(table), (1, 16))):
        for n_parts in sizes:
            full, parted = both(given, n_parts, tmp_path, min_samples_leaf=2, max_depth=6)
            assert parted == full, n_parts


@pytest.mark.parametrize("options", OPTIONS)
def test_options_mean_what_they_mean_of_one_table(options, tmp_path):
    for name in ("numbers", "small weights", "categories, weights"):
        for table in (ALL[name], of_three(ALL[name]), of_numbers(ALL[name])):
            full, parted = both(table, 3, tmp_path, **OPTIONS[options])
            assert parted == full, name


def test_order_threads_and_memory_do_not_matter(tmp_path, monkeypatch):
    X, y, weights = divided(of_three(ALL["holes"]), 5)
    actual = {"depth_first": set(), "best_first": set()}
    send_few_rows(monkeypatch)
    for k, n_threads, limit in ((1, 1, 1 << 28), (-1, 2, 1 << 28), (1, 4, 1)):
        monkeypatch.setattr("pboost.distributed.tree_partitions.MOST_KEPT", limit)
        for growth in actual:
            tree = fit_parted(
                "fit_cart",
                X[::k],
                y[::k],
                sample_weight=weights[::k],
                n_threads=n_threads,
                growth=growth,
            )
            actual[growth].add(contents(tree, tmp_path))
    assert [len(trees) for trees in actual.values()] == [1, 1]


def test_numbers_of_any_size_in_any_order(tmp_path):
    columns, y, weight = of_numbers(ALL["small weights"])
    exact = pb.data.bin_columns(columns.codes[:1].T.astype(float))
    cases = {"huge": 1e140 * y, "one apart": np.where(np.arange(len(y)) == 7, 1e9, 0.1 + 1e-9 * y)}
    for name, numbers in {**cases, "equal": np.full(len(y), 0.1)}.items():
        for columns_here, weight_here in ((columns, weight), (exact, None)):
            full, parted = both((columns_here, numbers, weight_here), 5, tmp_path)
            assert parted == full, name
        tree = pb.fit_cart(exact, numbers, task="regression")
        np.testing.assert_allclose(tree.value[0], np.mean(numbers), rtol=1e-14)
        np.testing.assert_allclose(tree.impurity[0], np.var(numbers), rtol=1e-13, atol=1e-30)


def test_sums_of_targets_do_not_depend_on_the_order_of_rows(tmp_path):
    columns, y, weight = of_numbers(TABLES["holes"])
    actual = set()
    for seed in range(6):
        rows = np.random.default_rng(seed).permutation(len(y)).astype(np.int32)
        tree = pb.fit_cart(
            columns.select(rows), y[rows], task="regression", sample_weight=weight[rows]
        )
        actual.add(contents(tree, tmp_path))
    assert len(actual) == 1


def grown(table, n_parts):
    """Return the shards of a table, and what they were told while a tree grew."""
    columns, y, weights = divided(table, n_parts)
    rows, workers = pb.partitions(columns, y, sample_weight=weights), Workers(1)
    values = rows.targets("classification")
    engine = rows.shards(TreeShard, values, 1, each=[(len(values),)] * len(rows.sizes))
    problem = rows.trees("classification", "auto")
    options = filled(TreeOptions, {"criterion": "gini", "max_depth": 4})
    limits, key = cart_limits(problem, options), 0
    data, n = begin(engine, problem, rows.is_weighed)
    arrays = ShardArrays(data, n, limits, key, engine)
    grow_tree(arrays, workers, None)
    return engine._shards, arrays, data


def test_answers_are_those_of_the_twin(monkeypatch):
    send_few_rows(monkeypatch)
    table = of_three(TABLES["holes, no weights"])
    columns, y, _ = table
    shards, arrays, data = grown(table, 3)
    told = [item for item in arrays.calls.commands if isinstance(item, Splits)]
    splits = [split for item in told for split in zip(*item[1:], strict=True)]
    ahead = arrays.ahead
    leaf = np.flatnonzero(ahead.node["child"][: ahead.n_nodes] < 0)[2:3].astype(np.int32)
    query = NodeQuery("cells", 0, leaf, np.zeros(1, dtype=np.int32), np.empty((1, 0)))
    log = [*arrays.calls.commands, *arrays._untold, Queries([query])]
    answers = [shard.masses(log) for shard in shards]
    splits += [split for item in arrays._untold for split in zip(*item[1:], strict=True)]
    rows = twin.rows_at(columns.codes, splits, leaf[0])
    label = np.searchsorted(np.unique(y), y)
    fixed = np.full(len(y), int(data.scale))
    n_codes = int((columns.n_bins + columns.special).max())
    want = twin.node_cells(columns.codes, label, fixed, n_codes, 3, rows)
    assert 0 < len(rows) == ahead.sizes(leaf)[0]
    np.testing.assert_array_equal(TreeShard.merge(answers).total, want.ravel())


@pytest.mark.parametrize(
    ("n_bytes", "kinds"), [(0, {"masses", "heaviest", "cells"}), (400, {"cells", "rows"})]
)
def test_a_shard_that_lost_its_nodes_replays_the_splits(n_bytes, kinds, monkeypatch):
    send_few_rows(monkeypatch, n_bytes)
    shards, arrays, data = grown(ALL["small weights"], 2)
    told = arrays.calls.commands
    asked = [k for k, item in enumerate(told) if isinstance(item, Queries)]
    shards[0].begin(data.weight_exponent, data.scale)
    assert len(asked) > 4
    assert kinds == {query.what for k in asked for query in told[k].queries}
    seen = [shards[0].masses(told[: k + 1]) for k in asked]
    for k, answer in zip(asked[::2], seen[::2], strict=True):
        shards[0].begin(data.weight_exponent, data.scale)
        again = shards[0].masses(told[: k + 1])
        assert again.total.tobytes() == answer.total.tobytes()
        assert again.maxima.tobytes() == answer.maxima.tobytes()
        assert [len(item.y) for item in again.rows] == [len(item.y) for item in answer.rows]


def test_callbacks_see_what_they_see_of_one_table():
    columns, label, _ = TABLES["categories"]
    X, y, _ = divided(TABLES["categories"], 4)
    seen = [[], []]

    def note(to):
        return lambda step, record: to.append((step, record)) or step == 4

    first_model = pb.fit_cart(columns, label, callback=note(seen[0]))
    other = fit_parted("fit_cart", X, y, callback=note(seen[1]))
    assert seen[0] == seen[1]
    assert len(seen[0]) == 4
    assert first_model.stop_reason == other.stop_reason == "stopped by the callback"


def test_trees_are_pruned_as_those_of_one_table(tmp_path):
    columns, y, _ = TABLES["numbers"]
    X, labels, _ = divided(TABLES["numbers"], 3)
    full, parted = pb.fit_cart(columns, y), fit_parted("fit_cart", X, labels)
    ccp_alpha = float(np.median(pb.models.cost_complexity_pruning_path(full).ccp_alpha))
    pruned = pb.prune(parted, ccp_alpha)
    assert 1 < pruned.n_nodes < parted.n_nodes
    assert contents(pruned, tmp_path) == contents(pb.prune(full, ccp_alpha), tmp_path)


REFUSED = {
    "labels": ({"task": "regression"}, TypeError, "partition 0: y: expected numbers, got"),
    "no holes": ({"missing": "error"}, ValueError, "expected finite numbers, got missing values"),
    "criterion": ({"criterion": "chaos"}, ValueError, "criterion: expected one of"),
    "task": (
        {"task": "classification", "criterion": "squared_error"},
        ValueError,
        "criterion: expected",
    ),
    "of two": (
        {"criterion": "kearns_mansour"},
        ValueError,
        'expected two classes with "kearns_mansour", got 3',
    ),
    "leaves": (
        {"max_leaf_nodes": 4, "growth": "depth_first"},
        ValueError,
        "max_leaf_nodes: expected None",
    ),
    "smoothing": ({"categorical_smoothing": -1.0}, ValueError, "categorical_smoothing"),
    "search": ({"search": "exact"}, NotImplementedError, "rows.gather()"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what):
    X, y, _ = divided(of_three(TABLES["holes"]), 2)
    options, kind, said = REFUSED[what]
    with pytest.raises(kind, match=re.escape(said)):
        fit_parted("fit_cart", X, y, **options)


def test_labels_of_partitions_are_checked():
    X, y, _ = divided(TABLES["numbers"], 2)
    numbers = [1.0 * y[0], np.full(len(y[1]), np.inf)]
    with pytest.raises(ValueError, match="partition 1: y: expected finite numbers up to 1e"):
        fit_parted("fit_cart", X, numbers, task="regression")
    with pytest.raises(ValueError, match=r"partition 1: y: expected \d+ numbers"):
        fit_parted("fit_cart", X, [y[0], y[1][1:]], task="regression")
    with pytest.raises(ValueError, match="expected at least two classes, got only 0"):
        fit_parted("fit_cart", X, [0 * part for part in y])
    with pytest.raises(ValueError, match="y: expected 2 partitions, as in X, got 1"):
        fit_parted("fit_cart", X, y[:1])
