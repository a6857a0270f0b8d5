"""Places for the nodes of a graph in a picture: layers by depth, and few crossings.

K. Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of hierarchical system
structures", IEEE Trans. Systems, Man, and Cybernetics 11 (1981).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pboost.models.nodes import OUT
from pboost.values import FloatArray, IntArray

#: Bends of all edges together, above which edges are straight.
MOST_BENDS = 20_000
#: Times that the layers are put in order, and that items are moved along their layer.
SWEEPS, MOVES = 12, 12


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things stand; x grows to the right, layers are numbered from the top.

    Attributes
    ----------
    x : ndarray of float64, shape (n_items,)
        Middles of the items: the nodes, then each exit that leads out of the graph.
    layer : ndarray of int32, shape (n_items,)
        Number of the layer of each.
    out : dict of (int, int) to int
        The items of the exits that lead out, by node and exit.
    way : dict of (int, int) to list of (float, int)
        For each exit the places (x, layer) that its edge passes, from the node to where it leads.
    width : float
        From the left edge, 0, to the right edge of all.
    crossings : int
        How often edges cross.
    """

    x: FloatArray
    layer: IntArray
    out: dict[tuple[int, int], int]
    way: dict[tuple[int, int], list[tuple[float, int]]]
    width: float
    crossings: int


def depths_of(next_: IntArray) -> list[int]:
    """Return the number of nodes on the longest path to each node; parents come first."""
    depth = [0] * len(next_)
    for node, leads in enumerate(next_.tolist()):
        for to in leads:
            if to != OUT:
                depth[to] = max(depth[to], depth[node] + 1)
    return depth


def lay_out(
    next_: IntArray, width: Sequence[float], out_width: Sequence[Sequence[float]], bend: float
) -> Layout:
    """Return places for nodes with exits `next_` (n, 2), parents first, that take this width.

    `out_width` (n, 2) is what the ends take of exits that lead out of the graph, `bend` what an
    edge takes where it passes a layer.
    """
    n, layer, widths = len(next_), depths_of(next_), list(width)
    out = _ends(next_, layer, widths, out_width)
    n_items = len(widths)
    chains = _chains(next_, out, layer, widths, bend)
    down: list[list[int]] = [[] for _ in widths]
    up: list[list[int]] = [[] for _ in widths]
    for chain in chains.values():
        for a, b in pairwise(chain):
            if layer[b] == layer[a] + 1:
                down[a].append(b)
                up[b].append(a)
    rows, crossings = _ordered(_first_order(chains, layer, n), up, down)
    x = _moved(rows, up, down, widths)
    left = min((x[i] - widths[i] / 2 for i in range(len(x))), default=0.0)
    right = max((x[i] + widths[i] / 2 for i in range(len(x))), default=0.0)
    place = [at - left for at in x]
    way = {key: [(place[i], layer[i]) for i in chain] for key, chain in chains.items()}
    return Layout(
        np.array(place[:n_items]),
        np.array(layer[:n_items], np.int32),
        out,
        way,
        right - left,
        crossings,
    )


def _ends(
    next_: IntArray, layer: list[int], widths: list[float], out_width: Sequence[Sequence[float]]
) -> dict[tuple[int, int], int]:
    """Return items for the exits that lead out, and add their layers and widths."""
    out: dict[tuple[int, int], int] = {}
    for node, exit_ in np.argwhere(next_ == OUT).tolist():
        out[node, exit_] = len(widths)
        widths.append(out_width[node][exit_])
        layer.append(layer[node] + 1)
    return out


def _chains(
    next_: IntArray,
    out: dict[tuple[int, int], int],
    layer: list[int],
    widths: list[float],
    bend: float,
) -> dict[tuple[int, int], list[int]]:
    """Return the items on the way of each exit, and add the layers and widths of its bends."""
    ends = {
        (node, exit_): out[node, exit_] if to == OUT else to
        for node, leads in enumerate(next_.tolist())
        for exit_, to in enumerate(leads)
    }
    n_bends = sum(layer[to] - layer[node] - 1 for (node, _), to in ends.items())
    chains: dict[tuple[int, int], list[int]] = {}
    for (node, exit_), to in ends.items():
        chain = [node]
        if n_bends <= MOST_BENDS:
            for between in range(layer[node] + 1, layer[to]):
                chain.append(len(widths))
                widths.append(bend)
                layer.append(between)
        chains[node, exit_] = [*chain, to]
    return chains


def _first_order(
    chains: dict[tuple[int, int], list[int]], layer: list[int], n: int
) -> list[list[int]]:
    """Return the items of each layer as they are met first, depth first, exit 0 before exit 1."""
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    seen, waiting = set(), [0] if n else []
    while waiting:
        item = waiting.pop()
        if item in seen:
            continue
        seen.add(item)
        rows[layer[item]].append(item)
        if (item, 0) in chains:
            for exit_ in (1, 0):
                waiting += chains[item, exit_][:0:-1]
    return rows


def _ordered(
    rows: list[list[int]], up: list[list[int]], down: list[list[int]]
) -> tuple[list[list[int]], int]:
    """Return the layers in the order with the fewest crossings that sweeps have found, and these.

    In a sweep each layer is sorted by the mean places of the neighbours in the layer before.
    """
    best, fewest = [list(row) for row in rows], crossings_of(rows, down)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        near = up if sweep % 2 == 0 else down
        for at in range(1, len(rows)) if near is up else range(len(rows) - 2, -1, -1):
            beside = rows[at - 1 if near is up else at + 1]
            place = {item: float(k) for k, item in enumerate(beside)}
            mean = {
                item: sum(place[other] for other in near[item]) / len(near[item])
                if near[item]
                else float(k)
                for k, item in enumerate(rows[at])
            }
            rows[at] = sorted(rows[at], key=mean.__getitem__)
        now = crossings_of(rows, down)
        if now < fewest:
            best, fewest = [list(row) for row in rows], now
    return best, fewest


def crossings_of(rows: list[list[int]], down: list[list[int]]) -> int:
    """Return how often edges between neighbouring layers cross, given the items in order."""
    total = 0
    for above, below in pairwise(rows):
        place = {item: k for k, item in enumerate(below)}
        passed: list[int] = []
        for item in above:
            ends = sorted(place[other] for other in down[item])
            total += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return total


def _moved(
    rows: list[list[int]], up: list[list[int]], down: list[list[int]], widths: list[float]
) -> list[float]:
    """Return places of the items along their layers, near to those of their neighbours."""
    x = [0.0] * len(widths)
    for row in rows:
        _settle(x, row, [0.0] * len(row), widths)
    for move in range(MOVES):
        near = up if move % 2 == 0 else down  # children last: parents stand over their middle
        for row in rows if near is up else rows[::-1]:
            wanted = [
                sum(x[other] for other in near[item]) / len(near[item]) if near[item] else x[item]
                for item in row
            ]
            _settle(x, row, wanted, widths)
    return x


def _settle(x: list[float], row: list[int], wanted: list[float], widths: list[float]) -> None:
    """Put items of a layer, in order and apart by their widths, as near as can be to places wanted.

    The sum of the squared distances is least: of neighbours that would overlap, blocks are made
    (pool adjacent violators).
    """
    offset = 0.0
    blocks: list[tuple[float, int]] = []
    offsets = []
    for k, item in enumerate(row):
        if k:
            offset += (widths[row[k - 1]] + widths[item]) / 2
        offsets.append(offset)
        total, count = wanted[k] - offset, 1
        while blocks and blocks[-1][0] * count > total * blocks[-1][1]:
            before, size = blocks.pop()
            total, count = total + before, count + size
        blocks.append((total, count))
    at = 0
    for total, count in blocks:
        for k in range(at, at + count):
            x[row[k]] = total / count + offsets[k]
        at += count
