"""Growth of nested matryoshki: ports, the trees between them, and how exits are collected.

A classifier of level 0 is a weak classifier; one of level k is a tree of classifiers of level
k - 1. It is entered through a port, where exits join, and leaves two ports behind, one for each of
its answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pboost.answers import Answers, Observer, only_exit
from pboost.data import TrainingData
from pboost.graph import DecisionGraph, FloatArray
from pboost.grow import NO_VOTE, Callback, VoteRule
from pboost.nodes import NodeList
from pboost.soft_growth import fixed_scale, rounded
from pboost.weak_search import Weights

COLLECTS = ("additive", "sign")
JOINS = ("sign", "all")
#: Reach below this share of all weight is none: weights are kept from becoming subnormal.
NO_REACH = 1e-250


@dataclass(frozen=True, slots=True, eq=False)
class Port:
    """Exits that join, and the rows there.

    Attributes
    ----------
    edges : tuple of (node, exit)
        The exits.
    weight : ndarray of float64, shape (n,)
        Boosted weights of the rows, shares of all weight.
    reach : ndarray of float64, shape (n,)
        Reach masses: starting weight times probability of arriving.
    masses : tuple of float
        Sum of `weight` over either class.
    arrives : float
        Sum of `reach`.
    votes : float
        Votes gathered inside the classifier that is being built; where paths join, their mean.
    """

    edges: tuple[tuple[int, int], ...]
    weight: FloatArray
    reach: FloatArray
    masses: tuple[float, float]
    arrives: float
    votes: float

    @property
    def bound(self) -> float:
        """Part of the certificate that the port carries."""
        return self.masses[0] + self.masses[1]


class GrowthStopped(Exception):  # noqa: N818 - not an error
    """Raised through the levels when the callback ends growth."""


class NestedGrowth:
    """Builds a matryoshka.

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
        self.data, self.observer, self.rule = data, observer, rule
        self.shape, self.collect = shape, collect
        self.scratch = Weights(
            np.empty(data.n_rows), np.empty(data.n_rows, dtype=np.int64), 1.0, (0, 0)
        )
        self.nodes = NodeList(observer)
        self.callback: Callback | None = None

    def grow(self, join: str, callback: Callback | None) -> str:
        """Build the whole; returns why growing stopped."""
        self.callback = callback
        start = self.data.weight / math.fsum(self.data.weight)
        port = self.port((), start, start, 0.0)
        depth = len(self.shape)
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

    def chain(self, depth: int, port: Port) -> bool:
        """Chain classifiers of the level below, all open exits of one leading to the next."""
        for _ in range(self.shape[-1]):
            ports = self.tree(depth - 1, port, 0.0) if depth > 1 else self.node(port, 0.0)
            if ports is None:
                return False
            port = joined(ports, 0.0)
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
        ports = (
            self.merge(ports) if self.collect == "additive" else self.collapse(ports, port, first)
        )
        self.nodes.certificate[-1] = outside + math.fsum(p.bound for p in ports)
        return ports

    def tree(self, level: int, entrance: Port, outside: float) -> list[Port] | None:
        """Grow a tree at a port: the next classifier at the open exit of largest bound."""
        ports, stuck = [replace(entrance, votes=0.0)], set()
        size = 0
        while size < self.shape[level - 1]:
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
        return ports if size else None

    def node(self, port: Port, outside: float) -> list[Port] | None:
        """Open a node at a port; returns its two exits, None if the port cannot be split."""
        weights = Weights(port.weight, self.scratch.fixed, fixed_scale(port.bound), (0, 0))
        self.observer.search.fill_fixed(weights)
        # Both classes must have weight; what is left of absent rows is 0 in fixed point.
        cut = self.observer.search.best(weights) if min(weights.masses) > 0 else None
        if cut is None:
            return None
        answers = self.observer.ask(
            cut,
            weights,
            lambda: self.observer.search.side_masses(cut, port.reach, self.scratch),
        )
        step = self.rule.step(answers.masses.tolist())
        node = len(self.nodes)
        ports = [
            self.port_of(port, answers, node, exit_, vote) for exit_, vote in enumerate(step.votes)
        ]
        answers.forget()
        certificate = outside + ports[0].bound + ports[1].bound
        self.nodes.open(port.edges, cut, step.votes, answers.table, port.arrives, certificate)
        if self.callback is not None and self.callback(node + 1, self.nodes.newest(port.bound)):
            raise GrowthStopped
        return ports

    def port_of(self, port: Port, answers: Answers, node: int, exit_: int, vote: float) -> Port:
        """Return one exit of a new node as a port."""
        weight, reach = np.empty_like(port.weight), np.empty_like(port.reach)
        target = Weights(weight, self.scratch.fixed, fixed_scale(port.bound), (0, 0))
        answers.send(only_exit(exit_, np.exp([vote, -vote])), port.weight, target)
        target = Weights(reach, self.scratch.fixed, fixed_scale(port.arrives), (0, 0))
        answers.send(only_exit(exit_, np.ones(2)), port.reach, target)
        return self.port(((node, exit_),), weight, reach, vote)

    def port(
        self,
        edges: tuple[tuple[int, int], ...],
        weight: FloatArray,
        reach: FloatArray,
        votes: float,
    ) -> Port:
        """Return a port; sums its masses."""
        middle = self.data.n_negative
        masses = float(weight[:middle].sum()), float(weight[middle:].sum())
        return Port(edges, weight, reach, masses, float(reach.sum()), votes)

    def merge(self, ports: list[Port]) -> list[Port]:
        """Collect additively: votes stay, weights and reaches of each group are summed."""
        merged = []
        for group in by_sign(ports):
            if group:
                arrives = math.fsum(port.arrives for port in group)
                mean = math.fsum(port.arrives * port.votes for port in group) / arrives
                merged.append(joined(group, mean))
        return merged

    def collapse(self, ports: list[Port], root: Port, first: int) -> list[Port]:
        """Collect by sign: the nodes from `first` on become one classifier with two votes."""
        middle = self.data.n_negative
        groups = by_sign(ports)
        plus = sum((port.reach for port in groups[1]), np.zeros_like(root.reach))
        arrives = root.reach > NO_REACH
        q = np.where(arrives, plus / np.where(arrives, root.reach, 1.0), 0.5).clip(0.0, 1.0)
        answers = 1 - q, q
        parts = [root.weight * answer for answer in answers]
        step = self.rule.step(
            [(float(part[:middle].sum()), float(part[middle:].sum())) for part in parts]
        )
        for votes in self.nodes.votes[first:]:
            votes[:] = 0.0, 0.0
        collapsed = []
        for group, vote, part, answer in zip(groups, step.votes, parts, answers, strict=True):
            if not group:
                continue
            edges = joined(group, vote).edges
            for node, exit_ in edges:
                self.nodes.votes[node][exit_] = vote
            part[:middle] *= math.exp(vote)
            part[middle:] *= math.exp(-vote)
            collapsed.append(self.port(edges, part, root.reach * answer, vote))
        return collapsed

    def model(self, settings: Mapping[str, Any], stop_reason: str) -> DecisionGraph:
        """Return the graph built so far."""
        return self.nodes.model(self.data, self.rule, settings, stop_reason)


def by_sign(ports: list[Port]) -> tuple[list[Port], list[Port]]:
    """Return the ports whose votes are not positive, and the others.

    Votes that cancel but for rounding are not positive.
    """
    return [p for p in ports if p.votes <= NO_VOTE], [p for p in ports if p.votes > NO_VOTE]


def joined(ports: list[Port], votes: float) -> Port:
    """Return one port for several."""
    if len(ports) == 1:
        return replace(ports[0], votes=votes)
    return Port(
        tuple(edge for port in ports for edge in port.edges),
        np.sum([port.weight for port in ports], axis=0),
        np.sum([port.reach for port in ports], axis=0),
        (math.fsum(p.masses[0] for p in ports), math.fsum(p.masses[1] for p in ports)),
        math.fsum(port.arrives for port in ports),
        votes,
    )
