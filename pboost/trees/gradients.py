"""Targets and weights of boosted trees: derivatives of the loss, and settings of leaf values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pboost._core import boost
from pboost.data.read.check_xy import (
    TASKS,
    is_continuous,
    label_array,
    label_values,
    refuse_many,
)
from pboost.data.targets import CLASSIFICATION, REGRESSION, SoftLabels, task_of
from pboost.data.training_data import Problem
from pboost.losses import Loss, LossName
from pboost.values import Array, FloatArray, IntArray, Task, check_choice, first_false
from pboost.values.options import MulticlassError

#: Maximum number of copies of a row. Larger weights do not count as copies.
MOST_OF_ROW = 64

#: Resolution of weights, relative to the largest weight, if their sums must be exact.
UNITS = 2.0**31
#: Resolution of weights with which float64 holds the sum of 2**32 of them, relative to the largest.
COARSE_UNITS = 2.0**20


@dataclass(frozen=True, slots=True, eq=False)
class RoundWeights:
    """The weights of the rows of a fit.

    Attributes
    ----------
    of_rows : ndarray of float64, shape (n,), or None
        Weights, which are 0 for rows that are not used. None if all weights are 1.
    are_copies : bool
        If True, weights are numbers of copies. Derivatives are rounded before they are multiplied
        by weights, so that the model is equal to a model fitted to the copies.
    n_used, n_copies, most_copies : int
        Number of used rows, number of copies of all used rows, and the maximum number of copies of
        a row. If weights are not copies, each row counts once.
    total : float
        Sum of the weights.
    """

    of_rows: FloatArray | None
    are_copies: bool
    n_used: int
    n_copies: int
    most_copies: int
    total: float

    def in_units(self) -> IntArray | None:
        """Return weights as integers >= 1, or 0 for unused rows; None if all weights are 1."""
        if self.of_rows is None:
            return None
        units = self.of_rows if self.are_copies else np.rint(self.of_rows * UNITS)
        return np.where(self.of_rows > 0, np.maximum(units, 1.0), 0.0).astype(np.int64)

    @property
    def exact_scale(self) -> float:
        """Scale of the weights from `in_exact_units`."""
        return 1.0 if self.of_rows is None or self.are_copies else COARSE_UNITS

    def in_exact_units(self) -> FloatArray | None:
        """Return weights as integers with an exact float64 sum; None if all weights are 1."""
        if self.of_rows is None or self.are_copies:
            return self.of_rows
        units = np.maximum(np.rint(self.of_rows * COARSE_UNITS), 1.0)
        return np.where(self.of_rows > 0, units, 0.0)

    def sum(self, values: FloatArray) -> float:
        """Return the weighted sum of numbers; it does not depend on their order."""
        if self.of_rows is None:
            return boost.exact_sum(values)
        if self.are_copies:
            return boost.exact_sum(np.where(self.of_rows > 0, values, 0.0), self.of_rows)
        return boost.exact_sum(np.where(self.of_rows > 0, self.of_rows * values, 0.0))


def copies_of(weight: FloatArray, unit: float) -> tuple[FloatArray, bool]:
    """Return the rounded ratios of weights to `unit`, and whether they are integers."""
    copies = np.rint(weight / unit)
    are_near = np.abs(weight / unit - copies) <= 1e-9
    return copies, bool((are_near & ((copies > 0) | (weight == 0))).all())


def weights_of(weight: FloatArray, unit: float | None = None) -> RoundWeights:
    """Return the weights for the rounds.

    `weight` is 0 for rows that are not used. `unit` is a common divisor of the weights, with which
    they can count as copies, or None.
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
    """Options for the computation of leaf values.

    A leaf value is `rate` times a step with an absolute value of at most `step_limit`. If `solved`
    is True, the step minimizes the loss; otherwise it is a Newton step. `l2` is added to the
    Hessian of a leaf, in units of the largest weight, and `sums` is the option
    `histogram_precision`. `shrinkage` is the option `leaf_shrinkage`, and `row_weight` the weight
    of one row, see `weight_of_copy`.
    """

    rate: float
    step_limit: float
    solved: bool
    l2: float
    sums: str = "auto"
    shrinkage: float = 0.0
    row_weight: float = 1.0


#: Maximum absolute derivative of a custom loss, so that sums of squares do not overflow.
MOST_DERIVATIVE = 1e150


def check_size(loss: Loss, y: FloatArray, f: FloatArray, rows: Array) -> None:
    """Raise ValueError if a derivative is too large. `rows` are for error messages."""
    for name, values in _derivatives(loss, y, f, rows).items():
        if (k := first_false(np.abs(values) <= MOST_DERIVATIVE)) >= 0:
            raise ValueError(
                f"loss: {name}(y, f): expected an absolute value of at most {MOST_DERIVATIVE:g}, "
                f"got {values[k]} in row {rows[k]} with y = {y[k]:g}, f = {f[k]:g}"
            )


def are_too_large(loss: Loss, y: FloatArray, f: FloatArray, rows: Array) -> bool:
    """Return whether `check_size` would raise an error."""
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
    """Return the weighted gradients and Hessians. Without second derivatives, Hessians are 1.

    `rows` are the row numbers for error messages.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        gradient = _numbers("gradient", loss.gradient(y, f), y, f, rows)
        curvature = np.ones(len(y))
        if loss.has_curvature:
            curvatures = _numbers("curvature", loss.curvature(y, f), y, f, rows)
            raised = np.maximum(curvatures, np.abs(gradient) / loss.limit)
            # Skip rows without any derivative. A gradient with a zero Hessian has no Newton step.
            if raised.any() and not gradient[raised == 0].any():
                curvature = raised
        return weight * gradient, weight * curvature


def _numbers(
    name: str, values: FloatArray, y: FloatArray, f: FloatArray, rows: Array
) -> FloatArray:
    """Return derivatives; raise ValueError for NaN and for negative second derivatives."""
    wrong = np.isnan(values) if name == "gradient" else ~(values >= 0)
    if wrong.any():
        k = int(np.argmax(wrong))
        wanted = "a number" if name == "gradient" else "a number >= 0"
        raise ValueError(
            f"loss: {name}(y, f): expected {wanted}, got {values[k]} in row {rows[k]} with "
            f"y = {y[k]:g}, f = {f[k]:g}"
        )
    return values


def working_response(
    loss: Loss, y: FloatArray, f: FloatArray, weight: FloatArray, rows: Array | None = None
) -> tuple[FloatArray, FloatArray] | None:
    """Return targets and weights of a least-squares fit, or None if they are not finite.

    The weights are scaled, so that the largest is 1.
    """
    rows = np.arange(len(y)) if rows is None else rows
    gradient = _numbers("gradient", loss.gradient(y, f), y, f, rows)
    target, of_target = -gradient, weight
    if loss.has_curvature:
        curvatures = _numbers("curvature", loss.curvature(y, f), y, f, rows)
        curvature = np.maximum(curvatures, np.abs(gradient) / loss.limit)
        some = curvature > 0
        # Skip rows without any derivative. A gradient with a zero Hessian has no Newton step.
        if not gradient[~some].any() and some.any():
            with np.errstate(over="ignore", invalid="ignore"):
                target = np.divide(-gradient, curvature, out=np.zeros(len(y)), where=some)
            of_target = weight * np.where(some, curvature, 0.0)
    if not (np.isfinite(target).all() and 0 < of_target.sum() < np.inf):
        return None
    # Hessians can all be close to the smallest float; only their ratios matter.
    return target, of_target / of_target.max()


def loss_of(y: object, task: Task | None) -> LossName:
    """Return the default loss for a target."""
    if task_of(y, task) == REGRESSION:
        return "squared_error"
    if isinstance(y, SoftLabels):
        return "softmax" if len(y.classes) > 2 else "log_loss"
    labels = label_array(y)
    if labels.ndim != 1 or not len(labels):
        return "log_loss"  # raises an error later
    return "softmax" if len(label_values(labels)) > 2 else "log_loss"


def task_of_loss(loss: Loss, y: object, task: str | None) -> str:
    """Return the task, "classification" or "regression", checked against the loss."""
    takes_classes = loss.least <= -1
    is_custom = not type(loss).__module__.startswith("pboost.")
    if is_custom and not loss.is_regression and (task == REGRESSION or _is_continuous(y)):
        name = type(loss).__name__
        raise ValueError(
            f"loss: expected is_regression = True in the class {name} for continuous targets, got "
            "False"
        )
    if task is None:
        is_soft = isinstance(y, SoftLabels) and takes_classes
        return REGRESSION if loss.is_regression and not is_soft else CLASSIFICATION
    check_choice("task", task, TASKS)
    if task == REGRESSION and not loss.is_regression:
        raise ValueError(f'task: expected "classification" with loss="{loss}", got {task!r}')
    if task == CLASSIFICATION and not takes_classes:
        raise ValueError(f'task: expected "regression" with loss="{loss}", got {task!r}')
    return task


def _is_continuous(y: object) -> bool:
    """Return whether the targets are numbers that cannot be classes."""
    labels = None if y is None or isinstance(y, SoftLabels) else label_array(y)
    return labels is not None and labels.ndim == 1 and is_continuous(label_values(labels))


def targets_of(problem: Problem, loss: Loss, y: object) -> tuple[Array | None, FloatArray]:
    """Return the classes, and the targets of the loss: -1 and +1, class codes or values."""
    if problem.classes is None:
        numbers: FloatArray = np.ldexp(problem.y, problem.exponent)
        weights = problem.weights
        rows = np.arange(len(numbers)) if weights is None else np.flatnonzero(weights > 0)
        loss.check_targets(numbers[rows], problem.input_rows(rows))
        return None, numbers
    if loss.is_multiclass:
        if isinstance(y, SoftLabels):
            y.check_present()
        check_room(len(problem.classes), problem.n_rows)  # fails early
        return problem.classes, problem.label.astype(np.float64)
    check_classes(problem.classes, loss, y)
    return problem.classes, 2.0 * problem.label.astype(np.float64) - 1.0


def check_room(n_labels: int, n_rows: int) -> None:
    """Raise MemoryError if decision values and gradients of all classes need too much memory."""
    try:
        np.empty((2, n_labels, n_rows))
    except MemoryError:
        raise MemoryError(
            f"y: the decision values and gradients of {n_rows} rows and {n_labels} classes need "
            f"{16 * n_labels * n_rows} bytes, more than the available memory; use fit_one_vs_rest, "
            "which fits one class at a time"
        ) from None


def check_classes(classes: Array, loss: Loss, y: object = None) -> None:
    """Raise MulticlassError if there are more classes than the loss supports."""
    if loss.is_multiclass:
        return
    try:
        if isinstance(y, SoftLabels):
            y.check_two()
        refuse_many(classes)
    except MulticlassError as error:
        error.message += '; loss="softmax" takes more'
        raise
