"""Parse JSON of unknown origin with limits on nesting and memory."""

from __future__ import annotations

import json
import re
from typing import Any

#: Maximum nesting depth of arrays and objects.
MAX_NESTING = 32
#: Maximum memory of a parsed file header, as a multiple of its length.
TIMES = 8
#: Bytes of memory that any JSON text may use, in addition to the multiple of its length.
FREE_BYTES = 8 << 20
#: Tokens that allocate memory: strings, arrays, objects, and numbers that Python does not cache.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{\]}]|-[-+.\deE]+|\d[-+.\deE]{2,}', re.DOTALL)
#: Bytes allocated per token, by the first character of the token. They include the slot of the
#: token in an array or object.
_BYTES = {"[": 112, "{": 280, '"': 72, "]": 0, "}": 0}
_NUMBER = 42
#: Bytes per character of a text with non-ASCII characters.
_WIDE = 4


def parse(content: str | bytes | memoryview, times: int) -> Any:
    """Parse JSON; reject it before parsing if it would need too much memory.

    Parameters
    ----------
    content : str, or bytes
        JSON text; bytes are UTF-8.
    times : int
        Limit on the memory of the result, as a multiple of the length of the text. `FREE_BYTES` are
        allowed in addition.

    Raises
    ------
    ValueError
        If the text is not JSON, needs too much memory, or is nested more than `MAX_NESTING` deep.
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
            raise ValueError(f"expected at most {MAX_NESTING} levels of nesting")
        if left < 0:
            raise ValueError(
                f"needs more memory than {times} bytes for each of {len(text)} characters"
            )
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"expected JSON: {error}") from None
