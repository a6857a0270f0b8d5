"""Tables that do not fit into memory: binned in batches, into files that fits read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns.columns import MAX_BINS, NO_WEIGHT, BinnedColumns
from pboost.data.columns.exact_edges import BatchCounts
from pboost.data.columns.making import EDGES, BinEdges, all_binned
from pboost.data.columns.prebuilt import MOST_KNOWN
from pboost.data.columns.sampled_edges import RowSample
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

#: More different labels than this are none.
MOST_LABELS = 10_000


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
    """Bin the columns of a table that is read in batches, into a folder that fits read from.

    The bins are those of `bin_columns` of all rows, and a fit gives the model that it gives in
    memory, bit for bit. A batch is held in memory, and at most 200,000 rows, or counts.

    Parameters
    ----------
    source : path, list of paths, data set of pyarrow, or iterable of batches
        Parquet, Arrow or CSV files, for which pyarrow is needed (extra ``parquet``). Batches are
        tuples ``(X, y)`` or ``(X, y, weights)``, or with `target` record batches of pyarrow or data
        frames. They are read several times: an iterable that can be, or a function that returns
        an iterator of all batches.
    folder : str or path-like
        Where the files are written: a folder that does not exist, is empty, or is what an
        interrupted call has left.
    target, weight : str, optional
        Names of the columns that hold the labels, or the numbers to predict, and the weights of the
        rows; all others are features. Rows of weight 0 are left out.
    task : {"classification", "regression"}, optional
        What the labels are. By default text, booleans and at most 20 different whole numbers in all
        batches are classes, and numbers that are not all whole are a regression. With more
        different whole numbers it must be given.
    bin_edges : {"sample", "exact"}
        The rows that make the edges of bins, as in `bin_columns`: of more than 200,000 those with
        the least hashes of their values, or all.
    max_bins : int
        Bins per column, 2 to 256, of about equal weight; equal values share a bin.
    keep_values : bool
        Whether the values of the columns are written, too, for what reads them:
        `pboost.observation.gaussian`, weak learners that add up columns, probit trees. They take 8
        bytes each (4 where all batches are of float32), the codes 1.
    n_threads : int or None
        Threads, -1 for all; None: as many as the work is worth.

    Returns
    -------
    StoredColumns
        What `open_columns` returns.

    Raises
    ------
    ValueError, TypeError
        If a file or batch is not as described, has other columns than the first, misses a label, or
        holds an infinity; the message says which. If batches are others when they are read again.
    FileExistsError
        If the folder holds something else.
    OSError
        If a file cannot be written; it is named.
    ImportError
        If there are paths and no pyarrow.

    Notes
    -----
    Batches are read twice: for the edges, and for the codes; once before for their weights, where
    there are any, and once for the levels of categories, which are those of all batches. With
    ``bin_edges="exact"`` they are read three to six times for the edges as a rule: rows are counted
    by ranges of values, then by smaller ones where a bin can end. Codes are written class by class
    and column by column, as fits read them. Every file gets its name when it is whole, the header
    last.

    A call that is interrupted, or killed, leaves a folder that `open_columns` refuses. The same
    call goes on with it: edges that have been found stay, and batches of which there are codes are
    read, because their digest is compared, and not encoded again. What has been encoded in the last
    20 seconds may be lost. Where batches or options are others, all begins anew. After an error
    nothing is kept.

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
    >>> bool((model.vote == pb.fit_adaboost(pb.data.bin_columns(X), y, n_estimators=5).vote).all())
    True
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
    """Go on where an interrupted call has stopped; returns whether there was one, of this table."""
    state = writer.state(key)
    if state is None:
        return False
    weighs = reader.is_weighed()
    try:
        encoding = Encoding.of_state(state)
        reader.go_on(encoding.bins, weighs)
        encoding.write(reader, writer, key, workers)
    except (StaleError, UnreadLevelsError, LookupError, ValueError, TypeError):
        # Another table, which is read as one that is new.
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
    """Return what is needed to write codes, of which there are none."""
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
    """A batch shows that the targets are of a regression, after others could have been classes."""


@dataclass(slots=True)
class _Seen:
    """What the first pass has found.

    Attributes
    ----------
    sample : RowSample
        Rows that make the edges, where these are some.
    counts : BatchCounts or None
        Counts by which edges of all rows are found.
    holes : ndarray of bool, shape (d,)
        Which columns have missing values.
    classes : ndarray, shape (J,)
        Label values, sorted.
    count, content : ndarray of int64 and uint64, shape (J,)
        Number of rows of each label, and the sum of their hashes.
    n_known : ndarray of int64, shape (d,)
        Number of values that are known, where there are categories.
    dtype : dtype
        Of the values of all batches.
    task : str or None
        What the targets are; None while `targets` say it.
    targets : Targets
        What is known of them so far.
    """

    sample: RowSample
    counts: BatchCounts | None
    holes: NDArray[np.bool_]
    classes: Array
    count: NDArray[np.int64]
    content: NDArray[np.uint64]
    n_known: NDArray[np.int64]
    dtype: np.dtype[np.generic]
    task: str | None
    targets: Targets = NOTHING

    @classmethod
    def nothing(cls, d: int, y: Array, counts: BatchCounts | None, task: str | None) -> _Seen:
        """Return what no rows are, of d columns and labels like these; a regression has none."""
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
        """Count the rows, by their labels if they have some; returns the hashes of features.

        NumbersError if the targets are of a regression and this was not known.
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
        """Return the targets of a regression, None of a classification."""
        if self.task != REGRESSION:
            return None
        with in_batch(rows):
            return as_targets(rows.y, len(rows.y))

    def _count_labels(self, y: Array, hashed: NDArray[np.uint64]) -> None:
        """Count the labels of rows with these hashes."""
        classes = label_values(y)
        every = label_values(np.concatenate([self.classes, classes]))
        if len(every) > MOST_LABELS:
            raise ValueError(f"y: expected labels, got more than {MOST_LABELS} different values")
        count, content = np.zeros(len(every), np.int64), np.zeros(len(every), np.uint64)
        before, positions = np.searchsorted(every, self.classes), np.searchsorted(every, classes)
        count[before], content[before] = self.count, self.content
        by_class = rows_by_class(y, classes)
        count[positions] += [len(rows) for rows in by_class]
        content[positions] += sums_of_hashes(hashed, by_class)
        self.classes, self.count, self.content = every, count, content


@contextmanager
def in_batch(rows: BatchRows) -> Iterator[None]:
    """Have errors name the batch of rows."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"batch {rows.batch}: {error}") from None


def _first_pass(
    reader: BatchReader, total: float | None, task: str | None, is_exact: bool, workers: Workers
) -> _Seen:
    """Find the rows that make the edges, or count all; the labels, and what is missing."""
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
            seen.holes |= holes
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
    """Return the weights of rows in fixed point, None where there are none."""
    if total is None:
        return None
    assert rows.weights is not None
    return masses_of(rows.weights, total)


def _table(reader: BatchReader, seen: _Seen) -> Table | None:
    """Return what columns are, and which of them miss values."""
    table = reader.trained.table
    if seen.holes.any():
        table = (table or Table.of_numbers(len(seen.holes))).with_holes(seen.holes)
    return table


def _exact_bins(
    reader: BatchReader, seen: _Seen, total: float | None, max_bins: int, workers: Workers
) -> BinnedColumns:
    """Return bins between edges from all rows, which are read until all columns have them."""
    counts = seen.counts
    assert counts is not None
    counts.limit(max_bins, seen.holes)
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
    """Return the bins of the rows that make the edges."""
    values, mass = seen.sample.rows()
    if seen.holes.any() and seen.sample.is_part:  # as in `binned_columns`
        max_bins = min(max_bins, MOST_KNOWN)
    features = Features(values, reader.names, _table(reader, seen))
    fixed = NO_WEIGHT if (mass == 1).all() else mass
    return all_binned(
        features, np.arange(len(values), dtype=np.int32), max_bins, fixed, workers, None
    )
