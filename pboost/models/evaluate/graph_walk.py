"""Evaluation of graphs in Python, and under the observation model of training."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core import uncertain
from pboost.data.node_inputs.functions import Oracles
from pboost.data.read.convert import RowTable
from pboost.models.base import Model, Route, Sigma
from pboost.models.evaluate.match_input import (
    as_graph,
    classes_of_labels,
    input_values,
    match_rows,
    match_sigma,
)
from pboost.models.graph_arrays import CERTAIN, OUT, Graph, at_start
from pboost.models.schema import MOST_SUM
from pboost.threads import CELLS_PER_CALL, check_stop, run_ranges
from pboost.values import Array, FloatArray, TableLike, as_generator, check_integer

#: Rows, as an index array or as a slice.
RowIndex: TypeAlias = slice | NDArray[np.intp]
#: A function that returns whether rows take exit 1 of a node.
Take: TypeAlias = Callable[[int, RowIndex], NDArray[np.bool_]]
#: Usual bound on the path length of a row. It limits the work between checks for signals.
MOST_STEPS = 4096
#: Cost of the random numbers and exponentials at a node, in cells.
COST = 5
NO_TABLES, NONE = np.empty((0, 2, 2)), np.empty((0, 1))


def goes_right(value: Any, threshold: Any) -> Any:
    """Return a mask of the values that take exit 1. The threshold itself and NaN take exit 0."""
    return value > threshold


def passages(model: Graph, n: int, take: Take) -> Iterator[tuple[RowIndex, NDArray[np.bool_]]]:
    """Send n rows through a graph; yield the rows and their exits for each node."""
    # Rows that wait at later nodes. A slice stands for all rows, which is faster.
    waiting: dict[int, list[Any]] = {0: [slice(None)]}
    for node in range(model.n_nodes):
        parts = waiting.pop(node)
        arrived = parts[0] if len(parts) == 1 else np.concatenate(parts)
        above = take(node, arrived)
        below_to, above_to = model.next[node].tolist()
        if below_to == above_to:
            waiting.setdefault(below_to, []).append(arrived)
        else:
            rows = np.arange(n)[arrived]
            waiting.setdefault(below_to, []).append(rows[~above])
            waiting.setdefault(above_to, []).append(rows[above])
        waiting.pop(OUT, None)
        yield arrived, above


def so_far(model: Graph, n: int, take: Take) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield decision values and numbers of comparisons of n rows, initially and after each node.

    The same arrays are yielded each time.
    """
    score, count = at_start(model, n), np.zeros(n)
    yield score, count
    for node, (arrived, above) in enumerate(passages(model, n, take)):
        score[arrived] += model.vote[node, above.astype(np.intp)]
        count[arrived] += 1
        yield score, count


def hard_exits(model: Graph, X: TableLike) -> tuple[int, Take]:
    """Return the number of rows, and a function that returns their exits at a node."""
    if asks_functions(model):
        rows = match_rows(model, X)
        n, value = rows.n_rows, _answers(model, rows)
    else:
        values = input_values(model, X)
        n, value = len(values), lambda node, arrived: values[arrived, model.feature[node]]
    return n, lambda node, arrived: exits(model, node, value(node, arrived))


def exits(model: Graph, node: int | NDArray[np.intp], value: FloatArray) -> NDArray[np.bool_]:
    """Return whether rows with the given values take exit 1 of a node."""
    above: NDArray[np.bool_] = goes_right(value, model.threshold[node])
    return above if model.sides is None else above | (np.isnan(value) & (model.sides[node] > 0))


def asks_functions(model: Model) -> bool:
    """Return whether the nodes of a model call functions of a row."""
    return isinstance(model.inputs, Oracles)


def functions_of(model: Graph) -> Oracles:
    """Return the node functions of a model."""
    assert isinstance(model.inputs, Oracles)
    return model.inputs


def refuse_oracles(model: Model, what: str) -> None:
    """Raise ValueError if the model has annotators, whose answer probabilities are unknown."""
    if isinstance(model.inputs, Oracles) and model.inputs.is_random:
        raise ValueError(
            f"model: {what} requires the probabilities of answers, which are unknown for "
            'annotators (pboost.weak.oracle); use route="hard" or route="sample"'
        )


def _answers(
    model: Graph, X: RowTable, rng: np.random.Generator | None = None
) -> Callable[[int, RowIndex], FloatArray]:
    """Return a function that evaluates the function of a node for rows."""
    functions, every = functions_of(model), np.arange(X.n_rows)
    return lambda node, arrived: functions.value(int(model.feature[node]), X, every[arrived], rng)


def _drawn_exits(model: Graph, X: RowTable, rng: np.random.Generator) -> Take:
    """Return a function that draws random exits of rows at a node."""
    answers = _answers(model, X, rng)
    is_probability = model.is_estimated and not functions_of(model).is_random

    def take(node: int, arrived: RowIndex) -> NDArray[np.bool_]:
        value = answers(node, arrived)
        if not is_probability:
            side: NDArray[np.bool_] = goes_right(value, model.threshold[node])
            if model.answer is None:
                return side
            value = model.answer[node, side.astype(np.intp), 0]
        return rng.random(len(value)) < value

    return take


def walk_functions(model: Graph, X: TableLike) -> tuple[FloatArray, FloatArray]:
    """Return decision values and numbers of function calls on the hard route."""
    return deque(so_far(model, *hard_exits(model, X)), 1)[0]


def sample_functions(
    model: Graph, X: TableLike, rng: np.random.Generator, draws: int
) -> FloatArray:
    """Return the mean decision value of each row over random walks with new queries."""
    rows = match_rows(model, X)
    take = _drawn_exits(model, rows, rng)
    scale, vote, bias = scaled_votes(model, draws)
    total = np.zeros(rows.n_rows)
    for _ in range(draws):
        for node, (arrived, above) in enumerate(passages(model, rows.n_rows, take)):
            total[arrived] += vote[node, above.astype(np.intp)]
    return (bias + total / draws) * scale


def scaled_votes(model: Graph, draws: int) -> tuple[float, FloatArray, float]:
    """Return a power of two, and the votes and bias divided by it, so that sums cannot overflow."""
    scale = 1.0
    with np.errstate(over="ignore"):
        if np.abs(model.vote).max(axis=1, initial=0.0).sum() * draws > MOST_SUM:
            scale = 2.0 ** draws.bit_length()
    return scale, model.vote / scale, model.bias / scale


class WalkInputs(NamedTuple):
    """Inputs of nodes, answer probabilities, standard deviations, and classes of rows."""

    values: FloatArray
    answer: FloatArray
    noise: FloatArray
    label: NDArray[np.int32]

    def at(self, rows: slice) -> WalkInputs:
        """Return the inputs of some rows."""
        noise = self.noise[rows] if len(self.noise) > 1 else self.noise
        return WalkInputs(self.values[rows], self.answer, noise, self.label[rows])


def reach(
    model: Graph,
    X: TableLike,
    y: ArrayLike | None = None,
    *,
    sigma: float | ArrayLike | None = None,
) -> FloatArray:
    """Return the probability that each row reaches each node, under the observation model.

    Parameters
    ----------
    model : DecisionGraph
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    y : array_like of shape (n,), optional
        Class labels; required if the observation model depends on the class.
    sigma : float, or array_like of shape (d,) or (n, d), optional
        Standard deviations of the measurement errors, see `decision_function`.

    Returns
    -------
    ndarray of float64, shape (n, n_nodes)
        The probabilities, summed over the paths to a node. With an exact observation model, they
        are 1 for nodes on the path of a row and 0 for other nodes.

    Raises
    ------
    ValueError
        If the observation model depends on the class and `y` is None; if standard deviations are
        required and absent; or if the model queries annotators, whose answer probabilities are
        unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
    >>> model = pb.fit_boosted_tree(X, y, max_nodes=3, observation=pb.observation.flip(0.25))
    >>> pb.inspection.reach(model, X).round(3)[0].tolist()
    [1.0, 0.25, 0.188]
    """
    model = as_graph(model, "reach")
    refuse_oracles(model, "reach")
    asked = _asked(model, X, sigma, y)
    out = np.empty((len(asked.values), model.n_nodes))
    if out.size:
        _propagate(model, asked, out, NONE, NONE)
    return out


def expected_score(model: Graph, X: TableLike, sigma: Sigma) -> FloatArray:
    """Return the expected decision value of each row, (n,) or (n, J)."""
    refuse_oracles(model, 'route="expected"')
    return expectation(model, X, None, sigma)[0]


def expectation(
    model: Graph, X: TableLike, label: Array | None, sigma: Sigma
) -> tuple[FloatArray, FloatArray]:
    """Return the expected decision values (n,) or (n, J), and the expected exponential loss (n,).

    Multiclass losses are averaged over the classes. `label` contains the class codes of the rows;
    it may be None if the observation model does not depend on the class and no loss is needed.
    """
    asked = _asked(model, X, sigma, label=label)
    values, label = asked.values, asked.label
    bias = _by_vote(model.bias)
    score, loss = np.empty((2, len(values), model.n_votes))
    if not model.n_nodes:
        score[:] = bias
        positive = label == 1 if model.n_votes == 1 else label[:, None] == np.arange(model.n_votes)
        with np.errstate(over="ignore"):  # an infinite loss is correct
            loss[:] = np.exp(np.where(positive.reshape(loss.shape), -score, score))
    elif len(values):
        _propagate(model, asked, None, score, loss)
    if model.n_votes == 1:
        return score[:, 0], loss[:, 0]
    return score, loss.mean(axis=1)


def _by_vote(votes: object) -> FloatArray:
    """Return votes, or the bias, with a last axis for decision values."""
    votes = np.asarray(votes, dtype=np.float64)
    return votes if votes.ndim % 2 else votes[..., None]


def _propagate(
    model: Graph,
    asked: WalkInputs,
    reach: FloatArray | None,
    score: FloatArray,
    loss: FloatArray,
) -> None:
    """Fill `reach` (n, n_nodes) if it is not None, and `score` and `loss` if they are not empty."""
    vote, bias = _by_vote(model.vote), _by_vote(model.bias)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        rows = asked.at(part)
        into = np.empty((1, model.n_nodes)) if reach is None else reach[part]
        out = into, np.empty((model.n_nodes, model.n_votes)), score[part], loss[part]
        how = vote, rows.answer, rows.noise, rows.label, bias
        uncertain.propagate(rows.values, *model.arrays, *how, *out, model.sides)

    run_ranges(work, len(asked.values), cells=COST * model.n_nodes * model.n_votes)


def sampled_score(model: Graph, X: TableLike, route: Route) -> FloatArray:
    """Return the mean decision value of each row over random walks, (n,) or (n, J)."""
    draws, generator = check_integer("draws", route.draws, min_value=1), as_generator(route.rng)
    if asks_functions(model) and (functions_of(model).is_random or model.is_estimated):
        _classes(model, None, 0)
        return sample_functions(model, X, generator, draws)
    key = int(generator.integers(2**64, dtype=np.uint64))
    values, answer, noise, _ = _asked(model, X, route.sigma)
    total = np.zeros((len(values), model.n_votes))
    scale, vote, bias = scaled_votes(model, draws)
    vote = _by_vote(vote)
    cost = COST * model.n_votes * min(model.n_nodes, MOST_STEPS)
    at_once = max(1, CELLS_PER_CALL // max(cost, 1))

    def work(start: int, stop: int) -> None:
        for first in range(0, draws, at_once):
            check_stop()
            turns = first, min(first + at_once, draws), start, stop
            uncertain.sample(
                values, *model.arrays, vote, answer, noise, key, *turns, total, model.sides
            )

    run_ranges(work, len(values), cells=cost * min(draws, at_once))
    score: FloatArray = (_by_vote(bias) + total / draws) * scale
    return score[:, 0] if model.n_votes == 1 else score


def _asked(
    model: Graph,
    X: TableLike,
    sigma: Sigma,
    y: ArrayLike | None = None,
    label: Array | None = None,
) -> WalkInputs:
    """Return the `WalkInputs` of rows.

    Answer tables are empty for gaussian models, and if inputs are probabilities themselves.
    """
    if asks_functions(model) and model.is_estimated:
        values = input_values(model, X)
        return WalkInputs(
            values, NO_TABLES, np.empty((0, 0)), np.zeros(len(values), dtype=np.int32)
        )
    values, noise = input_values(model, X), match_sigma(model, X, sigma)
    if noise.size:
        _check_noise(model, values, noise)
    label = _classes(model, y, len(values)) if label is None else label
    return WalkInputs(values, _tables(model), noise, label.astype(np.int32))


def _check_noise(model: Graph, values: FloatArray, noise: FloatArray) -> None:
    """Raise ValueError if inputs, or their standard deviations, are not finite."""
    read = np.unique(model.feature)
    values, noise = values[:, read], noise[:, read]
    # Sums of features can overflow.
    known = np.isfinite(values) & np.isfinite(noise)
    if not (known if model.sides is None else known | np.isnan(values)).all():
        raise ValueError(
            "X, sigma: expected numbers for which the sums that nodes compare are finite"
        )


def _tables(model: Graph) -> FloatArray:
    """Return the answer probabilities of the model, an empty array if it is gaussian."""
    if model.answer is not None:
        return model.answer
    if model.sigma is not None:
        return NO_TABLES
    certain = np.repeat(CERTAIN[:, :1], max(2, model.n_votes), axis=1)
    return np.ascontiguousarray(np.broadcast_to(certain, (model.n_nodes, *certain.shape)))


def _classes(model: Graph, y: ArrayLike | None, n: int) -> Array:
    """Return the class of each row; zeros if the observation model does not depend on it."""
    if y is not None:
        return classes_of_labels(model, y, n)
    if model.needs_class:
        kind = model.settings.get("observation", {}).get("kind")
        # After continued training, the setting may only apply to later nodes.
        known = kind is not None and "continued" not in model.settings
        raise ValueError(
            f"model: its observation model{f' {kind!r}' if known else ''} depends on the class of "
            'a row, which is unknown; pass y to reach, or use route="hard"'
        )
    return np.zeros(n, dtype=np.int32)
