"""Ports: exits that join, and the rows there; base of the growths in which rows reach many exits.

Soft trees (soft_tree.py) and matryoshki (matryoshki.py) find a split for a port, or replay
that of a model, and open a node there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from pboost._core.voting import NO_VOTE, SplitStep, VoteRule, step_of
from pboost.data.special_columns import is_heavier
from pboost.data.training import TrainingData
from pboost.growth.step import FIXED_BITS, Edges, Growth, asked_at, fixed_scale
from pboost.models.graph import DecisionGraph
from pboost.models.nodes import ABOVE, BELOW, OUT
from pboost.observation.answers import Answers, Observer, Tables, only_exit
from pboost.values import FloatArray
from pboost.weak.base import Cut, Weights

COLLECTS = ("additive", "sign")
#: Fixed-point mass from which on rounding to integers is far below that of sums of real weights.
SURE_MASS = 1 << 50
#: Exponent of the largest scale of weights.
MOST_EXPONENT = 1000
#: Reach below this share of all weight is none: weights are kept from becoming subnormal.
NO_REACH = 1e-250
#: Shares below this are not taken as 1 less the other.
SMALL_SHARE = 1e-6


def share_of(whole: FloatArray, parts: Sequence[FloatArray]) -> FloatArray:
    """Return which share some reaches are of the whole, one half where nobody arrives."""
    arrives = whole > NO_REACH
    found = sum(parts, np.zeros_like(whole)) / np.where(arrives, whole, 1.0)
    return np.where(arrives, found, 0.5).clip(0.0, 1.0)


def rest_of(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return the shares of exit 0, given those of both: large ones as 1 less those of exit 1."""
    rest = 1 - above
    found: FloatArray = np.where(rest < SMALL_SHARE, below, rest)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A weak classifier found for a port, its answers, and the votes of the exits it makes."""

    cut: Cut
    answers: Answers
    step: SplitStep

    def boosted(self) -> FloatArray:
        """Return the boosted class masses (exit, class) after the split."""
        votes = np.array(self.step.votes)[:, None]
        return self.answers.masses * np.exp(votes * [1.0, -1.0])

    @property
    def after(self) -> float:
        """Sum of the bounds of the exits."""
        return float(self.boosted().sum())


@dataclass(slots=True, eq=False)
class Port:
    """Exits that join, and the rows there.

    Attributes
    ----------
    edges : tuple of (node, exit)
        The exits; none at the entrance of the graph.
    masses : tuple of float
        Boosted masses of the two classes, shares of all weight.
    arrives : float
        Reach mass: starting weight times probability of arriving, summed over the rows.
    votes : float
        Votes gathered inside the classifier that is being built; where paths join, their mean.
    weight : ndarray of float64, shape (n,), or what stands for it, or None
        Boosted weights of the rows; None while they are not made.
    reach : ndarray of float64, shape (n,), or what stands for it, or None
        Reach masses of the rows; None where they follow from the weights.
    """

    edges: Edges
    masses: tuple[float, float]
    arrives: float
    votes: float
    weight: Any = None
    reach: Any = None

    @property
    def bound(self) -> float:
        """Part of the certificate that the port carries."""
        return self.masses[0] + self.masses[1]


class PortGrowth(Growth):
    """Base of the growths; parameters are those of `Growth`."""

    def __init__(self, data: TrainingData, observer: Observer, rule: VoteRule) -> None:
        super().__init__(data, observer, rule)
        self.fixed = np.empty(data.n_rows, dtype=np.int64)

    def entrance(self) -> Any:
        """Return the port of the whole graph, with all weight."""
        raise NotImplementedError

    def outside(self, port: Any, others: Iterable[Any]) -> float:
        """Return the certificate of the other open exits, given as ports."""
        return math.fsum(other.bound for other in others)

    def open(self, port: Any, split: Split, outside: float) -> list[Any]:
        """Make a node at a port, and return its two exits.

        `outside` is the certificate of all other exits.
        """
        raise NotImplementedError

    def weights_at(self, port: Any) -> Weights:
        """Return the weights at a port as the search reads them."""
        weights = Weights(port.weight, self.fixed, fixed_scale(port.bound), (0, 0))
        self.search.fill_fixed(weights)
        return weights

    def best(self, port: Any, weights: Weights) -> Cut | None:
        """Return the weak classifier for a port."""
        return self.search.best(weights)

    def side_reach(self, port: Any, cut: Cut, weights: Weights) -> FloatArray:
        """Return the reach masses (side, class) that a cut makes at a port."""
        raise NotImplementedError

    def find(self, port: Any) -> Split | None:
        """Return the best split of a port, None where there is none."""
        weights = self.weights_at(port)
        # Both classes must have weight; what is left of absent rows is 0 in fixed point.
        cut = self.best(port, weights) if min(weights.masses) > 0 else None
        if cut is None:
            return None
        answers = self.observer.ask(cut, weights, lambda: self.side_reach(port, cut, weights))
        return Split(cut, answers, self.rule.step(answers.masses.tolist()))

    def heavier(self, port: Any, split: Split) -> int:
        """Return the exit of a split that more of the reach of a port takes."""
        raise NotImplementedError

    def with_side(self, port: Port, split: Split) -> Split:
        """Return a split as the model is going to have it.

        Rows without a value, and of levels without mass, lie on the side of the heavier exit.
        """
        if not self.search.is_open(split.cut):
            return split
        cut = replace(split.cut, side=self.heavier(port, split))
        return replace(split, cut=cut, answers=split.answers.placed(cut))

    def replay(self, model: DecisionGraph, tables: Tables) -> list[Any]:
        """Open the nodes of a graph as they are; returns its open exits."""
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
            answers = self.observer.given(cut, weights, tables[node])
            split = Split(cut, answers, step_of(answers.masses.tolist(), tuple(votes)))
            for opened in self.open(port, split, self.outside(port, ports.values())):
                ports[opened.edges] = opened
        return list(ports.values())


class Matryoshka(PortGrowth):
    """Base of the growths whose exits join: the reach of each row is kept beside its weight.

    Parameters
    ----------
    data, observer, rule
        As for `PortGrowth`.
    collect : str
        One of `COLLECTS`.
    """

    def __init__(
        self, data: TrainingData, observer: Observer, rule: VoteRule, collect: str
    ) -> None:
        super().__init__(data, observer, rule)
        self.collect = collect
        self.scratch = Weights(np.empty(data.n_rows), self.fixed, 1.0, (0, 0))
        # How likely a row has not paid an item, where it arrives; exact where answers are.
        n_items = 0 if self.priced is None else len(self.priced.unpaid)
        self.unpaid = np.ones((n_items, data.n_rows))

    def entrance(self) -> Port:
        """Return the port of the whole graph, with all weight."""
        self.start = self.first_weights()
        whole = self.noted(self.start, 1.0)
        return self.port((), whole, whole, 0.0)

    def first_weights(self) -> Any:
        """Return the weights of the rows, shares of their sum."""
        return self.data.weight / math.fsum(self.data.weight)

    def port(self, edges: Edges, weight: Weights, reach: Weights, votes: float) -> Port:
        """Return a port with the masses of its weights."""
        masses, arrives = self.class_sums(weight), self.class_sums(reach)
        return Port(edges, masses, arrives[0] + arrives[1], votes, weight.real, reach.real)

    def noted(self, weight: Any, most: float) -> Weights:
        """Return weights whose sum is at most `most`, with their masses."""
        found = Weights(weight, self.fixed, fixed_scale(most), (0, 0))
        self.search.fill_fixed(found)
        return found

    def class_sums(self, weights: Weights) -> tuple[float, float]:
        """Return the sums of weights of the classes: of integers, the same in any order of rows.

        Where there is little mass in the unit of the weights, a finer one is found.
        """
        n, at = len(weights.real), weights
        while sum(at.masses) < SURE_MASS and weights.real.any():
            room = MOST_EXPONENT - math.frexp(at.scale)[1]
            bits = min(FIXED_BITS - (sum(at.masses) + n).bit_length(), room)
            if bits < 1:  # nobody arrives
                break
            at = Weights(at.real, self.fixed, math.ldexp(at.scale, bits), (0, 0))
            self.search.fill_fixed(at)
        negative, positive = at.masses
        return negative / at.scale, positive / at.scale

    def side_reach(self, port: Port, cut: Cut, weights: Weights) -> FloatArray:
        """Return the reach masses (side, class) that a cut makes at a port."""
        reach = self.class_sums(self.noted(port.reach, port.arrives))
        unit = np.ldexp(1.0, -np.frexp(reach)[1])
        return self.search.side_masses(cut, port.reach, self.scratch, unit)

    def best(self, port: Port, weights: Weights) -> Cut | None:
        """Return the weak classifier for a port."""
        if self.priced is not None:
            self.priced.unpaid[:] = (self.unpaid * port.reach).sum(axis=1) / port.arrives
        return super().best(port, weights)

    def pay(self, port: Port, cut: Cut) -> None:
        """Take what the rows at a port pay for a column."""
        assert self.priced is not None
        reach, start = np.asarray(port.reach), np.asarray(self.start)
        arrives = np.divide(reach, start, np.zeros(len(start)), where=start > 0).clip(0.0, 1.0)
        if self.observer.is_exact:
            arrives = np.rint(arrives)
        self.unpaid[self.priced.items(cut.feature)] *= 1.0 - arrives

    def open(self, port: Port, split: Split, outside: float) -> list[Port]:
        """Make a node at a port, and return its two exits."""
        split = self.with_side(port, split)
        if self.priced is not None:
            self.pay(port, split.cut)
        votes, answers, certificate = split.step.votes, split.answers, outside
        ports = []
        for exit_, vote in enumerate(votes):
            # Votes that were made for other rows may raise the weights of these.
            most = port.bound * math.exp(abs(vote))
            boost = only_exit(exit_, np.exp([vote, -vote]))
            weight = self.sent(answers, boost, port.weight, most)
            reach = self.sent(answers, only_exit(exit_, np.ones(2)), port.reach, port.arrives)
            ports.append(self.port(((self.n_nodes, exit_),), weight, reach, vote))
            certificate += ports[-1].bound
        answers.forget()
        heavier = int(is_heavier(ports[ABOVE].arrives, ports[BELOW].arrives))
        self.add_node(
            port.edges, split.cut, votes, answers.table, port.arrives, certificate, heavier
        )
        return ports

    def heavier(self, port: Port, split: Split) -> int:
        """Return the exit of a split that more of the reach of a port takes."""
        below, above = (
            self.class_sums(
                self.sent(split.answers, only_exit(k, np.ones(2)), port.reach, port.arrives)
            )
            for k in (BELOW, ABOVE)
        )
        return int(is_heavier(sum(above), sum(below)))

    def sent(self, answers: Answers, coefficients: FloatArray, source: Any, most: float) -> Weights:
        """Return what answers make of weights whose sum is then at most `most`."""
        target = self.empty(source, fixed_scale(most))
        answers.send(coefficients, source, target)
        return target

    def empty(self, source: object, scale: float) -> Weights:
        """Return where weights are written that are made of others."""
        return Weights(np.empty_like(source), self.fixed, scale, (0, 0))

    def merge(self, ports: list[Port]) -> list[Port]:
        """Collect additively: votes stay, weights and reaches of each group are summed."""
        merged = []
        for group in by_sign(ports):
            if group:
                arrives = math.fsum(port.arrives for port in group)
                mean = math.fsum(port.arrives * port.votes for port in group) / arrives
                merged.append(replace(joined(group), votes=mean))
        return merged

    def collapse(self, ports: list[Port], root: Port, members: Iterable[int]) -> list[Port]:
        """Collect by sign: the nodes `members` become one classifier at `root` with two votes."""
        groups = by_sign(ports)
        answers = self.shares(root.reach, *([port.reach for port in group] for group in groups))
        parts = [root.weight * answer for answer in answers]
        step = self.rule.step([self.class_sums(self.noted(part, root.bound)) for part in parts])
        self.drop_votes(members)
        collapsed = []
        for group, vote, part, answer in zip(groups, step.votes, parts, answers, strict=True):
            if not group:
                continue
            edges = tuple(edge for port in group for edge in port.edges)
            for node, exit_ in edges:
                self.votes[node][exit_] = vote
            boosted = self.boosted(part, math.exp(vote), math.exp(-vote))
            weight = self.noted(boosted, root.bound * math.exp(abs(vote)))
            reach = self.noted(root.reach * answer, root.arrives)
            collapsed.append(self.port(edges, weight, reach, vote))
        return collapsed

    def shares(self, whole: Any, below: list[Any], above: list[Any]) -> tuple[Any, Any]:
        """Return the probabilities of either exit of rows of some reach, given their parts."""
        share = share_of(whole, above)
        return rest_of(share, share_of(whole, below)), share

    def boosted(self, weight: Any, negative: float, positive: float) -> Any:
        """Return weights multiplied by a factor of each class; the array may be the same."""
        middle = self.data.n_negative
        weight[:middle] *= negative
        weight[middle:] *= positive
        return weight


def by_sign(ports: list[Port]) -> tuple[list[Port], list[Port]]:
    """Return the ports whose votes are not positive, and the others.

    Votes that cancel but for rounding are not positive.
    """
    return [p for p in ports if p.votes <= NO_VOTE], [p for p in ports if p.votes > NO_VOTE]


def joined(ports: list[Any]) -> Any:
    """Return one port for several; where their votes differ, it has none."""
    if len(ports) == 1:
        return ports[0]
    return Port(
        tuple(edge for port in ports for edge in port.edges),
        (math.fsum(p.masses[0] for p in ports), math.fsum(p.masses[1] for p in ports)),
        math.fsum(port.arrives for port in ports),
        0.0,
        # One after another: the same for any number of rows, and of ports.
        reduce(add, [port.weight for port in ports]),
        reduce(add, [port.reach for port in ports]),
    )
