"""The comparison of tuned boosters, with stored outcomes and on a small set."""

from __future__ import annotations

import json

import numpy as np
import pytest
from example_modules import imported


@pytest.fixture(scope="module")
def example():
    with imported("tuned_boosters", "default_boosters", "oblique_trees", "table_command") as module:
        yield module


def test_ranks_and_ratios(example):
    """Folds of a set count as one set."""
    results = {
        "a, binary, 9 rows, fold 0": {"pboost": [0.2, 0.1], "LightGBM 4": [0.4, 0.4]},
        "a, binary, 9 rows, fold 1": {"pboost": [0.8, 0.1], "LightGBM 4": [0.4, 0.4]},
        "b, binary, 9 rows, fold 0": {"pboost": [0.2, 0.1], "LightGBM 4": [0.4, 0.4]},
    }
    names = {"binary": list(results), "multiclass": [], "regression": []}
    rows = example.ranks(results, names, ["pboost", "LightGBM 4"], 0)
    assert rows[0] == ["pboost", "1.33", "", "", "", "", ""]
    assert rows[1] == ["LightGBM 4", "1.67", "-34.7 ± 34.7 %", "", "", "", ""]
    assert example.ranks(results, names, ["pboost", "LightGBM 4"], 1)[0][1] == "1.00"


def test_the_best_setting_is_tested_and_time_is_limited(example, monkeypatch, tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    data = example.DataSet("one", "binary", X, y, [])
    tried = []

    def fit(data, X, y, options):
        tried.append(options)
        return lambda rows: (
            np.column_stack([rows[:, 0] < 0, rows[:, 0] >= 0]) * (0.9 if options else 0.6)
        )

    library = example.Library(fit, "lightgbm", {})
    monkeypatch.setattr(example, "LIBRARIES", {"pboost": library, "LightGBM": library})
    monkeypatch.setattr(example, "installed", lambda: {"pboost": "pboost", "LightGBM": "LightGBM"})
    monkeypatch.setattr(example, "data_sets", lambda folder, most: [data])
    stored = tmp_path / "outcomes.json"
    example.main(["--data", str(tmp_path), "--quick", "--results", str(stored)])
    (outcome,) = json.loads(stored.read_text(encoding="utf-8")).values()
    assert outcome["LightGBM"][:2] == pytest.approx([-np.log(0.9)] * 2)
    assert outcome["LightGBM"][3] == example.QUICK_SETTINGS
    assert tried[0] == {}
    assert set(tried[1]) == set(example.SPACES["LightGBM"]) | {"subsample_freq"}
    assert "Equal time" in capsys.readouterr().out
    is_test = example.folds_of(data) == 0
    in_no_time = example.searched(data, "pboost", is_test, 5, (0.0, 0.0))
    assert in_no_time[3] == 1
    assert in_no_time[0] == pytest.approx(-np.log(0.6))
