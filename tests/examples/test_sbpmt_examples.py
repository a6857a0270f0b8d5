"""The examples of subagged boosted probit trees: the published table, and the simulation."""

from __future__ import annotations

import csv
import gzip
import importlib
import json
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import pboost as pb

pytestmark = pytest.mark.full

EXAMPLES = Path(__file__).parents[2] / "examples"
MODULES = ("sbpmt_table", "published_table", "oblique_trees", "mease_wyner")


@pytest.fixture(scope="module", autouse=True)
def folder_of_examples():
    if not EXAMPLES.exists():
        pytest.skip("no examples/ beside tests/")
    sys.path.insert(0, str(EXAMPLES))
    try:
        yield
    finally:
        sys.path.remove(str(EXAMPLES))
        for name in MODULES:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def example():
    return importlib.import_module("sbpmt_table")


@pytest.fixture(scope="module")
def simulation():
    return importlib.import_module("mease_wyner")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three classes of Iris, Pima-indians with zeros in place of values, and BHP with holes."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)).round(3)
    zone = np.digitize(X[:, 0] + X[:, 1], [-0.5, 1.0])
    pima = np.where(rng.random((80, 3)) < 0.2, 0.0, rng.uniform(1, 5, (80, 3)).round(2))
    sick = pima[:, 1] + rng.normal(size=80) > 2.5
    bhp = [["", *row[1:-1], "pqr"[k]] for row, k in zip(X, zone, strict=True)]
    for file, rows, y in (("iris", X, zone), ("pima", pima, sick.astype(int)), ("bhp", bhp, zone)):
        names = ["a", "b", "c__cat" if file == "bhp" else "c", "target"]
        with gzip.open(folder / f"{file}.csv.gz", "wt", encoding="utf-8", newline="") as out:
            lines = [[*row, k] for row, k in zip(rows, y, strict=True)]
            csv.writer(out).writerows([names, *lines])
    return folder


def test_published_table(example):
    table = sys.modules["published_table"]
    assert len(table.TABLE_2) == 16
    assert {len(line) for line in table.TABLE_2.values()} == {1 + len(table.METHODS)}
    assert repr(table.printed("Pima-indians", "SBPMT")) == repr(table.Outcome(77.73, 6.24, 10))
    assert table.printed("Letter", "XGBoost(100)").mean == 96.60
    mean = np.mean([table.printed(name, "SBPMT").mean for name in table.TABLE_2])
    assert mean == pytest.approx(92.5375)


def test_zeros_are_replaced(example, folder):
    iris, pima, _ = example.data_sets(folder, quick=False)[0]
    assert example.prepared(iris) is iris
    X = example.prepared(pima).X
    assert (X[:, 0] == pima.X[:, 0]).all()
    assert (X[:, 0] == 0).any()
    for j in (1, 2):
        was = pima.X[:, j] == 0
        np.testing.assert_array_equal(X[~was, j], pima.X[~was, j])
        np.testing.assert_allclose(X[was, j], pima.X[:, j].mean())


def test_holes_stay(example, folder):
    bhp = example.data_sets(folder, quick=False)[0][-1]
    assert bhp.X.shape == (90, 3)
    assert bhp.categories == (2,)
    assert np.isnan(bhp.X[:, 0]).all()
    outcomes = example.outcomes_on(bhp, True, {}, lambda: None)
    assert min(outcome.mean for outcome in outcomes.values()) > 95


def test_an_outcome_is_a_cross_validation(example, folder):
    iris = example.data_sets(folder, quick=True)[0][0]
    stored = []
    outcomes = example.outcomes_on(iris, True, {}, lambda: stored.append(1))
    less = {"n_estimators": 3, "n_boosting_rounds": 2, "max_iter": 10, "rng": 0}
    expected = {
        "SBPMT": partial(pb.fit_sbpmt, **{**example.PAPER_OPTIONS, **less}),
        "SBPMT as coded": partial(pb.fit_sbpmt, **{**pb.models.published_sbpmt_options(), **less}),
        "shared trees": partial(
            pb.fit_sbpmt, **{**pb.models.published_sbpmt_options(), "one_vs_rest": "leaf", **less}
        ),
        "forest": partial(pb.fit_random_forest, n_estimators=10, rng=0),
    }
    assert list(outcomes)[:4] == list(expected)
    assert len(stored) == len(outcomes)
    for name, fit in expected.items():
        accuracy = 100 - 100 * pb.cross_validate(fit, iris.X, iris.y, cv=3, rng=0).error
        np.testing.assert_allclose(outcomes[name].mean, accuracy.mean())
        np.testing.assert_allclose(outcomes[name].deviation, np.std(accuracy, ddof=1))
        assert outcomes[name].mean > 60


def test_command(example, folder, tmp_path, capsys, monkeypatch):
    results, path = tmp_path / "results.json", tmp_path / "table.rst"
    command = ["--quick", "--data", str(folder), "--results", str(results), "--rst", str(path)]
    example.main(command)
    first = capsys.readouterr()
    assert "Accuracy in %: SBPMT, and SBPMT of the paper" in first.out
    assert re.search(r"\d of 3 sets, the accuracy is within two standard errors", first.out)
    assert "left out: Glass (no data)" in first.out
    assert re.search(r"Iris, SBPMT: [0-9.e-]+ s per fit", first.err)
    assert set(json.loads(results.read_text())) == {"Iris", "Pima-indians", "BHP"}
    written = path.read_text(encoding="utf-8")
    assert written.split(".. tables start here\n\n")[1] == first.out.removesuffix("\n")
    # What is stored is not worked out again.
    example.main(command)
    second = capsys.readouterr()
    assert second.out == first.out
    assert second.err == ""


def test_simulation(simulation, monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(simulation, "TRAINING", 300)
    monkeypatch.setattr(simulation, "TEST", 500)
    grids = {
        "n_estimators": [1, 3],
        "n_boosting_rounds": [1, 2],
        "max_iter": [1, 4],
        "max_samples": [0.5, 1.0],
    }
    monkeypatch.setattr(simulation, "QUICK_GRIDS", grids)
    simulation.main(["--quick", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert printed.split()[0] == "n_estimators"
    assert len(printed.splitlines()) == 12
    assert (tmp_path / simulation.FILE).read_bytes().startswith(b"\x89PNG")
    actual = simulation.curves(quick=True)
    # The curve of members is of prefixes of one model.
    rng = np.random.default_rng(0)
    X, y = pb.datasets.mease_wyner(300, rng)
    new, truth = pb.datasets.mease_wyner(500, rng)
    first_model = pb.fit_sbpmt(X, y, **{**simulation.BENCHMARK, "n_estimators": 1}, rng=0)
    assert actual["n_estimators"][1] == np.mean(pb.predict(first_model, new) != truth)
    assert all(0.05 < error < 0.5 for curve in actual.values() for error in curve.values())
