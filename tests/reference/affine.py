"""Affine weak classifiers by brute force: stumps on every direction, each a column of its own."""

from __future__ import annotations

import math

import numpy as np


def half_circle(directions):
    """Return the coefficients (directions, 2) of the grid of angles k pi / directions."""
    table = np.empty((directions, 2))
    for k in range(directions):
        angle = k * math.pi / directions
        table[k] = math.cos(angle), math.sin(angle)
    if directions % 2 == 0:
        table[directions // 2] = 0, 1
    return table


def random_sums(X, weight, directions, terms, seed):
    """Return the coefficients (d + directions, d) of single columns and of random sums.

    The columns of a sum are drawn without replacement from those that vary, then their
    coefficients in the order of the columns: standard normal, of length 1, in units of the
    columns' standard deviations, the first one positive.
    """
    d = X.shape[1]
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
    mean = (weight @ X) / weight.sum()
    deviation = np.sqrt(weight @ (X - mean) ** 2 / weight.sum())
    varying = [j for j in range(d) if len(np.unique(X[weight > 0, j])) > 1]
    terms = min(terms, len(varying))
    rng = np.random.default_rng(seed)
    rows = list(np.eye(d))
    for _ in range(directions):
        columns = sorted(rng.choice(varying, size=terms, replace=False))
        drawn = rng.standard_normal(terms)
        drawn = drawn * np.sign(drawn[0]) / np.sqrt(np.sum(drawn**2))
        row = np.zeros(d)
        for j, value in zip(columns, drawn, strict=True):
            row[j] = value / deviation[j]
        rows.append(row)
    return np.array(rows)


def derived(X, table):
    """Return the value of each direction at each row, (n, directions)."""
    X = np.asarray(X, dtype=np.float64)
    values = np.zeros((len(X), len(table)))
    for k, row in enumerate(table):
        for j, coefficient in enumerate(row):
            if coefficient != 0:
                values[:, k] += coefficient * X[:, j]
    return values
