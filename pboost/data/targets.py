"""Check targets (class labels, class probabilities or numbers) and determine the task."""

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

#: Tolerance of the sum of the probabilities of a row.
SLACK = 1e-6
#: Maximum ratio of the mean weight to a common unit of all weights.
MOST_COPIES = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Mapping between rows and (row, class) entries of class probabilities, in row order.

    Attributes
    ----------
    rows : ndarray of int32, shape (m,)
        Row of X of each entry.
    first : ndarray, shape (n,)
        The first entry of each row.
    likeliest : ndarray of int32, shape (n,)
        The most probable class of each row, the first one in a tie.
    """

    rows: IntArray
    first: NDArray[np.intp]
    likeliest: IntArray


class Classes(NamedTuple):
    """Class labels, and the class and weight of each row (or entry, if `entries` is set)."""

    classes: Any  # None for a regression
    label: Array
    weights: FloatArray | None
    entries: Entries | None = None

    def weights_of_rows(self, sample_weight: ArrayLike | None, n: int) -> FloatArray | None:
        """Return the sample weights of the n rows, even if there are class probabilities."""
        return self.weights if self.entries is None else as_weights(sample_weight, n)


@dataclass(frozen=True, slots=True, eq=False)
class SoftLabels:
    """Class probabilities of rows, used in place of labels. Created by `labels_of_rows`.

    Attributes
    ----------
    classes : ndarray, shape (J,)
        Sorted class labels.
    share : ndarray of float64, shape (n, J)
        Class probabilities, which sum to 1 in each row.
    """

    classes: Array
    share: FloatArray

    def __getitem__(self, rows: NDArray[np.integer]) -> SoftLabels:
        return SoftLabels(self.classes, self.share[rows])

    @property
    def likeliest(self) -> IntArray:
        """Most probable class of each row, the first one in a tie."""
        return self.share.argmax(axis=1).astype(np.int32)

    def check_rows(self, n: int) -> None:
        """Raise ValueError unless there are n > 0 rows."""
        if len(self.share) != n:
            raise ValueError(f"y_proba: expected {n} rows, one per row of X, got {len(self.share)}")
        if n == 0:
            raise ValueError("y_proba: expected at least one row, got no rows")

    def check_labels(self, classes: Array) -> None:
        """Raise ValueError unless the classes match a model."""
        if not np.array_equal(self.classes, classes):
            raise ValueError(
                f"y_proba: expected one column per class of the model, {classes.tolist()}, got "
                f"{shown(self.classes.tolist())}"
            )

    def check_two(self, why: str = "") -> None:
        """Raise an error unless there are two classes, and each has positive probability."""
        if len(self.classes) > 2:
            expected = f"two columns, one per class, {why}".rstrip(" ,")
            message = f"y_proba: expected {expected}, got {len(self.classes)}"
            raise MulticlassError(message, ONE_OF_EACH)
        self.check_present()

    def check_present(self) -> None:
        """Raise AbsentClassError if a class has probability 0 in all rows."""
        if (absent := first_false(self.share.any(axis=0))) >= 0:
            raise AbsentClassError(
                "y_proba: expected every class to have positive probability in some row, got none "
                f"for {self.classes[absent].item()!r}"
            )

    def expanded(self, weights: FloatArray | None) -> Classes:
        """Return one entry per positive probability, given the sample weights."""
        rows, label = (positions.astype(np.int32) for positions in np.nonzero(self.share))
        if len(rows) == len(self.share):  # each row has a single class
            return Classes(self.classes, label, weights)
        if len(rows) > INT32_MAX:
            raise ValueError(
                f"y_proba: expected at most {INT32_MAX} nonzero probabilities, got {len(rows)}"
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

    `y` contains labels or is a `SoftLabels`. For `two`, see `as_classes`.
    """
    if isinstance(y, SoftLabels):
        y.check_rows(n)
        if two is not None:
            y.check_two(two)
        return y.expanded(as_weights(sample_weight, n))
    return Classes(*as_classes(y, n, two), as_weights(sample_weight, n))


def by_class(label: Array) -> NDArray[np.intp]:
    """Return the rows sorted by class."""
    # NumPy uses a radix sort for 16-bit integers.
    small = label.astype(np.int16) if label.max(initial=0) < 2**15 else label
    return np.argsort(small, kind="stable")


def rows_by_label(label: Array, weights: FloatArray | None, classes: Any) -> IntArray:
    """Return the rows of positive weight sorted by class; raise an error for an empty class."""
    rows = np.arange(len(label)) if weights is None else np.flatnonzero(weights > 0)
    if np.bincount(label[rows], minlength=len(classes)).min() == 0:
        raise AbsentClassError("sample_weight: expected every class to have positive weight")
    return rows.take(by_class(label.take(rows))).astype(np.int32)


def truth_of_rows(y: object, sample_weight: ArrayLike | None, n: int, task: str) -> Classes:
    """Return the checked targets and weights. Regression targets are in the field `label`."""
    if task == "regression":
        targets = as_targets(numbers_given(y), n)
        return Classes(None, targets, as_weights(sample_weight, n))
    return classes_of_rows(y, sample_weight, n)


def numbers_given(y: object) -> Any:
    """Return the targets of a regression unchanged; raise ValueError for `SoftLabels`."""
    if isinstance(y, SoftLabels):
        raise ValueError("y_proba: expected None for regression, got class probabilities; pass y")
    return y


def labels_of_rows(y: object, y_proba: ArrayLike | None, classes: object = None) -> Any:
    """Return `y`, or a `SoftLabels` if class probabilities are passed instead.

    Parameters
    ----------
    y : array_like or None
        Class labels or targets.
    y_proba : array_like of shape (n, J) or (n,), data frame, or None
        Class probabilities. One-dimensional probabilities are for the second of two classes.
    classes : array_like of shape (J,), optional
        Class labels of the columns. By default the column names of a data frame, or 0, ..., J - 1.

    Raises
    ------
    ValueError
        If both are passed, or probabilities are negative, missing, or do not sum to 1.
    TypeError
        If neither is passed, or `y_proba` is not numeric.
    """
    if y_proba is None:
        if classes is not None:
            raise ValueError("classes: expected None without y_proba; pass y_proba or drop classes")
        if y is None:
            raise NoLabelsError(
                "y: expected class labels, or class probabilities as y_proba, got neither"
            )
        return y
    if y is not None:
        raise ValueError("y, y_proba: expected only one of these arguments, got both")
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
            "y_proba: expected two or more columns, one per class, or one dimension with the "
            f"probabilities of the second of two classes, got shape {share.shape}"
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
    """Return the original column names and the values of a data frame."""
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
    """Raise ValueError for the first number that is not a probability."""
    if (at := first_false((share >= 0) & (share <= maximum))) >= 0:
        row, column = divmod(at, share.shape[1])
        value = share[row, column]
        raise ValueError(
            "y_proba: expected probabilities in [0, 1], got "
            f"{'a missing value' if np.isnan(value) else value} in row {row}, column "
            f"{column if names is None else repr(names[column])}"
        )


def _column_labels(names: object, n: int) -> tuple[Array, NDArray[np.intp] | None]:
    """Return the sorted class labels of n columns, and their order (None if already sorted)."""
    if names is None:
        return np.arange(n), None
    try:
        classes = label_array(list(names) if isinstance(names, tuple) else names)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("y:", "classes:", 1)) from None
    if classes.shape != (n,):
        raise ValueError(
            f"classes: expected {n} class labels, one per column of y_proba, got {shown(names)}"
        )
    values, code = as_codes(classes)
    if len(values) < n:
        twice = classes[first_false(np.bincount(code)[code] == 1)].item()
        raise ValueError(f"classes: expected distinct class labels, got {twice!r} twice")
    order = np.argsort(code)
    return values, None if (order == np.arange(n)).all() else order


def shares_of(y_proba: Any, classes: Array) -> SoftLabels:
    """Return class probabilities for a model; data frame columns are matched by name."""
    soft_labels: SoftLabels = _soft_labels(y_proba, None if is_frame(y_proba) else classes)
    soft_labels.check_labels(classes)
    return soft_labels


def soft_validation(y: Any, classes: Array) -> SoftLabels | None:
    """Return validation labels as `SoftLabels` if they have one column per class, else None."""
    shape = np.shape(y)
    return shares_of(y, classes) if len(shape) == 2 and shape[1] == len(classes) else None


def needs_of(y: object) -> tuple[str, ...]:
    """Return the arguments that a base learner must accept besides X and y."""
    return ("sample_weight", "y_proba") if isinstance(y, SoftLabels) else ("sample_weight",)


def fitted(
    fit: Callable[..., object], X: TableLike, y: object, options: Mapping[str, object]
) -> Any:
    """Call a fit function with labels, or with class probabilities."""
    if isinstance(y, SoftLabels):
        return fit(X, y_proba=y.share, classes=y.classes, **options)
    return fit(X, y, **options)


def balanced_weights(y: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
    """Return sample weights that give all classes the same total weight.

    Parameters
    ----------
    y : array_like of shape (n,)
        Class labels.
    sample_weight : array_like of shape (n,), optional
        Nonnegative weights to rescale. The ratios of weights within a class are preserved.

    Returns
    -------
    ndarray of float64, shape (n,)
        Pass it to a fit function as ``sample_weight``. A row of weight w in a class of total weight
        m gets ``w * total / (J * m)``; ``total`` is the sum of all weights and J the number of
        classes. Without `sample_weight`, all weights are 1.

    Raises
    ------
    ValueError, TypeError
        If `y` does not contain class labels, or a class has no positive weight.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.data.balanced_weights(["no", "no", "no", "yes"]).round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    """
    labels = label_array(y)
    if labels.ndim != 1 or not len(labels):
        raise ValueError(f"y: expected class labels in one dimension, got shape {labels.shape}")
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
    """Row weights in the form that `TrainingData` stores."""

    weight: FloatArray
    fixed: NDArray[np.int64]
    weight_exponent: int
    scale: float


def weighed(
    weights: FloatArray | None, rows: IntArray | None, n: int, *, in_any_order: bool = False
) -> RowWeights:
    """Return the weights of the n listed rows, or of all rows if `rows` is None.

    With `in_any_order`, the scale does not depend on the order of the rows.
    """
    # Allocate once: the allocator can then keep the memory that a fit frees for the next fit.
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
    """Return the common unit of all weights, or the mean weight if there is no common unit.

    Dividing by the unit makes a fit independent of the scale of the weights.
    """
    if weights is None:
        return 1.0
    unit = float(weights.max())
    some = weights[weights > 0] / unit
    return unit_of(unit, exact_sum(some) / len(some), float(some.min()), partial(least_rest, some))


def unit_of(
    greatest: float, mean: float, smallest: float, rest: Callable[[float], float | None]
) -> float:
    """Compute the unit for `weight_of_copy`.

    `mean` and `smallest` are fractions of the maximum `greatest`. ``rest(unit)`` returns
    `least_rest` of all weights.
    """
    unit = smallest
    while unit * MOST_COPIES > mean:
        left = rest(unit)
        if left is None:
            return unit * greatest
        unit *= left
    return mean * greatest


def least_rest(weights: FloatArray, unit: float) -> float | None:
    """Return the smallest nonzero distance of ``weights / unit`` from integers, or None."""
    parts = weights / unit
    left = np.abs(parts - np.rint(parts))
    return float(left[left > 1e-6].min()) if (left > 1e-6).any() else None


def _entropy(share: FloatArray) -> FloatArray:
    logs = np.log2(share, out=np.zeros_like(share), where=share > 0)
    entropy: FloatArray = np.abs((share * logs).sum(axis=1))
    return entropy


#: Impurity of nodes for each criterion, from the class proportions (n, J).
IMPURITIES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "kearns_mansour": lambda share: 2.0 * np.sqrt(share[:, 0] * share[:, 1]),
    "gini": lambda share: 1.0 - (share * share).sum(axis=1),
    "entropy": _entropy,
    "error": lambda share: 1.0 - share.max(axis=1),
}
#: Classification criteria. The default for two classes comes first.
ClassCriterion: TypeAlias = Literal["kearns_mansour", "gini", "entropy", "error"]
CRITERIA: tuple[ClassCriterion, ...] = get_args(ClassCriterion)
#: Kernel codes of the criteria.
CODES = {name.lower(): int(code) for name, code in Criterion.__members__.items()}
CODES["squared_error"] = CODES.pop("squared")
#: Criteria for binary classification only.
OF_TWO = ("kearns_mansour",)


def class_criteria(n_classes: int) -> tuple[str, ...]:
    """Return the criteria for a number of classes, beginning with the default."""
    return tuple(n for n in CRITERIA if n not in OF_TWO) + (OF_TWO if n_classes == 2 else ())


CLASSIFICATION, REGRESSION = TASKS
#: Regression criteria of trees.
NumberCriterion: TypeAlias = Literal["squared_error"]
OF_NUMBERS = {"squared_error": REGRESSION}


class TaskOption(TypedDict, total=False):
    """Option for the task of a fit.

    Parameters
    ----------
    task : {"classification", "regression"}, optional
        Type of the target. By default, text, booleans and at most 20 distinct integers are
        classes, and non-integer numbers are a regression. Required if `y` has more distinct
        integers, unless `criterion` implies the task.
    """

    task: Annotated[Literal["classification", "regression"] | None, Option(None)]


class Targets(NamedTuple):
    """Summary of targets that determines the task. `joined` combines several summaries.

    Attributes
    ----------
    are_numbers : bool
        Whether the targets are numeric, but not boolean.
    are_whole : bool
        Whether all numbers are integers.
    values : ndarray
        Distinct integers, at most one more than the maximum number of classes.
    """

    are_numbers: bool
    are_whole: bool
    values: Array

    @property
    def task(self) -> Task | None:
        """Task, or None if it is ambiguous."""
        if not self.are_numbers:
            return CLASSIFICATION
        if not self.are_whole:
            return REGRESSION
        return CLASSIFICATION if len(self.values) <= MOST_CLASSES else None


NO_VALUES = np.empty(0)
#: Summary of no rows.
NOTHING = Targets(True, True, NO_VALUES)


def targets_of(y: object) -> Targets:
    """Summarize targets to determine the task; invalid targets are rejected later."""
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
    """Combine the summaries of several batches."""
    some = list(parts)
    values = [part.values for part in some if len(part.values)]
    every = np.unique(np.concatenate(values)) if values else NO_VALUES
    return Targets(
        all(part.are_numbers for part in some),
        all(part.are_whole for part in some),
        every[: MOST_CLASSES + 1],
    )


def known_task(targets: Targets) -> Task:
    """Return the task of targets; raise ValueError if it is ambiguous."""
    if targets.task is None:
        raise ValueError(
            f"y: got more than {MOST_CLASSES} distinct integers, which may be classes or a "
            'continuous target; pass task="classification" or task="regression"'
        )
    return targets.task


def task_of(y: object, task: Task | None, decided: Task | None = None) -> Task:
    """Return "classification" or "regression"; `task` takes precedence over `decided` and `y`.

    Text, booleans and at most 20 distinct integers are classes, and non-integer numbers are a
    regression. More distinct integers raise a ValueError.

    Parameters
    ----------
    y : array_like of shape (n,), or SoftLabels
        Targets. Class probabilities imply a classification.
    task : {"classification", "regression"} or None
        Task chosen by the user.
    decided : str or None
        Task implied by other options, such as a regression loss.
    """
    if task is not None:
        return check_choice("task", task, TASKS)
    if decided is not None or isinstance(y, SoftLabels):
        return decided or CLASSIFICATION
    return known_task(targets_of(y))


def task_of_options(options: Mapping[str, object]) -> Task | None:
    """Return the task implied by a loss or criterion, or None."""
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
    """Return the task of a fit function with these options, including options of a partial.

    Functions defined by the user are not inspected.
    """
    function, bound_options = unwrapped(fit)
    bound_options = {**bound_options, **options}
    decided = CLASSIFICATION if only_classifies(function) else task_of_options(bound_options)
    return task_of(y, bound_options.get("task") if task is None else task, decided)


def with_task(fit: Callable[..., object], task: str) -> Callable[..., Any]:
    """Bind the task to a fit function that accepts it and whose options do not imply it."""
    bound_options = unwrapped(fit)[1]
    is_open = bound_options.get("task") is None and task_of_options(bound_options) is None
    return partial(fit, task=task) if is_open and "task" in arguments_of(fit) else fit
