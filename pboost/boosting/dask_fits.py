"""Fits and predictions on collections of Dask, where their rows lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pboost.boosting.shard_continuation import PartsGoOn
from pboost.boosting.shard_matryoshka import MatryoshkaOptions
from pboost.boosting.shard_trees import BoostedOptions
from pboost.boosting.shard_validation import Held, held_out
from pboost.boosting.shards import Options
from pboost.data.columns import MAX_BINS
from pboost.data.parts import Parts
from pboost.data.splits import Validation
from pboost.growth.dask_tables import DaskTable, check_here, read_table
from pboost.growth.shard_trees import TreeShard
from pboost.growth.step import Callback
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Exact, Observation
from pboost.observation.gaussian_shards import reads_values
from pboost.threads import Workers
from pboost.values import Bar, Progress
from pboost.values.options import builder
from pboost.weak.base import Weak
from pboost.weak.stump_search import Stump

_DEFAULT_WEAK = Stump()
_EXACT = Exact()


@builder
def fit_adaboost(
    X: Any,
    y: Any,
    *,
    rounds: int = 200,
    weak: Weak = _DEFAULT_WEAK,
    votes: str = "domain",
    observation: Observation = _EXACT,
    smoothing: float = 1e-4,
    learning_rate: float = 1.0,
    sample_weight: Any = None,
    max_bins: int = MAX_BINS,
    edges: str = "sample",
    weighted_edges: bool = False,
    validation: Validation = None,
    patience: int | None = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> DecisionGraph:
    """Fit AdaBoost to a Dask array or frame, where it lies; the model is that of one table.

    Parameters
    ----------
    X : dask.array.Array of shape (n, d), or dask.dataframe.DataFrame
        Numbers and categories, some of which may be missing; levels are those of all partitions.
        Partitions may be empty, or hold rows of one class only; their lengths need not be known.
    y : dask.array.Array of shape (n,), or dask.dataframe.Series
        Labels, in partitions as those of X; two values in all.
    rounds, weak, votes, observation, smoothing, learning_rate, callback, progress : optional
        As in `pboost.shards.fit_adaboost`.
    sample_weight : dask.array.Array of shape (n,), or dask.dataframe.Series, optional
        Weights >= 0, in partitions as those of X.
    max_bins : int
        Bins per column, 2 to 256, as in `pboost.shards.bin_columns`.
    edges : {"sample", "exact"}
        Rows that make the edges of bins, as in `pboost.shards.bin_columns`: of more than 200,000
        some, or all; for the latter workers hold sorted columns meanwhile, 8 bytes a value.
    weighted_edges : bool
        Whether bins are of about equal weight, as those of ``pboost.bin_columns(X,
        sample_weight=...)``; by default they hold about as many rows each.
    validation : tuple, optional
        Rows by which growth ends early and the model is chosen, as in `pboost.fit_adaboost`:
        ``(X, y)`` or ``(X, y, sample_weight)``, which are here, and no collections.
    patience : int, optional
        As in `pboost.fit_adaboost`.

    Returns
    -------
    DecisionGraph
        What ``pboost.fit_adaboost(pboost.bin_columns(X, ...), y)`` returns of all rows in one
        table, bit for bit, whatever the partitions, the workers, and which of them are lost
        meanwhile.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described, or there is no client.
    RuntimeError
        If the client is closed, a worker has another release of pboost, a partition cannot be had
        any more, or no worker answers for one within ten minutes.
    NotImplementedError
        For what `pboost.shards.fit_adaboost` does not implement, and a share of the rows as
        `validation`.
    ImportError
        Without Dask: ``pip install "pboosting[dask]"``.

    Notes
    -----
    The client that is there is used. Partitions are read, binned and kept as codes by tasks of
    Dask; then a task for each connects to this process and answers for its rows in every round.
    Where a worker is lost Dask runs its tasks again elsewhere, and they take the cuts so far.

    Examples
    --------
    >>> import dask.array as da  # doctest: +SKIP
    >>> from distributed import Client  # doctest: +SKIP
    >>> with Client() as client:  # doctest: +SKIP
    ...     X = da.random.random((100_000, 20), chunks=(25_000, 20))
    ...     y = (X[:, 0] > X[:, 1]).astype(int)
    ...     model = pboost.dask.fit_adaboost(X, y, rounds=50)
    """
    options = Options.checked(
        rounds, weak, votes, observation, smoothing, learning_rate, callback, progress
    )
    given = X, y, sample_weight, max_bins, edges, weighted_edges
    table, parts, held = _read(given, options, validation, patience)
    with table.engine(options.kind, dtype=np.uint8) as engine, Workers(1) as workers:
        return options.fit(parts, engine, workers, held)


@builder
def fit_boosted_tree(
    X: Any,
    y: Any,
    *,
    nodes: int | None = 31,
    weak: Weak = _DEFAULT_WEAK,
    observation: Observation = _EXACT,
    growth: str = "largest-bound",
    target_certificate: float | None = None,
    max_depth: int | None = None,
    smoothing: float = 1e-4,
    learning_rate: float = 1.0,
    sample_weight: Any = None,
    max_bins: int = MAX_BINS,
    edges: str = "sample",
    weighted_edges: bool = False,
    validation: Validation = None,
    patience: int | None = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> DecisionGraph:
    """Fit a boosted tree to a Dask array or frame, where it lies; it is that of one table.

    Parameters
    ----------
    X, y, sample_weight, max_bins, edges, weighted_edges : optional
        Collections of Dask, as in `pboost.dask.fit_adaboost`.
    nodes, weak, observation, growth, target_certificate, max_depth : optional
        As in `pboost.shards.fit_boosted_tree`.
    smoothing, learning_rate : optional
        As in `pboost.shards.fit_boosted_tree`.
    validation, patience, callback, progress : optional
        As in `pboost.fit_boosted_tree`; validation rows are here, and no share is held out.

    Returns
    -------
    DecisionGraph
        What ``pboost.fit_boosted_tree(pboost.bin_columns(X, ...), y)`` returns of all rows in one
        table, bit for bit, whatever the partitions, the workers, and which of them are lost
        meanwhile.

    Raises
    ------
    ValueError, TypeError, RuntimeError, ImportError
        As `pboost.dask.fit_adaboost` does.
    NotImplementedError
        For what `pboost.shards.fit_boosted_tree` does not implement, and a share of the rows as
        `validation`.

    Notes
    -----
    As for `pboost.dask.fit_adaboost`. A partition is asked about two times for each node; where
    answers are uncertain it makes weights anew by the path to the exit that is asked about.

    Examples
    --------
    >>> import dask.array as da  # doctest: +SKIP
    >>> from distributed import Client  # doctest: +SKIP
    >>> with Client() as client:  # doctest: +SKIP
    ...     X = da.random.random((100_000, 20), chunks=(25_000, 20))
    ...     y = (X[:, 0] > X[:, 1]).astype(int)
    ...     model = pboost.dask.fit_boosted_tree(X, y, nodes=31)
    """
    options = BoostedOptions.checked(
        nodes,
        weak,
        growth,
        target_certificate,
        max_depth,
        smoothing,
        learning_rate,
        callback,
        progress,
        observation,
    )
    given = X, y, sample_weight, max_bins, edges, weighted_edges
    table, parts, held = _read(given, options, validation, patience)
    if options.observation.is_exact:
        places = table.engine(TreeShard, 2)
    else:
        places = table.engine(options.kind, dtype=np.uint8)
    with places as engine, Workers(1) as workers:
        return options.fit(parts, engine, workers, held)


@builder
def fit_matryoshka(
    X: Any,
    y: Any,
    *,
    shape: Sequence[int] | None = None,
    growth: str = "nested",
    nodes: int | None = None,
    collect: str = "additive",
    join: str = "sign",
    weak: Weak = _DEFAULT_WEAK,
    observation: Observation = _EXACT,
    smoothing: float = 1e-4,
    learning_rate: float | None = None,
    sample_weight: Any = None,
    max_bins: int = MAX_BINS,
    edges: str = "sample",
    weighted_edges: bool = False,
    validation: Validation = None,
    patience: int | None = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> DecisionGraph:
    """Fit a matryoshka to a Dask array or frame, where it lies; it is that of one table.

    Parameters
    ----------
    X, y, sample_weight, max_bins, edges, weighted_edges : optional
        Collections of Dask, as in `pboost.dask.fit_adaboost`.
    shape, growth, nodes, collect, join, weak, observation, smoothing, learning_rate : optional
        As in `pboost.shards.fit_matryoshka`.
    validation, patience, callback, progress : optional
        As in `pboost.fit_matryoshka`; validation rows are here, and no share is held out.

    Returns
    -------
    DecisionGraph
        What ``pboost.fit_matryoshka(pboost.bin_columns(X, ...), y)`` returns of all rows in one
        table, bit for bit, whatever the partitions, the workers, and which of them are lost
        meanwhile.

    Raises
    ------
    ValueError, TypeError, RuntimeError, ImportError
        As `pboost.dask.fit_adaboost` does.
    NotImplementedError
        For what `pboost.shards.fit_matryoshka` does not implement, and a share of the rows as
        `validation`.

    Notes
    -----
    As for `pboost.dask.fit_adaboost`. A task that begins again makes the weights at all ports anew.

    Examples
    --------
    >>> import dask.array as da  # doctest: +SKIP
    >>> from distributed import Client  # doctest: +SKIP
    >>> with Client() as client:  # doctest: +SKIP
    ...     X = da.random.random((100_000, 20), chunks=(25_000, 20))
    ...     y = (X[:, 0] > X[:, 1]).astype(int)
    ...     model = pboost.dask.fit_matryoshka(X, y, shape=(4, 4))
    """
    options = MatryoshkaOptions.checked(
        shape,
        growth,
        nodes,
        collect,
        join,
        weak,
        observation,
        smoothing,
        learning_rate,
        callback,
        progress,
    )
    given = X, y, sample_weight, max_bins, edges, weighted_edges
    table, parts, held = _read(given, options, validation, patience)
    with table.engine(options.kind, dtype=np.uint8) as engine, Workers(1) as workers:
        return options.fit(parts, engine, workers, held)


def continue_dask_graph(
    model: DecisionGraph,
    X: Any,
    y: Any,
    *,
    sample_weight: Any,
    max_bins: int,
    edges: str,
    weighted_edges: bool,
    bar: Bar,
    **options: Any,
) -> DecisionGraph:
    """Return the graph with more nodes; see `pboost.dask.continue_fit`."""
    more = PartsGoOn.checked(model, **options)
    given = X, y, sample_weight, max_bins, edges, weighted_edges
    table, parts, _ = _read(given, more, None, None)
    with table.engine(more.kind, dtype=np.uint8) as engine, Workers(1) as workers:
        return more.fit(parts, engine, workers, bar)


def _read(
    given: tuple[Any, ...], options: Any, validation: Any, patience: Any
) -> tuple[DaskTable, Parts, Held | None]:
    """Return the table of X, y, weights and options of bins, its parts, and rows held out."""
    check_here(validation)
    X, y, weight, max_bins, edges, weighted_edges = given
    keeps_values = reads_values(options.observation)
    table = read_table(X, y, weight, max_bins, "two labels", edges, weighted_edges, keeps_values)
    return table, *held_out(table.parts(), validation, patience, None, options.learner)
