"""Search for steps that minimize a loss: along a line, by Newton steps, and at kinks."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.values import FloatArray

GroupCounts: TypeAlias = NDArray[np.signedinteger[Any]]

#: Maximum step if the loss has no limit.
FAR = 2.0**60
#: Relative width of the interval at which a search ends.
WIDTH = 1e-13
#: A slope is a sum. It counts as 0 below this fraction of the sum of the absolute summands.
FLAT = 1e-13
#: The corresponding fraction for sums of few summands.
ROUNDING = 1e-15
#: A Newton step of this relative size is the last, because the next would be below rounding.
NEAR = 1e-8
#: Steps below this size have the absolute precision `NEAR` times this size.
TINY = 1e-6


class _Loss(Protocol):
    """The functions of a loss that a search needs."""

    @property
    def limit(self) -> float: ...
    def value(self, y: FloatArray, f: FloatArray) -> FloatArray: ...
    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray: ...
    def slopes(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]: ...


class _Line:
    """The total loss along a line that starts downhill; a step of 1 moves f by at most 1."""

    def __init__(
        self, loss: _Loss, y: FloatArray, f: FloatArray, weight: FloatArray, d: FloatArray
    ) -> None:
        self.loss, self.y, self.f, self.d = loss, y, f, d
        self.weight = weight / weight.max()
        self.sign = 1.0
        if self.slope(0.0) > 0:
            self.sign = -1.0
        self.start = self.value(0.0)

    def value(self, t: float) -> float:
        """Return the total loss."""
        with np.errstate(over="ignore"):
            return float((self.weight * self.loss.value(self.y, self._at(t))).sum())

    def slope(self, t: float) -> float:
        """Return the derivative of the total loss."""
        with np.errstate(over="ignore", invalid="ignore"):
            terms = self.weight * self.d * self.loss.gradient(self.y, self._at(t))
            return self.sign * float(terms.sum())

    def falls(self, t: float) -> bool:
        """Return whether the loss decreases at t and is not above the loss at 0."""
        return self.slope(t) < 0 and self.value(t) <= self.start

    def _at(self, t: float) -> FloatArray:
        return self.f + self.sign * t * self.d


def line_search(
    loss: _Loss,
    y: FloatArray,
    f: FloatArray,
    weight: FloatArray,
    direction: FloatArray | None = None,
) -> float:
    """Return the step s that minimizes the weighted loss at f + s * direction.

    The search goes downhill until the slope is positive or ``loss.limit`` is reached, then narrows
    the interval with the sign change. If the loss is not convex, the result is a local minimum with
    a loss not above the loss at s = 0.
    """
    d = np.ones(len(y)) if direction is None else direction
    size = float(np.abs(d).max(initial=0.0))
    kept = (weight > 0) & (d != 0)
    if not kept.any():
        return 0.0
    line = _Line(loss, y[kept], f[kept], weight[kept], d[kept] / size)
    if not line.slope(0.0) < 0:
        return 0.0
    low, high, limit = 0.0, 1.0, min(loss.limit, FAR)
    while high < limit and line.falls(high):
        low, high = high, 2 * high
    if high >= limit:
        high = limit
        if line.falls(limit):
            return line.sign * limit / size
    low, high = _enclose(line, low, high)
    best = min((high, low), key=line.value)
    return line.sign * best / size if line.value(best) <= line.start else 0.0


def _enclose(line: _Line, low: float, high: float) -> tuple[float, float]:
    """Narrow the bounds of a minimum; the loss decreases at `low`."""
    at_low, at_high = line.slope(low), line.slope(high)
    for round_ in range(200):
        if high - low <= WIDTH * high:
            break
        middle = low + (high - low) / 2
        if round_ % 2 and 0 < at_high < np.inf and at_low > -np.inf:
            # Keep the secant away from the ends of the interval, to narrow it faster.
            secant = low + (high - low) * at_low / (at_low - at_high)
            margin = (high - low) / 1000
            middle = min(max(secant, low + margin), high - margin)
        if not low < middle < high:
            break
        if line.falls(middle):
            low, at_low = middle, line.slope(middle)
        else:
            high, at_high = middle, line.slope(middle)
    return low, high


class _Groups:
    """Consecutive groups of rows, and the slopes of their losses."""

    def __init__(
        self, loss: _Loss, y: FloatArray, f: FloatArray, weight: FloatArray, count: GroupCounts
    ) -> None:
        self.loss, self.y, self.f, self.weight = loss, y, f, weight
        self.number = np.arange(len(count))
        self._count(count)
        heaviest = np.maximum.reduceat(weight, self.start)
        self.weight = weight / np.where(heaviest > 0, heaviest, 1.0)[self.group]

    def _count(self, count: GroupCounts) -> None:
        self.count = count
        self.start = np.concatenate([[0], np.cumsum(count)[:-1]])
        self.group = np.repeat(np.arange(len(count)), count)

    def slopes(self, step: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the slope, the second derivative and the sum of absolute slopes of each group."""
        slope, bend = self.loss.slopes(self.y, self.f + step[self.group])
        terms = self.weight * slope
        total = np.add.reduceat
        bends = total(self.weight * bend, self.start)
        return total(terms, self.start), bends, total(np.abs(terms), self.start)

    def keep(self, groups: NDArray[np.bool_]) -> None:
        """Keep only the given groups."""
        rows = groups[self.group]
        self.y, self.f, self.weight = self.y[rows], self.f[rows], self.weight[rows]
        self.number = self.number[groups]
        self._count(self.count[groups])


def newton_steps(
    loss: _Loss, y: FloatArray, f: FloatArray, weight: FloatArray, count: GroupCounts
) -> FloatArray:
    """Return the step of each group that minimizes its weighted loss. The loss must be convex.

    The groups are consecutive and have `count` rows. A Newton step outside the current bounds of
    the minimum is replaced by their midpoint. A loss without a limit is a function of the residual,
    and its best step is at most the largest absolute residual.
    """
    groups = _Groups(loss, y, f, weight, count)
    result, at = np.zeros(len(count)), np.zeros(len(count))
    slope, bend, size = groups.slopes(at)
    limit, near_enough, flat_share = np.full(len(count), loss.limit), NEAR, 0.0
    if loss.limit == np.inf:
        # With a piecewise linear loss, a short step does not show convergence.
        near_enough, flat_share = 0.0, FLAT
        residual = np.where(weight > 0, np.abs(y - f), 0.0)
        limit = 2 * np.maximum.reduceat(residual, groups.start)
    end = np.where(slope < 0, limit, -limit)
    far = np.sign(groups.slopes(end)[0]) == np.sign(slope)
    flat = np.abs(slope) <= ROUNDING * size
    result[far & ~flat] = end[far & ~flat]
    low, high = np.minimum(end, 0.0), np.maximum(end, 0.0)
    done = far | flat
    for _ in range(200):
        if done.all():
            break
        if done.any():
            groups.keep(~done)
            at, slope, bend, low, high = (part[~done] for part in (at, slope, bend, low, high))
        low, high = np.where(slope < 0, at, low), np.where(slope > 0, at, high)
        with np.errstate(all="ignore"):
            following = at - slope / bend
        inside = (low < following) & (following < high)
        following = np.where(inside, following, low + (high - low) / 2)
        moved = np.abs(following - at)
        near = np.where(inside, near_enough * np.maximum(np.abs(following), TINY), 0.0)
        result[groups.number] = at = following
        done = (moved <= near) | (high - low <= WIDTH * np.abs(at))
        if not done.all():
            slope, bend, size = groups.slopes(at)
            done |= np.abs(slope) <= flat_share * size
    return result


def kink_search(a: FloatArray, d: FloatArray, weight: FloatArray) -> float:
    """Return the s that minimizes the sum of weight * max(0, a - s d).

    If the minimum is an interval, its middle is returned, or its end if the interval is unbounded.
    """
    kept = (weight > 0) & (d != 0)
    if not kept.any():
        return 0.0
    a, d, weight = a[kept], d[kept], weight[kept]
    kink = a / d
    order = np.argsort(kink, kind="stable")
    kink, turn = kink[order], (weight * np.abs(d))[order]
    flat = FLAT * float(turn.sum())
    before = -float((weight * d)[d > 0].sum())
    slope = before + np.cumsum(turn)  # slope to the right of each kink
    if before >= -flat:
        return float(kink[0])
    k = int(np.argmax(slope >= -flat)) if slope[-1] >= -flat else len(kink) - 1
    if slope[k] <= flat and k + 1 < len(kink):
        return float(kink[k] / 2 + kink[k + 1] / 2)
    return float(kink[k])


def quantiles(
    residual: FloatArray, weight: FloatArray, count: GroupCounts, share: float
) -> FloatArray:
    """Return the quantile of each consecutive group of `count` numbers.

    If the quantile is an interval, its middle is returned. A group without weight has the quantile
    0. Weights are rounded to integers, so that their sums are exact.
    """
    group = np.repeat(np.arange(len(count)), count)
    stop = np.cumsum(count)
    heaviest = np.maximum.reduceat(weight, stop - count)
    bits = 61 - len(weight).bit_length()
    unit = np.where(heaviest > 0, heaviest, 1.0)[group]
    integer_weight = np.rint(np.ldexp(weight / unit, bits)).astype(np.int64)
    order = np.lexsort((residual, group))
    order = order[integer_weight[order] > 0]
    group, residual, below = group[order], residual[order], np.cumsum(integer_weight[order])
    result = np.zeros(len(count))
    if not len(order):
        return result
    last = np.flatnonzero(np.append(group[1:] != group[:-1], True))
    first = np.append(0, last[:-1] + 1)
    before = np.append(0, below[last[:-1]])
    total = below[last] - before
    rows = last - first + 1
    part = below - np.repeat(before, rows)
    wanted, flat = share * total, FLAT * total + rows
    reached = part >= np.repeat(wanted - flat, rows)
    at = np.minimum(first + np.add.reduceat(~reached, first), last)
    following = np.where(part[at] <= wanted + flat, np.minimum(at + 1, last), at)
    result[group[last]] = residual[at] / 2 + residual[following] / 2
    return result
