"""What models store is what their rows give, in a few hundred small fits."""

from __future__ import annotations

import pytest

from fuzz.stored_numbers import BUILDERS, check

#: Cases of a test, and cases that were wrong once.
CASES = 2 * len(BUILDERS)
ONCE = {
    15: "boosted_tree",
    30: "matryoshka",
    42: "adaboost",
    61: "topdown_tree",
    107: "many 3",
    149: "many 3",
    162: "many 2",
    275: "many 3",
    364: "adaboost",
    409: "matryoshka 2",
    673: "boosted_tree",
    798: "adaboost",
    1347: "matryoshka 2",
}


@pytest.mark.quick
@pytest.mark.parametrize(
    "start", [0, *(pytest.param(k * CASES, marks=pytest.mark.full) for k in range(1, 10))]
)
def test_stored_numbers_are_those_of_the_rows(start):
    actual = {seed: check(seed)[1] for seed in range(start, start + CASES)}
    assert {seed: wrong for seed, wrong in actual.items() if wrong} == {}


@pytest.mark.parametrize(("seed", "name"), ONCE.items())
def test_what_was_wrong_once_is_right(seed, name):
    assert check(seed, name=name)[1] == []
