"""Columns of the user's tables: which are numbers and which categories, and what cannot be read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.cli.errors import CommandError, UsageError, require
from pboost.cli.table import CSV, DataFrame, Format
from pboost.data.check_xy import as_features
from pboost.data.numbers import as_text, first_inexact
from pboost.data.table import Table
from pboost.models.base import Model

_INTEGER = re.compile(r"\s*(0|[+-]?[1-9][0-9]*)\s*")
_NUMBER = re.compile(r"\s*[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
_TRUTH = {"true": True, "false": False}
#: Text of which so large a share are numbers is meant as numbers, and the others are mistakes.
MOSTLY = 0.5
#: Categories that are listed of a column.
MOST_LEVELS = 10


def split_table(
    table: DataFrame,
    target: str,
    weight: str | None,
    form: Format = CSV,
    *,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    is_regression: bool = False,
) -> tuple[DataFrame, NDArray[Any], NDArray[np.float64] | None]:
    """Return features, labels or numbers to be predicted, and sample weights of a table."""
    named = {"--target": target} | ({} if weight is None else {"--weight": weight})
    if weight == target:
        raise UsageError("--target and --weight name the same column")
    for option, name in named.items():
        for other, taken in (("--drop", drop), ("--categorical", categorical)):
            if name in taken:
                raise UsageError(f"{option} and {other} name the same column")
    if both := next((name for name in categorical if name in drop), None):
        raise UsageError(f"--categorical and --drop both name {both!r}")
    for name in (*named.values(), *drop, *categorical):
        if name not in table.columns:
            raise CommandError(f"there is no column {name!r}; {listing(table.columns, name)}")
    table = table.drop(columns=list(drop))
    features = table.drop(columns=[*named.values()])
    if features.shape[1] == 0:
        others = " and ".join(map(repr, (*named.values(), *drop)))
        raise CommandError(f"there is no column besides {others}")
    features = typed(features, form, categorical)
    weights = None if weight is None else _numbers(table, weight, form)
    if is_regression:
        return features, _numbers(table, target, form), weights
    _check_present(table, target)
    return features, _as_labels(table[target], form), weights


def _numbers(table: DataFrame, name: str, form: Format) -> NDArray[np.float64]:
    """Return a column of finite numbers, none of which is missing, as floats."""
    _check_numbers(table, name, form)
    _check_present(table, name)
    return as_features(table[[name]]).values[:, 0].astype(np.float64)


def typed(table: DataFrame, form: Format, categorical: Sequence[str]) -> DataFrame:
    """Return features, in which text is a category, but for text that is numbers mostly.

    CommandError for what is neither.
    """
    table = table.copy()
    for name in table.columns:
        column = table[name]
        if name in categorical:
            table[name] = column.astype("category")
        elif not _holds_text(column) or _share_of_numbers(column, form) >= MOSTLY:
            _check_numbers(table, name, form, can_drop=True)
    as_features(table)
    return table


def _holds_text(column: DataFrame) -> bool:
    """Return whether this is text, some of which may be missing, or a category."""
    return _is_category(column) or isinstance(next(iter(column.dropna()), 0.0), str)


def _share_of_numbers(column: DataFrame, form: Format) -> float:
    """Return the share of numbers among the values of a column of text that are not missing."""
    if _is_category(column):
        return 0.0
    values = [form.pointed(str(value)) for value in column.dropna()]
    return sum(_NUMBER.fullmatch(value) is not None for value in values) / max(len(values), 1)


def _is_category(column: DataFrame) -> bool:
    return getattr(column.dtype, "name", "") == "category"


def _as_labels(column: DataFrame, form: Format) -> NDArray[Any]:
    """Return texts as they stand, or as the numbers or truth values that all of them are.

    Numbers that are written with zeros in front are names: ``01`` is not ``1``.
    """
    if column.dtype.kind in "biuf":  # of a file that says so
        numbers: NDArray[Any] = column.to_numpy()
        return numbers
    code, different = require("pandas", "cli").factorize(column)
    texts = [str(text) for text in different]
    values: list[Any] = texts
    if all(text.lower() in _TRUTH for text in texts):
        values = [_TRUTH[text.lower()] for text in texts]
    elif all(map(_NUMBER.fullmatch, pointed := [form.pointed(text) for text in texts])):
        # What a number would round is a name, too.
        values = texts if any(map(_is_large, texts)) else [float(text) for text in pointed]
        if all(map(_INTEGER.fullmatch, texts)):
            values = [int(text) for text in texts]
            values = values if min(values) >= -(2**63) and max(values) < 2**63 else texts
    found = as_text(texts, "y: expected labels") if values is texts else np.array(values)
    return found[code]


def texts_of(model: Model) -> list[str]:
    """Return the columns that a model takes for categories, and that were text in training."""
    known, names = model.table, model.feature_names
    if known is None or names is None:
        return []
    values = [known.values_of(j) for j in known.categories]
    kinds = ["" if found is None else found.dtype.kind for found in values]
    return [names[j] for j, kind in zip(known.categories, kinds, strict=True) if kind == "U"]


def pick_columns(table: DataFrame, model: Model, form: Format = CSV) -> DataFrame:
    """Return the columns that a model reads, in its order; all of them if it knows no names."""
    names = table.columns if model.feature_names is None else model.feature_names
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise CommandError(
            f"the model needs column {missing[0]!r}, which is not there; "
            f"{listing(table.columns, missing[0])}"
        )
    chosen = table[list(names)]
    known = [] if model.table is None else model.table.categories
    for j, name in enumerate(names):
        if j not in known:
            _check_numbers(table, name, form)
    return chosen


def _check_numbers(
    table: DataFrame, name: str, form: Format = CSV, *, can_drop: bool = False
) -> None:
    """Raise CommandError where a column holds text, an infinite or an inexact number.

    What else is no number, such as a date, is refused where the table is read.
    """
    column = table[name]
    _check_large(column, name)
    if column.dtype.kind not in "biuf":
        if column.map(lambda value: isinstance(value, str)).any():
            _refuse_texts(column, name, form, can_drop=can_drop)
        return
    infinite = np.isinf(column.to_numpy(np.float64, na_value=np.nan))
    if infinite.any():
        raise CommandError(
            f"column {name!r} has infinite values, the first in row {int(np.argmax(infinite)) + 1}"
        )


def _refuse_texts(column: DataFrame, name: str, form: Format, *, can_drop: bool) -> None:
    """Raise CommandError for the first text, and say what can be done about it."""
    texts = column.map(lambda value: form.pointed(value) if isinstance(value, str) else value)
    numbers = require("pandas", "cli").to_numeric(texts, errors="coerce")
    wrong = (numbers.isna() & column.notna()).to_numpy()
    if not wrong.any():  # numbers that are stored as text
        wrong = column.map(lambda value: isinstance(value, str)).to_numpy()
    row = int(np.argmax(wrong))
    other = form._replace(decimal="," if form.decimal == "." else ".")
    hint = ""
    if _NUMBER.fullmatch(other.pointed(str(column.iloc[row]))):
        word = "comma" if other.decimal == "," else "point"
        hint = f"; a decimal {word}? --decimal {other.decimal}"
    else:
        cell, quoted = shlex.quote(str(column.iloc[row])), shlex.quote(_in_list(name))
        hint = f"; if that stands for a missing value, --missing-values {cell}"
        hint += f"; or --categorical {quoted}, or --drop {quoted}" if can_drop else ""
    raise CommandError(
        f"column {name!r} is not numeric: row {row + 1} holds {column.iloc[row]!r}{hint}"
    )


def _in_list(name: str) -> str:
    """Return a name as it is typed in a list with commas."""
    return f'"{name}"' if "," in name else name


def _check_large(column: DataFrame, name: str) -> None:
    """Raise CommandError for the first integer that is no float64; all others have been read."""
    row = first_inexact(column.to_numpy()) if column.dtype.kind in "iu" else -1
    if column.dtype.kind not in "biuf":
        # Integers beyond 64 bits are left as such, or as texts, with all else in the column.
        texts = (str(value).strip() if isinstance(value, str | int) else "" for value in column)
        large = (i for i, text in enumerate(texts) if _is_large(text))
        row = next(large, -1)
    if row >= 0:
        raise CommandError(
            f"column {name!r}: row {row + 1} holds {column.iloc[row]}, an integer that floating "
            "point cannot hold exactly; write it with a point to have it rounded"
        )


def _is_large(text: str) -> bool:
    return len(text) > 15 and bool(_INTEGER.fullmatch(text)) and int(text) != float(text)


def _check_present(table: DataFrame, name: str) -> None:
    missing = table[name].isna().to_numpy()
    if missing.any():
        raise CommandError(
            f"column {name!r} has missing values, the first in row {int(np.argmax(missing)) + 1}; "
            "fill them in or leave the rows out"
        )


def described(known: Table | None, names: tuple[str, ...] | None) -> list[str]:
    """Return lines that say what the columns of training were, where not all were whole numbers."""
    if known is None:
        return []
    lines = ["columns:"]
    for j in range(known.n_features):
        label = f"x[{j}]" if names is None else names[j]
        kind = "numbers"
        if (values := known.values_of(j)) is not None:
            levels = known.level_names(j) or tuple(map(str, values.tolist()))
            is_ordered = known.levels[j] is None
            some = ", ".join(levels[:MOST_LEVELS])
            more = "" if len(levels) <= MOST_LEVELS else ", ..."
            kind = f"{len(levels)} {'ordered ' if is_ordered else ''}categories: {some}{more}"
        lines.append(f"  {label}: {kind}" + ("; some missing" if known.has_missing[j] else ""))
    return lines


def listing(names: Any, wanted: str, most: int = 10) -> str:
    """Return which columns there are, and what may be meant by one that is not."""
    shown = ", ".join(map(str, names[:most]))
    more = "" if len(names) <= most else f", ... ({len(names)} columns)"
    near = get_close_matches(wanted, map(str, names), 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    hint = "; see --sep" if len(names) == 1 else ""
    return f"there are {shown}{more}{meant or hint}"
