"""The example that compares defaults: its numbers are those of its models."""

from __future__ import annotations

import csv
import gzip
import json
import re
from functools import partial

import numpy as np
import pytest
from example_modules import imported

import pboost as pb

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def example():
    with imported("defaults", "oblique_trees", "table_command") as module:
        yield module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two classes, with a category and an incomplete row; three, one of them rare."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).round(3)
    score = X[:, 0] + X[:, 1] * X[:, 2]
    colour = np.array(["blue", "red"])[(X[:, 2] > 0).astype(int)]
    two = [[*row, c, int(s > 0)] for row, c, s in zip(X, colour, score, strict=True)]
    three = [
        [*row, "-", "abc"[k]] for row, k in zip(X, np.digitize(score, [-0.5, 0.5]), strict=True)
    ]
    three[0][-1] = "rare"
    for file, lines in (("two", [[1.0, "", 2.0, "red", 0], *two]), ("three", three)):
        with gzip.open(folder / f"{file}.csv.gz", "wt", encoding="utf-8", newline="") as out:
            csv.writer(out).writerows([["a", "b", "c", "d__cat", "target"], *lines])
    return folder


@pytest.fixture
def few(example, monkeypatch):
    """Few sets and learners."""
    sets = {
        example.TWO: (("two",), ("gone",)),
        example.MANY: (("three",), ()),
        example.NUMBERS: (("two/b",), ("friedman",)),
    }
    stages = partial(pb.fit_gradient_boosting, loss="squared_error", n_estimators=5)
    candidates = {
        example.TWO: {
            "fit_adaboost": {
                "rounds": partial(example.staged, partial(pb.fit_adaboost, n_estimators=8), (2, 8))
            }
        },
        example.MANY: {
            "fit_cart": {"max_depth 2": partial(example.own, partial(pb.fit_cart, max_depth=2))}
        },
        example.NUMBERS: {
            "fit_gradient_boosting": {"steps": partial(example.staged, stages, (3, 5))}
        },
    }
    fits = {
        example.TWO: {"fit_adaboost": pb.fit_adaboost},
        example.MANY: {"fit_cart": pb.fit_cart},
        example.NUMBERS: {"fit_gradient_boosting": pb.fit_gradient_boosting},
    }
    learners = {
        kind: {name: partial(example.own, fit) for name, fit in of.items()}
        for kind, of in fits.items()
    }
    rival = {"rival": partial(example.own, partial(pb.fit_cart, max_depth=1))}
    monkeypatch.setattr(example, "SETS", sets)
    monkeypatch.setattr(example, "candidates", candidates.get)
    monkeypatch.setattr(example, "with_defaults", learners.get)
    monkeypatch.setattr(example, "peers", lambda kind: rival if kind == example.TWO else {})
    monkeypatch.setattr(example, "CHOSEN", {"fit_adaboost: rounds 8"})


def test_sets(example, folder, few):
    two, three, numbers, apart = example.data_sets(folder, quick=False)
    assert two.X.shape == (300, 5)
    np.testing.assert_array_equal(two.X[:, 3:].sum(axis=1), 1)
    assert two.y.dtype == bool
    assert three.y.tolist().count("rare") == 0
    assert len(three.y) == 299
    np.testing.assert_array_equal(numbers.X, two.X[:, [0, 2]])
    np.testing.assert_array_equal(numbers.y, two.X[:, 1])
    assert (apart.is_apart, two.is_apart) == (True, False)
    for data in (two, three, numbers, apart):
        assert np.ptp(np.bincount(data.fold)) <= 1
    assert np.ptp(np.bincount(two.fold, two.y)) <= 1
    assert len(example.data_sets(folder, quick=True)[0].y) == 200


def test_an_outcome_is_a_cross_validation(example, folder, few):
    two, _, numbers, _ = example.data_sets(folder, quick=False)
    actual = example.outcome(example.candidates(example.TWO)["fit_adaboost"]["rounds"], two)
    assert list(actual) == [" 2", " 8"]
    for rounds in (2, 8):
        errors, losses = [], []
        for k in range(5):
            test = two.fold == k
            model = pb.fit_adaboost(two.X[~test], two.y[~test], n_estimators=rounds)
            errors.append(100 * np.mean(pb.predict(model, two.X[test]) != two.y[test]))
            share = pb.predict_proba(model, two.X[test])
            truth = share[np.arange(test.sum()), two.y[test].astype(int)]
            losses.append(-np.log(np.maximum(truth, 1e-6)).mean())
        np.testing.assert_allclose(actual[f" {rounds}"][:2], [np.mean(errors), np.mean(losses)])
    actual = example.outcome(
        example.candidates(example.NUMBERS)["fit_gradient_boosting"]["steps"], numbers
    )
    errors = []
    for k in range(5):
        test = numbers.fold == k
        model = pb.fit_gradient_boosting(
            numbers.X[~test], numbers.y[~test], loss="squared_error", n_estimators=3
        )
        residual = pb.predict(model, numbers.X[test]) - numbers.y[test]
        errors.append(100 * np.mean(residual**2) / np.var(numbers.y[test]))
    np.testing.assert_allclose(actual[" 3"][0], np.mean(errors))


def test_sizes_beyond_the_last_stage_are_the_last(example):
    X = np.arange(6.0)[:, None]
    fit = partial(pb.fit_boosted_tree, max_nodes=9)
    actual = dict(example.staged(fit, (1, 3, 9), X, X[:, 0] > 2, X))
    assert list(actual) == [" 1", " 3", " 9"]
    np.testing.assert_array_equal(actual[" 1"], actual[" 9"])


def test_every_builder_is_there(example):
    builders = {name for name in pb.__all__ if name.startswith("fit_")}
    builders -= {"fit_within_budget"}  # which has no default budget
    named = " ".join(name for kind in example.SETS for name in example.with_defaults(kind))
    assert set(re.findall(r"fit_\w+", named)) == builders
    every = {f"{of}: " for kind in example.SETS for of in example.candidates(kind)}
    assert {name.partition(": ")[0] + ": " for name in example.CHOSEN} <= every


def test_command(example, folder, few, tmp_path, capsys):
    results, path = tmp_path / "results.json", tmp_path / "table.rst"
    command = ["--data", str(folder), "--results", str(results), "--rst", str(path)]
    example.main(command)
    first = capsys.readouterr()
    assert re.search(r"fit_adaboost +\d+\.\d+ +\d\.\d+ +\d+ +[+-]\d+\.\d+ ± 0\.00", first.out)
    assert re.search(r"rounds 8 +\d+\.\d+ +default", first.out)
    assert re.search(r"rounds 2 +\d+\.\d+ +[+-]\d+\.\d+ ± 0\.00", first.out)
    assert set(json.loads(results.read_text())) == {"two", "three", "two/b", "friedman"}
    assert re.match(r"two: \d+ s\nthree: ", first.err)
    assert path.read_text(encoding="utf-8").endswith(first.out.removesuffix("\n"))
    # What is stored is not worked out again.
    example.main(command)
    second = capsys.readouterr()
    assert (second.out, second.err) == (first.out, "")


def test_what_is_missing_is_said(example, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        example.main(["--data", str(tmp_path)])
    assert stopped.value.code == 2
    assert "has no file of a data set" in capsys.readouterr().err
