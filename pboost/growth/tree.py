"""The arrays of the compiled grower of classification and regression trees, and its driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pboost import threads
from pboost._core import cart
from pboost._core.reweight import scale_weights
from pboost.data.columns import BinnedColumns
from pboost.data.training import TrainingData
from pboost.growth.tree_columns import (
    CHILD,
    DEPTH,
    FEATURE,
    HIGH,
    LOW,
    N_INTS,
    START,
    STOP,
    Grown,
    tree_columns,
)
from pboost.models.tree_nodes import LEAF
from pboost.models.trees import Tree
from pboost.values import FloatArray, IntArray
from pboost.weak.base import CRITERIA

#: Columns of `CartArrays.counter`.
NODES, OPEN, LEAVES, FRESH, AT, PHASE, PICKED, N_COUNTERS = range(8)


@dataclass(frozen=True, slots=True)
class CartLimits:
    """How far a tree is grown, and where a node is searched.

    Nodes of a classification are left alone whose weight misclassified is no more than
    `complexity` times that of the root.
    """

    criterion: str
    depth: int
    leaves: int
    min_leaf: int
    min_split: int
    features: int
    best_first: bool
    complexity: float = 0.0


@dataclass(frozen=True, slots=True)
class CartStep:
    """One split, as passed to ``callback(step, record)`` of `fit_cart`.

    Attributes
    ----------
    feature : int
        Column that is compared.
    threshold : float
        What it is compared with.
    depth : int
        Number of comparisons on the way to the node.
    n_rows : int
        Number of training rows there.
    """

    feature: int
    threshold: float
    depth: int
    n_rows: int


Callback = Callable[[int, CartStep], Any]


class CartArrays:
    """What the kernel reads and writes while one tree grows; see `pboost._core.cart`."""

    def __init__(self, data: TrainingData, limits: CartLimits, key: int) -> None:
        problem = data.problem
        n, d = len(data.rows), problem.n_features
        squares = problem.labels is None
        j = 0 if problem.labels is None else len(problem.labels)
        columns = problem.columns
        self.data = data
        self.order = data.order  # partitioned in place: data belong to one fit
        self.codes, self.n_bins = np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int32)
        self.rows = np.empty(0, dtype=np.int32)
        if isinstance(columns, BinnedColumns):
            self.codes, self.n_bins, self.rows = columns.codes, columns.n_bins, data.rows.copy()
        self.weight, self.fixed, self.label, self.y = data.weight, data.fixed, data.label, data.y
        self.exponent, self.scale = data.weight_exponent, data.scale
        n_moments = len(data.weight) if squares else 0
        self.moment = np.zeros((n_moments, 2), dtype=np.int64)
        self.moment[:, 0] = data.fixed[:n_moments]
        self.side = np.empty(n if data.exact else 0, dtype=np.uint8)
        self.spare = np.empty(n, dtype=np.int32)
        self.work = np.zeros(cart.work_size(j), dtype=np.int64)
        self.packed = np.empty(0 if data.exact else n * (2 if squares else j == 2), dtype=np.int64)
        self.best = np.empty(d)
        self.picked = np.arange(d, dtype=np.int32)
        # Pages of these that are never written are never taken from the system. Two nodes more:
        # the sides of a split that is looked at are measured where the next children will be.
        capacity = 2 * min(limits.leaves, n, 1 << min(limits.depth, 40)) + 1
        self.node_int = np.empty((capacity, N_INTS), dtype=np.int32)
        self.node_mass = np.empty((capacity, 2 if squares else j), dtype=np.int64)
        self.node_real = np.empty((capacity, 5))
        self.open = np.empty(capacity, dtype=np.int32)
        self.counter = np.zeros(N_COUNTERS, dtype=np.int64)
        n_negative = int(np.searchsorted(data.label, 1)) if data.exact and j == 2 else 0
        criterion = 0 if squares else CRITERIA.index(limits.criterion)
        self.sizes = (
            n, d, self.codes.shape[-1], n_negative, limits.leaves, limits.min_leaf,
            limits.min_split, limits.features, criterion, j, limits.depth, data.exact,
            limits.best_first, squares, key, limits.complexity,
        )  # fmt: skip
        cart.begin_root(self)

    def restart(self, weights: FloatArray, order: IntArray) -> None:
        """Begin a tree of the same classification with other weights > 0 of its rows.

        `order` has the sorted orders as they were at first.
        """
        data = self.data
        rows = data.rows if data.exact else None
        self.exponent, self.scale = scale_weights(weights, rows, self.weight, self.fixed)
        if data.exact:
            np.copyto(self.order, order)
        else:
            np.copyto(self.rows, data.rows)
        cart.begin_root(self)

    def newest(self) -> CartStep:
        """Return the record of the node split last."""
        e = int(self.counter[AT])
        feature, low, high = self.node_int[e, [FEATURE, LOW, HIGH]].reshape(3, 1)
        start, stop, depth = self.node_int[e, [START, STOP, DEPTH]].tolist()
        threshold = float(self.data.thresholds(feature, low, high)[0])
        return CartStep(int(feature[0]), threshold, depth, stop - start)

    def model(self, settings: Mapping[str, Any], stop_reason: str, criterion: str) -> Tree:
        """Return the tree grown so far, its nodes in preorder."""
        problem, n = self.data.problem, int(self.counter[NODES])
        child = np.ascontiguousarray(self.node_int[:n, CHILD])
        number = np.empty(n, dtype=np.int32)
        cart.preorder(child, number)
        place = np.empty(n, dtype=np.int32)
        place[number] = np.arange(n, dtype=np.int32)
        inner = np.flatnonzero(child != LEAF)
        children = np.full((n, 2), LEAF, dtype=np.int32)
        first = child[inner]
        children[number[inner], 0] = number[first]
        children[number[inner], 1] = number[first + 1]
        _, columns = tree_columns(problem, [self.grown(place, children)], criterion)
        return Tree(
            **columns, labels=problem.labels, n_features=problem.n_features,
            feature_names=problem.names, settings=settings, stop_reason=stop_reason,
        )  # fmt: skip

    def grown(self, place: IntArray, children: IntArray) -> Grown:
        """Return the tree whose nodes, in preorder, have these places here, and these children."""
        data, nodes = self.data, self.node_int.take(place, axis=0)
        if data.exact:
            for side in (LOW, HIGH):
                nodes[:, side] = data.rows.take(nodes[:, side])
        mass, real = self.node_mass.take(place, axis=0), self.node_real.take(place, axis=0)
        return Grown(nodes, children, mass, real, self.scale, self.exponent)


def grow_cart(arrays: CartArrays, workers: threads.Workers, callback: Callback | None) -> str:
    """Split nodes until done; returns why growing stopped."""
    large = threads.CELLS_PER_CALL if workers.n_threads == 1 else threads.MIN_CELLS
    cells = threads.CELLS_PER_CALL if callback is None else 1
    told = 1
    while True:
        threads.check_stop()
        status = cart.grow(arrays, cells, large)
        if status == cart.STATUS["large search"]:
            _search(arrays, workers)
        elif status == cart.STATUS["large partition"]:
            _partition(arrays, workers)
        elif callback is not None and arrays.counter[LEAVES] > told:
            told = int(arrays.counter[LEAVES])
            if callback(told - 1, arrays.newest()):
                return "stopped by the callback"
        if status == cart.STATUS["all leaves"]:
            return "all leaves are there"
        if status == cart.STATUS["done"]:
            return "no node can be split"


def _search(arrays: CartArrays, workers: threads.Workers) -> None:
    def search(first: int, last: int) -> None:
        cart.search_pending(arrays, first, last, np.zeros_like(arrays.work))

    workers.run(search, int(arrays.counter[PICKED]), cells=_pending_rows(arrays))


def _partition(arrays: CartArrays, workers: threads.Workers) -> None:
    n = _pending_rows(arrays)

    def partition(first: int, last: int) -> None:
        cart.partition_pending(arrays, first, last, np.empty(n, dtype=np.int32))

    workers.run(partition, arrays.data.problem.n_features, cells=n)


def _pending_rows(arrays: CartArrays) -> int:
    """Return the number of rows at the node that is worked on."""
    start, stop = arrays.node_int[arrays.counter[AT], [START, STOP]].tolist()
    return int(stop - start)
