"""Growth of soft trees: every node is trained on all rows, with their weights at its exit.

The answers at a node are uncertain, so that a row takes either exit with some probability and
carries weight to both. One path leads to each exit of a tree, so that the reach mass of a row is
its boosted weight times a factor of its class, and need not be kept.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pboost._core.keys import decrease, rounded
from pboost.data.training import TrainingData
from pboost.growth.step import Callback, NodeList, TreeLimits, fixed_scale
from pboost.models.graph import OUT, DecisionGraph
from pboost.observation.answers import Answers, Observer, Tables, only_exit, side_masses
from pboost.values import FloatArray
from pboost.weak.base import Cut, Weights
from pboost.weak.votes import SplitStep, VoteRule, step_of

#: Bytes of weights taken from the system at a time, in pages that are few and large.
BLOCK_BYTES = 8_000_000
#: Most arrays of weights in them: more would be made for nothing where there are few rows.
MOST_BUFFERS = 64


@dataclass(slots=True, eq=False)
class Split:
    """A weak classifier found for an exit, its answers, and the votes of the exits it makes."""

    cut: Cut
    answers: Answers
    step: SplitStep

    def boosted(self) -> FloatArray:
        """Return the boosted class masses (exit, class) after the split."""
        votes = np.array(self.step.votes)[:, None]
        return self.answers.masses * np.exp(votes * [1.0, -1.0])


@dataclass(slots=True, eq=False)
class OpenExit:
    """An exit that leads out of the tree so far.

    Its weights are those of the exit that its node split, `above`, sent through the `answers` with
    coefficients `boost` (exit, class); they are computed when they are needed, and `above` keeps
    its own for as long as exits `wait` for them. `masses` are the exit's boosted class masses.
    """

    serial: int
    node: int
    side: int
    depth: int
    votes: float
    masses: FloatArray
    above: OpenExit | None = None
    answers: Answers | None = None
    boost: FloatArray | None = None
    key: float = 0.0
    weights: FloatArray | None = field(default=None)
    waiting: int = 0
    waits: bool = False
    split: Split | None = field(default=None)

    @property
    def bound(self) -> float:
        """Part of the certificate that the exit carries."""
        return float(self.masses.sum())

    def reach(self) -> FloatArray:
        """Return the reach masses of the two classes."""
        return self.masses * class_factors(self.votes)

    def error(self) -> float:
        """Return the reach mass of the class that is not predicted."""
        return float(self.reach()[0 if self.votes > 0 else 1])


def class_factors(votes: float) -> FloatArray:
    """Return what turns boosted into reach masses, by class, where `votes` are gathered."""
    return np.array([math.exp(-votes), math.exp(votes)])


class SoftTree:
    """A tree that grows on uncertain answers.

    Parameters
    ----------
    data : TrainingData
        Rows, classes and starting weights.
    observer : Observer
        Finds weak classifiers and their answers.
    rule : VoteRule
        Makes votes of masses.
    limits : TreeLimits
        Number of nodes, depth, order of growth.
    """

    def __init__(
        self,
        data: TrainingData,
        observer: Observer,
        rule: VoteRule,
        limits: TreeLimits,
    ) -> None:
        self.data, self.observer, self.rule, self.limits = data, observer, rule, limits
        self.scratch = np.empty(data.n_rows, dtype=np.int64)
        self.nodes = NodeList(observer)
        self.serial = 0
        self.n_waiting = 0
        self.buffers: list[FloatArray] = []
        self.heap: list[tuple[float, int, OpenExit]] = []
        self.bounds: dict[int, float] = {}  # of the exits that are open
        # Weights are kept as shares of all weight.
        total = math.fsum(data.weight)
        root = data.weight / total
        masses = np.array(data.class_masses()) / (data.scale * total)
        self.root = OpenExit(0, OUT, 0, 0, 0.0, masses, weights=root)
        self.add(self.root)

    def grow(self, callback: Callback | None) -> str:
        """Open exits until done; returns why growing stopped."""
        while True:
            if len(self.nodes) >= self.limits.nodes:
                return "all nodes are opened"
            if not self.heap:
                return "no exit can be split"
            _, _, exit_ = heapq.heappop(self.heap)
            split = exit_.split or self.find(exit_)
            if split is None:
                continue
            self.open(exit_, split)
            if callback is not None and callback(len(self.nodes), self.nodes.newest(exit_.bound)):
                return "stopped by the callback"
            if self.nodes.certificate[-1] <= self.limits.target:
                return "the target certificate is reached"

    def open(self, exit_: OpenExit, split: Split) -> list[OpenExit]:
        """Make a node of an exit, and open exits of the node's, which are returned."""
        after = split.boosted()
        del self.bounds[exit_.serial]
        certificate = self.nodes.certificate[-1] - exit_.bound + float(after.sum())
        node = self.nodes.open(
            [(exit_.node, exit_.side)] if exit_.node != OUT else [], split.cut, split.step.votes,
            split.answers.table, float(exit_.reach().sum()), max(certificate, 0.0),
        )  # fmt: skip
        opened = []
        for side, vote in enumerate(split.step.votes):
            boost = only_exit(side, np.exp([vote, -vote]))
            opened.append(
                OpenExit(
                    self.serial, node, side, exit_.depth + 1, exit_.votes + vote, after[side],
                    exit_, split.answers, boost,
                )
            )  # fmt: skip
            self.add(opened[-1])
        self.free(exit_)
        return opened

    def add(self, exit_: OpenExit) -> None:
        """Put an exit on the heap if it can be split."""
        self.serial += 1
        self.bounds[exit_.serial] = exit_.bound
        if exit_.depth >= self.limits.depth or not (exit_.masses > 0).all():
            return
        growth = self.limits.growth
        if growth == "breadth-first":
            exit_.key = -float(exit_.serial)
        elif growth == "largest-bound":
            exit_.key = rounded(exit_.bound)
        elif growth == "largest-error":
            exit_.key = rounded(exit_.error())
        else:
            exit_.split = self.find(exit_)
            if exit_.split is None:
                return
            bound = exit_.bound
            exit_.key = decrease(bound, bound - float(exit_.split.boosted().sum()))
        heapq.heappush(self.heap, (-exit_.key, exit_.serial, exit_))
        if exit_.above is not None and exit_.split is None:
            exit_.waits = True
            exit_.above.waiting += 1
            self.n_waiting += 1
        self.forget()

    def forget(self) -> None:
        """Free the weights of exits that will hardly be split any more.

        Splitting never makes a larger bound than it takes, so that only as many of the largest
        exits as there are nodes left are opened, but for those that cannot be split. What is
        needed after all is computed anew from the root.
        """
        left = self.limits.nodes - len(self.nodes)
        if self.limits.growth == "largest-bound" and self.n_waiting > 2 * left + 2:
            self.heap.sort()
            for _, _, exit_ in self.heap[left:]:
                self.release(exit_)

    def release(self, exit_: OpenExit) -> None:
        """Note that an exit no longer waits for the weights above it."""
        above = exit_.above
        if not exit_.waits or above is None:
            return
        exit_.waits = False
        self.n_waiting -= 1
        above.waiting -= 1
        self.free(above)

    def free(self, exit_: OpenExit) -> None:
        """Take back the weights of a split exit for which nothing waits."""
        if not exit_.waiting and exit_ is not self.root and exit_.weights is not None:
            self.buffers.append(exit_.weights)
            exit_.weights = None
            if exit_.split is not None:
                exit_.split.answers.forget()

    def buffer(self) -> FloatArray:
        """Return an array for weights; pages once taken from the system are used again."""
        if not self.buffers:
            n = self.data.n_rows
            count = min(max(1, BLOCK_BYTES // (8 * n)), MOST_BUFFERS)
            self.buffers = list(np.empty((count, n)))
        return self.buffers.pop()

    def weigh(self, exit_: OpenExit) -> Weights:
        """Return the weights at an exit, from those kept nearest above it."""
        path = []
        at = exit_
        while at.weights is None:
            path.append(at)
            assert at.above is not None
            at = at.above
        weights = Weights(at.weights, self.scratch, fixed_scale(at.bound), (0, 0))
        for at in reversed(path):
            assert at.answers is not None
            assert at.boost is not None
            # Weights on the way need not fit into the scale of those at the end.
            target = Weights(self.buffer(), self.scratch, fixed_scale(at.bound), (0, 0))
            at.answers.send(at.boost, weights.real, target)
            if at is not path[0]:
                at.answers.forget()
            if at is not path[-1]:
                self.buffers.append(weights.real)
            weights = target
        if not path:
            self.observer.search.fill_fixed(weights)
        return weights

    def find(self, exit_: OpenExit) -> Split | None:
        """Return the best split of an exit; computes its weights."""
        weights = self.weigh(exit_)
        self.release(exit_)
        # Both classes must have weight; what is left of absent rows is 0 in fixed point.
        cut = self.best(exit_, weights) if min(weights.masses) > 0 else None
        if cut is None:
            return None
        exit_.weights = weights.real
        answers = self.observer.ask(
            cut, weights, lambda: side_masses(cut, weights) * class_factors(exit_.votes)
        )
        return Split(cut, answers, self.rule.step(answers.masses.tolist()))

    def best(self, exit_: OpenExit, weights: Weights) -> Cut | None:
        """Return the weak classifier for an exit."""
        search = self.observer.search
        if self.observer.is_exact:
            return search.best_by_reach(weights, class_factors(exit_.votes))
        return search.best(weights)

    def replay(self, model: DecisionGraph, tables: Tables) -> None:
        """Open the nodes of a tree as they are."""
        exits = {(OUT, 0): self.root}
        entrance = {int(next_): divmod(at, 2) for at, next_ in enumerate(model.next.ravel())}
        for node, votes in enumerate(model.vote.tolist()):
            exit_ = exits.pop(entrance[node] if node else (OUT, 0))
            weights = self.weigh(exit_)
            self.release(exit_)
            exit_.weights = weights.real
            feature, threshold = int(model.feature[node]), float(model.threshold[node])
            cut = self.observer.search.cut_at(feature, threshold, weights)
            answers = self.observer.given(cut, weights, tables[node])
            step = step_of(answers.masses.tolist(), tuple(votes))
            exit_.split = Split(cut, answers, step)
            for child in self.open(exit_, exit_.split):
                exits[child.node, child.side] = child
        waiting = set(map(id, exits.values()))
        self.heap = [entry for entry in self.heap if id(entry[2]) in waiting]
        heapq.heapify(self.heap)

    def model(self, settings: Mapping[str, Any], stop_reason: str) -> DecisionGraph:
        """Return the tree grown so far."""
        if len(self.nodes):
            # A small certificate is the difference of large masses: here it is a plain sum.
            self.nodes.certificate[-1] = math.fsum(self.bounds.values())
        return self.nodes.model(self.data, self.rule, settings, stop_reason)
