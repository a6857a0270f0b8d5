"""Boosting rounds on binned features, with compiled code for gradients, trees and leaf values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost import threads
from pboost._core import boost, draws, shrinkage, softmax
from pboost._core.derived import GROUP_LANES
from pboost.data.columns.columns import MOST_FLOAT, BinnedColumns
from pboost.data.columns.prebuilt import LEVELS
from pboost.data.node_inputs.inputs import WORDS
from pboost.data.training_data import Problem
from pboost.growth.tree import CartLimits, Grown, tree_columns
from pboost.losses import Loss, is_of_package
from pboost.losses.line_search import GroupCounts
from pboost.models.random_forest import RandomForest, join_trees
from pboost.models.single_tree import Tree
from pboost.trees.cart import fit_tree
from pboost.trees.gradients import (
    MOST_DERIVATIVE,
    RoundWeights,
    Steps,
    are_too_large,
    slopes_of,
    working_response,
)
from pboost.trees.one_hot_bundles import lanes_of
from pboost.trees.pooled_growth import SHARES, Pooling, open_nodes, pooling_of
from pboost.trees.random_forest import nodes_of_rows
from pboost.trees.regularization import Payments, Restraints
from pboost.values import Array, FloatArray, IntArray

#: Data types of kernel structures: a node, an open node, the state, the open nodes of a thread.
NODE, OPEN, STATE, STACK = (
    np.asarray(boost.STATE[name]).dtype for name in ("node", "open", "state", "stack")
)
#: Memory for histograms of open nodes with best-first growth, or with several threads.
SLOT_BYTES = 1 << 26
#: Values of `growth` with which the open node with the largest gain is split next.
BEST_FIRST = ("best_first", "cost_efficient")
#: Nodes with less work than this are finished by one thread, because threads wait for each other
#: after each call.
CELLS_AS_ONE = 16
#: Number of rows that a thread takes at a time, a multiple of 8.
SHARE_ROWS = 8192


class Rounds:
    """The arrays of a fit with trees on binned features; see `pboost._core.boost`.

    A round computes the derivatives of the loss at `f`, grows a tree, computes its leaf values and
    adds them to `f`. The arrays `packed` and `spare_packed` are used several times in a round.
    `packed` contains gradients, then packed gradients and Hessians of the listed rows, then
    targets. `spare_packed` contains Hessians, then decision values.

    Parameters
    ----------
    problem : Problem
        Binned features.
    y : ndarray of float64, shape (n,)
        Targets of the loss.
    weight : RoundWeights
        Weights of the rows.
    f : ndarray of float64, shape (n,)
        Decision values, which are updated in place.
    """

    #: Whether features can share an array of codes; False if rows are in partitions.
    shares_lanes = True
    #: The result of `boost.fix`, or None if kernels read all arrays in each call.
    fixed: Array | None = None
    #: Whether the root histograms of several classes can be computed together.
    shares_roots = True

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
        n, n_column_rows = len(y), self.codes.shape[1]
        self.weight, self.are_copies, self.total = weight.of_rows, weight.are_copies, weight.total
        self.n_used, self.n_copies = weight.n_used, weight.n_copies
        #: Maximum mean comparisons of each tree, number of trees per round, and the maximum for the
        #: current tree.
        self.bounds, self.per_round, self.comparisons = limits.comparisons, 1, 0.0
        self.row_mass = weight.in_units() if self.bounds else None
        #: With `leaf_shrinkage`: squared gradients, and weights as integers.
        self.squares, self._row_weights = np.empty(0), weight
        self.weight_units: FloatArray | None = None
        #: Sum of squared leaf values of the last tree, divided by this sum before shrinkage.
        self.kept = 0.0
        #: Maximum number of rows whose packed gradients can be added without overflow.
        self.block = softmax.ROOT_BLOCK >> (weight.most_copies - 1).bit_length()
        self.loss_code = boost.LOSSES.get(loss.name, -1) if is_of_package(loss) else -1
        self.used = np.empty(0, dtype=np.intp)
        if self.loss_code < 0:
            self.used = np.arange(n) if self.weight is None else np.flatnonzero(self.weight)
        self.per_limit, self.parameter = 1.0 / loss.limit, next(iter(loss.parameters.values()), 0.0)
        self.more_loss = 0.0  # constant part of the loss, see `_left_out`
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
        #: Whether the current tree is grown on some of the rows; then, the words of all rows.
        self.is_drawn = False
        #: The rows that were not drawn.
        self.others = np.empty(0, dtype=np.int32)
        self.all_packed = self.all_low = np.empty(0, dtype=np.int64)
        #: Standard deviation of the jitter of scores, with `random_strength`.
        self.jitter = 0.0
        self.is_wide, self.low = False, np.empty(0, dtype=np.int64)
        self.state = np.zeros((), dtype=STATE)
        #: With softmax, gradients of one class, which replace targets; see `take`.
        self.residual: FloatArray | None = None
        self.root: FloatArray | None = None
        self.restraints = Restraints() if restraints is None else restraints
        self.n_listed, self.node_l2, self.node_weight, self.node_gain = 0, 0.0, 0.0, -np.inf
        self._make_lists()
        self.steepest = self.most_curved = self.mean_loss = 0.0
        self.look()

    def _left_out(self, weight: RoundWeights) -> float:
        """Return the part of the total loss that the kernel does not compute."""
        value = self.loss.omitted(self.y)
        return weight.sum(value) - (self.loss.kernel_at_0 or 0.0) * self.total

    def _make_histograms(self, of_level: bool) -> None:
        """Allocate histograms for all nodes of a level, or for the open nodes on a path."""
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
        # Each thread has scratch space for wide sums. Several threads also need space for partial
        # sums.
        scratch = self.n_threads if self.n_threads == 1 else 2 * self.n_threads
        self.masses = np.empty((self.n_slots + scratch, int(ends[-1])))

    def _slots(self, kept: int) -> tuple[int, int]:
        """Return the number of histograms per thread, and the number of threads with histograms."""
        n, takers = len(self.y), self.n_threads
        if self.max_leaf_nodes:
            return max(3, min(min(self.max_leaf_nodes, n) + 2, kept)), 1
        slots = 1 + min(self.max_depth, int(n).bit_length())
        return (
            slots,
            1 if slots * takers > kept else takers,
        )  # the other threads work on the same nodes

    def _make_lists(self) -> None:
        """Allocate the lists of the features of a tree and of a node, unless all are used."""
        held, d = self.restraints, len(self.codes)
        self.number = 0  # number of trees so far
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
        """Address of the threads for kernels, or 0 without threads."""
        return self.workers.team

    def look(self) -> None:
        """Compute the derivatives and the mean loss at the current decision values."""
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
        """Set the gradients (n,) of the log loss of a class against the other classes.

        Hessians and log odds follow from the gradients. `root` is the histogram (d, 256, 2) of all
        rows with a positive weight, if it is already known.
        """
        self.residual, self.root = residual, root
        self.steepest, self.most_curved = steepest, most_curved

    def grow(self, rows: IntArray) -> Grown | None:
        """Grow and add a tree on the listed rows; return None on overflow."""
        grown = self.grown(rows)
        if grown is not None:
            self.add(grown)
            self.pay(grown)
            self.look()
        return grown

    def grown(self, rows: IntArray) -> Grown | None:
        """Return a tree grown on the listed rows, or None on overflow."""
        limit = MOST_FLOAT if self.loss_code >= 0 else MOST_DERIVATIVE
        if not (self.steepest <= limit and self.most_curved <= limit):
            return None
        sums = self.steps.sums
        self.is_wide = sums == "wide" or (sums == "auto" and self.is_uneven())
        if self.is_wide and not len(self.low):
            self.low = np.empty(len(self.packed), dtype=np.int64)
        self.number += 1
        self.comparisons = self.bound_of(self.number)
        if self.fixed is None and self.shares_lanes and self.payments is None:
            self.fixed = boost.fix(self)
        *units, bits = boost.units(self, self.steepest, self.most_curved)
        self._begin(rows, *units)
        if self.restraints.random_strength:
            self.jitter = self._jitter(self.root_squares(rows))
        self._count_in(*units)
        self._grow_nodes()
        if self.is_drawn:
            if self.grows_on_drawn:
                draws.insert_others(self)
                self.n_listed = self.n_used
            self._sum_all()
        grown = self._listed(units[1] / units[0], bits)
        unit = units[1] / units[0]
        self._find_steps(grown, unit)
        if self.steps.shrinkage:
            self._shrink(grown, unit)
        if self.restraints.direction is not None:
            self._bound_steps(grown.nodes, self.steps.rate * unit)
        return grown

    def _begin(self, rows: IntArray, of_gradient: float, of_curvature: float) -> None:
        """Pack the derivatives in these units, and make the root of a tree on the listed rows."""
        if self.square_scale:
            self.note_squares(of_gradient, self.square_scale)
        self.is_drawn = len(rows) < self.n_used
        if self.is_drawn and not len(self.all_packed):
            self.all_packed = np.zeros_like(self.packed)
        if self.is_drawn and self.grows_on_drawn:
            boost.pack(self, of_gradient, of_curvature, self.all_packed)
            self._keep(rows)
        else:
            self.list_rows(self.used_rows)
            boost.pack(self, of_gradient, of_curvature)
            if self.is_drawn:
                self.leave_out(rows)
        self._make_root()

    def _make_root(self) -> None:
        """Create the root from the packed gradients of the listed rows."""
        boost.begin(self)

    @cached_property
    def grows_on_drawn(self) -> bool:
        """Whether other rows than the drawn ones are inserted in the nodes after growth.

        Otherwise, the numbers of all rows in the nodes matter during growth.
        """
        is_smoothed = len(self.subset) > 0 and self.categorical_smoothing > 0
        return (
            self.shares_lanes
            and self.payments is None
            and not self.bounds
            and self.min_samples_leaf <= 1
            and not is_smoothed
        )

    def _keep(self, rows: IntArray) -> None:
        """List the drawn rows and their words only; the other rows are inserted after growth."""
        if self.is_wide and not len(self.all_low):
            self.all_low = np.empty_like(self.low)
        if not len(self.others):
            self.others = np.zeros(self.n_used + boost.BEHIND, dtype=np.int32)
        draws.keep(self, rows)
        self.list_rows(rows)

    def leave_out(self, rows: IntArray) -> None:
        """Grow the tree on the listed rows: set the words of other rows to 0, and keep all words.

        Row counts, such as `min_samples_leaf`, and leaf values still refer to all rows.
        """
        if not len(self.all_packed):
            self.all_packed = np.zeros_like(self.packed)
        if self.is_wide and not len(self.all_low):
            self.all_low = np.empty_like(self.low)
        draws.leave_out(self, rows)

    def _sum_all(self) -> None:
        """Replace the sums of the nodes by the sums of all rows."""
        draws.sum_all(self)

    @cached_property
    def used_rows(self) -> IntArray:
        """Rows of positive weight."""
        is_used = np.ones(len(self.y), bool) if self.weight is None else self.weight > 0
        return np.flatnonzero(is_used).astype(np.int32)

    @cached_property
    def other_rows(self) -> NDArray[np.intp]:
        """Rows of weight 0, for example validation rows."""
        if self.weight is None:
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(self.weight <= 0)

    def _grow_nodes(self) -> None:
        """Split nodes until no open node is left."""
        while not boost.grow(self, CELLS_AS_ONE * threads.CELLS_PER_CALL):
            threads.check_stop()

    def list_rows(self, rows: IntArray) -> None:
        """Set the rows on which a tree is grown."""
        self.n_listed = len(rows)
        self.rows[: len(rows)] = rows

    def is_uneven(self) -> bool:
        """Return whether packed gradients are too coarse for most rows."""
        return boost.is_uneven(self, self.steepest)

    def bound_of(self, number: int) -> float:
        """Return the maximum mean number of comparisons of a tree, or 0 without a maximum."""
        later = (number - 1) // self.per_round
        return self.bounds[min(later, len(self.bounds) - 1)] if self.bounds else 0.0

    def add(self, grown: Grown) -> None:
        """Add the new tree to the decision values of all rows."""
        boost.add_leaves(self, grown.nodes)
        self.add_to(grown, self.other_rows)

    def add_to(self, grown: Grown, others: NDArray[np.intp]) -> None:
        """Add a tree to the decision values of rows that it was not grown on."""
        if len(others):
            draws.add_others(self, grown.nodes, grown.children, grown.subset, others)

    def add_fitted(self, tree: Tree, values: Callable[[Tree], FloatArray]) -> None:
        """Add a tree of an earlier fit; `values` returns its values for all rows."""
        self.f += values(tree)

    def pay(self, grown: Grown) -> None:
        """Record the features that rows have paid for in the new tree."""
        if self.payments is None:
            return
        numbered = replace(grown, nodes=grown.nodes.copy())
        leaf = np.zeros((1, len(self.y)))
        f = self.f
        numbers = np.arange(len(grown.nodes), dtype=np.float64)[:, None]
        self.add_each(numbered, leaf, numbers, self.other_rows)
        self.f = f
        leaf_of = leaf[0].astype(np.intp)
        self.payments.pay(grown.nodes["feature"], grown.children, leaf_of)

    def pay_given(self, trees: list[Tree]) -> None:
        """Record the features that rows have paid for in trees of an earlier fit."""
        assert self.payments is not None
        for tree in trees:
            leaf = nodes_of_rows(tree, self.problem, np.arange(len(self.y)))
            self.payments.pay(tree.column, tree.children, leaf.astype(np.intp))

    def add_each(
        self, grown: Grown, f: FloatArray, value: FloatArray, others: NDArray[np.intp]
    ) -> None:
        """Add a tree with several values (n_nodes, J) per node to decision values f (J, n).

        `others` are the rows that the tree was not grown on.
        """
        for k, of_class in enumerate(f):
            self.f, grown.nodes["mean"] = of_class, value[:, k]
            boost.add_leaves(self, grown.nodes)
            self.add_to(grown, others)

    def _count_in(self, of_gradient: float, of_curvature: float) -> None:
        """Set the parameters that depend on the units of gradients and Hessians."""
        held = self.restraints
        self.node_l2 = self.steps.l2 * of_curvature
        bound = min(self.steps.step_limit, self.loss.limit) * (of_gradient / of_curvature)
        self.node["least"][0], self.node["most"][0] = -bound, bound
        self.node_weight = held.min_child_weight * of_curvature
        if held.min_split_gain <= 0 and self.payments is None:
            return
        with np.errstate(over="ignore", under="ignore"):
            unit = float(np.ldexp(1.0, int(np.log2(of_gradient)) * 2 - int(np.log2(of_curvature))))
            if held.min_split_gain > 0:  # a gain of 0 may be negative after rounding
                self.node_gain = float(held.min_split_gain * unit)
            if self.payments is not None:  # the gain is twice the reduction of the loss
                self.payments.count_in(2.0 * unit / self.loss.reported)

    def _listed(self, unit: float, bits: int) -> Grown:
        """Return the new tree with its nodes in preorder."""
        n = int(self.state["nodes"])
        nodes, children = np.empty(n, dtype=NODE), np.empty((n, 2), dtype=np.int32)
        subset = np.empty((n if len(self.subset) else 0, WORDS), dtype=np.uint64)
        place = np.empty(2 * n, dtype=np.int32)
        mass = np.empty((n, 2), dtype=np.int64)
        # After scaling, the largest Hessian of a row is between 1/2 and 1.
        scale = 2.0**bits
        boost.list_nodes(self, nodes, children, subset, place, mass, unit * unit / scale)
        #: Position of each node in preorder, by order of creation.
        self.place = place[:n]
        return Grown(nodes, children, mass, scale, 0, self.special, subset)

    def _find_steps(self, grown: Grown, unit: float) -> None:
        """Compute the leaf values; `unit` is the ratio of the units of gradients and Hessians."""
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

    def note_squares(self, of_gradient: float, scale: float) -> None:
        """Compute the squared gradients of all rows, in units of 1 / scale."""
        if not len(self.squares):
            self.squares = np.empty(len(self.y))
            self.weight_units = self._row_weights.in_exact_units()
        shrinkage.note_squares(self, of_gradient, scale, self.squares)

    @property
    def square_scale(self) -> float:
        """Factor of the squared gradients; 0 if they are not needed."""
        if not (self.steps.shrinkage or self.restraints.random_strength):
            return 0.0
        is_weighted = self.weight is not None and not self.are_copies
        return shrinkage.square_scale(self.is_wide, is_weighted, self.n_copies)

    def root_squares(self, rows: IntArray) -> float:
        """Return the sum of the squared gradients of the rows on which a tree is grown."""
        return shrinkage.sum_listed(self.squares, rows)

    def _jitter(self, squares: float) -> float:
        """Return the standard deviation of the jitter of split scores.

        It is proportional to the typical Newton step and falls with the number of rounds.
        """
        step = squares / self.square_scale / self.node["curvature"][0] * self.steps.row_weight
        # A product, because powers and exponentials differ between platforms.
        decay = math.prod([1.0 - self.steps.rate] * ((self.number - 1) // self.per_round))
        rest = self.total / self.steps.row_weight * decay
        return self.restraints.random_strength * math.sqrt(step) * (rest / (1.0 + rest))

    def leaf_sums(self, nodes: Array) -> FloatArray:
        """Return the integer sums of squared gradients and weights; 0 in inner nodes."""
        sums = np.empty((len(nodes), 2))
        shrinkage.leaf_sums(self, nodes, self.squares, self.weight_units, sums)
        return sums

    def _shrink(self, grown: Grown, unit: float) -> None:
        """Shrink the leaf values toward the values of ancestors, see `leaf_shrinkage`."""
        nodes, steps = grown.nodes, self.steps
        step_limit = min(steps.step_limit, self.loss.limit)
        self.kept = shrinkage.shrink_leaves(
            nodes,
            grown.children,
            self.leaf_sums(nodes),
            1.0 / self.square_scale,
            1.0 / self._row_weights.exact_scale,
            np.empty(len(nodes)),
            steps.shrinkage,
            steps.row_weight,
            self.node_l2,
            step_limit,
            steps.rate,
            unit,
        )

    def _bound_steps(self, nodes: Array, unit: float) -> None:
        """Clip the leaf values to the bounds from monotonic constraints."""
        mean = np.clip(nodes["mean"], unit * nodes["least"], unit * nodes["most"])
        nodes["mean"] = np.where(nodes["feature"] < 0, mean, 0.0)

    def values(self, tree: Grown | Tree) -> FloatArray:
        """Return the values of the nodes of a tree, 0 for inner nodes."""
        values: FloatArray = tree.nodes["mean"] if isinstance(tree, Grown) else tree.value
        return values

    def tree(self, grown: Grown | Tree) -> Tree:
        """Return a grown tree as a model; return a model unchanged."""
        if isinstance(grown, Tree):
            return grown
        _, columns = self.columns([grown])
        return Tree.grown(**columns, **self.model_fields(), stop_reason="")

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
        """Return the start of each tree, and the arrays of all nodes."""
        return tree_columns(replace(self.problem, classes=None, exponent=0), grown, "squared_error")

    def model_fields(self) -> dict[str, Any]:
        """Return the fields that all models share."""
        problem = self.problem
        return {
            "classes": None,
            "n_features": problem.n_features,
            "feature_names": problem.names,
            "settings": {"builder": "fit_gradient_boosting"},
            "table": problem.table,
        }


class ExactRounds:
    """A fit with an exact search, by least squares; for the parameters see `Rounds`."""

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
        self.mean_loss, self.number, self.kept = 0.0, 0, 0.0
        #: Leaf of each row in the new tree.
        self.node = np.empty(0, dtype=np.int32)
        self.look()

    def look(self) -> None:
        """Compute the mean loss at the current decision values."""
        rows = self.used
        value = self.loss.value(self.y[rows], self.f[rows])
        mean = float(np.average(value, weights=self.weight[rows]))
        self.mean_loss = self.loss.reported * mean

    def add_fitted(self, tree: Tree, values: Callable[[Tree], FloatArray]) -> None:
        """Add a tree of an earlier fit; `values` returns its values for all rows."""
        self.f += values(tree)

    def take(self, residual: FloatArray, *_: object) -> None:
        """Set the gradients (n,) of the log loss of a class against the other classes."""
        size = np.abs(residual)
        self.y = np.where(residual < 0, 1.0, -1.0)
        odds = np.maximum(1.0 - size, 2.0**-54) / np.maximum(size, 2.0**-900)
        self.f = self.y * np.log(odds)

    def grow(self, rows: IntArray) -> Tree | None:
        """Grow and add a tree on the listed rows; return None on overflow."""
        tree = self.grown(rows)
        if tree is not None:
            self.add(tree)
            self.look()
        return tree

    def grown(self, rows: IntArray) -> Tree | None:
        """Return a tree grown on the listed rows, or None on overflow.

        The leaf values are those of all rows.
        """
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
        used = self.used
        y, f, weight, node = self.y[used], self.f[used], self.weight[used], self.node[used]
        value = np.zeros(tree.n_nodes)
        order = np.argsort(node, kind="stable")
        count = np.bincount(node)
        leaves = np.flatnonzero(count)
        best = self._best(y[order], f[order], weight[order], count[leaves])
        value[leaves] = self.steps.rate * np.clip(
            best, -self.steps.step_limit, self.steps.step_limit
        )
        return replace(tree, value=value)

    def add(self, tree: Tree) -> None:
        """Add the new tree to the decision values of all rows."""
        self.f += tree.value[self.node]

    def _best(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        count: GroupCounts,
    ) -> FloatArray:
        """Return the steps of consecutive groups of rows; `count` contains the group sizes."""
        if self.steps.solved:
            return self.loss.leaf_values(y, f, weight, count)
        start = np.concatenate([[0], np.cumsum(count)[:-1]])
        slopes = slopes_of(self.loss, y, f, weight, np.arange(len(y)))
        gradient, curvature = (np.add.reduceat(part, start) for part in slopes)
        out = np.zeros(len(count))
        return -np.divide(gradient, curvature, out=out, where=curvature > 0)

    def values(self, tree: Tree) -> FloatArray:
        """Return the values of the nodes of a tree, 0 for inner nodes."""
        return tree.value

    def tree(self, tree: Tree) -> Tree:
        """Return a tree as a model."""
        return tree

    def forest(self, trees: list[Tree]) -> RandomForest:
        """Return trees as a model."""
        return join_trees(trees, {"builder": "fit_gradient_boosting"}, None)
