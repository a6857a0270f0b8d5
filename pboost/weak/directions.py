"""Directions of least criterion, by descent on a smoothed criterion from several starts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pboost._core import derived
from pboost.threads import Workers
from pboost.values import FloatArray

#: Standard deviations of the noise of a projection, in units of the columns', one after the other;
#: and steps at each.
COARSE, FINE, POLISH = (0.5, 12), (0.2, 20), (0.1, 8)
PAIR_STEPS = ((0.2, 8), (0.05, 8))
#: Least noise, times the root of columns over rows: with less a direction fits the rows at hand.
FLOOR = 2.0
#: Rows on which starts of all columns are tried, and on which pairs are.
ROWS, PAIR_ROWS = 2000, 4000
#: Pairs that are refined.
REFINED = 8
#: Angles at which pairs are screened; single columns have a pair of their own.
ANGLES = np.array([(math.cos(t), math.sin(t)) for t in np.pi * np.array([1, 2, 3, 5, 6, 7]) / 8])
AXIS = np.array([[1.0, 0.0]])
#: Columns of which directions of all are looked for: eight square matrices of them take 4 GiB.
MOST_COLUMNS = 8192
MATRICES = 8
#: Past steps from which the next is computed.
MEMORY = 6


@dataclass(frozen=True, slots=True, eq=False)
class NodeRows:
    """Rows at a node: columns (k, n) in units of their standard deviations, class -1 first."""

    Z: FloatArray
    weight: FloatArray
    n_negative: int

    def loss(self, sigma: float) -> Callable[[FloatArray], tuple[float, FloatArray]]:
        """Return the function of (coefficients, threshold) to be minimised, with its gradient."""
        slope = np.empty(len(self.weight))

        def value(point: FloatArray) -> tuple[float, FloatArray]:
            gradient = np.empty(len(point))
            total = derived.loss(
                self.Z, self.weight, self.n_negative, point, sigma, slope, gradient
            )
            return total, gradient

        return value

    def thinned(self, max_rows: int) -> NodeRows:
        """Return at most so many rows, every second, or third, or …, of either class."""
        step = -(-len(self.weight) // max_rows)
        if step == 1:
            return self
        middle, n = self.n_negative, len(self.weight)
        kept = np.concatenate([np.arange(0, middle, step), np.arange(middle, n, step)])
        weight = self.weight[kept]
        return NodeRows(
            np.ascontiguousarray(self.Z[:, kept]), weight / weight.sum(), -(-middle // step)
        )

    def only(self, columns: NDArray[np.intp]) -> NodeRows:
        """Return some columns only."""
        return NodeRows(np.ascontiguousarray(self.Z[columns]), self.weight, self.n_negative)


def minimise(
    value: Callable[[FloatArray], tuple[float, FloatArray]], point: FloatArray, steps: int
) -> tuple[float, FloatArray]:
    """Return the least value found and its place, by L-BFGS (Nocedal and Wright, 2006, 7.2)."""
    lowest, gradient = value(point)
    moves: list[tuple[FloatArray, FloatArray, float]] = []
    for _ in range(steps):
        step, shares = -gradient, []
        for s, y, sy in reversed(moves):
            shares.append((s @ step) / sy)
            step = step - shares[-1] * y
        if moves:
            s, y, sy = moves[-1]
            step = step * (sy / (y @ y))
        else:
            step = step * (0.3 / max(float(np.sqrt(step @ step)), 1e-300))
        for (s, y, sy), share in zip(moves, reversed(shares), strict=True):
            step = step + (share - (y @ step) / sy) * s
        slope = float(gradient @ step)
        if not slope < 0:
            break
        length, trial = 1.0, (math.inf, gradient)
        for _ in range(8):
            trial = value(point + length * step)
            if trial[0] <= lowest + 1e-4 * length * slope:
                break
            length /= 2
        if not trial[0] < lowest:
            break
        s, y = length * step, trial[1] - gradient
        point, gain, (lowest, gradient) = point + s, lowest - trial[0], trial
        if (sy := float(s @ y)) > 1e-12 * float(y @ y):
            moves = [*moves[1 - MEMORY :], (s, y, sy)]
        if gain < 1e-6 * lowest:
            break
    return lowest, point


def descend(rows: NodeRows, point: FloatArray, levels: tuple[tuple[float, int], ...]) -> FloatArray:
    """Return a point after steps at each level of noise; its coefficients have length 1."""
    k, n = rows.Z.shape
    min_sigma = FLOOR * math.sqrt(k / n)
    for sigma, steps in levels:
        point = point / np.sqrt(point[:-1] @ point[:-1])
        _, point = minimise(rows.loss(max(sigma, min_sigma)), point, steps)
    point = point / np.sqrt(point[:-1] @ point[:-1])
    return point


def all_columns(rows: NodeRows) -> FloatArray:
    """Return the coefficients (k,) of a direction of all columns.

    Raises
    ------
    ValueError
        If there are more than `MOST_COLUMNS`.
    """
    k = len(rows.Z)
    if k > MOST_COLUMNS:
        raise ValueError(
            f"weak_learner: expected at most {MOST_COLUMNS} columns that vary, got {k}: directions of all "
            f"of them would take {8 * MATRICES * k**2 / 1e9:.0f} GB; use "
            "weak.linear(dense_gain=None), which looks at columns and at pairs of them, or "
            "weak.affine()"
        )
    few = rows.thinned(ROWS)
    candidates = []
    for number, start in enumerate(starts(few)):
        value = start @ few.Z
        point = np.append(start, np.average(value, weights=few.weight))
        point = descend(few, point, (COARSE, FINE))
        candidates.append((few.loss(POLISH[0])(point)[0], number, point))
    best = min(candidates, key=lambda item: item[:2])[2]
    return descend(rows, best, (POLISH,))[:-1]


def starts(rows: NodeRows) -> list[FloatArray]:
    """Return directions to start from, of length 1.

    That of linear discriminant analysis; and the two along which the variances of the classes
    differ most, which it does not see.
    """
    k, middle = len(rows.Z), rows.n_negative
    means, spreads = [], []
    for part in (slice(middle), slice(middle, None)):
        share = rows.weight[part] / rows.weight[part].sum()
        mean = rows.Z[:, part] @ share
        centred = rows.Z[:, part] - mean[:, None]
        means.append(mean)
        spreads.append((centred * share) @ centred.T)
    within = spreads[0] + spreads[1]
    within += 1e-3 * max(float(np.trace(within)) / k, 1e-12) * np.eye(k)
    linear = np.linalg.solve(within, means[1] - means[0])
    length = float(np.sqrt(linear @ linear))
    directions = [linear / length] if length > 0 else []
    _, vectors = np.linalg.eigh(spreads[1] - spreads[0])
    return [*directions, vectors[:, 0], vectors[:, -1]]


def pairs(rows: NodeRows, listed: NDArray[np.int32]) -> list[tuple[NDArray[np.intp], FloatArray]]:
    """Return the columns and coefficients of the best single column and of good pairs."""
    few = rows.thinned(PAIR_ROWS)
    singles = np.repeat(np.arange(len(rows.Z), dtype=np.int32)[:, None], 2, axis=1)
    score, _, _ = _screened(few, singles, AXIS)
    best = int(np.argmin(score))
    result: list[tuple[NDArray[np.intp], FloatArray]] = [(np.array([best]), np.ones(1))]
    if not len(listed):
        return result
    score, at, which = _screened(few, listed, ANGLES)
    for p in np.argsort(score, kind="stable")[:REFINED]:
        columns = listed[p].astype(np.intp)
        point = descend(few.only(columns), np.append(ANGLES[which[p]], at[p]), PAIR_STEPS)
        result.append((columns, point[:-1]))
    return result


def _screened(
    rows: NodeRows, listed: NDArray[np.int32], angles: FloatArray
) -> tuple[FloatArray, FloatArray, NDArray[np.int32]]:
    m = len(listed)
    best, at, which = np.empty(m), np.empty(m), np.empty(m, dtype=np.int32)

    def work(first: int, last: int) -> None:
        part = slice(first, last)
        derived.screen(
            rows.Z,
            rows.weight,
            rows.n_negative,
            listed[part],
            np.ascontiguousarray(angles),
            best[part],
            at[part],
            which[part],
        )

    Workers(1).run(work, m, cells=len(rows.weight) * len(angles))
    return best, at, which
