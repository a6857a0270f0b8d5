"""Projections: sums of a few columns, each times a coefficient, as inputs of a model's nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost._core import derived
from pboost.data.fill import column_ends, column_moments
from pboost.data.node_inputs import StoredInputs
from pboost.threads import Workers, run_ranges
from pboost.values import FloatArray, IntArray, first_false, freeze

#: Members of a model file: what they hold here, and their dtype there.
MEMBERS: dict[str, tuple[str, np.dtype[Any]]] = {
    "projection_start": ("start", np.dtype("<i4")),
    "projection_index": ("index", np.dtype("<i4")),
    "projection_coefficient": ("coefficient", np.dtype("<f8")),
}
#: Bits of a column's standard deviation that are kept, so that sums that differ in rounding give
#: the same projections.
SCALE_BITS = 30


@dataclass(frozen=True, slots=True, eq=False)
class Projections(StoredInputs):
    """Sums of columns: number k of a row is the sum of ``coefficient[t] * x[index[t]]``.

    Its terms t are ``start[k]`` to ``start[k + 1] - 1``, added up in this order.

    Attributes
    ----------
    start : ndarray of int32, shape (n_inputs + 1,)
        First term of each projection, closed by the number of terms.
    index : ndarray of int32, shape (terms,)
        Columns of X.
    coefficient : ndarray of float64, shape (terms,)
        Their coefficients.
    fill : ndarray of float64, shape (n_features,), or None
        What a missing value of each column counts as: the weighted mean of its known values in
        training. None: missing values are refused.
    """

    stored: ClassVar = MEMBERS
    none: ClassVar = (np.empty(0), np.empty(0))
    of_missing: ClassVar = ("fill", "projection_fill")

    start: IntArray
    index: IntArray
    coefficient: FloatArray
    fill: FloatArray | None = None

    def __post_init__(self) -> None:
        StoredInputs.__post_init__(self)
        if self.fill is not None:
            object.__setattr__(self, "fill", freeze(self.fill, np.float64))

    def arrays(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return start, index and coefficient."""
        return self.start, self.index, self.coefficient

    def tables(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray | None]:
        """Return start, index, coefficient and fill, as the kernels take them."""
        return self.start, self.index, self.coefficient, self.fill

    def taking(self, sources: Sequence[tuple[Projections, slice]]) -> Projections:
        """Return these sums with the fill of those whose terms they have."""
        return replace(self, fill=sources[0][0].fill) if sources else self

    def digits(self) -> bytes | None:
        """Return the bytes of the fill."""
        return None if self.fill is None else self.fill.astype("<f8").tobytes()

    @classmethod
    def from_digits(cls, digits: bytes, n_terms: int) -> FloatArray:
        """Return the fill."""
        return np.frombuffer(digits, "<f8").astype(np.float64)

    def validate(self, n_features: int) -> None:
        """Raise ValueError if these cannot be made of rows with this many columns."""
        start, index, coefficient = self.arrays()
        if not start.ndim == index.ndim == 1 or coefficient.shape != index.shape or not len(start):
            raise ValueError("projections: expected start (k + 1,), index and coefficient (terms,)")
        self.check_terms(n_features)
        if self.fill is not None and not (
            self.fill.shape == (n_features,) and np.isfinite(self.fill).all()
        ):
            raise ValueError(f"projections.fill: expected {n_features} finite numbers")

    def values(self, X: NDArray[Any]) -> FloatArray:
        """Return the projections of rows X (n, d), float64 or float32, as (n, n_inputs)."""
        out = np.empty((len(X), self.n_inputs))

        def work(first: int, last: int) -> None:
            rows = np.arange(first, last, dtype=np.int32)
            derived.project_rows(X, rows, *self.tables(), 0, out[first:last])

        run_ranges(work, len(X), cells=len(self.index) + self.n_inputs, total=out.size)
        return out

    def gather(self, X: NDArray[Any], rows: IntArray, first: int, columns: FloatArray) -> None:
        """Write projections first, first + 1, … of the listed rows to the rows of `columns`."""
        terms = int(self.start[first + len(columns)] - self.start[first])

        def work(start: int, stop: int) -> None:
            derived.project_rows(
                X, rows[start:stop], *self.tables(), first, columns[:, start:stop].T
            )

        Workers(1).run(work, len(rows), cells=terms)
        wrong = first_false(np.isfinite(columns).all(axis=1))
        if wrong >= 0:
            k = first + wrong
            columns_read = self.index[self.start[k] : self.start[k + 1]].tolist()
            raise ValueError(
                f"X: expected numbers of which sums are finite, got too large ones in columns "
                f"{columns_read}"
            )

    def pairs(self, X: NDArray[Any], rows: IntArray, which: IntArray) -> FloatArray:
        """Return one projection of each listed row, elementwise."""
        out = np.empty(len(rows))
        derived.project_pairs(X, rows, which, *self.tables(), out)
        return out

    def at(self, X: NDArray[Any], rows: IntArray, workers: Workers | None = None) -> FloatArray:
        """Return the projections of the listed rows, (rows, n_inputs)."""
        out = np.empty((len(rows), self.n_inputs))
        derived.project_rows(X, rows, *self.tables(), 0, out)
        return out

    def projected(self, sigma: FloatArray) -> FloatArray:
        """Return the standard deviations of the projections, (…, n_inputs), of independent errors.

        `sigma` (…, d) are those of the columns of X.
        """
        terms, first = sigma[..., self.index] * self.coefficient, self.start[:-1]
        with np.errstate(over="ignore", under="ignore"):
            found: FloatArray = np.sqrt(np.add.reduceat(terms**2, first, axis=-1))
        least, most = 1e-140, 1e140  # beyond them squares are inexact, 0 or infinite
        if found.min(initial=1.0) < least or found.max(initial=1.0) > most:
            slow = np.hypot.reduceat(np.abs(terms), first, axis=-1)
            found = np.where((found < least) | (found > most), slow, found)
        return found

    def columns_read(self) -> tuple[IntArray, IntArray]:
        """Return the columns of X that number k reads, as ``index[start[k]:start[k + 1]]``."""
        return self.start, self.index

    def sizes(self, spread: FloatArray | None) -> FloatArray:
        """Return |coefficient| times spread; without spreads, 1 where a coefficient is not 0."""
        if spread is None:
            return (self.coefficient != 0).astype(np.float64)
        with np.errstate(over="ignore"):
            size: FloatArray = np.abs(self.coefficient) * spread[self.index]
        return np.minimum(size, np.finfo(np.float64).max)

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return each projection as a sum, such as ``0.6*x[0] - 0.8*x[1]``."""
        terms = [_term(c, columns[j]) for j, c in zip(self.index, self.coefficient, strict=True)]
        ends = self.start.tolist()
        sums = (terms[a:b] for a, b in pairwise(ends))
        return tuple(" ".join(_without_plus(parts)) for parts in sums)

    def terms(self) -> list[tuple[bytes, bytes]]:
        """Return the columns and coefficients of each projection: equal where all bits are."""
        return [
            (self.index[a:b].tobytes(), self.coefficient[a:b].tobytes())
            for a, b in pairwise(self.start.tolist())
        ]


def single_columns(n_features: int) -> Projections:
    """Return the columns themselves as projections."""
    return Projections.of_terms([[j] for j in range(n_features)], [[1.0]] * n_features)


def grid_of_directions(directions: int) -> Projections:
    """Return the projections of two columns on directions that share out the half circle.

    Direction k has the angle ``k * pi / directions``.
    """
    n = directions
    # Sines of at most a quarter turn only: so axes, diagonals and mirror images come out exactly.
    pairs = [
        (math.sin(math.pi * ((n - 2 * k) / (2 * n))), math.sin(math.pi * (min(k, n - k) / n)))
        for k in range(n)
    ]
    index = [[j for j in (0, 1) if pair[j]] for pair in pairs]
    return Projections.of_terms(index, [[c for c in pair if c] for pair in pairs])


def random_directions(
    scale: FloatArray, directions: int, terms: int, generator: np.random.Generator
) -> Projections:
    """Return all single columns, then random directions of `terms` different columns each.

    `scale` (d,) is the unit of each column; columns of scale 0 are constant and not drawn.
    """
    d, varying = len(scale), np.flatnonzero(scale)
    terms = min(terms, len(varying))
    index: list[Any] = [[j] for j in range(d)]
    coefficient: list[Any] = [[1.0]] * d
    for _ in range(directions if terms > 1 else 0):
        columns = np.sort(generator.choice(varying, size=terms, replace=False))
        normal = generator.standard_normal(terms)
        # A direction and its opposite make the same cuts; this one is easier to read.
        normal /= math.copysign(math.hypot(*normal), normal[0])
        index.append(columns)
        coefficient.append(normal / scale[columns])
    return Projections.of_terms(index, coefficient)


def standard_deviations(X: NDArray[Any], rows: IntArray, weights: FloatArray | None) -> FloatArray:
    """Return the weighted standard deviation of each column of the listed rows, rounded.

    It is that of the values that are known, 0 where none is.
    """
    least, most = column_ends(X, rows)
    # In units of the largest distance, whose square need not be finite.
    middle = least / 2 + most / 2
    unit = np.maximum(most - middle, middle - least)
    scale, unit = np.zeros(len(unit)), np.where(unit, unit, 1.0)
    mean = _means_of(column_moments(X, rows, weights, middle, unit))[0]
    mean = np.clip(middle + mean * unit, least, most)
    with np.errstate(over="ignore"):
        is_near = np.isfinite(most - mean) & np.isfinite(mean - least)
    origin = np.where(is_near, mean, middle)
    rest, square = _means_of(column_moments(X, rows, weights, origin, unit))
    for j, variance in enumerate(np.clip(square - rest**2, 0.0, 1.0).tolist()):
        mantissa, exponent = math.frexp(float(unit[j]) * math.sqrt(variance))
        half = math.ldexp(round(math.ldexp(mantissa, SCALE_BITS)), exponent - SCALE_BITS - 1)
        rounded = 2 * min(half, np.finfo(np.float64).max / 2)  # rounding up must not overflow
        # The inverse of a smaller number is not finite.
        scale[j] = rounded if rounded > np.finfo(np.float64).tiny else 0.0
    return scale


def _means_of(moments: FloatArray) -> FloatArray:
    """Return the first and the second moment, given the sums; 0 where there is no weight."""
    return moments[1:] / np.where(moments[0], moments[0], 1.0)


def _term(coefficient: float, name: str) -> str:
    """Return one term, with its sign before it."""
    size = abs(coefficient)
    return f"{'-' if coefficient < 0 else '+'} " + (name if size == 1 else f"{size:.4g}*{name}")


def _without_plus(terms: list[str]) -> list[str]:
    """Return the terms of a sum without a plus, or a space after a minus, before the first."""
    first = terms[0].removeprefix("+ ").replace("- ", "-", 1) if terms else ""
    return [first, *terms[1:]]
