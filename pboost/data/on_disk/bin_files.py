"""Bin tables that do not fit into memory, batch by batch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns.bin_and_sort import EDGES, BinEdges, all_binned
from pboost.data.columns.columns import MAX_BINS, NO_WEIGHT, BinnedColumns
from pboost.data.columns.exact_bin_edges import BatchCounts
from pboost.data.columns.prebuilt import MOST_KNOWN
from pboost.data.columns.sampled_bin_edges import RowSample
from pboost.data.on_disk.column_folder import StoredColumns, Writer, open_columns
from pboost.data.on_disk.encoded_batches import (
    ChangedError,
    Encoding,
    StaleError,
    row_hashes,
    rows_by_class,
    state_key,
    sums_of_hashes,
)
from pboost.data.read.batches import (
    BatchReader,
    BatchRows,
    UnreadLevelsError,
    batches_of,
    masses_of,
)
from pboost.data.read.check_xy import (
    TASKS,
    as_targets,
    check_label_values,
    find_holes,
    label_values,
)
from pboost.data.read.convert import Features
from pboost.data.read.table import Table
from pboost.data.targets import (
    NOTHING,
    REGRESSION,
    Targets,
    joined,
    known_task,
    targets_of,
)
from pboost.threads import Workers
from pboost.values import (
    INT32_MAX,
    Array,
    FloatArray,
    Task,
    check_choice,
    check_flag,
    check_integer,
)
from pboost.values.options import builder

#: With more distinct values than this, y is assumed to be a regression target.
MOST_LABELS = 10_000


@builder
def bin_files(
    source: object,
    folder: str | os.PathLike[str],
    *,
    target: str | None = None,
    weight: str | None = None,
    task: Task | None = None,
    bin_edges: BinEdges = "sample",
    max_bins: int = MAX_BINS,
    keep_values: bool = False,
    n_threads: int | None = None,
) -> StoredColumns:
    """Bin the features of a table that is larger than memory, and store them in a folder.

    The table is read in batches. The bins are identical to the result of `bin_columns` on all rows,
    and a fit returns the same model as a fit in memory. At most one batch and 200,000 rows are in
    memory at a time.

    Parameters
    ----------
    source : path, list of paths, pyarrow dataset, or iterable of batches
        Parquet, Arrow or CSV files, which require pyarrow (extra ``parquet``). Batches are tuples
        ``(X, y)`` or ``(X, y, weights)``. With `target`, they are pyarrow record batches or data
        frames. The batches are read several times: pass an iterable that can be restarted, or a
        function that returns a new iterator.
    folder : str or path-like
        Output folder. It must be new, empty, or left by an interrupted call.
    target, weight : str, optional
        Names of the target column and of the sample weight column. All other columns are features.
        Rows of weight 0 are dropped.
    task : {"classification", "regression"}, optional
        Type of the target. By default, text, booleans and at most 20 distinct integers in all
        batches are classes, and non-integer numbers are a regression. Required if the target has
        more distinct integers.
    bin_edges : {"sample", "exact"}
        "sample" computes the edges from at most 200,000 rows. "exact" uses all rows and reads the
        batches more often.
    max_bins : int
        Maximum number of bins per feature, 2 to 256. Bins have about equal weight; equal values
        share a bin.
    keep_values : bool
        Whether to store the values too. `pboost.observation.gaussian`, weak learners that combine
        features, and probit trees need them. A value takes 8 bytes (4 if all batches are float32),
        a code 1 byte.
    n_threads : int or None
        Number of threads; -1 uses all cores. None chooses a number that suits the amount of work.

    Returns
    -------
    StoredColumns
        The result of `open_columns` for this folder.

    Raises
    ------
    ValueError, TypeError
        If a file or batch is invalid or has other features than the first batch, a target is
        missing, or a value is infinite; the message names the batch. Also raised if the batches
        change between two passes.
    FileExistsError
        If the folder contains other files.
    OSError
        If a file cannot be written.
    ImportError
        If `source` contains paths and pyarrow is not installed.

    Notes
    -----
    Batches are read twice: for the edges and for the codes. Sample weights and categories need one
    more pass each. ``bin_edges="exact"`` usually needs three to six passes for the edges: rows are
    counted in ranges of values, and then in smaller ranges around each edge.

    If a call is interrupted or killed, `open_columns` rejects the folder. Repeat the call with the
    same arguments to resume: edges are kept, and batches already encoded are only read to compare
    their digest. At most 20 seconds of encoding are lost. If the batches or options have changed,
    the call starts again. After an error the files are deleted.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.arange(8.0).reshape(8, 1), np.array([0, 1, 0, 0, 1, 1, 0, 1])
    >>> def batches():
    ...     for start in range(0, 8, 3):
    ...         yield X[start : start + 3], y[start : start + 3]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     columns, labels, _ = pb.data.bin_files(batches, os.path.join(folder, "columns"))
    ...     model = pb.fit_adaboost(columns, labels, n_estimators=5)
    >>> columns
    <BinnedColumns: 8 rows, 1 features>
    >>> labels.tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    if task is not None:
        check_choice("task", task, TASKS)
    check_choice("bin_edges", bin_edges, EDGES)
    max_bins = check_integer("max_bins", max_bins, min_value=2, max_value=MAX_BINS)
    keep_values = check_flag("keep_values", keep_values)
    reader = BatchReader(batches_of(source, target, weight))
    with Writer(folder) as writer, Workers(n_threads, INT32_MAX) as workers:
        key = state_key(bin_edges, max_bins, target, weight, keep_values, task)
        if not _goes_on(reader, writer, key, workers):
            encoding = _encoding(reader, task, bin_edges, max_bins, keep_values, workers)
            encoding.write(reader, writer, key, workers)
        writer.header(bin_edges=bin_edges, max_bins=max_bins, names=reader.names)
    return open_columns(folder)


def _goes_on(reader: BatchReader, writer: Writer, key: str, workers: Workers) -> bool:
    """Resume an interrupted call for the same table; return False if there is none."""
    state = writer.state(key)
    if state is None:
        return False
    weighs = reader.is_weighed()
    try:
        encoding = Encoding.of_state(state)
        reader.go_on(encoding.bins, weighs)
        encoding.write(reader, writer, key, workers)
    except (StaleError, UnreadLevelsError, LookupError, ValueError, TypeError):
        # The folder belongs to another table: start again.
        reader.forget()
        writer.forget()
        return False
    return True


def _encoding(
    reader: BatchReader,
    task: str | None,
    bin_edges: str,
    max_bins: int,
    keep_values: bool,
    workers: Workers,
) -> Encoding:
    """Compute the bins and count the rows, before any code is written."""
    total, seen = reader.total_weight() if reader.is_weighed() else None, None
    while seen is None:
        try:
            seen = _first_pass(reader, total, task, bin_edges == "exact", workers)
        except UnreadLevelsError:
            reader.find_levels(total)
        except NumbersError:
            task = REGRESSION
    find = _bins if seen.counts is None else _exact_bins
    bins = find(reader, seen, total, max_bins, workers)
    none = bins.select(np.empty(0, dtype=np.int32))
    dtype = seen.dtype.newbyteorder("<").str if keep_values else ""
    return Encoding(none, seen.classes, seen.count, seen.content, dtype)


class NumbersError(Exception):
    """Raised if a batch has regression targets, but earlier targets were read as classes."""


@dataclass(slots=True)
class _Seen:
    """Results of the first pass over the batches.

    Attributes
    ----------
    sample : RowSample
        Rows that determine the edges, if these come from a sample.
    counts : BatchCounts or None
        Counts for edges from all rows.
    has_missing : ndarray of bool, shape (d,)
        Mask of the features with missing values.
    classes : ndarray, shape (J,)
        Class labels, sorted.
    count, content : ndarray of int64 and uint64, shape (J,)
        Number of rows of each class, and the sum of their hashes.
    n_known : ndarray of int64, shape (d,)
        Number of known values, counted if there are categorical features.
    dtype : dtype
        Common dtype of the batches.
    task : str or None
        Task of the fit, or None if `targets` determines it.
    targets : Targets
        Summary of the targets read so far.
    """

    sample: RowSample
    counts: BatchCounts | None
    has_missing: NDArray[np.bool_]
    classes: Array
    count: NDArray[np.int64]
    content: NDArray[np.uint64]
    n_known: NDArray[np.int64]
    dtype: np.dtype[np.generic]
    task: str | None
    targets: Targets = NOTHING

    @classmethod
    def nothing(cls, d: int, y: Array, counts: BatchCounts | None, task: str | None) -> _Seen:
        """Return the initial state, before any row has been counted."""
        is_regression = task == REGRESSION
        count, known = np.zeros(int(is_regression), dtype=np.int64), np.zeros(d, dtype=np.int64)
        return cls(
            RowSample(d),
            counts,
            known > 0,
            np.empty(0) if is_regression else y[:0],
            count,
            count.astype(np.uint64),
            known,
            np.dtype(np.float32),
            task,
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.count.sum())

    def count_targets(self, rows: BatchRows, workers: Workers) -> NDArray[np.uint64]:
        """Count the rows, or the rows of each class; return the hashes of their features.

        Raises NumbersError if the targets are a regression.
        """
        numbers = self.numbers_of(rows)
        hashed, with_targets = row_hashes(rows.values, numbers, workers)
        if numbers is not None:
            self.count += len(numbers)
            self.content += with_targets.sum()
            return hashed
        if self.task is None:
            self.targets = joined([self.targets, targets_of(rows.y)])
            if self.targets.task == REGRESSION:
                raise NumbersError
        if self.task is not None or self.targets.task is not None:
            self._count_labels(rows.y, hashed)
        return hashed

    def numbers_of(self, rows: BatchRows) -> FloatArray | None:
        """Return the targets of a regression, or None for a classification."""
        if self.task != REGRESSION:
            return None
        with in_batch(rows):
            return as_targets(rows.y, len(rows.y))

    def _count_labels(self, y: Array, hashed: NDArray[np.uint64]) -> None:
        """Count the rows of each class and add up their hashes."""
        classes = label_values(y)
        every = label_values(np.concatenate([self.classes, classes]))
        if len(every) > MOST_LABELS:
            raise ValueError(
                f"y: expected class labels, got more than {MOST_LABELS} distinct values; for "
                'regression, pass task="regression"'
            )
        count, content = np.zeros(len(every), np.int64), np.zeros(len(every), np.uint64)
        before, positions = np.searchsorted(every, self.classes), np.searchsorted(every, classes)
        count[before], content[before] = self.count, self.content
        by_class = rows_by_class(y, classes)
        count[positions] += [len(rows) for rows in by_class]
        content[positions] += sums_of_hashes(hashed, by_class)
        self.classes, self.count, self.content = every, count, content


@contextmanager
def in_batch(rows: BatchRows) -> Iterator[None]:
    """Prefix error messages with the number of the batch."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"batch {rows.batch}: {error}") from None


def _first_pass(
    reader: BatchReader, total: float | None, task: str | None, is_exact: bool, workers: Workers
) -> _Seen:
    """Read all batches once: count classes and missing values, and collect rows for the edges."""
    seen: _Seen | None = None
    for rows in reader:
        if seen is None:
            d = rows.values.shape[1]
            table = reader.trained.table
            n_levels = np.zeros(d, dtype=np.int32) if table is None else table.n_levels
            counts = BatchCounts(n_levels, total is not None) if is_exact else None
            seen = _Seen.nothing(d, rows.y, counts, task)
        with in_batch(rows):
            holes = find_holes(Features(rows.values, reader.names))
        if holes is not None:
            seen.has_missing |= holes
        seen.dtype = np.promote_types(seen.dtype, rows.values.dtype)
        hashed = seen.count_targets(rows, workers)
        mass = _masses(rows, total)
        if seen.counts is None:
            seen.sample.add(rows.values, hashed, mass)
        else:
            seen.counts.add(rows.values, mass, workers)
        if reader.n_known is not None:
            seen.n_known += np.count_nonzero(~np.isnan(rows.values), axis=0)
        if seen.n_rows > INT32_MAX:
            raise ValueError(f"source: expected at most {INT32_MAX} rows")
    if seen is None:
        raise ValueError("source: expected at least one row of positive weight, got none")
    if reader.n_known is not None:
        has_levels = reader.n_known > 0
        if (reader.n_known != seen.n_known)[has_levels].any():
            raise ChangedError
    if seen.task is None:
        known_task(seen.targets)
    if seen.task != REGRESSION:
        check_label_values(seen.classes, None)
    return seen


def _masses(rows: BatchRows, total: float | None) -> NDArray[np.int64] | None:
    """Return the weights of rows in fixed point, or None if there are no weights."""
    if total is None:
        return None
    assert rows.weights is not None
    return masses_of(rows.weights, total)


def _table(reader: BatchReader, seen: _Seen) -> Table | None:
    """Return the description of the features, including the mask of missing values."""
    table = reader.trained.table
    if seen.has_missing.any():
        table = (table or Table.of_numbers(len(seen.has_missing))).with_holes(seen.has_missing)
    return table


def _exact_bins(
    reader: BatchReader, seen: _Seen, total: float | None, max_bins: int, workers: Workers
) -> BinnedColumns:
    """Read the batches until all bin edges are exact; return the bins."""
    counts = seen.counts
    assert counts is not None
    counts.limit(max_bins, seen.has_missing)
    while counts.take():
        n = content = 0
        for rows in reader:
            hashed = row_hashes(rows.values, seen.numbers_of(rows), workers)[1]
            n, content = n + len(hashed), content + int(hashed.sum())
            counts.add(rows.values, _masses(rows, total), workers)
        if n != seen.n_rows or (content - int(seen.content.sum())) % 2**64:
            raise ChangedError
    return counts.bins(reader.names, _table(reader, seen))


def _bins(
    reader: BatchReader, seen: _Seen, total: float | None, max_bins: int, workers: Workers
) -> BinnedColumns:
    """Return bins whose edges are computed from the sample."""
    values, mass = seen.sample.rows()
    if seen.has_missing.any() and seen.sample.is_part:  # as in `binned_columns`
        max_bins = min(max_bins, MOST_KNOWN)
    features = Features(values, reader.names, _table(reader, seen))
    fixed = NO_WEIGHT if (mass == 1).all() else mass
    return all_binned(
        features, np.arange(len(values), dtype=np.int32), max_bins, fixed, workers, None
    )
