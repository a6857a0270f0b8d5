"""Fitting goes on: more nodes for a graph, of rows that lie in partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pboost.boosting.continuation import GoesOn, as_of_model, renumbered, tables_of
from pboost.boosting.shards import shards_of, stump_of, whole_of
from pboost.data.engines import Engine
from pboost.data.parts import Parts, read_parts
from pboost.growth.shard_processes import places
from pboost.growth.shard_soft import ShardedSoft
from pboost.growth.step import Chain
from pboost.models.graph import DecisionGraph
from pboost.models.new_rows import columns_to_fit
from pboost.observation.answers import Observation
from pboost.observation.gaussian_shards import observer_of, shard_of
from pboost.threads import Workers
from pboost.values import Bar, shown
from pboost.weak.base import Weak
from pboost.weak.shards import PathStump, Shard, ShardedStump, begin, sharded
from pboost.weak.stump_search import Stump


def continue_parts(
    model: DecisionGraph,
    X: Sequence[Any],
    y: Sequence[Any],
    *,
    sample_weight: Any,
    n_processes: int | None,
    n_threads: int | None,
    bar: Bar,
    **options: Any,
) -> DecisionGraph:
    """Return the graph with more nodes; see `pboost.shards.continue_fit`."""
    more = PartsGoOn.checked(model, **options)
    parts = read_parts(X, y, sample_weight)
    given = shards_of(parts, more.observation)
    with places(parts.columns, given, more.kind, n_processes, n_threads) as (engine, workers):
        return more.fit(parts, engine, workers, bar)


@dataclass(frozen=True, slots=True)
class PartsGoOn:
    """How a graph goes on of rows in partitions, wherever they lie."""

    model: DecisionGraph
    more: GoesOn
    learner: Stump
    observation: Observation

    @classmethod
    def checked(
        cls,
        model: DecisionGraph,
        *,
        rounds: Any,
        nodes: Any,
        weak: Weak | None,
        observation: Observation | None,
        growth: Any,
        smoothing: Any,
        learning_rate: Any,
    ) -> PartsGoOn:
        """Return how a graph goes on, or raise what `continue_fit` raises."""
        more = GoesOn.checked(
            model,
            None,
            rounds=rounds,
            nodes=nodes,
            weak=weak,
            observation=observation,
            growth=growth,
            smoothing=smoothing,
            learning_rate=learning_rate,
        )
        stump_of(more.learner, more.observation)
        learner, answers = stump_of(more.searched, more.observation)
        is_table = not answers.is_exact or model.answer is not None
        if model.n_votes > 1 or not (more.way == "chain" or (more.way == "tree" and is_table)):
            raise NotImplementedError(
                "model: on partitions chains go on with `rounds`, and trees of uncertain answers "
                "with `nodes`, of two labels; pboost.continue_fit takes any graph, of one table"
            )
        return cls(model, more, learner, answers)

    @property
    def kind(self) -> type[Shard]:
        """What has the rows of a place."""
        return shard_of(self.observation, Shard)

    def fit(self, parts: Parts, engine: Engine, workers: Workers, bar: Bar) -> DecisionGraph:
        """Return the model of the rows that the engine has."""
        model, more = self.model, self.more
        columns_to_fit(model, parts.columns[0])
        if not np.array_equal(parts.labels, model.labels):
            raise ValueError(
                f"y: expected the labels of the model, {shown(model.labels.tolist())}, got "
                f"{shown(parts.labels.tolist())}"
            )
        data = whole_of(parts, begin(engine, parts.weights is not None))
        self.learner.is_exact(data.problem)  # raises where the options do not go with the bins
        data = replace(data, problem=as_of_model(data.problem, model))
        model = renumbered(model, data)
        kind = ShardedStump if more.way == "chain" else PathStump
        observer = observer_of(self.observation, data, sharded(self.learner, engine, kind), workers)
        grown: Chain | ShardedSoft
        if more.way == "chain":
            grown = Chain(data, observer, more.rule, more.limits.nodes)
        else:
            grown = ShardedSoft(data, observer, more.rule, more.limits, engine)
        grown.replay(model, tables_of(model))
        with bar(more.limits.nodes, "nodes", model.n_nodes) as told:
            return grown.model(more.settings, grown.grow(told))
