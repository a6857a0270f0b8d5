"""Trees, and forests, on rows in partitions: what builders of trees ask in place of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import numpy as np

from pboost.data.splits import size_of_bag
from pboost.data.training import Problem
from pboost.distributed import tasks
from pboost.distributed.bag_shards import Bag, BagShard, Case, begin_bags
from pboost.distributed.engines import Engine, sum_of_parts
from pboost.distributed.tree_shards import Calls, ShardArrays, TreeShard, begin, grow_together
from pboost.growth.step import Callback, MemberStep
from pboost.growth.tree import CartLimits, grow_tree
from pboost.models.stored import OutOfBag
from pboost.models.trees import Tree
from pboost.trees.forest import ForestFit, check_seen
from pboost.values import Array, FloatArray, IntArray, draw_seed

#: Trees grow together while the rows of all are no more.
TOGETHER = 1 << 18


class TreeRows:
    """Rows in partitions as one fit of trees has them.

    Parameters
    ----------
    source : PartitionedRows
        The rows.
    values : ndarray, or int
        Label values, or the exponent by which targets are scaled.
    """

    def __init__(self, source: Any, values: Array | int) -> None:
        self.source, self.values = source, values

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 of a regression."""
        return 0 if isinstance(self.values, int) else len(self.values)

    def problem(self) -> Problem:
        """Return the problem of the fit, without rows."""
        if not np.isfinite(sum(self.source.each(tasks.weight_of))):
            raise ValueError("sample_weight: expected weights with a finite sum")
        problem: Problem = self.source.problem(self.values)
        return replace(problem, elsewhere=self)

    def fit_tree(
        self,
        problem: Problem,
        limits: CartLimits,
        settings: dict[str, Any],
        key: int,
        n_threads: int | None,
        callback: Callback | None,
    ) -> Tree:
        """Return one tree of all rows."""
        each = [(self.n_classes,)] * len(self.source.sizes)
        engine: Engine = self.source.shards(TreeShard, self.values, n_threads, each=each)
        with closing(engine), engine.workers as workers:
            data, n = begin(engine, problem, self.source.is_weighed)
            arrays = ShardArrays(data, n, limits, key, engine)
            stop_reason = grow_tree(arrays, workers, callback)
            return arrays.model(settings, stop_reason, limits.criterion)

    def members(self, fit: ForestFit, ends: ExitStack) -> Members:
        """Return the members of a forest of these rows, of which `ends` lets go."""
        found = Members(self, fit)
        ends.enter_context(closing(found.engine))
        ends.enter_context(found.engine.workers)
        return found


class Members:
    """The members of a forest of rows in partitions, and the tally of rows out of their bags."""

    def __init__(self, rows: TreeRows, fit: ForestFit) -> None:
        self._rows, self._fit, source = rows, fit, rows.source
        used, most = zip(*source.each(tasks.rows_of_weight), strict=True)
        n = sum(used)
        size = size_of_bag(fit.bag, fit.replace, n, max(most))
        seed = draw_seed(fit.generator)
        self._bags = [Bag(seed, k, n, size, fit.replace) for k in range(fit.members)]
        before = [np.cumsum([0, *of[:-1]]).tolist() for of in (source.sizes, used)]
        self._each = [(rows.n_classes, *of) for of in zip(*before, strict=True)]
        self.engine = self.open()
        self.tally = PartTally(self)

    @property
    def exponent(self) -> int:
        """By which power of two targets were divided."""
        return self._fit.problem.exponent

    def open(self) -> Engine:
        """Return an engine that has the rows."""
        source, values = self._rows.source, self._rows.values
        engine: Engine = source.shards(BagShard, values, self._fit.n_threads, each=self._each)
        return engine

    def train(self, take: Callable[[Any], bool]) -> None:
        """Have trees taken in order, with their bags, until it is True."""
        for bag, tree in zip(self._bags, self._fit.given, strict=False):
            self._check_rows(Case(bag, tree))
            if take((tree, bag, tree)):
                return
        together = max(1, TOGETHER // self._rows.source.n_rows)
        for start in range(len(self._fit.given), len(self._bags), together):
            bags = self._bags[start : start + together]
            for bag, tree in zip(bags, self._grown(bags), strict=True):
                if take((tree, bag, tree)):
                    return
            self.tally.ask("tested")  # while bags are at hand

    def _check_rows(self, case: Case) -> None:
        counts, sums = zip(*self.engine.ask("seen", case), strict=True)
        total = np.sum(sums, axis=0)
        mean = total / total.sum() if self._rows.n_classes else total[1] / total[0]
        check_seen(case.tree, np.sum(counts, axis=0), mean, self.exponent)

    def _grown(self, bags: Sequence[Bag]) -> list[Tree]:
        """Return the tree of each bag; they grow together."""
        calls, limits = Calls(self.engine), self._fit.limits
        begun = begin_bags(self.engine, self._fit.problem, bags)
        grown = [
            ShardArrays(data, n, limits, key, self.engine, calls, k)
            for k, (data, n, key) in enumerate(begun)
        ]
        reasons = grow_together(grown, calls, self.engine.workers)
        return [
            arrays.model(self._fit.settings, reason, limits.criterion)
            for arrays, reason in zip(grown, reasons, strict=True)
        ]


class PartTally:
    """What trees say of rows out of their bags, which partitions add up; see `Tally`."""

    def __init__(self, members: Members) -> None:
        self._members, self._cases, self._n_told = members, list[Case](), 0
        self._engine = members.engine

    def add(self, bag: Bag, tree: Tree) -> None:
        """Add the tree of a bag, of which partitions hear with the next question."""
        self._cases.append(Case(bag, tree))

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Return what a method of `BagShard` does in each partition, given all trees so far."""
        while True:
            n = len(self._cases)
            found = self._engine.ask("tallied", n, self._cases[self._n_told :], what, *arguments)
            self._n_told = n
            if None not in found:
                return found
            self._n_told = 0  # a shard was made again, and needs all

    def error(self) -> float:
        """Return the error of what trees say of rows out of their bags, NaN without such rows."""
        starts, sizes, most = zip(*self.ask("tested"), strict=True)
        n = sum(sizes)
        if not n:
            return np.nan
        first = dict(zip(starts, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
        exponent = math.frexp(max(most))[1]
        found = zip(*self.ask("losses", first, n, exponent, self._members.exponent), strict=True)
        loss, weight = (sum_of_parts(of, n) for of in found)
        return loss / weight

    def tell(self, callback: Callback | None, number: int, model: Tree) -> bool:
        """Tell the callback, if there is one, of a tree; returns whether to stop."""
        return callback is not None and bool(callback(number, MemberStep(model, self.error())))

    def close(self) -> OutOfBag:
        """Return the record; what it has of each row stays with the partitions until it is read."""
        record = object.__new__(OutOfBagThere)
        object.__setattr__(record, "error", self.error())
        object.__setattr__(record, "fetch", self._fetch)
        return record

    def _fetch(self) -> tuple[IntArray, FloatArray]:
        """Return how many trees say something of each row, and what they say."""
        with closing(self._members.open()) as self._engine, self._engine.workers:
            self._n_told = 0
            members, means = zip(*self.ask("record"), strict=True)
            return np.concatenate(members), np.concatenate(means)


class OutOfBagThere(OutOfBag):
    """A record whose arrays partitions make when they are first read."""

    __slots__ = ("fetch", "found")
    fetch: Callable[[], tuple[IntArray, FloatArray]]
    found: OutOfBag

    def _whole(self) -> OutOfBag:
        if not hasattr(self, "found"):
            object.__setattr__(self, "found", OutOfBag(*self.fetch(), self.error))
        return self.found

    @property
    def members(self) -> IntArray:
        """Number of trees in whose bag each row was not."""
        return self._whole().members

    @property
    def prediction(self) -> FloatArray:
        """Mean of what they say."""
        return self._whole().prediction

    def check(self, labels: Array | None) -> None:
        """It was made by a fit, and is right."""

    def __reduce__(self) -> tuple[Any, ...]:
        return self._whole().__reduce__()
