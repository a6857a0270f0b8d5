"""Rows of one of several places, of which bags are drawn for the trees of a forest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns.columns import BinnedColumns
from pboost.data.read.check_xy import times_power
from pboost.data.splits import times_drawn
from pboost.data.training import Problem, TrainingData
from pboost.distributed.engines import (
    Engine,
    SumParts,
    check_size,
    first_shift,
    scale_of,
    scaled_sum,
    sum_parts,
)
from pboost.distributed.tree_shards import (
    TreeRows,
    TreeShard,
    data_elsewhere,
    problem_of_rows,
)
from pboost.models.trees import Tree
from pboost.threads import Workers
from pboost.trees.forest import nodes_of_rows
from pboost.trees.members import Tally
from pboost.values import FloatArray, IntArray, child


class Bag(NamedTuple):
    """How rows of a member are drawn from `n` of positive weight, as in `pboost.data.splits`."""

    seed: tuple[int, ...]
    member: int
    n: int
    size: int
    replace: bool


class Case(NamedTuple):
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
        y: NDArray[Any],
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
            found = [self._drawn(bag) for bag in bags]
            self._of_bags, self._keys = [one for one, _ in found], [key for _, key in found]

    def _drawn(self, bag: Bag) -> tuple[FloatArray, int]:
        """Return the weights of the rows in a bag, and the key of its tree."""
        generator, weights = child(bag.seed, bag.member), self._whole
        if bag.replace or bag.size < bag.n:
            here = self._before, self._before + len(self._first)
            times = times_drawn(generator, bag.n, bag.size, bag.replace, here)
            weights = np.zeros(len(self._y))
            weights[self._first] = self._whole[self._first] * times
        return weights, int(generator.integers(2**63))

    def extents(self, bags: Sequence[Bag]) -> tuple[int, list[int], FloatArray, list[int]]:
        """Return how many rows there are, how many in each bag, its greatest weight, and keys."""
        self._take(bags)
        n = [int(np.count_nonzero(weight)) for weight in self._of_bags]
        most = [float(weight.max(initial=0.0)) for weight in self._of_bags]
        return len(self._y), n, np.array(most), self._keys

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
            trees.append(TreeRows(rows, np.ldexp(weight, -exponent), scale))
        self.begin_trees(trees)

    def _leaves(self, tree: Tree, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        return nodes_of_rows(tree, problem_of_rows(self._columns), rows)

    def seen(self, case: Case) -> tuple[NDArray[np.int64], FloatArray]:
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

    def tallied(self, n: int, cases: Sequence[Case], what: str, *arguments: Any) -> Any:
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
    ) -> tuple[SumParts, SumParts]:
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
    exponents = [math.frexp(most)[1] for most in np.max(greatest, axis=0).tolist()]
    shift = first_shift(sum(n_all))
    parts = engine.ask("scaled_sums", bags, exponents, shift)
    scales = [scale_of(part, shift)[0] for part in zip(*parts, strict=True)]
    engine.ask("begin", bags, exponents, scales)
    data = [
        data_elsewhere(problem, exponent, scale)
        for exponent, scale in zip(exponents, scales, strict=True)
    ]
    return list(zip(data, np.sum(n, axis=0).tolist(), keys[0], strict=True))
