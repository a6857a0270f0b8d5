"""Random draws of rows that depend on their contents, and not on their order or their number.

A row is drawn if a hash of its bins, its target, a seed and the number of the draw is below a
limit. Equal rows are drawn together, so weights that count copies give the same model as copies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import draws
from pboost.data.columns.columns import BinnedColumns, SortedColumns
from pboost.data.columns.sparse_columns import SparseColumns
from pboost.data.columns.splitmix import STEP, bits_of, mix
from pboost.values import Array, IntArray


def row_hashes(
    columns: SortedColumns | BinnedColumns | SparseColumns, target: Array
) -> NDArray[np.uint64]:
    """Return a hash (n,) of the bins and the target of each row.

    It is a sum over the features, to which the bin that contains 0 adds nothing. A bin is
    identified by its smallest value, and a target by its mantissa, so that the unit of the target
    does not matter.
    """
    total = columns.hashes() if isinstance(columns, SparseColumns) else _dense_hashes(columns)
    total += mix(bits_of(np.frexp(target)[0]))
    return mix(total)


def _dense_hashes(columns: SortedColumns | BinnedColumns) -> NDArray[np.uint64]:
    """Return the sum of the hashes of the bins of each row."""
    total = np.zeros(columns.n_rows, dtype=np.uint64)
    for j, codes in enumerate(columns.codes):
        lower, upper = columns.bin_ranges(j)
        bins = mix(bits_of(np.append(lower, np.nan)) + STEP * np.array([j + 1], np.uint64))
        bins -= bins[min(int((upper < 0).sum()), max(len(upper) - 1, 0))]
        total += bins[codes]
    return total


def drawn_share(subsample: float | int | None, n: float) -> float:
    """Return the fraction of the rows to draw from `n` rows, in (0, 1]."""
    if not isinstance(subsample, int):
        return 1.0 if subsample is None else subsample
    if subsample > n:
        raise ValueError(
            f"subsample: expected at most {n:g}, the number of rows of positive weight, got "
            f"{subsample}"
        )
    return subsample / n


class RowDraws(NamedTuple):
    """Draws of rows.

    Attributes
    ----------
    hashes : ndarray of uint64, shape (n,)
        See `row_hashes`.
    rows : ndarray of int32, shape (m,)
        The rows that can be drawn, in increasing order.
    share : float
        Expected fraction of these rows in a draw, in (0, 1).
    seed : int
        Seed of all draws.
    """

    hashes: NDArray[np.uint64]
    rows: IntArray
    share: float
    seed: int

    def drawn(self, number: int, team: int = 0) -> IntArray:
        """Return the rows of the draw with this number.

        `team` is the address of the threads, see `Workers`.
        """
        drawn = np.empty_like(self.rows)
        limit = int(self.share * 2.0**64)
        case = self.hashes, self.rows, self.seed, number, limit, drawn, team
        return drawn[: draws.draw(*case)]
