"""The comparison of log losses before and after calibration."""

from __future__ import annotations

import csv
import gzip
from functools import partial

import numpy as np
import pytest
from example_modules import imported

import pboost as pb

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def example():
    modules = ("many_classes", "many_classes_families", "oblique_trees", "table_command")
    with imported("calibration", *modules) as module:
        yield module


def test_tables(example, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(280, 2)).round(3)
    for name, levels in zip(example.SETS[:2], ("xy", "xyz"), strict=True):
        noise = rng.normal(size=280)
        rows = [
            [*row, levels[min(int(row[0] + e > 0) + int(row[1] > 0.4), len(levels) - 1)]]
            for row, e in zip(X, noise, strict=True)
        ]
        with gzip.open(tmp_path / f"{name}.csv.gz", "wt", encoding="utf-8", newline="") as out:
            csv.writer(out).writerows([["one", "two", "target"], *rows])
    few = {"stumps": partial(pb.fit_adaboost, n_estimators=300)}
    few["sum of trees"] = partial(pb.fit_gradient_boosting, n_estimators=9)
    monkeypatch.setattr(example, "MODELS", few)
    monkeypatch.setattr(example, "SPLITS", 1)
    example.main(["--data", str(tmp_path), "--quick", "--rst", str(tmp_path / "table.rst")])
    output = capsys.readouterr().out
    assert output.strip() in (tmp_path / "table.rst").read_text()
    line = next(line.split("  ") for line in output.splitlines() if "stumps  " in line)
    plain, platt, _, seen = (float(cell) for cell in [cell for cell in line if cell.strip()][1:5])
    assert platt < min(plain, seen)
    assert "(2/2)" in output


def test_losses_are_those_of_the_rows(example):
    X = np.arange(8.0)[:, None]
    model = pb.fit_cart(X, X[:, 0] > 3, max_depth=1)
    truth = np.array([False] * 3 + [True] * 5)
    floor = -np.log(2.0**-52)
    assert example.log_loss(model, X, truth) == pytest.approx(floor / 8)
    quarter = example.quarters(np.repeat([0, 1, 2], 8), 0)
    assert np.bincount(quarter).tolist() == [6, 6, 6, 6]
    assert all(len(set(quarter[k : k + 8])) == 4 for k in (0, 8, 16))


def test_without_data(example, tmp_path):
    with pytest.raises(SystemExit):
        example.main(["--data", str(tmp_path)])
