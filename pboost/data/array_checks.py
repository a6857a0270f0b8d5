"""Checks of the parts that models share: columns, labels, settings, records and sums."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.values import INT32_MAX

#: The largest sum of absolute values: the largest number, less what rounding can add to it.
MOST_SUM = float(np.finfo(np.float64).max) * (1 - 2.0**-20)


def is_integer(value: Any) -> bool:
    """Return whether this is an integer and no boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether this is a finite real number and no boolean."""
    is_real = isinstance(value, float | np.floating) or is_integer(value)
    return is_real and bool(abs(value) <= sys.float_info.max)


def check_columns(n_features: Any, names: Any) -> None:
    """Check the number of the columns of a model and their names, if there are any."""
    if not (is_integer(n_features) and 1 <= n_features <= INT32_MAX):
        raise ValueError(f"n_features: expected an integer from 1 to {INT32_MAX}, got {n_features}")
    if names is None:
        return
    if not (isinstance(names, tuple) and all(isinstance(name, str) for name in names)):
        raise ValueError(f"feature_names: expected a tuple of strings or None, got {names!r}")
    if len(names) != n_features:
        raise ValueError(f"feature_names: expected {n_features} names, got {len(names)}")


def check_labels(labels: NDArray[Any], count: int | None = None) -> None:
    """Check that labels are two or more different values in order; `count`: so many."""
    if count is not None and labels.shape != (count,):
        raise ValueError(f"labels: expected shape ({count},), got {labels.shape}")
    if labels.dtype.kind == "b" and labels.view(np.uint8).max(initial=0) > 1:
        raise ValueError("labels: expected booleans, got other bytes")
    if labels.dtype.kind == "U":
        code_points = labels.astype(labels.dtype.newbyteorder("=")).view(np.uint32)
        if code_points.max(initial=0) > sys.maxunicode:
            raise ValueError("labels: expected strings, got numbers that are no characters")
    values = labels.tolist()
    if labels.ndim != 1 or len(labels) < 2 or not (labels[:-1] < labels[1:]).all():
        expected = "sorted values, two or more" if count is None else "two sorted values"
        raise ValueError(f"labels: expected {expected}, got {values}")


def check_finite_arrays(model: Any, *names: str) -> None:
    """Check that these arrays of a model hold finite numbers."""
    for name in names:
        if not np.isfinite(getattr(model, name)).all():
            raise ValueError(f"{name}: expected finite numbers")


def check_not_negative(model: Any, *names: str) -> None:
    """Check that these arrays of a model hold no number below 0."""
    for name in names:
        if not (getattr(model, name) >= 0).all():
            raise ValueError(f"{name}: expected numbers >= 0")


def check_shape(model: Any, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Check the shapes of these arrays of a model."""
    for name, shape in shapes.items():
        found = getattr(model, name).shape
        if found != shape:
            raise ValueError(f"{name}: expected shape {shape}, got {found}")


def check_dimensions(model: Any, dimensions: Mapping[str, int]) -> None:
    """Check the numbers of dimensions of these arrays of a model."""
    for name, ndim in dimensions.items():
        found = getattr(model, name).shape
        if len(found) != ndim:
            raise ValueError(f"{name}: expected {ndim} dimensions, got shape {found}")


def check_offsets(name: str, start: NDArray[Any], end: int) -> None:
    """Check that numbers say where parts begin: increasing, from 0 to `end`."""
    # Differences of int32 could overflow.
    if not (
        start.ndim == 1 and len(start) > 1 and start[0] == 0 and start[-1] == end
        and (start[:-1] < start[1:]).all()
    ):  # fmt: skip
        raise ValueError(f"{name}: expected numbers that increase from 0 to {end}")


def check_sum(name: str, terms: NDArray[np.float64], start: float = 0.0) -> None:
    """Check that a sum of numbers is finite, whatever their signs and order.

    Of a matrix, the sums of the columns.
    """
    with np.errstate(over="ignore"):
        total = np.abs(terms).sum(axis=0) + abs(start)
    if not (total <= MOST_SUM).all():
        raise ValueError(f"{name}: expected numbers whose absolute values have a finite sum")


#: Settings that functions of a model read, and what they must be where they are there.
_SETTINGS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "builder": ("a string", lambda value: isinstance(value, str)),
    "observation": ("a table", lambda value: isinstance(value, Mapping)),
    "weak": ("a table", lambda value: isinstance(value, Mapping)),
    "votes": ("a string", lambda value: isinstance(value, str)),
    "growth": ("a string", lambda value: isinstance(value, str)),
    "criterion": ("a string", lambda value: isinstance(value, str)),
    "smoothing": ("a number", is_number),
    "learning_rate": ("a number", is_number),
    "max_depth": (
        "a positive integer or null",
        lambda value: value is None or (is_integer(value) and value >= 1),
    ),
    "continued": (
        "a list of tables",
        lambda value: (
            isinstance(value, list | tuple) and all(isinstance(one, Mapping) for one in value)
        ),
    ),
}


def check_settings(settings: Mapping[str, Any], *names: str) -> None:
    """Check the settings of a model that its functions read; `names`: these only."""
    for name in names or _SETTINGS:
        expected, is_right = _SETTINGS[name]
        if name in settings and not is_right(settings[name]):
            raise ValueError(f"settings[{name!r}]: expected {expected}, got {settings[name]!r}")


def check_error(name: str, error: Any) -> None:
    """Check that an error is a number >= 0, or NaN where it is not known."""
    if not (is_number(error) and error >= 0) and not (
        isinstance(error, float) and math.isnan(error)
    ):
        raise ValueError(f"{name}: expected a number >= 0, or NaN, got {error!r}")
