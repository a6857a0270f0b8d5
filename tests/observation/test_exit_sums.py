"""Masses at exits: those of fractions but for rounding, and the same in any order of rows."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pboost.observation.answers import exit_masses, exit_sums
from pboost.threads import Workers

SCALE = 2.0**58


def problem(n=1000, decades=0, seed=0):
    """Return probabilities, some of them those of exit 0 with a minus sign, and weights."""
    rng = np.random.default_rng(seed)
    above = rng.choice([-1.0, 1.0], n) * rng.random(n) / 2 * 10.0 ** -rng.uniform(0, decades, n)
    above[::7], above[1::7] = 1.0, 0.0
    return above, rng.random(n) / n


def found(above, weight, n_negative, n_threads=1):
    with Workers(n_threads, len(weight)) as workers:
        return exit_sums(above, weight, n_negative, SCALE, workers)


@pytest.mark.parametrize("decades", [0, 20])
def test_masses_are_those_of_fractions(decades):
    above, weight = problem(200, decades)
    masses = exit_masses(found(above, weight, 77), SCALE)
    for k, here in enumerate((slice(0, 77), slice(77, None))):
        share = [Fraction(a) if a >= 0 else 1 + Fraction(a) for a in above[here].tolist()]
        mass = [Fraction(w) for w in weight[here].tolist()]
        exact = sum(w * s for w, s in zip(mass, share, strict=True))
        assert masses[1, k] == pytest.approx(float(exact), rel=1e-15)
        assert masses[0, k] == pytest.approx(float(sum(mass) - exact), rel=1e-15)


def test_what_is_unlikely_everywhere_is_known_precisely():
    n = 512
    above, weight = np.full(n, 2.0**-50 / 3), np.full(n, 1 / n)
    masses = exit_masses(found(above, weight, n // 2), SCALE)
    assert masses[1] == pytest.approx(above[:2] / 2, rel=1e-9)
    assert masses[0].sum() == pytest.approx(1.0, rel=1e-15)


def test_order_and_ranges_of_rows_do_not_matter():
    above, weight = problem()
    expected = found(above, weight, 400)
    rng = np.random.default_rng(1)
    order = np.concatenate([rng.permutation(400), 400 + rng.permutation(600)])
    assert (found(above[order], weight[order], 400) == expected).all()
    assert (found(above, weight, 400, n_threads=3) == expected).all()
    parts = [order[k::3] for k in range(3)]
    sums = [found(above[np.sort(p)], weight[np.sort(p)], (p < 400).sum()) for p in parts]
    assert (np.sum(sums, axis=0) == expected).all()
    assert exit_masses(expected, SCALE).sum() == pytest.approx(math.fsum(weight), rel=1e-15)
