"""Classification and regression trees of rows that lie in partitions: the tree of one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.check_xy import check_taken
from pboost.data.columns import MAX_BINS, BinnedColumns
from pboost.data.engines import Engine
from pboost.data.parts import TreeParts, read_tree_parts
from pboost.data.prices import GroupOption, PriceOption, plain_options
from pboost.data.special_columns import LEVEL_SMOOTHING
from pboost.data.target_task import CLASSIFICATION, REGRESSION, task_of_options
from pboost.data.training import Problem
from pboost.growth.shard_processes import places
from pboost.growth.shard_trees import Given, ShardArrays, TreeShard, begin
from pboost.growth.step import Callback
from pboost.growth.tree import CartLimits, grow_tree
from pboost.models.trees import Tree
from pboost.threads import Workers
from pboost.trees.cart import cart_limits, check_task, taken_of
from pboost.values import (
    FloatArray,
    Progress,
    Seed,
    as_generator,
    check_callback,
    check_number,
    with_bar,
)
from pboost.values.options import builder


@builder
def fit_cart(
    X: Sequence[BinnedColumns],
    y: Sequence[ArrayLike],
    *,
    task: str | None = None,
    criterion: str | None = None,
    max_depth: int | None = None,
    min_leaf: int = 1,
    min_split: int = 2,
    max_leaves: int | None = None,
    features_per_split: str | float | None = None,
    growth: str | None = None,
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
) -> Tree:
    """Fit a tree to rows in partitions; it is that of all rows in one table, bit for bit.

    Parameters
    ----------
    X : list of BinnedColumns
        Partitions, with the same bins. One may be empty, or hold rows of some classes only.
    y : list of array_like
        Labels of the rows of each partition, two values or more in all; of a regression, numbers.
    task : {"classification", "regression"}, optional
        What `y` is; without it all rows say, as in `pboost.fit_cart`.
    criterion, max_depth, min_leaf, min_split, max_leaves, features_per_split, growth : optional
        As in `pboost.fit_cart`.
    missing : {"learn", "error"}
        As in `pboost.fit_cart`.
    level_smoothing, prices, groups, comparison_price : optional
        As in `pboost.fit_cart`.
    rng, n_threads, callback, progress : optional
        As in `pboost.fit_cart`.
    sample_weight : list of array_like, optional
        Weights >= 0 of the rows of each partition, which may all be 0 in some.
    n_processes : int, optional
        Number of processes that have the partitions, with a thread each. One that dies is started
        again, three times at most, and takes the splits so far: the tree is the same. None: this
        process has them.

    Returns
    -------
    Tree
        What ``pboost.fit_cart(columns, y)`` returns, of all rows in one BinnedColumns with these
        bins, whatever the number of partitions, their sizes and their order. `prune` and others
        take it as they take that.

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
    Nodes are asked for one at a time: partitions answer with class masses and numbers of rows by
    bin, 64-bit integers, of the smaller of two children; those of the other are what is left of
    their parent's. Of a regression they answer with moments about the mean of each node, for which
    sums of targets are taken first, in integers, too. The search is binned, so that there is no
    ``search="exact"``.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.arange(8.0).reshape(8, 1), np.array([0, 1, 0, 0, 1, 1, 2, 2])
    >>> parts = pb.shards.bin_columns([X[:3], X[3:]])
    >>> tree = pb.shards.fit_cart(parts, [y[:3], y[3:]], max_depth=2)
    >>> whole = pb.fit_cart(pb.bin_columns(X), y, max_depth=2)
    >>> bool((tree.value == whole.value).all())
    True
    """
    options = CartOptions.checked(
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
        growth=growth,
    )
    parts = read_tree_parts(X, y, sample_weight, options.task)
    tree = options.of(parts)
    given = given_of(parts)
    with places(parts.columns, given, TreeShard, n_processes, n_threads) as (engine, workers):
        return tree.fit(engine, workers)


@dataclass(frozen=True, slots=True)
class CartOptions:
    """The options of a tree on partitions, wherever they lie; some are checked with the data.

    Attributes
    ----------
    task, criterion : str or None
        As given; `task` is what the criterion leaves where it is of one task.
    own : dict
        Further options of `cart_limits` by their names.
    generator : Generator
        Draws columns.
    told_to, progress
        Callback, checked, and option.
    """

    task: str | None
    criterion: str | None
    own: dict[str, Any]
    generator: np.random.Generator
    told_to: Any
    progress: Progress

    @classmethod
    def checked(
        cls,
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
    ) -> CartOptions:
        """Return the options, or raise what `fit_cart` raises whatever the data."""
        told_to = check_callback(callback, progress)
        generator = as_generator(rng)
        task = task_of_options({"criterion": criterion}) if task is None else task
        if task is not None or criterion is not None:
            check_task(task or CLASSIFICATION, criterion)
        own = {
            "missing": missing,
            "level_smoothing": check_number("level_smoothing", level_smoothing, least=0.0),
            "prices": plain_options(prices, groups, comparison_price),
            "search": "auto",
            "max_bins": MAX_BINS,
            **limits,
        }
        return cls(task, criterion, own, generator, told_to, progress)

    def of(self, parts: TreeParts) -> _PartsTree:
        """Return what grows the tree of some partitions, or raise what `fit_cart` raises."""
        problem = parts.problem()
        check_taken(problem.table, problem.names, taken_of(self.own["missing"]))
        task = REGRESSION if parts.labels is None else CLASSIFICATION
        limits, settings, key = cart_limits(
            problem,
            self.generator,
            task=task,
            criterion=check_task(task, self.criterion),
            **self.own,
        )
        return _PartsTree(self, problem, parts.weights is not None, limits, settings, key)


@dataclass(frozen=True, slots=True)
class _PartsTree:
    """A tree on partitions that is still to be grown."""

    options: CartOptions
    problem: Problem
    is_weighed: bool
    limits: CartLimits
    settings: dict[str, Any]
    key: int

    def fit(self, engine: Engine, workers: Workers) -> Tree:
        """Return the tree of the rows that the engine has."""
        limits, options = self.limits, self.options
        data, n = begin(engine, self.problem, self.is_weighed)
        arrays = ShardArrays(data, n, limits, self.key, engine)
        total = None if options.own["max_leaves"] is None else limits.leaves - 1
        with with_bar(options.told_to, options.progress, total, "splits") as told:
            stop_reason = grow_tree(arrays, workers, told)
        return arrays.model(self.settings, stop_reason, limits.criterion)


def given_of(parts: TreeParts) -> list[Given]:
    """Return the arguments of each shard that has rows, but for its threads."""
    none: list[FloatArray | None] = [None] * len(parts.columns)
    weights = parts.weights or none
    n_classes = 0 if parts.labels is None else len(parts.labels)
    given = zip(parts.columns, parts.label if n_classes else parts.y, weights, strict=True)
    return [(*one, n_classes) for one in given if one[0].n_rows]
