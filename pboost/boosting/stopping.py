"""Early stopping: rows that growth does not see say which of the models on its way is the best.

What is monitored is the error of the predictions on the validation rows. Builders tell of each
node they open; rows are kept by the open exit at which they are, so that a node costs no more than
the rows that arrive at it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns import BinnedColumns, to_fixed_point
from pboost.data.derived import GrownInputs
from pboost.data.training import Problem, TrainingData
from pboost.growth.step import Callback, StepRecord
from pboost.growth.validation import ValidationRows, validation_rows
from pboost.models.base import prefix, staged_decision_function
from pboost.models.graph import DecisionGraph
from pboost.models.node_walk import goes_right
from pboost.models.nodes import ABOVE, BELOW

#: Returns number k of some rows.
Value: TypeAlias = Callable[[int, NDArray[np.intp]], NDArray[Any]]


class EarlyStopping:
    """The options `validation` and `patience` of one fit.

    Parameters
    ----------
    validation : None, tuple or float
        As passed to a builder: nothing, validation data, or a share of the rows to hold out.
    patience : int or None
        As passed to a builder.
    problem : Problem
        The data passed to the builder.
    generator : numpy.random.Generator
        Draws the rows that are held out.

    Attributes
    ----------
    problem : Problem
        What to train with: the rows that are held out have weight 0.
    settings : dict
        The options, for the model's record of how it was made; empty without validation.
    """

    def __init__(
        self,
        validation: Any,
        patience: Any,
        problem: Problem,
        generator: np.random.Generator,
    ) -> None:
        self.problem = problem
        self.settings: Mapping[str, Any] = {}
        self._watch: Watch | None = None
        self._late: NDArray[Any] | None = None
        is_share = validation is not None and not isinstance(validation, tuple | list)
        if is_share and isinstance(problem.columns, BinnedColumns):
            raise TypeError(
                "validation: BinnedColumns hold no values to predict from; "
                "pass X or SortedColumns, or validation data"
            )
        self._rows = validation_rows(validation, patience, problem, generator)
        if self._rows is not None:
            self.problem, self.settings = self._rows.problem, self._rows.settings

    def watch(
        self, data: TrainingData, callback: Callback | None, *, votes_stay: bool = True
    ) -> Callback | None:
        """Return the callback to grow with, which calls `callback` too.

        Where votes do not stay what they were when a node was opened, stages are judged when
        growth has ended, see `best`.
        """
        rows = self._rows
        if rows is None:
            return callback
        X = self.problem.values(rows.drawn) if rows.X is None else rows.X
        self._watch = Watch(values_read(data, X), rows, callback)
        if votes_stay:
            return self._watch
        self._late = X
        return callback

    def best(self, model: DecisionGraph) -> DecisionGraph:
        """Return the first of the models of least validation error that growth went through."""
        watch = self._watch
        if watch is None:
            return model
        if self._late is not None:
            watch.judge(model, self._late)
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

    Attributes
    ----------
    errors : list of float
        Weighted share of rows that are predicted wrongly, with 0, 1, 2, … nodes.
    gave_up : bool
        Whether growth was ended here.
    """

    def __init__(self, value: Value, rows: ValidationRows, callback: Callback | None) -> None:
        self._value, self._second = value, rows.y
        # In fixed point, so that equal errors are equal numbers.
        self._weight = to_fixed_point(rows.weight)[1]
        self._total = int(self._weight.sum())
        self.patience, self._callback = rows.patience, callback
        self._score = np.zeros(len(rows.y))
        self._at: dict[tuple[int, int], NDArray[np.intp]] = {}
        self._wrong = int(self._weight[self._second].sum())
        self._least: tuple[int, int] | None = None  # the wrong rows' mass, and after how many nodes
        self.errors = [self._wrong / self._total]
        self.gave_up = False

    def __call__(self, step: int, record: StepRecord) -> bool:
        """Take note of a node; returns whether to stop."""
        rows = [self._at.pop(exit_) for exit_ in record.parents]
        here = np.concatenate(rows) if rows else np.arange(len(self._score))
        # In float64, in which thresholds are compared wherever a model is evaluated.
        above = goes_right(self._value(record.feature, here).astype(np.float64), record.threshold)
        self._wrong -= self._mass_wrong(here)
        self._score[here] += np.where(above, record.votes[ABOVE], record.votes[BELOW])
        self._wrong += self._mass_wrong(here)
        self._at[record.node, BELOW] = here[~above]
        self._at[record.node, ABOVE] = here[above]
        self.errors.append(self._wrong / self._total)
        if self._least is None or self._wrong < self._least[0]:
            self._least = self._wrong, step
        stopped = self._callback is not None and bool(self._callback(step, record))
        self.gave_up = not stopped and step - self._least[1] >= self.patience
        return stopped or self.gave_up

    @property
    def best(self) -> int:
        """Number of nodes with which the least error was first reached."""
        assert self._least is not None
        return self._least[1]

    def judge(self, model: DecisionGraph, X: NDArray[Any]) -> None:
        """Take note of the stages of a whole model, up to the one at which growth would have ended.

        Between stages the error is that of the stage before.
        """
        stages = model.record.stages
        sizes = range(1, model.n_nodes + 1) if stages is None else stages.tolist()
        for size, score in zip(sizes, staged_decision_function(model, X), strict=True):
            if self.gave_up:
                break
            wrong = int(self._weight[(score > 0) != self._second].sum())
            self.errors += [self.errors[-1]] * (size - len(self.errors)) + [wrong / self._total]
            if self._least is None or wrong < self._least[0]:
                self._least = wrong, size
            self.gave_up = size - self._least[1] >= self.patience

    def _mass_wrong(self, rows: NDArray[np.intp]) -> int:
        wrong = (self._score[rows] > 0) != self._second[rows]
        return int(self._weight[rows[wrong]].sum())

    def error_of(self, score: float) -> float:
        """Return the error of one decision value for all rows."""
        return int(self._weight[self._second != (score > 0)].sum()) / self._total


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
