"""Compiled walks through graphs and trees that rows leave, see `pboost.models.exits`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pboost._core import tree_walk, walk
from pboost.data.node_inputs.inputs import Subsets
from pboost.data.node_inputs.sums import Projections, Separators
from pboost.data.read.check_xy import check_finite
from pboost.models.exits import Exits, Left, NodeExits
from pboost.models.hard_walk import (
    FEW_CELLS,
    MOST_STEPS,
    over_tiles,
    plain_rows,
    tables_of,
    with_room,
)
from pboost.models.new_rows import match_columns
from pboost.models.nodes import Graph, joints_of
from pboost.values import FloatArray, IntArray

#: Sums and values of a tile, in which trees are added up.
LANES = 128


def of_nodes(model: Graph, exits: Exits) -> NodeExits:
    """Return when rows leave at the nodes of a graph, given when they do at its joints."""
    joints, n = joints_of(model.next), model.n_nodes
    high = np.full((n, model.n_votes), np.inf)
    low = np.full_like(high, -np.inf if model.n_votes == 1 else 0.0)
    at = np.concatenate([[0], joints])
    high[at], low[at] = exits
    return at_nodes(model, Exits(high, low))


def at_nodes(model: Graph, exits: Exits) -> NodeExits:
    """Return these exits of nodes, with what kernels ask of them."""
    is_joint = np.zeros(model.n_nodes, dtype=np.int32)
    is_joint[joints_of(model.next)] = 1
    return _checked(exits, np.cumsum(is_joint, dtype=np.int32))


def of_trees(exits: Exits) -> NodeExits:
    """Return these exits of rounds, with what kernels ask of them."""
    return _checked(exits, np.arange(len(exits.high), dtype=np.int32))


def _checked(exits: Exits, passed: IntArray) -> NodeExits:
    """Return exits as kernels take them, and whether any row can leave at each place."""
    high, low = (np.ascontiguousarray(of) for of in exits)
    can = (high < np.inf) | (low > -np.inf) if high.shape[1] == 1 else high < np.inf
    return NodeExits(high, low, np.asarray(can.all(axis=1), dtype=np.uint8), passed)


def leave_graph(model: Graph, X: Any, exits: NodeExits) -> Left:
    """Return the values with which rows leave a graph, after how many joints, and comparisons."""
    values = plain_rows(model, X)
    n, n_votes = len(values), model.n_votes
    score, joint, cost = np.empty((n, n_votes)), np.empty(n, dtype=np.int32), np.empty(n)
    sets = model.inputs.arrays() if isinstance(model.inputs, Subsets) else None
    projections, separators = tables_of(model, Projections), tables_of(model, Separators)
    nodes = (
        model.feature,
        model.threshold,
        model.next,
        model.vote.reshape(len(model.vote), -1),
        np.atleast_1d(np.asarray(model.bias, dtype=np.float64)),
        *exits,
        int(exits.passed[-1]) + 1,
    )

    def work(start: int, stop: int, tile: FloatArray) -> int:
        out = score, joint, cost
        bad = (
            start + 1
            if sets is not None
            else walk.leave_graph(
                values, *nodes, start, stop, *out, None, None, projections, separators
            )
        )
        if bad and model.sides is not None:
            return walk.leave_graph(values, *nodes, bad - 1, stop, *out, model.sides, sets)
        return bad

    if n * model.n_nodes < FEW_CELLS:
        if work(0, n, score):
            check_finite(match_columns(model, X), model.takes_missing)
        return Left(score[:, 0] if n_votes == 1 else score, joint, cost)
    over_tiles(model, X, n, work, 0, min(model.n_nodes, MOST_STEPS), values.size)
    return Left(score[:, 0] if n_votes == 1 else score, joint, cost)


def leave_trees(
    model: Any,
    trees: Any,
    X: Any,
    bias: FloatArray,
    is_mean: bool,
    exits: NodeExits,
    counting: bool = True,
) -> Left:
    """Return the same of the trees of a `Forest`, the sums or the mean of a model.

    Costs are 0 if comparisons are not counted.
    """
    values = match_columns(model, X).values
    (n, d), n_values = values.shape, exits.high.shape[1]
    score, joint, cost = np.empty((n, n_values)), np.empty(n, dtype=np.int32), np.empty(n)
    if "node_depth" not in trees.found:  # threads that ask at once each make the same
        trees.found["node_depth"] = trees.node_depth()
    value, depth = trees.value.reshape(trees.n_nodes, -1), trees.found["node_depth"]
    nodes = trees.steps, trees.root, trees.depths, value, depth if counting else None
    how = bias, is_mean, exits.high, exits.low, exits.checked

    def work(start: int, stop: int, tile: FloatArray) -> bool:
        sets = None if trees.sets is None else with_room(trees.sets, tile)
        out = tile, np.empty(LANES * len(bias)), score, joint, cost
        at = tree_walk.leave_trees(values, *nodes, *how, start, stop, *out, None, sets)
        if at < stop and trees.missing is not None:
            at = tree_walk.leave_trees(values, *nodes, *how, at, stop, *out, trees.holes, sets)
        return at < stop

    cells = n * max(d, len(trees.depths))
    over_tiles(model, X, n, work, trees.tile_width, d + trees.n_steps, cells)
    return Left(score[:, 0] if n_values == 1 else score, joint, cost)
