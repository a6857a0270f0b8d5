"""Grow soft trees and matryoshka models on rows in partitions.

Each exit of a tree has one path. The partitions receive the splits on the path and the factors of
the weights at each split, recompute the weights from the weights at the root, and return their
sums. A request does not depend on earlier requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import voting
from pboost._core.voting import VoteRule
from pboost.data.training_data import TrainingData
from pboost.distributed.engine import Engine, exact_sum, merge, sum_of_weights
from pboost.distributed.graph_partitions import (
    PathSearch,
    PathWeights,
    Shard,
    ShardedSearch,
    ShardedStump,
)
from pboost.growth.graph_growth import TreeLimits, fixed_scale
from pboost.growth.matryoshki import GreedyGrowth, Matryoshka, NestedGrowth, rest_of, share_of
from pboost.growth.soft_tree import Port, PortSplit, SoftExit, SoftTree
from pboost.observation.answers import Observer, only_exit
from pboost.values import FloatArray
from pboost.weak.base import Weights


class Derive(NamedTuple):
    """Command to compute weights and store them under the index `number`.

    Without sources, the result is the initial weights divided by `total`. With a `cut`, the result
    is the weights of the source after the split. Otherwise, `what` names the operation on the
    sources. "share" divides the sum of the other sources by the first source, and "boosted"
    multiplies the source by a factor per class.
    """

    number: int
    of: tuple[int, ...]
    cut: Any = None
    total: float = 1.0
    what: str = "sum"
    factors: tuple[float, float] = (1.0, 1.0)


class Drop(NamedTuple):
    """Command to delete weights."""

    number: int


class MassQuery(NamedTuple):
    """Request for sums of weights per class, at bin edges, or by branch."""

    what: str
    number: int
    scale: float = 1.0
    cut: Any = None
    unit: FloatArray | None = None


class PortShard(Shard):
    """Rows of one partition and their weights at ports (merged exits). See `Shard`."""

    def begin(self, exponent: int, scale: float) -> tuple[int, ...]:
        """Set the initial weights and delete all ports."""
        self._ports: dict[int, FloatArray] = {}
        return super().begin(exponent, scale)

    def masses(self, commands: Sequence[Any]) -> NDArray[np.int64]:
        """Execute the new commands and return the result of the last request."""
        for command in commands[self._seen :]:
            if isinstance(command, Derive):
                self._ports[command.number] = self._made(command)
            elif isinstance(command, Drop):
                del self._ports[command.number]
        self._seen = len(commands)
        # Commands to delete weights may follow the request.
        return self._answer(
            next(command for command in reversed(commands) if isinstance(command, MassQuery))
        )

    def _made(self, command: Derive) -> FloatArray:
        if not command.of:
            assert self._start is not None
            start_weight: FloatArray = self._start / command.total
            return start_weight
        if command.cut is not None:
            weight, fixed = np.empty(self._n), np.empty(self._n, dtype=np.int64)
            self._sent(command.cut, self._ports[command.of[0]], weight, 1.0, fixed)
            return weight
        first, *others = (self._ports[number] for number in command.of)
        if command.what == "share":
            return share_of(first, others)
        if command.what == "rest":
            return rest_of(first, *others)
        weight = first.copy()
        if command.what == "boosted":
            weight[: self._n_class[0]] *= command.factors[0]
            weight[self._n_class[0] :] *= command.factors[1]
        for other in others:
            if command.what == "product":
                weight *= other
            else:
                weight += other
        return weight

    def _answer(self, asked: MassQuery) -> NDArray[np.int64]:
        real, middle = self._ports[asked.number], self._n_class[0]
        fixed = np.empty(self._n, dtype=np.int64)
        if asked.what == "sides":
            assert asked.cut is not None
            assert asked.unit is not None
            return self._sides_of(real, asked.cut, asked.unit)
        voting.to_fixed(real, asked.scale, fixed)
        masses = int(fixed[:middle].sum()), int(fixed[middle:].sum())
        if asked.what == "sums":
            return np.array(masses, dtype=np.int64)
        return self._edges(fixed, masses)


class JoinWeights:
    """The log of weight updates and the engine that executes it.

    Parameters
    ----------
    engine : Engine
        The engine of the partitions.
    n_rows : int
        Number of rows in all partitions.
    """

    def __init__(self, engine: Engine, n_rows: int) -> None:
        self.engine, self.n_rows, self.commands = engine, n_rows, list[Any]()
        self._number = 0

    def made(self, of: Sequence[RemoteWeights], *how: Any, **more: Any) -> RemoteWeights:
        """Add a `Derive` command to the log and return a reference to the result."""
        self._number += 1
        of_numbers = tuple(array.number for array in of)
        self.commands.append(Derive(self._number, of_numbers, *how, **more))
        return RemoteWeights(self, self._number)

    def ask(self, *asked: Any) -> NDArray[np.int64]:
        """Return the result of a `MassQuery`, summed over the partitions."""
        self.commands.append(MassQuery(*asked))
        return merge(self.engine.masses(self.commands))


class RemoteWeights:
    """Reference to weights that are stored in the partitions."""

    def __init__(self, ports: JoinWeights, number: int) -> None:
        self.ports, self.number = ports, number

    def __len__(self) -> int:
        return self.ports.n_rows

    def __add__(self, other: RemoteWeights) -> RemoteWeights:
        return self.ports.made([self, other])

    def __mul__(self, other: RemoteWeights) -> RemoteWeights:
        return self.ports.made([self, other], what="product")

    def __del__(self) -> None:
        self.ports.commands.append(Drop(self.number))

    def any(self) -> bool:
        """Return True, because only the partitions have the weights."""
        return True


class PortSearch(PathSearch):
    """Search for stumps at a port."""

    def fill_fixed(self, weights: Weights) -> None:
        """Set the fixed-point class sums of weights."""
        array: Any = weights.real
        negative, positive = array.ports.ask("sums", array.number, weights.scale).tolist()
        weights.masses = negative, positive

    def send(self, cut: Any, source: Any, target: Weights) -> None:
        """Compute the weights after a split in the partitions."""
        made: Any = source.ports.made([source], cut)
        target.real = made
        self.fill_fixed(target)

    def side_masses(
        self, cut: Any, source: Any, scratch: Weights, unit: FloatArray | None = None
    ) -> FloatArray:
        """Return the class sums of both branches of a split, shape (branch, class)."""
        sent = self._sent_cut(cut, np.ones((2, 2)))
        asked = source.ports.ask("sides", source.number, 1.0, sent, unit)
        total, below = asked.astype(np.float64)
        return np.stack([below, total - below])


@dataclass(frozen=True, slots=True)
class PortStump(ShardedStump):
    """A stump at a port."""

    searches: ClassVar = PortSearch


_NO_REAL, _NO_FIXED = np.empty(0), np.empty(0, dtype=np.int64)


def engine_of(observer: Observer) -> Engine:
    """Return the engine of a search."""
    assert isinstance(observer.search, ShardedSearch)
    return observer.search.engine


class ShardedSoft(SoftTree):
    """A soft tree on rows in partitions. See `SoftTree` for the parameters."""

    def __init__(
        self, data: TrainingData, observer: Observer, rule: VoteRule, limits: TreeLimits
    ) -> None:
        self._engine = engine_of(observer)
        self._sent: dict[int, Any] = {}  # the key is the number of the exit
        super().__init__(data, observer, rule, limits)

    def sum_of_weights(self) -> float:
        """Return the correctly rounded sum of the initial weights of all partitions."""
        return sum_of_weights(self._engine)

    def weights_at(self, exit_: SoftExit) -> Weights:
        """Return the sums of the weights at an exit."""
        path, scale = self._path_to(exit_), fixed_scale(exit_.bound)
        edge = merge(self._engine.ask("masses_at", path, self.total, scale))
        assert isinstance(self.search, PathSearch)
        return PathWeights(
            _NO_REAL, _NO_FIXED, scale, self.search.total_masses(edge), edge, path, self.total
        )

    def real_sums(self, exit_: SoftExit, split: PortSplit, side: int) -> tuple[float, float]:
        """Return the class sums at one branch of a split of an exit."""
        path = [*self._path_to(exit_), self._sent_by(split, side)]
        negative, positive = merge(self._engine.ask("weight_sums_at", path, self.total))
        return exact_sum(negative), exact_sum(positive)

    def _path_to(self, exit_: SoftExit) -> list[Any]:
        """Return the splits on the path to an exit and their factors of the weights."""
        path, at = [], exit_
        while at.above is not None:
            path.append(self._sent_to(at))
            at = at.above
        return path[::-1]

    def _sent_to(self, exit_: SoftExit) -> Any:
        """Return the split that leads to an exit and its factors of the weights."""
        if exit_.serial not in self._sent:
            assert exit_.above is not None
            assert exit_.above.split is not None
            ((_, side),) = exit_.edges
            self._sent[exit_.serial] = self._sent_by(exit_.above.split, side)
        return self._sent[exit_.serial]

    def _sent_by(self, split: PortSplit, side: int) -> Any:
        """Return a split and the factors of the weights on one branch."""
        vote = split.step.votes[side]
        target = PathWeights(_NO_REAL, _NO_FIXED, 1.0, (0, 0))
        split.answers.send(only_exit(side, np.exp([vote, -vote])), _NO_REAL, target)
        (sent,) = target.path
        return sent


class ShardedMatryoshka(Matryoshka):
    """A matryoshka on rows in partitions. See the growth class for the parameters."""

    def __init__(self, *arguments: Any) -> None:
        engine = engine_of(arguments[1])
        n_rows = int(arguments[0].columns.bin_start[:, -1].max(initial=0))
        self._arrays = JoinWeights(engine, n_rows)
        super().__init__(*arguments)

    def first_weights(self) -> Any:
        """Return a reference to the initial weights."""
        return self._arrays.made([], total=sum_of_weights(self._arrays.engine))

    def weights_at(self, port: Port) -> Weights:
        """Request the sums of the weights at a port."""
        scale = fixed_scale(port.bound)
        edge = self._arrays.ask("edges", port.weight.number, scale)
        assert isinstance(self.search, PortSearch)
        return PathWeights(port.weight, self.fixed, scale, self.search.total_masses(edge), edge)

    def shares(self, total: Any, below: list[Any], above: list[Any]) -> tuple[Any, Any]:
        """Return references to the probabilities of both branches."""
        made = self._arrays.made
        share, other = (made([total, *parts], what="share") for parts in (above, below))
        return made([share, other], what="rest"), share

    def boosted(self, weight: Any, negative: float, positive: float) -> Any:
        """Return a reference to weights multiplied by a factor per class."""
        return self._arrays.made([weight], what="boosted", factors=(negative, positive))

    def empty(self, source: Any, scale: float) -> Weights:
        """Return an empty array, because the partitions compute the weights."""
        return Weights(_NO_REAL, self.fixed, scale, (0, 0))


class ShardedNested(ShardedMatryoshka, NestedGrowth):
    """A matryoshka with a given shape."""


class ShardedGreedy(ShardedMatryoshka, GreedyGrowth):
    """A matryoshka that chooses its own shape."""
