"""The comparison of whole models with rows that leave early."""

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
    with imported("early_exit", *modules) as module:
        yield module


def test_tables(example, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)).round(3)
    rows = [[*row, "xyz"[int(a + b > 0) + int(a > 1)]] for row in X for a, b in [row]]
    with gzip.open(
        tmp_path / f"{example.SETS[0]}.csv.gz", "wt", encoding="utf-8", newline=""
    ) as out:
        csv.writer(out).writerows([["one", "two", "target"], *rows])
    few = {"forest": partial(pb.fit_random_forest, n_estimators=9, rng=0)}
    few["sum of trees"] = partial(
        pb.fit_gradient_boosting, n_estimators=9, multi_strategy="multi_output_tree"
    )
    monkeypatch.setattr(example, "MODELS", few)
    drawn = {name: example.drawn_models()[name] for name in ("chain of trees", "forest", "votes")}
    monkeypatch.setattr(example, "drawn_models", lambda: drawn)
    example.main(["--data", str(tmp_path), "--quick", "--rst", str(tmp_path / "table.rst")])
    output = capsys.readouterr().out
    assert output.strip() in (tmp_path / "table.rst").read_text()
    assert "Comparisons per test row, forest" in output
    lines = [line.split("  ") for line in output.splitlines() if "  2000  " in line]
    assert len(lines) == 5
    assert all([cell for cell in line if cell][3].strip() == "0" for line in lines)


def test_without_data(example, tmp_path):
    with pytest.raises(SystemExit):
        example.main(["--data", str(tmp_path)])
