"""Growth of matryoshki, with a given shape or greedily.

A classifier of level 0 is a weak classifier, and a classifier of level k is a tree of classifiers
of level k - 1. A port is a set of merged exits. Each classifier starts at one port and ends in two
ports, one for each output.

Greedy growth decides after each node whether to merge the exits of a subtree. It stores the graph
as a tree of *super-nodes*, which are weak classifiers or merged subtrees. A subtree is a super-node
and everything below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from pboost._core.voting import NO_VOTE, VoteRule, rounded_key
from pboost.bounds import rate_matryoshka
from pboost.data.columns.prebuilt import is_heavier
from pboost.data.training_data import TrainingData
from pboost.growth.graph_growth import (
    ALL_OPENED,
    FIXED_BITS,
    NO_EXIT,
    STOPPED,
    BestFirst,
    Callback,
    Edges,
    TreeLimits,
    fixed_scale,
)
from pboost.growth.soft_tree import Port, PortGrowth, PortSplit, joined
from pboost.models.graph import DecisionGraph
from pboost.models.graph_arrays import ABOVE, BELOW
from pboost.observation.answers import Answers, Observer, Tables, only_exit
from pboost.values import INT32_MAX, FloatArray
from pboost.weak.base import Cut, Weights

Collect: TypeAlias = Literal["additive", "sign"]
COLLECTS: tuple[Collect, ...] = get_args(Collect)
Join: TypeAlias = Literal["sign", "all"]
JOINS: tuple[Join, ...] = get_args(Join)


#: Rounding of weights is negligible if their fixed-point sum is at least this large.
SURE_MASS = 1 << 50
#: Exponent of the largest scale of weights.
MOST_EXPONENT = 1000
#: A reach below this fraction of the total weight counts as 0, so that weights are not subnormal.
NO_REACH = 1e-250
#: Shares of exit 0 below this are computed directly, since 1 minus a share would be inaccurate.
SMALL_SHARE = 1e-6


def share_of(total: FloatArray, parts: Sequence[FloatArray]) -> FloatArray:
    """Return the sum of the parts relative to the total, or 0.5 if the total is 0."""
    arrives = total > NO_REACH
    share = sum(parts, np.zeros_like(total)) / np.where(arrives, total, 1.0)
    return np.where(arrives, share, 0.5).clip(0.0, 1.0)


def rest_of(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return the shares of exit 0: 1 minus the shares of exit 1, unless this is inaccurate."""
    rest = 1 - above
    shares: FloatArray = np.where(rest < SMALL_SHARE, below, rest)
    return shares


class Matryoshka(PortGrowth):
    """Base class of growth with merged exits, which stores the reach and weight of each row.

    Parameters
    ----------
    data, observer, rule
        See `PortGrowth`.
    collect : str
        One of `COLLECTS`.
    """

    def __init__(
        self, data: TrainingData, observer: Observer, rule: VoteRule, collect: str
    ) -> None:
        super().__init__(data, observer, rule)
        self.collect = collect
        self.scratch = Weights(np.empty(data.n_rows), self.fixed, 1.0, (0, 0))
        # Probability that a row has not yet paid for a feature or cost group if it reaches the
        # port.
        n_items = 0 if self.cost_search is None else len(self.cost_search.unpaid)
        self.unpaid = np.ones((n_items, data.n_rows))

    def entrance(self) -> Port:
        """Return the port at the entrance of the graph, which all rows reach."""
        self.start = self.first_weights()
        weights = self.noted(self.start, 1.0)
        return self.port((), weights, weights, 0.0)

    def first_weights(self) -> Any:
        """Return the weights of the rows, relative to their sum."""
        return self.data.weight / math.fsum(self.data.weight)

    def port(self, edges: Edges, weight: Weights, reach: Weights, votes: float) -> Port:
        """Return a port with the class sums of its weights."""
        masses, arrives = self.class_sums(weight), self.class_sums(reach)
        return Port(edges, masses, arrives[0] + arrives[1], votes, weight.real, reach.real)

    def noted(self, weight: Any, max_sum: float) -> Weights:
        """Return weights, with a sum of at most `max_sum`, and their fixed-point values."""
        weights = Weights(weight, self.fixed, fixed_scale(max_sum), (0, 0))
        self.search.fill_fixed(weights)
        return weights

    def class_sums(self, weights: Weights) -> tuple[float, float]:
        """Return the class weights, summed as integers so that the order of rows does not matter.

        If the sums are small in the current unit, a finer unit is used.
        """
        n, at = len(weights.real), weights
        while sum(at.masses) < SURE_MASS and weights.real.any():
            room = MOST_EXPONENT - math.frexp(at.scale)[1]
            bits = min(FIXED_BITS - (sum(at.masses) + n).bit_length(), room)
            if bits < 1:  # no row reaches the port
                break
            at = Weights(at.real, self.fixed, math.ldexp(at.scale, bits), (0, 0))
            self.search.fill_fixed(at)
        negative, positive = at.masses
        return negative / at.scale, positive / at.scale

    def side_reach(self, port: Port, cut: Cut, weights: Weights) -> FloatArray:
        """Return the reach (side, class) of the two sides of a split at a port."""
        reach = self.class_sums(self.noted(port.reach, port.arrives))
        unit = np.ldexp(1.0, -np.frexp(reach)[1])
        return self.search.side_masses(cut, port.reach, self.scratch, unit)

    def best(self, port: Port, weights: Weights) -> Cut | None:
        """Return the best weak classifier for a port."""
        if self.cost_search is not None:
            self.cost_search.unpaid[:] = (self.unpaid * port.reach).sum(axis=1) / port.arrives
        return super().best(port, weights)

    def pay(self, port: Port, cut: Cut) -> None:
        """Update the probabilities that rows have not yet paid for a feature."""
        assert self.cost_search is not None
        reach, start = np.asarray(port.reach), np.asarray(self.start)
        arrives = np.divide(reach, start, np.zeros(len(start)), where=start > 0).clip(0.0, 1.0)
        if self.observer.is_exact:
            arrives = np.rint(arrives)
        self.unpaid[self.cost_search.items(cut.feature)] *= 1.0 - arrives

    def open(self, port: Port, split: PortSplit, outside: float) -> list[Port]:
        """Add a node at a port; return its two exits."""
        split = self.with_side(port, split)
        if self.cost_search is not None:
            self.pay(port, split.cut)
        votes, answers, certificate = split.step.votes, split.answers, outside
        ports = []
        for exit_, vote in enumerate(votes):
            # The votes were computed for other rows, so the weights of these rows can increase.
            max_sum = port.bound * math.exp(abs(vote))
            boost = only_exit(exit_, np.exp([vote, -vote]))
            weight = self.sent(answers, boost, port.weight, max_sum)
            reach = self.sent(answers, only_exit(exit_, np.ones(2)), port.reach, port.arrives)
            ports.append(self.port(((self.n_nodes, exit_),), weight, reach, vote))
            certificate += ports[-1].bound
        answers.forget()
        heavier = int(is_heavier(ports[ABOVE].arrives, ports[BELOW].arrives))
        self.add_node(
            port.edges, split.cut, votes, answers.table, port.arrives, certificate, heavier
        )
        return ports

    def heavier(self, port: Port, split: PortSplit) -> int:
        """Return the exit of a split with the larger reach."""
        below, above = (
            self.class_sums(
                self.sent(split.answers, only_exit(k, np.ones(2)), port.reach, port.arrives)
            )
            for k in (BELOW, ABOVE)
        )
        return int(is_heavier(sum(above), sum(below)))

    def sent(
        self, answers: Answers, coefficients: FloatArray, source: Any, max_sum: float
    ) -> Weights:
        """Return weights after a split; their sum is at most `max_sum`."""
        target = self.empty(source, fixed_scale(max_sum))
        answers.send(coefficients, source, target)
        return target

    def empty(self, source: object, scale: float) -> Weights:
        """Return an empty array for new weights."""
        return Weights(np.empty_like(source), self.fixed, scale, (0, 0))

    def merge(self, ports: list[Port]) -> list[Port]:
        """Merge ports with the same sign of votes; keep the votes, add weights and reaches."""
        merged = []
        for group in by_sign(ports):
            if group:
                arrives = math.fsum(port.arrives for port in group)
                mean = math.fsum(port.arrives * port.votes for port in group) / arrives
                merged.append(replace(joined(group), votes=mean))
        return merged

    def collapse(self, ports: list[Port], root: Port, members: Iterable[int]) -> list[Port]:
        """Merge ports by sign: the nodes `members` become one classifier with two votes."""
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

    def shares(self, total: Any, below: list[Any], above: list[Any]) -> tuple[Any, Any]:
        """Return the probability of each exit for each row: reach divided by total reach."""
        share = share_of(total, above)
        return rest_of(share, share_of(total, below)), share

    def boosted(self, weight: Any, negative: float, positive: float) -> Any:
        """Return weights multiplied by a factor per class, possibly in place."""
        middle = self.data.n_negative
        weight[:middle] *= negative
        weight[middle:] *= positive
        return weight


def by_sign(ports: list[Port]) -> tuple[list[Port], list[Port]]:
    """Return the ports with votes <= 0 and the ports with positive votes.

    Votes within the rounding error of 0 are treated as 0.
    """
    return [p for p in ports if p.votes <= NO_VOTE], [p for p in ports if p.votes > NO_VOTE]


class GrowthStopped(Exception):  # noqa: N818
    """Exception that ends nested calls when the callback stops growth."""


class NestedGrowth(Matryoshka):
    """Grows a matryoshka of a given shape, from the entrance or from the open exits of a graph.

    Parameters
    ----------
    data, observer, rule, collect
        See `Matryoshka`.
    shape : tuple of int
        Number of nodes of the trees of each level, innermost first.
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
        self.incomplete = "the shape is incomplete, since some exits could not be split"
        self.ports: list[Port] = []

    def replay(self, model: DecisionGraph, tables: Tables) -> list[Port]:
        """Add the nodes of an existing graph; growth continues at its open exits."""
        self.ports = super().replay(model, tables)
        self.incomplete = NO_EXIT
        return self.ports

    def grow(self, callback: Callback | None) -> str:
        """Grow all classifiers of the shape; return the stop reason."""
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
        """Add a chain of classifiers of the level below."""
        for _ in range(self.shape[-1]):
            ports = self.tree(depth - 1, port, 0.0) if depth > 1 else self.node(port, 0.0)
            if ports is None:
                return
            port = joined(ports)

    def classifier(self, level: int, port: Port, outside: float) -> list[Port] | None:
        """Add a classifier of a level at a port; return None if no node can be added.

        `outside` is the sum of the bounds of all exits outside the classifier.
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
        """Grow a tree of classifiers at a port, always at the open exit with the largest bound."""
        entrances = [replace(entrance, votes=0.0)]
        ports, size = self.expand(level, entrances, self.shape[level - 1], outside)
        return ports if size else None

    def expand(
        self, level: int, ports: list[Port], limit: int, outside: float
    ) -> tuple[list[Port], int]:
        """Add up to `limit` classifiers of the level below, at the ports with the largest bounds.

        Return the open ports and the number of classifiers.
        """
        stuck: set[tuple[tuple[int, int], ...]] = set()
        size = 0
        while size < limit:
            able = [port for port in ports if port.edges not in stuck]
            if not able:
                break
            chosen = max(able, key=lambda port: rounded_key(port.bound))  # ties: the first
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
        """Add a node at a port and call the callback; return None if the port cannot be split."""
        split = self.find(port)
        if split is None:
            return None
        ports = self.open(port, split, outside)
        if self.callback is not None and self.callback(self.n_nodes, self.newest(port.bound)):
            raise GrowthStopped
        return ports


#: Tolerance for equal rates.
NO_GAIN = 1e-12


@dataclass(slots=True, eq=False)
class SuperNode:
    """A weak classifier or a merged subtree, with sums over everything below it.

    Attributes
    ----------
    above : SuperNode or None
        The super-node whose exit leads to this super-node.
    votes : float
        Votes of the exit of `above`.
    entered : float
        Bound of the port at which this super-node starts.
    root : Port or None
        The port at which this super-node starts, if its weights are needed for a merge.
    members : list of int
        Nodes of the subtree.
    n_open : int
        Number of open exits of the subtree.
    bound : float
        Sum of the bounds of these exits.
    """

    above: SuperNode | None
    votes: float
    entered: float
    root: Port | None
    members: list[int]
    n_open: int
    bound: float

    def upwards(self) -> Iterator[SuperNode]:
        """Yield the super-node and its ancestors, up to the root."""
        at: SuperNode | None = self
        while at is not None:
            yield at
            at = at.above

    def should_be_collected(self, change: float) -> bool:
        """Return whether merging this subtree lowers the bound faster than adding more nodes.

        `change` is the change of the bound by the latest node.
        """
        if len(self.members) < 2 or self.n_open < 3:
            return False
        certificate = min(max(self.bound / self.entered, 0.0), 1.0)
        rate = float(rate_matryoshka(len(self.members), certificate))
        return rate < change / self.entered - NO_GAIN


@dataclass(slots=True, eq=False)
class OpenExit:
    """An open exit of a super-node. The votes of its port are summed inside the super-node."""

    serial: int
    port: Port
    owner: SuperNode | None
    split: PortSplit | None = None

    @property
    def bound(self) -> float:
        """Part of the certificate at the exit."""
        return self.port.bound


class GreedyGrowth(Matryoshka, BestFirst):
    """Grows a matryoshka without a given shape.

    Parameters
    ----------
    data, observer, rule, collect
        See `Matryoshka`.
    size : int
        Maximum number of nodes.
    """

    def __init__(
        self, data: TrainingData, observer: Observer, rule: VoteRule, collect: str, size: int
    ) -> None:
        super().__init__(data, observer, rule, collect)
        self.limits, self.heap = TreeLimits(size, INT32_MAX, "largest_bound", -1.0), []
        self.exits: list[OpenExit] = []
        self.serial = count()
        self.replace_exits([], [self.entrance()], None)

    def replace_exits(
        self, others: list[OpenExit], ports: list[Port], owner: SuperNode | None
    ) -> None:
        """Replace the open exits with `others` and the new exits of a super-node."""
        opened = [OpenExit(next(self.serial), port, owner) for port in ports]
        self.exits = others + opened
        for exit_ in opened:
            self.push(exit_)

    def find(self, exit_: OpenExit) -> PortSplit | None:
        """Return the best split of an exit, or None if there is none."""
        return super().find(exit_.port)

    def split(self, exit_: OpenExit) -> None:
        """Turn an exit with a split into a node, and merge a subtree if this pays off."""
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
        """Merge the exits of a subtree, which becomes one super-node."""
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
