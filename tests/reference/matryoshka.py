"""Trees of trees of ... of stumps, and slow evaluation of any decision graph.

A classifier of level 0 is a stump; one of level k is a tree of T_k classifiers of level k-1. Each
is entered through a port, the exits that join there, and leaves ports behind.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reference import gaussian
from reference.adaboost import class_masses
from reference.keys import first_largest, rounded
from reference.soft import NO_VOTE, Nodes, Setting, exit_probabilities


class Port(NamedTuple):
    edges: tuple[tuple[int, int], ...]  # the (node, exit) pairs that join here
    w: np.ndarray
    p: np.ndarray
    H: float  # votes gathered inside the classifier that is being built

    @property
    def bound(self):
        return math.fsum(self.w)


class Builder:
    def __init__(self, setting, shape, collect):
        self.s, self.shape, self.collect = setting, shape, collect
        self.nodes = Nodes()

    def stump(self, port, outside):
        """Add one node at a port; returns its two exits, None if it cannot be split."""
        actual = self.s.search(port.w)
        if actual is None:
            return None
        table, votes, _, after = self.s.split(actual, port.w, port.p)
        node = self.nodes.add(actual, table, votes, math.fsum(self.s.D * port.p))
        for parent, exit_ in port.edges:
            self.nodes.next[parent][exit_] = node
        ports = [Port(((node, a),), w, p, votes[a]) for a, (w, p) in enumerate(after)]
        self.nodes.certificate.append(outside + sum(port.bound for port in ports))
        return ports

    def classifier(self, level, port, outside):
        """Build a classifier at a port; `outside`: the certificate of all exits outside it."""
        if level == 0:
            return self.stump(port, outside)
        first = len(self.nodes.feature)
        ports = self.tree(level, port, outside)
        if ports is None:
            return None
        if self.collect == "additive":
            ports = self.merge(ports)
        else:
            ports = self.collapse(ports, port, range(first, len(self.nodes.vote)))
        self.nodes.certificate[-1] = outside + sum(port.bound for port in ports)
        return ports

    def tree(self, level, entrance, outside):
        """Grow a tree at a port: the next classifier where the bound is largest."""
        ports, stuck = [entrance._replace(H=0.0)], set()
        size = 0
        while size < self.shape[level - 1]:
            able = [i for i, port in enumerate(ports) if port.edges not in stuck]
            if not able:
                break
            chosen = ports[able[first_largest([rounded(ports[i].bound) for i in able])]]
            others = [port for port in ports if port is not chosen]
            rest = outside + sum(port.bound for port in others)
            parts = self.classifier(level - 1, chosen, rest)
            if parts is None:
                stuck.add(chosen.edges)
            else:
                ports = others + [part._replace(H=chosen.H + part.H) for part in parts]
                size += 1
        return ports if size else None

    def merge(self, ports):
        """Additive collecting: votes stay, the weights and reaches of each group are summed."""
        merged = []
        for group in by_sign(ports):
            if group:
                arrive = [math.fsum(self.s.D * port.p) for port in group]
                # Paths that join have gathered different votes: their mean stands for them.
                mean = sum(a * port.H for a, port in zip(arrive, group, strict=True)) / sum(arrive)
                merged.append(join(group, mean))
        return merged

    def collapse(self, ports, root, nodes):
        """Literal collecting: the sub-tree is one weak classifier that answers its sign."""
        groups = by_sign(ports)
        plus = sum((port.p for port in groups[1]), np.zeros(len(root.p)))
        arrives = root.p > 0
        q = np.where(arrives, plus / np.where(arrives, root.p, 1), 0.5)
        masses = [class_masses(root.w * part, self.s.y, True) for part in (1 - q, q)]
        votes = self.s.rule(masses, *self.s.rates)
        for node in nodes:
            self.nodes.vote[node] = [0.0, 0.0]
        collapsed = []
        for group, vote, part in zip(groups, votes, (1 - q, q), strict=True):
            if group:
                full = join(group, vote)
                for node, exit_ in full.edges:
                    self.nodes.vote[node][exit_] = vote
                collapsed.append(full._replace(w=root.w * part * np.exp(-vote * self.s.y)))
        return collapsed


def by_sign(ports):
    """Return the ports of either answer; votes that cancel but for rounding are none."""
    return [p for p in ports if p.H <= NO_VOTE], [p for p in ports if p.H > NO_VOTE]


def join(ports, H):
    """Return one port for several."""
    edges = tuple(edge for port in ports for edge in port.edges)
    return Port(edges, sum(port.w for port in ports), sum(port.p for port in ports), H)


def fit_matryoshka(X, y, *, shape, collect="additive", join_="sign", **options):
    s = Setting(X, y, **options)
    builder = Builder(s, shape, collect)
    port = Port((), s.D.copy(), np.ones(len(s.y)), 0.0)
    if join_ == "sign":
        builder.tree(len(shape), port, 0.0)
    else:
        for _ in range(shape[-1]):
            below = len(shape) - 1
            ports = builder.tree(below, port, 0.0) if below else builder.stump(port, 0.0)
            if ports is None:
                break
            port = join(ports, 0.0)
    return builder.nodes.graph(s)


# Evaluation of any graph with arrays feature, threshold, next, vote, answer


def answers(graph, X, y, node):
    """Return the probability of either exit of a node for each row."""
    x, threshold = np.asarray(X)[:, graph.feature[node]], graph.threshold[node]
    if graph.sigma is not None:
        return gaussian.exit_probabilities(x, threshold, graph.sigma[:, graph.feature[node]])
    above = x > threshold
    return exit_probabilities(np.asarray(graph.answer[node]), above, np.asarray(y))


def propagate(graph, X, y, factor):
    """Push one number per row through the graph, times q and `factor(vote)` at each exit.

    Returns what arrives at each node, (n, n_nodes), and what leaves in all, (n,).
    """
    n_nodes = len(graph.feature)
    arriving, leaving = np.zeros((len(X), n_nodes)), np.zeros(len(X))
    if n_nodes == 0:
        return arriving, leaving + 1
    arriving[:, 0] = 1
    for node in range(n_nodes):
        for a, q in enumerate(answers(graph, X, y, node)):
            onward = arriving[:, node] * q * factor(graph.vote[node][a])
            target = graph.next[node][a]
            if target < 0:
                leaving += onward
            else:
                arriving[:, target] += onward
    return arriving, leaving


def reach(graph, X, y):
    return propagate(graph, X, y, lambda vote: 1.0)[0]


def expected_votes(graph, X, y):
    """Return E[H] of each row."""
    arriving, H = reach(graph, X, y), np.full(len(X), float(graph.bias))
    for node in range(len(graph.feature)):
        for a, q in enumerate(answers(graph, X, y, node)):
            H += arriving[:, node] * q * graph.vote[node][a]
    return H


def certificate(graph, X, y, weight=None):
    """Return the sum of D p exp(-H y) over rows and paths."""
    D = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    y = np.asarray(y)
    _, leaving = propagate(graph, X, y, lambda vote: np.exp(-vote * y))
    return math.fsum(D * leaving * np.exp(-graph.bias * y)) / math.fsum(D)


def paths(graph, X, y):
    """Yield (p, H) of every path from the root out: p (n,), H a number. For small graphs."""

    def walk(node, p, H):
        if node < 0:
            yield p, H
            return
        for a, q in enumerate(answers(graph, X, y, node)):
            yield from walk(graph.next[node][a], p * q, H + graph.vote[node][a])

    yield from walk(0 if len(graph.feature) else -1, np.ones(len(X)), float(graph.bias))
