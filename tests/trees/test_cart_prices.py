"""Trees and forests of columns that have prices, against the twin and ledgers in dictionaries."""

import numpy as np
import pytest
from carts import assert_equals_twin, assert_identical, targets
from reference.cart import fit_cart
from reference.problems import random_matrix, random_weight
from reference.sort import bin_edges

import pboost as pb
from pboost import threads
from pboost.data.feature_costs import read_feature_costs

TASKS = [
    (2, "gini"),
    (2, "entropy"),
    (2, "error"),
    (2, "kearns_mansour"),
    (3, "gini"),
    (4, "entropy"),
    (3, "error"),
    (0, "squared_error"),
]
PRICES = {
    "feature_costs": [1.0, 20.0, 3.0, 0.0, 7.5],
    "cost_groups": {"blood": [1, 2]},
    "comparison_cost": 0.4,
}
BOUGHT, COSTS = ["a", "blood", "blood", "d", "e"], {"a": 1.0, "blood": 20.0, "d": 0.0, "e": 7.5}


def options_of(rng, d):
    """Return random prices, of columns and of groups with and without a name."""
    feature_costs = rng.choice([0.0, 1.0, 2.5, 7.0], d).tolist()
    prices = {
        "feature_costs": feature_costs,
        "cost_groups": None,
        "comparison_cost": float(rng.choice([0.01, 1.0, 3.0])),
    }
    if d > 2 and rng.random() < 0.6:
        prices["feature_costs"] = [*([j, p] for j, p in enumerate(feature_costs)), ["both", 2.5]]
        prices["cost_groups"] = {"both": [0, d - 1]} | (
            {"third": [1]} if rng.random() < 0.5 else {}
        )
    if rng.random() < 0.2:
        prices["comparison_cost"] = None
    return prices


def of_task(n_classes, criterion):
    return {"criterion": criterion, "task": "classification" if n_classes else "regression"}


def noisy(seed=0, n=300, labels=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).round(1)
    score = 0.5 * X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 4]) + 0.5 * X[:, 3]
    return X, np.searchsorted(np.quantile(score, np.arange(1, labels) / labels), score)


@pytest.mark.parametrize(("n_classes", "criterion"), TASKS)
@pytest.mark.parametrize("max_bins", [None, 5])
def test_each_cut_is_the_best_for_its_price(n_classes, criterion, max_bins):
    differ = 0
    for case in range(12):
        rng = np.random.default_rng([81, case, n_classes])
        n, d = int(rng.choice([12, 30, 70])), int(rng.integers(2, 6))
        X, weight = random_matrix(rng, n, d), random_weight(rng, n)
        y = targets(rng, X, n_classes)
        weight = weight if weight is not None and weight.any() else np.ones(n)
        prices, used = options_of(rng, d), weight > 0
        options = {
            "min_samples_leaf": int(rng.choice([1, 3])),
            "max_depth": int(rng.choice([2, 9])),
        }
        search = {"search": "exact"}
        if max_bins is not None:
            options["edges"] = bin_edges(X[used], weight[used], max_bins)
            search = {"search": "binned", "max_bins": max_bins}
        if case % 3 == 0:
            options["max_leaf_nodes"] = 4
        known = {"criterion": criterion, "n_classes": n_classes, "sample_weight": weight}
        twin = fit_cart(X, y, feature_costs=read_feature_costs(prices, None, d), **known, **options)
        plain = fit_cart(X, y, **known, **options)
        options.pop("edges", None)
        tree = pb.fit_cart(
            X,
            y,
            sample_weight=weight,
            **of_task(n_classes, criterion),
            **search,
            **options,
            **prices,
        )
        assert_equals_twin(tree, twin, case)
        differ += [node.feature for node in twin] != [node.feature for node in plain]
    assert differ >= 4


@pytest.mark.parametrize(("n_classes", "criterion"), TASKS)
@pytest.mark.parametrize("search", ["exact", "binned"])
def test_prices_that_are_nothing_are_no_prices(n_classes, criterion, search):
    rng = np.random.default_rng([82, n_classes])
    X = random_matrix(rng, 200, 6)
    y = targets(rng, X, n_classes)
    X[rng.random((200, 6)) < 0.1] = np.nan
    X[:, 5] = rng.integers(0, 12, 200)
    options = {
        "categorical_features": [5],
        "search": search,
        "max_features": 3,
        "rng": 1,
        "max_leaf_nodes": 20,
        **of_task(n_classes, criterion),
    }
    plain = pb.fit_cart(X, y, **options)
    for prices in ({"feature_costs": [0] * 6}, {"feature_costs": [0] * 6, "comparison_cost": 7.0}):
        assert_identical(plain, pb.fit_cart(X, y, **options, **prices))


@pytest.mark.parametrize("labels", [2, 3])
def test_a_row_pays_for_what_is_on_its_way(labels):
    X, y = noisy(1, labels=labels)
    tree = pb.fit_cart(X, y, max_depth=5, **PRICES)
    plain = pb.fit_cart(X, y, max_depth=5)

    def ledger_of(row):
        ledger, node = {}, 0
        while tree.feature[node] >= 0:
            name = BOUGHT[tree.feature[node]]
            ledger[name] = COSTS[name]
            node = tree.children[node, int(row[tree.feature[node]] > tree.threshold[node])]
        return ledger

    cost = pb.prediction_cost(tree, X, unit="feature_cost")
    assert cost.tolist() == [sum(ledger_of(row).values()) for row in X]
    prices = {name: PRICES[name] for name in ("feature_costs", "cost_groups")}
    assert cost.mean() < 0.9 * pb.prediction_cost(plain, X, unit="feature_cost", **prices).mean()
    assert tree.settings["feature_costs"] == PRICES["feature_costs"]


def test_of_columns_that_gain_nothing_the_cheapest_is_cut():
    X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    for feature_costs, first in (([1, 5], 0), ([5, 1], 1), ([2, 2], 0)):
        tree = pb.fit_cart(X, y, feature_costs=feature_costs)
        assert tree.feature[0] == first
        assert pb.predict(tree, X).tolist() == y


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_sets_of_levels_and_missing_values_are_paid_for(n_classes):
    rng = np.random.default_rng([83, n_classes])
    X = rng.integers(0, 6, (300, 4)).astype(float)
    X[rng.random(300) < 0.2, 1] = np.nan
    X[:, 2] = X[:, 0]
    y = targets(rng, X[:, [0, 3]], n_classes)
    options = {"categorical_features": [0, 2], "max_depth": 4}
    task = "classification" if n_classes else "regression"
    tree = pb.fit_cart(X, y, task=task, feature_costs=[9, 1, 2, 1], **options)
    columns = {int(c) for c in tree.column[tree.feature >= 0]}
    assert 0 not in columns
    assert 2 in columns
    twice = pb.fit_cart(
        X, y, task=task, feature_costs=[9, 1, 2, 1], cost_groups=[[1, 2]], **options
    )
    assert pb.prediction_cost(twice, X, unit="feature_cost").max() <= 3.0


def test_threads_change_nothing(monkeypatch):
    X, y = noisy(3, n=2000)
    for search in ("exact", "binned"):
        options = {"search": search, "max_bins": 40, "max_leaf_nodes": 40, **PRICES}
        first_model = pb.fit_cart(X, y, n_threads=1, **options)
        with monkeypatch.context() as at:
            at.setattr(threads, "MIN_CELLS", 1)
            assert_identical(first_model, pb.fit_cart(X, y, n_threads=3, **options))
        del options["max_leaf_nodes"]
        forest = [
            pb.fit_random_forest(X, y, n_estimators=3, rng=1, n_threads=k, **options)
            for k in (1, 2)
        ]
        for tree, same_tree in zip(*forest, strict=True):
            assert_identical(tree, same_tree)


def test_forests_read_what_is_cheap_and_go_on():
    X, y = noisy(4, n=500)
    X = np.column_stack([X, X])  # of each column a dear copy
    options = {"max_features": None, "max_depth": 4, "rng": 2}
    prices = {"feature_costs": [1] * 5 + [4] * 5}
    forest = pb.fit_random_forest(X, y, n_estimators=5, **options, **prices)
    assert max(int(tree.feature.max()) for tree in forest) < 5
    assert pb.prediction_cost(forest, X, unit="feature_cost").max() <= 5
    more = pb.continue_fit(
        pb.fit_random_forest(X, y, n_estimators=3, **options, **prices), X, y, n_estimators=2
    )
    for tree, same_tree in zip(forest, more, strict=True):
        assert_identical(tree, same_tree)
    wide = noisy(5, n=200)  # few of many columns: orders are made of ranks at the nodes
    X = np.tile(wide[0], 8)
    prices = {"feature_costs": np.repeat([9.0, 1.0], 20).tolist(), "max_features": 6, "rng": 0}
    dear = pb.fit_random_forest(X, wide[1], n_estimators=4, max_features=6, rng=0)
    forest = pb.fit_random_forest(X, wide[1], n_estimators=4, **prices)

    def first(model):
        return np.concatenate([tree.feature[tree.feature >= 0] < 20 for tree in model]).mean()

    assert first(forest) < 0.7 * first(dear)


def test_pruning_takes_prices():
    X, y = noisy(6)
    tree = pb.fit_pruned_cart(X, y, cv=3, rng=0, feature_costs=[1, 1, 1, 1, 1000])
    assert 4 not in tree.feature[:1]
    assert tree.settings["feature_costs"] == [1, 1, 1, 1, 1000]


@pytest.mark.parametrize(
    ("prices", "error", "message"),
    [
        (
            {"feature_costs": [1, 2]},
            ValueError,
            "feature_costs: expected 5 numbers, one per feature, got 2",
        ),
        ({"feature_costs": [1, 2, 3, 4, -1]}, ValueError, r"feature_costs\[4\]"),
        ({"feature_costs": [1, 2, 3, 4, float("nan")]}, ValueError, r"feature_costs\[4\]"),
        ({"feature_costs": "cheap"}, TypeError, "feature_costs: expected one number per feature"),
        ({"feature_costs": {7: 1.0}}, ValueError, "feature_costs"),
        ({"cost_groups": [[0, 1]]}, ValueError, "cost_groups: expected None without feature_costs"),
        (
            {"comparison_cost": 1.0},
            ValueError,
            "comparison_cost: expected None without feature_costs",
        ),
        ({"feature_costs": [1] * 5, "comparison_cost": 0.0}, ValueError, "comparison_cost"),
        (
            {"feature_costs": [1] * 5, "cost_groups": [[0, 1], [1, 2]]},
            ValueError,
            "each feature in at most one group",
        ),
    ],
    ids=range(9),
)
@pytest.mark.parametrize("fit", [pb.fit_cart, pb.fit_random_forest])
def test_what_cannot_be_paid_is_refused(prices, error, message, fit):
    X, y = noisy(n=40)
    with pytest.raises(error, match=message):
        fit(X, y, **prices)
