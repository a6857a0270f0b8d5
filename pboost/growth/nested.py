"""Growth of matryoshki of a given shape.

A classifier of level 0 is a weak classifier; one of level k is a tree of classifiers of level
k - 1. It is entered through a port, where exits join, and leaves two ports behind, one for each of
its answers.
"""

from __future__ import annotations

import math
from dataclasses import replace

from pboost._core.voting import VoteRule, rounded_key
from pboost.data.training import TrainingData
from pboost.growth.best_first import ALL_OPENED, NO_EXIT
from pboost.growth.ports import Matryoshka, Port, joined
from pboost.growth.step import STOPPED, Callback
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Observer, Tables

JOINS = ("sign", "all")


class GrowthStopped(Exception):  # noqa: N818 - not an error
    """Raised through the levels when the callback ends growth."""


class NestedGrowth(Matryoshka):
    """Builds a matryoshka of a given shape, at the entrance or at the open exits of a graph.

    Parameters
    ----------
    data, observer, rule, collect
        As for `Matryoshka`.
    shape : tuple of int
        Nodes of the trees of each level, innermost first.
    join : str
        One of `JOINS`.
    """

    def __init__(
        self,
        data: TrainingData,
        observer: Observer,
        rule: VoteRule,
        collect: str,
        shape: tuple[int, ...],
        join: str,
    ) -> None:
        super().__init__(data, observer, rule, collect)
        self.shape, self.join = shape, join
        self.incomplete = "exits that could not be split left the shape incomplete"
        self.ports: list[Port] = []

    def replay(self, model: DecisionGraph, tables: Tables) -> list[Port]:
        """Open the nodes of a graph as they are; growth goes on at its open exits."""
        self.ports = super().replay(model, tables)
        self.incomplete = NO_EXIT
        return self.ports

    def grow(self, callback: Callback | None) -> str:
        """Build the whole; returns why growing stopped."""
        self.callback, before = callback, self.n_nodes
        ports = self.ports or [self.entrance()]
        try:
            if self.join == "all":
                self.chain(len(self.shape), joined(ports))
            else:
                self.expand(len(self.shape), ports, self.shape[-1], 0.0)
        except GrowthStopped:
            return STOPPED
        complete = self.n_nodes - before == math.prod(self.shape)
        return ALL_OPENED if complete else self.incomplete

    def chain(self, depth: int, port: Port) -> None:
        """Chain classifiers of the level below, all open exits of one leading to the next."""
        for _ in range(self.shape[-1]):
            ports = self.tree(depth - 1, port, 0.0) if depth > 1 else self.node(port, 0.0)
            if ports is None:
                return
            port = joined(ports)

    def classifier(self, level: int, port: Port, outside: float) -> list[Port] | None:
        """Build a classifier of a level at a port; None if not one node can be opened.

        `outside` is the certificate of all exits outside it.
        """
        if level == 0:
            return self.node(port, outside)
        first = self.n_nodes
        ports = self.tree(level, port, outside)
        if ports is None:
            return None
        if self.collect == "additive":
            ports = self.merge(ports)
        else:
            ports = self.collapse(ports, port, range(first, self.n_nodes))
        self.certificate[-1] = outside + math.fsum(p.bound for p in ports)
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
            chosen = max(able, key=lambda port: rounded_key(port.bound))  # the first among equals
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
        if self.callback is not None and self.callback(self.n_nodes, self.newest(port.bound)):
            raise GrowthStopped
        return ports
