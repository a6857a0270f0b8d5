"""Levels of two classes whose shares are smoothed: the kernels' functions, in NumPy.

What is smoothed, and why: ``_core/_levels.pxd``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.values import FloatArray

#: The most that is added to a level, beside the mass of all levels.
MOST_PULL = 1e6


def pull_of(
    smoothing: float,
    negative: NDArray[Any],
    positive: NDArray[Any],
    whole: tuple[float, float],
    n_rows: int,
) -> float:
    """Return the mass of the node's own share that is added to each level.

    `negative` and `positive` are the masses of the levels that have some, `whole` the node's.
    """
    n, p = float(whole[0]), float(whole[1])
    chance = smoothing * max(len(positive) - 2, 0)
    if chance <= 0 or n <= 0 or p <= 0:
        return 0.0
    mass = np.asarray(negative + positive, dtype=np.float64)
    apart = positive - mass * (p / (n + p))
    squares = float((apart * (apart / mass)).sum()) * (n_rows / n * ((n + p) / p))
    known = float(mass.sum())
    if squares - chance <= chance / (MOST_PULL * len(mass)):
        return MOST_PULL * known
    return known / len(mass) * (chance / (squares - chance))


def smoothed_away(
    left: FloatArray, all_: float, low: NDArray[Any], high: NDArray[Any], whole: tuple[float, float]
) -> NDArray[np.int64]:
    """Return how much of class +1 smoothing adds below cuts.

    By how much levels depart from the node's share, smoothed: `left` those below each cut, `all_`
    those of all; `low` and `high` are the masses of class -1 and +1 below, `whole` the node's.
    """
    n, p = float(whole[0]), float(whole[1])
    below = np.asarray(low + high, dtype=np.float64)
    apart = np.asarray(high - below * (p / (n + p)))
    kept = np.ones(len(apart))
    np.divide(left - all_ * (below / (n + p)), apart, out=kept, where=apart != 0)
    moved = -((1 - np.clip(kept, 0, 1)) * apart).astype(np.int64)
    most, least = np.minimum(low, p - high), np.minimum(high, n - low)
    return np.asarray(np.clip(moved, -least, most)).astype(np.int64)
