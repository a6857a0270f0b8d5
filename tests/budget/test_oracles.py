"""Oracles that err: whom to ask next, and what the answers say."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from reference import oracles as twin

import pboost as pb
from pboost.budget.oracles import OracleCase, OracleInquiry, OracleOptions

#: What was counted: of each label the answers.
NURSE = {"ill": {"ill": 6, "well": 3}, "well": {"ill": 2, "well": 7}}
CROWD = {"ill": {"ill": 1, "well": 0}, "well": {"ill": 1, "well": 2}}
#: An oracle that may say nothing, and one that is right but with a known probability.
EXPERT = {
    "a": {"a": 8, "b": 0, "c": 0, None: 3},
    "b": {"a": 1, "b": 5, "c": 1, None: 0},
    "c": {"a": 0, "b": 2, "c": 6, None: 1},
}


def known(rate, labels):
    wrong = Fraction(rate, len(labels) - 1)
    return {y: {a: Fraction(1) - rate if a == y else wrong for a in labels} for y in labels}


CASES = {
    "two": (
        {"nurse": NURSE, "crowd": CROWD, "test": known(Fraction(1, 10), ("ill", "well"))},
        {"ill": Fraction(2, 5), "well": Fraction(3, 5)},
        {"nurse": 1.0, "crowd": 0.25, "test": 2.0},
    ),
    "three": (
        {"expert": EXPERT, "test": known(Fraction(3, 10), ("a", "b", "c"))},
        {"a": Fraction(1, 2), "b": Fraction(1, 3), "c": Fraction(1, 6)},
        {"expert": 2.5, "test": 1.0},
    ),
}


def counted(table):
    labels, answers = tuple(table), tuple(twin.answers_of(table))
    return pb.AnswerCounts(labels, answers, [[table[y][a] for a in answers] for y in labels])


def errors_of(oracles):
    """Return the oracles as the package takes them."""
    actual = {}
    for name, table in oracles.items():
        rate = [1 - p for y, row in table.items() for a, p in row.items() if a == y]
        actual[name] = float(rate[0]) if isinstance(rate[0], Fraction) else counted(table)
    return actual


def walks(oracles, prior, prices, **options):
    """Yield every sequence of answers that the policy may meet, with its decision."""
    options = {"labels": list(prior), "prices": prices, **options}
    options["prior"] = {label: float(p) for label, p in prior.items()}
    errors, begun = errors_of(oracles), [()]
    while begun:
        answers = begun.pop()
        session = pb.oracle_decisions(errors, [None], **options)
        ledger = []
        for answer in answers:
            (question,) = session.ask()
            session.tell(question, answer)
            ledger.append((question.asked, answer))
        if session.is_done:
            yield ledger, session[0], None
            continue
        (question,) = session.ask()
        yield ledger, None, question
        begun += [(*answers, answer) for answer in twin.answers_of(oracles[question.asked])]


@pytest.mark.parametrize("criterion", ["entropy", "gini", "error", "kearns-mansour"])
@pytest.mark.parametrize("case", CASES)
def test_questions_are_those_of_the_largest_decrease_per_price(case, criterion):
    oracles, prior, prices = CASES[case]
    options = {"criterion": criterion, "repeats": 2, "budget": 4.25}
    if criterion == "kearns-mansour" and case == "three":
        with pytest.raises(ValueError, match="criterion: expected"):
            next(walks(oracles, prior, prices, **options))
        return
    full, questions = 0.0, 0
    left, lowered = 0.0, 0.0
    for ledger, decision, question in walks(oracles, prior, prices, **options):
        joint = twin.joint_of(ledger, oracles, prior)
        mass = float(sum(joint.values()))
        spent = sum(prices[name] for name, _ in ledger)
        times = [name for name, _ in ledger]
        may = [n for n in oracles if times.count(n) < 2 and spent + prices[n] <= 4.25]
        per_price = {
            n: twin.decrease(ledger, n, oracles, prior, criterion) / prices[n] for n in may
        }
        if question is not None:
            questions += 1
            assert question.price == prices[question.asked]
            assert per_price[question.asked] >= max(per_price.values()) - 1e-12
            lowered += mass * per_price[question.asked] * question.price
        else:
            assert max(per_price.values(), default=0.0) <= 1e-12
            np.testing.assert_allclose(
                decision.probability, [float(p) for p in twin.share_of(joint)], atol=1e-13
            )
            assert decision.label == max(joint, key=joint.get)
            assert decision.price == spent
            assert [(item.asked, item.value) for item in decision.ledger] == ledger
            full += mass
            left += mass * twin.CRITERIA[criterion](twin.share_of(joint))
    assert questions > 1
    assert full == pytest.approx(1.0, abs=1e-12)
    # What the questions were expected to take is what is gone in the end.
    start = twin.CRITERIA[criterion](list(prior.values()))
    assert left == pytest.approx(start - lowered, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_no_policy_is_better_than_the_best(case):
    """And where one question can be paid, that of the largest decrease of the error is the best."""
    oracles, prior, _ = CASES[case]
    prices = dict.fromkeys(oracles, 1.0)
    for budget, criterion in [(3.0, "entropy"), (1.0, "error")]:
        options = {"budget": budget, "criterion": criterion}
        error = 0.0
        for ledger, decision, _ in walks(oracles, prior, prices, **options):
            if decision is not None:
                mass = float(sum(twin.joint_of(ledger, oracles, prior).values()))
                error += mass * decision.error
        best = twin.least_error(budget, oracles, prior, prices)
        assert best <= error + 1e-12
        assert error <= 1.15 * best
        if budget == 1.0:
            assert error == pytest.approx(best, abs=1e-12)


TWO = {"labels": ["no", "yes"]}
OPEN = {**TWO, "prices": None, "budget": None, "most_error": None, "criterion": "entropy"}


def always(answer):
    return partial(str, answer)


def test_repeating_helps_as_long_as_the_estimate_is_uncertain():
    """Of an oracle that repeats itself the second answer says little; so another one is asked."""
    y = ["no", "yes"] * 20
    given = ["yes", "no", *y[2:]]
    fresh, stubborn = pb.count_answers(given, y), pb.count_answers(given, y, strength=0.5)
    asked = {}
    for name, own in [("fresh", fresh), ("stubborn", stubborn)]:
        oracles = {"own": always("yes"), "other": always("yes")}
        outcome = pb.ask_oracles(oracles, {"own": own, "other": 0.2}, budget=2)
        asked[name] = [entry.asked for entry in outcome.ledger]
    assert asked == {"fresh": ["own", "own"], "stubborn": ["own", "other"]}


def test_many_answers_do_not_end_in_zeros():
    """A thousand answers one way and as many the other leave the probabilities as they were."""
    case = OracleCase(["one"], {"one": 0.01}, OracleOptions(prior=[0.4, 0.6], repeats=3000, **OPEN))
    inquiry = OracleInquiry(case)
    for answer in ["no"] * 1000 + ["yes"] * 1000:
        inquiry.tell("one", answer)
    np.testing.assert_allclose(inquiry.probability, [0.4, 0.6], rtol=1e-9)
    # As sure as numbers can be: nothing more is asked.
    outcome = pb.ask_oracles({"one": always("no")}, {"one": 0.01}, **TWO, repeats=2000)
    assert (outcome.label, outcome.calls < 20) == ("no", True)


def test_why_it_ends():
    ask = partial(pb.ask_oracles, {"cheap": always("yes"), "dear": always("yes")}, **TWO)
    prices = {"cheap": 1, "dear": 5}
    actual = ask({"cheap": 0.3, "dear": 0.01}, prices=prices, budget=0.5)
    assert (actual.ledger, actual.label, actual.reason) == ((), "no", "the budget ends here")
    actual = ask({"cheap": 0.3, "dear": 0.01}, prices=prices, budget=7)
    assert [item.asked for item in actual.ledger] == ["dear", "cheap", "cheap"]
    assert actual.price == 7
    actual = ask({"cheap": 0.3, "dear": 0.01}, prices=prices, budget=7, most_error=0.01)
    assert (actual.calls, actual.reason) == (1, "the expected error is small enough")
    assert actual.error == pytest.approx(0.01)
    actual = ask({"cheap": 0.3, "dear": 0.01}, repeats={"cheap": 2, "dear": 1})
    assert (actual.calls, actual.reason) == (3, "all have been asked as often as they may be")
    actual = ask({"cheap": 0.5, "dear": 0.5}, budget=100)
    assert (actual.calls, actual.reason) == (0, "no answer is expected to lower the criterion")
    # One answer alone does not change which label is the more probable.
    actual = ask({"cheap": 0.3, "dear": 0.3}, budget=100, prior=[0.9, 0.1], criterion="error")
    assert (actual.calls, actual.label) == (0, "no")


def test_an_oracle_that_lies_says_as_much_as_one_that_does_not():
    outcome = pb.ask_oracles({"liar": always("yes")}, {"liar": 1.0}, **TWO, budget=3)
    assert (outcome.label, outcome.error, outcome.calls) == ("no", 0.0, 1)


def test_rows_side_by_side_are_those_one_by_one():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=30)
    errors = {"a": pb.count_answers((y + (rng.random(30) < 0.3)) % 3, y), "b": 0.1}
    priors = rng.dirichlet([1, 1, 1], size=6)
    options = {"prices": {"a": 1, "b": 3}, "budget": 9, "most_error": 0.02}
    said = {name: rng.integers(0, 3, size=(6, 20)) for name in errors}

    def answers(row):
        """Return functions, each with its own answers about the row, in turn."""
        return {name: partial(next, iter(said[name][row])) for name in errors}

    alone = [pb.ask_oracles(answers(i), errors, prior=priors[i], **options) for i in range(6)]
    session = pb.oracle_decisions(errors, priors, **options)
    functions = [answers(i) for i in range(6)]
    while questions := session.ask():
        for question in reversed(questions):
            session.tell(question, functions[question.row][question.asked]())
    assert session.is_done
    for item, other in zip(alone, session, strict=True):
        assert item.ledger == other.ledger
        assert item.probability.tolist() == other.probability.tolist()
    assert len({entry.calls for entry in alone}) > 1
    row = session.add({0: 0.1, 1: 0.1, 2: 0.8})
    assert (row, session[row]) == (6, None)


def test_what_is_no_answer_ends_asking_and_keeps_the_ledger():
    said = iter(["yes", "maybe"])
    with pytest.raises(pb.AskError, match=r"'one': expected an answer among .*got 'maybe'") as info:
        pb.ask_oracles({"one": lambda: next(said)}, {"one": 0.2}, **TWO, budget=3)
    assert [(item.asked, item.value) for item in info.value.ledger] == [("one", "yes")]
    with pytest.raises(pb.AskError, match="its function raised ZeroDivisionError"):
        pb.ask_oracles({"one": lambda: 1 / 0}, {"one": 0.2}, **TWO, budget=3)
    with pytest.raises(pb.AskError, match=r"among .*, got \[\]"):
        pb.ask_oracles({"one": list}, {"one": 0.2}, **TWO, budget=3)
    session = pb.oracle_decisions({"one": 0.2}, [None], **TWO, budget=1)
    (question,) = session.ask()
    with pytest.raises(pb.AskError, match="'one'"):
        session.tell(question, 7)
    session.tell(question, np.str_("yes"))
    assert session[0].label == "yes"
    assert session[0].ledger[0].value == "yes"
    with pytest.raises(ValueError, match="question: expected one that is open"):
        session.tell(question, "yes")


def test_answers_that_contradict_certain_ones():
    session = pb.oracle_decisions({"one": 0.0}, [{"no": 1.0, "yes": 0.0}], **TWO, budget=2)
    assert session[0].calls == 0
    zero = {"a": 0.0, "b": 0.0}
    session = pb.oracle_decisions(zero, [[0.5, 0.5, 0.0]], labels=[1, 2, 3], budget=3)
    (question,) = session.ask()
    with pytest.raises(pb.AskError, match="probability 0 for every label, got 3"):
        session.tell(question, 3)
    session.tell(question, 2)
    assert session[0].label == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "budget: expected a number, or repeats of each oracle"),
        ({"repeats": {"a": 1, "b": None}}, "budget: expected a number, or repeats"),
        ({"budget": -1}, r"budget: expected a number in \[0"),
        ({"budget": 1, "prices": 0}, r"prices\['a'\]: expected a number in \(0"),
        ({"budget": 1, "prices": {"a": 1, "b": float("nan")}}, r"prices\['b'\]: expected"),
        ({"budget": 1, "prices": {"a": 1}}, r"prices: expected the oracles \['a', 'b'\], got"),
        ({"repeats": 0}, r"repeats\['a'\]: expected an integer"),
        ({"budget": 1, "most_error": 2}, "most_error: expected a number in"),
        ({"budget": 1, "prior": [0.5, 0.6]}, "prior: expected numbers >= 0 whose sum is 1"),
        ({"budget": 1, "prior": [np.nan, 1]}, "prior: expected numbers >= 0 whose sum is 1"),
        ({"budget": 1, "prior": [1.0]}, "prior: expected 2 probabilities"),
        ({"budget": 1, "prior": {"no": 1.0}}, "prior: expected the labels"),
        ({"budget": 1, "criterion": "loss"}, "criterion: expected"),
        ({"budget": 1, "labels": None}, "labels: expected two or more, as no oracle has counts"),
        ({"budget": 1, "labels": ["no", "no"]}, "labels: expected two or more that differ"),
        ({"budget": 1, "labels": "no"}, "labels: expected a sequence"),
        ({"budget": 1, "errors": {"a": 0.1, "b": 1.5}}, r"errors\['b'\]: expected a number in"),
        ({"budget": 1, "errors": {"a": 0.1, "b": "x"}}, r"errors\['b'\]: expected a number, got"),
        ({"budget": 1, "errors": {"a": 0.1}}, r"errors: expected the oracles \['a', 'b'\]"),
        ({"budget": 1, "errors": [0.1, 0.2]}, "errors: expected a mapping"),
        (
            {"budget": 1, "errors": {"a": pb.count_answers([1, 2], [1, 2]), "b": 0.1}},
            r"errors\['a'\]: expected counts of the labels",
        ),
        ({"budget": 1, "oracles": {"a": 1, "b": 2}}, "oracles: expected a mapping of names to fun"),
    ],
)
def test_bad_options(options, said):
    options = {**TWO, "errors": {"a": 0.1, "b": 0.2}, **options}
    oracles = options.pop("oracles", {"a": always("no"), "b": always("no")})
    with pytest.raises((ValueError, TypeError), match=said):
        pb.ask_oracles(oracles, options.pop("errors"), **options)


def test_no_oracle():
    with pytest.raises(ValueError, match="errors: expected one oracle or more"):
        pb.ask_oracles({}, {}, **TWO, budget=1)


def test_counts_are_added():
    first = pb.count_answers(np.array([1, 2, 2]), np.array([1, 1, 2]), strength=5)
    actual = pb.count_answers([None, 1], [2, 1], before=first)
    assert (actual.labels, actual.answers, actual.strength) == ((1, 2), (1, 2, None), 5)
    assert actual.counts.tolist() == [[2, 1, 0], [0, 1, 1]]
    assert first.counts.tolist() == [[1, 1], [0, 1]]
    assert actual.probability.tolist() == [[3 / 6, 2 / 6, 1 / 6], [1 / 5, 2 / 5, 2 / 5]]
    with pytest.raises(ValueError, match="read-only"):
        actual.counts[0, 0] = 7


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (partial(pb.count_answers, [1], [1, 2]), "answers: expected one for each label, got 1 and"),
        (partial(pb.count_answers, [1, 2], [1, 2], labels=[1, 3]), "y: expected labels among"),
        (partial(pb.count_answers, [1], [1]), "labels: expected two or more"),
        (partial(pb.count_answers, [1, 2], [1, 2], strength=0), "strength: expected a number"),
        (partial(pb.count_answers, [1], [1], before=3), "before: expected AnswerCounts"),
        (partial(pb.AnswerCounts, (1, 2), (1, 2), [[1, 2]]), "counts: expected shape"),
        (partial(pb.AnswerCounts, (1, 2), (1, 2), [[1, -2], [1, 1]]), "counts: expected finite"),
    ],
    ids=range(7),
)
def test_bad_counts(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
