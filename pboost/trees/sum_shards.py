"""Sums of trees of rows that lie in partitions: the model of one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from pboost.data.check_xy import TASKS
from pboost.data.columns import MAX_BINS, BinnedColumns
from pboost.data.parts import check_parts, read_tree_parts, task_of_parts
from pboost.data.special_columns import LEVEL_SMOOTHING
from pboost.data.splits import Validation
from pboost.data.target_task import REGRESSION
from pboost.growth.step import Callback
from pboost.losses import LOSSES, Loss, check_loss, is_of_package
from pboost.models.tree_sum import StagewiseModel
from pboost.trees.cart import FitData
from pboost.trees.restraints import RESTRAINTS, plain_interactions, plain_monotone
from pboost.trees.sharded_rounds import SumParts
from pboost.trees.stagewise import grow_sum
from pboost.trees.targets import task_of_loss
from pboost.values import (
    Progress,
    Seed,
    as_generator,
    check_callback,
    check_choice,
    check_integer,
    with_bar,
)
from pboost.values.options import builder


@builder
def fit_stagewise(
    X: Sequence[BinnedColumns],
    y: Sequence[ArrayLike],
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
    sample_weight: Sequence[ArrayLike] | None = None,
    validation: Validation = None,
    patience: int | None = None,
    rng: Seed = None,
    n_processes: int | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> StagewiseModel:
    """Fit a sum of trees to rows in partitions; it is that of one table, bit for bit.

    Parameters
    ----------
    X : list of BinnedColumns
        Partitions, with the same bins. One may be empty, or hold rows of one label only.
    y : list of array_like
        Labels of the rows of each partition, two values in all; of a regression, numbers.
    loss : str or Loss, optional
        "exponential", "logistic" or "probit" of two labels, "squared" or "poisson" of numbers.
        Default: "squared" of a regression, else "logistic".
    task : {"classification", "regression"}, optional
        What `y` is; without it and a loss all rows say, as in `pboost.fit_stagewise`.
    steps, learning_rate, max_depth, max_leaves, min_leaf : optional
        As in `pboost.fit_stagewise`.
    growth : {"auto", "free", "pooled", "symmetric"}
        As in `pboost.fit_stagewise`.
    leaf_step, l2, min_weight, min_gain, features_per_tree, features_per_split : optional
        As in `pboost.fit_stagewise`.
    monotone, interactions, max_step, start, sums, level_smoothing : optional
        As in `pboost.fit_stagewise`.
    missing : {"learn", "error"}
        As in `pboost.fit_stagewise`.
    sample_weight : list of array_like, optional
        Weights >= 0 of the rows of each partition, which may all be 0 in some.
    validation : tuple or float, optional
        Rows by whose mean loss the number of trees is chosen, as in `pboost.fit_stagewise`:
        ``(X, y)`` or ``(X, y, sample_weight)``, in one table; or a share in (0, 0.5] of the rows,
        drawn by their numbers, one partition after another.
    patience, rng, n_threads, callback, progress : optional
        As in `pboost.fit_stagewise`.
    n_processes : int, optional
        Number of processes that have the partitions, with a thread each. One that dies is started
        again, three times at most, and is told the trees so far: the model is the same. None: this
        process has them.

    Returns
    -------
    StagewiseModel
        What ``pboost.fit_stagewise(columns, y)`` returns, of all rows in one BinnedColumns with
        these bins, whatever the number of partitions, their sizes and their order.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described, or partitions do not agree; the message names
        the argument and the partition.
    RuntimeError
        If a process ends four times, or does not answer within ten minutes.
    NotImplementedError
        For other losses, ``growth="per-comparison"``, and `n_threads` with `n_processes`.
        There are no bags of rows and prices here.

    Notes
    -----
    Gradients and curvatures are rounded to whole numbers whose unit is that of all rows, so that
    sums of partitions are exact. A round asks for the largest derivatives, at each node for sums by
    bin of the smaller child, and, where the step of a leaf is the best one, some times for slopes
    at all leaves.

    References
    ----------
    .. [1] J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of
       Statistics 29 (2001), algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.arange(8.0).reshape(8, 1), np.array([0, 1, 0, 0, 1, 1, 0, 1])
    >>> parts = pb.shards.bin_columns([X[:3], X[3:]])
    >>> model = pb.shards.fit_stagewise(parts, [y[:3], y[3:]], steps=5)
    >>> whole = pb.fit_stagewise(pb.bin_columns(X), y, steps=5)
    >>> bool((pb.decision_function(model, X) == pb.decision_function(whole, X)).all())
    True
    """
    check_callback(callback, progress)
    if loss is None:
        loss = loss_in_parts(task_of_parts(check_parts("y", y)) if task is None else task)
    own = check_loss(loss)
    options = sum_options(
        own,
        task,
        growth,
        {
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
        },
    )
    generator, told = as_generator(rng), partial(with_bar, callback, progress)
    with ExitStack() as ends:
        given = read_tree_parts(X, y, sample_weight, options["task"])
        parts = SumParts(given, n_processes, n_threads, ends)
        data = FitData(X[0], None, None, None, generator)
        return grow_sum(data, own, options, (validation, patience), told, parts=parts)


def loss_in_parts(task: str) -> str:
    """Return the default loss of a task, for rows in parts."""
    return "squared" if check_choice("task", task, TASKS) == REGRESSION else "logistic"


def sum_options(loss: Loss, task: str | None, growth: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a sum on partitions, or raise what is raised whatever the data."""
    check_in_parts(loss, growth)
    return {
        **RESTRAINTS,
        "trees": "per-class",
        "bag": None,
        "search": "auto",
        "max_bins": MAX_BINS,
        "tree_comparisons": None,
        "task": task_of_loss(loss, None, task),
        **given,
        "growth": growth,
        "steps": check_integer("steps", given["steps"], least=1),
        "monotone": plain_monotone(given["monotone"]),
        "interactions": plain_interactions(given["interactions"]),
    }


def check_in_parts(loss: Loss, growth: str) -> None:
    """Raise NotImplementedError for losses and growths of which partitions have no sums."""
    if not is_of_package(loss) or not loss.is_summed:
        names = ", ".join(name for name, of in LOSSES.items() if of.is_summed)
        raise NotImplementedError(
            f"loss: expected one of {names} of partitions, got {loss}; other losses "
            "need the rows in one table"
        )
    if growth == "per-comparison":
        raise NotImplementedError(
            'growth: "per-comparison" is not implemented for partitions; "auto", "free", "pooled" '
            'or "symmetric" are'
        )
