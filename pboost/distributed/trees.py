"""Trees, and forests, on rows in partitions: what builders of trees ask in place of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.splits import Bags, HoldOut
from pboost.data.training import Problem
from pboost.distributed import tasks
from pboost.distributed.bag_shards import Bag, BagShard, begin_bags, tests_of
from pboost.distributed.engines import Engine
from pboost.distributed.tree_shards import Calls, ShardArrays, TreeShard, begin, grow_together
from pboost.growth.step import Callback
from pboost.growth.tree import CartLimits, grow_tree
from pboost.models.trees import Tree
from pboost.threads import Workers
from pboost.values import Array, FloatArray

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

    def problem(self, hold: HoldOut | None = None) -> Problem:
        """Return the problem of the fit, without rows."""
        if not np.isfinite(sum(self.source.each(tasks.weight_of))):
            raise ValueError("sample_weight: expected weights with a finite sum")
        problem: Problem = self.source.problem(self.values)
        held = None if hold is None else self.source.hold_out(hold, self.values)
        return replace(problem, held=held, elsewhere=self)

    def with_targets(self, problem: Problem) -> Problem:
        """Return the problem with classes, or scaled targets, and weights of all rows."""
        found = self.source.each(tasks.targets_and_weights, self.values)
        y, weights = zip(*found, strict=True)
        weight, truth = (
            np.concatenate(weights) if self.source.is_weighed else None,
            np.concatenate(y),
        )
        if self.n_classes:
            return replace(problem, weights=weight, label=truth)
        return replace(problem, weights=weight, y=truth)

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

    def fit_bags(
        self,
        problem: Problem,
        bags: Bags,
        limits: CartLimits,
        settings: dict[str, Any],
        members: int,
        n_threads: int | None,
        take: Callable[[Any], bool],
    ) -> None:
        """Have taken the tree of each bag, the rows out of it, and their values, until it is True.

        `take` is called with them in order, and says whether to stop.
        """
        starts = np.cumsum([0, *self.source.sizes[:-1]])
        before = np.searchsorted(bags.rows, starts)
        each = [(self.n_classes, *of) for of in zip(starts.tolist(), before.tolist(), strict=True)]
        engine = self.source.shards(BagShard, self.values, n_threads, each=each)
        together = max(1, TOGETHER // self.source.n_rows)
        with closing(engine), engine.workers as workers:
            fit = _Members(engine, workers, problem, limits, settings)
            for start in range(0, members, together):
                some = range(start, min(start + together, members))
                keys = [int(bags.draw(member)[1].integers(2**63)) for member in some]
                n = len(bags.rows)
                cases = [Bag(bags.seed, member, n, bags.size, bags.replace) for member in some]
                for grown in fit.grown(cases, keys):
                    if take(grown):
                        return


class _Members:
    """What grows the members of a forest whose rows an engine has."""

    def __init__(
        self,
        engine: Engine,
        workers: Workers,
        problem: Problem,
        limits: CartLimits,
        settings: dict[str, Any],
    ) -> None:
        self._engine, self._workers, self._problem = engine, workers, problem
        self._limits, self._settings = limits, settings

    def grown(
        self, bags: Sequence[Bag], keys: Sequence[int]
    ) -> Iterator[tuple[Tree, NDArray[np.intp], FloatArray]]:
        """Yield the tree of each bag, the rows that are out of it, and what it says of them."""
        calls, limits = Calls(self._engine), self._limits
        begun = begin_bags(self._engine, self._problem, bags)
        grown = [
            ShardArrays(data, n, limits, key, self._engine, calls, k)
            for k, ((data, n), key) in enumerate(zip(begun, keys, strict=True))
        ]
        reasons = grow_together(grown, calls, self._workers)
        trees = [
            arrays.model(self._settings, reason, limits.criterion)
            for arrays, reason in zip(grown, reasons, strict=True)
        ]
        tests = [tests_of(arrays, tree) for arrays, tree in zip(grown, trees, strict=True)]
        found = self._engine.ask("leaves", bags, tests)
        for arrays, tree, parts in zip(grown, trees, zip(*found, strict=True), strict=True):
            rows, leaf = (np.concatenate(of) for of in zip(*parts, strict=True))
            place = np.empty(int(arrays.counter["nodes"]), dtype=np.intp)
            place[arrays.in_preorder()] = np.arange(tree.n_nodes)
            yield tree, rows.astype(np.intp), tree.value[place[leaf]]
