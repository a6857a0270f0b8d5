"""The comparison at equal prices: what rows pay, and that choices keep budgets."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pytest
from example_modules import imported

from pboost.data.feature_costs import read_feature_costs

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def example():
    with imported("prices", "oblique_trees", "table_command") as module:
        yield module


def test_published_prices_share_the_draw_of_blood(example):
    X, y = np.zeros((2, 8)), np.array([0, 1])
    pima = example.with_published_prices("pima", X, y)
    assert pima.alone.round(2).tolist() == [1, 17.61, 1, 1, 22.78, 1, 1, 1]
    both = np.isin(np.arange(8), [1, 4])[None]
    assert example.price_of(both, pima).round(2).tolist() == [17.61 + 20.68]
    bupa = example.with_published_prices("bupa", np.arange(12.0).reshape(2, 6), y)
    assert bupa.alone.round(2).tolist() == [7.27] * 4 + [9.86]
    actual = read_feature_costs(
        {
            "feature_costs": bupa.feature_costs,
            "cost_groups": bupa.cost_groups,
            "comparison_cost": None,
        },
        None,
        5,
    )
    read = np.array([[1, 1, 0, 0, 1], [0, 0, 0, 0, 0]], dtype=bool)
    assert np.allclose(actual.of_columns(read), example.price_of(read, bupa))


def test_the_choice_keeps_the_budget(example):
    loss, price = np.array([[0.5, 0.3], [0.4, 0.2]]), np.array([[1.0, 2.0], [1.0, 3.0]])
    paid = {0: [1.0, 2.0], 1: [2.5, 3.0]}

    def fit(s):
        return [(np.zeros(1), np.array([cost])) for cost in paid[s]]

    assert example.chosen(fit, loss, price, 2.0) == (0, 1)
    assert example.chosen(fit, loss, price, 3.0) == (1, 1)
    assert example.chosen(fit, loss, price, 0.5) is None


def test_the_table_is_made(example, tmp_path, monkeypatch, capsys):
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 8)).round(2)
    y = (X[:, 1] + X[:, 5] > 0).astype(int)
    with gzip.open(tmp_path / "pima.csv.gz", "wt", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([[*"abcdefgh", "target"], *np.column_stack([X, y]).tolist()])
    for name, few in (("COMPARISONS", (0.01, None)), ("TRADEOFFS", (0.0, 0.01)), ("DEPTHS", (2,))):
        monkeypatch.setattr(example, name, few)
    fits = {"pboost": (example.ours, [(2, 0.01)]), "lightgbm": (example.peer, [(2, 0.01)])}
    monkeypatch.setattr(example, "FITS", fits)
    results = tmp_path / "results.json"
    for _ in range(2):
        example.main(["--data", str(tmp_path), "--quick", "--results", str(results)])
    assert "pima, 1" in capsys.readouterr().out
    assert results.exists()
