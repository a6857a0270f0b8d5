"""What stands for missing values where columns are added up: means of the values that are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.table import Table, column_label
from pboost.values import FloatArray, IntArray

#: Bits of a mean that are kept, so that sums that differ in rounding give the same one.
MEAN_BITS = 40


def filled(values: NDArray[Any], fill: FloatArray | None) -> NDArray[Any]:
    """Return rows in which the missing values of each column are those of `fill` (d,).

    Rows without holes are returned as they are.
    """
    holes = np.isnan(values)
    if fill is None or not holes.any():
        return values
    return np.where(holes, fill, values)


def known_sigma(
    sigma: FloatArray,
    values: Callable[[], NDArray[Any]],
    names: tuple[str, ...] | None,
    n_features: int,
    table: Table | None,
) -> FloatArray:
    """Return standard deviations of rows X (n, d), 0 where there is no value, and of categories.

    `sigma` is one number, or that of each column or cell; `values` returns X. ValueError where it
    is NaN though there is a value, or of a category not 0 or NaN.
    """
    levels = [] if table is None else [j for j, of in enumerate(table.levels) if of is not None]
    if not sigma.ndim:
        sigma = np.full(n_features, sigma)
        sigma[levels] = 0.0
        return sigma
    of_levels = np.nan_to_num(sigma[..., levels])
    if of_levels.any():
        j = levels[int(np.nonzero(of_levels)[-1][0])]
        raise ValueError(
            f"sigma: expected 0 or NaN for a column of categories, got {sigma[..., j].max()} for "
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
            "sigma: expected a number where X has one, got nan in "
            f"{column_label(names, j)}, row {row}"
        )
    sigma[np.isnan(sigma)] = 0.0
    return sigma


def column_means(X: NDArray[Any], rows: IntArray, weights: FloatArray | None) -> FloatArray:
    """Return the weighted mean of the known values of each column of the listed rows, rounded.

    It is 0 where no value is known, and lies between the least and the largest value.
    """
    found = np.zeros(X.shape[1])
    for j in range(len(found)):
        column = X[rows, j].astype(np.float64)
        is_known = ~np.isnan(column)
        share = np.ones(len(column)) if weights is None else weights
        if not is_known.all():
            column, share = column[is_known], share[is_known]
        if not len(column):
            continue
        least, most = float(column.min()), float(column.max())
        # In units of the largest number: sums of larger ones need not be finite.
        exponent = math.frexp(max(-least, most))[1]
        share = share / share.max()
        mean = float(np.ldexp(column, -exponent) @ (share / share.sum()))
        mean = math.ldexp(round(math.ldexp(mean, MEAN_BITS)), exponent - MEAN_BITS)
        found[j] = min(max(mean, least), most)
    return found
