"""Graphs on rows in partitions: what a builder of graphs asks in place of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pboost.data.columns import BinnedColumns, made
from pboost.data.engines import Engine
from pboost.data.held_rows import HoldOut
from pboost.data.training import Problem, TrainingData
from pboost.distributed.graph_growth import ShardedGreedy, ShardedNested, ShardedSoft
from pboost.distributed.graph_shards import PathStump, Shard, ShardedStump, begin
from pboost.distributed.port_shards import PortShard, PortStump
from pboost.growth.exact_tree import BoostedArrays
from pboost.growth.greedy import GreedyGrowth
from pboost.growth.nested import NestedGrowth
from pboost.growth.shard_boosted import Root, ShardedBoosted, begin_boosted
from pboost.growth.shard_trees import TreeShard
from pboost.growth.soft_tree import SoftTree
from pboost.growth.step import Chain
from pboost.observation.answers import TableObservation
from pboost.weak.stump_search import Stump


class Kind(NamedTuple):
    """How a growth is had on partitions: what has the rows, what asks it, and what grows."""

    shard: type[Any]
    learner: type[ShardedStump]
    growth: Any


#: By the growth of one table.
GROWTHS: dict[type[Any], Kind] = {
    Chain: Kind(Shard, ShardedStump, Chain),
    SoftTree: Kind(Shard, PathStump, ShardedSoft),
    NestedGrowth: Kind(PortShard, PortStump, ShardedNested),
    GreedyGrowth: Kind(PortShard, PortStump, ShardedGreedy),
    BoostedArrays: Kind(TreeShard, ShardedStump, ShardedBoosted),
}


class GraphRows:
    """Rows in partitions as one fit of a graph has them.

    Parameters
    ----------
    source : PartitionedRows
        The rows.
    learner, observation : Weak, Observation
        Of the fit; NotImplementedError if partitions cannot be asked for them.
    growth : type
        Growth of one table.

    Attributes
    ----------
    learner : ShardedStump
        The weak learner that asks the shards.
    engine : Engine
        What has the shards, once the data are arranged.
    """

    engine: Engine
    #: What is known at the root of a boosted tree.
    root: Root

    def __init__(self, source: Any, learner: Any, observation: Any, growth: type) -> None:
        if type(learner) is not Stump:
            raise NotImplementedError(
                f"weak: expected weak.stump() of partitions, got {learner!r}, which needs all rows "
                "in one place: pass rows.gather()"
            )
        if not isinstance(observation, TableObservation) and not observation.is_exact:
            raise NotImplementedError(
                f"observation: {observation!r} needs all rows in one place: pass rows.gather(); on "
                "partitions answers are exact or have a table, such as observation.adatree2()"
            )
        self.source, self._kind = source, GROWTHS[growth]
        self.learner = self._kind.learner.of(learner, self)

    def problem(self, two: str | None, hold: HoldOut | None) -> Problem:
        """Return the problem of the fit, without rows."""
        self.values = self.source.targets("classification", two)
        if len(self.values) > 2:
            raise NotImplementedError(
                f"y: graphs of {len(self.values)} classes need all rows in one place: pass "
                "rows.gather()"
            )
        problem: Problem = self.source.problem(self.values)
        if hold is None:
            return problem
        return replace(problem, held=self.source.hold_out(hold, self.values))

    def arrange(self, problem: Problem, n_threads: int | None) -> TrainingData:
        """Return the data of the fit, without rows, and have shards begin."""
        shard, is_weighed = self._kind.shard, self.source.is_weighed or problem.held is not None
        is_tree = shard is TreeShard
        dtype, each = np.uint8, None
        if is_tree:
            dtype, each = np.int32, [(2,)] * len(self.source.sizes)
        self.engine = self.source.shards(
            shard, self.values, n_threads, dtype=dtype, held=problem.held, each=each
        )
        rows = _Whole(problem, is_weighed)
        if is_tree:
            self.root = begin_boosted(self.engine, rows)
            return self.root.data
        begun = begin(self.engine, is_weighed)
        return rows.whole(begun.exponent, begun.scale, begun.masses, begun.bin_start)


@dataclass(frozen=True, slots=True)
class _Whole:
    """What is known of all rows of a fit."""

    problem: Problem
    is_weighed: bool

    @property
    def weights(self) -> Any:
        """None if rows have no weights."""
        return np.ones(2) if self.is_weighed else None

    def whole(
        self, exponent: int, scale: float, masses: tuple[int, int], bin_start: Any
    ) -> TrainingData:
        """Return data with one row for each class, which has all mass of the class."""
        of = self.problem.columns
        assert isinstance(of, BinnedColumns)
        none = np.empty((of.n_features, 0), dtype=np.uint8)
        kept = of.n_bins, of.lower, of.upper, of.names, of.special, of.table
        columns = made(BinnedColumns, none, *kept, bin_start)
        label = np.array([0, 1], dtype=np.uint8)
        return TrainingData(
            problem=replace(self.problem, columns=columns, label=label, weights=self.weights),
            rows=np.arange(2, dtype=np.int32),
            weight=np.ones(2),
            fixed=np.array(masses, dtype=np.int64),
            weight_exponent=exponent,
            scale=scale,
            exact=False,
            order=np.empty((of.n_features, 0), dtype=np.int32),
            columns=columns,
            n_negative=1,
        )
