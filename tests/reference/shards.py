"""A shard, row by row: what it answers is a function of its rows and of the cuts so far."""

import numpy as np


def edge_masses(codes, label, weight, scale, n_codes, cuts):
    """Return the fixed-point class masses left of each edge of bins, (d, 2, b + 1).

    codes (d, n), label and weight (n,), n_codes (d,); cuts: (feature, side of each code, factors by
    side and class). Edges behind the last bin of a column hold 0.
    """
    weight = weight.copy()
    for feature, side, factors in cuts:
        for i in range(len(weight)):
            weight[i] *= factors[side[codes[feature, i]], label[i]]
    edge = np.zeros((len(codes), 2, int(max(n_codes)) + 1), dtype=np.int64)
    for j in range(len(codes)):
        for i in range(len(weight)):
            for b in range(int(codes[j, i]) + 1, n_codes[j] + 1):
                edge[j, label[i], b] += int(np.rint(weight[i] * scale))
    return edge


def rows_at(codes, splits, node):
    """Return the rows at a node; splits: (node, first child, feature, side of each code)."""
    at = np.zeros(codes.shape[1], dtype=int)
    for parent, child, feature, side in splits:
        for i in range(len(at)):
            if at[i] == parent:
                at[i] = child + side[codes[feature, i]]
    return np.flatnonzero(at == node)


def node_cells(codes, label, fixed, n_codes, n_classes, rows):
    """Return what rows hold of each code of each column: the mass of each class, and how many."""
    cells = np.zeros((len(codes), n_codes, n_classes + 1), dtype=np.int64)
    for j in range(len(codes)):
        for i in rows:
            cells[j, codes[j, i], label[i]] += fixed[i]
            cells[j, codes[j, i], n_classes] += 1
    return cells
