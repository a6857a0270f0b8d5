"""The comparison of stagewise models with scikit-learn: its numbers are those of its models."""

from __future__ import annotations

import csv
import gzip
import re

import numpy as np
import pytest
from example_modules import imported

import pboost as pb
from pboost.data.resampling import assign_folds

pytestmark = pytest.mark.full

pytest.importorskip("sklearn.base")


@pytest.fixture(scope="module")
def example():
    with imported("stagewise", "oblique_trees") as module:
        yield module


def data(n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")


def test_accuracy_is_that_of_the_library(example):
    X, y = data()
    actual = example.outcomes(X, y, 5)
    assert list(actual) == ["exact", "binned", "GradientBoosting", "HistGradientBoosting"]
    fold = assign_folds(y, None, 5, np.random.default_rng(0))
    right = []
    for k in range(5):
        model = pb.fit_gradient_boosting(
            X[fold != k], y[fold != k], loss="log_loss", n_estimators=5, search="exact"
        )
        right.append(100 * np.mean(pb.predict(model, X[fold == k]) == y[fold == k]))
    mean, sd, seconds = actual["exact"]
    assert mean == pytest.approx(np.mean(right))
    assert sd == pytest.approx(np.std(right, ddof=1))
    assert seconds > 0
    assert all(item[0] > 70 for item in actual.values())


def test_few_rows(example):
    X, y = np.arange(20000.0)[:, None], np.arange(20000)
    some, labels = example.few(X, y)
    assert len(labels) == example.MOST_ROWS
    np.testing.assert_array_equal(some[:, 0], labels)
    assert example.few(X[:9], y[:9])[0].shape == (9, 1)


def test_command(example, tmp_path, capsys):
    X, y = data()
    with gzip.open(tmp_path / "pima.csv.gz", "wt", encoding="utf-8", newline="") as out:
        lines = [[*row, label] for row, label in zip(X.round(3), y, strict=True)]
        csv.writer(out).writerows([["a", "b", "c", "target"], *lines])
    path = tmp_path / "table.rst"
    example.main(["--quick", "--data", str(tmp_path), "--rst", str(path)])
    printed = capsys.readouterr().out
    assert re.search(r"pima +200 +\d\d\.\d\d ± \d+\.\d\d \(1\.00\)", printed)
    written = path.read_text(encoding="utf-8")
    assert written.split(".. tables start here\n\n")[1] == printed.removesuffix("\n")
    with pytest.raises(SystemExit):
        example.main(["--data", str(tmp_path)])
    assert "spambase: no data" in capsys.readouterr().err
