"""What sums of trees are fitted to: the loss that targets ask for, and how it takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.check_xy import TASKS, label_array, label_values, refuse_many
from pboost.data.targets import CLASSIFICATION, REGRESSION, SoftLabels, task_of
from pboost.data.training import Problem
from pboost.losses import Loss
from pboost.trees.softmax_rounds import check_room
from pboost.values import FloatArray, check_choice
from pboost.values.options import ManyClassesError


def loss_of(y: Any, task: str | None) -> str:
    """Return the loss of such targets: of a regression, of two labels, of more."""
    if task_of(y, task) == REGRESSION:
        return "squared"
    if isinstance(y, SoftLabels):
        return "softmax" if len(y.labels) > 2 else "logistic"
    labels = label_array(y)
    if labels.ndim != 1 or not len(labels):
        return "logistic"  # refused later
    return "softmax" if len(label_values(labels)) > 2 else "logistic"


def task_of_loss(loss: Loss, y: Any, task: str | None) -> str:
    """Return what targets are, "classification" or "regression"."""
    takes_classes = loss.least <= -1
    if task is None:
        is_soft = isinstance(y, SoftLabels) and takes_classes
        return REGRESSION if loss.is_regression and not is_soft else CLASSIFICATION
    check_choice("task", task, TASKS)
    if task == REGRESSION and not loss.is_regression:
        raise ValueError(f'task: expected "classification" for the {loss} loss, got {task!r}')
    if task == CLASSIFICATION and not takes_classes:
        raise ValueError(f'task: expected "regression" for the {loss} loss, got {task!r}')
    return task


def targets_of(problem: Problem, loss: Loss, y: Any) -> tuple[NDArray[Any] | None, FloatArray]:
    """Return the labels, and what the loss compares with: -1 and +1, numbers of labels, numbers."""
    if problem.labels is None:
        numbers: FloatArray = np.ldexp(problem.y, problem.exponent)
        weights = problem.weights
        rows = np.arange(len(numbers)) if weights is None else np.flatnonzero(weights > 0)
        loss.check_targets(numbers[rows], problem.given(rows))
        return None, numbers
    if loss.is_multiclass:
        if isinstance(y, SoftLabels):
            y.check_present()
        check_room(len(problem.labels), problem.n_rows)  # before work on each label
        return problem.labels, problem.label.astype(np.float64)
    check_classes(problem.labels, loss, y)
    return problem.labels, 2.0 * problem.label.astype(np.float64) - 1.0


def check_classes(labels: NDArray[Any], loss: Loss, y: Any = None) -> None:
    """Raise ManyClassesError if there are more classes than a loss compares."""
    if loss.is_multiclass:
        return
    try:
        if isinstance(y, SoftLabels):
            y.check_two()
        refuse_many(labels)
    except ManyClassesError as error:
        error.message += '; loss="softmax" takes more'
        raise
