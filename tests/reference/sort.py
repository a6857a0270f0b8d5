"""Sorting the columns, and cutting them into rank bins."""

from __future__ import annotations

import numpy as np

from reference.split import midpoint


def sort_columns(X):
    """Sort every column; equal values stand in the order of their rows.

    Returns
    -------
    order : (d, n) int array
        ``order[j, i]`` is the row with the i-th smallest value of column j.
    values : (d, n) float array
        The sorted values.
    tied : (d, n) bool array
        Whether a sorted value equals the one before it (-0.0 equals 0.0).
    """
    columns = np.asarray(X, dtype=np.float64).T
    order = np.argsort(columns, axis=1, kind="stable")
    values = np.take_along_axis(columns, order, axis=1)
    tied = np.zeros(values.shape, dtype=bool)
    tied[:, 1:] = values[:, 1:] == values[:, :-1]
    return order, values, tied


def rank_bins(x, weight=None, max_bins=256):
    """Cut one column into at most `max_bins` bins of about equal weight.

    Equal values never part. Few distinct values get a bin each; otherwise bins are filled
    from the left, each up to its fair share of what is left.

    Returns
    -------
    codes : (n,) int array
        Bin of each row.
    edges : (n_bins - 1,) float array
        Thresholds between the bins: midpoints of the data values on either side.
    """
    weight = np.ones(len(x)) if weight is None else np.asarray(weight, dtype=np.float64)
    distinct, inverse = np.unique(np.asarray(x, dtype=np.float64), return_inverse=True)
    mass = np.zeros(len(distinct))
    np.add.at(mass, inverse, weight)

    if len(distinct) <= max_bins:
        bin_of_value = np.arange(len(distinct))
    else:
        bin_of_value = _fill_bins(mass, max_bins)

    last = np.flatnonzero(np.diff(bin_of_value))  # last distinct value of every bin but the last
    edges = np.array([midpoint(distinct[i], distinct[i + 1]) for i in last])
    return bin_of_value[inverse], edges


def _fill_bins(mass, max_bins):
    bin_of_value = np.empty(len(mass), dtype=np.int64)
    remaining = float(mass.sum())
    start = 0
    for b in range(max_bins):
        share = remaining / (max_bins - b) * (1 - 1e-9)
        taken, stop = 0.0, start
        is_last = b == max_bins - 1
        while stop < len(mass) and (is_last or taken < share):
            taken += mass[stop]
            stop += 1
        bin_of_value[start:stop] = b
        remaining -= taken
        start = stop
    return bin_of_value


def bin_edges(X, weight=None, max_bins=256):
    """Return the bin edges of every column."""
    return [rank_bins(x, weight, max_bins)[1] for x in np.asarray(X, dtype=np.float64).T]


def select_codes(codes, rows):
    """Keep the codes of the listed rows; also, for each bin, how many of these lie below it."""
    selected = codes[:, rows]
    below = [[int((column < b).sum()) for b in range(257)] for column in selected.astype(int)]
    return selected, np.array(below)
