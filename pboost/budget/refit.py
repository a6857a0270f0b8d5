"""What was chosen, fitted to all rows, with exits so that it keeps within the budget."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pboost.budget.calibrate_exit import early_exit
from pboost.budget.candidates import Fits, Fitted, first, longest, path_of
from pboost.budget.choice import Option, Promise, Tried, first_part, sharpened, upper
from pboost.data.convert import Features
from pboost.data.prices import Prices
from pboost.models.early_exit import EarlyExitModel
from pboost.models.exits import exits_of, joints_left
from pboost.models.trajectory import Trajectory
from pboost.values import FloatArray

#: How often the budget is set anew by how much longer rows stay in the model of all rows, on how
#: many of these at most, and to what power it is believed: rows seen in training exaggerate.
ROUNDS, MOST_SEEN, TRUST = 6, 4000, 0.85
#: What counts as within the budget, times it, when thresholds are set anew.
SLACK = 1.005


def fitted_within(
    whole: Fits, tried: Tried, chosen: Option, promise: Promise
) -> EarlyExitModel | Fitted | None:
    """Return an option, fitted to all rows; None if it does not keep the promise.

    The more rows a model was fitted to, the more it may compare, and the less sure it is of them.
    How much is seen on rows that each was fitted to: this model, and those of the folds.
    """
    model = first(whole.of(chosen.family), chosen.joints)
    seen = Seen(model, tried, whole.X, whole.prices)
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
    found = _with_exits(model, tried, seen, chosen, promise)
    found = _longer_by_one(found, longer)
    sharpness, _ = sharpened(found, _left(found, tried.path)[0], tried.truth)
    return replace(found, slope=found.slope * sharpness)


def _with_exits(
    model: Fitted, tried: Tried, seen: Seen, chosen: Option, promise: Promise
) -> EarlyExitModel:
    """Return the exits of a model of all rows, from the paths through those of the folds."""
    path, budget = first_part(tried.path, model.n_joints), promise.comparisons
    worst = None if promise.worst == np.inf else promise.worst
    calibrate = partial(early_exit, model, path, worst=worst, length=None)
    if not chosen.has_exits:
        return calibrate(comparisons=None if budget == np.inf else budget)
    low, high = float(upper(path.cost[:2])[1]), budget
    aim = budget
    tried_exits: list[tuple[float, EarlyExitModel]] = []
    for _ in range(ROUNDS):
        found = calibrate(comparisons=aim)
        more = seen.longer(found)
        takes = (found.cost + found.settings["standard_error"]) * more
        tried_exits.append((takes, replace(found, cost=found.cost * more)))
        if takes <= budget:
            low = max(low, aim)
        else:
            high = min(high, aim)
        aim *= budget / takes if takes else 1.0
        if not low < aim < high:
            aim = (low + high) / 2
    # Thresholds jump where many rows have the same value: the nearest may be above, or far below.
    _, kept = min(tried_exits, key=lambda of: (of[0] > SLACK * budget, abs(of[0] - budget)))
    return kept


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

    def __init__(self, model: Fitted, tried: Tried, X: Features, prices: Prices | None) -> None:
        def path(of: Fitted, rows: NDArray[np.intp]) -> Trajectory:
            rows = rows[:: -(-len(rows) // MOST_SEEN)]
            return path_of(of, replace(X, values=X.values[rows]), prices)

        self.every = path(model, np.arange(X.n_rows))
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
        every, *others = (_left(model, path)[1].mean() for path in (self.every, *self.others))
        return float((every / np.mean(others)) ** TRUST) if np.mean(others) else 1.0


def _left(model: EarlyExitModel, path: Trajectory) -> tuple[FloatArray, FloatArray]:
    """Return decision values, times the slopes, and costs with which rows leave."""
    joints = min(len(model.threshold), len(path.cost) - 1)
    path = first_part(path, joints)
    joint = joints_left(path.score, exits_of(model.threshold[:joints], model.n_votes))
    rows = np.arange(len(joint))
    slope = np.append(model.slope, 1.0)[joint].reshape(-1, *[1] * (path.score.ndim - 2))
    return path.score[joint, rows] * slope, path.cost[joint, rows]
