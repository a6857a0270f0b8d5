"""Texts of JSON from anywhere: read only where what they say takes not much more than the text."""

from __future__ import annotations

import json
import re
from typing import Any

#: How deep lists and tables can lie within one another.
MAX_NESTING = 32
#: How many times its length what the header of a file says may take.
TIMES = 8
#: What a text may say beyond so many times its length.
FREE_BYTES = 8 << 20
#: What takes memory: strings, lists, tables, and numbers that Python does not keep at hand.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{\]}]|-[-+.\deE]+|\d[-+.\deE]{2,}', re.DOTALL)
#: Bytes that a thing takes, and its place in a list or a table, by its first character.
_BYTES = {"[": 112, "{": 280, '"': 72, "]": 0, "}": 0}
_NUMBER = 42
#: Bytes that a character takes at most, in a text or string that has one that is not ASCII.
_WIDE = 4


def parse(content: str | bytes | memoryview, times: int) -> Any:
    """Return what a text of JSON says.

    Parameters
    ----------
    content : str, or bytes
        The text; bytes are UTF-8.
    times : int
        It is refused where what it says would take more than so many times its length, and
        `FREE_BYTES`: that is found before anything is made of it.

    Raises
    ------
    ValueError
        If it is no JSON, says too much, or has lists and tables more than `MAX_NESTING` deep in
        the outermost one.
    """
    try:
        text = content if isinstance(content, str) else str(content, "utf-8-sig", "surrogatepass")
    except ValueError as error:
        raise ValueError(f"expected JSON: {error}") from None
    free = times - _WIDE * (not text.isascii()) - _WIDE * ("\\u" in text or not text.isascii())
    depth, left = 0, max(free, 0) * len(text) + FREE_BYTES
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        left -= _BYTES.get(first, _NUMBER)
        depth += (first in "[{") - (first in "]}")
        if depth > MAX_NESTING + 1:
            raise ValueError(f"is nested more than {MAX_NESTING} deep")
        if left < 0:
            raise ValueError(
                f"says more than {times} times its {len(text)} characters, and {FREE_BYTES} bytes"
            )
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"expected JSON: {error}") from None
