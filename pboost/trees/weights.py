"""Weights of rows as rounds on bins take them: numbers of copies, where they are such."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pboost._core import boost
from pboost.values import FloatArray, IntArray

#: Copies of a row at most that words have room for; with more of them sums take longer.
MOST_OF_ROW = 64

#: What the largest weight is divided into, where sums of weights are to be exact.
UNITS = 2.0**31


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The weights of the rows of a fit.

    Attributes
    ----------
    of_rows : ndarray of float64, shape (n,), or None
        Weights; 0 for rows that take no part; None where all are 1.
    are_copies : bool
        Whether they are whole numbers of copies of a row, so that a model is that of the copies:
        derivatives are rounded and then multiplied.
    n_used, n_copies, most_copies : int
        How many rows take part; how many copies there are of them, and of one of them at most,
        where weights are copies; else each row is one.
    total : float
        The sum of the weights.
    """

    of_rows: FloatArray | None
    are_copies: bool
    n_used: int
    n_copies: int
    most_copies: int
    total: float

    def in_units(self) -> IntArray | None:
        """Return weights as whole numbers >= 1, or 0 of rows left out; None: all are 1."""
        if self.of_rows is None:
            return None
        found = self.of_rows if self.are_copies else np.rint(self.of_rows * UNITS)
        return np.where(self.of_rows > 0, np.maximum(found, 1.0), 0.0).astype(np.int64)

    def sum(self, values: FloatArray) -> float:
        """Return the weighted sum of numbers >= 0, whatever their order."""
        if self.of_rows is None:
            return boost.exact_sum(values)
        if self.are_copies:
            return boost.exact_sum(np.where(self.of_rows > 0, values, 0.0), self.of_rows)
        return boost.exact_sum(np.where(self.of_rows > 0, self.of_rows * values, 0.0))


def copies_of(weight: FloatArray, unit: float) -> tuple[FloatArray, bool]:
    """Return weights as numbers of copies in a unit, and whether they are such."""
    copies = np.rint(weight / unit)
    are_near = np.abs(weight / unit - copies) <= 1e-9
    return copies, bool((are_near & ((copies > 0) | (weight == 0))).all())


def weights_of(weight: FloatArray, unit: float | None = None) -> Weights:
    """Return weights for rounds.

    `weight` has 0 for rows that take no part; `unit` is what all are multiples of, so that they
    are as many copies of rows, as far as floating point can tell; None: none is known.
    """
    used = int(np.count_nonzero(weight))
    if (weight == 1).all():
        return Weights(None, False, used, used, 1, float(used))
    if unit is not None:
        copies, are_copies = copies_of(weight, unit)
        if copies.max() <= MOST_OF_ROW and are_copies:
            total, most = int(copies.sum()), int(copies.max())
            return Weights(copies, True, used, total, most, float(total))
    return Weights(weight, False, used, used, 1, boost.exact_sum(weight))
