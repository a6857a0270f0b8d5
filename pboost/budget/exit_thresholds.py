"""Thresholds for early exits that keep a model within a budget of comparisons or feature costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.feature_costs import CostGroupOption, CostOptions, FeatureCostOption, FeatureCosts
from pboost.data.row_fingerprint import digest
from pboost.inspection.error_bounds import hashes_of_unseen
from pboost.models.base import Model, Walks, check_model, feature_costs_for
from pboost.models.early_exit_model import (
    EarlyExitModel,
    Trajectory,
    feature_cost_trajectory,
    trajectory,
    where_left,
)
from pboost.models.evaluate.exits import LEAST, sizes, sizes_at_end
from pboost.values import FloatArray, IntArray, TableLike, check_number
from pboost.values.options import checked

#: Maximum number of searches, each of which fixes the stages where many rows exit together.
ROUNDS = 16
#: The search ends once this share of the budget is used.
FILLED = 0.99
#: Function of the row costs on several paths. Its result is compared with the budget.
CostFunction: TypeAlias = Callable[[Sequence[FloatArray]], float]
_Joints: TypeAlias = Sequence[NDArray[np.intp]]


def early_exit(
    model: Model,
    X_cal: TableLike | Trajectory,
    *,
    mean_comparisons: float | None = None,
    max_comparisons: float | None = None,
    mean_feature_cost: float | None = None,
    feature_costs: FeatureCostOption = None,
    cost_groups: CostGroupOption = None,
    length: float | None = 3.0,
) -> EarlyExitModel:
    """Add early exits to a fitted classifier, so that prediction stays within a cost budget.

    A model has T stages: the nodes of a chain, the trees of a forest or of gradient boosting, or
    the base learners of a vote. After stage t, prediction stops for a row if the absolute value of
    its decision value F_t (with more than two classes, the lead of the largest value over the
    second) is at least ``tau * s_t``. Here s_t is the root mean square of the remaining change
    F_T - F_t over the calibration rows. The factor tau is found by bisection, so that the mean
    number of comparisons plus its standard error is at most the budget. Decision values and
    probabilities are computed from ``a_t * F_t``, where a_t is the least squares slope of F_T on
    F_t.

    With `mean_feature_cost`, prediction stops only before stages that need a feature that has not
    been acquired. Features that were acquired are free in later stages.

    Parameters
    ----------
    model : DecisionGraph, GradientBoostingModel, RandomForest or another model with stages
        A fitted classifier. If it is an `EarlyExitModel`, the model inside it is calibrated again.
    X_cal : array_like of shape (n, d), data frame, or Trajectory
        Rows from the distribution of new rows, preferably not the training rows, on which a model
        is overconfident. No classes are needed. Trajectories of such rows, for example out-of-fold
        trajectories, can be passed instead; see `pboost.models.early_exit_model.trajectory` and,
        for `mean_feature_cost`, `pboost.models.early_exit_model.feature_cost_trajectory`.
    mean_comparisons : float, optional
        Budget for the mean number of comparisons per row.
    max_comparisons : float, optional
        Maximum number of comparisons for any row. Stages that could exceed it on some path are not
        used. Supported by DecisionGraph, GradientBoostingModel and RandomForest.
    mean_feature_cost : float, optional
        Budget for the mean feature cost per row, instead of `mean_comparisons`.
    feature_costs, cost_groups : optional
        Costs of features, and groups of features that are acquired together, for
        `mean_feature_cost`; see `fit_gradient_boosting`. By default, the costs that the model was
        fitted with.
    length : float, optional
        Limit on the number of stages T for `mean_comparisons` and `mean_feature_cost`: the mean
        cost of T stages without exits is at most `length` times the budget. With None, all stages
        are used.

    Returns
    -------
    EarlyExitModel
        ``settings`` contains the options, tau, the last stage and the standard error.

    Raises
    ------
    ValueError
        If no budget is passed; if the budget is below the cost of the first stage; if the model has
        a single stage; if there are fewer than two calibration rows; if trajectories do not match
        the model; if `feature_costs` is passed without `mean_feature_cost`; or if
        `mean_feature_cost` is passed without feature costs or together with `mean_comparisons`.
    NotImplementedError
        If the model is a regression model, or if this kind of model does not support
        `max_comparisons` or `mean_feature_cost`.

    Warns
    -----
    UserWarning
        If many of the rows are also training rows of the model, according to ``model.seen``.

    See Also
    --------
    prediction_cost : With ``exit="proven"``, count comparisons until the class cannot change.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=600) > 0
    >>> model = pb.fit_adaboost(X[:300], y[:300], n_estimators=50)
    >>> small = pb.early_exit(model, X[300:], mean_comparisons=10)
    >>> cost = pb.prediction_cost(small, X[300:]).mean()
    >>> agreement = np.mean(pb.predict(small, X) == pb.predict(model, X))
    >>> print(f"{cost:.1f} comparisons, {agreement:.1%} equal predictions")
    9.4 comparisons, 96.8% equal predictions
    """
    check_model(model)
    if isinstance(model, EarlyExitModel):
        model = model.model
    if model.classes is None:
        raise NotImplementedError(
            "model: expected a classifier, got a regression model; to make a regression cheaper, "
            "use truncate(model, k), or model[:k] for a forest"
        )
    if model.n_stages < 2:
        raise ValueError(
            f"model: expected a model with two or more stages, got a {type(model).__name__} with "
            "one stage; use a chain (fit_adaboost, fit_matryoshka with join='all'), gradient "
            "boosting, a forest or a vote"
        )
    if mean_comparisons is None and max_comparisons is None and mean_feature_cost is None:
        raise ValueError(
            "mean_comparisons: expected a budget (mean_comparisons, max_comparisons or "
            "mean_feature_cost), got None"
        )
    known = _known_feature_costs(
        model, mean_comparisons, mean_feature_cost, feature_costs, cost_groups
    )
    hashed = None
    if isinstance(X_cal, Trajectory):
        states = X_cal
    elif known is None:
        states = trajectory(model, X_cal)
    else:
        states = feature_cost_trajectory(model, X_cal, known)
    _check_states(states, model)
    if not isinstance(X_cal, Trajectory):
        hashed = hashes_of_unseen(model, X_cal)
    end = (
        model.n_stages
        if max_comparisons is None
        else end_of(model, check_number("max_comparisons", max_comparisons, min_value=0))
    )
    unit = "mean_comparisons" if mean_feature_cost is None else "mean_feature_cost"
    if (value := mean_comparisons if mean_feature_cost is None else mean_feature_cost) is not None:
        budget = check_number(unit, value, min_value=0.0)
        _check_least(states, budget, unit)
        if length is not None:
            max_cost = check_number("length", length, min_value=1.0) * budget
            mean = states.cost[1:].mean(axis=1)
            end = min(end, max(1, int(np.count_nonzero(mean <= max_cost))))
    options = {unit: value, "max_comparisons": max_comparisons, "length": length}
    if feature_costs is not None:
        options |= checked(
            CostOptions, {"feature_costs": feature_costs, "cost_groups": cost_groups}
        )
    item = None if known is None else known.item
    exit_model = calibrated(
        model, (states,), end, options, lambda costs: float(upper(costs[0])), item
    )
    return exit_model if hashed is None else replace(exit_model, seen=digest(hashed))


def _known_feature_costs(
    model: Model,
    mean_comparisons: float | None,
    mean_feature_cost: float | None,
    feature_costs: FeatureCostOption,
    cost_groups: CostGroupOption,
) -> FeatureCosts | None:
    """Return the feature costs, or None if `mean_feature_cost` is None."""
    if mean_feature_cost is not None:
        if mean_comparisons is not None:
            raise ValueError(
                "mean_feature_cost: expected no other budget; set mean_comparisons to None"
            )
        return feature_costs_for(model, feature_costs, cost_groups)
    check_no_feature_costs(feature_costs, cost_groups)
    return None


def check_no_feature_costs(feature_costs: FeatureCostOption, cost_groups: CostGroupOption) -> None:
    """Raise ValueError if feature costs are passed although `mean_feature_cost` is None."""
    if feature_costs is not None or cost_groups is not None:
        name = "cost_groups" if feature_costs is None else "feature_costs"
        raise ValueError(
            f"{name}: expected None without mean_feature_cost; pass mean_feature_cost as well"
        )


def calibrated(
    model: Model,
    paths: Sequence[Trajectory],
    end: int,
    options: dict[str, Any],
    takes: CostFunction,
    item: IntArray | None = None,
) -> EarlyExitModel:
    """Add early exits before stage `end` so that the mean cost is within the budget.

    `options` contains the budget. It is compared with the result of `takes` for the row costs on
    all paths. The returned statistics are computed from the first path only. If `item` is passed
    (see `EarlyExitModel`), costs and budget are feature costs. Paths can end at stage `end`.
    """
    states, counts_feature_costs = paths[0], item is not None
    spread = _spreads(states.score, end)
    tau = np.full(end, np.inf)
    mean = options["mean_feature_cost" if counts_feature_costs else "mean_comparisons"]
    if mean is not None:
        tau = _factors(paths, end, spread, mean, takes, counts_feature_costs)
    threshold = _thresholds(spread, tau, model.n_stages)
    if counts_feature_costs:  # a threshold of 0 marks the last stage, where every row exits
        threshold[: len(tau)] = np.maximum(threshold[: len(tau)], LEAST)
    cost, error, joint = _costs(states, threshold, counts_feature_costs)
    statistics = {"rows": len(joint), "tau": _last(tau), "standard_error": error}
    counts = np.bincount(joint, minlength=model.n_stages + 1)
    budgets = (mean, options["max_comparisons"])
    return EarlyExitModel(
        model,
        threshold,
        _slopes(states.score, end, model.n_stages),
        float(next(budget for budget in budgets if budget is not None)),
        cost,
        {"builder": "early_exit", **options, "joints": end, **statistics},
        None,
        counts / len(joint),
        item,
    )


def _check_states(states: Trajectory, model: Model) -> None:
    """Raise ValueError unless `states` has the stages of the model and at least two rows."""
    votes = () if model.n_votes == 1 else (model.n_votes,)
    n = states.cost.shape[-1]
    expected = (model.n_stages + 1, n)
    if states.score.shape != (*expected, *votes) or states.cost.shape != expected:
        raise ValueError(
            f"X_cal: expected trajectories of {model.n_stages} stages with scores of shape "
            f"{(*expected, *votes)}, got scores of shape {states.score.shape} and costs of shape "
            f"{states.cost.shape}"
        )
    if n < 2:
        raise ValueError(f"X_cal: expected at least two rows, got {n}")


def _check_least(states: Trajectory, budget: float, unit: str) -> None:
    """Raise ValueError if the first stage costs more than the budget."""
    min_cost, error = mean_and_error(states.cost[1])
    if not min_cost + error <= budget:
        raise ValueError(
            f"{unit}: expected at least {min_cost + error:.4g}, the mean cost of the first stage "
            f"plus its standard error, got {budget:.4g}; pass a larger budget or a model whose "
            "first tree is smaller"
        )


def end_of(model: Model, max_comparisons: float) -> int:
    """Return the number of stages that need at most `max_comparisons` on every path."""
    if not isinstance(model, Walks):
        raise NotImplementedError(
            f"max_comparisons: expected None for a {type(model).__name__}, got "
            f"{max_comparisons:.4g}; use a DecisionGraph, GradientBoostingModel or RandomForest"
        )
    longest = model.longest_costs()
    if longest[1] > max_comparisons:
        raise ValueError(
            f"max_comparisons: expected at least {longest[1]:.4g}, the longest path of the first "
            f"stage of the model, got {max_comparisons:.4g}"
        )
    return int(np.count_nonzero(longest[1:] <= max_comparisons))


def _spreads(score: FloatArray, end: int) -> FloatArray:
    """Return the root mean square change (end,) between each stage and the last."""
    changes = [
        sizes_at_end(joint_score, score[end]) - sizes(joint_score) for joint_score in score[:end]
    ]
    return np.sqrt(np.mean(np.square(changes), axis=1))


def _thresholds(spread: FloatArray, tau: FloatArray, n_stages: int) -> FloatArray:
    """Return the thresholds (T,), which are products of `tau` and `spread`.

    With a threshold of infinity, no row exits. With a threshold of 0, all rows exit.
    """
    threshold = np.zeros(n_stages)
    threshold[: len(tau)] = np.inf
    if _last(tau) is not None:
        threshold[1 : len(tau)] = tau[1:] * spread[1:]
    return threshold


def _last(tau: FloatArray) -> float | None:
    """Return the largest factor, or None if no row exits before the last stage."""
    largest = float(tau[1:].max(initial=0.0))
    return largest if math.isfinite(largest) else None


def upper(cost: FloatArray) -> FloatArray:
    """Return the mean of costs (..., n) over rows plus its standard error."""
    bound: FloatArray = np.add(*mean_and_error(cost))
    return bound


def mean_and_error(cost: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of costs (..., n) over rows and its standard error."""
    return cost.mean(axis=-1), cost.std(axis=-1, ddof=1) / math.sqrt(cost.shape[-1])


def _costs(
    states: Trajectory, threshold: FloatArray, counts_feature_costs: bool
) -> tuple[float, float, NDArray[np.intp]]:
    """Return the mean cost of rows, its standard error, and the stages where rows exit."""
    joint = where_left(states, threshold[: len(states.cost) - 1], counts_feature_costs)
    mean, error = mean_and_error(states.cost[joint, np.arange(len(joint))])
    return float(mean), float(error), joint


def _factors(
    paths: Sequence[Trajectory],
    end: int,
    spread: FloatArray,
    budget: float,
    takes: CostFunction,
    counts_feature_costs: bool,
) -> FloatArray:
    """Return the largest factors (end,) of the spreads for which the cost is within the budget.

    If all decision values differ, there is a single factor. If many rows have the same value at a
    stage, such as the rows in a leaf of the first tree, they exit together or not at all. Such a
    stage then keeps its factor, and the search continues with the other stages.
    """
    if end == 1 or takes([path.cost[end] for path in paths]) <= budget:
        return np.full(end, np.inf)
    search = _Search(paths, _sizes_on_the_way(paths, end, counts_feature_costs), spread[1:], takes)
    low, high = 0.0, 1.0
    for _ in range(ROUNDS):
        low, high, at_low = search.between(low, high, budget)
        changed = zip(search.leaving(low), search.leaving(high), strict=True)
        stuck = np.any([(before != after).any(axis=0) for before, after in changed], axis=0)
        search.settle(low, stuck)
        if search.taken(at_low) >= FILLED * budget or not (stuck.any() and search.is_open.any()):
            break
    return np.append(np.inf, search.tau)


def _sizes_on_the_way(
    paths: Sequence[Trajectory], end: int, counts_feature_costs: bool
) -> list[FloatArray]:
    """Return the absolute decision values (n, end - 1) of rows at all stages but the last.

    With feature costs, the value is -inf before a stage that acquires no feature, because rows do
    not exit there.
    """
    path_sizes = [
        np.array([sizes(joint_score) for joint_score in path.score[1:end]]).T.copy()
        for path in paths
    ]
    if counts_feature_costs:
        for of, path in zip(path_sizes, paths, strict=True):
            pays = path.cost[2 : end + 1] > path.cost[1:end]
            of[~pays.T | (of < LEAST)] = -np.inf
    return path_sizes


class _Search:
    """Bisection for a factor that all open stages share. Closed stages have a fixed factor."""

    def __init__(
        self,
        paths: Sequence[Trajectory],
        size: list[FloatArray],
        spread: FloatArray,
        takes: CostFunction,
    ) -> None:
        self.paths, self.size, self.spread, self._takes = paths, size, spread, takes
        self.is_open, self.tau = np.ones(len(spread), dtype=bool), np.zeros(len(spread))

    def threshold(self, factor: float) -> FloatArray:
        """Return the thresholds of the stages."""
        return np.where(self.is_open, factor, self.tau) * self.spread

    def leaving(self, factor: float) -> list[NDArray[np.bool_]]:
        """Return masks (n, end - 1) of the stages where rows reach the threshold."""
        threshold = self.threshold(factor)
        return [of >= threshold for of in self.size]

    def joints(self, factor: float, before: _Joints, after: _Joints) -> _Joints:
        """Return the exit stages for a factor between two factors whose exit stages are known."""
        threshold, joints = self.threshold(factor), []
        for of, first, last in zip(self.size, before, after, strict=True):
            rows, at = np.flatnonzero(first != last), first.copy()
            leaves = of[rows] >= threshold
            at[rows] = np.where(leaves.any(axis=1), leaves.argmax(axis=1), len(threshold))
            joints.append(at)
        return joints

    def taken(self, at: _Joints) -> float:
        """Return the cost that is compared with the budget, given the exit stages."""
        every = zip(self.paths, at, strict=True)
        return self._takes([path.cost[1 + joint, np.arange(len(joint))] for path, joint in every])

    def between(self, low: float, high: float, budget: float) -> tuple[float, float, _Joints]:
        """Return the largest factor within a budget, the next larger float, and the exit stages.

        The initial `low` is within the budget or 0. `high` is doubled until it exceeds the budget.
        """
        none, last = (
            [np.full(len(of), joint) for of in self.size] for joint in (-1, len(self.spread))
        )
        at_high = self.joints(high, none, last)
        while self.taken(at_high) <= budget and any(
            of[:, self.is_open].any() for of in self.leaving(high)
        ):
            high *= 2
            at_high = self.joints(high, none, last)
        at_low = self.joints(low, none, last)
        while low < (middle := (low + high) / 2) < high:
            at = self.joints(middle, at_low, at_high)
            if self.taken(at) <= budget:
                low, at_low = middle, at
            else:
                high, at_high = middle, at
        return low, high, at_low

    def settle(self, factor: float, stuck: NDArray[np.bool_]) -> None:
        """Set the factor of the open stages, and close the stages in the mask `stuck`."""
        self.tau[self.is_open] = factor
        self.is_open &= ~stuck


def _slopes(score: FloatArray, end: int, n_stages: int) -> FloatArray:
    """Return least squares slopes (n_stages,) of the values at stage `end` on earlier values."""
    if score.ndim == 3:
        score = score - score.mean(axis=2, keepdims=True)
    flat = score.reshape(len(score), -1)
    slope = np.ones(n_stages)
    product, square = flat[:end] @ flat[end], np.square(flat[:end]).sum(axis=1)
    is_sure = (product > 0) & (square > 0)
    slope[:end][is_sure] = product[is_sure] / square[is_sure]
    return slope
