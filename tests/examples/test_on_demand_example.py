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
    found = example.compare(n_estimators=5, n_test=40)
    assert found["differ"] == 0
    assert found["until it is settled"] < 0.9 * found["what is read"]
    assert found["what is read"] <= found["everything"] == 435
    for budget, within in found["budgets"].items():
        assert within.cost <= budget
    assert found["budgets"][435].settled == 1


def test_what_is_printed(example, capsys):
    example.main(["--members", "3", "--patients", "5"])
    said = capsys.readouterr().out
    assert "labels that differ from those of predict: 0" in said
    assert "the first patient is" in said
