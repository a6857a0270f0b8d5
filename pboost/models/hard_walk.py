"""Rows that take the exits on whose side they lie, of models with nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import walk
from pboost.data.features import check_finite
from pboost.data.projections import Projections
from pboost.data.separators import Separators
from pboost.models.graph import DecisionGraph
from pboost.models.new_rows import input_values, match_columns
from pboost.models.node_walk import asks_functions, walk_functions
from pboost.threads import Workers, is_worth_threads, resolve_threads
from pboost.values import INT32_MAX, FloatArray

PLAIN = (np.dtype(np.float64), np.dtype(np.float32))
#: Nodes that a row is thought to pass at most; where it is more, signals are looked for less often.
MOST_STEPS = 4096


def walk_rows(model: DecisionGraph, X: Any, counting: bool) -> tuple[FloatArray, FloatArray]:
    """Return the decision values and, if counting, the numbers of nodes evaluated."""
    if model.inputs is not None and asks_functions(model):
        return walk_functions(model, X)
    values = _plain(model, X)
    n, d = values.shape
    projections = separators = None
    if model.inputs is not None:
        projections = model.inputs.arrays() if isinstance(model.inputs, Projections) else None
        separators = model.inputs.tables() if isinstance(model.inputs, Separators) else None
    width = d if projections is None else d + model.n_inputs
    score = np.empty(n)
    if n < walk.MANY and not counting:
        bad = walk.walk(
            values, model.feature, model.threshold, model.next, model.vote, model.is_chain,
            model.bias, d, 0, n, score, None, None, projections, separators,
        )  # fmt: skip
        if bad:
            check_finite(match_columns(model, X))
        return score, score
    count = np.empty(n) if counting else None

    def work(start: int, stop: int) -> int:
        bad: int = walk.walk(
            values, model.feature, model.threshold, model.next, model.vote, model.is_chain,
            model.bias, d, start, stop, score, np.empty(width * walk.TILE_ROWS), count, projections,
            separators,
        )  # fmt: skip
        return bad

    cells = width + min(model.n_nodes, MOST_STEPS)
    with Workers(resolve_threads(None, n * d) if is_worth_threads(n * d) else 1) as workers:
        if any(workers.run(work, n, walk.TILE_ROWS, cells)):
            check_finite(match_columns(model, X))
    return score, score if count is None else count


def _plain(model: DecisionGraph, X: Any) -> NDArray[Any]:
    """Return X as the walk reads it: the model's columns, or numbers that it cannot make of them.

    A matrix that has these columns is returned at once.
    """
    if model.inputs is not None and not isinstance(model.inputs, Projections | Separators):
        return input_values(model, X)
    if (
        type(X) is np.ndarray
        and X.dtype in PLAIN
        and X.shape[1:] == (model.n_features,)
        and len(X) <= INT32_MAX
    ):
        return X
    return match_columns(model, X).values
