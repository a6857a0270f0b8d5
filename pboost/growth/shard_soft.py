"""Soft trees on rows in several places: growth by the masses that shards have at open exits.

One path leads to each exit of a tree. Shards are told the cuts on it and what weights are
multiplied by at each, make the weights there anew from those at the root, and answer with their
masses: nothing that is asked depends on what has been asked before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pboost._core.votes import VoteRule
from pboost.data.engines import Engine, exact_sum, merge
from pboost.data.training import TrainingData
from pboost.growth.ports import Split
from pboost.growth.soft_tree import SoftExit, SoftTree
from pboost.growth.step import TreeLimits, fixed_scale
from pboost.observation.answers import Observer, only_exit
from pboost.weak.base import Weights
from pboost.weak.shards import PathSearch, PathWeights, sum_of_weights

_NO_REAL, _NO_FIXED = np.empty(0), np.empty(0, dtype=np.int64)


class ShardedSoft(SoftTree):
    """A soft tree whose rows shards have; parameters are those of `SoftTree`, and an engine."""

    def __init__(
        self,
        data: TrainingData,
        observer: Observer,
        rule: VoteRule,
        limits: TreeLimits,
        engine: Engine,
    ) -> None:
        self._engine = engine
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
