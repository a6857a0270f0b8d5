"""Columns that exclude each other: bundles as sets of rows, sums below the cut of a column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

OPEN, MOST = 16, 255


@dataclass
class Bundle:
    columns: list[int]
    sides: list[int]  # the bin that each column brings
    rows: set[int]  # that lie in one of them


def bundles(codes, wanted):
    """Return the bundles of the wanted columns, whose codes are 0 or 1, in the order of joining."""
    every, actual, open_ = set(range(codes.shape[1])), [], []
    for j in np.flatnonzero(wanted).tolist():
        ones = set(np.flatnonzero(codes[j]).tolist())
        rarer = int(2 * len(ones) <= len(every))
        own = ones if rarer else every - ones
        joined, side = None, rarer
        for bundle in reversed(open_):
            if len(bundle.columns) == MOST:
                continue
            # As it is; if there is one column, with its other bin, too.
            for turned in range(2 if len(bundle.columns) == 1 else 1):
                rows = every - bundle.rows if turned else bundle.rows
                for other in range(2):
                    if joined is None and not rows & (every - own if other else own):
                        joined, side = bundle, rarer ^ other
                        bundle.rows = rows
                        bundle.sides[0] ^= turned
            if joined is not None:
                break
        if joined is None:
            joined = Bundle([], [], set())
            actual.append(joined)
            if len(open_) == OPEN:
                del open_[0]
        else:
            open_.remove(joined)
        open_.append(joined)
        joined.columns.append(j)
        joined.sides.append(side)
        joined.rows |= own if side == rarer else every - own
    return actual


def lanes(codes, n_bins, wanted):
    """Return, for each lane in the order of the first columns, its columns, sides and codes."""
    actual = [(b.columns, b.sides) for b in bundles(codes, wanted) if len(b.columns) > 1]
    taken = {j for columns, _ in actual for j in columns}
    actual += [([j], None) for j in range(len(codes)) if j not in taken]
    result = []
    for columns, sides in sorted(actual, key=lambda lane: lane[0][0]):
        lane = codes[columns[0]].copy()
        if sides is not None:
            lane[:] = 0
            for number, (j, side) in enumerate(zip(columns, sides, strict=True), start=1):
                assert not lane[codes[j] == side].any()
                lane[codes[j] == side] = number
        result.append((columns, sides, lane))
    return result


def sum_below(lane, number, side, values):
    """Return the sum over the rows below the cut of a member, by the sums of the lane's codes."""
    by_code = np.bincount(lane, values, minlength=number + 1)
    return by_code.sum() - by_code[number] if side else by_code[number]
