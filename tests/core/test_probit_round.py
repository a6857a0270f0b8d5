"""The kernels of a round of AdaBoost of probit trees, against NumPy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pboost._core import probit as kernel
from pboost._core.voting import scale_weights


@pytest.fixture(params=[1, 7, 8, 100, 129, 1000])
def rows(request):
    """Rows out of twice as many, shuffled."""
    draw = np.random.default_rng(request.param)
    return draw.permutation(2 * request.param)[: request.param].astype(np.int32)


@pytest.mark.parametrize("k", [1, 3])
def test_mistakes(rows, k):
    draw = np.random.default_rng(k)
    n = len(rows)
    values = draw.integers(-2, 3, (n, k)).astype(float)  # many are equal
    label = draw.integers(0, max(k, 2), 2 * n).astype(np.int32)
    weight, wrong, work = draw.random(2 * n), np.empty(n, dtype=np.int32), np.empty(n)
    chosen = values[:, 0] > 0 if k == 1 else values.argmax(axis=1)
    expected = rows[chosen != label[rows]]
    actual, error = kernel.mistakes(values, rows, label, weight, wrong, work)
    assert wrong[:actual].tolist() == expected.tolist()
    assert error == weight[expected].sum()


def test_weights_are_raised_and_normalised(rows):
    weight, work = np.random.default_rng(0).random(2 * len(rows)), np.empty(len(rows))
    weight[rows[0]] = 0.0
    expected, before = weight.copy(), weight.copy()
    expected[rows[1:3]] *= 5.0
    kernel.raise_weights(weight, rows, rows[1:], min(2, len(rows) - 1), 5.0)
    if len(rows) > 1:
        expected[rows] = np.maximum(expected[rows] / expected[rows].max(), 1e-300)
        np.testing.assert_array_equal(weight, expected)
        kernel.normalise(weight, rows, work)
        np.testing.assert_array_equal(weight[rows], expected[rows] / expected[rows].sum())
    others = np.setdiff1d(np.arange(len(weight)), rows)
    np.testing.assert_array_equal(weight[others], before[others])


@pytest.mark.parametrize("k", [1, 3])
def test_mean_losses(rows, k):
    draw, n = np.random.default_rng(k), len(rows)
    starts = np.unique([0, n // 3, n // 2, n]).astype(np.int32)
    loss, weight = draw.random((n, k)), draw.random(2 * n) * 1e-300
    out = np.empty((len(starts) - 1, k))
    kernel.mean_losses(loss.ravel(), rows, starts, weight, np.empty((2, n)), out)
    for leaf, (first, last) in enumerate(pairwise(starts)):
        share = weight[rows[first:last]] * 1e300
        expected = np.average(loss[first:last], axis=0, weights=share)
        np.testing.assert_allclose(out[leaf], expected, rtol=1e-12)


@pytest.mark.parametrize("exponent", [-1070, -40, 0, 1010])
def test_scaled_weights(rows, exponent):
    source = np.ldexp(np.random.default_rng(0).integers(1, 9, 2 * len(rows)), exponent)
    for listed, of in ((rows, source[rows]), (None, source)):
        weight, fixed = np.empty(len(of)), np.empty(len(of), dtype=np.int64)
        negated, scale = scale_weights(source, listed, weight, fixed)
        assert 0.5 <= weight.max() < 1.0
        np.testing.assert_array_equal(np.ldexp(weight, negated), of)
        np.testing.assert_array_equal(fixed, weight * scale)
        assert 2**60 <= fixed.sum() < 2**61
