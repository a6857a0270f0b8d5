"""The arrays of the compiled tree grower, and the loop that drives it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pboost import threads
from pboost._core import tree
from pboost.data.arguments import MOST_NODES
from pboost.data.columns import SortedColumns, midpoint
from pboost.data.training import TrainingData
from pboost.growth.step import Callback, StepRecord, TreeLimits, constant_vote, cost_after
from pboost.models.graph import OUT, DecisionGraph, TrainingRecord
from pboost.values import FloatArray
from pboost.weak.base import CRITERIA
from pboost.weak.stump_search import ColumnLearner
from pboost.weak.votes import VoteRule

#: Columns of `TreeArrays.counter`.
NODES, EXITS, HEAP, PENDING = range(4)


class TreeArrays:
    """What the kernel reads and writes while one tree grows; see `pboost._core.tree`.

    Exits are rows of `exit_int` (start, stop, parent node, side, depth, shift, feature chosen),
    `exit_mass` (class masses, fixed point) and `exit_real` (votes gathered, key, score chosen).
    Nodes are rows of `node_int` (feature, next of either exit, and where it cuts: two rows or two
    bins) and `node_real` (votes, reach, bound, certificate). The first `given` nodes are not grown
    but made by `split_given`.
    """

    def __init__(
        self,
        data: TrainingData,
        weak: ColumnLearner,
        rule: VoteRule,
        limits: TreeLimits,
        given: int = 0,
    ) -> None:
        n, d = data.n_rows, data.columns.n_features
        columns = data.columns
        exact = data.exact
        self.data, self.rule, self.target = data, rule, limits.target
        # Growing partitions the orders in place: prepared data belong to one fit.
        self.order = data.order
        self.codes, self.n_bins = columns.codes, columns.n_bins
        self.rows = np.arange(0 if exact else n, dtype=np.int32)
        self.weight, self.fixed = data.weight, data.fixed
        self.side = np.empty(n, dtype=np.uint8)
        self.spare = np.empty(n, dtype=np.int32)
        self.best = np.empty(d)
        # Pages of these that are never written are never taken from the system.
        capacity = min(limits.nodes, given + max(n - 1, 1), MOST_NODES)
        self.exit_int = np.empty((2 * capacity + 1, 7), dtype=np.int32)
        self.exit_mass = np.empty((2 * capacity + 1, 2), dtype=np.int64)
        self.exit_real = np.empty((2 * capacity + 1, 3))
        self.heap = np.zeros(capacity + 1, dtype=np.int32)
        self.node_int = np.empty((capacity, 5), dtype=np.int32)
        self.node_real = np.empty((capacity, 5))
        # The root's entrance is the first open exit, and all of the certificate.
        self.exit_int[0] = 0, n, OUT, 0, 0, 0, 0
        self.exit_mass[0] = data.class_masses()
        self.exit_real[0] = 0.0
        self.counter = np.array([0, 1, 0, 0], dtype=np.int64)
        self.certificate = np.array([1.0, 0.0])
        self.given = np.empty(0)  # thresholds of the nodes that were not searched for
        self.sizes = (
            n, d, data.n_negative, capacity, weak.min_count, CRITERIA.index(weak.criterion),
            limits.depth, exact, tree.GROWTH[limits.growth],
        )  # fmt: skip
        self.reals = (
            data.scale, float(self.exit_mass[0].sum()), weak.min_weight, rule.smoothing,
            rule.learning_rate, limits.target,
        )  # fmt: skip

    @property
    def n_nodes(self) -> int:
        """Number of nodes opened so far."""
        return int(self.counter[NODES])

    @property
    def looks_ahead(self) -> bool:
        """Whether exits are searched when they arise."""
        return bool(self.sizes[-1] == tree.GROWTH["look-ahead"])

    def n_rows_at(self, exit_: int) -> int:
        """Return the number of rows at an exit."""
        start, stop = self.exit_int[exit_, :2].tolist()
        return int(stop - start)

    def replay(self, model: DecisionGraph) -> None:
        """Open the nodes of a tree as they are."""
        columns = self.data.columns
        entrance = {int(next_): 1 + at for at, next_ in enumerate(model.next.ravel())}
        for node in range(model.n_nodes):
            feature, threshold = int(model.feature[node]), float(model.threshold[node])
            # Node i has exits 2 i + 1 and 2 i + 2, exit 0 being the root's entrance.
            exit_ = entrance[node] if node else 0
            start, stop = self.exit_int[exit_, :2]
            if isinstance(columns, SortedColumns) and self.data.exact:
                place = columns.n_below(feature, self.order[feature, start:stop], threshold)
            else:
                place = columns.bin_below(feature, threshold)
            tree.split_given(self, exit_, feature, place, *model.vote[node])
        self.given = model.threshold

    def thresholds(self, first: int, last: int) -> FloatArray:
        """Return the thresholds of a range of nodes."""
        known = len(self.given)
        if first < known:
            return np.concatenate(
                [self.given[first:last], self.thresholds(known, max(last, known))]
            )
        feature, _, _, below, above = self.node_int[first:last].T
        columns = self.data.columns
        if not isinstance(columns, SortedColumns):
            return np.asarray(columns.threshold(feature, below, None))
        if not self.data.exact:
            return np.asarray(columns.threshold(feature, below, columns.bin_start[feature, above]))
        # The kernel names the two rows between which it cut: positions have moved since.
        return np.asarray(midpoint(columns.values(feature, below), columns.values(feature, above)))

    def newest(self) -> StepRecord:
        """Return the record of the node opened last."""
        node = self.n_nodes - 1
        below, above, _, bound, after = self.node_real[node].tolist()
        feature = int(self.node_int[node, 0])
        threshold = float(self.thresholds(node, node + 1)[0])
        _, _, parent, side, *_ = self.exit_int[self.counter[PENDING]].tolist()
        parents = ((parent, side),) if parent != OUT else ()
        return StepRecord(node, feature, threshold, (below, above), bound, after, parents)

    def open_mass(self) -> float:
        """Return the sum of the boosted weights of all open exits: the certificate."""
        exits = slice(1, int(self.counter[EXITS]))
        _, _, parent, side, _, shift, _ = self.exit_int[exits].T
        is_open = self.node_int[parent, 1 + side] == OUT
        mass = np.ldexp(self.exit_mass[exits].astype(np.float64), -shift[:, None])
        votes = self.exit_real[exits, 0]
        terms = mass[:, 0] * np.exp(votes) + mass[:, 1] * np.exp(-votes)
        return math.fsum(terms[is_open]) / self.reals[1]

    def model(self, settings: Mapping[str, Any], stop_reason: str) -> DecisionGraph:
        """Return the tree grown so far."""
        n = self.n_nodes
        nodes, reals = self.node_int[:n], self.node_real[:n]
        bias, start = (0.0, 1.0) if n else constant_vote(self.data, self.rule)
        certificate = np.concatenate([[start], reals[:, 4]])
        if n:
            # A small certificate is the difference of large masses: here it is a plain sum.
            certificate[-1] = self.open_mass()
        return DecisionGraph(
            threshold=self.thresholds(0, n),
            next=nodes[:, 1:3],
            vote=reals[:, :2],
            labels=self.data.labels,
            n_features=self.data.n_features,
            feature_names=self.data.names,
            bias=bias,
            settings=settings,
            record=TrainingRecord(certificate, cost_after(reals[:, 2]), stop_reason),
            **self.data.model_columns(nodes[:, 0]),
        )


def grow_tree(arrays: TreeArrays, workers: threads.Workers, callback: Callback | None) -> str:
    """Open exits until done; returns why growing stopped."""
    large = threads.CELLS_PER_CALL if workers.n_threads == 1 else threads.MIN_CELLS
    cells = threads.CELLS_PER_CALL if callback is None else 1
    told = arrays.n_nodes
    _open_exits(arrays, workers, 0)
    while True:
        threads.check_stop()
        status = tree.grow(arrays, cells, large)
        if status == tree.STATUS["large"]:
            _split_large(arrays, workers)
            if arrays.certificate.sum() <= arrays.target:
                status = tree.STATUS["target"]
        if callback is not None and arrays.n_nodes > told:
            told = arrays.n_nodes
            if callback(told, arrays.newest()):
                return "stopped by the callback"
        if status == tree.STATUS["target"]:
            return "the target certificate is reached"
        if status == tree.STATUS["all nodes"]:
            return "all nodes are opened"
        if status == tree.STATUS["done"]:
            return "no exit can be split"


def _split_large(arrays: TreeArrays, workers: threads.Workers) -> None:
    """Split one large exit, its features shared out among threads."""
    exit_ = int(arrays.counter[PENDING])
    n = arrays.n_rows_at(exit_)

    def partition(first: int, last: int) -> None:
        tree.partition_pending(arrays, first, last, np.empty(n, dtype=np.int32))

    if not arrays.looks_ahead:
        _search(arrays, workers, exit_)
    is_split, is_partitioned = tree.split_pending(arrays)
    if is_partitioned:
        workers.run(partition, arrays.data.columns.n_features, cells=n)
    if is_split:
        _open_exits(arrays, workers, int(arrays.counter[EXITS]) - 2)


def _search(arrays: TreeArrays, workers: threads.Workers, exit_: int) -> None:
    """Search an exit, its features shared out among threads."""
    least = math.inf

    def search(first: int, last: int) -> None:
        nonlocal least
        found = tree.search_exit(arrays, exit_, first, last, least)
        least = min(least, found)  # what another thread has just noted may be lost: no harm

    workers.run(search, arrays.data.columns.n_features, cells=arrays.n_rows_at(exit_))


def _open_exits(arrays: TreeArrays, workers: threads.Workers, first: int) -> None:
    """Put the open exits from number `first` on in the order of splitting."""
    if not arrays.looks_ahead:
        tree.open_exits(arrays, first)
        return
    for exit_ in range(first, int(arrays.counter[EXITS])):
        if tree.can_open(arrays, exit_):
            _search(arrays, workers, exit_)
            tree.push_exit(arrays, exit_)
