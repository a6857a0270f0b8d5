"""Shapley values of sums of trees: compile the trees once, then evaluate rows in the kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pboost._core import shapley
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
    inner = trees.feature != LEAF
    used, place = np.unique(trees.feature[inner], return_inverse=True)
    feature = np.full(trees.n_nodes, LEAF, dtype=np.int32)
    feature[inner] = place
    max_depth = int(trees.node_depth().max())
    plan = np.zeros((trees.n_trees, shapley.PLAN_SIZE), dtype=np.int64)
    shapley.measure(trees.root, feature, trees.children, max_depth, plan)
    n_points, n_ops, n_splits, n_values = plan[:, : shapley.FIRST].T
    value = trees.value / trees.n_trees if trees.aggregation == "mean" else trees.value
    sizes = n_ops, n_splits * shapley.factor_size(n_points), n_values * value.shape[1]
    ends = np.cumsum(sizes, axis=1).T
    plan[:, shapley.FIRST : -1] = ends - np.transpose(sizes)
    plan[:, -1] = -1 if trees.target is None else trees.target
    program = (
        np.empty(ends[-1, 0], dtype=f"V{shapley.OP_BYTES}"),
        *(np.empty(max(1, size)) for size in ends[-1, 1:]),
    )
    share = shares_of_parents(trees)
    missing = np.zeros(trees.n_nodes, np.uint8) if trees.missing is None else trees.missing
    nodes = (
        *(trees.root, feature, trees.children, trees.threshold),
        *(missing, trees.category_set, np.ascontiguousarray(value), share),
    )
    point, weight = quadrature(max(1, int(n_points.max())))
    shapley.compile_trees(nodes, point, weight, max_depth, plan, *program)
    base = trees.bias + expected_values(trees, share)
    arrays = (plan, *program, weight, trees.sets)
    return PathProgram(trees, used.astype(np.int32), base, max_depth, arrays)


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
    mean: FloatArray = reach[is_leaf] @ values_of_sum(trees)[is_leaf]
    return mean
