"""What a grown classification or regression tree holds, as arrays of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.training import Problem
from pboost.models.tree_nodes import LEAF
from pboost.values import FloatArray, IntArray

#: Columns of `CartArrays.node_int`, and those of `CartArrays.node_real` that are read here.
START, STOP, DEPTH, SHIFT, FEATURE, LOW, HIGH, CHILD, LISTED, PURE, N_INTS = range(11)
MEAN, LOSS = 2, 3


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """A tree as it was grown, its nodes in preorder.

    Attributes
    ----------
    nodes : ndarray of int32, shape (n_nodes, N_INTS)
        As in `CartArrays`; LOW and HIGH are rows of X, or bins.
    children : ndarray of int32, shape (n_nodes, 2)
        As in `Tree`.
    mass : ndarray of int64, shape (n_nodes, J) or (n_nodes, 2)
        Fixed-point masses of the classes; of a regression, of all rows first.
    real : ndarray of float64, shape (n_nodes, 5)
        Mean and loss of a regression; else it may be empty.
    scale, exponent : float, int
        Of the weights, see `TrainingData`.
    """

    nodes: IntArray
    children: IntArray
    mass: NDArray[np.int64]
    real: FloatArray
    scale: float
    exponent: int


def tree_columns(
    problem: Problem, grown: Sequence[Grown], criterion: str
) -> tuple[IntArray, dict[str, Any]]:
    """Return where each tree begins, and the columns of `TREE_COLUMNS` of all of them."""
    sizes = [len(tree.nodes) for tree in grown]
    root = np.cumsum([0, *sizes])
    nodes = np.concatenate([tree.nodes for tree in grown])
    children = np.concatenate([tree.children for tree in grown])
    inner = np.flatnonzero(children[:, 0] != LEAF)
    feature = np.full(len(nodes), LEAF, dtype=np.int32)
    feature[inner] = nodes[inner, FEATURE]
    threshold = np.zeros(len(nodes))
    threshold[inner] = problem.thresholds(*nodes[inner][:, [FEATURE, LOW, HIGH]].T)
    scale = np.repeat([tree.scale for tree in grown], sizes)
    exponent = np.repeat([tree.exponent for tree in grown], sizes)
    mass = np.concatenate([tree.mass for tree in grown])
    unit = np.ldexp(1.0 / scale, -nodes[:, SHIFT])
    if problem.labels is None:
        real = np.concatenate([tree.real for tree in grown])
        weight = mass[:, 0] * unit
        value = np.ldexp(real[:, MEAN], problem.exponent)
        # The sum of squares is of the weights as they are scaled.
        impurity = np.ldexp(real[:, LOSS] / weight, 2 * problem.exponent)
    else:
        total = mass.sum(axis=1)
        value = mass / total[:, None]
        impurity, weight = impurities(value, criterion), total * unit
    return root, {
        "feature": feature, "threshold": threshold, "children": children, "value": value,
        "impurity": impurity, "weight": np.ldexp(weight, exponent),
        "n_rows": nodes[:, STOP] - nodes[:, START],
    }  # fmt: skip


def impurities(share: FloatArray, criterion: str) -> FloatArray:
    """Return the impurity of nodes from the shares (n, J) of their classes."""
    if criterion == "gini":
        return 1.0 - (share * share).sum(axis=1)
    if criterion == "entropy":
        logs = np.log2(share, out=np.zeros_like(share), where=share > 0)
        return np.abs((share * logs).sum(axis=1))
    if criterion == "error":
        return 1.0 - share.max(axis=1)
    return 2.0 * np.sqrt(share[:, 0] * share[:, 1])
