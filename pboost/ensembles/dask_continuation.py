"""Fitting goes on, of collections of Dask: `pboost.dask.continue_fit`."""

from __future__ import annotations

from functools import partial
from typing import Any

from pboost.boosting.dask_fits import continue_dask_graph
from pboost.data.columns import MAX_BINS
from pboost.ensembles.shard_continuation import M, kind_in_parts
from pboost.growth.step import Callback
from pboost.models.tree_sum import StagewiseModel
from pboost.observation.answers import Observation
from pboost.trees.dask_sums import continue_dask_sum
from pboost.values import Progress, Seed, check_callback, with_bar
from pboost.values.options import builder
from pboost.weak.base import Weak


@builder
def continue_fit(
    model: M,
    X: Any,
    y: Any,
    *,
    rounds: int | None = None,
    nodes: int | None = None,
    steps: int | None = None,
    weak: Weak | None = None,
    observation: Observation | None = None,
    growth: str | None = None,
    smoothing: float | None = None,
    learning_rate: float | None = None,
    sample_weight: Any = None,
    max_bins: int = MAX_BINS,
    edges: str = "sample",
    weighted_edges: bool = False,
    validation: tuple[Any, ...] | None = None,
    rng: Seed = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> M:
    """Add nodes to a graph, or trees to a sum, of a Dask array or frame, where it lies.

    Parameters
    ----------
    model : DecisionGraph or StagewiseModel
        A fitted model, as in `pboost.shards.continue_fit`.
    X, y, sample_weight, max_bins, edges, weighted_edges : optional
        Collections of Dask, of the fit or others, and bins, as in `pboost.dask.fit_adaboost`.
    rounds, nodes, steps, weak, observation, growth, smoothing, learning_rate : optional
        As in `pboost.shards.continue_fit`.
    validation : tuple, optional
        Of a sum that was fitted with ``validation=(X, y)``: the same once more.
    rng, callback, progress : optional
        As in `pboost.shards.continue_fit`.

    Returns
    -------
    DecisionGraph or StagewiseModel
        What ``pboost.continue_fit(model, pboost.bin_columns(X, ...), y)`` returns of all rows in
        one table, bit for bit, whatever the partitions, the workers, and which of them are lost
        meanwhile.

    Raises
    ------
    ValueError, TypeError, RuntimeError, ImportError
        As `pboost.shards.continue_fit` and `pboost.dask.fit_adaboost` do.
    NotImplementedError
        For what `pboost.shards.continue_fit` does not implement, and sums that hold out a share of
        the rows.

    Notes
    -----
    Graphs go on where thresholds are edges of bins, as they are of the rows of the fit.

    Examples
    --------
    >>> longer = pboost.dask.continue_fit(model, X, y, rounds=50)  # doctest: +SKIP
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
    table: dict[str, Any] = {
        "sample_weight": sample_weight,
        "max_bins": max_bins,
        "edges": edges,
        "weighted_edges": weighted_edges,
    }
    bar = partial(with_bar, callback, progress)
    if isinstance(model, StagewiseModel):
        return continue_dask_sum(model, X, y, **own, **table, rng=rng, bar=bar)
    return continue_dask_graph(model, X, y, **own, **table, bar=bar)
