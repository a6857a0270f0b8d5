"""The comparison of models of so many bytes with those of other tools."""

from __future__ import annotations

import csv
import gzip
import shutil
from functools import partial

import numpy as np
import pytest
from example_modules import imported

import pboost as pb

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def example():
    modules = ("many_classes", "many_classes_families", "oblique_trees", "table_command")
    with imported("device", *modules) as module:
        yield module


@pytest.mark.build
def test_tables(example, tmp_path, monkeypatch, capsys):
    with np.errstate():  # it changes what NumPy does about overflow, for good
        pytest.importorskip("emlearn")
    pytest.importorskip("micromlgen")
    if shutil.which(example.compiler()[0].replace("gcc", "g++")) is None:
        pytest.skip("there is no compiler of C++")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)).round(3)
    rows = [[*row, "xy"[int(row[0] + row[1] > 0)]] for row in X]
    with gzip.open(
        tmp_path / f"{example.SETS[0]}.csv.gz", "wt", encoding="utf-8", newline=""
    ) as out:
        csv.writer(out).writerows([["one", "two", "target"], *rows])
    trees = example.theirs
    few = {"stumps": partial(pb.fit_adaboost, n_estimators=5)}
    monkeypatch.setattr(example, "OURS", few)
    monkeypatch.setattr(example, "theirs", lambda X, y: [next(iter(trees(X, y)))])
    example.main(["--data", str(tmp_path), "--quick", "--rst", str(tmp_path / "table.rst")])
    output = capsys.readouterr().out
    assert output.strip() in (tmp_path / "table.rst").read_text()
    cells = next(
        line for line in output.splitlines() if line.strip().startswith("banknote")
    ).split()
    sizes = [int(cells[k]) for k in (1, 4, 7)]
    assert all(50 < size <= 1024 for size in sizes)
    assert float(cells[2]) == 5.0  # comparisons of five stumps


def test_without_data(example, tmp_path):
    with pytest.raises(SystemExit):
        example.main(["--data", str(tmp_path)])
