"""Rows sent through a graph node by node, each node seeing only the rows that arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs.functions import Oracles
from pboost.data.read.convert import Rows
from pboost.models.base import Model
from pboost.models.checked_numbers import MOST_SUM
from pboost.models.new_rows import input_values, match_rows
from pboost.models.nodes import OUT, Graph, at_start
from pboost.values import FloatArray

#: Rows, as positions or as a slice.
Here: TypeAlias = Any
#: Returns whether rows take exit 1 of a node.
Take: TypeAlias = Callable[[int, Here], NDArray[np.bool_]]


def goes_right(value: Any, threshold: Any) -> Any:
    """Return whether values belong to exit 1; those at the threshold, and NaN, belong to exit 0."""
    return value > threshold


def passages(model: Graph, n: int, take: Take) -> Iterator[tuple[Here, NDArray[np.bool_]]]:
    """Send n rows through a graph; yield, for each node, the rows that arrive and their answers."""
    # Rows that have arrived at nodes to come; a slice where it is all of them, which is faster.
    waiting: dict[int, list[Here]] = {0: [slice(None)]}
    for node in range(model.n_nodes):
        parts = waiting.pop(node)
        here = parts[0] if len(parts) == 1 else np.concatenate(parts)
        above = take(node, here)
        below_to, above_to = model.next[node].tolist()
        if below_to == above_to:
            waiting.setdefault(below_to, []).append(here)
        else:
            rows = np.arange(n)[here]
            waiting.setdefault(below_to, []).append(rows[~above])
            waiting.setdefault(above_to, []).append(rows[above])
        waiting.pop(OUT, None)
        yield here, above


def hard_exits(model: Graph, X: Any) -> tuple[int, Take]:
    """Return the number of rows, and what takes the exits on whose side they lie."""
    if asks_functions(model):
        rows = match_rows(model, X)
        n, value = rows.n_rows, _answers(model, rows)
    else:
        values = input_values(model, X)
        n, value = len(values), lambda node, here: values[here, model.feature[node]]
    return n, lambda node, here: exits(model, node, value(node, here))


def exits(model: Graph, node: int | NDArray[np.intp], value: FloatArray) -> NDArray[np.bool_]:
    """Return whether rows take exit 1 of a node, given what it compares."""
    above: NDArray[np.bool_] = goes_right(value, model.threshold[node])
    return above if model.sides is None else above | (np.isnan(value) & (model.sides[node] > 0))


def asks_functions(model: Model) -> bool:
    """Return whether the nodes of a model are functions of a row."""
    return isinstance(model.inputs, Oracles)


def functions_of(model: Graph) -> Oracles:
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


def _answers(
    model: Graph, X: Rows, rng: np.random.Generator | None = None
) -> Callable[[int, Here], FloatArray]:
    """Return what asks the function of a node about rows."""
    functions, every = functions_of(model), np.arange(X.n_rows)
    return lambda node, here: functions.value(int(model.feature[node]), X, every[here], rng)


def _drawn_exits(model: Graph, X: Rows, rng: np.random.Generator) -> Take:
    """Return what takes exits at random: as functions answer, or as their probabilities say."""
    answers = _answers(model, X, rng)
    is_probability = model.is_estimated and not functions_of(model).is_random

    def take(node: int, here: Here) -> NDArray[np.bool_]:
        value = answers(node, here)
        if not is_probability:
            side: NDArray[np.bool_] = goes_right(value, model.threshold[node])
            if model.answer is None:
                return side
            value = model.answer[node, side.astype(np.intp), 0]
        return rng.random(len(value)) < value

    return take


def walk_functions(model: Graph, X: Any) -> tuple[FloatArray, FloatArray]:
    """Return decision values and numbers of functions asked on the hard route."""
    n, take = hard_exits(model, X)
    score, count = at_start(model, n), np.zeros(n)
    for node, (here, above) in enumerate(passages(model, n, take)):
        score[here] += model.vote[node, above.astype(np.intp)]
        count[here] += 1
    return score, count


def sample_functions(model: Graph, X: Any, rng: np.random.Generator, draws: int) -> FloatArray:
    """Return the mean decision value of each row over walks that ask anew."""
    rows = match_rows(model, X)
    take = _drawn_exits(model, rows, rng)
    scale, vote, bias = scaled_votes(model, draws)
    total = np.zeros(rows.n_rows)
    for _ in range(draws):
        for node, (here, above) in enumerate(passages(model, rows.n_rows, take)):
            total[here] += vote[node, above.astype(np.intp)]
    return (bias + total / draws) * scale


def scaled_votes(model: Graph, draws: int) -> tuple[float, FloatArray, float]:
    """Return a power of two, and votes and bias in units of it that so many walks can add up."""
    scale = 1.0
    with np.errstate(over="ignore"):
        if np.abs(model.vote).max(axis=1, initial=0.0).sum() * draws > MOST_SUM:
            scale = 2.0 ** draws.bit_length()
    return scale, model.vote / scale, model.bias / scale
