"""What was chosen, fitted to all rows, with exits so that it keeps within the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pboost.budget.calibrate_exit import calibrated, end_of, mean_and_error
from pboost.budget.candidates import Fits, Fitted, first, longest, path_of
from pboost.budget.choice import Option, Promise, Tried, first_part, sharpened, upper
from pboost.budget.compared import by_weight
from pboost.models.early_exit import EarlyExitModel, Trajectory, where_left
from pboost.values import FloatArray, IntArray

#: On how many rows at most it is seen how much longer they stay in the model of all rows, and to
#: what power it is believed: rows seen in training exaggerate, and thresholds are chosen by it.
MOST_SEEN, TRUST = 4000, 0.5


def fitted_within(
    whole: Fits, tried: Tried, chosen: Option, promise: Promise
) -> EarlyExitModel | Fitted | None:
    """Return an option, fitted to all rows; None if it does not keep the promise.

    The more rows a model was fitted to, the more it may compare, and the less sure it is of them.
    How much is seen on rows that each was fitted to: this model, and those of the folds.
    """
    model = first(whole.of(chosen.family), chosen.joints)
    seen = Seen(model, tried, whole)
    joints = seen.joints
    bound = upper(tried.path.cost[: joints + 1]) * np.append(1.0, seen.more())
    keeps = (bound <= promise.comparisons) & (longest(model)[: joints + 1] <= promise.worst)
    if not keeps[1]:
        return None
    if not chosen.has_exits:
        joints = int(np.flatnonzero(keeps)[-1])
    if not tried.has_exits or joints < 2:
        return first(model, joints)
    longer, model = first(whole.of(chosen.family), joints + 1), first(model, joints)
    item = None if whole.prices is None else whole.prices.item
    found = _with_exits(model, tried, seen, chosen, promise, item)
    found = _longer_by_one(found, longer)
    sharpness, _ = sharpened(found, _left(found, tried.path)[0], tried.truth)
    return replace(found, slope=found.slope * sharpness)


def _with_exits(
    model: Fitted,
    tried: Tried,
    seen: Seen,
    chosen: Option,
    promise: Promise,
    item: IntArray | None,
) -> EarlyExitModel:
    """Return the exits of a model of all rows, from the paths through those of the folds."""
    path, budget = first_part(tried.path, model.n_joints), promise.comparisons
    end = model.n_joints if promise.worst == np.inf else end_of(model, promise.worst)
    options = {
        "comparisons" if item is None else "price": None if budget == np.inf else budget,
        "worst": None if promise.worst == np.inf else promise.worst,
        "length": None,
    }
    paths = [path, *(first_part(of, model.n_joints) for of in (seen.every, *seen.others))]
    found = calibrated(model, paths, end, options, _takes, item)
    if not chosen.has_exits:
        return found
    return replace(found, cost=found.cost * seen.longer(found))


def _takes(costs: Sequence[FloatArray]) -> float:
    """Return what new rows compare in a model of all rows, and a standard error more.

    Given what those of other folds do in models of folds, and rows that were fitted to in both.
    """
    return float(np.add(*mean_and_error(costs[0]))) * _more(costs[1], costs[2:])


def _more(every: FloatArray, others: Sequence[FloatArray]) -> float:
    """Return by what factor rows compare more in a model of all rows than in those of folds.

    Given the costs of rows that each was fitted to.
    """
    usual = np.mean([cost.mean() for cost in others])
    return float((every.mean() / usual) ** TRUST) if usual else 1.0


def _longer_by_one(model: EarlyExitModel, longer: Fitted) -> EarlyExitModel:
    """Return the exits of a model in one that has a joint more, at which no row arrives.

    So the rows that went to the end leave, and their decision values have a slope, too.
    """
    if longer.n_joints == model.model.n_joints:
        return model
    threshold, slope = np.append(model.threshold, 0.0), np.append(model.slope, 1.0)
    leaving = None if model.leaving is None else np.append(model.leaving, 0.0)
    return replace(model, model=longer, threshold=threshold, slope=slope, leaving=leaving)


class Seen:
    """Rows that models were fitted to on their ways through them: all rows, and those of folds."""

    def __init__(self, model: Fitted, tried: Tried, whole: Fits) -> None:
        X = whole.X

        def path(of: Fitted, rows: NDArray[np.intp]) -> Trajectory:
            rows = rows[:: -(-len(rows) // MOST_SEEN)]
            return path_of(of, X.take(rows), whole.prices)

        self.every = path(model, by_weight(whole.weight, X.n_rows))
        self.joints = min(len(self.every.cost), len(tried.path.cost)) - 1
        self.others = [path(first(of, self.joints), rows) for of, rows in tried.models]

    def more(self) -> FloatArray:
        """Return by what factor the model compares more up to each joint."""
        others = [of.cost[1 : self.joints + 1].mean(axis=1) for of in self.others]
        every: FloatArray = self.every.cost[1 : self.joints + 1].mean(axis=1)
        usual = np.mean(others, axis=0)
        return np.divide(every, usual, out=np.ones_like(every), where=usual > 0)

    def longer(self, model: EarlyExitModel) -> float:
        """Return by what factor rows compare more until they leave."""
        every, *others = (_left(model, path)[1] for path in (self.every, *self.others))
        return _more(every, others)


def _left(model: EarlyExitModel, path: Trajectory) -> tuple[FloatArray, FloatArray]:
    """Return decision values, times the slopes, and costs with which rows leave."""
    joints = min(len(model.threshold), len(path.cost) - 1)
    path = first_part(path, joints)
    joint = where_left(path, model.threshold[:joints], model.item is not None)
    rows = np.arange(len(joint))
    slope = np.append(model.slope, 1.0)[joint].reshape(-1, *[1] * (path.score.ndim - 2))
    return path.score[joint, rows] * slope, path.cost[joint, rows]
