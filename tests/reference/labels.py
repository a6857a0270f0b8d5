"""AdaBoost.MH on trees and chains of trees, from the definition.

Each row has a weight for each label. The weights are carried along, and every cut is scored by
adding up the weights on its sides.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from reference.adaboost import half_log_odds
from reference.keys import decrease, first_largest, rounded

TIE = 1e-12


class Node(NamedTuple):
    feature: int
    threshold: float
    levels: frozenset | None  # above, of a column of levels
    missing: int | None  # exit of missing rows, None if there were none
    edges: tuple
    votes: np.ndarray  # (2, J)
    certificate: float


class Exit(NamedTuple):
    serial: int
    edges: tuple
    depth: int
    rows: np.ndarray
    cut: Any


def masses(w, y, rows):
    """Return for each label the weight of its rows, and that of the others."""
    J = w.shape[1]
    own = np.array([math.fsum(w[rows & (y == k), k]) for k in range(J)])
    other = np.array([math.fsum(w[rows & (y != k), k]) for k in range(J)])
    return own, other


def root_sum(w, y, sides):
    """Return the sum over labels and sides of the root of the product of the two masses."""
    return math.fsum(v for rows in sides for v in np.sqrt(np.multiply(*masses(w, y, rows))))


def cuts_of_numbers(x, rows, values):
    """Yield (rows above, cut) of a column of numbers: thresholds, and where missing rows go."""
    here = np.unique(x[rows & ~np.isnan(x)])
    has_missing = bool(np.isnan(x[rows]).any())
    for side in (1, 0) if has_missing else (None,):
        for at, low in enumerate(here):
            if at + 1 < len(here):
                high = values[np.searchsorted(values, low) + 1]
                middle = low / 2 + high / 2
                threshold = middle if low <= middle < high else low
            elif side == 1:
                threshold = np.finfo(float).max
            else:
                continue
            above = (x > threshold) | (np.isnan(x) & (side == 1))
            yield above, (threshold, None, side)


def cuts_of_levels(x, rows, w, y, smoothing):
    """Yield the same of a column of levels: prefixes of orders by the shares of the labels."""
    here = np.unique(x[rows & ~np.isnan(x)])
    has_missing = bool(np.isnan(x[rows]).any())
    own, other = masses(w, y, rows)
    below = []
    for k in np.flatnonzero((own > 0) & (other > 0)):
        pull = smoothing * (own[k] + other[k]) / rows.sum()
        share = []
        for level in here:
            p, n = masses(w, y, rows & (x == level))
            share.append((p[k] + pull * own[k] / (own[k] + other[k])) / (p[k] + n[k] + pull))
        order = here[np.argsort(np.rint(np.array(share) * 2**40), kind="stable")]
        below += [order[: k + 1] for k in range(len(order))]
    if smoothing > 0:
        below += [np.delete(here, k) for k in range(len(here))]
    for side in (1, 0) if has_missing else (None,):
        for low in below:
            inside = frozenset(here.astype(int)) - frozenset(low.astype(int))
            yield np.isin(x, sorted(inside)) | (np.isnan(x) & (side == 1)), (0.5, inside, side)


def best_cut(X, y, w, rows, kinds, smoothing, min_leaf, values):
    """Return (feature, threshold, levels, side, rows above) of the best cut, None without."""
    own, other = masses(w, y, rows)
    if not ((own > 0) & (other > 0)).any():
        return None
    found = []
    for j in range(X.shape[1]):
        x = X[:, j]
        if j in kinds:
            cuts = cuts_of_levels(x, rows, w, y, smoothing)
        else:
            cuts = cuts_of_numbers(x, rows, values[j])
        for above, cut in cuts:
            sides = rows & ~above, rows & above
            if min(side.sum() for side in sides) >= min_leaf:
                found.append((root_sum(w, y, sides), j, *cut, above))
    if not found:
        return None
    limit = min(cut[0] for cut in found) + 0.5 * TIE * (own.sum() + other.sum())
    return next(cut for cut in found if cut[0] <= limit)[1:]


def votes_of(exit_, w, y, rule):
    """Return the votes of the exits of a split, given what is added to masses, and the rate."""
    (delta, rate), above = rule, exit_.cut[-1]
    votes = []
    for rows in (exit_.rows & ~above, exit_.rows & above):
        pairs = zip(*masses(w, y, rows), strict=True)
        votes.append([rate * half_log_odds(p + delta, q + delta) for p, q in pairs])
    return np.array(votes)


def boosted(exit_, votes, w, y):
    """Return the weights after a split."""
    sign = np.where(np.arange(w.shape[1]) == y[:, None], 1, -1)
    change = np.exp(-sign * np.where(exit_.cut[-1][:, None], votes[1], votes[0]))
    return np.where(exit_.rows[:, None], w * change, w)


def key(exit_, growth, w, D, y, rule):
    """Return what is largest of the exit that is split next."""
    bound = w[exit_.rows].sum()
    if growth == "breadth-first":
        return 0.0
    if growth == "largest-bound":
        return rounded(bound)
    if growth == "largest-error":
        by_class = [D[exit_.rows & (y == k)].sum() for k in range(w.shape[1])]
        return rounded(D[exit_.rows].sum() - max(by_class))
    after = boosted(exit_, votes_of(exit_, w, y, rule), w, y)[exit_.rows].sum()
    return decrease(bound, bound - after)


def fit(
    X, y, *, rounds=1, nodes=1, growth="largest-bound", max_depth=math.inf, smoothing=1e-4,
    learning_rate=1.0, weight=None, levels=(), level_smoothing=0.0, min_leaf=1,
):  # fmt: skip
    """Return the nodes; `y` are the numbers of labels, of which each occurs."""
    n, J = len(y), int(y.max()) + 1
    weight = np.ones(n) if weight is None else np.asarray(weight, float)
    D = weight / math.fsum(weight)
    w = np.repeat(D[:, None] / J, J, axis=1)
    values = [np.unique(x[~np.isnan(x)]) for x in X.T]
    made, serial = [], iter(range(10**9))

    def opened(edges, depth, rows):
        if depth >= max_depth:
            return Exit(next(serial), edges, depth, rows, None)
        cut = best_cut(X, y, w, rows, levels, level_smoothing, min_leaf, values)
        return Exit(next(serial), edges, depth, rows, cut)

    edges = ()
    for _ in range(rounds):
        rule = smoothing * w.sum() / J, learning_rate
        leaves, size = [opened(edges, 0, np.ones(n, dtype=bool))], 0
        while size < nodes:
            able = [leaf for leaf in leaves if leaf.cut is not None]
            if not able:
                break
            chosen = able[first_largest([key(leaf, growth, w, D, y, rule) for leaf in able])]
            votes = votes_of(chosen, w, y, rule)
            if nodes == 1 and rounds > 1 and np.abs(votes).max() < 1e-12:
                break
            w = boosted(chosen, votes, w, y)
            j, threshold, inside, side, above = chosen.cut
            leaves = [leaf for leaf in leaves if leaf is not chosen]
            for exit_, rows in enumerate((chosen.rows & ~above, chosen.rows & above)):
                leaves.append(opened(((len(made), exit_),), chosen.depth + 1, rows))
            made.append(Node(j, threshold, inside, side, chosen.edges, votes, math.fsum(w.ravel())))
            size += 1
        if not size:
            break
        pure = not any(((p > 0) & (q > 0)).any() for p, q in (masses(w, y, f.rows) for f in leaves))
        if pure and smoothing == 0:
            break
        edges = tuple(sorted(edge for leaf in leaves for edge in leaf.edges))
    return made
