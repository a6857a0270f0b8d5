"""Growth of matryoshki of a given shape.

A classifier of level 0 is a weak classifier; one of level k is a tree of classifiers of level
k - 1. It is entered through a port, where exits join, and leaves two ports behind, one for each of
its answers.
"""

from __future__ import annotations

import math
from dataclasses import replace

from pboost._core.keys import rounded
from pboost.data.training import TrainingData
from pboost.growth.ports import GrowthStopped, Matryoshka, Port, joined
from pboost.growth.step import Callback
from pboost.observation.answers import Observer
from pboost.weak.votes import VoteRule

JOINS = ("sign", "all")


class NestedGrowth(Matryoshka):
    """Builds a matryoshka of a given shape.

    Parameters
    ----------
    data : TrainingData
        Rows, classes and starting weights.
    observer : Observer
        Finds weak classifiers and their answers.
    rule : VoteRule
        Makes votes of masses.
    shape : tuple of int
        Nodes of the trees of each level, innermost first.
    collect : str
        One of `COLLECTS`.
    """

    def __init__(
        self,
        data: TrainingData,
        observer: Observer,
        rule: VoteRule,
        shape: tuple[int, ...],
        collect: str,
    ) -> None:
        super().__init__(data, observer, rule, collect)
        self.shape = shape

    def grow(self, join: str, callback: Callback | None) -> str:
        """Build the whole; returns why growing stopped."""
        self.callback = callback
        port, depth = self.entrance(), len(self.shape)
        try:
            if join == "sign":
                complete = self.tree(depth, port, 0.0) is not None
            else:
                complete = self.chain(depth, port)
        except GrowthStopped:
            return "stopped by the callback"
        if complete and len(self.nodes) == math.prod(self.shape):
            return "all nodes are opened"
        return "exits that could not be split left the shape incomplete"

    def extend(self, ports: list[Port], join: str, callback: Callback | None) -> str:
        """Open as many nodes as the only level has at ports; returns why growing stopped.

        With ``join="all"`` the ports join and a chain goes on, else each is split on its own.
        """
        self.callback = callback
        (size,), before = self.shape, len(self.nodes)
        try:
            if join == "all":
                self.chain(1, joined(ports))
            else:
                self.expand(1, ports, size, 0.0)
        except GrowthStopped:
            return "stopped by the callback"
        complete = len(self.nodes) - before == size
        return "all nodes are opened" if complete else "no exit can be split"

    def chain(self, depth: int, port: Port) -> bool:
        """Chain classifiers of the level below, all open exits of one leading to the next."""
        for _ in range(self.shape[-1]):
            ports = self.tree(depth - 1, port, 0.0) if depth > 1 else self.node(port, 0.0)
            if ports is None:
                return False
            port = joined(ports)
        return True

    def classifier(self, level: int, port: Port, outside: float) -> list[Port] | None:
        """Build a classifier of a level at a port; None if not one node can be opened.

        `outside` is the certificate of all exits outside it.
        """
        if level == 0:
            return self.node(port, outside)
        first = len(self.nodes)
        ports = self.tree(level, port, outside)
        if ports is None:
            return None
        if self.collect == "additive":
            ports = self.merge(ports)
        else:
            ports = self.collapse(ports, port, range(first, len(self.nodes)))
        self.nodes.certificate[-1] = outside + math.fsum(p.bound for p in ports)
        return ports

    def tree(self, level: int, entrance: Port, outside: float) -> list[Port] | None:
        """Grow a tree at a port: the next classifier at the open exit of largest bound."""
        entrances = [replace(entrance, votes=0.0)]
        ports, size = self.expand(level, entrances, self.shape[level - 1], outside)
        return ports if size else None

    def expand(
        self, level: int, ports: list[Port], limit: int, outside: float
    ) -> tuple[list[Port], int]:
        """Open up to `limit` classifiers of the level below, always at the port of largest bound.

        Returns the ports there are then, and the number of classifiers.
        """
        stuck: set[tuple[tuple[int, int], ...]] = set()
        size = 0
        while size < limit:
            able = [port for port in ports if port.edges not in stuck]
            if not able:
                break
            chosen = max(able, key=lambda port: rounded(port.bound))  # the first among equals
            others = [port for port in ports if port is not chosen]
            rest = outside + math.fsum(port.bound for port in others)
            parts = self.classifier(level - 1, chosen, rest)
            if parts is None:
                stuck.add(chosen.edges)
                continue
            ports = others + [replace(p, votes=chosen.votes + p.votes) for p in parts]
            size += 1
        return ports, size

    def node(self, port: Port, outside: float) -> list[Port] | None:
        """Open a node at a port, and tell the callback; None if the port cannot be split."""
        split = self.find(port)
        if split is None:
            return None
        ports = self.open(port, split, outside)
        self.report(port.bound)
        return ports
