"""Shapley values of sums of trees: compile the trees once, then evaluate rows in the kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from pboost._core import interventional, shapley
from pboost.models.tree_ensemble import (
    LEAF,
    TreeEnsemble,
    levels_of,
    positive_weights,
    values_of_sum,
)
from pboost.threads import Workers
from pboost.values import Array, FloatArray, IntArray

#: Number of operations times quadrature points that take as long as a cell, see `Workers`.
OPS_PER_CELL = 32
#: Number of cells that take as long as a tree for a row and a background row.
CELLS_PER_PAIR = 8
#: Number of cells that take as long as compiling a node, or a cell of a table.
CELLS_PER_NODE = 16
#: Maximum number of cells of the tables of interventional values; trees beyond it have no tables.
MAX_CELLS = 1 << 24
CELLS = interventional.CELLS


@dataclass(frozen=True, slots=True)
class PathProgram:
    """The trees of an ensemble, compiled for path-dependent Shapley values.

    `used` are the features that the trees use, `base` (J,) the expected decision values, and
    `arrays` the arguments of the kernel.
    """

    trees: TreeEnsemble
    used: IntArray
    base: FloatArray
    max_depth: int
    arrays: tuple[Array, ...]

    def values(self, rows: FloatArray, n_threads: int | None) -> FloatArray:
        """Return the Shapley values (n, d, J) of rows (n, d), see `TreeEnsemble.rows`."""
        out = np.zeros((*rows.shape, len(self.base)))
        self._run(rows, n_threads, out, None)
        return out

    def interactions(self, rows: FloatArray, n_threads: int | None) -> FloatArray:
        """Return the interaction values (n, d, d, J) of rows (n, d)."""
        pairs = np.zeros((*rows.shape, rows.shape[1], len(self.base)))
        self._run(rows, n_threads, None, pairs)
        return pairs

    def _run(
        self,
        rows: FloatArray,
        n_threads: int | None,
        out: FloatArray | None,
        pairs: FloatArray | None,
    ) -> None:
        n, plan, n_outputs = len(rows), self.arrays[0], len(self.base)
        n_points = int(plan[:, shapley.POINTS].max(initial=1))
        with_pairs = pairs is not None
        size = shapley.work_size(self.max_depth, n_points, len(self.used), n_outputs, with_pairs)
        trees = self.used, self.arrays, self.max_depth

        def work(start: int, stop: int) -> None:
            shapley.add_values(rows, *trees, start, stop, np.empty(size), out, pairs)

        n_ops = int((plan[:, shapley.POINTS] * plan[:, shapley.OPS]).sum())
        cells = 1 + n_ops * (n_outputs if self.trees.target is None else 1) // OPS_PER_CELL
        if with_pairs:
            cells = cells * (1 + self.max_depth) + len(self.used) ** 2 * n_outputs
        with Workers(n_threads, n * cells) as workers:
            workers.run(work, n, shapley.CHUNK_ROWS, cells)


def compile_paths(trees: TreeEnsemble) -> PathProgram:
    """Compile trees whose nodes have weights."""
    used, nodes = kernel_nodes(trees)
    max_depth = int(trees.node_depth().max())
    plan = np.zeros((trees.n_trees, shapley.PLAN_SIZE), dtype=np.int64)
    shapley.measure(nodes, max_depth, plan)
    n_points, n_ops, n_splits, n_values = plan[:, : shapley.FIRST].T
    sizes = n_ops, n_splits * shapley.factor_size(n_points), n_values * trees.n_added
    ends = np.cumsum(sizes, axis=1).T
    plan[:, shapley.FIRST : -1] = ends - np.transpose(sizes)
    plan[:, -1] = -1 if trees.target is None else trees.target
    ops = np.empty(ends[-1, 0], dtype=f"V{shapley.OP_BYTES}")
    factor, value = (np.empty(max(1, size)) for size in ends[-1, 1:])
    share = shares_of_parents(trees)
    point, weight = quadrature(max(1, int(n_points.max())))

    def work(start: int, stop: int) -> None:
        arrays = (*nodes, share), point, weight, max_depth, plan
        shapley.compile_trees(*arrays, ops, factor, value, start, stop)

    Workers(1).run(work, trees.n_trees, 1, cells_per_tree(trees))
    base = trees.bias + expected_values(trees, share)
    arrays = plan, ops, factor, value, weight, trees.sets
    return PathProgram(trees, used, base, max_depth, arrays)


def kernel_nodes(trees: TreeEnsemble) -> tuple[IntArray, tuple[Array, ...]]:
    """Return the features that trees use, and the arrays of their nodes for kernels.

    Features are replaced by their indices among the used features.
    """
    inner = trees.feature != LEAF
    used, place = np.unique(trees.feature[inner], return_inverse=True)
    feature = np.full(trees.n_nodes, LEAF, dtype=np.int32)
    feature[inner] = place
    value = trees.value / trees.n_trees if trees.aggregation == "mean" else trees.value
    missing = np.zeros(trees.n_nodes, np.uint8) if trees.missing is None else trees.missing
    splits = trees.threshold, missing, trees.category_set
    return used.astype(np.int32), (
        *(trees.root, feature, trees.children, *splits, np.ascontiguousarray(value)),
    )


def cells_per_tree(trees: TreeEnsemble) -> int:
    """Return the cost of compiling a tree, see `Workers`."""
    return 1 + CELLS_PER_NODE * trees.n_nodes * trees.n_added // trees.n_trees


@dataclass(frozen=True, slots=True)
class BackgroundProgram:
    """The trees of an ensemble and background rows, for interventional Shapley values.

    `used` and `base` as in `PathProgram`, `rows` (m, d) the background with weights (m,), `nodes`
    the arrays of the trees, and `shares` the shares of a leaf, see `leaf_shares`. `tables` are the
    arrays of the trees that have tables of shares: plan, ops and table. `others` are the trees
    without tables.
    """

    trees: TreeEnsemble
    used: IntArray
    base: FloatArray
    rows: FloatArray
    weight: FloatArray
    nodes: tuple[Array, ...]
    shares: FloatArray
    tables: tuple[Array, Array, Array]
    others: IntArray
    max_depth: int

    def values(self, rows: FloatArray, n_threads: int | None) -> FloatArray:
        """Return the Shapley values (n, d, J) of rows (n, d), see `TreeEnsemble.rows`."""
        out = np.zeros((*rows.shape, len(self.base)))
        plan = self.tables[0]
        n_ops = int(plan[plan[:, CELLS] > 0, interventional.OPS].sum())
        cells = 1 + n_ops * self.trees.n_added // OPS_PER_CELL
        multiple = interventional.CHUNK_ROWS
        if len(self.others):
            multiple, cells = 1, cells + len(self.others) * len(self.rows) * CELLS_PER_PAIR
        with Workers(n_threads, len(rows) * cells) as workers:
            workers.run(partial(self._add, rows, out), len(rows), multiple, cells)
        return out

    def _add(self, rows: FloatArray, out: FloatArray, start: int, stop: int) -> None:
        trees, n_used = self.trees, len(self.used)
        size = interventional.work_size(self.max_depth, n_used, len(self.base))
        memory = np.empty(size, dtype=np.int64)
        arrays = (*self.tables, trees.sets, trees.n_added, self.max_depth)
        interventional.add_tables(rows, self.used, *arrays, start, stop, memory, out)
        if len(self.others):
            side = np.empty((len(self.rows) + 1, int(np.diff(trees.root).max())), dtype=np.uint8)
            work = np.empty((4, n_used), dtype=np.int32)
            pairs = self.rows, self.weight, self.used, self.nodes, self.others, self.shares
            interventional.add_pairs(rows, *pairs, trees.target, start, stop, side, work, out)


def compile_background(
    trees: TreeEnsemble, rows: FloatArray, weight: FloatArray | None
) -> BackgroundProgram:
    """Prepare trees and background rows, whose weights need not sum to 1."""
    used, arrays = kernel_nodes(trees)
    nodes = (*arrays, trees.sets)
    max_depth = int(trees.node_depth().max())
    plan = np.zeros((trees.n_trees, interventional.PLAN_SIZE), dtype=np.int64)
    interventional.measure_tables(nodes, max_depth, plan)
    n_cells = plan[:, CELLS] * trees.n_added
    plan[np.cumsum(n_cells) > MAX_CELLS, CELLS] = 0
    n_cells = plan[:, CELLS] * trees.n_added
    n_ops, n_unique = plan[:, interventional.OPS], int(plan[:, interventional.UNIQUE].max())
    plan[:, interventional.FIRST] = np.cumsum(n_ops) - n_ops
    plan[:, interventional.FIRST + 1] = np.cumsum(n_cells) - n_cells
    plan[:, -1] = -1 if trees.target is None else trees.target
    weight = np.ones(len(rows)) if weight is None else weight / weight.max()
    weight = weight / weight.sum()
    shares = leaf_shares(n_unique + 1)
    tables = plan, *made_tables(trees, nodes, (rows, weight, used), plan, shares, max_depth)
    base = trees.bias + (weight[:, None] * sums_at_leaves(trees, rows)).sum(axis=0)
    has_splits = trees.feature[trees.root[:-1]] != LEAF
    others = np.flatnonzero((plan[:, CELLS] == 0) & has_splits).astype(np.int32)
    return BackgroundProgram(
        trees, used, base, rows, weight, nodes, shares, tables, others, max_depth
    )


def made_tables(
    trees: TreeEnsemble,
    nodes: tuple[Array, ...],
    background: tuple[FloatArray, FloatArray, IntArray],
    plan: Array,
    shares: FloatArray,
    max_depth: int,
) -> tuple[Array, FloatArray]:
    """Return the operations of the trees and their tables."""
    rows, weight, used = background
    # Kernels read whole tiles of rows.
    added = -len(rows) % interventional.CHUNK_ROWS
    rows, weight = np.pad(rows, ((0, added), (0, 0))), np.pad(weight, (0, added))
    has_tables = plan[:, CELLS] > 0
    n_ops = plan[:, interventional.OPS]
    ops = np.empty(int(n_ops.sum()), dtype=f"V{interventional.OP_BYTES}")
    table = np.empty(max(1, int(plan[:, CELLS].sum()) * trees.n_added))
    memory = np.empty(interventional.work_size(max_depth, len(used), 1), dtype=np.int64)
    n_unique = int(plan[has_tables, interventional.UNIQUE].max(initial=0))
    work = (
        np.empty(max(1, int(plan[has_tables, interventional.COUNTS].max(initial=0)))),
        np.empty((n_unique + 2) << n_unique),
        np.empty(int(n_ops.max()), dtype=np.int32),
    )
    arrays = nodes, rows, weight, used, plan, shares, max_depth, ops, table, memory, *work
    cells = cells_per_tree(trees) + CELLS_PER_NODE * len(table) // trees.n_trees
    Workers(1).run(partial(interventional.make_tables, *arrays), trees.n_trees, 1, cells)
    return ops, table


def leaf_shares(size: int) -> FloatArray:
    """Return the share of a leaf that each of its p features of a row gets, (size, size).

    Entry p, q is ``(p - 1)! q! / (p + q)!`` if q more features are those of a background row.
    """
    shares = np.zeros((size, size))
    for p in range(1, size):
        for q in range(size - p):
            shares[p, q] = 1 / (p * math.comb(p + q, p))
    return shares


def sums_at_leaves(trees: TreeEnsemble, rows: FloatArray) -> FloatArray:
    """Return the sums of the leaf values (n, J) of rows, without the bias."""
    value, place = values_of_sum(trees), np.arange(len(rows))
    missing = np.zeros(trees.n_nodes, np.uint8) if trees.missing is None else trees.missing
    sums = np.zeros((len(rows), trees.n_values))
    for root in trees.root[:-1].tolist():
        node = np.full(len(rows), root)
        while (inner := trees.feature[node] != LEAF).any():
            x = rows[place, trees.feature[node]]
            is_missing, number = np.isnan(x), trees.category_set[node]
            second = ~(x <= trees.threshold[node])
            coded = inner & (number >= 0) & ~is_missing
            code = x[coded].astype(np.int64)
            words = trees.sets[number[coded], code >> 6] >> (code & 63).astype(np.uint64)
            second[coded] = words & np.uint64(1)
            second = np.where(is_missing, missing[node], second).astype(np.intp)
            node = np.where(inner, root + trees.children[node, second], node)
        sums += value[node]
    return sums


def quadrature(max_points: int) -> tuple[FloatArray, FloatArray]:
    """Return the points and weights of Gauss-Legendre quadrature on [0, 1].

    The rules with 1, 2, ..., `max_points` points come one after another.
    """
    rules = [np.polynomial.legendre.leggauss(k) for k in range(1, max_points + 1)]
    point, weight = np.concatenate(rules, axis=1)
    return (point + 1.0) / 2.0, weight / 2.0


def shares_of_parents(trees: TreeEnsemble) -> FloatArray:
    """Return the weight of each node, as a share of the weight of its parent; 1 for roots."""
    weight = positive_weights(trees)
    share = np.ones(trees.n_nodes)
    inner, children = trees.inner()
    share[children] = weight[children] / weight[inner, None]
    return share


def expected_values(trees: TreeEnsemble, share: FloatArray) -> FloatArray:
    """Return the mean of the leaf values (J,), weighted by the node weights."""
    reach = share.copy()
    inner, children = trees.inner()
    for level in levels_of(trees, inner):
        reach[children[level]] *= reach[inner[level], None]
    is_leaf = trees.feature == LEAF
    # BLAS would round differently with several threads.
    mean: FloatArray = (reach[is_leaf, None] * values_of_sum(trees)[is_leaf]).sum(axis=0)
    return mean
