"""Hashes of numbers with `splitmix64`.

They are the outputs of the generator [1]_.

References
----------
.. [1] G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number generators",
   OOPSLA (2014).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pboost.values import Array

#: Odd multipliers of `splitmix64`, and the increment of its state.
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
STEP = np.uint64(0x9E3779B97F4A7C15)


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the output of `splitmix64` for each state."""
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


def bits_of(values: Array) -> NDArray[np.uint64]:
    """Return the bits of numbers. 0 and -0 have equal bits."""
    bits: NDArray[np.uint64] = (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)
    return bits
