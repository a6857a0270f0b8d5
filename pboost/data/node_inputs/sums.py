"""Node inputs that are sums: projections (of features) and separators (of stumps)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost._core import derived
from pboost.data.node_inputs.imputation import column_ends, column_moments
from pboost.data.node_inputs.inputs import StoredInputs
from pboost.threads import Workers, run_ranges
from pboost.values import FloatArray, Floats, IntArray, first_false, freeze

#: Arrays in a model file: field and dtype of each.
PROJECTION_MEMBERS: dict[str, tuple[str, np.dtype[np.generic]]] = {
    "projection_start": ("start", np.dtype("<i4")),
    "projection_index": ("index", np.dtype("<i4")),
    "projection_coefficient": ("coefficient", np.dtype("<f8")),
}
#: Standard deviations are rounded to this number of bits, so that rounding errors of sums do not
#: change the projections.
SCALE_BITS = 30


@dataclass(frozen=True, slots=True, eq=False)
class Projections(StoredInputs):
    """Linear combinations of features: input k is the sum of ``coefficient[t] * x[index[t]]``.

    The terms t are ``start[k]`` to ``start[k + 1] - 1``, added in this order.

    Attributes
    ----------
    start : ndarray of int32, shape (n_inputs + 1,)
        First term of each projection, followed by the number of terms.
    index : ndarray of int32, shape (terms,)
        Feature of each term.
    coefficient : ndarray of float64, shape (terms,)
        Coefficient of each term.
    fill : ndarray of float64, shape (n_features,), or None
        Imputed value of each feature: the weighted mean of its known values in training. None if
        missing values are not supported.
    """

    stored: ClassVar = PROJECTION_MEMBERS
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
        """Return start, index, coefficient and fill, for the kernels."""
        return self.start, self.index, self.coefficient, self.fill

    def taking(self, sources: Sequence[tuple[Projections, slice]]) -> Projections:
        """Return these projections, with the fill values copied from `sources`."""
        return replace(self, fill=sources[0][0].fill) if sources else self

    def digits(self) -> bytes | None:
        """Return the bytes of the fill values."""
        return None if self.fill is None else self.fill.astype("<f8").tobytes()

    @classmethod
    def from_digits(cls, digits: bytes, n_terms: int) -> FloatArray:
        """Return the fill values."""
        return np.frombuffer(digits, "<f8").astype(np.float64)

    def validate(self, n_features: int) -> None:
        """Raise ValueError if these projections are invalid for this number of features."""
        start, index, coefficient = self.arrays()
        if not start.ndim == index.ndim == 1 or coefficient.shape != index.shape or not len(start):
            raise ValueError("projections: expected start (k + 1,), index and coefficient (terms,)")
        self.check_terms(n_features)
        if self.fill is not None and not (
            self.fill.shape == (n_features,) and np.isfinite(self.fill).all()
        ):
            raise ValueError(f"projections.fill: expected {n_features} finite numbers")

    def values(self, X: Floats) -> FloatArray:
        """Return the projections of rows X (n, d), float64 or float32, as (n, n_inputs)."""
        out = np.empty((len(X), self.n_inputs))

        def work(first: int, last: int) -> None:
            rows = np.arange(first, last, dtype=np.int32)
            derived.project_rows(X, rows, *self.tables(), 0, out[first:last])

        run_ranges(work, len(X), cells=len(self.index) + self.n_inputs, total=out.size)
        return out

    def gather(self, X: Floats, rows: IntArray, first: int, columns: FloatArray) -> None:
        """Write projections first, first + 1, ... of rows to the rows of `columns`."""
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
                f"X: expected numbers with finite sums, got numbers that are too large in columns "
                f"{columns_read}"
            )

    def pairs(self, X: Floats, rows: IntArray, which: IntArray) -> FloatArray:
        """Return the values at pairs of rows and projections, elementwise."""
        out = np.empty(len(rows))
        derived.project_pairs(X, rows, which, *self.tables(), out)
        return out

    def at(self, X: Floats, rows: IntArray, workers: Workers | None = None) -> FloatArray:
        """Return the projections (rows, n_inputs) of selected rows."""
        out = np.empty((len(rows), self.n_inputs))
        derived.project_rows(X, rows, *self.tables(), 0, out)
        return out

    def projected(self, sigma: FloatArray) -> FloatArray:
        """Return the standard deviations (..., n_inputs) of the projections of independent errors.

        `sigma` (..., d) are the standard deviations of the features.
        """
        terms, first = sigma[..., self.index] * self.coefficient, self.start[:-1]
        with np.errstate(over="ignore", under="ignore"):
            deviation: FloatArray = np.sqrt(np.add.reduceat(terms**2, first, axis=-1))
        smallest, largest = 1e-140, 1e140  # outside this range, squares underflow or overflow
        if deviation.min(initial=1.0) < smallest or deviation.max(initial=1.0) > largest:
            slow = np.hypot.reduceat(np.abs(terms), first, axis=-1)
            deviation = np.where((deviation < smallest) | (deviation > largest), slow, deviation)
        return deviation

    def columns_read(self) -> tuple[IntArray, IntArray]:
        """Return start and index; input k has the features ``index[start[k]:start[k + 1]]``."""
        return self.start, self.index

    def sizes(self, spread: FloatArray | None) -> FloatArray:
        """Return |coefficient| * spread. Without `spread`, return 1 for nonzero coefficients."""
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
        """Return features and coefficients of each projection as bytes, for exact comparison."""
        return [
            (self.index[a:b].tobytes(), self.coefficient[a:b].tobytes())
            for a, b in pairwise(self.start.tolist())
        ]


def single_columns(n_features: int) -> Projections:
    """Return one projection per feature, equal to the feature."""
    return Projections.of_terms([[j] for j in range(n_features)], [[1.0]] * n_features)


def grid_of_directions(directions: int) -> Projections:
    """Return projections of two features in evenly spaced directions of the half circle.

    Direction k has the angle ``k * pi / directions``.
    """
    n = directions
    # Use sines of angles up to a right angle, so that axes, diagonals and reflections are exact.
    pairs = [
        (math.sin(math.pi * ((n - 2 * k) / (2 * n))), math.sin(math.pi * (min(k, n - k) / n)))
        for k in range(n)
    ]
    index = [[j for j in (0, 1) if pair[j]] for pair in pairs]
    return Projections.of_terms(index, [[c for c in pair if c] for pair in pairs])


def random_directions(
    scale: FloatArray, directions: int, terms: int, generator: np.random.Generator
) -> Projections:
    """Return all single features, then random directions of `terms` distinct features each.

    `scale` (d,) is the unit of each feature. Constant features have scale 0 and are not drawn.
    """
    d, varying = len(scale), np.flatnonzero(scale)
    terms = min(terms, len(varying))
    index: list[Any] = [[j] for j in range(d)]
    coefficient: list[Any] = [[1.0]] * d
    for _ in range(directions if terms > 1 else 0):
        columns = np.sort(generator.choice(varying, size=terms, replace=False))
        normal = generator.standard_normal(terms)
        # Opposite directions give the same splits. Make the first term positive.
        normal /= math.copysign(math.hypot(*normal), normal[0])
        index.append(columns)
        coefficient.append(normal / scale[columns])
    return Projections.of_terms(index, coefficient)


def standard_deviations(X: Floats, rows: IntArray, weights: FloatArray | None) -> FloatArray:
    """Return the rounded weighted standard deviation of the known values of each column."""
    lowest, highest = column_ends(X, rows)
    # Scale by the largest deviation, because its square could overflow.
    middle = lowest / 2 + highest / 2
    unit = np.maximum(highest - middle, middle - lowest)
    scale, unit = np.zeros(len(unit)), np.where(unit, unit, 1.0)
    mean = _means_of(column_moments(X, rows, weights, middle, unit))[0]
    mean = np.clip(middle + mean * unit, lowest, highest)
    with np.errstate(over="ignore"):
        is_near = np.isfinite(highest - mean) & np.isfinite(mean - lowest)
    origin = np.where(is_near, mean, middle)
    rest, square = _means_of(column_moments(X, rows, weights, origin, unit))
    for j, variance in enumerate(np.clip(square - rest**2, 0.0, 1.0).tolist()):
        mantissa, exponent = math.frexp(float(unit[j]) * math.sqrt(variance))
        half = math.ldexp(round(math.ldexp(mantissa, SCALE_BITS)), exponent - SCALE_BITS - 1)
        rounded = 2 * min(half, np.finfo(np.float64).max / 2)  # rounding up must not overflow
        # The reciprocal of a subnormal number could overflow.
        scale[j] = rounded if rounded > np.finfo(np.float64).tiny else 0.0
    return scale


def _means_of(moments: FloatArray) -> FloatArray:
    """Return the first and second moments from the sums; 0 if the total weight is 0."""
    return moments[1:] / np.where(moments[0], moments[0], 1.0)


def _term(coefficient: float, name: str) -> str:
    """Return a term with its sign."""
    size = abs(coefficient)
    return f"{'-' if coefficient < 0 else '+'} " + (name if size == 1 else f"{size:.4g}*{name}")


def _without_plus(terms: list[str]) -> list[str]:
    """Remove the plus sign, or the space after a minus sign, before the first term."""
    first = terms[0].removeprefix("+ ").replace("- ", "-", 1) if terms else ""
    return [first, *terms[1:]]


#: Arrays in a model file: field and dtype of each.
SEPARATOR_MEMBERS: dict[str, tuple[str, np.dtype[np.generic]]] = {
    "separator_start": ("start", np.dtype("<i4")),
    "separator_feature": ("feature", np.dtype("<i4")),
    "separator_threshold": ("threshold", np.dtype("<f8")),
    "separator_vote": ("vote", np.dtype("<f8")),
}
#: Types of the arrays for the kernels.
SeparatorArrays = tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray, FloatArray | None]


@dataclass(frozen=True, slots=True, eq=False)
class Separators(StoredInputs):
    """Sums of stumps: input k is the sum of the votes of its stumps.

    The stumps are ``start[k]`` to ``start[k + 1] - 1``. For evaluation, the stumps on a feature are
    merged into a piecewise constant function.

    Attributes
    ----------
    start : ndarray of int32, shape (n_inputs + 1,)
        First stump of each separator, followed by the number of stumps.
    feature : ndarray of int32, shape (stumps,)
        Feature of each stump.
    threshold : ndarray of float64, shape (stumps,)
        Threshold of each stump.
    vote : ndarray of float64, shape (stumps, 2)
        Votes for ``x <= threshold`` and for ``x > threshold``.
    missing : ndarray of uint8, shape (stumps,), or None
        Vote (0 or 1) for missing values. None if missing values are not supported.
    """

    stored: ClassVar = SEPARATOR_MEMBERS
    none: ClassVar = (np.empty(0), np.empty(0), np.empty((0, 2)))
    of_missing: ClassVar = ("missing", "separator_missing")

    start: IntArray
    feature: IntArray
    threshold: FloatArray
    vote: FloatArray
    missing: NDArray[np.uint8] | None = None
    _tables: SeparatorArrays | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        StoredInputs.__post_init__(self)
        if self.missing is not None:
            object.__setattr__(self, "missing", freeze(self.missing, np.uint8))

    def taking(self, sources: Sequence[tuple[Separators, slice]]) -> Separators:
        """Return these separators, with the votes for missing values copied from `sources`."""
        sides: list[NDArray[np.uint8]] = []
        for source, part in sources:
            if source.missing is None:
                return self
            sides.append(source.missing[part])
        return replace(self, missing=np.concatenate(sides)) if sides else self

    def digits(self) -> bytes | None:
        """Return the votes for missing values, packed into bits."""
        return None if self.missing is None else np.packbits(self.missing).tobytes()

    @classmethod
    def from_digits(cls, digits: bytes, n_terms: int) -> NDArray[np.uint8]:
        """Unpack the votes for missing values."""
        return np.unpackbits(np.frombuffer(digits, np.uint8))[:n_terms]

    @property
    def stumps(self) -> IntArray:
        """Number of stumps of each separator."""
        return np.diff(self.start)

    def validate(self, n_features: int) -> None:
        """Raise ValueError if these separators are invalid for this number of features."""
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
            raise ValueError(f"separators.missing: expected {m} numbers, 0 or 1")
        if m and np.abs(vote).max() > np.finfo(np.float64).max / m:
            raise ValueError("separators.vote: expected numbers with finite sums")

    def tables(self) -> SeparatorArrays:
        """Return the merged functions for the kernels (``_separate.pxd``)."""
        if self._tables is None:
            object.__setattr__(self, "_tables", self._collapsed())
        assert self._tables is not None
        return self._tables

    def _collapsed(self) -> SeparatorArrays:
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

    def values(self, X: Floats) -> FloatArray:
        """Return the sums of rows X (n, d), float64 or float32, as (n, n_inputs)."""
        rows = np.arange(len(X), dtype=np.int32)
        with Workers(None, len(X) * self.n_inputs) as workers:
            return self.at(X, rows, workers)

    def at(self, X: Floats, rows: IntArray, workers: Workers | None = None) -> FloatArray:
        """Return the sums (rows, n_inputs) of selected rows."""
        out = np.empty((len(rows), self.n_inputs))
        tables = self.tables()

        def work(first: int, last: int) -> None:
            derived.separate_rows(X, rows[first:last], *tables, out[first:last])

        (workers or Workers(1)).run(work, len(rows), cells=10 * len(tables[1]))
        return out

    def columns_read(self) -> tuple[IntArray, IntArray]:
        """Return start and index; input k has the features ``index[start[k]:start[k + 1]]``."""
        return self.tables()[:2]

    def sizes(self, spread: FloatArray | None) -> FloatArray:
        """Return, for each feature, the range of the sum of its stumps."""
        _, column, first, _, values, _ = self.tables()
        at = first[:-1] + np.arange(len(column))  # n edges have n + 1 values
        width: FloatArray = np.maximum.reduceat(values, at) - np.minimum.reduceat(values, at)
        return width

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return a text with the index and the number of stumps of each separator."""
        n_columns = np.diff(self.columns_read()[0]).tolist()
        sizes = zip(self.stumps.tolist(), n_columns, strict=True)
        return tuple(
            f"separator {k} ({_count(m, 'stump')}, {_count(d, 'column')})"
            for k, (m, d) in enumerate(sizes)
        )

    def projected(self, sigma: FloatArray) -> FloatArray:
        """Raise ValueError, because separators do not support standard deviations."""
        raise ValueError("sigma: expected None for a model of separators")


def _steps(threshold: FloatArray, vote: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the edges and values of the sum of stumps on one feature."""
    edge, position = np.unique(threshold, return_inverse=True)
    value = np.zeros(len(edge) + 1)
    for at, (below, above) in zip(position.tolist(), vote.tolist(), strict=True):
        value[: at + 1] += below
        value[at + 1 :] += above
    return edge, value


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")
