"""Random forests of rows that lie in partitions: the forest of one table."""

from __future__ import annotations

from collections.abc import Sequence
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
from pboost.trees.shards import CartOptions
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
    task: str = "classification",
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
        For ``missing="both"``, and `n_threads` with `n_processes`.

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
    members = check_integer("members", members, least=1)
    generator = as_generator(rng)
    state = generator_state(generator)
    options = CartOptions.checked(
        task, criterion, missing, level_smoothing, prices, groups, comparison_price, generator,
        callback, progress, max_depth=max_depth, min_leaf=min_leaf, min_split=min_split,
        max_leaves=max_leaves, features_per_split=features_per_split, growth=None,
    )  # fmt: skip
    bag = check_bag(bag)
    parts = read_tree_parts(X, y, sample_weight, task)
    grown = options.of(parts)
    weights = None if parts.weights is None else np.concatenate(parts.weights)
    n = sum(part.n_rows for part in parts.columns)
    bags = make_bags(weights, n, bag, replace, generator)
    tally = _tally(parts, bags.weights)
    said = {"builder": "fit_forest", "members": members, "replace": bags.replace, "bag": bag}
    known = {} if state is None else {"rng": state}
    trees: list[Tree] = []
    place = places(parts.columns, _given(parts), BagShard, n_processes, n_threads)
    with (
        place as (engine, workers),
        with_bar(options.told_to, progress, members, "members") as told,
    ):
        fit = _Members(engine, workers, grown.problem, grown.limits, grown.settings)
        for member in range(members):
            _, stream = bags.draw(member)
            case = Bag(bags.seed, member, len(bags.rows), bags.size, bags.replace)
            tree, rows, values = fit.grown(case, int(stream.integers(2**63)))
            trees.append(tree)
            tally.add(rows, values)
            if tally.tell(told, member + 1, tree):
                break
    return join_trees(trees, {**grown.settings, **said, **known}, tally.close(), None)


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


def _tally(parts: TreeParts, weights: FloatArray) -> Tally:
    if parts.labels is None:
        return Tally(np.ldexp(np.concatenate(parts.y), parts.exponent), weights, 0)
    return Tally(np.concatenate(parts.label), weights, len(parts.labels))


def _given(parts: TreeParts) -> list[tuple[Any, ...]]:
    """Return the arguments of each shard that has rows, but for its threads."""
    found: list[tuple[Any, ...]] = []
    start = before = 0
    n_classes = 0 if parts.labels is None else len(parts.labels)
    for k, columns in enumerate(parts.columns):
        weights = None if parts.weights is None else parts.weights[k]
        y = parts.label[k] if n_classes else parts.y[k]
        if columns.n_rows:
            found.append((columns, y, weights, n_classes, start, before))
        start += columns.n_rows
        before += columns.n_rows if weights is None else int(np.count_nonzero(weights))
    return found
