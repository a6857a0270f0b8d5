"""What models cost where columns have prices: a ledger of each row, kept in a dictionary."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import pboost as pb
from pboost import observation, weak
from pboost.models.early_exit_model import trajectory

PRICES, GROUPS = [1.0, 20.0, 3.0, 0.0, 7.5], [[1, 2]]
#: What each column's purchase is, and what it costs: a group is bought as one.
BOUGHT = ["a", "blood", "blood", "d", "e"]
COSTS = {"a": 1.0, "blood": 20.0, "d": 0.0, "e": 7.5}


def data(labels=2, n=240):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 5))
    z = X[:, 0] * X[:, 1] + X[:, 2] + np.abs(X[:, 4]) + 0.3 * rng.normal(size=n)
    return X, np.searchsorted(np.quantile(z, np.linspace(0, 1, labels + 1)[1:-1]), z)


def ledger_of_graph(model, row):
    ledger, node = {}, 0
    while node >= 0:
        j = int(model.feature[node])
        ledger[BOUGHT[j]] = COSTS[BOUGHT[j]]
        node = int(model.next[node, int(row[j] > model.threshold[node])])
    return ledger


def ledger_of_tree(tree, row):
    ledger, node = {}, 0
    while tree.feature[node] >= 0:
        j = int(tree.feature[node])
        ledger[BOUGHT[j]] = COSTS[BOUGHT[j]]
        node = int(tree.children[node, int(row[j] > tree.threshold[node])])
    return ledger


def ledger_of(model, row):
    if isinstance(model, pb.models.DecisionGraph):
        return ledger_of_graph(model, row)
    if isinstance(model, pb.models.Tree):
        return ledger_of_tree(model, row)
    trees = getattr(model, "trees", None) or getattr(model, "models", None) or list(model)
    ledger = {}
    for member in trees:
        ledger.update(ledger_of(member, row))
    return ledger


FITS = {
    "chain": lambda X, y: pb.fit_adaboost(X, y, n_estimators=4),
    "tree": lambda X, y: pb.fit_boosted_tree(X, y, max_nodes=15),
    "soft tree": lambda X, y: pb.fit_boosted_tree(
        X, y, max_nodes=9, observation=observation.flip(0.1)
    ),
    "matryoshka": lambda X, y: pb.fit_matryoshka(X, y, shape=(3, 3, 2)),
    "greedy": lambda X, y: pb.fit_matryoshka(X, y, max_nodes=9, growth="greedy"),
    "cart": lambda X, y: pb.fit_cart(X, y, max_depth=4),
    "forest": lambda X, y: pb.fit_random_forest(X, y, n_estimators=2, max_depth=2, rng=1),
    "sum": lambda X, y: pb.fit_gradient_boosting(X, y, n_estimators=6, max_depth=2),
    "bagging": lambda X, y: pb.fit_bagging(pb.fit_boosted_tree, X, y, n_estimators=2, max_nodes=3),
}


@pytest.mark.parametrize("name", FITS)
def test_a_row_pays_once_for_each_column_and_group(name):
    X, y = data()
    model = FITS[name](X, y)
    cost = pb.prediction_cost(
        model, X, unit="feature_cost", feature_costs=PRICES, cost_groups=GROUPS
    )
    expected = [sum(ledger_of(model, row).values()) for row in X]
    assert cost.tolist() == expected
    assert len(set(expected)) > 1 or name in ("chain", "forest", "bagging")


@pytest.mark.full
@pytest.mark.parametrize("labels", [3, 4])
def test_models_of_many_labels_are_paid_for_once(labels):
    X, y = data(labels)
    for model in (
        pb.fit_gradient_boosting(X, y, n_estimators=2, max_depth=2, task="classification"),
        pb.fit_gradient_boosting(
            X,
            y,
            n_estimators=2,
            max_depth=2,
            task="classification",
            multi_strategy="multi_output_tree",
        ),
        pb.fit_one_vs_rest(pb.fit_boosted_tree, X, y, max_nodes=3),
    ):
        cost = pb.prediction_cost(
            model, X, unit="feature_cost", feature_costs=PRICES, cost_groups=GROUPS
        )
        assert cost.tolist() == [sum(ledger_of(model, row).values()) for row in X]


@pytest.mark.parametrize(
    "make",
    [
        lambda X, y: pb.fit_adaboost(X, y, n_estimators=3, weak_learner=weak.linear()),
        lambda X, y: pb.fit_boosted_tree(X, y, max_nodes=5, weak_learner=weak.linear()),
        lambda X, y: pb.fit_real_adaboost(X, y, n_estimators=3),
        lambda X, y: pb.fit_probit_tree(X, y),
        lambda X, y: pb.fit_boosted_tree(np.where(X > 1, np.nan, X), y, max_nodes=9),
        lambda X, y: pb.fit_cart(np.round(X), y, categorical_features=[0, 1], max_depth=4),
    ],
)
def test_columns_of_price_one_are_counted(make):
    X, y = data()
    X = np.round(X)
    model = make(X, y)
    cost = pb.prediction_cost(model, X, unit="feature_cost", feature_costs=[1.0] * 5)
    assert cost.tolist() == pb.prediction_cost(model, X, unit="features").tolist()


@pytest.mark.parametrize("name", ["chain", "matryoshka", "sum", "forest", "bagging"])
def test_prices_are_told_at_each_joint(name):
    X, y = data()
    model = FITS[name](X, y)
    read = [item.copy() for item in model.reads(X)]
    assert all((a <= b).all() for a, b in pairwise(read))
    joints = len(trajectory(model, X).cost) - 1
    assert len(read) == joints


def test_models_remember_prices(tmp_path):
    X, y = data()
    model = pb.fit_gradient_boosting(X, y, n_estimators=5, feature_costs=PRICES, cost_groups=GROUPS)
    expected = pb.prediction_cost(
        model, X, unit="feature_cost", feature_costs=PRICES, cost_groups=GROUPS
    )
    pb.save(model, tmp_path / "model.npz")
    for of in (model, pb.load(tmp_path / "model.npz")):
        assert pb.prediction_cost(of, X, unit="feature_cost").tolist() == expected.tolist()
    other = pb.prediction_cost(model, X, unit="feature_cost", feature_costs=[1] * 5)
    assert (
        other
        == pb.prediction_cost(
            model, X, unit="feature_cost", feature_costs=dict.fromkeys(range(5), 1)
        )
    ).all()


def test_what_cannot_be_paid_is_refused():
    X, y = data()
    model = pb.fit_adaboost(X, y, n_estimators=3)
    with pytest.raises(ValueError, match="feature_costs: expected feature costs"):
        pb.prediction_cost(model, X, unit="feature_cost")
    with pytest.raises(ValueError, match=r"expected None unless .* got unit='nodes'"):
        pb.prediction_cost(model, X, feature_costs=PRICES)
    with pytest.raises(ValueError, match="cost_groups: expected None without feature_costs"):
        pb.prediction_cost(model, X, unit="feature_cost", cost_groups=GROUPS)


@pytest.mark.full
@pytest.mark.parametrize("name", ["sum", "forest"])
def test_rows_that_leave_early_pay_no_more(name):
    X, y = data(n=400)
    full = FITS[name](X[:200], y[:200])
    model = pb.early_exit(full, X[200:], mean_comparisons=0.6 * pb.prediction_cost(full, X).mean())
    cost = pb.prediction_cost(
        model, X, unit="feature_cost", feature_costs=PRICES, cost_groups=GROUPS
    )
    joints = model.left(X).joint.tolist()
    assert len(set(joints)) > 1
    ledgers = [ledger_of(full.first(t), row) if t else {} for t, row in zip(joints, X, strict=True)]
    assert cost.tolist() == [sum(ledger.values()) for ledger in ledgers]
