"""Prediction from sparse matrices, by a kernel or by blocks of dense rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import sparse
from pboost.data.read.convert import check_size, refuse_other_shapes
from pboost.threads import run_ranges
from pboost.values import Array, FloatArray, IntArray

#: Maximum number of cells in a dense block, which then takes at most 16 MB.
BLOCK_CELLS = 1 << 21


class SparseRows(NamedTuple):
    """Checked rows of a sparse matrix without missing values.

    Attributes
    ----------
    start : ndarray of int64, shape (n + 1,)
        Position of the first entry of each row.
    columns, values : ndarray of int32 and float64, shape (k,)
        Feature and value of each entry. Equal features of a row are added up.
    place : ndarray of int32, shape (d,)
        Position of each feature among those that the model reads, or -1.
    """

    start: NDArray[np.int64]
    columns: IntArray
    values: FloatArray
    place: IntArray

    def sums(
        self, steps: Array, root: IntArray, depths: IntArray, value: FloatArray, turns: int
    ) -> FloatArray:
        """Return the sums of the leaf values of each row; see `RandomForest.total`."""
        n = len(self.start) - 1
        total = np.zeros((n, turns * value.shape[1]))

        def work(first: int, last: int) -> None:
            x = np.zeros(int(self.place.max()) + 1)
            nodes = steps, root, depths, value
            sparse.sum_trees(*self, *nodes, turns, first, last, x, total)

        run_ranges(work, n, cells=len(self.values) // max(n, 1) + len(depths))
        return total


def by_blocks(
    function: Callable[[Any, Any], Any],
    model: Any,
    X: Any,
    *,
    all_features: bool = False,
    walks: bool = False,
) -> Any:
    """Call a function with a model and dense blocks of the rows of X, and join the results.

    Blocks have only the features that the model reads, unless `all_features` is true. The results
    are arrays with one entry per row, lists with one item per row, or iterators over such arrays.
    If the function only `walks` through the model, it is called with `SparseRows` where possible.
    """
    refuse_other_shapes(X)
    check_size(X.shape)
    if X.shape[1] != model.n_features:
        raise ValueError(f"X: expected {model.n_features} columns, got {X.shape[1]}")
    rows = X.tocsr()
    has_missing = _check_stored(rows, model.takes_missing)
    narrow = None if all_features else model.of_features_read()
    if narrow is not None:
        read, model = narrow
        if walks and model.takes_sparse_rows and not has_missing:
            return function(model, _walked_rows(rows, read))
        rows = _columns(rows, read)
    results = [function(model, block) for block in _blocks(rows)]
    if isinstance(results[0], np.ndarray):
        return np.concatenate(results)
    if isinstance(results[0], list):
        return [item for block in results for item in block]
    return map(np.concatenate, zip(*results, strict=True))


def _columns(rows: Any, read: IntArray) -> Any:
    """Return some columns of a CSR matrix, with its duplicate entries."""
    place = np.full(rows.shape[1], -1, dtype=np.int32)
    place[read] = np.arange(len(read), dtype=np.int32)
    column = place[rows.indices]
    is_read = column >= 0
    ends = np.concatenate([[0], np.cumsum(is_read)])[rows.indptr]
    return type(rows)((rows.data[is_read], column[is_read], ends), shape=(rows.shape[0], len(read)))


def _walked_rows(rows: Any, read: IntArray) -> SparseRows:
    """Return the rows of a CSR matrix for a model that reads some features."""
    place = np.full(rows.shape[1], -1, dtype=np.int32)
    place[read] = np.arange(len(read), dtype=np.int32)
    values = np.ascontiguousarray(rows.data, dtype=np.float64)
    start, columns = rows.indptr.astype(np.int64), rows.indices.astype(np.int32, copy=False)
    return SparseRows(start, np.ascontiguousarray(columns), values, place)


def _blocks(rows: Any) -> Iterator[Array]:
    """Yield the rows of a CSR matrix as dense blocks. Duplicate entries are added up."""
    n, d = rows.shape
    step = max(BLOCK_CELLS // d, 1)
    for start in range(0, max(n, 1), step):
        yield rows[start : start + step].toarray()


def _check_stored(rows: Any, missing: bool) -> bool:
    """Return whether values are missing.

    Raise ValueError for an infinite value, or for a missing value unless `missing` is true.
    """
    values = rows.data
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return False
    wrong = np.flatnonzero(np.isinf(values) if missing else ~np.isfinite(values))
    if len(wrong):
        row = int(np.searchsorted(rows.indptr, wrong[0], "right")) - 1
        raise ValueError(
            f"X: expected finite numbers, got {values[wrong[0]]} in column "
            f"{rows.indices[wrong[0]]}, row {row}"
            + ("; impute missing values first" if np.isnan(values[wrong[0]]) else "")
        )
    return True
