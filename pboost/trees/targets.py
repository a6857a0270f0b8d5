"""What sums of trees are fitted to: targets of a loss, weights of rows, derivatives; leaf steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pboost._core import boost
from pboost.data.read.check_xy import TASKS, label_array, label_values, refuse_many
from pboost.data.targets import CLASSIFICATION, REGRESSION, SoftLabels, task_of
from pboost.data.training import Problem
from pboost.losses import Loss, LossName
from pboost.values import Array, FloatArray, IntArray, Task, check_choice, first_false
from pboost.values.options import MulticlassError

#: Copies of a row at most that words have room for; with more of them sums take longer.
MOST_OF_ROW = 64

#: What the largest weight is divided into, where sums of weights are to be exact.
UNITS = 2.0**31


@dataclass(frozen=True, slots=True, eq=False)
class RoundWeights:
    """The weights of the rows of a fit.

    Attributes
    ----------
    of_rows : ndarray of float64, shape (n,), or None
        Weights; 0 for rows that take no part; None where all are 1.
    are_copies : bool
        Whether they are whole numbers of copies of a row, so that a model is that of the copies:
        derivatives are rounded and then multiplied.
    n_used, n_copies, most_copies : int
        How many rows take part; how many copies there are of them, and of one of them at most,
        where weights are copies; else each row is one.
    total : float
        The sum of the weights.
    """

    of_rows: FloatArray | None
    are_copies: bool
    n_used: int
    n_copies: int
    most_copies: int
    total: float

    def in_units(self) -> IntArray | None:
        """Return weights as whole numbers >= 1, or 0 of rows left out; None: all are 1."""
        if self.of_rows is None:
            return None
        units = self.of_rows if self.are_copies else np.rint(self.of_rows * UNITS)
        return np.where(self.of_rows > 0, np.maximum(units, 1.0), 0.0).astype(np.int64)

    def sum(self, values: FloatArray) -> float:
        """Return the weighted sum of numbers >= 0, whatever their order."""
        if self.of_rows is None:
            return boost.exact_sum(values)
        if self.are_copies:
            return boost.exact_sum(np.where(self.of_rows > 0, values, 0.0), self.of_rows)
        return boost.exact_sum(np.where(self.of_rows > 0, self.of_rows * values, 0.0))


def copies_of(weight: FloatArray, unit: float) -> tuple[FloatArray, bool]:
    """Return weights as numbers of copies in a unit, and whether they are such."""
    copies = np.rint(weight / unit)
    are_near = np.abs(weight / unit - copies) <= 1e-9
    return copies, bool((are_near & ((copies > 0) | (weight == 0))).all())


def weights_of(weight: FloatArray, unit: float | None = None) -> RoundWeights:
    """Return weights for rounds.

    `weight` has 0 for rows that take no part; `unit` is what all are multiples of, so that they
    are as many copies of rows, as far as floating point can tell; None: none is known.
    """
    used = int(np.count_nonzero(weight))
    if (weight == 1).all():
        return RoundWeights(None, False, used, used, 1, float(used))
    if unit is not None:
        copies, are_copies = copies_of(weight, unit)
        if copies.max() <= MOST_OF_ROW and are_copies:
            total, largest = int(copies.sum()), int(copies.max())
            return RoundWeights(copies, True, used, total, largest, float(total))
    return RoundWeights(weight, False, used, used, 1, boost.exact_sum(weight))


class Steps(NamedTuple):
    """What leaves add: `rate` times a step of `step_limit` at most, one of Newton's or the best
    one.

    `l2` is what is added to the curvature of a leaf, where the largest weight of a row is 1; `sums`
    is in how many words those of derivatives are, see `fit_gradient_boosting`.
    """

    rate: float
    step_limit: float
    solved: bool
    l2: float
    sums: str = "auto"


#: The largest derivative of a loss of one's own: sums of squares are then numbers.
MOST_DERIVATIVE = 1e150


def check_size(loss: Loss, y: FloatArray, f: FloatArray, rows: Array) -> None:
    """Raise ValueError for derivatives that no tree can be fitted to; `rows` as of `slopes_of`."""
    for name, values in _derivatives(loss, y, f, rows).items():
        if (k := first_false(np.abs(values) <= MOST_DERIVATIVE)) >= 0:
            raise ValueError(
                f"loss: {name}(y, f): expected a number of at most {MOST_DERIVATIVE:g} in size, "
                f"got {values[k]} of row {rows[k]}, where y = {y[k]:g}, f = {f[k]:g}"
            )


def are_too_large(loss: Loss, y: FloatArray, f: FloatArray, rows: Array) -> bool:
    """Return whether derivatives are as `check_size` refuses them."""
    derivatives = _derivatives(loss, y, f, rows).values()
    return any(not (np.abs(values) <= MOST_DERIVATIVE).all() for values in derivatives)


def _derivatives(loss: Loss, y: FloatArray, f: FloatArray, rows: Array) -> dict[str, FloatArray]:
    with np.errstate(all="ignore"):
        derivatives = {"gradient": _numbers("gradient", loss.gradient(y, f), y, f, rows)}
        if loss.has_curvature:
            derivatives["curvature"] = _numbers("curvature", loss.curvature(y, f), y, f, rows)
    return derivatives


def slopes_of(
    loss: Loss, y: FloatArray, f: FloatArray, weight: FloatArray, rows: Array
) -> tuple[FloatArray, FloatArray]:
    """Return the weighted gradients and curvatures; of a loss without curvature weights are those.

    `rows` are what errors call the rows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        gradient = _numbers("gradient", loss.gradient(y, f), y, f, rows)
        curvature = np.ones(len(y))
        if loss.has_curvature:
            curvatures = _numbers("curvature", loss.curvature(y, f), y, f, rows)
            raised = np.maximum(curvatures, np.abs(gradient) / loss.limit)
            # A row without gradient or curvature has no part; a gradient alone no Newton step.
            if raised.any() and not gradient[raised == 0].any():
                curvature = raised
        return weight * gradient, weight * curvature


def _numbers(
    name: str, values: FloatArray, y: FloatArray, f: FloatArray, rows: Array
) -> FloatArray:
    """Return derivatives of rows; ValueError if one is NaN, or a curvature negative."""
    wrong = np.isnan(values) if name == "gradient" else ~(values >= 0)
    if wrong.any():
        k = int(np.argmax(wrong))
        wanted = "a number" if name == "gradient" else "a number >= 0"
        raise ValueError(
            f"loss: {name}(y, f): expected {wanted}, got {values[k]} of row {rows[k]}, where "
            f"y = {y[k]:g}, f = {f[k]:g}"
        )
    return values


def working_response(
    loss: Loss, y: FloatArray, f: FloatArray, weight: FloatArray, rows: Array | None = None
) -> tuple[FloatArray, FloatArray] | None:
    """Return the targets and weights of a least-squares step; None where they are not finite.

    The largest weight is 1.
    """
    rows = np.arange(len(y)) if rows is None else rows
    gradient = _numbers("gradient", loss.gradient(y, f), y, f, rows)
    target, of_target = -gradient, weight
    if loss.has_curvature:
        curvatures = _numbers("curvature", loss.curvature(y, f), y, f, rows)
        curvature = np.maximum(curvatures, np.abs(gradient) / loss.limit)
        some = curvature > 0
        # A row without gradient or curvature has no part; a gradient alone has no Newton step.
        if not gradient[~some].any() and some.any():
            with np.errstate(over="ignore", invalid="ignore"):
                target = np.divide(-gradient, curvature, out=np.zeros(len(y)), where=some)
            of_target = weight * np.where(some, curvature, 0.0)
    if not (np.isfinite(target).all() and 0 < of_target.sum() < np.inf):
        return None
    # Curvatures can all be near the smallest number; only their ratios matter.
    return target, of_target / of_target.max()


def loss_of(y: object, task: Task | None) -> LossName:
    """Return the loss of such targets: of a regression, of two labels, of more."""
    if task_of(y, task) == REGRESSION:
        return "squared_error"
    if isinstance(y, SoftLabels):
        return "softmax" if len(y.classes) > 2 else "log_loss"
    labels = label_array(y)
    if labels.ndim != 1 or not len(labels):
        return "log_loss"  # refused later
    return "softmax" if len(label_values(labels)) > 2 else "log_loss"


def task_of_loss(loss: Loss, y: object, task: str | None) -> str:
    """Return what targets are, "classification" or "regression"."""
    takes_classes = loss.least <= -1
    if task is None:
        is_soft = isinstance(y, SoftLabels) and takes_classes
        return REGRESSION if loss.is_regression and not is_soft else CLASSIFICATION
    check_choice("task", task, TASKS)
    if task == REGRESSION and not loss.is_regression:
        raise ValueError(f'task: expected "classification" with loss="{loss}", got {task!r}')
    if task == CLASSIFICATION and not takes_classes:
        raise ValueError(f'task: expected "regression" with loss="{loss}", got {task!r}')
    return task


def targets_of(problem: Problem, loss: Loss, y: object) -> tuple[Array | None, FloatArray]:
    """Return the labels, and what the loss compares with: -1 and +1, numbers of labels, numbers."""
    if problem.classes is None:
        numbers: FloatArray = np.ldexp(problem.y, problem.exponent)
        weights = problem.weights
        rows = np.arange(len(numbers)) if weights is None else np.flatnonzero(weights > 0)
        loss.check_targets(numbers[rows], problem.input_rows(rows))
        return None, numbers
    if loss.is_multiclass:
        if isinstance(y, SoftLabels):
            y.check_present()
        check_room(len(problem.classes), problem.n_rows)  # before work on each label
        return problem.classes, problem.label.astype(np.float64)
    check_classes(problem.classes, loss, y)
    return problem.classes, 2.0 * problem.label.astype(np.float64) - 1.0


def check_room(n_labels: int, n_rows: int) -> None:
    """Raise MemoryError where scores and gradients of each label and row have no room."""
    try:
        np.empty((2, n_labels, n_rows))
    except MemoryError:
        raise MemoryError(
            f"y: the scores and gradients of {n_rows} rows for {n_labels} labels take "
            f"{16 * n_labels * n_rows} bytes, which there are not; fit_one_vs_rest has one label "
            "at a time"
        ) from None


def check_classes(classes: Array, loss: Loss, y: object = None) -> None:
    """Raise MulticlassError if there are more classes than a loss compares."""
    if loss.is_multiclass:
        return
    try:
        if isinstance(y, SoftLabels):
            y.check_two()
        refuse_many(classes)
    except MulticlassError as error:
        error.message += '; loss="softmax" takes more'
        raise
