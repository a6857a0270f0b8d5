"""Trees that grow level by level, cut by what all nodes of a level gain: as the kernel has them."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from reference import rounds
from reference.level_sets import is_among
from reference.rounds import HOLES, LEVELS, Cut, Grown


class Candidate(NamedTuple):
    """A cut that all nodes try: the codes below, the side of missing rows, the bin of a number, as
    much of the gain as counts."""

    feature: int
    below: frozenset[int]
    side: int
    bin: int | None
    kept: float


class Pooled(Grown):
    """A tree; of its nodes at `pooling[0]` and deeper the gain in all nodes counts."""

    def __init__(self, *parts, pooling, **held):
        self.pooling, self.known = pooling, None
        super().__init__(*parts, **held)

    def found_cut(self, rows, path, bounds):
        if self.known is None:
            self.known = {}
            self.cut_levels(rows, bounds)
        if path in self.known:
            return self.known[path]
        return super().found_cut(rows, path, bounds)

    def cut_levels(self, rows, bounds):
        """Find the cuts of all nodes, whose steps have the same bounds."""
        level = [((), rows)]
        for depth in range(self.depth):
            level = [
                (path, at) for path, at in level if len(at) >= 2 * max(self.min_samples_leaf, 1)
            ]
            if depth < self.pooling[0]:
                actual = {path: Grown.found_cut(self, at, path, bounds) for path, at in level}
            else:
                actual = self.cut_together(level, bounds)
            self.known |= actual
            level = [
                ((*path, side), at[actual[path][1] == side])
                for path, at in level
                if actual[path] is not None
                for side in (0, 1)
            ]

    def cut_together(self, level, bounds):
        actual = dict.fromkeys(path for path, _ in level)
        level = [(path, at) for path, at in level if not self.is_pure(at)]
        cuts = list(self.candidates([at for _, at in level]))
        gains = np.array(
            [[self.gain_of(cut, at) for cut in cuts] for _, at in level], dtype=np.float32
        )
        pool = np.zeros(len(cuts), dtype=np.float32)
        for own in gains:
            pool += np.where(np.isnan(own), np.float32(0), own)
        sums = [self.sums(at) for _, at in level]
        of_level = sum(g * g / (h + self.l2) for g, h in sums)
        share = np.float32(self.pooling[1])
        rest = np.float32(1) - share
        for (path, at), own in zip(level, gains, strict=True):
            self.used[*path, 0] = self.used[*path, 1] = frozenset()
            value = rest * own + share * pool
            if self.jitter:
                value = self.with_jitter(value, cuts, of_level, len(path))
            if not np.isnan(value).all():
                k = int(np.nanargmax(value))
                actual[path] = self.taken(cuts[k], at, path, bounds, float(own[k]))
        return actual

    def with_jitter(self, value, cuts, of_level, depth):
        """Return the scores with jitter, of the best cut of each number and side only."""
        best = {}
        for k, cut in enumerate(cuts):
            key = (cut.feature, cut.side) if cut.bin is not None else k
            if value[k] == value[k] and not (key in best and value[best[key]] >= value[k]):
                best[key] = k
        scores = np.full(len(value), np.nan, dtype=np.float32)
        for k in best.values():
            scores[k] = self.jittered(of_level + float(value[k]), depth, cuts[k].feature)
        return scores

    def taken(self, candidate, rows, path, bounds, gain):
        """Return the cut of a node, and which rows are above."""
        if self.min_split_gain > 0 and gain < self.min_split_gain:
            return None
        j = candidate.feature
        here, hole = self.columns.codes[j, rows], self.columns.hole(j)
        is_drawn, is_above = self.h[rows] > 0, ~self.is_below(candidate, rows)
        above = frozenset(here[is_above & (here != hole) & is_drawn].tolist())
        missing = candidate.side if ((here == hole) & is_drawn).any() else None
        cut, is_above = self.completed(rows, Cut((gain, 1.0), j, above, missing, candidate.bin))
        if min(is_above.sum(), (~is_above).sum()) < self.min_samples_leaf:
            return Grown.found_cut(self, rows, path, bounds)
        return cut, is_above

    def is_below(self, candidate, rows):
        here, hole = (
            self.columns.codes[candidate.feature, rows],
            self.columns.hole(candidate.feature),
        )
        return is_among(here, candidate.below) | ((here == hole) & (candidate.side == 0))

    def gain_of(self, candidate, rows):
        score = self.score(self.sums(rows[self.is_below(candidate, rows)]), self.sums(rows), 1)
        if score is None:
            return math.nan
        g, h = self.sums(rows)
        kept = candidate.kept
        return kept * kept * (score[0] / score[1] - g * g / (h + self.l2))

    def candidates(self, nodes):
        """Yield the cuts that all nodes try, in the order in which equal ones are taken."""
        for j in self.of_tree:
            kind = self.columns.special[j]
            for side in (1, 0) if kind & HOLES else (1,):
                if kind & LEVELS:
                    yield from self.sets(nodes, j, side)
                    continue
                for b in range(self.columns.n_bins[j]):
                    yield Candidate(j, frozenset(range(b + 1)), side, b, 1.0)

    def sets(self, nodes, j, side):
        """Yield the sets of levels, by how much these depart in all nodes together."""
        hole, n_bins = self.columns.hole(j), self.columns.n_bins[j]
        apart, mass = np.zeros((2, n_bins + 1))
        full = spread = 0.0
        for rows in nodes:
            g, h = self.sums(rows)
            step = g / h
            for k in range(n_bins + 1):
                gk, hk = self.sums(
                    rows[self.columns.codes[j, rows] == (hole if k == n_bins else k)]
                )
                apart[k] += gk - hk * step
                mass[k] += hk
            full += h
            spread += self.spread(rows) if self.smoothing > 0 else 0.0
        some = [k for k in range(n_bins) if mass[k] > 0]
        pull = self.pull_of([(apart[k], mass[k]) for k in some], spread, sum(map(len, nodes)))
        order = [k for _, k in sorted((-apart[k] / (mass[k] + pull), k) for k in some)]
        smooth = {k: mass[k] / (mass[k] + pull) * apart[k] for k in some}
        total = apart[n_bins] if hole >= 0 else 0.0
        for k in order:
            total += smooth[k]

        def kept(gl, hl, left):
            return min(max((left - total * (hl / full)) / gl, 0.0), 1.0) if gl else 1.0

        gl = hl = left = 0.0
        if side == 0:
            gl, hl, left = apart[n_bins], mass[n_bins], apart[n_bins]
        for i, k in enumerate(order):
            gl, hl, left = gl + apart[k], hl + mass[k], left + smooth[k]
            is_last = i + 1 == len(order)
            part = 1.0 if is_last or pull == 0 else kept(gl, hl, left)
            yield Candidate(j, frozenset(order[: i + 1]), side, None, part)
        for k in order if pull > 0 else ():
            part = kept(gl - apart[k], hl - mass[k], left - smooth[k])
            yield Candidate(j, frozenset(order) - {k}, side, None, part)


fit: Any = partial(rounds.fit, grower=Pooled)
