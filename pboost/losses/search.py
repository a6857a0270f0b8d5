"""Steps of least loss: along a line, in many groups of rows at once, and at kinks."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.values import FloatArray

GroupCounts: TypeAlias = NDArray[np.signedinteger[Any]]

#: Bound on a step where the loss names none.
FAR = 2.0**60
#: Relative width at which a search ends.
WIDTH = 1e-13
#: Share of all slopes that counts as none.
FLAT = 1e-13
#: The same of sums of few terms.
ROUNDING = 1e-15
#: Newton step, relative to where it leads, after which the next would be lost in rounding.
NEAR = 1e-8
#: Step so small that no more than an absolute precision of its product with `NEAR` is asked for.
TINY = 1e-6


class _Loss(Protocol):
    """What a search asks a loss for."""

    @property
    def limit(self) -> float: ...
    def value(self, y: FloatArray, f: FloatArray) -> FloatArray: ...
    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray: ...
    def slopes(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]: ...


class _Line:
    """The total loss and its slope along a line, downhill from 0; a step of 1 moves f by 1."""

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
        """Whether the loss is not above that at 0, and falls."""
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
    """Return the step s of least weighted loss at f + s * direction, bounded by ``loss.limit``.

    The slope is followed downhill until it rises or the bound is reached, and its sign change is
    enclosed. Of a loss that is not convex this is a local minimum; it is never above s = 0.
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
    """Return narrow bounds of a minimum between a step where the loss falls and one beyond it."""
    at_low, at_high = line.slope(low), line.slope(high)
    for round_ in range(200):
        if high - low <= WIDTH * high:
            break
        middle = low + (high - low) / 2
        if round_ % 2 and 0 < at_high < np.inf and at_low > -np.inf:
            # A secant, kept off the ends, which otherwise move by ever less.
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
    """Groups of rows, one after another, and the slopes of their losses along steps."""

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
        """Return the slope, the curvature and the sum of sizes of slopes of each group."""
        slope, bend = self.loss.slopes(self.y, self.f + step[self.group])
        terms = self.weight * slope
        total = np.add.reduceat
        bends = total(self.weight * bend, self.start)
        return total(terms, self.start), bends, total(np.abs(terms), self.start)

    def keep(self, groups: NDArray[np.bool_]) -> None:
        """Drop the other groups."""
        rows = groups[self.group]
        self.y, self.f, self.weight = self.y[rows], self.f[rows], self.weight[rows]
        self.number = self.number[groups]
        self._count(self.count[groups])


def newton_steps(
    loss: _Loss, y: FloatArray, f: FloatArray, weight: FloatArray, count: GroupCounts
) -> FloatArray:
    """Return the step of least weighted loss of groups of rows, all at once; the loss is convex.

    `count` are the numbers of rows of the groups, which stand one after another. Newton steps are
    kept within the bounds that the signs of slopes have shown, and halve them otherwise. A loss
    without a limit is one of residuals, whose best step is no larger than the largest of them.
    """
    groups = _Groups(loss, y, f, weight, count)
    result, at = np.zeros(len(count)), np.zeros(len(count))
    slope, bend, size = groups.slopes(at)
    limit, near_enough, flat_share = np.full(len(count), loss.limit), NEAR, 0.0
    if loss.limit == np.inf:
        # Of a loss that is linear in parts a short step may lead to a long one.
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
    """Return the s that minimises the sum of weight * max(0, a - s d).

    The middle, where it is an interval; the end nearest the kinks, where that is unbounded.
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
    slope = before + np.cumsum(turn)  # to the right of each kink
    if before >= -flat:
        return float(kink[0])
    k = int(np.argmax(slope >= -flat)) if slope[-1] >= -flat else len(kink) - 1
    if slope[k] <= flat and k + 1 < len(kink):
        return float(kink[k] / 2 + kink[k + 1] / 2)
    return float(kink[k])


def quantiles(
    residual: FloatArray, weight: FloatArray, count: GroupCounts, share: float
) -> FloatArray:
    """Return the quantile of each group of numbers, `count` one after another.

    The middle, where an interval is best; 0 of a group without weight. Weights are rounded to
    integers, so that their sums are exact.
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
