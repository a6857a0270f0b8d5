"""Rounds of boosting on bins, node by node: the same as the kernel's to the last bit.

Derivatives are rounded to integers, so that all sums are exact; where floating point is left
(scores, steps of leaves) operations stand in the kernel's order.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from reference.level_sets import is_among
from reference.round_leaves import Leaf
from reference.round_losses import rounded, scale_of, slopes

HOLES, LEVELS = 1, 2
GRADIENT_BITS, CURVATURE_BITS, WIDE_BITS = 18, 19, 35
SAME_MASS = 1e-9


# ---------------------------------------------------------------------------------------------
# The tree.


class Columns(NamedTuple):
    codes: Any
    n_bins: Any
    special: Any  # of each column

    def hole(self, j):
        return self.n_bins[j] if self.special[j] & HOLES else -1


GOLDEN = 0x9E3779B97F4A7C15


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
    bounds: Any
    first: Any = None
    second: Any = None


class Grown:
    """A tree: rows that are listed, gradients and curvatures as integers."""

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
        direction=None,
        most=math.inf,
        max_leaf_nodes=None,
        groups=None,
        feature_costs=None,
        paid=None,
        weight=None,
        reported=1.0,
        comparisons=None,
        mass=None,
        jitter=0.0,
        jitter_key=0,
        grown_on=None,
    ):
        self.jitter, self.stream = jitter, (jitter_key, number)
        self.feature_costs, self.paid, self.tradeoff = (
            feature_costs,
            paid,
            getattr(feature_costs, "tradeoff", None),
        )
        self.columns, self.min_samples_leaf, self.smoothing = columns, min_samples_leaf, smoothing
        self.depth, self.weight, self.reported = depth, weight, reported
        self.is_wide = bits[0] != GRADIENT_BITS
        self.scale = [
            power_below(np.abs(gradient).max(), bits[0]),
            power_below(curvature.max(), bits[1]),
        ]
        self.g = rounded(gradient * self.scale[0]).astype(np.int64)
        self.h = np.maximum(rounded(curvature * self.scale[1]).astype(np.int64), 1)
        self.full = self.g.copy(), self.h.copy()
        if grown_on is not None:
            is_out = ~np.isin(np.arange(len(self.g)), grown_on)
            self.g[is_out] = self.h[is_out] = 0
        self.l2, self.min_child_weight = l2 * self.scale[1], min_child_weight * self.scale[1]
        self.min_split_gain = min_split_gain * (self.scale[0] * self.scale[0] / self.scale[1])
        d = len(columns.codes)
        self.per_split = d if per_split is None else per_split
        self.draw = lambda among, wanted, path: drawn(among, wanted, (key, path, number))
        self.of_tree = self.draw(range(d), d if per_tree is None else per_tree, 0)
        self.direction = direction
        self.unit = self.scale[0] / self.scale[1]
        self.groups, self.used = groups, {(): frozenset()}
        bounds = -most * self.unit, most * self.unit
        self.comparisons, self.mass_of_row = comparisons, mass
        self.chosen = (
            None if max_leaf_nodes is None else self.best_first(rows, bounds, max_leaf_nodes)
        )
        self.root = self.grow(rows, (), bounds)

    def sums(self, rows):
        return float(self.g[rows].sum()), float(self.h[rows].sum())

    def step(self, sums, bounds):
        return min(max(-sums[0] / (sums[1] + self.l2), bounds[0]), bounds[1])

    def score_within(self, sums, bounds):
        step = self.step(sums, bounds)
        return -step * (2.0 * sums[0] + (sums[1] + self.l2) * step)

    def bounded_score(self, below, node, kept, bounds, direction):
        """As `score` where some columns are monotone; None also where steps go the wrong way."""
        above = node[0] - below[0], node[1] - below[1]
        if min(below[1], above[1]) < max(self.min_samples_leaf, self.min_child_weight):
            return None
        if direction * (self.step(above, bounds) - self.step(below, bounds)) < 0:
            return None
        actual = self.score_within(below, bounds) + self.score_within(above, bounds)
        node_score = self.score_within(node, bounds)
        return (actual if kept == 1 else kept * kept * (actual - node_score) + node_score), 1.0

    def score(self, below, node, kept):
        """Return numerator and divisor; None where a side has too little curvature."""
        (gl, hl), (g, h) = below, node
        gr, hr = g - gl, h - hl
        if min(hl, hr) < max(self.min_samples_leaf, self.min_child_weight):
            return None
        dl, dr = hl + self.l2, hr + self.l2
        numerator, divisor = gl * gl * dr + gr * gr * dl, dl * dr
        if kept == 1:
            return numerator, divisor
        node_term, full = g * g * divisor, h + self.l2
        return kept * kept * (numerator * full - node_term) + node_term, divisor * full

    def cuts(self, rows, j, counted):
        """Yield the cuts of a column as codes below; the side of missing rows; the bin; what counts
        of the difference between the sides."""
        codes, hole = self.columns.codes[j, rows], self.columns.hole(j)
        is_number = not self.columns.special[j] & LEVELS
        is_missing = self.h[rows[codes == hole]].sum() > 0
        if counted and is_number:  # rows that are not drawn count, too
            is_missing = (codes == hole).any()
        for side in (1, 0) if is_missing else (None,):
            if not is_number:
                order, apart = self.order(rows, j)
                missing = self.apart(rows[codes == hole], rows) if is_missing else 0.0
                full = missing
                for level in order:
                    full += apart[level]
                left = missing if side == 0 else 0.0
                for i in range(1, len(order) + 1):
                    left += apart[order[i - 1]]
                    below = frozenset(order[:i])
                    part = (below, side, left, full) if i < len(order) else None
                    yield below, side, None, self.kept(rows, j, part)
                for level in order if self.pull(rows, j) > 0 else ():
                    below = frozenset(order) - {level}
                    part = below, side, left - apart[level], full
                    yield below, side, None, self.kept(rows, j, part)
            else:
                for bin_ in range(self.columns.n_bins[j]):
                    yield frozenset(range(bin_ + 1)), side, bin_, 1.0

    def apart(self, some, rows):
        """Return by how much gradients of some rows depart from those of rows of the node."""
        (g, h), (gs, hs) = self.sums(some), self.sums(rows)
        return g - h / hs * gs

    def pull(self, rows, j):
        """Return the curvature of the node's own rows that is added to each level."""
        codes = self.columns.codes[j, rows]
        levels = [k for k in range(self.columns.n_bins[j]) if self.h[rows[codes == k]].sum() > 0]
        parts = [
            (self.apart(rows[codes == k], rows), self.sums(rows[codes == k])[1]) for k in levels
        ]
        return self.pull_of(parts, self.spread(rows), len(rows))

    def spread(self, rows):
        """Return by how much the steps of rows differ from their mean."""
        g, h = self.sums(rows)
        gs, hs = self.g[rows].astype(float), self.h[rows].astype(float)
        if self.is_wide:  # the first words
            first = rounded(gs / 2.0**18), np.floor(hs / 2.0**18)
            squares = 2.0**18 * rounded(first[0] * first[0] / np.maximum(first[1], 1.0)).sum()
        else:
            squares = rounded(gs * gs / np.maximum(hs, 1.0)).sum()
        return squares - g * g / h

    def pull_of(self, parts, spread, n_rows):
        """As `pull`; `parts` has by how much each level departs, and its curvature."""
        if not (self.smoothing > 0 and spread > 0):
            return 0.0
        squares = known = 0.0
        for apart, mass in parts:
            squares += apart * (apart / mass)
            known += mass
        squares *= n_rows / spread
        chance = self.smoothing * max(len(parts) - 2, 0)
        if chance <= 0:
            return 0.0
        if squares - chance <= chance / (1e6 * len(parts)):
            return 1e6 * known
        return known / len(parts) * (chance / (squares - chance))

    def order(self, rows, j):
        """Return the levels at a node in order, and by how much they depart, smoothed."""
        codes = self.columns.codes[j, rows]
        (g, h), pull = self.sums(rows), self.pull(rows, j)
        keys, apart = [], {}
        for level in range(self.columns.n_bins[j]):
            some = rows[codes == level]
            if self.h[some].sum() > 0:
                gl, hl = self.sums(some)
                keys.append((-(gl + pull * (g / h)) / (hl + pull), level))
                apart[level] = hl / (hl + pull) * self.apart(some, rows)
        return [level for _, level in sorted(keys)], apart

    def kept(self, rows, j, part):
        """Return as much of the difference between the sides of a set as smoothed levels leave."""
        if part is None or self.pull(rows, j) == 0:
            return 1.0
        below, side, left, full = part
        codes, hole = self.columns.codes[j, rows], self.columns.hole(j)
        is_below = is_among(codes, below) | ((codes == hole) & (side == 0))
        (gl, hl), (g, h) = self.sums(rows[is_below]), self.sums(rows)
        apart = gl - hl / h * g
        return min(max((left - full * (hl / h)) / apart, 0.0), 1.0) if apart else 1.0

    def may_join(self, j, used):
        return self.groups is None or any(used | {j} <= group for group in self.groups)

    def price(self, rows, path, j):
        """Return what a comparison costs the rows of a node in the mean."""
        total = self.feature_costs.comparison
        for item in self.feature_costs.item[j].tolist():
            if item < 0:
                continue
            unpaid = 0.0
            if not any(item in self.feature_costs.item[used] for used in self.used[path]):
                weight = self.weight[rows]
                unpaid = np.cumsum(np.where([item in self.paid[i] for i in rows], 0.0, weight))[-1]
                unpaid = unpaid / np.cumsum(weight)[-1]  # one after the other
            total += self.feature_costs.cost[item] * unpaid
        return total

    def worth(self, rows, cut, bounds, path):
        """Return what a cut is worth to rows that pay."""
        gain, price = self.gain(rows, cut, bounds), self.price(rows, path, cut.feature)
        weight = 2.0 / self.reported * self.unit * self.scale[0] * np.cumsum(self.weight[rows])[-1]
        return gain / price if self.tradeoff is None else gain - self.tradeoff * weight * price

    def jittered(self, score, depth, j):
        """Return the square root of a score, plus the jitter of the feature at this depth."""
        key, number = self.stream
        start = stream(key, depth, number)
        words = [mix((start + GOLDEN * (2 * j + k + 1)) % 2**64) for k in range(2)]
        total = sum(word >> 16 * k & 0xFFFF for word in words for k in range(4))
        return math.sqrt(max(score, 0.0)) + self.jitter * 1.2247448713915890 * (
            total / 65535.0 - 4.0
        )

    def best(self, rows, path, bounds, counted):
        if self.feature_costs is None and self.jitter:
            cuts = [self.best_of(rows, path, bounds, counted, [j]) for j in self.of_node(path)]
            cuts = [cut for cut in cuts if cut is not None]

            def value(cut):
                return self.jittered(cut.score[0] / cut.score[1], len(path), cut.feature)

            return max(cuts, key=value, default=None)
        if self.feature_costs is None:
            return self.best_of(rows, path, bounds, counted, self.of_node(path))
        best, maximum = None, -math.inf if self.tradeoff is None else 0.0
        for j in self.of_node(path):
            cut = self.best_of(rows, path, bounds, counted, [j])
            if cut is not None:
                score = self.worth(rows, cut, bounds, path)
                if score > maximum:
                    best, maximum = cut, score
        return best

    def of_node(self, path):
        among = [j for j in self.of_tree if self.may_join(j, self.used[path])]
        return self.draw(among, self.per_split, number_of(path))

    def best_of(self, rows, path, bounds, counted, columns):
        node, best = self.sums(rows), None
        for j in columns:
            codes, hole = self.columns.codes[j, rows], self.columns.hole(j)
            for below, side, bin_, kept in self.cuts(rows, j, counted):
                is_below = is_among(codes, below) | ((codes == hole) & (side == 0))
                count = int(is_below.sum())
                if counted and min(count, len(rows) - count) < self.min_samples_leaf:
                    continue
                part = self.sums(rows[is_below])
                score = self.score(part, node, kept)
                if self.direction is not None:
                    way = (
                        self.direction[j]
                        if bin_ is None or bin_ < self.columns.n_bins[j] - 1
                        else 0
                    )
                    score = self.bounded_score(part, node, kept, bounds, way)
                if score is None:
                    continue
                if best is None or score[0] * best.score[1] > best.score[0] * score[1]:
                    is_above = ~is_below & (codes != hole) & (self.h[rows] > 0)
                    above = frozenset(codes[is_above].tolist())
                    best = Cut(score, j, above, side, bin_)
        return best

    def is_pure(self, rows):
        g, h = self.sums(rows)
        step = g / h
        return bool((np.abs(self.g[rows] - step * self.h[rows]) <= 1.0 + abs(step)).all())

    def grow(self, rows, path, bounds):
        """Return the node at the end of a path, which has the sides taken."""
        actual = self.found_cut(rows, path, bounds)
        if actual is None or (self.chosen is not None and path not in self.chosen):
            return Node(-1, None, 0, None, self.h[rows].sum(), rows, bounds)
        return self.split(rows, path, *actual, bounds)

    def best_first(self, rows, bounds, max_leaf_nodes):
        """Return the paths to the nodes that are split where the largest gain comes first.

        Or gain per comparison, as long as the comparisons of rows are within a bound.
        """
        open_, chosen, n_nodes, spent = {}, set(), 1, 0

        def weight(rows):
            return int(self.mass_of_row[rows].sum()) if self.comparisons else 1

        full = weight(rows)

        def look(number, rows, path, bounds):
            actual = self.found_cut(rows, path, bounds)
            if actual is not None:
                worth = self.gain if self.tradeoff is None else self.worth
                gain = worth(rows, actual[0], bounds, path)
                open_[-gain / float(weight(rows)), number] = rows, path, bounds, *actual

        look(0, rows, (), bounds)
        while open_ and len(chosen) + 1 < max_leaf_nodes:
            rows, path, bounds, cut, is_above = open_.pop(min(open_))
            if self.comparisons and float(spent + weight(rows)) > self.comparisons * float(full):
                continue
            spent += weight(rows)
            chosen.add(path)
            parts = rows[~is_above], rows[is_above]
            for side, of_part in enumerate(self.bounds_of(parts, cut, bounds)):
                look(n_nodes + side, parts[side], (*path, side), of_part)
            n_nodes += 2
        return chosen

    def found_cut(self, rows, path, bounds):
        """Return the cut of a node and which rows are above; None if there is none."""
        if len(path) == self.depth or len(rows) < 2 * self.min_samples_leaf or self.is_pure(rows):
            return None
        for counted in (False, True):
            cut = self.best(rows, path, bounds, counted)
            if cut is None or (
                self.min_split_gain > 0 and self.gain(rows, cut, bounds) < self.min_split_gain
            ):
                return None
            cut, is_above = self.completed(rows, cut)
            if min(is_above.sum(), (~is_above).sum()) >= self.min_samples_leaf:
                self.used[*path, 0] = self.used[*path, 1] = self.used[path] | {cut.feature}
                return cut, is_above
        return None

    def completed(self, rows, cut):
        """Return a cut with the sides of codes that no drawn row has, and which rows are above."""
        codes = self.columns.codes[cut.feature, rows]
        hole, n_bins = self.columns.hole(cut.feature), self.columns.n_bins[cut.feature]
        missing, above = cut.missing, cut.above
        is_above = is_among(codes, above) if cut.bin is None else codes > cut.bin
        if missing is None:
            hl, hr = (
                float(self.h[rows[part & (codes != hole)]].sum()) for part in (~is_above, is_above)
            )
            missing = int(hr * (1.0 - SAME_MASS) > hl)
        if cut.bin is None and missing:
            above |= frozenset(range(n_bins)) - set(codes[self.h[rows] > 0].tolist())
            is_above = is_among(codes, above)
        is_above = np.where(codes == hole, missing == 1, is_above)
        return cut._replace(missing=missing, above=above), is_above

    def gain(self, rows, cut, bounds, path=None):
        g, h = self.sums(rows)
        if self.direction is not None:
            return cut.score[0] - self.score_within((g, h), bounds)
        return cut.score[0] / cut.score[1] - g * g / (h + self.l2)

    def bounds_of(self, parts, cut, bounds):
        """Return the bounds of both sides of a cut."""
        if (
            self.direction is None
            or cut.bin is None
            or cut.bin >= self.columns.n_bins[cut.feature] - 1
        ):
            return bounds, bounds
        below, above = (self.step(self.sums(part), bounds) for part in parts)
        middle = 0.5 * below + 0.5 * above
        lower, upper = (bounds[0], middle), (middle, bounds[1])
        return {0: (bounds, bounds), 1: (lower, upper), -1: (upper, lower)}[
            int(self.direction[cut.feature])
        ]

    def split(self, rows, path, cut, is_above, bounds):
        parts = [rows[~is_above], rows[is_above]]
        of_parts = self.bounds_of(parts, cut, bounds)
        return Node(
            cut.feature,
            cut.above if cut.bin is None else None,
            cut.missing,
            cut.bin,
            self.h[rows].sum(),
            rows,
            bounds,
            *(self.grow(parts[side], (*path, side), of_parts[side]) for side in (0, 1)),
        )


def bits_of(gradient, sums, n):
    size = np.abs(gradient)
    large = (size >= size.max() / 4096.0).sum()
    if sums == "wide" or (sums == "auto" and 100 * large < (size > 0).sum()):
        return (min(WIDE_BITS, 52 - math.ceil(math.log2(n))),) * 2
    return GRADIENT_BITS, CURVATURE_BITS


def number_of(path):
    """Return the number of a node in a tree that is full: 1 of the root."""
    return int("1" + "".join(map(str, path)), 2)


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def stream(key, node, number):
    """Return the start of a stream of random words."""
    return mix((mix((key + GOLDEN * (node + 1)) % 2**64) + GOLDEN * (number + 1)) % 2**64)


def drawn(among, wanted, keys):
    """Return so many, in their order, drawn without repetition; all where there are no more."""
    among = list(among)
    if wanted >= len(among):
        return among
    start = stream(*keys)
    for i in range(wanted):
        share = (mix((start + GOLDEN * (i + 1)) % 2**64) >> 11) * 2.0**-53
        j = i + int(share * (len(among) - i))
        among[i], among[j] = among[j], among[i]
    return sorted(among[:wanted])


def power_below(largest, bits):
    if not largest > 0:
        return 1.0
    part, exponent = math.frexp(largest)
    exponent += part * 2.0**bits >= 2.0**bits - 0.5
    return 2.0 ** min(bits - exponent, 1000)


def preorder(node):
    nodes = [node]
    return nodes + ([] if node.feature < 0 else preorder(node.first) + preorder(node.second))


class Fit(NamedTuple):
    trees: list[Any]  # nodes in preorder
    values: list[Any]  # what they add, 0 where they are no leaves
    f: Any
    mean_loss: list[float]


def fit(
    columns,
    y,
    loss,
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
    grower=Grown,
    **held,
):
    """Return the trees, and the decision values of all rows; `listed` are those of each tree."""
    f, limit = np.full(len(y), bias), loss.limit
    unit = scale_of(2.0 * weight.max(), (weight > 0).sum())
    total = rounded(weight * unit).sum() / unit
    more = 0.0
    if loss.kernel_at_0 is not None:
        left_out = np.where(weight > 0, weight * loss.omitted(y), 0.0)
        scale = scale_of(2.0 * np.abs(left_out).max(), (left_out != 0).sum())
        more = rounded(left_out * scale).sum() / scale - loss.kernel_at_0 * total
    gradient, curvature, value = slopes(loss, y, f, weight, limit)
    actual = Fit([], [], f, [loss.reported * (value + more) / total])
    paid = [set() for _ in y]
    if held.get("feature_costs") is not None:
        held = {**held, "paid": paid, "weight": weight, "reported": loss.reported}
    bounds, jitters = held.pop("comparisons", None), held.pop("jitters", None)
    for t in range(n_estimators):
        if bounds is not None:
            held |= comparing(bounds, t, weight)
        if jitters is not None:
            held["jitter"] = jitters[t]
        rows = np.flatnonzero(weight > 0)
        held["grown_on"] = None if listed is None else listed[t]
        bits = bits_of(gradient, sums, (weight > 0).sum())
        parts = columns, gradient, curvature, rows, depth, min_samples_leaf, l2, smoothing, bits
        grown = grower(*parts, t + 1, most=min(most, limit), **held)
        nodes = preorder(grown.root)
        if listed is not None:
            nodes = with_all(grown)
        values = np.zeros(len(nodes))
        for e, node in enumerate(nodes):
            if node.feature < 0:
                at = node.rows
                leaf = Leaf(loss, y[at], f[at], weight[at], limit, l2, min(most, limit))
                g, h = grown.sums(at)
                guess = -(grown.scale[1] / grown.scale[0]) * g / (h + grown.l2)
                values[e] = rate * (leaf.solved(guess) if solved else leaf.newton())
                if held.get("direction") is not None:
                    unit = rate * (grown.scale[1] / grown.scale[0])
                    minimum, greatest = (unit * bound for bound in node.bounds)
                    values[e] = min(max(values[e], minimum), greatest)
        reached = {id(node): values[e] for e, node in enumerate(nodes)}
        for i in range(len(y)):
            way = way_of(grown.root, columns, i)
            f[i] += reached[id(way[-1])]
            if held.get("feature_costs") is not None:
                paid[i].update(
                    k for node in way[:-1] for k in held["feature_costs"].item[node.feature]
                )
        gradient, curvature, value = slopes(loss, y, f, weight, limit)
        actual.trees.append(nodes)
        actual.values.append(values)
        actual.mean_loss.append(loss.reported * (value + more) / total)
    return actual


def with_all(grown):
    """Return the nodes of a tree that was grown on some of the rows, with the sums of all rows."""

    def summed(node):
        first = second = None
        if node.feature >= 0:
            first, second = summed(node.first), summed(node.second)
        curvature = grown.h[node.rows].sum()
        return node._replace(curvature=curvature, first=first, second=second)

    grown.g, grown.h = grown.full
    grown.root = summed(grown.root)
    return preorder(grown.root)


def comparing(bounds, t, weight):
    """Return what a tree that grows by gain per comparison is told: its bound, weights of rows."""
    units = np.maximum(np.rint(weight * 2.0**31), weight > 0).astype(np.int64)
    return {"comparisons": bounds[min(t, len(bounds) - 1)], "mass": units}


def leaf_of(node, columns, i):
    return way_of(node, columns, i)[-1]


def way_of(node, columns, i):
    way = [node]
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
        way.append(node)
    return way
