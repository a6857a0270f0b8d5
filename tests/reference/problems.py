"""Random two-class problems with everything that makes a split search stumble."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

CRITERIA = ("kearns_mansour", "gini", "entropy", "error")

#: Row counts around the sizes of blocks, vectors and bins.
SIZES = (1, 2, 3, 63, 64, 65, 255, 256, 257, 1000, 4097)


class Problem(NamedTuple):
    X: np.ndarray
    y: np.ndarray  # -1 and +1
    weight: np.ndarray | None


def random_column(rng, n):
    kind = rng.integers(11)
    if kind == 0:
        return np.full(n, rng.normal())
    if kind in (1, 2, 3):
        return rng.integers(0, rng.choice([2, 3, 6, 50, 300]), n).astype(float)
    if kind == 4:  # neighbouring floats
        return 1 + rng.integers(0, 8, n) * np.spacing(1.0)
    if kind == 5:  # subnormals of both signs
        return rng.integers(-4, 5, n) * 5e-324
    if kind == 6:
        return rng.choice([-1.7e308, -1e308, 0.0, 1e308, 1.7e308], n)
    if kind == 7:
        return rng.choice([-0.0, 0.0, 1.0], n)
    if kind == 8:
        return rng.normal(size=n).astype(np.float32).astype(float)
    return rng.normal(size=n)


def random_matrix(rng, n, d):
    columns = []
    for _ in range(d):
        kind = rng.integers(6) if columns else 5
        if kind == 0:  # a duplicate: the lower feature must win
            columns.append(columns[rng.integers(len(columns))])
        elif kind == 1:  # the same cuts in reversed order
            columns.append(-columns[rng.integers(len(columns))])
        else:
            columns.append(random_column(rng, n))
    return np.column_stack(columns)


def random_labels(rng, X):
    n = len(X)
    if rng.random() < 0.3:
        y = rng.choice([-1, 1], n)
    else:
        j = rng.integers(X.shape[1])
        y = np.where(X[:, j] > np.sort(X[:, j])[n // 2], 1, -1)
        y[rng.random(n) < rng.choice([0.0, 0.1, 0.3])] *= -1
    return y


def random_weight(rng, n):
    kind = rng.integers(5)
    if kind == 0:
        return None
    if kind == 1:
        return rng.uniform(0.1, 2, n)
    if kind == 2:  # zeros among them
        return rng.integers(0, 4, n).astype(float)
    if kind == 3:  # many orders of magnitude
        return rng.exponential(size=n) ** 4
    return rng.uniform(size=n) * (rng.random(n) < 0.7)


def random_problem(rng, n=None, d=None):
    """Draw a problem in which both classes have weight."""
    n = int(rng.choice([2, 3, 4, 7, 12, 30, 80])) if n is None else n
    d = int(rng.integers(1, 6)) if d is None else d
    X = random_matrix(rng, n, d)
    y = random_labels(rng, X)
    weight = random_weight(rng, n)
    first, second = rng.choice(n, 2, replace=False)
    y[first], y[second] = 1, -1
    if weight is not None:
        weight[[first, second]] += 0.25
    return Problem(X, y, weight)


def random_options(rng) -> dict[str, Any]:
    """Draw the options of a stump, as both the twins and the library call them."""
    options = {"criterion": str(rng.choice(CRITERIA))}
    # Not round numbers: weights must not lie on the limit, where rounding would decide.
    options["min_weight_fraction"] = float(rng.choice([0.0, 0.0, 0.051373, 0.211349]))
    options["min_samples_leaf"] = int(rng.choice([1, 1, 2, 5]))
    return options


def distinct_matrix(rng, n, d):
    """Return float32-representable columns without ties, neighbours well apart."""
    return np.column_stack([rng.permutation(n) / 8 for _ in range(d)])


def random_topology(rng, n_nodes, p_join=0.3):
    """Return `next` of a random graph: parents first, every node reached, some exits joined."""
    next_ = np.full((n_nodes, 2), -1)
    for node in range(1, n_nodes):
        free = np.argwhere(next_[:node] == -1)
        parent, exit_ = free[rng.integers(len(free))]
        next_[parent, exit_] = node
    for node, exit_ in np.argwhere(next_[:-1] == -1):
        if rng.random() < p_join:
            next_[node, exit_] = rng.integers(node + 1, n_nodes)
    return next_
