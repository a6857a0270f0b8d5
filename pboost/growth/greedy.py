"""Greedy growth of a matryoshka: whether a sub-tree is collected is decided after each node.

The graph is kept as one tree of *super-nodes*, each a weak classifier or a sub-tree that was
collected. A sub-tree is a super-node with all super-nodes below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from pboost._core.voting import VoteRule
from pboost.bounds import rate_matryoshka
from pboost.data.training import TrainingData
from pboost.growth.best_first import BestFirst
from pboost.growth.ports import Matryoshka, Port, Split
from pboost.growth.step import TreeLimits
from pboost.observation.answers import Observer
from pboost.values import INT32_MAX

#: Rates that differ by less are equal.
NO_GAIN = 1e-12


@dataclass(slots=True, eq=False)
class SuperNode:
    """A weak classifier or a collected sub-tree, and sums over the sub-tree below it.

    Attributes
    ----------
    above : SuperNode or None
        The super-node by whose exit it is entered.
    votes : float
        Votes of that exit.
    entered : float
        Bound of the port where it starts.
    root : Port or None
        That port, where collecting needs its weights.
    members : list of int
        Nodes of the sub-tree.
    n_open : int
        Open exits of the sub-tree.
    bound : float
        Sum of their bounds.
    """

    above: SuperNode | None
    votes: float
    entered: float
    root: Port | None
    members: list[int]
    n_open: int
    bound: float

    def upwards(self) -> Iterator[SuperNode]:
        """Yield the super-node, the one above it, and so on to the root."""
        at: SuperNode | None = self
        while at is not None:
            yield at
            at = at.above

    def should_be_collected(self, change: float) -> bool:
        """Whether the bound falls faster with a tree of such sub-trees than with more nodes.

        `change` is what the last node made of the bound.
        """
        if len(self.members) < 2 or self.n_open < 3:
            return False
        certificate = min(max(self.bound / self.entered, 0.0), 1.0)
        rate = float(rate_matryoshka(len(self.members), certificate))
        return rate < change / self.entered - NO_GAIN


@dataclass(slots=True, eq=False)
class OpenExit:
    """An open exit of a super-node; the votes of the port are those inside the super-node."""

    serial: int
    port: Port
    owner: SuperNode | None
    split: Split | None = None

    @property
    def bound(self) -> float:
        """Part of the certificate that the exit carries."""
        return self.port.bound


class GreedyGrowth(Matryoshka, BestFirst):
    """Builds a matryoshka that finds its own shape.

    Parameters
    ----------
    data, observer, rule, collect
        As for `Matryoshka`.
    size : int
        Greatest number of nodes.
    """

    def __init__(
        self, data: TrainingData, observer: Observer, rule: VoteRule, collect: str, size: int
    ) -> None:
        super().__init__(data, observer, rule, collect)
        self.limits, self.heap = TreeLimits(size, INT32_MAX, "largest-bound", -1.0), []
        self.exits: list[OpenExit] = []
        self.serial = count()
        self.replace_exits([], [self.entrance()], None)

    def replace_exits(
        self, others: list[OpenExit], ports: list[Port], owner: SuperNode | None
    ) -> None:
        """Leave some of the exits open, and open others of a super-node."""
        opened = [OpenExit(next(self.serial), port, owner) for port in ports]
        self.exits = others + opened
        for exit_ in opened:
            self.push(exit_)

    def find(self, exit_: OpenExit) -> Split | None:
        """Return the best split of an exit, None where there is none."""
        return super().find(exit_.port)

    def split(self, exit_: OpenExit) -> None:
        """Make a node of an exit for which a split was found, and collect if it is time."""
        assert exit_.split is not None
        others = [other for other in self.exits if other is not exit_]
        port, above = exit_.port, exit_.owner
        parts = self.open(port, exit_.split, math.fsum(other.bound for other in others))
        kept = port if self.collect == "sign" else None
        change = math.fsum(part.bound for part in parts) - port.bound
        node = SuperNode(above, port.votes, port.bound, kept, [], 1, port.bound)
        self.replace_exits(others, parts, node)
        path = list(node.upwards())[::-1]
        for at in path:
            at.members.append(self.n_nodes - 1)
            at.n_open += 1
            at.bound += change
        for at in path:
            if at.should_be_collected(change):
                self.collect_at(at)
                break

    def collect_at(self, top: SuperNode) -> None:
        """Make one super-node of a sub-tree."""
        inside, others = [], []
        for exit_ in self.exits:
            votes = exit_.port.votes
            for at in exit_.owner.upwards() if exit_.owner is not None else ():
                if at is top:
                    inside.append(replace(exit_.port, votes=votes))
                    break
                votes += at.votes
            else:
                others.append(exit_)
        if top.root is None:
            ports = self.merge(inside)
        else:
            ports = self.collapse(inside, top.root, top.members)
        self.keep({exit_.serial for exit_ in others})
        self.replace_exits(others, ports, top)
        change = math.fsum(port.bound for port in ports) - top.bound
        closed = top.n_open - len(ports)
        for at in top.upwards():
            at.n_open -= closed
            at.bound += change
        self.certificate[-1] = math.fsum(exit_.bound for exit_ in self.exits)
