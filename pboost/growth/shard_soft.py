"""Soft trees on rows in several places: growth by the masses that shards have at open exits.

One path leads to each exit of a tree. Shards are told the cuts on it and what weights are
multiplied by at each, make the weights there anew from those at the root, and answer with their
masses: nothing that is asked depends on what has been asked before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pboost._core.votes import VoteRule
from pboost.data.engines import Engine, merge
from pboost.data.training import TrainingData
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
        path, at = [], exit_
        while at.above is not None:
            path.append(self._sent_to(at))
            at = at.above
        scale = fixed_scale(exit_.bound)
        edge = merge(self._engine.ask("masses_at", path[::-1], self.total, scale))
        assert isinstance(self.search, PathSearch)
        return PathWeights(
            _NO_REAL, _NO_FIXED, scale, self.search.whole(edge), edge, path[::-1], self.total
        )

    def _sent_to(self, exit_: SoftExit) -> Any:
        """Return the cut at whose side an exit lies, and what weights are multiplied by there."""
        if exit_.serial not in self._sent:
            assert exit_.above is not None
            assert exit_.above.split is not None
            ((_, side),), found = exit_.edges, exit_.above.split
            vote = found.step.votes[side]
            target = PathWeights(_NO_REAL, _NO_FIXED, 1.0, (0, 0))
            found.answers.send(only_exit(side, np.exp([vote, -vote])), _NO_REAL, target)
            (self._sent[exit_.serial],) = target.path
        return self._sent[exit_.serial]
