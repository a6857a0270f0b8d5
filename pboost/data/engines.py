"""Rows in several places, which are asked together: engines, and the sum of what places answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pboost._version import __version__

#: The release that all must have who answer for rows.
RELEASE = __version__
#: As in `_core/reweight.pyx`: the sum of fixed-point weights stays below this power of two, and so
#: many bits of a sum of weights are free of rounding.
SUM_BITS, SURE_BITS = 61, 40
#: Rows of all shards: more are not counted in int32.
MOST_ROWS = 2**31 - 1


def merge(masses: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the sum of what shards answer, which is exact in any order."""
    total = masses[0].copy()
    for more in masses[1:]:
        total += more
    return total


class Engine(Protocol):
    """What has the shards, wherever they are."""

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Return what a method of every shard returns."""

    def masses(self, cuts: Sequence[Any]) -> list[Any]:
        """Return what `masses` returns, of every shard."""


class Serial:
    """An engine that asks shards in memory, one after another."""

    def __init__(self, shards: Sequence[Any]) -> None:
        self._shards = shards

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Return what a method of every shard returns."""
        return [getattr(shard, what)(*arguments) for shard in self._shards]

    def masses(self, cuts: Sequence[Any]) -> list[Any]:
        """Return what `masses` returns, of every shard."""
        return [shard.masses(cuts) for shard in self._shards]


def check_size(n: int) -> None:
    """Raise ValueError for more rows than are counted."""
    if n > MOST_ROWS:
        raise ValueError(f"X: expected at most {MOST_ROWS} rows in all partitions, got {n}")


def shared_scale(engine: Engine, n: int, greatest: float) -> tuple[int, float, bool]:
    """Return the exponent and the scale of the weights of n rows, of which the greatest is given.

    They are those of one table, see `TrainingData`. Also whether all weights are then positive.
    """
    exponent = math.frexp(greatest)[1]
    shift = SUM_BITS - n.bit_length()
    parts = engine.ask("scaled_sum", exponent, shift)
    total = sum(part for part, _ in parts)
    total += total >> SURE_BITS
    scale = math.ldexp(1.0, SUM_BITS - total.bit_length() + shift)
    return exponent, scale, all(are_positive for _, are_positive in parts)
