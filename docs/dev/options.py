"""The tables of options, made of the signatures of builders and of what peers call options.

python docs/dev/options.py     writes docs/user/options_table.rst
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pboost as pb
from pboost.values.peers import PEERS

TABLE = Path(__file__).resolve().parents[1] / "user" / "options_table.rst"
#: What is no option: data.
DATA = ("X", "y", "options")
BUILDERS = {
    **{
        name.removeprefix("fit_"): getattr(pb, name)
        for name in pb.__all__
        if name.startswith("fit_") and name != "fit_one_hot"
    },
    "continue_fit": pb.continue_fit,
    "cross_validate": pb.cross_validate,
}
CHOICES = {
    **{f"weak.{name}": make for name, make in pb.weak.KINDS.items()},
    **{f"observation.{name}": make for name, make in pb.observation.KINDS.items()},
}


def owners(functions: Mapping[str, Callable[..., Any]]) -> dict[str, list[str]]:
    """Return the functions that have each option, in the order of the table of peers."""
    found: dict[str, list[str]] = {}
    for function, call in functions.items():
        for option in inspect.signature(call).parameters.keys() - set(DATA):
            found.setdefault(option, []).append(function)
    return dict(sorted(found.items(), key=lambda item: [*PEERS].index(item[0])))


def listed(names: list[str], every: list[str]) -> str:
    """Return names, or, where they are most, those that are missing."""
    others = [name for name in every if name not in names]
    if len(others) > 4:
        return ", ".join(names)
    return f"all but {', '.join(others)}" if others else "all"


def rows(functions: Mapping[str, Callable[..., Any]], of: str) -> Iterator[str]:
    """Yield the lines of a table."""
    yield from ("", ".. list-table::", "   :header-rows: 1", "   :widths: 24 34 20 24 22", "")
    cells = [["option", of, "scikit-learn", "lightgbm", "xgboost"]]
    for option, having in owners(functions).items():
        peers = PEERS[option]
        names = [", ".join(f"``{n}``" for n in text.split(", ") if n) for text in peers[:3]]
        note = f", {peers.note}" * bool(peers.note)
        cells.append([f"``{option}``{note}", listed(having, [*functions]), *names])
    for row in cells:
        for column, cell in enumerate(row):
            yield f"   {' ' if column else '*'} - {cell}".rstrip()


def table() -> str:
    """Return the tables."""
    lines = [*rows(BUILDERS, "builders"), *rows(CHOICES, "made by")]
    return "\n".join([":orphan:", "", ".. tables start here", *lines, ""])


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
