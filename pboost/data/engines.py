"""Rows in several places, which are asked together: engines, and the sum of what places answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


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
