"""The comparison of many classes at equal comparisons: its numbers are those of the models."""

from __future__ import annotations

import csv
import gzip
import json

import numpy as np
import pytest
from example_modules import imported

import pboost as pb

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def example():
    names = ("many_classes_families", "oblique_trees", "table_command")
    with imported("many_classes", *names) as module:
        yield module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three labels, a category and holes; a fourth label is too rare."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)).round(3)
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.2, 2.0])
    y[:4] = 3
    rows = [[*row, "ab"[int(row[1] > 0)], "xyzw"[k]] for row, k in zip(X, y, strict=True)]
    rows[13][1] = rows[15][2] = ""
    for name in ("iris", "glass"):
        with gzip.open(folder / f"{name}.csv.gz", "wt", encoding="utf-8", newline="") as out:
            csv.writer(out).writerows([["one", "two", "word__cat", "target"], *rows])
    return folder


def test_divisions(example, folder):
    X, y, categories = example.read(folder / "iris.csv.gz", 1000)
    assert (X.shape, categories, sorted(set(y))) == ((196, 3), (2,), [0, 1, 2])
    split = example.divided(X, y, categories, 1)
    assert len(split.y) + len(split.y_test) == 196
    assert np.bincount(split.y).tolist() == pytest.approx((0.7 * np.bincount(y)).tolist(), abs=3)
    numbers = split.as_numbers()
    assert numbers.X.shape[1] == 4
    assert not np.isnan(numbers.X_test).any()


def test_figures_are_those_of_the_models(example, folder):
    split = example.divided(*example.read(folder / "iris.csv.gz", 1000), 0)
    grids = example.GRIDS
    fit = example.families(grids)[example.OURS]["8 leaves, rate 0.5"]
    actual = np.reshape(example.outcome(fit(split), split), (-1, len(example.FIGURES)))
    model = pb.fit_matryoshka(
        split.X, split.y, shape=(7, 100), join="all", learning_rate=0.5, categorical_features=[2]
    )
    for budget, (error, loss, brier, cost) in zip(example.BUDGETS, actual, strict=True):
        costs = [
            pb.prediction_cost(pb.models.truncate(model, k), split.X).mean()
            for k in range(1, model.n_nodes + 1)
        ]
        part = pb.models.truncate(model, int(np.searchsorted(costs, budget, side="right")))
        probabilities = pb.predict_proba(part, split.X_test)
        share = probabilities[np.arange(len(probabilities)), split.y_test]
        assert error == pytest.approx(100 * np.mean(probabilities.argmax(axis=1) != split.y_test))
        assert loss == pytest.approx(-np.log(np.maximum(share, example.LEAST)).mean())
        truth = np.eye(3)[split.y_test]
        assert brier == pytest.approx(((probabilities - truth) ** 2).sum(axis=1).mean())
        assert cost == pytest.approx(pb.prediction_cost(part, split.X_test).mean())


def test_choices(example):
    values = np.array([[[1.0], [5.0], [2.0]], [[2.0], [1.0], [4.0]], [[3.0], [3.0], [3.0]]])
    values = np.repeat(values, len(example.BUDGETS), axis=2)
    assert example.fixed(values)[:, 0].tolist() == [2, 1, 4]
    assert example.left_out(values)[:, 0].tolist() == [2, 5, 4]
    assert example.one_for_all(values)[:, 1].tolist() == [2, 1, 4]
    cells = example.against_ours({example.OURS: values[0], "other": values[2]}, 1)
    assert cells["other"][0] == "+0.3 ± 1.2 (2 : 1)"


def test_command(example, folder, tmp_path, capsys):
    path, results = tmp_path / "table.rst", tmp_path / "results.json"
    options = ["--quick", "--data", str(folder), "--rst", str(path), "--results", str(results)]
    example.main(options)
    printed = capsys.readouterr().out
    assert path.read_text(encoding="utf-8").split(".. tables start here\n\n")[1] in printed + "\n"
    assert "means of 2 sets, settings chosen on the other sets" in printed
    stored = json.loads(results.read_text(encoding="utf-8"))
    assert list(stored) == ["iris, split 0", "glass, split 0"]
    results.write_text(json.dumps(stored))
    example.outcome = None  # nothing is worked out again
    example.main(options)
    assert capsys.readouterr().out == printed
    with pytest.raises(SystemExit):
        example.main(["--quick", "--data", str(tmp_path)])
