"""A trial of two growths on some of the rows, by which large tables choose one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import boost
from pboost.data.columns import BinnedColumns
from pboost.data.training import Problem
from pboost.growth.tree import CartLimits
from pboost.losses import Loss
from pboost.threads import Workers
from pboost.trees.restraints import Restraints
from pboost.trees.rounds import Rounds
from pboost.trees.steps import Steps
from pboost.trees.weights import Weights, weights_of
from pboost.values import FloatArray, IntArray

#: Rows that take part, copies counted, and their share at most; one in `HELD_OUT` tells the losses.
TRIAL_ROWS, MOST_OF_ROWS, HELD_OUT = 20_000, 0.5, 5
#: Trees of more than three levels, and of three, which find interactions later.
TREES, SHALLOW_TREES = 10, 30
#: Few trees with large steps go as far as more of them would with small ones.
TRIAL_RATE = 0.3
#: By so many standard errors losses of rows held out have to be lower.
STANDARD_ERRORS = 2.0
#: Rows that are hashed at a time: they stay in the cache.
HASHED_ROWS = 8192


def hashes(codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return numbers that depend on what is in each row only, and are spread evenly, (n,)."""
    d, n = codes.shape
    key = _mixed(np.arange(1, d + 1, dtype=np.uint64)) | np.uint64(1)
    found = np.zeros(n, dtype=np.uint64)
    for start in range(0, n, HASHED_ROWS):
        here = found[start : start + HASHED_ROWS]
        for times, column in zip(key, codes[:, start : start + HASHED_ROWS], strict=True):
            here += times * column
        here[:] = _mixed(here)
    return found


def _mixed(number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the last step of splitmix64."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


def rows_of_trial(columns: BinnedColumns, weights: Weights) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the rows that take part, equal ones together, and which of them are held out."""
    hashed, copies = hashes(columns.codes), weights.n_copies
    taken = hashed < np.uint64(min(TRIAL_ROWS / copies, MOST_OF_ROWS) * 2.0**64)
    if weights.of_rows is not None:
        taken &= weights.of_rows > 0
    rows = np.flatnonzero(taken).astype(np.int32)
    return rows, hashed[rows] % np.uint64(HELD_OUT) == 0


def tried(
    growth: str, problem: Problem, y: FloatArray, loss: Loss, weights: Weights, bias: Any,
    limits: CartLimits, steps: Steps, held: Restraints, workers: Workers,
) -> tuple[str, CartLimits]:  # fmt: skip
    """Return a growth, that which a trial tells in place of "auto", and the limits with it."""
    if growth != "auto":
        return growth, limits
    case = problem, y, loss, weights, float(bias), limits, steps, held, workers
    if is_symmetric_better(*case):
        return "symmetric", replace(limits, growth="symmetric")
    return "free", limits


def is_symmetric_better(
    problem: Problem, y: FloatArray, loss: Loss, weights: Weights, bias: float,
    limits: CartLimits, steps: Steps, held: Restraints, workers: Workers,
) -> bool:  # fmt: skip
    """Return whether rows held out have a lower loss by symmetric trees than by free ones."""
    columns = problem.columns
    assert isinstance(columns, BinnedColumns)
    n_trees = TREES if limits.depth > 3 else SHALLOW_TREES
    rows, is_out = rows_of_trial(columns, weights)
    out, others = np.flatnonzero(is_out), np.flatnonzero(~is_out).astype(np.int32)
    # Of a table with few different rows there can be far too many, or too few.
    if len(rows) > 2 * TRIAL_ROWS or not (len(out) and len(others)):
        return False
    few = replace(problem, columns=columns.select(rows))
    copies = weights.of_rows
    if copies is not None:
        copies = copies[rows]
        weights = weights_of(copies, 1.0 if weights.are_copies else None)
    else:
        weights = weights_of(np.ones(len(rows)))
    steps, losses = steps._replace(rate=TRIAL_RATE), np.zeros((2, len(out)))
    growths = limits, replace(limits, growth="symmetric")
    for growth, of_growth in zip(growths, losses, strict=True):
        f = np.full(len(rows), bias)
        grower = Rounds(few, y[rows], loss, weights, f, growth, steps, held, workers)
        for step in range(n_trees):
            if grower.grow(others) is None:
                return False
            if step >= n_trees // 2:  # one interaction found early says less than several do
                of_growth += loss.value(grower.y[out], grower.f[out])
    return is_lower(losses[1] - losses[0], np.ones(len(out)) if copies is None else copies[out])


def is_lower(difference: FloatArray, weight: FloatArray) -> bool:
    """Return whether the mean of differences is below 0, by so many standard errors."""
    most = float(np.abs(difference).max())
    if not 0.0 < most < np.inf:
        return False
    parts = difference / most
    total, second = (boost.exact_sum(of) for of in (weight, weight * parts * parts))
    # Sums of numbers >= 0 do not depend on their order.
    above, below = (boost.exact_sum(weight * np.maximum(of, 0.0)) for of in (parts, -parts))
    mean = (above - below) / total
    return mean < -STANDARD_ERRORS * math.sqrt(max(second / total - mean * mean, 0.0) / total)
