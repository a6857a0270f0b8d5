"""Soft trees and matryoshki on rows in partitions: growth by the masses that shards have.

One path leads to each exit of a tree. Shards are told the cuts on it and what weights are
multiplied by at each, make the weights there anew from those at the root, and answer with their
masses: nothing that is asked depends on what has been asked before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pboost._core.voting import VoteRule
from pboost.data.training import TrainingData
from pboost.distributed.engines import Engine, exact_sum, merge, sum_of_weights
from pboost.distributed.graph_shards import PathSearch, PathWeights, ShardedSearch
from pboost.distributed.port_shards import Ports, PortSearch
from pboost.growth.matryoshki import GreedyGrowth, Matryoshka, NestedGrowth
from pboost.growth.soft_tree import Port, SoftExit, SoftTree, Split
from pboost.growth.step import TreeLimits, fixed_scale
from pboost.observation.answers import Observer, only_exit
from pboost.weak.base import Weights

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
            _NO_REAL, _NO_FIXED, scale, self.search.whole(edge), edge, path, self.total
        )

    def real_sums(self, exit_: SoftExit, split: Split, side: int) -> tuple[float, float]:
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

    def _sent_by(self, split: Split, side: int) -> Any:
        """Return the cut of a split, and what weights are multiplied by that take one exit."""
        vote = split.step.votes[side]
        target = PathWeights(_NO_REAL, _NO_FIXED, 1.0, (0, 0))
        split.answers.send(only_exit(side, np.exp([vote, -vote])), _NO_REAL, target)
        (sent,) = target.path
        return sent


class ShardedMatryoshka(Matryoshka):
    """A matryoshka whose rows shards have; parameters are those of its growth."""

    def __init__(self, *given: Any) -> None:
        engine = engine_of(given[1])
        n_rows = int(given[0].columns.bin_start[:, -1].max(initial=0))
        self._arrays = Ports(engine, n_rows)
        super().__init__(*given)

    def first_weights(self) -> Any:
        """Return what stands for the weights of the rows."""
        return self._arrays.made([], total=sum_of_weights(self._arrays.engine))

    def weights_at(self, port: Port) -> Weights:
        """Return what shards have at a port: one question tells all that a search reads."""
        scale = fixed_scale(port.bound)
        edge = self._arrays.ask("edges", port.weight.number, scale)
        assert isinstance(self.search, PortSearch)
        return PathWeights(port.weight, self.fixed, scale, self.search.whole(edge), edge)

    def shares(self, whole: Any, below: list[Any], above: list[Any]) -> tuple[Any, Any]:
        """Return what stands for the probabilities of either exit."""
        made = self._arrays.made
        share, other = (made([whole, *parts], what="share") for parts in (above, below))
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
