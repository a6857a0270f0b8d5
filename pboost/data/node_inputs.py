"""What the nodes of a model compare with thresholds, where it is not columns of X."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import NDArray

from pboost.data.table import OTHER, Table
from pboost.threads import Workers
from pboost.values import FloatArray, IntArray, freeze


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

    def said(self, column: int, value: float) -> str:
        """Return what a row has in a column, such as ``age = 3`` or ``age is missing``."""
        if np.isnan(value):
            return f"{self[column]} is missing"
        is_number = self._table is None or self._table.levels[column] is None
        found = f"{value:.6g}" if is_number else self.level(column, int(value))
        return f"{self[column]} = {found}"

    def level(self, column: int, number: int) -> str:
        """Return how a level of a column is written: its value, or its number if none is known."""
        levels = None if self._table is None else self._table.levels[column]
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

    def values(self, X: NDArray[Any]) -> FloatArray:
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
        most = np.repeat(np.maximum.reduceat(size, first), count)
        size = np.divide(size, most, out=np.ones(len(size)), where=most > 0)
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

    def members(self) -> dict[str, NDArray[Any]]:
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

    def at(self, X: NDArray[Any], rows: IntArray, workers: Workers | None = None) -> FloatArray:
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

    stored: ClassVar[Mapping[str, tuple[str, np.dtype[Any]]]]
    none: ClassVar[tuple[NDArray[Any], ...]]
    of_missing: ClassVar[tuple[str, str]]
    start: IntArray

    def __post_init__(self) -> None:
        for name, dtype in self.stored.values():
            object.__setattr__(self, name, freeze(getattr(self, name), dtype.newbyteorder("=")))

    def __reduce__(self) -> tuple[Any, ...]:
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
        found = cls.of_terms(*([single.arrays()[at] for single in singles] for at in places))
        return found.taking([(single, slice(None)) for single in singles])

    def select(self, kept: IntArray) -> Self:
        """Return some of the sums only."""
        parts = [slice(*self.start[k : k + 2]) for k in kept]
        found = self.of_terms(*([array[part] for part in parts] for array in self.arrays()[1:]))
        return found.taking([(self, part) for part in parts])

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

    def members(self) -> dict[str, NDArray[Any]]:
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
    def from_digits(cls, digits: bytes, n_terms: int) -> NDArray[Any]:
        """Return what missing values are, of so many terms."""
        raise NotImplementedError

    @classmethod
    def from_members(
        cls, arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]
    ) -> Self | None:
        """Return the numbers stored in a model file, None where there are none."""
        found = [arrays[member] for member in cls.stored if member in arrays]
        if not found:
            return None
        if len(found) < len(cls.stored):
            raise ValueError(f"expected all of the columns {', '.join(cls.stored)}, or none")
        digits = header.get(cls.of_missing[1])
        if digits is None:
            return cls(*found)
        make: Any = cls
        return make(*found, cls.from_digits(bytes.fromhex(digits), len(found[1])))


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

    def value(self, number: int, X: NDArray[Any], rows: IntArray) -> FloatArray:
        """Return one number of the listed rows."""
        return self._grown[number].at(X, rows)[:, 0]

    def select(self, kept: IntArray) -> Inputs:
        """Return some of them."""
        return self._joined([self._grown[k] for k in kept])
