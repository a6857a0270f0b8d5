"""Trees on tables with holes and categories, node by node: every column by its definition.

A column of numbers with holes stands twice: NaN = +inf ("missing above"), then NaN = -inf ("missing
below"). A column of levels is cut by sets: the beginnings of the levels in order are below.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from reference.cart import TIE, contents, cuts, is_pure, risk

#: The threshold of the test "is it missing?".
GREATEST = float(np.finfo(np.float64).max)
#: Steps and precision of the power iteration.
MOST_STEPS, SAME_DIRECTION = 50, 1e-7


class Cut(NamedTuple):
    feature: int
    threshold: float
    missing: int | None  # the side of rows without a value; None where there are none
    subset: frozenset[int] | None
    above: Any  # of the rows of the node
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


def key_of_levels(x, present, y, weight, n_classes, smoothing):
    """Return what levels are put in order by."""
    pull = smoothing * weight.sum() / len(y)
    mass = np.array([weight[x == level].sum() for level in present])
    if not n_classes:
        mean = contents(y, weight, "squared", 0)[0]
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
    v = apart[np.argmax(mass * (apart**2).sum(axis=1))]
    v = v / (np.abs(v).max() or 1.0)
    for _ in range(MOST_STEPS):
        step = (mass / mass.sum() * (apart @ v)) @ apart
        if not step.any():
            break
        step /= np.abs(step).max()
        change, v = np.abs(step - v).max(), step
        if change <= SAME_DIRECTION:
            break
    large = np.flatnonzero(np.abs(v) >= 0.5)
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
        if n_classes > 2 or smoothing > 0:
            sets += [frozenset([int(level)]) for level in order]
        for above in sets:
            rows = np.isin(x, list(above)) | (hole & (side == 1))
            if 0 < rows.sum() < len(rows):
                yield Cut(j, 0.5, side, above, rows)


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
    X, y, weight, criterion, n_classes, min_leaf=1, edges=None, levels=(), smoothing=0.0,
    every=False,
):  # fmt: skip
    """Return the best cut, the first of those equally good; None if there is none."""
    found = []
    for j in range(X.shape[1]):
        if j not in levels:
            tried = number_cuts(j, X[:, j], None if edges is None else edges[j])
        elif every:
            tried = every_set_cut(j, X[:, j])
        else:
            tried = set_cuts(j, X[:, j], y, weight, n_classes, smoothing)
        for cut in tried:
            if min(cut.above.sum(), (~cut.above).sum()) < min_leaf:
                continue
            sides = (~cut.above, cut.above)
            after = sum(risk(y[s], weight[s], criterion, n_classes) for s in sides)
            found.append(cut._replace(after=after))
    if not found:
        return None
    unit = risk(y, weight, criterion, n_classes) if criterion == "squared" else weight.sum()
    least = min(cut.after for cut in found)
    return next(cut for cut in found if cut.after <= least + TIE * unit)


class Node(NamedTuple):
    feature: int  # -1: a leaf
    threshold: float
    missing: int
    subset: frozenset[int] | None  # the levels above, those that are not at the node among them
    value: Any
    weight: float
    n_rows: int


def fit_tree(
    X, y, *, criterion, n_classes=0, sample_weight=None, max_depth=np.inf, min_leaf=1, min_split=2,
    edges=None, levels=(), smoothing=0.0,
):  # fmt: skip
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
        if depth >= max_depth or len(rows) < min_split or is_pure(y[rows]):
            return
        cut = best_cut(
            X[rows], y[rows], mass, criterion, n_classes, min_leaf, edges, levels, smoothing
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
