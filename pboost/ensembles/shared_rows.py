"""Rows that are read, sorted or binned once for many fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pboost.data.columns.bin_and_sort import bin_columns, sort_columns
from pboost.data.columns.columns import BinnedColumns, SortedColumns
from pboost.data.read.check_xy import as_features, is_clean
from pboost.data.training_data import Search
from pboost.models.evaluate.match_input import match_names
from pboost.values import FloatArray
from pboost.values.options import options_within


def read_once(
    fit: Callable[..., Any], X: object, options: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return X and the options of `fit`, with X and validation rows read once for all fits.

    User functions and weak learners that evaluate rows receive X unchanged.
    """
    fit_options = options_within(fit, options)
    if fit_options is None or getattr(fit_options.get("weak_learner"), "has_answers", False):
        return X, dict(options)
    if not isinstance(X, SortedColumns | BinnedColumns):
        X = as_features(X, fit_options.get("categorical_features"))
    validation = options.get("validation")
    if not isinstance(validation, tuple | list) or len(validation) not in (2, 3):
        return X, dict(options)
    try:
        rows = match_names(X.names, X.n_features, validation[0], X.table)
    except (TypeError, ValueError) as error:
        raise type(error)(f"validation: {error}") from None
    return X, {**options, "validation": (rows, *validation[1:])}


def holds_out(options: Mapping[str, Any]) -> bool:
    """Return whether `fit` uses a validation fraction, so that bins cannot be shared."""
    return not isinstance(options.get("validation"), tuple | list | None)


def shared_columns(
    search: Search | None,
    X: object,
    options: Mapping[str, Any],
    *,
    shares_bins: bool,
    weights: FloatArray | None = None,
) -> Any:
    """Return X sorted or binned for many fits, or X itself if `search` does not support this.

    X is binned only if `shares_bins` is True. The bins depend on `weights`.
    """
    if search is None or isinstance(X, SortedColumns | BinnedColumns):
        return X
    features = as_features(X, options.get("categorical_features"))
    if not is_clean(features):
        return features
    n_threads = options.get("n_threads")
    if search.resolved(features.n_rows) == "exact":
        return sort_columns(features, copy=False, n_threads=n_threads)
    if not (shares_bins and search.takes_bins) or (weights is not None and not np.all(weights)):
        return X
    return bin_columns(
        features, max_bins=search.max_bins, sample_weight=weights, n_threads=n_threads
    )
