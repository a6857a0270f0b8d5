"""Dask collections: their rows as a source of rows, and lazy predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pboost.data.columns.columns import MAX_BINS
from pboost.data.columns.making import BinEdges
from pboost.data.row_source import RELEASE
from pboost.distributed.dask_engine import DaskEngine, check_version, dask_module, gathered
from pboost.distributed.engines import Engine
from pboost.distributed.partitions import PartitionBinning, PartitionedRows, read_rows
from pboost.models.base import Model
from pboost.models.base import decision_function as decisions_of_rows
from pboost.models.base import predict as predict_rows
from pboost.models.base import predict_proba as probabilities_of_rows

#: What a builder that takes rows of this process is given instead.
HERE = "pass rows of this process to the builder itself"


class Cluster:
    """The workers of a Dask cluster, which run tasks where their partitions are."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a task."""
        return self._client.submit(_run, RELEASE, task, *arguments, pure=False)

    def results(self, submitted: Mapping[int, Any]) -> list[Any]:
        """Return the results of tasks by partition; of those that fail the first raises."""
        return gathered(self._client, submitted)

    def engine(self, inputs: Mapping[int, Any], kind: type[Any], n_threads: int | None) -> Engine:
        """Return an engine whose shards are held by workers, which use all their threads."""
        return DaskEngine(self._client, inputs, kind)


def _run(version: str, task: Callable[..., Any], *arguments: Any) -> Any:
    check_version(version)
    return task(*arguments)


def rows(
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    max_bins: int = MAX_BINS,
    bin_edges: BinEdges = "sample",
    weighted_bin_edges: bool = False,
    keep_values: bool = False,
) -> PartitionedRows:
    """Return the rows of Dask collections, which builders take as `X`; they stay on their workers.

    Parameters
    ----------
    X : dask.array.Array of shape (n, d), dask.dataframe.DataFrame, or list of delayed tables
        Numbers and categories, some of which may be missing; levels are those of all partitions.
        Partitions may be empty, or hold rows of one class only; their lengths need not be known.
    y : dask.array.Array of shape (n,), dask.dataframe.Series, or list
        Labels, or targets of a regression, in partitions as those of X.
    sample_weight : dask.array.Array of shape (n,), dask.dataframe.Series, or list, optional
        Weights >= 0 of the rows, in the same partitions.
    max_bins, bin_edges, weighted_bin_edges, keep_values : optional
        Bins of the features, as in `pboost.partitions`.

    Returns
    -------
    PartitionedRows
        A row source, held by the cluster of the current client as long as it is referred to.

    Raises
    ------
    TypeError
        If `X`, `y` or `sample_weight` is no collection of Dask, or the client is asynchronous.
    ValueError
        If the partitions differ in number, or are not as in `pboost.partitions`; or without a
        client.
    RuntimeError
        If the client is not running, the cluster has no workers, or a worker has another release.
    ImportError
        Without Dask: ``pip install "pboosting[dask]"``.

    Notes
    -----
    The rows are read and binned once, by tasks on the workers that have them. During a fit an actor
    on each worker answers for its partitions; an actor that is lost with its worker is made again
    elsewhere, with the same result.

    Examples
    --------
    >>> import dask.array as da  # doctest: +SKIP
    >>> from distributed import Client  # doctest: +SKIP
    >>> with Client() as client:  # doctest: +SKIP
    ...     X = da.random.random((100_000, 20), chunks=(25_000, 20))
    ...     rows = pboost.dask.rows(X, (X[:, 0] > X[:, 1]).astype(int))
    ...     model = pb.fit_adaboost(rows, n_estimators=50)
    """
    client = _client()
    options = PartitionBinning.checked(
        max_bins, bin_edges, weighted_bin_edges, keep_values, sample_weight is not None
    )
    columns = _delayed("X", X, 2)
    inputs = [columns, _delayed("y", y, 1, len(columns))]
    if sample_weight is not None:
        inputs.append(_delayed("sample_weight", sample_weight, 1, len(columns)))
    # At once, so that what collections share is computed once.
    flat = client.compute([part for parts in inputs for part in parts], optimize_graph=False)
    n = len(columns)
    futures = [flat[k : k + n] for k in range(0, len(flat), n)]
    if sample_weight is None:
        futures.append([None] * n)
    parts = list(zip(*futures, strict=True))
    return read_rows(Cluster(client), parts, sample_weight is not None, options)


def _client() -> Any:
    """Return the current client, which runs."""
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


def _delayed(name: str, collection: Any, ndim: int, n: int | None = None) -> list[Any]:
    """Return the partitions of a collection as delayed values, n of them if it is given."""
    if isinstance(collection, list | tuple):
        parts = [_one_delayed(name, k, part) for k, part in enumerate(collection)]
    else:
        _check_collection(name, collection, ndim)
        if ndim == 2 and hasattr(collection, "rechunk"):
            collection = collection.rechunk({1: -1})
        # Optimized alone, collections that were split of one have other partitions.
        delayed = collection.to_delayed(optimize_graph=False)
        parts = delayed.ravel().tolist() if isinstance(delayed, np.ndarray) else list(delayed)
    if not parts:
        raise ValueError(f"{name}: expected one partition or more, got none")
    if n is not None and len(parts) != n:
        raise ValueError(
            f"{name}: expected {n} partitions, as in X, got {len(parts)}; give both the same "
            "chunks, by rechunk or repartition"
        )
    return parts


def _one_delayed(name: str, number: int, part: Any) -> Any:
    if not isinstance(part, dask_module("dask.delayed").Delayed):
        raise TypeError(
            f"{name}: expected delayed values in a list of partitions, got "
            f"{type(part).__name__} in partition {number}; {HERE}, as pb.partitions(X, y)"
        )
    return part


def _check_collection(name: str, collection: Any, ndim: int) -> None:
    is_dask = dask_module("dask").is_dask_collection(collection)
    if not (is_dask and hasattr(collection, "to_delayed")):
        raise TypeError(
            f"{name}: expected a Dask array or frame, got {type(collection).__name__}; {HERE}"
        )
    if collection.ndim != ndim:
        raise ValueError(
            f"{name}: expected {ndim} dimension{'s' if ndim > 1 else ''}, got {collection.ndim}"
        )


# Predictions


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
        The predicted class or number of each row; computed when it is needed. A series has the
        index of the frame.

    Raises
    ------
    TypeError
        If `X` is no collection of Dask.
    ImportError
        Without Dask: ``pip install "pboosting[dask]"``.

    Examples
    --------
    >>> model = pb.fit_adaboost(pboost.dask.rows(X, y))  # doctest: +SKIP
    >>> (pboost.dask.predict(model, X) == y).mean().compute()  # doctest: +SKIP
    """
    classes = getattr(model, "classes", None)
    dtype = np.dtype(float) if classes is None else classes.dtype
    return _lazy(predict_rows, model, X, dtype, None)


def predict_proba(model: Model, X: Any) -> Any:
    """Return the class probabilities for a Dask array or frame, lazily.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : dask.array.Array of shape (n, d), or dask.dataframe.DataFrame
        Features, as `pboost.predict` takes them.

    Returns
    -------
    dask.array.Array of shape (n, J), or dask.dataframe.DataFrame
        The probability of each class; a frame has the classes as columns, and the index of `X`.

    Raises
    ------
    TypeError
        If `X` is no collection of Dask, or the model predicts numbers.
    ImportError
        Without Dask: ``pip install "pboosting[dask]"``.

    Examples
    --------
    >>> pboost.dask.predict_proba(model, X).compute().shape  # doctest: +SKIP
    (100000, 2)
    """
    classes = getattr(model, "classes", None)
    if classes is None:
        raise TypeError("model: expected a classifier, got a model that predicts numbers")
    return _lazy(probabilities_of_rows, model, X, np.dtype(float), classes)


def decision_function(model: Model, X: Any) -> Any:
    """Return the decision values for a Dask array or frame, lazily.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : dask.array.Array of shape (n, d), or dask.dataframe.DataFrame
        Features, as `pboost.predict` takes them.

    Returns
    -------
    dask.array.Array of shape (n,) or (n, J), or dask.dataframe.Series or DataFrame
        Decision values as `pboost.decision_function` returns them; with more than two classes one
        for each.

    Raises
    ------
    TypeError
        If `X` is no collection of Dask.
    ImportError
        Without Dask: ``pip install "pboosting[dask]"``.

    Examples
    --------
    >>> pboost.dask.decision_function(model, X).compute().shape  # doctest: +SKIP
    (100000,)
    """
    classes = getattr(model, "classes", None)
    many = classes if classes is not None and len(classes) > 2 else None
    return _lazy(decisions_of_rows, model, X, np.dtype(float), many)


def _lazy(function: Callable[..., Any], model: Any, X: Any, dtype: Any, columns: Any) -> Any:
    """Return what a function returns of each partition; `columns` names those of a matrix."""
    _check_collection("X", X, 2)
    shape = (0,) if columns is None else (0, len(columns))
    none = np.empty(shape, dtype=dtype)
    arguments = function, model, none, columns
    if hasattr(X, "rechunk"):
        X = X.rechunk({1: -1})
        more: dict[str, Any] = {"drop_axis": 1}
        if columns is not None:
            more = {"chunks": (X.chunks[0], (len(columns),))}
        return X.map_blocks(_of_block, *arguments, dtype=dtype, meta=none, **more)
    pandas = dask_module("pandas")
    meta = pandas.Series(none) if columns is None else pandas.DataFrame(none, columns=columns)
    return X.map_partitions(_of_frame, *arguments, meta=meta)


def _of_block(rows: Any, function: Any, model: Any, none: Any, columns: Any) -> Any:
    return function(model, rows) if len(rows) else none


def _of_frame(frame: Any, function: Any, model: Any, none: Any, columns: Any) -> Any:
    pandas = dask_module("pandas")
    result = _of_block(frame, function, model, none, columns)
    if columns is None:
        return pandas.Series(result, index=frame.index)
    return pandas.DataFrame(result, index=frame.index, columns=columns)
