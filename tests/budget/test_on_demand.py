"""Decisions about rows whose values are asked for."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import inspected
import numpy as np
import pandas as pd
import pytest
from reference.on_demand import columns_read

import pboost as pb

RNG = np.random.default_rng(4)
N, D = inspected.X.shape
TEST = np.vstack([inspected.X[:4], RNG.normal(size=(3, D)) * [1.0, 5.0, 1.0, 0.1, 1.0]])
#: Of several votes an exit, softmax by both forms, and models that rows leave.
MORE = {
    "chain, three": partial(pb.fit_adaboost, n_estimators=6, y=inspected.WORDS),
    "blocks, three": partial(pb.fit_matryoshka, shape=(3, 4), join="all", y=inspected.WORDS),
    "softmax": partial(pb.fit_gradient_boosting, loss="softmax", n_estimators=4, y=inspected.WORDS),
    "vectors": partial(
        pb.fit_gradient_boosting,
        loss="softmax",
        multi_strategy="multi_output_tree",
        n_estimators=4,
        y=inspected.WORDS,
    ),
    "counts": partial(pb.fit_gradient_boosting, loss="poisson", n_estimators=4, y=inspected.THREE),
    "hinge": partial(pb.fit_gradient_boosting, loss="hinge", n_estimators=4, y=inspected.TWO),
}
LEAVE = ("chain", "blocks, three", "stagewise", "softmax", "forest", "forest, three", "samme")
SUMS = ("sbpmt", "sbpmt, three", "sbpmt, mean", "bagging of probits")
VOTES = ("rest", "rest of pairs", "samme of rest", "samme", "bagging", "bagging of chains")
MADE: dict = {}


def made(kind):
    if kind not in MADE:
        if kind.startswith("leaving "):
            model = made(kind.removeprefix("leaving "))
            budget = 0.6 * pb.prediction_cost(model, inspected.X).mean()
            MADE[kind] = pb.early_exit(model, RNG.normal(size=(80, D)), mean_comparisons=budget)
        else:
            MADE[kind] = MORE[kind](inspected.X) if kind in MORE else inspected.made(kind)
    return MADE[kind]


EVERY = [*inspected.EVERY, *MORE, *(f"leaving {kind}" for kind in LEAVE)]


def asking(row, calls):
    """Return functions for the values of a row, which keep in which order they are called."""

    def ask(j):
        calls.append(j)
        return row[j]

    return {j: partial(ask, j) for j in range(len(row))}


def contains(bounds, score):
    return bool(((bounds[0] <= score) & (score <= bounds[1])).all())


def whole_score(model, rows):
    try:
        return pb.decision_function(model, rows)
    except TypeError:  # means of shares of three labels
        return pb.predict_proba(model, rows)


@pytest.mark.full_for("sbpmt, mean", "sbpmt, three")
@pytest.mark.parametrize("kind", EVERY)
def test_labels_are_those_of_predict_and_nothing_is_asked_but_on_the_way(kind):
    model = made(kind)
    labels, scores = pb.predict(model, TEST), whole_score(model, TEST)
    for row, label, score in zip(TEST, labels, scores, strict=True):
        calls, fewer = [], []
        outcome = pb.acquisition.predict_with_acquisition(model, asking(row, calls), exit="none")
        assert outcome.label == label
        assert np.array_equal(outcome.score, score)
        assert np.array_equal(outcome.bounds, [score, score])
        if kind in SUMS:  # one column is cheaper than all of a sum
            assert sorted(calls) == sorted(columns_read(model, row))
        elif "leaving" not in kind:
            assert calls == columns_read(model, row)
        assert [entry.source for entry in outcome.acquired] == calls
        assert [entry.value for entry in outcome.acquired] == [row[j] for j in calls]
        assert (outcome.calls, outcome.cost) == (len(calls), len(calls))
        early = pb.acquisition.predict_with_acquisition(model, asking(row, fewer))
        assert (early.label, early.is_settled) == (label, True)
        assert contains(early.bounds, score)
        if kind not in (*SUMS, *VOTES):  # members whose label is settled are passed over
            assert fewer == calls[: len(fewer)]
        assert set(fewer) <= set(calls)


@pytest.mark.parametrize("kind", EVERY)
def test_bounds_hold_for_any_values_of_what_is_not_known(kind):
    model = made(kind)
    for row in TEST[:3]:
        known = int(RNG.integers(3))
        calls: list = []
        outcome = pb.acquisition.predict_with_acquisition(
            model, asking(row, calls), budget=known, exit="none"
        )
        assert len(calls) <= known
        others = np.vstack([inspected.X[:60], RNG.normal(size=(60, D)) * [1, 5, 1, 0.1, 1]])
        others[:, calls] = row[calls]
        scores = whole_score(model, others)
        assert all(contains(outcome.bounds, score) for score in scores)
        if (
            pb.acquisition.predict_with_acquisition(model, asking(row, []), budget=known).is_settled
            and model.classes is not None
        ):
            early: list = []
            label = pb.acquisition.predict_with_acquisition(
                model, asking(row, early), budget=known
            ).label
            others[:, early] = row[early]
            assert (pb.predict(model, others) == label).all()
        if model.classes is not None and outcome.probability is not None:
            assert outcome.probability.shape == (len(model.classes),)
            assert model.classes[outcome.probability.argmax()] == outcome.label


@pytest.mark.parametrize("kind", ["chain", "tree", "matryoshka", "affine", "cart", "linear"])
def test_as_many_as_prediction_cost_counts(kind):
    model = made(kind)
    cost = pb.prediction_cost(model, TEST, unit="features")
    asked = [
        pb.acquisition.predict_with_acquisition(model, asking(row, []), exit="none").calls
        for row in TEST
    ]
    assert asked == cost.tolist()


@pytest.mark.parametrize("kind", ["chain", "blocks, three", "matryoshka", "tree"])
def test_proven_labels_where_votes_are_tenths_and_tie(kind):
    model = made(kind)
    rng = np.random.default_rng(0)
    for _ in range(10):
        vote = rng.integers(-3, 4, size=model.vote.shape) / 10
        tied = replace(model, vote=vote)
        for row, label in zip(TEST, pb.predict(tied, TEST), strict=True):
            assert pb.acquisition.predict_with_acquisition(tied, asking(row, [])).label == label


def test_a_chain_stops_when_the_votes_left_are_too_small():
    chain = pb.fit_adaboost(np.eye(3), [0, 1, 1], n_estimators=1)
    chain = replace(
        pb.fit_adaboost(RNG.normal(size=(60, 3)), RNG.random(60) > 0.5, n_estimators=3),
        feature=[0, 1, 2],
        threshold=[0.0, 0.0, 0.0],
        vote=[[-0.4, 0.4], [-0.2, 0.2], [-0.1, 0.1]],
    )
    outcome = pb.acquisition.predict_with_acquisition(chain, asking([1.0, 1.0, 1.0], []))
    assert [entry.source for entry in outcome.acquired] == [0]
    assert outcome.score == 0.4
    assert outcome.bounds == pytest.approx([0.1, 0.7])
    assert outcome.reason == "the unknown features cannot change the class"
    nothing = pb.acquisition.predict_with_acquisition(chain, asking([1.0, 1.0, 1.0], []), budget=0)
    assert (nothing.label, nothing.score, nothing.is_settled) == (chain.classes[0], 0.0, False)
    assert nothing.bounds == pytest.approx([-0.7, 0.7])
    assert nothing.reason == "the next query would exceed the budget"
    # What is given counts at once, wherever the chain reads it.
    late = pb.acquisition.predict_with_acquisition(chain, [lambda: 1.0, -1.0, -1.0])
    assert (late.score, len(late.acquired)) == (pytest.approx(0.1), 1)
    # The chain waits for all of its columns, and the cheapest comes first.
    cheap = pb.acquisition.predict_with_acquisition(
        chain, asking([1.0, 1.0, 1.0], []), feature_costs=[9, 1, 2], budget=4
    )
    assert [entry.source for entry in cheap.acquired] == [1, 2]
    assert cheap.bounds == pytest.approx([-0.1, 0.7])


def table():
    frame = pd.DataFrame(
        {
            "age": RNG.normal(50, 10, 200),
            "sky": RNG.choice(["clear", "rain", "snow"], 200),
            "wind": RNG.normal(size=200),
        }
    )
    frame.loc[::7, "age"] = np.nan
    y = (frame["sky"] == "rain") ^ (frame["age"].fillna(60) > 55) ^ (frame["wind"] > 1)
    return frame, np.where(y, "stay", "go")


FRAME, GO = table()
FITS = {
    "chain": partial(pb.fit_adaboost, n_estimators=8),
    "tree": partial(pb.fit_boosted_tree, max_nodes=9),
    "cart": pb.fit_cart,
    "forest": partial(pb.fit_random_forest, n_estimators=5, rng=0),
    "stagewise": partial(pb.fit_gradient_boosting, loss="log_loss", n_estimators=5),
    "linear": partial(pb.fit_adaboost, n_estimators=3, weak_learner=pb.weak.linear(seed=0)),
    "probit": pb.fit_probitboost,
    "probit tree": partial(pb.fit_probit_tree, max_depth=1, min_samples_leaf=20),
    "bagging": partial(pb.fit_bagging, pb.fit_cart, n_estimators=3, rng=0),
}


@pytest.mark.full_for("both ways")
@pytest.mark.parametrize("kind", FITS)
def test_names_categories_and_missing_values(kind):
    model = FITS[kind](FRAME, GO)
    rows = FRAME.head(14).copy()
    rows.loc[3, "sky"], rows.loc[4, "sky"] = None, "hail"
    for (_, row), label in zip(rows.iterrows(), pb.predict(model, rows), strict=True):
        value = row.to_dict()
        ask = {name: partial(value.get, name) for name in value}
        outcome = pb.acquisition.predict_with_acquisition(model, ask)
        assert outcome.label == label
        assert {entry.source for entry in outcome.acquired} <= set(value)
        assert pb.acquisition.predict_with_acquisition(model, row).label == label
        assert (
            pb.acquisition.predict_with_acquisition(model, {**ask, "sky": value["sky"]}).label
            == label
        )
        assert (
            pb.acquisition.predict_with_acquisition(
                model, [value["age"], value["sky"], ask["wind"]]
            ).label
            == label
        )


def test_prices_groups_and_budget():
    model = FITS["chain"](FRAME, GO)
    value = {"age": 40.0, "sky": "rain", "wind": 0.3}
    calls = []

    def blood():
        calls.append("blood")
        return {"wind": value["wind"], "age": value["age"]}

    options = {"cost_groups": {"blood": ["age", "wind"]}, "exit": "none"}
    outcome = pb.acquisition.predict_with_acquisition(
        model,
        {"blood": blood, "sky": lambda: "rain"},
        **options,
        feature_costs={"blood": 7, "sky": 2},
    )
    assert calls == ["blood"]
    assert outcome.cost == 9
    paid = {entry.source: entry.cost for entry in outcome.acquired}
    assert paid == {"blood": 7, "sky": 2}
    assert outcome.label == pb.predict(model, FRAME.head(1).assign(**value))[0]
    ask = {name: partial(value.get, name) for name in value}
    # One by one the group is paid with its first column.
    alone = pb.acquisition.predict_with_acquisition(model, ask, **options, feature_costs=[3, 2, 5])
    assert sorted(entry.cost for entry in alone.acquired) == [0, 2, 5]
    few = pb.acquisition.predict_with_acquisition(
        model, ask, feature_costs=[3, 2, 5], budget=4.9, exit="none"
    )
    assert few.cost <= 4.9
    assert not few.is_settled
    assert few.reason == "the next query would exceed the budget"


@pytest.mark.parametrize("kind", ["chain", "forest", "samme", "softmax", "blocks, three"])
def test_the_cheapest_of_what_is_wanted_is_asked_first(kind):
    model, feature_costs = made(kind), [5, 4, 3, 2, 1]
    for row in TEST:
        dear: list = []
        outcome = pb.acquisition.predict_with_acquisition(
            model, asking(row, dear), feature_costs=feature_costs, exit="none"
        )
        assert sorted(dear) == sorted(columns_read(model, row))
        if kind == "chain":
            assert dear == sorted(dear, reverse=True)
        if kind != "samme":
            cost = pb.prediction_cost(
                model, row[None], unit="feature_cost", feature_costs=feature_costs
            )
            assert outcome.cost == cost[0]
        assert outcome.label == pb.predict(model, row[None])[0]


def test_models_know_the_prices_they_were_fitted_with():
    model = pb.fit_gradient_boosting(
        inspected.X,
        inspected.TWO,
        loss="log_loss",
        n_estimators=3,
        feature_costs=[4, 4, 4, 2, 3],
        cost_groups={"pair": [0, 1]},
    )
    for row in TEST:
        pair = lambda row=row: {0: row[0], 1: row[1]}  # noqa: E731
        ask = {**{j: partial(float, row[j]) for j in (2, 3, 4)}, "pair": pair}
        outcome = pb.acquisition.predict_with_acquisition(model, ask, exit="none")
        assert outcome.cost == pb.prediction_cost(model, row[None], unit="feature_cost")[0]


def test_the_ledger_survives_a_function_that_fails():
    model = FITS["chain"](FRAME, GO)

    def broken():
        raise OSError("no scanner")

    first = pb.acquisition.predict_with_acquisition(
        model, {"age": lambda: 40, "sky": lambda: "rain", "wind": lambda: 0.1}, exit="none"
    ).acquired
    for wrong, said in (
        (broken, "no scanner"),
        (lambda: [1, 2], "expected a number"),
        (lambda: "much", "'"),
        (lambda: np.inf, "finite"),
    ):
        last = next(entry.source for entry in first[::-1] if entry.source != "sky")
        ask = {
            entry.source: partial(dict.get, {entry.source: entry.value}, entry.source)
            for entry in first
        }
        with pytest.raises(pb.acquisition.AcquisitionError, match=said) as caught:
            pb.acquisition.predict_with_acquisition(model, {**ask, last: wrong}, exit="none")
        error = pickle.loads(pickle.dumps(caught.value))
        assert error.source == last
        assert error.acquired == first[: [entry.source for entry in first].index(last)]
        assert caught.value.__cause__ is not None
    with pytest.raises(pb.acquisition.AcquisitionError, match="mapping of features"):
        pb.acquisition.predict_with_acquisition(
            model, {"all": lambda: 3}, cost_groups={"all": ["age", "sky", "wind"]}
        )
    with pytest.raises(pb.acquisition.AcquisitionError, match="expected values of the features"):
        pb.acquisition.predict_with_acquisition(
            model, {"all": lambda: {"age": 3}}, cost_groups={"all": ["age", "sky", "wind"]}
        )


def test_bad_input():
    model = FITS["chain"](FRAME, GO)
    row = {"age": 40, "sky": "rain", "wind": 0.1}
    for wrong, said in (
        ({**row, "rain": 1}, "rain"),
        ({"age": 40}, "sky"),
        ({**row, 0: 40}, "once"),
        ([1, 2], "3 values"),
        ({**row, 7: 1}, "7"),
        ({**row, True: 1}, "True"),
    ):
        with pytest.raises(ValueError, match=said):
            pb.acquisition.predict_with_acquisition(model, wrong)
    for wrong in ("age", 3, None):
        with pytest.raises(TypeError, match="row"):
            pb.acquisition.predict_with_acquisition(model, wrong)
    for name, wrong in (
        ("budget", -1),
        ("budget", np.nan),
        ("exit", "early"),
        ("feature_costs", [1, 2]),
        ("feature_costs", [1, 2, -3]),
        ("cost_groups", [["age"], ["age", "sky"]]),
    ):
        with pytest.raises(ValueError, match=name):
            pb.acquisition.predict_with_acquisition(model, row, **{name: wrong})
    with pytest.raises(TypeError, match="X: "):
        pb.acquisition.predict_with_acquisition(model, {**row, "age": "old"})
    plain = pb.fit_adaboost(
        inspected.X, inspected.TWO, n_estimators=2, weak_learner=pb.weak.stump()
    )
    with pytest.raises(ValueError, match="an index below"):
        pb.acquisition.predict_with_acquisition(plain, {"age": 1})


def test_models_whose_columns_are_not_known():
    ask = asking(TEST[0], [])
    X, y = inspected.X, inspected.TWO
    function = pb.weak.hypothesis(lambda X, y, weights, rng: lambda rows: np.sign(rows[:, 0]))
    oracle = pb.weak.oracle(lambda X, y, weights, rng: lambda rows, rng: np.sign(rows[:, 0]))
    for model in (
        pb.fit_real_adaboost(X, y, n_estimators=2, weak_learner=function),
        pb.fit_boosted_tree(X, y, max_nodes=2, weak_learner=oracle, rng=0),
    ):
        with pytest.raises(
            NotImplementedError, match=r"does not record which|cannot determine the features"
        ):
            pb.acquisition.predict_with_acquisition(model, ask)


def test_questions_of_many_rows_in_batches():
    model = made("forest")
    session = pb.acquisition.acquisition_session(model, [{0: row[0]} for row in TEST])
    rounds = 0
    while questions := session.ask():
        rounds += 1
        assert session.ask() == []
        for question in reversed(questions):
            session.tell(question, TEST[question.row, question.source])
    assert session.is_done
    assert rounds <= D
    labels = pb.predict(model, TEST)
    alone = [
        pb.acquisition.predict_with_acquisition(model, {**asking(row, []), 0: row[0]})
        for row in TEST
    ]
    for item, label, entry in zip(session, labels, alone, strict=True):
        assert item.label == label
        assert item.acquired == entry.acquired
        assert np.array_equal(item.bounds, entry.bounds)


def test_sessions_take_groups_further_rows_and_wrong_answers():
    model = FITS["linear"](FRAME, GO)
    session = pb.acquisition.acquisition_session(
        model, cost_groups={"air": ["sky", "wind"]}, feature_costs=[5, 1, 2]
    )
    assert session.is_done
    assert session.add({}) == 0
    questions = session.ask()
    assert {q.source: q.cost for q in questions} == {"age": 5, "air": 2}
    air = next(q for q in questions if q.source == "air")
    with pytest.raises(pb.acquisition.AcquisitionError, match="mapping"):
        session.tell(air, "rain")
    session.tell(air, {"sky": "rain", "wind": 0.0})
    with pytest.raises(ValueError, match="open"):
        session.tell(air, {"sky": "rain", "wind": 0.0})
    assert session[0] is None
    session.tell(next(q for q in questions if q.source == "age"), 30.0)
    assert session[0].cost == 7
    assert len(session) == 1
    with pytest.raises(TypeError, match="predict_with_acquisition"):
        session.add({"age": lambda: 3})
