"""Matryoshki on rows in several places: growth by the masses that shards have at ports."""

from __future__ import annotations

from typing import Any

import numpy as np

from pboost.data.engines import Engine, exact_sum, merge
from pboost.growth.greedy import GreedyGrowth
from pboost.growth.nested import NestedGrowth
from pboost.growth.ports import Matryoshka
from pboost.weak.base import Weights
from pboost.weak.port_shards import Ports
from pboost.weak.shards import PathWeights


class ShardedMatryoshka(Matryoshka):
    """A matryoshka whose rows shards have; parameters are those of its growth, and an engine."""

    def __init__(self, engine: Engine, *given: Any) -> None:
        n_rows = int(given[0].columns.bin_start[:, -1].max(initial=0))
        self._engine, self._arrays = engine, Ports(engine, n_rows)
        super().__init__(*given)

    def first_weights(self) -> Any:
        """Return what stands for the weights of the rows."""
        total = exact_sum(merge(self._engine.ask("weight_sums")))
        return self._arrays.made([], total=total)

    def empty(self, source: Any, scale: float) -> Weights:
        """Return where weights are noted that shards make of others."""
        return PathWeights(np.empty(0), self.fixed, scale, (0, 0))


class ShardedNested(ShardedMatryoshka, NestedGrowth):
    """A matryoshka of a given shape."""


class ShardedGreedy(ShardedMatryoshka, GreedyGrowth):
    """A matryoshka that finds its own shape."""
