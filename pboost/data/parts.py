"""Tables that lie in parts: their labels and weights checked, and bins that all parts share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import reweight
from pboost.data.binned_values import values_in_bins
from pboost.data.blocks import codes_among
from pboost.data.check_xy import (
    as_targets,
    check_label_values,
    label_array,
    label_values,
    plain_labels,
    targets_that_count,
    weights_of_some,
)
from pboost.data.columns import BinnedColumns, made
from pboost.data.engines import SUM_BITS
from pboost.data.labels import numbers_given
from pboost.data.row_digest import Digest
from pboost.data.target_task import Targets, joined, known_task, targets_of
from pboost.data.training import Problem, TrainingData
from pboost.values import Array, FloatArray, IntArray
from pboost.values.options import OF_NUMBERS_IN_PARTS


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """X, y and weights of all partitions, checked.

    Attributes
    ----------
    columns : list of BinnedColumns
        Of the same bins.
    labels : ndarray, shape (2,)
        Label values.
    label : list of ndarray of uint8
        Class of each row.
    weights : list of ndarray of float64, or None
        As given.
    seen : ndarray of uint64, or None
        Digest of rows, as of `Problem`.
    """

    columns: list[BinnedColumns]
    labels: Array
    label: list[NDArray[np.uint8]]
    weights: list[FloatArray] | None
    seen: Digest | None = None

    def problem(self) -> Problem:
        """Return labels and weights of all rows, one partition after another; no columns."""
        first = self.columns[0]
        return Problem(
            columns=first.select(np.empty(0, dtype=np.int32)),
            labels=self.labels,
            label=np.concatenate([np.empty(0, dtype=np.uint8), *self.label]),
            weights=None if not self.weights else np.concatenate(self.weights),
            names=first.names,
            table=first.table,
        )

    def whole(
        self, exponent: int, scale: float, masses: tuple[int, int], bin_start: IntArray
    ) -> TrainingData:
        """Return the data of a fit whose rows are elsewhere: one for each class, with its mass."""
        first = self.columns[0]
        none = np.empty((first.n_features, 0), dtype=np.uint8)
        columns = made(
            BinnedColumns,
            none,
            first.n_bins,
            first.lower,
            first.upper,
            first.names,
            first.special,
            first.table,
            bin_start,
        )
        weights = None if self.weights is None else np.ones(2)
        problem = Problem(
            columns=columns,
            labels=self.labels,
            label=np.array([0, 1], dtype=np.uint8),
            weights=weights,
            names=first.names,
            table=first.table,
            seen=self.seen,
        )
        return TrainingData(
            problem=problem,
            rows=np.arange(2, dtype=np.int32),
            weight=np.ones(2),
            fixed=np.array(masses, dtype=np.int64),
            weight_exponent=exponent,
            scale=scale,
            exact=False,
            order=np.empty((first.n_features, 0), dtype=np.int32),
            columns=columns,
            n_negative=1,
        )


def read_parts(X: Any, y: Any, sample_weight: Any) -> Parts:
    """Check the arguments of a builder that is given partitions.

    Raises
    ------
    TypeError
        If they are no sequences, or a part of X is no BinnedColumns.
    ValueError
        If they differ in length, bins differ, or labels or weights are not as they must be.
    """
    columns, weights = read_columns(X, y, sample_weight)
    labels, codes = classes_of_parts(y, [part.n_rows for part in columns], "")
    return Parts(columns, labels, [code.astype(np.uint8) for code in codes], weights)


def read_columns(
    X: Any, y: Any, sample_weight: Any
) -> tuple[list[BinnedColumns], list[FloatArray] | None]:
    """Check X and the weights of partitions, and that y has as many, as `read_parts` does."""
    columns = check_parts("X", X)
    for k, part in enumerate(columns):
        if not isinstance(part, BinnedColumns):
            raise TypeError(
                f"X: expected BinnedColumns in every partition, got {type(part).__name__} in "
                f"partition {k}; pb.shards.bin_columns makes them, with bins that all share"
            )
        if (what := _difference(columns[0], part)) is not None:
            raise ValueError(
                f"X: expected the same bins in all partitions, but partition {k} differs from "
                f"partition 0 in {what}; pb.shards.bin_columns makes bins that all share"
            )
    sizes = [part.n_rows for part in columns]
    check_parts("y", y, len(columns))
    if sample_weight is None:
        return columns, None
    return columns, weights_of_parts(sample_weight, sizes)


def values_of_rows(columns: Sequence[BinnedColumns], rows: NDArray[np.intp]) -> Array:
    """Return what `values_in_bins` does of rows that are numbered through all partitions."""
    stops = np.cumsum([part.n_rows for part in columns])
    place = np.searchsorted(stops, rows, side="right")
    order = np.argsort(place, kind="stable")
    found = [
        values_in_bins(part, rows[place == k] - (stops[k] - part.n_rows))
        for k, part in enumerate(columns)
        if part.n_rows
    ]
    values: Array = np.concatenate(found)[np.argsort(order, kind="stable")]
    return values


@dataclass(frozen=True, slots=True, eq=False)
class TreeParts:
    """X, y and weights of all partitions of the rows of a tree, checked.

    Attributes
    ----------
    columns, weights : list
        As of `Parts`.
    labels : ndarray, shape (J,), or None
        Label values, None of a regression.
    label : list of ndarray of int32
        Class of each row; empty arrays of a regression.
    y : list of ndarray of float64
        Targets times ``2**-exponent``, below 1; empty arrays of a classification.
    exponent : int
        See `y`.
    """

    columns: list[BinnedColumns]
    labels: Array | None
    label: list[IntArray]
    y: list[FloatArray]
    exponent: int
    weights: list[FloatArray] | None

    def problem(self) -> Problem:
        """Return the problem of a fit whose rows are elsewhere."""
        first, no_rows = self.columns[0], np.empty(0, dtype=np.int32)
        return Problem(
            columns=first.select(no_rows),
            labels=self.labels,
            label=no_rows,
            weights=None,
            names=first.names,
            exponent=self.exponent,
            table=first.table,
        )


def read_tree_parts(X: Any, y: Any, sample_weight: Any, task: str | None) -> TreeParts:
    """Check the arguments of a builder of trees that is given partitions.

    They raise what they raise in `read_parts`; there can be any number of labels. Without `task`
    the targets say which it is.
    """
    columns, weights = read_columns(X, y, sample_weight)
    task = task_of_parts(y) if task is None else task
    sizes = [part.n_rows for part in columns]
    if weights is not None:
        check_weight_sum(sum(float(part.sum()) for part in weights))
    if task == "classification":
        labels, label = classes_of_parts(y, sizes, None)
        return TreeParts(columns, labels, label, [np.empty(0)] * len(sizes), 0, weights)
    targets = _targets_of_parts(y, sizes)
    if weights is not None:
        targets = [targets_that_count(*of) for of in zip(targets, weights, strict=True)]
    exponent = exponent_of([float(np.abs(part).max(initial=0.0)) for part in targets], sum(sizes))
    no_label = [np.empty(0, dtype=np.int32)] * len(sizes)
    scaled = [np.ldexp(part, -exponent) for part in targets]
    return TreeParts(columns, None, no_label, scaled, exponent, weights)


def task_of_parts(parts: Sequence[Any]) -> str:
    """Return what `task_of` does of targets in parts, some of which may be empty."""
    return known_task(joined([kind_of_part(k, y) for k, y in enumerate(parts)]))


def kind_of_part(number: int, y: Any) -> Targets:
    """Return what is read of the targets of a partition to know the task."""
    try:
        return targets_of(y)
    except (TypeError, ValueError) as error:
        raise type(error)(f"partition {number}: {error}") from None


def _targets_of_parts(parts: Sequence[Any], sizes: Sequence[int]) -> list[FloatArray]:
    """Return what `as_targets` does of numbers in parts, some of which may be empty."""
    found = [targets_of_part(k, y, n) for k, (y, n) in enumerate(zip(parts, sizes, strict=True))]
    return [np.empty(0) if y is None else y for y in found]


def targets_of_part(number: int, y: Any, n: int) -> FloatArray | None:
    """Return the targets of the n rows of a partition, None where it has none."""
    try:
        return as_targets(numbers_given(y), n) if n or len(y) else None
    except (TypeError, ValueError) as error:
        raise type(error)(f"partition {number}: {error}") from None


def exponent_of(most: Sequence[float], n: int) -> int:
    """Return the exponent of `TreeParts` for the greatest targets of partitions, of n rows."""
    if not n:
        raise ValueError("y: expected at least one row, got no rows")
    return int(np.frexp(max(most))[1])


def check_parts(name: str, parts: Any, size: int | None = None) -> list[Any]:
    """Return partitions as a list."""
    if not isinstance(parts, Sequence) or isinstance(parts, str | bytes):
        raise TypeError(
            f"{name}: expected a list with an entry for each partition, got {type(parts).__name__}"
        )
    if not len(parts):
        raise ValueError(f"{name}: expected one partition or more, got none")
    if size is not None and len(parts) != size:
        raise ValueError(f"{name}: expected {size} partitions, as in X, got {len(parts)}")
    return list(parts)


def weights_of_parts(sample_weight: Any, sizes: Sequence[int]) -> list[FloatArray]:
    """Return the weights of partitions, checked; those of some partitions may all be 0."""
    found = [
        weights_of_part(k, given, sizes[k])
        for k, given in enumerate(check_parts("sample_weight", sample_weight, len(sizes)))
    ]
    check_any_weight(any(weights.any() for weights in found))
    return found


def fixed_of_parts(weights: Sequence[FloatArray]) -> list[NDArray[np.int64]]:
    """Return weights as `to_fixed_point` does; sums are of integers, in any order the same."""
    most = math.frexp(max(greatest_of(part) for part in weights))[1]
    first = first_bits(sum(map(len, weights)))
    total = sum(fixed_of_part(part, most, first)[1] for part in weights)
    bits = bits_of_total(total, first)
    return [fixed_of_part(part, most, bits)[0] for part in weights]


def greatest_of(weights: FloatArray) -> float:
    """Return the greatest weight of a partition, 0 where it has none."""
    return float(weights.max(initial=0.0))


def first_bits(n: int) -> int:
    """Return in how many bits weights below 1 of n rows are added up first."""
    return SUM_BITS - n.bit_length()


def bits_of_total(total: int, first: int) -> int:
    """Return in how many bits weights have the largest sum that has room, given that in `first`."""
    return SUM_BITS - (total.bit_length() - first)


def fixed_of_part(weights: FloatArray, most: int, bits: int) -> tuple[NDArray[np.int64], int]:
    """Return the weights of a partition times ``2**-most`` with so many bits, and their sum."""
    fixed = np.empty(len(weights), dtype=np.int64)
    total = reweight.to_fixed(np.ldexp(weights, -most), math.ldexp(1.0, bits), fixed)
    return fixed, int(total)


def weights_of_part(number: int, given: Any, size: int) -> FloatArray:
    """Return the weights of a partition, checked."""
    if given is None:
        raise ValueError(
            f"sample_weight: expected weights of all partitions or of none, got None for "
            f"partition {number}"
        )
    try:
        return weights_of_some(given, size)
    except (TypeError, ValueError) as error:
        raise type(error)(f"partition {number}: {error}") from None


def check_any_weight(is_any: bool) -> None:
    """Raise ValueError where no partition has weights above 0."""
    if not is_any:
        raise ValueError("sample_weight: expected at least one weight > 0, all are zero")


def check_weight_sum(total: float) -> None:
    """Raise ValueError where the sum of all weights is no number."""
    if not np.isfinite(total):
        raise ValueError("sample_weight: expected weights with a finite sum")


def classes_of_parts(
    parts: Sequence[Any], sizes: Sequence[int], two: str | None
) -> tuple[Array, list[NDArray[np.int32]]]:
    """Return what `as_classes` does of labels in parts, some of which may be empty.

    TypeError where they are of one kind in one part, of another in another.
    """
    labels = [labels_of_part(k, y, n) for k, (y, n) in enumerate(zip(parts, sizes, strict=True))]
    values = shared_labels([None if y is None else label_values(y) for y in labels], two)
    none = np.empty(0, dtype=np.int32)
    return values, [none if y is None else codes_among(y, values) for y in labels]


def labels_of_part(number: int, y: Any, n: int) -> Array | None:
    """Return the labels of the n rows of a partition, None where it has none."""
    try:
        return plain_labels(y, n) if n or len(label_array(y)) else None
    except (TypeError, ValueError) as error:
        raise type(error)(f"partition {number}: {error}") from None


def shared_labels(parts: Sequence[Array | None], two: str | None) -> Array:
    """Return the label values of all partitions, given those of each, None where it is empty."""
    found = {k: values for k, values in enumerate(parts) if values is not None}
    if not found:
        raise ValueError("y: expected at least one row of each class, got no rows")
    first = next(iter(found))
    is_text = found[first].dtype.kind in "UST"
    for k, labels in found.items():
        if (labels.dtype.kind in "UST") != is_text:
            raise TypeError(
                f"y: expected labels of one kind in all partitions, got {found[first].dtype} in "
                f"partition {first} and {labels.dtype} in partition {k}"
            )
    values = label_values(np.concatenate(list(found.values())))
    check_label_values(values, two, OF_NUMBERS_IN_PARTS)
    return values


def _difference(first: BinnedColumns, other: BinnedColumns) -> str | None:
    """Return in what the bins of two partitions differ, None if in nothing."""
    if first.n_features != other.n_features:
        return f"the number of columns ({first.n_features}, {other.n_features})"
    if first.names != other.names:
        return "the names of columns"
    if first.table != other.table:
        return "the levels of categories, or which columns miss values"
    for name in ("n_bins", "lower", "upper", "special"):
        ours, theirs = getattr(first, name), getattr(other, name)
        if (ours is None) != (theirs is None):
            return f"`{name}`"
        if ours is not None and not np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"):
            return f"`{name}`"
    return None
