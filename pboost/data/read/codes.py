"""Values of rows as codes, found block by block; labels that stay codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from pboost.values import Array, freeze


class RowLabels(NDArrayOperatorsMixin):
    """Text of rows as an array of strings, of which each row keeps a code alone.

    Builders take it in place of `y`, and read the codes. It has a length, is compared with a label,
    and rows are taken from it, as of an array; ``numpy.asarray(y)``, and whatever asks for an
    array, makes one, in which every row is as wide as the longest label.

    Attributes
    ----------
    classes : ndarray, shape (J,)
        The labels, sorted.
    codes : ndarray of unsigned integers, shape (n,)
        The place of each row's label among them.

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
        """The number of rows, as that of an array."""
        return self.codes.shape[:1]

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.codes.size

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """That of the labels."""
        return self.classes.dtype

    def tolist(self) -> list[Any]:
        """Return the labels of the rows as a list, in which equal ones are the same object."""
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
            raise ValueError("labels of rows are codes: an array of them is a copy")
        values: Array = self.classes[self.codes]
        return values if dtype is None else values.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        others = [item for item in inputs if not isinstance(item, RowLabels)]
        is_of_labels = len(others) == len(inputs) - 1 and all(np.ndim(item) == 0 for item in others)
        if method == "__call__" and is_of_labels and not options:
            # What is found for a label is found for its rows.
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
    """Return the labels of so many rows each, class by class; text as codes."""
    if classes.dtype.kind != "U":
        return np.repeat(classes, count)
    codes = np.arange(len(classes), dtype=np.min_scalar_type(len(classes)))
    return RowLabels(classes, np.repeat(codes, count))


#: Numbers that are worked on at a time.
BLOCK_CELLS = 1 << 20


def blocks(values: Array) -> Iterator[slice]:
    """Return slices of consecutive rows of an array of any shape."""
    step = max(1, BLOCK_CELLS // max(1, values[:1].size))
    return (slice(start, start + step) for start in range(0, len(values), step))


def copied(values: Array, dtype: DTypeLike | None = None, order: Literal["C", "K"] = "C") -> Array:
    """Return a copy, of another type if one is given; `order` is that of `numpy.copy`."""
    result = np.empty_like(values, dtype=dtype, order=order, subok=False)
    for block in blocks(values):
        result[block] = values[block]
    return result


def distinct(values: Array | RowLabels) -> Array:
    """Return the sorted different values of an array of one dimension."""
    if isinstance(values, RowLabels):
        return values.classes[np.unique(values.codes)]
    parts = [np.unique(values[block]) for block in blocks(values)]
    return np.unique(np.concatenate(parts)) if len(parts) > 1 else np.unique(values)


def as_codes(values: Array | RowLabels) -> tuple[Array, NDArray[np.int32]]:
    """Return the sorted different values, and for each entry which it is."""
    sorted_values = distinct(values)
    return sorted_values, codes_among(values, sorted_values)


def codes_among(values: Array | RowLabels, sorted_values: Array) -> NDArray[np.int32]:
    """Return for each entry which of the sorted different values it is."""
    if isinstance(values, RowLabels):
        return np.searchsorted(sorted_values, values.classes).astype(np.int32)[values.codes]
    if len(sorted_values) == 2:
        return (values == sorted_values[1]).astype(np.int32)
    codes = np.empty(len(values), dtype=np.int32)
    for block in blocks(values):
        codes[block] = np.searchsorted(sorted_values, values[block])
    return codes
