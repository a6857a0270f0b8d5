"""Boosted trees of exact answers on rows in several places: growth by what shards hold at nodes.

The compiled grower makes votes of the masses of a node's sides, as it does of rows of its own; a
node's weights are refined only once its votes are made, and only where it may be split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core.votes import VoteRule
from pboost.data.check_xy import AbsentClassError
from pboost.data.columns import to_fixed_point
from pboost.data.engines import Engine, check_size, class_sums, exact_sum, merge, shared_scale
from pboost.data.training import TrainingData
from pboost.growth.exact_tree import BoostedArrays, limits_of
from pboost.growth.shard_trees import LEAST_MASS, Question, ShardedArrays, TreeShard
from pboost.growth.step import TreeLimits


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """What is known of all rows before the first split.

    Attributes
    ----------
    data : TrainingData
        Data of the fit, without its rows.
    n : int
        Number of rows of positive weight.
    cells : ndarray of int64, shape (d, b, 3)
        Masses of the classes and number of rows in each bin.
    told : list of Question
        What shards have been asked for it.
    """

    data: TrainingData
    n: int
    cells: NDArray[np.int64]
    told: list[Question]


def begin_boosted(engine: Engine, parts: Any) -> Root:
    """Give all shards the weights that one fit on all their rows begins with.

    Raises
    ------
    ValueError
        If a class has no weight, there are more rows than int32 counts, or the weights differ by
        more than floating point can hold.
    """
    n_class = merge(engine.ask("class_sizes"))
    n, exponent = int(n_class.sum()), 0
    check_size(n)
    if not n_class.all():
        raise AbsentClassError("sample_weight: expected both classes to have positive weight")
    if parts.weights is None:
        scale, _ = to_fixed_point(np.ones(1), n)
    else:
        greatest = max(heaviest for _, _, heaviest in engine.ask("extent"))
        exponent, scale, are_positive = shared_scale(engine, n, greatest)
        if not are_positive:
            raise ValueError(
                "sample_weight: the weights differ by more than floating point can hold"
            )
    engine.ask("begin", exponent, scale)
    told = [Question("cells", 0)]
    cells = TreeShard.merge(engine.masses(told)).total
    masses = cells[0, :, :2].sum(axis=0).tolist()
    bin_start = np.zeros((cells.shape[0], cells.shape[1] + 1), dtype=np.int32)
    np.cumsum(cells[:, :, 2], axis=1, out=bin_start[:, 1:])
    data = parts.whole(exponent, scale, (masses[0], masses[1]), bin_start)
    return Root(data, n, cells, told)


class ShardedBoosted(ShardedArrays, BoostedArrays):
    """The arrays of a boosted tree whose rows shards have."""

    def __init__(self, data: TrainingData, weak: Any, rule: VoteRule, limits: TreeLimits) -> None:
        root, engine = weak.rows.root, weak.rows.engine
        own = limits_of(weak, limits, root.n, root.data.columns.n_features)
        super().__init__(root.data, root.n, own, 0, engine, rule, root.told)
        self._keep(0, root.cells)
        self.given, self.given_missing = np.empty(0), None

    def class_sums(self) -> tuple[float, float]:
        """Return the sums of the weights of the classes, each rounded once."""
        return class_sums(self._engine)

    def real_sums(self, node: int) -> tuple[float, float]:
        """Return the sums of the weights of the classes at a node, each rounded once."""
        leaves, below = [], [node]
        while below:
            one = below.pop()
            child = int(self.node["child"][one])
            if child < 0:
                leaves.append(one)
            else:
                below += child, child + 1
        negative, positive = self._ask("weight_sums", node, *leaves).total
        return exact_sum(negative), exact_sum(positive)

    def _measure(self, node: int) -> None:
        """Note what a node is like; its certificate is of its masses as they are.

        So weights are refined afterwards, of nodes that may be split, as `refine` in
        `_core/_grower.pxd` does.
        """
        self.node["pure"][node] = np.count_nonzero(self.mass[node] > 0) < 2
        if node and float(self.mass[node].sum()) < LEAST_MASS and self._may_split(node):
            self._refine(node)
