"""Rounds of boosting on bins, node by node: the same as the kernel's to the last bit.

Derivatives are rounded to integers, so that all sums are exact; where floating point is left
(scores, steps of leaves) operations stand in the kernel's order.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from reference.round_losses import (
    bounds,
    derivatives,
    farthest,
    margins,
    rounded,
    scale_of,
    signed,
    slopes,
)

HOLES, LEVELS = 1, 2
GRADIENT_BITS, CURVATURE_BITS, WIDE_BITS = 18, 19, 35
SAME_MASS = 1e-9
NEAR, TINY, WIDTH, FLAT = 1e-8, 1e-6, 1e-13, 1e-13
VOTE_LIMIT = 18.021826694558577


# ---------------------------------------------------------------------------------------------
# The tree.


class Columns(NamedTuple):
    codes: Any
    n_bins: Any
    special: Any  # of each column

    def hole(self, j):
        return self.n_bins[j] if self.special[j] & HOLES else -1


class Cut(NamedTuple):
    score: tuple[float, float]  # numerator and divisor
    feature: int
    above: frozenset[int]  # codes of rows at the node, without that of missing rows
    missing: int | None
    bin: int | None


class Node(NamedTuple):
    feature: int
    above: frozenset[int] | None
    missing: int
    bin: int | None
    curvature: int
    rows: Any
    first: Any = None
    second: Any = None


class Grown:
    """A tree: rows that are listed, gradients and curvatures as integers."""

    def __init__(self, columns, gradient, curvature, rows, depth, min_leaf, l2, smoothing, bits):
        self.columns, self.min_leaf, self.smoothing = columns, min_leaf, smoothing
        self.depth, self.is_wide = depth, bits[0] != GRADIENT_BITS
        self.scale = [
            power_below(np.abs(gradient).max(), bits[0]),
            power_below(curvature.max(), bits[1]),
        ]
        self.g = rounded(gradient * self.scale[0]).astype(np.int64)
        self.h = np.maximum(rounded(curvature * self.scale[1]).astype(np.int64), 1)
        self.l2 = l2 * self.scale[1]
        self.root = self.grow(rows, 0)

    def sums(self, rows):
        return float(self.g[rows].sum()), float(self.h[rows].sum())

    def score(self, below, node, kept):
        """Return numerator and divisor; None where a side has too little curvature."""
        (gl, hl), (g, h) = below, node
        gr, hr = g - gl, h - hl
        if min(hl, hr) < self.min_leaf:
            return None
        dl, dr = hl + self.l2, hr + self.l2
        numerator, divisor = gl * gl * dr + gr * gr * dl, dl * dr
        if kept == 1:
            return numerator, divisor
        own, whole = g * g * divisor, h + self.l2
        return kept * kept * (numerator * whole - own) + own, divisor * whole

    def cuts(self, rows, j):
        """Yield the cuts of a column as codes below; the side of missing rows; the bin; what counts
        of the difference between the sides."""
        here, hole = self.columns.codes[j, rows], self.columns.hole(j)
        is_missing = (here == hole).any()
        for side in (1, 0) if is_missing else (None,):
            if self.columns.special[j] & LEVELS:
                order, apart = self.order(rows, j)
                missing = self.apart(rows[here == hole], rows) if is_missing else 0.0
                whole = missing
                for level in order:
                    whole += apart[level]
                left = missing if side == 0 else 0.0
                for i in range(1, len(order) + 1):
                    left += apart[order[i - 1]]
                    below = frozenset(order[:i])
                    part = (below, side, left, whole) if i < len(order) else None
                    yield below, side, None, self.kept(rows, j, part)
                for level in order if self.pull(rows, j) > 0 else ():
                    below = frozenset(order) - {level}
                    part = below, side, left - apart[level], whole
                    yield below, side, None, self.kept(rows, j, part)
            else:
                for b in range(self.columns.n_bins[j]):
                    yield frozenset(range(b + 1)), side, b, 1.0

    def apart(self, some, rows):
        """Return by how much gradients of some rows depart from those of rows of the node."""
        (g, h), (gs, hs) = self.sums(some), self.sums(rows)
        return g - h / hs * gs

    def pull(self, rows, j):
        """Return the curvature of the node's own rows that is added to each level."""
        here = self.columns.codes[j, rows]
        g, h = self.sums(rows)
        gs, hs = self.g[rows].astype(float), self.h[rows].astype(float)
        if self.is_wide:  # the first words
            first = rounded(gs / 2.0**18), np.floor(hs / 2.0**18)
            squares = 2.0**18 * rounded(first[0] * first[0] / np.maximum(first[1], 1.0)).sum()
        else:
            squares = rounded(gs * gs / hs).sum()
        spread = squares - g * g / h
        if not (self.smoothing > 0 and spread > 0):
            return 0.0
        levels = [k for k in range(self.columns.n_bins[j]) if (here == k).any()]
        squares = known = 0.0
        for level in levels:
            mass = self.sums(rows[here == level])[1]
            apart = self.apart(rows[here == level], rows)
            squares += apart * (apart / mass)
            known += mass
        squares *= len(rows) / spread
        chance = self.smoothing * max(len(levels) - 2, 0)
        if chance <= 0:
            return 0.0
        if squares - chance <= chance / (1e6 * len(levels)):
            return 1e6 * known
        return known / len(levels) * (chance / (squares - chance))

    def order(self, rows, j):
        """Return the levels at a node in order, and by how much they depart, smoothed."""
        here = self.columns.codes[j, rows]
        (g, h), pull = self.sums(rows), self.pull(rows, j)
        keys, apart = [], {}
        for level in range(self.columns.n_bins[j]):
            some = rows[here == level]
            if len(some):
                gl, hl = self.sums(some)
                keys.append((-(gl + pull * (g / h)) / (hl + pull), level))
                apart[level] = hl / (hl + pull) * self.apart(some, rows)
        return [level for _, level in sorted(keys)], apart

    def kept(self, rows, j, part):
        """Return as much of the difference between the sides of a set as smoothed levels leave."""
        if part is None or self.pull(rows, j) == 0:
            return 1.0
        below, side, left, whole = part
        here, hole = self.columns.codes[j, rows], self.columns.hole(j)
        is_below = np.isin(here, list(below)) | ((here == hole) & (side == 0))
        (gl, hl), (g, h) = self.sums(rows[is_below]), self.sums(rows)
        apart = gl - hl / h * g
        return min(max((left - whole * (hl / h)) / apart, 0.0), 1.0) if apart else 1.0

    def best(self, rows, counted):
        node, best = self.sums(rows), None
        for j in range(len(self.columns.codes)):
            here, hole = self.columns.codes[j, rows], self.columns.hole(j)
            for below, side, b, kept in self.cuts(rows, j):
                is_below = np.isin(here, list(below)) | ((here == hole) & (side == 0))
                count = int(is_below.sum())
                if counted and min(count, len(rows) - count) < self.min_leaf:
                    continue
                score = self.score(self.sums(rows[is_below]), node, kept)
                if score is None:
                    continue
                if best is None or score[0] * best.score[1] > best.score[0] * score[1]:
                    above = frozenset(here[~is_below & (here != hole)].tolist())
                    best = Cut(score, j, above, side, b)
        return best

    def is_pure(self, rows):
        g, h = self.sums(rows)
        step = g / h
        return bool((np.abs(self.g[rows] - step * self.h[rows]) <= 1.0 + abs(step)).all())

    def grow(self, rows, depth):
        leaf = Node(-1, None, 0, None, self.h[rows].sum(), rows)
        if depth == self.depth or len(rows) < 2 * self.min_leaf or self.is_pure(rows):
            return leaf
        for counted in (False, True):
            cut = self.best(rows, counted)
            if cut is None:
                return leaf
            here, hole = self.columns.codes[cut.feature, rows], self.columns.hole(cut.feature)
            if cut.bin is None:
                is_above = np.isin(here, list(cut.above))
            else:
                is_above = (here > cut.bin) & (here != hole)
            is_above |= (here == hole) & (cut.missing == 1)
            if min(is_above.sum(), (~is_above).sum()) >= self.min_leaf:
                return self.split(rows, depth, cut, is_above)
        return leaf

    def split(self, rows, depth, cut, is_above):
        hl, hr = (float(self.h[part].sum()) for part in (rows[~is_above], rows[is_above]))
        missing, above, j = cut.missing, None, cut.feature
        if missing is None:
            missing = int(hr * (1.0 - SAME_MASS) > hl)
        if cut.bin is None:
            above, here = cut.above, set(self.columns.codes[j, rows].tolist())
            if missing:
                above |= frozenset(range(self.columns.n_bins[j])) - here
        return Node(
            j, above, missing, cut.bin, self.h[rows].sum(), rows,
            self.grow(rows[~is_above], depth + 1), self.grow(rows[is_above], depth + 1),
        )  # fmt: skip


def bits_of(gradient, sums, n):
    size = np.abs(gradient)
    large = (size >= size.max() / 4096.0).sum()
    if sums == "wide" or (sums == "auto" and 100 * large < (size > 0).sum()):
        return (min(WIDE_BITS, 52 - math.ceil(math.log2(n))),) * 2
    return GRADIENT_BITS, CURVATURE_BITS


def power_below(most, bits):
    if not most > 0:
        return 1.0
    part, exponent = math.frexp(most)
    exponent += part * 2.0**bits >= 2.0**bits - 0.5
    return 2.0 ** min(bits - exponent, 1000)


def preorder(node):
    nodes = [node]
    return nodes + ([] if node.feature < 0 else preorder(node.first) + preorder(node.second))


# ---------------------------------------------------------------------------------------------
# Leaves.


class Leaf:
    def __init__(self, loss, y, f, weight, limit, l2, most):
        self.loss, self.y, self.f, self.weight = loss, y, f, weight
        self.limit, self.l2, self.most = limit, l2, most
        self.far, self.tiny = farthest(loss, y, f), TINY
        if loss.name == "huber":
            self.most = min(most, 2.0 * self.far[0])
            self.tiny = loss.delta

    def look(self, step, raised):
        """Return the sums of gradients and curvatures as integers, and the scale of each."""
        steepest, most, _ = bounds(self.loss, self.far, step)
        if raised:
            most = max(most, steepest * (1.0 / self.limit))
        heaviest, n = self.weight.max(), len(self.y)
        scale = [scale_of(2.0 * heaviest * part, n) for part in (steepest, most)]
        u = margins(self.loss, self.y, self.f, step)
        fall, bend, _ = derivatives(self.loss, u, self.y)
        if raised:
            bend = np.maximum(bend, np.abs(fall) * (1.0 / self.limit))
        gradient = self.weight * signed(self.loss, self.y, fall)
        whole = [rounded(gradient * scale[0]).sum(), rounded(self.weight * bend * scale[1]).sum()]
        return whole, whole[0] / scale[0] + self.l2 * step, whole[1] / scale[1] + self.l2

    def newton(self):
        _, slope, bend = self.look(0.0, True)
        return min(max(-slope / bend, -self.most), self.most) if bend > 0 else 0.0

    def solved(self, guess):
        if self.loss.name == "squared":
            return self.newton()
        if self.loss.name in ("hinge", "absolute", "quantile"):
            return min(max(self.kink(), -self.most), self.most)
        if self.loss.name == "poisson" and self.l2 == 0:
            _, slope, bend = self.look(0.0, False)
            step = -math.inf
            if self.far[1] > 0 and slope / bend < 1:
                step = math.log1p(-slope / bend)
            return min(max(step, -self.most), self.most)
        if self.loss.name == "exponential" and self.l2 == 0:
            (g, h), _, _ = self.look(0.0, False)
            above, below = h - g, h + g
            step = VOTE_LIMIT * (int(above > 0) - int(below > 0))
            if above > 0 and below > 0:
                step = min(max(0.5 * math.log(above / below), -VOTE_LIMIT), VOTE_LIMIT)
            return min(max(step, -self.most), self.most)
        return self.search(guess)

    def kink(self):
        """Return where the weight of the kinks below reaches what is wanted, as the loss says."""
        kinks, flat, scale, weight = self.y - self.f, 0.0, 1.0, self.weight
        if not (weight == 1).all():
            scale, flat = scale_of(2.0 * weight.max(), len(weight)), float(len(weight))
            weight = rounded(weight * scale)
        total, name = weight.sum(), self.loss.name
        wanted = weight[self.y > 0].sum() if name == "hinge" else (
            total * (0.5 if name == "absolute" else self.loss.quantile))  # fmt: skip
        flat += FLAT * total
        l2 = self.l2 * (0.5 * scale if name == "absolute" else scale)
        below = 0.0
        values = np.unique(kinks)
        for k, value in enumerate(values):
            after = below + weight[kinks == value].sum()
            if after - wanted + l2 * value >= -flat:
                if l2 > 0:
                    return (wanted - below) / l2 if below - wanted + l2 * value > 0 else value
                if after - wanted <= flat and k + 1 < len(values):
                    return value / 2 + values[k + 1] / 2
                return value
            below = after
        return (wanted - below) / l2

    def search(self, guess):
        at, low, high = min(max(guess, -self.most), self.most), -self.most, self.most
        seen, before = [at == low, at == high], math.inf
        _, slope, bend = self.look(at, False)
        for _ in range(200):
            if slope == 0 or (slope < 0 and at == self.most) or (slope > 0 and at == -self.most):
                break
            low, high = (at, high) if slope < 0 else (low, at)
            step = at - slope / bend if bend > 0 else -math.copysign(math.inf, slope)
            inside = low < step < high
            if not inside:
                if step >= self.most and not seen[1]:
                    step, seen[1] = self.most, True
                elif step <= -self.most and not seen[0]:
                    step, seen[0] = -self.most, True
                else:
                    step = low + (high - low) / 2
            moved, at = abs(step - at), step
            following = moved
            if self.loss.name != "huber" and 4.0 * moved < before < math.inf:
                following = moved * (moved / before) * (moved / before)
            before = moved if inside else math.inf
            most = self.tiny if self.loss.name == "huber" else max(abs(at), self.tiny)
            if inside and following <= NEAR * most:
                break
            if high - low <= WIDTH * abs(at):
                break
            _, slope, bend = self.look(at, False)
        return at


class Fit(NamedTuple):
    trees: list[Any]  # nodes in preorder
    values: list[Any]  # what they add, 0 where they are no leaves
    f: Any
    mean_loss: list[float]


def fit(
    columns, y, loss, weight, *, bias, steps, rate, depth, min_leaf=1, l2=0.0, smoothing=0.0,
    most=math.inf, solved=True, listed=None, sums="auto",
):  # fmt: skip
    """Return the trees, and the decision values of all rows; `listed` are those of each tree."""
    f, limit = np.full(len(y), bias), loss.limit
    unit = scale_of(2.0 * weight.max(), (weight > 0).sum())
    total = rounded(weight * unit).sum() / unit
    more = 0.0
    if loss.name == "poisson":
        left_out = weight * loss.value(y, np.zeros(len(y)))
        scale = scale_of(2.0 * left_out.max(), (left_out > 0).sum())
        more = rounded(left_out * scale).sum() / scale - total
    gradient, curvature, value = slopes(loss, y, f, weight, limit)
    found = Fit([], [], f, [(value + more) / total])
    for t in range(steps):
        rows = np.flatnonzero(weight > 0) if listed is None else listed[t]
        bits = bits_of(gradient, sums, (weight > 0).sum())
        parts = columns, gradient, curvature, rows, depth, min_leaf, l2, smoothing, bits
        grown = Grown(*parts)
        nodes = preorder(grown.root)
        values = np.zeros(len(nodes))
        for e, node in enumerate(nodes):
            if node.feature < 0:
                at = node.rows
                leaf = Leaf(loss, y[at], f[at], weight[at], limit, l2, min(most, limit))
                g, h = grown.sums(at)
                guess = -(grown.scale[1] / grown.scale[0]) * g / (h + grown.l2)
                values[e] = rate * (leaf.solved(guess) if solved else leaf.newton())
        reached = {id(node): values[e] for e, node in enumerate(nodes)}
        for i in range(len(y)):
            f[i] += reached[id(leaf_of(grown.root, columns, i))]
        gradient, curvature, value = slopes(loss, y, f, weight, limit)
        found.trees.append(nodes)
        found.values.append(values)
        found.mean_loss.append((value + more) / total)
    return found


def leaf_of(node, columns, i):
    while node.feature >= 0:
        j = node.feature
        code = columns.codes[j, i]
        if code == columns.hole(j):
            side = node.missing
        elif node.bin is None:
            side = code in node.above
        else:
            side = code > node.bin
        node = node.second if side else node.first
    return node
