"""Rounds of boosting whose trees are those of `fit_cart`, searched exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pboost.data.training import Problem
from pboost.growth.tree import CartLimits
from pboost.losses import Loss, is_of_package
from pboost.losses.search import Counts
from pboost.models.forest import Forest, join_trees
from pboost.models.trees import Tree
from pboost.trees.cart import fit_tree
from pboost.trees.forest import nodes_of_rows
from pboost.trees.targets import Steps, are_too_large, slopes_of, working_response
from pboost.values import FloatArray, IntArray


class ExactRounds:
    """A fit whose trees are fitted to targets by squared error; parameters as of `Rounds`."""

    def __init__(
        self,
        problem: Problem,
        y: FloatArray,
        loss: Loss,
        weight: FloatArray,
        f: FloatArray,
        limits: CartLimits,
        steps: Steps,
        n_threads: int | None,
    ) -> None:
        self.problem, self.y, self.f, self.loss, self.weight = problem, y, f, loss, weight
        self.limits, self.steps, self.n_threads = limits, steps, n_threads
        self.used, self.is_own = np.flatnonzero(weight > 0), not is_of_package(loss)
        self.mean_loss, self.number = 0.0, 0  # of no use here
        #: Where the tree just grown has the rows.
        self.node = np.empty(0, dtype=np.int32)
        self.look()

    def look(self) -> None:
        """Find the mean loss of the decision values as they are."""
        rows = self.used
        value = self.loss.value(self.y[rows], self.f[rows])
        mean = float(np.average(value, weights=self.weight[rows]))
        self.mean_loss = self.loss.reported * mean

    def add_fitted(self, tree: Tree, values: Callable[[Tree], FloatArray]) -> None:
        """Add a tree of an earlier fit, given what returns its values at all rows."""
        self.f += values(tree)

    def take(self, residual: FloatArray, *_: object) -> None:
        """Take over the gradients of the log loss of a class against the others, (n,)."""
        size = np.abs(residual)
        self.y = np.where(residual < 0, 1.0, -1.0)
        odds = np.maximum(1.0 - size, 2.0**-54) / np.maximum(size, 2.0**-900)
        self.f = self.y * np.log(odds)

    def grow(self, rows: IntArray) -> Tree | None:
        """Grow a tree on the listed rows and add it; None where numbers end."""
        tree = self.grown(rows)
        if tree is not None:
            self.add(tree, rows)
            self.look()
        return tree

    def grown(self, rows: IntArray) -> Tree | None:
        """Return a tree that is grown on the listed rows; None where numbers end."""
        y, f, weight = self.y[rows], self.f[rows], self.weight[rows]
        given = self.problem.given(rows)
        found = working_response(self.loss, y, f, weight, given)
        if found is None or (self.is_own and are_too_large(self.loss, y, f, given)):
            return None
        target, of_target = np.zeros(len(self.y)), np.zeros(len(self.y))
        target[rows], of_target[rows] = found
        exponent = int(np.frexp(np.abs(target).max())[1])
        problem = replace(self.problem, y=np.ldexp(target, -exponent), exponent=exponent)
        tree = fit_tree(problem, of_target, self.limits, {}, 0, self.n_threads)
        self.node = nodes_of_rows(tree, problem, np.arange(len(self.y)))
        node = self.node[rows]
        value = np.zeros(tree.n_nodes)
        order = np.argsort(node, kind="stable")
        count = np.bincount(node)
        leaves = np.flatnonzero(count)
        best = self._best(y[order], f[order], weight[order], count[leaves])
        value[leaves] = self.steps.rate * np.clip(best, -self.steps.most, self.steps.most)
        return replace(tree, value=value)

    def add(self, tree: Tree, rows: IntArray) -> None:
        """Add the tree just grown to the decision values of all rows."""
        self.f += tree.value[self.node]

    def _best(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        count: Counts,
    ) -> FloatArray:
        """Return the steps of groups of rows, `count` one after another."""
        if self.steps.solved:
            return self.loss.leaf_values(y, f, weight, count)
        start = np.concatenate([[0], np.cumsum(count)[:-1]])
        slopes = slopes_of(self.loss, y, f, weight, np.arange(len(y)))
        gradient, curvature = (np.add.reduceat(part, start) for part in slopes)
        out = np.zeros(len(count))
        return -np.divide(gradient, curvature, out=out, where=curvature > 0)

    def values(self, tree: Tree) -> FloatArray:
        """Return what the nodes of a tree add, 0 where they are no leaves."""
        return tree.value

    def tree(self, tree: Tree) -> Tree:
        """Return a tree as a model."""
        return tree

    def forest(self, trees: list[Tree]) -> Forest:
        """Return trees as a model."""
        return join_trees(trees, {"builder": "fit_stagewise"}, None)
