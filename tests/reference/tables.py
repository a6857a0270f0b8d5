"""Trees on tables with holes and categories, node by node: every column by its definition.

A column of numbers with holes stands twice: NaN = +inf ("missing above"), then NaN = -inf ("missing
below"). A column of levels is cut by sets: the beginnings of the levels in order are below. Where
shares are smoothed, a cut counts with as much of the difference of its sides as these leave.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from reference.cart import TIE, contents, cuts, impurity_of_shares, is_pure, risk

#: The threshold of the test "is it missing?".
GREATEST = float(np.finfo(np.float64).max)
#: Steps and precision of the power iteration.
MOST_STEPS, SAME_DIRECTION = 50, 1e-7
#: From which its numbers are large, beside a largest of 1.
LARGE = 0.4999


class Cut(NamedTuple):
    feature: int
    threshold: float
    missing: int | None  # the side of rows without a value; None where there are none
    subset: frozenset[int] | None
    above: Any  # of the rows of the node
    kept: float = 1.0  # of what its sides differ: what it counts with
    after: float = np.inf


def number_cuts(j, x, edges):
    """Yield the cuts of a column of numbers: threshold and side of missing rows."""
    hole = np.isnan(x)
    if not hole.any():
        for threshold in cuts(x, edges):
            yield Cut(j, threshold, None, None, x > threshold)
        return
    if hole.all():
        return
    for side, value in ((1, np.inf), (0, -np.inf)):
        column = np.where(hole, value, x)
        for threshold in cuts(x[~hole], edges):
            yield Cut(j, threshold, side, None, column > threshold)
        if side == 1:
            yield Cut(j, GREATEST, side, None, hole)


def pull_of_levels(x, y, weight, n_classes, smoothing):
    """Return the mass of the node's own rows that is added to each level.

    By chance chi-squared of k levels would be about k - 1 for each class but one. `smoothing` times
    that of the levels beyond two is taken for chance, and levels keep what is beyond it.
    """
    present = np.unique(x[~np.isnan(x)])
    apart = contents_of_rows(y, weight, n_classes)
    if n_classes:
        share = np.array([weight[y == k].sum() for k in range(n_classes)]) / weight.sum()
        apart, share = apart[:, share > 0], share[share > 0]
        spread, n_free = share, len(share) - 1
    else:
        variance = np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)
        spread, n_free = np.array([variance]), 1
    chance = smoothing * max(len(present) - 2, 0) * n_free
    if chance == 0 or not spread.all():
        return 0.0
    masses = [weight[x == level].sum() for level in present]
    squares = sum(
        (apart[x == level].sum(axis=0) ** 2 / spread).sum() / mass
        for level, mass in zip(present, masses, strict=True)
    )
    beyond = squares / weight.mean() - chance
    maximum = 1e6 * sum(masses)
    return min(np.mean(masses) * chance / beyond, maximum) if beyond > 0 else maximum


def key_of_levels(x, present, y, weight, n_classes, smoothing):
    """Return what levels are put in order by."""
    pull = pull_of_levels(x, y, weight, n_classes, smoothing)
    mass = np.array([weight[x == level].sum() for level in present])
    if not n_classes:
        mean = contents(y, weight, "squared_error", 0)[0]
        sums = np.array([(weight * (y - mean))[x == level].sum() for level in present])
        return sums / (mass + pull)
    node = np.array([weight[y == k].sum() for k in range(n_classes)]) / weight.sum()
    cells = np.array(
        [[weight[(x == a) & (y == k)].sum() for k in range(n_classes)] for a in present]
    )
    shares = (cells + pull * node) / (mass + pull)[:, None]
    return shares[:, 1] if n_classes == 2 else along_first_component(shares, mass)


def along_first_component(shares, mass):
    if len(mass) == 1:
        return np.zeros(1)
    apart = shares - mass @ shares / mass.sum()
    far, v, maximum = mass * (apart**2).sum(axis=1), apart[0], -1.0
    for item, distance in zip(apart, far, strict=True):
        if distance > maximum * (1 + SAME_DIRECTION):
            v, maximum = item, distance
    v = v / (np.abs(v).max() or 1.0)
    for _ in range(MOST_STEPS):
        step = (mass / mass.sum() * (apart @ v)) @ apart
        if not step.any():
            break
        step /= np.abs(step).max()
        change, v = np.abs(step - v).max(), step
        if change <= SAME_DIRECTION:
            break
    large = np.flatnonzero(np.abs(v) >= LARGE)
    return apart @ (-v if len(large) and v[large[-1]] < 0 else v)


def set_cuts(j, x, y, weight, n_classes, smoothing):
    """Yield the cuts of a column of levels."""
    hole = np.isnan(x)
    present = np.unique(x[~hole]).astype(int)
    if not len(present):
        return
    key = key_of_levels(x, present, y, weight, n_classes, smoothing)
    order = present[np.argsort(key, kind="stable")]
    for side in (1, 0) if hole.any() else (None,):
        sets = [frozenset(order[k:].tolist()) for k in range(1, len(order) + 1)]
        is_smoothed = pull_of_levels(x, y, weight, n_classes, smoothing) > 0
        if n_classes > 2 or is_smoothed:
            sets += [frozenset([int(level)]) for level in order]
        for above in sets:
            rows = np.isin(x, list(above)) | (hole & (side == 1))
            kept = 1.0
            if is_smoothed and above:  # missing rows against the rest are one cut
                kept = part_kept(x, ~rows, y, weight, n_classes, smoothing)
            if 0 < rows.sum() < len(rows):
                yield Cut(j, 0.5, side, above, rows, kept)


def part_kept(x, below, y, weight, n_classes, smoothing):
    """Return how much of what the sides of a cut differ is left by smoothed levels: from 0 to 1.

    Masses of the classes (of numbers: their sum about the mean) depart from what rows like those
    of the node would have; smoothed, each level keeps a part of its departure, missing rows all.
    """
    values = contents_of_rows(y, weight, n_classes)
    pull = pull_of_levels(x, y, weight, n_classes, smoothing)
    smoothed = values.copy()
    for level in np.unique(x[~np.isnan(x)]):
        mass = weight[x == level].sum()
        smoothed[x == level] *= mass / (mass + pull)
    apart = values[below].sum(axis=0)
    share = weight[below].sum() / weight.sum()
    left = smoothed[below].sum(axis=0) - share * smoothed.sum(axis=0)
    return float(np.clip(left @ apart / (apart @ apart), 0, 1)) if apart.any() else 1.0


def contents_of_rows(y, weight, n_classes):
    """Return by how much the masses of each row depart from those of the node's mean row."""
    if not n_classes:
        return (weight * (y - np.average(y, weights=weight)))[:, None]
    is_class = (y[:, None] == np.arange(n_classes)).astype(float)
    return weight[:, None] * (is_class - np.average(is_class, axis=0, weights=weight))


def risk_of_cut(cut, y, weight, criterion, n_classes):
    """Return the risk of the sides of a cut, nearer to one another if not all is kept."""
    sides = (~cut.above, cut.above)
    if cut.kept == 1:
        return sum(risk(y[s], weight[s], criterion, n_classes) for s in sides)
    if not n_classes:
        full, parts = (
            sum(risk(y[s], weight[s], criterion, 0) for s in of) for of in ([...], sides)
        )
        return full - cut.kept**2 * (full - parts)
    node = np.array([weight[y == k].sum() for k in range(n_classes)]) / weight.sum()
    after = 0.0
    for s in sides:
        share = np.array([weight[s][y[s] == k].sum() for k in range(n_classes)]) / weight[s].sum()
        share = node + cut.kept * (share - node)
        after += weight[s].sum() * impurity_of_shares(share, criterion)
    return after


def every_set_cut(j, x):
    """Yield the cuts of a column by any set of its levels."""
    hole = np.isnan(x)
    present = np.unique(x[~hole]).astype(int).tolist()
    for side in (1, 0) if hole.any() else (None,):
        for size in range(len(present) + 1):
            for above in combinations(present, size):
                rows = np.isin(x, above) | (hole & (side == 1))
                if 0 < rows.sum() < len(rows):
                    yield Cut(j, 0.5, side, frozenset(above), rows)


def best_cut(
    X,
    y,
    weight,
    criterion,
    n_classes,
    min_samples_leaf=1,
    edges=None,
    levels=(),
    smoothing=0.0,
    every=False,
):
    """Return the best cut, the first of those equally good; None if there is none."""
    actual = []
    for j in range(X.shape[1]):
        if j not in levels:
            tried = number_cuts(j, X[:, j], None if edges is None else edges[j])
        elif every:
            tried = every_set_cut(j, X[:, j])
        else:
            tried = set_cuts(j, X[:, j], y, weight, n_classes, smoothing)
        for cut in tried:
            if min(cut.above.sum(), (~cut.above).sum()) < min_samples_leaf:
                continue
            after = risk_of_cut(cut, y, weight, criterion, n_classes)
            actual.append(cut._replace(after=after))
    if not actual:
        return None
    unit = risk(y, weight, criterion, n_classes) if criterion == "squared_error" else weight.sum()
    minimum = min(cut.after for cut in actual)
    return next(cut for cut in actual if cut.after <= minimum + TIE * unit)


class Node(NamedTuple):
    feature: int  # -1: a leaf
    threshold: float
    missing: int
    subset: frozenset[int] | None  # the levels above, those that are not at the node among them
    value: Any
    weight: float
    n_rows: int


def fit_tree(
    X,
    y,
    *,
    criterion,
    n_classes=0,
    sample_weight=None,
    max_depth=np.inf,
    min_samples_leaf=1,
    min_samples_split=2,
    edges=None,
    levels=(),
    smoothing=0.0,
):
    """Grow a tree; returns its nodes in preorder. `levels`: columns of these, and their numbers."""
    X, y = np.asarray(X, float), np.asarray(y)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
    used = weight > 0
    X, y, weight = X[used], y[used], weight[used]
    nodes = []

    def grow(rows, depth):
        value, _ = contents(y[rows], weight[rows], criterion, n_classes)
        at, mass = len(nodes), weight[rows]
        nodes.append(Node(-1, 0.0, 0, None, value, mass.sum(), len(rows)))
        if depth >= max_depth or len(rows) < min_samples_split or is_pure(y[rows]):
            return
        cut = best_cut(
            X[rows], y[rows], mass, criterion, n_classes, min_samples_leaf, edges, levels, smoothing
        )
        if cut is None:
            return
        missing = cut.missing
        if missing is None:
            missing = int(mass[cut.above].sum() > mass[~cut.above].sum())
        subset = cut.subset
        if subset is not None and missing:
            here = set(np.unique(X[rows, cut.feature]).tolist())
            subset |= {level for level in range(levels[cut.feature]) if level not in here}
        if subset is not None and not subset:
            cut, subset = cut._replace(threshold=GREATEST), None
        nodes[at] = nodes[at]._replace(
            feature=cut.feature, threshold=cut.threshold, missing=missing, subset=subset
        )
        grow(rows[~cut.above], depth + 1)
        grow(rows[cut.above], depth + 1)

    grow(np.arange(len(y)), 0)
    return nodes
