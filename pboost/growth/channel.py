"""Messages between a fit and what answers for rows elsewhere: checked bytes, and no pickles.

A message is a digest under the key of the run, the length of a description, the description, and
the bytes of arrays. Who does not have the key can neither make a message nor change one.
"""

from __future__ import annotations

import functools
import hmac
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

#: Bytes of a digest, and of the length of a description.
DIGEST, LENGTH = 16, 4
_JSON = json.JSONEncoder(separators=(",", ":"))
_DTYPES = ("<i8", "<f8", "<i4", "|u1", "|b1")


class MessageError(Exception):
    """Bytes are no message of this run."""


def records_of(kind: type[Any]) -> dict[str, type[Any]]:
    """Return the records that shards of a kind send and take.

    They are those of the modules of its classes, and its `RECORDS`.
    """
    modules = [of.__module__ for of in kind.__mro__ if of is not object]
    return {of.__name__: of for of in getattr(kind, "RECORDS", ())} | {
        name: of
        for module in modules
        for name, of in vars(sys.modules[module]).items()
        if isinstance(of, type) and of.__module__ in modules and _names(of) is not None
    }


@functools.cache
def _names(kind: type[Any]) -> tuple[str, ...] | None:
    """Return the names of the fields of a record, None of what is none."""
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    found: tuple[str, ...] | None = getattr(kind, "_fields", None)
    return found


def pack(value: Any, key: bytes) -> bytearray:
    """Return the message of numbers, text, arrays, and tuples, lists and records of them."""
    arrays: list[Any] = []
    described = _JSON.encode(_described(value, arrays)).encode()
    length = len(described).to_bytes(LENGTH, "little")
    message = bytearray().join([bytes(DIGEST), length, described, *arrays])
    message[:DIGEST] = _digest(memoryview(message)[DIGEST:], key)
    return message


def _digest(content: Any, key: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")[:DIGEST]


def _described(value: Any, arrays: list[Any]) -> Any:
    if isinstance(value, np.ndarray):
        stored = value.dtype.newbyteorder("<")
        arrays.append(np.ascontiguousarray(value, dtype=stored))
        return {"array": [stored.str, list(value.shape)]}
    if isinstance(value, np.generic):
        return value.item()
    if (names := _names(type(value))) is not None:  # type: ignore[arg-type]
        held = [_described(getattr(value, name), arrays) for name in names]
        return {"record": [type(value).__name__, held]}
    if isinstance(value, tuple | list):
        held = [_described(one, arrays) for one in value]
        return held if isinstance(value, list) else {"tuple": held}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a message cannot hold a {type(value).__name__}")


def unpack(message: Any, key: bytes, records: Mapping[str, type[Any]]) -> Any:
    """Return what a message holds.

    Raises
    ------
    MessageError
        If it is cut short, has been made with another key, or is no message at all.
    """
    if not isinstance(message, bytes | bytearray | memoryview):
        raise MessageError(f"expected bytes, got {type(message).__name__}")
    view = memoryview(message)
    content = view[DIGEST:]
    if not hmac.compare_digest(bytes(view[:DIGEST]), _digest(content, key)):
        raise MessageError("the digest is another one")
    end = LENGTH + int.from_bytes(content[:LENGTH], "little")
    if end > len(content):
        raise MessageError("the description is cut short")
    try:
        described = json.loads(str(content[LENGTH:end], "utf-8"))
        rest, found = _made(described, content[end:], records)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise MessageError(f"the description is none: {error}") from None
    if len(rest):
        raise MessageError(f"{len(rest)} bytes are left over")
    return found


def _made(
    described: Any, rest: memoryview, records: Mapping[str, type[Any]]
) -> tuple[memoryview, Any]:
    """Return the bytes of arrays that have not been read, and the value."""
    if isinstance(described, list):
        found = []
        for one in described:
            rest, made = _made(one, rest, records)
            found.append(made)
        return rest, found
    if not isinstance(described, dict):
        return rest, described
    ((kind, told),) = described.items()
    if kind == "array":
        return _array(told, rest)
    if kind == "tuple" and isinstance(told, list):
        rest, held = _made(told, rest, records)
        return rest, tuple(held)
    if kind == "record":
        name, values = told
        rest, held = _made(values, rest, records)
        return rest, records[name](*held)
    raise ValueError(f"unknown kind {kind!r}")


def _array(told: Any, rest: memoryview) -> tuple[memoryview, Any]:
    name, shape = told
    if name not in _DTYPES or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
        raise ValueError("no array that is sent")
    dtype = np.dtype(name)
    size = math.prod(shape) * dtype.itemsize
    if size > len(rest):
        raise ValueError("an array is cut short")
    found = np.frombuffer(rest[:size], dtype=dtype).reshape(shape)
    return rest[size:], found.astype(dtype.newbyteorder("="))
