"""What is done with one partition of a table wherever it lies, before it can answer as a shard.

Each function takes one partition, or what one before it has made of the partition, and no other.
Little of what they return goes to one place, where `merged_hashes` and `bins_of` see all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import sort
from pboost.data.binned_values import by_column, valued
from pboost.data.blocks import codes_among
from pboost.data.check_xy import features_as_trained, label_values, targets_that_count
from pboost.data.columns import NO_WEIGHT, BinnedColumns
from pboost.data.convert import Features, Trained, read_rows
from pboost.data.exact_edges import Cells, Keys, Question, count_cells, sorted_keys
from pboost.data.part_bins import binned, like, of_part, with_holes
from pboost.data.part_levels import PartLevels, part_levels
from pboost.data.parts import (
    fixed_of_part,
    greatest_of,
    labels_of_part,
    targets_of_part,
    weights_of_part,
)
from pboost.data.sampled_bins import (
    SAMPLE_ROWS,
    Ends,
    code_rows,
    hashed_rows,
    joined_ends,
    with_ends,
)
from pboost.data.special_columns import MOST_KNOWN
from pboost.threads import Workers
from pboost.values import Array, FloatArray


class ReadPart(NamedTuple):
    """Rows of a partition, checked; y, labels or targets, is None where there are no rows.

    As they were `read` categories have the levels of this partition; the columns of `undeclared`
    are categories by their values alone. Weights are `fixed` where edges of bins follow from them.
    """

    features: Features
    y: Array | None
    weights: FloatArray | None
    read: Features
    undeclared: list[int]
    fixed: NDArray[np.int64] | None = None


class About(NamedTuple):
    """What must be known of a partition where all are seen together.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    features : Features
        Names, dtype and which columns miss values; no rows.
    labels : ndarray, or None
        Label values, None where there are no rows, and of a regression.
    most : float
        Greatest target, without its sign.
    weight : float
        Sum of the weights; no more is made of it than whether it is positive, and finite.
    heaviest : float
        Greatest weight.
    """

    n_rows: int
    features: Features
    labels: Array | None
    most: float
    weight: float
    heaviest: float


class Coded(NamedTuple):
    """Rows of a partition as codes, and their values where they are kept."""

    codes: NDArray[np.uint8]
    ends: Ends
    y: Array | None
    weights: FloatArray | None
    values: Array | None = None


def read_part(
    number: int, X: Any, y: Any, weights: Any, is_weighed: bool, is_regression: bool
) -> ReadPart:
    """Return the rows of a partition, checked."""
    read, undeclared = of_part(number, read_rows, X)
    features = of_part(number, with_holes, read)
    y = (targets_of_part if is_regression else labels_of_part)(number, y, features.n_rows)
    if is_weighed:
        weights = weights_of_part(number, weights, features.n_rows)
        if is_regression and y is not None:
            y = targets_that_count(y, weights)
    return ReadPart(features, y, weights, read, undeclared)


def levels_of(part: ReadPart, number: int) -> PartLevels:
    """Return what the columns of a partition hold."""
    return part_levels(f"partition {number}", part.read, part.undeclared, part.fixed)


def numbered_part(part: ReadPart, number: int, trained: Trained) -> ReadPart:
    """Return a partition whose categories have the numbers of levels of all."""
    features = of_part(number, features_as_trained, part.read, trained)
    return part._replace(features=of_part(number, with_holes, features))


def without_rows(part: ReadPart) -> Features:
    """Return what the columns of a partition are."""
    values, names, table = _of(part.features)
    return Features(values[:0].copy(), names, table)


def about(part: ReadPart, is_regression: bool) -> About:
    """Return what must be known of a partition where all are seen together."""
    values, y, weights = part.features.values, part.y, part.weights
    with np.errstate(over="ignore"):
        weight = float(len(values)) if weights is None else float(weights.sum())
    return About(
        len(values),
        without_rows(part),
        None if y is None or is_regression else label_values(y).copy(),
        0.0 if y is None or not is_regression else float(np.abs(y).max()),
        weight,
        0.0 if weights is None else greatest_of(weights),
    )


def weight_in(part: ReadPart, most: int, bits: int) -> int:
    """Return the sum of the weights of a partition in fixed point."""
    assert part.weights is not None
    return fixed_of_part(part.weights, most, bits)[1]


def fixed_part(part: ReadPart, most: int, bits: int) -> ReadPart:
    """Return a partition with its weights in fixed point, by which edges of bins are made."""
    assert part.weights is not None
    return part._replace(fixed=fixed_of_part(part.weights, most, bits)[0])


def _of(features: Features) -> tuple[Array, Any, Any]:
    return features.values, features.names, features.table


def least_hashes(part: ReadPart) -> NDArray[np.uint64]:
    """Return the least different hashes of rows, where weights matter of those that have some."""
    hashed = _hashed(part)
    if part.fixed is not None:
        hashed = hashed[part.fixed > 0]
    return np.unique(hashed)[: SAMPLE_ROWS + 1]


def _hashed(part: ReadPart) -> NDArray[np.uint64]:
    with Workers(1) as workers:
        return hashed_rows(part.features.values, _all_rows(part), workers)[0]


def _all_rows(part: ReadPart) -> NDArray[np.int32]:
    return np.arange(part.features.n_rows, dtype=np.int32)


def merged_hashes(found: Sequence[NDArray[np.uint64]]) -> int | None:
    """Return the `SAMPLE_ROWS`-th of the different hashes, None where there are no more."""
    merged = np.unique(np.concatenate(found))
    return int(merged[SAMPLE_ROWS - 1]) if len(merged) > SAMPLE_ROWS else None


def rows_of_edges(part: ReadPart, greatest: int | None) -> tuple[Array, NDArray[np.int64] | None]:
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
    is_part: bool,
    workers: Workers,
) -> BinnedColumns:
    """Return the bins of rows; where they are a part of all, one code is for missing values."""
    if is_part and features.table is not None and features.table.has_missing.any():
        max_bins = min(max_bins, MOST_KNOWN)
    values = np.concatenate([part for part, _ in rows])
    masses = [mass for _, mass in rows if mass is not None]
    mass = np.concatenate(masses) if masses else NO_WEIGHT
    return binned(Features(values, features.names, features.table), max_bins, workers, mass)


def keys_of(part: ReadPart) -> list[Keys]:
    """Return the sorted keys of the columns of a partition."""
    return [sorted_keys(column, part.fixed) for column in part.features.values.T]


def count_keys(keys: list[Keys], asked: Mapping[int, Question]) -> dict[int, Cells]:
    """Return what is asked of columns of a partition."""
    return {j: count_cells(keys[j], question) for j, question in asked.items()}


def code_part(part: ReadPart, bins: BinnedColumns, keeps_values: bool) -> Coded:
    """Return a partition as codes of the bins between the edges of some rows, and its values."""
    gather = partial(sort.gather_columns, part.features.values)
    with Workers(1) as workers:
        codes, ends = code_rows(gather, _all_rows(part), bins, workers)
    values = by_column(part.features.values) if keeps_values else None
    return Coded(codes, ends, part.y, part.weights, values)


def ends_of(part: Coded) -> Ends:
    """Return the ends of the bins in a partition."""
    return part.ends


def whole_bins(bins: BinnedColumns, ends: Sequence[Ends]) -> BinnedColumns:
    """Return the bins of all rows, given the ends in all partitions; they hold one row."""
    one = np.zeros((bins.n_features, 1), dtype=np.uint8)
    n_levels = None if bins.table is None else bins.table.n_levels
    return like(with_ends(one, joined_ends(ends, bins.n_features), n_levels, bins), one)


def given_part(
    part: Coded, bins: BinnedColumns, values: Array | int, dtype: Any, more: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return what a shard is made of: columns, classes or targets, weights, and `more`.

    The values are those of labels; of a regression the exponent by which targets are scaled.
    """
    columns = like(bins, part.codes)
    if part.values is not None:
        columns = valued(columns, part.values)
    return columns, truth_of(part, values, dtype), part.weights, *more


def truth_of(part: Coded, values: Array | int, dtype: Any) -> Array:
    """Return the classes, or the scaled targets, of a partition; `values` as of `given_part`."""
    y = part.y
    assert y is not None
    if isinstance(values, int):
        return np.asarray(np.ldexp(y, -values))
    return codes_among(y, values).astype(dtype, copy=False)
