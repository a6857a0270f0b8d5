"""Boosted trees of rows that lie in partitions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pboost._core.votes import VoteRule
from pboost.boosting.fit import graph_settings
from pboost.data.columns import BinnedColumns
from pboost.data.engines import Engine, Serial
from pboost.data.parts import Parts, read_parts
from pboost.data.special_columns import HOLES
from pboost.growth.shard_boosted import ShardedBoosted, begin_boosted
from pboost.growth.shard_processes import Processes
from pboost.growth.shard_trees import Given, TreeShard
from pboost.growth.step import GROWTHS, Callback, TreeLimits, check_target
from pboost.growth.tree import grow_tree
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Exact, check_pair
from pboost.threads import Workers
from pboost.values import (
    INT32_MAX,
    FloatArray,
    Progress,
    check_callback,
    check_choice,
    check_integer,
    vote_rule,
    with_bar,
)
from pboost.values.options import builder
from pboost.weak.base import Weak
from pboost.weak.stump_search import Stump

_DEFAULT_WEAK = Stump()


@builder
def fit_boosted_tree(
    X: Sequence[BinnedColumns],
    y: Sequence[ArrayLike],
    *,
    nodes: int | None = 31,
    weak: Weak = _DEFAULT_WEAK,
    growth: str = "largest-bound",
    target_certificate: float | None = None,
    max_depth: int | None = None,
    smoothing: float = 1e-4,
    learning_rate: float = 1.0,
    sample_weight: Sequence[ArrayLike] | None = None,
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
        As in `pboost.fit_boosted_tree`; answers are exact.
    weak : Weak
        `pboost.weak.stump`, of a search that is "auto" or "binned".
    sample_weight : list of array_like, optional
        Weights >= 0 of the rows of each partition, which may all be 0 in some.
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
        For other weak learners, `n_threads` with `n_processes`, and for
        ``weak.stump(missing="both")`` where values are missing.

    Notes
    -----
    Partitions are asked for one open exit at a time: they answer with class masses and numbers of
    rows by bin, 64-bit integers, of the smaller of two exits; those of the other are what is left
    of their node's.

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
        nodes, weak, growth, target_certificate, max_depth, smoothing, learning_rate, callback,
        progress,
    )  # fmt: skip
    parts = read_parts(X, y, sample_weight)
    if n_processes is not None:
        n_processes = check_integer("n_processes", n_processes, least=1)
        if n_threads is not None:
            raise NotImplementedError("n_threads: processes have one thread each, expected None")
        n_threads = 1
    given = _given(parts)
    with ExitStack() as stack:
        cells = sum(part.codes.size for part in parts.columns)
        workers = stack.enter_context(Workers(n_threads, cells))
        engine: Engine
        if n_processes is None:
            engine = Serial([TreeShard(*one, workers) for one in given])
        else:
            engine = stack.enter_context(Processes(given, n_processes, TreeShard))
        return options.fit(parts, engine, workers)


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
    ) -> BoostedOptions:
        """Return the options, or raise what `fit_boosted_tree` raises."""
        limits = TreeLimits(
            INT32_MAX if nodes is None else check_integer("nodes", nodes, least=1),
            INT32_MAX if max_depth is None else check_integer("max_depth", max_depth, least=1),
            check_choice("growth", growth, GROWTHS),
            check_target(target_certificate),
        )
        rule, exact = vote_rule("domain", smoothing, learning_rate), Exact()
        learner = check_pair(weak, exact, is_chain=False)
        if type(learner) is not Stump:
            raise NotImplementedError(
                f"weak: expected weak.stump() of partitions, got {weak!r}; others read values, or "
                "are not implemented"
            )
        told_to = check_callback(callback, progress)
        own = {
            "nodes": nodes, "observation": exact.settings(), "growth": growth,
            "target_certificate": target_certificate, "max_depth": max_depth,
        }  # fmt: skip
        settings = graph_settings("fit_boosted_tree", own, weak, exact, rule)
        return cls(nodes, limits, learner, rule, settings, told_to, progress)

    def fit(self, parts: Parts, engine: Engine, workers: Workers) -> DecisionGraph:
        """Return the model of the rows that the engine has."""
        root = begin_boosted(engine, parts)
        self.learner.is_exact(root.data.problem)  # raises where options do not go with the bins
        special = root.data.columns.special
        if self.learner.goes_both and special is not None and (special & HOLES).any():
            raise NotImplementedError(
                'weak: missing="both" is not implemented for partitions with missing values; '
                '"learn" sends them to one side'
            )
        arrays = ShardedBoosted(root, self.learner, self.rule, self.limits, engine)
        with with_bar(self.told_to, self.progress, self.nodes, "nodes") as told:
            return arrays.model(self.settings, grow_tree(arrays, workers, told))


def _given(parts: Parts) -> list[Given]:
    """Return the arguments of each shard that has rows, but for its threads."""
    none: list[FloatArray | None] = [None] * len(parts.columns)
    weights = parts.weights or none
    label = [part.astype(np.int32) for part in parts.label]
    given = zip(parts.columns, label, weights, strict=True)
    return [(*one, 2) for one in given if one[0].n_rows]
