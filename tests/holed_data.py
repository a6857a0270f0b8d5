"""Rows with missing values and of levels, and searches of stumps in them."""

import numpy as np

from pboost.data.read.convert import Features
from pboost.data.read.table import Table
from pboost.data.training_data import Problem
from pboost.threads import Workers
from pboost.weak.base import Weights

CRITERIA = "kearns_mansour", "gini", "entropy", "error"


def searched(X, y, w, learner, levels=None):
    """Return the data, the search, weights of the rows there, and the row of X of each."""
    n_levels = [0] * X.shape[1] if levels is None else levels
    values = tuple(np.arange(float(k)) if k else None for k in n_levels)
    table = Table(values, np.isnan(X).any(axis=0))
    problem = Problem(
        columns=Features(X, None, table),
        classes=np.array([-1, 1]),
        label=(y > 0).astype(np.uint8),
        weights=w,
        names=None,
        table=table,
    )
    data = learner.arrange(problem, 1)
    search = learner.searches(data, learner, Workers(1))
    weights = Weights(data.weight, data.fixed, data.scale, data.class_masses())
    return data, search, weights


def random_holes(rng, n=None):
    n = int(rng.integers(4, 60)) if n is None else n
    d = int(rng.integers(1, 4))
    X = np.round(rng.normal(size=(n, d)), int(rng.integers(0, 3))) + 0.0
    X[rng.random((n, d)) < rng.choice([0.0, 0.1, 0.4, 0.9])] = np.nan
    if rng.random() < 0.1:
        X[:, rng.integers(d)] = np.nan
    y = np.where(rng.random(n) < 0.5, 1, -1)
    if rng.random() < 0.5:  # what is missing says something
        y = np.where(np.isnan(X[:, 0]) ^ (rng.random(n) < 0.2), 1, -1)
    y[:2] = -1, 1
    w = [np.ones(n), rng.integers(1, 4, n).astype(float), rng.exponential(size=n)][rng.integers(3)]
    return X, y, w


def edges_of(columns):
    actual = []
    for j in range(columns.n_features):
        n_bins = int(columns.n_bins[j])
        actual.append([float(columns.threshold(j, b, None)) for b in range(n_bins - 1)])
    return actual


def random_levels(rng):
    n, k = int(rng.integers(4, 60)), int(rng.integers(1, 9))
    level = rng.integers(0, k, n).astype(float)
    level[rng.random(n) < rng.choice([0.0, 0.0, 0.3])] = np.nan
    share = rng.random(k + 1)
    y = np.where(rng.random(n) < share[np.where(np.isnan(level), k, level).astype(int)], 1, -1)
    y[:2] = -1, 1
    w = [np.ones(n), rng.integers(1, 4, n).astype(float), rng.exponential(size=n)][rng.integers(3)]
    return level, k + 1, y, w
