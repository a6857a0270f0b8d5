"""Random forests of Dask collections, where their rows lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from pboost.data.columns import MAX_BINS, BinnedColumns
from pboost.data.part_tasks import Coded, given_part
from pboost.data.prices import GroupOption, PriceOption
from pboost.data.special_columns import LEVEL_SMOOTHING
from pboost.growth.bag_shards import BagShard
from pboost.growth.dask_places import DaskPlaces, gathered
from pboost.growth.dask_tables import OF_TASK, each_part, read_table
from pboost.growth.step import Callback
from pboost.models.forest import Forest
from pboost.threads import Workers
from pboost.trees.dask_sums import labels_and_weights
from pboost.trees.forest_shards import ForestOptions
from pboost.values import Array, Progress, Seed
from pboost.values.options import builder


@builder
def fit_forest(
    X: Any,
    y: Any,
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
    sample_weight: Any = None,
    max_bins: int = MAX_BINS,
    edges: str = "sample",
    weighted_edges: bool = False,
    rng: Seed = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> Forest:
    """Fit a random forest to a Dask array or frame, where it lies; it is that of one table.

    Parameters
    ----------
    X, sample_weight, max_bins, edges, weighted_edges : optional
        Collections of Dask, and bins, as in `pboost.dask.fit_adaboost`.
    y : dask.array.Array of shape (n,), or dask.dataframe.Series
        Labels, two values or more in all, or numbers, in partitions as those of X.
    members, task, features_per_split, replace, bag, criterion, max_depth, min_leaf : optional
        As in `pboost.fit_forest`.
    min_split, max_leaves, missing, level_smoothing, prices, groups, comparison_price : optional
        As in `pboost.shards.fit_forest`.
    rng, callback, progress : optional
        As in `pboost.shards.fit_forest`.

    Returns
    -------
    Forest
        What ``pboost.fit_forest(pboost.bin_columns(X, ...), y, rng=rng)`` returns of all rows in
        one table, in the order of the partitions, bit for bit, with its out-of-bag record; whatever
        the workers, and which of them are lost meanwhile.

    Raises
    ------
    ValueError, TypeError, RuntimeError, ImportError
        As `pboost.dask.fit_adaboost` does.

    Notes
    -----
    As for `pboost.dask.fit_cart`, one tree after another. Labels and weights of all rows come to
    this process once, for the out-of-bag record, which is as long as the table.

    Examples
    --------
    >>> import dask.array as da  # doctest: +SKIP
    >>> from distributed import Client  # doctest: +SKIP
    >>> with Client() as client:  # doctest: +SKIP
    ...     X = da.random.random((100_000, 20), chunks=(25_000, 20))
    ...     y = (X[:, 0] > X[:, 1]).astype(int)
    ...     forest = pboost.dask.fit_forest(X, y, members=20, max_depth=8, rng=0)
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
    of = OF_TASK[options.of_trees.task]
    table = read_table(X, y, sample_weight, max_bins, of, edges, weighted_edges)
    forest = options.of(table.tree_parts())
    found = gathered(table.client, each_part(table, labels_and_weights, table.values))
    weights = None if table.weights is None else np.concatenate([part for _, part in found])
    start = np.cumsum([0, *(len(part) for part, _ in found)])
    before = np.cumsum([0, *(len(y) if w is None else np.count_nonzero(w) for y, w in found)])
    given = [
        table.client.submit(
            _given,
            part,
            table.bins,
            table.values,
            (forest.n_classes, int(first), int(positive)),
            pure=False,
        )
        for part, first, positive in zip(table.coded, start[:-1], before[:-1], strict=True)
    ]
    table.coded.clear()  # workers keep what futures are held of
    with DaskPlaces(table.client, given, BagShard) as engine, Workers(1) as workers:
        return forest.fit(engine, workers, np.concatenate([y for y, _ in found]), weights)


def _given(
    part: Coded, bins: BinnedColumns, values: Array | int, more: tuple[Any, ...]
) -> tuple[Any, ...]:
    return given_part(part, bins, values, np.int32, more)
