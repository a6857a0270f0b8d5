"""Encode batches of a table as bin codes in a folder, and resume after an interruption."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import binning
from pboost._version import __version__
from pboost.data.columns.columns import BinnedColumns, made
from pboost.data.columns.prebuilt import MAX_BINS, checked_names
from pboost.data.columns.sampled_bin_edges import (
    Ends,
    code_rows,
    hashed_rows,
    joined_ends,
    with_ends,
)
from pboost.data.on_disk.column_folder import CODES, VALUES, RowsFile, Writer
from pboost.data.read.batches import BatchReader, BatchRows
from pboost.data.read.check_xy import as_targets
from pboost.data.read.codes import codes_among
from pboost.data.read.table import Table
from pboost.threads import Workers
from pboost.values import Array, FloatArray, IntArray
from pboost.values.json_texts import TIMES, parse

#: Seconds between two saves of the progress.
SECONDS = 20.0
_ENDS = ("ends_lower", "ends_upper", "ends_rows")


def _check_state(state: Mapping[str, Array]) -> None:
    """Raise ValueError if the saved arrays are inconsistent."""
    n_bins, lower, count = state["n_bins"], state["lower"], state["count"]
    d, bins = len(n_bins), lower.shape[-1]
    by_label = (max(len(state["classes"]), 1),)  # a regression has a single count
    ends: dict[str, Array] = dict(zip(_ENDS, joined_ends([], d), strict=True))
    expected: dict[str, tuple[Any, tuple[int, ...]]] = {
        "n_bins": (np.int32, (d,)),
        "lower": (np.float64, (d, bins)),
        "upper": (np.float64, (d, bins)),
        "count": (np.int64, by_label),
        "content": (np.uint64, by_label),
        "at": (np.int64, by_label),
        "done": (np.int64, (1,)),
        **{name: (array.dtype, array.shape) for name, array in ends.items()},
    }
    for name, (dtype, shape) in expected.items():
        if state[name].dtype != dtype or state[name].shape != shape:
            raise ValueError(f"{name}: expected {dtype} of shape {shape}")
    start, done = np.cumsum(count) - count, state["at"]
    if (count < 1).any() or (done < start).any() or (done > start + count).any():
        raise ValueError("count, at: expected valid numbers of rows")
    if not ((n_bins >= 1) & (n_bins <= min(bins, MAX_BINS))).all():
        raise ValueError(f"n_bins: expected 1 to {bins} bins")


class ChangedError(ValueError):
    """Raised if the batches change between two passes."""

    def __init__(self) -> None:
        super().__init__(
            "source: expected the same rows in each pass, got different rows; pass a table that "
            "does not change, or a function that returns a new iterator each time"
        )


class StaleError(Exception):
    """Raised if the batches differ from the batches that an interrupted call encoded."""


class Encoding:
    """Bin codes of a table, while they are written.

    Parameters
    ----------
    bins : BinnedColumns
        Bin edges, without rows.
    classes : ndarray, shape (J,)
        Class labels; empty for a regression.
    count, content : ndarray, shape (J,), or (1,) for a regression
        Number of rows of each class, and the sums of their hashes.
    value_dtype : str
        Dtype of the values to store. If it is empty, only codes are stored.
    """

    def __init__(
        self,
        bins: BinnedColumns,
        classes: Array,
        count: NDArray[np.int64],
        content: NDArray[np.uint64],
        value_dtype: str = "",
    ) -> None:
        self.value_dtype = value_dtype
        self.bins, self.classes, self._count, self._content = bins, classes, count, content
        self._start = np.concatenate([[0], np.cumsum(count)])
        self._at, self._seen = self._start[:-1].copy(), np.zeros(len(count), dtype=np.uint64)
        self._ends = joined_ends([], bins.n_features)
        self._weights: FloatArray | None = None
        self._targets: FloatArray | None = None
        self._read = hashlib.sha256()
        #: Number of batches encoded by an earlier call, and the digest of their contents.
        self._done, self._was_read = 0, b""

    # Saved progress

    def state(self, done: int) -> dict[str, Array]:
        """Return the data needed to resume after `done` batches."""
        bins, table = self.bins, self.bins.table
        state: dict[str, Array] = {
            "n_bins": bins.n_bins,
            "lower": bins.lower,
            "upper": bins.upper,
            "classes": self.classes,
            "count": self._count,
            "content": self._content,
            "at": self._at,
            "done": np.array([done]),
            "value_dtype": np.array(self.value_dtype),
            "names": np.frombuffer(json.dumps(bins.names).encode(), dtype=np.uint8),
            "read": np.frombuffer(self._read.digest(), dtype=np.uint8),
            **dict(zip(_ENDS, self._ends, strict=True)),
        }
        return state if table is None else state | table.members()

    @classmethod
    def of_state(cls, state: dict[str, Array]) -> Encoding:
        """Resume from saved progress; raise ValueError if it is invalid."""
        _check_state(state)
        n_bins = state["n_bins"]
        names = checked_names(parse(state["names"].tobytes(), TIMES), len(n_bins))
        none = np.empty((len(n_bins), 0), dtype=np.uint8)
        bins = made(
            BinnedColumns,
            none,
            n_bins,
            state["lower"],
            state["upper"],
            names,
            None,
            Table.from_members(state),
            None,
        )
        encoding = cls(
            bins, state["classes"], state["count"], state["content"], state["value_dtype"].item()
        )
        encoding._done, encoding._was_read = int(state["done"][0]), state["read"].tobytes()
        if encoding._done:
            encoding._at, encoding._ends = state["at"], Ends(*(state[name] for name in _ENDS))
        return encoding

    # Writing

    def write(self, reader: BatchReader, writer: Writer, key: str, workers: Workers) -> None:
        """Write the codes and all other arrays.

        Raises
        ------
        ChangedError
            If the batches differ from the batches that determined the bins.
        StaleError
            If the batches differ from the batches that an earlier call encoded.
        """
        d, n = self.bins.n_features, int(self._start[-1])
        files = {CODES: writer.rows(CODES, "|u1", (d, n), is_kept=self._done > 0)}
        if self.value_dtype:
            files[VALUES] = writer.rows(VALUES, self.value_dtype, (d, n), is_kept=self._done > 0)
        if not self._done:
            writer.save(key, self.state(0))
        saved, at = time.monotonic(), self._start[:-1].copy()
        for rows in reader:
            if self._done and rows.batch >= self._done:
                self._check_done(at)
            by_class = self._take(rows, at, workers)
            if rows.batch >= self._done:
                self._encode(rows, by_class, at, files, workers)
            at += [len(listed) for listed in by_class]
            if rows.batch >= self._done and time.monotonic() - saved > SECONDS:
                for file in files.values():
                    file.flush()
                self._at = at
                writer.save(key, self.state(rows.batch + 1))
                saved = time.monotonic()
        if self._done:
            self._check_done(at)
        if (self._seen != self._content).any() or (at != self._start[1:]).any():
            raise ChangedError
        writer.keep()
        self._write_rest(writer)

    def _check_done(self, at: NDArray[np.int64]) -> None:
        """Raise StaleError if the batches differ from the batches that an earlier call encoded."""
        if self._read.digest() != self._was_read or (at != self._at).any():
            raise StaleError
        self._done = 0

    def _take(self, rows: BatchRows, at: NDArray[np.int64], workers: Workers) -> list[IntArray]:
        """Return the rows of each class, and store their targets and weights."""
        targets = None if len(self.classes) else as_targets(rows.y, len(rows.y))
        hashed = row_hashes(rows.values, targets, workers)[1]
        by_class = rows_by_class(rows.y, self.classes)
        sizes = np.array([len(listed) for listed in by_class])
        if (at + sizes > self._start[1:]).any():
            raise StaleError if self._done else ChangedError
        self._seen += sums_of_hashes(hashed, by_class)
        self._read.update(hashed.tobytes())
        for listed in by_class:
            self._read.update(listed.tobytes())
        if targets is not None:
            if self._targets is None:
                self._targets = np.empty(int(self._start[-1]))
            self._targets[at[0] : at[0] + len(targets)] = targets
        if rows.weights is not None:
            self._read.update(rows.weights.tobytes())
            if self._weights is None:
                self._weights = np.empty(int(self._start[-1]))
            for first, listed in zip(at.tolist(), by_class, strict=True):
                self._weights[first : first + len(listed)] = rows.weights[listed]
        return by_class

    def _encode(
        self,
        rows: BatchRows,
        by_class: list[IntArray],
        at: Any,
        files: Mapping[str, RowsFile],
        workers: Workers,
    ) -> None:
        gather = partial(binning.gather_columns, rows.values)
        numbered = np.arange(len(rows.values), dtype=np.int32)
        part_codes, ends = code_rows(gather, numbered, self.bins, workers)
        self._ends = joined_ends([self._ends, ends], self.bins.n_features)
        for first, listed in zip(at.tolist(), by_class, strict=True):
            for j in range(self.bins.n_features):
                files[CODES].put(j, first, part_codes[j, listed])
                if VALUES in files:
                    files[VALUES].put(j, first, rows.values[listed, j])

    def _write_rest(self, writer: Writer) -> None:
        bins, table = self.bins, self.bins.table
        none = np.empty((bins.n_features, 0), dtype=np.uint8)
        columns = with_ends(none, self._ends, None if table is None else table.n_levels, bins)
        for name in ("n_bins", "lower", "upper", "bin_start", "special"):
            if (array := getattr(columns, name)) is not None:
                writer.array(name, array)
        if table is not None:
            for name, array in table.members().items():
                writer.array(name, array)
        writer.array("classes", self.classes)
        writer.array("class_count", self._count[: len(self.classes)])
        if self._targets is not None:
            writer.array("targets", self._targets)
        if self._weights is not None:
            writer.array("weights", self._weights)


def state_key(
    bin_edges: str,
    max_bins: int,
    target: str | None,
    weight: str | None,
    keep_values: bool,
    task: str | None,
) -> str:
    """Return a key of the options; a call can resume another call with the same key."""
    return json.dumps([__version__, bin_edges, max_bins, target, weight, keep_values, task])


def rows_by_class(y: Array, classes: Array) -> list[IntArray]:
    """Return the rows of each class in table order, or all rows in a regression."""
    if not len(classes):
        return [np.arange(len(y), dtype=np.int32)]
    if len(classes) == 1:
        return [np.flatnonzero(y == classes[0]).astype(np.int32)]
    label = codes_among(y, classes)
    return [np.flatnonzero(label == k).astype(np.int32) for k in range(len(classes))]


def row_hashes(
    values: Array, targets: FloatArray | None, workers: Workers
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Hash the features of each row, and the features with the target; return both hashes."""
    numbered = np.arange(len(values), dtype=np.int32)
    hashed, _ = hashed_rows(values, numbered, workers)
    if targets is None:
        return hashed, hashed
    target_hash, _ = hashed_rows(targets[:, None], numbered, workers)
    return hashed, (hashed + np.uint64(1)) * (target_hash | np.uint64(1))


def sums_of_hashes(hashed: NDArray[np.uint64], parts: list[IntArray]) -> NDArray[np.uint64]:
    """Return the sum of the hashes of each list of rows."""
    return np.array([hashed[rows].sum() for rows in parts], dtype=np.uint64)
