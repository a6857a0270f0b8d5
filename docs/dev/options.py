"""Write the table of parameters with their names in other libraries.

python docs/dev/options.py     writes docs/parameters_table.rst
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pboost as pb
from pboost.values.parameter_aliases import PEERS

TABLE = Path(__file__).resolve().parents[1] / "parameters_table.rst"
#: Arguments that are not options.
DATA = ("X", "y", "options")
BUILDERS = {
    **{name: getattr(pb, name) for name in pb.__all__ if name.startswith("fit_")},
    "continue_fit": pb.continue_fit,
    "cross_validate": pb.cross_validate,
}
CHOICES = {
    **{f"weak.{name}": make for name, make in pb.weak.KINDS.items()},
    **{f"observation.{name}": make for name, make in pb.observation.KINDS.items()},
}


def owners(functions: Mapping[str, Callable[..., Any]]) -> dict[str, list[str]]:
    """Return the names of the functions that have each option, in the order of `PEERS`."""
    names: dict[str, list[str]] = {}
    for function, call in functions.items():
        for option in inspect.signature(call).parameters.keys() - set(DATA):
            names.setdefault(option, []).append(function)
    return dict(sorted(names.items(), key=lambda item: [*PEERS].index(item[0])))


def listed(names: list[str], every: list[str]) -> str:
    """Return the names as text, or "all but ..." if at most four names are missing."""
    others = [name for name in every if name not in names]
    if len(others) > 4:
        return ", ".join(names)
    return f"all but {', '.join(others)}" if others else "all"


def listing(widths: str, cells: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table. The first row of cells is the heading."""
    yield from ("", ".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", "")
    for row in cells:
        for column, cell in enumerate(row):
            yield f"   {' ' if column else '*'} - {cell}".rstrip()


def literal(names: str) -> str:
    """Return the names in a text such as "a, b", each marked as code."""
    return ", ".join(f"``{name}``" for name in names.split(", ") if name)


def with_note(option: str) -> str:
    """Return the option as code, followed by its note."""
    note = PEERS[option].note
    return f"``{option}``" + f", {note}" * bool(note)


def rows(functions: Mapping[str, Callable[..., Any]], of: str) -> Iterator[str]:
    """Yield the lines of the table of all options."""
    cells = [["parameter", of, "scikit-learn", "LightGBM", "XGBoost"]]
    for option, having in owners(functions).items():
        names = [literal(text) for text in PEERS[option][:3]]
        cells.append([with_note(option), listed(having, [*functions]), *names])
    return listing("24 34 20 24 22", cells)


def tables() -> dict[Path, str]:
    """Return a mapping from the file of the table to its text."""
    title = ["", "Weak learners and observation models", "-" * 36]
    lines = [*rows(BUILDERS, "functions"), *title, *rows(CHOICES, "functions")]
    return {TABLE: "\n".join([":orphan:", "", ".. tables start here", *lines, ""])}


if __name__ == "__main__":
    for path, text in tables().items():
        path.write_text(text, encoding="utf-8")
