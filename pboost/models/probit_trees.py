"""Probit trees: trees with linear functions in their leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import tree_walk
from pboost._core.tree_walk import walk_values
from pboost.data.node_inputs.imputation import filled
from pboost.data.node_inputs.inputs import in_sums, indicators_of, names_in_sums
from pboost.data.read.table import Table
from pboost.models import schema as stored
from pboost.models.base import CostUnit, Model
from pboost.models.evaluate.kernel_walk import Holes, over_tiles, past_missing
from pboost.models.evaluate.match_input import match_columns, spread_of
from pboost.models.evaluate.partial_evaluation import SumInquiry, trees_inquiry
from pboost.models.linear import columns_of, probabilities
from pboost.models.schema import Settings
from pboost.models.shares import as_shares, portions, times_spread
from pboost.models.single_tree import SIDES, Tree, Trees
from pboost.models.text import counted, equation, headline
from pboost.models.tree_ensemble import LEAF
from pboost.threads import check_stop
from pboost.values import Array, FloatArray, IntArray, TableLike

#: Maximum number of function values in memory at a time, per thread.
BLOCK_VALUES = 1 << 16
#: Decision value of classes that are never predicted.
LEAST = -np.finfo(np.float64).max


#: Values of `taken` for leaves in which all rows, or no rows, belong to the class.
ONE_CLASS, NO_ROW = -1, -2


def _classes(tree: ProbitTree) -> Array:
    if tree.partition.classes is None:
        raise ValueError("classes: expected the classes of a classifier, got None")
    return tree.partition.classes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProbitTree(Model):
    """A tree with a linear function f in each leaf, see `fit_probit_tree`.

    In the binary case, Phi(f) is the probability of the second class. With more classes, each
    leaf has one function per class, fitted against all other classes. The class with the largest
    function value is predicted.

    Attributes
    ----------
    partition : Tree
        The splits. Leaves are numbered from left to right.
    coefficient : ndarray of float64, shape (n_leaves, K, 1 + n_added)
        Intercept and coefficients of each function; K is 1 in the binary case, else the number
        of classes. A numeric feature has one coefficient, a categorical feature has one per
        category; their number is n_added.
    taken : ndarray of int32, shape (n_leaves, K)
        Number of ProbitBoost steps of each function. It is -1 if all rows of the leaf belong to
        the class; the function is then the constant Phi^-1((n + 1/2) / (n + 1)) for n rows. It is
        -2 if no row belongs to the class; its constant is the negative of this. With more than two
        classes, a class without rows in the leaf ranks below all classes with rows.
    risk : ndarray of float64, shape (n_leaves, K)
        Weighted mean of -ln Phi(Y f) on the training rows of the leaf.
    spread : ndarray of float64, shape (n_added,)
        Weighted standard deviation of each feature or category indicator on the training rows.
    leaf_mean : ndarray of float64, shape (n_leaves, n_added), or None
        Replacement for missing values in each leaf: the weighted mean of the feature in the
        leaf. None if the training data had no missing values.
    mean : ndarray of float64, shape (n_added,), or None
        Replacement for missing values in all leaves if `leaf_mean` is None: the weighted mean of
        the feature. If `mean` is also None, missing values raise an error.
    classes : ndarray, shape (J,)
        The sorted class labels.
    settings : mapping
        The options of the fit.
    n_features, feature_names
        Number of training features, and their names; names may be None.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the training rows, see :doc:`/how_to/error_bounds_and_prediction_sets`; None if
        unknown.
    """

    partition: Tree = stored.part(Tree, more=("classes",), some=SIDES)
    coefficient: FloatArray = stored.column(
        np.float64, "n_leaves", "n_functions", lambda model: (1 + model.n_added,)
    )
    taken: IntArray = stored.column(np.int32, "n_leaves", "n_functions")
    risk: FloatArray = stored.column(np.float64, "n_leaves", "n_functions", positive=True)
    spread: FloatArray = stored.column(np.float64, "n_added", positive=True)
    leaf_mean: FloatArray | None = stored.column(np.float64, "n_leaves", "n_added", optional=True)
    mean: FloatArray | None = stored.in_header("n_added")
    classes: Array = stored.made(_classes, late=False)
    settings: Settings = stored.of_part("partition", "settings")
    n_features: int = stored.of_part("partition", "n_features")
    feature_names: tuple[str, ...] | None = stored.of_part("partition", "feature_names")
    table: Table | None = stored.of_part("partition", "table")
    n_nodes: int = stored.of_part("partition", "n_nodes")
    n_leaves: int = stored.of_part("partition", "n_leaves")
    stop_reason: str = stored.of_part("partition", "stop_reason")

    _public: ClassVar = ("n_functions",)
    no_graph = "whose leaves are linear functions"
    instead: ClassVar = {
        "truncate": "set max_depth and max_iter of fit_probit_tree",
        "reach": "apply returns the leaf of each row",
        "plot.graph": "use plot.tree",
    }
    file_kind = "probit-tree"
    no_trees = "whose leaves are linear functions; use coefficients or to_c"

    def check_whole(self) -> None:
        """Check `taken`, and that the weight of the root is positive."""
        check_taken(self.taken)
        if not self.partition.weight[0] > 0:
            raise ValueError("weight: expected a number > 0 for the root")

    def __repr__(self) -> str:
        leaves = counted(self.n_leaves, "leaf", "leaves")
        return f"<fit_probit_tree: {leaves}, {self.n_features} features>"

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        """Whether missing values are accepted."""
        return self.partition.takes_missing and means_of(self) is not None

    @property
    def n_functions(self) -> int:
        """Number of functions in each leaf."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def values(self, X: TableLike) -> FloatArray:
        """Return the function values (n, K) of each row in its leaf."""
        tree, shape = self.partition, self.coefficient.shape[1:2]
        at = Equations(tree, tree.leaf, self.coefficient, self.taken, means_of(self))
        return values_of(self, at, X, shape, lambda values: values[:, 0])

    def predict_proba(self, X: TableLike) -> FloatArray:
        """Return the class probabilities, computed from Phi(f)."""
        return probabilities(self.values(X))

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return f for each row (n,); with more than two classes, J values per row."""
        values = self.values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def equations(self) -> tuple[FloatArray, FloatArray, None]:
        """Return the coefficients of each leaf, and its share of the training weight."""
        weight = self.partition.weight[self.partition.feature == LEAF]
        return self.coefficient, weight / self.partition.weight[0], None

    def contributions(self, X: TableLike) -> FloatArray:
        """Divide f, or each of the J functions, into feature contributions for one row.

        A split on the path contributes the change in the constant that fits the class
        frequencies. A coefficient contributes its term. The remainder is the constant part.
        """
        parts, at, constant = self._path_parts(X)
        function = self.coefficient[at].T
        with np.errstate(over="ignore"):
            parts[0] += function[0] - constant
            parts[1:] += self.by_column(function[1:] * self._row(X, at)[:, None])
        return parts[:, 0] if self.n_functions == 1 else parts

    def vote_parts(self, X: TableLike) -> FloatArray:
        """Return the contributions by which `SubaggedProbitTrees` divides the vote of the tree."""
        parts, at, constant = self._path_parts(X)
        share = portions(times_spread(self.coefficient[at, :, 1:], self.spread))
        more = self.values(X)[0] - constant
        parts[1:] += self.by_column(share.T) * more
        parts[0] += np.where(share.any(axis=1), 0.0, more)
        return parts[:, 0] if self.n_functions == 1 else parts

    def _row(self, X: TableLike, leaf: int) -> FloatArray:
        """Return the first row of X, with missing values replaced by the means of a leaf."""
        means = means_of(self)
        row = in_sums(match_columns(self, X).values[:1], self.table)[0]
        return filled(row, None if means is None else means[leaf if len(means) > 1 else 0])

    def _path_parts(self, X: TableLike) -> tuple[FloatArray, int, FloatArray]:
        """Return the split contributions (1 + d, K), the leaf index and the constants (K,)."""
        constants, node = self._constants(), self.partition.nodes_of(X)[0]
        return self.partition.path_parts(X, constants), self.partition.leaf[node], constants[node]

    def _shares(self) -> FloatArray:
        """Return the class frequencies (n_nodes, K) for each function."""
        return self.partition.value[:, -self.n_functions :]

    def _constants(self) -> FloatArray:
        """Return Phi^-1 of the class frequencies (n_nodes, K), limited as described for `taken`."""
        from scipy.special import ndtri  # importing SciPy is slow

        floor = 0.5 / (self.partition.n_rows[:, None] + 1.0)
        return ndtri(np.clip(self._shares(), floor, 1 - floor))

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return feature importances: shares in the decrease of the loss -ln Phi(Y f).

        A split contributes the difference in loss between the best constants of the node and of
        its children. In a leaf, the difference between the constant and the fitted function is
        divided among the features in proportion to coefficient times standard deviation.
        """
        tree, share = self.partition, np.stack([self._shares(), 1 - self._shares()])
        loss = -(share * np.log(share, out=np.zeros(share.shape), where=share > 0)).sum(axis=0)
        weight = tree.weight[:, None] / tree.weight[0]
        leaf = tree.feature == LEAF
        gain = (weight[leaf] * np.maximum(loss[leaf] - self.risk, 0.0))[..., None]
        known = self.spread if X is None else spread_of(self, X)
        of_slopes = (gain * portions(times_spread(self.coefficient[:, :, 1:], known))).sum((0, 1))
        gain = tree.split_gain((weight * loss).sum(axis=1)) + self.by_column(of_slopes)
        return as_shares(gain)

    @property
    def mean_prediction_cost(self) -> float:
        """Mean number of comparisons and coefficients per training row."""
        tree, leaf = self.partition, self.partition.feature == LEAF
        slopes = (self.coefficient[:, :, 1:] != 0).sum(axis=(1, 2))
        cost = np.maximum(tree.node_depth()[leaf] + slopes[tree.leaf[leaf]], 1.0)
        return float(cost @ tree.n_rows[leaf] / tree.n_rows[0])

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return the number of comparisons and coefficients, or of distinct features, per row."""
        tree = self.partition
        at = tree.nodes_of(X)
        has_slope = self.coefficient[:, :, 1:] != 0
        if unit != "features":
            slopes = has_slope.sum(axis=(1, 2))[tree.leaf[at]]
            return np.maximum(tree.node_depth()[at] + slopes, 1.0)
        levels = indicators_of(self.table)
        column = np.arange(self.n_features) if levels is None else levels.column
        return np.array(
            [
                max(1, len(read.keys() | set(column[has_slope[leaf].any(axis=0)].tolist())))
                for read, leaf in zip(tree.columns_read(), tree.leaf.tolist(), strict=True)
            ],
            dtype=np.float64,
        )[at]

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield a mask (n, d) of the features that are compared or have a coefficient."""
        tree = self.partition
        at = tree.nodes_of(X)
        levels = indicators_of(self.table)
        column = np.arange(self.n_features) if levels is None else levels.column
        (read,) = tree.reads(X)
        leaf, term = np.nonzero((self.coefficient[:, :, 1:] != 0).any(axis=1))
        has_slope = np.zeros((len(self.coefficient), self.n_features), dtype=np.bool_)
        has_slope[leaf, column[term]] = True
        yield read | has_slope[tree.leaf[at]]

    def inquiry(self, settles: bool) -> SumInquiry:
        """Return an evaluator for feature acquisition that evaluates splits first."""
        tree, has_slope = self.partition, (self.coefficient[:, :, 1:] != 0).any(axis=1)
        every = [columns_of(self, of_leaf) for of_leaf in has_slope]
        path = trees_inquiry(self, tree, self._constants())
        return SumInquiry(
            self,
            columns_of(self, has_slope.any(axis=0)),
            self.n_functions,
            path,
            lambda X: every[int(tree.leaf[tree.nodes_of(X)[0]])],
        )

    def describe(self) -> str:
        """Return the tree and the equations of its leaves as text.

        Terms are sorted by coefficient times standard deviation.
        """
        tree = self.partition
        depth, tests = tree.node_tests()
        classes = self.classes.tolist()
        leaves = counted(self.n_leaves, "leaf", "leaves")
        lines = [
            headline(self, f"fit_probit_tree: {leaves}", f"depth {tree.depth}"),
            f"stopped: {self.stop_reason}",
        ]
        if len(classes) == 2:
            lines.append(f"P({classes[1]!r}) = Phi(f)")
        for node in range(tree.n_nodes):
            indent = "  " * int(depth[node])
            leaf = int(tree.leaf[node])
            words = [tests[node].strip() or "all rows:"]
            words += [] if leaf == LEAF else [f"leaf {leaf}"]
            lines.append(f"{indent}{' '.join(words)} ({tree.weight[node]:.6g})")
            if leaf != LEAF:
                lines += [f"{indent}  {line}" for line in self.leaf_text(leaf)]
        return "\n".join(lines)

    def leaf_text(self, leaf: int) -> list[str]:
        """Return the equations of a leaf, one line each."""
        names = names_in_sums(self.feature_names, self.n_features, self.table)
        lines = []
        for k, (taken, row) in enumerate(
            zip(self.taken[leaf].tolist(), self.coefficient[leaf], strict=True)
        ):
            order = slope_order(row[1:], self.spread)
            text = equation(row[0], row[1:][order], tuple(names[j] for j in order))
            if taken < 0:
                text += f", {'all' if taken == ONE_CLASS else 'no'} rows are of the class"
            many = self.coefficient.shape[1] > 1
            lines.append((f"f({self.classes.tolist()[k]!r}) = " if many else "f = ") + text)
        return lines


def slope_order(slopes: FloatArray, spread: FloatArray) -> list[int]:
    """Return the terms in decreasing order of absolute coefficient times standard deviation."""
    with np.errstate(over="ignore", under="ignore"):
        size = np.abs(slopes) * np.where(spread > 0, spread, 1.0)
    return np.argsort(-size, kind="stable").tolist()


def check_taken(taken: IntArray) -> None:
    """Check that all values of `taken` are valid."""
    if not (taken >= NO_ROW).all():
        raise ValueError("taken: expected numbers of steps >= 0, or -1 or -2")


class Equations(NamedTuple):
    """Trees with linear functions in their leaves, as arguments of the kernel `walk_values`.

    `means`, with shape (leaves, d) or (1, d), replace missing values. If `means` is None, missing
    values raise an error.
    """

    trees: Trees
    leaf: IntArray
    coefficient: FloatArray
    taken: IntArray
    means: FloatArray | None = None

    def walk(
        self,
        values: Array,
        added: Array,
        start: int,
        stop: int,
        tile: FloatArray,
        out: FloatArray,
    ) -> int:
        """Call the kernel; restart it at the first row with a missing value.

        `added` contains the rows of `values` with categories as indicator columns.
        """
        trees = self.trees
        added_values = None if added is values else added

        def walk(first: int, holes: Holes | None, sets: Any) -> int:
            row = None if added_values is None and holes is None else np.empty(added.shape[1])
            return walk_values(
                values,
                *trees.arrays,
                self.leaf,
                self.coefficient,
                self.taken,
                first,
                stop,
                tile,
                out[first - start :],
                self.means,
                holes,
                sets,
                added_values,
                row,
            )

        return past_missing(trees, start, stop, tile, walk, self.means is not None)


def values_of(
    model: Model,
    trees: Equations,
    X: TableLike,
    shape: tuple[int, ...],
    reduced: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Evaluate trees on the rows of X and apply `reduced`; return an array (n, *shape).

    `reduced` is called by several threads with function values (m, n_trees, K) of m rows. It must
    not keep the array, which is reused.
    """
    values = match_columns(model, X).values
    added = in_sums(values, model.table)
    n, d = values.shape
    of_trees = len(trees.trees.depths), trees.coefficient.shape[1]
    per_row = math.prod(of_trees)
    block = tree_walk.TILE_ROWS * max(1, BLOCK_VALUES // (per_row * tree_walk.TILE_ROWS))
    result = np.empty((n, *shape))

    def work(first: int, last: int, tile: FloatArray) -> bool:
        out = np.empty((min(block, last - first), *of_trees))
        for start in range(first, last, block):
            check_stop()
            stop = min(start + block, last)
            if trees.walk(values, added, start, stop, tile, out) < stop:
                return True
            result[start:stop] = reduced(out[: stop - start])
        return False

    over_tiles(model, X, n, work, trees.trees.tile_width, 1, n * max(d, per_row))
    return result


def means_of(model: Any) -> FloatArray | None:
    """Return replacements for missing values, per leaf (leaves, d) or for all leaves (1, d)."""
    if model.leaf_mean is not None:
        return np.asarray(model.leaf_mean)
    return None if model.mean is None else np.asarray(model.mean[None])


def taken_from(values: FloatArray | None, places: Any) -> FloatArray | None:
    """Return the given rows of an array; return None for None."""
    return None if values is None else values[places]


def without(values: FloatArray, lost: NDArray[np.bool_]) -> FloatArray:
    """Return function values, replaced by `LEAST` for classes without training rows."""
    return np.where(lost, LEAST, values) if lost.any() else values
