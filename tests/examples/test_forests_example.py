"""The comparison of forests with a published table: its numbers are those of its models."""

from __future__ import annotations

import csv
import gzip
import re
import sys
from functools import partial

import numpy as np
import pytest
from example_modules import imported

import pboost as pb

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def example():
    with imported("forests_and_trees", "published_table", "oblique_trees") as module:
        yield module


def write(folder, file, names, lines):
    with gzip.open(folder / f"{file}.csv.gz", "wt", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([[*names, "target"], *lines])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three classes; a class of two rows; categories, with two incomplete rows."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)).round(3)
    zone = np.digitize(X[:, 0] + X[:, 1], [-0.5, 1.0])
    write(folder, "iris", "abc", [[*row, "xyz"[k]] for row, k in zip(X, zone, strict=True)])
    write(folder, "glass", "abc", [[*row, int(i < 2)] for i, row in enumerate(X)])
    colour = np.array(["red", "green", "blue"])[rng.integers(3, size=60)]
    lines = [[i % 7, c, int((c == "red") ^ (i % 7 > 4))] for i, c in enumerate(colour)]
    write(folder, "bhp", ["a", "b__cat"], [["", "red", 1], *lines, [3, "", 0]])
    return folder


def test_sets_are_found(example, folder):
    actual, left_out = example.data_sets(folder, quick=False)
    assert [data.name for data in actual] == ["Iris", "Glass", "BHP"]
    assert set(left_out.values()) == {"no data"}
    assert len(actual) + len(left_out) == 16
    iris, _, bhp = actual
    assert iris.X.shape == (90, 3)
    assert np.unique(iris.y).tolist() == ["x", "y", "z"]
    assert bhp.X.shape == (62, 2)
    assert bhp.categories == (1,)
    np.testing.assert_array_equal(np.argwhere(np.isnan(bhp.X)), [[0, 0], [61, 1]])
    full = slice(1, 61)
    red = bhp.X[full, 1] == 2
    np.testing.assert_array_equal(bhp.y[full] == "1", red ^ (bhp.X[full, 0] > 4))


def test_an_outcome_is_a_cross_validation(example, folder):
    actual, _ = example.data_sets(folder, quick=True)
    iris = actual[0]
    outcomes = example.outcomes_on(iris, quick=True)
    tree = partial(pb.fit_cart, max_depth=30, min_samples_split=20, min_samples_leaf=7)
    expected = {
        "forest": partial(pb.fit_random_forest, n_estimators=10, rng=0),
        "boosted trees": partial(pb.fit_samme, base_learner=tree, n_estimators=10),
        "pruned tree": partial(pb.fit_pruned_cart, rng=0),
    }
    assert outcomes.keys() == expected.keys()
    for name, fit in expected.items():
        accuracy = 100 - 100 * pb.cross_validate(fit, iris.X, iris.y, cv=3, rng=0).error
        np.testing.assert_allclose(outcomes[name].mean, accuracy.mean())
        np.testing.assert_allclose(outcomes[name].deviation, np.std(accuracy, ddof=1))
        assert outcomes[name].folds == 3
        assert outcomes[name].mean > 60


def test_a_rare_class_lowers_the_number_of_folds(example, folder):
    glass = example.data_sets(folder, quick=True)[0][1]
    assert example.outcomes_on(glass, quick=True)["forest"].folds == 2


def test_verdicts(example):
    # Standard errors of 0.6 and 0.8: two of the difference are 2.
    theirs = example.Outcome(90.0, 0.8 * np.sqrt(10), 10)
    expected = {87.9: "no", 88.1: "yes", 90.0: "yes", 91.9: "yes", 92.1: "better"}
    for mean, verdict in expected.items():
        assert example.verdict(example.Outcome(mean, 0.6 * 2, 4), theirs) == verdict
    exact = example.Outcome(100.0, 0.0, 10)
    assert example.verdict(exact, exact) == "yes"
    assert example.verdict(example.Outcome(99.9, 0.0, 10), exact) == "no"


def test_comparison_names_the_right_column(example):
    sets = [example.DataSet(name, np.ones((9, 1)), np.ones(9, str)) for name in ("Iris", "Letter")]
    results = [{"boosted trees": example.Outcome(mean, 0.5, 10)} for mean in (90.0, 90.0)]
    text = example.comparison(sets, results, "boosted trees")
    assert re.search(r"Iris +9 +10 +90\.00 ± 0\.50 +94\.00 ± 7\.34 +-4\.00 +yes", text)
    assert re.search(r"Letter +9 +10 +90\.00 ± 0\.50 +96\.12 ± 0\.36 +-6\.12 +no", text)
    assert "1 of 2 sets (50 %), the accuracy is within" in text


def test_command(example, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PBOOST_DATA", str(folder))
    table = sys.modules["published_table"].TABLE_2
    for name in table.keys() - {"Iris", "BHP"}:
        monkeypatch.delitem(table, name)
    path = tmp_path / "table.rst"
    example.main(["--quick", "--rst", str(path)])
    printed = capsys.readouterr()
    assert "Accuracy in %: forest, and RandomForest of the paper" in printed.out
    assert re.search(r"\d of 2 sets", printed.out)
    assert "left out" not in printed.out
    written = path.read_text(encoding="utf-8")
    assert written.split(".. tables start here\n\n")[1] == printed.out.removesuffix("\n")
    assert [line.split(":")[0] for line in printed.err.splitlines()] == ["Iris", "BHP"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no data: give --data FOLDER or set PBOOST_DATA"),
        (["--data", "nowhere"], "no data: nowhere is not a folder"),
        (["--data", "."], r"no data: \. has no file of a data set of Table 2"),
        (["--data", ".", "--rst", "nowhere/table.rst"], "--rst: nowhere is not a folder"),
    ],
)
def test_what_is_missing_is_said(example, arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PBOOST_DATA", raising=False)
    with pytest.raises(SystemExit) as stopped:
        example.main(arguments)
    assert stopped.value.code == 2
    assert re.search(message, capsys.readouterr().err)
