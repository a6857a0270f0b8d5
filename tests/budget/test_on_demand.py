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
    "chain, three": partial(pb.fit_adaboost, rounds=6, y=inspected.WORDS),
    "blocks, three": partial(pb.fit_matryoshka, shape=(3, 4), join="all", y=inspected.WORDS),
    "softmax": partial(pb.fit_stagewise, loss="softmax", steps=4, y=inspected.WORDS),
    "vectors": partial(pb.fit_stagewise, loss="softmax", trees="one", steps=4, y=inspected.WORDS),
    "counts": partial(pb.fit_stagewise, loss="poisson", steps=4, y=inspected.THREE),
    "hinge": partial(pb.fit_stagewise, loss="hinge", steps=4, y=inspected.TWO),
}
LEAVE = ("chain", "blocks, three", "stagewise", "softmax", "forest", "forest, three", "samme")
SUMS = ("sbpmt", "sbpmt, three", "sbpmt, mean", "bagging of probits")
VOTES = ("rest", "rest of pairs", "samme of rest", "samme", "bagging", "bagging of chains")
MADE: dict = {}


def made(kind):
    if kind not in MADE:
        if kind.startswith("leaving "):
            model = made(kind.removeprefix("leaving "))
            budget = 0.6 * pb.evaluation_cost(model, inspected.X).mean()
            MADE[kind] = pb.early_exit(model, RNG.normal(size=(80, D)), comparisons=budget)
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
        outcome = pb.decide(model, asking(row, calls), exit="none")
        assert outcome.label == label
        assert np.array_equal(outcome.score, score)
        assert np.array_equal(outcome.bounds, [score, score])
        if kind in SUMS:  # one column is cheaper than all of a sum
            assert sorted(calls) == sorted(columns_read(model, row))
        elif "leaving" not in kind:
            assert calls == columns_read(model, row)
        assert [entry.asked for entry in outcome.ledger] == calls
        assert [entry.value for entry in outcome.ledger] == [row[j] for j in calls]
        assert (outcome.calls, outcome.price) == (len(calls), len(calls))
        early = pb.decide(model, asking(row, fewer))
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
        outcome = pb.decide(model, asking(row, calls), budget=known, exit="none")
        assert len(calls) <= known
        others = np.vstack([inspected.X[:60], RNG.normal(size=(60, D)) * [1, 5, 1, 0.1, 1]])
        others[:, calls] = row[calls]
        scores = whole_score(model, others)
        assert all(contains(outcome.bounds, score) for score in scores)
        if pb.decide(model, asking(row, []), budget=known).is_settled and model.labels is not None:
            early: list = []
            label = pb.decide(model, asking(row, early), budget=known).label
            others[:, early] = row[early]
            assert (pb.predict(model, others) == label).all()
        if model.labels is not None and outcome.probability is not None:
            assert outcome.probability.shape == (len(model.labels),)
            assert model.labels[outcome.probability.argmax()] == outcome.label


@pytest.mark.parametrize("kind", ["chain", "tree", "matryoshka", "affine", "cart", "linear"])
def test_as_many_as_evaluation_cost_counts(kind):
    model = made(kind)
    cost = pb.evaluation_cost(model, TEST, unit="features")
    asked = [pb.decide(model, asking(row, []), exit="none").calls for row in TEST]
    assert asked == cost.tolist()


@pytest.mark.parametrize("kind", ["chain", "blocks, three", "matryoshka", "tree"])
def test_proven_labels_where_votes_are_tenths_and_tie(kind):
    model = made(kind)
    rng = np.random.default_rng(0)
    for _ in range(10):
        vote = rng.integers(-3, 4, size=model.vote.shape) / 10
        tied = replace(model, vote=vote)
        for row, label in zip(TEST, pb.predict(tied, TEST), strict=True):
            assert pb.decide(tied, asking(row, [])).label == label


def test_a_chain_stops_when_the_votes_left_are_too_small():
    chain = pb.fit_adaboost(np.eye(3), [0, 1, 1], rounds=1)
    chain = replace(
        pb.fit_adaboost(RNG.normal(size=(60, 3)), RNG.random(60) > 0.5, rounds=3),
        feature=[0, 1, 2],
        threshold=[0.0, 0.0, 0.0],
        vote=[[-0.4, 0.4], [-0.2, 0.2], [-0.1, 0.1]],
    )
    outcome = pb.decide(chain, asking([1.0, 1.0, 1.0], []))
    assert [entry.asked for entry in outcome.ledger] == [0]
    assert outcome.score == 0.4
    assert outcome.bounds == pytest.approx([0.1, 0.7])
    assert outcome.reason == "the rest cannot change the label"
    nothing = pb.decide(chain, asking([1.0, 1.0, 1.0], []), budget=0)
    assert (nothing.label, nothing.score, nothing.is_settled) == (chain.labels[0], 0.0, False)
    assert nothing.bounds == pytest.approx([-0.7, 0.7])
    assert nothing.reason == "the budget ends here"
    # What is given counts at once, wherever the chain reads it.
    late = pb.decide(chain, [lambda: 1.0, -1.0, -1.0])
    assert (late.score, len(late.ledger)) == (pytest.approx(0.1), 1)
    # The chain waits for all of its columns, and the cheapest comes first.
    cheap = pb.decide(chain, asking([1.0, 1.0, 1.0], []), prices=[9, 1, 2], budget=4)
    assert [entry.asked for entry in cheap.ledger] == [1, 2]
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
    "chain": partial(pb.fit_adaboost, rounds=8),
    "tree": partial(pb.fit_boosted_tree, nodes=9),
    "cart": pb.fit_cart,
    "forest": partial(pb.fit_forest, members=5, rng=0),
    "stagewise": partial(pb.fit_stagewise, loss="logistic", steps=5),
    "linear": partial(pb.fit_adaboost, rounds=3, weak=pb.weak.linear(seed=0)),
    "probit": pb.fit_probitboost,
    "probit tree": partial(pb.fit_probit_tree, max_depth=1, min_leaf=20),
    "bagging": partial(pb.fit_bagging, pb.fit_cart, members=3, rng=0),
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
        outcome = pb.decide(model, ask)
        assert outcome.label == label
        assert {entry.asked for entry in outcome.ledger} <= set(value)
        assert pb.decide(model, row).label == label
        assert pb.decide(model, {**ask, "sky": value["sky"]}).label == label
        assert pb.decide(model, [value["age"], value["sky"], ask["wind"]]).label == label


def test_prices_groups_and_budget():
    model = FITS["chain"](FRAME, GO)
    value = {"age": 40.0, "sky": "rain", "wind": 0.3}
    calls = []

    def blood():
        calls.append("blood")
        return {"wind": value["wind"], "age": value["age"]}

    options = {"groups": {"blood": ["age", "wind"]}, "exit": "none"}
    outcome = pb.decide(
        model, {"blood": blood, "sky": lambda: "rain"}, **options, prices={"blood": 7, "sky": 2}
    )
    assert calls == ["blood"]
    assert outcome.price == 9
    paid = {entry.asked: entry.price for entry in outcome.ledger}
    assert paid == {"blood": 7, "sky": 2}
    assert outcome.label == pb.predict(model, FRAME.head(1).assign(**value))[0]
    ask = {name: partial(value.get, name) for name in value}
    # One by one the group is paid with its first column.
    alone = pb.decide(model, ask, **options, prices=[3, 2, 5])
    assert sorted(entry.price for entry in alone.ledger) == [0, 2, 5]
    few = pb.decide(model, ask, prices=[3, 2, 5], budget=4.9, exit="none")
    assert few.price <= 4.9
    assert not few.is_settled
    assert few.reason == "the budget ends here"


@pytest.mark.parametrize("kind", ["chain", "forest", "samme", "softmax", "blocks, three"])
def test_the_cheapest_of_what_is_wanted_is_asked_first(kind):
    model, prices = made(kind), [5, 4, 3, 2, 1]
    for row in TEST:
        dear: list = []
        outcome = pb.decide(model, asking(row, dear), prices=prices, exit="none")
        assert sorted(dear) == sorted(columns_read(model, row))
        if kind == "chain":
            assert dear == sorted(dear, reverse=True)
        if kind != "samme":
            cost = pb.evaluation_cost(model, row[None], unit="price", prices=prices)
            assert outcome.price == cost[0]
        assert outcome.label == pb.predict(model, row[None])[0]


def test_models_know_the_prices_they_were_fitted_with():
    model = pb.fit_stagewise(
        inspected.X,
        inspected.TWO,
        loss="logistic",
        steps=3,
        prices=[4, 4, 4, 2, 3],
        groups={"pair": [0, 1]},
    )
    for row in TEST:
        pair = lambda row=row: {0: row[0], 1: row[1]}  # noqa: E731
        ask = {**{j: partial(float, row[j]) for j in (2, 3, 4)}, "pair": pair}
        outcome = pb.decide(model, ask, exit="none")
        assert outcome.price == pb.evaluation_cost(model, row[None], unit="price")[0]


def test_the_ledger_survives_a_function_that_fails():
    model = FITS["chain"](FRAME, GO)

    def broken():
        raise OSError("no scanner")

    first = pb.decide(
        model, {"age": lambda: 40, "sky": lambda: "rain", "wind": lambda: 0.1}, exit="none"
    ).ledger
    for wrong, said in (
        (broken, "no scanner"),
        (lambda: [1, 2], "expected a number"),
        (lambda: "much", "'"),
        (lambda: np.inf, "finite"),
    ):
        last = next(entry.asked for entry in first[::-1] if entry.asked != "sky")
        ask = {
            entry.asked: partial(dict.get, {entry.asked: entry.value}, entry.asked)
            for entry in first
        }
        with pytest.raises(pb.AskError, match=said) as caught:
            pb.decide(model, {**ask, last: wrong}, exit="none")
        error = pickle.loads(pickle.dumps(caught.value))
        assert error.asked == last
        assert error.ledger == first[: [entry.asked for entry in first].index(last)]
        assert caught.value.__cause__ is not None
    with pytest.raises(pb.AskError, match="mapping of the columns"):
        pb.decide(model, {"all": lambda: 3}, groups={"all": ["age", "sky", "wind"]})
    with pytest.raises(pb.AskError, match="expected values of the columns"):
        pb.decide(model, {"all": lambda: {"age": 3}}, groups={"all": ["age", "sky", "wind"]})


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
            pb.decide(model, wrong)
    for wrong in ("age", 3, None):
        with pytest.raises(TypeError, match="row"):
            pb.decide(model, wrong)
    for name, wrong in (
        ("budget", -1),
        ("budget", np.nan),
        ("exit", "early"),
        ("prices", [1, 2]),
        ("prices", [1, 2, -3]),
        ("groups", [["age"], ["age", "sky"]]),
    ):
        with pytest.raises(ValueError, match=name):
            pb.decide(model, row, **{name: wrong})
    with pytest.raises(TypeError, match="X: "):
        pb.decide(model, {**row, "age": "old"})
    plain = pb.fit_adaboost(inspected.X, inspected.TWO, rounds=2, weak=pb.weak.stump())
    with pytest.raises(ValueError, match="positions below"):
        pb.decide(plain, {"age": 1})


def test_models_whose_columns_are_not_known():
    ask = asking(TEST[0], [])
    X, y = inspected.X, inspected.TWO
    function = pb.weak.hypothesis(lambda X, y, weights, rng: lambda rows: np.sign(rows[:, 0]))
    oracle = pb.weak.oracle(lambda X, y, weights, rng: lambda rows, rng: np.sign(rows[:, 0]))
    for model in (
        pb.fit_adaboost_real(X, y, rounds=2, weak=function),
        pb.fit_boosted_tree(X, y, nodes=2, weak=oracle, rng=0),
    ):
        with pytest.raises(NotImplementedError, match="not known"):
            pb.decide(model, ask)


def test_questions_of_many_rows_in_batches():
    model = made("forest")
    session = pb.decisions(model, [{0: row[0]} for row in TEST])
    rounds = 0
    while questions := session.ask():
        rounds += 1
        assert session.ask() == []
        for question in reversed(questions):
            session.tell(question, TEST[question.row, question.asked])
    assert session.is_done
    assert rounds <= D
    labels = pb.predict(model, TEST)
    alone = [pb.decide(model, {**asking(row, []), 0: row[0]}) for row in TEST]
    for item, label, entry in zip(session, labels, alone, strict=True):
        assert item.label == label
        assert item.ledger == entry.ledger
        assert np.array_equal(item.bounds, entry.bounds)


def test_sessions_take_groups_further_rows_and_wrong_answers():
    model = FITS["linear"](FRAME, GO)
    session = pb.decisions(model, groups={"air": ["sky", "wind"]}, prices=[5, 1, 2])
    assert session.is_done
    assert session.add({}) == 0
    questions = session.ask()
    assert {q.asked: q.price for q in questions} == {"age": 5, "air": 2}
    air = next(q for q in questions if q.asked == "air")
    with pytest.raises(pb.AskError, match="mapping"):
        session.tell(air, "rain")
    session.tell(air, {"sky": "rain", "wind": 0.0})
    with pytest.raises(ValueError, match="open"):
        session.tell(air, {"sky": "rain", "wind": 0.0})
    assert session[0] is None
    session.tell(next(q for q in questions if q.asked == "age"), 30.0)
    assert session[0].price == 7
    assert len(session) == 1
    with pytest.raises(TypeError, match="decide"):
        session.add({"age": lambda: 3})
