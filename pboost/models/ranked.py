"""Shallow trees for the kernel that compares ranks; see `pboost/_core/rank_simd.h`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pboost._core import tree_walk
from pboost.models.trees import LEAF
from pboost.values import FloatArray, IntArray, freeze

#: No rank is above it; and of ranks of 8 bits, which are less by 128.
NO_EDGE, NO_EDGE_OF_BYTES = np.iinfo(np.int16).max, np.iinfo(np.int8).max
#: Number of thresholds of a column up to which its ranks have 8 bits.
FEW_EDGES = 255
#: Depth up to which comparing all nodes of a tree can be faster than a walk.
MOST_DEPTH = 8


class RankedTrees(NamedTuple):
    """The trees of a forest, filled up to the same depth, on ranks in place of values.

    Attributes
    ----------
    edge : ndarray of float64
        The thresholds of each column, ascending, filled up with infinity to ``2**levels - 1``.
    first : ndarray of int32, shape (n_columns,)
        Where those of a column begin.
    levels : ndarray of int32, shape (n_columns,)
        See `edge`; 0 where nothing is compared.
    node : ndarray of int32, shape (n_trees, 2**depth - 1, 2)
        64 times the column, and the number of the threshold among those of the column in both
        halves of 32 bits, or in all four bytes, less by 128; nodes stand in preorder.
    value : ndarray of float64, shape (n_trees, 2**depth, k)
        Values of the leaves, from left to right.
    depth : int
        Number of comparisons on the way to a leaf.
    is_narrow : bool
        Whether ranks have 8 bits.
    """

    edge: FloatArray
    first: IntArray
    levels: IntArray
    node: IntArray
    value: FloatArray
    depth: int
    is_narrow: bool


def rank_trees(
    forest: Any, depths: IntArray, feature: IntArray, n_columns: int
) -> RankedTrees | None:
    """Return the trees of a `Forest` of these depths, None where a walk is faster.

    `feature` are the columns of a tile that nodes compare.
    """
    n_trees, depth = len(depths), int(depths.max())
    if not 1 <= depth <= MOST_DEPTH or not tree_walk.has_ranks() or forest.n_sets:
        return None
    number = np.full(len(feature), NO_EDGE, dtype=np.int32)
    levels = np.zeros(n_columns, dtype=np.int32)
    first = np.zeros(n_columns, dtype=np.int32)
    edges: list[FloatArray] = []
    by_column = np.argsort(feature, kind="stable")
    columns, starts = np.unique(feature[by_column], return_index=True)
    for column, nodes in zip(columns.tolist(), np.split(by_column, starts[1:]), strict=True):
        if column == LEAF:
            continue
        edge, number[nodes] = np.unique(forest.threshold[nodes], return_inverse=True)
        if len(edge) > NO_EDGE:
            return None
        levels[column] = len(edge).bit_length()
        first[column] = sum(map(len, edges))
        padding = np.full((1 << int(levels[column])) - 1 - len(edge), np.inf)
        edges += [edge, padding]
    is_narrow = max(map(len, edges[::2]), default=0) <= FEW_EDGES
    # A node compared costs a fortieth of a step of a walk, a step of a binary search a third.
    if n_trees * 2**depth / (80 if is_narrow else 40) + levels.sum() / 3 > depths.sum():
        return None
    if is_narrow:
        number = np.where(number == NO_EDGE, NO_EDGE_OF_BYTES, number - 128).astype(np.int8)
        number = number[:, None].repeat(4, axis=1).view(np.int32)[:, 0]
    else:
        number = number.astype(np.int16)[:, None].repeat(2, axis=1).view(np.int32)[:, 0]
    node = np.empty((n_trees, (1 << depth) - 1, 2), dtype=np.int32)
    here = forest.root[:-1, None].astype(np.int64)
    place = np.zeros(1, dtype=np.int64)
    for level in range(depth):
        is_leaf = feature[here] == LEAF
        node[:, place, 0] = np.where(is_leaf, 0, feature[here] * tree_walk.TILE_ROWS)
        node[:, place, 1] = number[here]
        # A leaf is carried down to both sides.
        children = forest.children[here] + forest.root[:-1, None, None]
        here = np.where(is_leaf[:, :, None], here[:, :, None], children).reshape(n_trees, -1)
        place = np.column_stack([place + 1, place + (1 << (depth - 1 - level))]).ravel()
    value = forest.value.reshape(len(feature), -1)[here]
    return RankedTrees(
        freeze(np.concatenate(edges)),
        freeze(first),
        freeze(levels),
        freeze(node),
        freeze(value),
        depth,
        is_narrow,
    )
