"""Random forests: the mean of the predictions of trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from pboost._core import tree_walk
from pboost.data.node_inputs.inputs import WORDS, ColumnNames
from pboost.data.read.table import MOST_LEVELS
from pboost.data.row_fingerprint import Digest
from pboost.models import schema as stored
from pboost.models.evaluate.exits import Exits, Left, NodeExits, of_means, proven_exits, rest_of
from pboost.models.evaluate.kernel_walk import (
    STEP,
    WIDE,
    Holes,
    leave_trees,
    of_columns_read,
    of_trees,
    over_tiles,
    past_missing,
    with_work,
)
from pboost.models.evaluate.match_input import match_columns
from pboost.models.evaluate.sparse_rows import SparseRows
from pboost.models.schema import OutOfBag, Settings, check_offsets, check_sum
from pboost.models.shares import costs_by_then, mean_of_shares, means_by_then
from pboost.models.single_tree import (
    SETS,
    TREE_COLUMNS,
    Tree,
    Trees,
    columns_with_holes,
    in_sets,
    own_sets,
    ranges,
)
from pboost.models.text import counted, headline, of_bags
from pboost.models.tree_ensemble import LEAF
from pboost.values import Array, FloatArray, IntArray, TableLike, check_position, freeze

#: Smallest number of comparisons and of trees for which checking for early exits saves time.
MANY_CELLS, FEW_TREES = 8192, 16
#: Placeholders larger than every 16-bit rank, and every 8-bit rank (stored minus 128).
NO_EDGE, NO_EDGE_OF_BYTES = np.iinfo(np.int16).max, np.iinfo(np.int8).max
#: Largest number of thresholds of a feature for which 8-bit ranks suffice.
FEW_EDGES = 255
#: Largest depth for which comparing all nodes of a tree can be faster than walking it.
MOST_DEPTH = 8


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RandomForest(Trees):
    """A random forest; see `fit_random_forest`.

    ``forest[i]`` is tree i, as a `Tree`; ``len(forest)`` is the number of trees. A slice such as
    ``forest[:20]`` is a forest of these trees, without out-of-bag predictions (`oob` is None).

    Attributes
    ----------
    root : ndarray of int32, shape (n_trees + 1,)
        Index of the first node of each tree, followed by the number of nodes.
    feature, threshold, children, value, impurity, weight, n_rows : ndarray
        The arrays of all trees, concatenated; see `Tree`. `children` are relative to the root of
        the tree.
    classes : ndarray, shape (J,), or None
        The sorted class labels; None for regression.
    n_features : int
        Number of training features.
    feature_names : tuple of str or None
        Names of the training features, or None.
    settings : mapping
        The options of the fit.
    oob : OutOfBag or None
        Out-of-bag predictions of the training rows, from trees not fitted to the row.
    missing, subset_column, subset : ndarray or None
        The arrays of all trees, concatenated; see `Tree`.
    table : Table or None
        Type and categories of each training feature, and whether it had missing values; see
        `pboost.data.read.table`. None if all features were numeric without missing values.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the training rows, see :doc:`/how_to/error_bounds_and_prediction_sets`; None if
        unknown.
    """

    oob: OutOfBag | None = stored.part(OutOfBag, "record")
    missing: NDArray[np.uint8] | None = stored.column(np.uint8, "n_nodes", optional=True)
    subset_column: IntArray | None = stored.column(
        np.int32, "n_sets", within=(0, "n_features"), optional=True
    )
    subset: NDArray[np.uint64] | None = stored.column(np.uint64, "n_sets", WORDS, optional=True)

    no_graph = "whose trees are model[i]"
    instead: ClassVar = {
        "truncate": "use model[:k] for the first k trees",
        "reach": "apply returns the leaf of each row in each tree",
        "plot.graph": "plot.tree draws one tree",
    }
    file_kind, file_stop = "random-forest", "all trees are there"
    of_classes, of_numbers = "a forest", "a forest of regression trees has"

    def check_whole(self) -> None:
        """Check the offsets, the trees, their sums and the out-of-bag record."""
        check_offsets("root", self.root, self.n_nodes)
        Trees.check_whole(self)
        if self.classes is None:
            check_sum("value", self.largest_values())
        if self.oob is not None:
            self.oob.check(self.classes)

    @property
    def depth(self) -> IntArray:
        """Depth of each tree."""
        return self.depths

    def largest_values(self) -> FloatArray:
        """Return the largest absolute node value in each tree, (n_trees, ...)."""
        return np.maximum.reduceat(np.abs(self.value), self.root[:-1])

    @property
    @stored.once
    def ranked(self) -> RankedTrees | None:
        """The trees as `RankedTrees`, or None if walking the trees is faster."""
        return rank_trees(self, self.depths, self.column, self.n_features)

    @property
    @stored.once
    def ranked_holes(self) -> RankedTrees | None:
        """Like `ranked`, but for rows with missing values: some features then have two columns."""
        column, twice = columns_with_holes(self)
        return rank_trees(self, self.depths, column, self.n_features + len(twice))

    def __repr__(self) -> str:
        return f"<fit_random_forest: {len(self)} trees, {self.n_features} features>"

    def __len__(self) -> int:
        return len(self.root) - 1

    @overload
    def __getitem__(self, tree: int) -> Tree: ...
    @overload
    def __getitem__(self, tree: slice) -> RandomForest: ...
    def __getitem__(self, tree: int | slice) -> Tree | RandomForest:
        if isinstance(tree, slice):
            return self.only(np.arange(len(self))[tree])
        place = check_position("tree", tree, len(self))
        start, stop = self.root[place : place + 2].tolist()
        columns = self.with_sets(self.columns_at(slice(start, stop)))
        return Tree(
            **columns,
            classes=self.classes,
            n_features=self.n_features,
            feature_names=self.feature_names,
            settings=self.settings,
            stop_reason="a tree of a forest",
            table=self.table,
        )

    def __iter__(self) -> Iterator[Tree]:
        return (self[i] for i in range(len(self)))

    def only(self, trees: NDArray[np.intp]) -> RandomForest:
        """Return a forest of the given trees, without out-of-bag predictions."""
        if not len(trees):
            raise ValueError(f"tree: expected at least one of {len(self)} trees, got none")
        first, last = self.root[trees], self.root[trees + 1]
        columns = self.with_sets(self.columns_at(ranges(first, last)))
        return replace(self, root=np.cumsum([0, *(last - first)]), oob=None, **columns)

    def mean(self, X: TableLike) -> FloatArray:
        """Return the leaf values of each row, averaged over the trees."""
        mean = self.total(X) / len(self)
        return mean[:, 0] if self.value.ndim == 1 else mean

    @property
    def n_stages(self) -> int:
        """Number of trees."""
        return len(self)

    @property
    def takes_sparse_rows(self) -> bool:  # type: ignore[override]
        """Whether decision values can be computed from `SparseRows`."""
        return self.subset is None

    @stored.once
    def sparse_steps(self) -> Array:
        """Return the nodes in the format of the kernel for sparse rows."""
        steps = self.steps.copy().view(STEP)
        steps["column"] //= tree_walk.TILE_ROWS
        return freeze(steps)

    def longest_costs(self) -> FloatArray:
        """Return the maximum number of comparisons (T + 1,) in the first 0, 1, ... trees."""
        return np.cumsum([0, *self.depths], dtype=np.float64)

    def first(self, n_stages: int) -> RandomForest:
        """Return a forest of the first trees."""
        return self[:n_stages]

    def node_exits(self, exits: Exits) -> NodeExits:
        """Convert early exits after trees to the form that the kernel reads."""
        return of_trees(exits)

    def ranges_of(self, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the minimum and the maximum of `value` (n_nodes, ...) over each tree's leaves."""
        is_leaf = self.feature == LEAF
        start = np.concatenate([[0], np.cumsum(is_leaf)[self.root[1:-1] - 1]])
        leaves = value[is_leaf]
        return np.minimum.reduceat(leaves, start), np.maximum.reduceat(leaves, start)

    def proven(self) -> Exits:
        """Return early exits for rows whose class can no longer change."""
        values = self.values_of_mean(self.value)
        low, high = (of.reshape(len(self), -1) for of in self.ranges_of(values))
        return of_means(proven_exits(rest_of(low, high)._replace(size=float(len(self)))))

    @stored.once
    def proven_nodes(self) -> NodeExits:
        """Return the result of `proven` in the form that the kernel reads."""
        return of_trees(self.proven())

    def predict(self, X: TableLike) -> Array:
        """Return the most probable class of each row, or the predicted number.

        In forests of deep trees, a row is evaluated only until its class is final.
        """
        n = len(X) if type(X) is np.ndarray else 0
        if n * self.n_steps < MANY_CELLS or self.classes is None or self.n_features >= WIDE:
            return Trees.predict(self, X)
        if self.ranked is not None or len(self) < FEW_TREES:
            return Trees.predict(self, X)
        return self.labels_of(self._leave(X, self._seldom_checked(), False).score)

    @stored.once
    def _seldom_checked(self) -> NodeExits:
        """Return `proven_nodes` with fewer checks, to save time."""
        nodes, at = self.proven_nodes(), np.arange(len(self))
        # No class is certain before half of the trees have voted.
        return nodes._replace(checked=nodes.checked * ((at > len(self) // 2) & (at % 4 == 0)))

    def leave(self, X: TableLike, exits: NodeExits) -> Left:
        """Evaluate rows until they reach an early exit."""
        return self._leave(X, exits, True)

    def _leave(self, X: TableLike, exits: NodeExits, counting: bool) -> Left:
        bias = np.zeros(self.of_value or 1)
        return leave_trees(self, self, X, bias, True, exits, counting)

    def trajectory(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return the means and the numbers of comparisons of the first 0, 1, ... trees."""
        node = (self.nodes_of(X) + self.root[:-1]).T
        means = means_by_then(self.value[node])
        return self.values_of_mean(means), costs_by_then(self.node_depth()[node])

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return the mean feature importances of the trees."""
        return mean_of_shares(self.n_features, ((1.0, tree.importances(X)) for tree in self))

    def nodes_of(self, X: TableLike) -> IntArray:
        """Return the node number (n, n_trees) of the leaf of each row in each tree."""
        return self.places(X)

    def leaves_of(self, X: TableLike) -> IntArray:
        """Return the index (n, n_trees) among the leaves of a tree for the leaf of each row."""
        return self.leaf[self.root[:-1] + self.nodes_of(X)]

    def goes_with(self, X: TableLike) -> dict[int, str]:
        """Describe, for each missing feature, the values that most splits treat in the same way."""
        row, columns = match_columns(self, X).values[0], self.column
        tests: dict[int, list[tuple[int, int]]] = {}
        for at, exits, _ in self.way(row):
            for node, exit_ in zip(at.tolist(), exits.tolist(), strict=True):
                column = int(columns[node])
                if np.isnan(row[column]) and not self.asks_whether_missing(node):
                    tests.setdefault(column, []).append((node, exit_))
        return {
            column: self._most_often(column, node_tests) for column, node_tests in tests.items()
        }

    def _most_often(self, column: int, tests: list[tuple[int, int]]) -> str:
        """Return the values that most splits send to the branch that the row takes."""
        nodes, exits = np.array(tests).T
        above, words = exits == 1, ["smaller values", "larger values"]
        if self.subset is None or self.feature[nodes[0]] < self.n_features:
            counts = np.array([np.count_nonzero(~above), np.count_nonzero(above)])
        else:
            names = ColumnNames(self.feature_names, self.n_features, self.table)
            n_levels = MOST_LEVELS if self.table is None else int(self.table.n_levels[column])
            sets = self.subset[self.feature[nodes] - self.n_features]
            is_in = [in_sets(sets, np.full(len(sets), float(k)))[0] for k in range(n_levels)]
            counts = np.count_nonzero(np.array(is_in) == above, axis=1)
            words = [names.level(column, k) for k in range(n_levels)]
        best = int(counts.argmax())
        return f"{words[best]} in {counts[best]} of {counted(len(nodes), 'split')}"

    def describe(self) -> str:
        """Return a summary of the forest."""
        leaves = (np.diff(self.root) + 1) // 2
        trees, size = counted(len(self), "tree"), f"{leaves.mean():.1f} leaves on average"
        return "\n".join([headline(self, f"fit_random_forest: {trees}", size), *of_bags(self.oob)])

    def total(self, X: TableLike, turns: int = 1) -> FloatArray:
        """Return the leaf values (n, J) of each row, summed over the trees.

        With `turns` > 1, trees with the same index modulo `turns` have a separate sum. The shape is
        then (n, turns * J).
        """
        value = self.value.reshape(len(self.feature), -1)
        if isinstance(X, SparseRows):
            return X.sums(self.sparse_steps(), self.root, self.depths, value, turns)
        values = match_columns(self, X).values
        sums = of_columns_read(self, values, lambda trees, rows: trees.total(rows, turns))
        if sums is not None:
            return np.asarray(sums)
        n, d = values.shape
        total = np.zeros((n, turns * value.shape[1]))
        if n == 1:  # the general route takes longer for one row without missing values
            tile = np.empty(self.tile_width * tree_walk.TILE_ROWS)
            sets = with_work(self.sets, tile)
            if tree_walk.walk_sums(values, *self.arrays, value, 0, 1, tile, total, sets=sets):
                return total
        ranked = self.ranked if n >= tree_walk.MANY else None

        def work(start: int, stop: int, tile: FloatArray) -> bool:
            rank = None if ranked is None else np.empty(tile.size, dtype=np.int16)
            trees = *self.arrays, value

            def walk(at: int, holes: Holes | None, sets: Any) -> int:
                of_holes = None if ranked is None or holes is None else self.ranked_holes
                ranks = ranked, of_holes, rank
                return tree_walk.walk_sums(
                    values, *trees, at, stop, tile, total, *ranks, holes, sets
                )

            return past_missing(self, start, stop, tile, walk) < stop

        cells = n * max(d, len(self.depths))
        over_tiles(self, X, n, work, self.tile_width, d + self.n_steps, cells)
        return total


def join_trees(
    trees: Sequence[Trees],
    settings: Settings,
    oob: OutOfBag | None,
    seen: Digest | None = None,
) -> RandomForest:
    """Combine trees or forests that were fitted to the same features and classes."""
    root = np.cumsum([0, *np.concatenate([np.diff(tree.root) for tree in trees])])
    if root[-1] > np.iinfo(np.int32).max:
        raise ValueError(
            f"n_estimators: expected fewer than 2**31 nodes in all trees, got {root[-1]}"
        )
    first = trees[0]
    # The trees have been checked, but the sum of their values can still overflow.
    forest = RandomForest.grown(
        root=root,
        **_joined_columns(trees),
        classes=first.classes,
        n_features=first.n_features,
        feature_names=first.feature_names,
        settings=settings,
        oob=oob,
        table=first.table,
        seen=seen,
    )
    if first.classes is None:
        check_sum("value", forest.largest_values())
    return forest


def _joined_columns(trees: Sequence[Trees]) -> dict[str, Any]:
    """Concatenate the arrays of trees; the result is None if a tree lacks an array."""
    columns: dict[str, Any] = {}
    for name in TREE_COLUMNS:
        parts = [getattr(tree, name) for tree in trees]
        columns[name] = None if any(part is None for part in parts) else np.concatenate(parts)
    with_sets = [tree for tree in trees if tree.subset_column is not None]
    if not with_sets:
        return columns
    sets = [np.concatenate([getattr(t, name) for t in with_sets]) for name in SETS]
    before = np.cumsum([0, *(tree.n_sets for tree in trees[:-1])])
    shift = before.repeat([tree.n_nodes for tree in trees])
    d, feature = trees[0].n_features, columns["feature"]
    return {**columns, **own_sets(np.where(feature < d, feature, feature + shift), d, *sets)}


class RankedTrees(NamedTuple):
    """The trees of a forest, padded to the same depth, which compare ranks instead of values.

    Attributes
    ----------
    edge : ndarray of float64
        The sorted thresholds of each feature, padded with infinity to ``2**levels - 1``.
    first : ndarray of int32, shape (n_columns,)
        Index of the first threshold of each feature.
    levels : ndarray of int32, shape (n_columns,)
        Depth of the binary search for the rank of a value of each feature; 0 for unused features.
    node : ndarray of int32, shape (n_trees, 2**depth - 1, 2)
        For each node in preorder, 64 times the feature, and the rank of the threshold. The 32
        bits contain two copies of a 16-bit rank, or four copies of an 8-bit rank minus 128.
    value : ndarray of float64, shape (n_trees, 2**depth, k)
        Values of the leaves, from left to right.
    depth : int
        Depth of every tree.
    is_narrow : bool
        Whether ranks have 8 bits.
    """

    edge: FloatArray
    first: IntArray
    levels: IntArray
    node: IntArray
    value: FloatArray
    depth: int
    is_narrow: bool


def rank_trees(
    forest: RandomForest, depths: IntArray, feature: IntArray, n_columns: int
) -> RankedTrees | None:
    """Convert a forest to `RankedTrees`; return None if walking the trees is faster.

    `feature` contains the column that each node compares.
    """
    n_trees, depth = len(depths), int(depths.max())
    if not 1 <= depth <= MOST_DEPTH or not tree_walk.has_ranks() or forest.n_sets:
        return None
    number = np.full(len(feature), NO_EDGE, dtype=np.int32)
    levels = np.zeros(n_columns, dtype=np.int32)
    first = np.zeros(n_columns, dtype=np.int32)
    edges: list[FloatArray] = []
    by_column = np.argsort(feature, kind="stable")
    columns, starts = np.unique(feature[by_column], return_index=True)
    for column, nodes in zip(columns.tolist(), np.split(by_column, starts[1:]), strict=True):
        if column == LEAF:
            continue
        edge, number[nodes] = np.unique(forest.threshold[nodes], return_inverse=True)
        if len(edge) > NO_EDGE:
            return None
        levels[column] = len(edge).bit_length()
        first[column] = sum(map(len, edges))
        padding = np.full((1 << int(levels[column])) - 1 - len(edge), np.inf)
        edges += [edge, padding]
    is_narrow = max(map(len, edges[::2]), default=0) <= FEW_EDGES
    # A node takes 1/40 of the time of a step of a walk; a step of a binary search takes 1/3.
    if n_trees * 2**depth / (80 if is_narrow else 40) + levels.sum() / 3 > depths.sum():
        return None
    if is_narrow:
        number = np.where(number == NO_EDGE, NO_EDGE_OF_BYTES, number - 128).astype(np.int8)
        number = number[:, None].repeat(4, axis=1).view(np.int32)[:, 0]
    else:
        number = number.astype(np.int16)[:, None].repeat(2, axis=1).view(np.int32)[:, 0]
    node = np.empty((n_trees, (1 << depth) - 1, 2), dtype=np.int32)
    level_nodes = forest.root[:-1, None].astype(np.int64)
    place = np.zeros(1, dtype=np.int64)
    for level in range(depth):
        is_leaf = feature[level_nodes] == LEAF
        node[:, place, 0] = np.where(is_leaf, 0, feature[level_nodes] * tree_walk.TILE_ROWS)
        node[:, place, 1] = number[level_nodes]
        # A leaf above the last level is copied to both branches.
        children = forest.children[level_nodes] + forest.root[:-1, None, None]
        level_nodes = np.where(is_leaf[:, :, None], level_nodes[:, :, None], children).reshape(
            n_trees, -1
        )
        place = np.column_stack([place + 1, place + (1 << (depth - 1 - level))]).ravel()
    value = forest.value.reshape(len(feature), -1)[level_nodes]
    return RankedTrees(
        freeze(np.concatenate(edges)),
        freeze(first),
        freeze(levels),
        freeze(node),
        freeze(value),
        depth,
        is_narrow,
    )
