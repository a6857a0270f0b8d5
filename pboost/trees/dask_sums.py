"""Sums of trees of Dask collections, where their rows lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns import MAX_BINS, BinnedColumns
from pboost.data.engines import check_size
from pboost.data.part_bins import like
from pboost.data.part_tasks import Coded, truth_of
from pboost.data.special_columns import LEVEL_SMOOTHING
from pboost.data.splits import Validation
from pboost.data.target_task import CLASSIFICATION, REGRESSION
from pboost.data.training import Problem
from pboost.growth.dask_places import DaskPlaces, gathered
from pboost.growth.dask_tables import OF_TASK, DaskTable, check_here, each_part, read_table
from pboost.growth.step import Callback
from pboost.growth.tree import CartLimits
from pboost.losses import Loss, check_loss
from pboost.models.new_rows import columns_to_fit
from pboost.models.tree_sum import StagewiseModel
from pboost.trees import pairs
from pboost.trees.cart import FitData
from pboost.trees.continuation import check_goes_on_parts, sum_goes_on
from pboost.trees.restraints import Restraints
from pboost.trees.round_shards import Given, RoundShard
from pboost.trees.sharded_rounds import ShardedRounds
from pboost.trees.stagewise import grow_sum
from pboost.trees.steps import Steps
from pboost.trees.sum_shards import loss_in_parts, sum_options
from pboost.trees.weights import Weights
from pboost.values import (
    Array,
    Bar,
    FloatArray,
    Progress,
    Seed,
    as_generator,
    check_callback,
    with_bar,
)
from pboost.values.options import builder


@builder
def fit_stagewise(
    X: Any,
    y: Any,
    *,
    loss: str | Loss | None = None,
    task: str | None = None,
    steps: int = 100,
    learning_rate: float = 0.1,
    max_depth: int | None = 3,
    max_leaves: int | None = None,
    growth: str = "auto",
    min_leaf: int = 1,
    leaf_step: str = "auto",
    l2: float | str = "auto",
    min_weight: float = 0.0,
    min_gain: float = 0.0,
    features_per_tree: str | float | None = None,
    features_per_split: str | float | None = None,
    monotone: Mapping[str | int, int] | None = None,
    interactions: Sequence[Sequence[str | int]] | None = None,
    max_step: float | str | None = "auto",
    start: str = "constant",
    sums: str = "auto",
    missing: str = "learn",
    level_smoothing: float = LEVEL_SMOOTHING,
    sample_weight: Any = None,
    max_bins: int = MAX_BINS,
    edges: str = "sample",
    weighted_edges: bool = False,
    validation: Validation = None,
    patience: int | None = None,
    rng: Seed = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> StagewiseModel:
    """Fit a sum of trees to a Dask array or frame, where it lies; it is that of one table.

    Parameters
    ----------
    X, sample_weight, max_bins, edges, weighted_edges : optional
        Collections of Dask, and bins, as in `pboost.dask.fit_adaboost`.
    y : dask.array.Array of shape (n,), or dask.dataframe.Series
        Labels, two values in all, or numbers, in partitions as those of X.
    loss, task, steps, learning_rate, max_depth, max_leaves, growth, min_leaf : optional
        As in `pboost.shards.fit_stagewise`.
    leaf_step, l2, min_weight, min_gain, features_per_tree, features_per_split : optional
        As in `pboost.shards.fit_stagewise`.
    monotone, interactions, max_step, start, sums, missing, level_smoothing, rng : optional
        As in `pboost.shards.fit_stagewise`.
    validation, patience, callback, progress : optional
        As in `pboost.fit_stagewise`; validation rows are here, and no share is held out.

    Returns
    -------
    StagewiseModel
        What ``pboost.fit_stagewise(pboost.bin_columns(X, ...), y)`` returns of all rows in one
        table, bit for bit, whatever the partitions, the workers, and which of them are lost
        meanwhile.

    Raises
    ------
    ValueError, TypeError, RuntimeError, ImportError
        As `pboost.dask.fit_adaboost` does.
    NotImplementedError
        For what `pboost.shards.fit_stagewise` does not implement, and a share of the rows as
        `validation`.

    Notes
    -----
    As for `pboost.dask.fit_adaboost`. Labels and weights of all rows come to this process once, for
    what the sum begins with: 12 to 24 bytes a row.

    Examples
    --------
    >>> import dask.array as da  # doctest: +SKIP
    >>> from distributed import Client  # doctest: +SKIP
    >>> with Client() as client:  # doctest: +SKIP
    ...     X = da.random.random((100_000, 20), chunks=(25_000, 20))
    ...     y = (X[:, 0] > X[:, 1]).astype(int)
    ...     model = pboost.dask.fit_stagewise(X, y, steps=50)
    """
    check_callback(callback, progress)
    given = {
        "learning_rate": learning_rate,
        "steps": steps,
        "leaf_step": leaf_step,
        "max_step": max_step,
        "start": start,
        "min_weight": min_weight,
        "min_gain": min_gain,
        "features_per_tree": features_per_tree,
        "features_per_split": features_per_split,
        "l2": l2,
        "monotone": monotone,
        "interactions": interactions,
        "max_depth": max_depth,
        "max_leaves": max_leaves,
        "missing": missing,
        "min_leaf": min_leaf,
        "level_smoothing": level_smoothing,
        "sums": sums,
    }
    if loss is None and task is not None:
        loss = loss_in_parts(task)
    # Without both the rows say which loss it is; whatever they are, other options are checked.
    own = check_loss(loss_in_parts(CLASSIFICATION) if loss is None else loss)
    options = sum_options(own, task, growth, given)
    generator, told = as_generator(rng), partial(with_bar, callback, progress)
    check_here(validation)
    of = OF_TASK[None if loss is None else options["task"]]
    table = read_table(X, y, sample_weight, max_bins, of, edges, weighted_edges)
    if loss is None and isinstance(table.values, int):
        own = check_loss(loss_in_parts(REGRESSION))
        options = sum_options(own, task, growth, given)
    with ExitStack() as ends:
        data = FitData(table.bins, None, None, None, generator)
        parts = _Parts(table, ends)
        return grow_sum(data, own, options, (validation, patience), told, parts=parts)


def continue_dask_sum(
    model: StagewiseModel,
    X: Any,
    y: Any,
    *,
    steps: Any,
    sample_weight: Any,
    validation: Any,
    rng: Any,
    max_bins: int,
    edges: str,
    weighted_edges: bool,
    bar: Bar,
) -> StagewiseModel:
    """Return the sum with more trees; see `pboost.dask.continue_fit`."""
    options, held_out, generator, tried = sum_goes_on(model, steps, validation, rng)
    check_goes_on_parts(model, options)
    check_here(held_out[0])
    of = OF_TASK[options["task"]]
    table = read_table(X, y, sample_weight, max_bins, of, edges, weighted_edges)
    with ExitStack() as ends:
        data = FitData(columns_to_fit(model, table.bins), None, None, None, generator)
        parts = _Parts(table, ends)
        return grow_sum(data, model.loss, options, held_out, bar, model, tried, parts)


class _Parts:
    """Partitions on workers, as `pboost.trees.sharded_rounds.RowParts`."""

    def __init__(self, table: DaskTable, ends: ExitStack) -> None:
        self._table, self._ends = table, ends

    def problem(self) -> Problem:
        """Return the problem, whose columns have no rows."""
        table = self._table
        parts = table.tree_parts()
        found = gathered(table.client, each_part(table, labels_and_weights, table.values))
        values = np.concatenate([y for y, _ in found])
        check_size(len(values))
        no_label, no_number = np.empty(0, dtype=np.int32), np.empty(0)
        is_classes = parts.labels is not None
        return Problem(
            columns=table.bins.select(no_label),
            labels=parts.labels,
            label=values if is_classes else no_label,
            weights=None if table.weights is None else np.concatenate([w for _, w in found]),
            names=table.bins.names,
            y=no_number if is_classes else values,
            exponent=parts.exponent,
            table=table.bins.table,
        )

    def values(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """No rows are held out of those of workers, see `check_here`."""
        raise NotImplementedError("rows of workers are not held out")

    def scanned(self, weights: Weights) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
        """Return rows that tell how trees grow, see `pboost.trees.pairs`, and their codes."""
        table = self._table
        asked = each_part(table, _scanned, table.bins, weights.n_copies)
        found, start = [], 0
        for n, rows, codes in gathered(table.client, asked):
            found.append((rows + start, codes))
            start += n
        return pairs.joined(found, weights.n_copies)

    def rounds(
        self,
        problem: Problem,
        y: FloatArray,
        loss: Loss,
        weights: Weights,
        bias: Any,
        limits: CartLimits,
        steps: Steps,
        restraints: Restraints,
    ) -> ShardedRounds:
        """Return what grows one tree a round."""
        table = self._table
        greatest = 1.0 if problem.weights is None else float(problem.weights.max())
        unit = None
        if weights.are_copies and weights.of_rows is not None and problem.weights is not None:
            k = int(np.argmax(weights.of_rows))
            unit = float(problem.weights[k]) / greatest / float(weights.of_rows[k])
        own = greatest, unit, weights.of_rows is None, weights.most_copies, loss, bias
        given = each_part(table, _given, table.bins, table.values, own)
        table.coded.clear()  # workers keep what futures are held of
        engine = self._ends.enter_context(DaskPlaces(table.client, given, RoundShard))
        return ShardedRounds(engine, problem, y, loss, weights, limits, steps, restraints)


def labels_and_weights(part: Coded, values: Array | int) -> tuple[Array, FloatArray | None]:
    """Return classes or scaled targets, and weights, of the rows of a partition."""
    return truth_of(part, values, np.int32), part.weights


def _scanned(
    part: Coded, bins: BinnedColumns, n_copies: int
) -> tuple[int, NDArray[np.intp], NDArray[np.uint8]]:
    """Return the number of rows of a partition, those that are looked at, and their codes."""
    columns, used = like(bins, part.codes), None if part.weights is None else part.weights > 0
    return columns.n_rows, *pairs.scanned_part(columns, used, n_copies)


def _given(
    part: Coded,
    bins: BinnedColumns,
    values: Array | int,
    own: tuple[float, float | None, bool, int, Loss, float],
) -> Given:
    """Return what a place is made of; see `_Parts.rounds`."""
    greatest, unit, are_alike, most_copies, loss, bias = own
    y = truth_of(part, values, np.int32)
    y = np.ldexp(y, values) if isinstance(values, int) else 2.0 * y - 1.0
    weight = None
    if not are_alike and part.weights is not None:
        weight = part.weights / greatest
        if unit is not None:
            weight = np.rint(weight / unit)
    return like(bins, part.codes), y, weight, unit is not None, most_copies, loss, bias
