"""CSV files in and out."""

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
from numpy.typing import NDArray

from pboost.cli.errors import CommandError, UsageError, require
from pboost.cli.streams import STREAM, called, opened
from pboost.data.numbers import first_inexact
from pboost.models._safe_files import replace_file

#: pandas is optional and untyped.
DataFrame: TypeAlias = Any

_UNREADABLE = (ValueError, EOFError, zlib.error, gzip.BadGzipFile)
_GZIP_MAGIC = b"\x1f\x8b"
#: How files of spreadsheets begin: new ones, which are zip files, and old ones.
_SPREADSHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_LONGER_ROW = re.compile(r"in line (\d+), saw \d+|Length of header or names")
_TRUTH = {"true": True, "false": False}
_INTEGER = re.compile(r"\s*(0|[+-]?[1-9][0-9]*)\s*")
_NUMBER = re.compile(r"\s*[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")


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
    """

    sep: str = ","
    encoding: str | None = None
    decimal: str = "."

    def pointed(self, text: str) -> str:
        """Return a number with a point before its fraction, and another's point as a comma."""
        return text.translate(str.maketrans("." + self.decimal, self.decimal + "."))


CSV = Format()


def read_table(path: str, form: Format = CSV, labels: str | None = None) -> DataFrame:
    """Read a CSV file with a header line, plain or gzipped; a column of labels as texts."""
    pandas = require("pandas", "cli")
    how, source, path = form._asdict(), path, called(path)
    with opened(source) as raw, warnings.catch_warnings():
        # Rows longer than the header would be cut with no more than a warning.
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        zipped = raw.peek(2)[:2] == _GZIP_MAGIC
        if raw.peek(4).startswith(_SPREADSHEETS):
            raise CommandError(
                f"{path}: looks like a spreadsheet (or another zip file); save it as CSV"
            )
        file: Any = gzip.GzipFile(fileobj=raw) if zipped else raw
        if not raw.seekable():
            file = io.BytesIO(file.read())
        header = None
        try:
            header = pandas.read_csv(
                file, header=None, nrows=1, dtype=str, keep_default_na=False, **how
            )
            file.seek(0)
            exact = exact_numbers(pandas.__version__)
            texts = None if labels is None else {labels: str}
            table = pandas.read_csv(
                file, index_col=False, low_memory=False, dtype=texts, **exact, **how
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
    names = Counter(name for name in header.iloc[0].tolist() if name)
    twice = next((name for name in names if names[name] > 1), None)
    if twice is not None:
        raise CommandError(f"{path}: two columns are named {twice!r}")
    if table.empty:
        raise CommandError(f"{path}: no rows")
    return table


def exact_numbers(pandas_version: str) -> dict[str, str]:
    """Options with which ``read_csv`` gives numbers the value that Python gives them."""
    major, minor = map(int, pandas_version.split(".")[:2])
    # Since 3.1 it always does, and the option is deprecated.
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def split_table(
    table: DataFrame,
    target: str,
    weight: str | None,
    form: Format = CSV,
    *,
    drop: Sequence[str] = (),
    is_regression: bool = False,
) -> tuple[DataFrame, NDArray[Any], NDArray[np.float64] | None]:
    """Return features, labels or numbers to be predicted, and sample weights of a table."""
    named = {"--target": target} | ({} if weight is None else {"--weight": weight})
    if weight == target:
        raise UsageError("--target and --weight name the same column")
    for option, name in named.items():
        if name in drop:
            raise UsageError(f"{option} and --drop name the same column")
    for name in (*named.values(), *drop):
        if name not in table.columns:
            raise CommandError(f"there is no column {name!r}; {_listing(table.columns, name)}")
    table = table.drop(columns=list(drop))
    features = table.drop(columns=[*named.values()])
    if features.shape[1] == 0:
        others = " and ".join(map(repr, (*named.values(), *drop)))
        raise CommandError(f"there is no column besides {others}")
    numbers = table if is_regression else table.drop(columns=target)
    check_numeric(numbers, form, droppable=features.columns)
    _check_present(table, target)
    y = table[target].to_numpy() if is_regression else _as_labels(table[target], form)
    return features, y, None if weight is None else table[weight].to_numpy(np.float64)


def _as_labels(column: DataFrame, form: Format) -> NDArray[Any]:
    """Return texts as they stand, or as the numbers or truth values that all of them are.

    Numbers that are written with zeros in front are names: ``01`` is not ``1``.
    """
    code, found = require("pandas", "cli").factorize(column)
    texts = [str(text) for text in found]
    values: list[Any] = texts
    if all(text.lower() in _TRUTH for text in texts):
        values = [_TRUTH[text.lower()] for text in texts]
    elif all(map(_NUMBER.fullmatch, pointed := [form.pointed(text) for text in texts])):
        # What a number would round is a name, too.
        values = texts if any(map(_is_large, texts)) else [float(text) for text in pointed]
        if all(map(_INTEGER.fullmatch, texts)):
            values = [int(text) for text in texts]
            values = values if min(values) >= -(2**63) and max(values) < 2**63 else texts
    return np.array(values)[code]


def pick_columns(table: DataFrame, names: tuple[str, ...] | None, form: Format = CSV) -> DataFrame:
    """Return the columns that a model reads, in its order; all of them if it knows no names."""
    if names is None:
        check_numeric(table, form)
        return table.to_numpy(np.float64)
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise CommandError(
            f"the model needs column {missing[0]!r}, which is not there; "
            f"{_listing(table.columns, missing[0])}"
        )
    chosen = table[list(names)]
    check_numeric(chosen, form)
    return chosen


def check_numeric(table: DataFrame, form: Format = CSV, droppable: Sequence[str] = ()) -> None:
    """Raise CommandError for the first column that does not hold finite numbers throughout."""
    for name in table.columns:
        column = table[name]
        _check_large(column, name)
        if column.dtype.kind not in "biuf":
            _refuse_texts(column, name, form, can_drop=name in droppable)
        _check_present(table, name)
        infinite = np.isinf(column.to_numpy(np.float64))
        if infinite.any():
            raise CommandError(
                f"column {name!r} has infinite values, the first in row "
                f"{int(np.argmax(infinite)) + 1}"
            )


def _refuse_texts(column: DataFrame, name: str, form: Format, *, can_drop: bool) -> None:
    """Raise CommandError for the first text, and say what can be done about it."""
    texts = column.map(lambda value: form.pointed(value) if isinstance(value, str) else value)
    numbers = require("pandas", "cli").to_numeric(texts, errors="coerce")
    row = int(np.argmax((numbers.isna() & column.notna()).to_numpy()))
    other = form._replace(decimal="," if form.decimal == "." else ".")
    hint = ""
    if _NUMBER.fullmatch(other.pointed(str(column.iloc[row]))):
        word = "comma" if other.decimal == "," else "point"
        hint = f"; a decimal {word}? --decimal {other.decimal}"
    elif can_drop:
        typed = f'"{name}"' if "," in name else name
        hint = (
            f"; leave it out with --drop {shlex.quote(typed)}, or replace it by columns of 0 and 1 "
            "(pboost.one_hot)"
        )
    raise CommandError(
        f"column {name!r} is not numeric: row {row + 1} holds {column.iloc[row]!r}{hint}"
    )


def _check_large(column: DataFrame, name: str) -> None:
    """Raise CommandError for the first integer that is no float64; all others have been read."""
    row = first_inexact(column.to_numpy()) if column.dtype.kind in "iu" else -1
    if column.dtype.kind not in "biuf":
        # Integers beyond 64 bits are left as such, or as texts, with all else in the column.
        texts = (str(value).strip() for value in column)
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


def _listing(names: Any, wanted: str, most: int = 10) -> str:
    """Return which columns there are, and what may be meant by one that is not."""
    shown = ", ".join(map(str, names[:most]))
    more = "" if len(names) <= most else f", ... ({len(names)} columns)"
    near = get_close_matches(wanted, map(str, names), 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    hint = "; see --sep" if len(names) == 1 else ""
    return f"there are {shown}{more}{meant or hint}"
