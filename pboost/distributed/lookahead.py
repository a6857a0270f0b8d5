"""Split the nodes of trees on partitions level by level, ahead of growth.

Growth splits one node at a time, in its own order. The split of a node does not depend on this
order. All nodes of a level are therefore split in one request, and growth uses the results later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pboost._core import grow
from pboost.data.columns.prebuilt import MAX_BINS
from pboost.data.node_inputs.inputs import WORDS
from pboost.growth.tree import COUNTER, NODE, TreeArrays
from pboost.values import FloatArray, IntArray

#: If the sum of a node is smaller, its weights are scaled again, see `_core/_grower.pxd`.
LEAST_MASS = 2.0**40
KNOWN, NO_SPLIT = grow.AHEAD["known"], grow.AHEAD["no split"]


class Ahead(TreeArrays):
    """Nodes that are split from histograms ahead of growth, level by level.

    Nodes are numbered in the order in which they are split.

    Attributes
    ----------
    below : ndarray of int64, shape (nodes, masses)
        Sums of each node, as computed by the split of its parent.
    centre : ndarray of float64, shape (nodes,)
        In a regression, the center of the moments of each node.
    state : ndarray of uint8, shape (nodes,)
        State of the split, see `pboost._core.grow.AHEAD`.
    stored : ndarray of int64, shape (nodes,)
        Position at which the rows of a node are stored, or -1.
    number : ndarray of int32, shape (nodes,)
        Index of the node in the grown tree, or -1 if growth has not reached it.
    """

    def __init__(self, of: TreeArrays) -> None:
        vars(self).update(vars(of))
        self.rule, d = None, len(of.best)
        self.best, self.picked = np.empty(d), np.arange(d, dtype=np.int32)
        self.to_pay = np.empty_like(of.to_pay)
        width = of.mass.shape[1]
        self.node = np.zeros(0, dtype=NODE)
        self.mass = self.below = np.zeros((0, width), dtype=np.int64)
        self.subset = np.zeros((0, WORDS), dtype=np.uint64)
        self.state = np.zeros(0, dtype=np.uint8)
        self.centre = np.zeros(0)
        self.stored, self.number = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
        self.counter = np.zeros((), dtype=COUNTER)
        self.counter["nodes"] = self.counter["leaves"] = 1
        self.make_room(64)
        for name in ("feature", "child", "missing", "parent"):
            self.node[name][0] = -1

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.counter["nodes"])

    def make_room(self, n: int) -> None:
        """Allocate room for `n` nodes in total."""
        if n <= len(self.node):
            return
        for name in ("node", "mass", "below", "subset", "centre", "state", "stored", "number"):
            old = getattr(self, name)
            kind = -1 if name in ("stored", "number") else 0
            new = np.zeros((2 * n, *old.shape[1:]), dtype=old.dtype)
            if kind:
                new[...] = kind
            new[: len(old)] = old
            setattr(self, name, new)

    def sizes(self, nodes: IntArray) -> IntArray:
        """Return the number of rows at each node."""
        sizes: IntArray = self.node["stop"][nodes] - self.node["start"][nodes]
        return sizes

    def may_split(self, nodes: IntArray) -> NDArray[np.bool_]:
        """Return a mask of the nodes that the grower may split."""
        limits, node = self.limits, self.node[nodes]
        min_rows = max(limits.min_samples_split, 2 * limits.min_samples_leaf)
        is_open = (node["pure"] == 0) & (node["depth"] < limits.depth)
        return is_open & (self.sizes(nodes) >= min_rows)

    def are_light(self, nodes: IntArray) -> NDArray[np.bool_]:
        """Return a mask of the nodes whose weights are so small that they lose precision."""
        mass = self.mass[nodes]
        return (mass.sum(axis=1) if self.n_classes else mass[:, 0]).astype(float) < LEAST_MASS

    def impurity(self, nodes: IntArray) -> FloatArray:
        """Return the Gini impurity or squared error of nodes, which bounds their gain."""
        if not self.n_classes:
            return np.array(self.node["loss"][nodes])
        mass = np.ldexp(self.mass[nodes], -self.node["shift"][nodes][:, None])
        total = mass.sum(axis=1)
        return np.asarray(total - (mass * mass).sum(axis=1) / total)

    def note_pure(self, nodes: IntArray) -> None:
        """Mark the nodes whose rows all have the same class."""
        self.node["pure"][nodes] = (self.mass[nodes] > 0).sum(axis=1) < 2

    def split(self, nodes: IntArray, cells: list[NDArray[np.int64]]) -> NDArray[np.uint8]:
        """Split nodes if possible, and return the branch of each bin code."""
        self.make_room(self.n_nodes + 2 * len(nodes) + 2)
        side = np.zeros((len(nodes), MAX_BINS), dtype=np.uint8)
        grow.split_ahead(self, nodes, self.number[nodes], cells, side)
        self.state[nodes] = np.where(self.node["child"][nodes] < 0, NO_SPLIT, KNOWN)
        return side

    def split_as(
        self, tests: Mapping[int, tuple[int, int, int]], cells: Sequence[NDArray[np.int64]]
    ) -> NDArray[np.uint8]:
        """Split nodes at given thresholds, and return the branch of each bin code."""
        self.make_room(self.n_nodes + 2 * len(tests) + 2)
        side = np.zeros((len(tests), MAX_BINS), dtype=np.uint8)
        for (node, test), of_node, of_codes in zip(tests.items(), cells, side, strict=True):
            grow.split_given(self, node, *test, 0.0, 0.0, of_node, of_codes)
        self.state[[*tests]] = KNOWN
        return side
