"""Bins that the partitions of a table share: those of the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pboost._core import sort
from pboost.data.check_xy import as_features, training_features
from pboost.data.columns import MAX_BINS, NO_WEIGHT, BinnedColumns, made
from pboost.data.convert import Features
from pboost.data.made_columns import all_binned
from pboost.data.parts import check_parts
from pboost.data.sampled_bins import (
    SAMPLE_ROWS,
    code_rows,
    greatest_hash,
    hashed_rows,
    joined_ends,
    with_ends,
)
from pboost.data.special_columns import MOST_KNOWN
from pboost.data.table import EVERYTHING, Table
from pboost.threads import Workers
from pboost.values import check_integer


def bin_columns(
    X: Sequence[Any], *, max_bins: int = MAX_BINS, n_threads: int | None = None
) -> list[BinnedColumns]:
    """Bin the columns of a table in partitions; bins are those of all rows in one table.

    Parameters
    ----------
    X : list of array_like of shape (n, d), or of data frames
        Numbers, some of which may be missing; of one dtype, with the same columns. A partition may
        be empty.
    max_bins : int
        Bins per column, 2 to 256, of about equal numbers of rows; equal values share a bin.
    n_threads : int or None
        Threads, -1 for all; None: as many as the work is worth.

    Returns
    -------
    list of BinnedColumns
        For each partition the rows that it has of ``pboost.bin_columns(all rows)``, to be passed to
        `fit_adaboost`.

    Raises
    ------
    ValueError, TypeError
        If a partition is no table, holds an infinity, or has other columns or another dtype than
        the first.
    NotImplementedError
        For categories. Partitions of them are rows of one ``pboost.bin_columns``, by its method
        ``select``.

    Notes
    -----
    Of more than 200,000 rows the edges are made from those of the 200,000 least hashes of their
    values, which are found by merging the hashes of partitions: they depend neither on the order of
    rows nor on where they lie. Only these rows are copied into one table.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> first, second = pb.shards.bin_columns([np.array([[0.0], [5.0]]), np.array([[3.0]])])
    >>> first.codes.tolist(), second.codes.tolist()
    ([[0, 2]], [[1]])
    """
    max_bins = check_integer("max_bins", max_bins, least=2, most=MAX_BINS)
    parts = _read(check_parts("X", X))
    sizes = [part.n_rows for part in parts]
    with Workers(n_threads, sum(sizes) * parts[0].n_features) as workers:
        found = _sampled(parts, max_bins, workers)
        if found is not None:
            return found
        rows = [np.arange(size, dtype=np.int32) for size in sizes]
        whole = _gathered(parts, rows, max_bins, workers)
    borders = np.cumsum(sizes)[:-1].tolist()
    return [like(whole, codes.copy()) for codes in np.split(whole.codes, borders, axis=1)]


def _read(X: list[Any]) -> list[Features]:
    """Return the features of all partitions, which agree."""
    found = [features_of_part(k, part) for k, part in enumerate(X)]
    table = shared_table(found)
    if not any(features.n_rows for features in found):
        raise ValueError("X: expected at least one row, all partitions are empty")
    return [Features(features.values, features.names, table) for features in found]


def features_of_part(number: int, part: Any) -> Features:
    """Return the features of a partition of numbers; its table says which columns miss values."""
    try:
        features = as_features(part)
        if features.table is not None:
            raise NotImplementedError(
                "X: categories are not implemented for partitions; pb.bin_columns takes them, "
                "and partitions are its rows, by columns.select(rows)"
            )
        return training_features(features, None, EVERYTHING)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise type(error)(f"partition {number}: {error}") from None


def shared_table(found: Sequence[Features]) -> Table | None:
    """Return which columns miss values in any partition, None if none; partitions must agree."""
    first = found[0]
    for k, features in enumerate(found):
        if features.n_features != first.n_features:
            raise ValueError(
                f"X: expected {first.n_features} columns in all partitions, as in partition 0, got "
                f"{features.n_features} in partition {k}"
            )
        if features.names != first.names:
            raise ValueError(f"X: partition {k} names its columns otherwise than partition 0")
        if features.values.dtype != first.values.dtype:
            raise TypeError(
                f"X: expected one dtype in all partitions, got {first.values.dtype} in partition 0 "
                f"and {features.values.dtype} in partition {k}"
            )
    tables = [features.table for features in found if features.table is not None]
    if not tables:
        return None
    holes = np.any([t.has_missing for t in tables], axis=0)
    return Table.of_numbers(first.n_features).with_holes(holes)


def _sampled(parts: list[Features], max_bins: int, workers: Workers) -> list[BinnedColumns] | None:
    """Return columns whose edges are those of a part of the rows, None where they are of all."""
    if sum(part.n_rows for part in parts) <= SAMPLE_ROWS:
        return None
    rows = [np.arange(part.n_rows, dtype=np.int32) for part in parts]
    hashes = [
        hashed_rows(part.values, listed, workers)
        for part, listed in zip(parts, rows, strict=True)
    ]  # fmt: skip
    greatest = greatest_hash(np.concatenate([hashed for hashed, _ in hashes]))
    if greatest is None:
        return None
    if any(has_missing for _, has_missing in hashes):  # their code is that after the last bin
        max_bins = min(max_bins, MOST_KNOWN)
    taken = [np.flatnonzero(hashed <= greatest) for hashed, _ in hashes]
    sampled = _gathered(parts, taken, max_bins, workers)
    coded = [
        code_rows(partial(sort.gather_columns, part.values), listed, sampled, workers)
        for part, listed in zip(parts, rows, strict=True)
    ]
    ends = joined_ends((found for _, found in coded), sampled.n_features)
    whole = with_ends(coded[0][0], ends, None, sampled)
    return [like(whole, codes) for codes, _ in coded]


def _gathered(
    parts: list[Features], rows: Sequence[Any], max_bins: int, workers: Workers
) -> BinnedColumns:
    """Return the bins of some rows of all partitions."""
    values = np.concatenate([p.values[listed] for p, listed in zip(parts, rows, strict=True)])
    return binned(Features(values, parts[0].names, parts[0].table), max_bins, workers)


def binned(features: Features, max_bins: int, workers: Workers) -> BinnedColumns:
    """Return the bins of all rows."""
    listed = np.arange(features.n_rows, dtype=np.int32)
    return all_binned(features, listed, max_bins, NO_WEIGHT, workers, None)


def like(whole: BinnedColumns, codes: Any) -> BinnedColumns:
    """Return columns of other rows in the same bins."""
    return made(
        BinnedColumns, codes, whole.n_bins, whole.lower, whole.upper, whole.names, whole.special,
        whole.table, None,
    )  # fmt: skip
