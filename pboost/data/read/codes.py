"""Class labels as integer codes, and block-wise functions for large arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from pboost.values import Array, freeze


class RowLabels(NDArrayOperatorsMixin):
    """Text labels of rows, stored as integer codes.

    Fit functions accept the object as `y` without creating an array of strings. Like an array, it
    supports ``len``, indexing and comparison with a label. ``numpy.asarray(y)`` creates an array of
    strings.

    Attributes
    ----------
    classes : ndarray, shape (J,)
        Class labels, sorted.
    codes : ndarray of unsigned integers, shape (n,)
        Position in `classes` of the label of each row.

    Examples
    --------
    >>> import os, tempfile
    >>> import pboost as pb
    >>> X, text = [[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     columns, y, weight = pb.data.bin_files([(X, text)], os.path.join(folder, "columns"))
    >>> y
    <labels of 4 rows: no, yes>
    >>> (y == "yes").tolist(), y[1:3].tolist(), len(y)
    ([False, False, True, True], ['no', 'yes'], 4)
    """

    ndim = 1

    def __init__(self, classes: Array, codes: Array) -> None:
        self.classes, self.codes = freeze(classes), freeze(codes)

    @property
    def shape(self) -> tuple[int]:
        """Shape ``(n,)``, as for an array."""
        return self.codes.shape[:1]

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.codes.size

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Dtype of the labels."""
        return self.classes.dtype

    def tolist(self) -> list[Any]:
        """Return the labels as a list, in which equal labels are the same object."""
        return list(self)

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[Any]:
        return map(self.classes.tolist().__getitem__, self.codes.tolist())

    def __getitem__(self, rows: Any) -> Any:
        codes = self.codes[rows]
        return RowLabels(self.classes, codes) if np.ndim(codes) == 1 else self.classes[codes]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("copy: expected True or None, got False; codes must be converted")
        values: Array = self.classes[self.codes]
        return values if dtype is None else values.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        others = [item for item in inputs if not isinstance(item, RowLabels)]
        is_of_labels = len(others) == len(inputs) - 1 and all(np.ndim(item) == 0 for item in others)
        if method == "__call__" and is_of_labels and not options:
            # Apply the function once per class, not once per row.
            classes = (self.classes if isinstance(item, RowLabels) else item for item in inputs)
            return ufunc(*classes)[self.codes]
        plain = (np.asarray(item) if isinstance(item, RowLabels) else item for item in inputs)
        return getattr(ufunc, method)(*plain, **options)

    def __repr__(self) -> str:
        some = [
            label if len(label) <= 20 else label[:19] + "…" for label in self.classes[:5].tolist()
        ]
        more = ", …" if len(self.classes) > 5 else ""
        return f"<labels of {len(self)} rows: {', '.join(some)}{more}>"


def rows_of(classes: Array, count: Array) -> Array | RowLabels:
    """Return labels with `count` rows for each class; text is stored as codes."""
    if classes.dtype.kind != "U":
        return np.repeat(classes, count)
    codes = np.arange(len(classes), dtype=np.min_scalar_type(len(classes)))
    return RowLabels(classes, np.repeat(codes, count))


#: Number of values processed at a time.
BLOCK_CELLS = 1 << 20


def blocks(values: Array) -> Iterator[slice]:
    """Return slices that split an array of any shape into blocks of rows."""
    step = max(1, BLOCK_CELLS // max(1, values[:1].size))
    return (slice(start, start + step) for start in range(0, len(values), step))


def copied(values: Array, dtype: DTypeLike | None = None, order: Literal["C", "K"] = "C") -> Array:
    """Copy an array block by block, optionally to another dtype; `order` is as in `numpy.copy`."""
    result = np.empty_like(values, dtype=dtype, order=order, subok=False)
    for block in blocks(values):
        result[block] = values[block]
    return result


def distinct(values: Array | RowLabels) -> Array:
    """Return the sorted distinct values of a one-dimensional array."""
    if isinstance(values, RowLabels):
        return values.classes[np.unique(values.codes)]
    parts = [np.unique(values[block]) for block in blocks(values)]
    return np.unique(np.concatenate(parts)) if len(parts) > 1 else np.unique(values)


def as_codes(values: Array | RowLabels) -> tuple[Array, NDArray[np.int32]]:
    """Return the sorted distinct values, and the position of each entry among them."""
    sorted_values = distinct(values)
    return sorted_values, codes_among(values, sorted_values)


def codes_among(values: Array | RowLabels, sorted_values: Array) -> NDArray[np.int32]:
    """Return the position of each entry in the sorted distinct values."""
    if isinstance(values, RowLabels):
        return np.searchsorted(sorted_values, values.classes).astype(np.int32)[values.codes]
    if len(sorted_values) == 2:
        return (values == sorted_values[1]).astype(np.int32)
    codes = np.empty(len(values), dtype=np.int32)
    for block in blocks(values):
        codes[block] = np.searchsorted(sorted_values, values[block])
    return codes
