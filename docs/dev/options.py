"""The tables of options, made of the signatures of builders and of what peers call options.

python docs/dev/options.py     writes docs/user/options_table.rst, by our names, and by those of
                               others options_sklearn_table.rst and options_boosters_table.rst
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pboost as pb
from pboost.values.peers import ELSEWHERE, PEERS

USER = Path(__file__).resolve().parents[1] / "user"
#: What is no option: data.
DATA = ("X", "y", "options")
BUILDERS = {
    **{
        name.removeprefix("fit_"): getattr(pb, name)
        for name in pb.__all__
        if name.startswith("fit_")
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


def listing(widths: str, cells: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table of cells, its heading first."""
    yield from ("", ".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", "")
    for row in cells:
        for column, cell in enumerate(row):
            yield f"   {' ' if column else '*'} - {cell}".rstrip()


def literal(names: str) -> str:
    """Return names "a, b", each as code."""
    return ", ".join(f"``{name}``" for name in names.split(", ") if name)


def with_note(option: str) -> str:
    """Return an option and what is to be known of it."""
    note = PEERS[option].note
    return f"``{option}``" + f", {note}" * bool(note)


def rows(functions: Mapping[str, Callable[..., Any]], of: str) -> Iterator[str]:
    """Yield the lines of the table of all options."""
    cells = [["option", of, "scikit-learn", "lightgbm", "xgboost"]]
    for option, having in owners(functions).items():
        names = [literal(text) for text in PEERS[option][:3]]
        cells.append([with_note(option), listed(having, [*functions]), *names])
    return listing("24 34 20 24 22", cells)


def sklearn_rows() -> Iterator[str]:
    """Yield the lines of the table of what scikit-learn calls options, in alphabetical order."""
    having = owners(BUILDERS | CHOICES)
    found: dict[str, list[tuple[str, str]]] = {}
    for option, peers in PEERS.items():
        for name in filter(None, peers.sklearn.split(", ")):
            same = [h for h in having[option] if h in BUILDERS] or having[option]
            found.setdefault(name, []).append((with_note(option), listed(same, [*BUILDERS])))
    for name in ("ccp_alpha", "oob_score", "warm_start"):
        said = re.sub("`([^`]+)`", r"``\1``", ELSEWHERE[name].removeprefix("use "))
        found[name] = [(re.sub(r"pb\.\w+\(.*?\)", r"``\g<0>``", said), "")]
    cells = [["scikit-learn", "here", "of"]]
    for name in sorted(found):
        for k, (here, of) in enumerate(found[name]):
            cells.append(["" if k else f"``{name}``", here, of])
    return listing("24 40 40", cells)


def boosters_rows() -> Iterator[str]:
    """Yield the lines of the table of what lightgbm and xgboost call options of sums of trees."""
    options = inspect.signature(pb.fit_gradient_boosting).parameters
    known = {name for option in options if option in PEERS for name in PEERS[option].names()}
    cells = [["lightgbm", "xgboost", "here", "default, or who has it"]]
    for option, having in owners(BUILDERS).items():
        peers = PEERS[option]
        theirs = peers._replace(sklearn="", catboost="").names() - {""}
        if option in options and theirs:
            default = f"``{options[option].default!r}``".replace("'", '"')
        elif theirs - known:
            default = listed(having, [*BUILDERS])
        else:
            continue
        cells.append([literal(peers.lightgbm), literal(peers.xgboost), with_note(option), default])
    return listing("30 26 30 22", cells)


def tables() -> dict[Path, str]:
    """Return the tables by the files in which they are."""
    lines = {
        "options": [*rows(BUILDERS, "builders"), *rows(CHOICES, "made by")],
        "options_sklearn": sklearn_rows(),
        "options_boosters": boosters_rows(),
    }
    return {
        USER / f"{name}_table.rst": "\n".join([":orphan:", "", ".. tables start here", *of, ""])
        for name, of in lines.items()
    }


if __name__ == "__main__":
    for path, text in tables().items():
        path.write_text(text, encoding="utf-8")
