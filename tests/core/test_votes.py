"""The split step against its definition, written out in plain Python."""

import math

import numpy as np
import pytest

from pboost._core.voting import TIE, VOTES, VoteRule, half_log_odds, step_of

RNG = np.random.default_rng(3)
MASSES = [
    *RNG.exponential(size=(40, 2, 2)).tolist(),
    *RNG.integers(0, 3, size=(40, 2, 2)).astype(float).tolist(),
    ((2.0**60, 1.0), (1.0, 2.0**60)),
    ((0.0, 0.0), (0.0, 0.0)),
    ((5e-324, 0.0), (0.0, 1e300)),
]
RULES = [(kind, smoothing, rate) for kind in VOTES for smoothing, rate in ((0.0, 1.0), (0.1, 0.3))]


def votes_of(masses, kind, smoothing, rate):
    (n0, p0), (n1, p1) = masses
    total = n0 + p0 + n1 + p1
    delta = smoothing * total
    if kind == "domain":
        votes = [half_log_odds(p0, n0, delta), half_log_odds(p1, n1, delta)]
    else:
        wrong = min(n0, p0) + min(n1, p1)
        size = half_log_odds(total - wrong, wrong, delta)
        votes = [size if p - n > TIE * total else -size for n, p in masses]
    return tuple(rate * vote for vote in votes)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("masses", MASSES)
def test_a_step_is_its_definition_bit_for_bit(masses, rule):
    votes = votes_of(masses, *rule)
    (n0, p0), (n1, p1) = masses
    up, down = [math.exp(v) for v in votes], [math.exp(-v) for v in votes]
    total = n0 + p0 + n1 + p1
    after = n0 * up[0] + p0 * down[0] + n1 * up[1] + p1 * down[1]
    shrink = after / total if total else 1.0
    for step in (VoteRule(*rule).step(masses), step_of(masses, votes)):
        assert step.votes == votes
        assert step.shrink == shrink
        assert step.perfect == (not min(n0, p0) and not min(n1, p1))
        expected = np.array([[up[0], down[0]], [up[1], down[1]]]) / shrink
        np.testing.assert_array_equal(step.factors, expected)


def test_a_step_keeps_the_sum_of_weights():
    masses = [[0.2, 0.3], [0.4, 0.1]]
    step = VoteRule("domain", 0.0, 1.0).step(masses)
    assert (step.factors * masses).sum() == pytest.approx(1.0)
    assert step.shrink == pytest.approx(2 * math.sqrt(0.06) + 2 * math.sqrt(0.04))
