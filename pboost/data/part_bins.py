"""Bins that the partitions of a table share: those of the whole table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pboost._core import sort
from pboost.data.binned_values import by_column, valued
from pboost.data.check_xy import features_as_trained, training_features
from pboost.data.columns import MAX_BINS, NO_WEIGHT, BinnedColumns, made
from pboost.data.convert import Features, Trained, read_rows
from pboost.data.exact_edges import (
    EdgeSearch,
    bins_between,
    count_cells,
    joined_cells,
    level_ends,
    most_known,
    sorted_keys,
)
from pboost.data.made_columns import EDGES, all_binned
from pboost.data.numbers import ENCODE, NAME_OR_ENCODE
from pboost.data.part_levels import (
    PartLevels,
    has_categories,
    joined_levels,
    part_levels,
    shared_levels,
)
from pboost.data.parts import check_parts, fixed_of_parts, weights_of_parts
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
from pboost.threads import Workers, check_stop
from pboost.values import FloatArray, check_choice, check_flag, check_integer

#: Weights in fixed point.
Fixed: TypeAlias = NDArray[np.int64]
T = TypeVar("T")


def bin_columns(
    X: Sequence[Any],
    *,
    max_bins: int = MAX_BINS,
    edges: str = "sample",
    sample_weight: Sequence[Any] | None = None,
    values: bool = False,
    n_threads: int | None = None,
) -> list[BinnedColumns]:
    """Bin the columns of a table in partitions; bins are those of all rows in one table.

    Parameters
    ----------
    X : list of array_like of shape (n, d), or of data frames
        Numbers, some of which may be missing, and categories; of one dtype, with the same columns.
        A partition may be empty.
    max_bins : int
        Bins per column, 2 to 256, of about equal weight; equal values share a bin.
    edges : {"sample", "exact"}
        Rows that make the edges, as in `pboost.bin_columns`: of more than 200,000 some, or all.
    sample_weight : list of array_like of shape (n,), optional
        Weights of the rows; those of a partition may all be 0.
    values : bool
        Whether partitions keep a copy of the values, as in `pboost.bin_columns`.
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
        the first; if categories are of other kinds, or in another order; if weights are not as they
        must be.

    Notes
    -----
    Of more than 200,000 rows the edges are made from those of the 200,000 least hashes of their
    values, which are found by merging the hashes of partitions: they depend neither on the order of
    rows nor on where they lie. Only these rows are copied into one table.

    Edges from all rows are found by counts, column by column: rows that lie in ranges of values,
    added up over partitions, and then in smaller ranges of those in which a bin can end. No rows
    are copied into one table.

    Levels of categories are those of all partitions, in the order that they have in one table. Of
    more than 255 the lightest share a number; their weights are sums of integers here, too.

    The unit of weights in fixed point follows from the sum of integers here, and of floating-point
    numbers in `pboost.bin_columns`: where that sum is a power of two but for its rounding, units
    differ by two, which matters to weights below 2**-59 of the sum.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> first, second = pb.shards.bin_columns([np.array([[0.0], [5.0]]), np.array([[3.0]])])
    >>> first.codes.tolist(), second.codes.tolist()
    ([[0, 2]], [[1]])
    """
    check_choice("edges", edges, EDGES)
    max_bins = check_integer("max_bins", max_bins, least=2, most=MAX_BINS)
    values = check_flag("values", values)
    parts, fixed = _read(check_parts("X", X), sample_weight)
    found = _binned(parts, fixed, max_bins, edges == "exact", n_threads)
    if not values:
        return found
    return [valued(one, by_column(part.values)) for one, part in zip(found, parts, strict=True)]


def _binned(
    parts: list[Features],
    fixed: Sequence[Fixed] | None,
    max_bins: int,
    is_exact: bool,
    n_threads: int | None,
) -> list[BinnedColumns]:
    """Return the rows of all partitions in bins."""
    sizes = [part.n_rows for part in parts]
    with Workers(n_threads, sum(sizes) * parts[0].n_features) as workers:
        if is_exact:
            return _coded(parts, _exact(parts, fixed, max_bins, workers), workers)
        found = _sampled(parts, fixed, max_bins, workers)
        if found is not None:
            return found
        rows = [np.arange(size, dtype=np.int32) for size in sizes]
        whole = _gathered(parts, rows, fixed, max_bins, workers)
    borders = np.cumsum(sizes)[:-1].tolist()
    return [like(whole, codes.copy()) for codes in np.split(whole.codes, borders, axis=1)]


def _read(
    X: list[Any], sample_weight: Sequence[Any] | None
) -> tuple[list[Features], Sequence[Fixed] | None]:
    """Return the features of all partitions, which agree, and their weights in fixed point."""
    read = [of_part(k, read_rows, part) for k, part in enumerate(X)]
    found, fixed = [features for features, _ in read], None
    check_alike(found)
    if sample_weight is not None:
        sizes = [features.n_rows for features in found]
        fixed = fixed_of_parts(weights_of_parts(sample_weight, sizes))
    if has_categories(found):
        own = [
            part_levels(f"partition {k}", features, undeclared, None if fixed is None else fixed[k])
            for k, (features, undeclared) in enumerate(read)
        ]
        trained = trained_levels(own, found[0])
        found = [features_as_trained(features, trained) for features in found]
    found = [of_part(k, with_holes, features) for k, features in enumerate(found)]
    table = shared_table(found)
    if not any(features.n_rows for features in found):
        raise ValueError("X: expected at least one row, all partitions are empty")
    return [Features(features.values, features.names, table) for features in found], fixed


def trained_levels(own: Sequence[PartLevels], features: Features) -> Trained:
    """Return the columns of all partitions, of which some are given, with the levels of all."""
    names = features.names
    whole = joined_levels(own, names, "all partitions")
    return Trained(names, features.n_features, shared_levels(whole, names))


def of_part(number: int, function: Callable[..., T], part: Any, *more: Any) -> T:
    """Return what a function returns of a partition; its errors name it."""
    try:
        return function(part, *more)
    except (TypeError, ValueError) as error:
        message = str(error)
        for hint in (NAME_OR_ENCODE, ENCODE):  # partitions are named no categories, nor encoded
            message = message.replace(hint, "; make columns of categories by their type")
        raise type(error)(f"partition {number}: {message}") from None


def with_holes(features: Features) -> Features:
    """Return rows whose table says which columns miss values."""
    return training_features(features, None, EVERYTHING)


def shared_table(found: Sequence[Features]) -> Table | None:
    """Return which columns miss values in any partition, None if none; partitions must agree."""
    check_alike(found)
    tables = [features.table for features in found if features.table is not None]
    if not tables:
        return None
    holes = np.any([t.has_missing for t in tables], axis=0)
    return tables[0].with_holes(holes)


def check_alike(found: Sequence[Features]) -> None:
    """Raise an error where partitions have other columns or another dtype than the first."""
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


def _sampled(
    parts: list[Features], fixed: Sequence[Fixed] | None, max_bins: int, workers: Workers
) -> list[BinnedColumns] | None:
    """Return columns whose edges are those of a part of the rows, None where they are of all."""
    has_part = [np.ones(part.n_rows, dtype=np.bool_) for part in parts]
    if fixed is not None:
        has_part = [mass > 0 for mass in fixed]
    if sum(np.count_nonzero(has) for has in has_part) <= SAMPLE_ROWS:
        return None
    hashes = [hashed_rows(part.values, _numbered(part), workers) for part in parts]
    greatest = greatest_hash(
        np.concatenate([hashed[has] for (hashed, _), has in zip(hashes, has_part, strict=True)])
    )
    if greatest is None:
        return None
    if any(has_missing for _, has_missing in hashes):  # their code is that after the last bin
        max_bins = min(max_bins, MOST_KNOWN)
    taken = [
        np.flatnonzero((hashed <= greatest) & has)
        for (hashed, _), has in zip(hashes, has_part, strict=True)
    ]
    return _coded(parts, _gathered(parts, taken, fixed, max_bins, workers), workers)


def _exact(
    parts: list[Features], fixed: Sequence[Fixed] | None, max_bins: int, workers: Workers
) -> BinnedColumns:
    """Return bins between the edges of all rows; they hold no row."""
    d = parts[0].n_features
    table = parts[0].table or Table.of_numbers(d)
    n_levels, has_missing = table.n_levels.tolist(), table.has_missing
    masses = [None] * len(parts) if fixed is None else fixed

    def work(first: int, last: int) -> list[tuple[FloatArray, FloatArray]]:
        found = []
        for j in range(first, last):
            check_stop()
            if n_levels[j]:
                found.append(level_ends(n_levels[j]))
                continue
            search = EdgeSearch(most_known(max_bins, has_missing[j]), fixed is not None)
            keys = [
                sorted_keys(part.values[:, j], mass)
                for part, mass in zip(parts, masses, strict=True)
            ]
            while (question := search.question()) is not None:
                counted = [count_cells(part, question) for part in keys]
                search.take(joined_cells(counted, question))
            found.append(search.ends())
        return found

    ends = [one for some in workers.run(work, d) for one in some]
    return bins_between(ends, parts[0].names, parts[0].table)


def _coded(parts: list[Features], bins: BinnedColumns, workers: Workers) -> list[BinnedColumns]:
    """Return the rows of all partitions as codes of the bins between edges."""
    coded = [
        code_rows(partial(sort.gather_columns, part.values), _numbered(part), bins, workers)
        for part in parts
    ]
    ends = joined_ends((found for _, found in coded), bins.n_features)
    n_levels = None if bins.table is None else bins.table.n_levels
    whole = with_ends(coded[0][0], ends, n_levels, bins)
    return [like(whole, codes) for codes, _ in coded]


def _numbered(part: Features) -> NDArray[np.int32]:
    return np.arange(part.n_rows, dtype=np.int32)


def _gathered(
    parts: list[Features],
    rows: Sequence[Any],
    fixed: Sequence[Fixed] | None,
    max_bins: int,
    workers: Workers,
) -> BinnedColumns:
    """Return the bins of some rows of all partitions."""
    values = np.concatenate([p.values[listed] for p, listed in zip(parts, rows, strict=True)])
    mass = NO_WEIGHT
    if fixed is not None:
        mass = np.concatenate([of[listed] for of, listed in zip(fixed, rows, strict=True)])
    return binned(Features(values, parts[0].names, parts[0].table), max_bins, workers, mass)


def binned(
    features: Features, max_bins: int, workers: Workers, fixed: Fixed = NO_WEIGHT
) -> BinnedColumns:
    """Return the bins of all rows."""
    listed = np.arange(features.n_rows, dtype=np.int32)
    return all_binned(features, listed, max_bins, fixed, workers, None)


def like(whole: BinnedColumns, codes: Any) -> BinnedColumns:
    """Return columns of other rows in the same bins."""
    return made(
        BinnedColumns,
        codes,
        whole.n_bins,
        whole.lower,
        whole.upper,
        whole.names,
        whole.special,
        whole.table,
        None,
    )
