"""Fits and predictions on collections of Dask, where their rows lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pboost.boosting.shards import Options
from pboost.data.columns import MAX_BINS
from pboost.data.convert import Features
from pboost.data.engines import RELEASE
from pboost.data.part_bins import shared_table
from pboost.data.part_tasks import (
    About,
    about,
    bins_of,
    code_part,
    ends_of,
    given_part,
    least_hashes,
    merged_hashes,
    read_part,
    rows_of_edges,
    whole_bins,
)
from pboost.data.parts import Parts, check_any_weight, shared_labels
from pboost.data.sampled_bins import SAMPLE_ROWS
from pboost.growth.dask_places import DaskPlaces, check_version, dask_module
from pboost.growth.step import Callback
from pboost.models.base import Model
from pboost.models.base import predict as predict_rows
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Exact, Observation
from pboost.threads import Workers
from pboost.values import Progress, check_integer
from pboost.values.options import builder
from pboost.weak.base import Weak
from pboost.weak.shards import Shard
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
    callback: Callback | None = None,
    progress: Progress = False,
) -> DecisionGraph:
    """Fit AdaBoost to a Dask array or frame, where it lies; the model is that of one table.

    Parameters
    ----------
    X : dask.array.Array of shape (n, d), or dask.dataframe.DataFrame
        Numbers, some of which may be missing. Partitions may be empty, or hold rows of one class
        only; their lengths need not be known.
    y : dask.array.Array of shape (n,), or dask.dataframe.Series
        Labels, in partitions as those of X; two values in all.
    rounds, weak, votes, observation, smoothing, learning_rate, callback, progress : optional
        As in `pboost.shards.fit_adaboost`.
    sample_weight : dask.array.Array of shape (n,), or dask.dataframe.Series, optional
        Weights >= 0, in partitions as those of X.
    max_bins : int
        Bins per column, 2 to 256, as in `pboost.shards.bin_columns`.

    Returns
    -------
    DecisionGraph
        What ``pboost.fit_adaboost(pboost.bin_columns(X, max_bins=max_bins), y)`` returns of all
        rows in one table, bit for bit, whatever the partitions, the workers, and which of them are
        lost meanwhile.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described, or there is no client.
    RuntimeError
        If the client is closed, a worker has another release of pboost, a partition cannot be had
        any more, or no worker answers for one within ten minutes.
    NotImplementedError
        For categories, and what `pboost.shards.fit_adaboost` does not implement.
    ImportError
        Without Dask: ``pip install "pboost[dask]"``.

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
    max_bins = check_integer("max_bins", max_bins, least=2, most=MAX_BINS)
    client = _client()
    columns = _partitions("X", X, 2)
    labels = _partitions("y", y, 1, len(columns))
    weights = None
    if sample_weight is not None:
        weights = _partitions("sample_weight", sample_weight, 1, len(columns))
    with Workers(1) as workers:
        parts, given = _prepared(client, columns, labels, weights, max_bins, workers)
        with DaskPlaces(client, given, Shard) as engine:
            return options.fit(parts, engine, workers)


def _client() -> Any:
    """Return the client that is there, which runs."""
    distributed = dask_module("distributed")
    try:
        client = distributed.get_client()
    except ValueError:
        raise ValueError(
            "expected a client of Dask, there is none; distributed.Client() starts a cluster here"
        ) from None
    if client.status != "running":
        raise RuntimeError(f"expected a client of Dask that runs, got one that is {client.status}")
    if client.asynchronous:
        raise TypeError("expected a client of Dask that is not asynchronous")
    return client


def _partitions(name: str, collection: Any, ndim: int, n: int | None = None) -> list[Any]:
    """Return the partitions of a collection, which has n of them."""
    collections = dask_module("dask")
    if not (collections.is_dask_collection(collection) and hasattr(collection, "to_delayed")):
        raise TypeError(
            f"{name}: expected a Dask array or frame, got {type(collection).__name__}; rows that "
            "are here go to pboost.fit_adaboost"
        )
    if collection.ndim != ndim:
        raise ValueError(
            f"{name}: expected {ndim} dimension{'s' if ndim > 1 else ''}, got {collection.ndim}"
        )
    if ndim == 2 and hasattr(collection, "rechunk"):
        collection = collection.rechunk({1: -1})
    found = collection.to_delayed()
    found = found.ravel().tolist() if isinstance(found, np.ndarray) else list(found)
    if n is not None and len(found) != n:
        raise ValueError(
            f"{name}: expected {n} partitions, as in X, got {len(found)}; give both the same "
            "chunks, by rechunk or repartition"
        )
    return found


def _prepared(
    client: Any,
    columns: Sequence[Any],
    labels: Sequence[Any],
    weights: Sequence[Any] | None,
    max_bins: int,
    workers: Workers,
) -> tuple[Parts, list[Any]]:
    """Return what is known of all partitions, and futures of what their shards are made of."""

    def each(function: Any, parts: Sequence[Any], *others: Any) -> list[Any]:
        return [client.submit(function, part, *others, pure=False) for part in parts]

    given = zip(columns, labels, weights or [None] * len(columns), strict=True)
    read = [
        client.submit(_read, RELEASE, k, *_futures(client, part), weights is not None,
                      pure=False)
        for k, part in enumerate(given)
    ]  # fmt: skip
    known: list[About] = client.gather(each(about, read))
    features = Features(
        known[0].features.values, known[0].features.names,
        shared_table([part.features for part in known]),
    )  # fmt: skip
    values = shared_labels([part.labels for part in known], "")
    check_any_weight(any(part.has_weight for part in known))
    rows = [part for part, what in zip(read, known, strict=True) if what.n_rows]
    greatest = None
    if sum(part.n_rows for part in known) > SAMPLE_ROWS:
        greatest = merged_hashes(client.gather(each(least_hashes, rows)))
    of_edges = client.gather(each(rows_of_edges, rows, greatest))
    bins = bins_of(of_edges, features, max_bins, greatest is not None, workers)
    one = bins.select(np.zeros(1, dtype=np.int32))
    coded = each(code_part, rows, one)
    if greatest is not None:
        one = whole_bins(one, client.gather(each(ends_of, coded)))
    is_weighed = None if weights is None else list[Any]()
    return Parts([one], values, [], is_weighed), each(given_part, coded, one, values)


def _futures(client: Any, part: Sequence[Any]) -> list[Any]:
    """Return the futures of delayed partitions, and None as it is."""
    return [None if one is None else client.compute(one) for one in part]


def _read(version: str, *arguments: Any) -> Any:
    check_version(version)
    return read_part(*arguments)


def predict(model: Model, X: Any) -> Any:
    """Return the predictions for a Dask array or frame, lazily.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : dask.array.Array of shape (n, d), or dask.dataframe.DataFrame
        Features, as `pboost.predict` takes them.

    Returns
    -------
    dask.array.Array of shape (n,), or dask.dataframe.Series
        What `pboost.predict` returns of each partition, when it is computed; a series has the index
        of the frame.

    Raises
    ------
    TypeError
        If `X` is no collection of Dask.
    ImportError
        Without Dask: ``pip install "pboost[dask]"``.

    Examples
    --------
    >>> model = pboost.dask.fit_adaboost(X, y)  # doctest: +SKIP
    >>> (pboost.dask.predict(model, X) == y).mean().compute()  # doctest: +SKIP
    """
    _partitions("X", X, 2)
    labels = getattr(model, "labels", None)
    dtype = np.dtype(float) if labels is None else labels.dtype
    if hasattr(X, "rechunk"):
        none = np.empty(0, dtype=dtype)
        return X.rechunk({1: -1}).map_blocks(
            _predictions, model, dtype, dtype=dtype, drop_axis=1, meta=none
        )
    series = dask_module("pandas").Series
    return X.map_partitions(_series, model, dtype, meta=series(np.empty(0, dtype=dtype)))


def _predictions(rows: Any, model: Model, dtype: Any) -> Any:
    return predict_rows(model, rows) if len(rows) else np.empty(0, dtype=dtype)


def _series(frame: Any, model: Model, dtype: Any) -> Any:
    found = _predictions(frame, model, dtype)
    return dask_module("pandas").Series(found, index=frame.index)
