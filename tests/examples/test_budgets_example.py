"""The comparison of models within budgets: its costs and figures are those of the models."""

from __future__ import annotations

import csv
import functools
import gzip
import importlib
import json
import re

import numpy as np
import pytest
from example_modules import imported

import pboost as pb

pytestmark = pytest.mark.full

MODULES = (
    "budget_choice",
    "budget_peers",
    "budget_tables",
    "boosted_sets",
    "many_classes",
    "many_classes_families",
    "oblique_trees",
    "table_command",
)


@pytest.fixture(scope="module")
def example():
    with imported("budgets", *MODULES) as module:
        yield module


@pytest.fixture(scope="module")
def peers(example):
    return importlib.import_module("budget_peers")


@pytest.fixture(scope="module")
def choice(example):
    return importlib.import_module("budget_choice")


@pytest.fixture(scope="module", params=[2, 3])
def rows(request, example):
    """Rows with a column of levels and holes, and new ones, some of which have a new level."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(360, 3)).round(2)
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.4, 1.5][: request.param - 1])
    X[:, 2] = np.floor(2 * X[:, 1] + rng.normal(size=360)) % 5
    X[3, 0] = X[5, 2] = X[300, 2] = np.nan
    X[310, 2] = 7
    return example.Rows(X[:240], y[:240].astype(np.int64), (2,)), X[240:]


def whole(stages):
    """The scores and comparisons of all rounds."""
    return stages.score[:, -1], stages.cost[:, -1]


def test_xgboost(example, peers, rows, monkeypatch):
    """Against paths that are walked node by node on the library's own table of its trees."""
    xgboost = pytest.importorskip("xgboost")
    of, new = rows
    fitted = []
    train = xgboost.train
    monkeypatch.setattr(xgboost, "train", lambda *a: fitted.append(train(*a)) or fitted[-1])
    monkeypatch.setattr(peers, "MOST_ROUNDS", 7)
    numbers = example.Rows(np.nan_to_num(of.X), of.y, ())
    new = np.nan_to_num(new)
    for multi in (False, True)[: of.n_labels - 1]:
        score, cost = whole(peers.xgboost(3, 0.5, numbers, multi=multi)(new))
        expected = np.zeros(len(new))
        document = json.loads(fitted[-1].save_raw("json").decode())
        for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
            for i, row in enumerate(new):
                node = 0
                while tree["left_children"][node] >= 0:
                    left = np.float32(row[tree["split_indices"][node]]) < np.float32(
                        tree["split_conditions"][node]
                    )
                    node = tree["left_children" if left else "right_children"][node]
                    expected[i] += 1
        np.testing.assert_array_equal(cost, expected)
        assert len(fitted[-1].get_dump()) == 7 * (
            of.n_labels if of.n_labels > 2 and not multi else 1
        )
        data = xgboost.DMatrix(new, base_margin=np.tile(of.prior, (len(new), 1)).squeeze())
        margin = fitted[-1].predict(data, output_margin=True)
        np.testing.assert_allclose(score, margin, atol=1e-5)


def test_lightgbm(example, peers, rows, monkeypatch):
    lightgbm = pytest.importorskip("lightgbm")
    of, new = rows
    fitted = []
    train = lightgbm.train
    monkeypatch.setattr(lightgbm, "train", lambda *a: fitted.append(train(*a)) or fitted[-1])
    monkeypatch.setattr(peers, "MOST_ROUNDS", 7)
    numbers = example.Rows(np.nan_to_num(of.X), of.y, ())
    score, cost = whole(peers.lightgbm(8, 0.3, numbers)(np.nan_to_num(new)))
    expected = np.zeros(len(new))
    for tree in fitted[-1].dump_model()["tree_info"]:
        for i, row in enumerate(np.nan_to_num(new)):
            node = tree["tree_structure"]
            while "left_child" in node:
                below = row[node["split_feature"]] <= node["threshold"]
                node = node["left_child" if below else "right_child"]
                expected[i] += 1
    np.testing.assert_array_equal(cost, expected)
    assert len(fitted[-1].dump_model()["tree_info"]) == 7 * (1 if of.n_labels == 2 else 3)
    np.testing.assert_allclose(
        score, fitted[-1].predict(np.nan_to_num(new), raw_score=True), atol=1e-5
    )
    score, _ = whole(peers.lightgbm(8, 0.3, of)(new))
    np.testing.assert_allclose(score, fitted[-1].predict(new, raw_score=True), atol=1e-5)


def test_catboost(example, peers, rows, monkeypatch, tmp_path):
    catboost = pytest.importorskip("catboost")
    of, new = rows
    fitted = []
    kind = catboost.CatBoostClassifier
    monkeypatch.setattr(
        catboost, "CatBoostClassifier", lambda **k: fitted.append(kind(**k)) or fitted[-1]
    )
    monkeypatch.setattr(peers, "MOST_ROUNDS", 7)
    numbers = example.Rows(np.nan_to_num(of.X), of.y, ())
    score, cost = whole(peers.catboost(4, 0.3, numbers)(np.nan_to_num(new)))
    fitted[-1].save_model(str(tmp_path / "model.json"), format="json")
    trees = json.loads((tmp_path / "model.json").read_text())["oblivious_trees"]
    assert len(trees) == 7
    assert set(cost) == {sum(len(tree["splits"]) for tree in trees)}
    said = fitted[-1].predict(np.nan_to_num(new), prediction_type="RawFormulaVal")
    np.testing.assert_allclose(score, said, atol=1e-5)
    assert whole(peers.catboost(4, 0.3, of)(new))[0].shape == said.shape


def test_histograms(example, peers, rows):
    ensemble = pytest.importorskip("sklearn.ensemble")
    of, new = rows
    numbers = example.Rows(np.nan_to_num(of.X), of.y, ())
    new = np.nan_to_num(new)
    staged = peers.histograms(8, 0.3, numbers)(new).first(7)
    score, cost = whole(staged)
    with_levels = whole(peers.histograms(8, 0.3, of)(new))[0]
    assert with_levels.shape == score.shape
    model = ensemble.HistGradientBoostingClassifier(
        max_iter=7, max_leaf_nodes=8, learning_rate=0.3, min_samples_leaf=5, early_stopping=False
    ).fit(numbers.X, numbers.y)
    expected = np.zeros(len(new))
    for tree in (tree for trees in model._predictors for tree in trees):
        for i, row in enumerate(new):
            node = tree.nodes[0]
            while not node["is_leaf"]:
                below = row[node["feature_idx"]] <= node["num_threshold"]
                node = tree.nodes[node["left" if below else "right"]]
                expected[i] += 1
    np.testing.assert_array_equal(cost, expected)
    np.testing.assert_allclose(score, model.decision_function(new), atol=1e-5)


@pytest.fixture(scope="module", params=[2, 4])
def trajectories(request, peers):
    """Scores of two or four labels that settle down, and comparisons."""
    rng = np.random.default_rng(1)
    y = rng.integers(request.param, size=500)
    truth = np.eye(request.param)[y] + rng.normal(scale=0.4, size=(500, request.param))
    noise = rng.normal(size=(500, 9, request.param)) / np.arange(1, 10)[:, None]
    score = np.linspace(0, 3, 9)[:, None] * (truth[:, None] + noise)
    if request.param == 2:
        score = score[..., 1] - score[..., 0]
    cost = np.cumsum(rng.integers(1, 4, size=(500, 8)), axis=1)
    return peers.Stages(score, np.column_stack([np.zeros(500, dtype=int), cost])), y


def left_one_by_one(score, threshold):
    """The round after which a row leaves."""
    for t in range(1, len(score) - 1):
        lead = np.diff(np.sort(score[t])[-2:])[0] if score.ndim == 2 else abs(score[t])
        if lead >= threshold[t - 1]:
            return t
    return len(score) - 1


def test_exits(choice, trajectories):
    """Rows leave where their lead is large, so that what they cost in the mean is the budget."""
    of, y = trajectories
    plan = choice.exits("name", of, 6.0)
    stop = choice.stops(of, plan.threshold)
    assert stop.tolist() == [left_one_by_one(score, plan.threshold) for score in of.score]
    share, cost = choice.said(of, stop, plan.slope)
    assert 5.9 < cost.mean() <= 6.0
    np.testing.assert_allclose(share.sum(axis=1), 1)
    size = choice.size_within(of, 6.0)
    assert of.cost[:, size].mean() <= 6.0 < of.cost[:, size + 1].mean()
    plain = choice.worth_of(of, np.full(len(y), size), None, y)
    assert choice.worth_of(of, stop, plan.slope, y) < plain
    lead, at_last = choice.leads(of.score)
    np.testing.assert_allclose(lead[:, -1], at_last[:, -1])
    assert choice.exits("name", of.first(1), 1.0) is None


def test_out_of_fold(example, choice, peers):
    """Each row is answered by the fit that has not seen it."""

    def fit(rows):
        return lambda new: peers.Stages(
            np.isin(new, rows.X).astype(float) @ np.ones((1, 3)),
            np.tile(new.astype(np.int32), 3),
        )

    X = np.arange(30.0)[:, None]
    rows = example.Rows(X, np.arange(30) % 3, ())
    fold = example.dealt(rows.y, 3, 0)
    assert all(np.bincount(rows.y[fold == k]).max() <= 4 for k in range(3))
    unseen = choice.out_of_fold(fit, rows, fold)
    assert not unseen.score.any()
    np.testing.assert_array_equal(unseen.cost[:, 0], np.arange(30))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three labels, a category and holes."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2)).round(3)
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.2, 2.0])
    rows = [[*row, "ab"[int(row[1] > 0)], "xyz"[k]] for row, k in zip(X, y, strict=True)]
    rows[13][1] = rows[15][2] = ""
    with gzip.open(folder / "glass.csv.gz", "wt", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([["one", "two", "word__cat", "target"], *rows])
    return folder


def test_area(example):
    rng = np.random.default_rng(0)
    score, y = rng.integers(5, size=40), rng.integers(2, size=40)
    pairs = [(a > b) + (a == b) / 2 for a in score[y == 1] for b in score[y == 0]]
    assert example.area(score, y) == pytest.approx(np.mean(pairs))


def test_command(example, peers, folder, tmp_path, capsys, monkeypatch):
    pytest.importorskip("sklearn")
    fitted = []

    def fit(X, y, *, mean_comparisons, categorical_features, rng, n_threads):
        fitted.append(mean_comparisons)
        model = pb.fit_gradient_boosting(
            X,
            y,
            n_estimators=2,
            max_depth=2,
            loss="softmax" if y.max() > 1 else "log_loss",
            categorical_features=categorical_features,
            n_threads=n_threads,
        )
        return [model] * len(mean_comparisons)

    monkeypatch.setattr(pb, "fit_within_budget", fit, raising=False)
    monkeypatch.setattr(example, "BUDGETS", (5, 20))
    monkeypatch.setattr(example, "CALLS", ((5,), (20,)))
    monkeypatch.setattr(example, "SETS", dict.fromkeys(example.SETS, ("glass", "gone")))
    monkeypatch.setattr(peers, "LIBRARIES", peers.LIBRARIES[-1:])
    monkeypatch.setattr(peers, "MOST_ROUNDS", 6)
    path, results = tmp_path / "table.rst", tmp_path / "results.jsonl"
    options = ["--data", str(folder), "--rst", str(path), "--results", str(results)]
    example.main([*options, "--quick", "--peers"])
    assert "No fold is complete." in capsys.readouterr().out
    example.main([*options, "--quick"])
    printed = capsys.readouterr().out
    assert fitted == [[5], [20]] * 2
    assert path.read_text(encoding="utf-8").split(".. tables start here\n\n")[1] in printed + "\n"
    assert "Error in %, means of 1 set of two classes, 1 fold of each" in printed
    known = example.stored(results)
    assert len(known) == 2 * 3 * 2
    assert known["glass, two classes", 0, 0, "pboost", 5]["comparisons"] <= 4
    with results.open("a", encoding="utf-8") as file:
        file.write('[["glass, two lab')  # a run was stopped here
    example.main([*options, "--quick"])  # nothing is worked out again
    assert fitted == [[5], [20]] * 2
    assert capsys.readouterr().out == printed
    monkeypatch.setattr(example, "FRESH", {example.TWO: ("glass",)})
    example.main(["--data", str(folder), "--quick", "--fresh", "--own"])
    assert fitted[4:] == [[5, 10, 20, 50]]
    with pytest.raises(SystemExit):
        example.main(["--quick", "--data", str(tmp_path)])


def test_figures_are_those_of_the_models(example, peers, folder):
    """At each budget, and with exits not more than them by much."""
    pytest.importorskip("sklearn")
    data = example.data_set(folder / "glass.csv.gz", example.MANY, 1000)
    train, test = data.divided(1, 2)
    assert len(train.y) + len(test.y) == 150
    assert abs(np.bincount(train.y) / 120 - np.bincount(test.y) / 30).max() < 0.05
    settings = {"name": functools.partial(peers.histograms, 8, 1.0)}
    (said, cost), plan = example.within(settings, train, test.X, (40,), 0)[40, False]
    staged = peers.histograms(8, 1.0, train)
    seen, new = staged(train.X), staged(test.X)
    size = int(np.sum(seen.cost.mean(axis=0) <= plan.budget)) - 1
    np.testing.assert_array_equal(cost, new.cost[:, size])
    shares = np.exp(new.score[:, size])
    np.testing.assert_allclose(said, shares / shares.sum(axis=1, keepdims=True), rtol=1e-5)
    actual = example.figures_of((said, cost), test.y)
    assert actual["error"] == pytest.approx(100 * np.mean(shares.argmax(axis=1) != test.y))
    assert actual["comparisons"] == cost.mean()
    assert "AUC" not in actual


def test_tables(example):
    """Means of complete folds only, differences by sets, costs over the budget."""
    tables = importlib.import_module("budget_tables")
    known = {}
    errors = {"pboost": (10.0, 20.0, 33.0), "other": (12.0, 19.0, 36.0), "third": (10.0,) * 3}
    for method, of in errors.items():
        for k, error in enumerate(of):
            for fold in (0, 1):
                figures = {"error": error + fold, "comparisons": 4.0 + k / 2, "seconds": 1.0}
                full = 7.0 if (k, fold) == (2, 1) else 10.0
                figures |= {"log loss": 0.5, "AUC": 90.0, "whole": full}
                known[f"set {k}, two classes", 0, fold, method, 5] = figures
    del known["set 1, two classes", 0, 1, "third", 5]
    of = tables.complete(known, (5,), "pboost")
    assert of.folds["set 1, two classes"] == [(0, 0)]
    names = of.sets("two classes")
    assert of.values(names, "pboost", "error").ravel().tolist() == [10.5, 20.0, 33.5]
    said = tables.tables(known, (5,), "pboost")
    assert re.search(r"other +-1\.33 ± 1\.20 \(2 : 1\)", said)
    # The others have the first of three ranks: two ways of eight have no more.
    assert re.search(r"other +0\.250$", said, re.MULTILINE)
    assert "0.900, 1.000" in said
    assert "0.875 (4 folds)" in said
    assert "3 sets of two classes, 1 to 2 folds of each" in said
