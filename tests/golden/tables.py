"""The tables and targets of the small fits.

They are made by additions and products from streams of random numbers that NumPy keeps for ever.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

N, D = 400, 6


def _uniform(seed: int, *shape: int) -> np.ndarray:
    return np.random.RandomState(seed).random_sample(shape)


def _numbers() -> np.ndarray:
    X = 2 * _uniform(20, 4, N, D).sum(axis=0) - 4
    X[:, 3] = np.floor(4 * X[:, 3]) / 4  # ties
    X[:, 4] = np.floor(X[:, 4])  # few values
    X[:, 5] = X[:, 5] * 2.0**-30 + 1024  # close neighbours
    return X


X = _numbers()
_NOISE = 2 * _uniform(21, 4, N).sum(axis=0) - 4
_SCORE = X[:, 0] * X[:, 1] + X[:, 2] + X[:, 3] / 2 + _NOISE / 2
TWO = _SCORE > 0.25
WORDS = np.where(TWO, "yes", "no")
THREE = (_SCORE > -0.5).astype(int) + (_SCORE > 1)
NUMBERS = np.round(_SCORE * 1024) / 1024
WEIGHT = np.random.RandomState(22).randint(0, 4, N).astype(float)
SIGMA = np.array([0.25, 0.5, 0.125, 0.25, 0.5, 2.0**-31])
COUNTS = np.floor(np.abs(NUMBERS))
#: Weights that are no whole numbers, some of them 0.
SHARES = np.round(64 * _uniform(23, N) ** 2) / 640
#: Probabilities of the second of two labels, and of each of three: sixteenths.
SOFT_TWO = np.round(np.clip(8 + 6 * _SCORE, 0, 16)) / 16
_FIRST = np.round(np.clip(6 - 6 * _SCORE, 0, 16)) / 16
_THIRD = np.minimum(np.round(np.clip(6 * _SCORE - 2, 0, 16)) / 16, 1 - _FIRST)
SOFT_THREE = np.column_stack([_FIRST, 1 - _FIRST - _THIRD, _THIRD])


class Table(NamedTuple):
    """Training rows, which of their columns are categories, and rows that no model has seen.

    Of the new rows some miss values in any column, and some have categories that are new.
    """

    X: Any
    rows: Any
    categorical_features: tuple[int, ...] | None = None


def _with_holes(values: np.ndarray, seed: int, columns: tuple[int, ...], share: float) -> Any:
    actual = values.copy()
    hit = _uniform(seed, len(values), len(columns)) < share
    actual[:, columns] = np.where(
        hit, None if values.dtype == object else np.nan, actual[:, columns]
    )
    return actual


def _missing() -> Table:
    values = _with_holes(X, 31, (0, 2, 4), 0.25)
    values[TWO & (_uniform(32, N) < 0.4), 1] = np.nan  # what is missing says something
    values[:, 5] = np.nan
    return Table(values, _with_holes(X[:50] * 0.875, 33, (0, 1, 2, 3, 4), 0.25))


def _words(level: np.ndarray, n_words: int) -> np.ndarray:
    return np.array([f"w{(37 * k) % n_words:03d}" for k in range(n_words)])[level]


def _level(n_levels: int, seed: int) -> np.ndarray:
    """Levels that go with the score, more or less; all of them, the first ones more often."""
    near = np.clip(np.floor(n_levels * (0.5 + _SCORE / 8 + (_uniform(seed, N) - 0.5) / 2)), 0, None)
    every = np.arange(N) % n_levels
    return np.where(np.arange(N) < n_levels, every, np.minimum(near, n_levels - 1)).astype(int)


def _categories() -> Table:
    values = np.empty((N, 4), dtype=object)
    values[:, 0], values[:, 1] = _words(_level(7, 34), 7), X[:, 0]
    values[:, 2], values[:, 3] = _level(12, 35), _uniform(36, N) < 0.25 + TWO / 2
    rows = values[:50].copy()
    rows[::5, 0], rows[::7, 2] = "new", 99
    return Table(values, _with_holes(rows, 37, (0, 1, 2), 0.2), (0, 2, 3))


def _levels() -> Table:
    """A column of more than 255 levels, of which the lightest share a number."""
    values = np.column_stack([_level(300, 38), X[:, 1], _level(40, 39)]).astype(float)
    rows = values[::8].copy()
    rows[::6, 0], rows[1::6, 2] = 1000, 1000
    return Table(values, _with_holes(rows, 40, (0, 1, 2), 0.2), (0, 2))


def _frame(rows: slice, seed: int, new: bool) -> Any:
    text = _words(_level(270, 41), 270).astype(object)[rows]
    size = pd.Categorical.from_codes(_level(5, 42)[rows], ["xs", "s", "m", "l", "xl"], ordered=True)
    if new:
        text[::5], size[::7] = "new", None
    numbers = _with_holes(X[rows], seed, (0, 1), 0.2)
    text = np.where(_uniform(seed + 1, len(text)) < 0.1, None, text)
    columns = {"text": text, "größe": size, "a": numbers[:, 0], "b": numbers[:, 1]}
    return pd.DataFrame({**columns, "flag": _uniform(43, N)[rows] < 0.3 + TWO[rows] / 4})


#: By what is in their columns. "frame" has all: text of more than 255 words and none, ordered
#: categories, numbers and missing ones, booleans.
TABLES = {
    "numbers": Table(X, _missing().rows),
    "missing": _missing(),
    "categories": _categories(),
    "levels": _levels(),
    "frame": Table(_frame(slice(N), 44, False), _frame(slice(0, N, 8), 46, True)),
}
