"""Sums over rows that the best constant of a loss follows from, in one table or in partitions."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from pboost._core.boost import exact_sum
from pboost.values import FloatArray


class RowSums(Protocol):
    """Sums of `values_of` over all rows, whatever their order."""

    @property
    def n_classes(self) -> int:
        """Number of classes whose numbers are targets."""

    def exact(self, name: str) -> float:
        """Return the sum of numbers >= 0."""

    def fine(self, name: str) -> float:
        """Return the sum of numbers: of whole numbers, and of the remainders."""


def values_of(name: str, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Return numbers to add up, by their name: those of a class by its number."""
    if name == "above":
        # An index by a mask takes eight times as long where labels are mixed.
        return weight.compress(y > 0)
    if name == "below":
        return weight.compress(y < 0)
    if name == "weight":
        return weight
    if name == "weighted":
        return weight * y
    return np.where(y == int(name), weight, 0.0)


class TableSums:
    """`RowSums` of rows in one table."""

    def __init__(self, y: FloatArray, weight: FloatArray, n_classes: int = 0) -> None:
        self._y, self._weight, self._n_classes = y, weight, n_classes

    @property
    def n_classes(self) -> int:
        """Number of classes whose numbers are targets."""
        return self._n_classes

    def exact(self, name: str) -> float:
        """Return the sum of numbers >= 0."""
        return exact_sum(values_of(name, self._y, self._weight))

    def fine(self, name: str) -> float:
        """Return the sum of numbers: of whole numbers, and of the remainders."""
        values = values_of(name, self._y, self._weight)
        most = float(np.abs(values).max(initial=0.0))
        if not 0.0 < most < np.inf:
            return float(values.sum())
        return joined(most, len(values), *fine_parts(values, most, len(values)))


def _units(most: float, n: int) -> tuple[int, int]:
    """Return bits and exponent of n numbers of this size: float64 holds the sum of such numbers."""
    return 51 - n.bit_length(), math.frexp(most)[1]


def fine_parts(values: FloatArray, most: float, n: int) -> tuple[float, float]:
    """Return the sums of some of n numbers, `most` in size: of whole numbers and of remainders."""
    bits, exponent = _units(most, n)
    values = np.ldexp(np.ldexp(values, -exponent), bits)
    whole = np.rint(values)
    return float(whole.sum()), float(np.rint(np.ldexp(values - whole, bits)).sum())


def joined(most: float, n: int, whole: float, finer: float) -> float:
    """Return the sum of n numbers, given those of `fine_parts`."""
    bits, exponent = _units(most, n)
    return float(np.ldexp(whole + math.ldexp(finer, -bits), exponent - bits))
