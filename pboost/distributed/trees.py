"""Trees, and forests, on rows in partitions: what builders of trees ask in place of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns.columns import BinnedColumns
from pboost.data.read.check_xy import times_power
from pboost.data.splits import size_of_bag, times_drawn
from pboost.data.training import Problem, TrainingData
from pboost.distributed import tasks
from pboost.distributed.engines import (
    Engine,
    PartialSums,
    check_size,
    first_shift,
    scale_of,
    scaled_sum,
    sum_of_parts,
    sum_parts,
)
from pboost.distributed.tree_shards import (
    Calls,
    RowsAtNodes,
    ShardArrays,
    TreeShard,
    begin,
    data_elsewhere,
    grow_together,
    problem_of_rows,
)
from pboost.growth.step import Callback, MemberStep
from pboost.growth.tree import CartLimits, grow_tree
from pboost.models.stored import OutOfBag
from pboost.models.trees import Tree
from pboost.threads import Workers
from pboost.trees.forest import ForestFit, check_seen, nodes_of_rows
from pboost.trees.members import Tally
from pboost.values import Array, FloatArray, IntArray, child, draw_seed


class Bag(NamedTuple):
    """How rows of a member are drawn from `n` of positive weight, as in `pboost.data.splits`."""

    seed: tuple[int, ...]
    member: int
    n: int
    size: int
    replace: bool


class BagTree(NamedTuple):
    """The tree of a bag."""

    bag: Bag
    tree: Tree


class BagShard(TreeShard):
    """Rows of one place, of which bags are drawn for trees that grow together.

    Parameters are those of `TreeShard`, and after the number of classes the numbers of rows, and of
    rows of positive weight, in the places before this one.
    """

    def __init__(
        self,
        columns: BinnedColumns,
        y: Array,
        weights: FloatArray | None,
        n_classes: int,
        start: int,
        before: int,
        workers: Workers,
    ) -> None:
        super().__init__(columns, y, weights, n_classes, workers)
        self._start, self._before, self._columns = start, before, columns
        self._whole = np.ones(len(y)) if weights is None else weights
        self._tally = Tally(self._y, self._whole, n_classes)
        self._bags: list[Bag] = []
        self._of_bags: list[FloatArray] = []
        self._keys: list[int] = []
        self._n_told = 0

    def _take(self, bags: Sequence[Bag]) -> None:
        """Have the weights of bags, and the keys of their trees."""
        if bags != self._bags:
            self._bags = list(bags)
            drawn_bags = [self._drawn(bag) for bag in bags]
            self._of_bags, self._keys = (
                [weight for weight, _ in drawn_bags],
                [key for _, key in drawn_bags],
            )

    def _drawn(self, bag: Bag) -> tuple[FloatArray, int]:
        """Return the weights of the rows in a bag, and the key of its tree."""
        generator, weights = child(bag.seed, bag.member), self._whole
        if bag.replace or bag.size < bag.n:
            row_range = self._before, self._before + len(self._first)
            times = times_drawn(generator, bag.n, bag.size, bag.replace, row_range)
            weights = np.zeros(len(self._y))
            weights[self._first] = self._whole[self._first] * times
        return weights, int(generator.integers(2**63))

    def extents(self, bags: Sequence[Bag]) -> tuple[int, list[int], FloatArray, list[int]]:
        """Return how many rows there are, how many in each bag, its greatest weight, and keys."""
        self._take(bags)
        n = [int(np.count_nonzero(weight)) for weight in self._of_bags]
        heaviest = [float(weight.max(initial=0.0)) for weight in self._of_bags]
        return len(self._y), n, np.array(heaviest), self._keys

    def scaled_sums(
        self, bags: Sequence[Bag], exponents: Sequence[int], shift: int
    ) -> list[tuple[int, bool]]:
        """Return `pboost.distributed.engines.scaled_sum` of the weights of each bag."""
        self._take(bags)
        of_bags = zip(self._of_bags, exponents, strict=True)
        return [scaled_sum(weight, slice(0), exponent, shift) for weight, exponent in of_bags]

    def begin(self, bags: Any, exponents: Any, scales: Any) -> None:  # type: ignore[override]
        """Put the rows of bags at the roots of as many trees."""
        self._take(bags)
        trees = []
        for weight, exponent, scale in zip(self._of_bags, exponents, scales, strict=True):
            rows = np.flatnonzero(weight).astype(np.int32)
            trees.append(RowsAtNodes(rows, np.ldexp(weight, -exponent), scale))
        self.begin_trees(trees)

    def _leaves(self, tree: Tree, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        return nodes_of_rows(tree, problem_of_rows(self._columns), rows)

    def seen(self, case: BagTree) -> tuple[NDArray[np.int64], FloatArray]:
        """Return how many rows of a bag each node of its tree has, and what they add up to.

        That are the weights of the classes; of a regression the weights, and times the targets.
        """
        self._take([case.bag])
        (weight,) = self._of_bags
        rows = np.flatnonzero(weight)
        count = np.bincount(self._leaves(case.tree, rows), minlength=case.tree.n_nodes)
        y, weight = self._y[rows], weight[rows]
        if self._n_classes:
            return count, np.bincount(y, weight, self._n_classes).astype(np.float64)
        return count, np.array([weight.sum(), (weight * y).sum()])

    def tallied(self, n: int, cases: Sequence[BagTree], what: str, *arguments: Any) -> Any:
        """Return what a method does, once what n trees say of rows out of their bags is added up.

        `cases` are the last of them; returns None if others are not known here.
        """
        first = n - len(cases)
        if first > self._n_told:
            return None
        for case in cases[self._n_told - first :]:
            if case.bag not in self._bags:
                self._take([case.bag])
            rows = np.flatnonzero(self._of_bags[self._bags.index(case.bag)] == 0)
            self._tally.add(rows, case.tree.value[self._leaves(case.tree, rows)])
        self._n_told = n
        return getattr(self, what)(*arguments)

    def tested(self) -> tuple[int, int, float]:
        """Return the number of the first row, how many rows of weight are tallied, and the most."""
        weights = self._whole[self._tally.tested()]
        return self._start, len(weights), float(weights.max(initial=0.0))

    def losses(
        self, first: Mapping[int, int], n: int, of_weights: int, of_targets: int
    ) -> tuple[PartialSums, PartialSums]:
        """Return `sum_parts` of the losses of n tallied rows by weight, and of the weights.

        `first` has their numbers before each place; weights and targets are scaled by powers of 2.
        """
        rows = self._tally.tested()
        loss = self._tally.losses(rows, of_targets)
        weights, start = times_power(self._whole[rows], -of_weights), first[self._start]
        return sum_parts(loss * weights, start, n), sum_parts(weights, start, n)

    def record(self) -> tuple[IntArray, FloatArray]:
        """Return how many trees say something of each row, and the mean of it."""
        return self._tally.members, self._tally.means()


def begin_bags(
    engine: Engine, problem: Problem, bags: Sequence[Bag]
) -> list[tuple[TrainingData, int, int]]:
    """Give all shards the weights of bags; returns data, number of rows and key of each.

    Raises
    ------
    ValueError
        If there are more rows than int32 counts.
    """
    n_all, n, greatest, keys = zip(*engine.ask("extents", bags), strict=True)
    check_size(sum(n_all))
    exponents = [math.frexp(heaviest)[1] for heaviest in np.max(greatest, axis=0).tolist()]
    shift = first_shift(sum(n_all))
    parts = engine.ask("scaled_sums", bags, exponents, shift)
    scales = [scale_of(part, shift)[0] for part in zip(*parts, strict=True)]
    engine.ask("begin", bags, exponents, scales)
    data = [
        data_elsewhere(problem, exponent, scale)
        for exponent, scale in zip(exponents, scales, strict=True)
    ]
    return list(zip(data, np.sum(n, axis=0).tolist(), keys[0], strict=True))


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
        grower = Members(self, fit)
        ends.enter_context(closing(grower.engine))
        ends.enter_context(grower.engine.workers)
        return grower


class Members:
    """The members of a forest of rows in partitions, and the tally of rows out of their bags."""

    def __init__(self, rows: TreeRows, fit: ForestFit) -> None:
        self._rows, self._fit, source = rows, fit, rows.source
        used, heaviest = zip(*source.each(tasks.rows_of_weight), strict=True)
        n = sum(used)
        size = size_of_bag(fit.max_samples, fit.bootstrap, n, max(heaviest))
        seed = draw_seed(fit.generator)
        self._bags = [Bag(seed, k, n, size, fit.bootstrap) for k in range(fit.n_estimators)]
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
        for bag, tree in zip(self._bags, self._fit.first_trees, strict=False):
            self._check_rows(BagTree(bag, tree))
            if take((tree, bag, tree)):
                return
        together = max(1, TOGETHER // self._rows.source.n_rows)
        for start in range(len(self._fit.first_trees), len(self._bags), together):
            bags = self._bags[start : start + together]
            for bag, tree in zip(bags, self._grown(bags), strict=True):
                if take((tree, bag, tree)):
                    return
            self.tally.ask("tested")  # while bags are at hand

    def _check_rows(self, case: BagTree) -> None:
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
        stop_reasons = grow_together(grown, calls, self.engine.workers)
        return [
            arrays.model(self._fit.settings, reason, limits.criterion)
            for arrays, reason in zip(grown, stop_reasons, strict=True)
        ]


class PartTally:
    """What trees say of rows out of their bags, which partitions add up; see `Tally`."""

    def __init__(self, members: Members) -> None:
        self._members, self._cases, self._n_told = members, list[BagTree](), 0
        self._engine = members.engine

    def add(self, bag: Bag, tree: Tree) -> None:
        """Add the tree of a bag, of which partitions hear with the next question."""
        self._cases.append(BagTree(bag, tree))

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Return what a method of `BagShard` does in each partition, given all trees so far."""
        while True:
            n = len(self._cases)
            answers = self._engine.ask("tallied", n, self._cases[self._n_told :], what, *arguments)
            self._n_told = n
            if None not in answers:
                return answers
            self._n_told = 0  # a shard was made again, and needs all

    def error(self) -> float:
        """Return the error of what trees say of rows out of their bags, NaN without such rows."""
        starts, sizes, heaviest = zip(*self.ask("tested"), strict=True)
        n = sum(sizes)
        if not n:
            return np.nan
        first = dict(zip(starts, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
        exponent = math.frexp(max(heaviest))[1]
        totals = zip(*self.ask("losses", first, n, exponent, self._members.exponent), strict=True)
        loss, weight = (sum_of_parts(of, n) for of in totals)
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

    __slots__ = ("fetch", "record")
    fetch: Callable[[], tuple[IntArray, FloatArray]]
    record: OutOfBag

    def _whole(self) -> OutOfBag:
        if not hasattr(self, "record"):
            object.__setattr__(self, "record", OutOfBag(*self.fetch(), self.error))
        return self.record

    @property
    def n_estimators(self) -> IntArray:
        """Number of trees in whose bag each row was not."""
        return self._whole().n_estimators

    @property
    def prediction(self) -> FloatArray:
        """Mean of what they say."""
        return self._whole().prediction

    def check(self, classes: Array | None) -> None:
        """It was made by a fit, and is right."""

    def __reduce__(self) -> tuple[Any, ...]:
        return self._whole().__reduce__()
