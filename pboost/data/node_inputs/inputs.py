"""Base classes of node inputs other than features of X, and inputs for categorical features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.table import MOST_LEVELS, MOST_NAMED, OTHER, Table, listed
from pboost.threads import Workers
from pboost.values import Array, FloatArray, Floats, IntArray, freeze


class ColumnNames(Sequence[str]):
    """Sequence of feature names: the names stored in a model, or ``x[j]``.

    Names are created on access, because a model may use few of many features. `table` contains the
    categories.
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
        """Return the value of a feature as text, such as ``age = 3`` or ``age is missing``."""
        if np.isnan(value):
            return f"{self[column]} is missing"
        is_number = self._table is None or self._table.categories[column] is None
        text = f"{value:.6g}" if is_number else self.level(column, int(value))
        return f"{self[column]} = {text}"

    def level(self, column: int, number: int) -> str:
        """Return the text of a category, or its number if it is unknown."""
        levels = None if self._table is None else self._table.categories[column]
        if levels is None:
            return str(number)
        return str(levels[number]) if number < len(levels) else OTHER

    def n_levels(self, column: int) -> int:
        """Return the number of categories of a feature, or 0 if they are unknown."""
        return 0 if self._table is None else int(self._table.n_levels[column])


class Inputs:
    """Numbers computed from a row; node ``i`` of a model compares input ``feature[i]``."""

    #: Text that explains the certificate. It is empty for most inputs.
    note = ""

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        raise NotImplementedError

    def validate(self, n_features: int) -> None:
        """Raise ValueError if these inputs are invalid for this number of features."""
        raise NotImplementedError

    def values(self, X: Floats) -> FloatArray:
        """Return the inputs of rows X (n, d) as (n, n_inputs)."""
        raise NotImplementedError

    def columns_read(self) -> tuple[IntArray, IntArray]:
        """Return start and index; input k has the features ``index[start[k]:start[k + 1]]``."""
        raise NotImplementedError

    def sizes(self, spread: FloatArray | None) -> FloatArray:
        """Return the influence of features on their input, in the order of `columns_read`.

        `spread` (d,) contains the standard deviations of the features, or is None.
        """
        raise NotImplementedError

    def column_shares(self, spread: FloatArray | None) -> FloatArray:
        """Normalize `sizes` to sum 1 for each input; use equal shares if all are 0."""
        start, _ = self.columns_read()
        first, count, size = start[:-1], np.diff(start), self.sizes(spread)
        largest = np.repeat(np.maximum.reduceat(size, first), count)
        size = np.divide(size, largest, out=np.ones(len(size)), where=largest > 0)
        shares: FloatArray = size / np.repeat(np.add.reduceat(size, first), count)
        return shares

    def names(self, columns: Sequence[str]) -> Sequence[str]:
        """Return the text of each input, given the feature names."""
        raise NotImplementedError

    def projected(self, sigma: FloatArray) -> FloatArray:
        """Return the standard deviations (..., n_inputs) of the inputs for independent errors.

        `sigma` (..., d) are the standard deviations of the features.
        """
        raise NotImplementedError

    def select(self, kept: IntArray) -> Inputs:
        """Return a subset of the inputs."""
        raise NotImplementedError

    def of_nodes(self, feature: IntArray) -> tuple[IntArray, Inputs | None]:
        """Keep only the inputs that nodes use; return the renumbered features and the inputs."""
        kept, position = np.unique(feature, return_inverse=True)
        return position.astype(np.int32), self.select(kept)

    def members(self) -> dict[str, Array]:
        """Return the arrays to store in a model file, by name."""
        raise NotImplementedError

    def header(self) -> dict[str, str]:
        """Return the fields to store in the header of a model file."""
        return {}

    def question(self, names: Sequence[str], number: int, threshold: float) -> str:
        """Return the condition for exit 0 as text, given the texts of the inputs."""
        return f"{names[number]} <= {threshold:.6g}"

    def answer(self, names: Sequence[str], number: int, value: Callable[[int], float]) -> str:
        """Return the category of a row as text, or "" if the input is numeric."""
        return ""

    def at(self, X: Floats, rows: IntArray, workers: Workers | None = None) -> FloatArray:
        """Return the inputs (rows, n_inputs) of selected rows."""
        raise NotImplementedError


class StoredInputs(Inputs):
    """Base class of sums of terms, stored as arrays.

    Input k has the terms ``start[k]`` to ``start[k + 1] - 1``, added in this order. The first array
    after `start` contains the feature of each term.

    Attributes
    ----------
    stored : dict
        Arrays in a model file: field and dtype of each.
    none : tuple of ndarray
        Arrays of an object without terms, except `start`.
    of_missing : tuple of str
        Name of the field that defines the treatment of missing values, and its name in the
        header of a model file. The field is None if missing values are not supported.
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
        """Whether missing values are supported."""
        return not self.n_inputs or getattr(self, self.of_missing[0]) is not None

    def arrays(self) -> tuple[Any, ...]:
        """Return the arrays in the order of the fields."""
        return tuple([getattr(self, name) for name, _ in self.stored.values()])

    @property
    def n_inputs(self) -> int:
        """Number of sums."""
        return len(self.start) - 1

    @classmethod
    def of_terms(cls, *terms: Sequence[Any]) -> Self:
        """Create sums from terms: for each array after `start`, one list per sum."""
        make: Any = cls
        parts = zip(cls.none, terms, strict=True)
        start = np.cumsum([0, *map(len, terms[0])])
        return make(start, *(np.concatenate([none, *part]) for none, part in parts))

    @classmethod
    def joined(cls, singles: Sequence[Self]) -> Self:
        """Combine objects that contain one sum each."""
        places = range(1, len(cls.stored))
        result = cls.of_terms(*([single.arrays()[at] for single in singles] for at in places))
        return result.taking([(single, slice(None)) for single in singles])

    def select(self, kept: IntArray) -> Self:
        """Return a subset of the sums."""
        parts = [slice(*self.start[k : k + 2]) for k in kept]
        result = self.of_terms(*([array[part] for part in parts] for array in self.arrays()[1:]))
        return result.taking([(self, part) for part in parts])

    def taking(self, sources: Sequence[tuple[Self, slice]]) -> Self:
        """Return these sums, with the treatment of missing values copied from `sources`."""
        raise NotImplementedError

    def check_terms(self, n_features: int) -> None:
        """Raise ValueError if the terms are invalid for this number of features."""
        called = type(self).__name__.lower()
        start, column, *numbers = self.arrays()
        _, (name, _), *others = self.stored.values()
        n = len(column)
        if start[0] != 0 or start[-1] != n or not (start[1:] > start[:-1]).all():
            raise ValueError(f"{called}.start: expected increasing numbers from 0 to {n}")
        if n and not (column.min() >= 0 and column.max() < n_features):
            raise ValueError(f"{called}.{name}: expected values in [0, {n_features})")
        for (name, _), array in zip(others, numbers, strict=True):
            if not np.isfinite(array).all():
                raise ValueError(f"{called}.{name}: expected finite numbers")

    def members(self) -> dict[str, Array]:
        """Return the arrays to store in a model file, by name."""
        return dict(zip(self.stored, self.arrays(), strict=True))

    def digits(self) -> bytes | None:
        """Return the treatment of missing values as bytes for the header of a model file."""
        raise NotImplementedError

    def header(self) -> dict[str, str]:
        """Return the header fields for the treatment of missing values."""
        digits = self.digits()
        return {} if digits is None else {self.of_missing[1]: digits.hex()}

    @classmethod
    def from_digits(cls, digits: bytes, n_terms: int) -> Array:
        """Decode the treatment of missing values of `n_terms` terms from bytes."""
        raise NotImplementedError

    @classmethod
    def from_members(cls, arrays: Mapping[str, Array], header: Mapping[str, Any]) -> Self | None:
        """Return the sums stored in a model file, or None."""
        stored_arrays = [arrays[member] for member in cls.stored if member in arrays]
        if not stored_arrays:
            return None
        if len(stored_arrays) < len(cls.stored):
            raise ValueError(f"expected all or none of the arrays {', '.join(cls.stored)}")
        digits = header.get(cls.of_missing[1])
        if digits is None:
            return cls(*stored_arrays)
        make: Any = cls
        return make(*stored_arrays, cls.from_digits(bytes.fromhex(digits), len(stored_arrays[1])))


class GrownInputs(Inputs):
    """Inputs created one by one during a fit. A model keeps only the inputs that its nodes use.

    `joined` merges several inputs.
    """

    def __init__(self, joined: Callable[[Sequence[Any]], Inputs]) -> None:
        self._joined = joined
        self._grown: list[Inputs] = []

    @property
    def n_inputs(self) -> int:
        """Current number of inputs."""
        return len(self._grown)

    def add(self, single: Inputs) -> int:
        """Add an input; return its number."""
        self._grown.append(single)
        return len(self._grown) - 1

    def value(self, number: int, X: Floats, rows: IntArray) -> FloatArray:
        """Return one input of selected rows."""
        return self._grown[number].at(X, rows)[:, 0]

    def select(self, kept: IntArray) -> Inputs:
        """Return a subset of the inputs."""
        return self._joined([self._grown[k] for k in kept])


@dataclass(frozen=True, slots=True, eq=False)
class Indicators:
    """One-hot encoding of categorical features; numeric features are kept.

    An indicator is 1 for its category, 0 for others, and NaN for a missing value.

    Attributes
    ----------
    table : Table
        Description of the features of X.
    column : ndarray of int32, shape (n,)
        Feature of X for each encoded column.
    level : ndarray of int32, shape (n,)
        Category number of each encoded column, -1 for a numeric feature.
    """

    table: Table
    column: IntArray
    level: IntArray

    def values(self, X: Floats) -> Floats:
        """Encode rows X (m, d) as (m, n)."""
        columns = X[:, self.column]
        for k in np.flatnonzero(self.level >= 0).tolist():
            level = columns[:, k]
            columns[:, k] = np.where(np.isnan(level), np.nan, level == self.level[k])
        return columns

    def names(self, names: tuple[str, ...] | None) -> tuple[str, ...]:
        """Return the names of the encoded columns, such as ``colour=red``."""
        columns = ColumnNames(names, self.table.n_features)
        pairs = zip(self.column.tolist(), self.level.tolist(), strict=True)
        return tuple(
            columns[j] if level < 0 else f"{columns[j]}={self.table.level_names(j)[level]}"
            for j, level in pairs
        )

    def known(self) -> Table:
        """Return the description of the encoded columns, which are all numeric."""
        return Table.of_numbers(len(self.column)).with_holes(self.table.has_missing[self.column])

    def by_column(self, amounts: FloatArray) -> FloatArray:
        """Sum amounts (n, ...) over the encoded columns of each feature; return (d, ...)."""
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
    """Return the one-hot encoding for a table, or None if there are no categories."""
    return None if table is None or not table.has_levels else _made(table)


def in_sums(values: Floats, table: Table | None) -> Floats:
    """Return rows with one-hot encoded categories, for sums of features."""
    indicators = indicators_of(table)
    return values if indicators is None else indicators.values(values)


def names_in_sums(
    names: tuple[str, ...] | None, n_features: int, table: Table | None
) -> Sequence[str]:
    """Return the feature names after one-hot encoding."""
    indicators = indicators_of(table)
    if indicators is None:
        return ColumnNames(names, n_features, table)
    return ColumnNames(indicators.names(names), len(indicators.column))


#: Arrays in a model file: field and dtype of each.
MEMBERS: dict[str, tuple[str, np.dtype[np.generic]]] = {
    "subset_column": ("column", np.dtype("<i4")),
    "subset": ("member", np.dtype("<u8")),
}
#: Number of 64-bit integers in a bit set of at most `MOST_LEVELS` categories.
WORDS = 4
#: Threshold of a split on a set of categories.
HALF = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Subsets(Inputs):
    """Inputs of nodes with category sets: all features, then one indicator per set.

    Input ``k < n_columns`` is feature k. Input ``n_columns + k`` is 1.0 if the category of feature
    ``column[k]`` is in set k, 0.0 if not, and NaN if it is missing. Values other than integers from
    0 to 254 count as missing.

    Attributes
    ----------
    n_columns : int
        Number of features of X.
    column : ndarray of int32, shape (k,)
        Feature of each set.
    member : ndarray of uint64, shape (k, 4)
        Bit sets: category b is in the set if bit ``b % 64`` of ``member[k, b // 64]`` is set.
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
        """Return the input of each node and the distinct sets (None if there are no sets).

        `column` (m,) contains the features of the nodes, and `member` (m, 4) their sets, which are
        empty for a split by threshold.
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
        """Number of features and sets."""
        return self.n_columns + len(self.column)

    def arrays(self) -> tuple[IntArray, NDArray[np.uint64]]:
        """Return column and member, for the kernels."""
        return self.column, self.member

    def validate(self, n_features: int) -> None:
        """Raise ValueError if these sets are invalid for this number of features."""
        column, member = self.arrays()
        if self.n_columns != n_features:
            raise ValueError(f"subsets.n_columns: expected {n_features}, got {self.n_columns}")
        if column.ndim != 1 or member.shape != (len(column), WORDS):
            raise ValueError(f"subsets: expected column (k,) and member (k, {WORDS})")
        if len(column) and not (column.min() >= 0 and column.max() < n_features):
            raise ValueError(f"subsets.column: expected values in [0, {n_features})")
        if self.bits()[:, MOST_LEVELS:].any():
            raise ValueError(f"subsets.member: expected categories below {MOST_LEVELS}")

    def values(self, X: Floats) -> FloatArray:
        """Return the inputs of rows X (n, d), float64 or float32, as (n, n_inputs)."""
        return self.at(X, np.arange(len(X), dtype=np.int32))

    def at(self, X: Floats, rows: IntArray, workers: Workers | None = None) -> FloatArray:
        """Return the inputs (rows, n_inputs) of selected rows."""
        out = np.empty((len(rows), self.n_inputs))
        out[:, : self.n_columns] = X[rows]
        for k, bits in enumerate(self.bits()):
            out[:, self.n_columns + k] = in_set(out[:, self.column[k]], bits)
        return out

    def bits(self) -> NDArray[np.bool_]:
        """Return the sets as a mask (k, 256); the last entry is always False."""
        is_member = np.unpackbits(
            self.member.astype("<u8").view(np.uint8), axis=1, bitorder="little"
        )
        return is_member.view(np.bool_)

    def columns_read(self) -> tuple[IntArray, IntArray]:
        """Return start and index; input k has the features ``index[start[k]:start[k + 1]]``."""
        plain_columns = np.arange(self.n_columns, dtype=np.int32)
        return np.arange(self.n_inputs + 1, dtype=np.int32), np.concatenate(
            [plain_columns, self.column]
        )

    def sizes(self, spread: FloatArray | None) -> FloatArray:
        """Return 1 for each input, because an input uses a single feature."""
        return np.ones(self.n_inputs)

    def names(self, columns: Sequence[str]) -> Sequence[str]:
        """Return the text of each input, such as ``colour in {blue, red}``."""
        return _Names(self, columns)

    def question(self, names: Sequence[str], number: int, threshold: float) -> str:
        """Return the text of a condition for exit 0, such as ``colour not in {blue, red}``."""
        if number < self.n_columns:
            return Inputs.question(self, names, number, threshold)
        return f"{names[self.column[number - self.n_columns]]} {self.side(names, number, False)}"

    def answer(self, names: Sequence[str], number: int, value: Callable[[int], float]) -> str:
        """Return the category of a row as text, such as ``colour = green not in {blue, red}``."""
        if number < self.n_columns:
            return ""
        is_in, j = value(number), int(self.column[number - self.n_columns])
        if np.isnan(is_in):
            return ""
        level = _columns(names).level(j, int(value(j)))
        return f"{names[j]} = {level} {self.side(names, number, bool(is_in))}"

    def words(self, names: Sequence[str], number: int) -> tuple[str, str]:
        """Return the feature name and the categories of a set, such as ``{blue, red}``."""
        column = int(self.column[number - self.n_columns])
        return names[column], _in_braces(names, column, self._levels(number))

    def side(self, names: Sequence[str], number: int, is_in: bool) -> str:
        """Return the condition for the rows in a set or outside it, such as ``in {blue, red}``.

        If the set is too long to be shown and the other categories are fewer, these are shown.
        """
        column, levels = int(self.column[number - self.n_columns]), self._levels(number)
        if len(levels) > MOST_NAMED:
            others = sorted(set(range(_columns(names).n_levels(column))) - set(levels))
            if 0 < len(others) < len(levels):
                levels, is_in = others, not is_in
        return f"{'in' if is_in else 'not in'} {_in_braces(names, column, levels)}"

    def _levels(self, number: int) -> list[int]:
        """Return the numbers of the categories in a set."""
        selected = self.select(np.array([number - self.n_columns]))
        levels: list[int] = np.flatnonzero(selected.bits()[0]).tolist()
        return levels

    def projected(self, sigma: FloatArray) -> FloatArray:
        """Return the standard deviations (..., n_inputs) of the inputs. They are 0 for sets."""
        certain = np.zeros((*sigma.shape[:-1], len(self.column)))
        return np.concatenate([sigma, certain], axis=-1)

    def of_nodes(self, feature: IntArray) -> tuple[IntArray, Subsets | None]:
        """Keep only the sets that nodes use; return the renumbered features and the sets."""
        is_set = feature >= self.n_columns
        kept, position = np.unique(feature[is_set] - self.n_columns, return_inverse=True)
        feature = feature.copy()
        feature[is_set] = self.n_columns + position
        return feature, self.select(kept) if len(kept) else None

    def select(self, kept: IntArray) -> Subsets:
        """Return all features and a subset of the sets."""
        return Subsets(self.n_columns, self.column[kept], self.member[kept])

    def members(self) -> dict[str, Array]:
        """Return the arrays to store in a model file, by name."""
        return dict(zip(MEMBERS, self.arrays(), strict=True))

    @classmethod
    def from_members(cls, arrays: Mapping[str, Array], n_columns: Any) -> Self | None:
        """Return the sets stored in a model file, or None."""
        stored_arrays = [arrays[member] for member in MEMBERS if member in arrays]
        if not stored_arrays:
            return None
        if len(stored_arrays) < len(MEMBERS):
            raise ValueError(f"expected all or none of the arrays {', '.join(MEMBERS)}")
        return cls(n_columns, *stored_arrays)


def in_set(level: FloatArray, bits: Array) -> FloatArray:
    """Return 1.0 for categories in a set (a mask), 0.0 for others, and NaN for missing values."""
    is_level = np.isin(level, np.arange(MOST_LEVELS))
    place = np.where(is_level, level, 0).astype(np.intp)
    return np.where(is_level, bits[place], np.nan)


class _Names(Sequence[str]):
    """Sequence of the texts of inputs, created on access."""

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


def _columns(names: Sequence[str]) -> ColumnNames:
    """Return the names of the features, without the names of sets."""
    columns = names.columns if isinstance(names, _Names) else names
    return columns if isinstance(columns, ColumnNames) else ColumnNames(None, len(columns))


def _in_braces(names: Sequence[str], column: int, levels: Sequence[int]) -> str:
    """Return categories of a feature as text, such as ``{blue, red}``."""
    columns = _columns(names)
    return f"{{{listed([columns.level(column, level) for level in levels], 'levels')}}}"
