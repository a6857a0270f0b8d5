"""The arrays of the compiled tree grower, its driver, and the conversion to models."""

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
from pboost.data.columns.columns import MOST_FLOAT, SortedColumns, midpoint
from pboost.data.columns.prebuilt import LEVELS, ROW_MASK, has, is_heavier
from pboost.data.feature_costs import FeatureCosts
from pboost.data.node_inputs.inputs import HALF, WORDS, Subsets
from pboost.data.targets import CODES, IMPURITIES
from pboost.data.training_data import Problem, TrainingData
from pboost.growth.graph_growth import (
    STOPPED,
    SURE,
    CartStep,
    StepRecord,
    TreeLimits,
    constant_vote,
    cost_after,
    sure,
)
from pboost.models.graph import DecisionGraph
from pboost.models.graph_arrays import OUT
from pboost.models.schema import TrainingRecord
from pboost.models.single_tree import Tree, heavier_child, own_sets
from pboost.models.tree_ensemble import LEAF
from pboost.values import MOST_NODES, Array, FloatArray, IntArray
from pboost.weak.stump_search import ColumnLearner

#: Structured types of the kernel: a node, the votes of a node, and the state of growth.
NODE, VOTE, COUNTER = (np.asarray(grow.STATE[name]).dtype for name in ("node", "vote", "counter"))


@dataclass(frozen=True, slots=True)
class CartLimits:
    """Limits of a tree and options of the split search.

    Attributes
    ----------
    criterion : str
        Criterion of the splits.
    depth, leaves : int
        Maximum depth and maximum number of leaves.
    min_samples_leaf, min_samples_split : int
        Minimum number of rows in a leaf, and at a node that is split.
    features : int
        Number of features that are considered at a node.
    growth : str
        Order of the splits, see `pboost._core.grow.GROWTH`.
    complexity : float
        A node of a classification tree is not split if its misclassified weight is at most this
        fraction of the misclassified weight at the root.
    min_weight_fraction : float
        Minimum fraction of a node's weight on each side of a split.
    target : float
        Certificate at which a boosted tree is complete.
    categorical_smoothing : float
        Smoothing of the categories' shares toward the share of the node, see `fit_cart`.
    comparisons : tuple of float
        Maximum mean number of comparisons of each tree with ``growth="cost_efficient"``; the last
        number applies to all further trees.
    feature_costs : FeatureCosts or None
        Costs of features. With costs, splits maximize the gain divided by the remaining cost.
    """

    criterion: str
    depth: int
    leaves: int
    min_samples_leaf: int
    min_samples_split: int
    features: int
    growth: str
    complexity: float = 0.0
    min_weight_fraction: float = 0.0
    target: float = -1.0
    categorical_smoothing: float = 0.0
    comparisons: tuple[float, ...] = ()
    feature_costs: FeatureCosts | None = None


class TreeArrays:
    """The arrays that the kernel reads and writes while a tree grows; see `pboost._core.grow`.

    Nodes are numbered as they are created. The root is 0, and the children of split k (from 0) are
    2 k + 1 and 2 k + 2. A boosted tree has a `rule` for votes. Its exits are stored as nodes.
    """

    #: Stop reasons by the status of the kernel.
    stop_reasons: ClassVar[Mapping[str, str]]
    #: With partitions, the tree is remote; this maps each kernel status to a remote method.
    ahead: Any = None
    callbacks_by_status: ClassVar[Mapping[str, str]] = {}

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
        n_classes = 0 if data.problem.classes is None else len(data.problem.classes)
        self.data, self.limits, self.rule, self.key = data, limits, rule, key
        self.exact, self.n_classes = exact, n_classes
        self.criterion = CODES[limits.criterion]
        # The order is partitioned in place, so a shared read-only order is copied.
        self.order = data.order if data.order.flags.writeable else data.order.copy()
        self.codes, self.n_bins = data.columns.codes, data.columns.n_bins
        self.special = data.columns.special
        self.ranks, self.ranked_row = data.problem.ranks if exact else None, rows
        self.rows = rows[:0] if exact else rows.copy()
        if self.ranks is not None:
            # Rows are sorted by the first column, as in sorted columns.
            self.rows = self.ranks[0, rows].argsort(kind="stable").astype(np.int32)
        self.label, self.y = label, data.y
        self.n_negative = int(label.searchsorted(1)) if exact and n_classes == 2 else 0
        self.weight, self.fixed, self.scale = data.weight, data.fixed, data.scale
        # Unit of the weights of nodes. In a boosted tree, weights are divided by their sum.
        self.mass_unit = data.scale if rule is None else float(sum(data.class_masses()))
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
        """Allocate the arrays for nodes, and for the search at a node."""
        d, n_classes = len(self.data.order), self.n_classes
        has_levels = self.special is not None and bool((self.special & LEVELS).any())
        self.best = np.empty(d)
        self.picked = np.arange(d, dtype=np.int32)
        feature_costs = self.limits.feature_costs
        self.to_pay = np.empty(0 if feature_costs is None else len(feature_costs.cost))
        # Memory pages that are never written need no memory. Two extra nodes store the sides of a
        # split during look-ahead.
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
        """The current node."""
        return int(self.counter["at"])

    def n_rows_at(self, node: int) -> int:
        """Return the number of rows at a node."""
        return int(self.node["stop"][node] - self.node["start"][node])

    def newest(self) -> Any:
        """Return the record of the latest split."""
        raise NotImplementedError


class CartArrays(TreeArrays):
    """The arrays of a classification or regression tree."""

    stop_reasons: ClassVar = {"all leaves": "all leaves are there", "done": "no node can be split"}

    def __init__(self, data: TrainingData, limits: CartLimits, key: int) -> None:
        leaf_limit = min(limits.leaves, len(data.rows), 1 << min(limits.depth, 40))
        super().__init__(data, data.rows, data.label, leaf_limit, limits, key=key)
        self.exponent = data.weight_exponent

    def restart(self, weights: FloatArray, order: IntArray) -> None:
        """Start a new tree for the same rows and classes with new positive weights.

        `order` contains the sorted orders of all rows, before any split.
        """
        data = self.data
        rows = data.rows if data.exact else None
        self.exponent, self.scale = scale_weights(weights, rows, self.weight, self.fixed)
        self.mass_unit = self.scale
        if data.exact:
            np.copyto(self.order, order)
        else:
            np.copyto(self.rows, data.rows)
        grow.begin_root(self)

    def newest(self) -> CartStep:
        """Return the record of the latest split."""
        at = self.at
        nodes = self.node[at : at + 1]
        feature, low, high = (nodes[name] for name in ("feature", "low", "high"))
        threshold = thresholds_of(feature, low, high, self.data.thresholds, self.special)[0]
        return CartStep(
            int(feature[0]), float(threshold), int(nodes["depth"][0]), self.n_rows_at(at)
        )

    def model(self, settings: Mapping[str, object], stop_reason: str, criterion: str) -> Tree:
        """Return the tree grown so far, with its nodes in preorder."""
        problem = self.data.problem
        _, columns = tree_columns(problem, [self.grown()], criterion)
        return Tree(**columns, **problem.model_fields(), settings=settings, stop_reason=stop_reason)

    def grown(self) -> Grown:
        """Return the nodes of the tree in preorder."""
        n, rows = int(self.counter["nodes"]), self.data.rows
        nodes, place = np.empty(n, dtype=NODE), np.empty(n, dtype=np.int32)
        children = np.empty((n, 2), dtype=np.int32)
        numbered = rows if self.exact else rows[:0]
        kept = grow.preorder(self.node[:n], nodes, numbered, place, children)
        nodes, place, children = nodes[:kept], place[:kept], children[:kept]
        mass = self.mass.take(place, axis=0)
        subset = self.subset.take(place, axis=0) if len(self.subset) else self.subset
        return Grown(nodes, children, mass, self.scale, self.exponent, self.special, subset)


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """A grown tree, with its nodes in preorder.

    Attributes
    ----------
    nodes : ndarray of NODE, shape (n_nodes,)
        Nodes, see `TreeArrays`; unused fields may be absent. `low` and `high` are rows of X, or
        bins.
    children : ndarray of int32, shape (n_nodes, 2)
        As in `Tree`.
    mass : ndarray of int64, shape (n_nodes, J) or (n_nodes, 2)
        Fixed-point weights of the classes; in regression the first column is the weight of all
        rows.
    scale, exponent : float, int
        Scale of the weights, see `TrainingData`.
    special : ndarray of uint8, shape (d,), or None
        Flags for features with missing values or categories.
    subset : ndarray of uint64, shape (n_nodes, 4)
        Bit masks of the categories above the split; empty without categorical features.
    """

    nodes: Array
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
    """Return the thresholds of splits; `between` computes thresholds between two rows or bins."""
    if special is None:
        return between(feature, low, high)
    threshold = np.where(low < 0, HALF, MOST_FLOAT)
    cut = np.flatnonzero(high >= 0)
    threshold[cut] = between(feature[cut], low[cut], high[cut])
    return threshold


def tree_columns(
    problem: Problem, grown: Sequence[Grown], criterion: str
) -> tuple[IntArray, dict[str, Any]]:
    """Return the start of each tree, and the arrays of `TREE_COLUMNS` for all trees."""
    sizes = [len(tree.nodes) for tree in grown]
    root = np.cumsum([0, *sizes])
    # Copy raw bytes, since NumPy concatenates structured arrays field by field, which is slow.
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
    if problem.classes is None:
        weight = mass[:, 0] * unit
        value = np.ldexp(nodes["mean"], problem.exponent)
        # The sum of squares uses the scaled weights.
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
    """Split nodes until growth ends; return the stop reason."""
    large = threads.CELLS_PER_CALL if workers.n_threads == 1 else threads.MIN_CELLS
    cells = threads.CELLS_PER_CALL if callback is None else 1
    n_reported = arrays.n_splits
    while True:
        threads.check_stop()
        status = grow.grow(arrays, cells, large)
        if status == "large search":
            _search(arrays, workers)
        elif status == "large partition":
            _partition(arrays, workers)
        elif status in arrays.callbacks_by_status:
            getattr(arrays, arrays.callbacks_by_status[status])()
        elif callback is not None and arrays.n_splits > n_reported:
            n_reported = arrays.n_splits
            if callback(n_reported, arrays.newest()):
                return STOPPED
        if status in arrays.stop_reasons:
            return arrays.stop_reasons[status]


def _search(arrays: TreeArrays, workers: threads.Workers) -> None:
    """Search the next node. Its features are divided among threads."""
    best_value = math.inf

    def search(first: int, last: int) -> None:
        nonlocal best_value
        value = grow.search_pending(arrays, first, last, best_value, np.zeros_like(arrays.work))
        # A lost update by another thread does no harm.
        best_value = min(best_value, value)

    workers.run(search, int(arrays.counter["picked"]), cells=arrays.n_rows_at(arrays.at))


def _partition(arrays: TreeArrays, workers: threads.Workers) -> None:
    n = arrays.n_rows_at(arrays.at)

    def partition(first: int, last: int) -> None:
        grow.partition_pending(arrays, first, last, np.empty(n, dtype=np.int32))

    workers.run(partition, len(arrays.best), cells=n)


class BoostedArrays(TreeArrays):
    """The arrays of a boosted tree. Nodes with a split become nodes of the model.

    The first `n_replayed` splits are copied from a model by `replay`.
    """

    rule: VoteRule
    stop_reasons: ClassVar = {
        "target": "the target certificate is reached",
        "all leaves": "all nodes are opened",
        "done": "no exit can be split",
    }

    def __init__(
        self,
        data: TrainingData,
        weak: ColumnLearner,
        rule: VoteRule,
        limits: TreeLimits,
        n_replayed: int = 0,
    ) -> None:
        n = data.n_rows
        tree_limits = limits_of(weak, limits, n, len(data.order), n_replayed)
        rows = np.arange(n, dtype=np.int32)
        label = (rows >= data.n_negative).astype(np.int32)
        super().__init__(data, rows, label, tree_limits.leaves, tree_limits, rule)
        # Thresholds and exits for missing values of the replayed splits.
        self.replayed_thresholds: FloatArray = np.empty(0)
        self.replayed_missing: FloatArray | None = None

    def replay(self, model: DecisionGraph) -> None:
        """Add the nodes of an existing tree."""
        entrance = {int(next_): 1 + at for at, next_ in enumerate(model.next.ravel())}
        for split in range(model.n_nodes):
            node = entrance[split] if split else 0
            test = self.test_of(model, split, node, self.subset)
            grow.split_given(self, node, *test, *model.vote[split])
        self.replayed_thresholds, self.replayed_missing = model.threshold, model.missing

    def test_of(
        self, model: DecisionGraph, split: int, node: int, subset: NDArray[np.uint64]
    ) -> tuple[int, int, int]:
        """Return the feature, the position and the exit for missing values of a split of a model.

        If the split is a set of categories, it is written to ``subset[node]``.
        """
        feature, missing = int(model.feature[split]), -1
        if model.missing is not None:
            missing = int(model.missing[split])
        if isinstance(model.inputs, Subsets) and feature >= model.n_features:
            subset[node] = model.inputs.member[feature - model.n_features]
            return int(model.inputs.column[feature - model.n_features]), 0, missing
        if has(self.special, LEVELS, feature):
            subset[node] = (
                0  # all categories are below the split, and only missing values are above
            )
            return feature, 0, missing
        return feature, self._place(node, feature, float(model.threshold[split])), missing

    def _place(self, node: int, feature: int, threshold: float) -> int:
        """Return the position of a split: the number of rows in the left child, or the bin."""
        columns = self.data.columns
        if not (isinstance(columns, SortedColumns) and self.exact):
            return columns.bin_below(feature, threshold)
        start, stop = self.node["start"][node], self.node["stop"][node]
        return columns.n_below(feature, self.order[feature, start:stop], threshold)

    def thresholds(self, nodes: NDArray[np.int64]) -> FloatArray:
        """Return the thresholds of splits that the search has found."""
        feature, low, high = (self.node[name][nodes] for name in ("feature", "low", "high"))
        return thresholds_of(feature, low, high, self._between, self.special)

    def _between(self, feature: IntArray, low: IntArray, high: IntArray) -> FloatArray:
        """Return the thresholds of features between rows, or between bins."""
        columns = self.data.columns
        if not isinstance(columns, SortedColumns):
            return np.asarray(columns.threshold(feature, low, None))
        if not self.exact:
            return np.asarray(columns.threshold(feature, low, columns.bin_start[feature, high]))
        # `low` and `high` are the rows next to the split.
        return np.asarray(midpoint(columns.values(feature, low), columns.values(feature, high)))

    def newest(self) -> StepRecord:
        """Return the record of the latest node."""
        at = self.at
        child = self.node["child"][at]
        below, above = self.vote["own"][child : child + 2].tolist()
        parents = (((at - 1) // 2, (at - 1) % 2),) if at else ()
        side, levels = int(self._missing(np.array([at]))[0]), 0
        if len(self.subset) and self.node["low"][at] < 0:
            levels = int.from_bytes(self.subset[at].astype("<u8").tobytes(), "little")
        return StepRecord(
            self.n_splits - 1,
            int(self.node["feature"][at]),
            float(self.thresholds(np.array([at]))[0]),
            (below, above),
            float(self.vote["bound"][at]),
            float(self.vote["certificate"][at]),
            parents,
            side,
            levels,
        )

    def _mass_at(self, node: NDArray[np.int64]) -> FloatArray:
        """Return the reach of nodes."""
        negative, positive = np.ldexp(self.mass[node].T, -self.node["shift"][node])
        return np.asarray(negative + positive)

    def _missing(self, split: NDArray[np.int64]) -> FloatArray:
        """Return the exits for missing values; by default, the exit with larger reach."""
        child = self.node["child"][split]
        heavier = np.asarray(is_heavier(self._mass_at(child + 1), self._mass_at(child)))
        if self.special is None:
            return heavier.astype(np.float64)
        side = self.node["missing"][split]
        return np.where(side >= 0, side, heavier).astype(np.float64)

    def class_sums(self) -> tuple[float, float]:
        """Return the exact sums of the class weights."""
        return self.data.class_sums()

    def real_sums(self, nodes: Sequence[int]) -> FloatArray:
        """Return the exact sums of the class weights at nodes, (nodes, 2)."""
        return np.array([self._real_sums_at(node) for node in nodes])

    def _real_sums_at(self, node: int) -> tuple[float, float]:
        start, stop = (int(self.node[name][node]) for name in ("start", "stop"))
        if self.exact and node:
            parent = int(self.node["parent"][node])
            rows = self.order[int(self.node["feature"][parent]), start:stop] & ROW_MASK
        else:
            rows = self.order[0] & ROW_MASK if self.exact else self.rows[start:stop]
        weight, second = self.weight[rows], self.label[rows] == 1
        return math.fsum(weight[~second]), math.fsum(weight[second])

    def sure(self, certificate: FloatArray, split: NDArray[np.int64]) -> FloatArray:
        """Return certificates, computed from unrounded weights if rounding may have changed them.

        `split` lists the nodes in the order in which they were split.
        """
        n = 2 * len(split) + 1
        nodes, gathered = self.node[:n], self.vote["gathered"][:n]
        unit = np.ldexp(1.0, -nodes["shift"])
        factor = np.exp(np.stack([gathered, -gathered], axis=1))
        bound = (self.mass[:n] * unit[:, None] * factor).sum(axis=1)
        rounding = 0.5 * (nodes["stop"] - nodes["start"]) * unit * factor.sum(axis=1)
        unsure = np.flatnonzero(rounding > SURE * bound).tolist()
        if not unsure:
            return certificate
        for node, sums in zip(unsure, self.real_sums(unsure), strict=True):
            bound[node] = self.scale * float(factor[node] @ sums)
        bound /= self.mass_unit
        certified, total = certificate.copy(), (float(bound[0]), 0.0)
        for k, node in enumerate(split.tolist(), 1):
            child = int(nodes["child"][node])
            changes = [*total, -bound[node], bound[child], bound[child + 1]]
            total = (exact := math.fsum(changes)), math.fsum([*changes, -exact])
            certified[k] = sure(float(certificate[k]), exact)
        return certified

    def model(self, settings: Mapping[str, object], stop_reason: str) -> DecisionGraph:
        """Return the tree grown so far."""
        n = self.n_splits
        nodes, votes = self.node[: 2 * n + 1], self.vote[: 2 * n + 1]
        next_ = (nodes["child"] - 1) >> 1  # OUT for open exits
        is_open = next_ == OUT
        opened = (~is_open).nonzero()[0]
        split = np.empty(n, dtype=np.int64)
        split[next_[opened]] = opened
        bias, start = 0.0, 1.0
        if not n:
            bias, start = constant_vote(self.data, self.rule, self.class_sums())
        certificate = np.empty(n + 1)
        certificate[0], certificate[1:] = start, votes["certificate"][split]
        negative, positive = np.ldexp(self.mass[: 2 * n + 1].T, -nodes["shift"])
        if n:
            # A small certificate is an inaccurate difference of large sums: add up the bounds.
            gathered = votes["gathered"]
            terms = negative * np.exp(gathered) + positive * np.exp(-gathered)
            certificate[-1] = math.fsum(terms[is_open].tolist()) / self.mass_unit
            certificate = self.sure(certificate, split)
        reach = (negative + positive)[split] * (1.0 / self.mass_unit)
        missing = self._missing(split)
        inputs = self.data.model_columns(nodes["feature"][split])
        if self.special is not None:
            inputs = self._tests(split)
        if self.replayed_missing is not None:
            missing[: len(self.replayed_missing)] = self.replayed_missing
        return DecisionGraph.grown(
            threshold=np.concatenate(
                [self.replayed_thresholds, self.thresholds(split[len(self.replayed_thresholds) :])]
            ),
            next=next_[1:].reshape(n, 2),
            vote=votes["own"][1:].reshape(n, 2),
            bias=bias,
            settings=settings,
            record=TrainingRecord(certificate, cost_after(reach), stop_reason),
            missing=missing,
            **self.data.problem.model_fields(),
            **inputs,
        )

    def _tests(self, split: NDArray[np.int64]) -> dict[str, Any]:
        """Return the model fields for the features and sets of categories that nodes compare."""
        column, is_set = self.node["feature"][split], self.node["low"][split] < 0
        if not len(self.subset):
            return self.data.model_columns(column)
        member = np.where(is_set[:, None], self.subset[split], np.uint64(0))
        feature, sets = Subsets.of_tests(self.data.problem.n_features, column, member)
        return {"feature": feature, "inputs": sets}


def limits_of(
    weak: ColumnLearner, limits: TreeLimits, n: int, n_columns: int, n_replayed: int = 0
) -> CartLimits:
    """Return the limits of a boosted tree for n rows that starts with replayed splits."""
    leaves = 1 + min(limits.nodes, n_replayed + max(n - 1, 1), MOST_NODES)
    return CartLimits(
        weak.criterion,
        limits.depth,
        leaves,
        weak.min_samples_leaf,
        0,
        n_columns,
        limits.growth,
        min_weight_fraction=weak.min_weight_fraction,
        target=limits.target,
        categorical_smoothing=weak.categorical_smoothing,
    )
