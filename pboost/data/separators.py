"""Separators: sums of stumps, as inputs of a model's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost._core import derived
from pboost.data.node_inputs import StoredInputs
from pboost.threads import Workers
from pboost.values import FloatArray, IntArray, freeze

#: Members of a model file: what they hold here, and their dtype there.
MEMBERS: dict[str, tuple[str, np.dtype[Any]]] = {
    "separator_start": ("start", np.dtype("<i4")),
    "separator_feature": ("feature", np.dtype("<i4")),
    "separator_threshold": ("threshold", np.dtype("<f8")),
    "separator_vote": ("vote", np.dtype("<f8")),
}
#: What the kernels read.
Tables = tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray, FloatArray | None]


@dataclass(frozen=True, slots=True, eq=False)
class Separators(StoredInputs):
    """Sums of stumps: number k of a row is the sum of the votes of its stumps.

    These are ``start[k]`` to ``start[k + 1] - 1``. For evaluation the stumps on one column are
    collapsed into one piecewise constant function of it.

    Attributes
    ----------
    start : ndarray of int32, shape (n_inputs + 1,)
        First stump of each separator, closed by the number of stumps.
    feature : ndarray of int32, shape (stumps,)
        Columns of X.
    threshold : ndarray of float64, shape (stumps,)
        What they are compared with.
    vote : ndarray of float64, shape (stumps, 2)
        Votes of ``x <= threshold`` and of ``x > threshold``.
    missing : ndarray of uint8, shape (stumps,), or None
        Which of the votes a missing value has. None: missing values are refused.
    """

    stored: ClassVar = MEMBERS
    none: ClassVar = (np.empty(0), np.empty(0), np.empty((0, 2)))
    of_missing: ClassVar = ("missing", "separator_missing")

    start: IntArray
    feature: IntArray
    threshold: FloatArray
    vote: FloatArray
    missing: NDArray[np.uint8] | None = None
    _tables: Tables | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        StoredInputs.__post_init__(self)
        if self.missing is not None:
            object.__setattr__(self, "missing", freeze(self.missing, np.uint8))

    def taking(self, sources: Sequence[tuple[Separators, slice]]) -> Separators:
        """Return these sums with the sides of missing values of the stumps that they have."""
        found: list[NDArray[np.uint8]] = []
        for one, part in sources:
            if one.missing is None:
                return self
            found.append(one.missing[part])
        return replace(self, missing=np.concatenate(found)) if found else self

    def digits(self) -> bytes | None:
        """Return the sides of missing values, eight to a byte."""
        return None if self.missing is None else np.packbits(self.missing).tobytes()

    @classmethod
    def from_digits(cls, digits: bytes, n_terms: int) -> NDArray[np.uint8]:
        """Return the sides of missing values."""
        return np.unpackbits(np.frombuffer(digits, np.uint8))[:n_terms]

    @property
    def stumps(self) -> IntArray:
        """Number of stumps of each separator."""
        return np.diff(self.start)

    def validate(self, n_features: int) -> None:
        """Raise ValueError if these cannot be made of rows with this many columns."""
        start, feature, threshold, vote = self.arrays()
        m = len(feature) if feature.ndim else 0
        if not start.ndim == feature.ndim == 1 or threshold.shape != (m,) or not len(start):
            raise ValueError("separators: expected start (k + 1,), feature, threshold (stumps,)")
        if vote.shape != (m, 2):
            raise ValueError(f"separators.vote: expected shape ({m}, 2), got {vote.shape}")
        self.check_terms(n_features)
        if self.missing is not None and not (
            self.missing.shape == (m,) and self.missing.max(initial=0) <= 1
        ):
            raise ValueError(f"separators.missing: expected {m} sides, 0 or 1")
        if m and np.abs(vote).max() > np.finfo(np.float64).max / m:
            raise ValueError("separators.vote: expected numbers of which sums are finite")

    def tables(self) -> Tables:
        """Return the collapsed functions, as the kernels take them (``_separate.pxd``)."""
        if self._tables is None:
            object.__setattr__(self, "_tables", self._collapsed())
        assert self._tables is not None
        return self._tables

    def _collapsed(self) -> Tables:
        column, edges, values, missing, start = [], [], [], [], [0]
        for a, b in pairwise(self.start.tolist()):
            for j in np.unique(self.feature[a:b]):
                stumps = a + np.flatnonzero(self.feature[a:b] == j)
                edge, value = _steps(self.threshold[stumps], self.vote[stumps])
                column.append(j)
                edges.append(edge)
                values.append(value)
                if self.missing is not None:
                    missing.append(sum(self.vote[stumps, self.missing[stumps]].tolist()))
            start.append(len(column))
        first = np.cumsum([0, *map(len, edges)])
        return (
            np.array(start, dtype=np.int32),
            np.array(column, dtype=np.int32),
            first.astype(np.int32),
            np.concatenate([[], *edges]),
            np.concatenate([[], *values]),
            None if self.missing is None else np.array(missing, dtype=np.float64),
        )

    def values(self, X: NDArray[Any]) -> FloatArray:
        """Return the sums of rows X (n, d), float64 or float32, as (n, n_inputs)."""
        rows = np.arange(len(X), dtype=np.int32)
        with Workers(None, len(X) * self.n_inputs) as workers:
            return self.at(X, rows, workers)

    def at(self, X: NDArray[Any], rows: IntArray, workers: Workers | None = None) -> FloatArray:
        """Return the sums of the listed rows, (rows, n_inputs)."""
        out = np.empty((len(rows), self.n_inputs))
        tables = self.tables()

        def work(first: int, last: int) -> None:
            derived.separate_rows(X, rows[first:last], *tables, out[first:last])

        (workers or Workers(1)).run(work, len(rows), cells=10 * len(tables[1]))
        return out

    def columns_read(self) -> tuple[IntArray, IntArray]:
        """Return the columns of X that number k reads, as ``index[start[k]:start[k + 1]]``."""
        return self.tables()[:2]

    def sizes(self, spread: FloatArray | None) -> FloatArray:
        """Return how far apart the largest and the least sum of the stumps on a column lie."""
        _, column, first, _, values, _ = self.tables()
        at = first[:-1] + np.arange(len(column))  # a function has one value more than edges
        width: FloatArray = np.maximum.reduceat(values, at) - np.minimum.reduceat(values, at)
        return width

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return each separator as its number and size."""
        n_columns = np.diff(self.columns_read()[0]).tolist()
        sizes = zip(self.stumps.tolist(), n_columns, strict=True)
        return tuple(
            f"separator {k} ({_count(m, 'stump')}, {_count(d, 'column')})"
            for k, (m, d) in enumerate(sizes)
        )

    def projected(self, sigma: FloatArray) -> FloatArray:
        """Refuse: answers of separators are never gaussian."""
        raise ValueError("sigma: expected none for a model of separators")


def _steps(threshold: FloatArray, vote: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the edges and values of the sum of stumps on one column."""
    edge, position = np.unique(threshold, return_inverse=True)
    value = np.zeros(len(edge) + 1)
    for at, (below, above) in zip(position.tolist(), vote.tolist(), strict=True):
        value[: at + 1] += below
        value[at + 1 :] += above
    return edge, value


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")
