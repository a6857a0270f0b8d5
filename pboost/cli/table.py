"""Tables of users: files read and written, and which columns are numbers and which categories."""

from __future__ import annotations

import gzip
import io
import os
import re
import shlex
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pboost.cli.streams import STREAM, CommandError, UsageError, called, opened, require
from pboost.data.read.check_xy import as_features
from pboost.data.read.numbers import as_text, first_inexact
from pboost.data.read.table import Table
from pboost.models.base import Model
from pboost.models.files import replace_file
from pboost.values import Array, FloatArray

#: pandas is optional and untyped.
DataFrame: TypeAlias = Any

_UNREADABLE = (ValueError, EOFError, zlib.error, gzip.BadGzipFile)
_GZIP_MAGIC = b"\x1f\x8b"
#: How files of spreadsheets begin: new ones, which are zip files, and old ones.
_SPREADSHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_LONGER_ROW = re.compile(r"in line (\d+), saw \d+|Length of header or names")
#: How Parquet files begin.
_PARQUET = b"PAR1"
_INTEGER = re.compile(r"\s*(0|[+-]?[1-9][0-9]*)\s*")
_NUMBER = re.compile(r"\s*[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
_TRUTH = {"true": True, "false": False}
#: Text of which so large a share are numbers is meant as numbers, and the others are mistakes.
MOSTLY = 0.5
#: Categories that are listed of a column.
MOST_LEVELS = 10


class Format(NamedTuple):
    """How CSV files are written.

    Attributes
    ----------
    sep : str
        What stands between columns.
    encoding : str or None
        What stands for characters; None: UTF-8.
    decimal : str
        What stands before the digits of fractions: a point or a comma.
    missing : tuple of str or None
        What stands for missing values, besides nothing; None: what pandas takes for such.
    """

    sep: str = ","
    encoding: str | None = None
    decimal: str = "."
    missing: tuple[str, ...] | None = None

    def options(self) -> dict[str, Any]:
        """Return how pandas is told."""
        how = self._asdict()
        missing = how.pop("missing")
        if missing is not None:
            how |= {"na_values": ["", *missing], "keep_default_na": False}
        return how

    def pointed(self, text: str) -> str:
        """Return a number with a point before its fraction, and another's point as a comma."""
        return text.translate(str.maketrans("." + self.decimal, self.decimal + "."))


CSV = Format()
#: How pandas is told that nothing is missing.
_AS_TEXT = {"keep_default_na": False, "na_values": []}


def read_table(path: str, form: Format = CSV, texts: Sequence[str] = ()) -> DataFrame:
    """Read a Parquet file, or a CSV file with a header line, plain or gzipped.

    Of a CSV file the columns `texts` are read as such.
    """
    pandas = require("pandas", "cli")
    how, source, path = form.options(), path, called(path)
    with opened(source) as raw, warnings.catch_warnings():
        # Rows longer than the header would be cut with no more than a warning.
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        zipped = raw.peek(2)[:2] == _GZIP_MAGIC
        if raw.peek(4).startswith(_PARQUET):
            return _read_parquet(io.BytesIO(raw.read()), path, form)
        if raw.peek(4).startswith(_SPREADSHEETS):
            raise CommandError(
                f"{path}: looks like a spreadsheet (or another zip file); save it as CSV"
            )
        file: Any = gzip.GzipFile(fileobj=raw) if zipped else raw
        if not raw.seekable():
            file = io.BytesIO(file.read())
        header = None
        try:
            header = pandas.read_csv(file, header=None, nrows=1, dtype=str, **{**how, **_AS_TEXT})
            file.seek(0)
            exact = exact_numbers(pandas.__version__)
            table = pandas.read_csv(
                file,
                index_col=False,
                low_memory=False,
                dtype=dict.fromkeys(texts, str),
                **exact,
                **how,
            )
        except (*_UNREADABLE, pandas.errors.ParserWarning) as error:
            if header is not None and (longer := _LONGER_ROW.search(str(error))):
                line = f"line {longer[1]} has" if longer[1] else "rows have"
                first = form.sep.join(header.iloc[0])
                first = first if len(first) <= 60 else first[:60] + "..."
                raise CommandError(
                    f"{path}: {line} more fields than the header {first!r}; see --sep"
                ) from error
            hint = "; see --encoding" if isinstance(error, UnicodeDecodeError) else ""
            raise CommandError(f"{path}: not a readable CSV file: {error}{hint}") from error
    return _checked(table, header.iloc[0].tolist(), path)


def _read_parquet(file: io.BytesIO, path: str, form: Format) -> DataFrame:
    """Return the table of a Parquet file."""
    parquet = require("pyarrow.parquet", "parquet")
    try:
        arrow_table = parquet.read_table(file)
    except (OSError, ValueError) as error:
        raise CommandError(f"{path}: not a readable Parquet file: {error}") from error
    _checked(None, arrow_table.column_names, path)
    table = arrow_table.to_pandas()
    if form.missing:
        table = table.mask(table.isin(list(form.missing)))
    return _checked(table, [], path)


def _checked(table: DataFrame | None, header: Sequence[str], path: str) -> DataFrame:
    """Return a table that has rows, and no two columns of one name."""
    names = Counter(name for name in header if name)
    twice = next((name for name in names if names[name] > 1), None)
    if twice is not None:
        raise CommandError(f"{path}: two columns are named {twice!r}")
    if table is not None and table.empty:
        raise CommandError(f"{path}: no rows")
    return table


def exact_numbers(pandas_version: str) -> dict[str, str]:
    """Options with which ``read_csv`` gives numbers the value that Python gives them."""
    major, minor = map(int, pandas_version.split(".")[:2])
    # Since 3.1 it always does, and the option is deprecated.
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def write_table(table: DataFrame, path: str, form: Format = CSV) -> None:
    """Write a CSV file, all of it or none."""
    text = table.to_csv(index=False, lineterminator="\n", sep=form.sep, decimal=form.decimal)
    if path == STREAM and form.encoding is None:
        write_text(text)
        return
    try:
        content = text.encode(form.encoding or "utf-8")
    except UnicodeEncodeError as error:
        raise CommandError(f"--encoding {form.encoding}: {error}") from None
    if path == STREAM:
        sys.stdout.buffer.write(content)
        return
    if path.endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    replace_file(path, content)


def write_text(text: str) -> None:
    """Write to standard output, whatever characters it can show."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def check_output(path: str, *inputs: str) -> None:
    """Fail before the work rather than after it where `path` cannot be written."""
    if path == STREAM:
        return
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise CommandError(f"{path}: there is no directory {folder}")
    if os.path.isdir(path):
        raise CommandError(f"{path}: is a directory")
    for name in inputs:
        if os.path.exists(path) and os.path.exists(name) and os.path.samefile(path, name):
            raise UsageError(f"-o would overwrite the input {name}")


def split_table(
    table: DataFrame,
    target: str,
    weight: str | None,
    form: Format = CSV,
    *,
    drop: Sequence[str] = (),
    categorical_features: Sequence[str] = (),
    is_regression: bool = False,
) -> tuple[DataFrame, Array, FloatArray | None]:
    """Return features, labels or numbers to be predicted, and sample weights of a table."""
    named = {"--target": target} | ({} if weight is None else {"--sample-weight": weight})
    if weight == target:
        raise UsageError("--target and --sample-weight name the same column")
    for option, name in named.items():
        for other, taken in (("--drop", drop), ("--categorical-features", categorical_features)):
            if name in taken:
                raise UsageError(f"{option} and {other} name the same column")
    if both := next((name for name in categorical_features if name in drop), None):
        raise UsageError(f"--categorical-features and --drop both name {both!r}")
    for name in (*named.values(), *drop, *categorical_features):
        if name not in table.columns:
            raise CommandError(f"there is no column {name!r}; {listing(table.columns, name)}")
    table = table.drop(columns=list(drop))
    features = table.drop(columns=[*named.values()])
    if features.shape[1] == 0:
        others = " and ".join(map(repr, (*named.values(), *drop)))
        raise CommandError(f"there is no column besides {others}")
    features = typed(features, form, categorical_features)
    weights = None if weight is None else _numbers(table, weight, form)
    if is_regression:
        return features, _numbers(table, target, form), weights
    _check_present(table, target)
    return features, _as_labels(table[target], form), weights


def _numbers(table: DataFrame, name: str, form: Format) -> FloatArray:
    """Return a column of finite numbers, none of which is missing, as floats."""
    _check_numbers(table, name, form)
    _check_present(table, name)
    return as_features(table[[name]]).values[:, 0].astype(np.float64)


def typed(table: DataFrame, form: Format, categorical_features: Sequence[str]) -> DataFrame:
    """Return features, in which text is a category, but for text that is numbers mostly.

    CommandError for what is neither.
    """
    table = table.copy()
    for name in table.columns:
        column = table[name]
        if name in categorical_features:
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


def _as_labels(column: DataFrame, form: Format) -> Array:
    """Return texts as they stand, or as the numbers or truth values that all of them are.

    Numbers that are written with zeros in front are names: ``01`` is not ``1``.
    """
    if column.dtype.kind in "biuf":  # of a file that says so
        numbers: Array = column.to_numpy()
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
    distinct = as_text(texts, "y: expected class labels") if values is texts else np.array(values)
    return distinct[code]


def texts_of(model: Model) -> list[str]:
    """Return the columns that a model takes for categories, and that were text in training."""
    known, names = model.table, model.feature_names
    if known is None or names is None:
        return []
    values = [known.values_of(j) for j in known.categorical]
    kinds = ["" if array is None else array.dtype.kind for array in values]
    return [names[j] for j, kind in zip(known.categorical, kinds, strict=True) if kind == "U"]


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
    known = [] if model.table is None else model.table.categorical
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
        hint += f"; or --categorical-features {quoted}, or --drop {quoted}" if can_drop else ""
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
            is_ordered = known.categories[j] is None
            some = ", ".join(levels[:MOST_LEVELS])
            more = "" if len(levels) <= MOST_LEVELS else ", ..."
            kind = f"{len(levels)} {'ordered ' if is_ordered else ''}categories: {some}{more}"
        lines.append(f"  {label}: {kind}" + ("; some missing" if known.has_missing[j] else ""))
    return lines


def listing(names: Any, wanted: str, max_names: int = 10) -> str:
    """Return which columns there are, and what may be meant by one that is not."""
    shown = ", ".join(map(str, names[:max_names]))
    more = "" if len(names) <= max_names else f", ... ({len(names)} columns)"
    near = get_close_matches(wanted, map(str, names), 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    hint = "; see --sep" if len(names) == 1 else ""
    return f"there are {shown}{more}{meant or hint}"
