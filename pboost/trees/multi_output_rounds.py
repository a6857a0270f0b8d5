"""Boosting rounds for several classes, with one tree for all classes in each round.

The gain of a split is the sum of the gains of the classes. Nodes are split one after the other. The
kernel `pboost._core.softmax` computes their sums and splits.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost import threads
from pboost._core import boost, softmax
from pboost.data.columns.prebuilt import HOLES, has, is_heavier, levels_among
from pboost.data.node_inputs.inputs import WORDS
from pboost.growth.tree import Grown
from pboost.models.random_forest import RandomForest, join_trees
from pboost.models.single_tree import Tree
from pboost.models.tree_ensemble import LEAF
from pboost.trees.gradients import RoundWeights, Steps
from pboost.trees.softmax_rounds import SoftmaxRounds
from pboost.trees.tree_rounds import NODE, SLOT_BYTES, Rounds
from pboost.values import Array, FloatArray, IntArray


class Judge(NamedTuple):
    """The inputs for the evaluation of the splits of a node.

    Attributes
    ----------
    judged : ndarray of float64, shape (3, J)
        For each class: the L2 regularization, the factor of the class in the score, and the unit of
        Hessians.
    total : ndarray of float64, shape (S, 2)
        Sums of gradients and Hessians of the node. S is J, or J + 1 if numbers of rows are
        included.
    n_rows, min_samples_leaf : int
        Number of rows of the node, and minimum number of rows in a child.
    min_child_weight : float
        Minimum sum of Hessians in a child, over all classes.
    smoothing : float
        Amount by which the steps of categories are shrunk toward the step of the node before
        categories are sorted.
    """

    judged: FloatArray
    total: FloatArray
    n_rows: int
    min_samples_leaf: int
    min_child_weight: float
    smoothing: float


class LevelCut(NamedTuple):
    """A split by a set of categories. Rows with a category in the set go to the second child.

    Attributes
    ----------
    score : float
        Score of the split.
    above, present : ndarray of int32
        Categories in the set, and all categories at the node.
    side : int
        Child of missing values (0 or 1), or -1 if there are none.
    below : ndarray of float64, shape (S, 2)
        Sums of the first child.
    """

    score: float
    above: IntArray
    present: IntArray
    side: int
    below: FloatArray


def summed(terms: FloatArray) -> FloatArray:
    """Return the sum over the last dimension, added in order."""
    total: FloatArray = np.add.accumulate(terms, axis=-1)[..., -1]
    return total


def best_set(column: FloatArray, n_levels: int, has_holes: bool, judge: Judge) -> LevelCut | None:
    """Return the best set of categories, given sums (S, 2, categories), or None.

    For each class, categories are sorted by the step of the class, and each prefix of this order is
    tried as the first child. With smoothing, all categories but one are also tried. Missing values
    are tried in the second child first. If sets are equally good, the first is returned.
    """
    present, above = np.empty((2, n_levels), dtype=np.int32)
    below = np.empty(judge.total.shape)
    score, n_here, n_above, side = softmax.best_levels(
        column, n_levels, has_holes, *judge, present, above, below
    )
    if score < 0:
        return None
    return LevelCut(score, above[:n_above], present[:n_here], side, below)


#: Relative rounding error of the score of a node.
TIE = 1e-9
#: Wide sums are stored as two numbers. This is the unit of the first number.
LOW_UNIT = 2.0**18
#: The packed gradients of a row are stored in blocks of this size.
WIDTH = 8


@dataclass(frozen=True, slots=True, eq=False)
class VectorGrown(Grown):
    """A grown tree, with the values of its nodes for each class, (n_nodes, J)."""

    value: FloatArray


@dataclass(slots=True, eq=False)
class VectorNode:
    """A node with its rows, sums and split.

    Attributes
    ----------
    start, stop : int
        Range of the rows of the node in the list of rows.
    path : int
        Number of the node in a complete binary tree; the root is 1.
    mass : int
        Weight of the rows of the node, for limits on comparisons.
    total, below : ndarray of float64, shape (S, 2)
        Sums of the node and of its first child.
    masses : ndarray of float64, or None
        Histogram of the node; None when it is no longer needed.
    alive : ndarray of uint64
        Interaction groups that contain all features on the path.
    low, high, missing, subset
        The split, as in nodes of `pboost._core.boost`; `subset` has the categories as bits.
    """

    start: int
    stop: int
    depth: int
    path: int
    total: FloatArray
    alive: NDArray[np.uint64] | None
    mass: int = 0
    masses: FloatArray | None = None
    below: FloatArray | None = None
    feature: int = LEAF
    low: int = -1
    high: int = -1
    missing: int = 0
    subset: int = 0
    gain: float = 0.0
    children: tuple[VectorNode, VectorNode] | None = None

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.stop - self.start


class VectorRounds(SoftmaxRounds):
    """A fit with one tree per round for J classes; for the parameters see `SoftmaxRounds`.

    `pboost._core.softmax` uses the arrays of `tree_rounds`, the packed gradients and Hessians of
    the rows (`words`), and `judged` (3, J), see `Judge`.
    """

    def __init__(
        self,
        label: FloatArray,
        weights: RoundWeights,
        f: FloatArray,
        steps: Steps,
        make: Callable[..., Any],
        workers: threads.Workers | None = None,
    ) -> None:
        super().__init__(label, weights, f, steps, make, workers)
        tree_rounds = self.tree_rounds
        assert isinstance(tree_rounds, Rounds)
        tree_rounds.per_round = 1
        self.roots, n_labels, self.most_copies = None, len(f), weights.most_copies
        self.codes, self.n_bins, self.special = (
            tree_rounds.codes,
            tree_rounds.n_bins,
            tree_rounds.special,
        )
        self.rows, self.spare, self.block = tree_rounds.rows, tree_rounds.spare, tree_rounds.block
        self.min_samples_leaf = max(tree_rounds.min_samples_leaf, 1)
        self.min_child_weight, self.min_split_gain = (
            tree_rounds.restraints.min_child_weight,
            tree_rounds.restraints.min_split_gain,
        )
        self.n_sums = n_labels + (self.min_samples_leaf > 1)
        bins = self.n_bins + (0 if self.special is None else self.special & HOLES)
        ends = np.cumsum(2 * self.n_sums * (-(-bins.astype(np.int64) // WIDTH) * WIDTH))
        self.place = np.concatenate([[0], ends])
        self.levels = levels_among(self.special, 0, len(bins))
        self.words, self.is_all = np.empty(0, dtype=np.int64), False
        self.word_of, self.word_unit = np.empty(0, dtype=np.int32), np.empty(0)
        self.judged, self.share = np.empty((3, n_labels)), np.empty(n_labels)
        self.score = np.empty((2, len(bins)))
        self.cut = np.empty((2, 2, len(bins)), dtype=np.int32)
        self.of_tree: IntArray | None = None
        # Histograms and scratch arrays that can be reused.
        self.free: list[FloatArray] = []
        self.room: list[NDArray[np.int64]] = []
        self.n_kept = max(3, SLOT_BYTES // (8 * int(self.place[-1])))

    def grow(self, rows: IntArray) -> list[Any] | None:
        """Grow the tree of a round on the listed rows and add it; return None on overflow."""
        if not (np.isfinite(self.steepest).all() and np.isfinite(self.most_curved).all()):
            return None
        units = self._begin(rows)
        root = self._grow_nodes(len(rows))
        grown = self._listed(root, units)
        if self.is_all:
            leaves = np.flatnonzero(grown.nodes["feature"] == LEAF)
            places = np.column_stack([grown.nodes[name][leaves] for name in ("start", "stop")])
            value = grown.value[leaves]

            def work(first: int, last: int) -> None:
                softmax.add(self, places, value, self.f, first, last)

            self._share(work, len(self.f), len(rows))
        else:
            others = np.delete(np.arange(len(self.tree_rounds.y)), rows)
            self.tree_rounds.add_each(grown, self.f, grown.value, others)
        self.look()
        return [grown]

    def add_fitted(self, trees: list[Tree], values: Callable[[Tree], FloatArray]) -> None:
        """Add the tree of a round of an earlier fit; `values` returns its values for all rows."""
        self.f += values(trees[0]).T

    # ------------------------------------------------------------------ words

    def _begin(self, rows: IntArray) -> FloatArray:
        """Pack the gradients and Hessians of the rows; return their units, (J, 2)."""
        tree_rounds, n_labels = self.tree_rounds, self.n_trees
        tree_rounds.n_listed, self.is_all = len(rows), len(rows) == len(tree_rounds.y)
        tree_rounds.rows[: len(rows)] = rows
        tree_rounds.number += 1
        tree_rounds.comparisons = tree_rounds.bound_of(tree_rounds.number)
        is_wide = [self._is_wide(k) for k in range(n_labels)]
        wide = min(boost.WIDE_BITS, 52 - (tree_rounds.n_copies - 1).bit_length())
        unit_list = [
            [
                softmax.unit_of(self.steepest[k], wide if is_wide[k] else boost.GRADIENT_BITS),
                softmax.unit_of(self.most_curved[k], wide if is_wide[k] else boost.CURVATURE_BITS),
            ]
            for k in range(n_labels)
        ]
        units = np.array(unit_list)
        of = [k for k in range(n_labels) for _ in range(1 + is_wide[k])]
        unit = [u for wide in is_wide for u in ([LOW_UNIT, 1.0] if wide else [1.0])]
        of_rows = range(n_labels, self.n_sums)
        self.word_of = np.array([*of, *of_rows], dtype=np.int32)
        self.word_unit = np.array([*unit, *(1.0 for _ in of_rows)])
        # Scaling by powers of two is exact.
        of_gradient, of_curvature = np.frexp(units)[1].T - 1
        self.judged[0] = tree_rounds.steps.l2 * units[:, 1]
        self.judged[1] = np.ldexp(1.0, of_curvature - 2 * of_gradient)
        self.judged[2] = 1.0 / units[:, 1]
        self.share = units[:, 1].min() / units[:, 1]
        width = -(-len(self.word_of) // WIDTH) * WIDTH
        if len(self.words) < width * len(tree_rounds.y) + WIDTH:
            self.words = np.empty(width * len(tree_rounds.y) + WIDTH, dtype=np.int64)

        def work(start: int, stop: int) -> None:
            softmax.pack(self, units, start, stop)

        tree_rounds.workers.run(work, len(tree_rounds.y), 8, 2 * len(self.word_of))
        if tree_rounds.restraints.per_tree is not None:
            self.of_tree = self._drawn(
                np.arange(len(self.codes), dtype=np.int32), tree_rounds.restraints.per_tree, 0
            )
        return units

    def _is_wide(self, k: int) -> bool:
        tree_rounds = self.tree_rounds
        if tree_rounds.steps.sums == "auto":
            tree_rounds.residual = self.residual[k]
            return boost.is_uneven(tree_rounds, float(self.steepest[k]))
        return bool(tree_rounds.steps.sums == "wide")

    # ------------------------------------------------------------------ growth

    def _grow_nodes(self, n_rows: int) -> VectorNode:
        """Split nodes: best-first with a limit on leaves or comparisons, otherwise depth-first."""
        root, masses = self._root(n_rows), self._take_masses()
        leaf_limit, leaves, n_nodes = self.tree_rounds.max_leaf_nodes or n_rows, 1, 1
        is_best_first, spent = self.tree_rounds.max_leaf_nodes > 0, 0
        root.mass = self._mass(root)
        most_spent = self.tree_rounds.comparisons * float(root.mass)

        def fits(node: VectorNode) -> bool:
            return not most_spent or float(spent + node.mass) <= most_spent

        waiting: list[tuple[float, int, VectorNode]] = []
        self._run(lambda first, last: self._count(root, masses, first, last), n_rows)
        root.total = self._column(masses, 0).sum(axis=2)
        self._run(lambda first, last: self._search(root, 0, masses, first, last), 0)
        if self._find(root, 0, masses) and leaf_limit > 1 and self._may_split(root):
            waiting.append((self._rank(root), 0, root))
        while waiting and leaves < leaf_limit:
            node = heapq.heappop(waiting)[2] if is_best_first else waiting.pop()[2]
            if not fits(node):
                self._give_back(node)
                node.feature = LEAF
                continue
            spent += node.mass
            children = self._split(node)
            leaves += 1
            if leaves < leaf_limit:
                # The smaller child is split first, so that few histograms are stored.
                for side in self._open(node, children):
                    entry = self._rank(children[side]), n_nodes + side, children[side]
                    if is_best_first:
                        heapq.heappush(waiting, entry)
                    else:
                        waiting.append(entry)
                if is_best_first:
                    self._drop(waiting)
            self._give_back(node)
            n_nodes += 2
        for node in (root, *(node for *_, node in waiting)):
            self._give_back(node)
            if node.children is None:
                node.feature = LEAF
        return root

    def _root(self, n_rows: int) -> VectorNode:
        together = self.tree_rounds.restraints.together
        alive = None if together is None else ~np.zeros(together.shape[1], dtype=np.uint64)
        return VectorNode(0, n_rows, 0, 1, np.empty(0), alive)

    def _mass(self, node: VectorNode) -> int:
        """Return the weight of a node's rows; if weights are not needed, the number of rows."""
        tree_rounds = self.tree_rounds
        if not tree_rounds.comparisons or tree_rounds.row_mass is None:
            return node.size
        return int(tree_rounds.row_mass[tree_rounds.rows[node.start : node.stop]].sum())

    def _rank(self, node: VectorNode) -> float:
        """Return the key of an open node; the node with the smallest key is split first."""
        return -node.gain / float(node.mass) if self.tree_rounds.comparisons else -node.gain

    def _may_split(self, node: VectorNode) -> bool:
        return node.depth < self.tree_rounds.max_depth and node.size >= 2 * self.min_samples_leaf

    def _take_masses(self) -> FloatArray:
        return self.free.pop() if self.free else np.empty(int(self.place[-1]))

    def _give_back(self, node: VectorNode) -> None:
        if node.masses is not None:
            self.free.append(node.masses)
            node.masses = None

    def _drop(self, waiting: list[tuple[float, int, VectorNode]]) -> None:
        """Free the histograms of waiting nodes with the smallest gains if there are too many."""
        kept = [entry for entry in waiting if entry[2].masses is not None]
        while len(kept) > self.n_kept - 3:
            self._give_back(kept.pop(kept.index(max(kept)))[2])

    def _run(self, work: Callable[[int, int], None], n_rows: int) -> None:
        """Call `work` on ranges of features."""
        cells = n_rows * (-(-len(self.word_of) // WIDTH)) + 64 * self.n_sums
        self._share(work, len(self.codes), cells)

    def _share(self, work: Callable[[int, int], None], n: int, cells: int) -> None:
        """Call `work` on parts of ``range(n)``, in one thread if there is little work."""
        if n * cells < threads.MIN_CELLS:
            threads.check_stop()
            work(0, n)
        else:
            self.tree_rounds.workers.run(work, n, 1, cells)

    def _count(self, node: VectorNode, masses: FloatArray, first: int, last: int) -> None:
        room = self.room.pop() if self.room else np.empty(softmax.VECTOR_WORK, dtype=np.int64)
        softmax.count(self, node.start, node.stop, masses, room, first, last)
        self.room.append(room)

    def _search(self, node: VectorNode, k: int, masses: FloatArray, first: int, last: int) -> None:
        softmax.search(self, masses, node.total, self.score[k], self.cut[k], first, last)

    def _split(self, node: VectorNode) -> tuple[VectorNode, VectorNode]:
        """Partition the rows of a node; return its children."""
        table = self._table(node)
        cut = -1 if table is not None else node.low
        none = np.empty(256, dtype=np.uint8) if table is None else table
        n_below = softmax.part(self, node.start, node.stop, node.feature, cut, none)
        alive, middle = node.alive, node.start + n_below
        if alive is not None:
            alive = alive & self.tree_rounds.restraints.together[node.feature]
        assert node.below is not None
        path, depth = 2 * node.path % 2**64, node.depth + 1
        node.children = (
            VectorNode(node.start, middle, depth, path, node.below, alive),
            VectorNode(middle, node.stop, depth, path + 1, node.total - node.below, alive),
        )
        below, above = node.children
        below.mass = self._mass(below)
        above.mass = node.mass - below.mass
        return node.children

    def _table(self, node: VectorNode) -> NDArray[np.uint8] | None:
        """Return the child of each bin code, or None if the split needs only a threshold."""
        j = node.feature
        if self.special is None or not self.special[j] or (node.high >= 0 and node.missing):
            return None
        above = np.zeros(256, dtype=np.uint8)
        if node.low < 0:
            above[: self.n_bins[j]] = [node.subset >> k & 1 for k in range(self.n_bins[j])]
        elif node.high >= 0:
            above[node.high : self.n_bins[j]] = 1
        if has(self.special, HOLES, j):
            above[self.n_bins[j]] = node.missing
        return above

    def _open(self, node: VectorNode, children: tuple[VectorNode, VectorNode]) -> list[int]:
        """Find the splits of children; return the children with a split, the larger first."""
        less = int(children[1].size < children[0].size)
        small, large = children[less], children[1 - less]
        if not self._may_split(large):
            return []
        part, node_masses, is_kept = self._take_masses(), node.masses, node.masses is not None
        masses = self._take_masses() if node_masses is None else node_masses
        node.masses = None

        def work(first: int, last: int) -> None:
            self._count(small, part, first, last)
            if is_kept:
                softmax.subtract(self, masses, part, first, last)
            else:
                self._count(large, masses, first, last)
            if self._may_split(small):
                self._search(small, 0, part, first, last)
            self._search(large, 1, masses, first, last)

        self._run(work, small.size if is_kept else node.size)
        sides = [1 - less] if self._find(large, 1, masses) else []
        if not self._may_split(small):
            self.free.append(part)
        elif self._find(small, 0, part):
            sides.append(less)
        return sides

    # ------------------------------------------------------------------ cuts

    def _column(self, masses: FloatArray, j: int) -> FloatArray:
        """Return the histogram (S, 2, bins) of a feature."""
        column = masses[self.place[j] : self.place[j + 1]]
        return column.reshape(self.n_sums, 2, -1)

    def _find(self, node: VectorNode, k: int, masses: FloatArray) -> bool:
        """Find the best split of a node; keep the histogram and return True if there is one."""
        score, cut, sets, taken = self.score[k], self.cut[k], {}, self._taken(node)
        for j in self.levels:
            if taken is None or taken[j]:
                column, judge = self._column(masses, j), self._judge(node)
                level_cut = best_set(
                    column, int(self.n_bins[j]), has(self.special, HOLES, j), judge
                )
                if level_cut is not None:
                    sets[j], score[j] = level_cut, level_cut.score
        if taken is not None:
            score[~taken] = -1.0
        below = np.empty((self.n_sums, 2))
        j, best, leaf_score = softmax.choose(self, masses, node.total, score, cut, below)
        node.gain = best - leaf_score
        if not (best >= 0 and node.gain > TIE * leaf_score and node.gain >= self.min_split_gain):
            self.free.append(masses)
            return False
        node.feature, node.masses, node.below = j, masses, below
        if j in sets:
            self._note_set(node, sets[j])
        else:
            last = int(cut[0, j])
            node.low, node.high = (last, last + 1) if last < self.n_bins[j] - 1 else (0, -1)
            node.missing = int(cut[1, j])
            if node.missing < 0:
                node.missing = self._side(node)
        return True

    def _side(self, node: VectorNode) -> int:
        """Return the child with the larger weight, for missing values without training rows."""
        assert node.below is not None
        sides = np.array([node.below, node.total - node.below])
        return int(is_heavier(*self._masses(sides)[::-1]))

    def _masses(self, total: FloatArray) -> FloatArray:
        """Return the total Hessians of nodes, given sums (n, S, 2), in the coarsest unit."""
        return np.rint(summed(total[:, : self.n_trees, 1] * self.share))

    def _judge(self, node: VectorNode) -> Judge:
        return Judge(
            self.judged,
            node.total,
            node.size,
            self.min_samples_leaf,
            self.min_child_weight,
            self.tree_rounds.categorical_smoothing,
        )

    def _note_set(self, node: VectorNode, level_cut: LevelCut) -> None:
        """Store a set of categories. Categories without rows are treated as missing values."""
        n_levels = int(self.n_bins[node.feature])
        node.below, node.missing = level_cut.below, level_cut.side
        if level_cut.side < 0:
            node.missing = self._side(node)
        absent = set(range(n_levels)).difference(level_cut.present) if node.missing else ()
        node.subset = sum(1 << int(k) for k in (*level_cut.above, *absent))
        node.low, node.high = -1 if node.subset else 0, -1

    def _taken(self, node: VectorNode) -> NDArray[np.bool_] | None:
        """Return a mask of the features to consider at a node, or None for all."""
        if self.of_tree is None:
            return None
        held, among = self.tree_rounds.restraints, self.of_tree
        if node.alive is not None:
            among = among[(held.together[among] & node.alive).any(axis=1)]
        taken = np.zeros(len(self.codes), dtype=np.bool_)
        taken[self._drawn(among, held.per_split, node.path)] = True
        return taken

    def _drawn(self, among: IntArray, wanted: int, path: int) -> IntArray:
        listed = among.copy()
        softmax.take(listed, wanted, self.tree_rounds.restraints.key, path, self.tree_rounds.number)
        return np.sort(listed[:wanted])

    # ------------------------------------------------------------------ the tree

    def _listed(self, root: VectorNode, units: FloatArray) -> VectorGrown:
        """Return the tree with its nodes in preorder and its leaf values."""
        listed: list[VectorNode] = []
        children: list[list[int]] = []
        waiting = [(root, -1)]
        while waiting:
            node, above = waiting.pop()
            if above >= 0:
                children[above][1] = len(listed)
            place = len(listed)
            listed.append(node)
            children.append([LEAF, LEAF])
            if node.children is not None:
                children[place][0] = place + 1
                waiting += [(node.children[1], place), (node.children[0], -1)]
        nodes = np.zeros(len(listed), dtype=NODE)
        for name in ("start", "stop", "feature", "low", "high", "missing", "depth"):
            nodes[name] = [getattr(node, name) for node in listed]
        leaves = nodes["feature"] == LEAF
        nodes["low"][leaves] = nodes["high"][leaves] = -1
        nodes["missing"][leaves] = 0
        gain = np.array([max(node.gain, 0.0) for node in listed]) * ~leaves
        for e in range(len(listed) - 1, -1, -1):
            if not leaves[e]:
                gain[e] += gain[children[e]].sum()
        first = int(units[:, 1].argmin())
        bits = int(np.frexp(self.most_curved[first] * units[first, 1])[1])
        scale = 2.0**bits
        nodes["loss"] = np.minimum(gain * units[first, 1] / scale, np.finfo(np.float64).max)
        mass = np.zeros((len(listed), 2), dtype=np.int64)
        total = np.array([node.total for node in listed])
        mass[:, 0] = self._masses(total)
        subset = np.zeros(
            (len(listed) if len(self.tree_rounds.subset) else 0, WORDS), dtype=np.uint64
        )
        for e in np.flatnonzero(~leaves & (nodes["low"] < 0)).tolist():
            for w in range(WORDS):
                subset[e, w] = listed[e].subset >> 64 * w & (2**64 - 1)
        value = self._steps(nodes, total, units)
        places = np.array(children, dtype=np.int32)
        return VectorGrown(nodes, places, mass, scale, 0, self.special, subset, value)

    def _steps(self, nodes: Array, total: FloatArray, units: FloatArray) -> FloatArray:
        """Return the values of the nodes for each class, (n_nodes, J)."""
        tree_rounds, steps = self.tree_rounds, self.tree_rounds.steps
        value, step_limit = (
            np.zeros((len(nodes), self.n_trees)),
            min(steps.step_limit, tree_rounds.loss.limit),
        )
        leaves = np.flatnonzero(nodes["feature"] == LEAF)
        is_left = np.ones(self.n_trees, dtype=np.bool_)
        if not steps.solved:  # classes with imprecise sums are left to the kernel
            g, h = total[leaves, : self.n_trees].transpose(2, 0, 1)
            copies = (nodes["stop"] - nodes["start"])[leaves] * self.most_copies
            step = -(units[:, 1] / units[:, 0]) * g / (h + self.judged[0])
            value[leaves] = steps.rate * np.clip(step, -step_limit, step_limit)
            is_left = ~(h >= float(boost.FINE) * copies[:, None]).all(axis=0)
        for k in np.flatnonzero(is_left).tolist():
            of_gradient, of_curvature = units[k].tolist()
            tree_rounds.residual, tree_rounds.node_l2 = self.residual[k], float(self.judged[0, k])
            nodes["gradient"], nodes["curvature"] = total[:, k].T
            unit = of_curvature / of_gradient
            boost.solve_leaves(
                tree_rounds, nodes, steps.l2, step_limit, steps.rate, unit, steps.solved
            )
            value[leaves, k] = nodes["mean"][leaves]
        return value

    def values(self, trees: list[Any]) -> FloatArray:
        """Return the values of the nodes of the tree of a round, 0 for inner nodes."""
        value: FloatArray = trees[0].value
        return value

    def tree(self, trees: list[Any]) -> Any:
        """Return the tree of a round as a model."""
        if isinstance(trees[0], Tree):
            return trees[0]
        _, columns = self._columns(trees)
        return Tree(**columns, **self.tree_rounds.model_fields(), stop_reason="")

    def forest(self, trees: list[list[Any]]) -> RandomForest:
        """Return the trees of rounds as a model."""
        grown = [tree for (tree,) in trees if isinstance(tree, VectorGrown)]
        if len(grown) < len(trees):
            settings = self.tree_rounds.model_fields()["settings"]
            return join_trees([self.tree(round_trees) for round_trees in trees], settings, None)
        root, columns = self._columns(grown)
        return RandomForest(root, **columns, **self.tree_rounds.model_fields(), oob=None)

    def _columns(self, grown: list[VectorGrown]) -> tuple[IntArray, dict[str, Any]]:
        root, columns = self.tree_rounds.columns(grown)
        return root, {**columns, "value": np.concatenate([tree.value for tree in grown])}
