"""Matryoshki of rows that lie in partitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from pboost._core.votes import VoteRule
from pboost.boosting.fit import graph_settings
from pboost.boosting.matryoshka import DEFAULTS, GROWTHS, check_sizes
from pboost.boosting.shard_validation import Held, Watched, held_out
from pboost.boosting.shards import shards_of, stump_of, whole_of
from pboost.data.columns import BinnedColumns
from pboost.data.engines import Engine
from pboost.data.parts import Parts, read_parts
from pboost.data.splits import Validation
from pboost.growth.nested import JOINS
from pboost.growth.ports import COLLECTS
from pboost.growth.shard_nested import ShardedGreedy, ShardedNested
from pboost.growth.shard_processes import places
from pboost.growth.step import Callback
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Exact, Observation, check_pair
from pboost.observation.gaussian_shards import observer_of, shard_of
from pboost.threads import Workers
from pboost.values import (
    Progress,
    Seed,
    check_callback,
    check_choice,
    vote_rule,
    with_bar,
)
from pboost.values.options import builder
from pboost.weak.base import Weak
from pboost.weak.port_shards import PortShard, PortStump
from pboost.weak.shards import Shard, begin, sharded
from pboost.weak.stump_search import Stump

_DEFAULT_WEAK, _EXACT = Stump(), Exact()


@builder
def fit_matryoshka(
    X: Sequence[BinnedColumns],
    y: Sequence[ArrayLike],
    *,
    shape: Sequence[int] | None = None,
    growth: str = "nested",
    nodes: int | None = None,
    collect: str = "additive",
    join: str = "sign",
    weak: Weak = _DEFAULT_WEAK,
    observation: Observation = _EXACT,
    smoothing: float = 1e-4,
    learning_rate: float | None = None,
    sample_weight: Sequence[ArrayLike] | None = None,
    rng: Seed = None,
    validation: Validation = None,
    patience: int | None = None,
    n_processes: int | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> DecisionGraph:
    """Fit a matryoshka on rows in partitions; it is that of all rows in one table, bit for bit.

    Parameters
    ----------
    X : list of BinnedColumns
        Partitions, with the same bins. One may be empty, or hold rows of one class only.
    y : list of array_like
        Labels of the rows of each partition; two values in all.
    shape, growth, nodes, collect, join, smoothing, learning_rate : optional
        As in `pboost.fit_matryoshka`.
    weak : Weak
        `pboost.weak.stump`, of a search that is "auto" or "binned".
    observation : Observation
        How sure answers are, as in `pboost.shards.fit_adaboost`.
    sample_weight : list of array_like, optional
        Weights >= 0 of the rows of each partition, which may all be 0 in some.
    validation : tuple or float, optional
        Rows by which growth ends early and the model is chosen, as in `pboost.fit_matryoshka`:
        ``(X, y)`` or ``(X, y, sample_weight)``, in one table; or a share in (0, 0.5] of the rows of
        partitions that keep values, drawn by their numbers, one partition after another.
    rng, patience : optional
        As in `pboost.fit_matryoshka`.
    n_processes : int, optional
        Number of processes that have the partitions, with a thread each. One that dies is started
        again, three times at most, and makes its weights again: the model is the same. None: this
        process has them.
    n_threads, callback, progress : optional
        As in `pboost.fit_matryoshka`.

    Returns
    -------
    DecisionGraph
        What ``pboost.fit_matryoshka(columns, y)`` returns, of all rows in one BinnedColumns with
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
    Partitions hold the weights and the reaches of their rows at each open port, eight bytes each,
    and are told how those of new ports are made of them. Of more than two labels `fit_matryoshka`
    takes one table.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> parts = pb.shards.bin_columns([X[:70], X[70:]])
    >>> model = pb.shards.fit_matryoshka(parts, [y[:70], y[70:]], shape=(3, 2))
    >>> whole = pb.fit_matryoshka(pb.bin_columns(X), y, shape=(3, 2))
    >>> bool((model.vote == whole.vote).all())
    True
    """
    options = MatryoshkaOptions.checked(
        shape,
        growth,
        nodes,
        collect,
        join,
        weak,
        observation,
        smoothing,
        learning_rate,
        callback,
        progress,
    )
    parts = read_parts(X, y, sample_weight)
    parts, held = held_out(parts, validation, patience, rng, options.learner)
    given = [*shards_of(parts, options.observation)]
    with places(parts.columns, given, options.kind, n_processes, n_threads) as (engine, workers):
        return options.fit(parts, engine, workers, held)


@dataclass(frozen=True, slots=True)
class MatryoshkaOptions:
    """The options of a matryoshka on partitions, checked, wherever they lie."""

    sizes: tuple[int, ...]
    size: int | None
    collect: str
    join: str
    learner: Stump
    observation: Observation
    rule: VoteRule
    settings: Any
    told_to: Any
    progress: Progress

    @classmethod
    def checked(
        cls,
        shape: Sequence[int] | None,
        growth: str,
        nodes: int | None,
        collect: str,
        join: str,
        weak: Weak,
        observation: Observation,
        smoothing: float,
        learning_rate: float | None,
        callback: Callback | None,
        progress: Progress,
    ) -> MatryoshkaOptions:
        """Return the options, or raise what `fit_matryoshka` raises."""
        check_choice("growth", growth, GROWTHS)
        check_choice("join", join, JOINS)
        sizes, size = check_sizes(growth, shape, nodes, join)
        check_choice("collect", collect, COLLECTS)
        rate = DEFAULTS[join][1] if learning_rate is None else learning_rate
        rule = vote_rule("domain", smoothing, rate)
        learner, table = stump_of(check_pair(weak, observation, is_chain=False), observation)
        told_to = check_callback(callback, progress)
        own = {
            "shape": list(sizes) or None,
            "growth": growth,
            "nodes": size,
            "collect": collect,
            "join": join,
        }
        settings = graph_settings("fit_matryoshka", own, weak, observation, rule)
        return cls(sizes, size, collect, join, learner, table, rule, settings, told_to, progress)

    @property
    def kind(self) -> type[Shard]:
        """What has the rows of a place."""
        return shard_of(self.observation, PortShard)

    def fit(
        self, parts: Parts, engine: Engine, workers: Workers, held: Held | None = None
    ) -> DecisionGraph:
        """Return the model of the rows that the engine has."""
        data = whole_of(parts, begin(engine, parts.weights is not None))
        self.learner.is_exact(data.problem)  # raises where the options do not go with the bins
        asked = sharded(self.learner, engine, PortStump)
        observer = observer_of(self.observation, data, asked, workers)
        case = engine, data, observer, self.rule, self.collect
        grown: ShardedGreedy | ShardedNested
        if self.size is not None:
            grown = ShardedGreedy(*case, self.size)
        else:
            grown = ShardedNested(*case, self.sizes, self.join)
        total = math.prod(self.sizes) if self.size is None else self.size
        votes_stay = self.collect == "additive"
        watched = Watched(held, data, self.told_to, self.settings, votes_stay=votes_stay)
        with with_bar(watched.callback, self.progress, total, "nodes") as told:
            return watched.kept(grown.model(watched.settings, grown.grow(told)))
