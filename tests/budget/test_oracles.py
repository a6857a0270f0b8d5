"""Oracles that err: whom to ask next, and what the answers say."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from reference import oracles as twin

import pboost as pb
from pboost.budget.annotators import OracleCase, OracleInquiry, OracleOptions

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
    return pb.acquisition.AnnotatorModel(
        labels, answers, [[table[y][a] for a in answers] for y in labels]
    )


def errors_of(annotators):
    """Return the oracles as the package takes them."""
    actual = {}
    for name, table in annotators.items():
        rate = [1 - p for y, row in table.items() for a, p in row.items() if a == y]
        actual[name] = float(rate[0]) if isinstance(rate[0], Fraction) else counted(table)
    return actual


def walks(annotators, prior, query_costs, **options):
    """Yield every sequence of answers that the policy may meet, with its decision."""
    options = {"classes": list(prior), "query_costs": query_costs, **options}
    options["prior"] = {label: float(p) for label, p in prior.items()}
    errors, begun = errors_of(annotators), [()]
    while begun:
        answers = begun.pop()
        session = pb.acquisition.annotation_session(errors, [None], **options)
        ledger = []
        for answer in answers:
            (question,) = session.ask()
            session.tell(question, answer)
            ledger.append((question.source, answer))
        if session.is_done:
            yield ledger, session[0], None
            continue
        (question,) = session.ask()
        yield ledger, None, question
        begun += [(*answers, answer) for answer in twin.answers_of(annotators[question.source])]


@pytest.mark.parametrize("criterion", ["entropy", "gini", "error", "kearns_mansour"])
@pytest.mark.parametrize("case", CASES)
def test_questions_are_those_of_the_largest_decrease_per_price(case, criterion):
    annotators, prior, query_costs = CASES[case]
    options = {"criterion": criterion, "n_repeats": 2, "budget": 4.25}
    if criterion == "kearns_mansour" and case == "three":
        with pytest.raises(ValueError, match="criterion: expected"):
            next(walks(annotators, prior, query_costs, **options))
        return
    full, questions = 0.0, 0
    left, lowered = 0.0, 0.0
    for ledger, decision, question in walks(annotators, prior, query_costs, **options):
        joint = twin.joint_of(ledger, annotators, prior)
        mass = float(sum(joint.values()))
        spent = sum(query_costs[name] for name, _ in ledger)
        times = [name for name, _ in ledger]
        may = [n for n in annotators if times.count(n) < 2 and spent + query_costs[n] <= 4.25]
        per_price = {
            n: twin.decrease(ledger, n, annotators, prior, criterion) / query_costs[n] for n in may
        }
        if question is not None:
            questions += 1
            assert question.cost == query_costs[question.source]
            assert per_price[question.source] >= max(per_price.values()) - 1e-12
            lowered += mass * per_price[question.source] * question.cost
        else:
            assert max(per_price.values(), default=0.0) <= 1e-12
            np.testing.assert_allclose(
                decision.probability, [float(p) for p in twin.share_of(joint)], atol=1e-13
            )
            assert decision.label == max(joint, key=joint.get)
            assert decision.cost == spent
            assert [(item.source, item.value) for item in decision.acquired] == ledger
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
    annotators, prior, _ = CASES[case]
    query_costs = dict.fromkeys(annotators, 1.0)
    for budget, criterion in [(3.0, "entropy"), (1.0, "error")]:
        options = {"budget": budget, "criterion": criterion}
        error = 0.0
        for ledger, decision, _ in walks(annotators, prior, query_costs, **options):
            if decision is not None:
                mass = float(sum(twin.joint_of(ledger, annotators, prior).values()))
                error += mass * decision.error
        best = twin.least_error(budget, annotators, prior, query_costs)
        assert best <= error + 1e-12
        assert error <= 1.15 * best
        if budget == 1.0:
            assert error == pytest.approx(best, abs=1e-12)


TWO = {"classes": ["no", "yes"]}
OPEN = {**TWO, "query_costs": None, "budget": None, "max_error": None, "criterion": "entropy"}


def always(answer):
    return partial(str, answer)


def test_repeating_helps_as_long_as_the_estimate_is_uncertain():
    """Of an oracle that repeats itself the second answer says little; so another one is asked."""
    y = ["no", "yes"] * 20
    given = ["yes", "no", *y[2:]]
    fresh, stubborn = (
        pb.acquisition.fit_annotators(given, y),
        pb.acquisition.fit_annotators(given, y, max_count=0.5),
    )
    asked = {}
    for name, own in [("fresh", fresh), ("stubborn", stubborn)]:
        annotators = {"own": always("yes"), "other": always("yes")}
        outcome = pb.acquisition.query_annotators(annotators, {"own": own, "other": 0.2}, budget=2)
        asked[name] = [entry.source for entry in outcome.acquired]
    assert asked == {"fresh": ["own", "own"], "stubborn": ["own", "other"]}


def test_many_answers_do_not_end_in_zeros():
    """A thousand answers one way and as many the other leave the probabilities as they were."""
    case = OracleCase(
        ["one"], {"one": 0.01}, OracleOptions(prior=[0.4, 0.6], n_repeats=3000, **OPEN)
    )
    inquiry = OracleInquiry(case)
    for answer in ["no"] * 1000 + ["yes"] * 1000:
        inquiry.tell("one", answer)
    np.testing.assert_allclose(inquiry.probability, [0.4, 0.6], rtol=1e-9)
    # As sure as numbers can be: nothing more is asked.
    outcome = pb.acquisition.query_annotators(
        {"one": always("no")}, {"one": 0.01}, **TWO, n_repeats=2000
    )
    assert (outcome.label, outcome.calls < 20) == ("no", True)


def test_why_it_ends():
    ask = partial(
        pb.acquisition.query_annotators, {"cheap": always("yes"), "dear": always("yes")}, **TWO
    )
    query_costs = {"cheap": 1, "dear": 5}
    actual = ask({"cheap": 0.3, "dear": 0.01}, query_costs=query_costs, budget=0.5)
    assert (actual.acquired, actual.label, actual.reason) == (
        (),
        "no",
        "the next query would exceed the budget",
    )
    actual = ask({"cheap": 0.3, "dear": 0.01}, query_costs=query_costs, budget=7)
    assert [item.source for item in actual.acquired] == ["dear", "cheap", "cheap"]
    assert actual.cost == 7
    actual = ask({"cheap": 0.3, "dear": 0.01}, query_costs=query_costs, budget=7, max_error=0.01)
    assert (actual.calls, actual.reason) == (1, "the expected error is small enough")
    assert actual.error == pytest.approx(0.01)
    actual = ask({"cheap": 0.3, "dear": 0.01}, n_repeats={"cheap": 2, "dear": 1})
    assert (actual.calls, actual.reason) == (3, "every annotator was queried n_repeats times")
    actual = ask({"cheap": 0.5, "dear": 0.5}, budget=100)
    assert (actual.calls, actual.reason) == (0, "no answer is expected to lower the criterion")
    # One answer alone does not change which label is the more probable.
    actual = ask({"cheap": 0.3, "dear": 0.3}, budget=100, prior=[0.9, 0.1], criterion="error")
    assert (actual.calls, actual.label) == (0, "no")


def test_an_oracle_that_lies_says_as_much_as_one_that_does_not():
    outcome = pb.acquisition.query_annotators(
        {"liar": always("yes")}, {"liar": 1.0}, **TWO, budget=3
    )
    assert (outcome.label, outcome.error, outcome.calls) == ("no", 0.0, 1)


def test_rows_side_by_side_are_those_one_by_one():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=30)
    errors = {"a": pb.acquisition.fit_annotators((y + (rng.random(30) < 0.3)) % 3, y), "b": 0.1}
    priors = rng.dirichlet([1, 1, 1], size=6)
    options = {"query_costs": {"a": 1, "b": 3}, "budget": 9, "max_error": 0.02}
    said = {name: rng.integers(0, 3, size=(6, 20)) for name in errors}

    def answers(row):
        """Return functions, each with its own answers about the row, in turn."""
        return {name: partial(next, iter(said[name][row])) for name in errors}

    alone = [
        pb.acquisition.query_annotators(answers(i), errors, prior=priors[i], **options)
        for i in range(6)
    ]
    session = pb.acquisition.annotation_session(errors, priors, **options)
    functions = [answers(i) for i in range(6)]
    while questions := session.ask():
        for question in reversed(questions):
            session.tell(question, functions[question.row][question.source]())
    assert session.is_done
    for item, other in zip(alone, session, strict=True):
        assert item.acquired == other.acquired
        assert item.probability.tolist() == other.probability.tolist()
    assert len({entry.calls for entry in alone}) > 1
    row = session.add({0: 0.1, 1: 0.1, 2: 0.8})
    assert (row, session[row]) == (6, None)


def test_what_is_no_answer_ends_asking_and_keeps_the_ledger():
    said = iter(["yes", "maybe"])
    with pytest.raises(
        pb.acquisition.AcquisitionError, match=r"'one': expected an answer among .*got 'maybe'"
    ) as info:
        pb.acquisition.query_annotators({"one": lambda: next(said)}, {"one": 0.2}, **TWO, budget=3)
    assert [(item.source, item.value) for item in info.value.acquired] == [("one", "yes")]
    with pytest.raises(
        pb.acquisition.AcquisitionError, match="the function raised ZeroDivisionError"
    ):
        pb.acquisition.query_annotators({"one": lambda: 1 / 0}, {"one": 0.2}, **TWO, budget=3)
    with pytest.raises(pb.acquisition.AcquisitionError, match=r"among .*, got \[\]"):
        pb.acquisition.query_annotators({"one": list}, {"one": 0.2}, **TWO, budget=3)
    session = pb.acquisition.annotation_session({"one": 0.2}, [None], **TWO, budget=1)
    (question,) = session.ask()
    with pytest.raises(pb.acquisition.AcquisitionError, match="'one'"):
        session.tell(question, 7)
    session.tell(question, np.str_("yes"))
    assert session[0].label == "yes"
    assert session[0].acquired[0].value == "yes"
    with pytest.raises(ValueError, match="question: expected an open query"):
        session.tell(question, "yes")


def test_answers_that_contradict_certain_ones():
    session = pb.acquisition.annotation_session(
        {"one": 0.0}, [{"no": 1.0, "yes": 0.0}], **TWO, budget=2
    )
    assert session[0].calls == 0
    zero = {"a": 0.0, "b": 0.0}
    session = pb.acquisition.annotation_session(
        zero, [[0.5, 0.5, 0.0]], classes=[1, 2, 3], budget=3
    )
    (question,) = session.ask()
    with pytest.raises(pb.acquisition.AcquisitionError, match="possible for some class, got 3"):
        session.tell(question, 3)
    session.tell(question, 2)
    assert session[0].label == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "budget: expected a number unless n_repeats limits each annotator"),
        ({"n_repeats": {"a": 1, "b": None}}, "budget: expected a number unless n_repeats"),
        ({"budget": -1}, r"budget: expected a number in \[0"),
        ({"budget": 1, "query_costs": 0}, r"query_costs\['a'\]: expected a number in \(0"),
        (
            {"budget": 1, "query_costs": {"a": 1, "b": float("nan")}},
            r"query_costs\['b'\]: expected",
        ),
        (
            {"budget": 1, "query_costs": {"a": 1}},
            r"query_costs: expected the annotators \['a', 'b'\], got",
        ),
        ({"n_repeats": 0}, r"n_repeats\['a'\]: expected an integer"),
        ({"budget": 1, "max_error": 2}, "max_error: expected a number in"),
        ({"budget": 1, "prior": [0.5, 0.6]}, "prior: expected numbers >= 0 that sum to 1"),
        ({"budget": 1, "prior": [np.nan, 1]}, "prior: expected numbers >= 0 that sum to 1"),
        ({"budget": 1, "prior": [1.0]}, "prior: expected 2 probabilities"),
        ({"budget": 1, "prior": {"no": 1.0}}, "prior: expected the classes"),
        ({"budget": 1, "criterion": "loss"}, "criterion: expected"),
        (
            {"budget": 1, "classes": None},
            "classes: expected two or more classes, got None; pass classes",
        ),
        ({"budget": 1, "classes": ["no", "no"]}, "classes: expected two or more distinct values"),
        ({"budget": 1, "classes": "no"}, "classes: expected a sequence"),
        ({"budget": 1, "errors": {"a": 0.1, "b": 1.5}}, r"errors\['b'\]: expected a number in"),
        ({"budget": 1, "errors": {"a": 0.1, "b": "x"}}, r"errors\['b'\]: expected a number, got"),
        ({"budget": 1, "errors": {"a": 0.1}}, r"errors: expected the annotators \['a', 'b'\]"),
        ({"budget": 1, "errors": [0.1, 0.2]}, "errors: expected a mapping"),
        (
            {"budget": 1, "errors": {"a": pb.acquisition.fit_annotators([1, 2], [1, 2]), "b": 0.1}},
            r"errors\['a'\]: expected counts for the classes",
        ),
        (
            {"budget": 1, "annotators": {"a": 1, "b": 2}},
            "annotators: expected a mapping of names to fun",
        ),
    ],
)
def test_bad_options(options, said):
    options = {**TWO, "errors": {"a": 0.1, "b": 0.2}, **options}
    annotators = options.pop("annotators", {"a": always("no"), "b": always("no")})
    with pytest.raises((ValueError, TypeError), match=said):
        pb.acquisition.query_annotators(annotators, options.pop("errors"), **options)


def test_no_oracle():
    with pytest.raises(ValueError, match="errors: expected at least one annotator"):
        pb.acquisition.query_annotators({}, {}, **TWO, budget=1)


def test_counts_are_added():
    first = pb.acquisition.fit_annotators(np.array([1, 2, 2]), np.array([1, 1, 2]), max_count=5)
    actual = pb.acquisition.fit_annotators([None, 1], [2, 1], init=first)
    assert (actual.classes, actual.answers, actual.max_count) == ((1, 2), (1, 2, None), 5)
    assert actual.counts.tolist() == [[2, 1, 0], [0, 1, 1]]
    assert first.counts.tolist() == [[1, 1], [0, 1]]
    assert actual.probability.tolist() == [[3 / 6, 2 / 6, 1 / 6], [1 / 5, 2 / 5, 2 / 5]]
    with pytest.raises(ValueError, match="read-only"):
        actual.counts[0, 0] = 7


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            partial(pb.acquisition.fit_annotators, [1], [1, 2]),
            "answers: expected the same length as y",
        ),
        (
            partial(pb.acquisition.fit_annotators, [1, 2], [1, 2], classes=[1, 3]),
            "y: expected classes in",
        ),
        (partial(pb.acquisition.fit_annotators, [1], [1]), "classes: expected two or more"),
        (
            partial(pb.acquisition.fit_annotators, [1, 2], [1, 2], max_count=0),
            "max_count: expected a number",
        ),
        (partial(pb.acquisition.fit_annotators, [1], [1], init=3), "init: expected AnnotatorModel"),
        (
            partial(pb.acquisition.AnnotatorModel, (1, 2), (1, 2), [[1, 2]]),
            "counts: expected shape",
        ),
        (
            partial(pb.acquisition.AnnotatorModel, (1, 2), (1, 2), [[1, -2], [1, 1]]),
            "counts: expected finite",
        ),
    ],
    ids=range(7),
)
def test_bad_counts(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
