"""Matryoshki on rows in several places: growth by the masses that shards have at ports."""

from __future__ import annotations

from typing import Any

import numpy as np

from pboost.data.engines import Engine
from pboost.growth.greedy import GreedyGrowth
from pboost.growth.nested import NestedGrowth
from pboost.growth.ports import Matryoshka, Port
from pboost.growth.step import fixed_scale
from pboost.weak.base import Weights
from pboost.weak.port_shards import Ports, PortSearch
from pboost.weak.shards import PathWeights, sum_of_weights

_NO_REAL = np.empty(0)


class ShardedMatryoshka(Matryoshka):
    """A matryoshka whose rows shards have; parameters are those of its growth, and an engine."""

    def __init__(self, engine: Engine, *given: Any) -> None:
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
