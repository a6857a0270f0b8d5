"""Checks of sorted and binned columns, and flags for missing values and categories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pboost._core import binning
from pboost.data.read.check_xy import check_finite
from pboost.data.read.convert import Features, check_size
from pboost.threads import check_stop
from pboost.values import Array, IntArray, sealed

#: Flags of a feature; see ``pboost/_core/types.pxd``.
HOLES, LEVELS = 1, 2
ROW_MASK = np.int32(0x7FFFFFFF)
MAX_BINS = 256
#: Maximum number of bins of a feature with missing values, which take the code after the last bin.
MOST_KNOWN = MAX_BINS - 1
#: Default of `categorical_smoothing`.
LEVEL_SMOOTHING = 2.0
#: Relative difference below which two weights count as equal.
SAME_WEIGHT = 1e-9


def is_heavier(second: Any, first: Any) -> Any:
    """Return whether the second weight is larger than the first by more than rounding error.

    In a node without missing values in training, missing values follow the heavier branch.
    """
    return second * (1 - SAME_WEIGHT) > first


def flags(n_missing: IntArray | None, n_levels: IntArray | None) -> NDArray[np.uint8] | None:
    """Return the flags of each feature, or None if all are numeric without missing values."""
    parts = zip((HOLES, LEVELS), (n_missing, n_levels), strict=True)
    column_flags = [flag * (count > 0) for flag, count in parts if count is not None]
    special = sum(column_flags[1:], column_flags[0]).astype(np.uint8) if column_flags else None
    return special if special is not None and special.any() else None


def has(special: NDArray[np.uint8] | None, what: int, feature: int) -> bool:
    """Return whether a feature has a flag."""
    return special is not None and bool(special[feature] & what)


def levels_among(special: NDArray[np.uint8] | None, first: int, last: int) -> list[int]:
    """Return the categorical features among first..last-1."""
    if special is None:
        return []
    return [j for j in range(first, last) if special[j] & LEVELS]


def most_bins(n_bins: IntArray, special: NDArray[np.uint8] | None = None) -> int:
    """Return the maximum number of bins of a feature, including the bin of missing values."""
    return int((n_bins if special is None else n_bins + (special & HOLES)).max(initial=1))


def trimmed(by_bin: Array, size: int) -> Array:
    """Return a copy of the first `size` bins, or the array itself if it has this size."""
    return by_bin if by_bin.shape[1] == size else by_bin[:, :size].copy()


def bin_starts(
    d: int, max_bins: int, n_levels: IntArray | None, special: NDArray[np.uint8] | None
) -> IntArray:
    """Allocate the array `bin_start`."""
    if special is None:
        return np.zeros((d, max_bins + 1), dtype=np.int32)
    max_bins = max(max_bins, most_bins(n_levels) if n_levels is not None else 0)
    return np.zeros((d, min(max_bins + 1, MAX_BINS) + 1), dtype=np.int32)


def level_of(source: Array, rows: IntArray, feature: int, row: IntArray) -> Array:
    """Return the categories of rows, as numbers."""
    return np.asarray(source[rows[row], feature])


def counted(
    features: Features, d: int, are_columns: bool
) -> tuple[IntArray | None, IntArray | None]:
    """Return the number of categories of each feature, and an array to count missing values.

    Both are None for projections, and for numeric features without missing values.
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
    """Create one bin per category of a feature; categories that do not occur have empty bins.

    `order` (1, n) contains the sorted rows, and ``level_of(rows)`` returns their category numbers.
    The other arrays cover all features.
    """
    part, n = slice(feature, feature + 1), order.shape[1]
    known, n_here = n - int(n_missing[feature]), int(n_levels[feature])
    starts = np.zeros((1, min(MOST_KNOWN, max(n, 1)) + 2), dtype=np.int32)
    nothing = np.empty(0, dtype=np.int64)
    binning.bin_columns(
        order, MOST_KNOWN, nothing, starts, n_bins[part], codes[part], n_missing[part]
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


#: Messages for the error codes of `binning.check_sorted`.
_WRONG = {
    1: "packed_order: expected each row once in every column",
    2: "packed_order: expected rows sorted by value, with the sign bit set if a value equals the "
    "previous one",
    3: "bin_start, n_bins: expected bins that cover the sorted rows, with equal values in one bin",
    4: "codes: expected the bin of each row",
}
#: Number of features checked together, to reduce cache misses.
_TOGETHER = 16


def kept(name: str, array: object, dtype: DTypeLike) -> Array:
    """Return an array as C-contiguous and read-only, copied only if it could be modified.

    Unpickled arrays, results of this function, and read-only memory maps are not copied.
    """
    if not isinstance(array, np.ndarray) or array.dtype != np.dtype(dtype):
        kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{name}: expected an array of {np.dtype(dtype)}, got {kind}")
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


def row_numbers(rows: object, n: int) -> IntArray:
    """Return row indices in 0, ..., n - 1 as int32."""
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise TypeError(
            f"rows: expected integers in one dimension, got {numbers.dtype} of shape "
            f"{numbers.shape}; use numpy.flatnonzero to convert a mask"
        )
    lowest, highest = numbers.min(initial=0), numbers.max(initial=0)
    if numbers.size and not 0 <= lowest <= highest < n:
        wrong = lowest if lowest < 0 else highest
        raise IndexError(f"rows: expected indices in 0..{n - 1}, got {wrong}")
    return np.ascontiguousarray(numbers, dtype=np.int32)


def checked_names(names: Any, n_features: int) -> tuple[str, ...] | None:
    """Return the feature names as a tuple, or None; raise ValueError if they are invalid."""
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names: expected strings or None, got {names!r}")
    if len(names) != n_features:
        raise ValueError(f"names: expected {n_features} names, got {len(names)}")
    return tuple(names)


def check_dimensions(columns: object, dimensions: dict[str, int]) -> None:
    """Check the number of dimensions of arrays."""
    for name, ndim in dimensions.items():
        shape = getattr(columns, name).shape
        if len(shape) != ndim:
            raise ValueError(f"{name}: expected {ndim} dimensions, got shape {shape}")


def check_shapes(columns: Any, shapes: dict[str, tuple[int, ...]]) -> None:
    """Check the shapes of arrays, and the size of `codes`."""
    for name, shape in shapes.items():
        if getattr(columns, name).shape != shape:
            actual = getattr(columns, name).shape
            raise ValueError(f"{name}: expected shape {shape}, got {actual}")
    if min(columns.codes.shape) == 0:
        raise ValueError(
            f"codes: expected at least one row and one column, got {columns.codes.shape}"
        )
    check_size(columns.codes.shape[::-1])


def check_source(
    source: object, rows: Array, names: object, special: Array | None
) -> tuple[str, ...] | None:
    """Check the feature values and row indices; return the feature names.

    Only features with flags in `special` may have missing values.
    """
    if not (
        isinstance(source, np.ndarray)
        and source.ndim == 2
        and source.dtype in (np.float32, np.float64)
    ):
        raise ValueError("source: expected a matrix of float64 or float32")
    if rows.min() < 0 or rows.max() >= len(source):
        raise ValueError(f"rows: expected indices of rows of the source, in [0, {len(source)})")
    names = checked_names(names, source.shape[1])
    if special is None:
        check_finite(Features(source, names))
    else:
        check_special(special, source.shape[1])
        if np.isinf(source).any():
            raise ValueError("source: expected finite numbers or missing values, got an infinity")
    return names


def check_special(special: Array, n_features: int) -> None:
    """Check the flags of the features."""
    if special.shape != (n_features,) or (special > (HOLES | LEVELS)).any():
        raise ValueError(f"special: expected {n_features} numbers from 0 to {HOLES | LEVELS}")


def check_orders(columns: Any, gather: Callable[[int, Array], None], first: int, last: int) -> None:
    """Check the orders, bins and codes of features first..last-1 against their values.

    ``gather(start, block)`` writes features `start`, `start + 1`, ... to the rows of `block`.
    """
    n, special = columns.codes.shape[1], columns.special
    seen, values = np.empty(n, dtype=np.uint8), np.empty((min(_TOGETHER, last - first), n))
    for start in range(first, last, _TOGETHER):
        check_stop()
        part = slice(start, min(start + _TOGETHER, last))
        block = values[: part.stop - start]
        gather(start, block)
        wrong = binning.check_sorted(
            columns.packed_order[part],
            block,
            columns.bin_start[part],
            columns.n_bins[part],
            columns.codes[part],
            seen,
            None if special is None else special[part],
        )
        if wrong:
            raise ValueError(_WRONG[wrong])


def check_bins(columns: Any, max_bins: int) -> None:
    """Check the codes of binned columns, and the minimum and maximum of their bins."""
    codes, n_bins, lower, upper = columns.codes, columns.n_bins, columns.lower, columns.upper
    n_codes = n_bins
    if columns.special is not None:
        check_special(columns.special, len(codes))
        n_codes = n_bins + (columns.special & HOLES)
    if not ((n_bins >= 1) & (n_codes <= max_bins)).all():
        raise ValueError(f"n_bins: expected 1 to {max_bins} bins")
    if (codes.max(axis=1) >= n_codes).any():
        raise ValueError("codes: expected numbers below n_bins")
    used = np.arange(lower.shape[1]) < n_bins[:, None]
    if n_codes is not n_bins:  # all values of a feature may be missing
        used[(n_bins == 1) & np.isnan(lower[:, 0])] = False
    is_number = np.isfinite(lower) & np.isfinite(upper) & (lower <= upper)
    if not is_number[used].all() or not (upper[:, :-1] < lower[:, 1:])[used[:, 1:]].all():
        raise ValueError("lower, upper: expected finite, increasing ends of the bins")
