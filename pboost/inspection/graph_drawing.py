"""Layered drawings of graphs and trees with matplotlib."""

from __future__ import annotations

import textwrap
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pboost.inspection.plots import axes_or_new
from pboost.models.graph_arrays import OUT
from pboost.values import FloatArray, IntArray, check_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Maximum number of edge bends; with more, all edges are drawn as straight lines.
MOST_BENDS = 20_000
#: Number of passes that reorder the items of each layer, and of passes that move the items.
SWEEPS, MOVES = 12, 12


@dataclass(frozen=True, slots=True)
class DrawingLayout:
    """Positions of nodes and edges. x grows to the right, and layer 0 is at the top.

    Attributes
    ----------
    x : ndarray of float64, shape (n_items,)
        Centers of the items: first the nodes, then each exit that leads out of the graph.
    layer : ndarray of int32, shape (n_items,)
        Layer of each item.
    out : dict of (int, int) to int
        Item index of each exit that leads out of the graph, by (node, exit).
    way : dict of (int, int) to list of (float, int)
        For each (node, exit), the points (x, layer) of its edge, from the node to its target.
    width : float
        Total width; the left edge is at 0.
    crossings : int
        Number of edge crossings.
    """

    x: FloatArray
    layer: IntArray
    out: dict[tuple[int, int], int]
    way: dict[tuple[int, int], list[tuple[float, int]]]
    width: float
    crossings: int


def depths_of(next_: IntArray) -> list[int]:
    """Return the length of the longest path to each node. Parents must precede children."""
    depth = [0] * len(next_)
    for node, leads in enumerate(next_.tolist()):
        for to in leads:
            if to != OUT:
                depth[to] = max(depth[to], depth[node] + 1)
    return depth


def lay_out(
    next_: IntArray, width: Sequence[float], out_width: Sequence[Sequence[float]], bend: float
) -> DrawingLayout:
    """Return the layout of a graph in which parents come before their children.

    `width` contains the widths of the nodes, and `next_` (n, 2) their targets. `out_width` (n, 2)
    contains the widths of the exits that lead out of the graph. An edge needs the width `bend` at
    each layer that it crosses.
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
    return DrawingLayout(
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
    """Create an item for each exit that leads out of the graph. Append its layer and width."""
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
    """Return the items on the edge of each exit. Append the layers and widths of the bends."""
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
    """Return the items of each layer in depth-first order, exit 0 before exit 1."""
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
    """Order the items of each layer. Return the order with the fewest crossings and their number.

    Each sweep sorts a layer by the mean position of the neighbors in the previous layer.
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
    """Return the number of crossings of edges between adjacent layers."""
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
    """Return positions of the items along their layers, close to their neighbors."""
    x = [0.0] * len(widths)
    for row in rows:
        _settle(x, row, [0.0] * len(row), widths)
    for move in range(MOVES):
        near = up if move % 2 == 0 else down  # the last pass centers parents above children
        for row in rows if near is up else rows[::-1]:
            wanted = [
                sum(x[other] for other in near[item]) / len(near[item]) if near[item] else x[item]
                for item in row
            ]
            _settle(x, row, wanted, widths)
    return x


def _settle(x: list[float], row: list[int], wanted: list[float], widths: list[float]) -> None:
    """Place the items of a layer as close as possible to their targets without overlap.

    Minimizes the sum of squared distances by pooling adjacent items that would overlap.
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


# The drawing

#: Characters per line of a node, font size in points, width and height of a character in inches.
LETTERS, SIZE, LETTER, LINE = 24, 8.0, 0.07, 0.15
#: Relative position of a vote on its edge: `FAR` if the target has no other edge, and `PASSING` if
#: the edge crosses a layer, which has reserved space for the vote.
FAR, PASSING = 0.65, 1.0
#: Lengths in inches: distance of layers without text, normal and minimum distance of layers with
#: text, and maximum length of a side of a new figure.
BARE, SAID, TIGHT, MOST_INCHES = 0.22, 0.75, 0.35, 40.0
#: Line widths of edges taken by no row and by all rows, and of edges with an unknown share.
THINNEST, WIDEST, UNKNOWN = 0.3, 6.0, 1.0


@dataclass(frozen=True, slots=True)
class Drawn:
    """A graph with texts and colors, ready to be drawn.

    Attributes
    ----------
    next : ndarray of int32, shape (n, 2)
        Target node of each exit, or -1 if the exit leads out of the graph. Parents precede
        children.
    question : sequence of str
        Text of each node. The first exit, on the left, means "yes".
    exit_texts : sequence of (str, str)
        Texts of the exits of each node.
    colour : sequence of (str, str)
        Colors of the exits of each node.
    reach : ndarray of float64, shape (n,)
        Shares of rows that reach the nodes, NaN if unknown.
    passed : ndarray of float64, shape (n, 2)
        Shares of rows that take the exits, NaN if unknown.
    legend : sequence of (str, str)
        Texts and colors of the legend.
    alone : str
        Text to show if there are no nodes.
    is_swapped : ndarray of bool, shape (n,), or None
        Nodes whose first exit is exit 1 of the model.
    """

    next: IntArray
    question: Sequence[str]
    exit_texts: Sequence[tuple[str, str]]
    colour: Sequence[tuple[str, str]]
    reach: FloatArray
    passed: FloatArray
    legend: Sequence[tuple[str, str]]
    alone: str
    is_swapped: NDArray[np.bool_] | None = None

    def gid(self, kind: str, node: int, position: int) -> str:
        """Return the id of an exit, which contains the exit number in the model."""
        is_swapped = self.is_swapped is not None and self.is_swapped[node]
        return f"{kind}-{node}-{1 - position if is_swapped else position}"


def wrapped(text: str) -> str:
    """Return a text wrapped to short lines."""
    lines = (textwrap.fill(line, LETTERS) for line in text.splitlines())
    return "\n".join(lines)


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.3g} %"


def draw(drawn: Drawn, max_labeled_nodes: int, ax: Axes | None) -> Axes:
    """Draw the graph on the axes, or on new axes, and return the axes."""
    check_integer("max_labeled_nodes", max_labeled_nodes, min_value=0)
    n = len(drawn.next)
    has_texts = n <= max_labeled_nodes
    if not n:
        ax = axes_or_new(ax, 3, 1)
        ax.set_axis_off()
        ax.text(0.5, 0.5, wrapped(drawn.alone), ha="center", va="center", gid="alone")
        return ax
    texts = [_node_text(drawn, node) if has_texts else "" for node in range(n)]
    ends = [[_end_text(drawn, node, k) if has_texts else "" for k in (0, 1)] for node in range(n)]
    chain_room = [_room_beside(drawn, node) if has_texts else 0 for node in range(n)]
    layout = lay_out(
        drawn.next,
        [max(_letters(text) + 3.0, beside) for text, beside in zip(texts, chain_room, strict=True)],
        [[_letters(text) + 2.5 for text in pair] for pair in ends],
        _room_of_bends(drawn) if has_texts else 1.0,
    )
    lines = max(text.count("\n") + 1 for text in texts)
    step = SAID + LINE * lines if has_texts else BARE
    n_layers = int(layout.layer.max()) + 1
    letter = LETTER if has_texts else LETTER / 2
    wide, high = layout.width * letter + 0.3, n_layers * step + 0.3
    inches = [float(np.clip(side, 3.0, MOST_INCHES)) for side in (wide, high)]
    if ax is not None:
        axes_or_new(ax, *inches)  # raises an error if `ax` is not an Axes
        box, dpi = ax.get_window_extent(), ax.figure.dpi
        inches = [box.width / dpi, box.height / dpi]
    ax = axes_or_new(ax, *inches)
    ax.set_axis_off()
    ax.set(xlim=(-1, layout.width + 1), ylim=(0.6 - n_layers, 0.5))
    # The font is made smaller if texts would overlap.
    least_high = high - n_layers * (SAID - TIGHT) if has_texts else high
    shrunk = float(np.clip(min(inches[0] / wide, inches[1] / least_high), 0.3, 1.0))
    _draw_edges(ax, drawn, layout, shrunk)
    if has_texts:
        _draw_texts(ax, drawn, layout, texts, ends, SIZE * shrunk)
    else:
        _draw_dots(ax, drawn, layout)
    _draw_legend(ax, drawn, layout)
    return ax


def _letters(text: str) -> int:
    return max(map(len, text.split("\n")))


def _node_text(drawn: Drawn, node: int) -> str:
    text = wrapped(drawn.question[node])
    share = float(drawn.reach[node])
    return text if np.isnan(share) else f"{text}\n{percent(share)}"


def _end_text(drawn: Drawn, node: int, exit_: int) -> str:
    text = f"{('yes', 'no')[exit_]}\n{wrapped(drawn.exit_texts[node][exit_])}"
    share = float(drawn.passed[node, exit_])
    return text if np.isnan(share) else f"{text}\n{percent(share)}"


def _edge_text(drawn: Drawn, node: int, exit_: int) -> str:
    return f"{('yes', 'no')[exit_]} {drawn.exit_texts[node][exit_]}".strip()


def _is_double(drawn: Drawn, node: int) -> bool:
    """Return whether both exits lead to the same node."""
    first, second = drawn.next[node].tolist()
    return bool(first == second != OUT)


def _room_beside(drawn: Drawn, node: int) -> float:
    """Return the width in characters of the texts of two edges side by side."""
    if not _is_double(drawn, node):
        return 0.0
    return 2.0 * max(_letters(_edge_text(drawn, node, k)) for k in (0, 1)) + 4.0


def _room_of_bends(drawn: Drawn) -> float:
    """Return the width in characters that an edge and its text need at a layer."""
    exits = np.argwhere(drawn.next != OUT).tolist()
    return 1.5 + max((_letters(_edge_text(drawn, node, k)) for node, k in exits), default=0)


def _bow(layout: DrawingLayout, drawn: Drawn, node: int, exit_: int) -> float:
    """Return the sideways bend of an edge, so that two edges with the same ends stay apart.

    Edges that cross a layer do not need a bend.
    """
    if not _is_double(drawn, node) or len(layout.way[node, exit_]) > 2:
        return 0.0
    side = -1.0 if exit_ == 0 else 1.0
    return side * max(1.0, _letters(_edge_text(drawn, node, exit_)) / 2 + 1)


def _on_edge(way: Sequence[tuple[float, int]], t: float, bow: float) -> tuple[float, float]:
    """Return a point of an edge. t = 0 is at the node, and t = 1 is at the next layer."""
    (x, above), (to, below) = way[:2]
    along, aside = t * t * (3 - 2 * t), 4 * t * (1 - t) * bow
    down = 1.5 * t * (1 - t) + t**3
    return x + (to - x) * along + aside, -(above + (below - above) * down)


def _draw_edges(ax: Axes, drawn: Drawn, layout: DrawingLayout, shrunk: float) -> None:
    """Draw a curve from each node to the target of each exit."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    for (node, exit_), way in layout.way.items():
        bow = _bow(layout, drawn, node, exit_)
        points, codes = [(way[0][0], -float(way[0][1]))], [Path.MOVETO]
        for (x, above), (to, below) in pairwise(way):
            middle = -(above + below) / 2
            # A cubic Bézier curve reaches 3/4 of the offset of its two inner control points.
            aside = bow * 4 / 3
            points += [(x + aside, middle), (to + aside, middle), (to, -float(below))]
            codes += [Path.CURVE4] * 3
        share = float(drawn.passed[node, exit_])
        line = UNKNOWN if np.isnan(share) else THINNEST + (WIDEST - THINNEST) * share
        edge = PathPatch(
            Path(points, codes),
            fill=False,
            edgecolor=drawn.colour[node][exit_],
            alpha=0.6,
            linewidth=max(THINNEST, line * shrunk),
            capstyle="butt",
            gid=drawn.gid("edge", node, exit_),
            zorder=1,
        )
        ax.add_patch(edge)


def _draw_texts(
    ax: Axes,
    drawn: Drawn,
    layout: DrawingLayout,
    texts: list[str],
    ends: list[list[str]],
    size: float,
) -> None:
    """Write the texts of nodes and exits."""

    def write(x: float, y: float, text: str, gid: str, above: int, **box: Any) -> None:
        look = {"facecolor": "white", **box}
        where: dict[str, Any] = {"ha": "center", "va": "center", "gid": gid, "zorder": above}
        ax.text(x, y, text, fontsize=size, bbox=look, **where)

    for node, text in enumerate(texts):
        x, y = float(layout.x[node]), -float(layout.layer[node])
        write(x, y, text, f"node-{node}", 3, boxstyle="round", edgecolor="0.4")
    n_into = np.bincount(drawn.next[drawn.next != OUT], minlength=len(texts))
    for (node, exit_), way in layout.way.items():
        item = layout.out.get((node, exit_))
        if item is not None:
            x, y, colour = float(layout.x[item]), -float(layout.layer[item]), drawn.colour[node]
            name = drawn.gid("out", node, exit_)
            write(x, y, ends[node][exit_], name, 3, boxstyle="square", edgecolor=colour[exit_])
            continue
        near = FAR if n_into[drawn.next[node, exit_]] == 1 else 0.5
        at = PASSING if len(way) > 2 else near
        x, y = _on_edge(way, at, _bow(layout, drawn, node, exit_))
        text, bare = _edge_text(drawn, node, exit_), {"edgecolor": "none", "alpha": 0.8}
        write(x, y, text, drawn.gid("vote", node, exit_), 2, boxstyle="square,pad=0.1", **bare)


def _draw_dots(ax: Axes, drawn: Drawn, layout: DrawingLayout) -> None:
    """Draw nodes and outer exits as dots without texts."""
    n = len(drawn.next)
    ax.scatter(layout.x[:n], -layout.layer[:n], 12, color="0.3", gid="nodes", zorder=3)
    ends = list(layout.out.items())
    items = [item for _, item in ends]
    colours = [drawn.colour[node][exit_] for (node, exit_), _ in ends]
    ax.scatter(
        layout.x[items], -layout.layer[items], 9, marker="s", c=colours, gid="outs", zorder=3
    )


def _draw_legend(ax: Axes, drawn: Drawn, layout: DrawingLayout) -> None:
    """Draw the legend of colors in the emptier upper corner."""
    from matplotlib.lines import Line2D

    if not drawn.legend:
        return
    is_left = layout.x[0] > layout.width / 2
    lines = [Line2D([], [], color=colour, linewidth=3) for _, colour in drawn.legend]
    ax.legend(
        lines,
        [text for text, _ in drawn.legend],
        fontsize=SIZE,
        frameon=False,
        loc="upper left" if is_left else "upper right",
    )
