"""The arrays of the compiled tree grower, its driver, and what a grown tree gives a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost import threads
from pboost._core import grow
from pboost._core.voting import VoteRule, scale_weights
from pboost.data.columns.columns import MOST_FLOAT
from pboost.data.columns.prebuilt import LEVELS
from pboost.data.node_inputs.inputs import HALF, WORDS
from pboost.data.prices import Prices
from pboost.data.targets import CODES, IMPURITIES
from pboost.data.training import Problem, TrainingData
from pboost.growth.step import STOPPED, CartStep
from pboost.models.tree_record import LEAF
from pboost.models.trees import Tree, heavier_child, own_sets
from pboost.values import FloatArray, IntArray

#: The types of what the kernel knows of a node, and of a node of a boosted tree; and of its state.
NODE, VOTE, COUNTER = (np.asarray(grow.STATE[name]).dtype for name in ("node", "vote", "counter"))


@dataclass(frozen=True, slots=True)
class CartLimits:
    """How far a tree is grown, and where a node is searched.

    Attributes
    ----------
    criterion : str
        What a split lowers.
    depth, leaves : int
        Most comparisons on a path, and most leaves.
    min_leaf, min_split : int
        Least numbers of rows in a leaf, and where a node is split.
    features : int
        Number of columns in which a node is searched.
    growth : str
        Which open node is split next, see `pboost._core.grow.GROWTH`.
    complexity : float
        Nodes of a classification are left alone whose weight misclassified is no more than this
        times that of the root.
    min_weight : float
        Least share of a node's weight on either side of a split.
    target : float
        Certificate at which a boosted tree is done.
    level_smoothing : float
        Rows of average weight that the shares of a level, by which levels are put in order, are
        mixed with; their shares are the node's.
    comparisons : tuple of float
        Of the trees of a sum that are grown by gain per comparison, one after another, of which the
        last stands for those that follow: mean comparisons of a row at most.
    prices : Prices or None
        What columns cost; a split is then chosen by what it lowers for what a row at the node has
        to pay for it.
    """

    criterion: str
    depth: int
    leaves: int
    min_leaf: int
    min_split: int
    features: int
    growth: str
    complexity: float = 0.0
    min_weight: float = 0.0
    target: float = -1.0
    level_smoothing: float = 0.0
    comparisons: tuple[float, ...] = ()
    prices: Prices | None = None


class TreeArrays:
    """What the kernel reads and writes while one tree grows; see `pboost._core.grow`.

    Nodes are numbered as they arise, the root 0; the children of the split k, counted from 0, are
    2 k + 1 and 2 k + 2. A boosted tree has a `rule` of votes, and of its nodes these are the exits.
    """

    #: Why growing stops, by the status of the kernel.
    reasons: ClassVar[Mapping[str, str]]
    #: The tree ahead if rows are elsewhere, and the methods that go on with it, by status.
    ahead: Any = None
    asks: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        data: TrainingData,
        rows: IntArray,
        label: IntArray,
        most_leaves: int,
        limits: CartLimits,
        rule: VoteRule | None = None,
        key: int = 0,
    ) -> None:
        n, exact = len(rows), data.exact
        n_classes = 0 if data.problem.labels is None else len(data.problem.labels)
        self.data, self.limits, self.rule, self.key = data, limits, rule, key
        self.exact, self.n_classes = exact, n_classes
        self.criterion = CODES[limits.criterion]
        # Partitioned in place, so that of columns, whose arrays do not change, there is a copy.
        self.order = data.order if data.order.flags.writeable else data.order.copy()
        self.codes, self.n_bins = data.columns.codes, data.columns.n_bins
        self.special = data.columns.special
        self.ranks, self.ranked_row = data.problem.ranks if exact else None, rows
        self.rows = rows[:0] if exact else rows.copy()
        if self.ranks is not None:
            # As sorted columns would list them: by the first.
            self.rows = self.ranks[0, rows].argsort(kind="stable").astype(np.int32)
        self.label, self.y = label, data.y
        self.n_negative = int(label.searchsorted(1)) if exact and n_classes == 2 else 0
        self.weight, self.fixed, self.scale = data.weight, data.fixed, data.scale
        # What the masses of nodes are measured in; those of a boosted tree are shares.
        self.whole = data.scale if rule is None else float(sum(data.class_masses()))
        self.moment = np.zeros((0 if n_classes else len(data.fixed), 2), dtype=np.int64)
        self.moment[:, 0] = data.fixed[: len(self.moment)]
        self.side = np.empty(n if exact else 0, dtype=np.uint8)
        self.spare = np.empty(n, dtype=np.int32)
        room = 0 if self.ranks is None else 3 * n
        self.work = np.zeros(grow.work_size(n_classes) + room, dtype=np.int64)
        packed = 0 if exact else n * (1 if n_classes == 2 else 2 * (not n_classes))
        self.packed = np.empty(packed, dtype=np.int64)
        self._make_nodes(most_leaves)
        grow.begin_root(self)

    def _make_nodes(self, most_leaves: int) -> None:
        """Make the places for nodes, and for what is found in the columns at one."""
        d, n_classes = len(self.data.order), self.n_classes
        has_levels = self.special is not None and bool((self.special & LEVELS).any())
        self.best = np.empty(d)
        self.picked = np.arange(d, dtype=np.int32)
        prices = self.limits.prices
        self.to_pay = np.empty(0 if prices is None else len(prices.price))
        # Pages of these that are never written are never taken from the system. Two nodes more:
        # the sides of a split that is looked at are measured where the next children will be.
        capacity = 2 * most_leaves + 1
        self.node = np.empty(capacity, dtype=NODE)
        self.mass = np.empty((capacity, n_classes or 2), dtype=np.int64)
        self.vote = np.empty(0 if self.rule is None else capacity, dtype=VOTE)
        self.subset = np.empty((capacity if has_levels else 0, WORDS), dtype=np.uint64)
        self.open = np.empty(capacity, dtype=np.int32)
        self.counter = np.zeros((), dtype=COUNTER)
        self.certificate = np.empty(2)

    @property
    def n_splits(self) -> int:
        """Number of splits so far."""
        return int(self.counter["leaves"]) - 1

    @property
    def at(self) -> int:
        """The node that is worked on."""
        return int(self.counter["at"])

    def n_rows_at(self, node: int) -> int:
        """Return the number of rows at a node."""
        return int(self.node["stop"][node] - self.node["start"][node])

    def newest(self) -> Any:
        """Return the record of the node split last."""
        raise NotImplementedError


class CartArrays(TreeArrays):
    """The arrays of a classification or regression tree."""

    reasons: ClassVar = {"all leaves": "all leaves are there", "done": "no node can be split"}

    def __init__(self, data: TrainingData, limits: CartLimits, key: int) -> None:
        most = min(limits.leaves, len(data.rows), 1 << min(limits.depth, 40))
        super().__init__(data, data.rows, data.label, most, limits, key=key)
        self.exponent = data.weight_exponent

    def restart(self, weights: FloatArray, order: IntArray) -> None:
        """Begin a tree of the same classification with other weights > 0 of its rows.

        `order` has the sorted orders as they were at first.
        """
        data = self.data
        rows = data.rows if data.exact else None
        self.exponent, self.scale = scale_weights(weights, rows, self.weight, self.fixed)
        self.whole = self.scale
        if data.exact:
            np.copyto(self.order, order)
        else:
            np.copyto(self.rows, data.rows)
        grow.begin_root(self)

    def newest(self) -> CartStep:
        """Return the record of the node split last."""
        at = self.at
        nodes = self.node[at : at + 1]
        feature, low, high = (nodes[name] for name in ("feature", "low", "high"))
        threshold = thresholds_of(feature, low, high, self.data.thresholds, self.special)[0]
        return CartStep(
            int(feature[0]), float(threshold), int(nodes["depth"][0]), self.n_rows_at(at)
        )

    def model(self, settings: Mapping[str, Any], stop_reason: str, criterion: str) -> Tree:
        """Return the tree grown so far, its nodes in preorder."""
        problem = self.data.problem
        _, columns = tree_columns(problem, [self.grown()], criterion)
        return Tree(
            **columns,
            labels=problem.labels,
            n_features=problem.n_features,
            feature_names=problem.names,
            settings=settings,
            stop_reason=stop_reason,
            table=problem.table,
            seen=problem.seen,
        )

    def grown(self) -> Grown:
        """Return the nodes that the root leads to, in preorder."""
        nodes, place, children = self._preorder()
        mass = self.mass.take(place, axis=0)
        subset = self.subset.take(place, axis=0) if len(self.subset) else self.subset
        return Grown(nodes, children, mass, self.scale, self.exponent, self.special, subset)

    def in_preorder(self) -> IntArray:
        """Return which nodes those of the tree are, in preorder."""
        return self._preorder()[1]

    def _preorder(self) -> tuple[NDArray[Any], IntArray, IntArray]:
        """Return the nodes below the root, their numbers, and their children, in preorder."""
        n, rows = int(self.counter["nodes"]), self.data.rows
        nodes, place = np.empty(n, dtype=NODE), np.empty(n, dtype=np.int32)
        children = np.empty((n, 2), dtype=np.int32)
        numbered = rows if self.exact else rows[:0]
        kept = grow.preorder(self.node[:n], nodes, numbered, place, children)
        return nodes[:kept], place[:kept], children[:kept]


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """A tree as it was grown, its nodes in preorder.

    Attributes
    ----------
    nodes : ndarray of NODE, shape (n_nodes,)
        As in `TreeArrays`, or what has the fields that are read of those; `low` and `high` are rows
        of X, or bins.
    children : ndarray of int32, shape (n_nodes, 2)
        As in `Tree`.
    mass : ndarray of int64, shape (n_nodes, J) or (n_nodes, 2)
        Fixed-point masses of the classes; of a regression, of all rows first.
    scale, exponent : float, int
        Of the weights, see `TrainingData`.
    special : ndarray of uint8, shape (d,), or None
        What is special about the columns.
    subset : ndarray of uint64, shape (n_nodes, 4)
        The levels above, where a category was split; empty without such columns.
    """

    nodes: NDArray[Any]
    children: IntArray
    mass: NDArray[np.int64]
    scale: float
    exponent: int
    special: NDArray[np.uint8] | None
    subset: NDArray[np.uint64]


def thresholds_of(
    feature: IntArray,
    low: IntArray,
    high: IntArray,
    between: Callable[[IntArray, IntArray, IntArray], FloatArray],
    special: NDArray[np.uint8] | None,
) -> FloatArray:
    """Return the thresholds of nodes that are split; `between` gives those between rows or bins."""
    if special is None:
        return between(feature, low, high)
    threshold = np.where(low < 0, HALF, MOST_FLOAT)
    cut = np.flatnonzero(high >= 0)
    threshold[cut] = between(feature[cut], low[cut], high[cut])
    return threshold


def tree_columns(
    problem: Problem, grown: Sequence[Grown], criterion: str
) -> tuple[IntArray, dict[str, Any]]:
    """Return where each tree begins, and the columns of `TREE_COLUMNS` of all of them."""
    sizes = [len(tree.nodes) for tree in grown]
    root = np.cumsum([0, *sizes])
    # As they are: NumPy promotes and copies structs field by field.
    kind = grown[0].nodes.dtype
    raw = np.dtype((np.void, kind.itemsize))
    nodes = np.concatenate([tree.nodes.view(raw) for tree in grown]).view(kind)
    children = np.concatenate([tree.children for tree in grown])
    inner = np.flatnonzero(children[:, 0] != LEAF)
    feature = np.full(len(nodes), LEAF, dtype=np.int32)
    feature[inner] = nodes["feature"][inner]
    threshold, special = np.zeros(len(nodes)), grown[0].special
    low, high = nodes["low"][inner], nodes["high"][inner]
    threshold[inner] = thresholds_of(feature[inner], low, high, problem.thresholds, special)
    scale = np.repeat([tree.scale for tree in grown], sizes)
    exponent = np.repeat([tree.exponent for tree in grown], sizes)
    mass = np.concatenate([tree.mass for tree in grown])
    unit = np.ldexp(1.0 / scale, -nodes["shift"])
    if problem.labels is None:
        weight = mass[:, 0] * unit
        value = np.ldexp(nodes["mean"], problem.exponent)
        # The sum of squares is of the weights as they are scaled.
        impurity = np.ldexp(nodes["loss"] / weight, 2 * problem.exponent)
    else:
        total = mass.sum(axis=1)
        value = mass / total[:, None]
        impurity, weight = IMPURITIES[criterion](value), total * unit
    weight = np.ldexp(weight, exponent)
    missing = heavier_child(weight, children, root)
    sets: dict[str, Any] = {}
    if special is not None:
        missing[inner] = np.where(nodes["missing"] < 0, missing, nodes["missing"])[inner]
        of_set = inner[low < 0]
        if len(of_set):
            column, d = feature[of_set], problem.n_features
            feature[of_set] = d + np.arange(len(of_set))
            member = np.concatenate([tree.subset for tree in grown])[of_set]
            sets = own_sets(feature, d, column, member)
            feature = sets.pop("feature")
    return root, {
        "feature": feature,
        "threshold": threshold,
        "children": children,
        "value": value,
        "impurity": impurity,
        "weight": weight,
        "n_rows": nodes["stop"] - nodes["start"],
        "missing": missing,
        **sets,
    }


def grow_tree(
    arrays: TreeArrays, workers: threads.Workers, callback: Callable[[int, Any], Any] | None
) -> str:
    """Split nodes until done; returns why growing stopped."""
    large = threads.CELLS_PER_CALL if workers.n_threads == 1 else threads.MIN_CELLS
    cells = threads.CELLS_PER_CALL if callback is None else 1
    told = arrays.n_splits
    while True:
        threads.check_stop()
        status = grow.grow(arrays, cells, large)
        if status == "large search":
            _search(arrays, workers)
        elif status == "large partition":
            _partition(arrays, workers)
        elif status in arrays.asks:
            getattr(arrays, arrays.asks[status])()
        elif callback is not None and arrays.n_splits > told:
            told = arrays.n_splits
            if callback(told, arrays.newest()):
                return STOPPED
        if status in arrays.reasons:
            return arrays.reasons[status]


def _search(arrays: TreeArrays, workers: threads.Workers) -> None:
    """Search the pending node, its columns shared out among threads."""
    least = math.inf

    def search(first: int, last: int) -> None:
        nonlocal least
        found = grow.search_pending(arrays, first, last, least, np.zeros_like(arrays.work))
        least = min(least, found)  # what another thread has just noted may be lost: no harm

    workers.run(search, int(arrays.counter["picked"]), cells=arrays.n_rows_at(arrays.at))


def _partition(arrays: TreeArrays, workers: threads.Workers) -> None:
    n = arrays.n_rows_at(arrays.at)

    def partition(first: int, last: int) -> None:
        grow.partition_pending(arrays, first, last, np.empty(n, dtype=np.int32))

    workers.run(partition, len(arrays.best), cells=n)
