"""What the text of an option stands for; argparse tells of what is none."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any, TypeAlias

from pboost.observation.sampling import MOST_DRAWS
from pboost.values import check_integer

Reader: TypeAlias = Callable[[str], Any]


def integer(least: int) -> Reader:
    """Return what reads an integer of at least so much."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise ArgumentTypeError(f"expected an integer of at least {least}, got {text!r}")
        return value

    return read


def number(where: str, holds: Callable[[float], bool]) -> Reader:
    """Return what reads a number for which a condition holds."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not holds(value):
            raise ArgumentTypeError(f"expected a number{where}, got {text!r}")
        return value

    return read


count, finite = integer(1), number("", math.isfinite)
share = number(" above 0, at most 1", lambda x: 0 < x <= 1)


def draws(text: str) -> int | str:
    """Return a number of draws, or how they end."""
    if text == "first-increase":
        return text
    try:
        return check_integer("draws", int(text), least=1, most=MOST_DRAWS)
    except ValueError:
        raise ArgumentTypeError(
            f"expected first-increase or an integer from 1 to {MOST_DRAWS}, got {text!r}"
        ) from None


def columns(text: str) -> Any:
    """Return a number of columns, or how it follows from that of all."""
    if text in ("sqrt", "log2"):
        return text
    return None if text == "all" else count(text)


def shape(text: str) -> tuple[int, ...]:
    """Return integers of at least 1."""
    return tuple(count(size) for size in text.split(","))


#: How options are read that are not any integer from 1, number or text, and what stands for them.
READERS: dict[str, tuple[Reader, str]] = {
    "depth": (integer(0), "N"),
    "terms": (integer(2), "N"),
    "draws": (draws, "N"),
    "features_per_split": (columns, "K"),
    "shape": (shape, "N,N"),
    "smoothing": (number(" from 0 to 1", lambda x: 0 <= x <= 1), "X"),
    "learning_rate": (share, "X"),
    "subsample": (share, "X"),
    "fraction": (share, "X"),
    "target_certificate": (number(" between 0 and 1", lambda x: 0 < x < 1), "X"),
    "flip_rate": (number(" from 0, below 0.5", lambda x: 0 <= x < 0.5), "X"),
    "validation": (number(" above 0, at most 0.5", lambda x: 0 < x <= 0.5), "X"),
    "sigma": (number(" above 0", lambda x: 0 < x < math.inf), "X"),
    "dense_gain": (number(" from 0", lambda x: 0 <= x < math.inf), "X"),
}


def is_readable(option: str, types: str) -> bool:
    """Return whether a text can stand for an option of these types."""
    return option in READERS or not {"int", "float", "str", "bool"}.isdisjoint(types.split(" | "))


def reader(option: str, types: str) -> tuple[Reader, str]:
    """Return what reads the text of an option of these types, and what stands for it."""
    kinds = types.split(" | ")
    is_number = "int" in kinds or "float" in kinds
    read_number = finite if "float" in kinds else count

    def read(text: str) -> Any:
        if text == "none" and "None" in kinds:
            return None
        if not is_number:
            return text
        try:
            return read_number(text)
        except ArgumentTypeError:
            if "str" in kinds:
                return text
            raise

    return READERS.get(option, (read, "N" if read_number is count and is_number else "X"))
