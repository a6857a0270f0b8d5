"""Early stopping of graphs: the error of the predictions on rows that growth does not see.

Builders tell of each node they open; rows are kept by the open exit at which they are, so that a
node costs no more than the rows that arrive at it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns.columns import MAX_BINS, to_fixed_point
from pboost.data.node_inputs.inputs import GrownInputs, in_set, in_sums
from pboost.data.read.convert import Features
from pboost.data.training import TrainingData
from pboost.growth.step import Callback, StepRecord
from pboost.growth.validation import ValidationRows
from pboost.models.base import prefix, staged_decision_function
from pboost.models.evaluate.graph_walk import goes_right
from pboost.models.graph import DecisionGraph
from pboost.models.nodes import ABOVE, BELOW
from pboost.values import Array, FloatArray

#: Returns number k of some rows.
Value: TypeAlias = Callable[[int, NDArray[np.intp]], Array]


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

    def _above(self, record: StepRecord, value: Array) -> NDArray[np.bool_] | None:
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

    def judge(self, model: DecisionGraph, X: Features) -> None:
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

    def best_of(self, model: DecisionGraph, X: Array, votes_stay: bool) -> DecisionGraph:
        """Return the first of the models of least error that growth to this one went through.

        X are the values of the rows; `votes_stay` whether votes stay what they were when a node was
        opened.
        """
        if not votes_stay or self.is_lost:
            self.judge(model, Features(X, None, model.table))
        errors, reason = np.array(self.errors), model.record.stop_reason
        if not model.n_nodes:
            errors[0] = self.error_of(model.bias)
            return replace(model, record=replace(model.record, validation=errors))
        if self.gave_up:
            reason = f"the validation error did not fall for {self.patience} nodes"
        best = self.best
        if best < model.n_nodes:
            reason += f"; the first {best} of {model.n_nodes} nodes are kept"
        model = prefix(model, best)
        return replace(model, record=replace(model.record, stop_reason=reason, validation=errors))

    def _mass_wrong(self, rows: NDArray[np.intp]) -> int:
        wrong = _said(self._score[rows]) != self._second[rows]
        return int(self._weight[rows[wrong]].sum())

    def error_of(self, score: Any) -> float:
        """Return the error of one decision value, or of one for each label, for all rows."""
        said = _said(np.broadcast_to(score, self._score.shape))
        return int(self._weight[self._second != said].sum()) / self._total


def _said(score: FloatArray) -> Array:
    """Return whether decision values predict the second label; of several the label predicted."""
    return np.asarray(score > 0) if score.ndim == 1 else score.argmax(axis=1)


def values_read(data: TrainingData, X: Array) -> Value:
    """Return what tells what nodes trained on `data` compare with thresholds, for other rows."""
    inputs = data.inputs
    if inputs is not None:
        X = in_sums(X, data.problem.table)
    if isinstance(inputs, GrownInputs):
        # There are none yet.
        return lambda number, rows: inputs.value(number, X, rows.astype(np.int32))
    values = X if inputs is None else inputs.values(X)
    return lambda number, rows: values[rows, number]
