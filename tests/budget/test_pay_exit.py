"""Models that rows leave within a feature cost: only where they would pay to go on."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from reference.pay_exit import purse, walks
from shallow import fit_shallow

import pboost as pb
from pboost.models.early_exit_model import feature_cost_trajectory, where_left

RNG = np.random.default_rng(8)
X = RNG.normal(size=(900, 5)).round(1)
X[::7, 3] = np.nan
SIGNAL = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * RNG.normal(size=900)
TWO, THREE = (SIGNAL > 0).astype(int), np.digitize(SIGNAL, [-0.5, 0.5])
FIT, CAL, TEST = slice(300), slice(300, 700), slice(700, 712)
#: Columns 2 and 3 share a fee; 3 costs no more than that, and 4 nothing at all.
PRICE, GROUPS = {0: 1.0, 1: 5.0, 2: 3.0, 3: 0.0, 4: 0.0, "draw": 2.0}, {"draw": [2, 3]}
PRICED = {"feature_costs": PRICE, "cost_groups": GROUPS}
MODELS = {
    "stagewise": partial(
        fit_shallow,
        y=TWO[FIT],
        loss="log_loss",
        n_estimators=12,
        max_depth=2,
        **PRICED,
        cost_tradeoff=0.002,
    ),
    "softmax": partial(fit_shallow, y=THREE[FIT], loss="softmax", n_estimators=6, max_depth=1),
    "vectors": partial(
        fit_shallow,
        y=THREE[FIT],
        loss="softmax",
        n_estimators=6,
        max_depth=2,
        multi_strategy="multi_output_tree",
    ),
    "chain of trees": partial(pb.fit_matryoshka, y=TWO[FIT], shape=(3, 8), join="all"),
    "forest of three": partial(
        pb.fit_random_forest, y=THREE[FIT], n_estimators=6, max_depth=2, rng=0
    ),
    "votes": partial(
        pb.fit_samme, y=THREE[FIT], base_learner=partial(pb.fit_cart, max_depth=1), n_estimators=8
    ),
}
FITTED: dict = {}


def fitted(kind):
    if kind not in FITTED:
        FITTED[kind] = MODELS[kind](X[FIT])
    return FITTED[kind]


def within(kind, share=0.8, **options):
    """Return the model within a share of what it costs."""
    model = fitted(kind)
    budget = share * pb.prediction_cost(model, X[CAL], unit="feature_cost", **PRICED).mean()
    return pb.early_exit(model, X[CAL], mean_feature_cost=budget, **{**PRICED, **options})


@pytest.mark.parametrize("kind", MODELS)
def test_rows_leave_where_they_are_sure_and_would_pay(kind):
    model = within(kind)
    _, joint, cost = model.left(X[TEST])
    paid = pb.prediction_cost(model, X[TEST], unit="feature_cost")
    actual, score = pb.decision_function(model, X[TEST]), model.left(X[TEST]).score
    *_, staged = pb.staged_decision_function(model, X[TEST])
    assert np.array_equal(staged, actual)
    if kind != "forest of three":  # shares of no trees are no shares
        path, compared = model.trajectory(X[TEST])
        assert np.array_equal(path[-1], actual)
        assert np.array_equal(compared[-1], cost)
    assert len(set(joint.tolist())) > 1 or kind == "votes"
    for i, (at, value, slope, price) in enumerate(walks(model, X[TEST], PRICE, GROUPS)):
        assert (joint[i], paid[i]) == (at, pytest.approx(price))
        np.testing.assert_allclose(score[i], value, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(
            actual[i],
            model.model.scaled(
                score[i : i + 1],
                np.full(1, slope)[:, None] if score.ndim > 1 else np.full(1, slope),
            )[0],
            rtol=1e-12,
        )


@pytest.mark.parametrize("kind", MODELS)
def test_the_price_is_kept_and_what_is_free_is_used(kind):
    model = within(kind)
    paid = pb.prediction_cost(model, X[CAL], unit="feature_cost")
    budget = 0.8 * pb.prediction_cost(model.model, X[CAL], unit="feature_cost", **PRICED).mean()
    assert paid.mean() == pytest.approx(model.cost)
    error = paid.std(ddof=1) / np.sqrt(len(paid))
    assert paid.mean() + error <= budget == model.budget
    states = feature_cost_trajectory(model.model, X[CAL], known(model))
    joint = where_left(states, model.threshold, True)
    rows = np.flatnonzero(joint < len(model.threshold))
    is_open = model.threshold[joint[rows]] > 0
    assert is_open.any() or kind == "votes"
    more = states.cost[joint[rows] + 1, rows] > states.cost[joint[rows], rows]
    assert more[is_open].all()
    again = pb.early_exit(model.model, states, mean_feature_cost=budget, **PRICED)
    assert np.array_equal(again.threshold, model.threshold)


def known(model):
    return pb.models.base.feature_costs_for(model, None, None)


def test_rows_for_which_the_rest_is_free_go_to_the_end():
    column = np.arange(40.0)[:, None] % 10
    y = np.arange(40) % 10 > 4
    model = pb.fit_gradient_boosting(
        column, y, loss="log_loss", n_estimators=9, feature_costs=[2.0]
    )
    exits = pb.early_exit(model, column, mean_feature_cost=2.0)
    assert (exits.left(column).joint == 9).all()
    sure = replace(exits, threshold=np.append(np.inf, np.full(8, 1e-9)))
    assert (sure.left(column).joint == 9).all()  # one column, paid for by then
    assert (replace(sure, item=None).left(column).joint == 1).all()
    ends = replace(sure, threshold=np.append(np.inf, np.zeros(8)))
    assert (ends.left(column).joint == 1).all()  # 0: all leave, whatever they would pay


def test_ties_and_values_of_0_keep_the_price():
    states = feature_cost_trajectory(fitted("stagewise"), X[CAL], known(fitted("stagewise")))
    tied = states._replace(score=np.where(np.abs(states.score) < 0.5, 0.0, np.sign(states.score)))
    budget = 0.7 * states.cost[-1].mean()
    model = pb.early_exit(fitted("stagewise"), tied, mean_feature_cost=budget, length=None)
    assert model.cost + model.settings["standard_error"] <= budget
    joint = where_left(tied, model.threshold, True)
    assert tied.cost[joint, np.arange(len(joint))].mean() == pytest.approx(model.cost)


@pytest.mark.full_for("softmax", "stagewise", "votes")
@pytest.mark.parametrize("kind", MODELS)
def test_decisions_on_demand_are_those_of_predict(kind):
    model = within(kind)
    labels, ways = pb.predict(model, X[TEST]), walks(model, X[TEST], PRICE, GROUPS)
    for row, label, (*_, price) in zip(X[TEST], labels, ways, strict=True):
        asked = {
            j: partial(lambda value: None if np.isnan(value) else value, row[j]) for j in range(5)
        }
        outcome = pb.acquisition.predict_with_acquisition(model, asked, exit="none")
        assert outcome.label == label
        assert outcome.cost == pytest.approx(price)
        read = [entry.source for entry in outcome.acquired]
        assert sum(purse(read, PRICE, GROUPS).values()) == pytest.approx(price)
        settled = pb.acquisition.predict_with_acquisition(model, asked)
        assert settled.label == label
        assert settled.cost <= outcome.cost
        for budget in (1.0, 4.0):
            part = pb.acquisition.predict_with_acquisition(model, asked, exit="none", budget=budget)
            low, high = part.bounds
            assert (low <= outcome.score).all()
            assert (outcome.score <= high).all()


def test_why_a_row_leaves_is_told():
    model = within("stagewise")
    joint = model.left(X[TEST]).joint
    row = X[TEST][np.flatnonzero((joint < joint.max()) & (joint > 0))[0]]
    assert "and the next stage would need column" in str(pb.explain(model, row))
    assert "a feature cost of" in repr(model)
    assert "budget" in pb.describe(model)


def test_files_hold_what_columns_need(tmp_path):
    model, path = within("stagewise"), tmp_path / "model.pboost"
    pb.save(model, path)
    for same in (pb.load(path), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(same.item, model.item)
        assert np.array_equal(pb.predict_proba(same, X), pb.predict_proba(model, X))
    pb.save(replace(model, item=None), path)
    assert pb.load(path).item is None


def test_what_is_wrong_is_said():
    model, plain = within("stagewise"), fitted("chain of trees")
    with pytest.raises(ValueError, match=r"item: expected shape \(5, 2\)"):
        replace(model, item=model.item[:3])
    for wrong in (-2, 10):
        with pytest.raises(ValueError, match="item: expected values from -1 to 9"):
            replace(model, item=np.where(model.item == 0, wrong, model.item))
    with pytest.raises(ValueError, match="feature_costs: expected feature costs"):
        pb.early_exit(plain, X[CAL], mean_feature_cost=3.0)
    with pytest.raises(ValueError, match="mean_feature_cost: expected no other budget"):
        pb.early_exit(plain, X[CAL], mean_feature_cost=3.0, mean_comparisons=3.0, **PRICED)
    with pytest.raises(ValueError, match="feature_costs: expected None without mean_feature_cost"):
        pb.early_exit(plain, X[CAL], mean_comparisons=3.0, **PRICED)
    with pytest.raises(ValueError, match="cost_groups: expected None without mean_feature_cost"):
        pb.early_exit(plain, X[CAL], mean_comparisons=3.0, cost_groups=GROUPS)
    with pytest.raises(ValueError, match=r"mean_feature_cost: expected at least .* first stage"):
        pb.early_exit(plain, X[CAL], mean_feature_cost=0.01, **PRICED)
    with pytest.raises(ValueError, match="mean_feature_cost: expected a number"):
        pb.early_exit(plain, X[CAL], mean_feature_cost=-1.0, **PRICED)
