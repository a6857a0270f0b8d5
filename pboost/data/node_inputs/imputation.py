"""Impute missing values in sums of features; compute means and standard deviations of features."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from pboost._core import derived
from pboost.data.read.check_xy import as_numbers
from pboost.data.read.table import Table, column_label
from pboost.threads import Workers
from pboost.values import Array, FloatArray, Floats, IntArray, first_false

#: Means are rounded to this number of bits, to remove rounding errors of sums.
MEAN_BITS = 40


def filled(values: Array, fill: FloatArray | None) -> Array:
    """Replace the missing values of each column by `fill` (d,); return complete rows unchanged."""
    holes = np.isnan(values)
    if fill is None or not holes.any():
        return values
    return np.where(holes, fill, values)


def known_sigma(
    sigma: FloatArray,
    values: Callable[[], Floats],
    names: tuple[str, ...] | None,
    n_features: int,
    table: Table | None,
) -> FloatArray:
    """Return standard deviations with 0 for missing values and categorical features.

    `sigma` is a number, or an array by column or by cell; `values` returns X. Raises ValueError if
    an array is NaN for a known value, or positive for a category.
    """
    levels = [] if table is None else [j for j, of in enumerate(table.categories) if of is not None]
    if not sigma.ndim:
        sigma = np.full(n_features, sigma)
        sigma[levels] = 0.0
        return sigma
    of_levels = np.nan_to_num(sigma[..., levels])
    if of_levels.any():
        j = levels[int(np.nonzero(of_levels)[-1][0])]
        raise ValueError(
            f"sigma: expected 0 or NaN for a categorical feature, got {sigma[..., j].max()} for "
            f"{column_label(names, j)}"
        )
    if not levels and not np.isnan(sigma).any():
        return sigma
    sigma = sigma.copy()
    sigma[..., levels] = 0.0
    is_unknown = np.isnan(sigma) & ~np.isnan(values())
    if is_unknown.any():
        row, j = (int(place[0]) for place in np.nonzero(is_unknown))
        raise ValueError(
            "sigma: expected a number for each known value of X, got nan in "
            f"{column_label(names, j)}, row {row}"
        )
    sigma[np.isnan(sigma)] = 0.0
    return sigma


def column_means(X: Floats, rows: IntArray, weights: FloatArray | None) -> FloatArray:
    """Return the rounded weighted mean of the known values of each column.

    The mean is 0 if a column has no known values.
    """
    lowest, highest = column_ends(X, rows)
    # Scale by the largest magnitude, so that sums do not overflow.
    exponent = np.frexp(np.maximum(-lowest, highest))[1]
    unit = np.ldexp(1.0, exponent - 1)
    mass, total, _ = column_moments(X, rows, weights, np.zeros(len(unit)), unit)
    mean = np.divide(total, mass, out=np.zeros(len(unit)), where=mass > 0)
    with np.errstate(over="ignore"):
        mean = np.ldexp(np.rint(np.ldexp(mean, MEAN_BITS - 1)), exponent - MEAN_BITS)
    return np.clip(mean, lowest, highest)


def column_spread(X: Floats, weights: FloatArray) -> FloatArray:
    """Return the weighted standard deviation of the known values of each column, or 0.

    BLAS is not used, because its sums depend on the number of threads.
    """
    rows = np.flatnonzero(weights > 0).astype(np.int32)
    lowest, highest = column_ends(X, rows)
    # Scale by the range, so that sums are precise.
    middle, half = lowest / 2 + highest / 2, highest / 2 - lowest / 2
    unit = np.ldexp(1.0, np.frexp(half)[1])
    of_rows = weights[rows]
    mass, total, _ = column_moments(X, rows, of_rows, middle, unit)
    share = np.divide(1.0, mass, out=np.zeros(len(mass)), where=mass > 0)
    _, rest, square = column_moments(X, rows, of_rows, middle + total * share * unit, unit)
    variance = square * share - (rest * share) ** 2
    spread: FloatArray = np.sqrt(np.maximum(variance, 0.0)) * unit
    return spread


def column_ends(X: Floats, rows: IntArray) -> FloatArray:
    """Return the minimum and maximum (2, d) of the known values of each column, or 0."""
    ends = np.empty((X.shape[1], 2))
    rows = np.ascontiguousarray(rows, dtype=np.int32)

    def work(first: int, last: int) -> None:
        derived.column_ends(X, rows, first, ends[first:last])

    Workers(1).run(work, len(ends), cells=len(rows))
    return np.where(ends[:, 0] <= ends[:, 1], ends.T, 0.0)


def column_moments(
    X: Floats,
    rows: IntArray,
    weights: FloatArray | None,
    origin: FloatArray,
    unit: FloatArray,
) -> FloatArray:
    """Return the sums (3, d) of w, w z and w z**2 over the known values of each column.

    z is the value minus `origin` (d,), divided by `unit` (d,). w is the weight (n,), by default 1,
    divided by the maximum.
    """
    moments = np.empty((X.shape[1], 3))
    rows = np.ascontiguousarray(rows, dtype=np.int32)
    weights = None if weights is None else np.ascontiguousarray(weights / weights.max())

    def work(first: int, last: int) -> None:
        part = slice(first, last)
        derived.column_moments(X, rows, weights, origin[part], unit[part], first, moments[part])

    Workers(1).run(work, len(moments), cells=2 * len(rows))
    return moments.T


def as_sigma(sigma: ArrayLike | None) -> Array:
    """Return standard deviations as float64 of shape (), (d,) or (n, d).

    A standard deviation of 0 means an exact value. Missing values may be NaN.

    Raises
    ------
    TypeError
        If `sigma` is not numeric.
    ValueError
        If it is masked, has more than two dimensions, or contains negative or infinite numbers.
    """
    if hasattr(sigma, "columns"):
        raise TypeError("sigma: expected a number or an array, got a data frame")
    values = as_numbers("sigma", sigma, "iuf")
    if values.ndim > 2:
        raise ValueError(f"sigma: expected at most two dimensions, got shape {values.shape}")
    is_right = (values >= 0) & np.isfinite(values)
    if (at := first_false(is_right | np.isnan(values) if values.ndim else is_right)) >= 0:
        place = [int(index) for index in np.unravel_index(at, values.shape)]
        raise ValueError(
            f"sigma: expected finite numbers >= 0, got {values.flat[at]}"
            + (f" at {place}" if place else "")
        )
    return values


def check_sigma_shape(sigma: Array, n: int, d: int) -> None:
    """Raise ValueError if the shape of standard deviations does not match n rows and d columns."""
    if sigma.shape not in ((), (d,), (n, d)):
        raise ValueError(
            f"sigma: expected a number, shape ({d},) with one per feature, or ({n}, {d}) with one "
            f"per cell, got shape {sigma.shape}"
        )
