"""Fit decision graphs to rows in partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns.columns import (
    BinnedColumns,
    fixed_scale_of,
    in_fixed_point,
    made,
    values_in_bins,
)
from pboost.data.resampling import HoldOut
from pboost.data.training_data import Problem, TrainingData
from pboost.distributed.boosted_partitions import Root, ShardedBoosted, begin_boosted
from pboost.distributed.engine import Engine, LogShard, PartialSums, sum_of_parts, sum_parts
from pboost.distributed.graph_growth import (
    PortShard,
    PortStump,
    ShardedGreedy,
    ShardedNested,
    ShardedSoft,
)
from pboost.distributed.graph_partitions import PathStump, Shard, ShardedStump, begin
from pboost.distributed.multiclass_partitions import (
    LabelShard,
    ShardedLabelTrees,
    ShardedSoftLabels,
    SoftLabelShard,
)
from pboost.distributed.tree_partitions import TreeShard
from pboost.growth.graph_growth import Chain, StepRecord
from pboost.growth.matryoshki import GreedyGrowth, NestedGrowth
from pboost.growth.multiclass_graph import LabelTrees, SoftLabelTrees
from pboost.growth.soft_tree import SoftTree
from pboost.growth.tree import BoostedArrays
from pboost.growth.validation import WatchedRows
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import TableObservation
from pboost.threads import Workers
from pboost.values import Array, FloatArray, IntArray
from pboost.weak.stump_search import Stump


class HeldParts:
    """The validation rows of a partitioned source.

    Attributes
    ----------
    rows : list of ndarray of int32
        Row indices in each partition, in ascending order.
    each : list of tuple
        For each partition: its validation rows, the number of validation rows in earlier
        partitions, and the total number of validation rows.
    """

    def __init__(self, source: Any, values: Array | int, rows: Sequence[IntArray]) -> None:
        self._source, self._values, self.rows = source, values, rows
        sizes = [len(part_rows) for part_rows in rows]
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        self.n = sum(sizes)
        self.each = [
            (part_rows, start, self.n) for part_rows, start in zip(rows, starts, strict=True)
        ]

    def watched(self, n_threads: int | None) -> WatchedParts:
        """Return the rows as a validation set for the growth of a graph."""
        n_labels = np.size(self._values)
        each = [(*part, n_labels) for part in self.each]
        kept = self._source.shards(HeldShard, self._values, n_threads, each=each)
        return WatchedParts(kept, self.n)


class Taken(NamedTuple):
    """Request for the weight of misclassified rows after each of several new nodes."""

    records: Sequence[StepRecord]


class HeldShard(LogShard):
    """The validation rows of one partition."""

    def __init__(
        self,
        columns: BinnedColumns,
        label: Array,
        weights: FloatArray | None,
        rows: IntArray,
        start: int,
        n: int,
        n_labels: int,
        workers: Workers,
    ) -> None:
        self._X, self._start, self._n = values_in_bins(columns, rows), start, n
        self._label = label[rows] if n_labels > 2 else label[rows] == 1
        self._weight = np.ones(len(rows)) if weights is None else weights[rows]
        self._n_labels = n_labels

    @staticmethod
    def merge(answers: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the sum of the results, truncated to the length of the shortest."""
        n = min(len(answer) for answer in answers)
        return np.sum([answer[:n] for answer in answers], axis=0, dtype=np.int64)

    def weight_parts(self) -> PartialSums:
        """Return the `sum_parts` of the weights."""
        return sum_parts(self._weight, self._start, self._n)

    def begin(self, scale: float) -> tuple[int, int]:
        """Begin a fit, and return the fixed-point weights of all rows and of misclassified rows."""
        fixed = in_fixed_point(self._weight, scale)
        inputs = self._X, lambda number, rows: self._X[rows, number], self._label, fixed
        self._rows, self._seen = WatchedRows(*inputs, self._n_labels), 0
        return self._rows.total, self._rows.wrong

    def _taken(self, command: Taken, _: bool) -> NDArray[np.int64]:
        return np.array(self._rows.taken(command.records), dtype=np.int64)

    def stages(self, model: DecisionGraph) -> list[int]:
        """Return the weight of misclassified rows at each stage, or an empty array without rows."""
        return list(self._rows.stages(model))

    def wrong_of(self, score: FloatArray) -> int:
        """Return the weight of misclassified rows for constant decision values `score`."""
        return self._rows.wrong_of(score)

    DO: ClassVar[Mapping[type, Any]] = {Taken: _taken}


class WatchedParts:
    """Validation rows in partitions, with the methods of `Watched`."""

    def __init__(self, engine: Engine, n: int) -> None:
        self._engine, self._told = engine, list[Taken]()
        scale = fixed_scale_of(sum_of_parts(engine.ask("weight_parts"), n))
        self.total, self.wrong = np.sum(engine.ask("begin", scale), axis=0).tolist()

    def taken(self, records: Sequence[StepRecord]) -> list[int]:
        """Add new nodes and return the weight of misclassified rows, see `Watched`."""
        self._told.append(Taken(records))
        weights: list[int] = HeldShard.merge(self._engine.masses(self._told)).tolist()
        return weights

    def stages(self, model: DecisionGraph) -> list[int]:
        """Return the weight of misclassified rows at each stage of a model."""
        answers = self._engine.ask("stages", model)
        return [sum(of) for of in zip(*(answer for answer in answers if answer), strict=True)]

    def wrong_of(self, score: FloatArray) -> int:
        """Return the weight of misclassified rows for constant decision values `score`."""
        return sum(self._engine.ask("wrong_of", score))

    def close(self) -> None:
        """Release the partitions."""
        self._engine.close()


class GrowthKind(NamedTuple):
    """Classes that grow one kind of graph on partitions."""

    shard: type[Any]
    learner: type[ShardedStump]
    growth: Any


#: Class that grows a graph on partitions, for each class that grows it on one table.
GROWTHS: dict[type[Any], GrowthKind] = {
    Chain: GrowthKind(Shard, ShardedStump, Chain),
    SoftTree: GrowthKind(Shard, PathStump, ShardedSoft),
    NestedGrowth: GrowthKind(PortShard, PortStump, ShardedNested),
    GreedyGrowth: GrowthKind(PortShard, PortStump, ShardedGreedy),
    BoostedArrays: GrowthKind(TreeShard, ShardedStump, ShardedBoosted),
    LabelTrees: GrowthKind(LabelShard, ShardedStump, ShardedLabelTrees),
    SoftLabelTrees: GrowthKind(SoftLabelShard, ShardedStump, ShardedSoftLabels),
}


class GraphRows:
    """The partitioned rows of one graph fit.

    Parameters
    ----------
    source : PartitionedRows
        The rows.
    learner, observation : Weak, Observation
        Options of the fit. A NotImplementedError is raised if partitions do not support them.
    growth : type
        Class that grows the graph on one table.

    Attributes
    ----------
    learner : ShardedStump
        The weak learner that reads the partitions.
    engine : Engine
        The engine of the partitions, set by `arrange`.
    """

    engine: Engine
    #: State at the root of a boosted tree.
    root: Root

    def __init__(self, source: Any, learner: Any, observation: Any, growth: type) -> None:
        if type(learner) is not Stump:
            raise NotImplementedError(
                "weak_learner: expected weak.stump() for rows in partitions, got "
                f"{learner!r}; pass rows.gather() to use it"
            )
        if not isinstance(observation, TableObservation) and not observation.is_exact:
            raise NotImplementedError(
                f"observation: {observation!r} requires all rows in one table; pass rows.gather(); "
                "partitions support exact observations and tables, such as observation.adatree2()"
            )
        self.source, self._kind, self._observation = source, GROWTHS[growth], observation
        self.learner = self._kind.learner.of(learner, self)

    def problem(self, two: str | None, hold: HoldOut | None) -> Problem:
        """Return the problem of the fit, without its rows."""
        self.values = self.source.targets("classification", two)
        if len(self.values) > 2:
            self._kind = GROWTHS[LabelTrees if self._observation.is_exact else SoftLabelTrees]
        problem: Problem = self.source.problem(self.values)
        if hold is None:
            return problem
        return replace(problem, held=self.source.hold_out(hold, self.values))

    def arrange(self, problem: Problem, n_threads: int | None) -> TrainingData:
        """Return the data of the fit, without its rows, and initialize the partitions."""
        shard, is_weighed = self._kind.shard, self.source.is_weighed or problem.held is not None
        is_tree = shard is TreeShard
        dtype: Any = np.uint8
        each: Any = None
        if shard in (TreeShard, LabelShard, SoftLabelShard):
            dtype, each = np.int32, [(len(self.values),)] * len(self.source.sizes)
        self.engine = self.source.shards(
            shard,
            self.values,
            n_threads,
            dtype=dtype,
            held=None if problem.held is None else problem.held.elsewhere,
            each=each,
        )
        rows = _Whole(replace(problem, elsewhere=self), is_weighed)
        if is_tree:
            self.root = begin_boosted(self.engine, rows)
            return self.root.data
        begun = begin(self.engine, is_weighed)
        return rows.class_data(begun.exponent, begun.scale, begun.masses, begun.bin_start)


@dataclass(frozen=True, slots=True)
class _Whole:
    """Summary of all rows of a fit."""

    problem: Problem
    is_weighed: bool

    @property
    def weights(self) -> Any:
        """Dummy weights, or None if rows have no sample weights."""
        return np.ones(self._n_classes) if self.is_weighed else None

    @property
    def _n_classes(self) -> int:
        assert self.problem.classes is not None
        return len(self.problem.classes)

    def class_data(
        self, exponent: int, scale: float, masses: tuple[int, ...], bin_start: Any
    ) -> TrainingData:
        """Return training data with one row per class, weighted by the class weight."""
        of = self.problem.columns
        assert isinstance(of, BinnedColumns)
        none = np.empty((of.n_features, 0), dtype=np.uint8)
        kept = of.n_bins, of.lower, of.upper, of.names, of.special, of.table
        columns = made(BinnedColumns, none, *kept, bin_start)
        j = self._n_classes
        label = np.arange(j, dtype=np.uint8 if j == 2 else np.int32)
        return TrainingData(
            problem=replace(self.problem, columns=columns, label=label, weights=self.weights),
            rows=np.arange(j, dtype=np.int32),
            weight=np.ones(j),
            fixed=np.array(masses, dtype=np.int64),
            weight_exponent=exponent,
            scale=scale,
            exact=False,
            order=np.empty((of.n_features, 0), dtype=np.int32),
            columns=columns,
            n_negative=int(j == 2),
            label=label if j > 2 else np.empty(0, dtype=np.int32),
        )
