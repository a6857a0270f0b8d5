"""X, y and weights of rows: what builders and evaluations are given. Inputs are never modified."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, NoReturn, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.read.codes import RowLabels, codes_among, distinct
from pboost.data.read.convert import Features, Trained, check_size, column_names, read_matrix
from pboost.data.read.frames import of_array
from pboost.data.read.levels import ColumnReader, lightest_joined, match_levels, without_absent
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
from pboost.values import INT32_MAX, Array, TableLike, Task, as_array, first_false
from pboost.values.options import MulticlassError

#: Rows examined at a time, so that checks need little memory.
BLOCK = 65_536
#: What y can be: labels, or numbers.
TASKS: tuple[Task, ...] = get_args(Task)
#: What to call with more than two labels; "{}" is the builder that was called.
ONE_OF_EACH = "pb.fit_one_vs_rest(pb.{}, X, y) fits one model for each label"
#: What to do about targets that are no labels.
REGRESSIONS = 'a regression is task="regression", of builders that have this option'
#: More different whole numbers than this can be classes or a regression.
MOST_CLASSES = 20
#: The largest number that can be predicted.
MOST_TARGET = 1e150
#: Beyond this a power of two may be no normal float64.
MOST_EXPONENT = 1000


def as_features(X: TableLike, categorical_features: object = None) -> Features:
    """Return `X` as a float matrix with its column names, and the levels of its categories.

    Parameters
    ----------
    X : array_like of shape (n, d), or data frame
        NumPy array, anything with ``__array__``, nested sequences, a pandas data frame, or any
        other frame that narwhals knows. `Features` are returned as they are.
    categorical_features : sequence of str or int, optional
        Names or positions of columns that hold categories, besides those of a frame that hold text
        or whose type says so.

    Returns
    -------
    Features
        float32 stays float32; everything else becomes float64. No copy where none is needed. What
        is missing (None, NaN, masked) is NaN; categories are the numbers of their levels.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, has no columns, or exceeds int32 in rows or columns; if it
        holds an integer that is no float64; or if text has mostly values that occur once.
    TypeError
        If a column holds neither numbers nor categories; it is named.
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
    """Return X, read so that the columns named hold categories; as it is if none are named."""
    if categorical_features is None:
        return X
    if hasattr(X, "n_bins"):
        if not named_columns("categorical_features", categorical_features):
            return X
        raise ValueError(
            f"categorical_features: expected None with {type(X).__name__}: pass it when these are made"
        )
    return as_features(X, categorical_features)


def _named_categories(features: Features, named: Sequence[str | int]) -> Features:
    """Return features of which more columns hold categories."""
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
    """Return rows as features with the columns of training in its order, and its level numbers.

    Values of categories that were not seen in training are missing.

    Raises
    ------
    ValueError
        If columns are missing or unknown, or a column has changed between numbers and categories.
    TypeError
        As `as_features`.
    """
    known = trained.table
    has_values = known is not None and bool(known.categorical)
    is_numeric = type(X) is np.ndarray and X.dtype.kind in "biuf"
    if isinstance(X, Features) or (is_numeric and not has_values):
        return _as_trained(as_features(X), trained)
    return read_matrix(X, trained=trained)


def _as_trained(features: Features, trained: Trained) -> Features:
    """Return features that have been read as those of training."""
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
        if table.has_shared(place):
            raise ValueError(
                f"X: {label} was read for another model, for which several categories share a "
                "number; pass the rows as they were before"
            )
        match_levels(trained.known, j, values[:, j], table.values_of(place), label)
    return Features(values, trained.names, trained.table)


def check_has_rows(n: int) -> None:
    """Raise ValueError if there are no rows."""
    if not n:
        raise ValueError("X: expected at least one row, got none")


def check_finite(features: Features, missing: bool = False) -> None:
    """Raise ValueError naming the first column, and in it the first row, that is not finite.

    `missing` says that NaN is allowed.
    """
    values = features.values
    for start in range(0, len(values), BLOCK):
        part = values[start : start + BLOCK]
        if not np.isfinite(part).all() and not (missing and not np.isinf(part).any()):
            _refuse(features, np.isinf if missing else lambda column: ~np.isfinite(column))


def is_clean(features: Features) -> bool:
    """Return whether no column holds categories and nothing is missing; see `find_holes`."""
    return features.table is None and find_holes(features) is None


def find_holes(features: Features) -> NDArray[np.bool_] | None:
    """Return which columns have missing values, None where none has; infinities raise ValueError.

    One pass over the values where nothing is missing.
    """
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
    """Raise ValueError for the first column, and in it the first row, that is wrong."""
    values = features.values
    for j in range(values.shape[1]):
        wrong = np.flatnonzero(is_wrong(values[:, j]))
        if len(wrong):
            label, row = column_label(features.names, j), int(wrong[0])
            raise ValueError(
                f"X: expected finite numbers, got {values[row, j]} in {label}, row {row}"
                + (f" (and {len(wrong) - 1} more in that column)" if len(wrong) > 1 else "")
                + ("; fill missing values in before" if np.isnan(values[row, j]) else "")
            )
    raise AssertionError("nothing is wrong")


def training_features(
    features: Features, weights: NDArray[np.float64] | None, takes: Takes
) -> Features:
    """Return features as they are trained on; with their table where it says anything.

    Of columns of more than 255 levels the lightest share one.

    Raises
    ------
    ValueError
        For infinities; for missing values where these are not taken.
    TypeError
        For categories where these are not taken.
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
    """Return features in which categories that no row of positive weight has are missing."""
    table = features.table
    if table is None or weights is None or not table.has_levels:
        return features
    values, table = without_absent(features.values, table, weights)
    return Features(values, features.names, table)


def check_taken(table: Table | None, names: tuple[str, ...] | None, takes: Takes) -> None:
    """Raise TypeError for categories, ValueError for missing values, where these are not taken."""
    if table is None:
        return
    if not takes.levels:
        column = next((j for j in table.categorical if table.categories[j] is not None), None)
        if column is not None:
            raise TypeError(f"X: {column_label(names, column)} is not numeric{ENCODE}")
    if not takes.holes and table.has_missing.any():
        label = column_label(names, int(table.has_missing.argmax()))
        raise ValueError(f"X: expected finite numbers, got missing values in {label}")


class AbsentClassError(ValueError):
    """A class has fewer rows of positive weight than a builder needs.

    Attributes
    ----------
    min_rows : int
        How many rows of each class it needs.
    """

    def __init__(self, message: str, min_rows: int = 1) -> None:
        super().__init__(message)
        self.min_rows = min_rows


def as_labels(y: object, n: int) -> tuple[Array, NDArray[np.bool_]]:
    """Return the two sorted label values, and for each row whether it has the second."""
    values, code = as_classes(y, n, "")
    return values, code.astype(np.bool_)


def as_classes(y: object, n: int, two: str | None = None) -> tuple[Array, NDArray[np.int32]]:
    """Return the sorted label values, two or more, and for each row which it has.

    Parameters
    ----------
    y : array_like of shape (n,)
        Labels: any numbers, booleans or strings.
    n : int
        Number of rows of X.
    two : str, optional
        That there can be two labels only, and because of what if not always. Default: any number.

    Raises
    ------
    ValueError
        If `y` is not one-dimensional, has another length, is empty, misses a label (None, NaN, a
        mask), or does not hold so many values. More than two numbers that are not all whole are a
        regression.
    TypeError
        If the labels are not all numbers or all strings.
    """
    labels = plain_labels(y, n)
    values = label_values(labels)
    check_label_values(values, two)
    return values, codes_among(labels, values)


def check_label_values(values: Array, two: str | None, instead: str = ONE_OF_EACH) -> None:
    """Raise ValueError for label values that are not of so many classes.

    `instead` is what to call if there are more than two.
    """
    if is_continuous(values):
        raise ValueError(
            f"y: expected labels, got {len(values)} different numbers that are not all whole; "
            f"{REGRESSIONS}; numbers that are names of classes can be passed as strings"
        )
    if two is not None:
        refuse_many(values, two, instead)
    if len(values) < 2:
        minimum = "at least two" if two is None else "two"
        raise ValueError(f"y: expected {minimum} label values, got only {values.tolist()[0]!r}")


def refuse_many(values: Array, why: str = "", instead: str = ONE_OF_EACH) -> None:
    """Raise MulticlassError for more than two labels."""
    if len(values) > 2:
        expected = f"two label values {why}".rstrip()
        if instead and len(values) > MOST_CLASSES and values.dtype.kind in "iuf":
            instead += f"; {REGRESSIONS}"
        raise MulticlassError(f"y: expected {expected}, got {len(values)}", instead)


def label_values(labels: Array | RowLabels) -> Array:
    """Return the sorted different labels."""
    if isinstance(labels, RowLabels):
        return distinct(labels)
    if not len(labels):
        return labels
    is_other = labels != labels[0]
    if not is_other.any():
        return labels[:1]
    pair = labels[[0, int(is_other.argmax())]]
    # A sort of all labels, as in numpy.unique, would cost more than a round of boosting.
    return np.sort(pair) if ((labels == pair[1]) == is_other).all() else distinct(labels)


def is_continuous(values: Array) -> bool:
    """Return whether different labels, by their number and kind, are those of a regression."""
    return len(values) > 2 and values.dtype.kind == "f" and bool((values != np.rint(values)).any())


def plain_labels(y: object, n: int) -> Any:
    """Return the labels of n rows as an array, checked; see `as_classes`."""
    labels = label_array(y)
    if labels.ndim != 1:
        raise ValueError(f"y: expected one dimension, got shape {labels.shape}{_as_one(y, labels)}")
    if len(labels) != n:
        raise ValueError(f"y: expected {n} labels, one per row of X, got {len(labels)}")
    if n == 0:
        raise ValueError("y: expected at least one row of each class, got no rows")
    if labels.dtype.kind == "f" and (row := first_false(np.isfinite(labels))) >= 0:
        raise ValueError(f"y: expected labels, got infinity in row {row}")
    return labels


def _as_one(y: object, values: Array) -> str:
    """Return how to pass the only column of a matrix or a data frame; "" for other shapes."""
    if values.ndim != 2 or values.shape[1] != 1:
        return ""
    if hasattr(y, "columns"):
        return f"; one column is y[{column_names(y)[0]!r}]"
    return f"; one column is {'y.ravel()' if hasattr(y, 'ravel') else 'np.ravel(y)'}"


def label_array(y: object) -> Any:
    """Return labels as an array of numbers, booleans or strings; none may be missing.

    Those that are `RowLabels` are codes, and stay so.
    """
    labels = target_array(y)
    if isinstance(labels, RowLabels):
        return labels
    if missing := missing_places(labels):
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise ValueError(f"y: missing label in row {missing[0]}{more}")
    return plain_values(labels, "y: expected labels")


def missing_places(values: Array) -> list[int]:
    """Return the places, in C order, where there is no value."""
    if values.dtype.kind in "OT":
        items = values.ravel().tolist()
        are_plain = set(map(type, items)) <= {str, int, bool}  # most often, and told at once
        return [] if are_plain else [i for i, value in enumerate(items) if is_missing(value)]
    return np.flatnonzero(np.isnan(values)).tolist() if values.dtype.kind in "fmM" else []


def target_array(y: object) -> Any:
    """Return y as an array, of objects where another would hold what was not given.

    `RowLabels` stay codes.
    """
    if isinstance(y, RowLabels):
        return y
    values = as_array("y", y)
    if isinstance(y, list | tuple):
        is_kept = _are_kept(y) if values.dtype.kind == "U" else not has_rounded(values)
    else:  # a series of polars is text of NumPy only if that is asked for
        is_kept = values.dtype.kind != "U" or isinstance(y, np.ndarray)
    return values if is_kept else np.asarray(y, dtype=object)


def _are_kept(values: Sequence[Any]) -> bool:
    """Return whether all values are strings that an array of strings stores as they are."""
    is_text = all(issubclass(kind, str) for kind in set(map(type, values)))
    return is_text and not any(value.endswith("\0") for value in values)


def places_among(values: Array, sought: Array) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the place of each that is found among sorted values, and whether it is one of them."""
    place = np.minimum(np.searchsorted(values, sought), len(values) - 1)
    return place, values[place] == sought


def class_codes(classes: Array, y: object, n: int) -> NDArray[np.intp]:
    """Return the place of each label among the sorted ones of a model; ValueError for others."""
    row_labels = label_array(y)
    if row_labels.shape != (n,):
        raise ValueError(f"y: expected {n} labels, one per row of X, got shape {row_labels.shape}")
    code: NDArray[np.intp] = np.zeros(n, dtype=np.intp)
    row = 0
    if (row_labels.dtype.kind == "U") == (classes.dtype.kind == "U"):
        if isinstance(row_labels, RowLabels):  # those of the labels, for their rows
            code, is_known = places_among(classes, row_labels.classes)
            code, is_known = code[row_labels.codes], is_known[row_labels.codes]
        else:
            code, is_known = places_among(classes, row_labels)
        row = first_false(is_known)
    if row >= 0 and n:
        raise ValueError(
            f"y: expected labels of the model, {classes.tolist()}, got {row_labels[row].item()!r} in "
            f"row {row}"
        )
    return code


def as_targets(y: object, n: int) -> NDArray[np.float64]:
    """Return the numbers to be predicted as float64 (n,).

    Raises
    ------
    ValueError
        If `y` is not one-dimensional, has another length, is empty, or holds what is missing, not
        finite or beyond 1e150, whose square is no longer a number, or an integer that is no
        float64.
    TypeError
        If `y` does not hold numbers.
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
            f"y: expected finite numbers to {MOST_TARGET:g}, got {targets[row]} in row {row}"
        )
    row = first_rounded(values, targets) if values.dtype.kind == "O" else first_inexact(values)
    if row >= 0:
        raise ValueError(
            f"y: row {row} holds {values[row]}, an integer beyond 2**53 that is no float64; pass "
            "floats to have it rounded"
        )
    return targets


def targets_that_count(
    targets: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return targets, 0 of rows of weight 0, so that these have no part in their scale."""
    return targets if weights is None else np.where(weights > 0, targets, 0.0)


def _numbers(values: Array) -> NDArray[np.float64]:
    """Return objects that are all real numbers as such."""
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
    """Return values that are all numbers or all strings as an array of such; else TypeError."""
    if values.dtype.kind in "biufU":
        return values
    if values.dtype.kind == "T":
        values = values.astype(object)  # NumPy has no direct cast to strings of one length
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
    """Return objects that are integers as such, of the 64 bits that hold them."""
    for dtype in (np.int64, np.uint64):
        try:
            return values.astype(dtype)
        except OverflowError:
            pass
    largest = max(values.ravel().tolist(), key=abs)
    raise ValueError(
        f"{expected} that fit into 64 bits where they are integers, got {largest}; as strings they "
        "may be of any length"
    )


def as_numbers(name: str, value: object, kinds: str = "biuf") -> NDArray[np.float64]:
    """Return a copy of `value` as float64, of whatever shape, if its dtype is of one of `kinds`."""
    values = as_array(name, value)
    if values.dtype.kind not in kinds:
        raise TypeError(f"{name}: expected numbers, got dtype {values.dtype}")
    return values.astype(np.float64)


def as_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Return `sample_weight` as float64 (n,), or None if it is None.

    Raises
    ------
    ValueError
        If the length differs, or a weight is hidden by a mask, negative, NaN or infinite, or all
        are 0.
    """
    if sample_weight is None:
        return None
    weights = weights_of_some(sample_weight, n)
    if not weights.any():
        raise ValueError("sample_weight: expected at least one weight > 0, all are zero")
    return weights


def weights_of_some(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """Return weights as `as_weights` does, of a part of the rows, where all may be 0."""
    weights = as_numbers("sample_weight", sample_weight)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight: expected shape ({n},), got {weights.shape}")
    if (row := first_false(np.isfinite(weights) & (weights >= 0))) >= 0:
        raise ValueError(
            f"sample_weight: expected finite numbers >= 0, got {weights[row]} in row {row}"
        )
    return weights


def scaled_weights(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Return weights times the power of two that brings the largest into [1/2, 1), and minus its
    exponent: sums of them, and of their products with squares, are numbers in any unit.
    """
    exponent = math.frexp(float(weights.max()))[1]
    return times_power(weights, -exponent), exponent


def times_power(numbers: NDArray[np.float64], exponent: int) -> NDArray[np.float64]:
    """Return numbers times a power of two."""
    if abs(exponent) > MOST_EXPONENT:  # the factor is no float64
        return np.ldexp(numbers, exponent)
    return numbers * math.ldexp(1.0, exponent)


def check_answers(h: object, n: int, what: str) -> NDArray[np.float64]:
    """Return the answers of a hypothesis as float64 (n,); a number stands for a constant."""
    array = np.asarray(h)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{what}: expected real numbers, got dtype {array.dtype}")
    answers = array.astype(np.float64, copy=False)
    if answers.ndim and answers.shape != (n,):
        raise ValueError(f"{what}: expected {n} answers, one per row, got shape {answers.shape}")
    answers = np.broadcast_to(answers, (n,))
    if (row := first_false(np.isfinite(answers))) >= 0:
        raise ValueError(f"{what}: expected finite numbers, got {answers[row]} for row {row}")
    return answers
