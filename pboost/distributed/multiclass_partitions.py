"""Grow multiclass graphs on rows in partitions.

A partition stores a weight for each row and class, and the rows at each exit. Exits are numbered.
Exit 0 is the entrance of a tree, which all rows reach.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import multiclass as kernels
from pboost.data.columns.columns import BinnedColumns
from pboost.data.columns.prebuilt import most_bins
from pboost.distributed.engine import exact_parts, exact_sum, merge, sum_of_weights
from pboost.distributed.graph_partitions import Shard
from pboost.growth.multiclass_graph import (
    LabelExit,
    LabelTrees,
    SoftLabelExit,
    SoftLabelTrees,
    arrival,
    join_weights,
)
from pboost.threads import Workers
from pboost.values import FloatArray, IntArray
from pboost.weak.multiclass_search import Sums, aligned
from pboost.weak.stump_search import StumpCut


class Entered(NamedTuple):
    """Command to move all rows to exit 0 and return their sums (3, J) and row counts (J,)."""

    scale: float


class Boosted(NamedTuple):
    """Command to multiply the weights of the rows at an exit by factors (2, J)."""

    number: int
    factor: FloatArray


class PartitionExit(NamedTuple):
    """Command to split the rows at an exit and return sums and counts, shape (2, 4, J)."""

    number: int
    below: int
    feature: int
    side: NDArray[np.uint8]
    scale: float


class Summed(NamedTuple):
    """Request for histograms of the rows at an exit, for some classes."""

    number: int
    classes: IntArray
    scale: float


class ExactSum(NamedTuple):
    """Request for the weights at an exit times factors, for `exact_sum`."""

    number: int
    for_it: FloatArray
    against: FloatArray


class LabelShard(Shard):
    """Rows of one partition with a weight for each of the `n_classes` classes."""

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
        """Set the initial weights and close all exits."""
        answer = super().begin(exponent, scale)
        self._of_labels = aligned((self._n, self._width), np.float64)
        self._of_labels[:, : self._n_labels] = self._weight[:, None]
        self._of_labels[:, self._n_labels :] = 0.0
        self._at_exit = self._of_labels
        self._exits: dict[int, IntArray] = {}
        return answer

    def masses(self, commands: Sequence[Any]) -> NDArray[np.int64]:
        """Execute the new commands and return the result of the last one."""
        answer, new = np.zeros(0, dtype=np.int64), commands[self._seen :]
        latest = {type(command): k for k, command in enumerate(new)}
        for k, command in enumerate(new):
            is_past = isinstance(command, self._ANEW) and k < latest[type(command)]
            if k == len(new) - 1 or (isinstance(command, self._CHANGES) and not is_past):
                answer = self._DO[type(command)](self, command)
        self._seen = len(commands)
        return answer

    def _entered(self, command: Entered) -> NDArray[np.int64]:
        self._exits = {0: np.arange(self._n, dtype=np.int32)}
        return self._sums_of(0, command.scale)

    def _sums_of(self, number: int, scale: float) -> NDArray[np.int64]:
        rows = self._exits[number]
        sums = np.zeros((3, self._width), dtype=np.int64)
        none = np.empty((0, self._width))
        kernels.take(rows, self._label, none, scale, self._of_labels, self._fixed, sums)
        n_own = np.bincount(self._label[rows], minlength=self._n_labels)
        return np.concatenate([sums[:, : self._n_labels], n_own[None]])

    def _boosted(self, command: Boosted) -> NDArray[np.int64]:
        by = np.ones((2, self._width))
        by[:, : self._n_labels] = command.factor
        sums = np.zeros((3, self._width), dtype=np.int64)
        rows = self._exits[command.number]
        kernels.take(rows, self._label, by, 1.0, self._of_labels, self._fixed, sums)
        return sums

    def _parted(self, command: PartitionExit) -> NDArray[np.int64]:
        rows = self._exits[command.number].copy()
        n_below = kernels.part(rows, self._codes[command.feature], command.side, self._spare)
        self._exits[command.below], self._exits[command.below + 1] = rows[:n_below], rows[n_below:]
        return np.stack([self._sums_of(command.below + side, command.scale) for side in (0, 1)])

    def _summed(self, command: Summed) -> NDArray[np.int64]:
        blocks, lanes = kernels.lanes_of(len(command.classes))
        bins = most_bins(self._n_bins, self._columns.special)
        sums, d = aligned((len(self._codes), 2, blocks * lanes * bins)), len(self._codes)
        rows, place = self._exits[command.number], np.full(self._n_labels, -1, dtype=np.int32)
        place[command.classes] = np.arange(len(command.classes), dtype=np.int32)
        arguments = (
            self._codes,
            rows,
            self._at_exit,
            self._label,
            command.scale,
            command.classes,
            place,
            sums,
        )

        def work(first: int, last: int) -> None:
            kernels.add_up(*arguments, first, last)

        self.workers.run(work, d, 2, len(rows) * (blocks + 1))
        return sums

    def _exact(self, command: ExactSum) -> NDArray[np.int64]:
        rows = self._exits[command.number]
        is_own = self._label[rows, None] == np.arange(self._n_labels)
        factor = np.where(is_own, command.for_it, command.against)
        return exact_parts((self._of_labels[rows, : self._n_labels] * factor).ravel())

    #: Commands that change the state, and commands that replace earlier commands of their type.
    _CHANGES: ClassVar[tuple[type, ...]] = (Entered, Boosted, PartitionExit)
    _ANEW: ClassVar[tuple[type, ...]] = ()
    _DO: ClassVar[Mapping[type, Any]] = {
        Entered: _entered,
        Boosted: _boosted,
        PartitionExit: _parted,
        Summed: _summed,
        ExactSum: _exact,
    }


class Turn(NamedTuple):
    """A node on the path to an exit: the branch of each bin code, and probabilities."""

    feature: int
    side: NDArray[np.uint8]
    taken: FloatArray


class Arrived(NamedTuple):
    """Command to compute the weights at an exit and return their sums, shape (3, J)."""

    turns: Sequence[Turn]
    scale: float
    of_start: float


class Sided(NamedTuple):
    """Request for sums of the weights at an exit, shape (J, 2, 3, J)."""

    feature: int
    side: NDArray[np.uint8]
    scale: float


class ExactAt(NamedTuple):
    """The same request as `ExactSum` for an exit that rows reach with a probability."""

    turns: Sequence[Turn]
    for_it: FloatArray
    against: FloatArray


class Joined(NamedTuple):
    """Command to replace the weights by the combined weights of exits."""

    exits: Sequence[tuple[Sequence[Turn], FloatArray, FloatArray]]


class SoftLabelShard(LabelShard):
    """Rows of one partition that reach each exit with a probability."""

    def _probability(self, turns: Sequence[Turn]) -> FloatArray:
        sides = ((turn.side.take(self._codes[turn.feature]), turn.taken) for turn in turns)
        return arrival(self._label, sides)

    def _arrived(self, command: Arrived) -> NDArray[np.int64]:
        probability = self._probability(command.turns)
        self._at_exit = self._of_labels * probability[:, None]
        self._arriving = (self._fixed * (probability * command.of_start) + 0.5).astype(np.int64)
        return self._sum(self._exits[0], command.scale)

    def _sum(self, rows: IntArray, scale: float) -> NDArray[np.int64]:
        sums, none = np.zeros((3, self._width), dtype=np.int64), np.empty((0, self._width))
        kernels.take(rows, self._label, none, scale, self._at_exit, self._arriving, sums)
        return sums[:, : self._n_labels]

    def _sided(self, command: Sided) -> NDArray[np.int64]:
        sums, start = [], 0
        for n in self._n_class:
            rows = np.arange(start, start + n, dtype=np.int32)
            n_below = kernels.part(rows, self._codes[command.feature], command.side, self._spare)
            sums.append(
                [
                    self._sum(side_rows, command.scale)
                    for side_rows in (rows[:n_below], rows[n_below:])
                ]
            )
            start += n
        return np.array(sums)

    def _exact_at(self, command: ExactAt) -> NDArray[np.int64]:
        is_own = self._label[:, None] == np.arange(self._n_labels)
        weight = self._of_labels[:, : self._n_labels] * self._probability(command.turns)[:, None]
        return exact_parts((weight * np.where(is_own, command.for_it, command.against)).ravel())

    def _joined(self, command: Joined) -> NDArray[np.int64]:
        exits = ((self._probability(turns), up, down) for turns, up, down in command.exits)
        self._at_exit = aligned(self._of_labels.shape, np.float64)
        join_weights(self._of_labels, self._label, exits, self._at_exit)
        return np.zeros(0, dtype=np.int64)

    _CHANGES = (Entered, Joined, Arrived)
    _ANEW = (Arrived,)
    _DO: ClassVar[Mapping[type, Any]] = {
        **LabelShard._DO,
        Arrived: _arrived,
        Sided: _sided,
        ExactAt: _exact_at,
        Joined: _joined,
    }


class RowsAt:
    """Reference to the rows at an exit. It stores the number, the sums and the row counts."""

    def __init__(self, number: int, sums: NDArray[np.int64]) -> None:
        self.number, self.sums, self.counts = number, sums[:3], sums[3]

    def __len__(self) -> int:
        return int(self.counts.sum())


class ShardedLabelTrees(LabelTrees):
    """A chain of trees that vote for each class, on rows in partitions."""

    def _begin(self) -> None:
        """Compute the correctly rounded sum of the weights of all rows."""
        self._engine = self.data.problem.elsewhere.engine
        self._whole = sum_of_weights(self._engine)
        self._told: list[Any] = []
        self._number = 0
        self._rows = None

    def _ask(self, command: Any) -> NDArray[np.int64]:
        self._told.append(command)
        return merge(self._engine.masses(self._told))

    def _enter(self, edges: Any, masses: NDArray[np.int64]) -> None:
        """Open the entrance of a tree, which joins all exits."""
        self._rows = RowsAt(0, self._ask(Entered(self._scale)))
        self._number = 0
        super()._enter(edges, self._rows.sums)

    def _add_up(self, rows: Any, *factor: FloatArray) -> NDArray[np.int64]:
        """Return the sums of rows, which are already known at an entrance."""
        if factor:
            self._told.append(Boosted(rows.number, np.stack(factor)))
        if factor or rows is None:
            return np.zeros((3, self.n_labels), dtype=np.int64)
        sums: NDArray[np.int64] = rows.sums
        return sums

    def _counts(self, rows: Any) -> NDArray[np.int64]:
        """Return the number of rows of each class, shape (J,)."""
        counts: NDArray[np.int64] = rows.counts
        return counts

    def _real_sum(self, exit_: LabelExit) -> float:
        """Return the correctly rounded sum of the weights at an exit."""
        rows: Any = exit_.rows
        return exact_sum(self._ask(ExactSum(rows.number, exit_.for_it, exit_.against)))

    def _part(self, cut: StumpCut, rows: Any) -> Any:
        """Return the rows of both children of a split."""
        self._number += 2
        below, side = self._number - 1, self._labels.side_of_codes(cut)
        sums = self._ask(PartitionExit(rows.number, below, int(cut.feature), side, self._scale))
        return RowsAt(below, sums[0]), RowsAt(below + 1, sums[1])

    def _sums(self, exit_: LabelExit, classes: IntArray) -> Sums:
        """Return the histograms of an exit for some classes."""
        rows: Any = exit_.rows
        answer = self._ask(Summed(rows.number, classes, self._weights_at(exit_)[1]))
        sums = aligned(answer.shape)
        sums[...] = answer
        return sums

    def _weights_at(self, exit_: LabelExit) -> tuple[FloatArray, float]:
        """Return an empty array of weights, and their scale."""
        return np.empty(0), self._scale


class ShardedSoftLabels(ShardedLabelTrees, SoftLabelTrees):
    """A chain of trees with soft splits that vote for each class, on rows in partitions."""

    def _turns(self, exit_: LabelExit) -> list[Turn]:
        """Return the nodes on the path to an exit."""
        turns = exit_.turns if isinstance(exit_, SoftLabelExit) else ()
        side = self._labels.side_of_codes
        return [Turn(int(cut.feature), side(cut), taken) for cut, taken in turns]

    def _weigh(self, exit_: SoftLabelExit, scale: float) -> NDArray[np.int64]:
        """Compute the weights at an exit in the partitions, and return their sums."""
        return self._ask(Arrived(self._turns(exit_), exit_.scale, scale))

    def _weights_at(self, exit_: Any) -> tuple[FloatArray, float]:
        """Return an empty array of weights, and their scale."""
        return np.empty(0), exit_.scale

    def _sums_by_side(self, cut: StumpCut, scale: float) -> NDArray[np.int64]:
        """Return sums of the weights at the current exit, by class of the row, branch and class."""
        return self._ask(Sided(int(cut.feature), self._labels.side_of_codes(cut), scale))

    def _real_sum(self, exit_: LabelExit) -> float:
        """Return the correctly rounded sum of the weights at an exit."""
        return exact_sum(self._ask(ExactAt(self._turns(exit_), exit_.for_it, exit_.against)))

    def _multiply(self, exits: Sequence[LabelExit]) -> None:
        """Replace the weights by the combined weights of these exits."""
        factors = [(self._turns(exit_), exit_.for_it, exit_.against) for exit_ in exits]
        self._told.append(Joined(factors))
        self._here = -1
