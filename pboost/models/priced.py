"""Which columns a model reads of a row, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.prices import PRICE_OPTIONS, Prices, read_prices
from pboost.values import IntArray


def prices_for(model: Any, prices: Any, groups: Any) -> Prices:
    """Return the prices that are given, or those that a model or one of its members knows."""
    if prices is None and groups is None:
        options = known_options(model)
    else:
        options = {**PRICE_OPTIONS, "prices": prices, "groups": groups}
    if options is None:
        raise ValueError(
            'prices: expected prices of columns with unit="price" for a model that was fitted '
            "without"
        )
    found = read_prices(options, model.feature_names, model.n_features)
    assert found is not None
    return found


def known_options(model: Any) -> Mapping[str, Any] | None:
    """Return the settings of a model, or of one of its members, that has prices."""
    settings = getattr(model, "settings", {})
    if settings.get("prices") is not None:
        return {**PRICE_OPTIONS, **settings}
    inner = getattr(model, "model", None)
    for member in (*getattr(model, "models", ()), *([] if inner is None else [inner])):
        found = known_options(member)
        if found is not None:
            return found
    return None


def columns_on_way(column: IntArray, children: IntArray, n_features: int) -> NDArray[np.bool_]:
    """Return which columns are compared on the way to each node (n_nodes, n_features).

    Nodes stand in preorder; `column` is negative in leaves, `children` (n_nodes, 2).
    """
    on_way = np.zeros((len(column), n_features), dtype=np.bool_)
    for node in np.flatnonzero(column >= 0).tolist():
        for child in children[node].tolist():
            on_way[child] = on_way[node]
            on_way[child, column[node]] = True
    return on_way


def mean_comparisons(trees: Any) -> float:
    """Return the mean number of comparisons of the rows that each tree was grown on, added up."""
    rows = trees.n_rows.astype(np.float64)
    of_root = np.repeat(rows[trees.root[:-1]], np.diff(trees.root))
    inner = trees.feature >= 0
    return float((rows[inner] / of_root[inner]).sum())
