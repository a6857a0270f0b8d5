"""Fits and predictions on Dask collections, where their rows lie (extra ``dask``)."""

from pboost.ensembles.dask_continuation import continue_fit
from pboost.ensembles.dask_fits import (
    fit_adaboost,
    fit_boosted_tree,
    fit_cart,
    fit_forest,
    fit_matryoshka,
    fit_sbpmt,
    fit_stagewise,
    predict,
)

__all__ = [
    "continue_fit",
    "fit_adaboost",
    "fit_boosted_tree",
    "fit_cart",
    "fit_forest",
    "fit_matryoshka",
    "fit_sbpmt",
    "fit_stagewise",
    "predict",
]
