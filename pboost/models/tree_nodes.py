"""The nodes of trees, one tree after another in one set of arrays: checks, and what follows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import tree_walk
from pboost.data.array_checks import (
    check_columns,
    check_finite_arrays,
    check_labels,
    check_not_negative,
    check_settings,
    check_shape,
)
from pboost.values import FloatArray, IntArray

#: ``feature`` and ``children`` of a leaf.
LEAF = -1
#: What the kernel reads of a node, see `pboost._core.tree_walk`.
STEP = np.dtype([("threshold", np.float64), ("column", np.int32), ("beyond", np.int32)])


def node_depths(root: IntArray, children: IntArray) -> IntArray:
    """Return the number of comparisons on the way to each node."""
    depth = np.zeros(len(children), dtype=np.int32)
    from_root = np.repeat(root[:-1], np.diff(root))
    level = np.asarray(root[:-1])
    below = 0
    while len(level):
        depth[level] = below
        level = level[children[level, 0] != LEAF]
        level = (children[level] + from_root[level, None]).ravel()
        below += 1
    return depth


def tree_depths(root: IntArray, children: IntArray) -> IntArray:
    """Return the greatest number of comparisons in each tree."""
    return np.maximum.reduceat(node_depths(root, children), root[:-1])


def step_bytes(feature: IntArray, threshold: FloatArray, children: IntArray) -> NDArray[np.uint8]:
    """Return the nodes as the kernel reads them."""
    is_leaf = feature == LEAF
    steps = np.empty(len(feature), dtype=STEP)
    steps["threshold"] = np.where(is_leaf, -np.inf, threshold)
    steps["column"] = np.where(is_leaf, 0, feature * tree_walk.TILE_ROWS)
    steps["beyond"] = np.where(is_leaf, -1, children[:, 1] - children[:, 0])
    return steps.view(np.uint8)


def check_trees(trees: Any, root: IntArray) -> None:
    """Check the values and the topology of a tree, or of several; ValueError names the array.

    Shapes are those of their attributes.
    """
    n, sizes = len(trees.feature), np.diff(root)
    if (sizes % 2 == 0).any():
        size = int(sizes[sizes % 2 == 0][0])
        raise ValueError(f"feature: expected an odd number of nodes, got {size}")
    most = np.iinfo(np.int32).max // tree_walk.TILE_ROWS
    if not 1 <= trees.n_features <= most:
        raise ValueError(f"n_features: expected 1 to {most}, got {trees.n_features}")
    if not (trees.feature.min() >= LEAF and trees.feature.max() < trees.n_features):
        raise ValueError(f"feature: expected values in [-1, {trees.n_features})")
    check_finite_arrays(trees, "threshold", "value", "impurity", "weight")
    check_not_negative(trees, "impurity", "weight", "n_rows")
    if trees.labels is not None and not (
        ((trees.value >= 0) & (trees.value <= 1)).all()
        and (np.abs(trees.value.sum(axis=1) - 1) < 1e-9).all()
    ):
        raise ValueError("value: expected probabilities that add up to 1")
    is_leaf = trees.feature == LEAF
    if not (trees.children[is_leaf] == LEAF).all():
        raise ValueError("children: expected -1 in leaves")
    inner = np.flatnonzero(~is_leaf)
    start = np.repeat(root[:-1], sizes)[inner]
    first, second = trees.children[inner].T
    stop = np.repeat(sizes, sizes)[inner]
    if not ((first == inner - start + 1) & (second > first) & (second < stop)).all():
        raise ValueError("children: the first must be the next node, the second a later one")
    # Every node but the roots is a child once.
    times = np.bincount(np.concatenate([first + start, second + start, root[:-1]]), minlength=n)
    if not (times == 1).all():
        raise ValueError("children: every node but the root must be the child of one")


def check_shapes(trees: Any, names: Any) -> None:
    """Check the shapes of the arrays with one entry per node, the labels and the names."""
    n, j = len(trees.feature), tuple[int, ...]()
    if trees.labels is not None:
        check_labels(trees.labels)
        j = (len(trees.labels),)
    special = {"children": (n, 2), "value": (n, *j)}
    check_shape(trees, {name: special.get(name, (n,)) for name in names})
    check_columns(trees.n_features, trees.feature_names)
    check_settings(trees.settings)
