"""Boosting rounds for several classes, with one tree per class in each round.

As a function of the decision value of one class, the softmax loss is the log loss of this class
against the other classes. Each tree is therefore fitted like a tree of the log loss.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from pboost import threads
from pboost._core import boost, softmax
from pboost._core.derived import GROUP_LANES
from pboost.growth.tree import Grown
from pboost.losses import LOSSES, Loss
from pboost.models.random_forest import RandomForest
from pboost.models.single_tree import Tree
from pboost.trees import tree_rounds as rounds
from pboost.trees.gradients import RoundWeights, Steps
from pboost.trees.tree_rounds import SLOT_BYTES, Rounds
from pboost.values import FloatArray, IntArray

#: Numbers of classes whose root histograms are computed together.
WIDTHS = (8, 4, 2)
#: Minimum number of rows for which root histograms are computed together.
LEAST_ROWS = 1024


class ClassRounds:
    """A fit with J trees per round. `tree_rounds` grows these trees one after the other.

    Parameters
    ----------
    n_trees : int
        Number of trees per round, J.
    total : float
        Sum of the weights.
    """

    tree_rounds: Any
    steepest: FloatArray
    most_curved: FloatArray

    def __init__(self, n_trees: int, total: float) -> None:
        self.n_trees, self.total, self.mean_loss = n_trees, total, 0.0
        #: Mean of `Rounds.kept` over the trees of the last round.
        self.kept = 0.0

    def halved(self, steps: Steps) -> Steps:
        """Return the options for leaf values. With two classes, trees take half a step."""
        return steps._replace(rate=steps.rate * (0.5 if self.n_trees == 2 else 1.0))

    def take_one(self, tree_rounds: Any) -> None:
        """Set the object that grows single trees."""
        self.tree_rounds = tree_rounds
        tree_rounds.per_round = self.n_trees

    @property
    def number(self) -> int:
        """Number of trees grown so far."""
        number: int = self.tree_rounds.number
        return number

    @number.setter
    def number(self, number: int) -> None:
        self.tree_rounds.number = number

    def look(self) -> None:
        """Compute the gradients and the mean loss at the current decision values."""
        raise NotImplementedError

    def take_class(self, k: int, n_rows: int) -> None:
        """Prepare the growth of the tree of a class on `n_rows` rows."""
        raise NotImplementedError

    def add_class(self, k: int, grown: Grown) -> None:
        """Add a tree to the decision values of a class."""
        raise NotImplementedError

    def grow(self, rows: IntArray) -> list[Any] | None:
        """Grow the trees of a round on the listed rows and add them; return None on overflow."""
        trees, kept = [], 0.0
        for k in range(self.n_trees):
            self.take_class(k, len(rows))
            grown = self.tree_rounds.grown(rows)
            if grown is None:
                return None
            self.add_class(k, grown)
            trees.append(grown)
            kept += self.tree_rounds.kept
        self.kept = kept / self.n_trees
        self.look()
        return trees

    def pay_given(self, trees: list[Tree]) -> None:
        """Record the features that rows have paid for in trees of an earlier fit."""
        self.tree_rounds.pay_given(trees)

    def values(self, trees: list[Any]) -> FloatArray:
        """Return the values of the nodes of all trees of a round, 0 for inner nodes."""
        return np.concatenate([self.tree_rounds.values(tree) for tree in trees])

    def tree(self, trees: list[Any]) -> list[Tree]:
        """Return the trees of a round as models."""
        return [self.tree_rounds.tree(tree) for tree in trees]

    def forest(self, trees: list[list[Any]]) -> RandomForest:
        """Return the trees of rounds as a model."""
        model: RandomForest = self.tree_rounds.forest(list(chain.from_iterable(trees)))
        return model


class SoftmaxRounds(ClassRounds):
    """A fit with J trees per round, on the rows of one table.

    Parameters
    ----------
    label : ndarray of float64, shape (n,)
        Class number of each row.
    weights : RoundWeights
        Weights of the rows.
    f : ndarray of float64, shape (J, n)
        Decision values, which are updated in place.
    steps : Steps
        Options for the leaf values of one class.
    make : callable
        ``make(y, loss, weights, f, steps)`` returns the object that grows single trees.
    workers : Workers, optional
        Threads that share the rows.
    """

    def __init__(
        self,
        label: FloatArray,
        weights: RoundWeights,
        f: FloatArray,
        steps: Steps,
        make: Callable[[FloatArray, Loss, RoundWeights, FloatArray, Steps], Any],
        workers: threads.Workers | None = None,
    ) -> None:
        super().__init__(len(f), weights.total)
        self.workers = threads.Workers(1) if workers is None else workers
        self.label, self.f = label, f
        self.weight, self.are_copies = weights.of_rows, weights.are_copies
        self.residual, self.loss = np.empty(f.shape), np.empty(len(label))
        self.per_limit = 1.0 / LOSSES["log_loss"].limit
        self.look()
        # Initial derivatives are not used, since gradients are passed in before each tree.
        self.take_one(make(label, LOSSES["log_loss"], weights, f[0], self.halved(steps)))
        is_binned = isinstance(self.tree_rounds, Rounds)
        has_roots = is_binned and self.tree_rounds.shares_roots
        self.roots = Roots(self.tree_rounds) if has_roots else None
        self.pays = is_binned and self.tree_rounds.payments is not None

    def look(self) -> None:
        """Compute the gradients and the mean loss at the current decision values."""
        share = rounds.SHARE_ROWS
        team = 0 if len(self.label) < 2 * share else self.workers.team
        largest = np.zeros((2, self.workers.n_threads, len(self.f)))
        softmax.shares(
            self.f,
            self.label,
            self.weight,
            self.are_copies,
            self.per_limit,
            self.residual,
            self.loss,
            largest[0],
            largest[1],
            team,
            share,
        )
        self.steepest, self.most_curved = largest.max(axis=1)
        copies = self.weight if self.are_copies else None
        self.mean_loss = boost.exact_sum(self.loss, copies) / self.total

    def take_class(self, k: int, n_rows: int) -> None:
        """Prepare the growth of the tree of a class on `n_rows` rows."""
        parts = self.residual[k], float(self.steepest[k]), float(self.most_curved[k])
        self.tree_rounds.take(
            *parts, None if self.roots is None else self.roots.of(k, self, n_rows)
        )

    def add_class(self, k: int, grown: Grown) -> None:
        """Add a tree to the decision values of a class."""
        self.tree_rounds.f = self.f[k]
        self.tree_rounds.add(grown)
        if self.pays:
            self.tree_rounds.pay(grown)

    def add_fitted(self, trees: list[Tree], values: Callable[[Tree], FloatArray]) -> None:
        """Add the trees of a round of an earlier fit; `values` returns the values of a tree."""
        for f, tree in zip(self.f, trees, strict=True):
            f += values(tree)


class Roots:
    """Histograms of the roots of a round, for up to eight classes at once.

    A row is in the same bins for all classes, so the gradients of all classes are added at once.
    """

    def __init__(self, tree_rounds: Rounds) -> None:
        self.tree_rounds = tree_rounds
        self.bins = tree_rounds.group_bins.repeat(GROUP_LANES)[: len(tree_rounds.lanes.bins)]
        self.masses = np.empty((1, len(self.bins), 256, 2, 0))
        size = self.masses.itemsize * 512 * len(self.bins)
        self.n_together = max((k for k in WIDTHS if k * size <= SLOT_BYTES), default=1)
        if (
            len(tree_rounds.y) < LEAST_ROWS
            or tree_rounds.of_tree is not None
            or tree_rounds.steps.sums == "wide"
        ):
            self.n_together = 1
        at_once = min(tree_rounds.n_threads, len(tree_rounds.y) // tree_rounds.block)
        n_threads = tree_rounds.n_threads if at_once > 1 else 1
        self.work = np.empty(
            (n_threads, softmax.ROOT_WORK if self.n_together > 1 else 0), dtype=np.int64
        )

    def of(self, k: int, fit: SoftmaxRounds, n_listed: int) -> FloatArray | None:
        """Return the root histogram of class `k`, or None if it must be computed separately."""
        first = k - k % self.n_together
        last = min(first + self.n_together, fit.n_trees)
        if last - first < 2 or n_listed < self.tree_rounds.n_used:
            return None
        if k == first:
            self._count(fit, slice(first, last), last - first)
        return self.masses[0, ..., k - first]

    def _count(self, fit: SoftmaxRounds, classes: slice, n_classes: int) -> None:
        width = min(k for k in WIDTHS if k >= n_classes)
        d, n = len(self.bins), len(self.tree_rounds.y)
        if self.masses.shape[-1] != width:
            self.masses = np.empty((len(self.work), d, 256, 2, width))
        self.masses[:] = 0.0
        block, team = self.tree_rounds.block, 0 if len(self.work) == 1 else self.tree_rounds.team
        at_once = block * max(1, len(self.work) * threads.CELLS_PER_CALL // (block * d))
        for start in range(0, n, at_once):
            softmax.count_roots(
                self.tree_rounds.lanes.groups,
                self.bins,
                fit.residual[classes],
                fit.weight,
                fit.are_copies,
                block,
                fit.per_limit,
                fit.steepest[classes],
                fit.most_curved[classes],
                start,
                min(n, start + at_once),
                self.work,
                self.masses,
                team,
            )
            threads.check_stop()
        for more in self.masses[1:]:
            self.masses[0] += more
