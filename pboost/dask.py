"""Fit models to Dask collections and predict on them (extra ``dask``)."""

from typing import TYPE_CHECKING, Any

from pboost.distributed.dask_rows import decision_function, predict, predict_proba, rows

__all__ = ["decision_function", "predict", "predict_proba", "rows"]

if not TYPE_CHECKING:  # a type checker would accept any name because of __getattr__

    def __getattr__(name: str) -> Any:
        fit = name if name.startswith("fit_") else "fit_gradient_boosting"
        raise AttributeError(
            f"module 'pboost.dask' has no attribute {name!r}; to fit a model to Dask collections, "
            f"pass their rows to the ordinary function: pb.{fit}(pboost.dask.rows(X, y))"
        )
