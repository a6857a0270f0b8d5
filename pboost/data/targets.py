"""What y is: labels as classes, their probabilities, or numbers; and which of these it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypedDict, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core.boost import exact_sum
from pboost._core.split import Criterion
from pboost._core.voting import scale_weights
from pboost.data.columns.columns import to_fixed_point
from pboost.data.read.check_xy import (
    MOST_CLASSES,
    ONE_OF_EACH,
    TASKS,
    AbsentClassError,
    as_classes,
    as_numbers,
    as_targets,
    as_weights,
    label_array,
    label_values,
    target_array,
)
from pboost.data.read.codes import as_codes
from pboost.data.read.convert import frame_columns, is_frame
from pboost.data.read.numbers import to_numbers
from pboost.losses import LOSSES
from pboost.values import (
    INT32_MAX,
    Array,
    FloatArray,
    IntArray,
    TableLike,
    Task,
    check_choice,
    first_false,
    shown,
)
from pboost.values.options import (
    MulticlassError,
    NoLabelsError,
    Option,
    arguments_of,
    only_classifies,
    unwrapped,
)

#: By how much the probabilities of a row may miss 1.
SLACK = 1e-6
#: Weights are no numbers of copies if their mean is so many times what all are multiples of.
MOST_COPIES = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """What the items of labels stand for: row by row, and in a row class by class.

    Attributes
    ----------
    rows : ndarray of int32, shape (m,)
        Row of X of each entry.
    first : ndarray, shape (n,)
        The first entry of each row.
    likeliest : ndarray of int32, shape (n,)
        The class of largest probability of each row, the first among equals.
    """

    rows: IntArray
    first: NDArray[np.intp]
    likeliest: IntArray


class Classes(NamedTuple):
    """The classes of rows: labels, the class of each entry, its weight or None, and the entries.

    Without `entries` they are the rows.
    """

    classes: Any  # None of numbers
    label: Array
    weights: FloatArray | None
    entries: Entries | None = None

    def weights_of_rows(self, sample_weight: ArrayLike | None, n: int) -> FloatArray | None:
        """Return the weights of the n rows as they were given, soft labels or not."""
        return self.weights if self.entries is None else as_weights(sample_weight, n)


@dataclass(frozen=True, slots=True, eq=False)
class SoftLabels:
    """Probabilities of the classes of rows, in place of labels; made by `labels_of_rows`.

    Attributes
    ----------
    classes : ndarray, shape (J,)
        The sorted labels.
    share : ndarray of float64, shape (n, J)
        Their probabilities; those of a row sum to 1.
    """

    classes: Array
    share: FloatArray

    def __getitem__(self, rows: NDArray[np.integer]) -> SoftLabels:
        return SoftLabels(self.classes, self.share[rows])

    @property
    def likeliest(self) -> IntArray:
        """The class of largest probability of each row, the first among equals."""
        return self.share.argmax(axis=1).astype(np.int32)

    def check_rows(self, n: int) -> None:
        """Raise ValueError unless these are the labels of n rows, of which there are some."""
        if len(self.share) != n:
            raise ValueError(f"y_proba: expected {n} rows, one per row of X, got {len(self.share)}")
        if n == 0:
            raise ValueError("y_proba: expected at least one row, got no rows")

    def check_labels(self, classes: Array) -> None:
        """Raise ValueError unless the labels are those of a model."""
        if not np.array_equal(self.classes, classes):
            raise ValueError(
                f"y_proba: expected columns of the model's labels, {classes.tolist()}, got "
                f"{shown(self.classes.tolist())}"
            )

    def check_two(self, why: str = "") -> None:
        """Raise for more than two labels, and where one of them has no probability."""
        if len(self.classes) > 2:
            expected = f"two columns, one per label, {why}".rstrip(" ,")
            message = f"y_proba: expected {expected}, got {len(self.classes)}"
            raise MulticlassError(message, ONE_OF_EACH)
        self.check_present()

    def check_present(self) -> None:
        """Raise AbsentClassError where a label has no probability in any row."""
        if (absent := first_false(self.share.any(axis=0))) >= 0:
            raise AbsentClassError(
                "y_proba: expected every label to have positive probability in some row, got none "
                f"for {self.classes[absent].item()!r}"
            )

    def expanded(self, weights: FloatArray | None) -> Classes:
        """Return the classes of rows of these weights; cells of probability 0 have no entry."""
        rows, label = (positions.astype(np.int32) for positions in np.nonzero(self.share))
        if len(rows) == len(self.share):  # each row is of one class
            return Classes(self.classes, label, weights)
        if len(rows) > INT32_MAX:
            raise ValueError(
                f"y_proba: expected at most {INT32_MAX} probabilities that are not 0, got "
                f"{len(rows)}"
            )
        weight = self.share[rows, label]
        if weights is not None:
            weight *= weights[rows]
        first = np.searchsorted(rows, np.arange(len(self.share)))
        return Classes(self.classes, label, weight, Entries(rows, first, self.likeliest))


def classes_of_rows(
    y: object, sample_weight: ArrayLike | None, n: int, two: str | None = None
) -> Classes:
    """Return the checked classes and weights of n rows.

    Labels are told from `SoftLabels`; `two` says that there can be two only, see `as_classes`.
    """
    if isinstance(y, SoftLabels):
        y.check_rows(n)
        if two is not None:
            y.check_two(two)
        return y.expanded(as_weights(sample_weight, n))
    return Classes(*as_classes(y, n, two), as_weights(sample_weight, n))


def by_class(label: Array) -> NDArray[np.intp]:
    """Return the rows class by class."""
    # NumPy sorts small integers by their digits.
    small = label.astype(np.int16) if label.max(initial=0) < 2**15 else label
    return np.argsort(small, kind="stable")


def rows_by_label(label: Array, weights: FloatArray | None, classes: Any) -> IntArray:
    """Return the rows of positive weight class by class; raise where a class has none."""
    rows = np.arange(len(label)) if weights is None else np.flatnonzero(weights > 0)
    if np.bincount(label[rows], minlength=len(classes)).min() == 0:
        raise AbsentClassError("sample_weight: expected every class to have positive weight")
    return rows.take(by_class(label.take(rows))).astype(np.int32)


def truth_of_rows(y: object, sample_weight: ArrayLike | None, n: int, task: str) -> Classes:
    """Return the checked classes and weights of n rows; of a regression numbers as `label`."""
    if task == "regression":
        targets = as_targets(numbers_given(y), n)
        return Classes(None, targets, as_weights(sample_weight, n))
    return classes_of_rows(y, sample_weight, n)


def numbers_given(y: object) -> Any:
    """Return the numbers to be predicted as they are; ValueError for `SoftLabels`."""
    if isinstance(y, SoftLabels):
        raise ValueError("y_proba: expected y of a regression, got probabilities of labels")
    return y


def labels_of_rows(y: object, y_proba: ArrayLike | None, classes: object = None) -> Any:
    """Return what a builder is given of labels: `y`, or `SoftLabels` in its place.

    Parameters
    ----------
    y : array_like or None
        Labels.
    y_proba : array_like of shape (n, J) or (n,), data frame, or None
        Their probabilities; one dimension: that of the second of two.
    classes : array_like of shape (J,), optional
        The labels that the columns stand for, by default 0, ..., J - 1, or the names of the columns
        of a data frame.

    Raises
    ------
    ValueError
        If both are given, or probabilities are negative, missing, or do not sum to 1.
    TypeError
        If neither is given, or `y_proba` does not hold numbers.
    """
    if y_proba is None:
        if classes is not None:
            raise ValueError("classes: given without y_proba, whose columns they would name")
        if y is None:
            raise NoLabelsError(
                "y: expected labels, or their probabilities as y_proba, got neither of them"
            )
        return y
    if y is not None:
        raise ValueError("y, y_proba: expected one of them, got both")
    return _soft_labels(y_proba, classes)


def _soft_labels(y_proba: ArrayLike | None, classes: object) -> SoftLabels:
    names, share = _read_frame(y_proba) if is_frame(y_proba) else (None, None)
    if share is None:
        share = as_numbers("y_proba", y_proba)
    if share.ndim == 1:
        _check_probabilities(share[:, None], names, 1.0)
        share = np.column_stack([1.0 - share, share])
    elif share.ndim != 2 or share.shape[1] < 2:
        raise ValueError(
            "y_proba: expected two columns or more, one per label, or one dimension, the "
            f"probabilities of the second of two labels, got shape {share.shape}"
        )
    else:
        _check_probabilities(share, names, 1.0 + SLACK)
    values, order = _column_labels(names if classes is None else classes, share.shape[1])
    share = share if order is None else share[:, order]
    total = share.sum(axis=1)
    if (row := first_false(np.abs(total - 1.0) <= SLACK)) >= 0:
        raise ValueError(
            f"y_proba: expected probabilities that sum to 1 in each row, got {total[row]} in row "
            f"{row}"
        )
    unsettled = np.flatnonzero(total != 1.0)
    share[unsettled] /= total[unsettled, None]
    return SoftLabels(values, share)


def _read_frame(y_proba: Any) -> tuple[Any, FloatArray]:
    """Return the names of the columns of a data frame, as they are, and their numbers."""
    try:
        names, columns = frame_columns(y_proba)
        numbers = [
            to_numbers(column, f"column {name!r}")
            for name, column in zip(names, columns, strict=True)
        ]
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("X:", "y_proba:", 1)) from None
    share = np.column_stack(numbers).astype(np.float64)
    return y_proba.columns.tolist() if hasattr(y_proba, "iloc") else names, share


def _check_probabilities(share: FloatArray, names: Any, maximum: float) -> None:
    """Raise ValueError for the first number that is no probability."""
    if (at := first_false((share >= 0) & (share <= maximum))) >= 0:
        row, column = divmod(at, share.shape[1])
        value = share[row, column]
        raise ValueError(
            "y_proba: expected probabilities, got "
            f"{'a missing value' if np.isnan(value) else value} in row {row}, column "
            f"{column if names is None else repr(names[column])}"
        )


def _column_labels(names: object, n: int) -> tuple[Array, NDArray[np.intp] | None]:
    """Return the sorted labels of n columns, and which column each is, None where all stay."""
    if names is None:
        return np.arange(n), None
    try:
        classes = label_array(list(names) if isinstance(names, tuple) else names)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("y:", "classes:", 1)) from None
    if classes.shape != (n,):
        raise ValueError(f"classes: expected {n}, one per column of y_proba, got {shown(names)}")
    values, code = as_codes(classes)
    if len(values) < n:
        twice = classes[first_false(np.bincount(code)[code] == 1)].item()
        raise ValueError(f"classes: expected different ones, got {twice!r} twice")
    order = np.argsort(code)
    return values, None if (order == np.arange(n)).all() else order


def shares_of(y_proba: Any, classes: Array) -> SoftLabels:
    """Return probabilities of the labels of a model; columns of a data frame are told by name."""
    soft_labels: SoftLabels = _soft_labels(y_proba, None if is_frame(y_proba) else classes)
    soft_labels.check_labels(classes)
    return soft_labels


def soft_validation(y: Any, classes: Array) -> SoftLabels | None:
    """Return the `SoftLabels` that validation labels are, if they have a column for each label."""
    shape = np.shape(y)
    return shares_of(y, classes) if len(shape) == 2 and shape[1] == len(classes) else None


def needs_of(y: object) -> tuple[str, ...]:
    """Return what a builder of members must take beside X and y, by `labels_of_rows`."""
    return ("sample_weight", "y_proba") if isinstance(y, SoftLabels) else ("sample_weight",)


def fitted(
    fit: Callable[..., object], X: TableLike, y: object, options: Mapping[str, object]
) -> Any:
    """Return what a builder makes of X and of labels, or of `SoftLabels`."""
    if isinstance(y, SoftLabels):
        return fit(X, y_proba=y.share, classes=y.classes, **options)
    return fit(X, y, **options)


def balanced_weights(y: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
    """Return weights of rows by which all classes weigh the same.

    Parameters
    ----------
    y : array_like of shape (n,)
        Labels.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows, whose shares within a class stay as they are.

    Returns
    -------
    ndarray of float64, shape (n,)
        To be passed as ``sample_weight=`` to a builder. Their sum is that of the weights given, n
        without, and each class has an equal part of it: a row of weight w in a class that weighs m
        gets ``w * total / (J * m)``.

    Raises
    ------
    ValueError, TypeError
        If y holds no labels, or a class has no weight.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.data.balanced_weights(["no", "no", "no", "yes"]).round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    """
    labels = label_array(y)
    if labels.ndim != 1 or not len(labels):
        raise ValueError(f"y: expected labels in one dimension, got shape {labels.shape}")
    values, code = as_codes(labels)
    weights = as_weights(sample_weight, len(labels))
    weights = np.ones(len(labels)) if weights is None else weights
    mass = np.bincount(code, weights / weights.max())
    if (absent := first_false(mass > 0)) >= 0:
        raise AbsentClassError(
            "sample_weight: expected every class to have positive weight, got none for "
            f"{values[absent].item()!r}"
        )
    return weights * (mass.sum() / (len(values) * mass))[code]


class RowWeights(NamedTuple):
    """Weights of rows, as fields of `TrainingData`."""

    weight: FloatArray
    fixed: NDArray[np.int64]
    weight_exponent: int
    scale: float


def weighed(
    weights: FloatArray | None, rows: IntArray | None, n: int, *, in_any_order: bool = False
) -> RowWeights:
    """Return the weights of the n listed rows, or of all.

    With `in_any_order` the scale does not depend on the order of the rows.
    """
    # One piece of memory: all that a fit frees is then less than twice the largest, which is what
    # allocators keep for the next fit instead of clearing new pages.
    both, exponent = np.empty((2, n)), 0
    weight, fixed = both[0], both[1].view(np.int64)
    if weights is None:
        scale, unit_weight = to_fixed_point(np.ones(1), n)
        weight.fill(1.0)
        fixed.fill(unit_weight[0])
    else:
        exponent, scale = scale_weights(weights, rows, weight, fixed, in_any_order)
    return RowWeights(weight, fixed, exponent, scale)


def weight_of_copy(weights: FloatArray | None) -> float:
    """Return the weight of a row, as far as one can be told: that of which all are multiples, or
    their mean if there is none. So the unit of the weights is no matter, nor are copies of rows.
    """
    if weights is None:
        return 1.0
    unit = float(weights.max())
    some = weights[weights > 0] / unit
    return unit_of(unit, exact_sum(some) / len(some), float(some.min()), partial(least_rest, some))


def unit_of(
    greatest: float, mean: float, smallest: float, rest: Callable[[float], float | None]
) -> float:
    """Return what `weight_of_copy` does, given mean and least weight by the greatest one.

    `rest` returns what `least_rest` does of all weights.
    """
    unit = smallest
    while unit * MOST_COPIES > mean:
        left = rest(unit)
        if left is None:
            return unit * greatest
        unit *= left
    return mean * greatest


def least_rest(weights: FloatArray, unit: float) -> float | None:
    """Return the least by which a weight in a unit departs from a whole number; None: none does."""
    parts = weights / unit
    left = np.abs(parts - np.rint(parts))
    return float(left[left > 1e-6].min()) if (left > 1e-6).any() else None


def _entropy(share: FloatArray) -> FloatArray:
    logs = np.log2(share, out=np.zeros_like(share), where=share > 0)
    entropy: FloatArray = np.abs((share * logs).sum(axis=1))
    return entropy


#: For each criterion the impurities of nodes, from the shares (n, J) of their classes.
IMPURITIES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "kearns_mansour": lambda share: 2.0 * np.sqrt(share[:, 0] * share[:, 1]),
    "gini": lambda share: 1.0 - (share * share).sum(axis=1),
    "entropy": _entropy,
    "error": lambda share: 1.0 - share.max(axis=1),
}
#: Those of two classes, the default first.
ClassCriterion: TypeAlias = Literal["kearns_mansour", "gini", "entropy", "error"]
CRITERIA: tuple[ClassCriterion, ...] = get_args(ClassCriterion)
#: What the kernels call criteria.
CODES = {name.lower(): int(code) for name, code in Criterion.__members__.items()}
CODES["squared_error"] = CODES.pop("squared")
#: Those of two classes only.
OF_TWO = ("kearns_mansour",)


def class_criteria(n_classes: int) -> tuple[str, ...]:
    """Return the criteria of a classification, its default first."""
    return tuple(n for n in CRITERIA if n not in OF_TWO) + (OF_TWO if n_classes == 2 else ())


CLASSIFICATION, REGRESSION = TASKS
#: The criteria of trees that are no criteria of classes.
NumberCriterion: TypeAlias = Literal["squared_error"]
OF_NUMBERS = {"squared_error": REGRESSION}


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
    def task(self) -> Task | None:
        """The task, None if the targets can be either: so many different whole numbers."""
        if not self.are_numbers:
            return CLASSIFICATION
        if not self.are_whole:
            return REGRESSION
        return CLASSIFICATION if len(self.values) <= MOST_CLASSES else None


NO_VALUES = np.empty(0)
#: What the rule reads of no rows.
NOTHING = Targets(True, True, NO_VALUES)


def targets_of(y: object) -> Targets:
    """Return what the rule reads of targets.

    Missing and infinite ones, and those of other dimensions, are refused later.
    """
    array = target_array(y)
    if array.ndim != 1:
        return NOTHING
    array = array[np.isfinite(array)] if array.dtype.kind == "f" else label_array(y)
    are_numbers = array.dtype.kind in "iuf"
    if not len(array):
        return NOTHING
    if not are_numbers or (array.dtype.kind == "f" and (array != np.rint(array)).any()):
        return Targets(are_numbers, not are_numbers, NO_VALUES)
    return Targets(True, True, label_values(array)[: MOST_CLASSES + 1].copy())


def joined(parts: Iterable[Targets]) -> Targets:
    """Return what the rule reads of the targets of all parts."""
    some = list(parts)
    values = [part.values for part in some if len(part.values)]
    every = np.unique(np.concatenate(values)) if values else NO_VALUES
    return Targets(
        all(part.are_numbers for part in some),
        all(part.are_whole for part in some),
        every[: MOST_CLASSES + 1],
    )


def known_task(targets: Targets) -> Task:
    """Return the task of targets; ValueError if they can be either."""
    if targets.task is None:
        raise ValueError(
            f"y: got more than {MOST_CLASSES} different whole numbers, which can be classes or a "
            'regression; pass task="classification" or task="regression"'
        )
    return targets.task


def task_of(y: object, task: Task | None, decided: Task | None = None) -> Task:
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


def task_of_options(options: Mapping[str, object]) -> Task | None:
    """Return the task that a loss or criterion is of, None if there is none of one task only."""
    loss, criterion = options.get("loss"), options.get("criterion")
    if loss is not None:
        loss_class = LOSSES.get(loss) if isinstance(loss, str) else loss
        return REGRESSION if getattr(loss_class, "is_regression", False) else CLASSIFICATION
    if isinstance(criterion, str):
        return CLASSIFICATION if criterion in CRITERIA else OF_NUMBERS.get(criterion)
    return None


def task_of_fit(
    fit: Callable[..., object], options: Mapping[str, object], y: object, task: Task | None
) -> Task:
    """Return the task of a builder with these options, or with those of ``functools.partial``.

    A function of the user is not looked into.
    """
    function, bound_options = unwrapped(fit)
    bound_options = {**bound_options, **options}
    decided = CLASSIFICATION if only_classifies(function) else task_of_options(bound_options)
    return task_of(y, bound_options.get("task") if task is None else task, decided)


def with_task(fit: Callable[..., object], task: str) -> Callable[..., Any]:
    """Return a builder that is passed the task, if it takes one and its options leave it open."""
    bound_options = unwrapped(fit)[1]
    is_open = bound_options.get("task") is None and task_of_options(bound_options) is None
    return partial(fit, task=task) if is_open and "task" in arguments_of(fit) else fit
