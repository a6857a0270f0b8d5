"""Rows of one of several places, of which bags are drawn for the trees of a forest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import grow
from pboost.data.columns.columns import MAX_BINS, BinnedColumns
from pboost.data.columns.prebuilt import HOLES
from pboost.data.splits import times_drawn
from pboost.data.training import Problem, TrainingData
from pboost.distributed.engines import Engine, check_size, first_shift, scale_of, scaled_sum
from pboost.distributed.tree_shards import ShardArrays, TreeRows, TreeShard, data_elsewhere
from pboost.models.trees import Tree
from pboost.threads import Workers
from pboost.values import FloatArray, IntArray, child


class Bag(NamedTuple):
    """How rows of a member are drawn from `n` of positive weight, as in `pboost.data.splits`."""

    seed: tuple[int, ...]
    member: int
    n: int
    size: int
    replace: bool


class Tests(NamedTuple):
    """The nodes of a tree: columns, first children, -1 for leaves, and sides of codes as bits."""

    feature: IntArray
    child: IntArray
    side: NDArray[np.uint8]


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
        self._start, self._before = start, before
        self._whole = np.ones(len(y)) if weights is None else weights
        self._bags: list[Bag] = []
        self._of_bags: list[FloatArray] = []

    def _take(self, bags: Sequence[Bag]) -> None:
        """Have the weights of bags."""
        if bags == self._bags:
            return
        self._bags = list(bags)
        self._of_bags = [self._weights_of(bag) for bag in bags]

    def _weights_of(self, bag: Bag) -> FloatArray:
        if not bag.replace and bag.size == bag.n:
            return self._whole
        generator = child(bag.seed, bag.member)
        times = times_drawn(generator, bag.n, bag.size, bag.replace)
        own = times[self._before : self._before + len(self._first)]
        weights = np.zeros(len(self._y))
        weights[self._first] = self._whole[self._first] * own
        return weights

    def extents(self, bags: Sequence[Bag]) -> tuple[int, list[int], FloatArray]:
        """Return how many rows there are, how many in each bag, and its greatest weight."""
        self._take(bags)
        n = [int(np.count_nonzero(weight)) for weight in self._of_bags]
        most = [float(weight.max(initial=0.0)) for weight in self._of_bags]
        return len(self._y), n, np.array(most)

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

    def leaves(
        self, bags: Sequence[Bag], trees: Sequence[Tests]
    ) -> list[tuple[NDArray[np.int64], NDArray[np.int32]]]:
        """Return which rows are out of each bag, and the leaf of its tree that each reaches.

        Rows are numbered through all places.
        """
        self._take(bags)
        found = []
        for weight, tests in zip(self._of_bags, trees, strict=True):
            rows = np.flatnonzero(weight == 0).astype(np.int32)
            leaf = np.empty_like(rows)
            grow.leaves_of(self._codes, rows, *tests, leaf)
            found.append((rows.astype(np.int64) + self._start, leaf))
        return found


def begin_bags(
    engine: Engine, problem: Problem, bags: Sequence[Bag]
) -> list[tuple[TrainingData, int]]:
    """Give all shards the weights of bags; returns the data of each, and its number of rows.

    Raises
    ------
    ValueError
        If there are more rows than int32 counts.
    """
    n_all, n, greatest = zip(*engine.ask("extents", bags), strict=True)
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
    return list(zip(data, np.sum(n, axis=0).tolist(), strict=True))


def tests_of(arrays: ShardArrays, tree: Tree) -> Tests:
    """Return the nodes of a grown tree as shards walk through them."""
    n = int(arrays.counter["nodes"])
    node = arrays.node[:n]
    feature, child = node["feature"].copy(), node["child"].copy()
    is_above = np.arange(MAX_BINS) > node["low"][:, None]
    if arrays.special is not None:
        is_split = child >= 0
        is_other = is_split & (node["high"] < 0)  # a set, or whether a value is missing
        is_above[is_other] = False
        if len(arrays.subset):
            of_set = np.flatnonzero(is_other & (node["low"] < 0))
            words = arrays.subset[of_set].astype("<u8").view(np.uint8)
            is_above[of_set] = np.unpackbits(words, axis=1, bitorder="little") > 0
        has_holes = np.flatnonzero(is_split & (arrays.special[feature] & HOLES > 0))
        missing = np.zeros(n, dtype=bool)
        if tree.missing is not None:
            missing[arrays.in_preorder()] = tree.missing > 0
        is_above[has_holes, arrays.n_bins[feature[has_holes]]] = missing[has_holes]
    return Tests(feature, child, np.packbits(is_above, axis=1, bitorder="little"))
