"""Boosted trees of rows that lie in partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pboost._core.votes import VoteRule
from pboost.boosting.boosted_tree import NO_END
from pboost.boosting.fit import graph_settings
from pboost.boosting.shard_validation import Held, Watched, held_out
from pboost.boosting.shards import shards_of, stump_of, whole_of
from pboost.data.columns import BinnedColumns
from pboost.data.engines import Engine
from pboost.data.parts import Parts, read_parts
from pboost.data.splits import Validation
from pboost.growth.shard_boosted import ShardedBoosted, begin_boosted
from pboost.growth.shard_processes import places
from pboost.growth.shard_soft import ShardedSoft
from pboost.growth.shard_trees import TreeShard
from pboost.growth.step import GROWTHS, Callback, TreeLimits, check_target
from pboost.growth.tree import grow_tree
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Exact, Observation, check_pair
from pboost.observation.gaussian_shards import observer_of, shard_of
from pboost.threads import Workers
from pboost.values import (
    INT32_MAX,
    Progress,
    Seed,
    check_callback,
    check_choice,
    check_integer,
    vote_rule,
    with_bar,
)
from pboost.values.options import builder
from pboost.weak.base import Weak
from pboost.weak.shards import PathStump, Shard, begin, sharded
from pboost.weak.stump_search import Stump

_DEFAULT_WEAK, _EXACT = Stump(), Exact()


@builder
def fit_boosted_tree(
    X: Sequence[BinnedColumns],
    y: Sequence[ArrayLike],
    *,
    nodes: int | None = 31,
    weak: Weak = _DEFAULT_WEAK,
    observation: Observation = _EXACT,
    growth: str = "largest-bound",
    target_certificate: float | None = None,
    max_depth: int | None = None,
    smoothing: float = 1e-4,
    learning_rate: float = 1.0,
    sample_weight: Sequence[ArrayLike] | None = None,
    rng: Seed = None,
    validation: Validation = None,
    patience: int | None = None,
    n_processes: int | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> DecisionGraph:
    """Fit a boosted tree on rows in partitions; it is that of all rows in one table, bit for bit.

    Parameters
    ----------
    X : list of BinnedColumns
        Partitions, with the same bins. One may be empty, or hold rows of one class only.
    y : list of array_like
        Labels of the rows of each partition; two values in all.
    nodes, growth, target_certificate, max_depth, smoothing, learning_rate : optional
        As in `pboost.fit_boosted_tree`.
    weak : Weak
        `pboost.weak.stump`, of a search that is "auto" or "binned".
    observation : Observation
        How sure answers are, as in `pboost.shards.fit_adaboost`.
    sample_weight : list of array_like, optional
        Weights >= 0 of the rows of each partition, which may all be 0 in some.
    validation : tuple or float, optional
        Rows by which growth ends early and the model is chosen, as in `pboost.fit_boosted_tree`:
        ``(X, y)`` or ``(X, y, sample_weight)``, in one table; or a share in (0, 0.5] of the rows of
        partitions that keep values, drawn by their numbers, one partition after another.
    rng, patience : optional
        As in `pboost.fit_boosted_tree`.
    n_processes : int, optional
        Number of processes that have the partitions, with a thread each. One that dies is started
        again, three times at most, and takes the splits so far: the model is the same. None: this
        process has them.
    n_threads, callback, progress : optional
        As in `pboost.fit_boosted_tree`.

    Returns
    -------
    DecisionGraph
        What ``pboost.fit_boosted_tree(columns, y)`` returns, of all rows in one BinnedColumns with
        these bins, whatever the number of partitions, their sizes and their order.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described, or partitions do not agree; the message names
        the argument and the partition.
    RuntimeError
        If a process ends four times, or does not answer within ten minutes.
    NotImplementedError
        For other weak learners and observations, and for `n_threads` with `n_processes`.

    Notes
    -----
    Partitions are asked for one open exit at a time: they answer with class masses and numbers of
    rows by bin, 64-bit integers, of the smaller of two exits; those of the other are what is left
    of their node's. Where answers are uncertain all rows reach every exit: partitions make their
    weights anew from those at the root, by the answers on the path that leads there.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.arange(8.0).reshape(8, 1), np.array([0, 1, 0, 0, 1, 1, 0, 1])
    >>> parts = pb.shards.bin_columns([X[:3], X[3:]])
    >>> model = pb.shards.fit_boosted_tree(parts, [y[:3], y[3:]], nodes=3)
    >>> whole = pb.fit_boosted_tree(pb.bin_columns(X), y, nodes=3)
    >>> bool((model.vote == whole.vote).all())
    True
    """
    options = BoostedOptions.checked(
        nodes,
        weak,
        growth,
        target_certificate,
        max_depth,
        smoothing,
        learning_rate,
        callback,
        progress,
        observation,
    )
    parts = read_parts(X, y, sample_weight)
    parts, held = held_out(parts, validation, patience, rng, options.learner)
    given = options.given(parts)
    with places(parts.columns, given, options.kind, n_processes, n_threads) as (engine, workers):
        return options.fit(parts, engine, workers, held)


@dataclass(frozen=True, slots=True)
class BoostedOptions:
    """The options of a boosted tree on partitions, checked, wherever they lie."""

    nodes: int | None
    limits: TreeLimits
    learner: Stump
    rule: VoteRule
    settings: Any
    told_to: Any
    progress: Progress
    observation: Observation = _EXACT

    @classmethod
    def checked(
        cls,
        nodes: int | None,
        weak: Weak,
        growth: str,
        target_certificate: float | None,
        max_depth: int | None,
        smoothing: float,
        learning_rate: float,
        callback: Callback | None,
        progress: Progress,
        observation: Observation = _EXACT,
    ) -> BoostedOptions:
        """Return the options, or raise what `fit_boosted_tree` raises."""
        limits = TreeLimits(
            INT32_MAX if nodes is None else check_integer("nodes", nodes, least=1),
            INT32_MAX if max_depth is None else check_integer("max_depth", max_depth, least=1),
            check_choice("growth", growth, GROWTHS),
            check_target(target_certificate),
        )
        rule = vote_rule("domain", smoothing, learning_rate)
        learner, table = stump_of(check_pair(weak, observation, is_chain=False), observation)
        if nodes is None and max_depth is None and not table.is_exact:
            raise ValueError(NO_END)
        told_to = check_callback(callback, progress)
        own = {
            "nodes": nodes,
            "observation": table.settings(),
            "growth": growth,
            "target_certificate": target_certificate,
            "max_depth": max_depth,
        }
        settings = graph_settings("fit_boosted_tree", own, weak, observation, rule)
        return cls(nodes, limits, learner, rule, settings, told_to, progress, table)

    @property
    def kind(self) -> type[Any]:
        """What has the rows of a place."""
        return TreeShard if self.observation.is_exact else shard_of(self.observation, Shard)

    def given(self, parts: Parts) -> list[tuple[Any, ...]]:
        """Return the arguments of each shard that has rows, but for its threads."""
        if not self.observation.is_exact:
            return [*shards_of(parts, self.observation)]
        return [
            (X, y.astype(np.int32), weights, 2)
            for X, y, weights in shards_of(parts, self.observation)
        ]

    def fit(
        self, parts: Parts, engine: Engine, workers: Workers, held: Held | None = None
    ) -> DecisionGraph:
        """Return the model of the rows that the engine has."""
        if not self.observation.is_exact:
            return self._fit_soft(parts, engine, workers, held)
        root = begin_boosted(engine, parts)
        self.learner.is_exact(root.data.problem)  # raises where options do not go with the bins
        arrays = ShardedBoosted(root, self.learner, self.rule, self.limits, engine)
        watched = Watched(held, root.data, self.told_to, self.settings)
        with with_bar(watched.callback, self.progress, self.nodes, "nodes") as told:
            reason = grow_tree(arrays, workers, told)
            return watched.kept(arrays.model(watched.settings, reason))

    def _fit_soft(
        self, parts: Parts, engine: Engine, workers: Workers, held: Held | None
    ) -> DecisionGraph:
        """Return the model where answers are uncertain."""
        data = whole_of(parts, begin(engine, parts.weights is not None))
        self.learner.is_exact(data.problem)
        asked = sharded(self.learner, engine, PathStump)
        observer = observer_of(self.observation, data, asked, workers)
        tree = ShardedSoft(data, observer, self.rule, self.limits, engine)
        watched = Watched(held, data, self.told_to, self.settings)
        with with_bar(watched.callback, self.progress, self.nodes, "nodes") as told:
            return watched.kept(tree.model(watched.settings, tree.grow(told)))
