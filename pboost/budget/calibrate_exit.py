"""Where rows leave a model, so that they take so many comparisons on average."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.prices import CostGroupOption, CostOptions, FeatureCostOption, FeatureCosts
from pboost.data.row_digest import digest
from pboost.inspection.guarantees import hashes_of_unseen
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

#: How often joints are set apart at which many rows leave together.
ROUNDS = 16
#: A budget that is filled so far needs no more of this.
FILLED = 0.99
#: What is compared with the budget, given the costs of the rows of each of several paths.
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
    """Let rows leave a model as soon as their decision values are sure enough for a budget.

    After t of T joints (places where all paths of a row meet: nodes of a chain, trees of a sum or a
    forest, members that vote) a row leaves where the size of its decision value F_t, of more than
    two labels the lead of the largest over the second, is at least ``tau * s_t``. s_t is the root
    mean square, over the calibration rows, of what the rest adds, F_T - F_t; tau is found by
    bisection, so that the mean number of comparisons plus its standard error is at most the budget.
    Decision values and probabilities are those of ``a_t * F_t`` with a_t the least squares slope of
    F_T on F_t.

    With `mean_feature_cost` a row leaves only where it would have to pay on its way to the next
    joint: what it has paid for is free from then on, so that trees that read nothing else cost it
    nothing, and it goes through them however sure it is.

    Parameters
    ----------
    model : DecisionGraph, GradientBoostingModel, RandomForest or another model with joints
        A fitted classifier. Of an `EarlyExitModel` the whole model is calibrated anew.
    X_cal : array_like of shape (n, d), data frame, or Trajectory
        Rows as they will come, best such that the model was not fitted to: on its own training rows
        a model is surer than on others. No labels are needed. Or the trajectories of such rows,
        `pboost.models.early_exit_model.trajectory`, for example out of folds; with
        `mean_feature_cost` those of `pboost.models.early_exit_model.feature_cost_trajectory`, whose
        costs are what rows have paid.
    mean_comparisons : float, optional
        The budget: mean number of comparisons per row.
    max_comparisons : float, optional
        The number of comparisons that no row exceeds: all rows leave, at the latest, at the last
        joint to which no path is longer. Of DecisionGraph, GradientBoostingModel and RandomForest.
    mean_feature_cost : float, optional
        In place of `mean_comparisons`: the budget as the mean feature cost of a row.
    feature_costs, cost_groups : optional
        With `mean_feature_cost`: what columns cost, and which are paid together, see
        `fit_gradient_boosting`. Default: the costs that the model was fitted with.
    length : float, optional
        With `mean_comparisons` or `mean_feature_cost`: all rows leave, at the latest, after those
        joints to which rows take at most this many times the budget on average; F_T is then the
        value there. None: at the end.

    Returns
    -------
    EarlyExitModel
        ``settings`` have what was given, tau, the joint where all leave, and the standard error.

    Raises
    ------
    ValueError
        If no budget is given, or one is below what the first joint takes; or if there are no
        joints, fewer than two calibration rows, or trajectories of another model; or if
        `feature_costs` come without `mean_feature_cost`, or this without any feature costs, or with
        `mean_comparisons`.
    NotImplementedError
        Of a regression; or if `max_comparisons` is asked of a model whose longest path is not
        known, or `mean_feature_cost` of one of which it is not known which columns a row reads.

    Warns
    -----
    UserWarning
        If many of the rows equal rows that the model has seen, by its digest ``model.seen``.

    See Also
    --------
    prediction_cost : ``exit="proven"`` counts up to where no vote left can change the label.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=600) > 0
    >>> model = pb.fit_adaboost(X[:300], y[:300], n_estimators=50)
    >>> small = pb.early_exit(model, X[300:], mean_comparisons=10)
    >>> bool(pb.prediction_cost(small, X[300:]).mean() <= 10)
    True
    >>> bool(np.mean(pb.predict(small, X) == pb.predict(model, X)) > 0.9)
    True
    """
    check_model(model)
    if isinstance(model, EarlyExitModel):
        model = model.model
    if model.classes is None:
        raise NotImplementedError(
            "model: rows leave early where their label is settled, and a regression has none; a "
            "cheaper regression is truncate(model, k), or a forest model[:k]"
        )
    if model.n_stages < 2:
        raise ValueError(
            f"model: the paths of this {type(model).__name__} meet nowhere before the end, so that "
            "rows cannot leave early; chains do (fit_adaboost, join='all' of fit_matryoshka), sums "
            "of trees, forests and models that vote"
        )
    if mean_comparisons is None and max_comparisons is None and mean_feature_cost is None:
        raise ValueError(
            "mean_comparisons: expected a budget, mean_comparisons=, max_comparisons= or mean_feature_cost=, got None"
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
    """Return the feature costs; None without a budget of them."""
    if mean_feature_cost is not None:
        if mean_comparisons is not None:
            raise ValueError(
                "mean_feature_cost: expected without mean_comparisons, another budget of the mean row"
            )
        return feature_costs_for(model, feature_costs, cost_groups)
    check_no_feature_costs(feature_costs, cost_groups)
    return None


def check_no_feature_costs(feature_costs: FeatureCostOption, cost_groups: CostGroupOption) -> None:
    """Raise ValueError if there are feature costs though no budget is counted in them."""
    if feature_costs is not None or cost_groups is not None:
        name = "cost_groups" if feature_costs is None else "feature_costs"
        raise ValueError(
            f"{name}: expected with mean_feature_cost=, the budget that is counted in them"
        )


def calibrated(
    model: Model,
    paths: Sequence[Trajectory],
    end: int,
    options: dict[str, Any],
    takes: CostFunction,
    item: IntArray | None = None,
) -> EarlyExitModel:
    """Return the exits of a model, of whose joints `end` is the last, for the budget of `options`.

    Spreads and slopes are those of the first of the paths, as are mean cost and standard error; the
    budget is compared with what `takes` says of the costs of the rows of all. With `item`, see
    `EarlyExitModel`, costs are what rows have paid, as is the budget.
    """
    states, counts_feature_costs = paths[0], item is not None
    spread = _spreads(states.score, end)
    tau = np.full(end, np.inf)
    mean = options["mean_feature_cost" if counts_feature_costs else "mean_comparisons"]
    if mean is not None:
        tau = _factors(paths, end, spread, mean, takes, counts_feature_costs)
    threshold = _thresholds(spread, tau, model.n_stages)
    if counts_feature_costs:  # 0 is for where all leave, whatever they would pay
        threshold[: len(tau)] = np.maximum(threshold[: len(tau)], LEAST)
    cost, error, joint = _costs(states, threshold, counts_feature_costs)
    statistics = {"rows": len(joint), "tau": _last(tau), "standard_error": error}
    counts = np.bincount(joint, minlength=model.n_stages + 1)
    budgets = (mean, options["max_comparisons"])
    return EarlyExitModel(
        model,
        threshold,
        _slopes(states.score, end),
        float(next(budget for budget in budgets if budget is not None)),
        cost,
        {"builder": "early_exit", **options, "joints": end, **statistics},
        None,
        counts / len(joint),
        item,
    )


def _check_states(states: Trajectory, model: Model) -> None:
    """Raise ValueError unless these are trajectories of two or more rows through the model."""
    votes = () if model.n_votes == 1 else (model.n_votes,)
    n = states.cost.shape[-1]
    expected = (model.n_stages + 1, n)
    if states.score.shape != (*expected, *votes) or states.cost.shape != expected:
        raise ValueError(
            f"X_cal: expected trajectories of {model.n_stages} joints, scores of shape "
            f"{(*expected, *votes)}, got {states.score.shape} and costs {states.cost.shape}"
        )
    if n < 2:
        raise ValueError(f"X_cal: expected two rows or more to calibrate on, got {n}")


def _check_least(states: Trajectory, budget: float, unit: str) -> None:
    """Raise ValueError where the first joint takes more than the budget."""
    min_cost, error = mean_and_error(states.cost[1])
    if not min_cost + error <= budget:
        raise ValueError(
            f"{unit}: expected at least {min_cost + error:.4g}, what rows take up to the first "
            f"joint of the model (its mean and standard error), got {budget:.4g}; a model whose "
            "first tree is smaller takes less"
        )


def end_of(model: Model, max_comparisons: float) -> int:
    """Return the last joint to which no path is longer."""
    if not isinstance(model, Walks):
        raise NotImplementedError(
            f"model: how many comparisons a {type(model).__name__} makes at most is not known"
        )
    longest = model.longest_costs()
    if longest[1] > max_comparisons:
        raise ValueError(
            f"max_comparisons: expected at least {longest[1]:.4g}, the longest path to the first joint of "
            f"the model, got {max_comparisons:.4g}"
        )
    return int(np.count_nonzero(longest[1:] <= max_comparisons))


def _spreads(score: FloatArray, end: int) -> FloatArray:
    """Return the root mean squares (end,) of what is added between each joint and the last."""
    changes = [
        sizes_at_end(joint_score, score[end]) - sizes(joint_score) for joint_score in score[:end]
    ]
    return np.sqrt(np.mean(np.square(changes), axis=1))


def _thresholds(spread: FloatArray, tau: FloatArray, n_stages: int) -> FloatArray:
    """Return the thresholds (T,): none leaves at once, and all at the last joint."""
    threshold = np.zeros(n_stages)
    threshold[: len(tau)] = np.inf
    if _last(tau) is not None:
        threshold[1 : len(tau)] = tau[1:] * spread[1:]
    return threshold


def _last(tau: FloatArray) -> float | None:
    """Return the largest factor, None where no row leaves before the last joint."""
    largest = float(tau[1:].max(initial=0.0))
    return largest if math.isfinite(largest) else None


def upper(cost: FloatArray) -> FloatArray:
    """Return means of costs (..., n) over rows, and a standard error more."""
    bound: FloatArray = np.add(*mean_and_error(cost))
    return bound


def mean_and_error(cost: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means of costs (..., n) over rows, and their standard errors."""
    return cost.mean(axis=-1), cost.std(axis=-1, ddof=1) / math.sqrt(cost.shape[-1])


def _costs(
    states: Trajectory, threshold: FloatArray, counts_feature_costs: bool
) -> tuple[float, float, NDArray[np.intp]]:
    """Return what rows take on average, its standard error, and the joints where they leave."""
    joint = where_left(states, threshold, counts_feature_costs)
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
    """Return by what the spreads (end,) are multiplied, so that the budget is kept.

    It is one number where values are all different. Where many rows have the same value at a joint,
    as in the leaves of a first tree, and all these leave or none, that joint keeps the number with
    which they leave, and the others go on from there.
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
    """Return the sizes of values (n, end - 1) of rows at the joints before the last.

    With costs those where rows pay nothing more are never large enough.
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
    """Bisection for the factor of the joints that are open; others have theirs in `tau`."""

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
        """Return the thresholds of the joints."""
        return np.where(self.is_open, factor, self.tau) * self.spread

    def leaving(self, factor: float) -> list[NDArray[np.bool_]]:
        """Return at which joints the values of rows are large enough."""
        threshold = self.threshold(factor)
        return [of >= threshold for of in self.size]

    def joints(self, factor: float, before: _Joints, after: _Joints) -> _Joints:
        """Return where rows leave, given that for a smaller factor and for a larger one."""
        threshold, joints = self.threshold(factor), []
        for of, first, last in zip(self.size, before, after, strict=True):
            rows, at = np.flatnonzero(first != last), first.copy()
            leaves = of[rows] >= threshold
            at[rows] = np.where(leaves.any(axis=1), leaves.argmax(axis=1), len(threshold))
            joints.append(at)
        return joints

    def taken(self, at: _Joints) -> float:
        """Return what is compared with the budget, given where rows leave."""
        every = zip(self.paths, at, strict=True)
        return self._takes([path.cost[1 + joint, np.arange(len(joint))] for path, joint in every])

    def between(self, low: float, high: float, budget: float) -> tuple[float, float, _Joints]:
        """Return the largest factor within a budget, the next one, and the joints of the first.

        `low` is within it, or 0; `high` is doubled until it is beyond.
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
        """Keep the factor of the open joints; those that are stuck are closed with it."""
        self.tau[self.is_open] = factor
        self.is_open &= ~stuck


def _slopes(score: FloatArray, end: int) -> FloatArray:
    """Return the slopes (T,) of the last values on those at each joint; 1 where there is none."""
    if score.ndim == 3:
        score = score - score.mean(axis=2, keepdims=True)
    flat = score.reshape(len(score), -1)
    slope = np.ones(len(score) - 1)
    product, square = flat[:end] @ flat[end], np.square(flat[:end]).sum(axis=1)
    is_sure = (product > 0) & (square > 0)
    slope[:end][is_sure] = product[is_sure] / square[is_sure]
    return slope
