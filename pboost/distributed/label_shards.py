"""Graphs of more than two classes on rows in partitions: what shards hold, and growth by it.

A shard keeps the weights of its rows for each label, and which rows are at each exit. Exits have
numbers; those of an entrance, where all rows are, is 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import labels as kernels
from pboost.data.columns.columns import BinnedColumns
from pboost.data.columns.prebuilt import most_bins
from pboost.distributed.engines import exact_parts, exact_sum, merge, sum_of_weights
from pboost.distributed.graph_shards import Shard
from pboost.growth.label_trees import LabelExit, LabelTrees
from pboost.threads import Workers
from pboost.values import FloatArray, IntArray
from pboost.weak.label_search import Sums, aligned
from pboost.weak.stump_search import StumpCut


class Entered(NamedTuple):
    """All rows are at one exit; asks for their sums (3, J) and numbers (J,)."""

    scale: float


class Boosted(NamedTuple):
    """The weights of the rows at an exit are multiplied by factors (2, J); asks for nothing."""

    number: int
    factor: FloatArray


class Parted(NamedTuple):
    """The rows at an exit go to two others; asks for sums and numbers of both, (2, 4, J)."""

    number: int
    below: int
    feature: int
    side: NDArray[np.uint8]
    scale: float


class Summed(NamedTuple):
    """Asks for histograms of the rows at an exit for some labels."""

    number: int
    labels: IntArray
    scale: float


class Exact(NamedTuple):
    """Asks for what `exact_sum` makes the sum of the weights at an exit of, times factors."""

    number: int
    for_it: FloatArray
    against: FloatArray


class LabelShard(Shard):
    """Rows of one place with a weight for each label; `n_classes` is their number."""

    def __init__(
        self,
        columns: BinnedColumns,
        label: IntArray,
        weights: FloatArray | None,
        n_classes: int,
        workers: Workers,
    ) -> None:
        super().__init__(columns, label, weights, workers, n_classes)
        self._n_labels = n_classes
        self._label = np.repeat(np.arange(n_classes, dtype=np.int32), self._n_class)
        self._spare = np.empty(self._n, dtype=np.int32)
        self._width = math.prod(kernels.lanes_of(n_classes))

    def _by_class(self, fixed: NDArray[np.int64]) -> tuple[int, ...]:  # type: ignore[override]
        ends = np.cumsum(self._n_class)[:-1]
        return tuple(int(part.sum()) for part in np.split(fixed, ends))

    def _parts(self, weights: FloatArray) -> NDArray[np.int64]:
        return exact_parts(weights)[None]

    def begin(self, exponent: int, scale: float) -> tuple[int, ...]:
        """Set the weights to those before the first split; no exits are open."""
        found = super().begin(exponent, scale)
        self._of_labels = aligned((self._n, self._width), np.float64)
        self._of_labels[:, : self._n_labels] = self._weight[:, None]
        self._of_labels[:, self._n_labels :] = 0.0
        self._exits: dict[int, IntArray] = {}
        return found

    def masses(self, told: Sequence[Any]) -> NDArray[np.int64]:
        """Do what has not been done of all that has been told; answer the last question."""
        answer = np.zeros(0, dtype=np.int64)
        for k, one in enumerate(told[self._seen :], self._seen):
            if k == len(told) - 1 or isinstance(one, Entered | Boosted | Parted):
                answer = self._DO[type(one)](self, one)
        self._seen = len(told)
        return answer

    def _entered(self, told: Entered) -> NDArray[np.int64]:
        self._exits = {0: np.arange(self._n, dtype=np.int32)}
        return self._sums_of(0, told.scale)

    def _sums_of(self, number: int, scale: float) -> NDArray[np.int64]:
        rows = self._exits[number]
        found = np.zeros((3, self._width), dtype=np.int64)
        none = np.empty((0, self._width))
        kernels.take(rows, self._label, none, scale, self._of_labels, self._fixed, found)
        n_own = np.bincount(self._label[rows], minlength=self._n_labels)
        return np.concatenate([found[:, : self._n_labels], n_own[None]])

    def _boosted(self, told: Boosted) -> NDArray[np.int64]:
        by = np.ones((2, self._width))
        by[:, : self._n_labels] = told.factor
        found = np.zeros((3, self._width), dtype=np.int64)
        rows = self._exits[told.number]
        kernels.take(rows, self._label, by, 1.0, self._of_labels, self._fixed, found)
        return found

    def _parted(self, told: Parted) -> NDArray[np.int64]:
        rows = self._exits[told.number].copy()
        n_below = kernels.part(rows, self._codes[told.feature], told.side, self._spare)
        self._exits[told.below], self._exits[told.below + 1] = rows[:n_below], rows[n_below:]
        return np.stack([self._sums_of(told.below + side, told.scale) for side in (0, 1)])

    def _summed(self, told: Summed) -> NDArray[np.int64]:
        blocks, lanes = kernels.lanes_of(len(told.labels))
        bins = most_bins(self._n_bins, self._columns.special)
        sums, d = aligned((len(self._codes), 2, blocks * lanes * bins)), len(self._codes)
        rows, place = self._exits[told.number], np.full(self._n_labels, -1, dtype=np.int32)
        place[told.labels] = np.arange(len(told.labels), dtype=np.int32)
        own = self._codes, rows, self._of_labels, self._label, told.scale, told.labels, place, sums

        def work(first: int, last: int) -> None:
            kernels.add_up(*own, first, last)

        self.workers.run(work, d, 2, len(rows) * (blocks + 1))
        return sums

    def _exact(self, told: Exact) -> NDArray[np.int64]:
        rows = self._exits[told.number]
        is_own = self._label[rows, None] == np.arange(self._n_labels)
        factor = np.where(is_own, told.for_it, told.against)
        return exact_parts((self._of_labels[rows, : self._n_labels] * factor).ravel())

    _DO: ClassVar[Mapping[type, Any]] = {
        Entered: _entered,
        Boosted: _boosted,
        Parted: _parted,
        Summed: _summed,
        Exact: _exact,
    }


class RowsAt:
    """The rows at an exit, which shards have: its number, and their sums and numbers."""

    def __init__(self, number: int, sums: NDArray[np.int64]) -> None:
        self.number, self.sums, self.counts = number, sums[:3], sums[3]

    def __len__(self) -> int:
        return int(self.counts.sum())


class ShardedLabelTrees(LabelTrees):
    """A chain of trees that vote for each label, whose rows shards have."""

    def _begin(self) -> None:
        """Take the sum of the weights of all rows, rounded once."""
        self._engine = self.data.problem.elsewhere.engine
        self._whole = sum_of_weights(self._engine)
        self._told: list[Any] = []
        self._number = 0
        self._rows = None

    def _ask(self, told: Any) -> NDArray[np.int64]:
        self._told.append(told)
        return merge(self._engine.masses(self._told))

    def _enter(self, edges: Any, masses: NDArray[np.int64]) -> None:
        """Open the entrance of a tree, where exits join."""
        self._rows = RowsAt(0, self._ask(Entered(self._scale)))
        self._number = 0
        super()._enter(edges, self._rows.sums)

    def _add_up(self, rows: Any, *factor: FloatArray) -> NDArray[np.int64]:
        """Return sums of rows; those of an entrance are taken when it is opened."""
        if factor:
            self._told.append(Boosted(rows.number, np.stack(factor)))
        if factor or rows is None:
            return np.zeros((3, self.n_labels), dtype=np.int64)
        found: NDArray[np.int64] = rows.sums
        return found

    def _counts(self, rows: Any) -> NDArray[np.int64]:
        """Return the number of rows of each label, (J,)."""
        found: NDArray[np.int64] = rows.counts
        return found

    def _real_sum(self, exit_: LabelExit) -> float:
        """Return the sum of the real weights at an exit, rounded once."""
        rows: Any = exit_.rows
        return exact_sum(self._ask(Exact(rows.number, exit_.for_it, exit_.against)))

    def _part(self, cut: StumpCut, rows: Any) -> Any:
        """Return the rows below a cut and those above it."""
        self._number += 2
        below, side = self._number - 1, self._labels.side_of_codes(cut)
        sums = self._ask(Parted(rows.number, below, int(cut.feature), side, self._scale))
        return RowsAt(below, sums[0]), RowsAt(below + 1, sums[1])

    def _sums(self, exit_: LabelExit, labels: IntArray) -> Sums:
        """Return sums of the rows of an exit for some labels."""
        rows: Any = exit_.rows
        found = self._ask(Summed(rows.number, labels, self._scale))
        sums = aligned(found.shape)
        sums[...] = found
        return sums

    def _weights_at(self, exit_: LabelExit) -> tuple[FloatArray, float]:
        """Return no weights, and their scale."""
        return np.empty(0), self._scale
