"""Matryoshki whose sub-trees are collected where that makes the bound fall faster.

Everything about a sub-tree is found anew after every node.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import digamma

from reference.keys import first_largest, rounded
from reference.matryoshka import Builder, Port
from reference.soft import Setting

#: Rates that differ by less are equal.
EQUAL_RATES = 1e-12


class Exit:
    """An exit of a super-node: a port, and the super-node to which it leads."""

    def __init__(self, port):
        self.port, self.below, self.stuck = port, None, False


class SuperNode:
    """A weak classifier, or what was collected: where it starts, its exits, the nodes inside."""

    def __init__(self, root, ports, nodes):
        self.root, self.exits, self.nodes = root, [Exit(port) for port in ports], nodes

    def leaves(self, H=0.0):
        """Yield the open exits of the sub-tree, and the votes gathered from its root on."""
        for exit_ in self.exits:
            gathered = H + exit_.port.H
            if exit_.below is None:
                yield exit_, gathered
            else:
                yield from exit_.below.leaves(gathered)

    def inside(self):
        """Return the weak classifiers of the sub-tree."""
        below = [exit_.below.inside() for exit_ in self.exits if exit_.below is not None]
        return sorted(sum(below, list(self.nodes)))

    def bound(self):
        """Return its part of the certificate."""
        return math.fsum(exit_.port.bound for exit_, _ in self.leaves())

    def path_to(self, wanted):
        """Return the super-nodes from here to the one that has an exit."""
        for exit_ in self.exits:
            if exit_ is wanted:
                return [self]
            if exit_.below is not None and (path := exit_.below.path_to(wanted)):
                return [self, *path]
        return []


def decreases(T, C, before):
    """Return the rates of the simple tree and of the matryoshka."""
    return C - before, C / T * (np.euler_gamma + digamma(1 + C) - 1)


def fit_greedy(X, y, *, max_nodes, collect="additive", **options):
    """Return the graph, and how many nodes each sub-tree had that was collected."""
    s = Setting(X, y, **options)
    builder = Builder(s, (), collect)
    entrance = Exit(Port((), s.D.copy(), np.ones(len(s.y)), 0.0))
    exits, sizes = [entrance], []
    while len(builder.nodes.feature) < max_nodes:
        able = [exit_ for exit_ in exits if not exit_.stuck]
        if not able:
            break
        chosen = able[first_largest([rounded(exit_.port.bound) for exit_ in able])]
        others = [exit_ for exit_ in exits if exit_ is not chosen]
        ports = builder.stump(chosen.port, math.fsum(exit_.port.bound for exit_ in others))
        if ports is None:
            chosen.stuck = True
            continue
        path = [] if chosen is entrance else entrance.below.path_to(chosen)
        before = [super_node.bound() for super_node in path] + [chosen.port.bound]
        chosen.below = SuperNode(chosen.port, ports, [len(builder.nodes.feature) - 1])
        exits = others + chosen.below.exits
        for super_node, was in zip([*path, chosen.below], before, strict=True):
            T, leaves = len(super_node.inside()), list(super_node.leaves())
            share = 1 / super_node.root.bound
            simple, matryoshka = decreases(T, min(super_node.bound() * share, 1), was * share)
            if T >= 2 and len(leaves) >= 3 and matryoshka < simple - EQUAL_RATES:
                collect_at(builder, super_node)
                gone = [exit_ for exit_, _ in leaves]
                exits = [exit_ for exit_ in exits if exit_ not in gone] + super_node.exits
                builder.nodes.certificate[-1] = math.fsum(exit_.port.bound for exit_ in exits)
                sizes.append(T)
                break
    return builder.nodes.graph(s), sizes


def collect_at(builder, super_node):
    ports = [exit_.port._replace(H=H) for exit_, H in super_node.leaves()]
    nodes = super_node.inside()
    if builder.collect == "additive":
        ports = builder.merge(ports)
    else:
        ports = builder.collapse(ports, super_node.root, nodes)
    super_node.__init__(super_node.root, ports, nodes)
