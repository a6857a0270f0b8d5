"""Classification and regression trees, as arrays of one tree or of several trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pboost._core import tree_walk
from pboost.data.columns.prebuilt import is_heavier
from pboost.data.node_inputs.inputs import HALF, WORDS, ColumnNames
from pboost.data.read.table import MOST_LEVELS, Table
from pboost.models import schema as stored
from pboost.models.base import Averaged, CostUnit
from pboost.models.evaluate.graph_walk import goes_right
from pboost.models.evaluate.kernel_walk import (
    STEP,
    Holes,
    Sets,
    of_columns_read,
    over_tiles,
    past_missing,
)
from pboost.models.evaluate.match_input import match_columns
from pboost.models.evaluate.partial_evaluation import BlockEvaluator, trees_inquiry
from pboost.models.schema import (
    Arrays,
    Header,
    HeaderAndArrays,
    PruningTable,
    Settings,
    check_shares,
    table_field,
)
from pboost.models.shares import as_shares
from pboost.models.text import MOST, counted, headline, sides_of
from pboost.models.tree_ensemble import LEAF, TreeNodes
from pboost.values import Array, FloatArray, IntArray, TableLike, freeze, shown

SET_STEP = np.dtype([*STEP.descr, ("first", np.int64)])
#: Largest number of columns of a tile that the kernels support.
MOST_COLUMNS = int(np.iinfo(np.int32).max) // tree_walk.TILE_ROWS
#: The highest bit of a category set. It represents missing values; no category uses it.
MISSING = np.uint64(1 << 63)
#: If weight times impurity overflows, both factors are divided by ``2**FAR``.
FAR = 540
#: The arrays with one entry per node.
TREE_COLUMNS = (
    "feature",
    "threshold",
    "children",
    "value",
    "impurity",
    "weight",
    "n_rows",
    "missing",
)
#: The arrays with one entry per category set, followed by all optional arrays.
SETS = ("subset_column", "subset")
SIDES = ("missing", *SETS)
#: Stored in files instead of `missing` if missing values go to the child of larger weight.
BY_REACH = "reach"


def heavier_child(weight: FloatArray, children: IntArray, root: IntArray) -> NDArray[np.uint8]:
    """Return the number (0 or 1) of the heavier child of each node; 0 for leaves and ties.

    Missing values go to this child if the training data had no missing values. Differences of
    the size of rounding errors count as ties.
    """
    is_inner = children[:, 0] >= 0
    start = np.asarray(root[:-1]).repeat(np.diff(root))[is_inner]
    first, second = (children[is_inner] + start[:, None]).T
    heavier = np.zeros(len(weight), dtype=np.uint8)
    heavier[is_inner] = is_heavier(weight[second], weight[first])
    return heavier


def own_sets(
    feature: IntArray, n_features: int, column: IntArray, member: NDArray[np.uint64]
) -> dict[str, Any]:
    """Remove unused and duplicate category sets; return the arrays of the sets and `feature`.

    In `feature`, ``n_features + k`` refers to set k: the categories ``member[k]`` of feature
    ``column[k]``.
    """
    is_set = feature >= n_features
    if not is_set.any():
        return {"feature": feature, "subset_column": None, "subset": None}
    number = feature[is_set] - n_features
    every = np.column_stack([column.astype(np.uint64), member])
    distinct, place = np.unique(every[number], axis=0, return_inverse=True)
    feature = feature.copy()
    feature[is_set] = n_features + place.ravel()
    return {"feature": feature, "subset_column": distinct[:, 0], "subset": distinct[:, 1:]}


def in_sets(
    member: NDArray[np.uint64], level: FloatArray
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether each category is in its set, and whether it is a valid category."""
    is_level = (level >= 0) & (level < MOST_LEVELS) & (level == np.floor(level))
    code = np.where(is_level, level, 0.0).astype(np.uint64)
    word = np.take_along_axis(member, (code // np.uint64(64)).astype(np.intp)[:, None], axis=1)
    bit = word[:, 0] >> (code % np.uint64(64)) & np.uint64(1)
    return is_level & (bit == 1), is_level


def steps_of(trees: Trees, column: IntArray) -> NDArray[np.uint8]:
    """Return the nodes in the kernel's format; `column` is the feature of each node."""
    is_leaf, is_set = trees.feature < 0, trees.feature >= trees.n_features
    steps = np.zeros(trees.n_nodes, dtype=STEP if trees.subset is None else SET_STEP)
    steps["threshold"] = np.where(is_leaf, -np.inf, trees.threshold)
    steps["column"] = np.where(is_leaf, 0, column * tree_walk.TILE_ROWS)
    steps["beyond"] = np.where(is_leaf, -1, trees.children[:, 1] - trees.children[:, 0])
    if trees.subset is not None and trees.missing is not None:
        steps["threshold"][is_set] = np.inf
        number = 2 * (trees.feature[is_set] - trees.n_features) + trees.missing[is_set]
        steps["first"][is_set] = WORDS * (1 + number)
    return steps.view(np.uint8)


def words_of(trees: Trees) -> Sets | None:
    """Return the category sets in the kernel's format, and their features; None without sets.

    The first set is empty. Then there are two copies of each set; the second copy includes
    missing values.
    """
    if trees.subset is None or trees.subset_column is None:
        return None
    words = np.zeros((1 + 2 * trees.n_sets, WORDS), dtype=np.uint64)
    words[1::2] = words[2::2] = trees.subset
    words[2::2, -1] |= MISSING
    return freeze(words), freeze(np.unique(trees.subset_column).astype(np.int32))


def columns_with_holes(trees: Trees) -> tuple[IntArray, IntArray]:
    """Return the columns that nodes read if values are missing, and the copied features.

    A feature is copied if a node sends its missing values to the second child. In the copy,
    missing values are replaced by infinity. The copies are the last columns.
    """
    column, d = trees.column.copy(), trees.n_features
    is_second = (trees.missing == 1) & (trees.feature < d)
    twice, place = np.unique(column[is_second], return_inverse=True)
    if d + len(twice) > MOST_COLUMNS:
        raise NotImplementedError(
            f"X: contains missing values, for which at most {MOST_COLUMNS} columns can be "
            f"evaluated; the model has {d} features and needs copies of {len(twice)} features"
        )
    column[is_second] = d + place
    return column, twice


def columns_on_way(column: IntArray, children: IntArray, n_features: int) -> NDArray[np.bool_]:
    """Return a mask (n_nodes, n_features) of the features compared on the path to each node.

    Nodes are in preorder; `column` is negative for leaves.
    """
    on_way = np.zeros((len(column), n_features), dtype=np.bool_)
    for node in np.flatnonzero(column >= 0).tolist():
        for child in children[node].tolist():
            on_way[child] = on_way[node]
            on_way[child, column[node]] = True
    return on_way


class SetNodes(TreeNodes):
    """Base class of trees with splits by sets of categories; see `Tree`."""

    __slots__ = ()
    subset_column: IntArray | None
    subset: NDArray[np.uint64] | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trees(SetNodes, Averaged):
    """One or more trees in the same arrays, with the nodes of each tree in preorder."""

    root: IntArray = stored.column(np.int32)
    feature: IntArray = stored.column(np.int32, "n_nodes", within=(LEAF, "n_inputs"))
    threshold: FloatArray = stored.column(np.float64, "n_nodes")
    children: IntArray = stored.column(np.int32, "n_nodes", 2)
    value: FloatArray = stored.column(np.float64, "n_nodes", lambda trees: trees.of_value)
    impurity: FloatArray = stored.column(np.float64, "n_nodes", positive=True)
    weight: FloatArray = stored.column(np.float64, "n_nodes", positive=True)
    n_rows: IntArray = stored.column(np.int32, "n_nodes", positive=True)
    classes: Array | None = stored.classes(optional=True)
    n_features: int = stored.n_features()
    feature_names: tuple[str, ...] | None = stored.names()
    settings: Settings = stored.settings()
    table: Table | None = table_field()
    #: Index of each leaf among the leaves of its tree; -1 for inner nodes.
    leaf: IntArray = stored.made(lambda trees: trees._leaves())
    #: The nodes in the kernel's format.
    steps: NDArray[np.uint8] = stored.made(lambda trees: steps_of(trees, trees.column))
    #: Depth of each tree.
    depths: IntArray = stored.made(
        lambda trees: np.maximum.reduceat(trees.node_depth(), trees.root[:-1])
    )
    #: The category sets in the kernel's format; see `words_of`.
    sets: Sets | None = stored.made(words_of)
    #: Sum of the depths of the trees.
    n_steps: int = stored.made(lambda trees: int(trees.depths.sum()))
    #: Number of columns of the tiles for evaluation, including copies of features.
    tile_width: int = stored.made(lambda trees: trees._tile_width())
    memo: dict[str, Any] = stored.memo()

    @property
    def mean_prediction_cost(self) -> float:
        """Mean number of comparisons per training row, summed over the trees."""
        rows, (inner, _) = self.n_rows.astype(np.float64), self.inner()
        return float((rows[inner] / rows[self.start][inner]).sum())

    @property
    def of_value(self) -> tuple[int, ...]:
        """Shape of the value of a node: () for one number, (J,) for J numbers."""
        if self.classes is not None:
            return (len(self.classes),)
        return self.value.shape[1:2] if self.value.ndim == 2 else ()

    @property
    def n_inputs(self) -> int:
        """Number of features and category sets."""
        return self.n_features + (0 if self.subset_column is None else len(self.subset_column))

    @property
    def n_sets(self) -> int:
        """Number of category sets."""
        return self.n_inputs - self.n_features

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        """Whether the trees accept missing values."""
        return self.missing is not None

    @property
    def column(self) -> IntArray:
        """Feature that each node reads; -1 for leaves."""
        if self.subset_column is None:
            return self.feature
        column: IntArray = self.feature.copy()
        is_set = column >= self.n_features
        column[is_set] = self.subset_column[column[is_set] - self.n_features]
        return column

    def check_whole(self) -> None:
        """Check the values and the topology."""
        sizes = np.diff(self.root)
        if (even := sizes[sizes % 2 == 0]).size:
            raise ValueError(
                f"feature: expected an odd number of nodes in each tree, got {even[0]}"
            )
        if self.classes is not None and not (
            ((self.value >= 0) & (self.value <= 1)).all()
            and (np.abs(self.value.sum(axis=1) - 1) < 1e-9).all()
        ):
            raise ValueError("value: expected probabilities that add up to 1")
        self.check_links()
        inner, children = self.inner()
        if not (children[:, 0] == inner + 1).all():
            raise ValueError(
                "children: expected the first child right after its parent, and the second child "
                "later"
            )
        self._check_sets()

    def _check_sets(self) -> None:
        """Check the category sets."""
        if (self.subset is None) != (self.subset_column is None):
            raise ValueError("subset: expected both subset and subset_column, or neither")
        if self.subset is None:
            return
        if self.missing is None:
            raise ValueError("missing: expected an array, because nodes use category sets")
        if (self.threshold[self.feature >= self.n_features] != HALF).any():
            raise ValueError(f"threshold: expected {HALF} in nodes that split by categories")
        if (self.subset[:, -1] & MISSING).any():
            raise ValueError(f"subset: expected category codes below {MOST_LEVELS}")

    def parts(self) -> HeaderAndArrays:
        """Return the header fields and the arrays of a file."""
        header, arrays = Averaged.parts(self)
        if self.missing is not None and np.array_equal(self.missing, self.heavier_child()):
            del arrays["missing"]
            header["missing"] = BY_REACH
        return header, arrays

    @classmethod
    def from_parts(cls, header: Header, arrays: Arrays) -> Any:
        """Build the trees from a file; raise ValueError or TypeError if they are invalid."""
        rule = header.get("missing")
        if rule is None:
            return super(Trees, cls).from_parts(header, arrays)
        if rule != BY_REACH or "missing" in arrays:
            raise ValueError(f"missing: expected {BY_REACH!r} or an array, got {rule!r}")
        none = np.zeros(arrays["feature"].shape, np.uint8)
        trees = super(Trees, cls).from_parts(header, {**arrays, "missing": none})
        object.__setattr__(trees, "missing", freeze(trees.heavier_child()))
        return trees

    def heavier_child(self) -> NDArray[np.uint8]:
        """Return for each node the child of larger weight; 0 for leaves and ties."""
        return heavier_child(self.weight, self.children, self.root)

    @stored.once
    def of_features_read(self) -> tuple[IntArray, Any] | None:
        """Return the features that the trees read, and the trees for a table of these features."""
        if self.table is not None and self.table.has_levels:
            return None
        read = np.unique(self.column[self.column >= 0]).astype(np.int32)
        read = read if len(read) else np.zeros(1, dtype=np.int32)  # a table has a column
        return read, self.on_columns(read)

    def on_columns(self, read: IntArray) -> Self:
        """Return the trees for a table that contains only the features in `read`."""
        columns, d = self.with_sets({"feature": self.feature}), self.n_features
        feature, of_sets = columns["feature"], columns.get("subset_column")
        place = np.where(feature < d, read.searchsorted(feature), feature - d + len(read))
        columns["feature"] = np.where(feature < 0, feature, place)
        if of_sets is not None:
            columns["subset_column"] = read.searchsorted(of_sets)
        return replace(self, **columns, n_features=len(read), feature_names=None, table=None)

    def columns_at(self, nodes: object) -> dict[str, Any]:
        """Return the arrays of the given nodes."""
        every = ((name, getattr(self, name)) for name in TREE_COLUMNS)
        return {name: None if array is None else array[nodes] for name, array in every}

    def with_sets(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Return the arrays of nodes together with the category sets they use."""
        if self.subset_column is None or self.subset is None:
            return columns
        sets = own_sets(columns["feature"], self.n_features, self.subset_column, self.subset)
        return {**columns, **sets}

    def _tile_width(self) -> int:
        twice = 0 if self.missing is None else min(self.n_features, self.n_nodes // 2)
        return self.n_features + twice

    def _leaves(self) -> IntArray:
        is_leaf = self.feature == LEAF
        number = np.cumsum(is_leaf) - 1
        if len(self.root) > 2:
            number -= (number + ~is_leaf)[self.start]
        return np.where(is_leaf, number, LEAF).astype(np.int32)

    def path_parts(self, X: TableLike, value: FloatArray) -> FloatArray:
        """Divide the leaf value of one row into contributions (1 + d, ...) of the features.

        The first entry is the sum of the root values. The entry of a feature is the sum of the
        changes in value at nodes that compare the feature. Source: Saabas (2014).
        """
        row, columns = match_columns(self, X).values[0], self.column
        parts = np.zeros((1 + self.n_features, *value.shape[1:]))
        parts[0] = value[self.root[:-1]].sum(axis=0)
        for at, _, child in self.way(row):
            np.add.at(parts, 1 + columns[at], value[child] - value[at])
        return parts

    def way(self, row: FloatArray) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Follow a row through all trees; for each depth, yield its nodes, exits and next nodes."""
        columns = self.column
        at = root = np.asarray(self.root[:-1])
        while True:
            inner = self.feature[at] != LEAF
            at, root = at[inner], root[inner]
            if not len(at):
                return
            exit_ = self.goes_to_second(row[columns[at]], at).astype(np.int32)
            child = root + self.children[at, exit_]
            yield at, exit_, child
            at = child

    def asks_whether_missing(self, node: int) -> bool:
        """Return whether a node separates missing values from all other values."""
        is_asked = self.missing is not None and self.missing[node] and self.threshold[node] == MOST
        return bool(is_asked)

    def goes_to_second(self, value: FloatArray, node: IntArray) -> NDArray[np.bool_]:
        """Return whether rows with these values go to the second child of the nodes."""
        above: NDArray[np.bool_] = goes_right(value, self.threshold[node])
        if self.missing is None:
            return above
        is_known, is_set = ~np.isnan(value), self.feature[node] >= self.n_features
        if self.subset is not None and is_set.any():
            sets = self.subset[self.feature[node[is_set]] - self.n_features]
            above[is_set], is_known[is_set] = in_sets(sets, value[is_set])
        return np.where(is_known, above, self.missing[node] == 1)

    def expected_values(self, value: FloatArray) -> FloatArray:
        """Return the values, with the weighted mean of the leaves below at inner nodes."""
        value, depth = value.copy(), self.node_depth()
        inner, children = self.inner()
        for level in range(int(depth.max()) - 1, -1, -1):
            at_level = depth[inner] == level
            node, child = inner[at_level], children[at_level]
            weight = self.weight[child]
            largest = weight.max(axis=1, keepdims=True)
            weight = np.divide(weight, largest, out=np.ones(weight.shape), where=largest > 0)
            weight /= weight.sum(axis=1, keepdims=True)
            value[node] = (value[child].T * weight.T).sum(axis=-2).T
        return value

    def mean_parts(self, X: TableLike) -> FloatArray:
        """Return the contributions to the mean prediction of the trees; see `path_parts`."""
        return self.path_parts(X, self.value) / len(self.depths)

    def inquiry(self, settles: bool) -> BlockEvaluator:
        """Return the evaluator for feature acquisition along the path of a row."""
        return trees_inquiry(self, self, self.value.reshape(self.n_nodes, -1))

    def places(self, X: TableLike) -> IntArray:
        """Return the leaf of each row in each tree, relative to the root; shape (n, n_trees)."""
        values = match_columns(self, X).values
        places = of_columns_read(self, values, lambda trees, rows: trees.places(rows))
        if places is not None:
            return np.asarray(places)
        n, d = values.shape
        leaf = np.empty((n, len(self.depths)), dtype=np.int32)

        def work(start: int, stop: int, tile: FloatArray) -> bool:
            return self.walk_leaves(values, start, stop, tile, leaf) < stop

        over_tiles(self, X, n, work, self.tile_width, d + self.n_steps, n * d)
        return leaf

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return the number of comparisons, or of distinct features per tree, for each row."""
        node = self.places(X) + self.root[:-1]
        if unit != "features":
            return self.node_depth()[node].sum(axis=1).astype(np.float64)
        count = np.array([len(columns) for columns in self.columns_read()], dtype=np.float64)
        return count[node].sum(axis=1)

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield a mask (n, d) of the features that the first 1, 2, ... trees compare."""
        node, column, d = self.places(X), self.column, self.n_features
        read = np.zeros((len(node), d), dtype=np.bool_)
        for tree, (start, stop) in enumerate(pairwise(self.root.tolist())):
            on_way = columns_on_way(column[start:stop], self.children[start:stop], d)
            read |= on_way[node[:, tree]]
            yield read

    def columns_read(self) -> Iterator[Counter[int]]:
        """For each node, yield how often each feature is compared on the path to the node.

        The same counter is reused for all nodes; copy it to keep its values.
        """
        read: Counter[int] = Counter()
        path: list[int] = []
        # In preorder, consecutive nodes share the first part of their paths.
        for feature, depth in zip(self.column.tolist(), self.node_depth().tolist(), strict=True):
            while len(path) > depth:
                last = path.pop()
                read[last] -= 1
                if not read[last]:
                    del read[last]
            yield read
            path.append(feature)
            read[feature] += 1

    def walk_leaves(
        self, values: Array, start: int, stop: int, tile: FloatArray, leaf: IntArray
    ) -> int:
        """Call the kernel that finds leaves; restart it at the first row with a missing value."""

        def walk(at: int, *special: Any) -> int:
            return tree_walk.walk_leaves(values, *self.arrays, at, stop, tile, leaf, *special)

        return past_missing(self, start, stop, tile, walk)

    @property
    def arrays(self) -> tuple[NDArray[np.uint8], IntArray, IntArray]:
        """Nodes, roots and depths in the kernel's format."""
        return self.steps, self.root, self.depths

    @property
    @stored.once
    def holes(self) -> Holes:
        """Nodes and copied features for rows with missing values; see `tree_walk`."""
        column, twice = columns_with_holes(self)
        return freeze(steps_of(self, column)), freeze(twice)


def ranges(first: Array, last: Array) -> NDArray[np.intp]:
    """Concatenate integer ranges."""
    return np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree(Trees):
    """A classification or regression tree, made by `fit_cart`.

    Nodes are in preorder: node 0 is the root, the first child of a node comes right after it,
    and all nodes below the first child come before the second child. A row goes to the first
    child if ``x[feature] <= threshold``, else to the second.

    Attributes
    ----------
    feature : ndarray of int32, shape (n_nodes,)
        Feature that is compared; -1 for leaves.
    threshold : ndarray of float64, shape (n_nodes,)
        Threshold of the feature; 0 for leaves.
    children : ndarray of int32, shape (n_nodes, 2)
        The two children; -1 for leaves.
    value : ndarray of float64, shape (n_nodes, J) or (n_nodes,)
        Weighted class frequencies at the node; for regression, the mean target. Trees with
        several outputs of a `GradientBoostingModel` have one number per class.
    impurity : ndarray of float64, shape (n_nodes,)
        Impurity by the criterion of the fit; for regression, the mean squared error.
    weight : ndarray of float64, shape (n_nodes,)
        Sum of the sample weights at the node. Only ``ccp_alpha`` of
        `cost_complexity_pruning_path` depends on the scale of the weights.
    n_rows : ndarray of int32, shape (n_nodes,)
        Number of training rows with positive weight.
    classes : ndarray, shape (J,), or None
        The sorted class labels; None for regression.
    n_features : int
        Number of training features.
    feature_names : tuple of str or None
        Names of the training features, or None.
    settings : mapping
        The options of the fit.
    stop_reason : str
        Why growth ended, as a sentence.
    pruning : PruningTable or None
        Cross-validation results of `fit_pruned_cart`.
    missing : ndarray of uint8, shape (n_nodes,), or None
        The child, 0 or 1, for rows with a missing value; 0 for leaves. If it is None, missing
        values raise an error.
    subset_column : ndarray of int32, shape (k,), or None
        Feature of each category set. A node whose `feature` is ``n_features + i`` sends rows
        with a category in set i to the second child; its `threshold` is 1/2. None without sets.
    subset : ndarray of uint64, shape (k, 4), or None
        The category sets: bit ``b % 64`` of word ``b // 64`` is 1 if category b is in the set.
    table : Table or None
        Types and categories of the training features, and which of them had missing values; see
        `pboost.data.read.table`. None if all were numeric without missing values.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the training rows, see :doc:`/how_to/error_bounds_and_prediction_sets`; None if
        unknown.
    """

    root: IntArray = stored.made(lambda tree: np.array([0, tree.n_nodes], np.int32), late=False)
    stop_reason: str = stored.text()
    pruning: PruningTable | None = stored.part(PruningTable, "table")
    missing: NDArray[np.uint8] | None = stored.column(np.uint8, "n_nodes", optional=True)
    subset_column: IntArray | None = stored.column(
        np.int32, "n_sets", within=(0, "n_features"), optional=True
    )
    subset: NDArray[np.uint64] | None = stored.column(np.uint64, "n_sets", WORDS, optional=True)

    instead: ClassVar = {
        "truncate": "use prune to make a tree smaller",
        "reach": "apply and decision_path return the leaf and the path of each row",
        "plot.graph": "use plot.tree",
    }
    no_graph, file_kind = "whose nodes have no votes", "tree"
    of_classes, of_numbers = "a tree", "a regression tree has"

    def check_whole(self) -> None:
        """Check the nodes, and the errors of the pruning table."""
        Trees.check_whole(self)
        if self.pruning is not None and self.classes is not None:
            check_shares("pruning.error", self.pruning.error)

    def __repr__(self) -> str:
        kind = self.settings.get("builder", "Tree")
        return f"<{kind}: {self.n_leaves} leaves, {self.n_features} features>"

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return (self.n_nodes + 1) // 2

    @property
    def task(self) -> str:
        """Kind of prediction: "classification" or "regression"."""
        return "regression" if self.classes is None else "classification"

    @property
    def depth(self) -> int:
        """Largest number of comparisons for a row."""
        return int(self.depths[0])

    def predict(self, X: TableLike) -> Array:
        """Return the most probable class, or the predicted value, of each row."""
        at = self.nodes_of(X)
        if self.classes is None:
            return self.value[at]
        return self.classes[np.argmax(self.value, axis=1)[at]]

    def mean(self, X: TableLike) -> FloatArray:
        """Return the class frequencies, or the mean target, at the leaf of each row."""
        return self.value[self.nodes_of(X)]

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return feature importances: shares in the decrease of weight times impurity."""
        with np.errstate(over="ignore"):
            risk = self.weight * self.impurity
            if not np.isfinite(risk.sum()):  # rescale; only ratios matter
                risk = np.ldexp(self.weight, -FAR) * np.ldexp(self.impurity, -FAR)
        return as_shares(self.split_gain(risk))

    def split_gain(self, risk: FloatArray) -> FloatArray:
        """Return the total decrease of `risk` (n_nodes,) by the splits on each feature."""
        inner = np.flatnonzero(self.feature != LEAF)
        gain = np.maximum(risk[inner] - risk[self.children[inner]].sum(axis=1), 0.0)
        return np.bincount(self.column[inner], gain, self.n_features).astype(np.float64)

    def nodes_of(self, X: TableLike) -> IntArray:
        """Return the leaf of each row, as the index of its node."""
        return self.places(X)[:, 0]

    def describe(self) -> str:
        """Return the tree as text: a summary, then one line per node, indented by depth."""
        leaves = counted(self.n_leaves, "leaf", "leaves")
        lines = [
            headline(
                self, f"{self.settings.get('builder', 'tree')}: {leaves}", f"depth {self.depth}"
            ),
            f"stopped: {self.stop_reason}",
        ]
        depth, tests = self.node_tests()
        for node, test in enumerate(tests):
            lines.append(f"{'  ' * int(depth[node])}{test}{self._said(node)}")
        return "\n".join(lines)

    def node_tests(self) -> tuple[IntArray, list[str]]:
        """Return the depth of each node, and the text of the condition that leads to it."""
        names = ColumnNames(self.feature_names, self.n_features, self.table)
        text, columns = [""] * self.n_nodes, self.column
        for node in np.flatnonzero(self.feature != LEAF).tolist():
            texts = sides_of(self, node, names)
            if self.table is not None and self.table.has_missing[columns[node]]:
                side = int(self.missing[node]) if self.missing is not None else 0
                if not texts[side].endswith(" is missing"):
                    texts[side] += " or missing"
            for child, test in zip(self.children[node].tolist(), texts, strict=True):
                text[child] = f"{test}: "
        return self.node_depth(), text

    def goes_with(self, X: TableLike) -> dict[int, str]:
        """Describe, for each missing feature, the values that go to the same children."""
        names = ColumnNames(self.feature_names, self.n_features, self.table)
        row, columns = match_columns(self, X).values[0], self.column
        texts: dict[int, list[str]] = {}
        for (node,), (above,), _ in self.way(row):
            column = int(columns[node])
            if np.isnan(row[column]) and not self.asks_whether_missing(node):
                text = sides_of(self, node, names)[above].removeprefix(f"{names[column]} ")
                text = text.replace("not in ", "other than ", 1).removeprefix("in ")
                texts.setdefault(column, []).append(text.replace(">  ", "> ", 1))
        return {column: " and ".join(tests) for column, tests in texts.items()}

    def _said(self, node: int) -> str:
        """Describe the prediction and the weight of a node."""
        rows = f"({self.weight[node]:.6g})"
        if self.classes is None:
            return f"{' '.join(f'{of:.6g}' for of in np.atleast_1d(self.value[node]))} {rows}"
        best = int(np.argmax(self.value[node]))
        return f"{self.classes[best].item()!r} {self.value[node, best]:.4f} {rows}"


def tree_only(model: object) -> Tree:
    """Return the model if it is a `Tree`, else raise TypeError."""
    if not isinstance(model, Tree):
        raise TypeError(f"tree: expected a Tree, such as fit_cart returns, got {shown(model)}")
    return model
