"""Random forests of rows that lie in partitions: the forest of one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.bags import check_bag, make_bags
from pboost.data.columns import BinnedColumns
from pboost.data.engines import Engine
from pboost.data.parts import TreeParts, read_tree_parts
from pboost.data.prices import GroupOption, PriceOption
from pboost.data.special_columns import HOLES, LEVEL_SMOOTHING
from pboost.data.training import Problem
from pboost.growth.bag_shards import Bag, BagShard
from pboost.growth.shard_processes import places
from pboost.growth.shard_trees import SentSplit, ShardArrays, begin
from pboost.growth.step import Callback
from pboost.growth.tree import CartLimits, grow_tree
from pboost.models.forest import Forest, join_trees
from pboost.models.trees import LEAF, Tree
from pboost.threads import Workers
from pboost.trees.members import Tally
from pboost.trees.shards import CartOptions, given_of
from pboost.values import (
    FloatArray,
    IntArray,
    Progress,
    Seed,
    as_generator,
    check_integer,
    generator_state,
    with_bar,
)
from pboost.values.options import builder


@builder
def fit_forest(
    X: Sequence[BinnedColumns],
    y: Sequence[ArrayLike],
    *,
    members: int = 100,
    task: str | None = None,
    features_per_split: str | float | None = "sqrt",
    replace: bool = True,
    bag: float | int | None = None,
    criterion: str | None = None,
    max_depth: int | None = None,
    min_leaf: int = 1,
    min_split: int = 2,
    max_leaves: int | None = None,
    missing: str = "learn",
    level_smoothing: float = LEVEL_SMOOTHING,
    prices: PriceOption = None,
    groups: GroupOption = None,
    comparison_price: float | None = None,
    sample_weight: Sequence[ArrayLike] | None = None,
    rng: Seed = None,
    n_processes: int | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> Forest:
    """Fit a random forest to rows in partitions; it is that of one table, bit for bit.

    Parameters
    ----------
    X : list of BinnedColumns
        Partitions, with the same bins. One may be empty, or hold rows of some classes only.
    y : list of array_like
        Labels of the rows of each partition, two values or more in all; of a regression, numbers.
    members, task, features_per_split, replace, bag, criterion, max_depth, min_leaf : optional
        As in `pboost.fit_forest`.
    min_split, max_leaves, level_smoothing, prices, groups, comparison_price : optional
        As in `pboost.fit_forest`.
    missing : {"learn", "error"}
        As in `pboost.fit_forest`.
    sample_weight : list of array_like, optional
        Weights >= 0 of the rows of each partition, which may all be 0 in some.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        As in `pboost.fit_forest`. Bags are drawn by the numbers of rows.
    n_processes : int, optional
        Number of processes that have the partitions, with a thread each. One that dies is started
        again, three times at most, and takes the splits of the tree so far. None: this process has
        them.
    n_threads : int or None
        Threads, which share the columns of each tree; None: as many as the work is worth.
    callback, progress : optional
        As in `pboost.fit_forest`.

    Returns
    -------
    Forest
        What ``pboost.fit_forest(columns, y, rng=rng)`` returns, with its out-of-bag record, of all
        rows in one BinnedColumns with these bins, **the rows of the first partition first, then
        those of the second**, and so on: however many partitions the rows, in this order, are
        divided into. Rows in another order are drawn for other bags.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described, or partitions do not agree; the message names
        the argument and the partition.
    RuntimeError
        If a process ends four times, or does not answer within ten minutes.
    NotImplementedError
        For `n_threads` with `n_processes`.

    Notes
    -----
    Each partition draws the bag of all rows and takes its part. Trees are grown one after another,
    as `pboost.shards.fit_cart` does; then partitions say which leaves their rows out of the bag
    reach. The record of these is held here.

    References
    ----------
    .. [1] L. Breiman, "Random forests", Machine Learning 45 (2001).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> parts = pb.shards.bin_columns([X[:100], X[100:]])
    >>> forest = pb.shards.fit_forest(parts, [y[:100], y[100:]], members=5, rng=0)
    >>> whole = pb.fit_forest(pb.bin_columns(X), y, members=5, rng=0)
    >>> forest.oob.error == whole.oob.error
    True
    """
    options = ForestOptions.checked(
        members,
        replace,
        bag,
        task,
        criterion,
        missing,
        level_smoothing,
        prices,
        groups,
        comparison_price,
        rng,
        callback,
        progress,
        max_depth=max_depth,
        min_leaf=min_leaf,
        min_split=min_split,
        max_leaves=max_leaves,
        features_per_split=features_per_split,
    )
    parts = read_tree_parts(X, y, sample_weight, options.of_trees.task)
    forest = options.of(parts)
    weights = None if parts.weights is None else np.concatenate(parts.weights)
    truth = np.concatenate(parts.y if parts.labels is None else parts.label)
    place = places(parts.columns, _given(parts), BagShard, n_processes, n_threads)
    with place as (engine, workers):
        return forest.fit(engine, workers, truth, weights)


@dataclass(frozen=True, slots=True)
class ForestOptions:
    """The options of a forest on partitions, wherever they lie; some are checked with the data."""

    members: int
    replace: bool
    bag: int | float | None
    of_trees: CartOptions
    state: Any

    @classmethod
    def checked(
        cls,
        members: int,
        replace: bool,
        bag: float | int | None,
        task: str | None,
        criterion: str | None,
        missing: str,
        level_smoothing: float,
        prices: PriceOption,
        groups: GroupOption,
        comparison_price: float | None,
        rng: Seed,
        callback: Callback | None,
        progress: Progress,
        **limits: Any,
    ) -> ForestOptions:
        """Return the options, or raise what `fit_forest` raises whatever the data."""
        generator = as_generator(rng)
        of_trees = CartOptions.checked(
            task,
            criterion,
            missing,
            level_smoothing,
            prices,
            groups,
            comparison_price,
            generator,
            callback,
            progress,
            growth=None,
            **limits,
        )
        members = check_integer("members", members, least=1)
        return cls(members, replace, check_bag(bag), of_trees, generator_state(generator))

    def of(self, parts: TreeParts) -> _PartsForest:
        """Return what grows the forest of some partitions, or raise what `fit_forest` raises."""
        n_classes = 0 if parts.labels is None else len(parts.labels)
        return _PartsForest(self, self.of_trees.of(parts), n_classes, parts.exponent)


@dataclass(frozen=True, slots=True)
class _PartsForest:
    """A forest on partitions that is still to be grown."""

    options: ForestOptions
    tree: Any
    n_classes: int
    exponent: int

    def fit(
        self, engine: Engine, workers: Workers, truth: NDArray[Any], weights: FloatArray | None
    ) -> Forest:
        """Return the forest of the rows that the engine has.

        `truth` has the classes, or the scaled targets, of all rows, partition by partition.
        """
        options, of_trees = self.options, self.options.of_trees
        bags = make_bags(weights, len(truth), options.bag, options.replace, of_trees.generator)
        is_classes = self.n_classes > 0
        truth = truth if is_classes else np.ldexp(truth, self.exponent)
        tally, trees = Tally(truth, bags.weights, self.n_classes), list[Tree]()
        own = self.tree
        fit = _Members(engine, workers, own.problem, own.limits, own.settings)
        with with_bar(of_trees.told_to, of_trees.progress, options.members, "members") as told:
            for member in range(options.members):
                _, stream = bags.draw(member)
                case = Bag(bags.seed, member, len(bags.rows), bags.size, bags.replace)
                tree, rows, values = fit.grown(case, int(stream.integers(2**63)))
                trees.append(tree)
                tally.add(rows, values)
                if tally.tell(told, member + 1, tree):
                    break
        said = {
            "builder": "fit_forest",
            "members": options.members,
            "replace": bags.replace,
            "bag": options.bag,
        }
        known = {} if options.state is None else {"rng": options.state}
        return join_trees(trees, {**own.settings, **said, **known}, tally.close(), None)


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


def _given(parts: TreeParts) -> list[tuple[Any, ...]]:
    """Return the arguments of each shard that has rows, but for its threads."""
    found: list[tuple[Any, ...]] = []
    start = before = 0
    for one in given_of(parts):
        columns, _, weights, _ = one
        found.append((*one, start, before))
        start += columns.n_rows
        before += columns.n_rows if weights is None else int(np.count_nonzero(weights))
    return found
