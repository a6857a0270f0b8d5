"""Call methods on all partitions, and add their results exactly."""

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

#: See `_core/voting.pyx`. Fixed-point sums of weights stay below ``2**SUM_BITS``, and their first
#: `SURE_BITS` bits are free of rounding errors.
SUM_BITS, SURE_BITS = 61, 40
#: Bits of the mantissa of a float64, bits of its lower half, and the range of `frexp` exponents.
MANTISSA, HALF_BITS = 53, 26
LEAST_EXPONENT, MOST_EXPONENT = -1073, 1024
#: Result of `exact_parts` for an empty array.
NO_PARTS = np.zeros((MOST_EXPONENT - LEAST_EXPONENT + 1, 2), dtype=np.int64)
#: Maximum number of rows of all partitions: row indices are int32.
MOST_ROWS = 2**31 - 1


def merge(masses: Sequence[Array]) -> Array:
    """Return the sum of integer arrays, which is exact in any order."""
    total = masses[0].copy()
    for more in masses[1:]:
        total += more
    return total


class Engine(Protocol):
    """Object that calls methods on all partitions, in this process or on a cluster."""

    @property
    def workers(self) -> Workers:
        """The threads of this process."""

    def close(self) -> None:
        """Release the partitions."""

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Call the method `what` on every partition and return the results."""

    def masses(self, cuts: Sequence[Any]) -> list[Any]:
        """Call the method `masses` on every partition and return the results."""


class Serial:
    """An engine for partitions in this process."""

    def __init__(self, shards: Sequence[Any], workers: Workers | None = None) -> None:
        self._shards = shards
        self.workers = Workers(1) if workers is None else workers

    def close(self) -> None:
        """Release the partitions."""
        self._shards = ()

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Call the method `what` on every partition and return the results."""
        return [getattr(shard, what)(*arguments) for shard in self._shards]

    def masses(self, cuts: Sequence[Any]) -> list[Any]:
        """Call the method `masses` on every partition and return the results."""
        return [shard.masses(cuts) for shard in self._shards]


class LogShard:
    """A partition that executes each command of a log once, in order.

    A partition that is created again on another worker receives the whole log.
    """

    #: Function for each type of command. Its arguments are the partition, the command, and whether
    #: the result is needed.
    DO: ClassVar[Mapping[type, Any]]
    #: Number of commands that have been executed.
    _seen = 0

    def masses(self, log: Sequence[Any]) -> Any:
        """Execute the new commands of the log and return the result of the last one."""
        answer, last = None, len(log) - 1
        for k in range(self._seen, len(log)):
            answer = self.DO[type(log[k])](self, log[k], k == last)
        self._seen = len(log)
        return answer


def exact_parts(weights: FloatArray) -> NDArray[np.int64]:
    """Return integers from which `exact_sum` computes the sum of floats, shape (exponents, 2).

    Each row contains, for one exponent, the sums of the upper and of the lower halves of the
    mantissas. Arrays of several partitions can be added without rounding errors.
    """
    mantissa, exponent = np.frexp(weights)
    integers = np.ldexp(mantissa, MANTISSA).astype(np.int64)
    parts = NO_PARTS.copy()
    place = exponent - LEAST_EXPONENT
    np.add.at(parts[:, 0], place, integers >> HALF_BITS)
    np.add.at(parts[:, 1], place, integers & ((1 << HALF_BITS) - 1))
    return parts


def exact_sum(parts: NDArray[np.int64]) -> float:
    """Return the correctly rounded sum of the floats in `parts`, as `math.fsum` does."""
    total = 0
    for place in np.flatnonzero(parts.any(axis=1)).tolist():
        upper, lower = parts[place].tolist()
        total += ((upper << HALF_BITS) + lower) << place
    # The division of two integers rounds only once.
    return total / (1 << (MANTISSA - LEAST_EXPONENT))


#: Result of `sum_parts`: first and last index of a range, and its sum or its values.
PartialSums: TypeAlias = list[tuple[int, int, FloatArray]]
#: NumPy adds arrays up to this length without splitting them into halves.
ADDED_AT_ONCE = 128


def _halves(first: int, last: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Split a range into the two halves that NumPy adds up separately."""
    half = (last - first) // 2
    middle = first + half - half % 8
    return (first, middle), (middle, last)


def sum_parts(values: FloatArray, start: int, n: int) -> PartialSums:
    """Return partial sums of a range of n values that begins at position `start`.

    `sum_of_parts` adds up these partial sums, bit-identical to ``values.sum()``.
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
    """Return the sum of n values, rounded as in NumPy, from the `sum_parts` of all partitions."""
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
    """Raise a ValueError if there are more rows than int32 can count."""
    if n > MOST_ROWS:
        raise ValueError(f"X: expected at most {MOST_ROWS} rows in all partitions, got {n}")


def scaled_sum(
    weights: FloatArray, rows: IntArray | slice, exponent: int, shift: int
) -> tuple[int, bool]:
    """Return the fixed-point sum of weights, and whether the weights of `rows` remain positive.

    The weights are multiplied by ``2**-exponent``; the unit of the sum is ``2**-shift``.
    """
    weight = np.ldexp(weights, -exponent)
    fixed = np.empty(len(weight), dtype=np.int64)
    total = int(voting.to_fixed(weight, 2.0**shift, fixed))
    return total, bool((weight[rows] > 0).all())


def shared_scale(engine: Engine, n: int, greatest: float) -> tuple[int, float, bool]:
    """Return the exponent and scale of the weights, and whether all scaled weights are positive.

    The scale is the same as for all n rows in one table, see `TrainingData`.
    """
    exponent, shift = math.frexp(greatest)[1], first_shift(n)
    return exponent, *scale_of(engine.ask("scaled_sum", exponent, shift), shift)


def first_shift(n: int) -> int:
    """Return the number of fractional bits for the first sum of n weights <= 1."""
    return SUM_BITS - n.bit_length()


def scale_of(parts: Sequence[tuple[int, bool]], shift: int) -> tuple[float, bool]:
    """Return the scale of the weights, from the `scaled_sum` of each partition."""
    total = sum(part for part, _ in parts)
    total += total >> SURE_BITS
    scale = math.ldexp(1.0, SUM_BITS - total.bit_length() + shift)
    return scale, all(are_positive for _, are_positive in parts)


def sum_of_weights(engine: Engine) -> float:
    """Return the correctly rounded sum of the initial weights of all partitions."""
    return exact_sum(merge(engine.ask("weight_sums")).sum(axis=0))


def class_sums(engine: Engine) -> tuple[float, float]:
    """Return the correctly rounded sums of the initial weights of both classes."""
    negative, positive = merge(engine.ask("weight_sums"))
    return exact_sum(negative), exact_sum(positive)
