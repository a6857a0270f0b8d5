"""Columns that were made elsewhere: arrays that nothing can change any more, and their checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from pboost._core import binning
from pboost.data.check_xy import check_finite
from pboost.data.convert import Features, check_size
from pboost.data.special_columns import HOLES, LEVELS
from pboost.threads import check_stop
from pboost.values import Array, IntArray, sealed

#: What `sort.check_sorted` finds wrong.
_WRONG = {
    1: "packed_order: expected each row once in every column",
    2: "packed_order: expected the order of the values of the source, and the sign bit where one "
    "equals the one before",
    3: "bin_start, n_bins: expected bins that share out the sorted rows, no equal values to two",
    4: "codes: expected the bins in which the sorted rows lie",
}
#: Columns that are checked at once, which are read from rows of X with fewer misses.
_TOGETHER = 16


def kept(name: str, array: Any, dtype: DTypeLike) -> Array:
    """Return an array, C-contiguous, that nothing can change, copied where something could.

    Not copied are those that this function or a pickle has made, and files mapped to be read.
    """
    if not isinstance(array, np.ndarray) or array.dtype != np.dtype(dtype):
        found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{name}: expected an array of {np.dtype(dtype)}, got {found}")
    if array.flags.c_contiguous and _is_immutable(array):
        return array
    return sealed(np.array(array, order="C", subok=False))


def _is_immutable(array: Array) -> bool:
    """Return whether an array is a view of a read-only buffer."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    try:
        return base is not None and memoryview(base).readonly
    except TypeError:
        return False


def row_numbers(rows: Any, n: int) -> IntArray:
    """Return listed rows, of 0, …, n - 1, as kernels read them."""
    found = np.asarray(rows)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise TypeError(
            f"rows: expected whole numbers in one dimension, got {found.dtype} of shape "
            f"{found.shape}; numpy.flatnonzero lists the rows of a mask"
        )
    least, most = found.min(initial=0), found.max(initial=0)
    if found.size and not 0 <= least <= most < n:
        wrong = least if least < 0 else most
        raise IndexError(f"rows: expected numbers in 0..{n - 1}, got {wrong}")
    return np.ascontiguousarray(found, dtype=np.int32)


def checked_names(names: Any, n_features: int) -> tuple[str, ...] | None:
    """Return the names of columns."""
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names: expected strings or None, got {names!r}")
    if len(names) != n_features:
        raise ValueError(f"names: expected {n_features} names, got {len(names)}")
    return tuple(names)


def check_dimensions(columns: Any, dimensions: dict[str, int]) -> None:
    """Check the numbers of dimensions of these arrays."""
    for name, ndim in dimensions.items():
        found = getattr(columns, name).shape
        if len(found) != ndim:
            raise ValueError(f"{name}: expected {ndim} dimensions, got shape {found}")


def check_shapes(columns: Any, shapes: dict[str, tuple[int, ...]]) -> None:
    """Check the shapes of arrays; those of `codes` are the number of columns and of rows."""
    for name, shape in shapes.items():
        if getattr(columns, name).shape != shape:
            found = getattr(columns, name).shape
            raise ValueError(f"{name}: expected shape {shape}, got {found}")
    if min(columns.codes.shape) == 0:
        raise ValueError(f"codes: expected one row and column or more, got {columns.codes.shape}")
    check_size(columns.codes.shape[::-1])


def check_source(
    source: Any, rows: Array, names: Any, special: Array | None
) -> tuple[str, ...] | None:
    """Check values, finite numbers, and which of their rows are meant; return their names.

    Of `special` columns some may be missing.
    """
    if not (
        isinstance(source, np.ndarray)
        and source.ndim == 2
        and source.dtype in (np.float32, np.float64)
    ):
        raise ValueError("source: expected a matrix of float64 or float32")
    if rows.min() < 0 or rows.max() >= len(source):
        raise ValueError(f"rows: expected rows of the source, in [0, {len(source)})")
    names = checked_names(names, source.shape[1])
    if special is None:
        check_finite(Features(source, names))
    else:
        check_special(special, source.shape[1])
        if np.isinf(source).any():
            raise ValueError("source: expected no infinities")
    return names


def check_special(special: Array, n_features: int) -> None:
    """Check what columns have that others do not."""
    if special.shape != (n_features,) or (special > (HOLES | LEVELS)).any():
        raise ValueError(f"special: expected {n_features} numbers from 0 to {HOLES | LEVELS}")


def check_orders(columns: Any, gather: Callable[[int, Array], None], first: int, last: int) -> None:
    """Check the orders, bins and codes of the columns first..last-1 and their values.

    `gather` writes the values of columns, the first of which is given, to the rows of a matrix.
    """
    n, special = columns.codes.shape[1], columns.special
    seen, values = np.empty(n, dtype=np.uint8), np.empty((min(_TOGETHER, last - first), n))
    for start in range(first, last, _TOGETHER):
        check_stop()
        here = slice(start, min(start + _TOGETHER, last))
        block = values[: here.stop - start]
        gather(start, block)
        wrong = binning.check_sorted(
            columns.packed_order[here],
            block,
            columns.bin_start[here],
            columns.n_bins[here],
            columns.codes[here],
            seen,
            None if special is None else special[here],
        )
        if wrong:
            raise ValueError(_WRONG[wrong])


def check_bins(columns: Any, most: int) -> None:
    """Check the codes of binned columns, and the least and largest values of their bins."""
    codes, n_bins, lower, upper = columns.codes, columns.n_bins, columns.lower, columns.upper
    n_codes = n_bins
    if columns.special is not None:
        check_special(columns.special, len(codes))
        n_codes = n_bins + (columns.special & HOLES)
    if not ((n_bins >= 1) & (n_codes <= most)).all():
        raise ValueError(f"n_bins: expected 1 to {most} bins")
    if (codes.max(axis=1) >= n_codes).any():
        raise ValueError("codes: expected numbers below n_bins")
    used = np.arange(lower.shape[1]) < n_bins[:, None]
    if n_codes is not n_bins:  # a column may be missing everywhere
        used[(n_bins == 1) & np.isnan(lower[:, 0])] = False
    is_number = np.isfinite(lower) & np.isfinite(upper) & (lower <= upper)
    if not is_number[used].all() or not (upper[:, :-1] < lower[:, 1:])[used[:, 1:]].all():
        raise ValueError("lower, upper: expected the ends of the bins, finite and increasing")
