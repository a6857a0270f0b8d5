"""What the nodes of a model compare with thresholds, where it is not columns of X."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.table import MOST_LEVELS, OTHER, Table, listed
from pboost.threads import Workers
from pboost.values import Array, FloatArray, Floats, IntArray, freeze


class ColumnNames(Sequence[str]):
    """How the columns of a model are written: by their names, or ``x[j]`` where they have none.

    Each is made when it is asked for: a model can have many more columns than it reads. `table`
    says which levels the columns have.
    """

    def __init__(
        self, names: tuple[str, ...] | None, n_features: int, table: Table | None = None
    ) -> None:
        self._names = names
        self._n_features = n_features
        self._table = table

    def __len__(self) -> int:
        return self._n_features

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if self._names is not None:
            return self._names[index]
        if isinstance(index, slice):
            return [f"x[{j}]" for j in range(self._n_features)[index]]
        return f"x[{range(self._n_features)[index]}]"

    def value_text(self, column: int, value: float) -> str:
        """Return what a row has in a column, such as ``age = 3`` or ``age is missing``."""
        if np.isnan(value):
            return f"{self[column]} is missing"
        is_number = self._table is None or self._table.categories[column] is None
        text = f"{value:.6g}" if is_number else self.level(column, int(value))
        return f"{self[column]} = {text}"

    def level(self, column: int, number: int) -> str:
        """Return how a level of a column is written: its value, or its number if none is known."""
        levels = None if self._table is None else self._table.categories[column]
        if levels is None:
            return str(number)
        return str(levels[number]) if number < len(levels) else OTHER


class Inputs:
    """Numbers made of a row; node ``i`` of a model compares number ``feature[i]``."""

    #: What to know of a certificate that rests on them, if anything.
    note = ""

    @property
    def n_inputs(self) -> int:
        """Number of numbers per row."""
        raise NotImplementedError

    def validate(self, n_features: int) -> None:
        """Raise ValueError if these cannot be made of rows with this many columns."""
        raise NotImplementedError

    def values(self, X: Floats) -> FloatArray:
        """Return the numbers of rows X (n, d) as (n, n_inputs)."""
        raise NotImplementedError

    def columns_read(self) -> tuple[IntArray, IntArray]:
        """Return the columns of X that number k reads, as ``index[start[k]:start[k + 1]]``."""
        raise NotImplementedError

    def sizes(self, spread: FloatArray | None) -> FloatArray:
        """Return by how much each column that `columns_read` lists moves its number.

        `spread` (d,) are the standard deviations of the columns, None where they are not known.
        """
        raise NotImplementedError

    def column_shares(self, spread: FloatArray | None) -> FloatArray:
        """Return `sizes` divided by the sum of each number; equal ones where all are 0."""
        start, _ = self.columns_read()
        first, count, size = start[:-1], np.diff(start), self.sizes(spread)
        largest = np.repeat(np.maximum.reduceat(size, first), count)
        size = np.divide(size, largest, out=np.ones(len(size)), where=largest > 0)
        shares: FloatArray = size / np.repeat(np.add.reduceat(size, first), count)
        return shares

    def names(self, columns: Sequence[str]) -> Sequence[str]:
        """Return how each number is written, given the names of the columns."""
        raise NotImplementedError

    def projected(self, sigma: FloatArray) -> FloatArray:
        """Return the standard deviations of the numbers, (…, n_inputs), of independent errors.

        `sigma` (…, d) are those of the columns of X.
        """
        raise NotImplementedError

    def select(self, kept: IntArray) -> Inputs:
        """Return some of the numbers only."""
        raise NotImplementedError

    def of_nodes(self, feature: IntArray) -> tuple[IntArray, Inputs | None]:
        """Return what nodes count, and these numbers, when only those are kept that they read."""
        kept, position = np.unique(feature, return_inverse=True)
        return position.astype(np.int32), self.select(kept)

    def members(self) -> dict[str, Array]:
        """Return the arrays to be stored in a model file, by their names there."""
        raise NotImplementedError

    def header(self) -> dict[str, str]:
        """Return the fields of the header of a model file."""
        return {}

    def question(self, names: Sequence[str], number: int, threshold: float) -> str:
        """Return how a test of a number is written, exit 0 meaning yes; `names` are `names`()."""
        return f"{names[number]} <= {threshold:.6g}"

    def answer(self, names: Sequence[str], number: int, value: Callable[[int], float]) -> str:
        """Return what was found for a row, in words, where it is no comparison; else nothing.

        `value` gives the numbers of the row.
        """
        return ""

    def at(self, X: Floats, rows: IntArray, workers: Workers | None = None) -> FloatArray:
        """Return the numbers of the listed rows, (rows, n_inputs)."""
        raise NotImplementedError


class StoredInputs(Inputs):
    """Base of the sums of terms, given by arrays, which a model file keeps.

    Number k has the terms ``start[k]`` to ``start[k + 1] - 1``, added up in this order. The first
    array after `start` holds the columns of X that they read.

    Attributes
    ----------
    stored : dict
        Members of a model file: what they hold here, and their dtype there.
    none : tuple of ndarray
        The arrays after `start` where there are no terms.
    of_missing : tuple of str
        The field that says what missing values are, None where they are refused; and its name in
        the header of a model file.
    """

    stored: ClassVar[Mapping[str, tuple[str, np.dtype[np.generic]]]]
    none: ClassVar[tuple[Array, ...]]
    of_missing: ClassVar[tuple[str, str]]
    start: IntArray

    def __post_init__(self) -> None:
        for name, dtype in self.stored.values():
            object.__setattr__(self, name, freeze(getattr(self, name), dtype.newbyteorder("=")))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (*self.arrays(), getattr(self, self.of_missing[0]))

    @property
    def takes_missing(self) -> bool:
        """Whether rows may have missing values."""
        return not self.n_inputs or getattr(self, self.of_missing[0]) is not None

    def arrays(self) -> tuple[Any, ...]:
        """Return the arrays, in the order of the fields."""
        return tuple([getattr(self, name) for name, _ in self.stored.values()])

    @property
    def n_inputs(self) -> int:
        """Number of sums."""
        return len(self.start) - 1

    @classmethod
    def of_terms(cls, *terms: Sequence[Any]) -> Self:
        """Return the sums of these terms: of each array after `start`, the part of every sum."""
        make: Any = cls
        parts = zip(cls.none, terms, strict=True)
        start = np.cumsum([0, *map(len, terms[0])])
        return make(start, *(np.concatenate([none, *part]) for none, part in parts))

    @classmethod
    def joined(cls, singles: Sequence[Self]) -> Self:
        """Return single sums as one."""
        places = range(1, len(cls.stored))
        result = cls.of_terms(*([single.arrays()[at] for single in singles] for at in places))
        return result.taking([(single, slice(None)) for single in singles])

    def select(self, kept: IntArray) -> Self:
        """Return some of the sums only."""
        parts = [slice(*self.start[k : k + 2]) for k in kept]
        result = self.of_terms(*([array[part] for part in parts] for array in self.arrays()[1:]))
        return result.taking([(self, part) for part in parts])

    def taking(self, sources: Sequence[tuple[Self, slice]]) -> Self:
        """Return these sums with what missing values are in those whose terms they have."""
        raise NotImplementedError

    def check_terms(self, n_features: int) -> None:
        """Raise ValueError for terms that cannot be those of rows with this many columns."""
        called = type(self).__name__.lower()
        start, column, *numbers = self.arrays()
        _, (name, _), *others = self.stored.values()
        n = len(column)
        if start[0] != 0 or start[-1] != n or not (start[1:] > start[:-1]).all():
            raise ValueError(f"{called}.start: expected numbers that increase from 0 to {n}")
        if n and not (column.min() >= 0 and column.max() < n_features):
            raise ValueError(f"{called}.{name}: expected values in [0, {n_features})")
        for (name, _), array in zip(others, numbers, strict=True):
            if not np.isfinite(array).all():
                raise ValueError(f"{called}.{name}: expected finite numbers")

    def members(self) -> dict[str, Array]:
        """Return the arrays to be stored in a model file, by their names there."""
        return dict(zip(self.stored, self.arrays(), strict=True))

    def digits(self) -> bytes | None:
        """Return what missing values are, as the header of a model file has it."""
        raise NotImplementedError

    def header(self) -> dict[str, str]:
        """Return what missing values are, if it is known."""
        digits = self.digits()
        return {} if digits is None else {self.of_missing[1]: digits.hex()}

    @classmethod
    def from_digits(cls, digits: bytes, n_terms: int) -> Array:
        """Return what missing values are, of so many terms."""
        raise NotImplementedError

    @classmethod
    def from_members(cls, arrays: Mapping[str, Array], header: Mapping[str, Any]) -> Self | None:
        """Return the numbers stored in a model file, None where there are none."""
        stored_arrays = [arrays[member] for member in cls.stored if member in arrays]
        if not stored_arrays:
            return None
        if len(stored_arrays) < len(cls.stored):
            raise ValueError(f"expected all of the columns {', '.join(cls.stored)}, or none")
        digits = header.get(cls.of_missing[1])
        if digits is None:
            return cls(*stored_arrays)
        make: Any = cls
        return make(*stored_arrays, cls.from_digits(bytes.fromhex(digits), len(stored_arrays[1])))


class GrownInputs(Inputs):
    """Numbers made in one fit, one by one; a model gets those that its nodes use.

    `joined` makes one of several.
    """

    def __init__(self, joined: Callable[[Sequence[Any]], Inputs]) -> None:
        self._joined = joined
        self._grown: list[Inputs] = []

    @property
    def n_inputs(self) -> int:
        """How many there are so far."""
        return len(self._grown)

    def add(self, single: Inputs) -> int:
        """Keep one more; returns its number."""
        self._grown.append(single)
        return len(self._grown) - 1

    def value(self, number: int, X: Floats, rows: IntArray) -> FloatArray:
        """Return one number of the listed rows."""
        return self._grown[number].at(X, rows)[:, 0]

    def select(self, kept: IntArray) -> Inputs:
        """Return some of them."""
        return self._joined([self._grown[k] for k in kept])


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

    def values(self, X: Floats) -> Floats:
        """Return these columns (m, n) of rows X (m, d)."""
        columns = X[:, self.column]
        for k in np.flatnonzero(self.level >= 0).tolist():
            level = columns[:, k]
            columns[:, k] = np.where(np.isnan(level), np.nan, level == self.level[k])
        return columns

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
        totals = np.zeros((self.table.n_features, *amounts.shape[1:]))
        np.add.at(totals, self.column, amounts)
        return totals


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


def in_sums(values: Floats, table: Table | None) -> Floats:
    """Return rows as they are read where columns are added up."""
    indicators = indicators_of(table)
    return values if indicators is None else indicators.values(values)


def names_in_sums(
    names: tuple[str, ...] | None, n_features: int, table: Table | None
) -> Sequence[str]:
    """Return how columns are written where they are added up."""
    indicators = indicators_of(table)
    if indicators is None:
        return ColumnNames(names, n_features, table)
    return ColumnNames(indicators.names(names), len(indicators.column))


#: Members of a model file: what they hold here, and their dtype there.
MEMBERS: dict[str, tuple[str, np.dtype[np.generic]]] = {
    "subset_column": ("column", np.dtype("<i4")),
    "subset": ("member", np.dtype("<u8")),
}
#: Words whose bits say which of at most `MOST_LEVELS` levels are in a set.
WORDS = 4
#: What the threshold is of a test whether a level is in a set.
HALF = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Subsets(Inputs):
    """The columns of a row, and whether levels are in sets.

    Number ``k < n_columns`` of a row is its column k. Number ``n_columns + k`` is 1.0 where the
    level of column ``column[k]`` is in set k, else 0.0, and NaN where it is missing: what is no
    integer from 0 to 254 is no level.

    Attributes
    ----------
    n_columns : int
        Number of columns of X.
    column : ndarray of int32, shape (k,)
        Columns whose levels the sets hold.
    member : ndarray of uint64, shape (k, 4)
        Level b is in the set where bit ``b % 64`` of word ``b // 64`` is set.
    """

    stored: ClassVar = MEMBERS

    n_columns: int
    column: IntArray
    member: NDArray[np.uint64]

    def __post_init__(self) -> None:
        for name, dtype in MEMBERS.values():
            object.__setattr__(self, name, freeze(getattr(self, name), dtype.newbyteorder("=")))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.n_columns, *self.arrays())

    @classmethod
    def of_tests(
        cls, n_columns: int, column: IntArray, member: NDArray[np.uint64]
    ) -> tuple[IntArray, Self | None]:
        """Return what nodes count, and the sets, each kept once; None if there are none.

        `column` (m,) are the columns that nodes read, `member` (m, 4) their sets, without any
        level where a node compares the column with a threshold.
        """
        feature = column.astype(np.int32)
        place: dict[tuple[int, bytes], int] = {}
        for node in np.flatnonzero(member.any(axis=1)).tolist():
            key = int(column[node]), member[node].tobytes()
            feature[node] = n_columns + place.setdefault(key, len(place))
        if not place:
            return feature, None
        first = np.unique(feature[feature >= n_columns], return_index=True)[1]
        nodes = np.flatnonzero(feature >= n_columns)[first]
        return feature, cls(n_columns, column[nodes], member[nodes])

    @property
    def n_inputs(self) -> int:
        """Number of columns and sets."""
        return self.n_columns + len(self.column)

    def arrays(self) -> tuple[IntArray, NDArray[np.uint64]]:
        """Return column and member, as the kernels take them."""
        return self.column, self.member

    def validate(self, n_features: int) -> None:
        """Raise ValueError if these cannot be made of rows with this many columns."""
        column, member = self.arrays()
        if self.n_columns != n_features:
            raise ValueError(f"subsets.n_columns: expected {n_features}, got {self.n_columns}")
        if column.ndim != 1 or member.shape != (len(column), WORDS):
            raise ValueError(f"subsets: expected column (k,) and member (k, {WORDS})")
        if len(column) and not (column.min() >= 0 and column.max() < n_features):
            raise ValueError(f"subsets.column: expected values in [0, {n_features})")
        if self.bits()[:, MOST_LEVELS:].any():
            raise ValueError(f"subsets.member: expected levels below {MOST_LEVELS}")

    def values(self, X: Floats) -> FloatArray:
        """Return the numbers of rows X (n, d), float64 or float32, as (n, n_inputs)."""
        return self.at(X, np.arange(len(X), dtype=np.int32))

    def at(self, X: Floats, rows: IntArray, workers: Workers | None = None) -> FloatArray:
        """Return the numbers of the listed rows, (rows, n_inputs)."""
        out = np.empty((len(rows), self.n_inputs))
        out[:, : self.n_columns] = X[rows]
        for k, bits in enumerate(self.bits()):
            out[:, self.n_columns + k] = in_set(out[:, self.column[k]], bits)
        return out

    def bits(self) -> NDArray[np.bool_]:
        """Return whether each level is in each set, (k, 256); the last is none."""
        is_member = np.unpackbits(
            self.member.astype("<u8").view(np.uint8), axis=1, bitorder="little"
        )
        return is_member.view(np.bool_)

    def columns_read(self) -> tuple[IntArray, IntArray]:
        """Return the columns of X that number k reads, as ``index[start[k]:start[k + 1]]``."""
        plain_columns = np.arange(self.n_columns, dtype=np.int32)
        return np.arange(self.n_inputs + 1, dtype=np.int32), np.concatenate(
            [plain_columns, self.column]
        )

    def sizes(self, spread: FloatArray | None) -> FloatArray:
        """Return 1 for each number, which reads one column."""
        return np.ones(self.n_inputs)

    def names(self, columns: Sequence[str]) -> Sequence[str]:
        """Return how each number is written, such as ``colour in {blue, red}``."""
        return _Names(self, columns)

    def question(self, names: Sequence[str], number: int, threshold: float) -> str:
        """Return how a test is written, exit 0 meaning yes, as ``colour not in {blue, red}``."""
        if number < self.n_columns:
            return Inputs.question(self, names, number, threshold)
        return " not in ".join(self.words(names, number))

    def answer(self, names: Sequence[str], number: int, value: Callable[[int], float]) -> str:
        """Return what was found for a row, as ``colour = green not in {blue, red}``."""
        if number < self.n_columns:
            return ""
        column, levels = self.words(names, number)
        is_in, j = value(number), int(self.column[number - self.n_columns])
        if np.isnan(is_in):
            return ""
        level = _level(names, j, int(value(j)))
        return f"{column} = {level} {'in' if is_in else 'not in'} {levels}"

    def words(self, names: Sequence[str], number: int) -> tuple[str, str]:
        """Return the name of the column of a set, and its levels, as ``{blue, red}``."""
        k = number - self.n_columns
        column = int(self.column[k])
        levels = np.flatnonzero(self.select(np.array([k])).bits()[0]).tolist()
        level_names = listed([_level(names, column, level) for level in levels], "levels")
        return names[column], f"{{{level_names}}}"

    def projected(self, sigma: FloatArray) -> FloatArray:
        """Return the standard deviations of the numbers, (…, n_inputs): 0 of sets."""
        certain = np.zeros((*sigma.shape[:-1], len(self.column)))
        return np.concatenate([sigma, certain], axis=-1)

    def of_nodes(self, feature: IntArray) -> tuple[IntArray, Subsets | None]:
        """Return what nodes count when only the sets are kept that they ask for."""
        is_set = feature >= self.n_columns
        kept, position = np.unique(feature[is_set] - self.n_columns, return_inverse=True)
        feature = feature.copy()
        feature[is_set] = self.n_columns + position
        return feature, self.select(kept) if len(kept) else None

    def select(self, kept: IntArray) -> Subsets:
        """Return the columns, and some of the sets only."""
        return Subsets(self.n_columns, self.column[kept], self.member[kept])

    def members(self) -> dict[str, Array]:
        """Return the arrays to be stored in a model file, by their names there."""
        return dict(zip(MEMBERS, self.arrays(), strict=True))

    @classmethod
    def from_members(cls, arrays: Mapping[str, Array], n_columns: Any) -> Self | None:
        """Return the sets stored in a model file, None where there are none."""
        stored_arrays = [arrays[member] for member in MEMBERS if member in arrays]
        if not stored_arrays:
            return None
        if len(stored_arrays) < len(MEMBERS):
            raise ValueError(f"expected all of the columns {', '.join(MEMBERS)}, or none")
        return cls(n_columns, *stored_arrays)


def in_set(level: FloatArray, bits: Array) -> FloatArray:
    """Return 1.0 of levels in a set, by `bits` (256,), else 0.0; NaN of what is no level."""
    is_level = np.isin(level, np.arange(MOST_LEVELS))
    place = np.where(is_level, level, 0).astype(np.intp)
    return np.where(is_level, bits[place], np.nan)


class _Names(Sequence[str]):
    """How numbers are written; each is made when it is asked for, as those of columns."""

    def __init__(self, subsets: Subsets, columns: Sequence[str]) -> None:
        self._subsets, self.columns = subsets, columns

    def __len__(self) -> int:
        return self._subsets.n_inputs

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[k] for k in range(len(self))[index]]
        number = range(len(self))[index]
        if number < self._subsets.n_columns:
            return self.columns[number]
        return " in ".join(self._subsets.words(self, number))


def _level(names: Sequence[str], column: int, number: int) -> str:
    """Return a level of a column in words."""
    columns = names.columns if isinstance(names, _Names) else names
    return columns.level(column, number) if isinstance(columns, ColumnNames) else str(number)
