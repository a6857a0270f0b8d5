"""Fits and predictions on collections of Dask, where their rows lie.

See `pboost.boosting.dask_fits`, `pboost.trees.dask_cart`, `dask_forest` and `dask_sums`, and
`pboost.probit.dask_sbpmt`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pboost.boosting.dask_fits import fit_adaboost, fit_boosted_tree, fit_matryoshka
from pboost.growth.dask_places import dask_module
from pboost.growth.dask_tables import partitions
from pboost.models.base import Model
from pboost.models.base import predict as predict_rows
from pboost.probit.dask_sbpmt import fit_sbpmt
from pboost.trees.dask_cart import fit_cart
from pboost.trees.dask_forest import fit_forest
from pboost.trees.dask_sums import fit_stagewise

__all__ = [
    "fit_adaboost",
    "fit_boosted_tree",
    "fit_cart",
    "fit_forest",
    "fit_matryoshka",
    "fit_sbpmt",
    "fit_stagewise",
    "predict",
]


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
        Without Dask: ``pip install "pboosting[dask]"``.

    Examples
    --------
    >>> model = pboost.dask.fit_adaboost(X, y)  # doctest: +SKIP
    >>> (pboost.dask.predict(model, X) == y).mean().compute()  # doctest: +SKIP
    """
    partitions("X", X, 2)
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
