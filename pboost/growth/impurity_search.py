"""Impurities that are functions of the user's: their checks, and trees that grow by them.

The compiled grower (grow.pyx) splits exits where it is told to. The function is evaluated on
all cuts of an exit at once, and the choice is the grower's: of cuts equal but for rounding that of
the lowest feature, then of the lowest threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import grow
from pboost._core.votes import TIE, VoteRule, half_log_odds
from pboost.data.columns import ROW_MASK
from pboost.data.training import TrainingData
from pboost.growth.best_first import ALL_OPENED, NO_EXIT, BestFirst
from pboost.growth.exact_tree import BoostedArrays
from pboost.growth.step import Callback, StepRecord, TreeLimits, cost_after
from pboost.models.graph import DecisionGraph
from pboost.models.stored import TrainingRecord
from pboost.values import FloatArray, first_false
from pboost.weak.stump_search import Stump

#: f(z) of shares z, elementwise.
Impurity: TypeAlias = Callable[[FloatArray], Any]
#: Intervals of the grid on which a function is checked; shares are dyadic, so 1 - z is exact.
GRID = 1024
#: Departures from the conditions up to this are rounding.
ROUNDING = 1e-9
#: Cuts evaluated at a time, over several features.
CUTS_AT_A_TIME = 1 << 15


def values_of(impurity: Impurity, z: FloatArray) -> FloatArray:
    """Return f(z); TypeError or ValueError if that is not one finite number for each share."""
    try:
        with np.errstate(divide="ignore", invalid="ignore"):  # what it gives is checked
            found = np.asarray(impurity(z), dtype=np.float64)
    except Exception as error:  # a user's function can raise anything
        raise TypeError(
            f"impurity: expected a function that takes an array of shares, but it raised {error!r}"
        ) from error
    if found.shape != z.shape:
        raise TypeError(
            f"impurity: expected a function that returns an array like its argument, of shape "
            f"{z.shape}, got shape {found.shape}"
        )
    if (at := first_false(np.isfinite(found))) >= 0:
        raise ValueError(f"impurity: expected finite values, got f({z[at]:.6g}) = {found[at]}")
    return found


def check_permissible(impurity: Any) -> Impurity:
    """Return a function that is concave and symmetric with f(0) = f(1) = 0 and f(1/2) = 1.

    Checked at the multiples of 1/1024. The error says which condition fails, and where.
    """
    z = np.linspace(0, 1, GRID + 1)
    f = values_of(impurity, z)
    for at, expected in ((0, 0.0), (GRID, 0.0), (GRID // 2, 1.0)):
        if abs(f[at] - expected) > ROUNDING:
            raise ValueError(
                f"impurity: expected f({z[at]:g}) = {expected:g}, got {f[at]:.6g}: not permissible"
            )
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
            f"mean {f[at] + below[at - 1]:.6g} of its neighbours: not concave"
        )
    checked: Impurity = impurity
    return checked


@dataclass(frozen=True, slots=True)
class ImpurityStump(Stump):
    """Stumps whose criterion is a function of the user's."""

    impurity: Impurity = field(kw_only=True)

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values, which the function is not."""
        plain = Stump(min_weight=self.min_weight, min_leaf=self.min_leaf).settings()
        return {name: value for name, value in plain.items() if name != "criterion"}


def by_impurity(weak: Stump, impurity: Any) -> ImpurityStump:
    """Return stumps that are chosen by an impurity, checked."""
    return ImpurityStump(
        min_weight=weak.min_weight, min_leaf=weak.min_leaf, impurity=check_permissible(impurity)
    )


@dataclass(slots=True, eq=False)
class Exit:
    """An open exit: its number, class masses in fixed point, their unit, and votes gathered.

    The unit is a share of the root's mass.
    """

    serial: int
    mass: tuple[int, int]
    unit: float
    votes: float
    split: Split | None = None

    @property
    def bound(self) -> float:
        """Part of the certificate that the exit carries."""
        return self.boosted(self.mass, self.votes)

    @property
    def error(self) -> float:
        """Reach mass of the class that is not predicted."""
        return self.mass[int(self.votes <= 0)] * self.unit

    def boosted(self, mass: tuple[int, int], votes: float) -> float:
        """Return the boosted weight of a mass of its rows that has gathered these votes."""
        return (mass[0] * math.exp(votes) + mass[1] * math.exp(-votes)) * self.unit


@dataclass(frozen=True, slots=True)
class Split:
    """The cut of an exit: its place as the grower counts, the rows beside it, and what it does."""

    feature: int
    place: int
    beside: NDArray[np.int32]
    votes: list[float]
    after: float


class ImpurityTree(BestFirst):
    """A tree of exact answers that grows by a permissible function."""

    def __init__(
        self, data: TrainingData, weak: ImpurityStump, rule: VoteRule, limits: TreeLimits
    ) -> None:
        self.data, self.weak, self.rule, self.limits = data, weak, rule, limits
        self.arrays = BoostedArrays(data, weak, rule, limits)
        self.heap = []
        self.certificate, self.reach = [1.0], list[float]()
        #: Sum of the bounds of all open exits, and what rounding has left out of it.
        self.total = self.exit_at(0).bound, 0.0

    def grow(self, callback: Callback | None) -> str:
        """Open exits until done; returns why growing stopped."""
        self.open(0)
        reason = super().grow(callback)
        return NO_EXIT if reason == ALL_OPENED and not self.heap else reason

    def model(self, settings: Mapping[str, Any], stop_reason: str) -> DecisionGraph:
        """Return the tree grown so far."""
        model = self.arrays.model(settings, stop_reason)
        if not model.n_nodes:
            return model
        cost = cost_after(np.array(self.reach))
        return replace(model, record=TrainingRecord(np.array(self.certificate), cost, stop_reason))

    def newest(self, bound: float) -> StepRecord:
        """Return the record of the node made just now of an exit of this bound."""
        return replace(self.arrays.newest(), certificate=self.certificate[-1])

    def exit_at(self, serial: int) -> Exit:
        """Return an exit as the grower keeps it."""
        arrays, mass = self.arrays, self.arrays.mass[serial].tolist()
        unit = math.ldexp(1.0, -int(arrays.node["shift"][serial])) / arrays.whole
        return Exit(serial, mass, unit, float(arrays.vote["gathered"][serial]))

    def open(self, serial: int) -> Exit:
        """Put a new exit in order, if it can be split."""
        exit_, node = self.exit_at(serial), self.arrays.node[serial]
        least, rows = 2 * self.weak.min_leaf, self.arrays.n_rows_at(serial)
        if not node["pure"] and node["depth"] < self.limits.depth and rows >= least:
            self.push(exit_)
        return exit_

    def split(self, exit_: Exit) -> None:
        """Make a node of an exit for which a split was found, and open the node's exits."""
        arrays, found = self.arrays, exit_.split
        assert found is not None
        arrays.counter["at"] = exit_.serial
        arrays.node["low"][exit_.serial], arrays.node["high"][exit_.serial] = found.beside
        grow.split_given(arrays, exit_.serial, found.feature, found.place, *found.votes)
        child = int(arrays.node["child"][exit_.serial])
        below, above = self.open(child), self.open(child + 1)
        changes = [*self.total, -exit_.bound, below.bound, above.bound]
        certificate = math.fsum(changes)
        self.total = certificate, math.fsum([*changes, -certificate])
        self.certificate.append(max(certificate, 0.0))
        self.reach.append(sum(exit_.mass) * exit_.unit)

    def find(self, exit_: Exit) -> Split | None:
        """Return the best legal cut of an exit, None where there is none."""
        d, m = self.data.columns.n_features, self.arrays.n_rows_at(exit_.serial)
        best = np.full(d, np.inf)
        step = max(CUTS_AT_A_TIME // m, 1)
        for first in range(0, d, step):
            features = slice(first, first + step)
            best[features] = self.scores(exit_, features)[0].min(axis=1, initial=np.inf)
        least = best.min()
        if least == np.inf:
            return None
        limit = least + TIE * float(sum(exit_.mass))
        feature = int(np.argmax(best <= limit))
        scores, negative, positive, rows = (
            found[0] for found in self.scores(exit_, slice(feature, feature + 1))
        )
        at = int(np.argmax(scores <= limit))
        low = int(negative[at]), int(positive[at])
        masses = low, (exit_.mass[0] - low[0], exit_.mass[1] - low[1])
        beside = rows[at : at + 2]
        place = at + 1 if self.data.exact else int(self.arrays.codes[feature, beside[0]])
        up = math.exp(exit_.votes)
        delta = self.rule.smoothing * (exit_.mass[0] * up + exit_.mass[1] / up)
        votes = [self.rule.learning_rate * half_log_odds(p / up, n * up, delta) for n, p in masses]
        after = sum(
            exit_.boosted(mass, exit_.votes + vote)
            for mass, vote in zip(masses, votes, strict=True)
        )
        return Split(feature, place, beside, votes, after)

    def scores(self, exit_: Exit, features: slice) -> tuple[NDArray[Any], ...]:
        """Return what is minimised for the cut after each row, class masses below, and the rows.

        Each is an array with a line for each feature; cuts that are not legal score infinity.
        """
        rows, legal = self.in_order(exit_, features)
        weight = self.arrays.fixed[rows]
        positive = np.cumsum(np.where(rows >= self.data.n_negative, weight, 0), axis=1)[:, :-1]
        negative = np.cumsum(weight, axis=1)[:, :-1] - positive
        total, m = sum(exit_.mass), rows.shape[1]
        left, least = positive + negative, math.ceil(self.weak.min_weight * float(total))
        right, count = total - left, np.arange(1, m)
        legal &= (left > 0) & (right > 0) & (left >= least) & (right >= least)
        legal &= (count >= self.weak.min_leaf) & (m - count >= self.weak.min_leaf)
        scores = np.full(left.shape, np.inf)
        below = positive[legal]
        scores[legal] = sum(
            mass * values_of(self.weak.impurity, part / mass)
            for mass, part in ((left[legal], below), (right[legal], exit_.mass[1] - below))
        )
        return scores, negative, positive, rows

    def in_order(self, exit_: Exit, features: slice) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return an exit's rows in the order of each feature, and whether neighbours differ."""
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
