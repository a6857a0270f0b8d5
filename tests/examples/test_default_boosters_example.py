"""The comparison of boosters with default parameters, on small sets."""

from __future__ import annotations

import csv
import gzip
import json

import numpy as np
import pytest
from example_modules import imported

import pboost as pb


@pytest.fixture(scope="module")
def example():
    with imported("default_boosters", "oblique_trees", "table_command") as module:
        yield module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Sets of each task, with missing values, a category, and a class of two rows."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)).round(3)
    word = np.array(["blue", "green", "red"])[rng.integers(3, size=90)]
    targets = {"binary": X[:, 0] > 0, "multiclass": np.digitize(X[:, 0], [-0.5, 0.5])}
    targets["regression"] = X[:, 0] * 100
    index = []
    for task, target in targets.items():
        for name in (f"{task}1", f"{task}2"):
            rows = [[*row, w, t] for row, w, t in zip(X.tolist(), word, target, strict=True)]
            for i in range(0, 90, 9):
                rows[i][i % 3] = ""
            if task == "binary":
                rows += [[0, 0, "red", "rare"]] * 2
            with gzip.open(folder / f"{name}.csv.gz", "wt", encoding="utf-8", newline="") as out:
                csv.writer(out).writerows([["a", "b", "word__cat", "target"], *rows])
            index.append([f"{name}.csv.gz", task])
    with open(folder / "INDEX.csv", "w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([["file", "task"], *index])
    return folder


def test_losses_are_those_of_the_models(example, folder, tmp_path, capsys, monkeypatch):
    library = example.LIBRARIES["pboost"]._replace(equal={"n_estimators": 3})
    monkeypatch.setattr(example, "LIBRARIES", {"pboost": library})
    results = tmp_path / "results.json"
    peers = {}
    for task in ("binary", "multiclass", "regression"):
        for k in (1, 2):
            key = f"{task}{k}, {task}, 200 rows, 1 folds, equal"
            peers[key] = {"CatBoost 1.0": [0.5, 2.0 * k]}
    results.write_text(json.dumps(peers), encoding="utf-8")
    monkeypatch.setitem(example.LIBRARIES, "CatBoost", library)
    monkeypatch.setattr(example, "installed", lambda: {"pboost": "pboost"})
    example.main(["--data", str(folder), "--quick", "--equal", "--results", str(results)])
    text = capsys.readouterr().out
    assert text.count("CatBoost 1.0") == 3
    outcomes = json.loads(results.read_text(encoding="utf-8"))
    for data in example.data_sets(folder, 200):
        fold = example.folds_of(data)
        assert np.bincount(fold).min() >= 17
        X, y = data.X[fold != 0], data.y[fold != 0]
        model = pb.fit_gradient_boosting(
            X,
            y,
            n_estimators=3,
            categorical_features=[2],
            task="regression" if data.task == "regression" else "classification",
        )
        rows, truth = data.X[fold == 0], data.y[fold == 0]
        if data.task == "regression":
            assert y.std() < 2
            expected = np.mean((pb.predict(model, rows) - truth) ** 2) ** 0.5
        else:
            assert set(truth) == set(range(2 + (data.task == "multiclass")))
            expected = -np.log(pb.predict_proba(model, rows)[np.arange(len(truth)), truth]).mean()
        (own, cpu) = outcomes[f"{data.name}, {data.task}, 200 rows, 1 folds, equal"]["pboost"]
        assert own == pytest.approx(expected)
        assert cpu > 0
