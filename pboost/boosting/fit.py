"""What builders of graphs share: their common options and data, and early stopping.

Rows that growth does not see say which of the models on its way is the best.

What is monitored is the error of the predictions on the validation rows. Builders tell of each
node they open; rows are kept by the open exit at which they are, so that a node costs no more than
the rows that arrive at it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core.votes import VoteRule
from pboost.data.binned_values import lacks_values
from pboost.data.columns import MAX_BINS, to_fixed_point
from pboost.data.convert import Features
from pboost.data.node_inputs import GrownInputs
from pboost.data.prices import PRICE_OPTIONS
from pboost.data.subsets import in_set
from pboost.data.training import TrainingData
from pboost.growth.label_trees import LabelTrees
from pboost.growth.soft_label_trees import label_trees
from pboost.growth.step import Callback, StepRecord, TreeLimits
from pboost.growth.validation import ValidationRows, validation_rows
from pboost.models.base import prefix, staged_decision_function
from pboost.models.graph import DecisionGraph
from pboost.models.new_rows import with_levels
from pboost.models.node_walk import goes_right
from pboost.models.nodes import ABOVE, BELOW
from pboost.observation.answers import Observation, Observer, check_pair
from pboost.threads import Workers
from pboost.values import FloatArray, Progress, as_generator, check_callback, with_bar
from pboost.weak.base import Weak
from pboost.weak.label_search import LabelSearch, refusal
from pboost.weak.priced_search import PricedSearch, with_prices

#: Returns number k of some rows.
Value: TypeAlias = Callable[[int, NDArray[np.intp]], NDArray[Any]]


class Grows(Protocol):
    """What adds nodes until there are enough, says why it stopped, and makes a model of them."""

    def grow(self, callback: Callback | None) -> str: ...  # noqa: D102
    def model(self, settings: Mapping[str, Any], stop_reason: str) -> DecisionGraph: ...  # noqa: D102


class GraphFit:
    """One fit of a graph: the options that its builders share, checked, and the data they mean.

    Parameters
    ----------
    X, y, sample_weight, weak, observation, rng, validation, patience, n_threads :
        As passed to a builder.
    callback, progress :
        Likewise.
    rule : VoteRule
        How masses become votes.
    is_chain : bool
        Whether there is one next classifier at any time.
    two : str
        Because of which options there can be two labels only; empty where there can be more.
    prices : mapping
        What columns cost, the options of `PRICE_OPTIONS`.
    votes_stay : bool
        Whether votes stay what they were when a node was opened. If not, stages are judged when
        growth has ended, see `best`.

    Attributes
    ----------
    data : TrainingData
        What to train with: the rows that are held out have weight 0.
    """

    def __init__(
        self, X: Any, y: Any, sample_weight: Any, weak: Any, observation: Any, rule: VoteRule,
        rng: Any, validation: Any, patience: Any, n_threads: int | None, callback: Any,
        progress: Progress, *, is_chain: bool = False, votes_stay: bool = True, two: str = "",
        prices: Mapping[str, Any] = PRICE_OPTIONS,
    ) -> None:  # fmt: skip
        self.weak, self.observation, self.rule = weak, observation, rule
        self._learner = check_pair(weak, observation, is_chain=is_chain)
        self._callback, self._progress = check_callback(callback, progress), progress
        # Entropy of the system is drawn only for those that draw, too.
        self._rng = None if rng is None else as_generator(rng)
        two = two or refusal(weak, observation)
        problem = weak.read(X, y, sample_weight, two or None)
        self.prices, self._learner = prices, with_prices(self._learner, prices, problem)
        is_share = validation is not None and not isinstance(validation, tuple | list)
        if is_share and lacks_values(problem.columns):
            raise TypeError(
                "validation: BinnedColumns hold no values to predict from; "
                "pass X, SortedColumns, bin_columns(X, values=True), or validation data"
            )
        self._rows = rows = None
        if validation is not None or patience is not None:
            self._rows = rows = validation_rows(
                validation, patience, problem, self._rng, holes=weak.takes.holes
            )
        self.data = self._learner.arrange(problem if rows is None else rows.problem, n_threads)
        self._n_threads = n_threads
        if rows is not None:
            self._X = rows.problem.values(rows.drawn) if rows.X is None else rows.X
            value, inputs = values_read(self.data, self._X), self.data.inputs
            self._watch = Watch(value, rows, self._callback, has_sides=inputs is None)
            self._votes_stay = votes_stay
            if votes_stay:
                self._callback = self._watch

    def label_trees(self, workers: Workers, rounds: int, limits: TreeLimits) -> LabelTrees | None:
        """Return the growth of trees of more than two labels, None of two."""
        if not self.data.problem.of_many:
            return None
        search = LabelSearch(self.data, self._learner, workers)  # type: ignore[arg-type]
        return label_trees(self.data, search, self.rule, rounds, limits, self.observation)

    def settings(self, builder: str, **own: Any) -> dict[str, Any]:
        """Return the model's record of how it was made; a builder's own options come first."""
        return {
            **graph_settings(builder, own, self.weak, self.observation, self.rule),
            **({} if self.prices["prices"] is None else self.prices),
            **({} if self._rows is None else self._rows.settings),
        }

    def told(
        self, total: int | None, unit: str
    ) -> AbstractContextManager[Callable[..., Any] | None]:
        """Return the callback to grow with, once it is entered; see `with_bar`."""
        return with_bar(self._callback, self._progress, total, unit)

    def workers(self) -> Workers:
        """Return as many threads as the data are worth."""
        return Workers(self._n_threads, self.data.cells)

    def observer(self, workers: Workers) -> Observer:
        """Return what asks weak classifiers."""
        found = self.observation.bind(self.data, self._learner, workers, as_generator(self._rng))
        if self.prices["prices"] is not None and not isinstance(found.search, PricedSearch):
            raise NotImplementedError(
                "prices: expected None but with answers that are exact or have a table, such as "
                f"observation.adatree2(), got {self.observation!r}"
            )
        return found

    def grown(
        self, growth: Grows, settings: Mapping[str, Any], told: Callback | None
    ) -> DecisionGraph:
        """Return the model that grows, see `best`."""
        return self.best(growth.model(settings, growth.grow(told)))

    def best(self, model: DecisionGraph) -> DecisionGraph:
        """Return the first of the models of least validation error that growth went through."""
        if self._rows is None:
            return model
        watch = self._watch
        if not self._votes_stay or watch.is_lost:
            watch.judge(model, with_levels(self._X, Features(self._X, None, model.table)))
        errors, reason = np.array(watch.errors), model.record.stop_reason
        if not model.n_nodes:
            errors[0] = watch.error_of(model.bias)
            return replace(model, record=replace(model.record, validation=errors))
        if watch.gave_up:
            reason = f"the validation error did not fall for {watch.patience} nodes"
        best = watch.best
        if best < model.n_nodes:
            reason += f"; the first {best} of {model.n_nodes} nodes are kept"
        model = prefix(model, best)
        return replace(model, record=replace(model.record, stop_reason=reason, validation=errors))


def graph_settings(
    builder: str, own: Mapping[str, Any], weak: Weak, observation: Observation, rule: VoteRule
) -> dict[str, Any]:
    """Return the record of the options that all builders of graphs have, its own first."""
    return {
        "builder": builder,
        **own,
        "observation": observation.settings(),
        "smoothing": rule.smoothing,
        "learning_rate": rule.learning_rate,
        "weak": weak.settings(),
    }


class Watch:
    """A callback that keeps the validation error after each node, and ends growth in time.

    Parameters
    ----------
    value : callable
        Returns what a node compares with its threshold: (number, rows) to their values.
    rows : ValidationRows
        Labels, weights, and when growth ends.
    callback : callable or None
        Called, too.
    has_sides : bool
        Whether what nodes compare can be missing.

    Attributes
    ----------
    errors : list of float
        Weighted share of rows that are predicted wrongly, with 0, 1, 2, … nodes.
    gave_up : bool
        Whether growth was ended here.
    is_lost : bool
        Whether a row has come to a node of which it is not yet known where missing values go.
    """

    def __init__(
        self, value: Value, rows: ValidationRows, callback: Callback | None, *, has_sides: bool
    ) -> None:
        self._value, self._second, self._has_sides = value, rows.y, has_sides
        # In fixed point, so that equal errors are equal numbers.
        self._weight = to_fixed_point(rows.weight)[1]
        self._total = int(self._weight.sum())
        self.patience, self._callback = rows.patience, callback
        labels = rows.problem.labels
        n_labels = 0 if labels is None or len(labels) == 2 else len(labels)
        self._score = np.zeros((len(rows.y), n_labels) if n_labels else len(rows.y))
        self._at: dict[tuple[int, int], NDArray[np.intp]] = {}
        self._wrong = self._mass_wrong(np.arange(len(rows.y)))
        self._least: tuple[int, int] | None = None  # the wrong rows' mass, and after how many nodes
        self.errors = [self._wrong / self._total]
        self.gave_up = self.is_lost = False

    def __call__(self, step: int, record: StepRecord) -> bool:
        """Take note of a node; returns whether to stop."""
        stopped = self._callback is not None and bool(self._callback(step, record))
        if self.is_lost:
            return stopped
        rows = [self._at.pop(exit_) for exit_ in record.parents]
        here = np.concatenate(rows) if rows else np.arange(len(self._score))
        # In float64, in which thresholds are compared wherever a model is evaluated.
        above = self._above(record, self._value(record.feature, here).astype(np.float64))
        if above is None:
            self.is_lost = True
            return stopped
        self._wrong -= self._mass_wrong(here)
        taken = above if self._score.ndim == 1 else above[:, None]
        self._score[here] += np.where(taken, record.votes[ABOVE], record.votes[BELOW])
        self._wrong += self._mass_wrong(here)
        self._at[record.node, BELOW] = here[~above]
        self._at[record.node, ABOVE] = here[above]
        self.errors.append(self._wrong / self._total)
        if self._least is None or self._wrong < self._least[0]:
            self._least = self._wrong, step
        self.gave_up = not stopped and step - self._least[1] >= self.patience
        return stopped or self.gave_up

    def _above(self, record: StepRecord, value: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Return which rows take exit 1 of a node that reads this; None if that is not known."""
        if record.levels:
            words = np.frombuffer(record.levels.to_bytes(MAX_BINS // 8, "little"), dtype=np.uint8)
            value = in_set(value, np.unpackbits(words, bitorder="little"))
        above: NDArray[np.bool_] = goes_right(value, record.threshold)
        is_missing = np.isnan(value)
        if not self._has_sides or not is_missing.any():
            return above
        if record.missing is None:
            return None
        return above | (is_missing & (record.missing == ABOVE))

    @property
    def best(self) -> int:
        """Number of nodes with which the least error was first reached."""
        assert self._least is not None
        return self._least[1]

    def judge(self, model: DecisionGraph, X: Any) -> None:
        """Take note of the stages of a whole model, up to the one at which growth would have ended.

        Between stages the error is that of the stage before.
        """
        del self.errors[1:]
        self._least = None
        stages = model.record.stages
        sizes = range(1, model.n_nodes + 1) if stages is None else stages.tolist()
        for size, score in zip(sizes, staged_decision_function(model, X), strict=True):
            if self.gave_up:
                break
            wrong = int(self._weight[_said(score) != self._second].sum())
            self.errors += [self.errors[-1]] * (size - len(self.errors)) + [wrong / self._total]
            if self._least is None or wrong < self._least[0]:
                self._least = wrong, size
            self.gave_up = size - self._least[1] >= self.patience

    def _mass_wrong(self, rows: NDArray[np.intp]) -> int:
        wrong = _said(self._score[rows]) != self._second[rows]
        return int(self._weight[rows[wrong]].sum())

    def error_of(self, score: Any) -> float:
        """Return the error of one decision value, or of one for each label, for all rows."""
        said = _said(np.broadcast_to(score, self._score.shape))
        return int(self._weight[self._second != said].sum()) / self._total


def _said(score: FloatArray) -> NDArray[Any]:
    """Return whether decision values predict the second label; of several the label predicted."""
    return np.asarray(score > 0) if score.ndim == 1 else score.argmax(axis=1)


def values_read(data: TrainingData, X: NDArray[Any]) -> Value:
    """Return what tells what nodes trained on `data` compare with thresholds, for other rows."""
    inputs = data.inputs
    if isinstance(inputs, GrownInputs):
        # There are none yet.
        return lambda number, rows: inputs.value(number, X, rows.astype(np.int32))
    values = X if inputs is None else inputs.values(X)
    return lambda number, rows: values[rows, number]


def given_validation(options: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the X of ``validation=(X, y)`` among the options of a fit, if it is there."""
    validation = options.get("validation")
    return tuple(validation[:1]) if isinstance(validation, tuple | list) else ()
