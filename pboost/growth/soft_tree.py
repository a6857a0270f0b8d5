"""Growth of graphs with uncertain observations, in which each row can reach many exits.

A port is a set of merged exits. Growth finds a split for a port, or takes the split of an existing
model, and adds a node. In a soft tree every exit is a separate port, and every node is trained on
all rows, with the weights at this exit.

Since the outcome of a split is uncertain, a row takes each exit with some probability and has
weight at both exits. Only one path leads to each exit of a tree. The reach of a row is therefore
its boosted weight times a factor that depends on its class, and need not be stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from pboost._core.voting import SplitStep, VoteRule, step_of
from pboost.data.columns.prebuilt import is_heavier
from pboost.data.training_data import TrainingData
from pboost.growth.graph_growth import (
    SURE,
    BestFirst,
    Edges,
    Growth,
    TreeLimits,
    asked_at,
    fixed_scale,
    sure,
)
from pboost.models.graph import DecisionGraph
from pboost.models.graph_arrays import OUT
from pboost.observation.answers import Answers, Observer, Tables, only_exit, side_masses
from pboost.values import FloatArray
from pboost.weak.base import Cut, Weights

#: Bytes per allocation of weights. Large allocations use large memory pages.
BLOCK_BYTES = 8_000_000
#: Certificate per node below which the rounding of earlier sums may matter.
CANCELS = 1e-6
#: Maximum number of weight arrays per allocation, which limits the waste with few rows.
MOST_BUFFERS = 64


@dataclass(frozen=True, slots=True, eq=False)
class PortSplit:
    """A weak classifier for a port, its observations, and the votes of its two exits."""

    cut: Cut
    answers: Answers
    step: SplitStep

    def boosted(self) -> FloatArray:
        """Return the boosted class weights (exit, class) after the split."""
        votes = np.array(self.step.votes)[:, None]
        return self.answers.masses * np.exp(votes * [1.0, -1.0])

    @property
    def after(self) -> float:
        """Sum of the bounds of the exits."""
        return float(self.boosted().sum())


@dataclass(slots=True, eq=False)
class Port:
    """Merged exits, with the rows that reach them.

    Attributes
    ----------
    edges : tuple of (node, exit)
        The exits; none at the entrance of the graph.
    masses : tuple of float
        Boosted weights of the two classes, relative to the total weight.
    arrives : float
        Reach: the sum over the rows of initial weight times the probability of reaching the port.
    votes : float
        Sum of votes inside the classifier that is being built; after a merge, the mean of the sums.
    weight : ndarray of float64, shape (n,), or a reference to remote weights, or None
        Boosted weights of the rows; None until they are computed.
    reach : ndarray of float64, shape (n,), or a reference to remote weights, or None
        Reach of the rows; None if it follows from the weights.
    """

    edges: Edges
    masses: tuple[float, float]
    arrives: float
    votes: float
    weight: Any = None
    reach: Any = None

    @property
    def bound(self) -> float:
        """Part of the certificate at the port."""
        return self.masses[0] + self.masses[1]


class PortGrowth(Growth):
    """Base class of growth by ports; the parameters are the same as for `Growth`."""

    def __init__(self, data: TrainingData, observer: Observer, rule: VoteRule) -> None:
        super().__init__(data, observer, rule)
        self.fixed = np.empty(data.n_rows, dtype=np.int64)

    def entrance(self) -> Any:
        """Return the port at the entrance of the graph, which all rows reach."""
        raise NotImplementedError

    def outside(self, port: Any, others: Iterable[Any]) -> float:
        """Return the sum of the bounds of all other open exits."""
        return math.fsum(other.bound for other in others)

    def open(self, port: Any, split: PortSplit, outside: float) -> list[Any]:
        """Add a node at a port; return its two exits.

        `outside` is the sum of the bounds of all other exits.
        """
        raise NotImplementedError

    def weights_at(self, port: Any) -> Weights:
        """Return the weights at a port and their fixed-point values."""
        weights = Weights(port.weight, self.fixed, fixed_scale(port.bound), (0, 0))
        self.search.fill_fixed(weights)
        return weights

    def best(self, port: Any, weights: Weights) -> Cut | None:
        """Return the best weak classifier for a port."""
        return self.search.best(weights)

    def side_reach(self, port: Any, cut: Cut, weights: Weights) -> FloatArray:
        """Return the reach (side, class) of the two sides of a split at a port."""
        raise NotImplementedError

    def find(self, port: Any) -> PortSplit | None:
        """Return the best split of a port, or None if there is none."""
        weights = self.weights_at(port)
        # A split needs rows of both classes. Tiny weights are 0 in fixed point.
        cut = self.best(port, weights) if min(weights.masses) > 0 else None
        if cut is None:
            return None
        answers = self.observer.ask(cut, weights, lambda: self.side_reach(port, cut, weights))
        return PortSplit(cut, answers, self.rule.step(answers.masses.tolist()))

    def heavier(self, port: Any, split: PortSplit) -> int:
        """Return the exit of a split with the larger reach."""
        raise NotImplementedError

    def with_side(self, port: Port, split: PortSplit) -> PortSplit:
        """Set the exit for missing values of a split.

        If the exit was not determined in training, it is the exit with the larger reach. Categories
        without weight take the same exit.
        """
        if not self.search.is_open(split.cut):
            return split
        cut = replace(split.cut, side=self.heavier(port, split))
        return replace(split, cut=cut, answers=split.answers.placed(cut))

    def replay(self, model: DecisionGraph, tables: Tables) -> list[Any]:
        """Add the nodes of an existing graph; return its open exits."""
        entrances: list[list[tuple[int, int]]] = [[] for _ in range(model.n_nodes)]
        for before, next_ in enumerate(model.next.tolist()):
            for exit_, node in enumerate(next_):
                if node != OUT:
                    entrances[node].append((before, exit_))
        ports: dict[Edges, Any] = {(): self.entrance()}
        for node, votes in enumerate(model.vote.tolist()):
            port = joined([ports.pop((edge,)) for edge in entrances[node]] or [ports.pop(())])
            weights = self.weights_at(port)
            cut = self.search.cut_at(weights=weights, **asked_at(model, node))
            answers = self.observer.stored_answers(cut, weights, tables[node])
            split = PortSplit(cut, answers, step_of(answers.masses.tolist(), tuple(votes)))
            for opened in self.open(port, split, self.outside(port, ports.values())):
                ports[opened.edges] = opened
        return list(ports.values())


def joined(ports: list[Any]) -> Any:
    """Merge several ports into one port without votes."""
    if len(ports) == 1:
        return ports[0]
    return Port(
        tuple(edge for port in ports for edge in port.edges),
        (math.fsum(p.masses[0] for p in ports), math.fsum(p.masses[1] for p in ports)),
        math.fsum(port.arrives for port in ports),
        0.0,
        # The fixed order of the sum makes the result deterministic.
        reduce(add, [port.weight for port in ports]),
        reduce(add, [port.reach for port in ports]),
    )


@dataclass(slots=True, eq=False)
class SoftExit(Port):
    """An open exit of a soft tree. Its votes are summed along the path from the root.

    The weights are computed when they are needed, from the split and the weights at `above`. The
    exit `above` stores its weights while `waiting` exits below it need them.
    """

    serial: int = 0
    depth: int = 0
    above: SoftExit | None = None
    waiting: int = 0
    waits: bool = False
    split: PortSplit | None = None

    @property
    def error(self) -> float:
        """Reach of the class that is not predicted."""
        return float((self.masses * class_factors(self.votes))[0 if self.votes > 0 else 1])


def class_factors(votes: float) -> FloatArray:
    """Return, per class, the ratio of reach to boosted weight for a sum of votes."""
    return np.array([math.exp(-votes), math.exp(votes)])


class SoftTree(PortGrowth, BestFirst):
    """A tree with uncertain observations.

    Parameters
    ----------
    data, observer, rule
        See `PortGrowth`.
    limits : TreeLimits
        Limits and order of growth.
    """

    def __init__(
        self, data: TrainingData, observer: Observer, rule: VoteRule, limits: TreeLimits
    ) -> None:
        super().__init__(data, observer, rule)
        self.limits, self.heap = limits, []
        self.serial = 0
        self.n_waiting = 0
        self.buffers: list[FloatArray] = []
        self.bounds: dict[int, float] = {}
        # Weights are relative to the sum of all initial weights.
        self.total = self.sum_of_weights()
        negative, positive = (mass / (data.scale * self.total) for mass in data.class_masses())
        arrives = negative + positive
        self.root = SoftExit((), (negative, positive), arrives, 0.0, data.weight / self.total)
        self.add(self.root)

    def sum_of_weights(self) -> float:
        """Return the exact sum of the initial weights, which does not depend on their order."""
        return math.fsum(self.data.weight)

    def entrance(self) -> SoftExit:
        """Return the exit that leads to the root, which all rows reach."""
        return self.root

    def add(self, exit_: SoftExit) -> None:
        """Add an exit to the heap if it can be split."""
        self.serial += 1
        self.bounds[exit_.serial] = exit_.bound
        can_split = exit_.depth < self.limits.depth and min(exit_.masses) > 0
        if not can_split or not self.push(exit_):
            return
        if exit_.above is not None and exit_.split is None:
            exit_.waits = True
            exit_.above.waiting += 1
            self.n_waiting += 1

    def split(self, exit_: SoftExit) -> None:
        """Turn an exit with a split into a node, and open the two exits of the node."""
        assert exit_.split is not None
        self.open(exit_, exit_.split, self.outside(exit_, ()))

    def outside(self, exit_: SoftExit, others: Iterable[SoftExit]) -> float:
        """Return the sum of the bounds of all other open exits."""
        return self.certificate[-1] - exit_.bound

    def open(self, exit_: SoftExit, split: PortSplit, outside: float) -> list[SoftExit]:
        """Turn an exit into a node; return the two open exits of the node."""
        exit_.split = split = self.with_side(exit_, split)
        after = self.after(exit_, split)
        del self.bounds[exit_.serial]
        reach = self.reach_of(exit_, split, after)
        node = self.add_node(
            exit_.edges,
            split.cut,
            split.step.votes,
            split.answers.table,
            exit_.arrives,
            self.certified(outside, after),
            self.heavier(exit_, split),
        )
        opened = []
        for side, vote in enumerate(split.step.votes):
            votes, (negative, positive) = exit_.votes + vote, after[side].tolist()
            opened.append(
                SoftExit(
                    ((node, side),),
                    (negative, positive),
                    reach[side],
                    votes,
                    serial=self.serial,
                    depth=exit_.depth + 1,
                    above=exit_,
                )
            )
            self.add(opened[-1])
        # Both exits used the weights of the parent, so free them only now.
        self.forget()
        self.free(exit_)
        return opened

    def reach_of(self, exit_: SoftExit, split: PortSplit, after: FloatArray) -> list[float]:
        """Return the reach of the exits of a split, given their boosted class weights."""
        return [
            float((after[side] * class_factors(exit_.votes + vote)).sum())
            for side, vote in enumerate(split.step.votes)
        ]

    def heavier(self, exit_: SoftExit, split: PortSplit) -> int:
        """Return the exit of a split with the larger reach."""
        below, above = self.reach_of(exit_, split, split.boosted())
        return int(is_heavier(above, below))

    def after(self, exit_: SoftExit, split: PortSplit) -> FloatArray:
        """Return the boosted class weights (exit, class) after a split.

        If rounding errors may matter, the unrounded weights are added.
        """
        after, unit = split.boosted(), 1.0 / fixed_scale(exit_.bound)
        rounding = 0.5 * unit * self.search.n_rows * math.exp(max(map(abs, split.step.votes)))
        for side in np.flatnonzero(rounding > SURE * after.sum(axis=1)).tolist():
            real = np.array(self.real_sums(exit_, split, side))
            counted, exact = float(after[side].sum()), float(real.sum())
            if sure(counted, exact) != counted:
                after[side] = real
        return after

    def real_sums(self, exit_: SoftExit, split: PortSplit, side: int) -> tuple[float, float]:
        """Return the sums of the unrounded class weights at one exit of a split."""
        source, vote = self.weights_at(exit_).real, split.step.votes[side]
        target = Weights(self.buffer(), self.fixed, fixed_scale(exit_.bound), (0, 0))
        split.answers.send(only_exit(side, np.exp([vote, -vote])), source, target)
        self.buffers.append(target.real)
        return self.data.sums_by_class(target.real)

    def certified(self, outside: float, after: FloatArray) -> float:
        """Return the certificate after a split, given the bounds of all other exits."""
        certificate = max(outside + float(after.sum()), 0.0)
        if certificate >= CANCELS * (self.n_nodes + 1):
            return certificate
        # The difference of large sums is inaccurate here, so add up the bounds instead.
        return sure(certificate, math.fsum([*self.bounds.values(), *after.ravel().tolist()]))

    def forget(self) -> None:
        """Free the weights of exits that will probably not be split.

        A split never produces a larger bound than the exit it splits. Therefore, if n more nodes
        can be added, only the n exits with the largest bounds are split, unless some of them have
        no split. Weights that are needed later are computed again from the root.
        """
        left = self.limits.nodes - self.n_nodes
        if self.limits.growth == "largest_bound" and self.n_waiting > 2 * left + 2:
            self.heap.sort()
            for _, _, exit_ in self.heap[left:]:
                self.release(exit_)

    def release(self, exit_: SoftExit) -> None:
        """Record that an exit no longer needs the weights of its parent."""
        above = exit_.above
        if not exit_.waits or above is None:
            return
        exit_.waits = False
        self.n_waiting -= 1
        above.waiting -= 1
        self.free(above)

    def free(self, exit_: SoftExit) -> None:
        """Free the weights of an exit if no other exit needs them."""
        if not exit_.waiting and exit_ is not self.root and exit_.weight is not None:
            self.buffers.append(exit_.weight)
            exit_.weight = None
            if exit_.split is not None:
                exit_.split.answers.forget()

    def buffer(self) -> FloatArray:
        """Return an array for weights. Freed arrays are reused."""
        if not self.buffers:
            n = self.data.n_rows
            count = min(max(1, BLOCK_BYTES // (8 * n)), MOST_BUFFERS)
            self.buffers = list(np.empty((count, n)))
        return self.buffers.pop()

    def weights_at(self, exit_: SoftExit) -> Weights:
        """Return the weights at an exit, computed from the nearest ancestor with stored weights."""
        path = []
        at = exit_
        while at.weight is None:
            path.append(at)
            assert at.above is not None
            at = at.above
        if not path:
            return super().weights_at(exit_)
        source = at.weight
        for at in reversed(path):
            assert at.above is not None
            assert at.above.split is not None
            ((_, side),), split = at.edges, at.above.split
            vote = split.step.votes[side]
            # Each exit of the path has its own fixed-point scale.
            weights = Weights(self.buffer(), self.fixed, fixed_scale(at.bound), (0, 0))
            split.answers.send(only_exit(side, np.exp([vote, -vote])), source, weights)
            if at is not path[0]:
                split.answers.forget()
            if at is not path[-1]:
                self.buffers.append(source)
            source = weights.real
        exit_.weight = source
        self.release(exit_)
        return weights

    def find(self, exit_: SoftExit) -> PortSplit | None:
        """Return the best split of an exit, or None if there is none."""
        if self.cost_search is not None:
            self.cost_search.unpaid.fill(1.0)
            at = exit_.above
            while at is not None:  # the features on the path are already paid for
                assert at.split is not None
                self.cost_search.unpaid[self.cost_search.items(at.split.cut.feature)] = 0.0
                at = at.above
        split = super().find(exit_)
        if split is None:
            self.free(exit_)
        return split

    def best(self, exit_: SoftExit, weights: Weights) -> Cut | None:
        """Return the best weak classifier for an exit."""
        if self.observer.is_exact:
            return self.search.best_by_reach(weights, class_factors(exit_.votes))
        return super().best(exit_, weights)

    def side_reach(self, exit_: SoftExit, cut: Cut, weights: Weights) -> FloatArray:
        """Return the reach (side, class) of the two sides of a split at an exit."""
        return side_masses(cut, weights) * class_factors(exit_.votes)

    def replay(self, model: DecisionGraph, tables: Tables) -> list[SoftExit]:
        """Add the nodes of an existing tree; return its open exits."""
        exits = super().replay(model, tables)
        self.keep(self.bounds)
        return exits

    def model(self, settings: Mapping[str, object], stop_reason: str) -> DecisionGraph:
        """Return the tree grown so far."""
        if self.n_nodes:
            # A small certificate is an inaccurate difference of large sums: add up the bounds.
            self.certificate[-1] = math.fsum(self.bounds.values())
        return super().model(settings, stop_reason)
