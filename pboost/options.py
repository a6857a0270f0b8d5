"""Checks of options: numbers, choices, functions that are called back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pboost.values import shown

INT32_MAX = np.iinfo(np.int32).max


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        expected = ", ".join(map(repr, choices))
        raise ValueError(f"{name}: expected one of {expected}, got {shown(value)}")
    return value


def check_integer(name: str, value: Any, *, least: int, most: int = INT32_MAX) -> int:
    """Return `value` as an int in [least, most]."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}: expected an integer, got {shown(value)}")
    if not least <= value <= most:
        given = shown(int(value))
        raise ValueError(f"{name}: expected an integer from {least} to {most}, got {given}")
    return int(value)


def check_number(
    name: str,
    value: Any,
    *,
    least: float,
    most: float = math.inf,
    open_least: bool = False,
    open_most: bool = False,
) -> float:
    """Return `value` as a finite float in [least, most], an end left out where it is open."""
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        raise TypeError(f"{name}: expected a number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:  # of an integer
        number = math.inf
    inside = (least < number if open_least else least <= number) and (
        number < most if open_most else number <= most
    )
    if not (inside and math.isfinite(number)):
        # Infinity is no finite number: the end is open there.
        left, right = "(" if open_least else "[", ")" if open_most or most == math.inf else "]"
        raise ValueError(
            f"{name}: expected a number in {left}{least}, {most}{right}, got {shown(value)}"
        )
    return number


def check_callback(callback: Any) -> Callable[..., Any] | None:
    """Return `callback` if it is None or can be called."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback: expected a function or None, got {shown(callback)}")
    return callback


def check_size(name: str, value: Any) -> int:
    """Return a number of nodes or rounds, checked."""
    return check_integer(name, value, least=1)
