"""Rounds of softmax with one tree for all classes: the same as the kernel's to the last bit.

A cut is judged by the sum over classes of what it would be by the gradients of each; leaves take a
step for each class.
"""

from __future__ import annotations

import math

import numpy as np

from pboost.losses import LOSSES
from reference import rounds as twin
from reference import softmax
from reference.level_sets import is_among

LEVELS, SAME_MASS, TIE = twin.LEVELS, twin.SAME_MASS, 1e-9


def added(terms):
    """Return the sum of numbers, one after another."""
    total = 0.0
    for term in terms:
        total += float(term)
    return total


class Grown(twin.Grown):
    """A tree: gradients and curvatures of the classes, (J, n), as integers."""

    def __init__(
        self,
        columns,
        gradient,
        curvature,
        rows,
        depth,
        min_samples_leaf,
        l2,
        smoothing,
        bits,
        number=0,
        min_child_weight=0.0,
        min_split_gain=0.0,
        per_tree=None,
        per_split=None,
        key=0,
        max_leaf_nodes=None,
        groups=None,
        comparisons=None,
        mass=None,
    ):
        self.columns, self.min_samples_leaf, self.smoothing = columns, min_samples_leaf, smoothing
        self.depth, maximum = depth, [np.abs(gradient).max(axis=1), curvature.max(axis=1)]
        self.of_g = [twin.power_below(*part) for part in zip(maximum[0], bits.T[0], strict=True)]
        self.of_h = [twin.power_below(*part) for part in zip(maximum[1], bits.T[1], strict=True)]
        self.g = twin.rounded(gradient * np.array(self.of_g)[:, None]).astype(np.int64)
        self.h = twin.rounded(curvature * np.array(self.of_h)[:, None]).astype(np.int64)
        self.h = np.maximum(self.h, 1)
        self.l2 = [l2 * of for of in self.of_h]
        # What a score counts in the unit of losses, and a curvature in that of the coarsest.
        self.factor = [
            np.ldexp(1.0, int(np.log2(h)) - 2 * int(np.log2(g)))
            for g, h in zip(self.of_g, self.of_h, strict=True)
        ]
        self.unit = [1.0 / of for of in self.of_h]
        self.share = [min(self.of_h) / of for of in self.of_h]
        self.min_child_weight, self.min_split_gain, self.groups = (
            min_child_weight,
            min_split_gain,
            groups,
        )
        d = len(columns.codes)
        self.per_split = d if per_split is None else per_split
        self.draw = lambda among, wanted, path: twin.drawn(among, wanted, (key, path, number))
        self.of_tree = self.draw(range(d), d if per_tree is None else per_tree, 0)
        self.direction, self.used, self.tradeoff = None, {(): frozenset()}, None
        self.comparisons, self.mass_of_row = comparisons, mass
        self.chosen = (
            None if max_leaf_nodes is None else self.best_first(rows, None, max_leaf_nodes)
        )
        self.root = self.grow(rows, (), None)

    def sums(self, rows):
        """Return the sums of each class."""
        return list(
            zip(
                self.g[:, rows].sum(axis=1).astype(float),
                self.h[:, rows].sum(axis=1).astype(float),
                strict=True,
            )
        )

    def mass(self, rows):
        """Return the curvature of rows in the coarsest unit of a class."""
        parts = zip(self.sums(rows), self.share, strict=True)
        return float(np.rint(added(h * share for (_, h), share in parts)))

    def own_score(self, rows):
        terms = zip(self.sums(rows), self.l2, self.factor, strict=True)
        return added(g * g / (h + l2) * factor for (g, h), l2, factor in terms)

    def cut_score(self, below, node):
        """Return the score of a cut with these sums below; None where a side has too little."""
        parts = list(zip(below, node, strict=True))
        if self.min_child_weight > 0:
            weights = [
                added(h * unit for h, unit in zip(side, self.unit, strict=True))
                for side in ([h for (_, h), _ in parts], [w - h for (_, h), (_, w) in parts])
            ]
            if min(weights) < self.min_child_weight:
                return None
        terms = []
        for ((gl, hl), (g, h)), l2, factor in zip(parts, self.l2, self.factor, strict=True):
            gr, dl, dr = g - gl, hl + l2, (h - hl) + l2
            terms.append((gl * gl * dr + gr * gr * dl) / (dl * dr) * factor)
        return added(terms)

    def cuts(self, rows, j):
        """Yield the cuts of a column: codes below, the side of missing rows, the bin."""
        codes, hole = self.columns.codes[j, rows], self.columns.hole(j)
        for side in (1, 0) if (codes == hole).any() else (None,):
            if self.columns.special[j] & LEVELS:
                for below in self.sets(rows, j):
                    yield below, side, None
            else:
                for bin_ in range(self.columns.n_bins[j]):
                    yield frozenset(range(bin_ + 1)), side, bin_

    def sets(self, rows, j):
        """Yield what is below: beginnings of the orders of the classes, all but each level."""
        codes, node = self.columns.codes[j, rows], self.sums(rows)
        levels = [k for k in range(self.columns.n_bins[j]) if (codes == k).any()]
        sums = {level: self.sums(rows[codes == level]) for level in levels}
        for k, (full, bend) in enumerate(node):
            pull = self.smoothing * (bend / len(rows))
            keys = [
                (-(sums[level][k][0] + pull * (full / bend)) / (sums[level][k][1] + pull), level)
                for level in levels
            ]
            order = [level for _, level in sorted(keys)]
            for i in range(1, len(order) + 1):
                yield frozenset(order[:i])
        for level in levels if self.smoothing > 0 else ():
            yield frozenset(levels) - {level}

    def best(self, rows, path, *_):
        node, best = self.sums(rows), None
        among = [j for j in self.of_tree if self.may_join(j, self.used[path])]
        for j in self.draw(among, self.per_split, twin.number_of(path)):
            codes, hole = self.columns.codes[j, rows], self.columns.hole(j)
            for below, side, bin_ in self.cuts(rows, j):
                is_below = is_among(codes, below) | ((codes == hole) & (side == 0))
                count = int(is_below.sum())
                if min(count, len(rows) - count) < max(self.min_samples_leaf, 1):
                    continue
                score = self.cut_score(self.sums(rows[is_below]), node)
                if score is not None and (best is None or score > best.score[0]):
                    above = frozenset(codes[~is_below & (codes != hole)].tolist())
                    best = twin.Cut((score, 1.0), j, above, side, bin_)
        return best

    def found_cut(self, rows, path, bounds):
        """Return the cut of a node and which rows are above; None if there is none."""
        if len(path) == self.depth or len(rows) < 2 * max(self.min_samples_leaf, 1):
            return None
        cut = self.best(rows, path)
        if cut is None:
            return None
        gain = self.gain(rows, cut, None)
        if not (gain > TIE * self.own_score(rows) and gain >= self.min_split_gain):
            return None
        codes, hole = self.columns.codes[cut.feature, rows], self.columns.hole(cut.feature)
        if cut.bin is None:
            is_above = is_among(codes, cut.above)
        else:
            is_above = (codes > cut.bin) & (codes != hole)
        self.used[*path, 0] = self.used[*path, 1] = self.used[path] | {cut.feature}
        return cut, is_above | ((codes == hole) & (cut.missing == 1))

    def gain(self, rows, cut, bounds, path=()):
        return cut.score[0] - self.own_score(rows)

    def grow(self, rows, path, bounds):
        actual = self.found_cut(rows, path, None)
        if actual is None or (self.chosen is not None and path not in self.chosen):
            return twin.Node(-1, None, 0, None, self.mass(rows), rows, None)
        return self.split(rows, path, *actual, None)

    def split(self, rows, path, cut, is_above, bounds):
        parts = rows[~is_above], rows[is_above]
        missing, above, j = cut.missing, None, cut.feature
        if missing is None:
            missing = int(self.mass(parts[1]) * (1.0 - SAME_MASS) > self.mass(parts[0]))
        if cut.bin is None:
            above, codes = cut.above, set(self.columns.codes[j, rows].tolist())
            if missing:
                above |= frozenset(range(self.columns.n_bins[j])) - codes
        return twin.Node(
            j,
            above,
            missing,
            cut.bin,
            self.mass(rows),
            rows,
            None,
            *(self.grow(parts[side], (*path, side), None) for side in (0, 1)),
        )

    def of_class(self, k):
        """Return what the step of a leaf asks of a tree of class k."""
        return OfClass(self, k)


class OfClass:
    def __init__(self, grown, k):
        self.grown, self.k = grown, k
        self.scale, self.l2 = [grown.of_g[k], grown.of_h[k]], grown.l2[k]

    def sums(self, rows):
        return self.grown.sums(rows)[self.k]


def fit(
    columns,
    label,
    n_classes,
    weight,
    *,
    bias,
    n_estimators,
    rate,
    depth,
    min_samples_leaf=1,
    l2=0.0,
    smoothing=0.0,
    most=math.inf,
    solved=True,
    listed=None,
    sums="auto",
    **held,
):
    """Return the trees, what their nodes add, (n_nodes, J), and the scores (J, n) of all rows."""
    limit = LOSSES["log_loss"].limit
    f = np.repeat(np.asarray(bias)[:, None], len(label), axis=1)
    rate, most = rate * (0.5 if n_classes == 2 else 1.0), min(most, limit)

    def mean(value):
        return softmax.total(np.where(weight > 0, weight * value, 0.0)) / softmax.total(weight)

    residual, value = softmax.shares(f, label)
    actual = twin.Fit([], [], f, [mean(value)])
    bounds = held.pop("comparisons", None)
    for t in range(n_estimators):
        if bounds is not None:
            held |= twin.comparing(bounds, t, weight)
        rows = np.flatnonzero(weight > 0) if listed is None else listed[t]
        size = np.abs(residual)
        h = np.maximum(size * (1.0 - size), size * (1.0 / limit))
        n_used = (weight > 0).sum()
        bits = np.array([twin.bits_of(weight * g, sums, n_used) for g in residual])
        grown = Grown(
            columns,
            weight * residual,
            weight * h,
            rows,
            depth,
            min_samples_leaf,
            l2,
            smoothing,
            bits,
            t + 1,
            **held,
        )
        nodes = twin.preorder(grown.root)
        values = np.zeros((len(nodes), n_classes))
        of_shares = softmax.SimpleNamespace(name="shares")
        for e, node in enumerate(nodes):
            for k in range(n_classes) if node.feature < 0 else ():
                parts = residual[k], weight, of_shares, l2, most, solved
                values[e, k] = rate * softmax.step(node, grown.of_class(k), *parts)
        place = {id(node): e for e, node in enumerate(nodes)}
        for i in range(len(label)):
            f[:, i] += values[place[id(twin.leaf_of(grown.root, columns, i))]]
        actual.trees.append(nodes)
        actual.values.append(values)
        residual, value = softmax.shares(f, label)
        actual.mean_loss.append(mean(value))
    return actual
