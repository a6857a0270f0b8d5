"""Rows of one of several places, of which bags are drawn for the trees of a forest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.bags import times_drawn
from pboost.data.columns import BinnedColumns
from pboost.growth.shard_trees import SentSplit, TreeShard, send_rows
from pboost.threads import Workers
from pboost.values import FloatArray, child


class Bag(NamedTuple):
    """How the rows of a member are drawn from `n` of positive weight, as in `pboost.data.bags`."""

    seed: tuple[int, ...]
    member: int
    n: int
    size: int
    replace: bool


class BagShard(TreeShard):
    """Rows of one place, whose weights are those of the bag that is asked about.

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
        self._positive = self._first
        self._whole = np.ones(len(self._y)) if self._given is None else self._given
        self._bag: Bag | None = None

    def _take(self, bag: Bag) -> None:
        """Have the weights of a bag."""
        if bag == self._bag:
            return
        self._bag = bag
        weights: FloatArray = self._whole
        if bag.replace or bag.size < bag.n:
            generator = child(bag.seed, bag.member)
            times = times_drawn(generator, bag.n, bag.size, bag.replace)
            own = times[self._before : self._before + len(self._positive)]
            weights = np.zeros(len(self._y))
            weights[self._positive] = self._whole[self._positive] * own
        self._given = weights
        self._first = np.flatnonzero(weights > 0).astype(np.int32)

    def extent(self, *of: Bag) -> tuple[int, int, float]:
        """Return how many rows there are, how many in the bag, and the greatest weight."""
        self._take(*of)
        return super().extent()

    def scaled_sum(self, exponent: int, shift: int, *of: Bag) -> tuple[int, bool]:
        """Return what `TreeShard` does of the weights of a bag."""
        self._take(*of)
        return super().scaled_sum(exponent, shift)

    def begin(self, exponent: int, scale: float, *of: Bag) -> None:
        """Set the weights to those of a bag, and put its rows at the root."""
        self._take(*of)
        super().begin(exponent, scale)

    def leaves(
        self, bag: Bag, splits: Sequence[SentSplit]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return which rows are out of a bag, and the node of each after all splits of its tree.

        Rows are numbered through all places.
        """
        self._take(bag)
        assert self._given is not None
        out = np.flatnonzero(self._given == 0).astype(np.int32)
        at = {0: out}
        for split in splits:
            send_rows(at, split, self._codes)
        rows = np.concatenate(list(at.values())).astype(np.int64)
        node = np.repeat(np.array(list(at), dtype=np.int32), [len(some) for some in at.values()])
        return rows + self._start, node
