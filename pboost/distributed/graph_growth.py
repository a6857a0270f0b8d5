"""Soft trees and matryoshki on rows in partitions: growth by the masses that shards have.

One path leads to each exit of a tree. Shards are told the cuts on it and what weights are
multiplied by at each, make the weights there anew from those at the root, and answer with their
masses: nothing that is asked depends on what has been asked before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import voting
from pboost._core.voting import VoteRule
from pboost.data.training import TrainingData
from pboost.distributed.engines import Engine, exact_sum, merge, sum_of_weights
from pboost.distributed.graph_shards import (
    PathSearch,
    PathWeights,
    Shard,
    ShardedSearch,
    ShardedStump,
)
from pboost.growth.matryoshki import GreedyGrowth, Matryoshka, NestedGrowth, rest_of, share_of
from pboost.growth.soft_tree import Port, PortSplit, SoftExit, SoftTree
from pboost.growth.step import TreeLimits, fixed_scale
from pboost.observation.answers import Observer, only_exit
from pboost.values import FloatArray
from pboost.weak.base import Weights


class Derive(NamedTuple):
    """Weights with a number, made of others.

    Of none: the starting weights as shares of `total`; of some with a `cut`: what answers make of
    the one; without: their "sum" or "product", the "share" that all but the first are of the first,
    what the shares of exit 1 and of exit 0 leave for exit 0 ("rest"), or the one "boosted" by
    `factors` of the classes.
    """

    number: int
    of: tuple[int, ...]
    cut: Any = None
    total: float = 1.0
    what: str = "sum"
    factors: tuple[float, float] = (1.0, 1.0)


class Drop(NamedTuple):
    """Weights that are not needed any more."""

    number: int


class MassQuery(NamedTuple):
    """What is asked of weights: "sums" of the classes, masses at "edges" of bins, or at "sides"."""

    what: str
    number: int
    scale: float = 1.0
    cut: Any = None
    unit: FloatArray | None = None


class PortShard(Shard):
    """Rows of one place, with weights at ports; parameters are those of `Shard`."""

    def begin(self, exponent: int, scale: float) -> tuple[int, ...]:
        """Set the weights to those before the first cut; there are no ports."""
        self._ports: dict[int, FloatArray] = {}
        return super().begin(exponent, scale)

    def masses(self, commands: Sequence[Any]) -> NDArray[np.int64]:
        """Do what has not been done of all that has been told; answer the last question."""
        for command in commands[self._seen :]:
            if isinstance(command, Derive):
                self._ports[command.number] = self._made(command)
            elif isinstance(command, Drop):
                del self._ports[command.number]
        self._seen = len(commands)
        # What is gone may have been told after the question.
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
    """What shards have been told of weights at ports.

    Parameters
    ----------
    engine : Engine
        Has the shards.
    n_rows : int
        Number of rows of all.
    """

    def __init__(self, engine: Engine, n_rows: int) -> None:
        self.engine, self.n_rows, self.commands = engine, n_rows, list[Any]()
        self._number = 0

    def made(self, of: Sequence[RemoteWeights], *how: Any, **more: Any) -> RemoteWeights:
        """Have shards make weights of others, see `Derive`; returns what stands for them."""
        self._number += 1
        of_numbers = tuple(array.number for array in of)
        self.commands.append(Derive(self._number, of_numbers, *how, **more))
        return RemoteWeights(self, self._number)

    def ask(self, *asked: Any) -> NDArray[np.int64]:
        """Return what all shards answer to a question, see `MassQuery`."""
        self.commands.append(MassQuery(*asked))
        return merge(self.engine.masses(self.commands))


class RemoteWeights:
    """What stands for weights of all rows, which shards have."""

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
        """Return whether any may be there: shards are asked with what precision."""
        return True


class PortSearch(PathSearch):
    """The search for stumps at any port."""

    def fill_fixed(self, weights: Weights) -> None:
        """Note the masses of weights in their unit."""
        array: Any = weights.real
        negative, positive = array.ports.ask("sums", array.number, weights.scale).tolist()
        weights.masses = negative, positive

    def send(self, cut: Any, source: Any, target: Weights) -> None:
        """Have shards make weights of others."""
        made: Any = source.ports.made([source], cut)
        target.real = made
        self.fill_fixed(target)

    def side_masses(
        self, cut: Any, source: Any, scratch: Weights, unit: FloatArray | None = None
    ) -> FloatArray:
        """Return the masses (side, class) that a cut makes of weights."""
        sent = self._sent_cut(cut, np.ones((2, 2)))
        asked = source.ports.ask("sides", source.number, 1.0, sent, unit)
        total, below = asked.astype(np.float64)
        return np.stack([below, total - below])


@dataclass(frozen=True, slots=True)
class PortStump(ShardedStump):
    """A stump at any port."""

    searches: ClassVar = PortSearch


_NO_REAL, _NO_FIXED = np.empty(0), np.empty(0, dtype=np.int64)


def engine_of(observer: Observer) -> Engine:
    """Return what has the shards of a search."""
    assert isinstance(observer.search, ShardedSearch)
    return observer.search.engine


class ShardedSoft(SoftTree):
    """A soft tree whose rows shards have; parameters are those of `SoftTree`."""

    def __init__(
        self, data: TrainingData, observer: Observer, rule: VoteRule, limits: TreeLimits
    ) -> None:
        self._engine = engine_of(observer)
        self._sent: dict[int, Any] = {}  # by the serial number of the exit that it leads to
        super().__init__(data, observer, rule, limits)

    def sum_of_weights(self) -> float:
        """Return the sum of the starting weights of all shards, rounded once."""
        return sum_of_weights(self._engine)

    def weights_at(self, exit_: SoftExit) -> Weights:
        """Return what shards have at an exit."""
        path, scale = self._path_to(exit_), fixed_scale(exit_.bound)
        edge = merge(self._engine.ask("masses_at", path, self.total, scale))
        assert isinstance(self.search, PathSearch)
        return PathWeights(
            _NO_REAL, _NO_FIXED, scale, self.search.total_masses(edge), edge, path, self.total
        )

    def real_sums(self, exit_: SoftExit, split: PortSplit, side: int) -> tuple[float, float]:
        """Return the sums of the weights of the classes at one exit of a split of an exit."""
        path = [*self._path_to(exit_), self._sent_by(split, side)]
        negative, positive = merge(self._engine.ask("weight_sums_at", path, self.total))
        return exact_sum(negative), exact_sum(positive)

    def _path_to(self, exit_: SoftExit) -> list[Any]:
        """Return the cuts on the way to an exit, and what weights are multiplied by there."""
        path, at = [], exit_
        while at.above is not None:
            path.append(self._sent_to(at))
            at = at.above
        return path[::-1]

    def _sent_to(self, exit_: SoftExit) -> Any:
        """Return the cut at whose side an exit lies, and what weights are multiplied by there."""
        if exit_.serial not in self._sent:
            assert exit_.above is not None
            assert exit_.above.split is not None
            ((_, side),) = exit_.edges
            self._sent[exit_.serial] = self._sent_by(exit_.above.split, side)
        return self._sent[exit_.serial]

    def _sent_by(self, split: PortSplit, side: int) -> Any:
        """Return the cut of a split, and what weights are multiplied by that take one exit."""
        vote = split.step.votes[side]
        target = PathWeights(_NO_REAL, _NO_FIXED, 1.0, (0, 0))
        split.answers.send(only_exit(side, np.exp([vote, -vote])), _NO_REAL, target)
        (sent,) = target.path
        return sent


class ShardedMatryoshka(Matryoshka):
    """A matryoshka whose rows shards have; parameters are those of its growth."""

    def __init__(self, *arguments: Any) -> None:
        engine = engine_of(arguments[1])
        n_rows = int(arguments[0].columns.bin_start[:, -1].max(initial=0))
        self._arrays = JoinWeights(engine, n_rows)
        super().__init__(*arguments)

    def first_weights(self) -> Any:
        """Return what stands for the weights of the rows."""
        return self._arrays.made([], total=sum_of_weights(self._arrays.engine))

    def weights_at(self, port: Port) -> Weights:
        """Return what shards have at a port: one question tells all that a search reads."""
        scale = fixed_scale(port.bound)
        edge = self._arrays.ask("edges", port.weight.number, scale)
        assert isinstance(self.search, PortSearch)
        return PathWeights(port.weight, self.fixed, scale, self.search.total_masses(edge), edge)

    def shares(self, total: Any, below: list[Any], above: list[Any]) -> tuple[Any, Any]:
        """Return what stands for the probabilities of either exit."""
        made = self._arrays.made
        share, other = (made([total, *parts], what="share") for parts in (above, below))
        return made([share, other], what="rest"), share

    def boosted(self, weight: Any, negative: float, positive: float) -> Any:
        """Return what stands for weights multiplied by a factor of each class."""
        return self._arrays.made([weight], what="boosted", factors=(negative, positive))

    def empty(self, source: Any, scale: float) -> Weights:
        """Return where weights are noted that shards make of others."""
        return Weights(_NO_REAL, self.fixed, scale, (0, 0))


class ShardedNested(ShardedMatryoshka, NestedGrowth):
    """A matryoshka of a given shape."""


class ShardedGreedy(ShardedMatryoshka, GreedyGrowth):
    """A matryoshka that finds its own shape."""
