"""AdaBoost.MH on trees and chains of trees, from the definition.

Each row has a weight for each label. The weights are carried along, and every cut is scored by
adding up the weights on its sides. With uncertain answers every row arrives at every exit, with the
probability by which its weights are multiplied; the answer to it is the same for all labels.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from reference.adaboost import VOTE_LIMIT, half_log_odds
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
    answer: np.ndarray  # (side, label): probability of exit 1
    reach: float


class Exit(NamedTuple):
    serial: int
    edges: tuple
    depth: int
    rows: np.ndarray
    w: np.ndarray  # (n, J), weights
    p: np.ndarray  # (n,), probability of arriving
    settled: np.ndarray  # (J,), labels voted for above where all rows or none had them
    cut: Any


def masses(w, y, rows):
    """Return for each label the weight of its rows, and that of the others."""
    J = w.shape[1]
    class_mass = np.array([math.fsum(w[rows & (y == k), k]) for k in range(J)])
    rest_mass = np.array([math.fsum(w[rows & (y != k), k]) for k in range(J)])
    return class_mass, rest_mass


def root_sum(w, y, sides):
    """Return the sum over labels and sides of the root of the product of the two masses."""
    return math.fsum(v for rows in sides for v in np.sqrt(np.multiply(*masses(w, y, rows))))


def cuts_of_numbers(x, rows, values):
    """Yield (rows above, cut) of a column of numbers: thresholds, and where missing rows go."""
    present = np.unique(x[rows & ~np.isnan(x)])
    has_missing = bool(np.isnan(x[rows]).any())
    for side in (1, 0) if has_missing else (None,):
        for at, low in enumerate(present):
            if at + 1 < len(present):
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
    levels = np.unique(x[rows & ~np.isnan(x)])
    has_missing = bool(np.isnan(x[rows]).any())
    class_mass, rest_mass = masses(w, y, rows)
    below = []
    for k in np.flatnonzero((class_mass > 0) & (rest_mass > 0)):
        pull = smoothing * (class_mass[k] + rest_mass[k]) / rows.sum()
        share = []
        for level in levels:
            class_part, rest_part = masses(w, y, rows & (x == level))
            pulled = class_part[k] + pull * class_mass[k] / (class_mass[k] + rest_mass[k])
            share.append(pulled / max(class_part[k] + rest_part[k] + pull, 1e-300))
        order = levels[np.argsort(np.rint(np.array(share) * 2**40), kind="stable")]
        below += [order[: k + 1] for k in range(len(order))]
    if smoothing > 0:
        below += [np.delete(levels, k) for k in range(len(levels))]
    for side in (1, 0) if has_missing else (None,):
        for low in below:
            inside = frozenset(levels.astype(int)) - frozenset(low.astype(int))
            yield np.isin(x, sorted(inside)) | (np.isnan(x) & (side == 1)), (0.5, inside, side)


def best_cut(X, y, w, rows, kinds, smoothing, min_samples_leaf, values):
    """Return (feature, threshold, levels, side, rows above) of the best cut, None without."""
    class_mass, rest_mass = masses(w, y, rows)
    if not ((class_mass > 0) & (rest_mass > 0)).any():
        return None
    actual = []
    for j in range(X.shape[1]):
        x = X[:, j]
        if j in kinds:
            cuts = cuts_of_levels(x, rows, w, y, smoothing)
        else:
            cuts = cuts_of_numbers(x, rows, values[j])
        for above, cut in cuts:
            sides = rows & ~above, rows & above
            if min(side.sum() for side in sides) >= min_samples_leaf:
                actual.append((root_sum(w, y, sides), j, *cut, above))
    if not actual:
        return None
    limit = min(cut[0] for cut in actual) + 0.5 * TIE * (class_mass.sum() + rest_mass.sum())
    return next(cut for cut in actual if cut[0] <= limit)[1:]


def answer_table(observation, above, y, reach, J):
    """Return P(exit 1 | side, label of the row); `reach`: D p at the node."""
    kind, *number = observation
    if kind == "exact":
        return np.array([[0.0] * J, [1.0] * J])
    if kind == "half":
        return np.full((2, J), 0.5)
    if kind == "flip":
        return np.array([number * J, [1 - number[0]] * J])
    share = np.full((2, J), 0.5)
    for k in range(J):
        below, above_ = (math.fsum(reach[side & (y == k)]) for side in (~above, above))
        if below + above_ > 0:
            share[:, k] = below / (below + above_), above_ / (below + above_)
    if kind == "uniform":
        return np.array([share[1], share[1]])
    assert kind == "adatree2", kind
    stay = 1 - number[0] * (1 - np.sqrt(share)) / 2
    return np.array([1 - stay[0], stay[1]])


def split(exit_, D, y, rule, observation):
    """Return table and votes of the exits, and (rows, weights, reach, settled) of either.

    Of the rule: what is added to masses, and the rate.
    """
    (delta, rate), J, above = rule, exit_.w.shape[1], exit_.cut[-1]
    table = answer_table(observation, above, y, D * exit_.p, J)
    sign = np.where(np.arange(J) == y[:, None], 1, -1)
    taken = table[above.astype(int), y]
    votes, after = [], []
    for factor, side in ((1 - taken, ~above), (taken, above)):
        w, p = exit_.w * factor[:, None], exit_.p * factor
        rows = exit_.rows & side if observation[0] == "exact" else exit_.rows
        class_mass, rest_mass = masses(w, y, rows)
        pairs = zip(class_mass + delta, rest_mass + delta, strict=True)
        odds = np.array([half_log_odds(plus, minus) for plus, minus in pairs])
        pure = (class_mass == 0) | (rest_mass == 0)
        odds[exit_.settled & pure & (np.abs(odds) == VOTE_LIMIT)] = 0.0
        votes.append(rate * odds)
        after.append((rows, w * np.exp(-sign * votes[-1]), p, exit_.settled | pure))
    return table, np.array(votes), after


def key(exit_, growth, D, y, rule, observation):
    """Return what is largest of the exit that is split next."""
    bound = exit_.w.sum()
    if growth == "breadth_first":
        return 0.0
    if growth == "largest_bound":
        return rounded(bound)
    reach = D * exit_.p
    if growth == "largest_error":
        return rounded(reach.sum() - max(reach[y == k].sum() for k in range(exit_.w.shape[1])))
    _, _, after = split(exit_, D, y, rule, observation)
    return decrease(bound, bound - sum(w.sum() for _, w, _, _ in after))


def fit(
    X,
    y,
    *,
    n_estimators=1,
    max_nodes=1,
    growth="largest_bound",
    max_depth=math.inf,
    smoothing=1e-4,
    learning_rate=1.0,
    weight=None,
    levels=(),
    categorical_smoothing=0.0,
    min_samples_leaf=1,
    observation=("exact",),
):
    """Return the nodes; `y` are the numbers of labels, of which each occurs."""
    n, J = len(y), int(y.max()) + 1
    weight = np.ones(n) if weight is None else np.asarray(weight, float)
    D = weight / math.fsum(weight)
    w = np.repeat(D[:, None] / J, J, axis=1)
    values = [np.unique(x[~np.isnan(x)]) for x in X.T]
    nodes, serial = [], iter(range(10**9))

    def opened(edges, depth, rows, w, p, settled):
        cut = None
        if depth < max_depth:
            cut = best_cut(X, y, w, rows, levels, categorical_smoothing, min_samples_leaf, values)
        return Exit(next(serial), edges, depth, rows, w, p, settled, cut)

    edges, settled = (), np.zeros(J, dtype=bool)
    for _ in range(n_estimators):
        rule = smoothing * w.sum() / J, learning_rate
        root = np.ones(n, dtype=bool), w, np.ones(n), settled
        leaves, size = [opened(edges, 0, *root)], 0
        while size < max_nodes:
            able = [leaf for leaf in leaves if leaf.cut is not None]
            if not able:
                break
            keys = [key(leaf, growth, D, y, rule, observation) for leaf in able]
            chosen = able[first_largest(keys)]
            table, votes, after = split(chosen, D, y, rule, observation)
            if max_nodes == 1 and n_estimators > 1 and np.abs(votes).max() < 1e-12:
                break
            j, threshold, inside, side, _ = chosen.cut
            leaves = [leaf for leaf in leaves if leaf is not chosen]
            for exit_, there in enumerate(after):
                leaves.append(opened(((len(nodes), exit_),), chosen.depth + 1, *there))
            bound = math.fsum(v for leaf in leaves for v in leaf.w.ravel())
            reach = float((D * chosen.p).sum())
            node = Node(j, threshold, inside, side, chosen.edges, votes, bound, table, reach)
            nodes.append(node)
            size += 1
        if not size:
            break
        mixed = [masses(leaf.w, y, leaf.rows) for leaf in leaves]
        pure = not any(((own > 0) & (other > 0)).any() for own, other in mixed)
        if pure and smoothing == 0:
            break
        w = sum(leaf.w for leaf in leaves)
        settled = np.all([leaf.settled for leaf in leaves], axis=0)
        edges = tuple(sorted(edge for leaf in leaves for edge in leaf.edges))
    return nodes
