"""Out-of-fold costs and losses of candidate models, and the choice among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.budget.exit_thresholds import early_exit, upper
from pboost.data.read.check_xy import as_classes, as_targets, as_weights
from pboost.data.targets import REGRESSION, SoftLabels, labels_of_rows, task_of
from pboost.losses.metrics import log_loss
from pboost.models.base import Model
from pboost.models.early_exit_model import Trajectory, where_left
from pboost.models.gradient_boosting import GradientBoostingModel
from pboost.models.graph import DecisionGraph
from pboost.values import Array, FloatArray, Task

RowNumbers = NDArray[np.intp]
#: The multiples of this number, modulo 1, are evenly distributed over [0, 1).
GOLDEN = (5**0.5 - 1) / 2


def by_weight(weight: FloatArray | None, count: int) -> RowNumbers:
    """Return `count` sorted row indices, drawn in proportion to the row weights.

    This is stratified sampling: one row is selected in each of `count` equal parts of the total
    weight, at a quasi-random position. If all weights are equal, each row is selected once.
    """
    if weight is None:
        return np.arange(count)
    total, part = np.cumsum(weight), np.arange(count)
    points = (part + (part + 1) * GOLDEN % 1) * (total[-1] / count)
    return np.minimum(np.searchsorted(total, points), len(weight) - 1)


class Data(NamedTuple):
    """Targets and weights of rows, and the task.

    `y` contains classes, soft labels or regression targets. `truth` contains class codes (the most
    probable class for soft labels) or regression targets. `weight` is None if all weights are
    equal. `n_labels` is 0 for regression.
    """

    y: Array | SoftLabels
    truth: Array
    task: str
    weight: FloatArray | None
    n_labels: int

    def part(self, rows: RowNumbers) -> Data:
        """Return the targets of some rows."""
        weight = None if self.weight is None else self.weight[rows]
        return self._replace(y=self.y[rows], truth=self.truth[rows], weight=weight)

    def numbered(self) -> Array | SoftLabels:
        """Return class codes, or soft labels without classes of probability 0 in all rows."""
        if not isinstance(self.y, SoftLabels):
            return self.truth
        known = np.flatnonzero(self.y.share.any(axis=0))
        return SoftLabels(known, self.y.share[:, known])

    def often(self, rows: RowNumbers) -> RowNumbers:
        """Resample rows in proportion to their weights."""
        return rows if self.weight is None else rows[by_weight(self.weight[rows], len(rows))]

    def compared(self, rows: RowNumbers) -> tuple[RowNumbers, Array]:
        """Resample rows in proportion to their weights; also return their true classes.

        For soft labels, each class of a row is drawn in proportion to its probability.
        """
        if not isinstance(self.y, SoftLabels):
            rows = self.often(rows)
            return rows, self.truth[rows]
        share = self.y.share[rows]
        if self.weight is not None:
            share = share * self.weight[rows, None]
        place, label = np.divmod(by_weight(share.ravel(), len(rows)), share.shape[1])
        return rows[place], label


def read_data(
    y: Any, y_proba: Any, classes: Any, sample_weight: Any, n: int, task: Task | None
) -> tuple[Data, RowNumbers | None]:
    """Return the targets of n rows and the indices of nonzero weights (None for all rows)."""
    if y is None and y_proba is None:
        raise TypeError("y: expected classes or numbers, got None; pass y or y_proba")
    y, weight = labels_of_rows(y, y_proba, classes), as_weights(sample_weight, n)
    data = _data(y, n, task)
    if weight is None:
        return data, None
    rows = np.flatnonzero(weight)
    known = weight[rows]
    if (known == known[0]).all():
        weight = None
    else:  # scale to mean 1
        weight = weight / known.max() / (known / known.max()).mean()
    data = data._replace(weight=weight).part(rows)
    return data, None if len(rows) == n else rows


def _data(y: Any, n: int, task: Task | None) -> Data:
    """Return the targets of rows with equal weights."""
    task = task_of(y, task)
    if isinstance(y, SoftLabels):
        y.check_rows(n)
        y.check_present()
        if task == REGRESSION:
            raise ValueError("y_proba: expected None for regression; pass the targets as y")
        j = len(y.classes)
        return Data(y, y.likeliest.astype(np.int64), "two" if j == 2 else "many", None, j)
    if task == REGRESSION:
        targets = as_targets(y, n)
        return Data(targets, targets, task, None, 0)
    classes, code = as_classes(y, n)
    which = "two" if len(classes) == 2 else "many"
    return Data(classes[code], code.astype(np.int64), which, None, len(classes))


# Candidate models, and the choice among them

#: Before early exits are added, the cost of a model can be this many times the budget.
REACH = 3.0
#: Maximum factor by which decision values are multiplied or divided to calibrate probabilities.
SHARPER = 64.0
#: Models within this many standard errors of the best error are considered equally good.
AS_GOOD = 0.5
#: Candidates without exits are chosen for these fractions of the budget.
PARTS = (1.0, 0.5, 0.25)


class Promise(NamedTuple):
    """Limits for the mean and the maximum number of comparisons of rows.

    For other kinds of budgets, `mean_comparisons` is the budget for feature costs or bytes.
    """

    mean_comparisons: float
    max_comparisons: float

    def at_most(self, budget: float) -> Promise:
        """Return the limits for a smaller budget."""
        if self.mean_comparisons < np.inf:
            return self._replace(mean_comparisons=budget)
        return self._replace(max_comparisons=budget)


@dataclass(frozen=True)
class Tried:
    """Out-of-fold scores and costs of rows after each stage of the models of a family.

    `models` contains the model of each fold with its training rows. `longest` (T + 1,) is the
    maximum number of comparisons up to each stage. `has_exits` is True if rows can exit early.
    `unit` is "mean_comparisons" or "mean_feature_cost".
    """

    family: str
    path: Trajectory
    longest: FloatArray
    truth: Array
    models: Sequence[tuple[DecisionGraph | GradientBoostingModel, NDArray[np.intp]]]
    has_exits: bool
    unit: str = "mean_comparisons"

    @property
    def fullest(self) -> DecisionGraph | GradientBoostingModel:
        """Return the fold model with the largest number of classes."""
        return max((model for model, _ in self.models), key=lambda model: model.n_votes)


class ModelChoice(NamedTuple):
    """A candidate: the first `joints` stages of a family, with or without early exits.

    `promise` contains the limits of its exits. `loss` (n,) contains 0-1 losses of rows, or squared
    errors for regression. `log_loss` is the log loss after calibration on these rows, or the error
    for regression.
    """

    family: str
    joints: int
    has_exits: bool
    promise: Promise
    cost: float
    loss: FloatArray
    log_loss: float

    @property
    def error(self) -> float:
        """Return the mean loss."""
        return float(self.loss.mean())

    @property
    def standard_error(self) -> float:
        """Return the standard error of the mean loss."""
        return standard_error(self.loss)


def standard_error(values: FloatArray) -> float:
    """Return the standard error of the mean of `values`."""
    return float(values.std() / np.sqrt(len(values)))


def options(tried: Tried, promise: Promise) -> Iterator[ModelChoice]:
    """Yield the candidates of a family that are within the limits.

    At most one candidate has early exits. Candidates without early exits have fewer stages.
    """
    score, cost = tried.path
    mean = cost.mean(axis=1)
    bound = upper(cost)
    last_joint = _last(tried.longest, promise.max_comparisons)
    longest = min(_last(mean, REACH * promise.mean_comparisons), last_joint)
    if tried.has_exits and longest > 1 and bound[longest] > promise.mean_comparisons >= bound[1]:
        model, path = tried.fullest.first(longest), first_part(tried.path, longest)
        budget: dict[str, Any] = {tried.unit: promise.mean_comparisons}
        exit_model = early_exit(model, path, length=None, **budget)
        joint = where_left(path, exit_model.threshold, tried.unit == "mean_feature_cost")
        left = score[joint, np.arange(len(joint))]
        yield _option(tried, longest, True, promise, exit_model.cost, left)
    stops = [
        min(
            _last(bound, part * promise.mean_comparisons),
            _last(tried.longest, part * promise.max_comparisons),
        )
        for part in PARTS
    ]
    for stop in dict.fromkeys(stop for stop in stops if stop):
        yield _option(tried, stop, False, promise, float(mean[stop]), score[stop])


def _option(
    tried: Tried, joints: int, exits: bool, promise: Promise, cost: float, score: FloatArray
) -> ModelChoice:
    """Return a candidate, given its decision values."""
    loss = losses(score, tried.truth)
    model, votes = tried.fullest, 1 if score.ndim == 1 else score.shape[1]
    if tried.truth.dtype.kind != "i" or model.n_votes < votes:
        return ModelChoice(tried.family, joints, exits, promise, cost, loss, float(loss.mean()))
    log_loss = sharpened(model, score, tried.truth)[1]
    return ModelChoice(tried.family, joints, exits, promise, cost, loss, log_loss)


def sharpened(model: Model, score: FloatArray, truth: Array) -> tuple[float, float]:
    """Return the factor of decision values with the smallest log loss, and the log loss."""
    from scipy.optimize import minimize_scalar  # imported late, see bounds._tree.terms_at_2

    def loss(power: float) -> float:
        return log_loss(model.probabilities(score * np.exp(power)), truth)

    max_log_factor = np.log(SHARPER)
    minimum = minimize_scalar(
        loss, bounds=(-max_log_factor, max_log_factor), method="bounded", options={"xatol": 0.01}
    )
    return float(np.exp(minimum.x)), float(minimum.fun)


def first_part(path: Trajectory, joints: int) -> Trajectory:
    """Return a trajectory up to a stage."""
    return Trajectory(path.score[: joints + 1], path.cost[: joints + 1])


def _last(values: FloatArray, maximum: float) -> int:
    """Return the last index at which the increasing `values` are at most `maximum`."""
    return int(np.searchsorted(values, maximum * (1 + 1e-12), side="right")) - 1


def losses(score: FloatArray, truth: Array) -> FloatArray:
    """Return the 0-1 loss of each row, or the squared error for regression."""
    if truth.dtype.kind != "i":
        squared: FloatArray = (score - truth) ** 2
        return squared
    predicted = score > 0 if score.ndim == 1 else score.argmax(axis=1)
    return (predicted != truth).astype(np.float64)


def best(options: Sequence[ModelChoice]) -> ModelChoice | None:
    """Return the candidate with the least log loss among those whose error is nearly the smallest.

    The error may exceed the smallest error by AS_GOOD standard errors of the difference on the same
    rows. The log loss then decides, because it varies less by chance. The result is None if there
    are no candidates.
    """
    lowest = min(options, key=lambda option: option.error, default=None)
    if lowest is None:
        return None
    more = [option.loss - lowest.loss for option in options]
    good = [of.mean() <= AS_GOOD * standard_error(of) for of in more]
    return min(compress(options, good), key=lambda option: option.log_loss)


class Shortlist(NamedTuple):
    """The candidates for a budget that are better than a smaller budget's model, and all others."""

    candidates: list[ModelChoice]
    every: list[ModelChoice]

    @property
    def chosen(self) -> ModelChoice | None:
        """Return the best candidate, or None if there is none."""
        return best(self.candidates)

    def in_turn(self) -> Iterator[ModelChoice]:
        """Yield the candidates, best first, and then all others."""
        for group in self:
            rest = list(group)
            while option := best(rest):
                yield option
                rest = [other for other in rest if other is not option]


def joined(
    paths: Sequence[Trajectory], longest: Sequence[FloatArray]
) -> tuple[Trajectory, FloatArray]:
    """Join the trajectories of all folds, cut to the same number of stages.

    The last common stage is left out. The model of all rows has it, but no row reaches it.
    """
    joints = max(min(len(path.cost) for path in paths) - 1, 2)
    score = np.concatenate([path.score[:joints] for path in paths], axis=1)
    cost = np.concatenate([path.cost[:joints] for path in paths], axis=1)
    return Trajectory(score, cost), np.max([each[:joints] for each in longest], axis=0)
