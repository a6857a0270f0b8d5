"""What counts as a finding, and what as a refusal in order."""

from __future__ import annotations

import linecache
import os
import re
import traceback
from pathlib import Path

import pboost as pb

PACKAGE = str(Path(pb.__file__).parent) + os.sep
#: What a function may raise where it has no answer.
REFUSALS = (TypeError, ValueError, NotImplementedError)


class Finding(Exception):  # noqa: N818 (it is what is looked for)
    """Something that must not be: `where` it was seen, and what."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where, self.what = where, what


def innermost(error: BaseException) -> tuple[str, int]:
    """Return the file and line from which an error came."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    return (frames[0].filename, frames[0].lineno or 0) if frames else ("", 0)


def place(error: BaseException) -> str:
    """Return the innermost line of the package from which an error came."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(PACKAGE) or frame.filename.startswith("pboost/"):
            name = frame.filename.removeprefix(PACKAGE).removeprefix("pboost/")
            return f"{name}, {frame.name}"
    return "outside the package"


def is_own(error: BaseException) -> bool:
    """Return whether the package raised this on purpose: its innermost line is a ``raise``."""
    filename, line = innermost(error)
    if not filename.startswith(PACKAGE):
        return False
    return linecache.getline(filename, line).lstrip().startswith("raise")


def judge(error: BaseException, where: str, names: tuple[str, ...] = ()) -> str:
    """Return the message of a refusal in order; anything else is a Finding.

    `names` are those of which a refusal must name one.
    """
    if isinstance(error, Finding):
        raise error
    kind, text = type(error), str(error)
    message = f"{kind.__name__}: {text[:300]} (from {place(error)})"
    own = kind.__module__.startswith("pboost.") and isinstance(error, REFUSALS)
    if not (kind in REFUSALS or own) or not text:
        raise Finding(where, message) from error
    if names:
        if not any(re.search(rf"\b{re.escape(name)}\b", text) for name in names):
            raise Finding(where, f"names none of {', '.join(names)}: {message}") from error
    elif not is_own(error):
        raise Finding(where, f"not the package's own refusal: {message}") from error
    return text
