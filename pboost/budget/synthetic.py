"""Synthetic rows: rows some of whose columns come from a neighbour."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.convert import Features
from pboost.values import Array, FloatArray

#: Where a row has what it takes from another: from one of the nearest, or from any.
KINDS = ("neighbours", "random")
#: Of more rows than these so many are drawn, and neighbours are looked for among them.
MANY_ROWS, DRAWN_ROWS = 20_000, 10_000
#: Distances that are known at a time.
BLOCK = 1 << 22
#: Parts of a row of distances whose minima bound what is near, at least.
PARTS = 128

_Places: TypeAlias = tuple[FloatArray, list[FloatArray], list[float]]


def synthetic_rows(
    X: Features, count: int, kind: str, share: float, neighbours: int, rng: np.random.Generator
) -> Array:
    """Return so many rows, (count, d), whose values all occur in their columns.

    Each is a row of `X` that is drawn, which takes the value of each column with probability
    `share` from one of its nearest rows, missing values and levels as they are.
    """
    values, table = X.values, X.table
    if X.n_rows > MANY_ROWS:
        values = values[np.sort(rng.choice(X.n_rows, DRAWN_ROWS, replace=False))]
    n, d = values.shape
    base, other = rng.integers(n, size=count), rng.integers(n, size=count)
    n_near = min(neighbours, n - 1)
    if kind == "neighbours" and n_near > 0:
        is_level = np.array([table is not None and table.levels[j] is not None for j in range(d)])
        other = nearest(values, is_level, n_near)[base, rng.integers(n_near, size=count)]
    found = np.empty((count, d), dtype=values.dtype)
    for j in range(d):
        row = np.where(rng.random(count) < share, other, base)
        found[:, j] = values[row, j]
    return found


def nearest(values: Array, is_level: NDArray[np.bool_], k: int) -> NDArray[np.intp]:
    """Return the k other rows, (n, k), that are nearest to each, the nearest first.

    Distances are Euclidean, between the ranks of numbers by their standard deviation. A missing
    value is in the middle and one further away; different levels are as far apart as two rows of a
    column of numbers are on average.
    """
    from scipy.spatial.distance import cdist  # not at import: see bounds._tree.terms_at_2

    n = len(values)
    place, level, weight = _places(values, is_level)
    found = np.empty((n, k), dtype=np.intp)
    step = max(1, BLOCK // n)
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        far = cdist(place[rows], place, "sqeuclidean")
        for of_column, of_level in zip(level, weight, strict=True):
            far += of_level * (of_column[rows, None] != of_column)
        far[np.arange(len(rows)), rows] = np.inf
        found[rows] = _least(far, start, k)
    return found


def _least(far: FloatArray, first: int, k: int) -> NDArray[np.intp]:
    """Return the places of the k least values of each row, in order, of rows `first`, first + 1, ….

    Of equal values those that follow the row come first, round about: so rows that are equally far
    take turns. The k-th least of the minima of parts of a row bounds what can be among them.
    (`numpy.argpartition` takes longer, and its order depends on the processor.)
    """
    m, n = far.shape
    bound = np.full(m, np.inf)
    if n >= 2 * (parts := max(PARTS, k)):
        least = far[:, :parts].copy()
        for start in range(parts, n - parts + 1, parts):
            np.minimum(least, far[:, start : start + parts], out=least)
        bound = np.partition(least, k - 1, axis=1)[:, k - 1]
    row, place = np.divmod(np.flatnonzero(far <= bound[:, None]), n)
    order = np.lexsort(((place - first - row) % n, far[row, place], row))
    at = np.searchsorted(row, np.arange(m))[:, None] + np.arange(k)
    return place[order[at]]


def _places(values: Array, is_level: NDArray[np.bool_]) -> _Places:
    """Return where rows lie, (n, d'); the levels of columns of these, and what levels are apart."""
    from scipy.stats import rankdata  # not at import: see bounds._tree.terms_at_2

    place, level, weight = [np.zeros(len(values))], [], []
    for j, column in enumerate(values.T):
        is_missing = np.isnan(column)
        if is_level[j]:
            level.append(np.where(is_missing, -1.0, column))
            shares = np.unique(level[-1], return_counts=True)[1] / len(column)
            weight.append(2.0 / max(1.0 - float(np.square(shares).sum()), 1.0 / len(column)))
            continue
        rank = np.zeros(len(column))
        rank[~is_missing] = rankdata(column[~is_missing])
        rank[~is_missing] -= rank[~is_missing].mean() if not is_missing.all() else 0.0
        spread = rank.std()
        place.append(rank / spread if spread > 0 else rank)
        if is_missing.any():
            place.append(is_missing.astype(np.float64))
    return np.column_stack(place), level, weight
