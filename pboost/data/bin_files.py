"""Tables that do not fit into memory: binned in batches, into files that fits read."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import reweight, sort
from pboost.data.batch_counts import BatchCounts
from pboost.data.batches import Batch, Batches, batches_of
from pboost.data.blocks import codes_among
from pboost.data.check_xy import (
    as_features,
    check_label_values,
    features_as_trained,
    find_holes,
    label_values,
    plain_labels,
    weights_of_some,
)
from pboost.data.column_folder import StoredColumns, Writer, open_columns
from pboost.data.columns import MAX_BINS, NO_WEIGHT, BinnedColumns
from pboost.data.convert import Features, Trained
from pboost.data.made_columns import EDGES, all_binned
from pboost.data.row_sample import RowSample
from pboost.data.sampled_bins import code_rows, hashed_rows, joined_ends, with_ends
from pboost.data.special_columns import MOST_KNOWN
from pboost.data.table import Table
from pboost.threads import Workers
from pboost.values import INT32_MAX, Array, FloatArray, IntArray, check_choice, check_integer

#: More different labels than this are none.
MOST_LABELS = 10_000


def bin_files(
    source: Any,
    folder: str | os.PathLike[str],
    *,
    target: str | None = None,
    weight: str | None = None,
    edges: str = "sample",
    max_bins: int = MAX_BINS,
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
        Where the files are written: a folder that does not exist, or is empty.
    target, weight : str, optional
        Names of the columns that hold the labels and the weights of the rows; all others are
        features. Rows of weight 0 are left out.
    edges : {"sample", "exact"}
        The rows that make the edges of bins, as in `bin_columns`: of more than 200,000 those with
        the least hashes of their values, or all.
    max_bins : int
        Bins per column, 2 to 256, of about equal weight; equal values share a bin.
    n_threads : int or None
        Threads, -1 for all; None: as many as the work is worth.

    Returns
    -------
    StoredColumns
        What `open_columns` returns.

    Raises
    ------
    ValueError, TypeError
        If a batch is not as described, has other columns than the first, misses a label, or holds
        an infinity; the message says which. If batches are others when they are read again.
    FileExistsError
        If the folder holds something else.
    OSError
        If a file cannot be written; it is named.
    ImportError
        If there are paths and no pyarrow.

    Notes
    -----
    Batches are read twice: for the edges, and for the codes; once before for their weights, where
    there are any. With ``edges="exact"`` they are read three to six times for the edges as a rule:
    rows are counted by ranges of values, then by smaller ones where a bin can end. Codes are
    written class by class and column by column, as fits read them. Every file gets its name when it
    is whole, the header last: an interrupted call leaves a folder that `open_columns` refuses, and
    that can be passed again.

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
    ...     columns, labels, _ = pb.bin_files(batches, os.path.join(folder, "columns"))
    ...     model = pb.fit_adaboost(columns, labels, rounds=5)
    >>> bool((model.vote == pb.fit_adaboost(pb.bin_columns(X), y, rounds=5).vote).all())
    True
    """
    check_choice("edges", edges, EDGES)
    max_bins = check_integer("max_bins", max_bins, least=2, most=MAX_BINS)
    reader = _Reader(batches_of(source, target, weight))
    with Writer(folder) as writer, Workers(n_threads, INT32_MAX) as workers:
        survey = _survey(reader) if reader.is_weighed() else None
        seen = _first_pass(reader, survey, edges == "exact", workers)
        find = _bins if seen.counts is None else _exact_bins
        bins = find(reader, seen, survey, max_bins, workers)
        _second_pass(reader, seen, bins, writer, workers)
        writer.header(edges=edges, max_bins=max_bins, names=reader.names)
    return open_columns(folder)


class Rows(NamedTuple):
    """Rows of a batch, checked: those of positive weight."""

    values: Array
    y: Array
    weights: FloatArray | None
    batch: int


class _Reader:
    """Reads batches as rows of the same columns."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._trained: Trained | None = None
        self._weighs: bool | None = None
        self._is_text: bool | None = None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns."""
        return self.trained.names

    @property
    def trained(self) -> Trained:
        """What the columns are, once a batch has been read."""
        assert self._trained is not None
        return self._trained

    def is_weighed(self) -> bool:
        """Return whether the first batch has weights; ValueError if there is none."""
        for batch in self._batches():
            return batch.weights is not None
        raise ValueError("source: expected at least one batch, got none")

    def __iter__(self) -> Iterator[Rows]:
        for k, batch in enumerate(self._batches()):
            try:
                rows = self._read(batch, k)
            except (TypeError, ValueError, NotImplementedError) as error:
                raise type(error)(f"batch {k}: {error}") from None
            if len(rows.y):
                yield rows

    def _read(self, batch: Batch, k: int) -> Rows:
        features = self._features(batch.X)
        n = features.n_rows
        if self._weighs is None:
            self._weighs = batch.weights is not None
        if self._weighs != (batch.weights is not None):
            raise ValueError("weights: expected them in all batches, or in none")
        if not n:
            return Rows(features.values, np.empty(0), None, k)
        labels = plain_labels(batch.y, n)
        if self._is_text is None:
            self._is_text = labels.dtype.kind in "UST"
        if self._is_text != (labels.dtype.kind in "UST"):
            raise TypeError(f"y: expected labels of one kind in all batches, got {labels.dtype}")
        if batch.weights is None:
            return Rows(features.values, labels, None, k)
        weights = weights_of_some(batch.weights, n)
        if weights.all():
            return Rows(features.values, labels, weights, k)
        kept = np.flatnonzero(weights)
        return Rows(features.values[kept], labels[kept], weights[kept], k)

    def _features(self, X: Any) -> Features:
        if self._trained is None:
            features = as_features(X)
            if features.table is not None:
                raise NotImplementedError("X: categories are not implemented for batches")
            self._trained = Trained(features.names, features.n_features)
            return features
        features = as_features(X)
        if features.table is not None:
            raise NotImplementedError("X: categories are not implemented for batches")
        if (features.names is None) != (self._trained.names is None):
            raise ValueError("X: expected named columns in all batches, or in none")
        return features_as_trained(features, self._trained)


@dataclass(slots=True)
class _Survey:
    """Sum of the weights, from which the scale of the masses follows."""

    total: float = 0.0

    @property
    def scale(self) -> float:
        """As `to_fixed_point` has it."""
        return math.ldexp(1.0, 61 - math.frexp(self.total)[1])


def _survey(reader: _Reader) -> _Survey:
    """Return the sum of the weights of all batches."""
    parts = [float(rows.weights.sum()) for rows in reader if rows.weights is not None]
    total = math.fsum(parts)
    if not 0 < total < math.inf:
        raise ValueError(
            f"weights: expected a finite sum, and at least one weight > 0, got the sum {total}"
        )
    return _Survey(total)


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
    labels : ndarray, shape (J,)
        Label values, sorted.
    count, content : ndarray of int64 and uint64, shape (J,)
        Number of rows of each label, and the sum of their hashes.
    """

    sample: RowSample
    counts: BatchCounts | None
    holes: NDArray[np.bool_]
    labels: Array
    count: NDArray[np.int64]
    content: NDArray[np.uint64]

    @classmethod
    def nothing(cls, d: int, y: Array, counts: BatchCounts | None) -> _Seen:
        """Return what no rows are, of d columns and labels like these."""
        none = np.zeros(0, dtype=np.int64)
        holes = np.zeros(d, dtype=np.bool_)
        return cls(RowSample(d), counts, holes, y[:0], none, none.astype(np.uint64))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.count.sum())

    def count_labels(self, y: Array, hashed: NDArray[np.uint64]) -> None:
        """Count the labels of rows with these hashes."""
        labels = label_values(y)
        every = label_values(np.concatenate([self.labels, labels]))
        if len(every) > MOST_LABELS:
            raise ValueError(f"y: expected labels, got more than {MOST_LABELS} different values")
        count, content = np.zeros(len(every), np.int64), np.zeros(len(every), np.uint64)
        before, here = np.searchsorted(every, self.labels), np.searchsorted(every, labels)
        count[before], content[before] = self.count, self.content
        by_class = _by_class(y, labels)
        count[here] += [len(rows) for rows in by_class]
        content[here] += _contents(hashed, by_class)
        self.labels, self.count, self.content = every, count, content


def _first_pass(reader: _Reader, survey: _Survey | None, is_exact: bool, workers: Workers) -> _Seen:
    """Find the rows that make the edges, or count all; the labels, and what is missing."""
    seen: _Seen | None = None
    for rows in reader:
        if seen is None:
            d = rows.values.shape[1]
            counts = BatchCounts(d, survey is not None) if is_exact else None
            seen = _Seen.nothing(d, rows.y, counts)
        try:
            holes = find_holes(Features(rows.values, reader.names))
        except ValueError as error:
            raise ValueError(f"batch {rows.batch}: {error}") from None
        if holes is not None:
            seen.holes |= holes
        hashed, _ = hashed_rows(rows.values, _numbered(rows.values), workers)
        seen.count_labels(rows.y, hashed)
        mass = _masses(rows, survey)
        if seen.counts is None:
            seen.sample.add(rows.values, hashed, mass)
        else:
            seen.counts.add(rows.values, mass, workers)
        if seen.n_rows > INT32_MAX:
            raise ValueError(f"source: expected at most {INT32_MAX} rows")
    if seen is None:
        raise ValueError("source: expected at least one row of positive weight, got none")
    check_label_values(seen.labels, None)
    return seen


def _masses(rows: Rows, survey: _Survey | None) -> NDArray[np.int64] | None:
    """Return the weights of rows in fixed point, None where there are none."""
    if survey is None:
        return None
    assert rows.weights is not None
    mass = np.empty(len(rows.weights), dtype=np.int64)
    reweight.to_fixed(rows.weights, survey.scale, mass)
    return mass


def _contents(hashed: NDArray[np.uint64], parts: list[IntArray]) -> NDArray[np.uint64]:
    """Return the sums of the hashes of listed rows."""
    return np.array([hashed[rows].sum() for rows in parts], dtype=np.uint64)


def _by_class(y: Array, labels: Array) -> list[IntArray]:
    """Return the rows that have each of the labels, in their order."""
    if len(labels) == 1:
        return [np.flatnonzero(y == labels[0]).astype(np.int32)]
    label = codes_among(y, labels)
    return [np.flatnonzero(label == k).astype(np.int32) for k in range(len(labels))]


def _table(reader: _Reader, seen: _Seen) -> Table | None:
    """Return what columns are, and which of them miss values."""
    table = reader.trained.table
    if seen.holes.any():
        table = (table or Table.of_numbers(len(seen.holes))).with_holes(seen.holes)
    return table


def _exact_bins(
    reader: _Reader, seen: _Seen, survey: _Survey | None, max_bins: int, workers: Workers
) -> BinnedColumns:
    """Return bins between edges from all rows, which are read until all columns have them."""
    counts = seen.counts
    assert counts is not None
    counts.limit(max_bins, seen.holes)
    while counts.take():
        n = content = 0
        for rows in reader:
            hashed, _ = hashed_rows(rows.values, _numbered(rows.values), workers)
            n, content = n + len(hashed), content + int(hashed.sum())
            counts.add(rows.values, _masses(rows, survey), workers)
        if n != seen.n_rows or (content - int(seen.content.sum())) % 2**64:
            raise _changed()
    return counts.bins(reader.names, _table(reader, seen))


def _bins(
    reader: _Reader, seen: _Seen, survey: _Survey | None, max_bins: int, workers: Workers
) -> BinnedColumns:
    """Return the bins of the rows that make the edges."""
    values, mass = seen.sample.rows()
    if seen.holes.any() and seen.sample.is_part:  # as in `binned_columns`
        max_bins = min(max_bins, MOST_KNOWN)
    features = Features(values, reader.names, _table(reader, seen))
    fixed = NO_WEIGHT if (mass == 1).all() else mass
    return all_binned(features, _numbered(values), max_bins, fixed, workers, None)


def _second_pass(
    reader: _Reader, seen: _Seen, bins: BinnedColumns, writer: Writer, workers: Workers
) -> None:
    """Write codes, and all that is known once they are."""
    d, n = bins.n_features, seen.n_rows
    codes = writer.codes((d, n))
    start = np.concatenate([[0], np.cumsum(seen.count)])
    at, content = start[:-1].copy(), np.zeros(len(seen.count), dtype=np.uint64)
    weights, ends = None, joined_ends([], d)
    for rows in reader:
        numbered = _numbered(rows.values)
        hashed, _ = hashed_rows(rows.values, numbered, workers)
        by_class = _by_class(rows.y, seen.labels)
        sizes = np.array([len(listed) for listed in by_class])
        if (at + sizes > start[1:]).any():
            raise _changed()
        content += _contents(hashed, by_class)
        gather = partial(sort.gather_columns, rows.values)
        found, own = code_rows(gather, numbered, bins, workers)
        ends = joined_ends([ends, own], d)
        if rows.weights is not None and weights is None:
            weights = np.empty(n)
        for first, listed in zip(at.tolist(), by_class, strict=True):
            for j in range(d):
                codes.put(j, first, found[j, listed])
            if weights is not None and rows.weights is not None:
                weights[first : first + len(listed)] = rows.weights[listed]
        at += sizes
    if (content != seen.content).any() or (at != start[1:]).any():
        raise _changed()
    writer.keep(codes)
    whole = with_ends(np.empty((d, 0), dtype=np.uint8), ends, _n_levels(bins), bins)
    _write_bins(writer, whole)
    writer.array("labels", seen.labels)
    writer.array("label_count", seen.count)
    if weights is not None:
        writer.array("weights", weights)


def _write_bins(writer: Writer, columns: BinnedColumns) -> None:
    for name in ("n_bins", "lower", "upper", "bin_start", "special"):
        if (array := getattr(columns, name)) is not None:
            writer.array(name, array)
    if columns.table is not None:
        for name, array in columns.table.members().items():
            writer.array(name, array)


def _n_levels(bins: BinnedColumns) -> IntArray | None:
    return None if bins.table is None else bins.table.n_levels


def _numbered(values: Array) -> IntArray:
    return np.arange(len(values), dtype=np.int32)


def _changed() -> ValueError:
    return ValueError(
        "source: the batches had other rows when they were read again; pass a table that stays "
        "as it is, or a function that starts anew each time"
    )
