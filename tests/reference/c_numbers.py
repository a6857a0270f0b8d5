"""What C files in small numbers compute, one row at a time: int16, and votes of float32."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction

import numpy as np

#: What a missing value is.
MISSING = -32768


def point_below(threshold, offset, step):
    """Return the last point of a column's grid that is not above a threshold, by its number."""
    points = range(MISSING + 1, 2**15)
    return MISSING + bisect_right(points, threshold, key=lambda q: offset + step * q)


def votes_of(graph, shift):
    """Return the votes (n_nodes, 2) of a graph, and its bias, counted in 2**-shift."""
    unit = Fraction(2) ** -shift

    def rounded(vote):
        return round(Fraction(vote) / unit)  # to the even one of two

    return [[rounded(v) for v in pair] for pair in graph.vote.tolist()], rounded(graph.bias)


def graph_score(graph, q, offset, step, shift):
    """Return the sum of the votes that a row q of whole numbers meets."""
    votes, total = votes_of(graph, shift)
    node = 0 if graph.n_nodes else -1
    while node >= 0:
        column = int(graph.feature[node])
        edge = point_below(float(graph.threshold[node]), offset[column], step[column])
        side = int(graph.missing[node] > 0.5) if q[column] == MISSING else int(q[column] > edge)
        total += votes[node][side]
        assert -(2**31) <= total < 2**31
        node = int(graph.next[node, side])
    return total


def left_score(model, q, offset, step, shift, terms, places):
    """Return the sum of votes with which a row q leaves, times the slope in 2**-places.

    And the number of joints by then.
    """
    graph = model.model
    votes, total = votes_of(graph, shift)
    joints = [0, *joints_of(graph.next)]
    node = 0
    while node >= 0:
        if node in joints:
            t = joints.index(node)
            if abs(total) >= _exact(model.threshold[t]) * 2**shift - Fraction(terms, 2):
                slope = round(Fraction(float(model.slope[t])) * 2**places)
                size = abs(total) * slope // 2**places
                return (size if total > 0 else -size), t
        column = int(graph.feature[node])
        edge = point_below(float(graph.threshold[node]), offset[column], step[column])
        side = int(graph.missing[node] > 0.5) if q[column] == MISSING else int(q[column] > edge)
        total += votes[node][side]
        node = int(graph.next[node, side])
    return total, len(joints)


def _exact(number):
    """Return a number as a fraction; of infinity one that no sum has."""
    return Fraction(float(number)) if math.isfinite(number) else Fraction(2**63)


def joints_of(next_):
    """Return the nodes after the first through which every path leads."""
    actual, furthest = [], 0
    for node, pair in enumerate(next_.tolist()):
        if node and node == furthest:
            actual.append(node)
        furthest = max(furthest, *(len(next_) if to < 0 else to for to in pair))
    return actual


def single_left_score(model, row):
    """Return the sum in float32 with which a row of float32 leaves, times the slope in double."""
    graph = model.model
    joints, total, node = [0, *joints_of(graph.next)], np.float32(graph.bias), 0
    while node >= 0:
        if node in joints:
            t = joints.index(node)
            if abs(float(total)) >= model.threshold[t]:
                return np.float32(float(total) * float(model.slope[t]))
        value, edge = float(row[graph.feature[node]]), float(graph.threshold[node])
        side = int(graph.missing[node] > 0.5) if math.isnan(value) else int(value > edge)
        total = np.float32(total + np.float32(graph.vote[node, side]))
        node = int(graph.next[node, side])
    return total


def largest_shift(graph):
    """Return the largest shift with which the sums of sizes, and what exits differ by, fit."""
    ahead = {-1: 0.0}
    for node in range(graph.n_nodes - 1, -1, -1):
        ahead[node] = max(
            abs(v) + ahead[k]
            for v, k in zip(graph.vote[node].tolist(), graph.next[node].tolist(), strict=True)
        )
    largest = abs(graph.bias) + ahead[0]
    if graph.is_chain:
        largest = max(largest, *(abs(b - a) for a, b in graph.vote.tolist()))
    return math.floor(math.log2(2**31 / largest))


def single_score(graph, row):
    """Return the sum in float32 of votes of float32 that a row of float32 meets."""
    total = np.float32(graph.bias)
    node = 0 if graph.n_nodes else -1
    while node >= 0:
        value, edge = float(row[graph.feature[node]]), float(graph.threshold[node])
        side = int(graph.missing[node] > 0.5) if math.isnan(value) else int(value > edge)
        total = np.float32(total + np.float32(graph.vote[node, side]))
        node = int(graph.next[node, side])
    return total
