"""Trees on partitions: how many calls a tree takes, and bits with few rows sent or none."""

import numpy as np
import pytest
from partitioned import TABLES, bin_parts, contents, divided, fit_parted, send_few_rows

import pboost as pb
from pboost.distributed.engine import Serial
from pboost.distributed.tree_partitions import Queries

PARTS = (1, 2, 3, 5, 16)


def small_weights():
    """Return a table with weights so different that nodes refine them."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 4)), 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = np.where(rng.random(300) < 0.3, 1e-150, 10.0 ** -rng.integers(0, 14, 300))
    return pb.data.bin_columns(X, max_bins=40), rng.integers(0, 2, 300), weight


ALL = {**TABLES, "small weights": small_weights()}


def three_classes(table):
    columns, y, weight = table
    return columns, np.array(["u", "v", "x"])[(y == y[0]) * 1 + np.arange(len(y)) % 2], weight


def numbers(table):
    columns, y, weight = table
    return columns, np.random.default_rng(1).normal(size=len(y)) + columns.codes[1] / 5, weight


FITS = {
    "boosted": ("fit_boosted_tree", {"max_nodes": 25}, None),
    "boosted, look-ahead": ("fit_boosted_tree", {"max_nodes": None, "growth": "look_ahead"}, None),
    "boosted, to a target": ("fit_boosted_tree", {"target_certificate": 0.6}, None),
    "two classes": ("fit_cart", {"criterion": "entropy"}, None),
    "three classes": ("fit_cart", {"max_leaf_nodes": 12}, three_classes),
    "regression": ("fit_cart", {"task": "regression", "min_samples_leaf": 3}, numbers),
    "regression, best first": ("fit_cart", {"task": "regression", "max_leaf_nodes": 9}, numbers),
    "columns drawn": ("fit_cart", {"max_features": 1, "rng": 3}, None),
    "forest": ("fit_random_forest", {"n_estimators": 3, "rng": 0, "max_depth": 4}, None),
    "forest, three classes": (
        "fit_random_forest",
        {"n_estimators": 2, "rng": 0, "max_depth": 4},
        three_classes,
    ),
    "forest, regression": (
        "fit_random_forest",
        {"n_estimators": 2, "task": "regression", "rng": 0, "max_depth": 3},
        numbers,
    ),
}


@pytest.mark.parametrize("n_bytes", [0, 900])
@pytest.mark.parametrize("fit", FITS)
def test_bits_do_not_depend_on_what_is_sent(fit, n_bytes, tmp_path, monkeypatch):
    send_few_rows(monkeypatch, n_bytes)
    name, options, of = FITS[fit]
    at = list(FITS).index(fit)
    for k, table in enumerate([*ALL][at % 2 + (n_bytes > 0) :: 3]):
        given = ALL[table]
        columns, y, weight = of(given) if of else given
        X, labels, weights = divided((columns, y, weight), PARTS[(k + at) % len(PARTS)])
        if name == "fit_random_forest":  # whose bags are drawn by the numbers of rows
            columns = columns.select(np.concatenate(divided_rows(given, len(X))))
            y, weight = (None if of is None else np.concatenate(of) for of in (labels, weights))
        full = getattr(pb, name)(columns, y, sample_weight=weight, **options)
        parted = fit_parted(name, X, labels, sample_weight=weights, **options)
        assert contents(parted, tmp_path) == contents(full, tmp_path), table


def divided_rows(table, n_parts):
    """Return the rows of each partition, as `divided` divides them."""
    rows = np.arange(len(table[1]))
    return [part.astype(np.int32) for part in divided((table[0], rows, None), n_parts)[1]]


@pytest.fixture
def calls(monkeypatch):
    """Return the calls to shards, which are noted."""
    noted = []
    for name in ("ask", "masses"):
        monkeypatch.setattr(Serial, name, noting(noted, getattr(Serial, name)))
    return noted


def noting(noted, method):
    def call(engine, what, *more):
        noted.append(what if isinstance(what, str) else what[-1])
        return method(engine, what, *more)

    return call


def data(n=2000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)
    parts = np.array_split(np.arange(n), 3)
    columns = bin_parts([X[rows] for rows in parts], max_bins=20)
    return columns, [y[rows] for rows in parts]


GROWTHS = ("largest_bound", "largest_error", "look_ahead", "breadth_first")


@pytest.mark.parametrize("growth", GROWTHS)
def test_a_boosted_tree_takes_a_call_for_each_level(growth, calls, monkeypatch):
    send_few_rows(monkeypatch)
    columns, y = data()
    y, weights = [part > 0 for part in y], [np.exp(part) for part in y]
    for depth in (3, 6):
        for given in (None, weights):
            calls.clear()
            model = fit_parted(
                "fit_boosted_tree",
                columns,
                y,
                max_nodes=None,
                max_depth=depth,
                growth=growth,
                sample_weight=given,
            )
            assert model.n_nodes > 2 * depth
            assert len(calls) <= depth + 6


def test_trees_take_a_call_for_each_level_and_three_of_numbers(calls, monkeypatch):
    send_few_rows(monkeypatch)
    columns, y = data()
    classes = [np.digitize(part, [-1, 1]) for part in y]
    for growth in ("depth_first", "best_first"):
        for labels, task, limit in ((classes, None, 5 + 4), (y, "regression", 3 * 5 + 7)):
            calls.clear()
            tree = fit_parted("fit_cart", columns, labels, task=task, max_depth=5, growth=growth)
            assert tree.n_nodes > 40
            assert len(calls) <= limit


def test_trees_of_a_forest_share_their_calls(calls, monkeypatch):
    columns, y = data()
    send_few_rows(monkeypatch, 5000)
    fit_parted("fit_random_forest", columns, [part > 0 for part in y], n_estimators=8, rng=0)
    assert len(calls) < 40
    queries = [call.queries for call in calls if isinstance(call, Queries)]
    assert {query.tree for query in queries[0]} == set(range(8))


def test_few_rows_are_sent_at_once(calls):
    columns, y = data()
    tree = fit_parted("fit_cart", columns, [part > 0 for part in y])
    assert tree.n_nodes > 300
    assert len(calls) == 3
