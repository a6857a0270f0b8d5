"""The comparison of the levels of `quality`, with stored outcomes and on small sets."""

from __future__ import annotations

import json
import math

import pytest
from example_modules import imported


@pytest.fixture(scope="module")
def example():
    with imported(
        "quality_levels", "default_boosters", "oblique_trees", "table_command", "accuracy_picture"
    ) as module:
        yield module


def test_ratios_to_the_middle_level(example):
    results = {
        "a": {"pboost, quality=3": [0.2, 1.0], "CatBoost 1.2, 30 trees": [0.1, 8.0]},
        "b": {"pboost, quality=3": [0.4, 2.0], "CatBoost 1.2, 30 trees": [0.4, 4.0]},
    }
    points = example.points_of(results, ["a", "b"])
    loss, error, time, n_sets = points["CatBoost 1.2, 30 trees"]
    assert loss == pytest.approx(-math.log(2) / 2)
    assert error == pytest.approx(math.log(2) / 2)
    assert time == pytest.approx(4.0)
    assert n_sets == 2
    assert points["pboost, quality=3"][:3] == (0.0, 0.0, 1.0)
    text = example.rows_of({"binary": points}, list(points))
    assert "-34.7 ± 34.7 %" in text
    svg = example.picture({"binary": points})
    assert svg.count("<circle") == 2  # a point and its entry in the legend
    assert "binary: log loss" in svg


def test_levels_are_measured(example, tmp_path, monkeypatch, capsys):
    data = example.data_sets.__globals__["DataSet"]
    rows = [[float(i % 7), float(i % 3)] for i in range(60)]
    y = [float(a > b) for a, b in rows]
    monkeypatch.setattr(example, "LEVELS", (1, 3))
    monkeypatch.setattr(example, "installed", lambda: {"pboost": "pboost"})
    sets = [
        data(name, "binary", *map(example.np.array, (rows, [int(v) for v in y])), [])
        for name in ("one", "two")
    ]
    monkeypatch.setattr(example, "data_sets", lambda folder, most: sets)
    stored, svg = tmp_path / "outcomes.json", tmp_path / "levels.svg"
    example.main(["--data", str(tmp_path), "--quick", "--results", str(stored), "--svg", str(svg)])
    outcomes = json.loads(stored.read_text(encoding="utf-8"))
    assert list(outcomes) == ["one, binary, 200 rows", "two, binary, 200 rows"]
    losses = [outcomes["one, binary, 200 rows"][f"pboost, quality={k}"][0] for k in (1, 3)]
    assert losses[0] != losses[1]
    assert max(losses) < 0.2
    assert "quality=1" in capsys.readouterr().out
    assert "<svg" in svg.read_text(encoding="utf-8")
