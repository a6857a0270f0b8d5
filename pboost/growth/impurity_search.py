"""Growth of a tree of exact answers for any permissible function, in NumPy.

The compiled grower (tree_growth.py) knows four criteria. This one evaluates a function of the
user's on all cuts of an exit at once. It makes the same choices in the same order: candidates, ties
(1e-12 of the mass; lowest feature, then lowest threshold), keys, weights in fixed point that are
made anew where little is left.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core.keys import decrease, rounded
from pboost._core.votes import half_log_odds
from pboost.data.columns import ROW_MASK, SortedColumns, midpoint
from pboost.data.training import TrainingData
from pboost.growth.permissible import Impurity, values_of
from pboost.growth.step import Callback, StepRecord, TreeLimits, constant_vote, cost_after
from pboost.models.graph import OUT, DecisionGraph, TrainingRecord
from pboost.threads import check_stop
from pboost.values import FloatArray
from pboost.weak.votes import TIE, VoteRule

#: Cuts evaluated at a time, over several features.
CUTS_AT_A_TIME = 1 << 18
#: Below this fixed-point mass an exit's weights are made anew, with this many bits.
LEAST_MASS = 1 << 40
FULL_MASS_BITS = 60


@dataclass(slots=True, eq=False)
class Exit:
    """An open exit: the rows that arrive, sorted by each feature, and the votes on the way.

    Attributes
    ----------
    parent : tuple of int
        Node and side, (-1, 0) at the entrance.
    depth : int
        Number of nodes above.
    order : ndarray of int32, shape (d, m)
        Its rows in increasing order of each feature.
    fixed : ndarray of int64, shape (n,)
        Weights in fixed point; only those of its rows are its own.
    unit : float
        One unit of them as a share of the root's mass.
    mass : tuple of int
        Fixed-point mass of class -1 and of class +1.
    votes : float
        Votes gathered.
    """

    parent: tuple[int, int]
    depth: int
    order: NDArray[np.int32]
    fixed: NDArray[np.int64]
    unit: float
    mass: tuple[int, int]
    votes: float

    @property
    def bound(self) -> float:
        """Sum of the boosted weights as a share of the root's: its part of the certificate."""
        return self.after(self.mass, self.votes)

    def after(self, mass: tuple[int, int], votes: float) -> float:
        """Return the boosted weight of a mass of its rows that has gathered these votes."""
        return (mass[0] * math.exp(votes) + mass[1] * math.exp(-votes)) * self.unit


@dataclass(frozen=True, slots=True)
class Split:
    """The cut of an exit: feature, number of rows below, and what either side gets."""

    feature: int
    position: int
    masses: tuple[tuple[int, int], tuple[int, int]]
    votes: tuple[float, float]


class TopDownTree:
    """A tree that grows by a permissible function.

    Attributes
    ----------
    n_nodes : int
        Number of nodes so far.
    """

    def __init__(
        self,
        data: TrainingData,
        impurity: Impurity,
        min_weight: float,
        min_count: int,
        rule: VoteRule,
        limits: TreeLimits,
    ) -> None:
        self.data, self.impurity, self.rule, self.limits = data, impurity, rule, limits
        self.min_weight, self.min_count = min_weight, min_count
        # Equal values have equal ranks, and the order of ranks is that of the values.
        self.rank = _ranks(data)
        self.n_exits = 0
        #: The exit that led to the node opened last.
        self.parent = (OUT, 0)
        self.open: list[tuple[float, int, Exit, Split | None]] = []
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.next: list[list[int]] = []
        self.vote: list[tuple[float, float]] = []
        self.reach: list[float] = []
        self.certificate = [1.0]
        #: Sum of the bounds of all open exits, and what rounding has left out of it.
        self.total = (0.0, 0.0)

    @property
    def n_nodes(self) -> int:
        """Number of nodes opened so far."""
        return len(self.feature)

    def grow(self, callback: Callback | None) -> str:
        """Open exits until done; returns why growing stopped."""
        data = self.data
        order = data.order & ROW_MASK
        if not order.size:
            order = np.empty(self.rank.shape, dtype=np.int32)
            for j, rank in enumerate(self.rank):
                order[j] = np.argsort(rank, kind="stable")
        mass = data.class_masses()
        root = Exit((OUT, 0), 0, order, data.fixed, 1.0 / sum(mass), mass, 0.0)
        self.total = root.bound, 0.0
        self._open(root)
        while self.open:
            check_stop()
            if self.n_nodes >= self.limits.nodes:
                return "all nodes are opened"
            _, _, exit_, split = heapq.heappop(self.open)
            split = self._best(exit_) if split is None else split
            if split is None:
                continue
            before = exit_.bound
            self._split(exit_, split, before)
            if callback is not None and callback(self.n_nodes, self._newest(before)):
                return "stopped by the callback"
            if self.certificate[-1] <= self.limits.target:
                return "the target certificate is reached"
        return "no exit can be split"

    def model(self, settings: Mapping[str, Any], stop_reason: str) -> DecisionGraph:
        """Return the tree grown so far."""
        n, bias = self.n_nodes, 0.0
        if not n:
            bias, self.certificate[0] = constant_vote(self.data, self.rule)
        return DecisionGraph(
            threshold=np.array(self.threshold, dtype=np.float64),
            next=np.array(self.next, dtype=np.int32).reshape(n, 2),
            vote=np.array(self.vote, dtype=np.float64).reshape(n, 2),
            labels=self.data.labels,
            n_features=self.data.n_features,
            feature_names=self.data.names,
            bias=bias,
            settings=settings,
            record=TrainingRecord(
                np.array(self.certificate), cost_after(np.array(self.reach)), stop_reason
            ),
            **self.data.model_columns(np.array(self.feature, dtype=np.int32)),
        )

    def _newest(self, before: float) -> StepRecord:
        node = self.n_nodes - 1
        return StepRecord(
            node, self.feature[node], self.threshold[node], self.vote[node], before,
            self.certificate[-1], () if self.parent == (OUT, 0) else (self.parent,),
        )  # fmt: skip

    def _open(self, exit_: Exit) -> None:
        """Put an exit in its place in the order of splitting, if it can be split."""
        self.n_exits += 1
        rows = exit_.order.shape[1]
        if not min(exit_.mass) or exit_.depth >= self.limits.depth or rows < 2 * self.min_count:
            return
        if sum(exit_.mass) < LEAST_MASS:
            self._refine(exit_)
        split, growth = None, self.limits.growth
        if growth == "breadth-first":
            key = 0.0
        elif growth == "largest-bound":
            key = rounded(exit_.bound)
        elif growth == "largest-error":
            key = rounded(exit_.mass[int(exit_.votes <= 0)] * exit_.unit)
        else:
            split = self._best(exit_)
            if split is None:
                return
            key = self._decrease(exit_, split)
        heapq.heappush(self.open, (-key, self.n_exits, exit_, split))

    def _refine(self, exit_: Exit) -> None:
        """Make the weights anew in fixed point, in a unit that fits the rows left."""
        rows = exit_.order[0]
        total = float(self.data.weight[rows].sum()) * self.data.scale
        shift = FULL_MASS_BITS - math.frexp(total)[1]
        exit_.fixed = np.zeros_like(self.data.fixed)
        exit_.fixed[rows] = np.ldexp(self.data.weight[rows] * self.data.scale, shift) + 0.5
        exit_.unit = math.ldexp(1.0, -shift) / sum(self.data.class_masses())
        positive = rows >= self.data.n_negative
        own = exit_.fixed[rows]
        exit_.mass = (int(own[~positive].sum()), int(own[positive].sum()))

    def _best(self, exit_: Exit) -> Split | None:
        """Return the best legal cut; of equal ones that of the lowest feature, then threshold."""
        d, m = exit_.order.shape
        best = np.full(d, np.inf)
        step = max(CUTS_AT_A_TIME // m, 1)
        for first in range(0, d, step):
            features = slice(first, first + step)
            best[features] = self._scores(exit_, features)[0].min(axis=1, initial=np.inf)
        least = best.min()
        if least == np.inf:
            return None
        limit = least + TIE * float(sum(exit_.mass))
        feature = int(np.argmax(best <= limit))
        scores, below = self._scores(exit_, slice(feature, feature + 1))
        at = int(np.argmax(scores[0] <= limit))
        low = (int(below[0][0, at]), int(below[1][0, at]))
        high = (exit_.mass[0] - low[0], exit_.mass[1] - low[1])
        votes = (self._vote(exit_, low), self._vote(exit_, high))
        return Split(feature, at + 1, (low, high), votes)

    def _scores(
        self, exit_: Exit, features: slice
    ) -> tuple[FloatArray, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Return what is minimised for the cut after each row, and the class masses below.

        Cuts that are not legal score infinity.
        """
        order = exit_.order[features]
        m = order.shape[1]
        rank = np.take_along_axis(self.rank[features], order, axis=1)
        weight = exit_.fixed[order]
        positive = np.cumsum(np.where(order >= self.data.n_negative, weight, 0), axis=1)[:, :-1]
        negative = np.cumsum(weight, axis=1)[:, :-1] - positive
        total = sum(exit_.mass)
        left, least = positive + negative, math.ceil(self.min_weight * float(total))
        right, count = total - left, np.arange(1, m)
        legal = (rank[:, 1:] != rank[:, :-1]) & (left > 0) & (right > 0)
        legal &= (left >= least) & (right >= least)
        legal &= (count >= self.min_count) & (m - count >= self.min_count)
        scores = np.full(left.shape, np.inf)
        low, high = left[legal].astype(np.float64), right[legal].astype(np.float64)
        scores[legal] = low * values_of(self.impurity, positive[legal] / low) + high * values_of(
            self.impurity, (exit_.mass[1] - positive[legal]) / high
        )
        return scores, (negative, positive)

    def _vote(self, exit_: Exit, mass: tuple[int, int]) -> float:
        """Return the vote of a side with these class masses, on the boosted weights."""
        up = math.exp(exit_.votes)
        delta = self.rule.smoothing * (exit_.mass[0] * up + exit_.mass[1] / up)
        return self.rule.learning_rate * half_log_odds(mass[1] / up, mass[0] * up, delta)

    def _decrease(self, exit_: Exit, split: Split) -> float:
        """Return by how much a split lowers the certificate, as a key."""
        before = exit_.bound
        after = sum(
            exit_.after(mass, exit_.votes + vote)
            for mass, vote in zip(split.masses, split.votes, strict=True)
        )
        return decrease(before, before - after)

    def _split(self, exit_: Exit, split: Split, before: float) -> None:
        """Make a node of an exit, and exits of its two sides."""
        node, (parent, came_by) = self.n_nodes, exit_.parent
        if parent != OUT:
            self.next[parent][came_by] = node
        column = exit_.order[split.feature]
        self.feature.append(split.feature)
        self.threshold.append(self._threshold(split.feature, column[split.position - 1 :][:2]))
        self.next.append([OUT, OUT])
        self.vote.append(split.votes)
        self.parent = exit_.parent
        self.reach.append(sum(exit_.mass) * exit_.unit)
        is_above = np.zeros(self.data.n_rows, dtype=bool)
        is_above[column[split.position :]] = True
        above = is_above[exit_.order]
        d, children = len(above), []
        for side, rows in enumerate((~above, above)):
            children.append(
                Exit(
                    (node, side), exit_.depth + 1, exit_.order[rows].reshape(d, -1), exit_.fixed,
                    exit_.unit, split.masses[side], exit_.votes + split.votes[side],
                )
            )  # fmt: skip
        for child in children:
            self._open(child)
        changes = [*self.total, -before, *(child.bound for child in children)]
        certificate = math.fsum(changes)
        self.total = certificate, math.fsum([*changes, -certificate])
        self.certificate.append(max(certificate, 0.0))

    def _threshold(self, feature: int, rows: NDArray[np.int32]) -> float:
        """Return the threshold between two rows that are neighbours in the order of a feature."""
        columns = self.data.columns
        if self.data.exact and isinstance(columns, SortedColumns):
            below, above = columns.values(feature, rows)
            return float(midpoint(below, above))
        low, high = self.rank[feature, rows].tolist()
        if not isinstance(columns, SortedColumns):
            return float(np.asarray(columns.threshold(feature, low, None)))
        return float(np.asarray(columns.threshold(feature, low, columns.bin_start[feature, high])))


def _ranks(data: TrainingData) -> NDArray[Any]:
    """Return the rank of each row's value in each column, (d, n): the bin, if it is binned."""
    columns = data.columns
    if not (data.exact and isinstance(columns, SortedColumns)):
        return columns.codes
    rank = np.empty(columns.packed_order.shape, dtype=np.int32)
    for j in range(len(rank)):
        rank[j, columns.order(j)] = np.cumsum(~columns.tied(j), dtype=np.int32)
    return rank
