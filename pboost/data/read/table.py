"""Description of the features of a table: types, categories and missing values.

A table is converted to a float matrix, in which NaN is a missing value and categorical features
contain category numbers. The description maps these numbers to categories.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.values import Array, FloatArray, IntArray, check_integer, freeze, shown

#: Maximum number of category numbers. With more categories, the rarest share the last number.
MOST_LEVELS = 255
#: Name of the categories that share a number.
OTHER = "other"
#: Codes of category types in files, by kind of dtype.
_KINDS = {"U": 1, "f": 2, "b": 3}
_ORDERED, _HOLES = 4, 8
_CALLED = {"U": "text", "f": "numbers", "b": "booleans"}
#: Maximum number of names in a message.
MOST_NAMED = 10
#: Names or positions of categorical features.
Categorical: TypeAlias = Sequence[str | int] | None
#: Categories of each feature, or None.
Levels: TypeAlias = tuple[Array | None, ...]


class Takes(NamedTuple):
    """Support of a model or weak learner for missing values and categorical features.

    The first field is True if missing values are supported, the second if categorical features are.
    """

    holes: bool = False
    levels: bool = False


#: Only complete numeric features.
NUMBERS = Takes()
#: Missing values and categorical features.
EVERYTHING = Takes(holes=True, levels=True)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Description of the features of the training data.

    Attributes
    ----------
    categories : tuple of ndarray or None, length d
        For each categorical feature, the sorted categories: strings, float64 numbers or booleans.
        The category at position k has number k. None for a numeric feature.
    has_missing : ndarray of bool, shape (d,)
        Mask of the features with missing values in training.
    other : tuple of ndarray or None, length d, or None
        For each feature with more than 255 categories, the sorted categories that share the number
        ``len(categories[j])`` and are called "other". None if there is no such feature.
    order : tuple of ndarray or None, length d, or None
        For each ordered categorical feature, the categories in their order. Such a feature is
        treated as numeric, and its `categories` are None. None if there is no such feature.
    """

    categories: Levels
    has_missing: NDArray[np.bool_]
    other: Levels | None = None
    order: Levels | None = None
    #: Bytes that identify the table: equal tables have equal bytes.
    key: bytes = field(init=False, repr=False)

    #: Arrays in a model file and their dtypes. None stands for strings of any length.
    stored: ClassVar[Mapping[str, np.dtype[np.generic] | None]] = {
        "category_kind": np.dtype("|u1"),
        "category_column": np.dtype("<i4"),
        "category_start": np.dtype("<i4"),
        "category_number": np.dtype("<f8"),
        "category_text": None,
    }

    def __post_init__(self) -> None:
        for name in ("categories", "other", "order"):
            entries = getattr(self, name)
            if entries is None:
                continue
            if any(v is not None for v in entries):
                kept = tuple(None if v is None else _frozen(name, v) for v in entries)
                object.__setattr__(self, name, kept)
            else:
                object.__setattr__(self, name, tuple(entries) if name == "categories" else None)
        object.__setattr__(self, "has_missing", freeze(self.has_missing, np.bool_))
        # One array of all strings would be as wide as the longest string.
        *arrays, text = self._listed()
        entries = [array.dtype.str.encode() + array.tobytes() for array in arrays]
        words = json.dumps([part.tolist() for part in text])
        object.__setattr__(self, "key", b"".join([*entries, words.encode()]))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.categories, self.has_missing, self.other, self.order)

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Table) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    @classmethod
    def of_numbers(cls, n_features: int) -> Table:
        """Return the table of complete numeric features."""
        return cls((None,) * n_features, np.zeros(n_features, dtype=np.bool_))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.categories)

    @property
    def has_levels(self) -> bool:
        """Whether there are unordered categorical features."""
        return any(values is not None for values in self.categories)

    @property
    def categorical(self) -> list[int]:
        """Categorical features, ordered or not."""
        return [j for j in range(self.n_features) if self.values_of(j) is not None]

    def with_holes(self, has_missing: NDArray[np.bool_] | None) -> Table:
        """Return a copy with this mask of features with missing values; None means no feature."""
        if has_missing is None:
            has_missing = np.zeros(self.n_features, dtype=np.bool_)
        return replace(self, has_missing=has_missing)

    @property
    def n_levels(self) -> IntArray:
        """Number of category numbers of each feature, including "other"; 0 for numeric features."""
        shared = self.other or (None,) * self.n_features
        sizes = [
            0 if values is None else len(values) + (rest is not None)
            for values, rest in zip(self.categories, shared, strict=True)
        ]
        return np.array(sizes, dtype=np.int32)

    def level_names(self, column: int) -> tuple[str, ...]:
        """Return the names of the categories of a feature, by number."""
        values = self.categories[column]
        names = () if values is None else tuple(map(written, values.tolist()))
        return names if self._of("other", column) is None else (*names, OTHER)

    def values_of(self, column: int) -> Array | None:
        """Return the categories of a feature, ordered or not; None for a numeric feature."""
        values = self.categories[column]
        return self._of("order", column) if values is None else values

    def numbers(self, column: int, values: Array) -> FloatArray:
        """Return the numbers of categories. Unknown categories are "other", or else NaN."""
        levels, order = self.categories[column], self._of("order", column)
        numbers = np.full(len(values), np.nan)
        if order is not None:
            place = np.argsort(order, kind="stable")
            at, is_known = _places(order[place], values)
            numbers[is_known] = place[at[is_known]]
            return numbers
        assert levels is not None
        at, is_known = _places(levels, values)
        numbers[values == values] = self.unknown_number(column)  # NaN differs from itself
        numbers[is_known] = at[is_known]
        return numbers

    def unknown_number(self, column: int) -> float:
        """Return the number of categories that did not occur in training: "other", or else NaN.

        A category that is too rare to occur in training is similar to the rare categories.
        """
        levels = self.categories[column]
        return np.nan if levels is None or not self.has_shared(column) else len(levels)

    def select(self, columns: Sequence[int]) -> Table:
        """Return the table of selected features, in this order."""
        parts = (
            None if per_column is None else tuple(per_column[j] for j in columns)
            for per_column in (self.categories, self.other, self.order)
        )
        levels, other, order = parts
        assert levels is not None
        return Table(levels, self.has_missing[list(columns)], other, order)

    def is_alike(self, column: int, other: Table, place: int) -> bool:
        """Return whether a feature has the same category numbers as a feature of `other`."""
        for name in ("categories", "other", "order"):
            values, other_values = self._of(name, column), other._of(name, place)
            if values is None or other_values is None:
                if values is not other_values:
                    return False
            elif values.dtype.kind != other_values.dtype.kind or not np.array_equal(
                values, other_values
            ):
                return False
        return True

    def has_shared(self, column: int) -> bool:
        """Return whether all categories without a number of their own are called "other"."""
        return self._of("other", column) is not None

    def is_merged(self, column: int) -> bool:
        """Return whether known categories of a feature share a number."""
        shared = self._of("other", column)
        return shared is not None and len(shared) > 0

    def _all_values(self, column: int) -> list[Array]:
        """Return all categories of a feature, including those that share a number."""
        arrays = self.values_of(column), self._of("other", column)
        return [values for values in arrays if values is not None]

    def _of(self, name: str, column: int) -> Array | None:
        per_column = getattr(self, name)
        return None if per_column is None else per_column[column]

    # Files

    def members(self) -> dict[str, Array]:
        """Return the arrays to store in a model file, by name."""
        *arrays, text = self._listed()
        return dict(zip(self.stored, (*arrays, np.concatenate(text)), strict=True))

    def _listed(self) -> tuple[Array, Array, Array, Array, list[Array]]:
        """Return the arrays of a file, with the strings of each feature as a separate array."""
        kind = self.has_missing.astype(np.uint8) * np.uint8(_HOLES)
        columns, sizes = [], [0]
        parts: dict[bool, list[Array]] = {True: [np.empty(0, "<U1")], False: [np.empty(0)]}
        for j in range(self.n_features):
            values = self.values_of(j)
            if values is None:
                continue
            kind[j] |= _KINDS[values.dtype.kind] | (_ORDERED if self.categories[j] is None else 0)
            for part in (values, self._of("other", j)):
                if part is not None:
                    columns.append(j)
                    sizes.append(len(part))
                    is_text = part.dtype.kind == "U"
                    parts[is_text].append(part if is_text else part.astype(np.float64))
        return (
            kind,
            np.array(columns, dtype=np.int32),
            np.cumsum(sizes, dtype=np.int32),
            np.concatenate(parts[False]),
            parts[True],
        )

    @classmethod
    def from_members(
        cls, arrays: Mapping[str, Array], max_bytes: int | None = None
    ) -> Table | None:
        """Return the table stored in a model file, or None.

        Strings can be objects. They are converted to one array per feature, with a total size of at
        most `max_bytes`.
        """
        stored_arrays = [arrays[name] for name in cls.stored if name in arrays]
        if not stored_arrays:
            return None
        if len(stored_arrays) < len(cls.stored):
            raise ValueError(f"expected all or none of the arrays {', '.join(cls.stored)}")
        kind, column, start, number, text = stored_arrays
        _check_members(kind, column, start, number, text)
        d = len(kind)
        kept: dict[str, dict[int, Array]] = {"categories": {}, "other": {}, "order": {}}
        at = {True: 0, False: 0}
        for j, size in zip(column.tolist(), np.diff(start).tolist(), strict=True):
            what = int(kind[j]) & 3
            is_text = what == _KINDS["U"]
            values = (text if is_text else number)[at[is_text] : at[is_text] + size]
            at[is_text] += size
            if max_bytes is not None and is_text:
                words = values.tolist()
                max_bytes -= text_bytes(words)
                if max_bytes < 0:
                    raise ValueError("category_text: expected strings of similar length")
                values = np.array(words, dtype=np.str_)
            if what == _KINDS["b"]:
                if not np.isin(values, (0.0, 1.0)).all():
                    raise ValueError("category_number: expected 0 and 1 for booleans")
                values = values.astype(np.bool_)
            name = "order" if kind[j] & _ORDERED else "categories"
            kept["other" if j in kept[name] else name][j] = values
        levels, other, order = (
            tuple(map(found_.get, range(d))) if found_ else None for found_ in kept.values()
        )
        return cls(levels or (None,) * d, kind & _HOLES > 0, other, order)

    def validate(self, n_features: int) -> None:
        """Raise ValueError if this is not a valid table for a number of features."""
        if self.n_features != n_features or self.has_missing.shape != (n_features,):
            raise ValueError(f"table: expected {n_features} features, got {self.n_features}")
        for j in range(n_features):
            for name in ("categories", "other", "order"):
                values = self._of(name, j)
                if values is not None:
                    _check_values(f"table.{name}[{j}]", values, is_sorted=name != "order")
            levels, other = self.categories[j], self._of("other", j)
            if other is not None and (
                levels is None
                or levels.dtype.kind != other.dtype.kind
                or not set(other.tolist()).isdisjoint(levels.tolist())
                or not len(other)
            ):
                raise ValueError(f"table.other[{j}]: expected values that are not in categories")
            if self.n_levels[j] > MOST_LEVELS:
                raise ValueError(
                    f"table.categories[{j}]: expected at most {MOST_LEVELS} categories"
                )
            if levels is not None and self._of("order", j) is not None:
                raise ValueError(f"table.order[{j}]: expected None for an unordered feature")


def united(tables: Sequence[Table | None], n_features: int) -> Table | None:
    """Return a table for encoding rows once for all models with these tables.

    If the category numbers of a feature differ between the tables, each known category gets its own
    number, even if there are more than 255. All other categories share the last number if a table
    has "other". The feature is numeric if one table treats it as numeric.
    """
    known = _known(tables, n_features)
    if not known or all(table == known[0] for table in known[1:]):
        return tables[0] if known else None
    columns: list[list[Array | None]] = []
    for j in range(n_features):
        every = [table._all_values(j) for table in known]
        if _are_alike(known, j):
            columns.append([known[0]._of(name, j) for name in ("categories", "other", "order")])
        elif not all(every):
            columns.append([None, None, None])
        else:
            known_values = np.unique(np.concatenate([v for values in every for v in values]))
            is_shared = any(table.has_shared(j) for table in known)
            columns.append([known_values, known_values[:0] if is_shared else None, None])
    levels, other, order = zip(*columns, strict=True)
    holes = np.any([table.has_missing for table in known], axis=0)
    return Table(levels, holes, other, order)


def first_unlike(tables: Sequence[Table | None], n_features: int) -> int | None:
    """Return the first feature whose category numbers differ between the tables, or None."""
    known = _known(tables, n_features)
    return next((j for j in range(n_features) if not _are_alike(known, j)), None)


def _known(tables: Sequence[Table | None], n_features: int) -> list[Table]:
    return [Table.of_numbers(n_features) if table is None else table for table in tables]


def _are_alike(tables: Sequence[Table], column: int) -> bool:
    return all(tables[0].is_alike(column, table, column) for table in tables[1:])


def text_bytes(values: Sequence[str]) -> int:
    """Return the size in bytes of an array of strings with the width of the longest string."""
    return len(values) * max(map(len, values), default=0) * np.dtype("U1").itemsize


def column_order(names: tuple[str, ...] | None, actual: tuple[str, ...] | None) -> list[int] | None:
    """Return the positions of the training features among new columns; None if unchanged."""
    if names is None or actual is None or names == actual:
        return None
    actual_set, known = set(actual), set(names)
    missing = [name for name in names if name not in actual_set]
    unknown = [name for name in actual if name not in known]
    if missing or unknown:
        raise ValueError(
            "X: expected the features of the training data"
            + (f"; missing: {listed(missing, 'columns')}" if missing else "")
            + (f"; unknown: {listed(unknown, 'columns')}" if unknown else "")
        )
    if len(set(names)) < len(names):
        raise ValueError(
            "X: expected the column order of training, because two columns have the same name; "
            "reorder or rename the columns"
        )
    place = {name: j for j, name in enumerate(actual)}
    return [place[name] for name in names]


def listed(names: Sequence[str], what: str) -> str:
    """Return a comma-separated list of names, shortened if it is long."""
    some = ", ".join(names[:MOST_NAMED])
    return some if len(names) <= MOST_NAMED else f"{some}, ... ({len(names)} {what})"


def column_label(names: tuple[str, ...] | None, column: int) -> str:
    """Return the name of a column for messages."""
    return f"column {column}" if names is None else f"column {names[column]!r}"


def named_columns(argument: str, columns: object) -> tuple[str | int, ...]:
    """Return names and positions of columns as a tuple; raise TypeError for anything else."""
    is_one = isinstance(columns, np.ndarray) and columns.ndim == 0
    if is_one or isinstance(columns, str | bytes | Mapping) or not isinstance(columns, Iterable):
        raise TypeError(
            f"{argument}: expected a sequence of names or positions, got {shown(columns)}"
        )
    return tuple(
        str(column) if isinstance(column, str) else check_integer(argument, column, min_value=0)
        for column in columns
    )


def positions(
    argument: str, columns: object, names: tuple[str, ...] | None, n_columns: int
) -> list[int]:
    """Return the positions of columns, given by name or position, in increasing order."""
    places = []
    for column in () if columns is None else named_columns(argument, columns):
        if not isinstance(column, str):
            places.append(check_integer(argument, column, min_value=0, max_value=n_columns - 1))
        elif names is None or column not in names:
            known = "X has no column names" if names is None else f"X has {', '.join(names)}"
            raise ValueError(f"{argument}: expected column names of X, got {column!r}; {known}")
        else:
            places.append(names.index(column))
    if len(set(places)) != len(places):
        twice = next(j for i, j in enumerate(places) if j in places[:i])
        raise ValueError(
            f"{argument}: expected distinct columns, got {column_label(names, twice)} twice"
        )
    return sorted(places)


def written(value: object) -> str:
    """Return the text of a category, with integers without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def kind_of(values: Array) -> str:
    """Return the type of categories for messages."""
    return _CALLED[values.dtype.kind]


def _places(known: Array, values: Array) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the position of each value in a sorted array, and whether the array contains it."""
    if not len(known):
        return np.zeros(len(values), dtype=np.intp), np.zeros(len(values), dtype=np.bool_)
    place = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return place, np.asarray(known[place] == values)


def _frozen(name: str, values: Array) -> Array:
    if values.dtype.kind not in _KINDS or (values.dtype.kind == "f" and values.itemsize != 8):
        raise ValueError(f"table.{name}: expected strings, float64 numbers or booleans")
    return freeze(values)


def _check_values(name: str, values: Array, is_sorted: bool) -> None:
    """Raise ValueError for invalid categories."""
    if values.ndim != 1:
        raise ValueError(f"{name}: expected one dimension, got shape {values.shape}")
    if values.dtype.kind == "U" and values.view(np.uint32).max(initial=0) > sys.maxunicode:
        raise ValueError(f"{name}: expected strings, got invalid code points")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"{name}: expected finite numbers")
    in_order = values if is_sorted else np.sort(values)
    if not (in_order[:-1] < in_order[1:]).all():
        raise ValueError(f"{name}: expected distinct values" + ", sorted" * is_sorted)


def _check_members(kind: Array, column: Array, start: Array, number: Array, text: Array) -> None:
    """Raise ValueError if the arrays of a file are inconsistent."""
    if text.dtype.kind not in "UO":
        raise ValueError("category_text: expected strings")
    if not kind.ndim == column.ndim == start.ndim == number.ndim == text.ndim == 1:
        raise ValueError("category_kind, category_column, category_start: expected one dimension")
    if len(start) != len(column) + 1 or start[0] != 0 or (start[:-1] > start[1:]).any():
        raise ValueError("category_start: expected nondecreasing numbers from 0")
    if len(column) and not (column.min() >= 0 and column.max() < len(kind)):
        raise ValueError(f"category_column: expected values in [0, {len(kind)})")
    if (len(column) and (np.diff(column) < 0).any()) or (column[2:] == column[:-2]).any():
        raise ValueError("category_column: expected increasing numbers, each at most twice")
    what, listed = kind & 3, np.unique(column)
    if (kind > 15).any() or not np.array_equal(np.flatnonzero(what), listed):
        raise ValueError("category_kind: expected a type for exactly the listed columns")
    twice = column[1:][np.diff(column) == 0]
    if (kind[twice] & _ORDERED > 0).any() or (kind[what == 0] & _ORDERED > 0).any():
        raise ValueError("category_kind: expected ordered columns to be listed once")
    is_text, size = what[column] == _KINDS["U"], np.diff(start.astype(np.int64))
    if len(text) != size[is_text].sum() or len(number) != size[~is_text].sum():
        raise ValueError("category_text, category_number: expected one value per category")
