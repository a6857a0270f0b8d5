"""Ends and moments of the known values of columns, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from pboost._core import derived


def some_columns(n, dtype, order):
    r = np.random.default_rng([51, n])
    X = r.normal(size=(n + 9, 5)) * 10.0 ** np.arange(5)
    X[r.random(X.shape) < 0.3] = np.nan
    X[:, 3] = np.nan
    rows = r.integers(0, n + 9, n).astype(np.int32)
    return np.asarray(X, dtype=dtype, order=order), rows, r.uniform(0, 1, n)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 200])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_against_numpy(n, dtype, order):
    X, rows, weight = some_columns(n, dtype, order)
    ends, sums = np.full((3, 2), np.nan), np.full((3, 3), np.nan)
    origin, unit = np.array([1.0, -2.0, 3.0]), np.array([10.0, 1e3, 1e4])
    derived.column_ends(X, rows, 2, ends)
    Z = X[rows, 2:].astype(np.float64)
    known = ~np.isnan(Z)
    minimum = np.where(known, Z, np.inf).min(axis=0, initial=np.inf)
    maximum = np.where(known, Z, -np.inf).max(axis=0, initial=-np.inf)
    np.testing.assert_array_equal(ends.T, [minimum, maximum])
    for of_rows in (weight, None):
        derived.column_moments(X, rows, of_rows, origin, unit, 2, sums)
        w = np.where(known, np.ones((n, 1)) if of_rows is None else of_rows[:, None], 0.0)
        z = np.where(known, (Z - origin) / unit, 0.0)
        expected = [(w * z**k).sum(axis=0) for k in range(3)]
        np.testing.assert_allclose(sums.T, expected, rtol=1e-12, atol=1e-12)


def test_sizes():
    X, rows, weight = some_columns(20, np.float64, "C")
    first = np.ones(3)
    with pytest.raises(ValueError, match="column_ends"):
        derived.column_ends(X, rows, 3, np.empty((3, 2)))
    for given in (
        (weight[1:], first, first, 0),
        (weight, first[1:], first, 0),
        (weight, first, first, 3),
    ):
        with pytest.raises(ValueError, match="column_moments"):
            derived.column_moments(X, rows, *given, np.empty((3, 3)))
