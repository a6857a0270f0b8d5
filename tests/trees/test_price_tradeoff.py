"""Sums of trees whose splits have to gain what they cost: the twin, units, ledgers, errors."""

from __future__ import annotations

import numpy as np
import pytest
from round_cases import as_copies, assert_twin, comparing, tradeoff_case
from shallow import fit_shallow

import pboost as pb

PRICES, GROUPS = [1.0, 20.0, 3.0, 0.0, 7.5], {"blood": [1, 2]}
#: What each column's purchase is, and what it costs: a group is bought as one.
BOUGHT = ["a", "blood", "blood", "d", "e"]
COSTS = {"a": 1.0, "blood": 20.0, "d": 0.0, "e": 7.5}
SAID = {"feature_costs": PRICES, "cost_groups": GROUPS, "comparison_cost": 0.02}


def data(seed=0, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).round(1)
    z = 0.5 * X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 4]) + 0.5 * X[:, 3]
    return X, (z + 0.5 * rng.normal(size=n) > 0.6).astype(int), rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("seed", range(0, 48, 12))
def test_equals_the_twin(seed):
    for number in range(seed, seed + 12):
        assert_twin(tradeoff_case(number), f"case {number}")
        if number % 4 == 0:
            assert_twin(comparing(tradeoff_case)(number), f"comparing, case {number}")


def test_weights_that_are_copies_equal_the_twin_of_the_copies():
    for seed in range(9):
        case, copied, rows = as_copies(tradeoff_case(seed), seed)
        if case[4] is None or all(map(len, case[4])):
            assert_twin(copied, f"case {seed}", case, rows)


def gain_of(y, f, weight, above, l2):
    """Return what a split takes from the sum of log losses, to the second order."""
    p = 1.0 / (1.0 + np.exp(-f))
    g, h = weight * (p - y), weight * p * (1 - p)

    def score(rows):
        return g[rows].sum() ** 2 / (h[rows].sum() + l2)

    every = np.ones(len(y), dtype=bool)
    return 0.5 * (score(above) + score(~above) - score(every))


@pytest.mark.parametrize("of", ["one", "weighted"])
@pytest.mark.parametrize("leaves", [None, 6])
def test_every_split_gains_what_its_rows_pay(of, leaves):
    """Walk the rows of each tree with their ledgers; look at what each split gains and costs."""
    X, y, weight = data()
    weight = weight if of == "weighted" else np.ones(len(y))
    tradeoff, sums = 0.004, {"max_leaf_nodes": leaves, "max_depth": 4, "n_estimators": 6}
    model = pb.fit_gradient_boosting(
        X,
        y,
        sample_weight=None if of == "one" else weight,
        cost_tradeoff=tradeoff,
        l2_regularization=1.0,
        **sums,
        **SAID,
    )
    ledgers, f = [set() for _ in y], np.full(len(y), model.bias)
    split = 0
    for tree in model.trees:
        at = {0: np.arange(len(y))}
        paid = [set(ledger) for ledger in ledgers]
        for node in range(len(tree.feature)):
            rows, j = at[node], int(tree.feature[node])
            if j < 0:
                continue
            split += 1
            price = np.array([COSTS[BOUGHT[j]] * (BOUGHT[j] not in paid[i]) for i in rows])
            above = X[rows, j] > tree.threshold[node]
            gain = gain_of(y[rows], f[rows], weight[rows], above, 1.0)
            cost = tradeoff * (weight[rows] * (0.02 + price)).sum()
            assert gain > cost * (1 - 1e-3), (node, gain, cost)
            for i in rows:
                paid[i].add(BOUGHT[j])
            at[int(tree.children[node, 0])], at[int(tree.children[node, 1])] = (
                rows[~above],
                rows[above],
            )
        ledgers = paid
        f = f + tree.predict(X)
    assert split > 10
    actual = pb.prediction_cost(model, X, unit="feature_cost")
    assert actual == pytest.approx([sum(COSTS[name] for name in ledger) for ledger in ledgers])


def test_the_larger_it_is_the_less_is_paid():
    X, y, _ = data(1, 600)
    paid = [
        pb.prediction_cost(
            pb.fit_gradient_boosting(X, y, n_estimators=30, cost_tradeoff=tradeoff, **SAID),
            X,
            unit="feature_cost",
        ).mean()
        for tradeoff in (0.0, 0.003, 0.01, 0.03, 10.0)
    ]
    assert paid == sorted(paid, reverse=True)
    assert paid[0] > 2 * paid[3] > 0 == paid[4]


def test_units_of_weights_and_of_prices_do_not_matter():
    X, y, weight = data(2)
    fits = [
        pb.fit_gradient_boosting(
            X,
            y,
            sample_weight=unit * weight,
            l2_regularization=unit,
            n_estimators=8,
            feature_costs=[p * per for p in PRICES],
            cost_groups=GROUPS,
            comparison_cost=0.02 * per,
            cost_tradeoff=0.005 / per,
        )
        for unit, per in ((1.0, 1.0), (4.0, 1.0), (1.0, 8.0))
    ]
    for other in fits[1:]:
        assert np.array_equal(other.trees.feature, fits[0].trees.feature)
        assert np.array_equal(other.trees.threshold, fits[0].trees.threshold, equal_nan=True)


def test_of_no_price_and_nothing_to_gain_it_is_the_sum_without():
    X, y, _ = data(3)
    plain = fit_shallow(X, y, n_estimators=5, growth="independent")
    free = fit_shallow(X, y, n_estimators=5, feature_costs=[0.0] * 5, cost_tradeoff=0.0)
    assert np.array_equal(plain.trees.feature, free.trees.feature)
    assert np.array_equal(plain.trees.value, free.trees.value)


def test_threads_and_going_on_change_nothing(monkeypatch, tmp_path):
    from pboost import threads

    X, y, _ = data(4, 900)
    text = {**SAID, "cost_tradeoff": 0.004}
    first_model = pb.fit_gradient_boosting(X, y, n_estimators=8, n_threads=1, **text)
    monkeypatch.setattr(threads, "MIN_CELLS", 1)
    two = pb.fit_gradient_boosting(X, y, n_estimators=8, n_threads=2, **text)
    part = pb.fit_gradient_boosting(X, y, n_estimators=3, **text)
    pb.save(part, tmp_path / "part.npz")
    on = pb.continue_fit(pb.load(tmp_path / "part.npz"), X, y, n_estimators=5)
    for other in (two, on):
        assert np.array_equal(other.trees.value, first_model.trees.value)
        assert np.array_equal(other.trees.feature, first_model.trees.feature)
    assert on.settings["cost_tradeoff"] == 0.004


def test_of_many_labels_and_numbers():
    X, y, _ = data(5, 400)
    for loss, target in (("softmax", y + (X[:, 0] > 0.5)), ("squared_error", X[:, 0] * X[:, 1])):
        paid = [
            pb.prediction_cost(
                pb.fit_gradient_boosting(
                    X, target, loss=loss, n_estimators=5, cost_tradeoff=t, **SAID
                ),
                X,
                unit="feature_cost",
            ).mean()
            for t in (0.0, 0.05, 1e3)
        ]
        assert paid[0] > paid[1] > paid[2] == 0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, ValueError, "cost_tradeoff: expected None without feature_costs"),
        (
            {"feature_costs": PRICES, "cost_tradeoff": -1},
            ValueError,
            r"cost_tradeoff: expected a .* \[0",
        ),
        ({"feature_costs": PRICES, "cost_tradeoff": np.nan}, ValueError, "cost_tradeoff: expected"),
        ({"feature_costs": PRICES, "cost_tradeoff": "dear"}, TypeError, "cost_tradeoff: expected"),
        ({"feature_costs": PRICES, "search": "exact"}, NotImplementedError, 'search="exact"'),
    ],
    ids=["alone", "negative", "nan", "text", "exact"],
)
def test_what_makes_no_sense_is_refused(options, error, words):
    X, y, _ = data()
    with pytest.raises(error, match=words):
        pb.fit_gradient_boosting(X, y, **{"cost_tradeoff": 0.1, **options})
