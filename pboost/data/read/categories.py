"""Encoding of numeric and categorical columns into a float matrix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.codes import distinct
from pboost.data.read.frames import Source
from pboost.data.read.numbers import NAME_OR_ENCODE, as_text, is_missing, to_numbers
from pboost.data.read.table import MOST_LEVELS, Table, kind_of
from pboost.values import Array, FloatArray

#: Number of rows read at a time.
BLOCK = 8192
#: Text columns in which more than this fraction of the values occur once are not categorical.
MOST_SINGLE = 0.5
#: Hint for text that may not be categorical.
NAMED = "pass it in categorical_features"


class ColumnReader:
    """Reader of the columns of a table into a float matrix, in which NaN is a missing value.

    Parameters
    ----------
    known : Table or None
        Description of the training data, for new rows. None determines new categories.
    takes_text : bool
        Whether text columns are categorical without being listed.
    is_part : bool
        Whether the rows are only a part of a table. The check for identifiers is then skipped.

    Attributes
    ----------
    undeclared : list of int
        Columns that are categorical only because they contain text.
    """

    def __init__(self, known: Table | None, takes_text: bool, is_part: bool = False) -> None:
        self.known, self._takes_text, self._is_part = known, takes_text, is_part
        self.undeclared: list[int] = []

    def read(
        self, source: Source, out: Array, label: str, is_named: bool, column: int
    ) -> tuple[Array | None, Array | None]:
        """Encode one column; return its unordered categories and its ordered categories.

        Either result may be None.

        `column` is the position of the feature in training.
        """
        if source.refused:
            raise TypeError(f"X: {label} is not numeric: got {source.refused}")
        is_category = is_named or source.is_declared
        if source.categories is None:
            levels = _place_values(source, out, label, is_category, self._takes_text)
        else:
            levels = _place_codes(source, out, label)
        if self.known is not None:
            match_levels(self.known, column, out, levels, label)
        if self.known is not None or levels is None:
            return None, None
        if source.order is not None:
            order = as_levels(source.order, label)
            _replace(out, places_in_order(order, levels))
            return None, order
        if not is_category:
            self.undeclared.append(column)
            if not self._is_part and len(levels) > MOST_SINGLE * source.n_rows:
                refuse_identifier(level_counts(out, len(levels)), source.n_rows, label)
        return levels, None


def match_levels(known: Table, column: int, out: Array, levels: Array | None, label: str) -> None:
    """Check the types of new rows, and convert their categories to the training numbers."""
    values, kind = known.values_of(column), "numbers" if levels is None else kind_of(levels)
    if values is None:
        if levels is not None and len(levels):
            raise ValueError(f"X: {label}: expected numbers as in training, got categories, {kind}")
        return
    is_text = levels is not None and levels.dtype.kind == "U"
    if is_text != (values.dtype.kind == "U") and len(values) and not np.isnan(out).all():
        raise ValueError(f"X: {label}: expected {kind_of(values)} as in training, got {kind}")
    if levels is not None:
        # Rows for several models have one more number, for categories that are in no model.
        number = np.append(known.numbers(column, levels), known.unknown_number(column))
        _replace(out, number)
        return
    for start in range(0, len(out), BLOCK):
        part = out[start : start + BLOCK]
        part[:] = known.numbers(column, part)


def lightest_joined(
    values: Array, table: Table, weights: NDArray[np.float64] | None
) -> tuple[Array, Table]:
    """Merge the categories of smallest weight if there are too many; return values and table."""
    values, levels = values.copy(), list(table.categories)
    other: list[Array | None] = [None] * len(levels)
    for j, level_values in enumerate(levels):
        if level_values is None or len(level_values) <= MOST_LEVELS:
            continue
        known = ~np.isnan(values[:, j])
        number = values[known, j].astype(np.intp)
        mass = np.bincount(number, None if weights is None else weights[known], len(level_values))
        kept, rest = heaviest(mass)
        new = np.full(len(level_values), MOST_LEVELS - 1, dtype=np.float64)
        new[kept] = np.arange(len(kept))
        values[known, j] = new[number]
        levels[j], other[j] = level_values[kept], level_values[rest]
    return values, Table(tuple(levels), table.has_missing, tuple(other), table.order)


def without_absent(
    values: Array, table: Table, weights: NDArray[np.float64]
) -> tuple[Array, Table]:
    """Remove categories that no row of positive weight has; return values and table.

    In rows of weight 0, these categories become missing values, or rare categories if so many
    categories remain that the rare ones are merged.
    """
    values, levels = values.copy(), list(table.categories)
    for j, level_values in enumerate(levels):
        if level_values is None:
            continue
        known = ~np.isnan(values[:, j])
        seen = np.unique(values[known & (weights > 0), j]).astype(np.intp)
        number = np.full(len(level_values), np.nan)
        number[seen] = np.arange(len(seen))
        if len(seen) > MOST_LEVELS:
            place = values[known, j].astype(np.intp)
            mass = np.bincount(place, weights[known], len(level_values))[seen]
            number[np.isnan(number)] = heaviest(mass)[1][0]
        _replace(values[:, j], number)
        levels[j] = level_values[seen]
    return values, replace(table, categories=tuple(levels))


def heaviest(mass: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the categories with their own number, and the categories that share a number."""
    by_mass = np.argsort(-mass, kind="stable")
    return np.sort(by_mass[: MOST_LEVELS - 1]), np.sort(by_mass[MOST_LEVELS - 1 :])


def places_in_order(order: Array, levels: Array) -> FloatArray:
    """Return the position of each category in the given order."""
    by_value = np.argsort(order, kind="stable")
    return by_value[np.searchsorted(order[by_value], levels)].astype(np.float64)


def as_levels(values: Array, label: str) -> Array:
    """Return categories as strings, float64 numbers or booleans."""
    if values.dtype.kind in "OT":
        kinds = set(map(type, values.tolist()))
        if all(issubclass(kind, str) for kind in kinds):
            return as_text(values, f"X: expected text in {label}")
        if all(issubclass(kind, bool | np.bool_) for kind in kinds):
            return values.astype(np.bool_)
        if any(issubclass(kind, str) for kind in kinds):
            raise TypeError(
                f"X: {label}: expected text in every row, got other values; convert it to text"
            )
    if values.dtype.kind in "Ub":
        return values
    numbers = to_numbers(values, label).astype(np.float64, copy=False)
    if not np.isfinite(numbers).all():
        raise ValueError(f"X: expected finite numbers as categories of {label}, got infinity")
    return numbers


def _place_codes(source: Source, out: Array, label: str) -> Array | None:
    """Write the category numbers of a column that contains codes; return the categories."""
    assert source.categories is not None
    n_rows, n = source.n_rows, len(source.categories)
    seen = np.zeros(n + 1, dtype=np.int64)
    for start in range(0, n_rows, BLOCK):
        codes = source.part(start, min(start + BLOCK, n_rows)).astype(np.intp)
        seen += np.bincount(np.where(codes < 0, n, codes), minlength=n + 1)
        out[start : start + BLOCK] = np.where(codes < 0, np.nan, codes)
    used = np.flatnonzero(seen[:n])
    levels, place = np.unique(as_levels(source.categories[used], label), return_inverse=True)
    number = np.full(n, np.nan)
    number[used] = place
    _replace(out, number)
    return levels


def _place_values(
    source: Source, out: Array, label: str, is_category: bool, takes_text: bool
) -> Array | None:
    """Write the values of a column, or its category numbers; return the categories."""
    place: dict[str, int] = {}
    kinds = set[str]()
    for start in range(0, source.n_rows, BLOCK):
        stop = min(start + BLOCK, source.n_rows)
        values, rows = source.part(start, stop), slice(start, stop)
        text = _text(values, label) if takes_text or is_category else None
        if text is None:
            numbers = to_numbers(values, label, start, NAME_OR_ENCODE)
            if is_category and np.isinf(numbers).any():
                row = start + int(np.isinf(numbers).argmax())
                raise ValueError(f"X: expected finite numbers, got infinity in {label}, row {row}")
            out[rows] = numbers
            known = ~np.isnan(numbers)
            if known.any():
                kinds.add("b" if _are_booleans(values, known) else "f")
        else:
            strings, hidden = text
            if strings:
                kinds.add("U")
            for value in set(strings) - place.keys():
                place[value] = len(place)
            codes = np.full(stop - start, np.nan)
            codes[~hidden] = [place[value] for value in strings]
            out[rows] = codes
        if "U" in kinds and len(kinds) > 1:
            raise TypeError(
                f"X: {label}: expected text in every row, got other values; convert it to text"
            )
    if "U" in kinds:
        texts = as_text(list(place), f"X: expected text in {label}")
        levels, number = np.unique(texts, return_inverse=True)
        _replace(out, number.astype(np.float64))
        return levels
    if not is_category:
        return None
    levels = distinct(out[~np.isnan(out)]).astype(np.float64, copy=False)
    for start in range(0, source.n_rows, BLOCK):
        values = out[start : start + BLOCK]
        known = ~np.isnan(values)
        values[known] = np.searchsorted(levels, values[known])
    return levels.astype(np.bool_) if kinds == {"b"} else levels


def _text(values: Array, label: str) -> tuple[list[str], NDArray[np.bool_]] | None:
    """Return strings and a mask of missing values, or None if the column has no strings."""
    if values.dtype.kind not in "OUT":
        return None
    strings = values.tolist()
    hidden = np.ma.getmaskarray(values).copy()
    if values.dtype.kind != "U" or hidden.any():
        kinds = set(map(type, strings))
        if not all(issubclass(kind, str) for kind in kinds):
            hidden |= [type(value) is not str and is_missing(value) for value in strings]
            strings = [
                value for value, gone in zip(strings, hidden.tolist(), strict=True) if not gone
            ]
            are_text = [issubclass(kind, str) for kind in set(map(type, strings))]
            if any(are_text) and not all(are_text):
                raise TypeError(
                    f"X: {label}: expected text in every row, got other values; convert it to text"
                )
            if not any(are_text):
                return None
    return strings, hidden


def _are_booleans(values: Array, known: NDArray[np.bool_]) -> bool:
    if values.dtype.kind != "O":
        return values.dtype.kind == "b"
    return all(issubclass(kind, bool | np.bool_) for kind in set(map(type, values[known])))


def _replace(out: Array, number: FloatArray) -> None:
    """Replace category numbers in place."""
    for start in range(0, len(out), BLOCK):
        values = out[start : start + BLOCK]
        known = ~np.isnan(values)
        values[known] = number[values[known].astype(np.intp)]


def level_counts(
    numbers: Array, n_levels: int, mass: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return the number, or the weight, of the rows of each category."""
    counts = np.zeros(n_levels, dtype=np.int64)
    for start in range(0, len(numbers), BLOCK):
        values = numbers[start : start + BLOCK]
        known = ~np.isnan(values)
        level = values[known].astype(np.intp)
        if mass is None:
            counts += np.bincount(level, minlength=n_levels)
        else:
            np.add.at(counts, level, mass[start : start + BLOCK][known])
    return counts


def refuse_identifier(counts: NDArray[np.int64], n: int, label: str, named: str = NAMED) -> None:
    """Raise ValueError if more than half of n rows have a value that occurs once.

    `named` is the advice in the message if the column is categorical.
    """
    single = int(np.count_nonzero(counts == 1))
    if single > MOST_SINGLE * n:
        raise ValueError(
            f"X: {label}: expected categories, got text with a unique value in {single} of {n} "
            f"rows, like an identifier; drop the column, or if it is categorical, {named}"
        )
