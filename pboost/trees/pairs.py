"""Pairs of columns that tell much together and little alone, for which trees are symmetric."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import boost
from pboost.data.columns.columns import BinnedColumns
from pboost.data.columns.prebuilt import LEVELS
from pboost.growth.tree import CartLimits
from pboost.losses import Loss
from pboost.values import FloatArray

#: Rows that are looked at, copies counted; of many columns fewer, down to `LEAST_ROWS`.
MOST_ROWS, LEAST_ROWS, MOST_WORK = 20_000, 1000, 1 << 25
#: A pair has to gain so many times what the best cut of either column gains, ...
RATIO = 9.0
#: ... or what a cut gains by chance.
CHANCE = 12.0
#: Gradients, and weights that are no copies, are rounded to so many bits: sums are then exact.
GRADIENT_BITS, WEIGHT_BITS = 20, 12
#: Rows that are hashed at a time: they stay in the cache.
HASHED_ROWS = 8192
#: The codes, targets and weights of the rows that are looked at; None: all have the weight 1.
Scanned: TypeAlias = tuple[NDArray[np.uint8], FloatArray, FloatArray | None]


def chosen(
    growth: str,
    scan: Callable[[], Scanned],
    loss: Loss,
    are_copies: bool,
    bias: Any,
    limits: CartLimits,
) -> tuple[str, CartLimits]:
    """Return a growth, free or symmetric in place of "auto", and the limits with it.

    `scan` returns the rows that are looked at, whose weights may be numbers of copies. Greedy free
    trees cut columns that tell nothing alone by chance only; of symmetric ones the chances of a
    level are taken together.
    """
    if growth != "auto":
        return growth, limits
    codes, y, weight = scan()
    if len(y):
        gradient = loss.gradient(y, np.full(len(y), float(bias)))
        if has_pure_interaction(codes, *rounded(gradient, weight, are_copies)):
            return "symmetric", replace(limits, growth="symmetric")
    return "free", limits


def limited(
    codes: NDArray[np.uint8], y: FloatArray, weight: FloatArray | None, n_copies: int
) -> Scanned:
    """Return the rows of all partitions that are looked at, none if there are far too many."""
    most = _most(len(codes))
    if len(y) > 2 * most and n_copies > most:  # of a table with few different rows
        return codes[:, :0], y[:0], weight
    return codes, y, weight


def _most(d: int) -> int:
    """Return how many rows of so many columns of numbers are looked at."""
    most = min(MOST_ROWS, MOST_WORK // max(d * d, 1))
    return 0 if d < 2 or most < LEAST_ROWS else most


def scanned_part(
    columns: BinnedColumns, used: NDArray[np.bool_] | None, n_copies: int
) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """Return the rows of a part that are looked at, equal ones together, and their codes.

    There are none where it is not worth it; `n_copies` are those of all rows, wherever they are.
    """
    numbers = _numbers(columns)
    most = _most(int(np.count_nonzero(numbers)))
    rows = np.empty(0, dtype=np.intp)
    if most:
        taken = np.ones(columns.n_rows, dtype=bool)
        if n_copies > most:
            taken = hashes(columns.codes) < np.uint64(most / n_copies * 2.0**64)
        rows = np.flatnonzero(taken if used is None else taken & used)
    return rows, columns.codes[numbers][:, rows]


def _numbers(columns: BinnedColumns) -> NDArray[np.bool_]:
    """Return which columns hold numbers."""
    if columns.special is None:
        return np.ones(len(columns.codes), dtype=bool)
    return columns.special & LEVELS == 0


def hashes(codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return numbers that depend on what is in each row only, and are spread evenly, (n,)."""
    d, n = codes.shape
    key = _mixed(np.arange(1, d + 1, dtype=np.uint64)) | np.uint64(1)
    found = np.zeros(n, dtype=np.uint64)
    for start in range(0, n, HASHED_ROWS):
        here = found[start : start + HASHED_ROWS]
        for times, column in zip(key, codes[:, start : start + HASHED_ROWS], strict=True):
            here += times * column
        here[:] = _mixed(here)
    return found


def _mixed(number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the last step of splitmix64."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


def rounded(
    gradient: FloatArray, weight: FloatArray | None, are_copies: bool
) -> tuple[FloatArray, FloatArray, float]:
    """Return weighted gradients and weights, whole numbers, and what a cut gains by chance."""
    weight = np.ones(len(gradient)) if weight is None else weight
    if are_copies or (weight == 1).all():
        each = _whole(gradient, GRADIENT_BITS)
        sums, mass, square = weight * each, weight, weight * each * each
    else:
        sums, mass = _whole(weight * gradient, GRADIENT_BITS), _whole(weight, WEIGHT_BITS)
        square = sums * sums
    total = float(mass.sum())
    return sums, mass, boost.exact_sum(square) / total if total else 0.0


def _whole(values: FloatArray, bits: int) -> FloatArray:
    """Return whole numbers of so many bits, as many times the values as a power of two."""
    exponent = math.frexp(float(np.abs(values).max()))[1]
    # In two steps: the power alone may be beyond the numbers there are.
    return np.rint(np.ldexp(np.ldexp(values, -exponent), bits))


def has_pure_interaction(
    codes: NDArray[np.uint8], sums: FloatArray, mass: FloatArray, chance: float
) -> bool:
    """Return whether a pair gains far more than its columns, all of them whole numbers by row.

    A pair gains what a value for each quarter of the rows does that two cuts near the middle make.
    """
    alone, above = cut_alone(codes, sums, mass)
    both = pair_gains(above, sums, mass)
    either = np.maximum(np.maximum(alone[:, None], alone), CHANCE * chance)
    return bool((both > RATIO * either).any())


def cut_alone(
    codes: NDArray[np.uint8], sums: FloatArray, mass: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the gain of the best cut of each column, and 1 for rows above its middle, else 0."""
    gains, above = np.empty(len(codes)), np.empty(codes.shape)
    for j, code in enumerate(codes):
        below, heavy = (np.bincount(code, weights=of).cumsum() for of in (sums, mass))
        total, whole = below[-1], heavy[-1]
        gains[j] = max(0.0, (_squares(below, heavy) + _squares(total - below, whole - heavy)).max())
        gains[j] -= total * total / whole
        above[j] = code > np.abs(2 * heavy[:-1] - whole).argmin() if len(heavy) > 1 else 0.0
    return gains, above


def pair_gains(above: FloatArray, sums: FloatArray, mass: FloatArray) -> FloatArray:
    """Return what a value for each of the four parts that two cuts make gains, (d, d)."""
    gains = np.zeros((len(above), len(above)))
    upper = [(above * of) @ above.T for of in (sums, mass)]  # whole numbers: exact in any order
    totals = [float(of.sum()) for of in (sums, mass)]
    of_first = [of.diagonal()[:, None] for of in upper]
    of_second = [of.diagonal()[None, :] for of in upper]
    for part in (
        upper,
        [one - both for one, both in zip(of_first, upper, strict=True)],
        [one - both for one, both in zip(of_second, upper, strict=True)],
        [
            total - one - other + both
            for total, one, other, both in zip(totals, of_first, of_second, upper, strict=True)
        ],
    ):
        gains += _squares(*part)
    return gains - totals[0] * totals[0] / totals[1]


def _squares(sums: FloatArray, mass: FloatArray) -> FloatArray:
    """Return squares of sums by their masses, 0 where there is none."""
    return np.divide(sums * sums, mass, out=np.zeros_like(mass), where=mass > 0)
