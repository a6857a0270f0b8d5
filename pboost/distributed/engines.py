"""Rows in several places, which are asked together: engines, and the sum of what places answer."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import voting
from pboost.threads import Workers
from pboost.values import Array, FloatArray, IntArray

#: As in `_core/voting.pyx`: the sum of fixed-point weights stays below this power of two, and so
#: many bits of a sum of weights are free of rounding.
SUM_BITS, SURE_BITS = 61, 40
#: Bits of the mantissa of a float64 and of its lower half, and the exponents of `frexp`.
MANTISSA, HALF_BITS = 53, 26
LEAST_EXPONENT, MOST_EXPONENT = -1073, 1024
#: What `exact_parts` makes of no numbers.
NO_PARTS = np.zeros((MOST_EXPONENT - LEAST_EXPONENT + 1, 2), dtype=np.int64)
#: Rows of all shards: more are not counted in int32.
MOST_ROWS = 2**31 - 1


def merge(masses: Sequence[Array]) -> Array:
    """Return the sum of what shards answer, whole numbers, which is exact in any order."""
    total = masses[0].copy()
    for more in masses[1:]:
        total += more
    return total


class Engine(Protocol):
    """What has the shards, wherever they are."""

    @property
    def workers(self) -> Workers:
        """Threads of this process."""

    def close(self) -> None:
        """End what answers for rows."""

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Call the method `what` of every shard and return the answers."""

    def masses(self, cuts: Sequence[Any]) -> list[Any]:
        """Return what `masses` returns, of every shard."""


class Serial:
    """An engine that asks shards in memory, one after another."""

    def __init__(self, shards: Sequence[Any], workers: Workers | None = None) -> None:
        self._shards = shards
        self.workers = Workers(1) if workers is None else workers

    def close(self) -> None:
        """Let go of the shards."""
        self._shards = ()

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Call the method `what` of every shard and return the answers."""
        return [getattr(shard, what)(*arguments) for shard in self._shards]

    def masses(self, cuts: Sequence[Any]) -> list[Any]:
        """Return what `masses` returns, of every shard."""
        return [shard.masses(cuts) for shard in self._shards]


class LogShard:
    """A shard that follows a log: it does each record once, in its order, and answers the last.

    One that begins anew is given the whole log.
    """

    #: What does a record of each kind: (shard, record, whether it is to be answered).
    DO: ClassVar[Mapping[type, Any]]
    #: Number of records that have been done.
    _seen = 0

    def masses(self, log: Sequence[Any]) -> Any:
        """Do what has not been done of the log; answer its last record."""
        answer, last = None, len(log) - 1
        for k in range(self._seen, len(log)):
            answer = self.DO[type(log[k])](self, log[k], k == last)
        self._seen = len(log)
        return answer


def exact_parts(weights: FloatArray) -> NDArray[np.int64]:
    """Return integers of which `exact_sum` makes the sum, (exponents, 2).

    A row for each exponent, with the sums of the upper and of the lower halves of the mantissas:
    sums of integers, so that those of parts are added up without an error.
    """
    mantissa, exponent = np.frexp(weights)
    integers = np.ldexp(mantissa, MANTISSA).astype(np.int64)
    parts = NO_PARTS.copy()
    place = exponent - LEAST_EXPONENT
    np.add.at(parts[:, 0], place, integers >> HALF_BITS)
    np.add.at(parts[:, 1], place, integers & ((1 << HALF_BITS) - 1))
    return parts


def exact_sum(parts: NDArray[np.int64]) -> float:
    """Return the sum of all numbers of which `exact_parts` were added up, as `math.fsum` does."""
    total = 0
    for place in np.flatnonzero(parts.any(axis=1)).tolist():
        upper, lower = parts[place].tolist()
        total += ((upper << HALF_BITS) + lower) << place
    # The quotient of integers is rounded once, however large they are.
    return total / (1 << (MANTISSA - LEAST_EXPONENT))


#: What `sum_parts` makes of numbers: from where to where, and their sum, or themselves.
PartialSums: TypeAlias = list[tuple[int, int, FloatArray]]
#: So many numbers NumPy adds up without dividing them.
ADDED_AT_ONCE = 128


def _halves(first: int, last: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the parts whose sums NumPy adds up as the sum of numbers in a row."""
    half = (last - first) // 2
    middle = first + half - half % 8
    return (first, middle), (middle, last)


def sum_parts(values: FloatArray, start: int, n: int) -> PartialSums:
    """Return from what `sum_of_parts` makes ``values.sum()`` of n numbers, bit for bit.

    `values` are some of them, the first at `start`.
    """
    stop, parts = start + len(values), PartialSums()
    waiting = [(0, n)]
    while waiting:
        first, last = waiting.pop()
        low, high = max(first, start), min(last, stop)
        if low >= high:
            continue
        if (low, high) == (first, last):
            parts.append((first, last, values[low - start : high - start].sum(keepdims=True)))
        elif last - first <= ADDED_AT_ONCE:
            parts.append((low, high, values[low - start : high - start]))
        else:
            waiting += _halves(first, last)
    return parts


def sum_of_parts(parts: Iterable[PartialSums], n: int) -> float:
    """Return the sum of n numbers, rounded as that of NumPy is, given `sum_parts` of all places."""
    known = {(first, last): values for of in parts for first, last, values in of}
    bounds = sorted(known)

    def total(first: int, last: int) -> float:
        if (first, last) in known and len(known[first, last]) == 1:
            return float(known[first, last][0])
        if last - first <= ADDED_AT_ONCE:
            in_range = bounds[bisect_left(bounds, (first, 0)) : bisect_left(bounds, (last, 0))]
            return float(np.concatenate([known[key] for key in in_range]).sum())
        return sum(total(*half) for half in _halves(first, last))

    return total(0, n) if n else 0.0


def check_size(n: int) -> None:
    """Raise ValueError for more rows than are counted."""
    if n > MOST_ROWS:
        raise ValueError(f"X: expected at most {MOST_ROWS} rows in all partitions, got {n}")


def scaled_sum(
    weights: FloatArray, rows: IntArray | slice, exponent: int, shift: int
) -> tuple[int, bool]:
    """Return the sum of weights times ``2**-exponent``, in units of ``2**-shift``.

    And whether those of some rows are then still positive.
    """
    weight = np.ldexp(weights, -exponent)
    fixed = np.empty(len(weight), dtype=np.int64)
    total = int(voting.to_fixed(weight, 2.0**shift, fixed))
    return total, bool((weight[rows] > 0).all())


def shared_scale(engine: Engine, n: int, greatest: float) -> tuple[int, float, bool]:
    """Return the exponent and the scale of the weights of n rows, of which the greatest is given.

    They are those of one table, see `TrainingData`. Also whether all weights are then positive.
    """
    exponent, shift = math.frexp(greatest)[1], first_shift(n)
    return exponent, *scale_of(engine.ask("scaled_sum", exponent, shift), shift)


def first_shift(n: int) -> int:
    """Return in which units the weights of n rows, none above 1, are added up first."""
    return SUM_BITS - n.bit_length()


def scale_of(parts: Sequence[tuple[int, bool]], shift: int) -> tuple[float, bool]:
    """Return the scale of weights, given what `scaled_sum` is of each shard."""
    total = sum(part for part, _ in parts)
    total += total >> SURE_BITS
    scale = math.ldexp(1.0, SUM_BITS - total.bit_length() + shift)
    return scale, all(are_positive for _, are_positive in parts)


def sum_of_weights(engine: Engine) -> float:
    """Return the sum of the starting weights of all shards, rounded once, as one fit has it."""
    return exact_sum(merge(engine.ask("weight_sums")).sum(axis=0))


def class_sums(engine: Engine) -> tuple[float, float]:
    """Return the sums of the starting weights of the classes, each rounded once."""
    negative, positive = merge(engine.ask("weight_sums"))
    return exact_sum(negative), exact_sum(positive)
