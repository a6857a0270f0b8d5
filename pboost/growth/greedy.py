"""Greedy growth of a matryoshka: whether a sub-tree is collected is decided after each node.

The graph is kept as one tree of *super-nodes*, each a weak classifier or a sub-tree that was
collected. A sub-tree is a super-node with all super-nodes below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pboost._core.keys import rounded
from pboost.bounds import rate_matryoshka
from pboost.data.training import TrainingData
from pboost.growth.ports import GrowthStopped, Matryoshka, Port
from pboost.growth.step import Callback
from pboost.observation.answers import Observer
from pboost.weak.votes import VoteRule

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

    port: Port
    owner: SuperNode | None
    stuck: bool = False


class GreedyGrowth(Matryoshka):
    """Builds a matryoshka that finds its own shape.

    Parameters
    ----------
    data : TrainingData
        Rows, classes and starting weights.
    observer : Observer
        Finds weak classifiers and their answers.
    rule : VoteRule
        Makes votes of masses.
    size : int
        Greatest number of nodes.
    collect : str
        One of `pboost.growth.ports.COLLECTS`.
    """

    def __init__(
        self, data: TrainingData, observer: Observer, rule: VoteRule, size: int, collect: str
    ) -> None:
        super().__init__(data, observer, rule, collect)
        self.size = size
        self.exits = [OpenExit(self.entrance(), None)]

    def grow(self, callback: Callback | None) -> str:
        """Open nodes until done; returns why growing stopped."""
        self.callback = callback
        while len(self.nodes) < self.size:
            able = [exit_ for exit_ in self.exits if not exit_.stuck]
            if not able:
                return "no exit can be split"
            chosen = max(able, key=lambda exit_: rounded(exit_.port.bound))  # first among equals
            if not self.split(chosen):
                chosen.stuck = True
                continue
            try:
                # After collecting, so that the step is over when the callback stops growth.
                self.report(chosen.port.bound)
            except GrowthStopped:
                return "stopped by the callback"
        return "all nodes are opened"

    def split(self, chosen: OpenExit) -> bool:
        """Open a node at an exit, and collect if it is time; False if it cannot be split."""
        port, above = chosen.port, chosen.owner
        found = self.find(port)
        if found is None:
            return False
        others = [exit_ for exit_ in self.exits if exit_ is not chosen]
        parts = self.open(port, found, math.fsum(exit_.port.bound for exit_ in others))
        kept = port if self.collect == "sign" else None
        bound = math.fsum(part.bound for part in parts)
        change = bound - port.bound
        node = SuperNode(above, port.votes, port.bound, kept, [], 1, port.bound)
        self.exits = others + [OpenExit(part, node) for part in parts]
        path = list(node.upwards())[::-1]
        for at in path:
            at.members.append(len(self.nodes) - 1)
            at.n_open += 1
            at.bound += change
        for at in path:
            if at.should_be_collected(change):
                self.collect_at(at)
                break
        return True

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
        self.exits = others + [OpenExit(port, top) for port in ports]
        change = math.fsum(port.bound for port in ports) - top.bound
        closed = top.n_open - len(ports)
        for at in top.upwards():
            at.n_open -= closed
            at.bound += change
        self.nodes.certificate[-1] = math.fsum(exit_.port.bound for exit_ in self.exits)
