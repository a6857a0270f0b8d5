"""Rounds of boosting on bins, compiled from the derivatives of the loss to the decision values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost import threads
from pboost._core import boost, derived, softmax
from pboost._core.derived import GROUP_LANES
from pboost.data.columns.columns import BinnedColumns
from pboost.data.columns.prebuilt import HOLES, LEVELS
from pboost.data.node_inputs.inputs import WORDS
from pboost.data.training import Problem
from pboost.growth.tree import CartLimits, Grown, tree_columns
from pboost.losses import Loss, is_of_package
from pboost.losses.search import GroupCounts
from pboost.models.forest import RandomForest, join_trees
from pboost.models.trees import Tree
from pboost.threads import Workers
from pboost.trees.cart import fit_tree
from pboost.trees.forest import nodes_of_rows
from pboost.trees.pooling import SHARES, Pooling, open_nodes, pooling_of
from pboost.trees.restraints import Payments, Restraints
from pboost.trees.targets import (
    MOST_DERIVATIVE,
    RoundWeights,
    Steps,
    are_too_large,
    slopes_of,
    working_response,
)
from pboost.values import Array, FloatArray, IntArray


class Lanes(NamedTuple):
    """Where the codes of columns stand in the rounds of a fit; see ``pboost/_core/derived.pyx``.

    Attributes
    ----------
    lane : ndarray of int32, shape (d,)
        The lane of each column; lanes are in the order of their first columns.
    code, side : ndarray of uint8, shape (d,)
        What the lane holds where a row lies in the bin `side` of the column; the code is 0 of
        columns with a lane to themselves, which holds the column's own codes.
    column : ndarray of int32, shape (n_lanes,)
        The column of each lane, -1 where there are several.
    bundled : ndarray of int32
        The columns that share a lane, in their order.
    bins : ndarray of int32, shape (n_lanes,)
        How many codes each lane has.
    groups : ndarray of uint8, shape (ceil(n_lanes / 8), n, 8)
        The codes of eight lanes side by side.
    """

    lane: IntArray
    code: NDArray[np.uint8]
    side: NDArray[np.uint8]
    column: IntArray
    bundled: IntArray
    bins: IntArray
    groups: NDArray[np.uint8]


def lanes_of(columns: BinnedColumns, n_threads: int = 1, are_shared: bool = True) -> Lanes:
    """Return the lanes of columns.

    If lanes are shared, columns of numbers without holes that have two bins, or one, have
    one where no row lies in the rarer bin of two of them.
    """
    codes, special = columns.codes, columns.special
    d, n = codes.shape
    bins = columns.n_bins if special is None else columns.n_bins + (special & HOLES)
    wanted = columns.n_bins <= 2 if special is None else (columns.n_bins <= 2) & (special == 0)
    first = np.arange(d, dtype=np.int32)
    code, side = np.zeros((2, d), dtype=np.uint8)
    if are_shared and np.count_nonzero(wanted) > 1:
        work = np.empty((derived.WORK_SETS, -(-n // 64)), dtype=np.uint64)
        derived.bundle(codes, wanted.view(np.uint8), first, code, side, work)
    column, place = np.unique(first, return_inverse=True)
    lane = place.astype(np.int32)
    n_codes = bins[column]
    bundled = np.flatnonzero(code).astype(np.int32)
    np.maximum.at(n_codes, lane[bundled], code[bundled].astype(np.int32) + 1)
    groups = np.empty((-(-len(column) // derived.GROUP_LANES), n, derived.GROUP_LANES), np.uint8)

    def put(start: int, stop: int) -> None:
        derived.interleave(codes, lane, code, side, groups, start, stop)

    with Workers(n_threads) as workers:  # no other is needed afterwards
        workers.run(put, n, cells=d)
    column = np.where(code[column] > 0, -1, column).astype(np.int32)
    return Lanes(lane, code, side, column, bundled, n_codes, groups)


#: The types of what the kernel knows of a node, of one that is open, of its state, and of the nodes
#: that a thread has open.
NODE, OPEN, STATE, STACK = (
    np.asarray(boost.STATE[name]).dtype for name in ("node", "open", "state", "stack")
)
#: Memory for the masses by bin of open nodes, where they are split in the order of their gains, or
#: by several threads.
SLOT_BYTES = 1 << 26
#: Growths that split the open node that is worth most next.
BEST_FIRST = ("best_first", "cost_efficient")
#: Cells of nodes that take no longer than one elsewhere. At the end of a call threads wait for one
#: another.
CELLS_AS_ONE = 16
#: Rows, a multiple of 8, that a thread takes at a time.
SHARE_ROWS = 8192


class Rounds:
    """The arrays of a fit whose trees are grown on bins; see `pboost._core.boost`.

    A round reads the derivatives of the loss at `f`, grows a tree, finds what its leaves add and
    adds it to `f`. In its turn `packed` holds gradients, the words of the rows listed, and targets
    of leaves; `spare_packed` curvatures and decision values of leaves.

    Parameters
    ----------
    problem : Problem
        The columns, binned.
    y : ndarray of float64, shape (n,)
        Targets of the loss.
    weight : RoundWeights
        Those of the rows.
    f : ndarray of float64, shape (n,)
        Decision values; they are changed.
    """

    #: Whether columns that no row tells apart may share a lane, which rows elsewhere may do.
    shares_lanes = True

    def __init__(
        self,
        problem: Problem,
        y: FloatArray,
        loss: Loss,
        weight: RoundWeights,
        f: FloatArray,
        limits: CartLimits,
        steps: Steps,
        restraints: Restraints | None = None,
        workers: threads.Workers | None = None,
    ) -> None:
        columns = problem.columns
        assert isinstance(columns, BinnedColumns)
        self.problem, self.y, self.f, self.loss, self.steps = problem, y, f, loss, steps
        self.workers = threads.Workers(1) if workers is None else workers
        self.n_threads, self.share = self.workers.n_threads, SHARE_ROWS
        self.codes, self.n_bins, self.special = columns.codes, columns.n_bins, columns.special
        self.max_depth, self.min_samples_leaf = limits.depth, limits.min_samples_leaf
        self.max_leaf_nodes = limits.leaves if limits.growth in BEST_FIRST else 0
        self.categorical_smoothing = limits.categorical_smoothing
        n, n_column_rows = len(y), self.codes.shape[1]  # all rows, and those of these columns
        self.weight, self.are_copies, self.total = weight.of_rows, weight.are_copies, weight.total
        self.n_used, self.n_copies = weight.n_used, weight.n_copies
        #: Mean comparisons of the trees, of which so many are of one round; see `CartLimits`.
        self.bounds, self.per_round, self.comparisons = limits.comparisons, 1, 0.0
        self.row_mass = weight.in_units() if self.bounds else None
        #: Rows whose words have room together.
        self.block = softmax.ROOT_BLOCK >> (weight.most_copies - 1).bit_length()
        self.loss_code = boost.LOSSES.get(loss.name, -1) if is_of_package(loss) else -1
        self.used = np.empty(0, dtype=np.intp)
        if self.loss_code < 0:
            self.used = np.arange(n) if self.weight is None else np.flatnonzero(self.weight)
        self.per_limit, self.parameter = 1.0 / loss.limit, next(iter(loss.parameters.values()), 0.0)
        self.more_loss = 0.0  # what the compiled loss leaves out
        if self.loss_code >= 0 and loss.kernel_at_0 is not None:
            self.more_loss = self._left_out(weight)
        self.lanes = lanes_of(columns, self.n_threads, self.shares_lanes)
        share = SHARES.get(limits.growth)
        self._make_histograms(share is not None and share.depth < self.max_depth)
        self.pooling: Pooling | None = None
        if share is not None and share.depth < self.max_depth:
            cells = self.masses.shape[1] // 2
            self.pooling = pooling_of(share, columns, len(self.lanes.bundled), cells, self.n_slots)
        self.rows, self.spare = np.zeros((2, n_column_rows + boost.BEHIND), dtype=np.int32)
        self.packed, self.spare_packed = np.zeros((2, n_column_rows + boost.BEHIND), dtype=np.int64)
        self.leaf_weight = np.empty(0 if self.weight is None else n_column_rows)
        leaf_limit = min(1 << min(self.max_depth, 40), n, self.max_leaf_nodes or n)
        has_levels = self.special is not None and bool((self.special & LEVELS).any())
        self.node = np.empty(2 * leaf_limit - 1, dtype=NODE)
        self.subset = np.empty((2 * leaf_limit - 1 if has_levels else 0, WORDS), dtype=np.uint64)
        places = max(self.slot_of.shape[1], self.max_leaf_nodes and leaf_limit) + 3
        if self.pooling is not None:
            places = 2 * self.n_slots
        self.open = np.empty((len(self.slot_of), places), dtype=OPEN)
        self.stack = np.empty(len(self.slot_of), dtype=STACK)
        self.free = np.empty(self.n_slots, dtype=np.int32)
        self.is_wide, self.low = False, np.empty(0, dtype=np.int64)
        self.state = np.zeros((), dtype=STATE)
        #: Of one class of softmax, in place of targets: see `take`.
        self.residual: FloatArray | None = None
        self.root: FloatArray | None = None
        self.restraints = Restraints() if restraints is None else restraints
        self.n_listed, self.node_l2, self.node_weight, self.node_gain = 0, 0.0, 0.0, -np.inf
        self._make_lists()
        self.steepest = self.most_curved = self.mean_loss = 0.0
        self.look()

    def _left_out(self, weight: RoundWeights) -> float:
        """Return what the compiled loss leaves out of the sum of losses."""
        value = self.loss.value(self.y, np.zeros(len(self.y)))
        return weight.sum(value) - (self.loss.kernel_at_0 or 0.0) * self.total

    def _make_histograms(self, of_level: bool) -> None:
        """Make places for the masses by bin of a node and of those that are smaller by halves.

        Or of all of a level.
        """
        n, bins = len(self.y), self.lanes.bins
        starts = np.arange(0, len(bins), GROUP_LANES)
        self.group_bins = np.maximum.reduceat(bins, starts).astype(np.int32)
        ends = np.cumsum(2 * GROUP_LANES * self.group_bins.astype(np.int64))
        self.group_place = np.concatenate([[0], ends[:-1]])
        slots, takers = open_nodes(self.max_depth, n), 1
        if not of_level:
            slots, takers = self._slots(SLOT_BYTES // (8 * int(ends[-1])))
        self.n_slots = slots * takers
        self.slot_of = np.empty((takers, slots), dtype=np.int32)
        # Each thread has scratch for wide sums, and several for sums of some rows.
        scratch = self.n_threads if self.n_threads == 1 else 2 * self.n_threads
        self.masses = np.empty((self.n_slots + scratch, int(ends[-1])))

    def _slots(self, kept: int) -> tuple[int, int]:
        """Return how many masses by bin a thread has room for, and how many threads have some."""
        n, takers = len(self.y), self.n_threads
        if self.max_leaf_nodes:
            return max(3, min(min(self.max_leaf_nodes, n) + 2, kept)), 1
        slots = 1 + min(self.max_depth, int(n).bit_length())
        return slots, 1 if slots * takers > kept else takers  # the others help with its nodes

    def _make_lists(self) -> None:
        """Make the lists of the columns that a tree and a node are searched in, if not in all."""
        held, d = self.restraints, len(self.codes)
        self.number = 0  # of the tree grown last
        n, feature_costs = len(self.y), held.feature_costs
        self.payments = (
            None if feature_costs is None else Payments(feature_costs, n, self.n_threads)
        )
        self.of_tree = self.of_node = None
        if held.together is not None:
            self.alive = np.empty((self.n_threads, held.together.shape[1]), dtype=np.uint64)
        if held.per_tree is not None:
            taken = np.zeros((1 + self.n_threads, d + len(self.group_bins)), dtype=np.uint8)
            self.of_tree, self.of_node = taken[0], taken[1:]
            self.picked = np.empty((self.n_threads, d), dtype=np.int32)
            self.per_tree, self.per_split = held.per_tree, held.per_split

    @property
    def team(self) -> int:
        """Where compiled code finds the threads that help, 0 where none does."""
        return self.workers.team

    def look(self) -> None:
        """Find the derivatives and the mean loss of the decision values as they are."""
        if self.loss_code >= 0:
            self.steepest, self.most_curved, total = boost.slopes(self)
            total += self.more_loss
        else:
            rows = self.used
            weight = np.ones(len(rows)) if self.weight is None else self.weight[rows]
            y, f = self.y[rows], self.f[rows]
            total = float((self.loss.value(y, f) * weight).sum())
            self.gradient, self.curvature = np.zeros((2, len(self.y)))
            times = np.ones(len(rows)) if self.are_copies else weight
            derivatives = slopes_of(self.loss, y, f, times, self.problem.input_rows(rows))
            self.gradient[rows], self.curvature[rows] = derivatives
            self.packed[: len(self.y)] = self.gradient.view(np.int64)
            self.spare_packed[: len(self.y)] = self.curvature.view(np.int64)
            self.steepest = float(np.abs(derivatives[0]).max())
            self.most_curved = float(derivatives[1].max())
        self.mean_loss = self.loss.reported * total / self.total

    def take(
        self,
        residual: FloatArray,
        steepest: float,
        most_curved: float,
        root: FloatArray | None = None,
    ) -> None:
        """Take over the gradients of the log loss of a class against the others, (n,).

        Their sizes tell curvatures and log odds. `root` has the masses by bin of all rows of
        positive weight, (d, 256, 2), where they are counted already.
        """
        self.residual, self.root = residual, root
        self.steepest, self.most_curved = steepest, most_curved

    def grow(self, rows: IntArray) -> Grown | None:
        """Grow a tree on the listed rows and add it; None where derivatives are no numbers."""
        grown = self.grown(rows)
        if grown is not None:
            self.add(grown, rows)
            self.pay(grown, rows)
            self.look()
        return grown

    def grown(self, rows: IntArray) -> Grown | None:
        """Return a tree that is grown on the listed rows; None where derivatives are no numbers."""
        limit = np.finfo(np.float64).max if self.loss_code >= 0 else MOST_DERIVATIVE
        if not (self.steepest <= limit and self.most_curved <= limit):
            return None
        self.n_listed = len(rows)
        self.list_rows(rows)
        sums = self.steps.sums
        self.is_wide = sums == "wide" or (sums == "auto" and self.is_uneven())
        if self.is_wide and not len(self.low):
            self.low = np.empty(len(self.packed), dtype=np.int64)
        self.number += 1
        self.comparisons = self.bound_of(self.number)
        *units, bits = boost.units(self, self.steepest, self.most_curved)
        self._begin(*units)
        self._count_in(*units)
        self._grow_nodes()
        grown = self._listed(units[1] / units[0], bits)
        unit = units[1] / units[0]
        self._find_steps(grown, unit)
        if self.restraints.direction is not None:
            self._bound_steps(grown.nodes, self.steps.rate * unit)
        return grown

    def _begin(self, of_gradient: float, of_curvature: float) -> None:
        """Make the words of rows, in these units, and the root."""
        boost.begin(self, of_gradient, of_curvature)

    def _grow_nodes(self) -> None:
        """Split nodes until none is open."""
        while not boost.grow(self, CELLS_AS_ONE * threads.CELLS_PER_CALL):
            threads.check_stop()

    def list_rows(self, rows: IntArray) -> None:
        """Take over on which rows a tree is grown."""
        self.rows[: len(rows)] = rows

    def is_uneven(self) -> bool:
        """Return whether words leave too little of most gradients."""
        return boost.is_uneven(self, self.steepest)

    def bound_of(self, number: int) -> float:
        """Return the mean comparisons that a tree has at most, 0 where they do not count."""
        later = (number - 1) // self.per_round
        return self.bounds[min(later, len(self.bounds) - 1)] if self.bounds else 0.0

    def add(self, grown: Grown, rows: IntArray) -> None:
        """Add the tree just grown on the listed rows to the decision values of all."""
        n = len(self.y)
        boost.add_leaves(self, grown.nodes)
        if len(rows) < n:
            others = np.ones(n, dtype=bool)
            others[rows] = False
            boost.add_others(
                self, grown.nodes, grown.children, grown.subset, np.flatnonzero(others)
            )

    def add_fitted(self, tree: Tree, values: Callable[[Tree], FloatArray]) -> None:
        """Add a tree of an earlier fit, given what returns its values at all rows."""
        self.f += values(tree)

    def pay(self, grown: Grown, rows: IntArray) -> None:
        """Take what all rows pay for the columns of the tree just grown on the listed ones."""
        if self.payments is None:
            return
        numbered = replace(grown, nodes=grown.nodes.copy())
        leaf = np.zeros((1, len(self.y)))
        f = self.f
        self.add_each(numbered, leaf, np.arange(len(grown.nodes), dtype=np.float64)[:, None], rows)
        self.f = f
        leaf_of = leaf[0].astype(np.intp)
        self.payments.pay(grown.nodes["feature"], grown.children, leaf_of)

    def pay_given(self, trees: list[Tree]) -> None:
        """Take what all rows pay for the columns of trees of an earlier fit."""
        assert self.payments is not None
        for tree in trees:
            leaf = nodes_of_rows(tree, self.problem, np.arange(len(self.y)))
            self.payments.pay(tree.column, tree.children, leaf.astype(np.intp))

    def add_each(self, grown: Grown, f: FloatArray, value: FloatArray, rows: IntArray) -> None:
        """Add a tree whose nodes add to several decision values, value (n_nodes, J), f (J, n)."""
        for k, of_class in enumerate(f):
            self.f, grown.nodes["mean"] = of_class, value[:, k]
            self.add(grown, rows)

    def _count_in(self, of_gradient: float, of_curvature: float) -> None:
        """Take over the units in which gradients and curvatures are counted."""
        held = self.restraints
        self.node_l2 = self.steps.l2 * of_curvature
        bound = min(self.steps.step_limit, self.loss.limit) * (of_gradient / of_curvature)
        self.node["least"][0], self.node["most"][0] = -bound, bound
        self.node_weight = held.min_child_weight * of_curvature
        with np.errstate(over="ignore", under="ignore"):
            unit = float(np.ldexp(1.0, int(np.log2(of_gradient)) * 2 - int(np.log2(of_curvature))))
            if held.min_split_gain > 0:  # else a gain of 0 may have been rounded below it
                self.node_gain = float(held.min_split_gain * unit)
            if self.payments is not None:  # a split takes half of its gain from the loss
                self.payments.count_in(2.0 * unit / self.loss.reported)

    def _listed(self, unit: float, bits: int) -> Grown:
        """Return the tree that has been grown, its nodes in preorder."""
        n = int(self.state["nodes"])
        nodes, children = np.empty(n, dtype=NODE), np.empty((n, 2), dtype=np.int32)
        subset = np.empty((n if len(self.subset) else 0, WORDS), dtype=np.uint64)
        place = np.empty(2 * n, dtype=np.int32)
        boost.list_nodes(self, nodes, children, subset, place)
        #: Where the nodes stand in the tree, in the order in which they were made.
        self.place = place[:n]
        # The largest curvature of a row lies between 1/2 and 1.
        scale = 2.0**bits
        mass = np.zeros((n, 2), dtype=np.int64)
        mass[:, 0] = nodes["curvature"]
        with np.errstate(over="ignore", under="ignore"):
            nodes["loss"] *= unit * unit / scale
        np.minimum(nodes["loss"], np.finfo(np.float64).max, out=nodes["loss"])
        return Grown(nodes, children, mass, scale, 0, self.special, subset)

    def _find_steps(self, grown: Grown, unit: float) -> None:
        """Find what the leaves add; `unit` is that of gradients, by that of curvatures."""
        steps, nodes = self.steps, grown.nodes
        step_limit = min(steps.step_limit, self.loss.limit)
        if self.loss_code >= 0:
            boost.solve_leaves(self, nodes, steps.l2, step_limit, steps.rate, unit, steps.solved)
            return
        leaves = np.flatnonzero(nodes["feature"] < 0)
        rows = self.rows[: self.n_listed]
        if not steps.solved:
            boost.newton_leaves(
                self, nodes, self.gradient, self.curvature, steps.l2, step_limit, steps.rate
            )
            return
        count = (nodes["stop"] - nodes["start"])[leaves]
        weight = np.ones(len(rows)) if self.weight is None else self.weight[rows]
        best = self.loss.leaf_values(self.y[rows], self.f[rows], weight, count)
        nodes["mean"][leaves] = steps.rate * np.clip(best, -step_limit, step_limit)

    def _bound_steps(self, nodes: Array, unit: float) -> None:
        """Keep what leaves add between the bounds that monotone columns set."""
        mean = np.clip(nodes["mean"], unit * nodes["least"], unit * nodes["most"])
        nodes["mean"] = np.where(nodes["feature"] < 0, mean, 0.0)

    def values(self, tree: Grown | Tree) -> FloatArray:
        """Return what the nodes of a tree add, 0 where they are no leaves."""
        values: FloatArray = tree.nodes["mean"] if isinstance(tree, Grown) else tree.value
        return values

    def tree(self, grown: Grown | Tree) -> Tree:
        """Return one tree as a model; it may be one already."""
        if isinstance(grown, Tree):
            return grown
        _, columns = self.columns([grown])
        return Tree(**columns, **self.model_fields(), stop_reason="")

    def forest(self, trees: list[Any]) -> RandomForest:
        """Return trees as a model."""
        grown = [tree for tree in trees if isinstance(tree, Grown)]
        if len(grown) < len(trees):
            return join_trees(
                [self.tree(tree) for tree in trees], self.model_fields()["settings"], None
            )
        root, columns = self.columns(grown)
        return RandomForest(root, **columns, **self.model_fields(), oob=None)

    def columns(self, grown: list[Any]) -> tuple[IntArray, dict[str, Any]]:
        """Return where trees begin, and the columns of their nodes."""
        return tree_columns(replace(self.problem, classes=None, exponent=0), grown, "squared_error")

    def model_fields(self) -> dict[str, Any]:
        """Return what models say of themselves."""
        problem = self.problem
        return {
            "classes": None,
            "n_features": problem.n_features,
            "feature_names": problem.names,
            "settings": {"builder": "fit_gradient_boosting"},
            "table": problem.table,
        }


class ExactRounds:
    """A fit whose trees are fitted to targets by squared error; parameters as of `Rounds`."""

    def __init__(
        self,
        problem: Problem,
        y: FloatArray,
        loss: Loss,
        weight: FloatArray,
        f: FloatArray,
        limits: CartLimits,
        steps: Steps,
        n_threads: int | None,
    ) -> None:
        self.problem, self.y, self.f, self.loss, self.weight = problem, y, f, loss, weight
        self.limits, self.steps, self.n_threads = limits, steps, n_threads
        self.used, self.is_own = np.flatnonzero(weight > 0), not is_of_package(loss)
        self.mean_loss, self.number = 0.0, 0  # of no use here
        #: Where the tree just grown has the rows.
        self.node = np.empty(0, dtype=np.int32)
        self.look()

    def look(self) -> None:
        """Find the mean loss of the decision values as they are."""
        rows = self.used
        value = self.loss.value(self.y[rows], self.f[rows])
        mean = float(np.average(value, weights=self.weight[rows]))
        self.mean_loss = self.loss.reported * mean

    def add_fitted(self, tree: Tree, values: Callable[[Tree], FloatArray]) -> None:
        """Add a tree of an earlier fit, given what returns its values at all rows."""
        self.f += values(tree)

    def take(self, residual: FloatArray, *_: object) -> None:
        """Take over the gradients of the log loss of a class against the others, (n,)."""
        size = np.abs(residual)
        self.y = np.where(residual < 0, 1.0, -1.0)
        odds = np.maximum(1.0 - size, 2.0**-54) / np.maximum(size, 2.0**-900)
        self.f = self.y * np.log(odds)

    def grow(self, rows: IntArray) -> Tree | None:
        """Grow a tree on the listed rows and add it; None where numbers end."""
        tree = self.grown(rows)
        if tree is not None:
            self.add(tree, rows)
            self.look()
        return tree

    def grown(self, rows: IntArray) -> Tree | None:
        """Return a tree that is grown on the listed rows; None where numbers end."""
        y, f, weight = self.y[rows], self.f[rows], self.weight[rows]
        input_rows = self.problem.input_rows(rows)
        response = working_response(self.loss, y, f, weight, input_rows)
        if response is None or (self.is_own and are_too_large(self.loss, y, f, input_rows)):
            return None
        target, of_target = np.zeros(len(self.y)), np.zeros(len(self.y))
        target[rows], of_target[rows] = response
        exponent = int(np.frexp(np.abs(target).max())[1])
        problem = replace(self.problem, y=np.ldexp(target, -exponent), exponent=exponent)
        tree = fit_tree(problem, of_target, self.limits, {}, 0, self.n_threads)
        self.node = nodes_of_rows(tree, problem, np.arange(len(self.y)))
        node = self.node[rows]
        value = np.zeros(tree.n_nodes)
        order = np.argsort(node, kind="stable")
        count = np.bincount(node)
        leaves = np.flatnonzero(count)
        best = self._best(y[order], f[order], weight[order], count[leaves])
        value[leaves] = self.steps.rate * np.clip(
            best, -self.steps.step_limit, self.steps.step_limit
        )
        return replace(tree, value=value)

    def add(self, tree: Tree, rows: IntArray) -> None:
        """Add the tree just grown to the decision values of all rows."""
        self.f += tree.value[self.node]

    def _best(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        count: GroupCounts,
    ) -> FloatArray:
        """Return the steps of groups of rows, `count` one after another."""
        if self.steps.solved:
            return self.loss.leaf_values(y, f, weight, count)
        start = np.concatenate([[0], np.cumsum(count)[:-1]])
        slopes = slopes_of(self.loss, y, f, weight, np.arange(len(y)))
        gradient, curvature = (np.add.reduceat(part, start) for part in slopes)
        out = np.zeros(len(count))
        return -np.divide(gradient, curvature, out=out, where=curvature > 0)

    def values(self, tree: Tree) -> FloatArray:
        """Return what the nodes of a tree add, 0 where they are no leaves."""
        return tree.value

    def tree(self, tree: Tree) -> Tree:
        """Return a tree as a model."""
        return tree

    def forest(self, trees: list[Tree]) -> RandomForest:
        """Return trees as a model."""
        return join_trees(trees, {"builder": "fit_gradient_boosting"}, None)
