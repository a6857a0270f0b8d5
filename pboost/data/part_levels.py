"""Categories of a table that is read in parts: levels are those of all, as of one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pboost.data.convert import Features
from pboost.data.levels import heaviest, level_counts, refuse_identifier
from pboost.data.table import MOST_LEVELS, Table, column_label, kind_of
from pboost.values import Array

#: What to do with text that may be no category, in tables in parts, which have no `categorical`.
DECLARED = "make it a column of categories by its type if it is meant as one"


@dataclass(frozen=True, slots=True)
class PartLevels:
    """What the columns of some rows of a table hold.

    Attributes
    ----------
    where : str
        What messages call the rows.
    n_rows : int
        Number of rows.
    table : Table
        Levels that occur, and orders of ordered categories.
    has_values : ndarray of bool, shape (d,)
        Whether a value is known.
    counts, mass : list of ndarray of int64
        For each column the numbers of rows of its levels, and their weights in fixed point.
    undeclared : list of int
        Columns that are categories by their values alone.
    """

    where: str
    n_rows: int
    table: Table
    has_values: NDArray[np.bool_]
    counts: list[NDArray[np.int64]]
    mass: list[NDArray[np.int64]]
    undeclared: list[int]


def part_levels(
    where: str, features: Features, undeclared: list[int], mass: NDArray[np.int64] | None
) -> PartLevels:
    """Return what columns hold, given the weights of rows in fixed point, if they have any."""
    values, d = features.values, features.n_features
    table = Table.of_numbers(d) if features.table is None else features.table
    sizes = table.n_levels.tolist()
    counts = [level_counts(values[:, j], sizes[j]) if sizes[j] else _NONE for j in range(d)]
    masses = counts
    if mass is not None:
        masses = [
            level_counts(values[:, j], sizes[j], mass) if sizes[j] else _NONE for j in range(d)
        ]
    has_values = np.logical_not(np.isnan(values).all(axis=0))
    return PartLevels(where, len(values), table, has_values, counts, masses, undeclared)


_NONE = np.empty(0, dtype=np.int64)


def has_categories(parts: Sequence[Features]) -> bool:
    """Return whether there are columns of categories, ordered or not, in any part."""
    return any(part.table is not None and part.table.categories for part in parts)


def shared_levels(whole: PartLevels, names: tuple[str, ...] | None) -> Table:
    """Return the levels of all parts, as of one table; of too many the lightest share a number.

    ValueError if text has mostly values that occur once.
    """
    table = whole.table
    levels = list(table.levels)
    other: list[Array | None] = [None] * table.n_features
    for j, (found, counts) in enumerate(zip(table.levels, whole.counts, strict=True)):
        if found is None:
            continue
        if j in whole.undeclared:
            refuse_identifier(counts, whole.n_rows, column_label(names, j), DECLARED)
        if len(found) > MOST_LEVELS:
            kept, rest = heaviest(whole.mass[j])
            levels[j], other[j] = found[kept], found[rest]
    return Table(tuple(levels), table.has_missing, tuple(other), table.order)


def joined_levels(
    parts: Sequence[PartLevels], names: tuple[str, ...] | None, where: str
) -> PartLevels:
    """Return what the rows of all parts hold.

    TypeError if a column holds text in some, numbers in others, or categories of another order.
    """
    d = parts[0].table.n_features
    found = [_joined(parts, j, column_label(names, j)) for j in range(d)]
    levels, order, counts, mass = (list(column) for column in zip(*found, strict=True))
    return PartLevels(
        where,
        sum(part.n_rows for part in parts),
        Table(tuple(levels), np.zeros(d, dtype=np.bool_), order=tuple(order)),
        np.any([part.has_values for part in parts], axis=0),
        counts,
        mass,
        sorted({j for part in parts for j in part.undeclared}),
    )


def _joined(
    parts: Sequence[PartLevels], j: int, label: str
) -> tuple[Array | None, Array | None, NDArray[np.int64], NDArray[np.int64]]:
    """Return the levels of one column, its order, and the rows and the mass of each level."""
    holders = [part for part in parts if part.table.values_of(j) is not None]
    if not holders:
        return None, None, _NONE, _NONE
    _check_kinds(parts, j, label)
    first = next((part for part in holders if part.has_values[j]), holders[0])
    if first.table.levels[j] is None:
        return None, first.table.values_of(j), _NONE, _NONE
    some = [part for part in holders if part.has_values[j]] or [first]
    own = [levels for part in some if (levels := part.table.levels[j]) is not None]
    every, place = np.unique(np.concatenate(own), return_inverse=True)
    counts, mass = np.zeros((2, len(every)), dtype=np.int64)
    np.add.at(counts, place, np.concatenate([part.counts[j] for part in some]))
    np.add.at(mass, place, np.concatenate([part.mass[j] for part in some]))
    is_there = counts > 0  # of rows that were left out levels may have none
    return every[is_there], None, counts[is_there], mass[is_there]


def _is_order(order: Array, before: Array | None) -> bool:
    return before is not None and np.array_equal(order, before)


def _check_kinds(parts: Sequence[PartLevels], j: int, label: str) -> None:
    """Raise TypeError where values of a column do not go together."""
    kinds: dict[str, str] = {}
    orders: list[tuple[Array | None, str]] = []
    for part in parts:
        if part.has_values[j]:
            values = part.table.values_of(j)
            kind = "numbers without levels" if values is None else kind_of(values)
            kinds.setdefault(kind, part.where)
            orders.append((None if part.table.levels[j] is not None else values, part.where))
    if len(kinds) > 1 and set(kinds) != {"numbers", "booleans"}:
        (one, first), (two, second), *_ = kinds.items()
        raise TypeError(f"X: {label} holds {one} in {first}, {two} in {second}; make it all text")
    for order, where in orders[1:]:
        before, first = orders[0]
        is_same = before is None if order is None else _is_order(order, before)
        if not is_same:
            raise TypeError(
                f"X: {label} has categories of another order in {where} than in {first}"
            )
