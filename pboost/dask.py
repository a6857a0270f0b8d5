"""Rows of Dask collections to fit to, and predictions where they lie (extra ``dask``)."""

from pboost.distributed.dask_rows import decision_function, predict, predict_proba, rows

__all__ = ["decision_function", "predict", "predict_proba", "rows"]
