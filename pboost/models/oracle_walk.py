"""Evaluation of models whose weak classifiers are functions of a row, node by node."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.array_checks import MOST_SUM
from pboost.data.functions import Oracles
from pboost.data.rows import Rows
from pboost.models.base import Model
from pboost.models.graph import OUT, DecisionGraph
from pboost.models.new_rows import match_rows
from pboost.models.node_walk import Here, Take, passages
from pboost.values import FloatArray


def asks_functions(model: Model) -> bool:
    """Return whether the nodes of a model are functions of a row."""
    return isinstance(model.inputs, Oracles)


def hard_exits(model: DecisionGraph, X: Rows) -> Take:
    """Return what takes the exits on whose side rows lie."""
    functions, every = functions_of(model), np.arange(X.n_rows)

    def take(node: int, here: Here) -> NDArray[np.bool_]:
        return functions.value(int(model.feature[node]), X, every[here]) > model.threshold[node]

    return take


def drawn_exits(model: DecisionGraph, X: Rows, rng: np.random.Generator) -> Take:
    """Return what takes exits at random: as functions answer, or as their probabilities say."""
    functions, every = functions_of(model), np.arange(X.n_rows)

    def take(node: int, here: Here) -> NDArray[np.bool_]:
        value = functions.value(int(model.feature[node]), X, every[here], rng)
        if not functions.is_random and model.is_estimated:
            return rng.random(len(value)) < value
        side = value > model.threshold[node]
        if model.answer is None:
            return side
        drawn: NDArray[np.bool_] = (
            rng.random(len(value)) < model.answer[node, side.astype(np.intp), 0]
        )
        return drawn

    return take


def walk_functions(model: DecisionGraph, X: Any) -> tuple[FloatArray, FloatArray]:
    """Return decision values and numbers of functions asked on the hard route."""
    rows = match_rows(model, X)
    score, count = np.full(rows.n_rows, model.bias), np.zeros(rows.n_rows)
    steps = passages(model, rows.n_rows, hard_exits(model, rows))
    for node, (here, above) in enumerate(steps):
        score[here] += model.vote[node, above.astype(np.intp)]
        count[here] += 1
    return score, count


def sample_functions(
    model: DecisionGraph, X: Any, rng: np.random.Generator, draws: int
) -> FloatArray:
    """Return the mean decision value of each row over walks that ask anew."""
    rows = match_rows(model, X)
    scale, vote, bias = scaled_votes(model, draws)
    total = np.zeros(rows.n_rows)
    for _ in range(draws):
        steps = passages(model, rows.n_rows, drawn_exits(model, rows, rng))
        for node, (here, above) in enumerate(steps):
            total[here] += vote[node, above.astype(np.intp)]
    return (bias + total / draws) * scale


def scaled_votes(model: DecisionGraph, draws: int) -> tuple[float, FloatArray, float]:
    """Return a power of two, and votes and bias in units of it that so many walks can add up."""
    scale = 1.0
    with np.errstate(over="ignore"):
        if np.abs(model.vote).max(axis=1, initial=0.0).sum() * draws > MOST_SUM:
            scale = 2.0 ** draws.bit_length()
    return scale, model.vote / scale, model.bias / scale


def propagate_functions(model: DecisionGraph, X: Any) -> tuple[FloatArray, FloatArray]:
    """Return expected decision values, and reach (n, n_nodes), of estimators that are sampled."""
    rows = match_rows(model, X)
    functions, every = functions_of(model), np.arange(rows.n_rows)
    score, arrives = np.full(rows.n_rows, model.bias), np.zeros((rows.n_rows, model.n_nodes))
    arrives[:, :1] = 1.0
    for node in range(model.n_nodes):
        above = functions.value(int(model.feature[node]), rows, every)
        for exit_, q in enumerate((1 - above, above)):
            part = arrives[:, node] * q
            score += part * model.vote[node, exit_]
            to = model.next[node, exit_]
            if to != OUT:
                arrives[:, to] += part
    return score, arrives


def functions_of(model: DecisionGraph) -> Oracles:
    """Return the functions of a model that has them."""
    assert isinstance(model.inputs, Oracles)
    return model.inputs


def refuse_oracles(model: Model, what: str) -> None:
    """Raise ValueError if probabilities of answers are wanted that are not known."""
    if isinstance(model.inputs, Oracles) and model.inputs.is_random:
        raise ValueError(
            f"model: {what} needs the probabilities of the answers, which are not known for "
            'oracles; use route="hard" or route="sample"'
        )
