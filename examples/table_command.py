"""What the examples that compare models on data sets share: their options, progress and output."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

#: Numbers by data set and by what was fitted to it.
Results = dict[str, dict[str, list[float]]]


def arguments(
    doc: str | None, quick: str, argv: list[str] | None, **more: str | tuple[int, str]
) -> tuple[argparse.ArgumentParser, argparse.Namespace, Path]:
    """Return the parser, the options and the folder of the data, or exit with what is missing.

    `more` are the help texts of further options, each the name of a file; or a default number, and
    the help text, or False, and that of a flag.
    """
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the data; default: $PBOOST_DATA")
    parser.add_argument("--rst", type=Path, help="file to write the tables to")
    parser.add_argument("--quick", action="store_true", help=quick)
    for name, of in more.items():
        if isinstance(of, str):
            parser.add_argument(f"--{name}", type=Path, help=of)
        elif of[0] is False:
            parser.add_argument(f"--{name}", action="store_true", help=of[1])
        else:
            parser.add_argument(f"--{name}", type=int, default=of[0], help=f"{of[1]}; {of[0]}")
    options = parser.parse_args(argv)
    folder = options.data or os.environ.get("PBOOST_DATA")
    if not folder:
        parser.error("no data: give --data FOLDER or set PBOOST_DATA to a folder of .csv.gz files")
    if not Path(folder).is_dir():
        parser.error(f"no data: {folder} is not a folder")
    if options.rst and not options.rst.parent.is_dir():
        parser.error(f"--rst: {options.rst.parent} is not a folder")
    return parser, options, Path(folder)


def each_timed(sets: Iterable[Any], work: Callable[[Any], Any]) -> list[Any]:
    """Return the results of `work` on each set, with a line of progress for each."""
    results = []
    for data in sets:
        start = time.perf_counter()
        results.append(work(data))
        print(f"{data.name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return results


def publish(text: str, rst: Path | None) -> None:
    """Print the tables, and write them to a file that a page of the documentation includes."""
    print(text)
    if rst:
        rst.write_text(f":orphan:\n\n.. tables start here\n\n{text}", encoding="utf-8")


def stored(path: Path | None) -> Results:
    """Return the outcomes of earlier runs."""
    if path is None or not path.exists():
        return {}
    parsed: Results = json.loads(path.read_text(encoding="utf-8"))
    return parsed


def write(path: Path | None, results: Results) -> None:
    """Store outcomes for a later run."""
    if path is not None:
        path.write_text(json.dumps(results, indent=1), encoding="utf-8")
