"""Free and symmetric trees where a pair tells the labels: the example's numbers are the models'."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pytest
from example_modules import imported

import pboost as pb

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def example():
    with imported("pairs_of_columns", "oblique_trees", "table_command") as module:
        yield module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(7000, 3)).round(2)
    y = np.where(X[:, 0] > 0.3 * rng.normal(size=7000), "no", "yes")
    with gzip.open(folder / "skin.csv.gz", "wt", encoding="utf-8", newline="") as out:
        rows = [[*of, "ab"[k % 2], label] for k, (of, label) in enumerate(zip(X, y, strict=True))]
        csv.writer(out).writerows([["one", "two", "three", "word__cat", "target"], *rows])
    return folder


def test_a_share_of_the_labels_is_that_of_the_pair(example):
    X, y = np.zeros((4000, 2)), np.zeros(4000, dtype=bool)
    for share in (0.0, 0.3, 1.0):
        wide, told = example.with_pair(X, y, share, np.random.default_rng(0))
        same = wide[:, 2] * wide[:, 3] > 0
        assert wide.shape == (4000, 4)
        assert told.mean() == pytest.approx(share / 2, abs=0.02)
        assert not told[~same].any()


def test_losses_are_those_of_the_models(example, monkeypatch):
    monkeypatch.setitem(example.OPTIONS, "n_estimators", 5)
    rng = np.random.default_rng(0)
    X, y = example.with_pair(rng.normal(size=(8000, 2)), rng.random(8000) < 0.5, 0.8, rng)
    (free, symmetric), chosen = example.losses(X, y, 4)
    assert chosen == "symmetric"
    for item, growth in ((free, "independent"), (symmetric, "symmetric")):
        model = pb.fit_gradient_boosting(
            X[:6000], y[:6000], max_depth=4, growth=growth, **example.OPTIONS
        )
        share = pb.predict_proba(model, X[6000:])[np.arange(2000), y[6000:].astype(int)]
        assert item == pytest.approx(-np.log(share).mean())


def test_command(example, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(example.OPTIONS, "n_estimators", 3)
    example.main(["--data", str(folder), "--rst", str(tmp_path / "table.rst")])
    output = capsys.readouterr().out
    assert output.strip() in (tmp_path / "table.rst").read_text()
    rows = [line.split() for line in output.splitlines() if line.strip().startswith("skin")]
    assert [(row[1], row[-1]) for row in rows] == [
        ("0", "independent"),
        ("0.3", "symmetric"),
        ("0.7", "symmetric"),
    ]
    with pytest.raises(SystemExit):
        example.main(["--data", str(tmp_path)])
