"""The comparison of oblique trees with their source: numbers are those of the models it names."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import math
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import pboost as pb

pytestmark = pytest.mark.full

SCRIPT = Path(__file__).parents[2] / "examples" / "oblique_trees.py"


@pytest.fixture(scope="module")
def example():
    if not SCRIPT.exists():
        pytest.skip("no examples/ beside tests/")
    spec = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[SCRIPT.stem] = module  # where its dataclasses look for their annotations
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SCRIPT.parent))
    module.peers = dict  # whatever is installed here
    yield module
    del sys.modules[SCRIPT.stem]


def write(folder, file, names, lines):
    with gzip.open(folder / f"{file}.csv.gz", "wt", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([[*names, "target"], *lines])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A domain of categories, a numeric one, a mixed one with few rows of a class, one of holes."""
    folder = tmp_path_factory.mktemp("data")
    X, y = pb.datasets.monks(2)
    write(
        folder,
        "monks2_uci",
        [f"a{j}__cat" for j in range(6)],
        [[*row, label] for row, label in zip(X.tolist(), y.tolist(), strict=True)],
    )
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)).round(3)
    write(folder, "bupa", "abc", [[*row, "in" if sum(row) > 0 else "out"] for row in X])
    lines = [[row[0], "red" if row[1] > 0 else "blue", int(i < 2)] for i, row in enumerate(X[:30])]
    write(folder, "sonar", ["a", "b__cat"], lines)
    holes = [["yn"[int(row[0] > 0)], row[1], int(row[0] > 0)] for row in X[:60]]
    holes[3][0] = holes[4][1] = ""
    write(folder, "vote", ["a__cat", "b"], holes)
    return folder


def test_domains_are_found(example, folder):
    actual, left_out = example.domains(folder, quick=False)
    assert [domain.name for domain in actual] == ["Bupa", "Monks2", "Sonar", "Vote"]
    assert left_out["Sick"] == "no data"
    assert len(actual) + len(left_out) == len(example.TABLE_1) == 25
    bupa, monks, sonar, vote = actual
    assert bupa.X.shape == (90, 3)
    np.testing.assert_array_equal(bupa.y, bupa.X.sum(axis=1) <= 0)
    assert monks.X.shape == (432, 17)
    assert sonar.X.shape == (30, 3)
    np.testing.assert_array_equal(sonar.X[:, 1] + sonar.X[:, 2], 1)
    assert vote.X.shape == (60, 2)
    np.testing.assert_array_equal(np.argwhere(np.isnan(vote.X)), [[3, 0], [4, 1]])
    assert [domain.categories for domain in actual] == [(), (), (), (0,)]


def test_holes_stay(example, folder):
    vote = example.domains(folder, quick=False)[0][-1]
    fit = partial(pb.fit_oblique_tree, categorical_features=[0])
    result = pb.cross_validate(fit, vote.X, vote.y, cv=3, rng=0)
    outcome = example.cross_validated(50, vote, quick=True)
    np.testing.assert_allclose(outcome.error, 100 * result.error.mean())
    assert outcome.error < 10


def test_an_outcome_is_a_cross_validation(example, folder):
    actual, _ = example.domains(folder, quick=False)
    bupa, _, sonar, _ = actual
    outcome = example.cross_validated(50, bupa, quick=True)
    result = pb.cross_validate(pb.fit_oblique_tree, bupa.X, bupa.y, cv=3, rng=0)
    np.testing.assert_allclose(outcome.error, 100 * result.error.mean())
    assert example.folds_of(sonar, quick=False) == 2
    assert 0 <= example.cross_validated(50, sonar, quick=False).error < 50


def test_another_library_is_run_on_the_same_folds(example, folder):
    bupa = example.domains(folder, quick=True)[0][0]

    def fit(X, y, categories):
        model = pb.fit_oblique_tree(X, y, categorical_features=list(categories))
        return lambda rows: pb.predict(model, rows)

    outcome = example.peer(fit, bupa, quick=True)
    assert outcome.error == example.cross_validated(50, bupa, quick=True).error
    assert outcome.seconds > 0


def test_verdicts(example):
    assert example.standard_error(20, 100) == 4
    apart = 2 * math.hypot(example.standard_error(20, 100), example.standard_error(30, 100))
    assert apart > 10
    cases = {
        (30, 20, 100): "yes",
        (30, 20, 10_000): "no",
        (20, 30, 100): "yes",
        (20, 30, 10_000): "better",
        (0, 0, 9): "yes",
    }
    assert {case: example.verdict(*case) for case in cases} == cases


def test_wins_are_counted(example):
    actual = [
        example.Domain(name, np.ones((9, 1)), np.ones(9, bool))
        for name in ("Bupa", "Monks1", "Mushroom")
    ]
    errors = ({50: 37.0, 200: 38.0}, {50: 0.0, 200: 1.0}, {50: 0.0, 200: 0.0})
    results = [{example.own(k): example.Outcome(e[k], 1.0) for k in e} for e in errors]
    text = example.wins(actual, results)
    # OC1: 37.97, 0.00, 0.05; AdaBoost+C4.5: 31.59, 2.16, 0.00. The paper: 28.12, 25.36, 0.00.
    rows = {line.strip().split("  ")[0]: line for line in text.splitlines()[2:]}
    assert re.findall(r"\d : \d", rows["against OC1"]) == ["2 : 0", "1 : 2", "2 : 1", "2 : 1"]
    assert re.findall(r"\d : \d", rows["against AdaBoost+C4.5"]) == ["1 : 1"] * 4
    assert "p = 0.250" in rows["against OC1"]  # two of two


def test_command(example, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PBOOST_DATA", str(folder))
    path = tmp_path / "table.rst"
    example.main(["--quick", "--rst", str(path)])
    printed = capsys.readouterr()
    assert "Error in % with 50 stumps" in printed.out
    assert "left out: Adult-strech (no data)" in printed.out
    assert re.search(r"With 200 stumps, the errors on \d of 3 domains", printed.out)
    written = path.read_text(encoding="utf-8")
    assert written.split(".. tables start here\n\n")[1] == printed.out.removesuffix("\n")
    assert [line.split(":")[0] for line in printed.err.splitlines()] == ["Bupa", "Monks2", "Sonar"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no data: give --data FOLDER or set PBOOST_DATA"),
        (["--data", "nowhere"], "no data: nowhere is not a folder"),
        (["--data", "."], r"no data: \. has no file of a domain"),
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
