"""What is done with one partition wherever it lies: a task of this process or of a worker.

Each function takes one partition, or what one before it has made of the partition, and its number;
what it raises names the partition. Little of what they return comes to the process of the fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pboost._core import binning, voting
from pboost.data.columns.columns import (
    NO_WEIGHT,
    BinnedColumns,
    BinnedValues,
    by_column,
    made,
    valued,
)
from pboost.data.columns.exact_edges import CellQuery, Cells, Keys, count_cells, sorted_keys
from pboost.data.columns.making import all_binned
from pboost.data.columns.prebuilt import MOST_KNOWN
from pboost.data.columns.sampled_edges import (
    SAMPLE_ROWS,
    Ends,
    code_rows,
    hashed_rows,
    joined_ends,
    with_ends,
)
from pboost.data.read.batches import PartLevels, part_levels
from pboost.data.read.check_xy import (
    as_targets,
    features_as_trained,
    label_array,
    label_values,
    plain_labels,
    targets_that_count,
    training_features,
    weights_of_some,
)
from pboost.data.read.codes import codes_among
from pboost.data.read.convert import Features, Trained, read_rows
from pboost.data.read.numbers import ENCODE, NAME_OR_ENCODE
from pboost.data.read.table import EVERYTHING
from pboost.data.targets import Targets, numbers_given, targets_of
from pboost.threads import Workers
from pboost.values import Array, FloatArray

T = TypeVar("T")


class ReadPart(NamedTuple):
    """Rows of a partition, checked, and its targets as they were given.

    As they were `read` categories have the levels of this partition; the columns of `undeclared`
    are categories by their values alone. Weights are `fixed` where edges of bins follow from them.
    """

    features: Features
    y: Any
    weights: FloatArray | None
    read: Features
    undeclared: list[int]
    fixed: NDArray[np.int64] | None = None


class About(NamedTuple):
    """What must be known of a partition where all are seen together.

    Attributes
    ----------
    features : Features
        Names, dtype and which columns miss values; no rows.
    n_rows : int
        Number of rows.
    weight : float
        Sum of the weights; no more is made of it than whether it is positive, and finite.
    heaviest : float
        Greatest weight.
    """

    features: Features
    n_rows: int
    weight: float
    heaviest: float


class Coded(NamedTuple):
    """Rows of a partition as codes, and their values if they are kept."""

    codes: NDArray[np.uint8]
    ends: Ends
    y: Any
    weights: FloatArray | None
    values: Array | None = None


class PartitionData(NamedTuple):
    """Rows of a partition in bins, their targets as they were given, and their weights."""

    columns: BinnedColumns
    y: Any
    weights: FloatArray | None


def of_part(number: int, function: Callable[..., T], *arguments: Any) -> T:
    """Return what a function returns; its errors name the partition."""
    try:
        return function(*arguments)
    except (TypeError, ValueError) as error:
        message = str(error)
        for hint in (NAME_OR_ENCODE, ENCODE):  # partitions are named no categories, nor encoded
            message = message.replace(hint, "; make columns of categories by their type")
        raise type(error)(f"partition {number}: {message}") from None


# Reading


def read_part(number: int, X: Any, y: Any, weights: Any, is_weighed: bool) -> ReadPart:
    """Return the rows of a partition, checked."""
    read, undeclared = of_part(number, read_rows, X)
    features = of_part(number, _with_missing, read)
    if is_weighed:
        weights = weights_of_part(number, weights, features.n_rows)
    return ReadPart(features, y, weights, read, undeclared)


def binned_part(
    number: int, columns: BinnedColumns, y: object, weights: object, is_weighed: bool
) -> PartitionData:
    """Return a partition that is binned already, its weights checked."""
    return PartitionData(
        columns, y, weights_of_part(number, weights, columns.n_rows) if is_weighed else None
    )


def weights_of_part(number: int, weights: object, size: int) -> FloatArray:
    """Return the weights of a partition, checked; all may be 0."""
    if weights is None:
        raise ValueError(
            f"sample_weight: expected weights of all partitions or of none, got None for "
            f"partition {number}"
        )
    return of_part(number, weights_of_some, weights, size)


def _with_missing(features: Features) -> Features:
    """Return rows whose table says which columns have missing values."""
    return training_features(features, None, EVERYTHING)


def levels_of(part: ReadPart, number: int) -> PartLevels:
    """Return what the columns of a partition hold."""
    return part_levels(f"partition {number}", part.read, part.undeclared, part.fixed)


def numbered_part(part: ReadPart, number: int, trained: Trained) -> ReadPart:
    """Return a partition whose categories have the numbers of levels of all."""
    features = of_part(number, features_as_trained, part.read, trained)
    return part._replace(features=of_part(number, _with_missing, features))


def about(part: ReadPart, number: int) -> About:
    """Return what must be known of a partition where all are seen together."""
    values, names, table = part.features.values, part.features.names, part.features.table
    weights = part.weights
    with np.errstate(over="ignore"):
        weight = float(len(values)) if weights is None else float(weights.sum())
    heaviest = 0.0 if weights is None else float(weights.max(initial=0.0))
    return About(Features(values[:0].copy(), names, table), len(values), weight, heaviest)


def fixed_of_part(weights: FloatArray, exponent: int, bits: int) -> tuple[NDArray[np.int64], int]:
    """Return the weights of a partition times ``2**-most`` with so many bits, and their sum."""
    fixed = np.empty(len(weights), dtype=np.int64)
    total = voting.to_fixed(np.ldexp(weights, -exponent), math.ldexp(1.0, bits), fixed)
    return fixed, int(total)


def weight_of(part: PartitionData, number: int) -> float:
    """Return the sum of the weights of a partition, which may be infinite."""
    with np.errstate(over="ignore"):
        return 0.0 if part.weights is None else float(part.weights.sum())


def rows_of_weight(part: PartitionData, number: int) -> tuple[int, float]:
    """Return how many rows of a partition have weight, and the greatest."""
    if part.weights is None:
        return part.columns.n_rows, 1.0
    return int(np.count_nonzero(part.weights)), float(part.weights.max(initial=0.0))


def weight_in(part: ReadPart, number: int, exponent: int, bits: int) -> int:
    """Return the sum of the weights of a partition in fixed point."""
    assert part.weights is not None
    return fixed_of_part(part.weights, exponent, bits)[1]


def fixed_part(part: ReadPart, number: int, exponent: int, bits: int) -> ReadPart:
    """Return a partition with its weights in fixed point, by which edges of bins are made."""
    assert part.weights is not None
    return part._replace(fixed=fixed_of_part(part.weights, exponent, bits)[0])


# Bins


def least_hashes(part: ReadPart, number: int, max_hash: int) -> NDArray[np.uint64]:
    """Return the least different hashes of rows, up to `max_hash`; rows may need to have weight."""
    hashed = _hashed(part)
    is_in = hashed <= np.uint64(max_hash)
    if part.fixed is not None:
        is_in &= part.fixed > 0
    hashed = hashed[is_in]
    return np.unique(hashed)[: SAMPLE_ROWS + 1]


def _hashed(part: ReadPart) -> NDArray[np.uint64]:
    with _workers(part.features.values) as workers:
        return hashed_rows(part.features.values, _all_rows(part), workers)[0]


def _workers(values: Array) -> Workers:
    """Return the threads of a task: on a worker of a cluster other tasks have the others."""
    return Workers(1)


def _all_rows(part: ReadPart) -> NDArray[np.int32]:
    return np.arange(part.features.n_rows, dtype=np.int32)


def merged_hashes(hashes: Sequence[NDArray[np.uint64]]) -> int | None:
    """Return the `SAMPLE_ROWS`-th of the different hashes, None where there are no more."""
    merged = np.unique(np.concatenate(hashes))
    return int(merged[SAMPLE_ROWS - 1]) if len(merged) > SAMPLE_ROWS else None


def rows_of_edges(
    part: ReadPart, number: int, greatest: int | None
) -> tuple[Array, NDArray[np.int64] | None]:
    """Return rows from which edges are made, of a hash up to this or all, and their weights."""
    if greatest is None:
        return part.features.values, part.fixed
    is_in = _hashed(part) <= np.uint64(greatest)
    if part.fixed is None:
        return part.features.values[is_in], None
    is_in &= part.fixed > 0
    return part.features.values[is_in], part.fixed[is_in]


def bins_of(
    rows: Sequence[tuple[Array, NDArray[np.int64] | None]],
    features: Features,
    max_bins: int,
    is_sample: bool,
    workers: Workers,
) -> BinnedColumns:
    """Return the bins of rows; if they are a sample, one code is for missing values."""
    if is_sample and features.table is not None and features.table.has_missing.any():
        max_bins = min(max_bins, MOST_KNOWN)
    values = np.concatenate([part for part, _ in rows])
    masses = [mass for _, mass in rows if mass is not None]
    mass = np.concatenate(masses) if masses else NO_WEIGHT
    listed = np.arange(len(values), dtype=np.int32)
    sample = Features(values, features.names, features.table)
    return all_binned(sample, listed, max_bins, mass, workers, None)


def keys_of(part: ReadPart, number: int) -> list[Keys]:
    """Return the sorted keys of the columns of a partition."""
    return [sorted_keys(column, part.fixed) for column in part.features.values.T]


def count_keys(keys: list[Keys], number: int, asked: Mapping[int, CellQuery]) -> dict[int, Cells]:
    """Return the counts that a search for edges asks for."""
    return {j: count_cells(keys[j], question) for j, question in asked.items()}


def code_part(part: ReadPart, number: int, bins: BinnedColumns, keeps_values: bool) -> Coded:
    """Return a partition as codes of the bins between the edges of some rows, and its values."""
    gather = partial(binning.gather_columns, part.features.values)
    with _workers(part.features.values) as workers:
        codes, ends = code_rows(gather, _all_rows(part), bins, workers)
    values = by_column(part.features.values) if keeps_values else None
    return Coded(codes, ends, part.y, part.weights, values)


def ends_of(part: Coded, number: int) -> Ends:
    """Return the ends of the bins in a partition."""
    return part.ends


def whole_bins(bins: BinnedColumns, ends: Sequence[Ends]) -> BinnedColumns:
    """Return the bins of all rows, given the ends in all partitions; they hold one row."""
    template = np.zeros((bins.n_features, 1), dtype=np.uint8)
    n_levels = None if bins.table is None else bins.table.n_levels
    return like(with_ends(template, joined_ends(ends, bins.n_features), n_levels, bins), template)


def like(bins: BinnedColumns, codes: object) -> BinnedColumns:
    """Return columns of other rows in the same bins."""
    return made(
        BinnedColumns,
        codes,
        bins.n_bins,
        bins.lower,
        bins.upper,
        bins.names,
        bins.special,
        bins.table,
        None,
    )


def finished(part: Coded, number: int, bins: BinnedColumns) -> PartitionData:
    """Return a partition in the bins of all rows."""
    columns = like(bins, part.codes)
    if part.values is not None:
        columns = valued(columns, part.values)
    return PartitionData(columns, part.y, part.weights)


# Targets


def kind_of(part: PartitionData, number: int) -> Targets:
    """Return what says of which task the targets of a partition are."""
    return of_part(number, targets_of, part.y)


def labels_in(part: PartitionData, number: int) -> Array | None:
    """Return the label values of a partition, None if it has no rows."""
    y = _labels(part, number)
    return None if y is None else label_values(y).copy()


def _labels(part: PartitionData, number: int) -> Array | None:
    n, y = part.columns.n_rows, part.y
    return of_part(number, lambda: plain_labels(y, n) if n or len(label_array(y)) else None)


def greatest_target(part: PartitionData, number: int) -> float:
    """Return the greatest target of a partition, without its sign."""
    return float(np.abs(_targets(part, number)).max(initial=0.0))


def _targets(part: PartitionData, number: int) -> FloatArray:
    n, y = part.columns.n_rows, part.y
    targets: FloatArray | None = of_part(
        number, lambda: as_targets(numbers_given(y), n) if n or len(y) else None
    )
    if targets is None:
        return np.empty(0)
    return targets if part.weights is None else targets_that_count(targets, part.weights)


def truth_of(part: PartitionData, number: int, values: Array | int) -> Array:
    """Return the classes of the rows of a partition, or targets times ``2**-values``."""
    if isinstance(values, int):
        return np.asarray(np.ldexp(_targets(part, number), -values))
    y = _labels(part, number)
    return np.empty(0, dtype=np.int32) if y is None else codes_among(y, values)


def targets_and_weights(
    part: PartitionData, number: int, values: Array | int
) -> tuple[Array, FloatArray | None]:
    """Return classes or scaled targets, and weights."""
    return truth_of(part, number, values), part.weights


def _class_codes(part: PartitionData, number: int, values: Array | int) -> tuple[Array, int]:
    """Return the class of each row of positive weight, and how many classes there are."""
    n = 1 if isinstance(values, int) else len(values)
    code = np.zeros(part.columns.n_rows, dtype=np.min_scalar_type(n))
    if not isinstance(values, int):
        code[:] = truth_of(part, number, values)
    if part.weights is not None:
        code[part.weights == 0] = n
    return code, n


def class_sizes(part: PartitionData, number: int, values: Array | int) -> list[int]:
    """Return the number of rows of positive weight of each class; of a regression of all."""
    code, n = _class_codes(part, number, values)
    return [int(np.count_nonzero(code == k)) for k in range(n)]


def rows_at(
    part: PartitionData, number: int, values: Array | int, places: Sequence[NDArray[np.int32]]
) -> NDArray[np.int32]:
    """Return rows in ascending order, given their places among those that `class_sizes` counts."""
    code, _ = _class_codes(part, number, values)
    row_numbers = [np.flatnonzero(code == k)[of] for k, of in enumerate(places)]
    return np.sort(np.concatenate(row_numbers)).astype(np.int32)


def contents_of(
    part: PartitionData, number: int, is_numeric: bool
) -> tuple[Array, Array | None, Array | None, FloatArray | None]:
    """Return codes, values if they are kept, targets and weights of all rows of a partition."""
    y = _targets(part, number) if is_numeric else _labels(part, number)
    values = part.columns.features().values if isinstance(part.columns, BinnedValues) else None
    return part.columns.codes, values, y, part.weights


def taken(part: PartitionData, number: int, rows: Array) -> PartitionData:
    """Return some rows of a partition, in their order."""
    listed = rows.astype(np.int32)
    y = label_array(part.y)[listed]
    weights = None if part.weights is None else part.weights[listed]
    return PartitionData(part.columns.select(listed), y, weights)


def applied(part: PartitionData, number: int, function: Callable[..., T], *arguments: Any) -> T:
    """Return what a function returns of values, targets and weights of a partition."""
    return of_part(number, function, part.columns, part.y, part.weights, *arguments)


def given_part(
    part: PartitionData,
    number: int,
    values: Array | int,
    dtype: Any,
    held: Array | None,
    more: tuple[Any, ...],
) -> tuple[Any, ...]:
    """Return what a shard is made of: columns, classes or targets, weights, and `more`.

    Rows that are held out have weight 0.
    """
    weights = part.weights
    if held is not None:
        weights = np.ones(part.columns.n_rows) if weights is None else weights.copy()
        weights[held] = 0.0
    y = truth_of(part, number, values)
    if not isinstance(values, int):
        y = y.astype(dtype, copy=False)
    return part.columns, y, weights, *more
