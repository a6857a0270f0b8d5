"""Values that users pass: how messages quote them, and checks of the plainest kinds."""

from __future__ import annotations

import operator
from inspect import isbuiltin, isfunction
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The longest text of a value that a message quotes.
LONGEST = 80


def shown(value: Any) -> str:
    """Return a value as a message quotes it: itself if that is short, else what kind it is."""
    if isinstance(value, int) and value.bit_length() > 3 * LONGEST:
        return f"an integer of {value.bit_length()} bits"  # Python may refuse to write it
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isfunction(value) or isbuiltin(value):
        return f"the function {value.__name__}"
    is_long = isinstance(value, list | tuple | set | dict) and len(value) > LONGEST
    try:
        text = "" if is_long else repr(value)
    except Exception:  # of an object of the user's
        text = ""
    if text and len(text) <= LONGEST and "\n" not in text:
        return text
    kind = type(value).__name__
    article = "an" if kind[0].lower() in "aeiou" else "a"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{article} {kind} of shape {shape}"
    return f"{article} {kind} of {len(value)} items" if is_long else f"{article} {kind}"


def uncalled(value: Any) -> str:
    """Return what a message adds where a function or class stands in place of what it returns."""
    is_one = isfunction(value) or isinstance(value, type)
    return f"; call it: {value.__name__}(...)" if is_one else ""


def check_flag(name: str, value: Any) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: expected True or False, got {shown(value)}")
    return bool(value)


def check_position(name: str, value: Any, n: int) -> int:
    """Return an index into n things, which may count from their end, as one from 0 on."""
    try:
        index = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer or a slice, got {shown(value)}") from None
    if not -n <= index < n:
        raise IndexError(f"{name}: expected a number below {n}, got {index}")
    return index % n


def refuse_masked(name: str, values: Any) -> None:
    """Raise ValueError if values are hidden by a mask of NumPy; masks that hide none are passed."""
    rows = values if isinstance(values, list | tuple) else (values,)
    for number, row in enumerate(rows):
        if isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row):
            hidden = np.argwhere(np.ma.getmaskarray(row))
            at = hidden[0].tolist()
            place = at if row is values else [number, *at]
            raise ValueError(
                f"{name}: expected an array without a mask, got one that hides "
                f"{len(hidden)} values, the first at {place}; leave their rows out, or "
                "fill them in with its method filled()"
            )


def as_array(name: str, value: Any) -> NDArray[Any]:
    """Return `value` as an array; ValueError where it is none, rows of different lengths, say, or
    hides values by a mask.
    """
    refuse_masked(name, value)
    try:
        return np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name}: expected an array: {error}") from None
