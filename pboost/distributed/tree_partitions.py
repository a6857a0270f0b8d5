"""Grow trees on rows in partitions from sums of their histograms.

The state of a partition depends only on its rows and the commands so far. A request contains the
splits of all nodes of a level and queries about their children. The results are integers, so their
sums do not depend on the partitions. Splits are searched level by level, ahead of growth. The rows
of small nodes are sent to the client, which grows their subtrees as on one table.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import grow
from pboost._core.voting import VoteRule
from pboost.data.columns.columns import GROUP, BinnedColumns, to_fixed_point
from pboost.data.columns.prebuilt import most_bins
from pboost.data.targets import CODES
from pboost.data.training_data import Problem, TrainingData
from pboost.distributed.engine import (
    Engine,
    LogShard,
    check_size,
    exact_parts,
    merge,
    scaled_sum,
    shared_scale,
)
from pboost.distributed.lookahead import KNOWN, Ahead
from pboost.growth.tree import CartArrays, CartLimits, TreeArrays
from pboost.threads import CELLS_PER_CALL, Workers, check_stop
from pboost.values import INT32_MAX, Array, FloatArray, IntArray

#: Bytes of histograms kept for later levels, per tree.
MOST_KEPT = 1 << 28
#: The rows of a node are sent if they take at most this many bytes, or at most this fraction of the
#: size of its histogram.
FEW_BYTES, FEW_SHARE = 1 << 16, 1.0
#: Bytes of a sent row without its codes: class or target, and weight.
ROW_BYTES = 16
_NO_NUMBERS, _NO_TOTAL = np.empty(0), np.empty(0, dtype=np.int64)
_NO_ROWS = np.empty(0, dtype=np.int32)
#: Columns, class codes or targets, and weights of a partition; number of classes.
TreeShardInputs: TypeAlias = tuple[BinnedColumns, Any, FloatArray | None, int]


class Splits(NamedTuple):
    """Splits of tree nodes. They contain the left children and the branch (0 or 1) of each code."""

    tree: int
    node: IntArray
    child: IntArray
    feature: IntArray
    side: NDArray[np.uint8]


class NodeQuery(NamedTuple):
    """A query about nodes of a tree. Its name is a key of `TreeShard.ANSWERS`.

    Weights are in units of ``2**-shift`` times the unit of the root.
    """

    what: str
    tree: int
    node: IntArray
    shift: IntArray
    numbers: FloatArray


class Queries(NamedTuple):
    """The queries of a request."""

    queries: list[NodeQuery]


class SentRows(NamedTuple):
    """The rows of some nodes in one partition, with the number of rows per node.

    The weights are omitted if all of them are 1.
    """

    tree: int
    sizes: NDArray[np.int64]
    codes: NDArray[np.uint8]
    y: Array
    weight: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Concatenated results of queries: totals, maxima, and lists such as rows."""

    total: Array
    maxima: FloatArray
    rows: Sequence[Any] = ()


class RowsAtNodes:
    """The rows and weights of a partition in one tree, ordered by node."""

    def __init__(self, rows: IntArray, weight: FloatArray, scale: float) -> None:
        self.rows, self.weight, self.scale = rows.copy(), weight, scale
        self.bounds = np.array([[0, len(rows)]], dtype=np.int32)

    def split(self, codes: NDArray[np.uint8], splits: Splits) -> None:
        """Split nodes."""
        n_nodes = int(splits.child.max(initial=0)) + 2
        if n_nodes > len(self.bounds):
            more = np.zeros((2 * n_nodes - len(self.bounds), 2), dtype=np.int32)
            self.bounds = np.concatenate([self.bounds, more])
        spare = np.empty_like(self.rows)
        grow.part_rows(codes, self.rows, self.bounds, spare, *splits[1:])

    def at(self, nodes: IntArray) -> tuple[IntArray, NDArray[np.int64]]:
        """Return the rows at nodes, ordered by node, and the number of rows at each node."""
        bounds = self.bounds[nodes]
        parts = [self.rows[start:stop] for start, stop in bounds.tolist()]
        count = bounds[:, 1].astype(np.int64) - bounds[:, 0]
        return (np.concatenate(parts) if parts else _NO_ROWS), count

    def fixed(self, rows: IntArray, shift: Array) -> NDArray[np.int64]:
        """Return weights in fixed point, with a shift for each row."""
        return fixed_weights(self.weight[rows] * self.scale, shift)


def fixed_weights(scaled: FloatArray, shift: Array) -> NDArray[np.int64]:
    """Return scaled weights in fixed point, see `fixed_weight` in `_core/_grower.pxd`."""
    rounded: FloatArray = (np.ldexp(scaled, shift) if np.any(shift) else scaled) + 0.5
    return rounded.astype(np.int64)


class TreeShard(LogShard):
    """Rows of one partition, and their nodes in the current trees.

    Parameters
    ----------
    columns : BinnedColumns
        Rows in the common bins.
    y : ndarray, shape (n,)
        Class codes (int32), or the targets of a regression (float64).
    weights : ndarray of float64, shape (n,), or None
        Sample weights. Rows of weight 0 are ignored.
    n_classes : int
        Number of classes, or 0 for a regression.
    workers : Workers
        Threads.
    """

    def __init__(
        self,
        columns: BinnedColumns,
        y: Array,
        weights: FloatArray | None,
        n_classes: int,
        workers: Workers,
    ) -> None:
        self.workers, self._codes = workers, columns.codes
        self._y = np.ascontiguousarray(y)
        self._bins, self._n_classes = most_bins(columns.n_bins, columns.special), n_classes
        self._given = weights
        is_in = np.ones(len(y), dtype=bool) if weights is None else weights > 0
        self._first = np.flatnonzero(is_in).astype(np.int32)
        self._trees: list[RowsAtNodes] = []

    @staticmethod
    def merge(answers: Sequence[Answer]) -> Answer:
        """Return the merged results of several partitions."""
        maxima = np.max([answer.maxima for answer in answers], axis=0)
        rows = [sent for answer in answers for sent in answer.rows]
        return Answer(merge([answer.total for answer in answers]), maxima, rows)

    def extent(self) -> tuple[int, int, float]:
        """Return the number of rows, the number of positive weights, and the largest weight."""
        greatest = 1.0 if self._given is None else float(self._given.max(initial=0.0))
        return len(self._y), len(self._first), greatest

    def class_sizes(self) -> NDArray[np.int64]:
        """Return the number of rows with positive weight of each class."""
        counts = np.bincount(self._y[self._first], minlength=self._n_classes)
        return counts.astype(np.int64)

    def weight_sums(self) -> NDArray[np.int64]:
        """Return the initial weights of each of two classes for `exact_sum`."""
        return self._parts(self._trees[0], self._first)

    def _parts(self, tree: RowsAtNodes, rows: IntArray) -> NDArray[np.int64]:
        weight, label = tree.weight[rows], self._y[rows]
        return np.stack([exact_parts(weight[label == k]) for k in (0, 1)])

    def scaled_sum(self, exponent: int, shift: int) -> tuple[int, bool]:
        """Return the fixed-point sum of the weights, and whether used weights are still positive.

        The weights are multiplied by ``2**-exponent``; the unit of the sum is ``2**-shift``.
        """
        assert self._given is not None
        return scaled_sum(self._given, self._first, exponent, shift)

    def begin(self, exponent: int, scale: float) -> None:
        """Set the weights times ``2**-exponent``, and put all rows at the root of one tree."""
        n, weights = len(self._y), self._given
        weight = np.ones(n) if weights is None else np.ldexp(weights, -exponent)
        self.begin_trees([RowsAtNodes(self._first, weight, scale)])

    def begin_trees(self, trees: list[RowsAtNodes]) -> None:
        """Begin new trees with an empty log."""
        self._trees, self._seen = trees, 0

    def _split(self, command: Splits, _: bool) -> None:
        self._trees[command.tree].split(self._codes, command)

    def _answer(self, command: Queries, is_asked: bool) -> Answer | None:
        if not is_asked:
            return None
        answers = [
            self.ANSWERS[query.what](self, self._trees[query.tree], query)
            for query in command.queries
        ]
        totals = [answer.total for answer in answers if len(answer.total)]
        maxima = [answer.maxima for answer in answers if len(answer.maxima)]
        return Answer(
            np.concatenate(totals) if len(totals) > 1 else totals[0] if totals else _NO_TOTAL,
            np.concatenate(maxima) if maxima else _NO_NUMBERS,
            [sent for answer in answers for sent in answer.rows],
        )

    DO: ClassVar[Mapping[type, Any]] = {Splits: _split, Queries: _answer}

    def _cells(self, tree: RowsAtNodes, query: NodeQuery) -> Answer:
        """Return the histograms of nodes, shape (nodes, d, codes, masses + 1)."""
        rows, count = tree.at(query.node)
        mass = tree.fixed(rows, np.repeat(query.shift, count))[:, None]
        label: Array = _NO_ROWS
        if self._n_classes:
            label = self._y[rows]
        else:
            mean, scale = np.repeat(query.numbers, count, axis=0).T
            moment = np.rint(tree.weight[rows] * (self._y[rows] - mean) * scale)
            mass = np.column_stack([mass, moment.astype(np.int64)])
        d, stop = len(self._codes), np.cumsum(count)
        cells = np.zeros((len(stop), d, self._bins, (self._n_classes or 2) + 1), dtype=np.int64)

        def add(first: int, last: int) -> None:
            grow.count_cells(self._codes, rows, stop, label, mass, first, last, cells)

        self.workers.run(add, d, GROUP, len(rows))
        return Answer(cells.ravel(), _NO_NUMBERS)

    def _rows(self, tree: RowsAtNodes, query: NodeQuery) -> Answer:
        """Return the rows of nodes."""
        rows, count = tree.at(query.node)
        if not len(rows):
            return Answer(_NO_TOTAL, _NO_NUMBERS)
        weight = tree.weight[rows]
        if (weight == 1.0).all():
            weight = _NO_NUMBERS
        codes = self._codes.take(rows, axis=1)
        return Answer(
            _NO_TOTAL, _NO_NUMBERS, [SentRows(query.tree, count, codes, self._y[rows], weight)]
        )

    def _masses(self, tree: RowsAtNodes, query: NodeQuery) -> Answer:
        """Return the class weights at nodes, or in a regression the total weight and 0."""
        rows, count = tree.at(query.node)
        fixed, masses = tree.fixed(rows, np.repeat(query.shift, count)), []
        for k in range(self._n_classes or 1):
            of_class = np.where(self._y[rows] == k, fixed, 0) if self._n_classes else fixed
            masses.append(by_node(np.add, of_class, count, 0))
        if not self._n_classes:
            masses.append(np.zeros_like(masses[0]))
        return Answer(np.column_stack(masses).ravel(), _NO_NUMBERS)

    def _heaviest(self, tree: RowsAtNodes, query: NodeQuery) -> Answer:
        """Return the largest weight at each node, in units of the root."""
        rows, count = tree.at(query.node)
        heaviest = by_node(np.maximum, tree.weight[rows] * tree.scale, count, 0.0)
        return Answer(_NO_TOTAL, heaviest)

    def _ends(self, tree: RowsAtNodes, query: NodeQuery) -> Answer:
        """Return the maxima of the targets and of the negated targets, shape (nodes, 2)."""
        rows, count = tree.at(query.node)
        y = self._y[rows]
        ends = [by_node(np.maximum, of, count, -np.inf) for of in (y, -y)]
        return Answer(_NO_TOTAL, np.column_stack(ends).ravel())

    def _above(self, tree: RowsAtNodes, query: NodeQuery) -> Answer:
        """Return the weighted sums of targets minus the smallest target."""
        rows, count = tree.at(query.node)
        sums = np.zeros(len(count), dtype=np.int64)
        of_rows = rows, np.cumsum(count), tree.weight, self._y
        grow.sum_above(*of_rows, query.numbers, sums)
        return Answer(sums, _NO_NUMBERS)

    def _squares(self, tree: RowsAtNodes, query: NodeQuery) -> Answer:
        """Return sums of moments and squares with their rounding errors, shape (nodes, 4)."""
        rows, count = tree.at(query.node)
        sums = np.zeros((len(count), 4), dtype=np.int64)
        of_rows = rows, np.cumsum(count), tree.weight, self._y
        grow.sum_squares(*of_rows, query.numbers, sums)
        return Answer(sums.ravel(), _NO_NUMBERS)

    def _weight_sums(self, tree: RowsAtNodes, query: NodeQuery) -> Answer:
        """Return the weights of each of two classes at nodes for `exact_sum`."""
        parts = [
            self._parts(tree, tree.at(query.node[k : k + 1])[0]) for k in range(len(query.node))
        ]
        return Answer(np.stack(parts).ravel(), _NO_NUMBERS)

    ANSWERS: ClassVar[Mapping[str, Any]] = {
        "cells": _cells,
        "rows": _rows,
        "masses": _masses,
        "above": _above,
        "squares": _squares,
        "heaviest": _heaviest,
        "ends": _ends,
        "weight_sums": _weight_sums,
    }


def by_node(of: np.ufunc, values: Array, count: NDArray[np.int64], empty: float) -> Array:
    """Reduce values that are listed node by node with a ufunc such as `np.add`."""
    result = np.full(len(count), empty, dtype=values.dtype)
    has_rows = count > 0
    if has_rows.any():
        result[has_rows] = of.reduceat(values, (np.cumsum(count) - count)[has_rows])
    return result


def begin(engine: Engine, problem: Problem, is_weighed: bool) -> tuple[TrainingData, int]:
    """Set the initial weights, and return the data of the fit and the number of rows.

    Raises
    ------
    ValueError
        If there are more rows than int32 can count.
    """
    n_all, n, greatest = (list(part) for part in zip(*engine.ask("extent"), strict=True))
    check_size(sum(n_all))
    exponent, (scale, _) = 0, to_fixed_point(np.ones(1), sum(n_all))
    if is_weighed:
        exponent, scale, _ = shared_scale(engine, sum(n_all), max(greatest))
    engine.ask("begin", exponent, scale)
    return data_elsewhere(problem, exponent, scale), sum(n)


def problem_of_rows(columns: BinnedColumns) -> Problem:
    """Return a problem with only the columns of a partition."""
    return Problem(
        columns=columns,
        classes=None,
        label=_NO_ROWS,
        weights=None,
        names=None,
        y=np.broadcast_to(0.0, columns.n_rows),
    )


def data_elsewhere(problem: Problem, exponent: int, scale: float) -> TrainingData:
    """Return the data of a fit without its rows."""
    assert isinstance(problem.columns, BinnedColumns)
    return TrainingData(
        problem=problem,
        rows=_NO_ROWS,
        weight=_NO_NUMBERS,
        fixed=_NO_TOTAL,
        weight_exponent=exponent,
        scale=scale,
        exact=False,
        order=np.empty((problem.n_features, 0), dtype=np.int32),
        columns=problem.columns,
    )


class Answered:
    """The result of a request, from which the results of its queries are read in order."""

    def __init__(self, answer: Answer) -> None:
        self._total, self._most, self._rows = answer.total, answer.maxima, answer.rows

    def totals(self, *shape: int) -> Array:
        """Return the next totals."""
        n = math.prod(shape)
        totals, self._total = self._total[:n], self._total[n:]
        return totals.reshape(shape)

    def maxima(self, n: int) -> FloatArray:
        """Return the next maxima."""
        maxima, self._most = self._most[:n], self._most[n:]
        return maxima

    def rows(self, tree: int) -> list[SentRows]:
        """Return the rows of a tree, by partition."""
        return [sent for sent in self._rows if sent.tree == tree]


#: Generator that yields the commands of the next request and receives its result.
Asking: TypeAlias = Generator[list[Splits | NodeQuery], Answered, None]


class Calls:
    """The log of requests for trees that grow together, and the engine that executes it."""

    def __init__(self, engine: Engine, commands: Sequence[Any] = ()) -> None:
        self.engine, self.commands = engine, list[Splits | Queries](commands)

    def run(self, asking: Sequence[Asking]) -> None:
        """Run generators until all are exhausted. Each step sends one request for all of them."""
        waiting = [
            (generator, batch)
            for generator in asking
            if (batch := next(generator, None)) is not None
        ]
        while waiting:
            queries = list[NodeQuery]()
            for _, batch in waiting:
                self.commands += [command for command in batch if isinstance(command, Splits)]
                queries += [command for command in batch if isinstance(command, NodeQuery)]
            self.commands.append(Queries(queries))
            answered = Answered(TreeShard.merge(self.engine.masses(self.commands)))
            waiting = [
                (generator, batch)
                for generator, _ in waiting
                if (batch := _sent(generator, answered)) is not None
            ]


def _sent(asking: Asking, answered: Answered) -> list[Splits | NodeQuery] | None:
    try:
        return asking.send(answered)
    except StopIteration:
        return None


class ShardedArrays(TreeArrays):
    """The arrays of a tree on rows in partitions; `n` is the number of positive weights.

    In a boosted tree, `rule` computes votes. `tree` is the index of the tree among the trees that
    share `calls`.
    """

    callbacks_by_status: ClassVar[Mapping[str, str]] = {"unknown ahead": "split_ahead"}

    def __init__(
        self,
        data: TrainingData,
        n: int,
        limits: CartLimits,
        key: int,
        calls: Calls,
        tree: int = 0,
        rule: VoteRule | None = None,
    ) -> None:
        columns, classes = data.columns, data.problem.classes
        self.data, self.limits, self.rule, self.key = data, limits, rule, key
        self.exact, self.n_classes = False, 0 if classes is None else len(classes)
        self.criterion, self.n_negative = CODES[limits.criterion], 0
        self.order, self.n_bins, self.special = data.order, columns.n_bins, columns.special
        self.ranks, self.ranked_row = None, _NO_ROWS
        self.scale = data.scale
        self.mass_unit = data.scale if rule is None else float(sum(data.class_masses()))
        self._make_nodes(min(limits.leaves, n, 1 << min(limits.depth, 40)))
        self.n, self.tree, self.calls = n, tree, calls
        d, width = columns.n_features, self.n_classes or 2
        self._shape = d, most_bins(columns.n_bins, columns.special), width + 1
        few = max(FEW_BYTES, int(FEW_SHARE * 8 * math.prod(self._shape)))
        self._few = min(n, few // (d + ROW_BYTES))
        self._make_store()
        self.ahead_of = np.empty(len(self.node), dtype=np.int32)
        self.ahead = Ahead(self)
        #: Histograms of nodes whose splits are unknown, in order of creation.
        self._kept: dict[int, NDArray[np.int64]] = {}
        self._untold: list[Splits] = []

    def _make_store(self) -> None:
        """Allocate the arrays for sent rows and the scratch memory of the grower."""
        n_classes = self.n_classes
        self.n_stored = 0
        self.codes = np.empty((len(self.best), 0), dtype=np.uint8)
        self.label, self.y = _NO_ROWS, _NO_NUMBERS
        self.weight, self.fixed = _NO_NUMBERS, _NO_TOTAL
        self.moment = np.empty((0, 2), dtype=np.int64)
        # The system does not allocate pages that are never written.
        self.rows, self.spare = (np.empty(n, dtype=np.int32) for n in (self.n, self._few))
        self.side = np.empty(0, dtype=np.uint8)
        packed = self._few * (1 if n_classes == 2 else 2 * (not n_classes))
        self.packed = np.empty(packed, dtype=np.int64)
        self.work = np.zeros(grow.work_size(n_classes), dtype=np.int64)

    def _make_room(self, n: int) -> None:
        """Allocate room for `n` rows in total."""
        if n <= (room := len(self.weight)):
            return
        room = min(max(n, 2 * room), self.n)
        of_rows = ("label",) if self.n_classes else ("y", "moment")
        for name in ("weight", "fixed", *of_rows):
            old = getattr(self, name)
            new = np.empty((room, *old.shape[1:]), dtype=old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        codes = np.empty((len(self.codes), room), dtype=np.uint8)
        codes[:, : self.n_stored] = self.codes[:, : self.n_stored]
        self.codes = codes

    def begin(self, cells: NDArray[np.int64] | None = None) -> Asking:
        """Create the root. If its histogram is passed, use it."""
        ahead, root = self.ahead, np.zeros(1, dtype=np.int32)
        ahead.node["stop"][0] = self.n
        if cells is None and self.n <= self._few:
            answered = yield [self._query("rows", root)]
            self._store(root, answered.rows(self.tree))
            self.rows[...] = np.arange(self.n)
            self.ahead_of[0] = -1
            grow.begin_root(self)
            return
        self.ahead_of[0] = ahead.number[0] = 0
        if cells is None and self.n_classes:
            answered = yield [self._query("cells", root)]
            cells = answered.totals(*self._shape)
        if cells is not None:
            ahead.mass[0] = cells[0, :, :-1].sum(axis=0)
            ahead.note_pure(root)
            self._kept[0] = cells
        else:
            answered = yield [self._query("masses", root)]
            ahead.mass[0] = answered.totals(2)
            yield from self._measure_numbers(root)
        self.counter[...] = 0
        self.counter["nodes"] = self.counter["leaves"] = 1
        self.node[0], self.mass[0] = ahead.node[0], ahead.mass[0]
        self.vote[:1] = 0
        self.certificate[:] = 1.0, 0.0

    def split_ahead(self) -> None:
        """Find the splits of the pending node and of other nodes of its level."""
        self.calls.run([self.level()])

    def level(self) -> Asking:
        """Split the pending node and nodes ahead of growth, and measure their children."""
        ahead, at = self.ahead, int(self.ahead_of[self.at])
        yield from self._have_cells([at])
        nodes = self._next_nodes(at)
        side = ahead.split(nodes, [self._kept[node] for node in nodes.tolist()])
        yield from self._measure(nodes, side)

    def _have_cells(self, nodes: Sequence[int]) -> Asking:
        """Request the histograms of nodes that are not stored."""
        lacking = np.array([node for node in nodes if node not in self._kept], dtype=np.int32)
        if len(lacking):
            answered = yield self._told([self._query_cells(lacking)])
            self._kept.update(self._cells_of(lacking, answered))

    def split_as(self, tests: Mapping[int, tuple[int, int, int]]) -> Asking:
        """Split nodes ahead of growth at given thresholds, and measure their children."""
        yield from self._have_cells([*tests])
        side = self.ahead.split_as(tests, [self._kept[node] for node in tests])
        yield from self._measure(np.array([*tests], dtype=np.int32), side)

    def _measure(self, nodes: IntArray, side: NDArray[np.uint8]) -> Asking:
        """Apply the splits of nodes, and measure their children."""
        ahead = self.ahead
        is_split = ahead.state[nodes] == KNOWN
        split = nodes[is_split]
        if len(split):
            child, feature = ahead.node["child"][split], ahead.node["feature"][split]
            self._untold.append(Splits(self.tree, split, child, feature, side[is_split]))
            new = np.column_stack([child, child + 1]).ravel()
            ahead.below[new] = ahead.mass[new]
            yield from self._measure_classes(new) if self.n_classes else self._measure_numbers(new)
        for node in nodes.tolist():
            del self._kept[node]
        while len(self._kept) > self._most_kept:
            del self._kept[next(iter(self._kept))]

    @property
    def _most_kept(self) -> int:
        return max(3, MOST_KEPT // (8 * math.prod(self._shape)))

    def _next_nodes(self, at: int) -> IntArray:
        """Return the nodes to split in the next request: first `at`, then other nodes by impurity.

        The number of nodes is at most the number of remaining splits. If random features are drawn
        by node number, only the nodes that are already known are returned.
        """
        ahead, limits = self.ahead, self.limits
        known = np.array([node for node in self._kept if node != at], dtype=np.int32)
        if limits.features < len(self.best):
            known = known[ahead.number[known] >= 0]
        known = known[(-ahead.impurity(known)).argsort(kind="stable")]
        max_splits = min(limits.leaves - int(self.counter["leaves"]), self._most_kept // 2)
        return np.concatenate([np.array([at], dtype=np.int32), known[: max(max_splits - 1, 0)]])

    def _query(self, what: str, nodes: IntArray, numbers: FloatArray | None = None) -> NodeQuery:
        """Return a query about nodes, with the given numbers for each node."""
        if numbers is None:
            numbers = np.empty((len(nodes), 0))
        return NodeQuery(what, self.tree, nodes, self.ahead.node["shift"][nodes], numbers)

    def _query_cells(self, nodes: IntArray) -> NodeQuery:
        """Return the query for the histograms of nodes."""
        if self.n_classes:
            return self._query("cells", nodes)
        of_moments = self.ahead.centre[nodes], self.ahead.node["scale"][nodes]
        return self._query("cells", nodes, np.column_stack(of_moments))

    def _told(self, queries: list[NodeQuery]) -> list[Splits | NodeQuery]:
        """Return the pending splits, followed by the queries that have nodes."""
        splits, self._untold = self._untold, []
        return [*splits, *(query for query in queries if len(query.node))]

    def _measure_classes(self, new: IntArray) -> Asking:
        """Measure new nodes, and get the rows of small nodes and the histograms of large nodes.

        In a boosted tree, only the weights of nodes that may be split are refined.
        """
        ahead, is_boosted = self.ahead, self.rule is not None
        ahead.note_pure(new)
        is_small, is_light = ahead.sizes(new) <= self._few, ahead.are_light(new)
        if is_boosted:
            is_light &= ahead.may_split(new)
        if len(light := new[is_light & ~is_small]):
            yield from self._refine(light)
            if not is_boosted:
                ahead.note_pure(light)
        is_open = ahead.may_split(new)
        is_sent = is_small & (is_open | is_light)
        asked, differences = self._asked(new, is_small, is_open & ~is_small, is_sent)
        sent = new[is_sent]
        if not len(sent) + len(asked):
            return
        answered = yield self._told([self._query("rows", sent), self._query_cells(asked)])
        self._store(sent, answered.rows(self.tree))
        cells = self._cells_of(asked, answered)
        for large, small in differences:
            if small not in cells:
                cells[small] = self._cells_of_stored(small)
            cells[large] = self._kept[int(ahead.node["parent"][large])] - cells[small]
        for node in new[is_open & ~is_small].tolist():
            self._kept[node] = cells[node]

    def _asked(
        self,
        new: IntArray,
        is_small: NDArray[np.bool_],
        is_wanted: NDArray[np.bool_],
        is_sent: NDArray[np.bool_],
    ) -> tuple[IntArray, list[tuple[int, int]]]:
        """Return the nodes whose histograms are requested, and pairs (larger, smaller child).

        For a pair, the histogram or the rows of the smaller child are requested; `is_sent` marks
        the rows. The histogram of the larger child is the parent histogram minus the smaller.
        """
        shift = self.ahead.node["shift"]
        asked, differences = list[int](), list[tuple[int, int]]()
        for k in np.flatnonzero(is_wanted[::2] | is_wanted[1::2]).tolist():
            pair = 2 * k, 2 * k + 1
            first, second = new[pair[0]], new[pair[1]]
            if not shift[first] == shift[second] == shift[self.ahead.node["parent"][first]]:
                asked += [int(new[i]) for i in pair if is_wanted[i]]
                continue
            size = self.ahead.sizes(new[[*pair]])
            small, large = pair if size[0] <= size[1] else pair[::-1]
            if is_small[small]:
                is_sent[small] = True
            else:
                asked.append(int(new[small]))
            if is_wanted[large]:
                differences.append((int(new[large]), int(new[small])))
        return np.array(asked, dtype=np.int32), differences

    def _measure_numbers(self, new: IntArray) -> Asking:
        """Compute mean and squared error of new nodes, as `measure_binned` does for one table.

        The grower measures the rows of small nodes. For large nodes that may be
        split, histograms of moments about the mean are requested.
        """
        ahead = self.ahead
        is_small = (ahead.sizes(new) <= self._few) & (new > 0)
        sent, large = new[is_small], new[~is_small]
        if len(light := large[ahead.are_light(large)]):
            yield from self._refine(light)
        answered = yield self._told([self._query("rows", sent), self._query("ends", large)])
        self._store(sent, answered.rows(self.tree))
        if not len(large):
            return
        ends = answered.maxima(2 * len(large)).reshape(-1, 2)[:, ::-1] * (-1.0, 1.0)
        node = ahead.node
        of_squares = [
            grow.begin_moments(ahead, *arguments)
            for arguments in zip(large.tolist(), *ends.T.tolist(), strict=True)
        ]
        scale = node["scale"][large]
        answered = yield [self._query("above", large, np.column_stack([ends[:, 0], scale]))]
        above = answered.totals(len(large)).tolist()
        for arguments in zip(large.tolist(), *ends.T.tolist(), above, strict=True):
            grow.centre_moments(ahead, *arguments)
        ahead.centre[large] = node["mean"][large]
        numbers = np.column_stack([node["mean"][large], scale, of_squares])
        wanted = large[ahead.may_split(large)]
        squares = self._query("squares", large, numbers)
        answered = yield self._told([squares, self._query_cells(wanted)])
        sums = answered.totals(len(large), 4)
        for k, (lowest, highest) in enumerate(ends.tolist()):
            grow.end_moments(ahead, int(large[k]), lowest, highest, of_squares[k], sums[k])
        self._kept.update(self._cells_of(wanted, answered))

    def _cells_of(self, nodes: IntArray, answered: Answered) -> dict[int, NDArray[np.int64]]:
        """Return the histograms of nodes as separate copies."""
        cells = answered.totals(len(nodes), *self._shape)
        return {
            node: node_cells.copy() for node, node_cells in zip(nodes.tolist(), cells, strict=True)
        }

    def _refine(self, nodes: IntArray) -> Asking:
        """Scale the weights of nodes again, to increase the precision of their sums."""
        ahead, shift = self.ahead, self.ahead.node["shift"]
        answered = yield self._told([self._query("heaviest", nodes)])
        heaviest, size = answered.maxima(len(nodes)).tolist(), ahead.sizes(nodes).tolist()
        shift[nodes] = [
            grow.coarse_shift_of(*arguments) for arguments in zip(heaviest, size, strict=True)
        ]
        width = ahead.mass.shape[1]
        answered = yield [self._query("masses", nodes)]
        total = answered.totals(len(nodes), width).sum(axis=1).tolist()
        shift[nodes] = [
            grow.full_shift_of(*arguments)
            for arguments in zip(total, shift[nodes].tolist(), strict=True)
        ]
        answered = yield [self._query("masses", nodes)]
        ahead.mass[nodes] = answered.totals(len(nodes), width)

    def _store(self, nodes: IntArray, sent: list[SentRows]) -> None:
        """Store the rows of nodes, ordered by node."""
        if not len(nodes):
            return
        size = self.ahead.sizes(nodes)
        start, stop = self.n_stored, self.n_stored + int(size.sum())
        self.ahead.stored[nodes] = start + np.cumsum(size) - size
        self._make_room(stop)
        self.n_stored = stop
        places = np.concatenate(
            [np.repeat(np.arange(len(nodes)), sent_rows.sizes) for sent_rows in sent]
        )
        order = np.argsort(places, kind="stable")
        to = slice(start, stop)
        self.codes[:, to] = np.concatenate([sent_rows.codes for sent_rows in sent], axis=1)[
            :, order
        ]
        of_rows = self.label if self.n_classes else self.y
        of_rows[to] = np.concatenate([sent_rows.y for sent_rows in sent])[order]
        weight = [
            sent_rows.weight if len(sent_rows.weight) else np.ones(len(sent_rows.y))
            for sent_rows in sent
        ]
        self.weight[to] = np.concatenate(weight)[order]
        shift = np.repeat(self.ahead.node["shift"][nodes], size)
        self.fixed[to] = fixed_weights(self.weight[to] * self.scale, shift)
        if not self.n_classes:
            self.moment[to, 0] = self.fixed[to]

    def _cells_of_stored(self, node: int) -> NDArray[np.int64]:
        """Return the histogram of a node whose rows are stored in this process."""
        start, size = int(self.ahead.stored[node]), int(self.ahead.sizes(np.array([node]))[0])
        to, cells = slice(start, start + size), np.zeros((1, *self._shape), dtype=np.int64)
        rows, stop = np.arange(start, start + size, dtype=np.int32), np.array([size])
        mass, d = self.fixed[to][:, None], len(self.codes)
        grow.count_cells(self.codes, rows, stop, self.label[to], mass, 0, d, cells)
        return cells[0]


class ShardArrays(ShardedArrays, CartArrays):
    """The arrays of a classification or regression tree on rows in partitions.

    Without `calls`, the tree grows alone and its root is created immediately.
    """

    def __init__(
        self,
        data: TrainingData,
        n: int,
        limits: CartLimits,
        key: int,
        engine: Engine,
        calls: Calls | None = None,
        tree: int = 0,
    ) -> None:
        super().__init__(data, n, limits, key, calls or Calls(engine), tree)
        self.exponent = data.weight_exponent
        if calls is None:
            self.calls.run([self.begin()])


def grow_together(trees: Sequence[ShardedArrays], calls: Calls, workers: Workers) -> list[str]:
    """Grow trees with common requests. Return the reason why each tree stopped growing."""
    calls.run([tree.begin() for tree in trees])
    stop_reasons = [""] * len(trees)
    growing = list(range(len(trees)))

    def grown(first: int, _: int) -> str:
        tree = trees[growing[first]]
        while True:
            check_stop()
            status = grow.grow(tree, CELLS_PER_CALL, INT32_MAX)
            if status in tree.callbacks_by_status or status in tree.stop_reasons:
                return status

    while growing:
        statuses = workers.run_each(grown, len(growing))
        for number, status in zip(growing, statuses, strict=True):
            stop_reasons[number] = trees[number].stop_reasons.get(status, "")
        growing = [number for number in growing if not stop_reasons[number]]
        calls.run([trees[number].level() for number in growing])
    return stop_reasons
