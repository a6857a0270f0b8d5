"""Fit gradient boosting to rows in partitions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import numpy as np

from pboost._core import boost
from pboost.data.resampling import HoldOut
from pboost.data.targets import unit_of
from pboost.distributed.engine import Engine, sum_of_parts
from pboost.distributed.graphs import HeldParts
from pboost.distributed.partition_rounds import ShardedRounds, ShardedSoftmax, Talk
from pboost.distributed.round_partitions import (
    AddTree,
    BeginFit,
    DrawnRows,
    HeldOutLoss,
    PartRange,
    RoundShard,
    Weighed,
)
from pboost.distributed.trees import TreeRows
from pboost.losses import Loss, Softmax, is_of_package
from pboost.losses.base import joined
from pboost.models.single_tree import Tree
from pboost.threads import Workers
from pboost.trees import pooled_growth as pooling
from pboost.trees.boosting_loop import Growing
from pboost.trees.gradients import MOST_OF_ROW, RoundWeights, check_classes
from pboost.values import Array, FloatArray, shown

#: Losses that can be computed from sums over partitions.
SUMMED = (
    *("exponential", "log_loss", "probit", "focal", "softmax", "squared_error"),
    *("poisson", "gamma", "tweedie"),
)


def check_sums(loss: Loss, options: Mapping[str, object]) -> None:
    """Raise a NotImplementedError for losses and options that partitions do not support."""
    what = None
    if not is_of_package(loss) or loss.name not in SUMMED:
        what = f"loss: {loss}"
    for name in ("feature_costs", "tree_comparisons"):
        if options[name] is not None:
            what = f"{name}: {shown(options[name])}"
    if options["growth"] == "cost_efficient" or options["search"] == "exact":
        name = "growth" if options["growth"] == "cost_efficient" else "search"
        what = f"{name}: {options[name]!r}"
    if what is not None:
        raise NotImplementedError(f"{what} requires all rows in one table; pass rows.gather()")


class SumParts(TreeRows):
    """The partitioned rows of one gradient boosting fit."""

    def __init__(self, source: Any, task: str, n_threads: int | None, ends: ExitStack) -> None:
        super().__init__(source, source.targets(task))
        self._n_threads, self._ends = n_threads, ends

    def is_weighed(self) -> bool:
        """Return whether the rows have sample weights."""
        return bool(self.source.is_weighed)

    def rows(self, hold: HoldOut | None) -> PartRows:
        """Return the rows of the fit, some of which may be a validation set."""
        return PartRows(self, hold)

    def engine(self, held: HeldParts | None) -> Engine:
        """Return an engine with a `RoundShard` for each partition."""
        sizes, values = self.source.sizes, self.values
        exponent = values if isinstance(values, int) else None
        of_held = [(None, 0, 0)] * len(sizes) if held is None else held.each
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        places = [PartRange(start, *held) for start, held in zip(starts, of_held, strict=True)]
        each = [(exponent, place) for place in places]
        engine: Engine = self.source.shards(RoundShard, values, self._n_threads, each=each)
        self._ends.enter_context(closing(engine))
        self._ends.enter_context(engine.workers)
        return engine


class PartRows:
    """`SumRows` of partitions, computed from sums without gathering the rows."""

    def __init__(self, parts: SumParts, hold: HoldOut | None) -> None:
        n, held = parts.source.n_rows, None
        if hold is not None:
            held = parts.source.hold_out(hold, parts.values)
        self._held: HeldParts | None = None if held is None else held.elsewhere
        self._talk = Talk(parts.engine(self._held))
        self._is_weighed = parts.is_weighed() or held is not None
        problem, no_label = parts.problem(), np.empty(0, dtype=np.int32)
        is_classes = problem.classes is not None
        self.problem = replace(
            problem,
            label=np.broadcast_to(np.int32(0), n) if is_classes else no_label,
            y=np.empty(0) if is_classes else np.broadcast_to(0.0, n),
            held=held,
        )
        (used,), (self.greatest, lowest) = self._talk.asked("extent")
        self._n_used, self._least = int(used), -lowest / self.greatest
        self.of_row = 1.0
        if self._is_weighed:
            self.of_row = unit_of(
                self.greatest, self._weight_sum(self.greatest) / used, self._least, self._rest
            )

    def begin_watch(self, loss: Loss) -> None:
        """Prepare the validation set for computing its mean loss."""
        assert self._held is not None
        ask = self._talk.engine.ask
        exponent = math.frexp(max(ask("heaviest_held")))[1]
        total = sum_of_parts(ask("held_weights", exponent), self._held.n)
        self._of_held = exponent, total
        if self.problem.classes is None:
            lowest = [
                lowest_of_part
                for lowest_of_part in ask("lowest_held", loss.least)
                if lowest_of_part is not None
            ]
            if lowest:
                row, y = lowest[0]
                Loss.check_targets(loss, np.array([y]), np.array([row]))

    def watched(self, trees: Sequence[Tree]) -> float:
        """Return the mean loss of the validation set after adding trees, one per class."""
        assert self._held is not None
        exponent, total = self._of_held
        fitted_trees = tuple(AddTree.of(tree, k) for k, tree in enumerate(trees))
        return (
            sum_of_parts(self._talk.ask(HeldOutLoss(fitted_trees, exponent)).rows, self._held.n)
            / total
        )

    def _weight_sum(self, unit: float) -> float:
        """Return the sum of the weights divided by `unit`."""
        scale = boost.sum_scale(self.greatest / unit, self._n_used)
        return self._talk.asked("weight_sum", unit, scale)[0][0] / scale

    def _rest(self, unit: float) -> float | None:
        """Return `least_rest` of the weights of all partitions."""
        (rest,) = self._talk.asked("weight_rest", self.greatest, unit)[1]
        return None if rest == -np.inf else -rest

    def take_targets(self, loss: Loss, y: Any) -> Array | None:
        """Check the targets for this loss and return the class labels."""
        classes = self.problem.classes
        self._of_numbers = isinstance(loss, Softmax)
        if classes is not None:
            check_classes(classes, loss)
            return classes
        (some,), (first, low) = self._talk.asked("targets", loss.least)
        rows = np.array([-low if low > -np.inf else -first], dtype=np.int32)
        if low > -np.inf or not some:
            (y,) = np.concatenate(self._talk.engine.ask("truth", rows))
            n = 1 if some or low > -np.inf else self._n_used
            loss.check_targets(np.broadcast_to(y, n), rows)
        return None

    def sort_once(self) -> None:
        """Do nothing, because partitions are binned."""

    def n_copies(self) -> float:
        """Return the number of rows, or the total weight in units of `of_row`."""
        return self._weight_sum(1.0) / self.of_row if self._is_weighed else self.problem.n_rows

    def weights(self, is_binned: bool) -> RoundWeights:
        """Return the sample weights of the rounds."""
        n, unit = self._n_used, self.of_row / self.greatest
        if n == self.problem.n_rows and self._least == 1.0:
            weights, unit = RoundWeights(None, False, n, n, 1, float(n)), -1.0
        else:
            (copies,), (largest, are_none) = self._talk.asked("copies", self.greatest, unit)
            if largest <= MOST_OF_ROW and not are_none:
                weights = RoundWeights(np.empty(0), True, n, int(copies), int(largest), copies)
            else:
                total, unit = self._weight_sum(self.greatest), 0.0
                weights = RoundWeights(np.empty(0), False, n, n, 1, total)
        self._talk.tell(Weighed(self.greatest, unit, self._of_numbers))
        self._weights = weights
        return weights

    @property
    def n_classes(self) -> int:
        """Number of classes, or 0 for a regression."""
        return 0 if self.problem.classes is None else len(self.problem.classes)

    def exact(self, name: str) -> float:
        """Return the sum of non-negative numbers, as `RowSums` does."""
        (terms,), (largest,) = self._talk.asked("exact_bound", name)
        scale = boost.sum_scale(largest, terms)
        return self._talk.asked("exact", name, scale)[0][0] / scale

    def fine(self, name: str) -> float:
        """Return the sum of numbers, as `RowSums` does."""
        (n, total), (largest,) = self._talk.asked("fine_bound", name)
        if not 0.0 < largest < np.inf:
            return total
        return joined(largest, int(n), *self._talk.asked("fine", name, largest, int(n))[0])

    def bias(self, loss: Loss, is_constant: bool) -> float | FloatArray:
        """Return the initial decision value, or one per class with softmax."""
        if isinstance(loss, Softmax):
            return loss.constant_of(self) if is_constant else np.zeros(self.n_classes)
        return float(loss.constant_of(self)) if is_constant else 0.0

    def scan(self) -> pooling.Scanned:
        """Return the sample of rows that determines how trees grow."""
        weights = self._weights
        scanned = self._talk.engine.ask("scanned", self._talk.commands, weights.n_copies)
        codes = np.concatenate([of for of, *_ in scanned], axis=1)
        y, few = (np.concatenate([of[k] for of in scanned]) for k in (1, 2))
        return pooling.few_rows(codes, y, few if len(few) else None, weights.n_copies)

    def rounds(self, growing: Growing, bias: Any, workers: Workers) -> Any:
        """Return the object that grows the trees of a round."""
        loss, weights = growing.loss, self._weights
        if growing.has_one_tree:
            raise NotImplementedError(
                'multi_strategy: "multi_output_tree" is not implemented for partitions; use '
                '"one_output_per_tree"'
            )
        self._talk.tell(BeginFit(loss, np.atleast_1d(bias), weights.most_copies))
        problem = replace(self.problem, classes=None, label=np.empty(0, dtype=np.int32))
        problem = replace(problem, y=np.broadcast_to(0.0, self.problem.n_rows))
        case = self._talk, problem, loss, weights, growing.limits, growing.steps
        if isinstance(loss, Softmax):
            return ShardedSoftmax(*case, growing.restraints, self.n_classes)
        return ShardedRounds(*case, growing.restraints)

    def begin_draws(self, share: float, seed: int) -> None:
        """Prepare to draw this fraction of the rows in each round."""
        self._share, self._seed = share, seed

    def listed(self, number: int) -> Any:
        """Describe the rows on which the trees of a round are grown."""
        if self._share == 1.0:
            return range(self._n_used)
        return DrawnRows(number, self._share, self._seed)

    def given_values(self, tree: Tree) -> FloatArray:
        """Raise an error: the decision values are stored in the partitions, see `add_fitted`."""
        raise NotImplementedError("decision values are stored in the partitions")

    def refuse_first(self, rounds: Any) -> None:
        """Do nothing, because the supported losses are always finite."""
