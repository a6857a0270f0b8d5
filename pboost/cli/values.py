"""What the text of an option stands for; argparse tells of what is none."""

from __future__ import annotations

import argparse
import math

from pboost.observation.sampling import MOST_DRAWS
from pboost.values import check_integer


def _integer(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"expected an integer of at least {least}, got {text!r}")
    return value


def count(text: str) -> int:
    """Return an integer of at least 1."""
    return _integer(text, 1)


def depth(text: str) -> int:
    """Return an integer of at least 0."""
    return _integer(text, 0)


def terms(text: str) -> int:
    """Return an integer of at least 2."""
    return _integer(text, 2)


def draws(text: str) -> int | str:
    """Return a number of draws, or how they end."""
    if text == "first-increase":
        return text
    try:
        return check_integer("draws", int(text), least=1, most=MOST_DRAWS)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected first-increase or an integer from 1 to {MOST_DRAWS}, got {text!r}"
        ) from None


def columns(text: str) -> str | int | None:
    """Return a number of columns, or how it follows from that of all."""
    if text in ("sqrt", "log2"):
        return text
    return None if text == "all" else count(text)


def folds(text: str) -> int:
    """Return an integer of at least 2."""
    return _integer(text, 2)


def seed(text: str) -> int:
    """Return an integer of at least 0."""
    return _integer(text, 0)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def share(text: str) -> float:
    """Return a number from 0 to 1."""
    value = _number(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, got {text!r}")
    return value


def rate(text: str) -> float:
    """Return a number above 0, at most 1."""
    value = _number(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0, at most 1, got {text!r}")
    return value


def target(text: str) -> float:
    """Return a number between 0 and 1."""
    value = _number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 1, got {text!r}")
    return value


def flip_rate(text: str) -> float:
    """Return a number from 0, below 0.5."""
    value = _number(text)
    if not 0 <= value < 0.5:
        raise argparse.ArgumentTypeError(f"expected a number from 0, below 0.5, got {text!r}")
    return value


def held_out(text: str) -> float:
    """Return a number above 0, at most 0.5."""
    value = _number(text)
    if not 0 < value <= 0.5:
        raise argparse.ArgumentTypeError(f"expected a number above 0, at most 0.5, got {text!r}")
    return value


def sigma(text: str) -> float:
    """Return a finite number above 0."""
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return value


def gain(text: str) -> float:
    """Return a finite number from 0."""
    value = _number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number from 0, got {text!r}")
    return value


def shape(text: str) -> tuple[int, ...]:
    """Return integers of at least 1."""
    return tuple(count(size) for size in text.split(","))
