"""Growth of probit model trees: a partition, and ProbitBoost in its leaves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import probit_tree as kernel
from pboost._core.probit import losses
from pboost._core.probit_boost import boost_leaves
from pboost._core.probit_round import margins, mean_losses
from pboost.data.training import Problem
from pboost.growth.tree import CartArrays, CartLimits, Grown, grow_tree
from pboost.threads import Workers
from pboost.values import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ProbitLimits:
    """How the leaves are fitted, and which splits are undone before; see `fit_probit_tree`."""

    steps: int
    tol: float
    safeguard: bool
    complexity: float


@dataclass(frozen=True, slots=True, eq=False)
class GrownProbit:
    """A probit tree as it was grown.

    Attributes
    ----------
    partition : Grown
        Its partition.
    coefficient : ndarray of float64, shape (leaves, K, 1 + d)
        Intercepts and slopes; K is 1 for two classes, else their number.
    taken : ndarray of int32, shape (leaves, K)
        Steps, or ONE_CLASS or NO_ROW.
    rows : ndarray of int32, shape (n,)
        The rows of positive weight, leaf after leaf; until the next tree is grown.
    starts : ndarray of int32, shape (leaves + 1,)
        Where those of each leaf begin; until the next tree is grown.
    """

    partition: Grown
    coefficient: FloatArray
    taken: IntArray
    rows: IntArray
    starts: IntArray


class ProbitGrower:
    """Grows trees on one set of rows, with one vector of weights after another.

    Parameters
    ----------
    problem : Problem
        Columns and classes; sorted columns are not sorted again.
    X : ndarray of float32 or float64, shape (n, d)
        Its matrix, in any layout.
    weights : ndarray of float64, shape (n,)
        Positive where rows take part in the trees.
    limits, leaves : CartLimits, ProbitLimits
        Checked options.
    workers : Workers
        Threads of a tree.
    key : int
        Of the random numbers of the partition.
    """

    def __init__(
        self,
        problem: Problem,
        X: NDArray[Any],
        weights: FloatArray,
        limits: CartLimits,
        leaves: ProbitLimits,
        workers: Workers,
        key: int = 0,
    ) -> None:
        assert problem.labels is not None
        self.X, self.label, self.leaves, self.workers = X, problem.label, leaves, workers
        self.n_classes = len(problem.labels)
        self.data = problem.weighted(weights, workers)
        self.arrays = CartArrays(self.data.own(), limits, key)
        self.ascending = np.flatnonzero(weights > 0).astype(np.int32)
        n, capacity = len(self.ascending), len(self.arrays.node)
        self.rows, self.leaf_of = np.empty(n, dtype=np.int32), np.empty(len(X), dtype=np.int32)
        self.starts = np.empty(capacity + 1, dtype=np.int32)
        kept = capacity if leaves.complexity > 0 else 0
        self.state = np.empty((kept, kernel.N_STATES_OF_NODE))
        self.stack = np.empty(kept + 1, dtype=np.int64)
        self.stop_reason = ""

    def grow(self, weights: FloatArray) -> GrownProbit:
        """Return the tree for weights (n,) that are positive where those of the start were."""
        arrays, limits = self.arrays, self.leaves
        arrays.restart(weights, self.data.order)
        self.stop_reason = grow_tree(arrays, self.workers, None)
        if limits.complexity > 0:
            nodes = arrays.node[: int(arrays.counter["nodes"])]
            kernel.keep_splits(nodes, arrays.mass, limits.complexity, self.state, self.stack)
        partition = arrays.grown()
        rows = arrays.data.rows if arrays.exact else arrays.rows
        leaves = kernel.list_rows(
            partition.nodes, arrays.order, rows, arrays.exact, self.ascending, self.leaf_of,
            self.rows, self.starts,
        )  # fmt: skip
        starts = self.starts[: leaves + 1]
        coefficient, taken = self._fit_leaves(starts, weights)
        return GrownProbit(partition, coefficient, taken, self.rows, starts)

    def _fit_leaves(self, starts: IntArray, weights: FloatArray) -> tuple[FloatArray, IntArray]:
        limits, leaves = self.leaves, len(starts) - 1
        k = 1 if self.n_classes == 2 else self.n_classes
        coefficient = np.empty((leaves, k, 1 + self.X.shape[1]))
        taken = np.empty((leaves, k), dtype=np.int32)

        def fit(first: int, last: int) -> None:
            boost_leaves(
                self.X, self.rows, starts, self.label, weights, self.n_classes, limits.steps,
                limits.tol, limits.safeguard, coefficient, taken, None, first, last,
                self.workers.stop,
            )  # fmt: skip

        if self.workers.n_threads == 1:
            fit(0, leaves)
        else:
            # A leaf at a time, that the large ones do not all fall to one thread.
            self.workers.run_each(fit, leaves)
        kernel.set_constants(coefficient, taken, starts, constant_score)
        return coefficient, taken

    def values(self, tree: GrownProbit) -> FloatArray:
        """Return the values (n, K) of the newest tree at its rows, in their order."""
        n, d = len(tree.rows), self.X.shape[1]
        out = np.empty((n, tree.coefficient.shape[1]))

        def work(first: int, last: int) -> None:
            kernel.leaf_values(
                self.X, tree.rows, tree.starts, tree.coefficient, tree.taken, first, last,
                np.empty(d), out,
            )  # fmt: skip

        self.workers.run(work, n, cells=d * out.shape[1])
        return out

    def risk(self, tree: GrownProbit, values: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the weighted mean loss (leaves, K) of the values of the newest tree."""
        n, k = values.shape
        loss, work = np.empty(n * k), np.empty((2, n))
        margins(values, tree.rows, self.label, loss)
        losses(loss, loss)
        risk = np.empty((len(tree.starts) - 1, k))
        mean_losses(loss, tree.rows, tree.starts, weights, work, risk)
        return risk


@lru_cache(maxsize=4096)
def constant_score(rows: int) -> float:
    """Return Phi^-1((n + 1/2) / (n + 1)), the value in a leaf of n rows of one class."""
    return -NormalDist().inv_cdf(0.5 / (rows + 1))
