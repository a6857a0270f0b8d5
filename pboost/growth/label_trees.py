"""AdaBoost.MH on graphs: trees, and chains of trees, whose exits vote for each of J labels.

A row has a weight for each label, which the vote of an exit for that label multiplies: it falls
where the label is the row's own and the vote is positive, or is another and the vote is negative.
The criterion adds up the labels, and so does the certificate [1]_.

.. [1] R. E. Schapire and Y. Singer, "Improved boosting algorithms using confidence-rated
   predictions", Machine Learning 37 (1999), sections 7 and 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._core import labels as kernels
from pboost._core.votes import NO_VOTE, VoteRule, half_log_odds
from pboost.data.special_columns import is_heavier
from pboost.data.training import TrainingData
from pboost.growth.best_first import BestFirst
from pboost.growth.step import (
    PERFECT,
    STOPPED,
    Callback,
    Edges,
    Growth,
    TreeLimits,
    asked_at,
    fixed_scale,
)
from pboost.models.graph import DecisionGraph
from pboost.values import FloatArray, IntArray
from pboost.weak.label_search import LabelSearch, Node, Sums
from pboost.weak.stump_search import StumpCut

#: Bytes of sums that are kept for exits to be split; of others they are made anew.
MOST_KEPT = 1 << 28


class ExactLabels:
    """What `Growth` asks of answers: they are exact."""

    def __init__(self, search: LabelSearch) -> None:
        self.search = search

    def model_columns(self, tables: Any) -> dict[str, Any]:
        """Return no fields of a model."""
        return {}


@dataclass(slots=True, eq=False)
class LabelSplit:
    """A stump found for an exit, and the votes of the exits it makes, (2, J)."""

    cut: StumpCut
    above: NDArray[np.bool_]
    votes: FloatArray
    after: float
    parts: list[LabelExit]


@dataclass(slots=True, eq=False)
class Pair:
    """The two exits of a node, and the sums of the node until the sums of one of them are made."""

    labels: NDArray[np.intp]
    sums: Sums
    exits: list[LabelExit]


@dataclass(slots=True, eq=False)
class LabelExit:
    """An open exit of a tree.

    Attributes
    ----------
    serial : int
        Number, in the order of opening.
    edges : tuple of (node, exit)
        Where it is; of the entrance of a tree all the exits that join there.
    depth : int
        Number of nodes on the way from the root of the tree.
    rows : ndarray of int32
        The rows that arrive.
    whole, own : ndarray of int64, shape (J,)
        Their weights at the root of the tree, and those of the rows of each label.
    for_it, against : ndarray of float64, shape (J,)
        By what the weights of the rows of a label, and of the others, are multiplied since.
    mass : float
        Sum of their weights now, in fixed point.
    bound : float
        The same as a share of all starting weight.
    reach, error : float
        Share of the starting weight that arrives, and that of all but its largest class.
    """

    serial: int
    edges: Edges
    depth: int
    rows: IntArray
    whole: NDArray[np.int64]
    own: NDArray[np.int64]
    for_it: FloatArray
    against: FloatArray
    mass: float
    bound: float
    reach: float
    error: float
    pair: Pair | None = None
    sums: Sums | None = None
    labels: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    split: LabelSplit | None = None

    @property
    def mixed(self) -> NDArray[np.intp]:
        """The labels that some of the rows have, and some have not."""
        return np.flatnonzero((self.own > 0) & (self.own < self.whole))


class LabelTrees(Growth, BestFirst):
    """A chain of trees: the open exits of each join at the root of the next.

    Parameters
    ----------
    data : TrainingData
        Rows and classes.
    search : LabelSearch
        Finds stumps.
    rule : VoteRule
        How masses become votes.
    rounds : int
        Number of trees.
    limits : TreeLimits
        When growth of a tree ends.
    """

    def __init__(
        self, data: TrainingData, search: LabelSearch, rule: VoteRule, rounds: int,
        limits: TreeLimits,
    ) -> None:  # fmt: skip
        Growth.__init__(self, data, ExactLabels(search), rule)  # type: ignore[arg-type]
        self._labels, self._rounds, self._size, self.limits = search, rounds, limits.nodes, limits
        assert data.problem.labels is not None
        self.n_labels = len(data.problem.labels)
        n, n_labels = data.n_rows, self.n_labels
        try:
            self._weight = np.repeat(data.weight[:, None], n_labels, axis=1)
            self._fixed = np.empty((n, n_labels), dtype=np.int64)
        except MemoryError:
            raise MemoryError(
                f"y: the weights of {n} rows for {n_labels} labels take {16 * n * n_labels} bytes, "
                "which there are not; fit_one_vs_rest has one label at a time"
            ) from None
        self._start, self._whole = data.weight.copy(), math.fsum(data.weight)
        self._scale, self._kept, self._serial = 1.0, 0, 0
        self.no_vote = np.zeros(n_labels)
        self.open: dict[int, LabelExit] = {}
        self._replays = False
        self.heap = []
        ones = np.ones((1, n_labels))
        self._reweight(np.zeros(n, dtype=np.int32), ones, ones)
        self._enter(())

    def grow(self, callback: Callback | None) -> str:
        """Grow trees until there are enough; returns why it stopped."""
        for k in range(self._rounds):
            if k:
                if not any(len(exit_.mixed) for exit_ in self.open.values()):
                    return PERFECT
                self._join()
            before = self.n_nodes
            self.limits = replace(self.limits, nodes=before + self._size)
            reason = BestFirst.grow(self, callback)
            if reason == STOPPED or self.certificate[-1] <= self.limits.target:
                return reason
            if self.n_nodes == before:
                changes = " that changes the weights" if k else ""
                return f"no split is left{changes}" if self._rounds > 1 else reason
        return reason if self._rounds == 1 else "all rounds are done"

    def _reweight(self, exit_: IntArray, for_it: FloatArray, against: FloatArray) -> None:
        """Multiply the weights of rows by the factors of their exits."""
        self._scale = fixed_scale(self.n_labels * self._whole * self.certificate[-1])
        work = partial(
            kernels.reweight, self.data.label, exit_, for_it, against, self._scale, self._weight,
            self._fixed,
        )  # fmt: skip
        self.search.workers.run(work, self.data.n_rows, cells=2 * self.n_labels)

    def _enter(self, edges: Edges) -> None:
        """Open the entrance of a tree, where exits join."""
        ones = np.ones(self.n_labels)
        rows = np.arange(self.data.n_rows, dtype=np.int32)
        root = self._exit(edges, 0, rows, ones, ones)
        self.open = {root.serial: root}
        self.heap, self._kept = [], 0
        self.push(root)

    def _join(self) -> None:
        """Let all open exits join."""
        exits = [*self.open.values()]
        at = np.empty(self.data.n_rows, dtype=np.int32)
        for k, exit_ in enumerate(exits):
            at[exit_.rows] = k
        self._reweight(
            at, np.array([exit_.for_it for exit_ in exits]),
            np.array([exit_.against for exit_ in exits]),
        )  # fmt: skip
        self._enter(tuple(sorted(edge for exit_ in exits for edge in exit_.edges)))

    def _exit(
        self, edges: Edges, depth: int, rows: IntArray, for_it: FloatArray, against: FloatArray
    ) -> LabelExit:
        """Return an exit; sums its masses."""
        whole, own = np.empty((2, self.n_labels), dtype=np.int64)
        kernels.total(self._fixed, self.data.label, rows, whole, own)
        mass = math.fsum([*(for_it * own).tolist(), *(against * (whole - own)).tolist()])
        start = self._start[rows]
        by_class = np.bincount(self.data.label[rows], start, self.n_labels)
        reach = float(start.sum()) / self._whole
        self._serial += 1
        return LabelExit(
            self._serial, edges, depth, rows, whole, own, for_it, against, mass,
            mass / self._scale / (self.n_labels * self._whole), reach,
            reach - float(by_class.max(initial=0.0)) / self._whole,
        )  # fmt: skip

    def push(self, exit_: LabelExit) -> bool:
        """Put an exit in its place, if its depth allows a split."""
        return exit_.depth < self.limits.depth and BestFirst.push(self, exit_)

    def find(self, exit_: LabelExit) -> LabelSplit | None:
        """Return the best split of an exit, None where there is none."""
        mixed = exit_.mixed
        if not len(mixed):
            return None
        self._fill(exit_)
        assert exit_.sums is not None
        sums, labels = exit_.sums, exit_.labels
        used = labels
        if not self._labels.needs_all and 2 * len(mixed) <= len(labels):
            k, place = len(labels), np.searchsorted(labels, mixed)
            used, sums = mixed, sums[:, :, np.concatenate([place, k + place, [2 * k]])].copy()
        whole = np.concatenate([exit_.whole[used], exit_.own[used], [len(exit_.rows)]])
        node = Node(sums, whole, exit_.for_it[used], exit_.against[used], exit_.mass)
        cut = self._labels.best_at(node)
        if cut is None:
            self._forget(exit_)
            return None
        split = self._split_at(exit_, cut, None)
        is_stump = self._size == 1 and self._rounds > 1
        return None if is_stump and np.abs(split.votes).max() < NO_VOTE else split

    def _split_at(self, exit_: LabelExit, cut: StumpCut, votes: FloatArray | None) -> LabelSplit:
        """Return what a stump makes of an exit, with the votes that its masses give, or others."""
        above = self._labels.is_above(cut, exit_.rows)
        delta = self.rule.smoothing * exit_.mass / self.n_labels
        parts, made = [], np.empty((2, self.n_labels))
        for side, is_here in enumerate((~above, above)):
            part = self._exit((), exit_.depth + 1, exit_.rows[is_here], exit_.for_it, exit_.against)
            if votes is not None:
                made[side] = votes[side]
            else:
                own, other = exit_.for_it * part.own, exit_.against * (part.whole - part.own)
                odds = [half_log_odds(p, n, delta) for p, n in zip(own, other, strict=True)]
                made[side] = self.rule.learning_rate * np.array(odds)
            down, up = np.exp(-made[side]), np.exp(made[side])
            part.for_it, part.against = exit_.for_it * down, exit_.against * up
            weights = part.for_it * part.own, part.against * (part.whole - part.own)
            part.mass = math.fsum(np.concatenate(weights).tolist())
            part.bound = part.mass / self._scale / (self.n_labels * self._whole)
            parts.append(part)
        return LabelSplit(cut, above, made, parts[0].bound + parts[1].bound, parts)

    def _fill(self, exit_: LabelExit) -> None:
        """Make the sums of an exit; of a node's two exits those of one by difference."""
        if exit_.sums is not None:
            return
        pair = exit_.pair
        if pair is None:
            every = self._labels.needs_all
            exit_.labels = np.arange(self.n_labels) if every else exit_.mixed
            exit_.sums = self._labels.sums(exit_.rows, self._fixed, exit_.labels)
            self._kept += exit_.sums.nbytes
            return
        small, large = sorted(pair.exits, key=lambda one: len(one.rows))
        small.sums = self._labels.sums(small.rows, self._fixed, pair.labels)
        large.sums = np.subtract(pair.sums, small.sums, out=pair.sums)
        self._kept += small.sums.nbytes
        for one in (small, large):
            one.labels, one.pair = pair.labels, None

    def split(self, exit_: LabelExit) -> None:
        """Make a node of an exit for which a split was found, and open the node's exits."""
        assert exit_.split is not None
        cut, parts, votes = exit_.split.cut, exit_.split.parts, exit_.split.votes
        del self.open[exit_.serial]
        outside = [other.bound for other in self.open.values()]
        certificate = math.fsum([*outside, *(part.bound for part in parts)])
        heavier = int(is_heavier(parts[1].reach, parts[0].reach))
        node = self.add_node(
            exit_.edges, cut, [tuple(vote) for vote in votes.tolist()],  # type: ignore[misc]
            None, exit_.reach, certificate, heavier,
        )  # fmt: skip
        for side, part in enumerate(parts):
            part.edges = ((node, side),)
            self.open[part.serial] = part
        if exit_.sums is not None and self._kept < MOST_KEPT:
            parts[0].pair = parts[1].pair = Pair(exit_.labels, exit_.sums, parts)
        else:
            self._forget(exit_)
        exit_.sums = exit_.split = None
        if not self._replays:
            for part in parts:
                self.push(part)

    def _forget(self, exit_: LabelExit) -> None:
        """Keep the sums of an exit no longer."""
        if exit_.sums is not None:
            self._kept -= exit_.sums.nbytes
            exit_.sums = None

    def replay(self, model: DecisionGraph, *, joins: bool) -> None:
        """Open the nodes of a graph as they are; then its open exits join, or stay."""
        leads, self._replays = model.next, True
        for node in range(model.n_nodes):
            edges = {(int(k), int(side)) for k, side in np.argwhere(leads == node)}
            before = {edge for exit_ in self.open.values() for edge in exit_.edges}
            if node and edges == before and len(self.open) > 1:
                self._join()
            here = [exit_ for exit_ in self.open.values() if set(exit_.edges) == edges]
            if not here:
                raise NotImplementedError(
                    "model: graphs with several votes can be continued where they are trees, or "
                    f"chains of trees of which all exits join: node {node} is entered otherwise"
                )
            cut = self._labels.place(**asked_at(model, node))
            here[0].split = self._split_at(here[0], cut, model.vote[node])
            self.split(here[0])
        self._replays, self.heap = False, []
        if joins:
            self._join()
        else:
            for exit_ in self.open.values():
                self.push(exit_)

    def constant_vote(self) -> tuple[Any, float]:
        """Return the votes of a model without nodes, and its certificate."""
        (root,) = self.open.values()
        delta, other = self.rule.smoothing * root.mass / self.n_labels, root.whole - root.own
        odds = [half_log_odds(p, n, delta) for p, n in zip(root.own, other, strict=True)]
        votes = self.rule.learning_rate * np.array(odds)
        mass = math.fsum([*(root.own * np.exp(-votes)).tolist(), *(other * np.exp(votes)).tolist()])
        return votes, mass / root.mass
