"""Levels of categories as columns of zeros and ones, where columns are added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs import ColumnNames
from pboost.data.table import Table
from pboost.values import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Indicators:
    """Columns of numbers as they are, and in place of a category a column for each of its levels.

    It is 1 where the category has this level, 0 where it has another; of a missing one all are.

    Attributes
    ----------
    table : Table
        The columns of X.
    column : ndarray of int32, shape (n,)
        Column of X of which each is made.
    level : ndarray of int32, shape (n,)
        Number of its level, -1 of a column of numbers.
    """

    table: Table
    column: IntArray
    level: IntArray

    def values(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return these columns (m, n) of rows X (m, d)."""
        found = X[:, self.column]
        for k in np.flatnonzero(self.level >= 0).tolist():
            level = found[:, k]
            found[:, k] = np.where(np.isnan(level), np.nan, level == self.level[k])
        return found

    def names(self, names: tuple[str, ...] | None) -> tuple[str, ...]:
        """Return how they are written, such as ``colour=red``, given the names of columns of X."""
        columns = ColumnNames(names, self.table.n_features)
        pairs = zip(self.column.tolist(), self.level.tolist(), strict=True)
        return tuple(
            columns[j] if level < 0 else f"{columns[j]}={self.table.level_names(j)[level]}"
            for j, level in pairs
        )

    def known(self) -> Table:
        """Return the table of these columns, all of numbers."""
        return Table.of_numbers(len(self.column)).with_holes(self.table.has_missing[self.column])

    def by_column(self, amounts: FloatArray) -> FloatArray:
        """Return amounts (n, ...) added up by the columns of X, (d, ...)."""
        found = np.zeros((self.table.n_features, *amounts.shape[1:]))
        np.add.at(found, self.column, amounts)
        return found


@lru_cache(maxsize=64)
def _made(table: Table) -> Indicators:
    column: list[int] = []
    level: list[int] = []
    for j, n in enumerate(table.n_levels.tolist()):
        column += [j] * max(n, 1)
        level += range(n) if n else [-1]
    return Indicators(table, np.array(column, dtype=np.int32), np.array(level, dtype=np.int32))


def indicators_of(table: Table | None) -> Indicators | None:
    """Return the columns of zeros and ones that levels are, None where there are no levels."""
    return None if table is None or not table.has_levels else _made(table)


def in_sums(values: NDArray[Any], table: Table | None) -> NDArray[Any]:
    """Return rows as they are read where columns are added up."""
    found = indicators_of(table)
    return values if found is None else found.values(values)


def names_in_sums(
    names: tuple[str, ...] | None, n_features: int, table: Table | None
) -> Sequence[str]:
    """Return how columns are written where they are added up."""
    found = indicators_of(table)
    if found is None:
        return ColumnNames(names, n_features, table)
    return ColumnNames(found.names(names), len(found.column))
