"""Read and write tables and determine the types of their columns."""

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
#: First bytes of Excel files: zip files (.xlsx) and the older format (.xls).
_SPREADSHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_LONGER_ROW = re.compile(r"in line (\d+), saw \d+|Length of header or names")
#: First bytes of Parquet files.
_PARQUET = b"PAR1"
_INTEGER = re.compile(r"\s*(0|[+-]?[1-9][0-9]*)\s*")
_NUMBER = re.compile(r"\s*[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
_TRUTH = {"true": True, "false": False}
#: A text column with at least this fraction of numbers is numeric. Other text in it is an error.
MOSTLY = 0.5
#: Maximum number of categories that are printed for a column.
MOST_LEVELS = 10


class Format(NamedTuple):
    """Format of CSV files.

    Attributes
    ----------
    sep : str
        Column separator.
    encoding : str or None
        Text encoding. None is UTF-8.
    decimal : str
        Decimal separator: point or comma.
    missing : tuple of str or None
        Texts for missing values, in addition to empty cells. None uses the defaults of pandas.
    """

    sep: str = ","
    encoding: str | None = None
    decimal: str = "."
    missing: tuple[str, ...] | None = None

    def options(self) -> dict[str, Any]:
        """Return the arguments for `pandas.read_csv`."""
        how = self._asdict()
        missing = how.pop("missing")
        if missing is not None:
            how |= {"na_values": ["", *missing], "keep_default_na": False}
        return how

    def pointed(self, text: str) -> str:
        """Swap points and decimal separators in a number."""
        return text.translate(str.maketrans("." + self.decimal, self.decimal + "."))


CSV = Format()
#: Arguments with which `pandas.read_csv` does not read any text as a missing value.
_AS_TEXT = {"keep_default_na": False, "na_values": []}


def read_table(path: str, form: Format = CSV, texts: Sequence[str] = ()) -> DataFrame:
    """Read a Parquet file, or a CSV file with a header line, optionally gzipped.

    The columns `texts` of a CSV file are read as text.
    """
    pandas = require("pandas", "cli")
    how, source, path = form.options(), path, called(path)
    with opened(source) as raw, warnings.catch_warnings():
        # By default pandas truncates rows longer than the header, with only a warning.
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        zipped = raw.peek(2)[:2] == _GZIP_MAGIC
        if raw.peek(4).startswith(_PARQUET):
            return _read_parquet(io.BytesIO(raw.read()), path, form)
        if raw.peek(4).startswith(_SPREADSHEETS):
            raise CommandError(
                f"{path}: expected CSV or Parquet, got a spreadsheet or zip file; save it as CSV"
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
                    f"{path}: {line} more fields than the header {first!r}; check --sep"
                ) from error
            hint = "; check --encoding" if isinstance(error, UnicodeDecodeError) else ""
            raise CommandError(f"{path}: not a readable CSV file: {error}{hint}") from error
    return _checked(table, header.iloc[0].tolist(), path)


def _read_parquet(file: io.BytesIO, path: str, form: Format) -> DataFrame:
    """Read a Parquet file."""
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
    """Return a table. Raise CommandError if it is empty or two columns have the same name."""
    names = Counter(name for name in header if name)
    twice = next((name for name in names if names[name] > 1), None)
    if twice is not None:
        raise CommandError(f"{path}: expected distinct column names, got {twice!r} twice")
    if table is not None and table.empty:
        raise CommandError(f"{path}: expected at least one row, got none")
    return table


def exact_numbers(pandas_version: str) -> dict[str, str]:
    """Return arguments that make ``read_csv`` parse numbers exactly like Python."""
    major, minor = map(int, pandas_version.split(".")[:2])
    # Since pandas 3.1, "round_trip" is the default and the option is deprecated.
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def write_table(table: DataFrame, path: str, form: Format = CSV) -> None:
    """Write a CSV file atomically."""
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
    """Write to standard output. Replace characters that its encoding does not support."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def check_output(path: str, *inputs: str) -> None:
    """Raise an error if `path` cannot be written, before the work starts."""
    if path == STREAM:
        return
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise CommandError(f"{path}: directory {folder} does not exist")
    if os.path.isdir(path):
        raise CommandError(f"{path}: expected a file, got a directory")
    for name in inputs:
        if os.path.exists(path) and os.path.exists(name) and os.path.samefile(path, name):
            raise UsageError(f"-o: expected a new file, got the input {name}")


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
    """Return features, targets and sample weights of a table."""
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
            raise CommandError(f"column {name!r} does not exist; {listing(table.columns, name)}")
    table = table.drop(columns=list(drop))
    features = table.drop(columns=[*named.values()])
    if features.shape[1] == 0:
        others = " and ".join(map(repr, (*named.values(), *drop)))
        raise CommandError(f"expected at least one feature, got no columns besides {others}")
    features = typed(features, form, categorical_features)
    weights = None if weight is None else _numbers(table, weight, form)
    if is_regression:
        return features, _numbers(table, target, form), weights
    _check_present(table, target)
    return features, _as_labels(table[target], form), weights


def _numbers(table: DataFrame, name: str, form: Format) -> FloatArray:
    """Return a column of finite numbers as floats. Reject missing values."""
    _check_numbers(table, name, form)
    _check_present(table, name)
    return as_features(table[[name]]).values[:, 0].astype(np.float64)


def typed(table: DataFrame, form: Format, categorical_features: Sequence[str]) -> DataFrame:
    """Convert text columns to categorical features, except columns that are mostly numbers.

    Raises CommandError for a mixture of numbers and text.
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
    """Return whether a column is text or categorical; missing values are ignored."""
    return _is_category(column) or isinstance(next(iter(column.dropna()), 0.0), str)


def _share_of_numbers(column: DataFrame, form: Format) -> float:
    """Return the fraction of numbers in a text column. Missing values are ignored."""
    if _is_category(column):
        return 0.0
    values = [form.pointed(str(value)) for value in column.dropna()]
    return sum(_NUMBER.fullmatch(value) is not None for value in values) / max(len(values), 1)


def _is_category(column: DataFrame) -> bool:
    return getattr(column.dtype, "name", "") == "category"


def _as_labels(column: DataFrame, form: Format) -> Array:
    """Return class labels as numbers or truth values if all texts can be converted, else as text.

    Numbers with leading zeros remain text: ``01`` differs from ``1``.
    """
    if column.dtype.kind in "biuf":  # from a Parquet file
        numbers: Array = column.to_numpy()
        return numbers
    code, different = require("pandas", "cli").factorize(column)
    texts = [str(text) for text in different]
    values: list[Any] = texts
    if all(text.lower() in _TRUTH for text in texts):
        values = [_TRUTH[text.lower()] for text in texts]
    elif all(map(_NUMBER.fullmatch, pointed := [form.pointed(text) for text in texts])):
        # Integers that float64 would round remain text.
        values = texts if any(map(_is_large, texts)) else [float(text) for text in pointed]
        if all(map(_INTEGER.fullmatch, texts)):
            values = [int(text) for text in texts]
            values = values if min(values) >= -(2**63) and max(values) < 2**63 else texts
    distinct = as_text(texts, "y: expected class labels") if values is texts else np.array(values)
    return distinct[code]


def texts_of(model: Model) -> list[str]:
    """Return the names of categorical features that were text in training."""
    known, names = model.table, model.feature_names
    if known is None or names is None:
        return []
    values = [known.values_of(j) for j in known.categorical]
    kinds = ["" if array is None else array.dtype.kind for array in values]
    return [names[j] for j, kind in zip(known.categorical, kinds, strict=True) if kind == "U"]


def pick_columns(table: DataFrame, model: Model, form: Format = CSV) -> DataFrame:
    """Return the columns that a model requires, or all columns if it has no feature names."""
    names = table.columns if model.feature_names is None else model.feature_names
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise CommandError(
            f"column {missing[0]!r} is required by the model but does not exist; "
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
    """Raise CommandError if a column has text, infinities or integers that float64 would round.

    Other types, such as dates, are rejected when the table is converted.
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
            f"column {name!r}: expected finite numbers, got infinity in row "
            f"{int(np.argmax(infinite)) + 1}"
        )


def _refuse_texts(column: DataFrame, name: str, form: Format, *, can_drop: bool) -> None:
    """Raise a CommandError with a hint for the first text in a numeric column."""
    texts = column.map(lambda value: form.pointed(value) if isinstance(value, str) else value)
    numbers = require("pandas", "cli").to_numeric(texts, errors="coerce")
    wrong = (numbers.isna() & column.notna()).to_numpy()
    if not wrong.any():  # numbers stored as text
        wrong = column.map(lambda value: isinstance(value, str)).to_numpy()
    row = int(np.argmax(wrong))
    other = form._replace(decimal="," if form.decimal == "." else ".")
    hint = ""
    if _NUMBER.fullmatch(other.pointed(str(column.iloc[row]))):
        word = "comma" if other.decimal == "," else "point"
        hint = f"; for a decimal {word} pass --decimal {other.decimal}"
    else:
        cell, quoted = shlex.quote(str(column.iloc[row])), shlex.quote(_in_list(name))
        hint = f"; if this is a missing value, pass --missing-values {cell}"
        hint += f"; or pass --categorical-features {quoted} or --drop {quoted}" if can_drop else ""
    raise CommandError(
        f"column {name!r} is not numeric: got {column.iloc[row]!r} in row {row + 1}{hint}"
    )


def _in_list(name: str) -> str:
    """Quote a name with a comma for use in a comma-separated list."""
    return f'"{name}"' if "," in name else name


def _check_large(column: DataFrame, name: str) -> None:
    """Raise CommandError for the first integer that float64 cannot represent."""
    row = first_inexact(column.to_numpy()) if column.dtype.kind in "iu" else -1
    if column.dtype.kind not in "biuf":
        # pandas reads a column with integers beyond 64 bits as objects or text.
        texts = (str(value).strip() if isinstance(value, str | int) else "" for value in column)
        large = (i for i, text in enumerate(texts) if _is_large(text))
        row = next(large, -1)
    if row >= 0:
        raise CommandError(
            f"column {name!r}: got {column.iloc[row]} in row {row + 1}, an integer that a float "
            "cannot represent exactly; write it with a decimal point to accept rounding"
        )


def _is_large(text: str) -> bool:
    return len(text) > 15 and bool(_INTEGER.fullmatch(text)) and int(text) != float(text)


def _check_present(table: DataFrame, name: str) -> None:
    missing = table[name].isna().to_numpy()
    if missing.any():
        raise CommandError(
            f"column {name!r}: missing value in row {int(np.argmax(missing)) + 1}; impute it or "
            "drop the row"
        )


def described(known: Table | None, names: tuple[str, ...] | None) -> list[str]:
    """Return lines that describe the features, unless all were numeric without missing values."""
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
    """Return a text that lists column names and suggests a name similar to `wanted`."""
    shown = ", ".join(map(str, names[:max_names]))
    more = "" if len(names) <= max_names else f", ... ({len(names)} columns)"
    near = get_close_matches(wanted, map(str, names), 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    hint = "; check --sep" if len(names) == 1 else ""
    return f"columns: {shown}{more}{meant or hint}"
