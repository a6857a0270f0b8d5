"""What models store is what their rows give, in a few hundred small fits."""

from __future__ import annotations

import pytest

from fuzz.stored_numbers import BUILDERS, check

#: Cases of a test, and cases that were wrong once.
CASES = 2 * len(BUILDERS)
ONCE = (15, 30, 42, 61, 107, 149, 162, 275, 364, 409, 673, 798, 1347)


@pytest.mark.parametrize("start", range(0, 10 * CASES, CASES))
def test_stored_numbers_are_those_of_the_rows(start):
    found = {seed: check(seed)[1] for seed in range(start, start + CASES)}
    assert {seed: wrong for seed, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("seed", ONCE)
def test_what_was_wrong_once_is_right(seed):
    assert check(seed)[1] == []
