"""Compiled evaluation of graphs and trees, to the end or until an early exit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pboost._core import tree_walk, walk
from pboost.data.node_inputs.inputs import Subsets, in_sums
from pboost.data.node_inputs.sums import Projections, Separators
from pboost.models.base import Model
from pboost.models.evaluate.exits import Exits, Left, NodeExits
from pboost.models.evaluate.graph_walk import MOST_STEPS, asks_functions, walk_functions
from pboost.models.evaluate.match_input import finite_columns, match_columns
from pboost.models.graph_arrays import Graph, at_start, joints_of
from pboost.models.schema import Keeps, once
from pboost.threads import run_ranges
from pboost.values import INT32_MAX, Array, FloatArray, IntArray, TableLike

#: Memory layout of a tree node for kernels, see `pboost._core.tree_walk`.
STEP = np.dtype([("threshold", np.float64), ("column", np.int32), ("beyond", np.int32)])
PLAIN = (np.dtype(np.float64), np.dtype(np.float32))
#: Number of nodes per row up to which converting a graph to a tree is worthwhile.
NODES_PER_ROW = 4
#: Read only the features that nodes use if the model has at least the first number of features, and
#: at least the second number of features per used feature.
WIDE, WIDER = 256, 8
#: Smallest number of rows for which a graph is converted to a tree.
MANY_IN_TREES = 256
#: Numbers in a cache line, and the smallest number of rows for which aligning columns pays off.
LINE, MANY_ALIGNED = 8, 1024
#: If there are fewer cells than this, a single thread evaluates them.
FEW_CELLS = 4096
M = TypeVar("M", bound="OnColumns")
#: Nodes in the kernel's format, roots, depths, and values (n_nodes, k).
LaidOut: TypeAlias = tuple[NDArray[np.uint8], IntArray, IntArray, FloatArray]
#: Nodes for missing values, which read copies of columns, and the columns that are copied.
Holes: TypeAlias = tuple[NDArray[np.uint8], IntArray]
#: Category sets in the kernel's format, and their features; see `single_tree.words_of`.
Sets: TypeAlias = tuple[NDArray[np.uint64], IntArray]
#: Additional columns for missing values in a chain, see `pboost._core.walk.walk_sides`.
ChainSides: TypeAlias = tuple[IntArray, IntArray, NDArray[np.uint8], IntArray]
#: Number of sums and values in the working memory of `leave_trees`.
LANES = 128


class OnColumns(Keeps, Protocol):
    """Nodes whose features can be renumbered."""

    @property
    def column(self) -> IntArray:
        """Feature that each node reads; -1 if it reads none."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    def on_columns(self: M, read: IntArray) -> M:
        """Return the same nodes, with features renumbered to those in `read`."""


def walk_rows(model: Graph, X: TableLike, counting: bool) -> tuple[FloatArray, FloatArray]:
    """Return decision values, (n,) or (n, J), and with `counting` the numbers of comparisons.

    All votes are added in one walk, unless comparisons are counted.
    """
    if model.inputs is not None and asks_functions(model):
        return walk_functions(model, X)
    values = plain_rows(model, X)
    n, d = values.shape
    if not len(model.feature) and model.takes_missing:  # kernels reject missing values
        finite_columns(model, X)
        return at_start(model, n), np.zeros(n)
    if counting:
        return _walk_and_count(model, X, values)
    if d >= WIDE and model.inputs is None:
        scores = of_columns_read(
            model, values, lambda graph, rows: walk_rows(graph, rows, False)[0]
        )
        if scores is not None:
            return scores, scores
    score: FloatArray = np.empty(n if model.vote.ndim == 2 else (n, len(model.bias)))
    width = d if model.inputs is None else _width(model, d)
    if n < walk.MANY or n * (width + len(model.feature)) < FEW_CELLS:
        tile = None if n < walk.MANY else np.empty(width * walk.TILE_ROWS)
        if _walk_nodes(model, values, _kernel(model, n, score), None, 0, n, tile):
            finite_columns(model, X)
    elif (tree := _tree_for(model, n)) is not None:
        _walk_tree(model, X, values, tree, score)
    else:
        _walk_tiles(model, X, values, score)
    return score, score


def _walk_and_count(model: Graph, X: TableLike, values: Array) -> tuple[FloatArray, FloatArray]:
    """Return the decision values of the first vote, and the numbers of comparisons."""
    if model.vote.ndim > 2:  # paths do not depend on the votes
        return walk_rows(model.by_vote()[0], X, True)
    score, count = np.empty((2, len(values)))
    _walk_tiles(model, X, values, score, count)
    return score, count


def _walk_tiles(
    model: Graph, X: TableLike, values: Array, score: FloatArray, count: FloatArray | None = None
) -> None:
    """Evaluate rows node by node, in tiles on several threads."""
    (n, d), nodes = values.shape, len(model.feature)
    width = _width(model, d)
    work = partial(_walk_nodes, model, values, _kernel(model, n, score), count)
    over_tiles(model, X, n, work, width, width + min(nodes, MOST_STEPS), n * d)


def _width(model: Graph, d: int) -> int:
    """Return the number of columns of a tile."""
    return d + model.n_inputs if isinstance(model.inputs, Projections) else d


def _tree_for(model: Graph, n: int) -> LaidOut | None:
    """Return the graph as a tree, or None if the conversion is not worthwhile for n rows."""
    if model.inputs is not None or model.is_chain or n < MANY_IN_TREES:
        return None
    is_worth_it = model.n_nodes <= NODES_PER_ROW * n or laid_out.__name__ in model.memo
    return laid_out(model) if is_worth_it else None


def _kernel(model: Graph, n: int, score: FloatArray) -> tuple[Any, ...]:
    """Return the arguments of the kernel: nodes, scores, and tables of inputs and votes."""
    nodes, vote = model.arrays, model.vote
    if model.inputs is None and vote.ndim == 2:
        return (*nodes, vote, model.is_chain, model.bias), score, ()
    made = tables_of(model, Projections), tables_of(model, Separators)
    if vote.ndim == 2:
        return (*nodes, vote, model.is_chain, model.bias), score, made
    several = model.bias, by_vote_of(model) if n >= walk.MANY else None
    votes = vote.reshape(len(vote), -1), model.is_chain, 0.0
    return (*nodes, *votes), score.reshape(-1), (*made, several)


def _walk_nodes(
    model: Graph,
    values: Array,
    kernel: tuple[Any, ...],
    count: FloatArray | None,
    start: int,
    stop: int,
    tile: FloatArray | None,
) -> int:
    """Evaluate rows start..stop-1 node by node; return 0 on success."""
    nodes, score, made = kernel
    bad = start + 1
    if not isinstance(model.inputs, Subsets):
        rows = values.shape[1], start, stop, score, tile, count
        bad = walk.walk(*(values, *nodes, *rows, *made))
    return bad and walk_on(model, values, bad - 1, stop, score, count, *made[2:])


def by_vote_of(model: Graph) -> FloatArray | None:
    """Return the votes of a chain as (J, n_nodes, 2), in the order of its kernel."""
    return np.ascontiguousarray(np.moveaxis(model.vote, 2, 0)) if model.is_chain else None


def of_columns_read(model: M, values: Array, ask: Callable[[M, Array], Array]) -> Array | None:
    """Call `ask` with the nodes and the values of the features that they read.

    Return None if this saves no time, or if a value is invalid and must be reported by column.
    """
    narrow = narrowed(model) if model.n_features >= WIDE else None
    if narrow is None:
        return None
    read, on_these = narrow
    try:
        return ask(on_these, values[:, read])
    except ValueError:
        return None


@once
def narrowed(model: M) -> tuple[Array, M] | None:
    """Return the features that nodes read, and renumbered nodes; None if not worthwhile."""
    read = np.unique(model.column[model.column >= 0])
    if not 0 < len(read) * WIDER <= model.n_features:
        return None
    return read, model.on_columns(read)


def tables_of(model: Graph, kind: type[Projections | Separators]) -> Any:
    """Return the inputs of nodes in the kernel's format; None if they are not of this `kind`."""
    if not isinstance(model.inputs, kind):
        return None
    *arrays, of_missing = model.inputs.tables()
    return (*arrays, of_missing if model.takes_missing else None)


def walk_on(
    model: Graph,
    values: Array,
    start: int,
    stop: int,
    score: FloatArray,
    count: FloatArray | None,
    several: Any = None,
) -> int:
    """Evaluate rows start..stop-1 with missing values; return 0 on success.

    Evaluation fails if a value is infinite, or if the model does not accept a missing value.
    """
    if model.sides is None:
        return 1
    sets = model.inputs.arrays() if isinstance(model.inputs, Subsets) else None
    made = tile = None
    if model.is_chain and count is None and stop - start >= walk.MANY:
        made = made_columns(model)
        tile = tile_of(values.shape[1] + len(made[0]) + len(made[1]), stop - start)
    vote, bias = model.vote, model.bias
    if several is not None:
        vote, bias = vote.reshape(len(vote), -1), 0.0
    return walk.walk_sides(
        values,
        *model.arrays,
        vote,
        bias,
        model.sides,
        start,
        stop,
        score,
        count,
        sets,
        made,
        tile,
        several,
    )


@once
def made_columns(model: Graph) -> ChainSides:
    """Return the additional columns of a chain for missing values, see `pboost._core.walk`."""
    assert model.sides is not None
    is_above, reads, d = model.sides > 0, model.feature.copy(), model.n_features
    at = np.flatnonzero(is_above & (reads < d))
    above, place = np.unique(reads[at], return_inverse=True)
    reads[at] = d + place
    coded, table = np.empty(0, dtype=np.int32), np.empty((0, 256), dtype=np.uint8)
    if isinstance(model.inputs, Subsets):
        at = np.flatnonzero(model.feature >= d)
        number = model.feature[at] - d
        # Sorted by feature, so that the categories of a feature are looked up once.
        tests = np.column_stack([model.inputs.column[number], number, is_above[at]])
        tests, place = np.unique(tests, axis=0, return_inverse=True)
        reads[at] = d + len(above) + place.ravel()
        coded, table = tests[:, 0].astype(np.int32), model.inputs.bits()[tests[:, 1]].view(np.uint8)
        table[:, -1] = tests[:, 2]
    return above, coded, table, reads


def _walk_tree(model: Graph, X: TableLike, values: Array, tree: LaidOut, score: FloatArray) -> None:
    """Write decision values to `score`, using the graph in the form of a tree."""
    (n, d), total = values.shape, score.reshape(len(score), -1)
    score.fill(-0.0)  # adding to -0.0 preserves the sign of zero

    def work(start: int, stop: int, tile: FloatArray) -> int:
        at = tree_walk.walk_sums(values, *tree, start, stop, tile, total)
        if at == stop or model.sides is None:
            return at < stop
        holes = _with_holes(model)
        tile = tile_of(d + len(holes[1]), stop - at)
        return tree_walk.walk_sums(values, *tree, at, stop, tile, total, holes=holes) < stop

    over_tiles(model, X, n, work, d, d + tree[2].item(), n * max(d, len(tree[2])))


@once
def _with_holes(model: Graph) -> Holes:
    """Return nodes and copied columns for rows with missing values, see `tree_walk`."""
    above, _, _, reads = made_columns(model)
    return _steps(model, reads)[0], above


def _steps(model: Graph, column: IntArray) -> tuple[NDArray[np.uint8], FloatArray, int]:
    """Return the nodes in the kernel's format, the leaf values and the depth of a tree."""
    size, n_votes = 2 * len(column) + 1, model.n_votes
    steps, value = np.empty(STEP.itemsize * size, dtype=np.uint8), np.empty((n_votes, size))
    votes = model.vote.reshape(len(column), 2, n_votes)
    for vote, bias, sums in zip(
        np.moveaxis(votes, 2, 0), np.atleast_1d(model.bias), value, strict=True
    ):
        depth: int = tree_walk.lay_out(
            column,
            model.threshold,
            model.next,
            np.ascontiguousarray(vote),
            bias,
            np.empty((3, len(column)), dtype=np.int32),
            steps,
            sums,
        )
    return steps, np.ascontiguousarray(value.T), depth


@once
def laid_out(model: Graph) -> LaidOut | None:
    """Return a graph as a tree whose leaves contain the sums of the votes on their path.

    Return None if paths meet in the graph.
    """
    # Columns with missing values may be duplicated.
    size = 2 * max(model.n_nodes, model.n_features * walk.TILE_ROWS)
    if model.joins or size >= INT32_MAX:
        return None
    steps, value, depth = _steps(model, model.feature)
    root = np.array([0, len(value)], dtype=np.int32)
    return steps, root, np.array([depth], dtype=np.int32), value


def past_missing(
    trees: Any,
    start: int,
    stop: int,
    tile: FloatArray,
    walk: Callable[[int, Holes | None, Any], int],
    goes_on: bool = True,
) -> int:
    """Evaluate trees by a kernel; restart it at the first row with a missing value.

    ``walk(start, holes, sets)`` calls the kernel and returns the row at which it stopped.
    """
    sets = with_work(trees.sets, tile)
    at = walk(start, None, sets)
    if at == stop or trees.missing is None or not goes_on:
        return at
    return walk(at, trees.holes, sets)


def with_work(sets: Sets | None, tile: FloatArray) -> tuple[Any, ...] | None:
    """Return category sets with room for the categories of the rows of a tile."""
    return None if sets is None else (*sets, np.zeros(tile.size, dtype=np.uint8))


def over_tiles(
    model: Model,
    X: TableLike,
    n: int,
    work: Callable[[int, int, FloatArray], int | bool],
    width: int,
    cost: int,
    cells: int,
) -> None:
    """Call ``work(start, stop, tile)`` on ranges of n rows; if it returns 1, X is not finite.

    `tile` has room for `width` columns; see `run_ranges` for the other arguments.
    """

    def on_range(start: int, stop: int) -> int:
        return work(start, stop, tile_of(width, stop - start))

    if n == 1:  # a single row needs no division into ranges
        is_bad = work(0, 1, np.empty(width * walk.TILE_ROWS))
    else:
        is_bad = any(run_ranges(on_range, n, walk.TILE_ROWS, cost, cells))
    if is_bad:
        finite_columns(model, X)


def tile_of(width: int, n: int) -> FloatArray:
    """Return memory for a tile with the given number of columns.

    For many rows, each column is aligned to a cache line.
    """
    size = width * walk.TILE_ROWS
    if n < MANY_ALIGNED:
        return np.empty(size)
    memory = np.empty(size + LINE)
    first = -(memory.__array_interface__["data"][0] // memory.itemsize) % LINE
    return memory[first : first + size]


def plain_rows(model: Graph, X: TableLike) -> Array:
    """Return X with the features of the model, as kernels read it.

    A matrix with these columns is returned unchanged.
    """
    if (
        type(X) is np.ndarray
        and X.dtype in PLAIN
        and model.table is None
        and X.shape[1:] == (model.n_features,)
        and len(X) <= INT32_MAX
    ):
        return X
    values = match_columns(model, X).values
    return in_sums(values, model.table) if model.sums_features else values


def of_nodes(model: Graph, exits: Exits) -> NodeExits:
    """Convert exits at the stages of a graph to exits at its nodes."""
    joints, n = joints_of(model.next), model.n_nodes
    high = np.full((n, model.n_votes), np.inf)
    low = np.full_like(high, -np.inf if model.n_votes == 1 else 0.0)
    at = np.concatenate([[0], joints])
    high[at], low[at] = exits
    return at_nodes(model, Exits(high, low))


def at_nodes(model: Graph, exits: Exits) -> NodeExits:
    """Return exits at nodes in the kernel's form."""
    is_joint = np.zeros(model.n_nodes, dtype=np.int32)
    is_joint[joints_of(model.next)] = 1
    return _checked(exits, np.cumsum(is_joint, dtype=np.int32))


def of_trees(exits: Exits) -> NodeExits:
    """Return exits at rounds in the kernel's form."""
    return _checked(exits, np.arange(len(exits.high), dtype=np.int32))


def _checked(exits: Exits, passed: IntArray) -> NodeExits:
    """Return exits in the kernel's format, and a mask of the places where rows can stop."""
    high, low = (np.ascontiguousarray(of) for of in exits)
    can = (high < np.inf) | (low > -np.inf) if high.shape[1] == 1 else high < np.inf
    return NodeExits(high, low, np.asarray(can.all(axis=1), dtype=np.uint8), passed)


def leave_graph(model: Graph, X: TableLike, exits: NodeExits) -> Left:
    """Evaluate rows of a graph until they reach an early exit."""
    values = plain_rows(model, X)
    n, n_votes = len(values), model.n_votes
    score, joint, cost = np.empty((n, n_votes)), np.empty(n, dtype=np.int32), np.empty(n)
    sets = model.inputs.arrays() if isinstance(model.inputs, Subsets) else None
    projections, separators = tables_of(model, Projections), tables_of(model, Separators)
    nodes = (
        *model.arrays,
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
            finite_columns(model, X)
        return Left(score[:, 0] if n_votes == 1 else score, joint, cost)
    over_tiles(model, X, n, work, 0, min(model.n_nodes, MOST_STEPS), values.size)
    return Left(score[:, 0] if n_votes == 1 else score, joint, cost)


@once
def _depth_of_nodes(trees: Any) -> IntArray:
    """Return the depth of each node of trees."""
    return trees.node_depth()


def leave_trees(
    model: Model,
    trees: Any,
    X: TableLike,
    bias: FloatArray,
    is_mean: bool,
    exits: NodeExits,
    counting: bool = True,
) -> Left:
    """Evaluate rows of an ensemble of trees, a sum or a mean, until they reach an early exit.

    Costs are 0 if comparisons are not counted.
    """
    values = match_columns(model, X).values
    (n, d), n_values = values.shape, exits.high.shape[1]
    score, joint, cost = np.empty((n, n_values)), np.empty(n, dtype=np.int32), np.empty(n)
    value, depth = trees.value.reshape(trees.n_nodes, -1), _depth_of_nodes(trees)
    nodes = trees.steps, trees.root, trees.depths, value, depth if counting else None
    how = bias, is_mean, exits.high, exits.low, exits.checked

    def work(start: int, stop: int, tile: FloatArray) -> bool:
        out = tile, np.empty(LANES * len(bias)), score, joint, cost

        def walk(at: int, holes: Holes | None, sets: Any) -> int:
            return tree_walk.leave_trees(values, *nodes, *how, at, stop, *out, holes, sets)

        return past_missing(trees, start, stop, tile, walk) < stop

    cells = n * max(d, len(trees.depths))
    over_tiles(model, X, n, work, trees.tile_width, d + trees.n_steps, cells)
    return Left(score[:, 0] if n_values == 1 else score, joint, cost)
