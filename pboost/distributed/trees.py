"""Fit trees and random forests to rows in partitions."""

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
from pboost.data.resampling import size_of_bag, times_drawn
from pboost.data.training_data import Problem, TrainingData
from pboost.distributed import partition_tasks as tasks
from pboost.distributed.engine import (
    Engine,
    PartialSums,
    check_size,
    first_shift,
    scale_of,
    scaled_sum,
    sum_of_parts,
    sum_parts,
)
from pboost.distributed.tree_partitions import (
    Calls,
    RowsAtNodes,
    ShardArrays,
    TreeShard,
    begin,
    data_elsewhere,
    grow_together,
    problem_of_rows,
)
from pboost.growth.graph_growth import Callback, MemberStep
from pboost.growth.tree import CartLimits, grow_tree
from pboost.models.schema import OutOfBag
from pboost.models.single_tree import Tree
from pboost.threads import Workers
from pboost.trees.parallel_members import Tally
from pboost.trees.random_forest import ForestFit, check_seen, nodes_of_rows
from pboost.values import Array, FloatArray, IntArray, child, draw_seed


class Bag(NamedTuple):
    """A bootstrap sample or subsample of `n` rows with positive weight."""

    seed: tuple[int, ...]
    member: int
    n: int
    size: int
    replace: bool


class BagTree(NamedTuple):
    """A tree and its sample of the rows."""

    bag: Bag
    tree: Tree


class BagShard(TreeShard):
    """Rows of one partition, sampled for trees that grow together.

    See `TreeShard` for the parameters. After the number of classes come two more: the number of
    rows in earlier partitions, and how many of these have positive weight.
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
        """Set the weights of the samples, and the keys of their trees."""
        if bags != self._bags:
            self._bags = list(bags)
            drawn_bags = [self._drawn(bag) for bag in bags]
            self._of_bags, self._keys = (
                [weight for weight, _ in drawn_bags],
                [key for _, key in drawn_bags],
            )

    def _drawn(self, bag: Bag) -> tuple[FloatArray, int]:
        """Return the weights of the rows in a sample, and the key of its tree."""
        generator, weights = child(bag.seed, bag.member), self._whole
        if bag.replace or bag.size < bag.n:
            row_range = self._before, self._before + len(self._first)
            times = times_drawn(generator, bag.n, bag.size, bag.replace, row_range)
            weights = np.zeros(len(self._y))
            weights[self._first] = self._whole[self._first] * times
        return weights, int(generator.integers(2**63))

    def extents(self, bags: Sequence[Bag]) -> tuple[int, list[int], FloatArray, list[int]]:
        """Return the number of rows, and the size, largest weight and key of each sample."""
        self._take(bags)
        n = [int(np.count_nonzero(weight)) for weight in self._of_bags]
        heaviest = [float(weight.max(initial=0.0)) for weight in self._of_bags]
        return len(self._y), n, np.array(heaviest), self._keys

    def scaled_sums(
        self, bags: Sequence[Bag], exponents: Sequence[int], shift: int
    ) -> list[tuple[int, bool]]:
        """Return the `scaled_sum` of the weights of each sample."""
        self._take(bags)
        of_bags = zip(self._of_bags, exponents, strict=True)
        return [scaled_sum(weight, slice(0), exponent, shift) for weight, exponent in of_bags]

    def begin(self, bags: Any, exponents: Any, scales: Any) -> None:  # type: ignore[override]
        """Begin one tree per sample, with the rows at its root."""
        self._take(bags)
        trees = []
        for weight, exponent, scale in zip(self._of_bags, exponents, scales, strict=True):
            rows = np.flatnonzero(weight).astype(np.int32)
            trees.append(RowsAtNodes(rows, np.ldexp(weight, -exponent), scale))
        self.begin_trees(trees)

    def _leaves(self, tree: Tree, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        return nodes_of_rows(tree, problem_of_rows(self._columns), rows)

    def seen(self, case: BagTree) -> tuple[NDArray[np.int64], FloatArray]:
        """Return the number of sampled rows at each node of a tree, and sums of the sample.

        The sums are the weights of the classes or, in a regression, the weights and the weighted
        targets.
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
        """Add the out-of-bag predictions of new trees, then return the result of a method.

        `cases` are the newest of n trees. The result is None if this partition lacks older trees.
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
        """Return the first row index, and the count and largest weight of out-of-bag rows."""
        weights = self._whole[self._tally.tested()]
        return self._start, len(weights), float(weights.max(initial=0.0))

    def losses(
        self, first: Mapping[int, int], n: int, of_weights: int, of_targets: int
    ) -> tuple[PartialSums, PartialSums]:
        """Return `sum_parts` of weighted losses of the n out-of-bag rows, and of their weights.

        `first` is the number of out-of-bag rows before each partition. Weights and targets are
        scaled by powers of two.
        """
        rows = self._tally.tested()
        loss = self._tally.losses(rows, of_targets)
        weights, start = times_power(self._whole[rows], -of_weights), first[self._start]
        return sum_parts(loss * weights, start, n), sum_parts(weights, start, n)

    def record(self) -> tuple[IntArray, FloatArray]:
        """Return the number of out-of-bag trees of each row, and the mean of their predictions."""
        return self._tally.members, self._tally.means()


def begin_bags(
    engine: Engine, problem: Problem, bags: Sequence[Bag]
) -> list[tuple[TrainingData, int, int]]:
    """Set the weights of samples. Return the data, number of rows and key of each sample.

    Raises
    ------
    ValueError
        If there are more rows than int32 can count.
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


#: Maximum total number of rows of trees that grow together.
TOGETHER = 1 << 18


class TreeRows:
    """The partitioned rows of one fit of trees.

    Parameters
    ----------
    source : PartitionedRows
        The rows.
    values : ndarray, or int
        Class labels, or the exponent that scales the targets.
    """

    def __init__(self, source: Any, values: Array | int) -> None:
        self.source, self.values = source, values

    @property
    def n_classes(self) -> int:
        """Number of classes, or 0 for a regression."""
        return 0 if isinstance(self.values, int) else len(self.values)

    def problem(self) -> Problem:
        """Return the problem of the fit, without its rows."""
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
        """Fit one tree to all rows."""
        each = [(self.n_classes,)] * len(self.source.sizes)
        engine: Engine = self.source.shards(TreeShard, self.values, n_threads, each=each)
        with closing(engine), engine.workers as workers:
            data, n = begin(engine, problem, self.source.is_weighed)
            arrays = ShardArrays(data, n, limits, key, engine)
            stop_reason = grow_tree(arrays, workers, callback)
            return arrays.model(settings, stop_reason, limits.criterion)

    def members(self, fit: ForestFit, ends: ExitStack) -> Members:
        """Return the trees of a forest on these rows, released at the exit of `ends`."""
        grower = Members(self, fit)
        ends.enter_context(closing(grower.engine))
        ends.enter_context(grower.engine.workers)
        return grower


class Members:
    """The trees of a forest on rows in partitions, and their out-of-bag predictions."""

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
        """Exponent of the power of two that divides the targets."""
        return self._fit.problem.exponent

    def open(self) -> Engine:
        """Return an engine with the rows."""
        source, values = self._rows.source, self._rows.values
        engine: Engine = source.shards(BagShard, values, self._fit.n_threads, each=self._each)
        return engine

    def train(self, take: Callable[[Any], bool]) -> None:
        """Call `take` with each tree and its sample, in order, until it returns True."""
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
            self.tally.ask("tested")  # while the partitions still have these samples

    def _check_rows(self, case: BagTree) -> None:
        counts, sums = zip(*self.engine.ask("seen", case), strict=True)
        total = np.sum(sums, axis=0)
        mean = total / total.sum() if self._rows.n_classes else total[1] / total[0]
        check_seen(case.tree, np.sum(counts, axis=0), mean, self.exponent)

    def _grown(self, bags: Sequence[Bag]) -> list[Tree]:
        """Fit one tree per sample. The trees grow together."""
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
    """Out-of-bag predictions, summed in the partitions; see `Tally`."""

    def __init__(self, members: Members) -> None:
        self._members, self._cases, self._n_told = members, list[BagTree](), 0
        self._engine = members.engine

    def add(self, bag: Bag, tree: Tree) -> None:
        """Add a tree, which is sent to the partitions with the next request."""
        self._cases.append(BagTree(bag, tree))

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Call a method of `BagShard` on each partition, after adding all trees so far."""
        while True:
            n = len(self._cases)
            answers = self._engine.ask("tallied", n, self._cases[self._n_told :], what, *arguments)
            self._n_told = n
            if None not in answers:
                return answers
            self._n_told = 0  # a partition was created again and needs all trees

    def error(self) -> float:
        """Return the out-of-bag error, or NaN if there are no out-of-bag rows."""
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
        """Call the callback with a tree, and return whether to stop."""
        return callback is not None and bool(callback(number, MemberStep(model, self.error())))

    def close(self) -> OutOfBag:
        """Return the out-of-bag record, which computes its arrays on first use."""
        record = object.__new__(OutOfBagThere)
        object.__setattr__(record, "error", self.error())
        object.__setattr__(record, "fetch", self._fetch)
        return record

    def _fetch(self) -> tuple[IntArray, FloatArray]:
        """Return the number of out-of-bag trees of each row, and the mean of their predictions."""
        with closing(self._members.open()) as self._engine, self._engine.workers:
            self._n_told = 0
            members, means = zip(*self.ask("record"), strict=True)
            return np.concatenate(members), np.concatenate(means)


class OutOfBagThere(OutOfBag):
    """An out-of-bag record that computes its arrays on first use."""

    __slots__ = ("fetch", "record")
    fetch: Callable[[], tuple[IntArray, FloatArray]]
    record: OutOfBag

    def _whole(self) -> OutOfBag:
        if not hasattr(self, "record"):
            object.__setattr__(self, "record", OutOfBag(*self.fetch(), self.error))
        return self.record

    @property
    def n_estimators(self) -> IntArray:
        """Number of trees for which each row is out of bag."""
        return self._whole().n_estimators

    @property
    def prediction(self) -> FloatArray:
        """Mean out-of-bag prediction of each row."""
        return self._whole().prediction

    def check(self, classes: Array | None) -> None:
        """Do nothing, because a record from a fit is valid."""

    def __reduce__(self) -> tuple[Any, ...]:
        return self._whole().__reduce__()
