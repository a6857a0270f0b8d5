"""Fits and predictions on Dask collections, where their rows lie (extra ``dask``)."""

from pboost.boosting.dask_fits import fit_adaboost, predict

__all__ = ["fit_adaboost", "predict"]
