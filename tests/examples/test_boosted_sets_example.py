"""The comparison of sums of trees with other libraries': its numbers are those of its models."""

from __future__ import annotations

import csv
import gzip
import json
import re

import numpy as np
import pytest
from example_modules import imported

import pboost as pb

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def example():
    with imported("boosted_sets", "oblique_trees", "table_command") as module:
        yield module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three labels, a category and holes."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)).round(3)
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.2, 2.5])
    rows = [[*row, "ab"[int(row[1] > 0)], "xyz"[k]] for row, k in zip(X, y, strict=True)]
    rows[3][1] = rows[5][2] = ""
    with gzip.open(folder / "some.csv.gz", "wt", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([["one", "two", "word__cat", "target"], *rows])
    return folder


def test_targets(example, folder):
    path = folder / "some.csv.gz"
    X, categories, y = example.of_file(path, "some", example.TWO, 1000)
    assert (X.shape, categories) == ((200, 3), (2,))
    assert np.isnan(X[3, 1])
    assert np.isnan(X[5, 2])
    assert y.sum() == max((example.as_it_is(path)[2] == label).sum() for label in "xyz")
    assert example.of_file(path, "some/z", example.TWO, 1000)[2].sum() < 60
    X, categories, y = example.of_file(path, "some/two", example.NUMBERS, 1000)
    assert (X.shape, categories, y.shape) == ((199, 2), (1,), (199,))
    assert len(example.of_file(path, "some", example.TWO, 50)[2]) == 50


def test_figures_are_those_of_the_models(example, folder, monkeypatch):
    monkeypatch.setattr(example, "TREES", 12)
    monkeypatch.setattr(example, "STAGES", (5, 12))
    data = example.of_file(folder / "some.csv.gz", "some", example.TWO, 1000)
    X, categories, y = data
    folds = example.folds_of(y, example.TWO, 1)
    assert all(abs(y[folds[0] == k].mean() - y.mean()) < 0.03 for k in range(5))
    some = example.DataSet("some", example.TWO, "apart", *data, folds)
    actual = dict(example.outcome(some, example.learners(some)["pboost"], 3))
    assert list(actual) == ["", " 5"]
    losses = []
    for k in range(5):
        train, test = folds[0] != k, folds[0] == k
        model = pb.fit_gradient_boosting(
            X[train], y[train], n_estimators=12, categorical_features=categories
        )
        share = pb.predict_proba(model, X[test])[np.arange(test.sum()), y[test]]
        losses.append([-np.log(share).mean(), 100 * (share < 0.5).mean()])
    assert actual[""] == pytest.approx(np.mean(losses, axis=0))


def test_pairs(example):
    ours = np.array([[0.5, 10.0], [0.25, 20.0]])
    theirs = np.array([[0.25, 12.0], [0.5, 20.0]])
    cells = ["+0.0000 ± 0.2500", "+0.0", "1 of 2", "+1.00 ± 1.00"]
    assert example.against(ours, theirs, example.TWO) == cells
    cells = ["+0.0 ± 69.3", "+0.0", "1 of 2"]
    assert example.against(ours, theirs, example.NUMBERS) == cells


def test_command(example, folder, tmp_path, capsys, monkeypatch):
    sets = {example.TWO: (("some",), ("gone",)), example.NUMBERS: ((), ("some/one",))}
    options = {name: example.OPTIONS[example.TWO][name] for name in (example.OURS, example.NEWTON)}
    monkeypatch.setattr(example, "SETS", sets)
    monkeypatch.setattr(
        example, "OPTIONS", {example.TWO: options, example.NUMBERS: {example.OURS: {}}}
    )
    for name, new in (("TREES", 3), ("STAGES", (1, 2, 3)), ("TEST_ROWS", 100), ("DEPTHS", (2,))):
        monkeypatch.setattr(example, name, new)
    monkeypatch.setattr(example, "peers", dict)
    path, results = tmp_path / "table.rst", tmp_path / "results.json"
    options = ["--quick", "--data", str(folder), "--rst", str(path), "--results", str(results)]
    example.main(options)
    printed = capsys.readouterr().out
    assert path.read_text(encoding="utf-8").split(".. tables start here\n\n")[1] in printed + "\n"
    assert re.search(r"leaf_update='newton' +[+-]\d", printed)
    assert "real sets, depth 2" in printed
    stored = json.loads(results.read_text(encoding="utf-8"))
    assert sum("draw" in name for name in stored) == 4
    monkeypatch.setattr(example, "outcome", None)  # nothing is worked out again
    example.main(options)
    assert capsys.readouterr().out == printed
    with pytest.raises(SystemExit):
        example.main(["--quick", "--data", str(tmp_path)])


def test_many_labels(example, folder, monkeypatch):
    monkeypatch.setattr(example, "TREES", 5)
    X, categories, y = example.of_file(folder / "some.csv.gz", "some", example.MANY, 1000)
    assert sorted(set(y)) == [0, 1, 2]
    folds = example.folds_of(y, example.MANY, 1)
    assert all(set(y[folds[0] == k]) == {0, 1, 2} for k in range(5))
    data = example.DataSet("some", example.MANY, "chosen on", X, categories, y, folds)
    actual = dict(example.outcome(data, example.learners(data)["pboost"], 2))
    expected = []
    for k in range(5):
        train, test = folds[0] != k, folds[0] == k
        model = pb.fit_gradient_boosting(
            X[train],
            y[train],
            loss="softmax",
            n_estimators=5,
            max_depth=2,
            categorical_features=categories,
        )
        probabilities = pb.predict_proba(model, X[test])
        loss = -np.log(probabilities[np.arange(test.sum()), y[test]]).mean()
        expected.append([loss, 100 * (pb.predict(model, X[test]) != y[test]).mean()])
    assert actual[""] == pytest.approx(np.mean(expected, axis=0))
    few = example.of_file(folder / "some.csv.gz", "some", example.MANY, 20)[2]
    assert np.bincount(few).min() >= example.FOLDS
