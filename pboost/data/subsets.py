"""Sets of levels: whether a category is in a set, as inputs of a model's nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs import ColumnNames, Inputs
from pboost.data.table import listed
from pboost.threads import Workers
from pboost.values import FloatArray, IntArray, freeze

#: Members of a model file: what they hold here, and their dtype there.
MEMBERS: dict[str, tuple[str, np.dtype[Any]]] = {
    "subset_column": ("column", np.dtype("<i4")),
    "subset": ("member", np.dtype("<u8")),
}
#: Levels that there can be, and words whose bits say which of them are in a set.
LEVELS, WORDS = 255, 4
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

    def __reduce__(self) -> tuple[Any, ...]:
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
        if self.bits()[:, LEVELS:].any():
            raise ValueError(f"subsets.member: expected levels below {LEVELS}")

    def values(self, X: NDArray[Any]) -> FloatArray:
        """Return the numbers of rows X (n, d), float64 or float32, as (n, n_inputs)."""
        return self.at(X, np.arange(len(X), dtype=np.int32))

    def at(self, X: NDArray[Any], rows: IntArray, workers: Workers | None = None) -> FloatArray:
        """Return the numbers of the listed rows, (rows, n_inputs)."""
        out = np.empty((len(rows), self.n_inputs))
        out[:, : self.n_columns] = X[rows]
        for k, bits in enumerate(self.bits()):
            out[:, self.n_columns + k] = in_set(out[:, self.column[k]], bits)
        return out

    def bits(self) -> NDArray[np.bool_]:
        """Return whether each level is in each set, (k, 256); the last is none."""
        found = np.unpackbits(self.member.astype("<u8").view(np.uint8), axis=1, bitorder="little")
        return found.view(np.bool_)

    def columns_read(self) -> tuple[IntArray, IntArray]:
        """Return the columns of X that number k reads, as ``index[start[k]:start[k + 1]]``."""
        own = np.arange(self.n_columns, dtype=np.int32)
        return np.arange(self.n_inputs + 1, dtype=np.int32), np.concatenate([own, self.column])

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
        found, j = value(number), int(self.column[number - self.n_columns])
        if np.isnan(found):
            return ""
        level = _level(names, j, int(value(j)))
        return f"{column} = {level} {'in' if found else 'not in'} {levels}"

    def words(self, names: Sequence[str], number: int) -> tuple[str, str]:
        """Return the name of the column of a set, and its levels, as ``{blue, red}``."""
        k = number - self.n_columns
        column = int(self.column[k])
        levels = np.flatnonzero(self.select(np.array([k])).bits()[0]).tolist()
        found = listed([_level(names, column, level) for level in levels], "levels")
        return names[column], f"{{{found}}}"

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

    def members(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to be stored in a model file, by their names there."""
        return dict(zip(MEMBERS, self.arrays(), strict=True))

    @classmethod
    def from_members(cls, arrays: Mapping[str, NDArray[Any]], n_columns: Any) -> Self | None:
        """Return the sets stored in a model file, None where there are none."""
        found = [arrays[member] for member in MEMBERS if member in arrays]
        if not found:
            return None
        if len(found) < len(MEMBERS):
            raise ValueError(f"expected all of the columns {', '.join(MEMBERS)}, or none")
        return cls(n_columns, *found)


def in_set(level: FloatArray, bits: NDArray[Any]) -> FloatArray:
    """Return 1.0 of levels in a set, by `bits` (256,), else 0.0; NaN of what is no level."""
    is_level = np.isin(level, np.arange(LEVELS))
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
