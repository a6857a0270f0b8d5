"""Store features that exclude each other, such as one-hot columns, in one array of codes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import derived
from pboost.data.columns.columns import BinnedColumns
from pboost.data.columns.prebuilt import HOLES
from pboost.threads import Workers
from pboost.values import IntArray


class Lanes(NamedTuple):
    """The arrays (lanes) of feature codes, one code per row; see ``pboost/_core/derived.pyx``.

    Attributes
    ----------
    lane : ndarray of int32, shape (d,)
        Lane of each feature. Lanes are ordered by their first feature.
    code, side : ndarray of uint8, shape (d,)
        For features that share a lane: the code in the lane for rows in the bin `side` of the
        feature. For other features, `code` is 0, and the lane contains the codes of the feature.
    column : ndarray of int32, shape (n_lanes,)
        Feature of each lane, or -1 for a lane with several features.
    bundled : ndarray of int32
        Features that share a lane, in increasing order.
    bins : ndarray of int32, shape (n_lanes,)
        Number of codes in each lane.
    groups : ndarray of uint8, shape (ceil(n_lanes / 8), n, 8)
        Codes of eight lanes side by side.
    """

    lane: IntArray
    code: NDArray[np.uint8]
    side: NDArray[np.uint8]
    column: IntArray
    bundled: IntArray
    bins: IntArray
    groups: NDArray[np.uint8]


def lanes_of(columns: BinnedColumns, n_threads: int = 1, are_shared: bool = True) -> Lanes:
    """Return the arrays of feature codes (lanes).

    If `are_shared`, a lane can contain several numerical features with at most two bins and without
    missing values. No row may be in the rarer bin of two of these features.
    """
    codes, special = columns.codes, columns.special
    d, n = codes.shape
    bins = columns.n_bins if special is None else columns.n_bins + (special & HOLES)
    wanted = columns.n_bins <= 2 if special is None else (columns.n_bins <= 2) & (special == 0)
    first = np.arange(d, dtype=np.int32)
    code, side = np.zeros((2, d), dtype=np.uint8)
    if are_shared and np.count_nonzero(wanted) > 1:
        work = np.empty((derived.WORK_SETS, -(-n // 64)), dtype=np.uint64)
        derived.bundle(codes, wanted.view(np.uint8), first, code, side, work)
    column, place = np.unique(first, return_inverse=True)
    lane = place.astype(np.int32)
    n_codes = bins[column]
    bundled = np.flatnonzero(code).astype(np.int32)
    np.maximum.at(n_codes, lane[bundled], code[bundled].astype(np.int32) + 1)
    groups = np.empty((-(-len(column) // derived.GROUP_LANES), n, derived.GROUP_LANES), np.uint8)

    def put(start: int, stop: int) -> None:
        derived.interleave(codes, lane, code, side, groups, start, stop)

    with Workers(n_threads) as workers:
        workers.run(put, n, cells=d)
    column = np.where(code[column] > 0, -1, column).astype(np.int32)
    return Lanes(lane, code, side, column, bundled, n_codes, groups)
