"""What models cost and miss on rows that they were not fitted to, and which of them to take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.budget.calibrate_exit import early_exit, upper
from pboost.data.read.check_xy import as_classes, as_targets, as_weights
from pboost.data.targets import REGRESSION, SoftLabels, labels_of_rows, task_of
from pboost.inspection.cross_validation import log_loss
from pboost.models.base import Model
from pboost.models.early_exit_model import Trajectory, where_left
from pboost.models.graph import DecisionGraph
from pboost.models.tree_sum import GradientBoostingModel
from pboost.values import Array, FloatArray, Task

RowNumbers = NDArray[np.intp]
#: Its multiples are spread evenly over [0, 1).
GOLDEN = (5**0.5 - 1) / 2


def by_weight(weight: FloatArray | None, count: int) -> RowNumbers:
    """Return `count` places, each about as often as its weight says, in their order.

    One is taken in each of `count` equal parts of the total weight (stratified sampling), at a
    point that no period of the rows goes with: places of equal weights are there once.
    """
    if weight is None:
        return np.arange(count)
    total, part = np.cumsum(weight), np.arange(count)
    points = (part + (part + 1) * GOLDEN % 1) * (total[-1] / count)
    return np.minimum(np.searchsorted(total, points), len(weight) - 1)


class Data(NamedTuple):
    """What is to be predicted, as it was given and as what it is compared with; which task it is.

    `truth` are the numbers of labels, of soft labels of the likeliest, or numbers; `weight` those
    of the rows, None where all are equal; `n_labels` 0 of a regression.
    """

    y: Array | SoftLabels
    truth: Array
    task: str
    weight: FloatArray | None
    n_labels: int

    def part(self, rows: RowNumbers) -> Data:
        """Return what is to be predicted of some rows."""
        weight = None if self.weight is None else self.weight[rows]
        return self._replace(y=self.y[rows], truth=self.truth[rows], weight=weight)

    def numbered(self) -> Array | SoftLabels:
        """Return labels as their numbers, without those that no row has."""
        if not isinstance(self.y, SoftLabels):
            return self.truth
        known = np.flatnonzero(self.y.share.any(axis=0))
        return SoftLabels(known, self.y.share[:, known])

    def often(self, rows: RowNumbers) -> RowNumbers:
        """Return some rows, each about as often as its weight says."""
        return rows if self.weight is None else rows[by_weight(self.weight[rows], len(rows))]

    def compared(self, rows: RowNumbers) -> tuple[RowNumbers, Array]:
        """Return as many rows, as often as their weights say, and what is true of each.

        Of soft labels each of a row is true as often as is probable.
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
    """Return what is to be predicted of n rows, and which of them weigh anything; None: all."""
    if y is None and y_proba is None:
        raise TypeError("y: expected labels or numbers, got None")
    y, weight = labels_of_rows(y, y_proba, classes), as_weights(sample_weight, n)
    data = _data(y, n, task)
    if weight is None:
        return data, None
    rows = np.flatnonzero(weight)
    known = weight[rows]
    if (known == known[0]).all():
        weight = None
    else:  # of mean one, as options of builders count
        weight = weight / known.max() / (known / known.max()).mean()
    data = data._replace(weight=weight).part(rows)
    return data, None if len(rows) == n else rows


def _data(y: Any, n: int, task: Task | None) -> Data:
    """Return what is to be predicted, of rows of equal weights."""
    task = task_of(y, task)
    if isinstance(y, SoftLabels):
        y.check_rows(n)
        y.check_present()
        if task == REGRESSION:
            raise ValueError("y_proba: expected y, numbers, of a regression")
        j = len(y.classes)
        return Data(y, y.likeliest.astype(np.int64), "two" if j == 2 else "many", None, j)
    if task == REGRESSION:
        targets = as_targets(y, n)
        return Data(targets, targets, task, None, 0)
    classes, code = as_classes(y, n)
    which = "two" if len(classes) == 2 else "many"
    return Data(classes[code], code.astype(np.int64), which, None, len(classes))


# Options, and which of them to take

#: Comparisons of whole models by those of the budget: rows leave early, on average at the budget.
REACH = 3.0
#: By how much probabilities can be sharper, or flatter, than decision values say.
SHARPER = 64.0
#: By how many standard errors of the difference a model may miss more than the best.
AS_GOOD = 1.0
#: Comparisons up to which the least error counts: such models say few different probabilities.
FEW = 15.0
#: Shares of the budget that models without exits may cost.
PARTS = (1.0, 0.5, 0.25)


class Promise(NamedTuple):
    """What no model may exceed: comparisons in the mean over rows, and of each row.

    Where budgets are feature costs, what rows pay stands for comparisons.
    """

    mean_comparisons: float
    max_comparisons: float

    def at_most(self, budget: float) -> Promise:
        """Return the promise of a smaller budget."""
        if self.mean_comparisons < np.inf:
            return self._replace(mean_comparisons=budget)
        return self._replace(max_comparisons=budget)


@dataclass(frozen=True)
class Tried:
    """The paths of rows through a family's models, each row through the one it was not fitted to.

    `models` are those of the folds, each with the rows that it was fitted to; `longest` (T + 1,)
    the most comparisons that a row can need up to each joint. `has_exits`: rows can leave there;
    `unit`: "mean_comparisons", or "mean_feature_cost" where costs are feature costs.
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
        """A model of a fold that knows as many labels as any."""
        return max((model for model, _ in self.models), key=lambda model: model.n_votes)


class ModelChoice(NamedTuple):
    """A model that could be taken: a family up to a joint, with exits before or without.

    `loss` (n,) is that of each row, whether its label is missed; `log_loss` that of probabilities
    made as sharp as suits these rows best, of a regression the error again.
    """

    family: str
    joints: int
    has_exits: bool
    cost: float
    loss: FloatArray
    log_loss: float

    @property
    def error(self) -> float:
        """The mean loss."""
        return float(self.loss.mean())

    @property
    def standard_error(self) -> float:
        """That of the mean loss."""
        return standard_error(self.loss)


def standard_error(values: FloatArray) -> float:
    """Return the standard error of a mean."""
    return float(values.std() / np.sqrt(len(values)))


def options(tried: Tried, promise: Promise) -> Iterator[ModelChoice]:
    """Yield models of a family that keep a promise: with exits, and shorter ones without."""
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
        yield _option(tried, longest, True, exit_model.cost, score[joint, np.arange(len(joint))])
    stops = [
        min(
            _last(bound, part * promise.mean_comparisons),
            _last(tried.longest, part * promise.max_comparisons),
        )
        for part in PARTS
    ]
    for stop in dict.fromkeys(stop for stop in stops if stop):
        yield _option(tried, stop, False, float(mean[stop]), score[stop])


def _option(tried: Tried, joints: int, exits: bool, cost: float, score: FloatArray) -> ModelChoice:
    """Return an option of these decision values."""
    loss = losses(score, tried.truth)
    model, votes = tried.fullest, 1 if score.ndim == 1 else score.shape[1]
    if tried.truth.dtype.kind != "i" or model.n_votes < votes:
        return ModelChoice(tried.family, joints, exits, cost, loss, float(loss.mean()))
    log_loss = sharpened(model, score, tried.truth)[1]
    return ModelChoice(tried.family, joints, exits, cost, loss, log_loss)


def sharpened(model: Model, score: FloatArray, truth: Array) -> tuple[float, float]:
    """Return the factor of decision values of least log loss, and this."""
    from scipy.optimize import minimize_scalar  # not at import: see bounds._tree.terms_at_2

    def loss(power: float) -> float:
        return log_loss(model.probabilities(score * np.exp(power)), truth)

    max_log_factor = np.log(SHARPER)
    minimum = minimize_scalar(
        loss, bounds=(-max_log_factor, max_log_factor), method="bounded", options={"xatol": 0.01}
    )
    return float(np.exp(minimum.x)), float(minimum.fun)


def first_part(path: Trajectory, joints: int) -> Trajectory:
    """Return the path up to a joint."""
    return Trajectory(path.score[: joints + 1], path.cost[: joints + 1])


def _last(values: FloatArray, maximum: float) -> int:
    """Return the last place of values that rise where they are not above `maximum`."""
    return int(np.searchsorted(values, maximum * (1 + 1e-12), side="right")) - 1


def losses(score: FloatArray, truth: Array) -> FloatArray:
    """Return whether the label of each row is missed, or the squared error."""
    if truth.dtype.kind != "i":
        squared: FloatArray = (score - truth) ** 2
        return squared
    predicted = score > 0 if score.ndim == 1 else score.argmax(axis=1)
    return (predicted != truth).astype(np.float64)


def best(options: Sequence[ModelChoice], *, few: bool = False) -> ModelChoice | None:
    """Return the one of least log loss among those that miss no more than chance explains.

    A standard error of the difference on the same rows more than the best: the log loss differs
    less by chance. Where comparisons are `few`, among those that miss the least. None where there
    is none.
    """
    lowest = min(options, key=lambda option: option.error, default=None)
    if lowest is None:
        return None
    as_good = 0.0 if few else AS_GOOD
    more = [option.loss - lowest.loss for option in options]
    good = [of.mean() <= as_good * standard_error(of) for of in more]
    return min(compress(options, good), key=lambda option: option.log_loss)


def joined(
    paths: Sequence[Trajectory], longest: Sequence[FloatArray]
) -> tuple[Trajectory, FloatArray]:
    """Return the paths of all folds as one, up to the last joint but one that all of them have.

    What has one joint more gives rows that go that far a slope, see `refit`.
    """
    joints = max(min(len(path.cost) for path in paths) - 1, 2)
    score = np.concatenate([path.score[:joints] for path in paths], axis=1)
    cost = np.concatenate([path.cost[:joints] for path in paths], axis=1)
    return Trajectory(score, cost), np.max([each[:joints] for each in longest], axis=0)
