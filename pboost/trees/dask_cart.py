"""Classification and regression trees of Dask collections, where their rows lie."""

from __future__ import annotations

from typing import Any

from pboost.data.columns import MAX_BINS
from pboost.data.prices import GroupOption, PriceOption
from pboost.data.special_columns import LEVEL_SMOOTHING
from pboost.growth.dask_tables import OF_TASK, read_table
from pboost.growth.shard_trees import TreeShard
from pboost.growth.step import Callback
from pboost.models.trees import Tree
from pboost.threads import Workers
from pboost.trees.shards import CartOptions
from pboost.values import Progress, Seed
from pboost.values.options import builder


@builder
def fit_cart(
    X: Any,
    y: Any,
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
    sample_weight: Any = None,
    max_bins: int = MAX_BINS,
    edges: str = "sample",
    weighted_edges: bool = False,
    rng: Seed = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> Tree:
    """Fit a tree to a Dask array or frame, where it lies; it is that of one table.

    Parameters
    ----------
    X, sample_weight, max_bins, edges, weighted_edges : optional
        Collections of Dask, and bins, as in `pboost.dask.fit_adaboost`.
    y : dask.array.Array of shape (n,), or dask.dataframe.Series
        Labels, two values or more in all, or numbers, in partitions as those of X.
    task : {"classification", "regression"}, optional
        What `y` is; without it all rows say, as in `pboost.fit_cart`.
    criterion, max_depth, min_leaf, min_split, max_leaves, features_per_split, growth : optional
        As in `pboost.fit_cart`.
    missing, level_smoothing, prices, groups, comparison_price, rng : optional
        As in `pboost.shards.fit_cart`.
    callback, progress : optional
        As in `pboost.fit_cart`.

    Returns
    -------
    Tree
        What ``pboost.fit_cart(pboost.bin_columns(X, ...), y)`` returns of all rows in one table,
        bit for bit, whatever the partitions, the workers, and which of them are lost meanwhile.

    Raises
    ------
    ValueError, TypeError, RuntimeError, ImportError
        As `pboost.dask.fit_adaboost` does.

    Notes
    -----
    As for `pboost.dask.fit_adaboost`. A partition is asked several times about each node, so that
    the time of a tree with many small nodes is that of messages: give `max_depth`, `min_leaf` or
    `max_leaves`.

    Examples
    --------
    >>> import dask.array as da  # doctest: +SKIP
    >>> from distributed import Client  # doctest: +SKIP
    >>> with Client() as client:  # doctest: +SKIP
    ...     X = da.random.random((100_000, 20), chunks=(25_000, 20))
    ...     y = (X[:, 0] > X[:, 1]).astype(int)
    ...     tree = pboost.dask.fit_cart(X, y, max_depth=6)
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
    of = OF_TASK[options.task]
    table = read_table(X, y, sample_weight, max_bins, of, edges, weighted_edges)
    parts = table.tree_parts()
    tree = options.of(parts)
    n_classes = 0 if parts.labels is None else len(parts.labels)
    with table.engine(TreeShard, n_classes) as engine, Workers(1) as workers:
        return tree.fit(engine, workers)
