"""Fits on rows that lie in partitions: the model is that of all rows in one table, bit for bit.

Class masses are integer sums, which do not depend on how rows are divided. Every partition answers
with its masses at the edges of bins, their sums are searched as those of one table, and the cut
found is told to all partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from pboost.boosting.fit import graph_settings
from pboost.boosting.shard_validation import Held, Watched, held_out
from pboost.data.columns import BinnedColumns
from pboost.data.engines import Engine
from pboost.data.part_bins import bin_columns
from pboost.data.parts import Parts, read_parts
from pboost.data.splits import Validation
from pboost.data.training import TrainingData
from pboost.growth.shard_processes import places
from pboost.growth.step import Callback, Chain
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Exact, Observation, TableObservation, check_pair
from pboost.observation.gaussian_search import Gaussian
from pboost.observation.gaussian_shards import check_kept, observer_of, shard_of
from pboost.threads import Workers
from pboost.values import (
    FloatArray,
    Progress,
    Seed,
    check_callback,
    check_integer,
    vote_rule,
    with_bar,
)
from pboost.values.options import builder
from pboost.weak.base import Weak
from pboost.weak.shards import Begun, Given, Shard, begin, sharded
from pboost.weak.stump_search import Stump

__all__ = ["bin_columns", "fit_adaboost"]

_DEFAULT_WEAK = Stump()
_EXACT = Exact()


@builder
def fit_adaboost(
    X: Sequence[BinnedColumns],
    y: Sequence[ArrayLike],
    *,
    rounds: int = 200,
    weak: Weak = _DEFAULT_WEAK,
    votes: str = "domain",
    observation: Observation = _EXACT,
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
    """Fit AdaBoost on rows in partitions; the model is that of all rows in one table, bit for bit.

    Parameters
    ----------
    X : list of BinnedColumns
        Partitions, with the same bins. One may be empty, or hold rows of one class only.
    y : list of array_like
        Labels of the rows of each partition; two values in all.
    rounds, votes, smoothing, learning_rate, n_threads, callback, progress : optional
        As in `pboost.fit_adaboost`.
    weak : Weak
        `pboost.weak.stump`, of a search that is "auto" or "binned".
    observation : Observation
        How sure answers are: `pboost.observation.exact`, `flip`, `half`, `uniform` or `adatree2`;
        `gaussian`, with one standard deviation or one for each column, of partitions that keep
        values.
    sample_weight : list of array_like, optional
        Weights >= 0 of the rows of each partition, which may all be 0 in some.
    validation : tuple or float, optional
        Rows by which growth ends early and the model is chosen, as in `pboost.fit_adaboost`:
        ``(X, y)`` or ``(X, y, sample_weight)``, in one table; or a share in (0, 0.5] of the rows of
        partitions that keep values, drawn by their numbers, one partition after another.
    rng, patience : optional
        As in `pboost.fit_adaboost`.
    n_processes : int, optional
        Number of processes that have the partitions, with a thread each. One that dies is started
        again, three times at most, and takes the cuts so far: the model is the same. None: this
        process has them.

    Returns
    -------
    DecisionGraph
        What ``pboost.fit_adaboost(columns, y)`` returns, of all rows in one BinnedColumns with
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
    Partitions are asked one after another for their class masses at the edges of bins, 64-bit
    integers. Sums of integers are exact, so that neither their order nor how rows are divided has
    an effect on a score, a vote or the certificate.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.arange(8.0).reshape(8, 1), np.array([0, 1, 0, 0, 1, 1, 0, 1])
    >>> parts = pb.shards.bin_columns([X[:3], X[3:]])
    >>> model = pb.shards.fit_adaboost(parts, [y[:3], y[3:]], rounds=5)
    >>> whole = pb.fit_adaboost(pb.bin_columns(X), y, rounds=5)
    >>> bool((model.vote == whole.vote).all())
    True
    """
    options = Options.checked(
        rounds, weak, votes, observation, smoothing, learning_rate, callback, progress
    )
    parts = read_parts(X, y, sample_weight)
    parts, held = held_out(parts, validation, patience, rng, options.learner)
    given = shards_of(parts, options.observation)
    with places(parts.columns, given, options.kind, n_processes, n_threads) as (engine, workers):
        return options.fit(parts, engine, workers, held)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a fit on partitions, checked, wherever they lie."""

    rounds: int
    learner: Stump
    observation: Observation
    rule: Any
    settings: Any
    told_to: Any
    progress: Progress

    @classmethod
    def checked(
        cls,
        rounds: int,
        weak: Weak,
        votes: str,
        observation: Observation,
        smoothing: float,
        learning_rate: float,
        callback: Callback | None,
        progress: Progress,
    ) -> Options:
        """Return the options, or raise what `fit_adaboost` raises."""
        rounds = check_integer("rounds", rounds, least=1)
        rule = vote_rule(votes, smoothing, learning_rate)
        learner, table = stump_of(check_pair(weak, observation, is_chain=True), observation)
        told_to = check_callback(callback, progress)
        own = {"rounds": rounds, "votes": votes}
        settings = graph_settings("fit_adaboost", own, weak, observation, rule)
        return cls(rounds, learner, table, rule, settings, told_to, progress)

    @property
    def kind(self) -> type[Shard]:
        """What has the rows of a place."""
        return shard_of(self.observation, Shard)

    def fit(
        self, parts: Parts, engine: Engine, workers: Workers, held: Held | None = None
    ) -> DecisionGraph:
        """Return the model of the rows that the engine has."""
        data = whole_of(parts, begin(engine, parts.weights is not None))
        self.learner.is_exact(data.problem)  # raises where the options do not go with the bins
        observer = observer_of(self.observation, data, sharded(self.learner, engine), workers)
        chain = Chain(data, observer, self.rule, self.rounds)
        watched = Watched(held, data, self.told_to, self.settings)
        with with_bar(watched.callback, self.progress, self.rounds, "rounds") as told:
            return watched.kept(chain.model(watched.settings, chain.grow(told)))


def shards_of(parts: Parts, observation: Observation) -> list[Given]:
    """Return the arguments of each shard that has rows, but for its threads.

    ValueError where answers are of values that partitions do not keep.
    """
    check_kept(observation, parts.columns)
    none: list[FloatArray | None] = [None] * len(parts.columns)
    weights = parts.weights or none
    given = zip(parts.columns, parts.label, weights, strict=True)
    return [one for one in given if one[0].n_rows]


def whole_of(parts: Parts, begun: Begun) -> TrainingData:
    """Return the data of a fit whose rows are elsewhere."""
    return parts.whole(begun.exponent, begun.scale, begun.masses, begun.bin_start)


def stump_of(weak: Weak, observation: Observation) -> tuple[Stump, Observation]:
    """Return what partitions can be asked for, NotImplementedError where it is anything else."""
    if type(weak) is not Stump:
        raise NotImplementedError(
            f"weak: expected weak.stump() of partitions, got {weak!r}; others read values, or are "
            "not implemented"
        )
    if not isinstance(observation, TableObservation | Gaussian):
        raise NotImplementedError(
            "observation: expected answers that are exact, have a table, such as "
            f"observation.adatree2(), or are gaussian, of partitions, got {observation!r}"
        )
    return weak, observation
