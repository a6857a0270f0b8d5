"""Fit stumps to rows in partitions.

The state of a partition depends only on its rows and the splits so far. It returns integer sums of
class weights at the bin edges, so the totals do not depend on the partitions or their order. A
partition that is created again reaches the same weights by applying the same splits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import split, voting
from pboost.data.columns.columns import GROUP, BinnedColumns, to_fixed_point
from pboost.data.columns.prebuilt import HOLES, is_heavier, most_bins
from pboost.data.read.check_xy import AbsentClassError
from pboost.data.resampling import HoldOut
from pboost.data.targets import CODES
from pboost.data.training_data import Problem, TrainingData
from pboost.distributed.engine import (
    Engine,
    check_size,
    class_sums,
    exact_parts,
    exact_sum,
    merge,
    scaled_sum,
    shared_scale,
    sum_of_weights,
)
from pboost.threads import Workers
from pboost.values import Array, FloatArray, IntArray
from pboost.weak.base import Weights, class_units
from pboost.weak.stump_search import Stump, StumpCut, StumpSearch

#: Criterion code for searches if only their sums are used.
_ANY_CUT = CODES["error"]
#: Fixed-point scale of the sums in `WeakSearch.side_masses`.
_SIDE_SCALE = 2.0**60
#: The kernel does not read weights, because their sums are passed.
_NO_WEIGHT = np.zeros(1, dtype=np.int64)
#: Columns, class codes and sample weights of a partition.
GraphShardInputs: TypeAlias = tuple[BinnedColumns, NDArray[np.uint8], FloatArray | None]


@dataclass(frozen=True, slots=True, eq=False)
class SentCut:
    """A split in the form that is sent to the partitions.

    Attributes
    ----------
    feature : int
        Feature of the split.
    side : ndarray of uint8, shape (256,)
        Branch (0 or 1) for each bin code.
    factors : ndarray of float64, shape (2, 2)
        Factors of the weights, by branch and class.
    """

    feature: int
    side: NDArray[np.uint8]
    factors: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Extent:
    """Totals of a partition that are needed to scale the weights.

    Attributes
    ----------
    n_class : tuple of int
        Number of rows with positive weight in each class.
    bin_count : ndarray of int64, shape (d, b)
        Number of rows in each bin.
    greatest : float
        Largest weight, or 0 if there are no rows.
    """

    n_class: tuple[int, ...]
    bin_count: NDArray[np.int64]
    greatest: float


class Shard:
    """Rows of a partition, ordered by class, and their current weights.

    Parameters
    ----------
    columns : BinnedColumns
        Rows in the common bins.
    label : ndarray of uint8, shape (n,)
        Class code of each row, 0 or 1.
    weights : ndarray of float64, shape (n,), or None
        Sample weights. Rows of weight 0 are dropped.
    workers : Workers
        Threads.
    """

    def __init__(
        self,
        columns: BinnedColumns,
        label: Array,
        weights: FloatArray | None,
        workers: Workers,
        n_classes: int = 2,
    ) -> None:
        self.workers, self._n_bins = workers, columns.n_bins
        self._bins = most_bins(columns.n_bins, columns.special)
        self._n_codes = columns.n_bins
        if columns.special is not None:
            self._n_codes = columns.n_bins + (columns.special & HOLES).astype(np.int32)
        is_in = np.ones(len(label), dtype=bool) if weights is None else weights > 0
        by_class = [np.flatnonzero(is_in & (label == k)).astype(np.int32) for k in range(n_classes)]
        rows = np.concatenate(by_class)
        self._n_class = tuple(len(of_class) for of_class in by_class)
        self._given = None if weights is None else weights[rows]
        self._n = len(rows)
        self._columns = columns.select(rows, workers.n_threads, all_rows=self._n == len(label))
        selected, self._codes = self._columns, self._columns.codes
        starts = selected.bin_start
        assert starts is not None
        # Zeros beyond the last bin of a feature.
        self._counts: NDArray[np.int64] = np.diff(starts, axis=1).clip(0).astype(np.int64)
        self._start: FloatArray | None = None
        self._seen, self._scale = 0, 1.0

    @staticmethod
    def merge(answers: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the sum of the results of `masses` of several partitions."""
        return merge(answers)

    def extent(self) -> Extent:
        """Return the class sizes, bin counts and largest weight."""
        greatest = 1.0 if self._given is None else float(self._given.max(initial=0.0))
        return Extent(self._n_class, self._counts, greatest)

    def scaled_sum(self, exponent: int, shift: int) -> tuple[int, bool]:
        """Return the fixed-point sum of the weights, and whether all weights are still positive.

        The weights are multiplied by ``2**-exponent``; the unit of the sum is ``2**-shift``.
        """
        assert self._given is not None
        return scaled_sum(self._given, slice(None), exponent, shift)

    def begin(self, exponent: int, scale: float) -> tuple[int, ...]:
        """Set the weights to their initial values times ``2**-exponent``.

        The result is the fixed-point sum of each class.
        """
        weights = self._given
        self._start = np.ones(self._n) if weights is None else np.ldexp(weights, -exponent)
        self._weight, self._scale, self._seen = self._start.copy(), scale, 0
        self._fixed = np.empty(self._n, dtype=np.int64)
        voting.to_fixed(self._weight, scale, self._fixed)
        self._mass = self._by_class(self._fixed)
        return self._mass

    def _by_class(self, fixed: NDArray[np.int64]) -> tuple[int, int]:
        middle = self._n_class[0]
        return int(fixed[:middle].sum()), int(fixed[middle:].sum())

    def masses(self, cuts: Sequence[SentCut]) -> NDArray[np.int64]:
        """Apply the new splits of the log and return sums of class weights.

        Returns
        -------
        ndarray of int64, shape (d, 2, b + 1)
            Fixed-point sum of each class to the left of each bin edge.
        """
        for cut in cuts[self._seen :]:
            self._mass = self._sent(cut, self._weight, self._weight, self._scale, self._fixed)
        self._seen = len(cuts)
        return self._edges(self._fixed, self._mass)

    def weight_sums(self) -> NDArray[np.int64]:
        """Return the initial weights of both classes for `exact_sum`."""
        assert self._start is not None
        return self._parts(self._start)

    def weight_sums_after(self, commands: Sequence[Any]) -> NDArray[np.int64]:
        """Apply the new splits of the log and return the current weights for `exact_sum`."""
        self.masses(commands)
        return self._parts(self._weight)

    def weight_sums_at(self, path: Sequence[Any], total: float) -> NDArray[np.int64]:
        """Return the weights at the end of a path for `exact_sum`, see `masses_at`."""
        return self._parts(self._at(path, total, 1.0)[0])

    def _parts(self, weights: FloatArray) -> NDArray[np.int64]:
        middle = self._n_class[0]
        return np.stack([exact_parts(weights[:middle]), exact_parts(weights[middle:])])

    def masses_at(self, path: Sequence[SentCut], total: float, scale: float) -> NDArray[np.int64]:
        """Return sums of class weights at the end of a path of a tree, see `masses`.

        The weights are recomputed from the initial ones, divided by `total`. Their unit is
        ``1 / scale``. Intermediate weights of the path may be larger than the scale allows.
        """
        fixed = self._at(path, total, scale)[1]
        return self._edges(fixed, self._by_class(fixed))

    def _at(
        self, path: Sequence[SentCut], total: float, scale: float
    ) -> tuple[FloatArray, NDArray[np.int64]]:
        """Return the weights at the end of a path, and their fixed-point values."""
        assert self._start is not None
        weight, fixed = self._start / total, np.empty(self._n, dtype=np.int64)
        voting.to_fixed(weight, scale if not path else 1.0, fixed)
        for k, cut in enumerate(path, 1):
            self._sent(cut, weight, weight, scale if k == len(path) else 1.0, fixed)
        return weight, fixed

    def _edges(self, fixed: NDArray[np.int64], masses: tuple[int, int]) -> NDArray[np.int64]:
        """Return the sums of fixed-point weights at the bin edges."""
        d, bins = len(self._n_bins), self._bins
        edge = np.zeros((d, 2, bins + 1), dtype=np.int64)
        if not self._n:
            return edge
        starts = np.zeros((d, bins + 1), dtype=np.int32)
        limits = _ANY_CUT, self._n, self._n_class[0], *masses, 0, 1
        bound, best, lowest = np.empty((d, bins)), np.empty(d), np.full(1, np.inf)
        order = np.empty((d, 0), dtype=np.int32)

        def search(first: int, last: int) -> None:
            split.search(
                self._codes,
                order,
                starts,
                self._n_codes,
                fixed,
                limits,
                edge,
                bound,
                best,
                lowest,
                first,
                last,
            )

        self.workers.run(search, d, GROUP, self._n)
        return edge

    def side_masses(self, cut: SentCut, unit: FloatArray) -> NDArray[np.int64]:
        """Return the initial class sums of all rows and of the rows on branch 0, shape (2, 2)."""
        assert self._start is not None
        return self._sides_of(self._start, cut, unit)

    def _sides_of(self, source: FloatArray, cut: SentCut, unit: FloatArray) -> NDArray[np.int64]:
        """Return the class sums of all rows and of the rows on branch 0, for weights `source`."""
        weight, fixed = np.empty(self._n), np.empty(self._n, dtype=np.int64)
        masses = []
        for factors in (np.stack([unit, unit]), np.stack([unit, 0 * unit])):
            sent = SentCut(cut.feature, cut.side, factors)
            masses.append(self._sent(sent, source, weight, _SIDE_SCALE, fixed))
        return np.array(masses, dtype=np.int64)

    def _sent(
        self,
        cut: SentCut,
        source: FloatArray,
        weight: FloatArray,
        scale: float,
        fixed: NDArray[np.int64],
    ) -> tuple[int, int]:
        """Write the weights after a split, and return the class sums."""

        def send(first: int, last: int) -> tuple[int, int]:
            return voting.reweight(
                self._codes[cut.feature],
                0,
                False,
                self._n_class[0],
                cut.factors,
                scale,
                source,
                weight,
                fixed,
                first,
                last,
                0,
                cut.side,
            )

        parts = self.workers.run(send, self._n) if self._n else []
        return sum(p[0] for p in parts), sum(p[1] for p in parts)


@dataclass(frozen=True, slots=True)
class Begun:
    """Initial weights of all partitions together.

    Attributes
    ----------
    exponent, scale : int, float
        See `TrainingData.weight_exponent` and `TrainingData.scale`.
    masses : tuple of int
        Fixed-point sum of each class.
    bin_start : ndarray of int32, shape (d, b + 1)
        Number of rows in lower bins, for each bin.
    """

    exponent: int
    scale: float
    masses: tuple[int, ...]
    bin_start: IntArray


def begin(engine: Engine, is_weighed: bool) -> Begun:
    """Set the initial weights of all partitions to the weights for one table with all rows.

    Raises
    ------
    ValueError
        If a class has no weight, there are more rows than int32 can count, or the range of the
        weights exceeds the precision of float64.
    """
    extents: list[Extent] = engine.ask("extent")
    n_class = np.sum([e.n_class for e in extents], axis=0).tolist()
    n = sum(n_class)
    check_size(n)
    if not all(n_class):
        which = "both classes" if len(n_class) == 2 else "every class"
        raise AbsentClassError(f"sample_weight: expected {which} to have positive weight")
    exponent = 0
    if is_weighed:
        greatest = max(e.greatest for e in extents)
        exponent, scale, are_positive = shared_scale(engine, n, greatest)
        if not are_positive:
            raise ValueError(
                "sample_weight: the weights differ by more than floating point can hold"
            )
    else:
        scale, _ = to_fixed_point(np.ones(1), n)
    masses = np.sum(engine.ask("begin", exponent, scale), axis=0).tolist()
    count = np.sum([e.bin_count for e in extents], axis=0)
    bin_start = np.zeros((count.shape[0], count.shape[1] + 1), dtype=np.int32)
    np.cumsum(count, axis=1, out=bin_start[:, 1:])
    return Begun(exponent, scale, tuple(masses), bin_start)


class ShardedSearch(StumpSearch):
    """Binned search for stumps from the class sums of partitions.

    `data` has one row per class, with the total weight of the class. Weights passed as arguments
    are not read, because the partitions store the weights.
    """

    def __init__(
        self, data: TrainingData, weak: Any, workers: Workers, generator: object = None
    ) -> None:
        super().__init__(data, weak, workers, generator)
        self.engine: Engine = weak.engine
        self._n_rows = int(self._bin_start[:, -1].max(initial=0))
        self._cuts: list[Any] = []
        self._first: NDArray[np.int64] | None = None  # sums at bin edges before the first split
        self._units = class_units(data.class_masses(), data.scale)

    @property
    def n_rows(self) -> int:
        """Number of rows in all partitions."""
        return self._n_rows

    def class_sums(self) -> tuple[float, float]:
        """Return the correctly rounded sums of the initial weights of both classes."""
        return class_sums(self.engine)

    def real_sum(self, weights: Weights | None = None) -> float:
        """Return the correctly rounded sum of the current or initial weights."""
        if weights is None:
            return sum_of_weights(self.engine)
        parts = merge(self.engine.ask("weight_sums_after", self._cuts))
        return exact_sum(parts.sum(axis=0))

    def best(self, weights: Weights) -> StumpCut | None:
        """Return the best stump for the current weights."""
        cut, weights.masses = self.choose(self.edges(weights))
        return self.located_cut(cut, weights)

    def edges(self, weights: Weights) -> NDArray[np.int64]:
        """Return the sums of all partitions at the bin edges."""
        edge = merge(self.engine.masses(self._cuts))
        if self._first is None:
            self._first = edge
        return edge

    def total_masses(self, edge: NDArray[np.int64]) -> tuple[int, int]:
        """Return the total of each class from merged sums."""
        last = int(self._columns.n_bins[0])
        if self._special is not None:
            last += int(self._special[0] & HOLES)
        return int(edge[0, 0, last]), int(edge[0, 1, last])

    def choose(
        self, edge: NDArray[np.int64], among: Sequence[int] | None = None
    ) -> tuple[Any, tuple[int, int]]:
        """Return the best split for merged sums, and the class totals.

        `among` lists the features to search, by default all.
        """
        special, total_mass = self._special, self.total_masses(edge)
        limits, n_bins = self._limits(*total_mass), self._columns.n_bins
        self._best.fill(np.inf)
        self._edge = edge = np.ascontiguousarray(edge).copy()
        split.search_edges(
            edge,
            self._bin_start,
            n_bins,
            limits,
            self._bound,
            self._best,
            special,
            self._smoothing,
        )
        if among is not None:
            self._best[np.setdiff1d(np.arange(len(n_bins)), among)] = np.inf
        located = split.locate(
            self._order,
            self._bin_start,
            n_bins,
            _NO_WEIGHT,
            limits,
            edge,
            self._bound,
            self._best,
            special,
            self._smoothing,
        )
        return located, total_mass

    def reweight(
        self, cut: StumpCut, factors: FloatArray, source: FloatArray, target: Weights
    ) -> None:
        """Add a split and its factors to the log, which is sent with the next request."""
        self.send(self._sent_cut(cut, np.array(factors, dtype=np.float64)), source, target)

    def send(self, cut: Any, source: Any, target: Weights) -> None:
        """Add a split to the log."""
        self._cuts.append(cut)

    def _sent_cut(self, cut: StumpCut, factors: FloatArray) -> SentCut:
        """Return the form of a split that is sent to the partitions."""
        return SentCut(int(cut.feature), self.side_of_codes(cut), factors)

    def _weighed(self, cut: StumpCut, weights: Weights) -> StumpCut:
        """Return a split with the class sums of its branches for the current weights."""
        edge = self.edges(weights)
        n, p = weights.masses = self.total_masses(edge)
        n_codes = int(self._columns.n_bins[cut.feature])
        if self._special is not None:
            n_codes += int(self._special[cut.feature] & HOLES)
        by_code = np.diff(edge[cut.feature, :, : n_codes + 1], axis=1)
        is_below = self.side_of_codes(cut)[:n_codes] == 0
        n0, p0 = by_code[:, is_below].sum(axis=1).tolist()
        return replace(cut, masses=((float(n0), float(p0)), (float(n - n0), float(p - p0))))

    def side_masses(
        self, cut: Any, source: FloatArray, scratch: Weights, unit: FloatArray | None = None
    ) -> FloatArray:
        """Return the initial class sums of both branches, shape (branch, class)."""
        sent = self._sent_cut(cut, np.ones((2, 2)))
        total, below = merge(self.engine.ask("side_masses", sent, self._units)).astype(np.float64)
        return np.stack([below, total - below])

    def heavier_sides(self, cuts: Sequence[Any]) -> list[int]:
        """Return the branch with the larger initial weight for each split, or 0 for a tie."""
        if self.data.problem.weights is None:
            return super().heavier_sides(cuts)
        assert self._first is not None
        count, sides = np.diff(self._first.sum(axis=1), axis=1), []
        for cut in cuts:
            assert isinstance(cut, StumpCut)
            side, by_bin = self.side_of_codes(cut), count[cut.feature]
            n_codes = int(self._columns.n_bins[cut.feature])  # no missing values here
            above = int(by_bin[:n_codes][side[:n_codes] > 0].sum())
            sides.append(int(is_heavier(float(above), float(by_bin[:n_codes].sum() - above))))
        return sides


@dataclass(slots=True, eq=False)
class PathWeights(Weights):
    """The weights at the end of a path. This process only stores their sums.

    `edge` has the sums at bin edges and `path` the splits on the path. The initial weights are
    divided by `total`; `real` and `fixed` are empty.
    """

    edge: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 2, 0), dtype=np.int64))
    path: list[Any] = field(default_factory=list)
    total: float = 1.0


class PathSearch(ShardedSearch):
    """Search for stumps at the end of a path."""

    def edges(self, weights: Weights) -> NDArray[np.int64]:
        """Return the stored sums at the bin edges."""
        assert isinstance(weights, PathWeights)
        return weights.edge

    def send(self, cut: Any, source: Any, target: Weights) -> None:
        """Add a split to the path of the target."""
        assert isinstance(target, PathWeights)
        target.path.append(cut)


@dataclass(frozen=True, slots=True)
class ShardedStump(Stump):
    """A stump fitted to rows in partitions."""

    searches: ClassVar = ShardedSearch

    rows: Any = None

    @classmethod
    def of(cls, weak: Stump, rows: Any) -> ShardedStump:
        """Return the weak learner that reads these rows."""
        return cls(**{f.name: getattr(weak, f.name) for f in fields(weak)}, rows=rows)

    @property
    def engine(self) -> Engine:
        """The engine of the partitions."""
        engine: Engine = self.rows.engine
        return engine

    def read(
        self, X: Any, y: Any, sample_weight: Any, two: str | None, hold: HoldOut | None = None
    ) -> Problem:
        """Return the problem of the fit, without its rows."""
        problem: Problem = self.rows.problem(two, hold)
        return problem

    def arrange(self, problem: Problem, n_threads: int | None) -> TrainingData:
        """Return the data of the fit, without its rows."""
        if self.search == "exact":
            raise NotImplementedError(
                'weak_learner: search="exact" requires all rows in one table, and partitions are '
                "searched by bins; pass rows.gather()"
            )
        self.is_exact(problem)  # raises if the options are incompatible with the bins
        data: TrainingData = self.rows.arrange(problem, n_threads)
        return data

    @contextmanager
    def workers(self, data: TrainingData, n_threads: int | None) -> Iterator[Workers]:
        """Provide the threads of the engine, and close the engine at the end."""
        with closing(self.engine), self.engine.workers as workers:
            yield workers


@dataclass(frozen=True, slots=True)
class PathStump(ShardedStump):
    """A stump at the end of a path."""

    searches: ClassVar = PathSearch
