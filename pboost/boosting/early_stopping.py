"""Early stopping of decision graphs on a validation set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pboost.growth.graph_growth import Callback, StepRecord
from pboost.growth.validation import EarlyStoppingRows
from pboost.models.base import truncate
from pboost.models.graph import DecisionGraph


class EarlyStopping:
    """A callback that records the validation error after each node and stops growth.

    Errors are computed only when growth could stop, for all new nodes at once.

    Parameters
    ----------
    rows : EarlyStoppingRows
        Validation rows.
    n_iter_no_change : int
        Number of nodes without improvement after which growth stops.
    callback : callable or None
        User callback, which is also called.

    Attributes
    ----------
    errors : list of float
        Weighted error rate on the validation rows with 0, 1, 2, ... nodes.
    gave_up : bool
        Whether growth was stopped by this callback.
    is_lost : bool
        Whether a missing value reached a node whose exit for missing values is not yet decided.
    """

    def __init__(
        self, rows: EarlyStoppingRows, n_iter_no_change: int, callback: Callback | None
    ) -> None:
        self._rows, self.n_iter_no_change, self._callback = rows, n_iter_no_change, callback
        #: Lowest weight of wrong predictions, and the number of nodes at which it was reached.
        self._least: tuple[int, int] | None = None
        self._waiting: dict[int, StepRecord] = {}
        self.errors = [rows.wrong / rows.total]
        self.gave_up = self.is_lost = False

    def __call__(self, step: int, record: StepRecord) -> bool:
        """Record a node; return whether to stop."""
        stopped = self._callback is not None and bool(self._callback(step, record))
        if self.is_lost:
            return stopped
        self._waiting[step] = record
        last = min(self._waiting) if self._least is None else self._least[1]
        if step - last >= self.n_iter_no_change:
            self._look()
            self.gave_up = (
                not stopped and not self.is_lost and step - self.best >= self.n_iter_no_change
            )
        return stopped or self.gave_up

    def _look(self) -> None:
        """Compute the errors after the nodes that are not yet evaluated."""
        waiting, self._waiting = self._waiting, {}
        wrong_weights = self._rows.taken([*waiting.values()]) if waiting else ()
        for step, wrong in zip(waiting, wrong_weights, strict=False):
            self._note(step, wrong)
        self.is_lost |= len(wrong_weights) < len(waiting)

    def _note(self, step: int, wrong: int) -> None:
        self.errors.append(wrong / self._rows.total)
        if self._least is None or wrong < self._least[0]:
            self._least = wrong, step

    @property
    def best(self) -> int:
        """Smallest number of nodes with the lowest error."""
        assert self._least is not None
        return self._least[1]

    def judge(self, model: DecisionGraph) -> None:
        """Record the error of each stage of a model, up to the stage at which growth would stop.

        The error changes only at stages.
        """
        del self.errors[1:]
        self._least = None
        stages = model.record.stages
        sizes = range(1, model.n_nodes + 1) if stages is None else stages.tolist()
        for size, wrong in zip(sizes, self._rows.stages(model), strict=True):
            if self.gave_up:
                break
            self.errors += [self.errors[-1]] * (size - len(self.errors))
            self._note(size, wrong)
            self.gave_up = size - self.best >= self.n_iter_no_change

    def best_of(self, model: DecisionGraph, votes_stay: bool) -> DecisionGraph:
        """Return the first stage of a model with the lowest error.

        `votes_stay`: whether the votes of a node are final when it is added.
        """
        self._look()
        if not votes_stay or self.is_lost:
            self.judge(model)
        errors, reason = np.array(self.errors), model.record.stop_reason
        if not model.n_nodes:
            errors[0] = self._rows.wrong_of(np.asarray(model.bias)) / self._rows.total
            return replace(model, record=replace(model.record, validation=errors))
        if self.gave_up:
            reason = f"the validation error did not fall for {self.n_iter_no_change} nodes"
        best = self.best
        if best < model.n_nodes:
            reason += f"; the first {best} of {model.n_nodes} nodes are kept"
        model = truncate(model, best)
        return replace(model, record=replace(model.record, stop_reason=reason, validation=errors))
