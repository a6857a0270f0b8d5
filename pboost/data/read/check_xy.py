"""Checks of X, y and sample weights. Inputs are never modified."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, NoReturn, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.read.categories import ColumnReader, lightest_joined, match_levels, without_absent
from pboost.data.read.codes import RowLabels, codes_among, distinct
from pboost.data.read.convert import Features, Trained, check_size, column_names, read_matrix
from pboost.data.read.frames import of_array
from pboost.data.read.numbers import (
    ENCODE,
    PLAIN,
    as_text,
    first_inexact,
    first_rounded,
    has_rounded,
    is_missing,
)
from pboost.data.read.table import (
    MOST_LEVELS,
    Categorical,
    Table,
    Takes,
    column_label,
    named_columns,
    positions,
)
from pboost.values import INT32_MAX, Array, TableLike, Task, as_array, first_false, shown
from pboost.values.options import MulticlassError

#: Number of rows checked at a time, to save memory.
BLOCK = 65_536
#: Possible tasks of a model.
TASKS: tuple[Task, ...] = get_args(Task)
#: Hint for more than two classes. "{}" is replaced by the name of the fit function.
ONE_OF_EACH = "pb.fit_one_vs_rest(pb.{}, X, y) fits one model per class"
#: Hint for continuous targets in a classification.
REGRESSIONS = 'for regression, use a fit function with task="regression"'
#: With more distinct integers than this, the task is ambiguous.
MOST_CLASSES = 20
#: Largest absolute value of a regression target.
MOST_TARGET = 1e150
#: Maximum exponent of a power of two that is computed as a float64 number.
MOST_EXPONENT = 1000


def as_features(X: TableLike, categorical_features: object = None) -> Features:
    """Convert `X` to a float matrix, with feature names and categories.

    Parameters
    ----------
    X : array_like of shape (n, d), or data frame
        NumPy array, object with ``__array__``, nested sequences, pandas data frame, or another data
        frame that narwhals supports. `Features` are returned unchanged.
    categorical_features : sequence of str or int, optional
        Names or positions of categorical features, in addition to text columns and columns of a
        categorical dtype.

    Returns
    -------
    Features
        float32 is kept; other dtypes become float64. Values are copied only if necessary.
        Missing values (None, NaN, masked) are NaN; categories are replaced by their numbers.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has no columns or too many rows or columns for int32,
        contains an integer that float64 cannot represent, or has a text column in which most
        values occur once.
    TypeError
        If a column contains neither numbers nor categories.
    """
    if type(X) is np.ndarray and X.dtype in PLAIN and X.ndim == 2 and categorical_features is None:
        if not 0 < X.shape[1] <= INT32_MAX >= len(X):
            check_size(X.shape)
        return Features(X, None)
    named = (
        None
        if categorical_features is None
        else named_columns("categorical_features", categorical_features)
    )
    if isinstance(X, Features):
        return X if named is None else _named_categories(X, named)
    return read_matrix(X, named)


def with_categories(X: TableLike, categorical_features: Categorical) -> Any:
    """Convert X to features with the named categorical features; return X if none are named."""
    if categorical_features is None:
        return X
    if hasattr(X, "n_bins"):
        if not named_columns("categorical_features", categorical_features):
            return X
        raise ValueError(
            f"categorical_features: expected None with {type(X).__name__}; pass it when you create "
            "the columns"
        )
    return as_features(X, categorical_features)


def _named_categories(features: Features, named: Sequence[str | int]) -> Features:
    """Return features with additional categorical features."""
    base_table = Table.of_numbers(features.n_features) if features.table is None else features.table
    every = positions("categorical_features", named, features.names, features.n_features)
    new = [j for j in every if base_table.values_of(j) is None]
    if not new:
        return features
    values, levels = features.values.copy(), list(base_table.categories)
    for j in new:
        label = column_label(features.names, j)
        reader = ColumnReader(None, takes_text=False)
        levels[j], _ = reader.read(of_array(features.values[:, j]), values[:, j], label, True, j)
    return Features(values, features.names, replace(base_table, categories=tuple(levels)))


def features_as_trained(X: TableLike, trained: Trained) -> Features:
    """Convert new rows to the features and category numbers of the training data.

    Categories that did not occur in training become "other" if the feature had more than 255
    categories, and missing values otherwise.

    Raises
    ------
    ValueError
        If features are missing or unknown, or a feature was numeric in training and is now
        categorical, or vice versa.
    TypeError
        As for `as_features`.
    """
    known = trained.table
    has_values = known is not None and bool(known.categorical)
    is_numeric = type(X) is np.ndarray and X.dtype.kind in "biuf"
    if isinstance(X, Features) or (is_numeric and not has_values):
        return _as_trained(as_features(X), trained)
    return read_matrix(X, trained=trained)


def _as_trained(features: Features, trained: Trained) -> Features:
    """Convert features that have already been read to the training features."""
    table, known = features.table, trained.table
    places = trained.places(features.names, features.n_features)
    if table is None and (known is None or not known.categorical):
        if places is None:
            return features
        return Features(features.values[:, places], trained.names)
    order = range(features.n_features) if places is None else places
    if places is None and table is not None and table == known:
        return features
    table = Table.of_numbers(features.n_features) if table is None else table
    values = features.values[:, order]
    for j, place in enumerate(order):
        if table.is_alike(place, trained.known, j):
            continue
        label = column_label(trained.names, j)
        if table.is_merged(place):
            raise ValueError(
                f"X: {label} was read for another model, in which several categories share a "
                "number; pass the original rows"
            )
        match_levels(trained.known, j, values[:, j], table.values_of(place), label)
    return Features(values, trained.names, trained.table)


def check_has_rows(n: int) -> None:
    """Raise ValueError if there are no rows."""
    if not n:
        raise ValueError("X: expected at least one row, got none")


def check_finite(features: Features, missing: bool = False) -> None:
    """Raise ValueError for an infinite value, or for a missing value unless `missing` is True."""
    values = features.values
    for start in range(0, len(values), BLOCK):
        part = values[start : start + BLOCK]
        if not np.isfinite(part).all() and not (missing and not np.isinf(part).any()):
            _refuse(features, np.isinf if missing else lambda column: ~np.isfinite(column))


def is_clean(features: Features) -> bool:
    """Return whether all features are numeric and no value is missing."""
    return features.table is None and find_holes(features) is None


def find_holes(features: Features) -> NDArray[np.bool_] | None:
    """Return a mask of the features with missing values, or None. Reject infinities."""
    values = features.values
    has_missing: NDArray[np.bool_] | None = None
    for start in range(0, len(values), BLOCK):
        part = values[start : start + BLOCK]
        is_known = np.isfinite(part)
        if not is_known.all():
            is_hole = np.isnan(part)
            if not (is_hole | is_known).all():
                _refuse(features, np.isinf)
            has_missing = (
                np.zeros(values.shape[1], np.bool_) if has_missing is None else has_missing
            )
            has_missing |= is_hole.any(axis=0)
    return has_missing


def _refuse(features: Features, is_wrong: Callable[[Array], Array]) -> NoReturn:
    """Raise ValueError for the first invalid value."""
    values = features.values
    for j in range(values.shape[1]):
        wrong = np.flatnonzero(is_wrong(values[:, j]))
        if len(wrong):
            label, row = column_label(features.names, j), int(wrong[0])
            raise ValueError(
                f"X: expected finite numbers, got {values[row, j]} in {label}, row {row}"
                + (f" (and {len(wrong) - 1} more in that column)" if len(wrong) > 1 else "")
                + ("; impute missing values first" if np.isnan(values[row, j]) else "")
            )
    raise AssertionError("no wrong value")


def training_features(
    features: Features, weights: NDArray[np.float64] | None, takes: Takes
) -> Features:
    """Return the features of training data, with a table unless all are complete and numeric.

    If a feature has more than 255 categories, the rarest categories share a number.

    Raises
    ------
    ValueError
        For infinities, and for unsupported missing values.
    TypeError
        For unsupported categorical features.
    """
    table, holes = features.table, None
    check_taken(table, features.names, takes)
    if takes.holes:
        holes = find_holes(features)
    else:
        check_finite(features)
    if holes is None and table is None:
        return features
    values = features.values
    if table is None:
        table = Table.of_numbers(features.n_features)
    elif table.n_levels.max() > MOST_LEVELS:
        values, table = lightest_joined(values, table, weights)
    return Features(values, features.names, table.with_holes(holes))


def present_levels(features: Features, weights: NDArray[np.float64] | None) -> Features:
    """Replace categories without a row of positive weight by missing values."""
    table = features.table
    if table is None or weights is None or not table.has_levels:
        return features
    values, table = without_absent(features.values, table, weights)
    return Features(values, features.names, table)


def check_taken(table: Table | None, names: tuple[str, ...] | None, takes: Takes) -> None:
    """Raise an error for categories or missing values that the model does not support."""
    if table is None:
        return
    if not takes.levels:
        column = next((j for j in table.categorical if table.categories[j] is not None), None)
        if column is not None:
            raise TypeError(f"X: {column_label(names, column)} is not numeric{ENCODE}")
    if not takes.holes and table.has_missing.any():
        label = column_label(names, int(table.has_missing.argmax()))
        raise ValueError(
            f"X: expected finite numbers, got missing values in {label}; impute them first"
        )


class AbsentClassError(ValueError):
    """Raised if a class has fewer rows of positive weight than a fit function needs.

    Attributes
    ----------
    min_rows : int
        Required number of rows per class.
    """

    def __init__(self, message: str, min_rows: int = 1) -> None:
        super().__init__(message)
        self.min_rows = min_rows


def as_labels(y: object, n: int) -> tuple[Array, NDArray[np.bool_]]:
    """Return the two sorted class labels, and whether each row belongs to the second."""
    values, code = as_classes(y, n, "")
    return values, code.astype(np.bool_)


def as_classes(y: object, n: int, two: str | None = None) -> tuple[Array, NDArray[np.int32]]:
    """Return the sorted class labels (at least two) and the class number of each row.

    Parameters
    ----------
    y : array_like of shape (n,)
        Class labels: numbers, booleans or strings.
    n : int
        Number of rows of X.
    two : str, optional
        If given, only two classes are allowed, and the text explains why in the error message.

    Raises
    ------
    ValueError
        If `y` is not one-dimensional, has the wrong length, is empty, contains missing values,
        has too few or too many classes, or is a continuous target.
    TypeError
        If the class labels are not all numbers or all strings.
    """
    labels = plain_labels(y, n)
    values = label_values(labels)
    check_label_values(values, two)
    return values, codes_among(labels, values)


def check_label_values(values: Array, two: str | None, instead: str = ONE_OF_EACH) -> None:
    """Raise ValueError for a continuous target or an unsupported number of classes.

    `instead` is the hint for more than two classes.
    """
    if is_continuous(values):
        raise ValueError(
            f"y: expected class labels, got {len(values)} distinct non-integer numbers; "
            f"{REGRESSIONS}; convert numbers that are class names to strings"
        )
    if two is not None:
        refuse_many(values, two, instead)
    if len(values) < 2:
        minimum = "at least two" if two is None else "two"
        raise ValueError(f"y: expected {minimum} classes, got only {values.tolist()[0]!r}")


def refuse_many(values: Array, why: str = "", instead: str = ONE_OF_EACH) -> None:
    """Raise MulticlassError for more than two classes."""
    if len(values) > 2:
        expected = f"two classes {why}".rstrip()
        if instead and len(values) > MOST_CLASSES and values.dtype.kind in "iuf":
            instead += f"; {REGRESSIONS}"
        raise MulticlassError(f"y: expected {expected}, got {len(values)}", instead)


def label_values(labels: Array | RowLabels) -> Array:
    """Return the sorted distinct labels."""
    if isinstance(labels, RowLabels):
        return distinct(labels)
    if not len(labels):
        return labels
    is_other = labels != labels[0]
    if not is_other.any():
        return labels[:1]
    pair = labels[[0, int(is_other.argmax())]]
    # For two classes this is faster than numpy.unique, whose sort would cost a boosting iteration.
    return np.sort(pair) if ((labels == pair[1]) == is_other).all() else distinct(labels)


def is_continuous(values: Array) -> bool:
    """Return whether distinct labels look like a continuous target."""
    return len(values) > 2 and values.dtype.kind == "f" and bool((values != np.rint(values)).any())


def plain_labels(y: object, n: int) -> Any:
    """Return the checked labels of n rows as an array; see `as_classes`."""
    labels = label_array(y)
    if labels.ndim != 1:
        raise ValueError(f"y: expected one dimension, got shape {labels.shape}{_as_one(y, labels)}")
    if len(labels) != n:
        raise ValueError(f"y: expected {n} labels, one per row of X, got {len(labels)}")
    if n == 0:
        raise ValueError("y: expected at least one row of each class, got no rows")
    if labels.dtype.kind == "f" and (row := first_false(np.isfinite(labels))) >= 0:
        raise ValueError(f"y: expected class labels, got infinity in row {row}")
    return labels


def _as_one(y: object, values: Array) -> str:
    """Return the hint to flatten a single column; "" for other shapes."""
    if values.ndim != 2 or values.shape[1] != 1:
        return ""
    if hasattr(y, "columns"):
        return f"; pass a single column as y[{column_names(y)[0]!r}]"
    return f"; pass a single column as {'y.ravel()' if hasattr(y, 'ravel') else 'np.ravel(y)'}"


def label_array(y: object) -> Any:
    """Return labels as an array of numbers, booleans or strings; reject missing values.

    `RowLabels` are returned unchanged.
    """
    labels = target_array(y)
    if isinstance(labels, RowLabels):
        return labels
    if missing := missing_places(labels):
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise ValueError(f"y: missing label in row {missing[0]}{more}")
    return plain_values(labels, "y: expected class labels")


def missing_places(values: Array) -> list[int]:
    """Return the positions of missing values, in C order."""
    if values.dtype.kind in "OT":
        items = values.ravel().tolist()
        are_plain = set(map(type, items)) <= {str, int, bool}  # a fast check for the usual case
        return [] if are_plain else [i for i, value in enumerate(items) if is_missing(value)]
    return np.flatnonzero(np.isnan(values)).tolist() if values.dtype.kind in "fmM" else []


def target_array(y: object) -> Any:
    """Return y as an array, of dtype object if another dtype would change the values.

    `RowLabels` are returned unchanged.
    """
    if isinstance(y, RowLabels):
        return y
    values = as_array("y", y)
    if isinstance(y, list | tuple):
        is_kept = _are_kept(y) if values.dtype.kind == "U" else not has_rounded(values)
    else:  # other containers: a NumPy text dtype may have changed the values
        is_kept = values.dtype.kind != "U" or isinstance(y, np.ndarray)
    return values if is_kept else np.asarray(y, dtype=object)


def _are_kept(values: Sequence[Any]) -> bool:
    """Return whether all values are strings that NumPy stores unchanged."""
    is_text = all(issubclass(kind, str) for kind in set(map(type, values)))
    return is_text and not any(value.endswith("\0") for value in values)


def places_among(values: Array, sought: Array) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the position of each item in the sorted values, and whether they contain it."""
    place = np.minimum(np.searchsorted(values, sought), len(values) - 1)
    return place, values[place] == sought


def class_codes(classes: Array, y: object, n: int) -> NDArray[np.intp]:
    """Return the class number of each label; raise ValueError for labels unknown to the model."""
    row_labels = label_array(y)
    if row_labels.shape != (n,):
        raise ValueError(f"y: expected {n} labels, one per row of X, got shape {row_labels.shape}")
    code: NDArray[np.intp] = np.zeros(n, dtype=np.intp)
    row = 0
    if (row_labels.dtype.kind == "U") == (classes.dtype.kind == "U"):
        if isinstance(row_labels, RowLabels):  # look up classes instead of rows
            code, is_known = places_among(classes, row_labels.classes)
            code, is_known = code[row_labels.codes], is_known[row_labels.codes]
        else:
            code, is_known = places_among(classes, row_labels)
        row = first_false(is_known)
    if row >= 0 and n:
        raise ValueError(
            f"y: expected class labels of the model, {classes.tolist()}, got "
            f"{row_labels[row].item()!r} in "
            f"row {row}"
        )
    return code


def as_targets(y: object, n: int) -> NDArray[np.float64]:
    """Return regression targets as float64 (n,).

    Raises
    ------
    ValueError
        If `y` is not one-dimensional, has the wrong length, is empty, or contains missing values,
        numbers beyond 1e150, or integers that float64 cannot represent.
    TypeError
        If `y` is not numeric.
    """
    values = target_array(y)
    if values.dtype.kind not in "biufO":
        raise TypeError(f"y: expected numbers, got dtype {values.dtype}")
    if values.shape != (n,):
        raise ValueError(
            f"y: expected {n} numbers, one per row of X, got shape {values.shape}"
            + _as_one(y, values)
        )
    if n == 0:
        raise ValueError("y: expected at least one row, got no rows")
    targets = _numbers(values) if values.dtype.kind == "O" else values.astype(np.float64)
    if (row := first_false(np.abs(targets) <= MOST_TARGET)) >= 0:
        raise ValueError(
            f"y: expected finite numbers up to {MOST_TARGET:g}, got {targets[row]} in row {row}"
        )
    row = first_rounded(values, targets) if values.dtype.kind == "O" else first_inexact(values)
    if row >= 0:
        raise ValueError(
            f"y: expected numbers that float64 can represent, got the integer {values[row]} in row "
            f"{row}; convert y to floats to accept rounding"
        )
    return targets


def targets_that_count(
    targets: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Set the targets of rows of weight 0 to 0, so that they do not influence the scale."""
    return targets if weights is None else np.where(weights > 0, targets, 0.0)


def _numbers(values: Array) -> NDArray[np.float64]:
    """Convert objects to float64; reject objects that are not real numbers."""
    numbers = np.empty(len(values))
    for row, value in enumerate(values.tolist()):
        if is_missing(value):
            raise ValueError(f"y: missing number in row {row}")
        if not isinstance(value, Real | np.bool_):
            raise TypeError(f"y: expected numbers, got {value!r} in row {row}")
        try:
            numbers[row] = float(value)
        except OverflowError:
            numbers[row] = np.inf
    return numbers


def plain_values(values: Array, expected: str) -> Array:
    """Convert values that are all numbers or all strings to an array; raise TypeError if not."""
    if values.dtype.kind in "biufU":
        return values
    if values.dtype.kind == "T":
        values = values.astype(object)  # NumPy cannot cast StringDType to fixed length directly
    if values.dtype.kind == "O":
        flat = values.ravel().tolist()
        if all(isinstance(v, str) for v in flat):
            return as_text(values, expected)
        if all(isinstance(v, bool | np.bool_) for v in flat):
            return values.astype(np.bool_)
        if all(isinstance(v, int | np.integer) for v in flat):
            return _integers(values, expected)
        if all(isinstance(v, Real) for v in flat):
            numbers = _numbers(values.ravel())
            if first_rounded(values.ravel(), numbers) < 0:
                return numbers.reshape(values.shape)
    raise TypeError(f"{expected} that are all numbers or all strings, got {values.dtype}")


def _integers(values: Array, expected: str) -> Array:
    """Convert integer objects to int64 or uint64."""
    for dtype in (np.int64, np.uint64):
        try:
            return values.astype(dtype)
        except OverflowError:
            pass
    largest = max(values.ravel().tolist(), key=abs)
    raise ValueError(
        f"{expected} that fit into 64 bits, got the integer {largest}; convert larger integers to "
        "strings"
    )


def as_numbers(name: str, value: object, kinds: str = "biuf") -> NDArray[np.float64]:
    """Return a copy of `value` as float64, of any shape; raise TypeError for other dtype kinds."""
    values = as_array(name, value)
    if values.dtype.kind not in kinds:
        raise TypeError(f"{name}: expected numbers, got dtype {values.dtype}")
    return values.astype(np.float64)


def as_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Return `sample_weight` as float64 (n,), or None if it is None.

    Raises
    ------
    ValueError
        If the length is wrong, a weight is masked, negative, NaN or infinite, or all are 0.
    """
    if sample_weight is None:
        return None
    weights = weights_of_some(sample_weight, n)
    if not weights.any():
        raise ValueError("sample_weight: expected at least one weight > 0, all are zero")
    return weights


def weights_of_some(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """Return the weights of a part of the rows, which may all be 0; see `as_weights`."""
    if isinstance(sample_weight, str):
        raise TypeError(
            f"sample_weight: expected one number per row, got {shown(sample_weight)}; for classes "
            "of equal weight pass pb.data.balanced_weights(y)"
        )
    weights = as_numbers("sample_weight", sample_weight)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight: expected shape ({n},), got {weights.shape}")
    if (row := first_false(np.isfinite(weights) & (weights >= 0))) >= 0:
        raise ValueError(
            f"sample_weight: expected finite numbers >= 0, got {weights[row]} in row {row}"
        )
    return weights


def scaled_weights(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Scale weights by a power of two to a maximum in [1/2, 1); also return the exponent.

    Sums of the scaled weights, and of their products with squares, do not overflow.
    """
    exponent = math.frexp(float(weights.max()))[1]
    return times_power(weights, -exponent), exponent


def times_power(numbers: NDArray[np.float64], exponent: int) -> NDArray[np.float64]:
    """Multiply numbers by a power of two."""
    if abs(exponent) > MOST_EXPONENT:  # float64 cannot represent the factor
        return np.ldexp(numbers, exponent)
    return numbers * math.ldexp(1.0, exponent)


def check_answers(h: object, n: int, what: str) -> NDArray[np.float64]:
    """Return the outputs of a weak classifier as float64 (n,); broadcast a single number."""
    array = np.asarray(h)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{what}: expected real numbers, got dtype {array.dtype}")
    answers = array.astype(np.float64, copy=False)
    if answers.ndim and answers.shape != (n,):
        raise ValueError(f"{what}: expected {n} numbers, one per row, got shape {answers.shape}")
    answers = np.broadcast_to(answers, (n,))
    if (row := first_false(np.isfinite(answers))) >= 0:
        raise ValueError(f"{what}: expected finite numbers, got {answers[row]} for row {row}")
    return answers
