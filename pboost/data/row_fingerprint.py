"""Digest of training rows, to detect whether new rows are among them.

The digest contains the `MOST` smallest hashes of the distinct rows (a bottom-k sketch [1]_). If the
hash of a new row is in the range of the digest, the row was in the training data exactly if the
digest contains its hash. Each entry has 64 bits: 16 bits of a hash of the first columns, 32 bits of
a hash of all columns, and the count of the row, at most 65,535. Hashing the first columns is enough
to exclude most rows.

References
----------
.. [1] E. Cohen and H. Kaplan, "Summarizing data using bottom-k sketches", PODC (2007).
.. [2] I. J. Good, "The population frequencies of species and the estimation of population
   parameters", Biometrika 40 (1953).
"""

from __future__ import annotations

import math
from functools import reduce
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import binning
from pboost.data.columns.columns import SortedColumns
from pboost.data.read.convert import Features
from pboost.threads import run_ranges
from pboost.values import FloatArray, Floats, IntArray

Digest: TypeAlias = NDArray[np.uint64]
#: Maximum number of distinct rows in a digest. A digest of this size takes one kilobyte.
MOST = 128
COUNT_BITS = np.uint64(16)
MOST_COUNT = np.uint64(2**16 - 1)
#: Number of columns in the first hash, and number of possible values of this hash.
FIRST, COARSE = 2, 2**16


class DigestOverlap(NamedTuple):
    """Number of rows compared with a digest, and number of rows found in it.

    The digest represents `rows` training rows, of which `repeated` have duplicates.
    """

    n_found: int
    compared: int
    repeated: int
    rows: int

    @property
    def natural(self) -> float:
        """Good-Turing estimate [2]_ of the fraction of new rows that occur in training by chance.

        The estimate is the fraction of training rows with duplicates.
        """
        return self.repeated / self.rows if self.rows else 0.0


def digest_of(columns: object, weights: FloatArray | None) -> Digest | None:
    """Return the digest of the rows of positive weight, or None if the values are not kept."""
    if isinstance(columns, Features):
        values, rows = columns.values, None
    elif isinstance(columns, SortedColumns):
        values, rows = columns.source, columns.rows
    else:
        return None
    if weights is not None:
        kept = np.flatnonzero(weights > 0).astype(np.int32)
        rows = kept if rows is None else rows[kept]
    return digest_of_rows(values, rows)


def digest_of_rows(values: Floats, rows: IntArray | None = None) -> Digest:
    """Return the digest of rows of a matrix. The default is all rows.

    Only rows with small hashes of the first columns are read completely.
    """
    if rows is None:
        rows = np.arange(len(values), dtype=np.int32)
    coarse, share = _coarse(values, rows), 2 * MOST / max(len(rows), 1)
    while True:
        few = np.flatnonzero(coarse < math.ceil(share * COARSE)) if share < 1 else slice(None)
        result = digest(_joined(coarse[few], values, rows[few]))
        if len(result) >= MOST or share >= 1:
            return result
        share *= 8


def hashes(values: Floats) -> Digest:
    """Return the hashes of the rows of a matrix (n, d)."""
    rows = np.arange(len(values), dtype=np.int32)
    return _joined(_coarse(values, rows), values, rows)


def _coarse(values: Floats, rows: IntArray) -> Digest:
    hashed = _hashed(values[:, :FIRST], rows)
    hashed >>= np.uint64(48)
    return hashed


def _joined(coarse: Digest, values: Floats, rows: IntArray) -> Digest:
    """Combine the hashes of the first columns with the hashes of all columns."""
    fine = _hashed(values, rows)
    fine >>= np.uint64(32)
    fine |= coarse << np.uint64(32)
    return fine


def _hashed(values: Floats, rows: IntArray) -> Digest:
    hashed, d = np.empty(len(rows), dtype=np.uint64), values.shape[1]

    def work(first: int, last: int) -> None:
        key = np.empty(d, dtype=np.uint64)
        binning.hash_rows(values, rows[first:last], key, hashed[first:last])

    run_ranges(work, len(rows), cells=d)
    return hashed


def digest(hashed: Digest) -> Digest:
    """Return the digest of rows, given their hashes."""
    distinct, count = np.unique(hashed, return_counts=True)
    counts = np.minimum(count[:MOST].astype(np.uint64), MOST_COUNT)
    kept: Digest = (distinct[:MOST] << COUNT_BITS) | counts
    return kept


def merged(*digests: Digest | None) -> Digest | None:
    """Merge digests. Return None if there are no digests.

    Counts of a row are not added, because the digests may come from the same table.
    """
    known = [item for item in digests if item is not None]
    return reduce(_both, known) if known else None


def _both(first: Digest, second: Digest) -> Digest:
    every = np.sort(np.concatenate([first, second]))
    hashed = every >> COUNT_BITS
    is_last = np.append(hashed[1:] != hashed[:-1], True)[: len(every)]  # has the largest count
    return every[is_last][:MOST]


def seen_among(digest: Digest, hashed: Digest) -> DigestOverlap:
    """Count the rows, given by their hashes, that occur in a digest."""
    kept, count = digest >> COUNT_BITS, digest & MOST_COUNT
    if len(kept) >= MOST:
        hashed = hashed[hashed <= kept[-1]]
    n_seen = int(np.isin(hashed, kept).sum())
    once, rows = int((count == 1).sum()), int(count.sum())
    return DigestOverlap(n_seen, len(hashed), rows - once, rows)
