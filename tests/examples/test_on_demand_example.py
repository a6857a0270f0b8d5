"""The example of tests of patients that are asked for one by one."""

from __future__ import annotations

import pytest
from example_modules import imported

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def example():
    with imported("on_demand") as module:
        yield module


def test_answers_are_the_same_for_less(example):
    actual = example.compare(n_estimators=5, n_test=40)
    assert actual["differ"] == 0
    assert actual["until it is settled"] < 0.9 * actual["what is read"]
    assert actual["what is read"] <= actual["everything"] == 435
    for budget, within in actual["budgets"].items():
        assert within.cost <= budget
    assert actual["budgets"][435].settled == 1


def test_what_is_printed(example, capsys):
    example.main(["--members", "3", "--patients", "5"])
    output = capsys.readouterr().out
    assert "labels that differ from those of predict: 0" in output
    assert "the first patient is" in output
