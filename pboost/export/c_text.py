"""The words of a C file: identifiers, numbers, strings, comments and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.values import shown

#: What no identifier may be: the keywords of C99, C11, C23 and C++, and two names.
KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const
constexpr const_cast continue decltype default delete do double dynamic_cast else enum explicit
export extern false float for friend goto if inline int long main mutable namespace new noexcept
not not_eq nullptr operator or or_eq private protected public register reinterpret_cast restrict
return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
virtual void volatile wchar_t while xor xor_eq NAN INFINITY
"""
RESERVED = frozenset(KEYWORDS.split())
#: How long a prefix may be: C99 tells identifiers apart by their first 63 letters.
LONGEST_PREFIX = 31
#: Letters in a line of a table, and of a comment.
WIDTH = 100
#: Whole numbers below are shorter as decimals.
SHORT = 1000
#: The types of numbers.
TYPES = {
    "float64": "double",
    "float32": "float",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "int64": "int64_t",
}
_PLAIN = frozenset(map(ord, " !#$%&'()*+,-./:;<=>@[]^_`{|}~")) | frozenset(
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)


def check_prefix(prefix: Any) -> str:
    """Return what the names in a C file begin with, if it is an identifier of C."""
    if not isinstance(prefix, str):
        raise TypeError(f"prefix: expected a str, got {shown(prefix)}")
    said = f"got {shown(prefix)}"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", prefix, re.ASCII):
        raise ValueError(
            "prefix: expected an identifier of C, a letter followed by letters, digits and _, "
            f"{said}"
        )
    if len(prefix) > LONGEST_PREFIX:
        raise ValueError(f"prefix: expected at most {LONGEST_PREFIX} letters, {said}")
    if prefix in RESERVED:
        raise ValueError(f"prefix: expected no keyword of C or C++, {said}")
    return prefix


def literal(value: Any) -> str:
    """Return a number as C has it, with all its bits."""
    kind = np.asarray(value).dtype
    if kind.kind in "iub":
        whole = int(value)
        if whole == -(2**63):  # which is no literal: there is no number to negate
            return f"(-{2**63 - 1}LL - 1)"
        return f"{whole}" if abs(whole) < 2**31 else f"{whole}LL"
    end = "f" if kind == np.float32 else ""
    number = float(value)
    if np.isnan(number):
        return "NAN"
    if np.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    if number.is_integer() and abs(number) < SHORT and not (number == 0 and np.signbit(number)):
        return f"{int(number)}.0{end}"
    mantissa, exponent = number.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{int(exponent)}{end}"


def string(text: str) -> str:
    """Return a string as C has it; what is not plain ASCII as the octal numbers of its bytes."""
    found = (chr(b) if b in _PLAIN else f"\\{b:03o}" for b in text.encode("utf-8", "surrogatepass"))
    return f'"{"".join(found)}"'


def plain(text: Any) -> str:
    """Return text that can stand in a comment: of other than plain ASCII the numbers."""
    found = "".join(
        letter if ord(letter) in _PLAIN or letter == '"' else f"<{ord(letter):x}>"
        for letter in str(text)
    )
    return found.replace("*/", "* /").replace("/*", "/ *")


def comment(lines: Iterable[str]) -> str:
    """Return lines, made by `plain` where they are not the package's own, as a comment."""
    return "\n".join(["/*", *(f" * {line}".rstrip() for line in lines), " */"])


def narrow(values: Any) -> NDArray[Any]:
    """Return whole numbers in the smallest type that holds them all."""
    array = np.asarray(values)
    least, most = int(array.min(initial=0)), int(array.max(initial=0))
    for kind in (np.uint8, np.int8, np.uint16, np.int16, np.int32):
        if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
            return array.astype(kind)
    return array.astype(np.int64)


def table(name: str, values: NDArray[Any], *, static: bool = True) -> str:
    """Return a constant table; an empty one has one number that nobody reads."""
    flat = values.ravel() if values.size else np.zeros(1, dtype=values.dtype)
    return filled_table(f"{TYPES[flat.dtype.name]} {name}", [literal(v) for v in flat], static)


def filled_table(what: str, entries: list[str], static: bool = True) -> str:
    """Return a constant table of these entries."""
    lines, line = [], "   "
    for entry in entries:
        if len(line) + len(entry) + 2 > WIDTH:
            lines.append(line)
            line = "   "
        line += f" {entry},"
    body = "\n".join([*lines, line])
    return f"{'static ' if static else ''}const {what}[{len(entries)}] = {{\n{body}\n}};"
