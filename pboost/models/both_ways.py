"""Trees whose rows go both ways where their value is missing: their mean, and words for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.models.sides import HALF
from pboost.values import FloatArray


def check_share(trees: Any, is_leaf: NDArray[np.bool_]) -> None:
    """Check the probabilities of the second child where values are missing."""
    missing, share = trees.missing, trees.share
    if share is None:
        return
    if missing is None or not ((share >= 0) & (share <= ~is_leaf)).all():
        raise ValueError("share: expected probabilities, 0 in leaves, and missing")
    if ((share > HALF) != missing).any():
        raise ValueError("missing: expected the child that share says is the likelier")


def over_both_ways(trees: Any, values: FloatArray) -> FloatArray:
    """Return the sums over trees of the expected values of rows (n, d)."""
    n, columns, value = len(values), trees.column, trees.value
    total = np.zeros((n, *value.shape[1:]))
    begins = np.repeat(trees.root[:-1], np.diff(trees.root))
    at: dict[int, tuple[NDArray[Any], FloatArray]] = {
        root: (np.arange(n), np.ones(n)) for root in trees.root[:-1].tolist()
    }
    for node in range(trees.n_nodes):  # parents first
        rows, chance = at.pop(node)
        if trees.children[node, 0] < 0:
            total[rows] += chance.reshape(-1, *(1,) * (total.ndim - 1)) * value[node]
            continue
        found = values[rows, columns[node]]
        above = trees.goes_to_second(found, np.full(len(rows), node)).astype(np.float64)
        above[np.isnan(found)] = trees.share[node]
        for child, part in zip(trees.children[node], (1 - above, above), strict=True):
            there = part > 0
            at[int(begins[node] + child)] = rows[there], (chance * part)[there]
    return total


def said_of_both(tests: list[str], share: float) -> list[str]:
    """Return the tests that lead to two children, and which part of the missing rows does so."""
    parts = 100 * (1 - share), 100 * share
    return [f"{test} or missing ({part:.3g} %)" for test, part in zip(tests, parts, strict=True)]
