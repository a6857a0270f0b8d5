"""Columns that are more than numbers: with missing values, or levels of a category, in a search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import binning
from pboost.data.convert import Features
from pboost.values import Array, IntArray

#: What a column has; see ``pboost/_core/types.pxd``.
HOLES, LEVELS = 1, 2
ROW_MASK = np.int32(0x7FFFFFFF)
MAX_BINS = 256
#: The most bins of a column with missing values: their code is that after the last.
MOST_KNOWN = MAX_BINS - 1
#: Default of `level_smoothing`.
LEVEL_SMOOTHING = 2.0
#: Weights that differ by less, as a share of them, are equal.
SAME_WEIGHT = 1e-9


def is_heavier(second: Any, first: Any) -> Any:
    """Return whether the second of two weights is larger by more than rounding.

    Then rows without a value go there, where a node has seen none.
    """
    return second * (1 - SAME_WEIGHT) > first


def flags(n_missing: IntArray | None, n_levels: IntArray | None) -> NDArray[np.uint8] | None:
    """Return what each column has, None where all are numbers without holes."""
    parts = zip((HOLES, LEVELS), (n_missing, n_levels), strict=True)
    found = [flag * (count > 0) for flag, count in parts if count is not None]
    special = sum(found[1:], found[0]).astype(np.uint8) if found else None
    return special if special is not None and special.any() else None


def has(special: NDArray[np.uint8] | None, what: int, feature: int) -> bool:
    """Return whether a column has missing values, or levels."""
    return special is not None and bool(special[feature] & what)


def levels_among(special: NDArray[np.uint8] | None, first: int, last: int) -> list[int]:
    """Return which of the columns first..last-1 hold levels."""
    if special is None:
        return []
    return [j for j in range(first, last) if special[j] & LEVELS]


def most_bins(n_bins: IntArray, special: NDArray[np.uint8] | None = None) -> int:
    """Return the largest number of bins of a column: arrays by bin need no more places.

    That of the missing rows counts, too.
    """
    return int((n_bins if special is None else n_bins + (special & HOLES)).max(initial=1))


def trimmed(by_bin: Array, size: int) -> Array:
    """Return the first places of an array by column and bin, without the memory of the others."""
    return by_bin if by_bin.shape[1] == size else by_bin[:, :size].copy()


def bin_starts(
    d: int, most: int, n_levels: IntArray | None, special: NDArray[np.uint8] | None
) -> IntArray:
    """Return places for the first positions of `most` bins, or of as many as there are levels."""
    if special is None:
        return np.zeros((d, most + 1), dtype=np.int32)
    most = max(most, most_bins(n_levels) if n_levels is not None else 0)
    return np.zeros((d, min(most + 1, MAX_BINS) + 1), dtype=np.int32)


def level_of(source: Array, rows: IntArray, feature: int, row: IntArray) -> Array:
    """Return the levels of rows, as numbers."""
    return np.asarray(source[rows[row], feature])


def counted(
    features: Features, d: int, are_columns: bool
) -> tuple[IntArray | None, IntArray | None]:
    """Return how many levels the columns have, and places for how many rows are missing.

    None where no column is special, or they are no columns but sums of these.
    """
    table = features.table
    if table is None or not are_columns:
        return None, None
    return table.n_levels, np.zeros(d, dtype=np.int32)


def bin_levels(
    order: IntArray,
    n_missing: IntArray,
    n_levels: IntArray,
    level_of: Callable[[IntArray], Array],
    feature: int,
    bin_start: IntArray,
    n_bins: IntArray,
    codes: NDArray[np.uint8],
) -> None:
    """Make a bin of each level of a column; those of levels that do not occur are empty.

    `order` (1, n) are its sorted rows, of which ``level_of(rows)`` are the numbers of the levels.
    The other arrays are those of all columns.
    """
    here, n = slice(feature, feature + 1), order.shape[1]
    known, n_here = n - int(n_missing[feature]), int(n_levels[feature])
    starts = np.zeros((1, min(MOST_KNOWN, max(n, 1)) + 2), dtype=np.int32)
    nothing = np.empty(0, dtype=np.int64)
    binning.bin_columns(
        order, MOST_KNOWN, nothing, starts, n_bins[here], codes[here], n_missing[here]
    )
    n_found = int(n_bins[feature]) if known else 0
    first = starts[0, :n_found]
    level = level_of(order[0, first] & ROW_MASK).astype(np.intp)
    number = np.full(MOST_KNOWN + 1, n_here, dtype=np.uint8)
    number[:n_found] = level
    codes[feature] = number[codes[feature]]
    below = np.searchsorted(level, np.arange(n_here + 1))
    bin_start[feature, : n_here + 1] = np.append(first, known)[below]
    bin_start[feature, n_here + 1 :] = n
    n_bins[feature] = n_here
