"""Run boosting rounds on rows in partitions."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost import threads
from pboost._core import boost
from pboost.data.columns.columns import MAX_BINS
from pboost.data.training_data import Problem
from pboost.distributed.engine import Engine
from pboost.distributed.round_partitions import (
    AddTree,
    AddUpdate,
    Counted,
    DrawnRows,
    GatherLeaves,
    GradientRange,
    Gradients,
    Guessed,
    LineSearch,
    Losses,
    MaxMargin,
    Quantise,
    RoundShard,
    Shares,
    SplitNodes,
    SumQuery,
    Tallied,
)
from pboost.distributed.tree_partitions import Answer
from pboost.growth.tree import CartLimits, Grown
from pboost.losses import LOSSES, Loss
from pboost.models.single_tree import Tree
from pboost.threads import Workers
from pboost.trees.gradients import RoundWeights, Steps
from pboost.trees.pooled_growth import open_nodes
from pboost.trees.regularization import Restraints
from pboost.trees.softmax_rounds import ClassRounds
from pboost.trees.tree_rounds import OPEN, Rounds
from pboost.values import Array, FloatArray, IntArray

#: State of the search for a leaf value.
STEP = np.asarray(boost.STEP).dtype


class Talk:
    """The log of commands for the partitions, and the engine that executes it."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.commands = engine, list[Any]()

    def tell(self, what: Any) -> None:
        """Add a command to the log, which is sent with the next request."""
        self.commands.append(what)

    def ask(self, what: Any) -> Answer:
        """Send a request to all partitions and return the merged results."""
        self.commands.append(what)
        return RoundShard.merge(self.engine.masses(self.commands))

    def asked(self, what: str, *arguments: Any) -> tuple[list[float], list[float]]:
        """Return the sums and the maxima over all partitions, see `SumQuery`."""
        answer = self.ask(SumQuery(what, arguments))
        return answer.total.tolist(), answer.maxima.tolist()


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """Results of the partitions for nodes that they have split.

    Attributes
    ----------
    key : ndarray of int32, shape (k,)
        Number of the left child in the partitions; the right child has the next number.
    counted : ndarray of int32, shape (k,)
        See `SplitNodes`.
    n_below : ndarray of float64, shape (k,)
        Number of rows in the left child.
    squares : ndarray of float64, shape (k, 2)
        Sums of squared Newton steps in both children.
    mixed : ndarray of float64, shape (k, 3)
        For each node and its children, 0 if all rows have the same Newton step, else 1.
    masses : ndarray of float64, shape (n, cells)
        Histograms of the children in `counted`, in the order of the nodes.
    """

    key: IntArray
    counted: IntArray
    n_below: FloatArray
    squares: FloatArray
    mixed: FloatArray
    masses: FloatArray

    def put(self, nodes: NDArray[np.intp], more: Halves) -> None:
        """Replace the results for some nodes."""
        place = np.cumsum(self.counted >= 0) - 1
        self.masses[place[nodes[more.counted >= 0]]] = more.masses
        for name in ("key", "counted", "n_below", "squares", "mixed"):
            getattr(self, name)[nodes] = getattr(more, name)

    def take(self, is_taken: NDArray[np.bool_]) -> Halves:
        """Return the results for some nodes."""
        if is_taken.all():
            return self
        masses = self.masses[is_taken[self.counted >= 0]]
        names = ("key", "counted", "n_below", "squares", "mixed")
        return replace(self, masses=masses, **{k: getattr(self, k)[is_taken] for k in names})


class ShardedRounds(Rounds):
    """Rounds of a fit on rows in partitions. See `Rounds` for the parameters.

    There is one request for all nodes of a level. With a limit on the number of leaves, the request
    covers the nodes that would be split next if their children were not split.
    """

    shares_lanes = False
    #: The class of the current tree for a softmax loss.
    _class = 0
    #: The scale of the losses, and the first command of the last tree.
    _loss_scale: float
    _packed: Quantise | None = None
    #: Scales of the last tree, used as a guess for the next tree, and results of the partitions:
    #: the number of large gradients, the number of nonzero gradients, and the sums at the root.
    _guessed: tuple[Guessed, FloatArray] | None = None

    def __init__(
        self,
        talk: Talk,
        problem: Problem,
        loss: Loss,
        weight: RoundWeights,
        limits: CartLimits,
        steps: Steps,
        restraints: Restraints,
    ) -> None:
        self.talk, self._sign = talk, -1.0 if loss.name in boost.OF_MARGIN else 1.0
        case = problem, problem.y, loss, weight, np.empty(0), limits, steps
        super().__init__(*case, restraints, Workers(1))

    def _slots(self, kept: int) -> tuple[int, int]:
        """Return the number of histograms to store, and 1 as the number of threads."""
        n = len(self.y)
        min_slots = 2 + min(self.max_depth, int(n).bit_length())
        wanted = min_slots + open_nodes(self.max_depth, n)
        if self.max_leaf_nodes:
            wanted = 2 * min(self.max_leaf_nodes, n) + 2
        return max(min_slots, min(wanted, kept)), 1

    def _left_out(self, weight: RoundWeights) -> float:
        """Return the sum over rows of the part of the loss that the compiled loss omits."""
        (terms,), (largest_loss,) = self.talk.asked("loss_bound")
        scale = boost.sum_scale(largest_loss, terms)
        total = self.talk.asked("loss_sum", scale)[0][0] / scale
        return total - (self.loss.kernel_at_0 or 0.0) * self.total

    def look(self) -> None:
        """Compute the derivatives in the partitions, and the mean loss."""
        guess, self._guessed = None, None
        if self._packed is not None:  # valid while gradients at most double
            drawn = self._packed.drawn
            drawn = None if drawn is None else drawn._replace(number=drawn.number + 1)
            packed = self._packed._replace(drawn=drawn)
            guess = Guessed(self._loss_scale, 2.0 * self.steepest, packed)
        answer = self.talk.ask(MaxMargin() if guess is None else guess)
        scale, largest = boost.loss_scale(self, self._sign * answer.maxima[0], *answer.maxima[1:3])
        if guess is not None and guess.scale == scale:
            self._guessed = guess, answer.total[1:]
        else:
            answer = self.talk.ask(Gradients(scale))
        self.steepest, self.most_curved = answer.maxima[-2:].tolist()
        self._loss_scale = scale
        total = float(answer.total[0]) / scale if np.isfinite(largest) else largest
        self.mean_loss = self.loss.reported * (total + self.more_loss) / self.total

    @property
    def used_rows(self) -> Any:
        """A range whose length is the number of positive weights. The partitions list the rows."""
        return range(self.n_used)

    def list_rows(self, rows: Any) -> None:
        """Set the number of rows on which a tree is grown."""
        self.n_listed = len(rows)

    def is_uneven(self) -> bool:
        """Return whether quantization would leave too few bits for most gradients."""
        if self._guessed is not None:
            guess, totals = self._guessed
            large, some = totals[:2].tolist()
            if self.steepest <= guess.steepest and 100 * large >= some:
                return False
        large, some = self.talk.ask(GradientRange(self.steepest)).total.tolist()
        return bool(100 * large < some)

    # ------------------------------------------------------------------ growth

    def _begin(self, rows: Any, of_gradient: float, of_curvature: float) -> None:
        """Quantize the derivatives and create the root."""
        self.list_rows(self.used_rows)
        self._wants_squares = len(self.subset) > 0 and self.categorical_smoothing > 0
        how = self.is_wide, self._wants_squares, self._class, self.square_scale
        drawn = rows if isinstance(rows, DrawnRows) else None
        packed = Quantise(of_gradient, of_curvature, *how, drawn)
        if self._guessed is not None and self._guessed[0].packed == packed:
            self.talk.tell(packed)
            totals = self._guessed[1][2:]
        else:
            totals = self.talk.ask(packed).total
        self._packed = packed
        self.is_drawn = drawn is not None and totals[2] > 0
        if not totals[2]:  # no row is drawn
            totals = self.talk.ask(packed._replace(drawn=None)).total
        self.open = np.zeros((1, 1), dtype=OPEN)
        self._free = list(range(self.n_slots - 1, 0, -1))
        #: Results for the leaves, if the last splits returned them.
        self._ends: Answer | None = None
        #: Node numbers in the partitions, and the number of nodes that the partitions have split.
        self._key, self._n_split = np.zeros(len(self.node), dtype=np.int32), 0
        boost.begin_counted(self, totals[3:].reshape(1, -1), float(totals[0]))
        self._squares = float(totals[1])

    def root_squares(self, rows: IntArray) -> float:
        """Return the sum of squared gradients, which the partitions have computed."""
        return self._squares

    def _grow_nodes(self) -> None:
        """Split nodes level by level until no open node is left."""
        waiting, opened = np.empty(0, dtype=OPEN), self.open[0]
        if self.max_depth < 1 or self.n_listed < 2 * max(self.min_samples_leaf, 1):
            return
        while True:
            if len(opened):
                self._cut(opened, self._is_pooled(opened))
                waiting = np.concatenate([waiting, opened[opened["n_below"] >= 0]])
            batch, waiting = self._next(waiting)
            if not len(batch):
                break
            opened = self._split(batch, not len(waiting))
            threads.check_stop()
        if self.max_leaf_nodes:
            self._keep_best()

    def _sum_all(self) -> None:
        """Replace the sums of the nodes by the sums of all rows, which come with the leaves."""
        node = self.node[: int(self.state["nodes"])]
        leaves = np.flatnonzero(node["feature"] < 0)
        if self._ends is None:
            self._ends = self.talk.ask(GatherLeaves(self._key[leaves]))
        total, sums = np.split(self._ends.total, [len(self._ends.total) - 2 * len(leaves)])
        self._ends = Answer(total, self._ends.maxima)
        node["gradient"][leaves], node["curvature"][leaves] = sums.reshape(2, -1)
        for e in np.flatnonzero(node["feature"] >= 0)[::-1].tolist():  # children first
            below, above = node[node["child"][e] : node["child"][e] + 2]
            for name in ("gradient", "curvature"):
                node[name][e] = below[name] + above[name]

    def _is_pooled(self, opened: Array) -> bool:
        """Return whether the splits of open nodes are chosen by their total gain."""
        depth = self.node["depth"][opened["node"][0]]
        return self.pooling is not None and bool(depth >= self.pooling.depth)

    def _cut(self, opened: Array, is_pooled: bool, rows_by_bin: IntArray | None = None) -> None:
        """Find the splits of open nodes; nodes without a split become leaves with `n_below` -1."""
        self.open = opened[None]
        boost.cut_open(self, is_pooled, rows_by_bin)
        self._free += opened["slot"][opened["n_below"] < 0].tolist()

    def _next(self, waiting: Array) -> tuple[Array, Array]:
        """Return the nodes to split next, as memory permits, and the other nodes."""
        if self.max_leaf_nodes:
            return self._best(waiting)
        if self.pooling is not None:
            return waiting, waiting[:0]
        # Take the newest nodes, whose subtrees need at most one histogram per level.
        room = len(self._free) - min(self.max_depth, len(self.y).bit_length())
        is_wide = self.node["depth"][waiting["node"]] + 1 < self.max_depth
        n = max(1, int((np.cumsum(is_wide[::-1]) <= room).sum()))
        return waiting[-n:], waiting[:-n]

    def _best(self, waiting: Array) -> tuple[Array, Array]:
        """Return the result of `_next` if the number of leaves is limited."""
        wanted = self._in_order()[1][: self.n_slots // 2]
        is_next = np.isin(waiting["node"], wanted)
        batch, others = waiting[is_next], waiting[~is_next]
        lost = np.flatnonzero(batch["slot"] < 0)
        for k in np.flatnonzero(others["slot"] >= 0).tolist():
            if len(self._free) >= len(batch) + len(lost):
                break
            self._free.append(int(others["slot"][k]))
            others["slot"][k] = -1
        if len(lost):
            some = batch[lost]
            some["slot"] = [self._free.pop() for _ in lost]
            masses = self.talk.ask(Counted(self._key[some["node"]])).total
            self.open = some[None]
            boost.take_open_masses(self, masses.reshape(len(some), -1))
            batch[lost] = some
        return batch, others

    def _in_order(self) -> tuple[list[int], list[int]]:
        """Return the known splits in order of gain, and the splits that are still to be applied."""
        node = self.node
        gain, child, feature = node["loss"], node["child"], node["feature"]
        splits, wanted, n_nodes = list[int](), list[int](), 1
        waiting = [(-float(gain[0]), 0, 0)] if feature[0] >= 0 else []
        while waiting and len(splits) + 1 < self.max_leaf_nodes:
            e = heapq.heappop(waiting)[2]
            splits.append(e)
            if child[e] < 0:
                wanted.append(e)
            else:
                for side in range(2):
                    c = int(child[e]) + side
                    if feature[c] >= 0:
                        heapq.heappush(waiting, (-float(gain[c]), n_nodes + side, c))
            n_nodes += 2
        return splits, wanted

    def _keep_best(self) -> None:
        """Keep only the nodes of the tree, in the order of a fit on one table."""
        splits, _ = self._in_order()
        below = self.node["child"][splits]
        order = np.concatenate([[0], np.column_stack([below, below + 1]).ravel()]).astype(np.intp)
        n = len(order)
        number = np.zeros(int(self.state["nodes"]), dtype=np.int32)
        number[order] = np.arange(n)
        node, is_split = self.node[order], np.zeros(n, dtype=bool)
        is_split[number[splits]] = True
        node["child"] = np.where(is_split, number[node["child"]], -1)
        node["parent"] = number[node["parent"]]
        self.node[:n] = node
        self._leave(np.flatnonzero(~is_split))
        self._key[:n] = self._key[order]
        if len(self.subset):
            self.subset[:n] = self.subset[order]
        self.state["nodes"] = n

    def _leave(self, nodes: NDArray[np.intp]) -> None:
        """Mark nodes as leaves."""
        for name in ("feature", "low", "high"):
            self.node[name][nodes] = -1
        self.node["missing"][nodes], self.node["loss"][nodes] = 0, 0.0

    def _split(self, batch: Array, is_last: bool) -> Array:
        """Split nodes and return their open children. With `is_last`, no other node is open."""
        is_counted = not self._is_pooled(batch)
        is_last = is_last and self.min_samples_leaf <= 1 and not self.max_leaf_nodes
        halves = self._halves(batch, is_last)
        if not halves.mixed[0, 0]:  # the root
            self._leave(batch["node"].astype(np.intp))
            batch["n_below"], self._ends = -1, None
        was_counted = False
        while len(bad := self._too_small(batch, halves)):
            some, rows = batch[bad], None
            if was_counted:  # rows that are not drawn can be on the other side
                self._leave(some["node"].astype(np.intp))
                self._free += [slot for slot in some["slot"].tolist() if slot >= 0]
                batch["n_below"][bad] = -1
                break
            if is_counted:
                was_counted = True
                command = Tallied(self._key[some["node"]])
                rows = self.talk.ask(command).total.astype(np.int32)
            self._cut(some, False, rows)
            batch[bad] = some
            kept = bad[some["n_below"] >= 0]
            if len(kept):
                halves.put(kept, self._halves(batch[kept]))
            is_counted = True
        is_split = batch["n_below"] >= 0
        return self._children(batch[is_split], halves.take(is_split))

    def _halves(self, batch: Array, is_last: bool = False) -> Halves:
        """Split nodes in the partitions. With `is_last`, no other node is open."""
        k, node = len(batch), self.node[batch["node"]]
        above = np.empty((k, MAX_BINS), dtype=np.uint8)
        self.open = batch[None]
        boost.open_sides(self, above)
        sums = np.empty((k, 3, 2))
        sums[:, 0] = np.column_stack([node["gradient"], node["curvature"]])
        sums[:, 1] = np.column_stack([batch["gradient"], batch["curvature"]])
        sums[:, 2] = sums[:, 0] - sums[:, 1]
        is_above = 2.0 * sums[:, 1, 1] > sums[:, 0, 1]
        counted = np.where(node["depth"] + 1 < self.max_depth, is_above, -1).astype(np.int32)
        arguments = self._key[batch["node"]], node["feature"].copy(), above, counted, sums
        key = 2 * np.arange(self._n_split, self._n_split + k, dtype=np.int32) + 1
        self._n_split += k
        leaves = np.empty(0, dtype=np.int32)
        if is_last and not (counted >= 0).any():
            made = np.flatnonzero(self.node["feature"][: int(self.state["nodes"])] < 0)
            children = (key[:, None] + np.arange(2, dtype=np.int32)).ravel()
            leaves = np.concatenate([self._key[made], children])
        answer, n = self.talk.ask(SplitNodes(*arguments, self._wants_squares, leaves)), len(leaves)
        self._ends = None
        split_sums = answer.total
        end_sums = n * (1 + 2 * (self.steps.shrinkage > 0) + 2 * self.is_drawn)
        if n:
            split_sums, of_ends = np.split(split_sums, [len(split_sums) - end_sums])
            self._ends = Answer(of_ends, answer.maxima[3 * k :].reshape(n, 4))
        n_below, squares, masses = np.split(split_sums, [k, 3 * k])
        masses = masses.reshape(int((counted >= 0).sum()), self.masses.shape[1])
        mixed = answer.maxima[: 3 * k].reshape(k, 3)
        return Halves(key, counted, n_below, squares.reshape(k, 2), mixed, masses)

    def _too_small(self, batch: Array, halves: Halves) -> NDArray[np.intp]:
        """Return the nodes of a batch with a child that has too few rows."""
        node = self.node[batch["node"]]
        less = np.minimum(halves.n_below, node["stop"] - node["start"] - halves.n_below)
        return np.flatnonzero((batch["n_below"] >= 0) & (less < self.min_samples_leaf))

    def _children(self, batch: Array, halves: Halves) -> Array:
        """Create the children of nodes, and return the children that may be split."""
        k, is_open = len(batch), halves.counted >= 0
        self._reserve(int(self.state["nodes"]) + 2 * k)
        slot = np.full(k, -1, dtype=np.int32)
        slot[is_open] = [self._free.pop() for _ in range(int(is_open.sum()))]
        batch["n_below"] = halves.n_below
        self.open = batch[None]
        boost.split_open(self, halves.counted, slot, halves.masses, halves.squares)
        child = (self.node["child"][batch["node"]][:, None] + np.arange(2)).ravel()
        self._key[child] = (halves.key[:, None] + np.arange(2)).ravel()
        size = self.node["stop"][child] - self.node["start"][child]
        opened = np.zeros(2 * k, dtype=OPEN)
        opened["node"] = child
        is_less = (2 * halves.n_below > size.reshape(k, 2).sum(axis=1)).astype(np.intp)
        places = np.empty((k, 2), dtype=np.int32)
        places[np.arange(k), is_less], places[np.arange(k), 1 - is_less] = slot, batch["slot"]
        opened["slot"] = places.ravel()
        may_split = is_open[:, None] & (halves.mixed[:, 1:] > 0)
        may_split = may_split.ravel() & (size >= 2 * max(self.min_samples_leaf, 1))
        self._free += [place for place in opened["slot"][~may_split].tolist() if place >= 0]
        return opened[may_split]

    def _reserve(self, n: int) -> None:
        """Allocate room for n nodes."""
        if n > len(self.node):
            self.node = np.resize(self.node, 2 * n)
            self._key = np.resize(self._key, 2 * n)
            if len(self.subset):
                self.subset = np.resize(self.subset, (2 * n, self.subset.shape[1]))

    # ------------------------------------------------------------------ leaves

    def _find_steps(self, grown: Grown, unit: float) -> None:
        nodes, steps = grown.nodes, self.steps
        made = np.flatnonzero(nodes["feature"][self.place] < 0)  # leaves, in order of creation
        leaf = self.place[made]
        at_leaves = self._ends
        if at_leaves is None:
            at_leaves = self.talk.ask(GatherLeaves(self._key[made]))
        step = np.zeros(len(leaf), dtype=STEP)
        step["u"], step["y"], step["size"], step["heaviest"] = at_leaves.maxima.T
        step["u"] *= self._sign
        step["n_copies"] = n_copies = at_leaves.total[: len(leaf)]
        self._sums = at_leaves.total[len(leaf) :].reshape(-1, len(leaf))
        guess = -unit * nodes["gradient"][leaf] / (nodes["curvature"][leaf] + self.node_l2)
        step_limit = min(steps.step_limit, self.loss.limit)
        boost.begin_steps(self, step, guess, steps.l2, step_limit, steps.solved)
        is_open, sums = np.ones(len(leaf), dtype=np.uint8), np.zeros((len(leaf), 2))
        if self.loss_code == boost.OF_SHARES and not steps.solved:  # quantized sums may suffice
            is_fine = nodes["curvature"][leaf] >= boost.FINE * n_copies
            step["at"][is_fine], is_open[is_fine] = (
                np.clip(guess, -step_limit, step_limit)[is_fine],
                0,
            )
        while is_open.any():
            some = np.flatnonzero(is_open).astype(np.int32)
            scale = np.column_stack([step["slope_scale"][some], step["bend_scale"][some]])
            raised = (step["is_raised"][some] > 0).astype(np.uint8)
            sums[some] = self.talk.ask(LineSearch(some, step["at"][some], raised, scale)).total
            boost.take_looks(self, step, sums, is_open)
        nodes["mean"][leaf] = steps.rate * step["at"]
        self._leaf = leaf

    def leaf_sums(self, nodes: Array) -> FloatArray:
        """Return the sums of all partitions, see `Rounds.leaf_sums`."""
        spread = np.zeros((len(nodes), 2))
        spread[self._leaf] = self._sums.T
        return spread

    def add(self, grown: Grown) -> None:
        """Add the grown tree to the decision values in the partitions."""
        self.talk.tell(AddUpdate(grown.nodes["mean"][self._leaf]))

    def add_fitted(self, tree: Tree, values: Callable[[Tree], FloatArray]) -> None:
        """Add a tree of an earlier fit to the decision values in the partitions."""
        self.talk.tell(AddTree.of(tree, 0))


class ShardedSoftmax(ClassRounds):
    """Rounds of one tree per class on rows in partitions. See `ShardedRounds` for parameters."""

    def __init__(
        self,
        talk: Talk,
        problem: Problem,
        loss: Loss,
        weight: RoundWeights,
        limits: CartLimits,
        steps: Steps,
        restraints: Restraints,
        n_classes: int,
    ) -> None:
        super().__init__(n_classes, weight.total)
        self._talk, self.f = talk, np.empty((n_classes, 0))
        case = talk, problem, LOSSES["log_loss"], weight, limits, self.halved(steps), restraints
        self.take_one(ShardedOne(*case))
        self.look()

    def look(self) -> None:
        """Compute the gradients of all classes in the partitions, and the mean loss."""
        answer = self._talk.ask(Shares())
        self.steepest, self.most_curved = answer.maxima[:-1].reshape(2, -1)
        scale = boost.sum_scale(float(answer.maxima[-1]), float(answer.total[0]))
        self.mean_loss = float(self._talk.ask(Losses(scale)).total[0]) / scale / self.total

    def take_class(self, k: int, n_rows: int) -> None:
        """Set the class of the next tree."""
        self.tree_rounds.take_class(k, float(self.steepest[k]), float(self.most_curved[k]))

    def add_class(self, k: int, grown: Grown) -> None:
        """Add a tree to the decision values of a class."""
        self.tree_rounds.add(grown)

    def add_fitted(self, trees: list[Tree], values: Callable[[Tree], FloatArray]) -> None:
        """Add the trees of a round of an earlier fit to the decision values."""
        for k, tree in enumerate(trees):
            self._talk.tell(AddTree.of(tree, k))


class ShardedOne(ShardedRounds):
    """Rounds of softmax for one class at a time."""

    def look(self) -> None:
        """Do nothing, because the gradients are computed for all classes together."""

    def take_class(self, k: int, steepest: float, most_curved: float) -> None:
        """Set the class of the next tree and its largest derivatives."""
        self._class, self.steepest, self.most_curved = k, steepest, most_curved
        self._sign, self.loss_code = 1.0, boost.OF_SHARES
