"""Functions that process one partition, in this process or on a worker.

Each function takes a partition, or the result of an earlier task, and the number of the partition
for error messages. Only small results are sent to the client.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pboost._core import binning, voting
from pboost.data.columns.bin_and_sort import all_binned
from pboost.data.columns.columns import (
    NO_WEIGHT,
    BinnedColumns,
    BinnedValues,
    by_column,
    made,
    valued,
)
from pboost.data.columns.exact_bin_edges import CellQuery, Cells, Keys, count_cells, sorted_keys
from pboost.data.columns.prebuilt import MOST_KNOWN
from pboost.data.columns.sampled_bin_edges import (
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
    """Validated rows and raw targets of a partition.

    `read` has the category codes of this partition alone. The features in `undeclared` are
    categorical only because of their values. Weights are `fixed` (in fixed point) if the bin edges
    depend on them.
    """

    features: Features
    y: Any
    weights: FloatArray | None
    read: Features
    undeclared: list[int]
    fixed: NDArray[np.int64] | None = None


class About(NamedTuple):
    """Summary of a partition, sent to the client.

    Attributes
    ----------
    features : Features
        Names, dtype and features with missing values, without rows.
    n_rows : int
        Number of rows.
    weight : float
        Sum of the sample weights. It is only used to check that it is positive and finite.
    heaviest : float
        Largest sample weight.
    """

    features: Features
    n_rows: int
    weight: float
    heaviest: float


class Coded(NamedTuple):
    """Bin codes of the rows of a partition, and their feature values if they are kept."""

    codes: NDArray[np.uint8]
    ends: Ends
    y: Any
    weights: FloatArray | None
    values: Array | None = None


class PartitionData(NamedTuple):
    """Binned rows of a partition, with raw targets and sample weights."""

    columns: BinnedColumns
    y: Any
    weights: FloatArray | None


def of_part(number: int, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function and add the number of the partition to its error messages."""
    try:
        return function(*arguments)
    except (TypeError, ValueError) as error:
        message = str(error)
        for hint in (NAME_OR_ENCODE, ENCODE):  # these hints do not apply to partitions
            message = message.replace(hint, "; use a categorical dtype for these columns")
        raise type(error)(f"partition {number}: {message}") from None


# Reading


def read_part(number: int, X: Any, y: Any, weights: Any, is_weighed: bool) -> ReadPart:
    """Read and validate the rows of a partition."""
    read, undeclared = of_part(number, read_rows, X)
    features = of_part(number, _with_missing, read)
    if is_weighed:
        weights = weights_of_part(number, weights, features.n_rows)
    return ReadPart(features, y, weights, read, undeclared)


def binned_part(
    number: int, columns: BinnedColumns, y: object, weights: object, is_weighed: bool
) -> PartitionData:
    """Return a partition that is already binned, with validated weights."""
    return PartitionData(
        columns, y, weights_of_part(number, weights, columns.n_rows) if is_weighed else None
    )


def weights_of_part(number: int, weights: object, size: int) -> FloatArray:
    """Return the validated weights of a partition; all of them may be 0."""
    if weights is None:
        raise ValueError(
            "sample_weight: expected weights for all partitions or for none, got None for "
            f"partition {number}"
        )
    return of_part(number, weights_of_some, weights, size)


def _with_missing(features: Features) -> Features:
    """Return rows with a table of the features that have missing values."""
    return training_features(features, None, EVERYTHING)


def levels_of(part: ReadPart, number: int) -> PartLevels:
    """Return the categories in a partition."""
    return part_levels(f"partition {number}", part.read, part.undeclared, part.fixed)


def numbered_part(part: ReadPart, number: int, trained: Trained) -> ReadPart:
    """Return a partition with the category codes of all partitions."""
    features = of_part(number, features_as_trained, part.read, trained)
    return part._replace(features=of_part(number, _with_missing, features))


def about(part: ReadPart, number: int) -> About:
    """Return the summary of a partition."""
    values, names, table = part.features.values, part.features.names, part.features.table
    weights = part.weights
    with np.errstate(over="ignore"):
        weight = float(len(values)) if weights is None else float(weights.sum())
    heaviest = 0.0 if weights is None else float(weights.max(initial=0.0))
    return About(Features(values[:0].copy(), names, table), len(values), weight, heaviest)


def fixed_of_part(weights: FloatArray, exponent: int, bits: int) -> tuple[NDArray[np.int64], int]:
    """Return fixed-point weights times ``2**-exponent`` with `bits` bits, and their sum."""
    fixed = np.empty(len(weights), dtype=np.int64)
    total = voting.to_fixed(np.ldexp(weights, -exponent), math.ldexp(1.0, bits), fixed)
    return fixed, int(total)


def weight_of(part: PartitionData, number: int) -> float:
    """Return the sum of the weights of a partition, which can be infinite."""
    with np.errstate(over="ignore"):
        return 0.0 if part.weights is None else float(part.weights.sum())


def rows_of_weight(part: PartitionData, number: int) -> tuple[int, float]:
    """Return the number of rows with positive weight and the largest weight."""
    if part.weights is None:
        return part.columns.n_rows, 1.0
    return int(np.count_nonzero(part.weights)), float(part.weights.max(initial=0.0))


def weight_in(part: ReadPart, number: int, exponent: int, bits: int) -> int:
    """Return the sum of the weights of a partition in fixed point."""
    assert part.weights is not None
    return fixed_of_part(part.weights, exponent, bits)[1]


def fixed_part(part: ReadPart, number: int, exponent: int, bits: int) -> ReadPart:
    """Return a partition with fixed-point weights, for the bin edges."""
    assert part.weights is not None
    return part._replace(fixed=fixed_of_part(part.weights, exponent, bits)[0])


# Bins


def least_hashes(part: ReadPart, number: int, max_hash: int) -> NDArray[np.uint64]:
    """Return the smallest distinct hashes <= `max_hash` of rows with positive weight."""
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
    """Return one thread, because a worker runs several tasks in parallel."""
    return Workers(1)


def _all_rows(part: ReadPart) -> NDArray[np.int32]:
    return np.arange(part.features.n_rows, dtype=np.int32)


def merged_hashes(hashes: Sequence[NDArray[np.uint64]]) -> int | None:
    """Return the `SAMPLE_ROWS`-th smallest hash, or None if there are too few hashes."""
    merged = np.unique(np.concatenate(hashes))
    return int(merged[SAMPLE_ROWS - 1]) if len(merged) > SAMPLE_ROWS else None


def rows_of_edges(
    part: ReadPart, number: int, greatest: int | None
) -> tuple[Array, NDArray[np.int64] | None]:
    """Return the rows with hashes <= `greatest`, which define the bin edges, and their weights."""
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
    """Return the bins of rows. In a sample, one code is reserved for missing values."""
    if is_sample and features.table is not None and features.table.has_missing.any():
        max_bins = min(max_bins, MOST_KNOWN)
    values = np.concatenate([part for part, _ in rows])
    masses = [mass for _, mass in rows if mass is not None]
    mass = np.concatenate(masses) if masses else NO_WEIGHT
    listed = np.arange(len(values), dtype=np.int32)
    sample = Features(values, features.names, features.table)
    return all_binned(sample, listed, max_bins, mass, workers, None)


def keys_of(part: ReadPart, number: int) -> list[Keys]:
    """Return the sorted keys of each feature of a partition."""
    return [sorted_keys(column, part.fixed) for column in part.features.values.T]


def count_keys(keys: list[Keys], number: int, asked: Mapping[int, CellQuery]) -> dict[int, Cells]:
    """Return the counts that the search for bin edges requests."""
    return {j: count_cells(keys[j], question) for j, question in asked.items()}


def code_part(part: ReadPart, number: int, bins: BinnedColumns, keeps_values: bool) -> Coded:
    """Return the bin codes of a partition, and its values if they are kept."""
    gather = partial(binning.gather_columns, part.features.values)
    with _workers(part.features.values) as workers:
        codes, ends = code_rows(gather, _all_rows(part), bins, workers)
    values = by_column(part.features.values) if keeps_values else None
    return Coded(codes, ends, part.y, part.weights, values)


def ends_of(part: Coded, number: int) -> Ends:
    """Return the smallest and largest value of each bin in a partition."""
    return part.ends


def whole_bins(bins: BinnedColumns, ends: Sequence[Ends]) -> BinnedColumns:
    """Return bins with their smallest and largest values in all partitions, and one dummy row."""
    template = np.zeros((bins.n_features, 1), dtype=np.uint8)
    n_levels = None if bins.table is None else bins.table.n_levels
    return like(with_ends(template, joined_ends(ends, bins.n_features), n_levels, bins), template)


def like(bins: BinnedColumns, codes: object) -> BinnedColumns:
    """Return columns with the same bins and new codes."""
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
    """Return a partition in the common bins."""
    columns = like(bins, part.codes)
    if part.values is not None:
        columns = valued(columns, part.values)
    return PartitionData(columns, part.y, part.weights)


# Targets


def kind_of(part: PartitionData, number: int) -> Targets:
    """Return the properties of the targets from which the task is inferred."""
    return of_part(number, targets_of, part.y)


def labels_in(part: PartitionData, number: int) -> Array | None:
    """Return the class labels in a partition, or None if it has no rows."""
    y = _labels(part, number)
    return None if y is None else label_values(y).copy()


def _labels(part: PartitionData, number: int) -> Array | None:
    n, y = part.columns.n_rows, part.y
    return of_part(number, lambda: plain_labels(y, n) if n or len(label_array(y)) else None)


def greatest_target(part: PartitionData, number: int) -> float:
    """Return the largest absolute target of a partition."""
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
    """Return the class codes of a partition, or its targets times ``2**-values``."""
    if isinstance(values, int):
        return np.asarray(np.ldexp(_targets(part, number), -values))
    y = _labels(part, number)
    return np.empty(0, dtype=np.int32) if y is None else codes_among(y, values)


def targets_and_weights(
    part: PartitionData, number: int, values: Array | int
) -> tuple[Array, FloatArray | None]:
    """Return class codes or scaled targets, and sample weights."""
    return truth_of(part, number, values), part.weights


def _class_codes(part: PartitionData, number: int, values: Array | int) -> tuple[Array, int]:
    """Return the class of each row with positive weight, and the number of classes."""
    n = 1 if isinstance(values, int) else len(values)
    code = np.zeros(part.columns.n_rows, dtype=np.min_scalar_type(n))
    if not isinstance(values, int):
        code[:] = truth_of(part, number, values)
    if part.weights is not None:
        code[part.weights == 0] = n
    return code, n


def class_sizes(part: PartitionData, number: int, values: Array | int) -> list[int]:
    """Return the number of rows with positive weight, per class in classification."""
    code, n = _class_codes(part, number, values)
    return [int(np.count_nonzero(code == k)) for k in range(n)]


def rows_at(
    part: PartitionData, number: int, values: Array | int, places: Sequence[NDArray[np.int32]]
) -> NDArray[np.int32]:
    """Return the row indices of the given positions in each class, in ascending order."""
    code, _ = _class_codes(part, number, values)
    row_numbers = [np.flatnonzero(code == k)[of] for k, of in enumerate(places)]
    return np.sort(np.concatenate(row_numbers)).astype(np.int32)


def contents_of(
    part: PartitionData, number: int, is_numeric: bool
) -> tuple[Array, Array | None, Array | None, FloatArray | None]:
    """Return the codes, values (if kept), targets and weights of a partition."""
    y = _targets(part, number) if is_numeric else _labels(part, number)
    values = part.columns.features().values if isinstance(part.columns, BinnedValues) else None
    return part.columns.codes, values, y, part.weights


def taken(part: PartitionData, number: int, rows: Array) -> PartitionData:
    """Return the rows with these indices."""
    listed = rows.astype(np.int32)
    y = label_array(part.y)[listed]
    weights = None if part.weights is None else part.weights[listed]
    return PartitionData(part.columns.select(listed), y, weights)


def applied(part: PartitionData, number: int, function: Callable[..., T], *arguments: Any) -> T:
    """Return the result of a function of the columns, targets and weights."""
    return of_part(number, function, part.columns, part.y, part.weights, *arguments)


def given_part(
    part: PartitionData,
    number: int,
    values: Array | int,
    dtype: Any,
    held: Array | None,
    more: tuple[Any, ...],
) -> tuple[Any, ...]:
    """Return the arguments of the class whose objects represent partitions in a fit.

    The result has the columns, class codes or scaled targets, weights, and `more`. Rows of the
    validation set have weight 0.
    """
    weights = part.weights
    if held is not None:
        weights = np.ones(part.columns.n_rows) if weights is None else weights.copy()
        weights[held] = 0.0
    y = truth_of(part, number, values)
    if not isinstance(values, int):
        y = y.astype(dtype, copy=False)
    return part.columns, y, weights, *more
