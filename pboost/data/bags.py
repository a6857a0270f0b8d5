"""Bags: the rows that each member of an ensemble is trained on, and what the others say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.labels import Entries
from pboost.values import (
    FloatArray,
    IntArray,
    check_flag,
    check_integer,
    check_number,
    child,
    draw_seed,
    shown,
)

#: Rows that are drawn at a time if few of them count.
DRAWN_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Bags:
    """How the rows of the members are drawn: those of member i follow from the seed and i alone.

    Attributes
    ----------
    rows : ndarray of int32, shape (n_positive,)
        The rows of positive weight, from which is drawn.
    weights : ndarray of float64, shape (n,)
        Weights of all rows; of the entries, where there are such.
    size : int
        Number of rows drawn.
    replace : bool
        Whether a row can be drawn again.
    seed : tuple of int
        Of all streams.
    entries : Entries or None
        Of soft labels: all entries of a row are drawn together.
    """

    rows: IntArray
    weights: FloatArray
    size: int
    replace: bool
    seed: tuple[int, ...]
    entries: Entries | None = None

    def stream(self, member: int) -> np.random.Generator:
        """Return the stream of numbers of a member."""
        return child(self.seed, member)

    def draw(self, member: int) -> tuple[FloatArray, np.random.Generator]:
        """Return the row weights of a member, 0 out of its bag, and its stream of numbers."""
        generator = self.stream(member)
        n = len(self.rows)
        if not self.replace and self.size == n:
            return self.weights, generator
        return self.taken(self.rows, times_drawn(generator, n, self.size, self.replace)), generator

    def taken(self, rows: IntArray, count: Any = 1) -> FloatArray:
        """Return the weights where the listed rows are taken, so many times each, and no others."""
        if self.entries is not None:
            times = np.zeros(len(self.entries.first))
            times[rows] = count
            return self.weights * times[self.entries.rows]
        weights = np.zeros(len(self.weights))
        weights[rows] = self.weights.take(rows) * count
        return weights


def times_drawn(
    generator: np.random.Generator,
    n: int,
    size: int,
    is_repeated: bool,
    some: tuple[int, int] | None = None,
) -> NDArray[np.intp]:
    """Return how often each of n rows, or those from one to another, is drawn for a bag."""
    if not is_repeated:
        found = np.zeros(n, dtype=np.intp)
        found[generator.choice(n, size, replace=False, shuffle=False)] = 1
        return found if some is None else found[slice(*some)]
    if some is None:
        return np.bincount(generator.integers(0, n, size), minlength=n)
    first, last = some
    found = np.zeros(last - first, dtype=np.intp)
    for start in range(0, size, DRAWN_AT_ONCE):
        drawn = generator.integers(0, n, min(DRAWN_AT_ONCE, size - start))
        own = drawn[(drawn >= first) & (drawn < last)]
        found += np.bincount(own - first, minlength=last - first)
    return found


def check_bag(bag: Any) -> int | float | None:
    """Return `bag` if it is a share of the rows in (0, 1], a number of rows or None."""
    if bag is None:
        return None
    if isinstance(bag, bool | np.bool_) or not isinstance(
        bag, int | float | np.integer | np.floating
    ):
        raise TypeError(
            "bag: expected a share of the rows (a float), a number of rows (an integer) or None, "
            f"got {shown(bag)}"
        )
    if isinstance(bag, int | np.integer):
        return check_integer("bag", bag, least=1)
    return check_number("bag", bag, least=0.0, most=1.0, open_least=True)


def rows_of_bag(bag: int | float | None, n: int, rounded: Callable[[float], int] = round) -> int:
    """Return the number of rows that a checked `bag` is of n rows, at least 1."""
    if bag is None:
        return n
    return bag if isinstance(bag, int) else max(1, rounded(bag * n))


def make_bags(
    weights: FloatArray | None,
    n: int,
    bag: int | float | None,
    replace: Any,
    generator: np.random.Generator,
    rounded: Callable[[float], int] = round,
    entries: Entries | None = None,
) -> Bags:
    """Return how rows are drawn, by a checked `bag`."""
    replace = check_flag("replace", replace)
    weights = np.ones(n) if weights is None else weights
    rows = np.flatnonzero(weights > 0).astype(np.int32)
    if entries is not None:
        rows = np.unique(entries.rows[rows])
    size = size_of_bag(bag, replace, len(rows), weights.max(initial=0.0), rounded)
    return Bags(rows, weights, size, replace, draw_seed(generator), entries)


def size_of_bag(
    bag: int | float | None,
    replace: bool,
    n: int,
    heaviest: float,
    rounded: Callable[[float], int] = round,
) -> int:
    """Return how many of n rows of positive weight, of which one is the heaviest, a bag has."""
    size = rows_of_bag(bag, n, rounded)
    if heaviest > np.finfo(np.float64).max / max(size, n):
        raise ValueError("sample_weight: expected weights with a finite sum in every bag")
    if not replace and size > n:
        raise ValueError(
            f"bag: expected at most {n}, the number of rows of positive weight, where "
            f"rows are drawn once, got {size}"
        )
    return size
