"""Functions of trees: leaves, paths, importances."""

from __future__ import annotations

from typing import Any

import numpy as np

from pboost.models.forest import Forest
from pboost.models.probit_trees import ProbitTree
from pboost.models.trees import LEAF, Tree, tree_only
from pboost.values import IntArray


def apply(tree: Tree | Forest | ProbitTree, X: Any) -> IntArray:
    """Return the leaf that each row reaches.

    Parameters
    ----------
    tree : Tree, ProbitTree or Forest
        A fitted tree, or forest.
    X : array_like of shape (n, d), or data frame
        Finite numbers, with the columns of training.

    Returns
    -------
    ndarray of int32, shape (n,); of a forest (n, n_trees)
        Numbers of leaves, from 0 on, from left to right; ``tree.leaf`` has them by node,
        of a ProbitTree ``tree.partition.leaf``.

    Examples
    --------
    >>> import pboost as pb
    >>> tree = pb.fit_cart([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "c"])
    >>> pb.apply(tree, [[0.5], [2.2], [9.0]]).tolist()
    [0, 1, 2]
    """
    if isinstance(tree, Forest):
        return tree.leaves_of(X)
    if isinstance(tree, ProbitTree):
        tree = tree.partition
    return tree_only(tree).leaf[tree.nodes_of(X)]


def decision_path(tree: Tree, X: Any) -> list[IntArray]:
    """Return the nodes through which each row goes.

    Parameters
    ----------
    tree : Tree
        A fitted tree.
    X : array_like of shape (n, d), or data frame
        Finite numbers, with the columns of training.

    Returns
    -------
    list of ndarray of int32
        For each row its nodes, from the root to the leaf.

    Examples
    --------
    >>> import pboost as pb
    >>> tree = pb.fit_cart([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "c"])
    >>> [path.tolist() for path in pb.decision_path(tree, [[0.5], [9.0]])]
    [[0, 1], [0, 2, 4]]
    """
    ends = tree_only(tree).nodes_of(X)
    parent = parents(tree)
    paths = {}
    for leaf in np.unique(ends).tolist():
        path = [leaf]
        while path[-1]:
            path.append(int(parent[path[-1]]))
        paths[leaf] = np.array(path[::-1], dtype=np.int32)
    return [paths[leaf] for leaf in ends.tolist()]


def parents(tree: Tree) -> IntArray:
    """Return the parent of each node, -1 of the root."""
    parent = np.full(tree.n_nodes, -1, dtype=np.int32)
    inner = np.flatnonzero(tree.feature != LEAF)
    parent[tree.children[inner].ravel()] = np.repeat(inner, 2)
    return parent
