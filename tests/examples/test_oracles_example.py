"""The example of people and tests that err, asked by what their answer is worth."""

from __future__ import annotations

import numpy as np
import pytest
from example_modules import imported

import pboost as pb

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def example():
    with imported("oracles") as module:
        yield module


def test_budgets_are_kept_and_worth_is_best(example):
    (within,) = example.compare(patients=400, budgets=(6.0,)).values()
    assert all(5.0 < item.paid <= 6.0 for item in within.values())
    errors = {name: item.errs.mean() for name, item in within.items()}
    assert errors[example.BY_WORTH] < errors[example.IN_TURN] - 0.02
    assert errors[example.BY_WORTH] < errors[example.AT_RANDOM] - 0.02


def test_labels_of_the_example_are_those_of_the_package(example):
    rng = np.random.default_rng(1)
    ill = rng.random(40) < example.ILL
    y = np.where(ill, *example.LABELS)
    errors = {
        name: pb.acquisition.fit_annotators(np.array(example.LABELS)[said[:, 0]], y)
        for name, said in example.answers_about(ill, 1, rng).items()
    }
    said = example.answers_about(ill, 4, rng)
    prior = {"ill": example.ILL, "well": 1 - example.ILL}
    session = pb.acquisition.annotation_session(errors, [prior] * 40, repeats=4)
    asked = []
    while questions := session.ask():
        for question in questions:
            place = asked.count(question)
            session.tell(question, example.LABELS[said[question.source][question.row, place]])
            asked.append(question)
    own = [example.label_of(errors, {n: a[row] for n, a in said.items()}) for row in range(40)]
    assert [item.label for item in session] == own


def test_what_is_printed(example, capsys):
    example.main(["--patients", "3"])
    output = capsys.readouterr().out.splitlines()
    assert len(output) == 2 + len(example.BUDGETS)
    assert output[1].split()[:2] == ["budget", "paid"]
