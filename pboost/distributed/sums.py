"""Gradient boosting on rows in partitions: what its fit asks in place of a table."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.training import Problem
from pboost.distributed import tasks
from pboost.distributed.trees import TreeRows
from pboost.growth.tree import CartLimits
from pboost.losses import Loss
from pboost.trees import pairs
from pboost.trees.restraints import Restraints
from pboost.trees.round_shards import RoundShard
from pboost.trees.sharded_rounds import ShardedRounds
from pboost.trees.steps import Steps
from pboost.trees.weights import Weights
from pboost.values import Array, FloatArray


class SumRows:
    """Rows in partitions as one fit of gradient boosting has them.

    Parameters
    ----------
    source : PartitionedRows
        The rows.
    task : str
        The task.
    n_threads : int or None
        Threads of this process.
    ends : ExitStack
        Ends what answers for rows.
    """

    def __init__(self, source: Any, task: str, n_threads: int | None, ends: ExitStack) -> None:
        self._source, self._n_threads, self._ends = source, n_threads, ends
        self._values: Array | int = source.targets(task)

    def problem(self) -> Problem:
        """Return the problem, whose columns have no rows."""
        rows = TreeRows(self._source, self._values)
        return rows.with_targets(rows.problem(None))

    def values(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Return rows, numbered through all parts, or what is on the same side of edges of bins."""
        parts = self._source.rows(rows, self._values)
        return np.concatenate([X for X, _, _ in parts])

    def scanned(self, weights: Weights) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
        """Return rows that tell how trees grow, see `pboost.trees.pairs`, and their codes."""
        own, start = [], 0
        for n in self._source.sizes:
            of_rows = weights.of_rows
            own.append((None if of_rows is None else of_rows[start : start + n] > 0,))
            start += n
        found = self._source.each(_scanned, weights.n_copies, each=own)
        starts = np.cumsum([0, *self._source.sizes[:-1]])
        listed = [(rows + at, codes) for (rows, codes), at in zip(found, starts, strict=True)]
        return pairs.joined(listed, weights.n_copies)

    def rounds(
        self,
        problem: Problem,
        y: FloatArray,
        loss: Loss,
        weights: Weights,
        bias: Any,
        limits: CartLimits,
        steps: Steps,
        restraints: Restraints,
    ) -> ShardedRounds:
        """Return what grows one tree a round."""
        own, start = [], 0
        for n in self._source.sizes:
            rows = slice(start, start + n)
            weight = None if weights.of_rows is None else weights.of_rows[rows]
            own.append((y[rows], weight, weights.are_copies, weights.most_copies, loss, bias))
            start += n
        given = self._source.submit(_round_part, each=own)
        engine = self._source.engine(given, RoundShard, self._n_threads)
        self._ends.enter_context(closing(engine))
        self._ends.enter_context(engine.workers)
        return ShardedRounds(engine, problem, y, loss, weights, limits, steps, restraints)


def _scanned(
    part: tasks.Part, number: int, n_copies: int, used: NDArray[np.bool_] | None
) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    return pairs.scanned_part(part.columns, used, n_copies)


def _round_part(part: tasks.Part, number: int, *own: Any) -> tuple[Any, ...]:
    return part.columns, *own
