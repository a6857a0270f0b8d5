"""Bins whose edges are made of some rows, those of least hash."""

from __future__ import annotations

import struct

import numpy as np

from reference.sampled import GOLDEN, mix
from reference.sort import rank_bins


def content_hash(row):
    """A number of 64 bits that depends on the numbers in a row only; 0.0 is -0.0."""
    total = 0
    for j, value in enumerate(row):
        key = mix(GOLDEN * (j + 1) % 2**64) | 1
        bits = 0x7FF8 << 48
        if not np.isnan(value):
            (bits,) = struct.unpack("<Q", struct.pack("<d", float(value) + 0.0))
        total += key * (bits ^ bits >> 32)
    return mix(total % 2**64)


def rows_of_edges(X, weight, most):
    """Return whether each row is one of those that make the edges: of the `most` least hashes.

    None where the rows of positive weight have no more different contents than that.
    """
    hashed = np.array([content_hash(row) for row in X], dtype=object)
    minimum = sorted(set(hashed[weight > 0]))
    return None if len(minimum) <= most else (hashed <= minimum[most - 1]) & (weight > 0)


def sampled_bins(X, weight, max_bins, part, n_levels):
    """Bins of all rows by the edges of some, which `part` tells.

    `n_levels` is, for each column, 0 or the number of its levels, which have a bin each.

    Returns
    -------
    codes : (d, n) int array
        Bin of each row; missing values have the one after the last.
    ends : list of (n_bins, 2) float arrays
        Least and greatest value in each bin of a column; NaN where it has no row.
    """
    X = np.asarray(X, dtype=np.float64)
    max_bins = min(max_bins, 255) if np.isnan(X).any() else max_bins
    codes, ends = [], []
    for x, levels in zip(X.T, n_levels, strict=True):
        hole = np.isnan(x)
        known = part & ~hole
        edges = np.arange(max(levels - 1, 0)) + 0.5
        if not levels and known.any():
            edges = rank_bins(x[known], weight[known], max_bins)[1]
        code = np.where(hole, len(edges) + 1, np.searchsorted(edges, x, side="left"))
        held = [x[code == b] + 0.0 for b in range(len(edges) + 1)]
        actual = [(v.min(), v.max()) if len(v) else (np.nan, np.nan) for v in held]
        codes.append(code)
        ends.append(np.array([(b, b) for b in range(levels)] if levels else actual, float))
    return np.array(codes), ends
