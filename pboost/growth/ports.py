"""Ports, where exits of a graph join, and what matryoshki do with them: open nodes, collect.

The growths of a given shape (`nested_growth`) and greedy growth (`greedy_growth`) share this.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pboost.data.training import TrainingData
from pboost.growth.step import Callback, NodeList, fixed_scale
from pboost.models.graph import OUT, DecisionGraph
from pboost.observation.answers import Answers, Observer, Tables, only_exit
from pboost.values import FloatArray
from pboost.weak.base import Cut, Weights
from pboost.weak.votes import NO_VOTE, VoteRule

COLLECTS = ("additive", "sign")
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


class PortGrowth:
    """Base of the growths of matryoshki.

    Parameters
    ----------
    data : TrainingData
        Rows, classes and starting weights.
    observer : Observer
        Finds weak classifiers and their answers.
    rule : VoteRule
        Makes votes of masses.
    collect : str
        One of `COLLECTS`.
    """

    def __init__(
        self, data: TrainingData, observer: Observer, rule: VoteRule, collect: str
    ) -> None:
        self.data, self.observer, self.rule, self.collect = data, observer, rule, collect
        self.scratch = Weights(
            np.empty(data.n_rows), np.empty(data.n_rows, dtype=np.int64), 1.0, (0, 0)
        )
        self.nodes = NodeList(observer)
        self.callback: Callback | None = None

    def entrance(self) -> Port:
        """Return the port of the whole graph, with all weight."""
        start = self.data.weight / math.fsum(self.data.weight)
        return self.port((), start, start, 0.0)

    def report(self, bound: float) -> None:
        """Tell the callback of the newest node, opened at a port of this bound."""
        n_nodes = len(self.nodes)
        if self.callback is not None and self.callback(n_nodes, self.nodes.newest(bound)):
            raise GrowthStopped

    def open_node(self, port: Port, outside: float) -> list[Port] | None:
        """Open a node at a port; returns its two exits, None if the port cannot be split."""
        weights = self.weights_at(port)
        # Both classes must have weight; what is left of absent rows is 0 in fixed point.
        cut = self.observer.search.best(weights) if min(weights.masses) > 0 else None
        if cut is None:
            return None
        answers = self.observer.ask(
            cut,
            weights,
            lambda: self.observer.search.side_masses(cut, port.reach, self.scratch),
        )
        votes = self.rule.step(answers.masses.tolist()).votes
        return self.add(port, cut, answers, votes, outside)

    def weights_at(self, port: Port) -> Weights:
        """Return the weights at a port as the search reads them."""
        weights = Weights(port.weight, self.scratch.fixed, fixed_scale(port.bound), (0, 0))
        self.observer.search.fill_fixed(weights)
        return weights

    def add(
        self, port: Port, cut: Cut, answers: Answers, votes: tuple[float, float], outside: float
    ) -> list[Port]:
        """Make a node of a cut at a port; returns its two exits."""
        node = len(self.nodes)
        ports = [self.port_of(port, answers, node, exit_, vote) for exit_, vote in enumerate(votes)]
        answers.forget()
        certificate = outside + ports[0].bound + ports[1].bound
        self.nodes.open(port.edges, cut, votes, answers.table, port.arrives, certificate)
        return ports

    def replay(self, model: DecisionGraph, tables: Tables) -> list[Port]:
        """Open the nodes of any graph as they are; returns its open exits."""
        entrances: list[list[tuple[int, int]]] = [[] for _ in range(model.n_nodes)]
        for before, next_ in enumerate(model.next.tolist()):
            for exit_, node in enumerate(next_):
                if node != OUT:
                    entrances[node].append((before, exit_))
        ports: dict[tuple[tuple[int, int], ...], Port] = {}
        for node, votes in enumerate(model.vote.tolist()):
            joining = [ports.pop((edge,)) for edge in entrances[node]]
            port = joined(joining, 0.0) if joining else self.entrance()
            weights = self.weights_at(port)
            feature, threshold = int(model.feature[node]), float(model.threshold[node])
            cut = self.observer.search.cut_at(feature, threshold, weights)
            answers = self.observer.given(cut, weights, tables[node])
            outside = math.fsum(other.bound for other in ports.values())
            for opened in self.add(port, cut, answers, tuple(votes), outside):
                ports[opened.edges] = opened
        return list(ports.values()) or [self.entrance()]

    def port_of(self, port: Port, answers: Answers, node: int, exit_: int, vote: float) -> Port:
        """Return one exit of a new node as a port."""
        weight, reach = np.empty_like(port.weight), np.empty_like(port.reach)
        # Votes that were made for other rows may raise the weights of these.
        most = port.bound * math.exp(abs(vote))
        target = Weights(weight, self.scratch.fixed, fixed_scale(most), (0, 0))
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

    def collapse(self, ports: list[Port], root: Port, members: Iterable[int]) -> list[Port]:
        """Collect by sign: the nodes `members` become one classifier at `root` with two votes."""
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
        self.nodes.drop_votes(members)
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
