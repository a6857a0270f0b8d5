"""Bounds that ProbitBoost goes by in place of the loss: the steps are those that the loss asks for.

See the theory page of ProbitBoost.
"""

from __future__ import annotations

import numpy as np
import pytest

from pboost._core import probit
from pboost._core.probit import boost_leaves

STEPS = 60


def leaf(seed):
    """Rows of one leaf: labels of noise or nearly separable, columns with outliers, weights."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 120)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, d)) ** (1 + 2 * (seed % 2))
    if seed % 5 == 0:
        X = np.round(X)
    y = (X[:, 0] + rng.normal(size=n) * (0.0, 0.1, 1.0, 3.0)[seed % 4] > 0.3).astype(np.int32)
    y[:2] = 0, 1
    return X, y, rng.exponential(size=n) / n


def fitted(X, y, weight, tol, safeguard, path):
    n, d = X.shape
    coefficient, taken = np.zeros((1, 1, 1 + d)), np.zeros((1, 1), np.int32)
    rows, starts = np.arange(n, dtype=np.int32), np.array([0, n], np.int32)
    boost_leaves(X, rows, starts, y, weight, 2, STEPS, tol, safeguard, coefficient, taken, path)
    return coefficient, int(taken[0, 0])


@pytest.mark.parametrize("tol", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize("safeguard", [False, True])
def test_steps_are_those_of_the_loss(tol, safeguard):
    halved, ended = 0, 0
    for seed in range(200):
        X, y, weight = leaf(seed)
        # With a path, every loss is worked out.
        path = np.empty(STEPS, np.int32), np.zeros((STEPS, 3)), np.empty(STEPS + 1)
        expected, taken = fitted(X, y, weight, tol, safeguard, path)
        actual, steps = fitted(X, y, weight, tol, safeguard, None)
        assert steps == taken
        assert np.array_equal(actual, expected)
        halved += bool((path[1][:taken, 2] < 1).any())
        ended += taken < STEPS
    # The rules did decide.
    assert (halved > 0) == safeguard
    assert ended > 100 or tol == 0.0


def test_leaves_one_after_another():
    parts = [leaf(seed) for seed in range(40) if leaf(seed)[0].shape[1] == 3]
    assert len(parts) > 4
    X, y, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
    starts = np.cumsum([0, *(len(part[1]) for part in parts)]).astype(np.int32)
    coefficient = np.zeros((len(parts), 1, 4))
    taken = np.zeros((len(parts), 1), np.int32)
    rows = np.arange(len(y), dtype=np.int32)
    boost_leaves(X, rows, starts, y, weight, 2, STEPS, 1e-4, True, coefficient, taken)
    for i, part in enumerate(parts):
        alone, steps = fitted(*part, 1e-4, True, None)
        assert np.array_equal(coefficient[i], alone[0])
        assert taken[i, 0] == steps


def test_numbers_in_the_bounds():
    u = np.linspace(-30, 30, 60_001)
    ratio, excess = np.empty_like(u), np.empty_like(u)
    probit.ratios(u, ratio)
    probit.excesses(u, excess)
    # h = r (u + r); r' = -h.
    steepness = ratio + excess - 1 / excess  # -(ln h)'
    third = -ratio * excess * steepness
    assert -0.296 < third.min() < -0.2957
    assert third.max() < 1e-6
    # Where u + r is all but 1/|u| the difference is rounding.
    near = u > -10
    assert (steepness[near] > 0).all()
    assert (steepness[near] - np.maximum(u[near], 0)).max() < 0.35
    q = np.linspace(1e-2, 1.75, 1000)
    assert (np.expm1(q) - q < q * q * (0.5 + q / 6 + 0.062 * q * q)).all()
