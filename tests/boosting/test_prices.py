"""Graphs of columns that have prices: each node is the best for what its rows have to pay."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb
from pboost import observation, weak

PRICES, GROUPS, COMPARISON = [1.0, 20.0, 3.0, 0.0, 7.5], {"blood": [1, 2]}, 0.4
BOUGHT = ["a", "blood", "blood", "d", "e"]
COSTS = {"a": 1.0, "blood": 20.0, "d": 0.0, "e": 7.5}
SAID = {"feature_costs": PRICES, "cost_groups": GROUPS, "comparison_cost": COMPARISON}


def data(seed=0, n=150):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).round(1)
    z = 0.5 * X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 4]) + 0.5 * X[:, 3]
    return X, (z + 0.5 * rng.normal(size=n) > 0.6).astype(int), rng.integers(1, 4, n).astype(float)


def decreases(X, y, weight):
    """Return by how much the best cut of each column lowers the criterion."""

    def value(rows):
        return 2 * np.sqrt(weight[rows & (y == 0)].sum() * weight[rows & (y == 1)].sum())

    every = np.ones(len(y), dtype=bool)
    actual = []
    for column in X.T:
        cuts = np.unique(column)[:-1]
        after = [value(column <= cut) + value(column > cut) for cut in cuts]
        actual.append(value(every) - min(after, default=np.inf))
    return np.array(actual)


def check_graph(model, X, y, start):
    """Walk all rows through a graph with their ledgers; look at the choice at each node."""
    sign = np.where(y == 1, 1.0, -1.0)
    at, H = np.zeros(len(y), dtype=int), np.zeros(len(y))
    ledgers = [{} for _ in y]
    for node in range(model.n_nodes):
        positions = np.flatnonzero(at == node)
        weight = start[positions] * np.exp(-sign[positions] * H[positions])
        gain = decreases(X[positions], y[positions], weight)
        price = np.zeros(5)
        for j in range(5):
            unpaid = np.array([BOUGHT[j] not in ledgers[i] for i in positions])
            price[j] = COMPARISON + COSTS[BOUGHT[j]] * np.average(unpaid, weights=start[positions])
        score, chosen = gain / price, int(model.feature[node])
        assert score[chosen] >= score.max() * (1 - 1e-9), node
        above = (X[positions, chosen] > model.threshold[node]).astype(int)
        for i in positions:
            ledgers[i][BOUGHT[chosen]] = COSTS[BOUGHT[chosen]]
        H[positions] += model.vote[node, above]
        at[positions] = model.next[node, above]
    cost = pb.prediction_cost(model, X, unit="feature_cost")
    assert cost.tolist() == [sum(ledger.values()) for ledger in ledgers]


FITS = {
    "chain": lambda *of, **to: pb.fit_adaboost(*of, n_estimators=12, **to),
    "tree": lambda *of, **to: pb.fit_boosted_tree(*of, max_nodes=12, **to),
    "matryoshka": lambda *of, **to: pb.fit_matryoshka(*of, shape=(3, 5), **to),
    "joined": lambda *of, **to: pb.fit_matryoshka(*of, shape=(3, 4), join="all", **to),
    "greedy": lambda *of, **to: pb.fit_matryoshka(*of, max_nodes=12, growth="greedy", **to),
}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("seed", range(4))
def test_each_node_is_the_best_for_its_price(name, seed):
    X, y, weight = data(seed)
    model = FITS[name](X, y, sample_weight=weight if seed % 2 else None, **SAID)
    check_graph(model, X, y, weight if seed % 2 else np.ones(len(y)))
    assert model.settings["feature_costs"] == PRICES


@pytest.mark.parametrize("name", FITS)
def test_equal_prices_that_are_nothing_are_no_prices(name):
    X, y, _ = data(7)
    first, other = FITS[name](X, y), FITS[name](X, y, feature_costs=[0] * 5)
    assert np.array_equal(first.feature, other.feature)
    assert np.array_equal(first.next, other.next)
    assert np.allclose(first.vote, other.vote, rtol=1e-9)


def test_soft_answers_are_paid_for_in_expectation():
    X, y, _ = data(1)
    soft = observation.flip(0.1)
    for fit in FITS.values():
        model = fit(X, y, observation=soft, **SAID)
        assert pb.prediction_cost(model, X, unit="feature_cost").mean() > 0
    many = {"n_estimators": 6, "observation": soft}
    dear = pb.prediction_cost(
        pb.fit_adaboost(X, y, **many), X, unit="feature_cost", feature_costs=PRICES
    ).mean()
    assert (
        pb.prediction_cost(pb.fit_adaboost(X, y, **SAID, **many), X, unit="feature_cost").mean()
        < dear
    )


@pytest.mark.parametrize("criterion", ["gini", "entropy", "error"])
def test_cheap_columns_come_first_by_any_criterion(criterion):
    X, y, _ = data(2)
    X[:, 2] = X[:, 4]
    said = {
        "weak_learner": weak.stump(criterion),
        "feature_costs": [1, 1, 5, 1, 1],
        "comparison_cost": 3.0,
    }
    model = pb.fit_boosted_tree(X, y, max_nodes=9, **said)
    assert 2 not in model.feature
    assert 4 in model.feature


def test_threads_and_validation_change_nothing_else(monkeypatch):
    from pboost import threads

    X, y, _ = data(3, n=400)
    first_model = pb.fit_matryoshka(X, y, shape=(3, 4), validation=0.3, rng=0, n_threads=1, **SAID)
    monkeypatch.setattr(threads, "MIN_CELLS", 1)
    two = pb.fit_matryoshka(X, y, shape=(3, 4), validation=0.3, rng=0, n_threads=2, **SAID)
    assert np.array_equal(first_model.vote, two.vote)
    assert np.array_equal(first_model.feature, two.feature)


def test_what_does_not_know_prices_is_refused():
    X, y, _ = data()
    for options, words in (
        ({"weak_learner": weak.linear()}, "weak.stump"),
        ({"observation": observation.gaussian(0.1)}, "observation model is exact or has a table"),
    ):
        with pytest.raises(NotImplementedError, match=words):
            pb.fit_adaboost(X, y, n_estimators=3, **options, **SAID)
    with pytest.raises(NotImplementedError, match="with more than two classes"):
        pb.fit_adaboost(X, y + (X[:, 0] > 1), n_estimators=3, **SAID)
    with pytest.raises(ValueError, match="feature_costs: expected 5 numbers"):
        pb.fit_adaboost(X, y, n_estimators=3, feature_costs=[1, 2])
    with pytest.raises(NotImplementedError, match="cannot be continued"):
        pb.continue_fit(pb.fit_adaboost(X, y, n_estimators=3, **SAID), X, y, n_estimators=2)
