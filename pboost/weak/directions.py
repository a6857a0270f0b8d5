"""Search for the direction that minimizes a smoothed criterion."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pboost._core import derived
from pboost.threads import Workers
from pboost.values import FloatArray

#: Stages of the search: the noise that is added to a projection, in standard deviations of the
#: features, and the number of optimizer iterations.
COARSE, FINE, POLISH = (0.5, 12), (0.2, 20), (0.1, 8)
PAIR_STEPS = ((0.2, 8), (0.05, 8))
#: Minimum noise, divided by sqrt(features / rows). With less noise, directions overfit.
FLOOR = 2.0
#: Largest number of rows used to compare directions of all features, and to search pairs.
ROWS, PAIR_ROWS = 2000, 4000
#: Number of pairs of features that are optimized after screening.
REFINED = 8
#: Angles at which pairs of features are screened; `AXIS` screens single features.
ANGLES = np.array([(math.cos(t), math.sin(t)) for t in np.pi * np.array([1, 2, 3, 5, 6, 7]) / 8])
AXIS = np.array([[1.0, 0.0]])
#: Largest number of features for directions of all features: eight square matrices take 4 GiB.
MOST_COLUMNS = 8192
MATRICES = 8
#: Number of past steps that L-BFGS stores.
MEMORY = 6


@dataclass(frozen=True, slots=True, eq=False)
class NodeRows:
    """The standardized features (k, n) of the rows at a node; rows of class -1 come first."""

    Z: FloatArray
    weight: FloatArray
    n_negative: int

    def loss(self, sigma: float) -> Callable[[FloatArray], tuple[float, FloatArray]]:
        """Return a function that computes the loss and its gradient."""
        slope = np.empty(len(self.weight))

        def value(point: FloatArray) -> tuple[float, FloatArray]:
            gradient = np.empty(len(point))
            total = derived.loss(
                self.Z, self.weight, self.n_negative, point, sigma, slope, gradient
            )
            return total, gradient

        return value

    def thinned(self, max_rows: int) -> NodeRows:
        """Return at most `max_rows` rows: every m-th row of each class."""
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
        """Return the rows with only the given features."""
        return NodeRows(np.ascontiguousarray(self.Z[columns]), self.weight, self.n_negative)


def minimise(
    value: Callable[[FloatArray], tuple[float, FloatArray]], point: FloatArray, steps: int
) -> tuple[float, FloatArray]:
    """Return the minimum and its argument, found by L-BFGS (Nocedal and Wright, 2006, 7.2)."""
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
    """Minimize the loss at each noise level; return a point with coefficients of length 1."""
    k, n = rows.Z.shape
    min_sigma = FLOOR * math.sqrt(k / n)
    for sigma, steps in levels:
        point = point / np.sqrt(point[:-1] @ point[:-1])
        _, point = minimise(rows.loss(max(sigma, min_sigma)), point, steps)
    point = point / np.sqrt(point[:-1] @ point[:-1])
    return point


def all_columns(rows: NodeRows) -> FloatArray:
    """Return the coefficients (k,) of the best direction of all features.

    Raises
    ------
    ValueError
        If there are more than `MOST_COLUMNS` features.
    """
    k = len(rows.Z)
    if k > MOST_COLUMNS:
        raise ValueError(
            f"weak_learner: expected at most {MOST_COLUMNS} features that vary, got {k}; a "
            f"direction of all features would need {8 * MATRICES * k**2 / 1e9:.0f} GB; use "
            "weak.linear(dense_gain=None), which searches single features and pairs, or "
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
    """Return the initial directions, of length 1.

    The first is found by linear discriminant analysis. The other two are the directions in which
    the class variances differ most, which linear discriminant analysis cannot find.
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
    """Return the coefficients of the best single feature and of good pairs of features."""
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
