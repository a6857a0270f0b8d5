"""Rows that partitions hold out: they stay there, and answer how well a graph predicts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns.columns import (
    BinnedColumns,
    fixed_scale_of,
    in_fixed_point,
    values_in_bins,
)
from pboost.distributed.engines import Engine, LogShard, SumParts, sum_of_parts, sum_parts
from pboost.growth.step import StepRecord
from pboost.growth.validation import WatchedRows
from pboost.models.graph import DecisionGraph
from pboost.threads import Workers
from pboost.values import Array, FloatArray, IntArray


class HeldParts:
    """Rows that the partitions of a source hold out.

    Attributes
    ----------
    rows : list of ndarray of int32
        Their numbers in each partition, in ascending order.
    each : list of tuple
        What a shard is told of them: the rows, how many there are in the partitions before, and in
        all.
    """

    def __init__(self, source: Any, values: Array | int, rows: Sequence[IntArray]) -> None:
        self._source, self._values, self.rows = source, values, rows
        sizes = [len(own) for own in rows]
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        self.n = sum(sizes)
        self.each = [(own, start, self.n) for own, start in zip(rows, starts, strict=True)]

    def watched(self, n_threads: int | None) -> WatchedParts:
        """Return the rows as growth of a graph watches them."""
        n_labels = np.size(self._values)
        each = [(*own, n_labels) for own in self.each]
        kept = self._source.shards(HeldShard, self._values, n_threads, each=each)
        return WatchedParts(kept, self.n)


class Taken(NamedTuple):
    """Asks for the weight of the rows that are wrong after each of some further nodes."""

    records: Sequence[StepRecord]


class HeldShard(LogShard):
    """The rows that one partition holds out."""

    def __init__(
        self,
        columns: BinnedColumns,
        label: NDArray[Any],
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
        """Return the sum of answers, as far as all go."""
        n = min(len(answer) for answer in answers)
        return np.sum([answer[:n] for answer in answers], axis=0, dtype=np.int64)

    def weight_parts(self) -> SumParts:
        """Return `sum_parts` of the weights."""
        return sum_parts(self._weight, self._start, self._n)

    def begin(self, scale: float) -> tuple[int, int]:
        """Begin a fit; returns the weight of the rows in units of 1 / scale, and of the wrong."""
        fixed = in_fixed_point(self._weight, scale)
        own = self._X, lambda number, rows: self._X[rows, number], self._label, fixed
        self._rows, self._seen = WatchedRows(*own, self._n_labels), 0
        return self._rows.total, self._rows.wrong

    def _taken(self, told: Taken, _: bool) -> NDArray[np.int64]:
        return np.array(self._rows.taken(told.records), dtype=np.int64)

    def stages(self, model: DecisionGraph) -> list[int]:
        """Return the weight of the wrong rows at each stage of a model, nothing without rows."""
        return list(self._rows.stages(model))

    def wrong_of(self, score: FloatArray) -> int:
        """Return the weight of the wrong rows if all have one decision value, or J."""
        return self._rows.wrong_of(score)

    DO: ClassVar[Mapping[type, Any]] = {Taken: _taken}


class WatchedParts:
    """Rows that partitions hold out, as growth of a graph watches them; see `Watched`."""

    def __init__(self, engine: Engine, n: int) -> None:
        self._engine, self._told = engine, list[Taken]()
        scale = fixed_scale_of(sum_of_parts(engine.ask("weight_parts"), n))
        self.total, self.wrong = np.sum(engine.ask("begin", scale), axis=0).tolist()

    def taken(self, records: Sequence[StepRecord]) -> list[int]:
        """Take further nodes, see `Watched`."""
        self._told.append(Taken(records))
        found: list[int] = HeldShard.merge(self._engine.masses(self._told)).tolist()
        return found

    def stages(self, model: DecisionGraph) -> list[int]:
        """Return the weight of the wrong rows at each stage of a model."""
        found = self._engine.ask("stages", model)
        return [sum(of) for of in zip(*(one for one in found if one), strict=True)]

    def wrong_of(self, score: FloatArray) -> int:
        """Return the weight of the wrong rows if all have one decision value, or J."""
        return sum(self._engine.ask("wrong_of", score))

    def close(self) -> None:
        """Let go of the shards."""
        self._engine.close()
