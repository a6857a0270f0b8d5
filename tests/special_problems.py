"""Problems with missing values and categories, for the tests of split searches."""

import numpy as np
from carts import targets
from reference.problems import random_matrix, random_weight

from pboost.data.columns.bin_and_sort import binned_features
from pboost.data.columns.columns import BinnedColumns
from pboost.data.read.convert import Features
from pboost.data.read.table import Table
from pboost.data.training_data import Problem


def draw(rng, n_classes, *, n=None, numbers=None, categories=None, share=None):
    """Return X, y, weights and the numbers of levels of the columns that are categories."""
    n = int(rng.choice([8, 12, 30, 70, 150])) if n is None else n
    numbers = int(rng.integers(1, 4)) if numbers is None else numbers
    X = random_matrix(rng, n, max(numbers, 1))
    y, weight = targets(rng, X, n_classes), random_weight(rng, n)
    if weight is not None and not weight.any():
        weight = None
    first, X, levels = X[:, 0], X[:, :numbers], {}
    for _ in range(int(rng.integers(0, 3)) if categories is None else categories):
        size = int(rng.integers(1, 9))
        level = rng.integers(0, size, n).astype(float)
        if rng.random() < 0.5:  # a category that says something
            rank = np.argsort(np.argsort(first)) / n + 0.2 * rng.normal(size=n)
            level = np.minimum(np.floor(rank.clip(0, 1) * size), size - 1)
        levels[X.shape[1]] = size + int(rng.integers(0, 2))  # there may be one that does not occur
        X = np.column_stack([X, level])
    for j in range(X.shape[1]):
        q = rng.choice([0.0, 0.05, 0.2, 0.5, 0.9, 1.0]) if share is None else share
        hole = rng.random(n) < q
        if rng.random() < 0.3:  # where values are large
            hole = X[:, j] > np.quantile(X[:, j], 1 - q)
        X[hole, j] = np.nan
    return X, y, weight, levels


def with_one_hot(rng, X, levels):
    """Put columns that exclude each other, or nearly, before and behind those of X."""
    parts = []
    for size in rng.integers(1, 7, 2):
        part = rng.integers(-1, size, len(X))[:, None] == np.arange(size)
        parts.append((part ^ (rng.random(size) < 0.2)).astype(float))
    levels = {j + parts[0].shape[1]: size for j, size in levels.items()}
    return np.column_stack([parts[0], X, parts[1]]), levels


def problem(X, y, weight, levels, n_classes, max_bins=None):
    """Return the problem of builders of trees; binned if there is a number of bins."""
    values = tuple(np.arange(float(levels[j])) if j in levels else None for j in range(X.shape[1]))
    table = Table(values, np.isnan(X).any(axis=0))
    columns = Features(X, None, table)
    if max_bins is not None:
        columns = binned_features(columns, weight, max_bins, 1)
    if n_classes:
        return Problem(
            columns=columns,
            classes=np.arange(n_classes),
            label=y.astype(np.int32),
            weights=weight,
            names=None,
            table=table,
        )
    exponent = int(np.frexp(np.abs(y).max())[1])
    return Problem(
        columns=columns,
        classes=None,
        label=np.empty(0, np.int32),
        weights=weight,
        names=None,
        y=np.ldexp(y, -exponent),
        exponent=exponent,
        table=table,
    )


def edges_of(columns, levels):
    """Return the thresholds between the bins of each column, None of exact columns."""
    if not isinstance(columns, BinnedColumns):
        return None
    ends = zip(columns.n_bins.tolist(), range(columns.n_features), strict=True)
    return [
        [] if j in levels else [float(columns.threshold(j, b, None)) for b in range(k - 1)]
        for k, j in ends
    ]


def asked_of(tree):
    """Return what each node asks: column, threshold, side of missing rows, set; and its rows."""
    sets = [None] * tree.n_nodes
    for node in np.flatnonzero(tree.feature >= tree.n_features).tolist():
        words = tree.subset[tree.feature[node] - tree.n_features]
        sets[node] = frozenset(b for b in range(256) if int(words[b // 64]) >> b % 64 & 1)
    return list(
        zip(
            tree.column.tolist(),
            tree.threshold.tolist(),
            tree.missing.tolist(),
            sets,
            tree.n_rows.tolist(),
            strict=True,
        )
    )
