"""The comparison of uncertain with exact answers of many labels."""

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
    with imported("soft_answers", "oblique_trees", "table_command") as module:
        yield module


def write(folder, name, n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)).round(3)
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.2, 1.5])
    with gzip.open(folder / f"{name}.csv.gz", "wt", encoding="utf-8", newline="") as out:
        rows = [[*row, "xyz"[k]] for row, k in zip(X, y, strict=True)]
        csv.writer(out).writerows([["one", "two", "target"], *rows])


def test_table(example, tmp_path, monkeypatch, capsys):
    for name in example.SETS[:2]:
        write(tmp_path, name)
    fits = {name: example.FITS[name] for name in ("tree", "tree, adatree2", "chain, 4 leaves")}
    fits = {
        name: (partial(fit, max_nodes=9) if "tree" in name else fit, exact)
        for name, (fit, exact) in fits.items()
    }
    monkeypatch.setattr(example, "FITS", fits)
    example.main(["--data", str(tmp_path), "--quick", "--rst", str(tmp_path / "table.rst")])
    output = capsys.readouterr().out
    assert "2 sets" in output
    assert "Bounds: 4 models of exact answers, 0 violations." in output
    assert output.strip() in (tmp_path / "table.rst").read_text()


def test_figures_are_those_of_the_models(example, tmp_path):
    write(tmp_path, "some")
    X, y, X_test, y_test, categories = example.divided(tmp_path / "some.csv.gz", 1000)
    assert (len(X), len(X_test), categories) == (84, 36, ())
    model = pb.fit_boosted_tree(X, y, max_nodes=12)
    actual = example.errors(model, X, X_test, y_test)
    assert actual[-1] == pytest.approx(100 * np.mean(pb.predict(model, X_test) != y_test))
    assert example.violations(model, X, y) == 0
    assert example.violations(model, X, (y + 1) % 3) > 0


def test_without_data(example, tmp_path):
    with pytest.raises(SystemExit):
        example.main(["--data", str(tmp_path)])
