"""Bins of sparse features, from the values of a dense matrix."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def bins_of_side(values, max_bins, min_samples):
    """Return the smallest and the largest value of each bin of positive values.

    The bins have about equal numbers of values, and equal values share a bin.
    """
    if not len(values):
        return []
    limit = min(max_bins, max(len(values) // min_samples, 1))
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= limit:
        return [(value, value) for value in distinct]
    bins, rest = [], len(values)
    first = 0
    while first < len(distinct):
        last, rows = first, 0
        while last < len(distinct) and rows * (limit - len(bins)) < rest:
            rows += counts[last]
            last += 1
        bins.append((distinct[first], distinct[last - 1]))
        rest -= rows
        first = last
    return bins


def bins_of_feature(values, is_used, max_bins, min_samples):
    """Return the bins of a feature as pairs of their ends, in increasing order.

    If `min_samples` is None, it is 1 for features with values in more than 30 % of the rows, and
    otherwise 100 or a hundredth of the rows.
    """
    used = values[is_used]
    if min_samples is None:
        is_dense = np.count_nonzero(used) > int(0.3 * len(used))
        min_samples = 1 if is_dense else max(1, min(100, int(0.01 * len(used))))
    n, most = np.count_nonzero(used), min(max_bins - 1, 254)
    places = [
        min(max(int(most * (np.count_nonzero(side) / max(n, 1)) + 0.5), 16), most)
        for side in (used < 0, used > 0)
    ]
    below = bins_of_side(-used[used < 0], places[0], min_samples)
    above = bins_of_side(used[used > 0], places[1], min_samples)
    zero = [(0.0, 0.0)] if (values == 0).any() else []
    return [(-high, -low) for low, high in below[::-1]] + zero + above


def codes_of(values, bins):
    """Return the bin of each value: the number of midpoints between bins that lie below it."""
    midpoints = [low / 2 + high / 2 for (_, low), (high, _) in pairwise(bins)]
    return np.searchsorted(midpoints, values).astype(np.uint8)


def binned(X, is_used=None, max_bins=256, min_samples=1):
    """Return the codes (d, n), the number of bins, and the ends of the bins of each feature."""
    is_used = np.ones(len(X), bool) if is_used is None else is_used
    every = [bins_of_feature(x, is_used, max_bins, min_samples) for x in X.T]
    codes = np.array([codes_of(x, bins) for x, bins in zip(X.T, every, strict=True)])
    lower, upper = np.zeros((2, len(every), max(map(len, every))))
    for j, bins in enumerate(every):
        lower[j, : len(bins)], upper[j, : len(bins)] = np.reshape(bins, (-1, 2)).T
    return codes, np.array([len(bins) for bins in every], dtype=np.int32), lower, upper
