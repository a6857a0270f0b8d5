"""Use Dask collections as a row source for builders, and predict on them lazily."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pboost.data.columns.bin_and_sort import BinEdges
from pboost.data.columns.columns import MAX_BINS
from pboost.data.row_source import RELEASE
from pboost.distributed.dask_engine import DaskEngine, check_version, dask_module, gathered
from pboost.distributed.engine import Engine
from pboost.distributed.partitions import PartitionBinning, PartitionedRows, read_rows
from pboost.models.base import Model
from pboost.models.base import decision_function as decisions_of_rows
from pboost.models.base import predict as predict_rows
from pboost.models.base import predict_proba as probabilities_of_rows

#: Hint for data that is not a Dask collection.
HERE = "pass data of this process directly to the builder"


class Cluster:
    """The workers of a Dask cluster, which run each task where its partition is stored."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Submit a task and return its future."""
        return self._client.submit(_run, RELEASE, task, *arguments, pure=False)

    def results(self, submitted: Mapping[int, Any]) -> list[Any]:
        """Return the results by partition, or raise the error of the first task that failed."""
        return gathered(self._client, submitted)

    def engine(self, inputs: Mapping[int, Any], kind: type[Any], n_threads: int | None) -> Engine:
        """Return an engine that uses all threads of the workers."""
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
    """Return a row source for Dask collections, which builders accept as `X`.

    Parameters
    ----------
    X : dask.array.Array of shape (n, d), dask.dataframe.DataFrame, or list of delayed tables
        Features, numeric or categorical. Missing values and empty partitions are allowed, and the
        lengths of the partitions need not be known. The categories of all partitions are merged.
    y : dask.array.Array of shape (n,), dask.dataframe.Series, or list
        Target, in the same partitions as `X`: classes or, for a regression, numbers. A partition
        may have rows of only one class.
    sample_weight : dask.array.Array of shape (n,), dask.dataframe.Series, or list, optional
        Sample weights >= 0, in the same partitions as `X`.
    max_bins, bin_edges, weighted_bin_edges, keep_values : optional
        Bins of the features, see `pboost.partitions`.

    Returns
    -------
    PartitionedRows
        A row source. The cluster of the current client keeps the rows as long as this object
        exists.

    Raises
    ------
    TypeError
        If `X`, `y` or `sample_weight` is not a Dask collection, or the client is asynchronous.
    ValueError
        If there is no client, the numbers of partitions differ, or a partition is invalid as
        described in `pboost.partitions`.
    RuntimeError
        If the client is not running, the cluster has no workers, or a worker has another version of
        pboost.
    ImportError
        If Dask is not installed: ``pip install "pboosting[dask]"``.

    Notes
    -----
    Tasks read and bin the rows once, on the workers that store them. The rows stay there.
    During a fit, an actor on each worker processes its partitions. If an actor is lost with its
    worker, it is created again on another worker, with the same result.

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
    # Compute all collections at once, so that shared tasks run once.
    flat = client.compute([part for parts in inputs for part in parts], optimize_graph=False)
    n = len(columns)
    futures = [flat[k : k + n] for k in range(0, len(flat), n)]
    if sample_weight is None:
        futures.append([None] * n)
    parts = list(zip(*futures, strict=True))
    return read_rows(Cluster(client), parts, sample_weight is not None, options)


def _client() -> Any:
    """Return the current client and check that it is running."""
    distributed = dask_module("distributed")
    try:
        client = distributed.get_client()
    except ValueError:
        raise ValueError(
            "expected a running Dask client, found none; create one with distributed.Client()"
        ) from None
    if client.status != "running":
        raise RuntimeError(f"expected a running Dask client, got status {client.status!r}")
    if client.asynchronous:
        raise TypeError("expected a synchronous Dask client, got an asynchronous one")
    return client


def _delayed(name: str, collection: Any, ndim: int, n: int | None = None) -> list[Any]:
    """Check the number of partitions of a collection, and return them as delayed values."""
    if isinstance(collection, list | tuple):
        parts = [_one_delayed(name, k, part) for k, part in enumerate(collection)]
    else:
        _check_collection(name, collection, ndim)
        if ndim == 2 and hasattr(collection, "rechunk"):
            collection = collection.rechunk({1: -1})
        # Optimization could give collections with a common source different partitions.
        delayed = collection.to_delayed(optimize_graph=False)
        parts = delayed.ravel().tolist() if isinstance(delayed, np.ndarray) else list(delayed)
    if not parts:
        raise ValueError(f"{name}: expected at least one partition, got none")
    if n is not None and len(parts) != n:
        raise ValueError(
            f"{name}: expected {n} partitions, as in X, got {len(parts)}; use rechunk or "
            "repartition to give both the same chunks"
        )
    return parts


def _one_delayed(name: str, number: int, part: Any) -> Any:
    if not isinstance(part, dask_module("dask.delayed").Delayed):
        raise TypeError(
            f"{name}: expected a list of delayed values, got "
            f"{type(part).__name__} in partition {number}; {HERE}, or to pb.partitions(X, y)"
        )
    return part


def _check_collection(name: str, collection: Any, ndim: int) -> None:
    is_dask = dask_module("dask").is_dask_collection(collection)
    if not (is_dask and hasattr(collection, "to_delayed")):
        raise TypeError(
            f"{name}: expected a Dask array or data frame, got {type(collection).__name__}; {HERE}"
        )
    if collection.ndim != ndim:
        raise ValueError(
            f"{name}: expected {ndim} dimension{'s' if ndim > 1 else ''}, got {collection.ndim}"
        )


# Predictions


def predict(model: Model, X: Any) -> Any:
    """Return lazy predictions for a Dask array or data frame.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : dask.array.Array of shape (n, d), or dask.dataframe.DataFrame
        Features, as in `pboost.predict`.

    Returns
    -------
    dask.array.Array of shape (n,), or dask.dataframe.Series
        The predicted class or target value of each row, computed on request. A series has the index
        of the data frame.

    Raises
    ------
    TypeError
        If `X` is not a Dask collection.
    ImportError
        If Dask is not installed: ``pip install "pboosting[dask]"``.

    Examples
    --------
    >>> model = pb.fit_adaboost(pboost.dask.rows(X, y))  # doctest: +SKIP
    >>> (pboost.dask.predict(model, X) == y).mean().compute()  # doctest: +SKIP
    """
    classes = getattr(model, "classes", None)
    dtype = np.dtype(float) if classes is None else classes.dtype
    return _lazy(predict_rows, model, X, dtype, None)


def predict_proba(model: Model, X: Any) -> Any:
    """Return lazy class probabilities for a Dask array or data frame.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : dask.array.Array of shape (n, d), or dask.dataframe.DataFrame
        Features, as in `pboost.predict`.

    Returns
    -------
    dask.array.Array of shape (n, J), or dask.dataframe.DataFrame
        The probability of each class. A data frame has the classes as columns and the index of `X`.

    Raises
    ------
    TypeError
        If `X` is not a Dask collection, or the model is a regression.
    ImportError
        If Dask is not installed: ``pip install "pboosting[dask]"``.

    Examples
    --------
    >>> pboost.dask.predict_proba(model, X).compute().shape  # doctest: +SKIP
    (100000, 2)
    """
    classes = getattr(model, "classes", None)
    if classes is None:
        raise TypeError(f"model: expected a classifier, got {type(model).__name__} for regression")
    return _lazy(probabilities_of_rows, model, X, np.dtype(float), classes)


def decision_function(model: Model, X: Any) -> Any:
    """Return lazy decision values for a Dask array or data frame.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : dask.array.Array of shape (n, d), or dask.dataframe.DataFrame
        Features, as in `pboost.predict`.

    Returns
    -------
    dask.array.Array of shape (n,) or (n, J), or dask.dataframe.Series or DataFrame
        Decision values as in `pboost.decision_function`: one per row for a binary target, one per
        class for a multiclass target.

    Raises
    ------
    TypeError
        If `X` is not a Dask collection.
    ImportError
        If Dask is not installed: ``pip install "pboosting[dask]"``.

    Examples
    --------
    >>> pboost.dask.decision_function(model, X).compute().shape  # doctest: +SKIP
    (100000,)
    """
    classes = getattr(model, "classes", None)
    many = classes if classes is not None and len(classes) > 2 else None
    return _lazy(decisions_of_rows, model, X, np.dtype(float), many)


def _lazy(function: Callable[..., Any], model: Any, X: Any, dtype: Any, columns: Any) -> Any:
    """Apply a function to each partition lazily. `columns` has the column names of a matrix."""
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
