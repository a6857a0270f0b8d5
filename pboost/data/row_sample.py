"""The rows that make the edges of bins, kept while a table is read that does not fit into memory.

They are those with the least hashes of their values, as in `sampled_bins`, each once with the
number of its copies or their weight: the sample depends neither on order nor on batches.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pboost.data import sampled_bins
from pboost.values import Array, FloatArray


class RowSample:
    """Different rows of least hashes, `sampled_bins.SAMPLE_ROWS` at most.

    Parameters
    ----------
    d : int
        Number of columns.

    Attributes
    ----------
    is_part : bool
        Whether there were more different rows.
    """

    def __init__(self, d: int) -> None:
        self._hashed = np.empty(0, dtype=np.uint64)
        self._values, self._mass = np.empty((0, d)), np.empty(0, dtype=np.int64)
        self._limit = np.uint64(2**64 - 1)
        self._new: list[tuple[NDArray[np.uint64], FloatArray, NDArray[np.int64]]] = []
        self._n_new = 0
        self.is_part = False

    def add(
        self, values: Array, hashed: NDArray[np.uint64], mass: NDArray[np.int64] | None
    ) -> None:
        """Take rows, given their hashes and masses, by default 1; those of mass 0 are none."""
        is_in = hashed <= self._limit
        if mass is not None:
            is_in &= mass > 0
        at = np.flatnonzero(is_in)
        if not len(at):
            return
        own = np.ones(len(at), dtype=np.int64) if mass is None else mass[at]
        self._new.append((hashed[at], values[at].astype(np.float64), own))
        self._n_new += len(at)
        if self._n_new > sampled_bins.SAMPLE_ROWS:
            self._join()

    def _join(self) -> None:
        """Bring what is new together with what was there before."""
        before = self._hashed, self._values, self._mass
        hashes, values, masses = zip(before, *self._new, strict=True)
        hashed, mass = np.concatenate(hashes), np.concatenate(masses)
        self._hashed, first, which = np.unique(hashed, return_index=True, return_inverse=True)
        joined = np.zeros(len(first), dtype=np.int64)
        np.add.at(joined, which, mass)
        self._values, self._mass = np.concatenate(values)[first], joined
        self._new, self._n_new = [], 0
        most = sampled_bins.SAMPLE_ROWS
        if len(self._hashed) > most:
            self.is_part, self._limit = True, self._hashed[most - 1]
            self._hashed, self._values = self._hashed[:most], self._values[:most]
            self._mass = self._mass[:most]

    def rows(self) -> tuple[FloatArray, NDArray[np.int64]]:
        """Return the rows (m, d), and the mass of all copies of each."""
        if self._new:
            self._join()
        return self._values, self._mass
