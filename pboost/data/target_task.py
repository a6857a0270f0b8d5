"""Whether targets are classes or a regression: the rule of everything that takes both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import numpy as np

from pboost.data.check_xy import MOST_CLASSES, TASKS, label_array, label_values, target_array
from pboost.data.criteria import CRITERIA
from pboost.data.labels import SoftLabels
from pboost.values import Array, check_choice
from pboost.values.options import Option, arguments_of, only_classifies, unwrapped

CLASSIFICATION, REGRESSION = TASKS
#: The criteria of trees that are no criteria of classes.
OF_NUMBERS = {"squared": REGRESSION}
#: The losses, by their names, that are of a regression unless `task` says otherwise.
LOSSES_OF_NUMBERS = ("squared", "absolute", "huber", "quantile", "poisson")


class TaskOption(TypedDict, total=False):
    """What is fitted.

    Parameters
    ----------
    task : {"classification", "regression"}, optional
        What `y` is. By default text, booleans and at most 20 different whole numbers are classes,
        and numbers that are not all whole are a regression. With more different whole numbers it
        must be given, unless `criterion` is of one task only.
    """

    task: Annotated[Literal["classification", "regression"] | None, Option(None)]


class Targets(NamedTuple):
    """What the rule reads of some targets; those of a table in parts are joined by `joined`.

    Attributes
    ----------
    are_numbers : bool
        Whether they are numbers, no text and no booleans.
    are_whole : bool
        Whether all numbers are whole.
    values : ndarray
        Different whole numbers, at most one more than there can be classes.
    """

    are_numbers: bool
    are_whole: bool
    values: Array

    @property
    def task(self) -> str | None:
        """The task, None if the targets can be either: so many different whole numbers."""
        if not self.are_numbers:
            return CLASSIFICATION
        if not self.are_whole:
            return REGRESSION
        return CLASSIFICATION if len(self.values) <= MOST_CLASSES else None


NO_VALUES = np.empty(0)
#: What the rule reads of no rows.
NOTHING = Targets(True, True, NO_VALUES)


def targets_of(y: Any) -> Targets:
    """Return what the rule reads of targets.

    Missing and infinite ones, and those of other dimensions, are refused later.
    """
    found = target_array(y)
    if found.ndim != 1:
        return NOTHING
    found = found[np.isfinite(found)] if found.dtype.kind == "f" else label_array(y)
    are_numbers = found.dtype.kind in "iuf"
    if not len(found):
        return NOTHING
    if not are_numbers or (found.dtype.kind == "f" and (found != np.rint(found)).any()):
        return Targets(are_numbers, not are_numbers, NO_VALUES)
    return Targets(True, True, label_values(found)[: MOST_CLASSES + 1].copy())


def joined(parts: Iterable[Targets]) -> Targets:
    """Return what the rule reads of the targets of all parts."""
    some = list(parts)
    found = [part.values for part in some if len(part.values)]
    every = np.unique(np.concatenate(found)) if found else NO_VALUES
    return Targets(
        all(part.are_numbers for part in some),
        all(part.are_whole for part in some),
        every[: MOST_CLASSES + 1],
    )


def known_task(targets: Targets) -> str:
    """Return the task of targets; ValueError if they can be either."""
    if targets.task is None:
        raise ValueError(
            f"y: got more than {MOST_CLASSES} different whole numbers, which can be classes or a "
            'regression; pass task="classification" or task="regression"'
        )
    return targets.task


def task_of(y: Any, task: str | None, decided: str | None = None) -> str:
    """Return "classification" or "regression", whatever `y` holds if `task` is given.

    Text, booleans and at most 20 different whole numbers are classes; numbers that are not all
    whole are a regression; more whole numbers can be either, and a ValueError asks for the task.

    Parameters
    ----------
    y : array_like of shape (n,), or SoftLabels
        Targets; probabilities of classes are a classification.
    task : {"classification", "regression"} or None
        The option of this name.
    decided : str or None
        The task that other options leave, such as a loss of regressions.
    """
    if task is not None:
        return check_choice("task", task, TASKS)
    if decided is not None or isinstance(y, SoftLabels):
        return decided or CLASSIFICATION
    return known_task(targets_of(y))


def task_of_options(options: Mapping[str, Any]) -> str | None:
    """Return the task that a loss or criterion is of, None if there is none of one task only."""
    loss, criterion = options.get("loss"), options.get("criterion")
    if loss is not None:
        is_of_numbers = getattr(loss, "is_regression", loss in LOSSES_OF_NUMBERS)
        return REGRESSION if is_of_numbers else CLASSIFICATION
    if isinstance(criterion, str):
        return CLASSIFICATION if criterion in CRITERIA else OF_NUMBERS.get(criterion)
    return None


def task_of_fit(
    fit: Callable[..., Any], options: Mapping[str, Any], y: Any, task: str | None
) -> str:
    """Return the task of a builder with these options, or with those of ``functools.partial``.

    A function of the user is not looked into.
    """
    function, given = unwrapped(fit)
    given = {**given, **options}
    decided = CLASSIFICATION if only_classifies(function) else task_of_options(given)
    return task_of(y, given.get("task") if task is None else task, decided)


def with_task(fit: Callable[..., Any], task: str) -> Callable[..., Any]:
    """Return a builder that is passed the task, if it takes one and its options leave it open."""
    given = unwrapped(fit)[1]
    is_open = given.get("task") is None and task_of_options(given) is None
    return partial(fit, task=task) if is_open and "task" in arguments_of(fit) else fit
