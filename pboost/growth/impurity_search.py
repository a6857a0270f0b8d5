"""Trees whose splits minimize a custom impurity function, and checks of this function.

The function is evaluated for all splits of an exit at once. The compiled grower (grow.pyx) makes
the splits. Ties are broken as in the compiled grower: lowest feature, then lowest threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import grow
from pboost._core.voting import TIE, VoteRule, half_log_odds
from pboost.data.columns.prebuilt import LEVELS, ROW_MASK
from pboost.data.node_inputs.inputs import WORDS
from pboost.data.training_data import TrainingData
from pboost.growth.graph_growth import (
    ALL_OPENED,
    NO_EXIT,
    BestFirst,
    Callback,
    StepRecord,
    TreeLimits,
    cost_after,
)
from pboost.growth.tree import BoostedArrays
from pboost.models.graph import DecisionGraph
from pboost.models.schema import TrainingRecord
from pboost.values import Array, FloatArray, first_false
from pboost.weak.stump_search import Stump

#: An impurity f(z) of shares z, elementwise.
Impurity: TypeAlias = Callable[[FloatArray], Any]
#: Number of intervals of the grid for checks; with a power of two, 1 - z is exact.
GRID = 1024
#: Tolerance of the checks.
ROUNDING = 1e-9
#: Number of splits evaluated at a time, over several features.
CUTS_AT_A_TIME = 1 << 15
#: Maximum weight that smoothing adds to a category, relative to the weight of all categories.
MOST_PULL = 1e6


def values_of(impurity: Impurity, z: FloatArray) -> FloatArray:
    """Return f(z); raise an error unless the result has one finite number for each element of z."""
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.asarray(impurity(z), dtype=np.float64)
    except Exception as error:  # a custom function can raise any exception
        raise TypeError(
            f"impurity: expected a function of an array of shares, but it raised {error!r}"
        ) from error
    if values.shape != z.shape:
        raise TypeError(
            f"impurity: expected a function that keeps the shape of its argument, {z.shape}, got "
            f"shape {values.shape}"
        )
    if (at := first_false(np.isfinite(values))) >= 0:
        raise ValueError(f"impurity: expected finite values, got f({z[at]:.6g}) = {values[at]}")
    return values


def check_permissible(impurity: Any) -> Impurity:
    """Check that a function is concave and symmetric with f(0) = f(1) = 0 and f(1/2) = 1.

    The conditions are checked at the multiples of 1/1024.
    """
    z = np.linspace(0, 1, GRID + 1)
    f = values_of(impurity, z)
    for at, expected in ((0, 0.0), (GRID, 0.0), (GRID // 2, 1.0)):
        if abs(f[at] - expected) > ROUNDING:
            raise ValueError(f"impurity: expected f({z[at]:g}) = {expected:g}, got {f[at]:.6g}")
    unlike = np.abs(f - f[::-1])
    if unlike.max() > ROUNDING:
        at = int(np.argmax(unlike))
        raise ValueError(
            f"impurity: expected f(z) = f(1 - z), got f({z[at]:.6g}) = {f[at]:.6g} and "
            f"f({z[-1 - at]:.6g}) = {f[-1 - at]:.6g}: not symmetric"
        )
    below = (f[:-2] + f[2:]) / 2 - f[1:-1]
    if below.max() > ROUNDING:
        at = int(np.argmax(below)) + 1
        raise ValueError(
            f"impurity: expected a concave function, got f({z[at]:.6g}) = {f[at]:.6g} below the "
            f"mean {f[at] + below[at - 1]:.6g} of its neighbors: not concave"
        )
    checked: Impurity = impurity
    return checked


@dataclass(frozen=True, slots=True)
class ImpurityStump(Stump):
    """Stumps with a custom impurity as criterion."""

    impurity: Impurity = field(kw_only=True)

    def settings(self) -> dict[str, Any]:
        """Return the options that can be stored. The function cannot be stored."""
        settings = Stump.settings(self)
        del settings["criterion"], settings["impurity"]
        return settings


def by_impurity(weak: Stump, impurity: object) -> ImpurityStump:
    """Return stumps with a custom impurity, after checking the function."""
    options = {each.name: getattr(weak, each.name) for each in fields(weak)}
    return ImpurityStump(**options, impurity=check_permissible(impurity))


@dataclass(slots=True, eq=False)
class Exit:
    """An open exit, with its class weights in fixed point and its sum of votes.

    `unit` is the weight of one fixed-point unit, relative to the weight at the root.
    """

    serial: int
    mass: tuple[int, int]
    unit: float
    votes: float
    split: ImpuritySplit | None = None

    @property
    def bound(self) -> float:
        """Part of the certificate at the exit."""
        return self.boosted(self.mass, self.votes)

    @property
    def error(self) -> float:
        """Weight of the class that is not predicted at the exit."""
        return self.mass[int(self.votes <= 0)] * self.unit

    def boosted(self, mass: tuple[int, int], votes: float) -> float:
        """Return the boosted weight of rows with the given class weights and sum of votes."""
        return (mass[0] * math.exp(votes) + mass[1] * math.exp(-votes)) * self.unit


@dataclass(frozen=True, slots=True)
class ImpuritySplit:
    """The best split of an exit, with the fields that the compiled grower needs."""

    feature: int
    place: int
    beside: NDArray[np.int32]
    votes: list[float]
    after: float
    missing: int
    subset: NDArray[np.uint64] | None


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """The splits of an exit by one feature, in the order in which ties are broken.

    Attributes
    ----------
    score : ndarray of float64, shape (m,)
        Impurity after the split, to be minimized; infinity if the split is not allowed.
    negative, positive : ndarray of int64, shape (m,)
        Class weights below the split.
    place : ndarray of integers, shape (m,)
        Position of the split in the compiled grower.
    beside : ndarray of int32, shape (m, 2)
        The rows just below and just above the split; the second is -1 if only missing values are
        above.
    side : ndarray of int8, shape (m,)
        Side of missing values; -1 if the node has none.
    above : ndarray of bool, shape (m, n_bins), or None
        For a categorical feature, the categories above the split; else None.
    """

    score: FloatArray
    negative: NDArray[np.int64]
    positive: NDArray[np.int64]
    place: Array
    beside: NDArray[np.int32]
    side: NDArray[np.int8]
    above: NDArray[np.bool_] | None = None


class ImpurityTree(BestFirst):
    """A tree with exact observations whose splits minimize a custom impurity."""

    def __init__(
        self, data: TrainingData, weak: ImpurityStump, rule: VoteRule, limits: TreeLimits
    ) -> None:
        self.data, self.weak, self.rule, self.limits = data, weak, rule, limits
        self.arrays = BoostedArrays(data, weak, rule, limits)
        self.heap = []
        self.certificate, self.reach, self.nodes = [1.0], list[float](), list[int]()
        #: Sum of the bounds of all open exits, and the rounding error of this sum.
        self.total = self.exit_at(0).bound, 0.0

    def grow(self, callback: Callback | None) -> str:
        """Split exits until growth ends; return the stop reason."""
        self.open(0)
        reason = super().grow(callback)
        return NO_EXIT if reason == ALL_OPENED and not self.heap else reason

    def model(self, settings: Mapping[str, object], stop_reason: str) -> DecisionGraph:
        """Return the tree grown so far."""
        model = self.arrays.model(settings, stop_reason)
        if not model.n_nodes:
            return model
        cost = cost_after(np.array(self.reach))
        certificate = self.arrays.sure(np.array(self.certificate), np.array(self.nodes))
        return replace(model, record=TrainingRecord(certificate, cost, stop_reason))

    def newest(self, bound: float) -> StepRecord:
        """Return the record of the last node; `bound` is the bound of the exit that was split."""
        return replace(self.arrays.newest(), certificate=self.certificate[-1])

    def exit_at(self, serial: int) -> Exit:
        """Return an exit with the weights and votes stored in the compiled grower."""
        arrays, mass = self.arrays, self.arrays.mass[serial].tolist()
        unit = math.ldexp(1.0, -int(arrays.node["shift"][serial])) / arrays.mass_unit
        return Exit(serial, mass, unit, float(arrays.vote["gathered"][serial]))

    def open(self, serial: int) -> Exit:
        """Add a new exit to the heap, if it can be split."""
        exit_, node = self.exit_at(serial), self.arrays.node[serial]
        min_rows, rows = 2 * self.weak.min_samples_leaf, self.arrays.n_rows_at(serial)
        if not node["pure"] and node["depth"] < self.limits.depth and rows >= min_rows:
            self.push(exit_)
        return exit_

    def split(self, exit_: Exit) -> None:
        """Turn an exit with a split into a node, and open the two exits of the node."""
        arrays, best_split = self.arrays, exit_.split
        assert best_split is not None
        arrays.counter["at"] = exit_.serial
        arrays.node["low"][exit_.serial], arrays.node["high"][exit_.serial] = best_split.beside
        if best_split.subset is not None:
            arrays.subset[exit_.serial] = best_split.subset
        below_vote, above_vote = best_split.votes
        test = best_split.feature, best_split.place, best_split.missing
        grow.split_given(arrays, exit_.serial, *test, below_vote, above_vote)
        child = int(arrays.node["child"][exit_.serial])
        below, above = self.open(child), self.open(child + 1)
        changes = [*self.total, -exit_.bound, below.bound, above.bound]
        certificate = math.fsum(changes)
        self.total = certificate, math.fsum([*changes, -certificate])
        self.certificate.append(max(certificate, 0.0))
        self.reach.append(sum(exit_.mass) * exit_.unit)
        self.nodes.append(exit_.serial)

    def find(self, exit_: Exit) -> ImpuritySplit | None:
        """Return the best allowed split of an exit, or None if there is none."""
        d, m = self.data.columns.n_features, self.arrays.n_rows_at(exit_.serial)
        best = np.full(d, np.inf)
        step = max(CUTS_AT_A_TIME // m, 1)
        for first in range(0, d, step):
            features = slice(first, first + step)
            best[features] = self.scores(exit_, features)[0].min(axis=1, initial=np.inf)
        special = self.arrays.special
        for j in [] if special is None else np.flatnonzero(special).tolist():
            best[j] = self.cuts(exit_, j).score.min(initial=np.inf)
        lowest = best.min()
        if lowest == np.inf:
            return None
        limit = lowest + TIE * float(sum(exit_.mass))
        feature = int(np.argmax(best <= limit))
        cuts = self.cuts(exit_, feature)
        at = int(np.argmax(cuts.score <= limit))
        low = int(cuts.negative[at]), int(cuts.positive[at])
        masses = low, (exit_.mass[0] - low[0], exit_.mass[1] - low[1])
        up = math.exp(exit_.votes)
        delta = self.rule.smoothing * (exit_.mass[0] * up + exit_.mass[1] / up)
        votes = [self.rule.learning_rate * half_log_odds(p / up, n * up, delta) for n, p in masses]
        after = sum(
            exit_.boosted(mass, exit_.votes + vote)
            for mass, vote in zip(masses, votes, strict=True)
        )
        place, side, subset = int(cuts.place[at]), int(cuts.side[at]), None
        if cuts.above is not None:
            members = np.zeros(64 * WORDS, dtype=bool)
            members[: cuts.above.shape[1]] = cuts.above[at]
            subset = np.packbits(members, bitorder="little").view("<u8")
        return ImpuritySplit(feature, place, cuts.beside[at], votes, after, side, subset)

    def scores(self, exit_: Exit, features: slice) -> tuple[Array, ...]:
        """Return the score of each split, the class weights below it, and the sorted rows.

        Each array has a row per feature and a column per sorted row. A split lies between a sorted
        row and the next one. Splits that are not allowed have an infinite score.
        """
        rows, legal = self.in_order(exit_, features)
        negative, positive = (sums[:, :-1] for sums in self.sums(rows))
        count = np.arange(1, rows.shape[1])
        return self.judged(exit_, legal, negative, positive, count), negative, positive, rows

    def sums(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the cumulative class weights of the rows."""
        weight = self.arrays.fixed[rows]
        positive = np.cumsum(np.where(rows >= self.data.n_negative, weight, 0), axis=-1)
        return np.cumsum(weight, axis=-1) - positive, positive

    def judged(
        self,
        exit_: Exit,
        legal: NDArray[np.bool_],
        negative: NDArray[np.int64],
        positive: NDArray[np.int64],
        count: NDArray[np.intp],
    ) -> FloatArray:
        """Return the score of each split from the class weights and numbers of rows below it."""
        total, m = sum(exit_.mass), self.arrays.n_rows_at(exit_.serial)
        left, min_mass = (
            positive + negative,
            math.ceil(self.weak.min_weight_fraction * float(total)),
        )
        right = total - left
        legal = legal & (left > 0) & (right > 0) & (left >= min_mass) & (right >= min_mass)
        legal &= (count >= self.weak.min_samples_leaf) & (m - count >= self.weak.min_samples_leaf)
        scores = np.full(left.shape, np.inf)
        below = positive[legal]
        scores[legal] = sum(
            mass * values_of(self.weak.impurity, part / mass)
            for mass, part in ((left[legal], below), (right[legal], exit_.mass[1] - below))
        )
        return scores

    def cuts(self, exit_: Exit, feature: int) -> Cuts:
        """Return the splits of an exit by a feature."""
        arrays, exact = self.arrays, self.data.exact
        kind = 0 if arrays.special is None else int(arrays.special[feature])
        if kind & LEVELS:
            return self.sets(exit_, feature)
        column = slice(feature, feature + 1)
        rows, legal = (array[0] for array in self.in_order(exit_, column))
        negative, positive = self.sums(rows)
        count, m = np.arange(1, len(rows)), len(rows) - 1
        place = count if exact else arrays.codes[feature, rows[:-1]].astype(np.intp)
        beside, side = np.column_stack([rows[:-1], rows[1:]]), np.full(m, -1, dtype=np.int8)
        n_known = len(rows)
        if kind:
            n_known = int((arrays.codes[feature, rows] < arrays.n_bins[feature]).sum())
        if n_known == len(rows) or not n_known:
            score = self.judged(exit_, legal, negative[:-1], positive[:-1], count)
            return Cuts(score, negative, positive, place, beside, side)
        # Each split is tried with missing values above, then with missing values below. The last
        # split separates missing values from all other values.
        beside[n_known - 1, 1] = -1
        if not exact:
            place[n_known - 1] = arrays.n_bins[feature] - 1
        both = np.concatenate([np.arange(n_known), np.arange(n_known - 1)])
        side = np.repeat(np.array([1, 0], dtype=np.int8), [n_known, n_known - 1])
        negative, positive, count = (
            sums[both] + (sums[-1] - sums[n_known - 1]) * (side == 0)
            for sums in (negative, positive, np.arange(1, len(rows) + 1))
        )
        score = self.judged(exit_, legal[both], negative, positive, count)
        return Cuts(score, negative, positive, place[both], beside[both], side)

    def sets(self, exit_: Exit, feature: int) -> Cuts:
        """Return the splits between two sets of categories, in sorted order of the categories."""
        arrays, m = self.arrays, self.arrays.n_rows_at(exit_.serial)
        rows, n_bins = self.rows_of(exit_, feature), int(arrays.n_bins[feature])
        codes, smoothing = arrays.codes[feature, rows], arrays.limits.categorical_smoothing
        mass = np.zeros((2, n_bins + 1), dtype=np.int64)
        np.add.at(mass, ((rows >= self.data.n_negative).astype(np.intp), codes), arrays.fixed[rows])
        count, total = np.bincount(codes, minlength=n_bins + 1), float(sum(exit_.mass))
        present = np.flatnonzero(mass.sum(axis=0)[:n_bins])
        pull = pull_of(smoothing, mass[0, present], mass[1, present], exit_.mass, m)
        weight, positive = (
            part[present].astype(np.float64) for part in (mass.sum(axis=0), mass[1])
        )
        node = float(exit_.mass[1]) / total
        share = (positive + pull * node) / (weight + pull)
        order = present[np.argsort(share, kind="stable")]
        is_above = np.zeros((len(order), n_bins), dtype=bool)
        for k in range(len(order)):
            is_above[k, order[k + 1 :]] = True
        if pull > 0:
            is_above = np.concatenate([is_above, np.zeros_like(is_above)])
            is_above[np.arange(len(order)) + len(order), order] = True
        sides = (1, 0) if count[n_bins] else (-1,)
        side = np.repeat(np.array(sides, dtype=np.int8), len(is_above))
        above = np.concatenate([is_above] * len(sides))
        goes_above = np.column_stack([above, side == 1])
        low = [(~goes_above * part).sum(axis=1) for part in (*mass, count)]
        moved = np.zeros(len(side), dtype=np.int64)
        if pull > 0:
            departure = mass[1] - mass.sum(axis=0) * node
            departure[present] = weight * (share - node)
            left = ~goes_above @ departure
            moved = smoothed_away(left, departure.sum(), low[0], low[1], exit_.mass)
            # The split between all categories and missing values is not smoothed.
            moved[~above.any(axis=1)] = 0
        legal = np.ones(len(side), dtype=bool)
        score = self.judged(exit_, legal, low[0] - moved, low[1] + moved, low[2])
        heavier = np.where(side < 0, total - (low[0] + low[1]) > low[0] + low[1], side == 1)
        above[np.ix_(heavier, np.delete(np.arange(n_bins), present))] = True
        nothing = np.full((len(side), 2), -1, dtype=np.int32)
        return Cuts(score, low[0], low[1], nothing[:, 0], nothing, side, above)

    def rows_of(self, exit_: Exit, feature: int) -> NDArray[np.int32]:
        """Return the rows of an exit."""
        node = self.arrays.node[exit_.serial]
        span = slice(int(node["start"]), int(node["stop"]))
        if not self.data.exact:
            return self.arrays.rows[span]
        return self.arrays.order[feature, span] & ROW_MASK

    def in_order(self, exit_: Exit, features: slice) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return the rows of an exit sorted by each feature, and whether adjacent values differ."""
        arrays = self.arrays
        node = arrays.node[exit_.serial]
        start, stop = int(node["start"]), int(node["stop"])
        if self.data.exact:
            packed = arrays.order[features, start:stop]
            return packed & ROW_MASK, packed[:, 1:] >= 0
        rows = arrays.rows[start:stop]
        codes = arrays.codes[features, rows]
        order = np.argsort(codes, axis=1, kind="stable")
        return rows[order], np.diff(np.take_along_axis(codes, order, axis=1), axis=1) > 0


def pull_of(
    smoothing: float,
    negative: Array,
    positive: Array,
    totals: tuple[float, float],
    n_rows: int,
) -> float:
    """Return the smoothing weight of each category.

    `negative` and `positive` are the class weights of the categories with a positive weight.
    `totals` are the class weights of the node.
    """
    n, p = float(totals[0]), float(totals[1])
    chance = smoothing * max(len(positive) - 2, 0)
    if chance <= 0 or n <= 0 or p <= 0:
        return 0.0
    mass = np.asarray(negative + positive, dtype=np.float64)
    apart = positive - mass * (p / (n + p))
    squares = float((apart * (apart / mass)).sum()) * (n_rows / n * ((n + p) / p))
    known = float(mass.sum())
    if squares - chance <= chance / (MOST_PULL * len(mass)):
        return MOST_PULL * known
    return known / len(mass) * (chance / (squares - chance))


def smoothed_away(
    left: FloatArray, all_: float, low: Array, high: Array, totals: tuple[float, float]
) -> NDArray[np.int64]:
    """Return the weight that smoothing adds to class +1 below each split.

    `left` and `all_` are sums of the smoothed differences between the shares of the categories and
    the share of the node, below each split and over all categories. `low` and `high` are the
    weights of class -1 and +1 below each split. `totals` are the class weights of the node.
    """
    n, p = float(totals[0]), float(totals[1])
    below = np.asarray(low + high, dtype=np.float64)
    apart = np.asarray(high - below * (p / (n + p)))
    kept = np.ones(len(apart))
    np.divide(left - all_ * (below / (n + p)), apart, out=kept, where=apart != 0)
    moved = -((1 - np.clip(kept, 0, 1)) * apart).astype(np.int64)
    max_added, max_removed = np.minimum(low, p - high), np.minimum(high, n - low)
    return np.asarray(np.clip(moved, -max_removed, max_added)).astype(np.int64)
