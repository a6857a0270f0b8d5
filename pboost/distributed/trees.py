"""Trees, and forests, on rows in partitions: what builders of trees ask in place of a table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.bags import Bags
from pboost.data.columns import BinnedColumns
from pboost.data.engines import Engine
from pboost.data.held_rows import HoldOut
from pboost.data.special_columns import HOLES
from pboost.data.training import Problem
from pboost.distributed import tasks
from pboost.growth.bag_shards import Bag, BagShard
from pboost.growth.shard_trees import SentSplit, ShardArrays, TreeShard, begin
from pboost.growth.step import Callback
from pboost.growth.tree import CartLimits, grow_tree
from pboost.models.trees import LEAF, Tree
from pboost.threads import Workers
from pboost.values import Array, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class TreeRows:
    """Rows in partitions as one fit of trees has them.

    Attributes
    ----------
    source : PartitionedRows
        The rows.
    values : ndarray, or int
        Label values, or the exponent by which targets are scaled.
    """

    source: Any
    values: Array | int

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 of a regression."""
        return 0 if isinstance(self.values, int) else len(self.values)

    def problem(self, hold: HoldOut | None) -> Problem:
        """Return the problem of the fit, without rows."""
        problem: Problem = self.source.problem(self.values)
        held = None if hold is None else self.source.hold_out(hold, self.values)
        return replace(problem, held=held, elsewhere=self)

    def with_targets(self, problem: Problem) -> Problem:
        """Return the problem with classes, or scaled targets, and weights of all rows."""
        found = self.source.each(tasks.targets_and_weights, self.values)
        y, weights = zip(*found, strict=True)
        name = "label" if self.n_classes else "y"
        weight = np.concatenate(weights) if self.source.is_weighed else None
        return replace(problem, weights=weight, **{name: np.concatenate(y)})

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
        with closing(engine), engine.workers as workers:
            fit = _Members(engine, workers, problem, limits, settings)
            for member in range(members):
                _, stream = bags.draw(member)
                case = Bag(bags.seed, member, len(bags.rows), bags.size, bags.replace)
                if take(fit.grown(case, int(stream.integers(2**63)))):
                    return


class _Members:
    """What grows the members of a forest whose rows an engine has."""

    def __init__(
        self, engine: Engine, workers: Workers, problem: Problem, limits: CartLimits,
        settings: dict[str, Any],
    ) -> None:  # fmt: skip
        self._engine, self._workers, self._problem = engine, workers, problem
        self._limits, self._settings = limits, settings

    def grown(self, bag: Bag, key: int) -> tuple[Tree, NDArray[np.intp], FloatArray]:
        """Return the tree of a bag, the rows that are out of it, and what it says of them."""
        limits = self._limits
        data, n = begin(self._engine, self._problem, True, bag)
        arrays = ShardArrays(data, n, limits, key, self._engine)
        stop_reason = grow_tree(arrays, self._workers, None)
        tree = arrays.model(self._settings, stop_reason, limits.criterion)
        place = _places(tree, {split.node: split.child for split in arrays.splits})
        found = self._engine.ask("leaves", bag, self._sides(tree, place, arrays.splits))
        rows, node = (np.concatenate(of) for of in zip(*found, strict=True))
        return tree, rows.astype(np.intp), tree.value[place[node]]

    def _sides(self, tree: Tree, place: IntArray, splits: list[SentSplit]) -> list[SentSplit]:
        """Return the splits, with the sides on which missing values are that no row had there."""
        columns, missing = self._problem.columns, tree.missing
        assert isinstance(columns, BinnedColumns)
        if columns.special is None or missing is None:
            return splits
        found = []
        for split in splits:
            side, code = split.side.copy(), columns.n_bins[split.feature]
            if columns.special[split.feature] & HOLES:
                side[code] = missing[place[split.node]]
            found.append(split._replace(side=side))
        return found


def _places(tree: Tree, child: dict[int, int]) -> IntArray:
    """Return where the nodes of a tree stand in it, by their numbers in growth."""
    found = np.zeros(tree.n_nodes, dtype=np.int32)
    made = np.zeros(tree.n_nodes, dtype=np.int32)
    for place, (below, above) in enumerate(tree.children.tolist()):
        number = int(made[place])
        found[number] = place
        if below != LEAF:
            made[below], made[above] = child[number], child[number] + 1
    return found
