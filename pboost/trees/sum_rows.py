"""The training rows of a sum of trees, in one table or in partitions: what a fit asks of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pboost._core import boost
from pboost.data.bags import make_bags
from pboost.data.columns import BinnedColumns
from pboost.data.convert import Features
from pboost.data.engines import Engine
from pboost.data.engines import check_size as check_counted
from pboost.data.held_rows import HeldRows, HoldOut
from pboost.data.labels import unit_of, weight_of_copy
from pboost.data.splits import hold_out
from pboost.data.training import Problem
from pboost.growth.tree import CartLimits
from pboost.losses import Loss, Softmax, is_of_package
from pboost.losses.row_sums import joined
from pboost.models.trees import Tree
from pboost.threads import Workers
from pboost.trees import pairs
from pboost.trees.exact_rounds import ExactRounds
from pboost.trees.forest import nodes_of_rows
from pboost.trees.restraints import Restraints
from pboost.trees.round_shards import Begun, Held, Weighed
from pboost.trees.rounds import Rounds
from pboost.trees.sharded_rounds import ShardedRounds, ShardedSoftmax, Talk
from pboost.trees.softmax_rounds import SoftmaxRounds
from pboost.trees.steps import Steps, check_size
from pboost.trees.targets import check_classes, targets_of
from pboost.trees.vector_rounds import VectorRounds
from pboost.trees.weights import MOST_OF_ROW, Weights, weights_of
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

    @property
    def values(self) -> Callable[[NDArray[np.intp]], NDArray[Any]] | None:
        """Return what returns rows, by their numbers, if decision values are not here."""

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

    values = None

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


class RowParts(Protocol):
    """Rows of a sum of trees that lie in parts, wherever these are."""

    def problem(self) -> Problem:
        """Return the problem, without rows."""

    def is_weighed(self) -> bool:
        """Return whether rows have weights."""

    def engine(self) -> Engine:
        """Return what asks a `RoundShard` of each partition that has rows."""


class PartRows:
    """`SumRows` of partitions, which answer for their rows: none is gathered."""

    def __init__(self, parts: RowParts, hold: HoldOut | None) -> None:
        self._talk, self._is_weighed = Talk(parts.engine()), parts.is_weighed()
        n = sum(self._talk.engine.ask("n_rows"))
        check_counted(n)
        problem, no_label = parts.problem(), np.empty(0, dtype=np.int32)
        is_classes = problem.labels is not None
        self.problem = replace(
            problem,
            label=np.broadcast_to(np.int32(0), n) if is_classes else no_label,
            y=np.empty(0) if is_classes else np.broadcast_to(0.0, n),
        )
        if hold is not None:
            self._hold(hold)
        (used,), (self.greatest, least) = self._talk.asked("extent")
        self._n_used, self._least = int(used), -least / self.greatest
        self.of_row = 1.0
        if self._is_weighed:
            self.of_row = unit_of(
                self.greatest, self._weight_sum(self.greatest) / used, self._least, self._rest
            )

    def _hold(self, hold: HoldOut) -> None:
        """Hold out rows."""
        labels, ask = self.problem.labels, self._talk.engine.ask
        n_classes = 1 if labels is None else len(labels)
        code = np.concatenate(ask("classes", n_classes))
        classes: list[Any] = [np.flatnonzero(code == k).astype(np.int32) for k in range(n_classes)]
        rows: Any = hold_out(classes, hold.share, hold.generator)
        self._talk.tell(Held(rows))
        found = zip(*ask("truth", rows), strict=True)
        truth, weights = (np.concatenate(of) for of in found)
        held = HeldRows(rows, rows, weights, truth)
        self.problem, self._is_weighed = replace(self.problem, held=held), True

    def values(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Return rows, by their numbers in all partitions, as bins hold them."""
        return np.concatenate(self._talk.engine.ask("values", rows))

    def _weight_sum(self, unit: float) -> float:
        """Return the sum of weights by `unit`."""
        scale = boost.sum_scale(self.greatest / unit, self._n_used)
        return self._talk.asked("weight_sum", unit, scale)[0][0] / scale

    def _rest(self, unit: float) -> float | None:
        """Return what `least_rest` does of all weights, by the greatest."""
        (rest,) = self._talk.asked("weight_rest", self.greatest, unit)[1]
        return None if rest == -np.inf else -rest

    def take_targets(self, loss: Loss, y: Any) -> NDArray[Any] | None:
        """Check what a loss compares with; returns the labels."""
        labels = self.problem.labels
        self._of_numbers = isinstance(loss, Softmax)
        if labels is not None:
            check_classes(labels, loss)
            return labels
        (some,), (first, low) = self._talk.asked("targets", loss.least)
        rows = np.array([-low if low > -np.inf else -first], dtype=np.int32)
        if low > -np.inf or not some:
            (y,) = np.concatenate([y for y, _ in self._talk.engine.ask("truth", rows)])
            n = 1 if some or low > -np.inf else self._n_used
            loss.check_targets(np.broadcast_to(y, n), rows)
        return None

    def sort_once(self) -> None:
        """Partitions have bins."""

    def n_copies(self) -> float:
        """Return the number of rows, by their weights, in units of `of_row`."""
        return self._weight_sum(1.0) / self.of_row if self._is_weighed else self.problem.n_rows

    def weights(self, is_binned: bool) -> Weights:
        """Return the weights of rounds."""
        n, unit = self._n_used, self.of_row / self.greatest
        if n == self.problem.n_rows and self._least == 1.0:
            found, unit = Weights(None, False, n, n, 1, float(n)), -1.0
        else:
            (copies,), (most, are_none) = self._talk.asked("copies", self.greatest, unit)
            if most <= MOST_OF_ROW and not are_none:
                found = Weights(np.empty(0), True, n, int(copies), int(most), copies)
            else:
                total, unit = self._weight_sum(self.greatest), 0.0
                found = Weights(np.empty(0), False, n, n, 1, total)
        self._talk.tell(Weighed(self.greatest, unit, self._of_numbers))
        self._weights = found
        return found

    @property
    def n_classes(self) -> int:
        """Number of classes whose numbers are targets."""
        return 0 if self.problem.labels is None else len(self.problem.labels)

    def exact(self, name: str) -> float:
        """Return the sum of numbers >= 0, as `RowSums` does."""
        (terms,), (most,) = self._talk.asked("exact_bound", name)
        scale = boost.sum_scale(most, terms)
        return self._talk.asked("exact", name, scale)[0][0] / scale

    def fine(self, name: str) -> float:
        """Return the sum of numbers, as `RowSums` does."""
        (n, total), (most,) = self._talk.asked("fine_bound", name)
        if not 0.0 < most < np.inf:
            return total
        return joined(most, int(n), *self._talk.asked("fine", name, most, int(n))[0])

    def bias(self, loss: Loss, is_constant: bool) -> float | FloatArray:
        """Return the decision value before the first tree, with softmax those of the classes."""
        if isinstance(loss, Softmax):
            return loss.constant_of(self) if is_constant else np.zeros(self.n_classes)
        return float(loss.constant_of(self)) if is_constant else 0.0

    def scan(self) -> pairs.Scanned:
        """Return the rows that tell how trees grow."""
        weights = self._weights
        found = self._talk.engine.ask("scanned", self._talk.told, weights.n_copies)
        codes = np.concatenate([of for of, *_ in found], axis=1)
        y, few = (np.concatenate([of[k] for of in found]) for k in (1, 2))
        return pairs.limited(codes, y, few if len(few) else None, weights.n_copies)

    def rounds(self, growing: Growing, bias: Any, workers: Workers) -> Any:
        """Return what grows the trees of a round."""
        loss, weights = growing.loss, self._weights
        if growing.has_one_tree:
            raise NotImplementedError(
                'trees: "one" is not implemented for partitions; "per-class" is'
            )
        self._talk.tell(Begun(loss.name, np.atleast_1d(bias), weights.most_copies))
        problem = replace(self.problem, labels=None, label=np.empty(0, dtype=np.int32))
        problem = replace(problem, y=np.broadcast_to(0.0, self.problem.n_rows))
        case = self._talk, problem, loss, weights, growing.limits, growing.steps
        if isinstance(loss, Softmax):
            return ShardedSoftmax(*case, growing.restraints, self.n_classes)
        return ShardedRounds(*case, growing.restraints)

    def begin_bags(self, bag: Any, generator: np.random.Generator) -> bool:
        """Trees have all rows."""
        return True

    def listed(self, number: int) -> Any:
        """Return the rows of a tree, by their number only."""
        return range(self._n_used)

    def given_values(self, tree: Tree) -> FloatArray:
        """Decision values are in the partitions, see `add_fitted` of the rounds."""
        raise NotImplementedError("decision values are in the partitions")

    def refuse_first(self, rounds: Any) -> None:
        """Losses whose derivatives partitions add up have numbers."""
