"""The example of tables with holes and words: its numbers are those of its models."""

from __future__ import annotations

import csv
import gzip
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from example_modules import imported

import pboost as pb

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def example():
    with imported("real_tables", "oblique_trees", "table_command") as module:
        yield module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Words and holes with a rare label, and complete numbers."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).round(3)
    colour = np.array(["blue", "green", "red"])[rng.integers(3, size=300)]
    y = X[:, 0] + (colour == "green") > 0.3
    words = [[a, c, k] for a, c, k in zip(X[:, 0].astype(str), colour, y.astype(int), strict=True)]
    for i in range(0, 300, 7):
        words[i][i % 2] = ""
    numbers = [[*row, k] for row, k in zip(X, (X[:, 0] > X[:, 1]).astype(int), strict=True)]
    for file, names, lines in (
        ("words", ["a", "b__cat"], [*words, ["0", "red", "rare"]]),
        ("numbers", "abc", numbers),
    ):
        with gzip.open(folder / f"{file}.csv.gz", "wt", encoding="utf-8", newline="") as out:
            csv.writer(out).writerows([[*names, "target"], *lines])
    return folder


@pytest.fixture
def few(example, monkeypatch):
    """Few sets, builders and repetitions."""
    full = example.builders

    def some(*options, **more):
        fits = full(*options, **more)
        return {name: fits[name] for name in ("AdaBoost", "pruned CART")}

    sets = {example.WORDS: ("words", "gone"), example.AT_RANDOM: ("numbers",)}
    sets[example.LARGE] = ("numbers",)
    for name, value in {
        "SETS": sets,
        "WITH_LEVELS": ("numbers",),
        "builders": some,
        "REPEATS": 2,
        "DRAWS": 2,
        "CHOICE_REPEATS": 1,
        "SMOOTHINGS": (0, 10),
        "BUILDERS": ("AdaBoost", "pruned CART"),
        "SMOOTHED": ("AdaBoost", "pruned CART"),
        "LEVEL_BUILDERS": ("pruned CART",),
        "peers": dict,
    }.items():
        monkeypatch.setattr(example, name, value)


def test_sets(example, folder, few):
    words, at_random, large = example.data_sets(folder, example.SETS, quick=False)
    (full,) = example.data_sets(folder, {example.COMPLETE: ("numbers",)}, quick=False)
    assert words.X.shape == (300, 2)  # without the rare label
    assert words.categories == (1,)
    np.testing.assert_array_equal(np.isnan(words.X[::7]).sum(axis=1), 1)
    assert set(words.X[~np.isnan(words.X[:, 1]), 1]) == {0, 1, 2}
    assert not np.isnan(full.X).any()
    for data in (at_random, large):
        gone = np.isnan(data.X)
        np.testing.assert_array_equal(data.X[~gone], full.X[~gone])
        assert abs(gone.mean() - example.REMOVED) < 0.03
    median = np.median(full.X, axis=0)
    assert not (np.isnan(large.X) & (median > full.X)).any()
    assert (np.isnan(at_random.X) & (median > full.X)).any()


def test_folds_hold_the_labels_in_equal_parts(example):
    y = np.repeat([0, 1, 2], [12, 30, 58])
    fold = example.folds_of(y, np.random.default_rng(0))
    for label in range(3):
        assert np.ptp(np.bincount(fold[y == label], minlength=example.FOLDS)) <= 1


def test_one_hot_and_means(example):
    nan = np.nan
    X = np.array([[1.0, 0], [nan, 2], [3.0, 2], [5.0, nan]])
    new = np.array([[nan, 1.0], [7.0, nan]])
    rows, others = example.one_hot_and_means(X, new, (1,))
    third = 1 / 3
    np.testing.assert_allclose(rows, [[1, 1, 0], [3, 0, 1], [3, 0, 1], [5, third, 2 * third]])
    np.testing.assert_allclose(others, [[3, 0, 0], [7, third, 2 * third]])


def test_an_outcome_is_a_cross_validation(example, folder, few):
    words = example.data_sets(folder, example.SETS, quick=False)[0]
    actual = example.handlings(words)
    fold = example.folds_of(words.y, np.random.default_rng([example.SEED, 3]))
    for how in (example.NATIVE, example.ENCODED):
        wrong = 0
        for k in range(5):
            test = fold == k
            X, y, new = words.X[~test], words.y[~test], words.X[test]
            options = {"categorical_features": [1]}
            if how == example.ENCODED:
                (X, new), options = example.one_hot_and_means(X, new, (1,)), {}
            model = pb.fit_pruned_cart(X, y, rng=3, **options)
            wrong += np.sum(pb.predict(model, new) != words.y[test])
        error = example.error(actual[f"pruned CART, {how}"], words, 3)
        assert error == pytest.approx(100 * wrong / len(fold))


def test_levels_are_drawn_anew(example, folder, few):
    (full,) = example.data_sets(folder, {example.COMPLETE: ("numbers",)}, quick=False)
    seen = []

    def spy(X, y, new, categories, seed):
        seen.append((X[:, -1], categories))
        return np.zeros(len(new))

    for repeat in (0, 1):
        example.error(spy, replace(full, has_levels=True), repeat)
    assert {categories for _, categories in seen} == {(3,)}
    assert np.all(np.concatenate([levels for levels, _ in seen]) < example.LEVELS)
    assert (seen[0][0] != seen[5][0]).any()


def test_builders(example, folder):
    for is_two in (True, False):
        assert tuple(example.builders(is_two)) == example.BUILDERS
    words = replace(
        example.data_sets(folder, {example.WORDS: ("words",)}, quick=False)[0], name="other"
    )
    y = np.where(words.X[:, 0] > 0.5, 2, words.y)
    for fit in example.builders(False, 3).values():
        said = example.native(fit, words.X[:60], y[:60], words.X[60:], words.categories, 0)
        assert np.mean(said == y[60:]) > 0.6


def test_the_peers_take_what_is_there(example):
    for learner in example.peers().values():
        rng = np.random.default_rng(0)
        X = np.column_stack([np.arange(400.0) % 300, rng.normal(size=400)])
        X[::9] = np.nan
        y = (X[:, 1] > 0).astype(int)
        new = np.array([[299.0, -2], [5, 2], [-1, np.nan]])
        assert learner(X, y, new, (0,), 0)[:2].tolist() == [0, 1]


def test_command(example, folder, few, tmp_path, capsys):
    results, path = tmp_path / "results.json", tmp_path / "table.rst"
    command = ["--data", str(folder), "--results", str(results), "--rst", str(path)]
    example.main(command)
    first = capsys.readouterr()
    assert re.search(r"words +300 +\d+\.\d / \d+\.\d +\d+\.\d / \d+\.\d", first.out)
    assert re.search(r"AdaBoost +[+-]\d+\.\d+ ± 0\.00 +[+-]", first.out)
    assert re.search(r"pruned CART +mean +[+-]\d+\.\d+ ± \d+\.\d+", first.out)
    assert "10 - 0" in first.out
    known = json.loads(results.read_text())
    assert len(known["words, missing values or categories"]["AdaBoost, as it is"]) == 2
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
