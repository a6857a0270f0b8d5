"""Passes over all rows that NumPy makes in one call, block by block: Ctrl-C is noticed between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pboost.data.row_labels import RowLabels
from pboost.values import Array

#: Numbers that are worked on at a time.
BLOCK_CELLS = 1 << 20


def blocks(values: Array) -> Iterator[slice]:
    """Return slices of consecutive rows of an array of any shape."""
    step = max(1, BLOCK_CELLS // max(1, values[:1].size))
    return (slice(start, start + step) for start in range(0, len(values), step))


def copied(values: Array, dtype: DTypeLike | None = None, order: Any = "C") -> Array:
    """Return a copy, of another type if one is given; `order` is that of `numpy.copy`."""
    found = np.empty_like(values, dtype=dtype, order=order, subok=False)
    for here in blocks(values):
        found[here] = values[here]
    return found


def distinct(values: Array | RowLabels) -> Array:
    """Return the sorted different values of an array of one dimension."""
    if isinstance(values, RowLabels):
        return values.labels[np.unique(values.codes)]
    parts = [np.unique(values[here]) for here in blocks(values)]
    return np.unique(np.concatenate(parts)) if len(parts) > 1 else np.unique(values)


def as_codes(values: Array | RowLabels) -> tuple[Array, NDArray[np.int32]]:
    """Return the sorted different values, and for each entry which it is."""
    found = distinct(values)
    return found, codes_among(values, found)


def codes_among(values: Array | RowLabels, found: Array) -> NDArray[np.int32]:
    """Return for each entry which of the sorted different values it is."""
    if isinstance(values, RowLabels):
        return np.searchsorted(found, values.labels).astype(np.int32)[values.codes]
    if len(found) == 2:
        return (values == found[1]).astype(np.int32)
    codes = np.empty(len(values), dtype=np.int32)
    for here in blocks(values):
        codes[here] = np.searchsorted(found, values[here])
    return codes
