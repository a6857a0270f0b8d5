"""Files of tables: CSV in and out, Parquet in."""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from pboost.cli.errors import CommandError, UsageError, require
from pboost.cli.streams import STREAM, called, opened
from pboost.models.files import replace_file

#: pandas is optional and untyped.
DataFrame: TypeAlias = Any

_UNREADABLE = (ValueError, EOFError, zlib.error, gzip.BadGzipFile)
_GZIP_MAGIC = b"\x1f\x8b"
#: How files of spreadsheets begin: new ones, which are zip files, and old ones.
_SPREADSHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_LONGER_ROW = re.compile(r"in line (\d+), saw \d+|Length of header or names")
#: How Parquet files begin.
_PARQUET = b"PAR1"


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
        found = parquet.read_table(file)
    except (OSError, ValueError) as error:
        raise CommandError(f"{path}: not a readable Parquet file: {error}") from error
    _checked(None, found.column_names, path)
    table = found.to_pandas()
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
