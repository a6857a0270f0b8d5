"""Read tables in batches of rows, and merge their categories."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core import voting
from pboost.data.columns.columns import BinnedColumns
from pboost.data.read.categories import heaviest, level_counts, refuse_identifier
from pboost.data.read.check_xy import as_numbers, features_as_trained, plain_labels, weights_of_some
from pboost.data.read.convert import (
    Features,
    Trained,
    column_names,
    is_frame,
    pick_columns,
    read_rows,
)
from pboost.data.read.frames import of_frame, whole_column
from pboost.data.read.table import MOST_LEVELS, Table, column_label, kind_of
from pboost.values import Array, FloatArray, TableLike, install_hint, shown

#: Hint for text in batches that may not be categorical.
DECLARED = "convert it to a categorical dtype"


@dataclass(frozen=True, slots=True)
class PartLevels:
    """Categories and counts in a part of the rows of a table.

    Attributes
    ----------
    where : str
        Name of the part in messages.
    n_rows : int
        Number of rows.
    table : Table
        Categories that occur, and the order of ordered categories.
    has_values : ndarray of bool, shape (d,)
        Whether a feature has a known value.
    counts, mass : list of ndarray of int64
        For each feature the number of rows of each category, and their weight in fixed point.
    undeclared : list of int
        Features that are categorical only because they contain text.
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
    """Summarize the categories of some rows. `mass` contains fixed-point weights, or is None."""
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
    """Return whether any part has a categorical feature, ordered or not."""
    return any(part.table is not None and part.table.categorical for part in parts)


def shared_levels(all_parts: PartLevels, names: tuple[str, ...] | None) -> Table:
    """Return the description of the whole table. Merge rare categories if there are too many.

    Raises ValueError for text that looks like an identifier.
    """
    table = all_parts.table
    levels = list(table.categories)
    other: list[Array | None] = [None] * table.n_features
    for j, (values, counts) in enumerate(zip(table.categories, all_parts.counts, strict=True)):
        if values is None:
            continue
        if j in all_parts.undeclared:
            refuse_identifier(counts, all_parts.n_rows, column_label(names, j), DECLARED)
        if len(values) > MOST_LEVELS:
            kept, rest = heaviest(all_parts.mass[j])
            levels[j], other[j] = values[kept], values[rest]
    return Table(tuple(levels), table.has_missing, tuple(other), table.order)


def joined_levels(
    parts: Sequence[PartLevels], names: tuple[str, ...] | None, where: str
) -> PartLevels:
    """Join the categories of all parts.

    Raises TypeError if the type or the order of the categories differs between parts.
    """
    d = parts[0].table.n_features
    columns = [_joined(parts, j, column_label(names, j)) for j in range(d)]
    levels, order, counts, mass = (list(column) for column in zip(*columns, strict=True))
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
    """Return the categories of a feature, their order, numbers of rows, and weights."""
    holders = [part for part in parts if part.table.values_of(j) is not None]
    if not holders:
        return None, None, _NONE, _NONE
    _check_kinds(parts, j, label)
    first = next((part for part in holders if part.has_values[j]), holders[0])
    if first.table.categories[j] is None:
        return None, first.table.values_of(j), _NONE, _NONE
    some = [part for part in holders if part.has_values[j]] or [first]
    level_lists = [levels for part in some if (levels := part.table.categories[j]) is not None]
    every, place = np.unique(np.concatenate(level_lists), return_inverse=True)
    counts, mass = np.zeros((2, len(every)), dtype=np.int64)
    np.add.at(counts, place, np.concatenate([part.counts[j] for part in some]))
    np.add.at(mass, place, np.concatenate([part.mass[j] for part in some]))
    is_there = counts > 0  # drop categories without rows
    return every[is_there], None, counts[is_there], mass[is_there]


def _is_order(order: Array, before: Array | None) -> bool:
    return before is not None and np.array_equal(order, before)


def _check_kinds(parts: Sequence[PartLevels], j: int, label: str) -> None:
    """Raise TypeError if the type or the order of the categories differs between parts."""
    kinds: dict[str, str] = {}
    orders: list[tuple[Array | None, str]] = []
    for part in parts:
        if part.has_values[j]:
            values = part.table.values_of(j)
            kind = "numbers without categories" if values is None else kind_of(values)
            kinds.setdefault(kind, part.where)
            orders.append((None if part.table.categories[j] is not None else values, part.where))
    if len(kinds) > 1 and set(kinds) != {"numbers", "booleans"}:
        (first_kind, first), (two, second), *_ = kinds.items()
        raise TypeError(
            f"X: {label}: expected values of one type, got {first_kind} in {first} and {two} in "
            f"{second}; convert it to text"
        )
    for order, where in orders[1:]:
        before, first = orders[0]
        is_same = before is None if order is None else _is_order(order, before)
        if not is_same:
            raise TypeError(
                f"X: {label}: expected the same order of categories everywhere, got different "
                f"orders in {first} and {where}"
            )


#: Number of rows read from files at a time.
BATCH_ROWS = 131_072
#: File extensions and the pyarrow names of the formats.
FORMATS = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "ipc"),
    ".csv": "csv",
}


class Batch(NamedTuple):
    """Unchecked rows of a table, with their targets and optional weights."""

    X: TableLike
    y: object
    weights: ArrayLike | None


#: Function that starts a new iteration over the batches.
Batches: TypeAlias = Callable[[], Iterator[Batch]]


def batches_of(source: object, target: str | None, weight: str | None) -> Batches:
    """Return a function that reads a table in batches, any number of times.

    Raises
    ------
    TypeError, ValueError
        If the source is not a table, can be read only once, or does not match `target`.
    ImportError
        If the source contains paths and pyarrow is not installed.
    """
    for name, column in (("target", target), ("weight", weight)):
        if column is not None and not isinstance(column, str):
            raise TypeError(f"{name}: expected a column name, got {shown(column)}")
    start = _starting(source)

    def read() -> Iterator[Batch]:
        for k, item in enumerate(start()):
            yield _split(item, target, weight, k)

    return read


def _starting(source: object) -> Callable[[], Iterable[Any]]:
    """Return a function that starts a new iteration over the items of a source."""
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(paths, list | tuple) and paths:
        are_paths = [isinstance(path, str | os.PathLike) for path in paths]
        if all(are_paths):
            source = _of_files([os.fspath(path) for path in paths])
        elif any(are_paths):
            raise TypeError("source: expected paths or batches, got both in one list")
    if hasattr(source, "to_batches"):
        return _arrow_reader(source)
    if callable(source):
        return source
    if isinstance(source, Iterator) or hasattr(source, "read_next_batch"):
        raise TypeError(
            f"source: expected batches that can be read twice, got a {type(source).__name__}; pass "
            "a list, or a function that returns a new iterator, such as a generator function"
        )
    if not isinstance(source, Iterable) or hasattr(source, "dtype") or is_frame(source):
        raise TypeError(
            "source: expected paths, a pyarrow dataset, or an iterable of batches, got "
            f"{shown(source)}; for a table in memory use pb.data.bin_columns"
        )
    return lambda: iter(source)


def _of_files(paths: list[str]) -> Any:
    """Return a pyarrow dataset of files or of a folder."""
    try:
        from pyarrow import dataset
    except ImportError:
        hint = install_hint("parquet", "pyarrow")
        raise ImportError(
            f"source: pyarrow is required to read files but not installed: {hint}"
        ) from None
    kinds = set()
    for path in paths:
        if not os.path.exists(path):
            raise FileNotFoundError(f"source: expected an existing file or folder, got {path!r}")
        ending = os.path.splitext(path)[1].lower()
        if not os.path.isdir(path) and ending not in FORMATS:
            raise ValueError(
                f"source: expected files with extension {', '.join(FORMATS)}, got {path!r}; pass "
                "other files as a pyarrow dataset"
            )
        kinds.add("parquet" if os.path.isdir(path) else FORMATS[ending])
    if len(kinds) > 1:
        raise ValueError(f"source: expected files of one format, got {', '.join(sorted(kinds))}")
    return dataset.dataset(paths[0] if len(paths) == 1 else paths, format=kinds.pop())


def _arrow_reader(source: Any) -> Callable[[], Iterable[Any]]:
    """Return a function that reads a pyarrow table or dataset in batches."""
    if not hasattr(source, "get_fragments"):
        return lambda: source.to_batches(max_chunksize=BATCH_ROWS)
    _check_columns(source)
    return lambda: source.to_batches(batch_size=BATCH_ROWS, batch_readahead=2, fragment_readahead=1)


def _check_columns(source: Any) -> None:
    """Raise ValueError unless all files of a dataset have the columns of its schema.

    pyarrow would drop additional columns and fill missing columns with missing values.
    """
    from pyarrow.dataset import get_partition_keys

    for k, fragment in enumerate(source.get_fragments()):
        keys = get_partition_keys(fragment.partition_expression)  # values in folder names
        expected, actual = source.schema.names, [*fragment.physical_schema.names, *keys]
        different = set(expected).symmetric_difference(actual)
        name = next((name for name in (*expected, *actual) if name in different), None)
        if name is not None:
            file = repr(getattr(fragment, "path", f"fragment {k}"))
            problem = "has no" if name in expected else "has the additional"
            raise ValueError(
                f"source: expected the columns of the first file (or of the schema) in all files, "
                f"but {file} {problem} column {name!r}; write the files with the same columns, or "
                "pass a function that yields batches with the columns to use"
            )


def _split(item: object, target: str | None, weight: str | None, k: int) -> Batch:
    """Split a batch into X, targets and weights."""
    if target is None:
        if weight is not None:
            raise ValueError("weight: expected None without target; pass batches (X, y, weights)")
        if not isinstance(item, tuple) or len(item) not in (2, 3):
            raise TypeError(
                f"batch {k}: expected a tuple (X, y) or (X, y, weights), got {shown(item)}; for "
                "files, record batches and data frames pass target= with the name of the target "
                "column"
            )
        X, y, *weights = item
        return Batch(X, y, weights[0] if weights else None)
    if isinstance(item, tuple) or not is_frame(item):
        raise TypeError(
            f"batch {k}: expected a record batch or a data frame with column {target!r}, got "
            f"{shown(item)}"
        )
    names = column_names(item)
    for name, column in (("target", target), ("weight", weight)):
        if column is not None and column not in names:
            raise ValueError(
                f"{name}: expected a column name, got {column!r}; batch {k} has {', '.join(names)}"
            )
    rest = [j for j, name in enumerate(names) if name not in (target, weight)]
    return Batch(
        pick_columns(item, rest),
        _column(item, names.index(target)),
        None if weight is None else _column(item, names.index(weight)),
    )


def _column(frame: object, place: int) -> Any:
    return whole_column(of_frame(pick_columns(frame, [place]), 1)[0])


#: Number of batches whose categories are merged together.
JOINED = 32


class UnreadLevelsError(Exception):
    """Raised if a batch has categories, but the categories of all batches are not yet known."""


class BatchRows(NamedTuple):
    """Checked rows of positive weight of a batch."""

    values: Array
    y: Array
    weights: FloatArray | None
    batch: int


def masses_of(weights: FloatArray, total: float) -> NDArray[np.int64]:
    """Return weights in fixed point as in `to_fixed_point`, given the sum of all weights."""
    mass = np.empty(len(weights), dtype=np.int64)
    voting.to_fixed(weights, math.ldexp(1.0, 61 - math.frexp(total)[1]), mass)
    return mass


class BatchReader:
    """Read batches and check that all batches have the same features.

    Attributes
    ----------
    n_known : ndarray of int64, shape (d,), or None
        Number of known values of each categorical feature. None if there are none.
    """

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._trained: Trained | None = None
        self._weighs: bool | None = None
        self._is_text: bool | None = None
        self.n_known: NDArray[np.int64] | None = None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Feature names."""
        return self.trained.names

    @property
    def trained(self) -> Trained:
        """Description of the features. Available after the first batch has been read."""
        assert self._trained is not None
        return self._trained

    def is_weighed(self) -> bool:
        """Return whether the first batch has weights; raise ValueError if there are no batches."""
        for batch in self._batches():
            return batch.weights is not None
        raise ValueError("source: expected at least one batch, got none")

    def total_weight(self) -> float:
        """Return the sum of the weights of all batches."""
        parts = []
        for k, batch in enumerate(self._batches()):
            try:
                self._check_weighs(batch, True)
                weights = as_numbers("sample_weight", batch.weights)
                parts.append(float(weights_of_some(weights, weights.size).sum()))
            except (TypeError, ValueError) as error:
                raise type(error)(f"batch {k}: {error}") from None
        total = math.fsum(parts)
        if not 0 < total < math.inf:
            raise ValueError(f"weights: expected a positive, finite sum, got {total}")
        return total

    def go_on(self, bins: BinnedColumns, weighs: bool) -> None:
        """Resume with the features of existing bins."""
        table = bins.table
        self._trained = Trained(bins.names, bins.n_features, table)
        self._weighs = weighs
        if table is not None and table.categorical:
            self.n_known = np.zeros(bins.n_features, dtype=np.int64)

    def forget(self) -> None:
        """Reset the reader."""
        self._trained = self._weighs = self._is_text = self.n_known = None

    def find_levels(self, total: float | None) -> None:
        """Collect the categories of all batches. `total` is the sum of all weights, or None."""
        parts: list[PartLevels] = []
        for k, batch in enumerate(self._batches()):
            try:
                features, undeclared = self._alike(*read_rows(batch.X))
                mass = None
                if total is not None:
                    weights = weights_of_some(batch.weights, features.n_rows)
                    features, weights = _positive(features, weights)
                    mass = masses_of(weights, total)
            except (TypeError, ValueError) as error:
                raise type(error)(f"batch {k}: {error}") from None
            parts.append(part_levels(f"batch {k}", features, undeclared, mass))
            if len(parts) > JOINED:
                parts = [joined_levels(parts, self.names, f"batches 0 to {k}")]
        all_levels = joined_levels(parts, self.names, "all batches")
        self._trained = self.trained._replace(table=shared_levels(all_levels, self.names))
        self.n_known = np.array([counts.sum() for counts in all_levels.counts], dtype=np.int64)

    def __iter__(self) -> Iterator[BatchRows]:
        for k, batch in enumerate(self._batches()):
            try:
                rows = self._read(batch, k)
            except (TypeError, ValueError, NotImplementedError) as error:
                raise type(error)(f"batch {k}: {error}") from None
            if len(rows.y):
                yield rows

    def _read(self, batch: Batch, k: int) -> BatchRows:
        features = self._features(batch.X)
        n = features.n_rows
        if self._weighs is None:
            self._weighs = batch.weights is not None
        self._check_weighs(batch, self._weighs)
        if not n:
            return BatchRows(features.values, np.empty(0), None, k)
        labels = np.asarray(plain_labels(batch.y, n))
        if self._is_text is None:
            self._is_text = labels.dtype.kind in "UST"
        if self._is_text != (labels.dtype.kind in "UST"):
            raise TypeError(
                f"y: expected class labels of one type in all batches, got {labels.dtype}"
            )
        if batch.weights is None:
            return BatchRows(features.values, labels, None, k)
        weights = weights_of_some(batch.weights, n)
        if weights.all():
            return BatchRows(features.values, labels, weights, k)
        kept = np.flatnonzero(weights)
        return BatchRows(features.values[kept], labels[kept], weights[kept], k)

    @staticmethod
    def _check_weighs(batch: Batch, weighs: bool) -> None:
        if weighs != (batch.weights is not None):
            raise ValueError("weights: expected weights in all batches or in none")

    def _features(self, X: TableLike) -> Features:
        features, undeclared = read_rows(X)
        if self.n_known is None:
            if has_categories([features]):
                raise UnreadLevelsError
            return self._alike(features, undeclared)[0]
        self._check_names(features)
        return features_as_trained(features, self.trained)

    def _alike(self, features: Features, undeclared: list[int]) -> tuple[Features, list[int]]:
        """Return the rows with the features in the order of the first batch."""
        if self._trained is None:
            self._trained = Trained(features.names, features.n_features)
        self._check_names(features)
        places = self.trained.places(features.names, features.n_features)
        if places is None:
            return features, undeclared
        table = None if features.table is None else features.table.select(places)
        place = {position: j for j, position in enumerate(places)}
        return (
            Features(features.values[:, places], self.names, table),
            [place[j] for j in undeclared],
        )

    def _check_names(self, features: Features) -> None:
        if (features.names is None) != (self.names is None):
            raise ValueError("X: expected column names in all batches or in none")


def _positive(features: Features, weights: FloatArray) -> tuple[Features, FloatArray]:
    """Return the rows of positive weight."""
    kept = np.flatnonzero(weights)
    return features.take(kept), weights[kept]
