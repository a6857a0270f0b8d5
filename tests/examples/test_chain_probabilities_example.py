"""The comparison of probabilities of chains with and without their temperature."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from example_modules import imported

import pboost as pb


@pytest.fixture(scope="module")
def example():
    modules = ("default_boosters", "oblique_trees", "table_command")
    with imported("chain_probabilities", *modules) as module:
        yield module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)).round(3)
    noisy = X[:, 0] + rng.normal(size=120)
    targets = {"binary": noisy > 0, "multiclass": np.digitize(noisy, [-0.7, 0.7])}
    targets["regression"] = noisy
    for task, target in targets.items():
        with gzip.open(folder / f"{task}.csv.gz", "wt", encoding="utf-8", newline="") as out:
            rows = [[*row, t] for row, t in zip(X.tolist(), target.tolist(), strict=True)]
            csv.writer(out).writerows([["a", "b", "target"], *rows])
    with open(folder / "INDEX.csv", "w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([["file", "task"], *([f"{t}.csv.gz", t] for t in targets)])
    return folder


def test_losses_by_hand(example):
    share = np.array([[0.9, 0.1], [0.62, 0.38], [0.4, 0.6]])
    loss, ece = example.losses(share, np.array([0, 1, 1]))
    assert loss == pytest.approx(-np.log([0.9, 0.38, 0.6]).mean())
    # The probabilities 0.6 and 0.62 are in the same bin: one right prediction of two.
    assert ece == pytest.approx((0.1 + abs(1 - 0.6 - 0.62)) / 3)


def test_tables(example, folder, tmp_path, monkeypatch, capsys):
    stumps = partial(pb.fit_adaboost, n_estimators=30)
    monkeypatch.setattr(example, "LEARNERS", {"stumps": stumps})
    rst = tmp_path / "table.rst"
    example.main(["--data", str(folder), "--second", str(folder), "--quick", "--rst", str(rst)])
    text = capsys.readouterr().out
    assert text.strip() in rst.read_text()
    lines = [line.split() for line in text.splitlines() if line.strip().startswith("stumps")]
    assert [line[1] for line in lines] == ["2", "more"] * 2
    data = next(iter(example.data_sets(folder, 200)))
    (before, _), (after, _) = example.outcome(data, stumps)
    assert lines[0][3:5] == [f"{before:.3f}", f"{after:.3f}"]
    fold = example.folds_of(data)
    losses = []
    for k in (0, 1):
        model = stumps(data.X[fold != k], data.y[fold != k])
        share = pb.predict_proba(replace(model, temperature=1.0), data.X[fold == k])
        losses.append(example.losses(share, data.y[fold == k])[0])
    assert before == pytest.approx(np.mean(losses))
    model = example.samme(data.X[:60], data.y[:60], None, 1)
    assert model.settings["builder"] == "fit_samme"
