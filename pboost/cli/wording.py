"""Messages of the library in the words of the command line: its options, and rows from 1."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pboost.cli.options import OWNERS, flag
from pboost.data.read.levels import NAMED
from pboost.data.read.numbers import NAME_OR_ENCODE

#: Parameters that are typed under names of their own.
TYPED = {"n_threads": "threads", "rng": "seed", "sample_weight": "weight"}
#: Further arguments by which the library names what is typed.
_ARGUMENTS = {**TYPED, "y": "target", "stop": "draws", "rate": "flip_rate"}
#: Sentences that name an argument otherwise than as ``name: `` or ``name="value"``.
_SENTENCES = {
    NAMED: "--categorical says that it is one",
    NAME_OR_ENCODE: "; --categorical names columns of categories",
}
#: An option with its value, quoted text, a row, and the argument that a message is about.
_PARTS = re.compile(
    r"""\b(?P<option>\w+)=(?:"(?P<value>[^"]*)"|(?P<word>\w+))|(?<!\w)'[^']*'|\brow\ (?P<row>\d+)\b
    |^(?P<argument>\w+):""",
    re.VERBOSE,
)


def flagged(name: str) -> str:
    """Return a parameter as it is typed."""
    return flag(TYPED.get(name, name))


def worded(message: str) -> str:
    """Return what the library says as the command line says it."""
    for theirs, ours in _SENTENCES.items():
        message = message.replace(theirs, ours)
    return _PARTS.sub(_part, message.removeprefix("X: "))


def _part(match: re.Match[str]) -> str:
    if match["row"] is not None:
        return f"row {int(match['row']) + 1}"
    name = match["option"] or match["argument"]
    if name is None:
        return match[0]
    name = _ARGUMENTS.get(name, name)
    if name not in (*OWNERS, *_ARGUMENTS.values()):
        return match[0]
    if match["argument"]:
        return f"{flag(name)}:"
    return f"{flag(name)} {match['value'] or match['word']}"


@contextmanager
def told_warnings() -> Iterator[None]:
    """Write each warning for users as one line on standard error."""

    def tell(message: Warning | str, category: Any, *where: Any, **more: Any) -> None:
        sys.stderr.write(f"pboost: warning: {' '.join(worded(str(message)).split())}\n")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = tell
        yield
