"""Sets of levels, as rows of bins have them."""

from __future__ import annotations

import numpy as np


def is_among(codes, some):
    """Return which codes, uint8, are among some: as `np.isin`, which takes ten times as long."""
    table = np.zeros(256, dtype=bool)
    table[list(some)] = True
    return table[codes]
