"""Grow boosted trees with exact observations on rows in partitions.

The compiled grower computes votes from the class sums of both branches, as it does for one table.
The weights of a node are only updated after its votes are known, and only if it may be split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core.voting import VoteRule
from pboost.data.columns.columns import to_fixed_point
from pboost.data.columns.prebuilt import most_bins
from pboost.data.read.check_xy import AbsentClassError
from pboost.data.training_data import TrainingData
from pboost.distributed.engine import (
    NO_PARTS,
    Engine,
    check_size,
    class_sums,
    exact_sum,
    merge,
    shared_scale,
)
from pboost.distributed.tree_partitions import (
    Asking,
    Calls,
    NodeQuery,
    Queries,
    ShardedArrays,
    TreeShard,
)
from pboost.growth.graph_growth import TreeLimits
from pboost.growth.tree import BoostedArrays, limits_of
from pboost.models.graph import DecisionGraph
from pboost.models.graph_arrays import OUT
from pboost.values import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """The state before the first split.

    Attributes
    ----------
    data : TrainingData
        Data of the fit, without its rows.
    n : int
        Number of rows with positive weight.
    cells : ndarray of int64, shape (d, b, 3)
        Class sums and number of rows in each bin.
    commands : list of Queries
        Requests that were sent to the partitions so far.
    """

    data: TrainingData
    n: int
    cells: NDArray[np.int64]
    commands: list[Queries]


def begin_boosted(engine: Engine, parts: Any) -> Root:
    """Set the initial weights of all partitions to the weights for one table with all rows.

    Raises
    ------
    ValueError
        If a class has no weight, there are more rows than int32 can count, or the range of the
        weights exceeds the precision of float64.
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
    root, none = np.zeros(1, dtype=np.int32), np.empty((1, 0))
    commands = [Queries([NodeQuery("cells", 0, root, root, none)])]
    columns = parts.problem.columns
    bins = most_bins(columns.n_bins, columns.special)
    cells = TreeShard.merge(engine.masses(commands)).total.reshape(-1, bins, 3)
    masses = cells[0, :, :2].sum(axis=0).tolist()
    bin_start = np.zeros((cells.shape[0], cells.shape[1] + 1), dtype=np.int32)
    np.cumsum(cells[:, :, 2], axis=1, out=bin_start[:, 1:])
    data = parts.class_data(exponent, scale, (masses[0], masses[1]), bin_start)
    return Root(data, n, cells, commands)


class ShardedBoosted(ShardedArrays, BoostedArrays):
    """The arrays of a boosted tree whose rows are in partitions."""

    def __init__(
        self,
        data: TrainingData,
        weak: Any,
        rule: VoteRule,
        limits: TreeLimits,
        n_replayed: int = 0,
    ) -> None:
        root, engine = weak.rows.root, weak.rows.engine
        tree_limits = limits_of(weak, limits, root.n, root.data.columns.n_features, n_replayed)
        super().__init__(root.data, root.n, tree_limits, 0, Calls(engine, root.commands), rule=rule)
        self.replayed_thresholds, self.replayed_missing = np.empty(0), None
        self.calls.run([self.begin(root.cells)])

    def replay(self, model: DecisionGraph) -> None:
        """Rebuild the nodes of an existing tree. Send one request per level."""
        ahead = self.ahead
        nodes = (
            {0: int(self.ahead_of[0])} if model.n_nodes else {}
        )  # the key is the node of the model
        while nodes := {split: node for split, node in nodes.items() if ahead.stored[node] < 0}:
            ahead.make_room(ahead.n_nodes + 2 * len(nodes) + 2)
            tests = {
                node: self.test_of(model, split, node, ahead.subset)
                for split, node in nodes.items()
            }
            self.calls.run([self.split_as(tests)])
            child = {split: int(ahead.node["child"][node]) for split, node in nodes.items()}
            nodes = {
                int(next_): child[split] + side
                for split in nodes
                for side, next_ in enumerate(model.next[split])
                if next_ != OUT
            }
        super().replay(model)

    def class_sums(self) -> tuple[float, float]:
        """Return the correctly rounded sums of the weights of both classes."""
        return class_sums(self.calls.engine)

    def real_sums(self, nodes: Sequence[int]) -> FloatArray:
        """Return the correctly rounded sums of the class weights at nodes, shape (nodes, 2)."""
        sums = np.empty((len(nodes), 2))
        ahead = self.ahead_of[[*nodes]]
        for k in np.flatnonzero(ahead < 0).tolist():
            sums[k] = self._real_sums_at(nodes[k])
        is_there = ahead >= 0
        self.calls.run([self._sums_there(ahead[is_there], sums, is_there)])
        return sums

    def _sums_there(self, nodes: IntArray, sums: FloatArray, is_there: NDArray[np.bool_]) -> Asking:
        """Request the class weights of nodes that are split ahead of growth."""
        if len(nodes):
            answered = yield self._told([self._query("weight_sums", nodes)])
            parts = answered.totals(len(nodes), 2, *NO_PARTS.shape)
            sums[is_there] = [
                [exact_sum(class_parts) for class_parts in of_node] for of_node in parts
            ]
