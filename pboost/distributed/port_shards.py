"""Weights at several ports of rows in several places: what a place is told of them and answers.

A shard holds the weights and reaches of its rows at the ports that are there, by number. It is told
how each is made of others, and which is gone; one that has lost them makes them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import voting
from pboost.distributed.engines import Engine, merge
from pboost.distributed.graph_shards import PathSearch, Shard, ShardedStump
from pboost.growth.matryoshki import rest_of, share_of
from pboost.values import FloatArray
from pboost.weak.base import Weights


class Made(NamedTuple):
    """Weights with a number, made of others.

    Of none: the starting weights as shares of `total`; of some with a `cut`: what answers make of
    the one; without: their "sum" or "product", the "share" that all but the first are of the first,
    what the shares of exit 1 and of exit 0 leave for exit 0 ("rest"), or the one "boosted" by
    `factors` of the classes.
    """

    number: int
    of: tuple[int, ...]
    cut: Any = None
    total: float = 1.0
    what: str = "sum"
    factors: tuple[float, float] = (1.0, 1.0)


class Gone(NamedTuple):
    """Weights that are not needed any more."""

    number: int


class Asked(NamedTuple):
    """What is asked of weights: "sums" of the classes, masses at "edges" of bins, or at "sides"."""

    what: str
    number: int
    scale: float = 1.0
    cut: Any = None
    unit: FloatArray | None = None


class PortShard(Shard):
    """Rows of one place, with weights at ports; parameters are those of `Shard`."""

    def begin(self, exponent: int, scale: float) -> tuple[int, ...]:
        """Set the weights to those before the first cut; there are no ports."""
        self._ports: dict[int, FloatArray] = {}
        return super().begin(exponent, scale)

    def masses(self, told: Sequence[Any]) -> NDArray[np.int64]:
        """Do what has not been done of all that has been told; answer the last question."""
        for one in told[self._seen :]:
            if isinstance(one, Made):
                self._ports[one.number] = self._made(one)
            elif isinstance(one, Gone):
                del self._ports[one.number]
        self._seen = len(told)
        # What is gone may have been told after the question.
        return self._answer(next(one for one in reversed(told) if isinstance(one, Asked)))

    def _made(self, one: Made) -> FloatArray:
        if not one.of:
            assert self._start is not None
            found: FloatArray = self._start / one.total
            return found
        if one.cut is not None:
            weight, fixed = np.empty(self._n), np.empty(self._n, dtype=np.int64)
            self._sent(one.cut, self._ports[one.of[0]], weight, 1.0, fixed)
            return weight
        first, *others = (self._ports[number] for number in one.of)
        if one.what == "share":
            return share_of(first, others)
        if one.what == "rest":
            return rest_of(first, *others)
        weight = first.copy()
        if one.what == "boosted":
            weight[: self._n_class[0]] *= one.factors[0]
            weight[self._n_class[0] :] *= one.factors[1]
        for other in others:
            if one.what == "product":
                weight *= other
            else:
                weight += other
        return weight

    def _answer(self, asked: Asked) -> NDArray[np.int64]:
        real, middle = self._ports[asked.number], self._n_class[0]
        fixed = np.empty(self._n, dtype=np.int64)
        if asked.what == "sides":
            assert asked.cut is not None
            assert asked.unit is not None
            return self._sides_of(real, asked.cut, asked.unit)
        voting.to_fixed(real, asked.scale, fixed)
        masses = int(fixed[:middle].sum()), int(fixed[middle:].sum())
        if asked.what == "sums":
            return np.array(masses, dtype=np.int64)
        return self._edges(fixed, masses)


class Ports:
    """What shards have been told of weights at ports.

    Parameters
    ----------
    engine : Engine
        Has the shards.
    n_rows : int
        Number of rows of all.
    """

    def __init__(self, engine: Engine, n_rows: int) -> None:
        self.engine, self.n_rows, self.told = engine, n_rows, list[Any]()
        self._number = 0

    def made(self, of: Sequence[PortArray], *how: Any, **more: Any) -> PortArray:
        """Have shards make weights of others, see `Made`; returns what stands for them."""
        self._number += 1
        of_numbers = tuple(array.number for array in of)
        self.told.append(Made(self._number, of_numbers, *how, **more))
        return PortArray(self, self._number)

    def ask(self, *asked: Any) -> NDArray[np.int64]:
        """Return what all shards answer to a question, see `Asked`."""
        self.told.append(Asked(*asked))
        return merge(self.engine.masses(self.told))


class PortArray:
    """What stands for weights of all rows, which shards have."""

    def __init__(self, ports: Ports, number: int) -> None:
        self.ports, self.number = ports, number

    def __len__(self) -> int:
        return self.ports.n_rows

    def __add__(self, other: PortArray) -> PortArray:
        return self.ports.made([self, other])

    def __mul__(self, other: PortArray) -> PortArray:
        return self.ports.made([self, other], what="product")

    def __del__(self) -> None:
        self.ports.told.append(Gone(self.number))

    def any(self) -> bool:
        """Return whether any may be there: shards are asked with what precision."""
        return True


class PortSearch(PathSearch):
    """The search for stumps at any port."""

    def fill_fixed(self, weights: Weights) -> None:
        """Note the masses of weights in their unit."""
        array: Any = weights.real
        negative, positive = array.ports.ask("sums", array.number, weights.scale).tolist()
        weights.masses = negative, positive

    def send(self, cut: Any, source: Any, target: Weights) -> None:
        """Have shards make weights of others."""
        made: Any = source.ports.made([source], cut)
        target.real = made
        self.fill_fixed(target)

    def side_masses(
        self, cut: Any, source: Any, scratch: Weights, unit: FloatArray | None = None
    ) -> FloatArray:
        """Return the masses (side, class) that a cut makes of weights."""
        sent = self._sent_cut(cut, np.ones((2, 2)))
        asked = source.ports.ask("sides", source.number, 1.0, sent, unit)
        total, below = asked.astype(np.float64)
        return np.stack([below, total - below])


@dataclass(frozen=True, slots=True)
class PortStump(ShardedStump):
    """A stump at any port."""

    searches: ClassVar = PortSearch
