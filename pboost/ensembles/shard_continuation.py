"""Fitting goes on, of rows that lie in partitions: `shards.continue_fit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from pboost.boosting.shard_continuation import continue_parts
from pboost.data.columns import BinnedColumns
from pboost.ensembles.continuation import kind_of
from pboost.growth.step import Callback
from pboost.models.forest import Forest
from pboost.models.graph import DecisionGraph
from pboost.models.tree_sum import StagewiseModel
from pboost.observation.answers import Observation
from pboost.trees.continuation import continue_sum_parts
from pboost.values import Progress, Seed, check_callback, with_bar
from pboost.values.options import builder
from pboost.weak.base import Weak

M = TypeVar("M", DecisionGraph, StagewiseModel)


@builder
def continue_fit(
    model: M,
    X: Sequence[BinnedColumns],
    y: Sequence[ArrayLike],
    *,
    rounds: int | None = None,
    nodes: int | None = None,
    steps: int | None = None,
    weak: Weak | None = None,
    observation: Observation | None = None,
    growth: str | None = None,
    smoothing: float | None = None,
    learning_rate: float | None = None,
    sample_weight: Sequence[ArrayLike] | None = None,
    validation: tuple[Any, ...] | None = None,
    rng: Seed = None,
    n_processes: int | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> M:
    """Add nodes to a graph, or trees to a sum, of rows in partitions; bit for bit as of one table.

    Parameters
    ----------
    model : DecisionGraph or StagewiseModel
        A fitted model, of partitions or of one table; it is not changed. A chain; a tree whose
        answers are uncertain; or a sum of trees.
    X : list of BinnedColumns
        Partitions, with the same bins: those of the fit, or of other rows with the same columns.
    y : list of array_like
        Labels of the rows of each partition, in all those of the model; of a regression, numbers.
    rounds : int, optional
        Add at most so many weak classifiers to a chain.
    nodes : int, optional
        Add at most so many weak classifiers to a tree.
    steps : int, optional
        Add at most so many trees to a sum.
    weak, observation, growth, smoothing, learning_rate : optional
        As in `pboost.continue_fit`; what partitions take.
    sample_weight : list of array_like, optional
        Weights >= 0 of the rows of each partition; a model does not keep those of its fit.
    validation, rng : optional
        Of a sum of trees, as in `pboost.continue_fit`.
    n_processes : int, optional
        Number of processes that have the partitions, as in `fit_adaboost`.
    n_threads, callback, progress : optional
        As in `pboost.continue_fit`.

    Returns
    -------
    DecisionGraph or StagewiseModel
        What ``pboost.continue_fit(model, columns, y)`` returns, of all rows in one BinnedColumns
        with these bins, whatever the number of partitions and their sizes. It does not depend on
        their order either, but where a sum holds out a share of the rows.

    Raises
    ------
    ValueError, TypeError
        If the data are not such as the model was fitted to, an option is not as described or
        belongs to another kind of model, or partitions do not agree.
    RuntimeError
        If a process ends four times, or does not answer within ten minutes.
    NotImplementedError
        For forests, trees of exact answers and other graphs than chains and trees; for what was
        fitted with options that builders of partitions do not have, and what these refuse.

    Notes
    -----
    Partitions are told the nodes, or the trees, that are there, one after another, as they are told
    those of their own fit. The certificate of a graph, and the losses of a sum, are those of the
    rows given here throughout.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.arange(8.0).reshape(8, 1), np.array([0, 1, 0, 0, 1, 1, 0, 1])
    >>> parts, labels = pb.shards.bin_columns([X[:3], X[3:]]), [y[:3], y[3:]]
    >>> model = pb.shards.fit_adaboost(parts, labels, rounds=5)
    >>> longer = pb.shards.continue_fit(model, parts, labels, rounds=5)
    >>> at_once = pb.shards.fit_adaboost(parts, labels, rounds=10)
    >>> bool((longer.vote == at_once.vote).all())
    True
    """
    check_callback(callback, progress)
    own = kind_in_parts(
        model,
        {
            "rounds": rounds,
            "nodes": nodes,
            "steps": steps,
            "weak": weak,
            "observation": observation,
            "growth": growth,
            "smoothing": smoothing,
            "learning_rate": learning_rate,
            "validation": validation,
        },
        rng,
    )
    places: dict[str, Any] = {
        "sample_weight": sample_weight,
        "n_processes": n_processes,
        "n_threads": n_threads,
    }
    bar = partial(with_bar, callback, progress)
    if isinstance(model, StagewiseModel):
        return continue_sum_parts(model, X, y, **own, **places, rng=rng, bar=bar)
    return continue_parts(model, X, y, **own, **places, bar=bar)


def kind_in_parts(model: Any, given: Mapping[str, Any], rng: Seed) -> dict[str, Any]:
    """Return the options of a kind of model of those given, where rows lie in partitions."""
    if isinstance(model, Forest):
        raise NotImplementedError(
            "model: a Forest is not continued on partitions; it needs the rows in one table"
        )
    _, own = kind_of(model, given)
    if rng is not None and isinstance(model, DecisionGraph):
        raise ValueError(f"rng: expected None for a graph, whose stumps draw nothing, got {rng!r}")
    return own
