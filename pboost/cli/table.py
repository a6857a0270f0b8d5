"""CSV files in and out."""

from __future__ import annotations

import gzip
import os
import sys
import warnings
import zlib
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._files import replace_file
from pboost.cli.errors import CommandError, UsageError, require

#: pandas is optional and untyped.
DataFrame: TypeAlias = Any

_UNREADABLE = (ValueError, EOFError, zlib.error, gzip.BadGzipFile)
_GZIP_MAGIC = b"\x1f\x8b"


def read_table(path: str) -> DataFrame:
    """Read a CSV file with a header line, plain or gzipped."""
    pandas = require("pandas", "cli")
    with open(path, "rb") as raw, warnings.catch_warnings():
        # Rows longer than the header would be cut with no more than a warning.
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        zipped = raw.peek(2)[:2] == _GZIP_MAGIC
        file: Any = gzip.GzipFile(fileobj=raw) if zipped else raw
        try:
            exact = exact_numbers(pandas.__version__)
            table = pandas.read_csv(file, index_col=False, low_memory=False, **exact)
        except (*_UNREADABLE, pandas.errors.ParserWarning) as error:
            raise CommandError(f"{path}: not a readable CSV file: {error}") from error
    if table.empty:
        raise CommandError(f"{path}: no rows")
    return table


def exact_numbers(pandas_version: str) -> dict[str, str]:
    """Options with which ``read_csv`` gives numbers the value that Python gives them."""
    major, minor = map(int, pandas_version.split(".")[:2])
    # Since 3.1 it always does, and the option is deprecated.
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def split_table(
    table: DataFrame, target: str, weight: str | None
) -> tuple[DataFrame, NDArray[Any], NDArray[np.float64] | None]:
    """Return features, labels and sample weights of a table."""
    if weight == target:
        raise UsageError("--target and --weight name the same column")
    named = [target] if weight is None else [target, weight]
    for name in named:
        if name not in table.columns:
            raise CommandError(f"there is no column {name!r}; there are {_listing(table.columns)}")
    features = table.drop(columns=named)
    if features.shape[1] == 0:
        raise CommandError(f"there is no column besides {' and '.join(map(repr, named))}")
    check_numeric(table[[c for c in table.columns if c != target]])
    _check_present(table, target)
    labels = table[target]
    numeric = labels.dtype.kind in "biuf"
    y = labels.to_numpy() if numeric else np.array([str(v) for v in labels])
    return features, y, None if weight is None else table[weight].to_numpy(np.float64)


def pick_columns(table: DataFrame, names: tuple[str, ...] | None) -> DataFrame:
    """Return the columns that a model reads, in its order; all of them if it knows no names."""
    if names is None:
        check_numeric(table)
        return table.to_numpy(np.float64)
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise CommandError(f"the model needs column {missing[0]!r}, which is not there")
    chosen = table[list(names)]
    check_numeric(chosen)
    return chosen


def check_numeric(table: DataFrame) -> None:
    """Raise CommandError for the first column that does not hold finite numbers throughout."""
    pandas = require("pandas", "cli")
    for name in table.columns:
        column = table[name]
        if column.dtype.kind not in "biuf":
            strange = pandas.to_numeric(column, errors="coerce").isna() & column.notna()
            row = int(np.argmax(strange.to_numpy()))
            raise CommandError(
                f"column {name!r} is not numeric: row {row + 1} holds {column.iloc[row]!r}"
            )
        _check_present(table, name)
        infinite = np.isinf(column.to_numpy(np.float64))
        if infinite.any():
            raise CommandError(
                f"column {name!r} has infinite values, the first in row "
                f"{int(np.argmax(infinite)) + 1}"
            )


def _check_present(table: DataFrame, name: str) -> None:
    missing = table[name].isna().to_numpy()
    if missing.any():
        raise CommandError(
            f"column {name!r} has missing values, the first in row {int(np.argmax(missing)) + 1}"
        )


def write_table(table: DataFrame, path: str | None) -> None:
    """Write a CSV file, all of it or none; to standard output if there is no path."""
    text = table.to_csv(index=False, lineterminator="\n")
    if path is None:
        write_text(text)
        return
    content = text.encode()
    if path.endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    replace_file(path, content)


def write_text(text: str) -> None:
    """Write to standard output, whatever characters it can show."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def check_output(path: str, *inputs: str) -> None:
    """Fail before the work rather than after it where `path` cannot be written."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise CommandError(f"{path}: there is no directory {folder}")
    if os.path.isdir(path):
        raise CommandError(f"{path}: is a directory")
    for name in inputs:
        if os.path.exists(path) and os.path.exists(name) and os.path.samefile(path, name):
            raise UsageError(f"-o would overwrite the input {name}")


def _listing(names: Any, most: int = 10) -> str:
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} columns)"
