"""fit_within_budget: models keep to the budget, are chosen by cross-validation; refused input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import pboost as pb
from pboost.budget import select_model
from pboost.budget.candidates import (
    FAMILIES,
    MANY_ROWS,
    ROWS_OF_LEAF,
    Fits,
    families,
    path_of,
    with_forest,
)
from pboost.budget.exit_thresholds import calibrated
from pboost.budget.model_choice import AS_GOOD, ModelChoice, Promise, best
from pboost.data.read.check_xy import as_features
from pboost.export.c_file import c_size
from pboost.models.early_exit_model import trajectory
from pboost.models.tree_ensemble import LEAF


def rows(n=900, d=4, seed=0):
    """Return rows whose label is by a product of two columns, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)


X, SCORE = rows()
TWO = np.where(SCORE > 0, "yes", "no")
MANY = np.digitize(SCORE, [-0.7, 0.7])
TRAIN, TEST = slice(500), slice(500, None)
TASKS = {"two": TWO, "many": MANY, "regression": SCORE}


def wrong(model, y, part=TEST):
    return float(np.mean(pb.predict(model, X[part]) != y[part]))


def curve_of(model):
    return np.array(model.curve if hasattr(model, "curve") else model.settings["curve"])


@pytest.mark.full_for("many", "two")
@pytest.mark.parametrize("task", TASKS)
def test_a_budget_is_kept_and_used(task):
    y = TASKS[task]
    models = pb.fit_within_budget(X[TRAIN], y[TRAIN], mean_comparisons=[4, 12, 60], rng=0)
    costs = [pb.prediction_cost(model, X[TEST]).mean() for model in models]
    for budget, model, cost in zip([4, 12, 60], models, costs, strict=True):
        assert cost <= 1.1 * budget, (budget, model.settings["chosen"])
        full_cost = pb.prediction_cost(getattr(model, "model", model), X[TEST]).mean()
        assert cost >= 0.85 * budget or full_cost < 1.5 * budget
    if task != "regression":
        errors = [wrong(model, y) for model in models]
        assert errors[2] < errors[0] < np.mean(y[TEST] != pd.Series(y).mode()[0])


@pytest.mark.full
def test_one_budget_is_as_in_a_list_of_one():
    (listed,) = pb.fit_within_budget(X[TRAIN], TWO[TRAIN], mean_comparisons=[8], rng=3)
    model = pb.fit_within_budget(X[TRAIN], TWO[TRAIN], mean_comparisons=8, rng=3)
    assert np.array_equal(pb.decision_function(listed, X), pb.decision_function(model, X))


@pytest.mark.full
@pytest.mark.parametrize("task", TASKS)
def test_the_same_for_any_number_of_threads(task):
    y = TASKS[task][TRAIN]
    first, two = (
        pb.fit_within_budget(X[TRAIN], y, mean_comparisons=30, rng=1, n_threads=n_threads)
        for n_threads in (1, 2)
    )
    assert first.settings["tried"] == two.settings["tried"]
    assert np.array_equal(pb.predict(first, X), pb.predict(two, X))
    assert np.array_equal(pb.prediction_cost(first, X), pb.prediction_cost(two, X))


@pytest.mark.full
def test_labels_do_not_matter():
    by_name = pb.fit_within_budget(X[TRAIN], TWO[TRAIN], mean_comparisons=10, rng=0)
    by_number = pb.fit_within_budget(
        X[TRAIN], (TWO[TRAIN] == "yes") * 2 - 1, mean_comparisons=10, rng=0
    )
    assert by_name.classes.tolist() == ["no", "yes"]
    assert np.array_equal(pb.decision_function(by_name, X), pb.decision_function(by_number, X))


@pytest.mark.full
def test_settings_say_what_was_chosen_among_what():
    model = pb.fit_within_budget(X[TRAIN], TWO[TRAIN], mean_comparisons=20, rng=0)
    settings = model.settings
    assert settings["builder"] == "fit_within_budget"
    assert settings["cv"] == 3
    assert settings["chosen"] in settings["tried"]
    assert set(settings["tried"]) <= set(families("two", 20))
    minimum = min(settings["tried"].values())
    chosen = settings["tried"][settings["chosen"]]
    assert minimum <= chosen < minimum + 0.05
    curve = curve_of(model)
    assert curve[:, 0].tolist() == [5.0, 10.0, 20.0]
    assert (curve[:, 1] <= curve[:, 0]).all()
    assert (curve[:, 3] > 0).all()
    assert 0.5 < wrong(model, TWO) / curve[-1, 2] < 1.5


@pytest.mark.full_for("many", "two")
@pytest.mark.parametrize("task", TASKS)
def test_no_row_takes_more_than_the_worst(task):
    y = TASKS[task]
    model = pb.fit_within_budget(X[TRAIN], y[TRAIN], max_comparisons=9, rng=0)
    assert pb.prediction_cost(model, X).max() <= 9
    both = pb.fit_within_budget(X[TRAIN], y[TRAIN], mean_comparisons=6, max_comparisons=12, rng=0)
    cost = pb.prediction_cost(both, X[TEST])
    assert cost.max() <= 12
    assert cost.mean() <= 6.6


@pytest.mark.parametrize("task", TASKS)
def test_the_least_budget_is_one_comparison(task):
    model = pb.fit_within_budget(X[TRAIN], TASKS[task][TRAIN], mean_comparisons=1, rng=0)
    assert pb.prediction_cost(model, X).max() == 1


@pytest.mark.full
def test_where_no_single_split_helps():
    bits = np.random.default_rng(0).integers(2, size=(600, 5)).astype(float)
    y = bits[:, :3].sum(axis=1) % 2
    model = pb.fit_within_budget(bits[:300], y[:300], mean_comparisons=10, rng=0)
    assert np.mean(pb.predict(model, bits[300:]) != y[300:]) < 0.02


@pytest.mark.full
def test_probabilities_are_those_of_rows_out_of_folds():
    model = pb.fit_within_budget(X[TRAIN], TWO[TRAIN], mean_comparisons=100, rng=0)
    share = pb.predict_proba(model, X[TEST])[:, 1]
    is_yes = TWO[TEST] == "yes"
    loss = -np.log(np.where(is_yes, share, 1 - share)).mean()
    assert loss < 0.45
    assert abs(share.mean() - is_yes.mean()) < 0.06


@pytest.mark.full
def test_categories_and_holes():
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["e"] = pd.Categorical(np.where(SCORE + X[:, 3] > 0, "left", "right"))
    frame.loc[::7, "a"] = np.nan
    model = pb.fit_within_budget(frame[:500], TWO[:500], mean_comparisons=10, rng=0)
    assert model.feature_names == ("a", "b", "c", "d", "e")
    turned = frame[["e", "d", "c", "b", "a"]]
    assert np.array_equal(pb.predict(model, frame), pb.predict(model, turned))
    assert np.mean(pb.predict(model, frame[500:]) != TWO[500:]) < 0.25


@pytest.mark.full
def test_a_rare_label_is_absent_in_a_fold():
    y = MANY[TRAIN].copy()
    y[:2] = 7
    with pytest.warns(UserWarning, match="fewer than the 3 folds"):
        model = pb.fit_within_budget(X[TRAIN], y, mean_comparisons=20, rng=0)
    assert model.classes.tolist() == [0, 1, 2, 7]


@pytest.mark.full
def test_files_and_pickles(tmp_path):
    model = pb.fit_within_budget(X[TRAIN], TWO[TRAIN], mean_comparisons=10, rng=0)
    pb.save(model, tmp_path / "model.npz")
    again = pb.load(tmp_path / "model.npz")
    assert np.array_equal(pb.decision_function(model, X), pb.decision_function(again, X))
    assert np.array_equal(again.curve, model.curve)
    assert again.settings == model.settings


@pytest.mark.full
def test_the_curve_is_drawn():
    pytest.importorskip("matplotlib")
    for y in (TWO, SCORE):
        model = pb.fit_within_budget(X[TRAIN], y[TRAIN], mean_comparisons=20, rng=0)
        ax = pb.plot.budget_curve(model)
        line = ax.containers[0].lines[0]
        assert np.allclose(line.get_xydata(), curve_of(model)[:, 1:3])
    with pytest.raises(ValueError, match="model: expected a model fitted by fit_within_budget"):
        pb.plot.budget_curve(pb.fit_adaboost(X, TWO, n_estimators=2))


@pytest.mark.full
@pytest.mark.parametrize("task", TASKS)
def test_a_price_is_kept(task):
    y, feature_costs, cost_groups = TASKS[task], [4.0, 1.0, 1.0, 8.0], [[1, 2]]
    models = pb.fit_within_budget(
        X[TRAIN],
        y[TRAIN],
        mean_feature_cost=[5.0, 7.0],
        feature_costs=feature_costs,
        cost_groups=cost_groups,
        rng=0,
    )
    paid = [pb.prediction_cost(model, X[TEST], unit="feature_cost") for model in models]
    for price, model, each in zip([5, 7], models, paid, strict=True):
        assert each.mean() <= 1.05 * price
        cost = pb.prediction_cost(
            model, X[TEST], "feature_cost", feature_costs=feature_costs, cost_groups=cost_groups
        )
        assert np.array_equal(each, cost)
        assert curve_of(model)[-1, 0] == price
    assert not set(models[0].settings["tried"]) & set(families(task, 5.0))


# What is made of parts


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_a_mixture_is_the_sum_of_its_parts(task, share):
    y = TASKS[task]
    options = {"task": "regression" if task == "regression" else "classification", "rng": 0}
    trees = "multi_output_tree" if task == "many" else "one_output_per_tree"
    chain = pb.fit_gradient_boosting(X, y, n_estimators=5, multi_strategy=trees, **options)
    forest = pb.fit_random_forest(X, y, n_estimators=4, **options)
    mixed = with_forest(chain, forest, share)
    assert len(mixed) == 9
    of_forest = pb.predict(forest, X) if task == "regression" else pb.predict_proba(forest, X)
    if task == "two":
        of_forest = 4 * (2 * of_forest[:, 1] - 1)
    elif task == "many":
        of_forest = 8 * (of_forest - 1 / 3)
    expected = (1 - share) * pb.decision_function(chain, X) + share * of_forest
    assert np.allclose(pb.decision_function(mixed, X), expected, atol=1e-12)


def test_a_tree_has_its_parts_as_states():
    tree = pb.fit_boosted_tree(X, TWO, max_nodes=12)
    path = path_of(tree, as_features(X))
    assert len(path.cost) == 1 + 7
    for size, score, cost in zip(
        (1, 2, 3, 4, 6, 8, 12), path.score[1:], path.cost[1:], strict=True
    ):
        part = pb.models.truncate(tree, size)
        assert np.array_equal(score, pb.decision_function(part, X))
        assert np.array_equal(cost, pb.prediction_cost(part, X))


def option(loss, log_loss):
    limits = Promise(10.0, np.inf)
    return ModelChoice("chain", 1, True, limits, 1.0, np.array(loss, dtype=float), log_loss)


def test_the_surest_is_taken_of_those_that_miss_no_more_than_chance_explains():
    better = option([0, 0, 0, 0, 1, 0, 0, 0, 0, 0], 0.3)
    close = option([0, 0, 0, 1, 1, 0, 0, 0, 0, 0], 0.2)  # one more, standard error .095
    far = option([1, 1, 1, 1, 1, 1, 0, 0, 0, 0], 0.1)
    more = close.loss - better.loss
    assert more.mean() > AS_GOOD * more.std() / np.sqrt(10)
    assert best([far, better]) is better
    assert best([close, better]) is better
    equal = option([0, 1, 0, 0, 0, 0, 0, 0, 0, 0], 0.2)
    assert best([better, equal]) is equal
    other = option([0, 0, 0, 0, 1, 1, 0, 0, 0, 0], 0.3)
    within = option([1, 1, 1, 0, 0, 0, 0, 0, 0, 0], 0.25)  # one more, standard error .22
    assert best([other, within, far]) is within
    assert best([]) is None


def test_a_larger_budget_never_has_a_larger_log_loss(monkeypatch):
    sure, fewer, better = option([1, 0, 0], 0.3), option([0, 0, 0], 0.4), option([1, 0, 0], 0.2)
    by_budget = {5.0: [sure], 10.0: [fewer], 20.0: [fewer, better]}

    def options(tried, promise):
        return iter(by_budget[promise.mean_comparisons])

    monkeypatch.setattr(select_model, "options", options)
    monkeypatch.setattr(select_model, "families", lambda *given: ["chain"])
    fits = Fits(as_features(X), TWO, "two", 20.0, len(X), None, 1)
    promises = [Promise(budget, np.inf) for budget in (20.0, 10.0)]
    shortlists = select_model._shortlists(fits, {"chain": None}, promises)
    assert [shortlists[promise].chosen for promise in promises] == [better, sure]
    assert shortlists[promises[1]].candidates == [sure]
    # Other candidates are used only if the model of all rows exceeds its limits.
    assert list(shortlists[promises[1]].in_turn()) == [sure, fewer]
    assert [min(promise) for promise in shortlists] == [5.0, 10.0, 20.0]


@pytest.mark.full
def test_log_losses_of_a_list_of_budgets():
    noisy = np.where(np.random.default_rng(4).random(len(X)) < 0.3, "no", TWO)
    models = pb.fit_within_budget(X[TRAIN], noisy[TRAIN], mean_comparisons=[2, 5, 10, 20], rng=0)
    share = [pb.predict_proba(model, X[TEST]) for model in models]
    losses = [-np.log(of[np.arange(len(of)), (noisy[TEST] == "yes") * 1]).mean() for of in share]
    assert max(losses) < np.log(2)
    assert losses[-1] < losses[0]


def test_trees_see_both_of_two_features():
    data = Fits(as_features(X[:200, :2]), TWO[:200], "two", 50.0, 200, np.random.default_rng, 1)
    model = data.sum_of_trees(0, max_leaf_nodes=4, n_estimators=3, max_features_per_tree=0.7)
    assert all(set(tree.feature[tree.feature >= 0]) == {0, 1} for tree in model.trees)


@pytest.mark.parametrize("task", ["two", "many"])
def test_a_model_of_one_stage_has_calibrated_probabilities(task):
    y = TASKS[task]
    model = pb.fit_within_budget(X[TRAIN], y[TRAIN], mean_comparisons=3, rng=0)
    share = pb.predict_proba(model, X[TEST])
    truth = np.searchsorted(model.classes, y[TEST])
    log_loss = -np.log(share[np.arange(len(truth)), truth]).mean()
    prior = np.bincount(truth) / len(truth)
    assert log_loss < -(prior * np.log(prior)).sum() - 0.05


def test_few_families_are_tried_for_a_budget():
    for task in TASKS:
        for budget in (1, 5, 10, 20, 50, 100, 200, 500, 5000):
            few, many = families(task, budget), families(task, budget, 50_000)
            assert 1 <= len(few) <= 5 + (task == "many")
            assert set(few) <= set(many)
            assert len(many) <= 6 + (task == "many")
            assert 1 <= len(families(task, budget, 0, "mean_feature_cost")) <= 5
            assert 3 <= len(families(task, budget, 0, "max_bytes")) <= 6
    assert all(set(family.tasks) <= set(TASKS) for family in FAMILIES.values())


@pytest.mark.full
@pytest.mark.parametrize("task", TASKS)
def test_a_budget_of_bytes_is_kept_and_used(task):
    y, room = TASKS[task], [240, 700, 2500]
    models = pb.fit_within_budget(X[TRAIN], y[TRAIN], max_bytes=room, rng=0)
    assert {type(v) for line in models[-1].settings["curve"] for v in line} == {float}
    for limit, model in zip(room, models, strict=True):
        assert not isinstance(model, pb.models.EarlyExitModel)
        assert c_size(model) <= limit
        assert model.settings["max_bytes"] == limit
    if task == "regression":
        errors = [np.mean((pb.predict(model, X[TEST]) - y[TEST]) ** 2) for model in models]
    else:
        errors = [wrong(model, y) for model in models]
    assert errors[2] < 0.8 * errors[0]
    budget, size, error = curve_of(models[2])[:, :3].T
    assert budget.tolist() == [312.5, 625, 1250, 2500]
    assert (size <= budget).all()
    assert error[-1] < error[0]


@pytest.mark.full
def test_bytes_of_soft_labels_weights_and_categories():
    share = 1 / (1 + np.exp(-2 * SCORE[TRAIN]))
    mixed = np.column_stack([np.digitize(X[:, 0], [-0.5, 0, 0.5]), X[:, 1:]])
    weight = np.random.default_rng(0).random(500)
    model = pb.fit_within_budget(
        mixed[TRAIN],
        y_proba=share,
        sample_weight=weight,
        categorical_features=[0],
        max_bytes=900,
        rng=1,
    )
    assert c_size(model) <= 900
    assert np.mean(pb.predict(model, mixed[TEST]) == (SCORE[TEST] > 0)) > 0.75


def test_many_rows_have_large_trees():
    many, score = rows(MANY_ROWS, 3, seed=4)
    names = families("two", 20, MANY_ROWS)
    assert set(names) - set(families("two", 20, MANY_ROWS - 1)) == {"sum of large trees"}
    fits = Fits(as_features(many), score > 0, "two", 20.0, MANY_ROWS, np.random.default_rng, None)
    large, saving = (fits.of(f"sum of large {what}") for what in ("trees", "saving trees"))
    part = replace(fits, X=as_features(many[:4000]), y=score[:4000] > 0, made={})
    leaves = MANY_ROWS // ROWS_OF_LEAF
    for model in (large, part.of("sum of large trees")):  # of a fold trees are as large
        sizes = [np.count_nonzero(tree.feature == LEAF) for tree in model.trees]
        assert max(sizes) == leaves
    first, second, *_ = np.diff(path_of(saving, fits.X).cost.mean(axis=1))
    assert 7 < first <= 8
    assert 7 < second <= 8


def test_ties_of_a_model_of_all_rows_do_not_leave_a_budget_unused():
    """Thresholds between the values of the folds' leaves may be above a leaf of this one."""
    rng = np.random.default_rng(2)
    model = pb.fit_gradient_boosting(
        X[TRAIN], TWO[TRAIN], n_estimators=12, max_leaf_nodes=8, max_depth=None
    )
    unseen = trajectory(model, X[TEST])
    first = 0.05 * rng.normal(size=unseen.score.shape[1])
    smooth = unseen._replace(score=unseen.score + first)  # no ties at the first tree
    tied = trajectory(model, X[TRAIN])

    def found(budget):
        options = {"mean_comparisons": budget, "max_comparisons": None, "length": None}
        return calibrated(model, (smooth, tied), model.n_stages, options, takes)

    def takes(costs):
        return float(costs[1].mean())

    any_budget = found(8.0)
    spread = np.sqrt(np.mean((smooth.score[-1] - smooth.score[:-1]) ** 2, axis=1))
    costs = []
    for tau in np.geomspace(0.05, 5, 500):  # one factor for all joints
        threshold = np.append(np.inf, tau * spread[1:])
        exits = replace(any_budget, threshold=threshold)
        costs.append(float(pb.prediction_cost(exits, X[TRAIN]).mean()))
    leap = int(np.argmax(np.diff(costs)))
    budget = (costs[leap] + costs[leap + 1]) / 2
    assert costs[leap] < 0.97 * budget
    assert 0.98 * budget <= pb.prediction_cost(found(budget), X[TRAIN]).mean() <= budget


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean_comparisons": 0.5}, r"mean_comparisons: expected a number in \[1"),
        ({"max_comparisons": 0}, r"max_comparisons: expected a number in \[1"),
        ({"mean_comparisons": []}, "mean_comparisons: expected at least one budget"),
        ({"mean_comparisons": [5, 0]}, r"mean_comparisons: expected a number in \[1"),
        ({"mean_comparisons": 5, "cv": 1}, "cv: expected"),
        ({"mean_comparisons": 5, "task": "ranking"}, "task: expected"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        pb.fit_within_budget(X, TWO, **options)


@pytest.mark.full
def test_wrong_calls():
    with pytest.raises(TypeError, match="expected one of them, got None"):
        pb.fit_within_budget(X, TWO)
    with pytest.raises(TypeError, match="mean_comparisons: expected a number"):
        pb.fit_within_budget(X, TWO, mean_comparisons="ten")
    with pytest.raises(TypeError, match="y: expected classes or numbers"):
        pb.fit_within_budget(X, mean_comparisons=5)
    with pytest.raises(ValueError, match="feature_costs: expected feature costs"):
        pb.fit_within_budget(X, TWO, mean_feature_cost=3.0)
    with pytest.raises(ValueError, match="cost_groups: expected None without mean_feature_cost"):
        pb.fit_within_budget(X, TWO, mean_comparisons=5, cost_groups=[[0, 1]])
    with pytest.raises(ValueError, match="max_bytes: expected no other budget"):
        pb.fit_within_budget(X, TWO, mean_comparisons=5, max_bytes=500)
    with pytest.raises(
        ValueError, match=r"max_bytes: expected at least .*, the mean cost of the smallest model"
    ):
        pb.fit_within_budget(X[:200], TWO[:200], max_bytes=90)
    with pytest.raises(ValueError, match="mean_feature_cost: expected no other budget"):
        pb.fit_within_budget(
            X, TWO, mean_comparisons=5, mean_feature_cost=3.0, feature_costs=[1, 1, 1, 1]
        )
    with pytest.raises(ValueError, match=r"mean_feature_cost: expected a number in \(0"):
        pb.fit_within_budget(X, TWO, mean_feature_cost=0, feature_costs=[1, 1, 1, 1])
    with pytest.raises(
        ValueError,
        match=r"mean_feature_cost: expected at least .*, the mean cost of the smallest model",
    ):
        pb.fit_within_budget(X[:200], TWO[:200], mean_feature_cost=0.5, feature_costs=[1, 1, 1, 1])
    with pytest.raises(ValueError, match="y: expected at least two classes"):
        pb.fit_within_budget(X, np.zeros(len(X), dtype=int), mean_comparisons=5)
    with pytest.raises(ValueError, match="y: expected 900"):
        pb.fit_within_budget(X, TWO[:-1], mean_comparisons=5)


@pytest.mark.full
def test_of_many_labels_what_adds_up_column_by_column_is_learned():
    rng = np.random.default_rng(7)
    X = rng.integers(1, 6, size=(1000, 4)).astype(float)
    y = np.sign(np.log(X).sum(axis=1) - 2 * np.log(X[:, :2]).sum(axis=1)).astype(int)
    model = pb.fit_within_budget(X[:600], y[:600], mean_comparisons=50, rng=0)
    assert np.mean(pb.predict(model, X[600:]) != y[600:]) < 0.04


@pytest.mark.parametrize("y", [[], np.empty(0), np.empty(0, int), np.empty(0, str)])
def test_no_rows_are_refused(y):
    with pytest.raises(ValueError, match="y: expected at least one row"):
        pb.fit_within_budget(np.empty((0, 2)), y, mean_comparisons=4.0)
