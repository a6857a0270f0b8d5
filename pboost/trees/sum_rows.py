"""The training rows of a sum of trees, in one table or in partitions: what a fit asks of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pboost._core import boost
from pboost.data.bags import make_bags
from pboost.data.columns import BinnedColumns
from pboost.data.convert import Features
from pboost.data.labels import weight_of_copy
from pboost.data.training import Problem
from pboost.growth.tree import CartLimits
from pboost.losses import Loss, Softmax, is_of_package
from pboost.models.trees import Tree
from pboost.threads import Workers
from pboost.trees import pairs
from pboost.trees.exact_rounds import ExactRounds
from pboost.trees.forest import nodes_of_rows
from pboost.trees.restraints import Restraints
from pboost.trees.rounds import Rounds
from pboost.trees.softmax_rounds import SoftmaxRounds
from pboost.trees.steps import Steps, check_size
from pboost.trees.targets import targets_of
from pboost.trees.vector_rounds import VectorRounds
from pboost.trees.weights import Weights, weights_of
from pboost.values import FloatArray


class Growing(NamedTuple):
    """What the rounds of a fit are made with, beside its rows."""

    loss: Loss
    limits: CartLimits
    steps: Steps
    restraints: Restraints
    has_one_tree: bool


class SumRows(Protocol):
    """Rows that a sum of trees is fitted to, wherever they are.

    Attributes
    ----------
    problem : Problem
        Columns, labels and rows held out; of rows in partitions no others.
    of_row, greatest : float
        The weight of a row, see `weight_of_copy`, and the greatest weight, 1 without weights.
    """

    problem: Problem
    of_row: float
    greatest: float

    def take_targets(self, loss: Loss, y: Any) -> NDArray[Any] | None:
        """Take over what a loss compares with; returns the labels."""

    def sort_once(self) -> None:
        """Sort columns that several trees share."""

    def n_copies(self) -> float:
        """Return the number of rows, by their weights, in units of `of_row`."""

    def weights(self, is_binned: bool) -> Weights:
        """Return the weights of rounds."""

    def bias(self, loss: Loss, is_constant: bool) -> float | FloatArray:
        """Return the decision value before the first tree, with softmax those of the classes."""

    def scan(self) -> pairs.Scanned:
        """Return the rows that tell how trees grow."""

    def rounds(self, growing: Growing, bias: Any, workers: Workers) -> Any:
        """Return what grows the trees of a round."""

    def begin_bags(self, bag: Any, generator: np.random.Generator) -> bool:
        """Begin to draw rows for trees; returns whether each tree has all rows."""

    def listed(self, number: int) -> Any:
        """Return the rows of a tree."""

    def given_values(self, tree: Tree) -> FloatArray:
        """Return what a tree of an earlier fit adds to the decision values of rows here."""

    def refuse_first(self, rounds: Any) -> None:
        """Raise ValueError if derivatives are none that a first tree can be fitted to."""


class TableRows:
    """`SumRows` of one table."""

    def __init__(self, problem: Problem, X: Any, n_threads: int | None) -> None:
        self.problem, self._n_threads = problem, n_threads
        self.of_row = weight_of_copy(problem.weights)
        self.greatest = 1.0 if problem.weights is None else float(problem.weights.max())
        self._weight: FloatArray = np.broadcast_to(1.0, problem.n_rows)  # one number
        if problem.weights is not None:
            self._weight = problem.weights / self.greatest  # 0 of the rows held out
        self._features = X if isinstance(X, Features) else None

    def take_targets(self, loss: Loss, y: Any) -> NDArray[Any] | None:
        """Take over what a loss compares with; returns the labels."""
        labels, self._y = targets_of(self.problem, loss, y)
        return labels

    def sort_once(self) -> None:
        """Sort columns that several trees share."""
        self.problem = self.problem.sorted_once(self._n_threads)

    def n_copies(self) -> float:
        """Return the number of rows, by their weights, in units of `of_row`."""
        weights = self.problem.weights
        return self.problem.n_rows if weights is None else boost.exact_sum(weights) / self.of_row

    def weights(self, is_binned: bool) -> Weights:
        """Return the weights of rounds."""
        unit = self.of_row / self.greatest if is_binned else None
        self._weights = weights_of(self._weight, unit)
        return self._weights

    def bias(self, loss: Loss, is_constant: bool) -> float | FloatArray:
        """Return the decision value before the first tree, with softmax those of the classes."""
        labels, y, weight = self.problem.labels, self._y, self._weight
        if not is_constant:
            return np.zeros(len(labels)) if isinstance(loss, Softmax) else 0.0  # type: ignore[arg-type]
        if self._weights.are_copies and self._weights.of_rows is not None:
            weight = self._weights.of_rows
        if isinstance(loss, Softmax):
            return np.asarray(loss.constant(y, weight))
        used = np.flatnonzero(weight > 0)
        y, weight = y[used], weight[used]
        if not is_of_package(loss):
            check_size(loss, y, np.zeros(len(y)), self.problem.given(used))
        return float(loss.constant(y, weight))

    def scan(self) -> pairs.Scanned:
        """Return the rows that tell how trees grow."""
        columns, weights = self.problem.columns, self._weights
        assert isinstance(columns, BinnedColumns)
        used = None if weights.of_rows is None else weights.of_rows > 0
        rows, codes = pairs.scanned_part(columns, used, weights.n_copies)
        few = None if weights.of_rows is None else weights.of_rows[rows]
        return pairs.limited(codes, self._y[rows], few, weights.n_copies)

    def rounds(self, growing: Growing, bias: Any, workers: Workers) -> Any:
        """Return what grows the trees of a round."""
        f = np.repeat(np.expand_dims(bias, -1), len(self._y), axis=-1)
        make = partial(self._one, growing, workers)
        if not isinstance(growing.loss, Softmax):
            return make(self._y, growing.loss, self._weights, f, growing.steps)
        kind = VectorRounds if growing.has_one_tree else SoftmaxRounds
        return kind(self._y, self._weights, f, growing.steps, make, workers)

    def _one(
        self,
        growing: Growing,
        workers: Workers,
        y: FloatArray,
        loss: Loss,
        weights: Weights,
        f: FloatArray,
        steps: Steps,
    ) -> Rounds | ExactRounds:
        """Return what grows one tree a round."""
        nothing = np.broadcast_to(0.0, len(y))  # one number
        label = np.empty(0, dtype=np.int32)
        problem = replace(self.problem, labels=None, label=label, y=nothing)
        limits = growing.limits
        if isinstance(problem.columns, BinnedColumns):
            case = problem, y, loss, weights, f, limits, steps
            return Rounds(*case, growing.restraints, workers)
        weight = np.broadcast_to(1.0, len(y)) if weights.of_rows is None else weights.of_rows
        return ExactRounds(problem, y, loss, weight, f, limits, steps, workers.n_threads)

    def begin_bags(self, bag: Any, generator: np.random.Generator) -> bool:
        """Begin to draw rows for trees; returns whether each tree has all rows."""
        entries = self.problem.entries
        self._bags = make_bags(self._weight, len(self._y), bag, False, generator, entries=entries)
        self._rows = self._bags.rows
        if entries is not None:
            self._rows = np.flatnonzero(self._weight > 0).astype(np.int32)
        self._is_whole = self._bags.size == len(self._bags.rows)
        return self._is_whole

    def listed(self, number: int) -> Any:
        """Return the rows of a tree."""
        if self._is_whole:
            return self._rows
        return np.flatnonzero(self._bags.draw(number)[0] > 0).astype(np.int32)

    def given_values(self, tree: Tree) -> FloatArray:
        """Return what a tree of an earlier fit adds to the decision values of rows here."""
        rows = np.arange(self.problem.n_rows)
        if self._features is None:
            found: FloatArray = tree.value[nodes_of_rows(tree, self.problem, rows)]
            return found
        # Bins of other rows do not tell on which side of its thresholds rows lie.
        found = tree.predict(self._features)[self.problem.given(rows)]
        return found

    def refuse_first(self, rounds: Any) -> None:
        """Raise ValueError if derivatives are none that a first tree can be fitted to."""
        rows = np.flatnonzero(self._weight > 0)
        check_size(rounds.loss, rounds.y[rows], rounds.f[rows], self.problem.given(rows))
