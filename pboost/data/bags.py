"""Bags: the rows that each member of an ensemble is trained on, and what the others say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pboost.values import FloatArray, IntArray, check_flag, check_integer, child, draw_seed


@dataclass(frozen=True, slots=True, eq=False)
class Bags:
    """How the rows of the members are drawn: those of member i follow from the seed and i alone.

    Attributes
    ----------
    rows : ndarray of int32, shape (n_positive,)
        The rows of positive weight, from which is drawn.
    weights : ndarray of float64, shape (n,)
        Their weights.
    size : int
        Number of rows drawn.
    replace : bool
        Whether a row can be drawn again.
    seed : tuple of int
        Of all streams.
    """

    rows: IntArray
    weights: FloatArray
    size: int
    replace: bool
    seed: tuple[int, ...]

    def stream(self, member: int) -> np.random.Generator:
        """Return the stream of numbers of a member."""
        return child(self.seed, member)

    def draw(self, member: int) -> tuple[FloatArray, np.random.Generator]:
        """Return the row weights of a member, 0 out of its bag, and its stream of numbers."""
        generator = self.stream(member)
        n = len(self.rows)
        if not self.replace and self.size == n:
            return self.weights, generator
        weights = np.zeros(len(self.weights))
        if self.replace:
            count = np.bincount(generator.integers(0, n, self.size), minlength=n)
            weights[self.rows] = self.weights[self.rows] * count
        else:
            taken = self.rows.take(generator.choice(n, self.size, replace=False, shuffle=False))
            weights[taken] = self.weights.take(taken)
        return weights, generator


def make_bags(
    weights: FloatArray | None, n: int, size: Any, replace: Any, generator: np.random.Generator
) -> Bags:
    """Check the options that say how rows are drawn."""
    replace = check_flag("replace", replace)
    weights = np.ones(n) if weights is None else weights
    rows = np.flatnonzero(weights > 0).astype(np.int32)
    if size is None:
        size = len(rows)
    size = check_integer("size", size, least=1)
    if weights.max(initial=0.0) > np.finfo(np.float64).max / max(size, len(rows)):
        raise ValueError("sample_weight: expected weights with a finite sum in every bag")
    if not replace and size > len(rows):
        raise ValueError(
            f"size: expected at most {len(rows)}, the number of rows of positive weight, where "
            f"rows are drawn once, got {size}"
        )
    return Bags(rows, weights, size, replace, draw_seed(generator))
