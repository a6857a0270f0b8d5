"""The smoothed criterion of a direction, and of pairs of columns on cells of equal width."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from reference.split import impurity


def smoothed_criterion(Z, y, w, coefficient, threshold, sigma):
    """Return the Kearns-Mansour criterion if P(above) is that of T with two degrees of freedom."""
    above = student(2).cdf((Z @ coefficient - threshold) / sigma)
    value = 0.0
    for q in (above, 1 - above):
        value += impurity("kearns_mansour", np.sum(w * q * (y > 0)), np.sum(w * q * (y < 0)))
    return value


def cell_criterion(v, y, w, cells=64, reach=3.0):
    """Return the least criterion of cuts between cells of [-reach, reach], and its threshold."""
    width = 2 * reach / cells
    cell = np.clip(np.floor((v + reach) / width), 0, cells - 1)
    values = []
    for c in range(cells - 1):
        below = cell <= c
        values.append(
            sum(
                impurity("kearns_mansour", w[side & (y > 0)].sum(), w[side & (y < 0)].sum())
                for side in (below, ~below)
            )
        )
    best = int(np.argmin(values))
    return float(values[best]), (best + 1) * width - reach
