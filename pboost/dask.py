"""Fit models to Dask collections and predict on them (extra ``dask``)."""

from pboost.distributed.dask_rows import decision_function, predict, predict_proba, rows

__all__ = ["decision_function", "predict", "predict_proba", "rows"]
