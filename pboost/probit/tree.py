"""Probit model trees: CART trees with a ProbitBoost model in each leaf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Annotated, Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from pboost._core import probit as kernel
from pboost._core import tree_walk
from pboost._core.probit import boost_leaves, losses, margins, mean_losses
from pboost.data.columns.bin_and_sort import read_once
from pboost.data.columns.columns import SortedColumns, listed_values, values_of
from pboost.data.node_inputs.imputation import column_means, column_spread
from pboost.data.node_inputs.inputs import in_sums
from pboost.data.read.table import Takes
from pboost.data.row_source import RowOptions, rows_here
from pboost.data.targets import ClassCriterion
from pboost.data.training_data import Problem, check_values
from pboost.growth.tree import CartArrays, CartLimits, Grown, grow_tree, tree_columns
from pboost.models.probit_trees import ProbitTree
from pboost.models.single_tree import Tree
from pboost.threads import Workers
from pboost.trees.cart import FitData, SearchOptions, fit_cart_problem
from pboost.values import Array, FloatArray, IntArray, check_flag, check_integer, check_number
from pboost.values.options import Option, ThreadOption, builder, filled

#: Inputs that probit trees accept besides numbers.
TAKES = Takes(holes=True, levels=True)


@dataclass(frozen=True, slots=True)
class ProbitLimits:
    """Options for the fit of the leaves and for pruning. See `fit_probit_tree`."""

    max_iter: int
    tol: float
    safeguard: bool
    complexity: float


@dataclass(frozen=True, slots=True, eq=False)
class GrownProbit:
    """A grown probit tree.

    Attributes
    ----------
    partition : Grown
        The tree structure.
    coefficient : ndarray of float64, shape (leaves, K, 1 + d)
        Intercepts and slopes. K is 1 for binary problems, otherwise the number of classes.
    taken : ndarray of int32, shape (leaves, K)
        Number of steps in each leaf, or ONE_CLASS or NO_ROW for a leaf without a fit.
    means : ndarray of float64, shape (leaves, d), or None
        Values that replace missing values, or None if means of all rows are used.
    rows : ndarray of int32, shape (n,)
        Rows of positive weight, in the order of the leaves; valid until the next tree is grown.
    starts : ndarray of int32, shape (leaves + 1,)
        First position of each leaf in `rows`; valid until the next tree is grown.
    """

    partition: Grown
    coefficient: FloatArray
    taken: IntArray
    means: FloatArray | None
    rows: IntArray
    starts: IntArray


class ProbitGrower:
    """Fits several probit trees to the same rows with different weights.

    Parameters
    ----------
    problem : Problem
        Features and classes.
    X : ndarray of float32 or float64, shape (n, d)
        Feature matrix, in any memory layout.
    weights : ndarray of float64, shape (n,)
        Weights, which are positive for the rows that all trees use.
    limits, leaves : CartLimits, ProbitLimits
        Checked options.
    workers : Workers
        Threads for one tree.
    key : int
        Key of the random numbers of the tree structure.
    """

    def __init__(
        self,
        problem: Problem,
        X: Array,
        weights: FloatArray,
        limits: CartLimits,
        leaves: ProbitLimits,
        workers: Workers,
        key: int = 0,
    ) -> None:
        assert problem.classes is not None
        self.X, self.label, self.leaves, self.workers = X, problem.label, leaves, workers
        self.n_classes, self.has_holes = len(problem.classes), problem.table is not None
        self.data = problem.weighted(weights, workers)
        self.arrays = CartArrays(self.data, limits, key)
        self.arrays.order = np.empty_like(self.data.order)  # filled by each restart
        self.ascending = np.flatnonzero(weights > 0).astype(np.int32)
        n, capacity = len(self.ascending), len(self.arrays.node)
        self.rows, self.leaf_of = np.empty(n, dtype=np.int32), np.empty(len(X), dtype=np.int32)
        self.starts = np.empty(capacity + 1, dtype=np.int32)
        kept = capacity if leaves.complexity > 0 else 0
        self.state = np.empty((kept, kernel.N_STATES_OF_NODE))
        self.stack = np.empty(kept + 1, dtype=np.int64)
        self.stop_reason = ""

    def grow(self, weights: FloatArray) -> GrownProbit:
        """Grow a tree with weights (n,), which are positive for the same rows as in `__init__`."""
        arrays, limits = self.arrays, self.leaves
        arrays.restart(weights, self.data.order)
        self.stop_reason = grow_tree(arrays, self.workers, None)
        if limits.complexity > 0:
            nodes = arrays.node[: int(arrays.counter["nodes"])]
            kernel.keep_splits(nodes, arrays.mass, limits.complexity, self.state, self.stack)
        partition = arrays.grown()
        rows = arrays.data.rows if arrays.exact else arrays.rows
        leaves = kernel.list_rows(
            partition.nodes,
            arrays.order,
            rows,
            arrays.exact,
            self.ascending,
            self.leaf_of,
            self.rows,
            self.starts,
        )
        starts = self.starts[: leaves + 1]
        coefficient, taken, means = self._fit_leaves(starts, weights)
        return GrownProbit(partition, coefficient, taken, means, self.rows, starts)

    def _fit_leaves(
        self, starts: IntArray, weights: FloatArray
    ) -> tuple[FloatArray, IntArray, FloatArray | None]:
        limits, leaves = self.leaves, len(starts) - 1
        k = 1 if self.n_classes == 2 else self.n_classes
        coefficient = np.empty((leaves, k, 1 + self.X.shape[1]))
        taken = np.empty((leaves, k), dtype=np.int32)
        means = np.empty((leaves, self.X.shape[1])) if self.has_holes else None

        def fit(first: int, last: int) -> None:
            boost_leaves(
                self.X,
                self.rows,
                starts,
                self.label,
                weights,
                self.n_classes,
                limits.max_iter,
                limits.tol,
                limits.safeguard,
                coefficient,
                taken,
                None,
                first,
                last,
                self.workers.stop,
                means,
            )

        if self.workers.n_threads == 1:
            fit(0, leaves)
        else:
            # Threads fit one leaf at a time, so that large leaves are distributed among them.
            self.workers.run_each(fit, leaves)
        kernel.set_constants(coefficient, taken, starts, constant_score)
        return coefficient, taken, means

    def values(self, tree: GrownProbit) -> FloatArray:
        """Return the values (n, K) of the latest tree for `tree.rows`."""
        n, d = len(tree.rows), self.X.shape[1]
        out = np.empty((n, tree.coefficient.shape[1]))

        def work(first: int, last: int) -> None:
            tree_walk.leaf_values(
                self.X,
                tree.rows,
                tree.starts,
                tree.coefficient,
                tree.taken,
                first,
                last,
                np.empty(d),
                out,
                tree.means,
            )

        self.workers.run(work, n, cells=d * out.shape[1])
        return out

    def risk(self, tree: GrownProbit, values: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the weighted mean loss (leaves, K) of the values of the latest tree."""
        n, k = values.shape
        loss, work = np.empty(n * k), np.empty((2, n))
        margins(values, tree.rows, self.label, loss)
        losses(loss, loss)
        risk = np.empty((len(tree.starts) - 1, k))
        mean_losses(loss, tree.rows, tree.starts, weights, work, risk)
        return risk


@lru_cache(maxsize=4096)
def constant_score(rows: int) -> float:
    """Return the value Phi^-1((n + 1/2) / (n + 1)) of a leaf with n rows of one class."""
    return -NormalDist().inv_cdf(0.5 / (rows + 1))


class ProbitProblem(NamedTuple):
    """The checked arguments of the fit functions for probit trees."""

    problem: Problem
    codes: Array  # features for the splits; X has the features for the leaf models
    X: Array
    weights: FloatArray
    limits: CartLimits
    leaves: ProbitLimits
    settings: dict[str, Any]

    def means(self) -> FloatArray | None:
        """Return the means that replace missing values, or None if each leaf has its own means."""
        if self.problem.table is not None:
            return None
        rows = np.flatnonzero(self.weights > 0).astype(np.int32)
        return column_means(self.X, rows, self.weights[rows])


class ProbitLeafOptions(TypedDict, total=False):
    """Options of a probit tree and of its leaf models.

    Parameters
    ----------
    max_depth : int or None
        Maximum depth of the tree. With 0, there is one linear model for all rows, as in
        `fit_probitboost`. None means no limit.
    min_samples_leaf : int
        Minimum number of training rows in a leaf, regardless of their weights.
    min_samples_split : int
        Minimum number of training rows in a node that is split, at least 2.
    max_iter : int
        Maximum number of ProbitBoost steps in a leaf, at least 1.
    tol : float, optional
        Stop fitting a leaf when a step changes its deviance ``-2 sum(w ln Phi(Y f))`` by at most
        `tol`, where w are the sample weights. With None, the change is not tested.
    safeguard : bool
        Whether to halve steps until the risk does not increase, as in `fit_probitboost`.
    criterion : {"gini", "entropy", "error", "kearns_mansour"}
        Impurity that splits minimize.
    complexity : float
        Remove splits that decrease the misclassified weight by less than this fraction of the
        misclassified weight at the root. This is the pruning rule of R's rpart (`cp`) and differs
        from `prune`. 0 keeps all splits.
    """

    max_depth: Annotated[int | None, Option(6, check_integer, min_value=0)]
    min_samples_leaf: Annotated[int, Option(20, check_integer, min_value=1)]
    min_samples_split: Annotated[int, Option(2, check_integer, min_value=2)]
    max_iter: Annotated[int, Option(100, check_integer, min_value=1)]
    tol: Annotated[float | None, Option(None, check_number, min_value=0.0)]
    safeguard: Annotated[bool, Option(True, check_flag)]
    criterion: Annotated[ClassCriterion, Option("gini")]
    complexity: Annotated[float, Option(0.0, check_number, min_value=0.0)]


class ProbitOptions(ProbitLeafOptions, SearchOptions, total=False):
    """Options of a probit tree and of its split search."""


class ProbitTreeOptions(ProbitOptions, RowOptions, ThreadOption, total=False):
    """The options of `fit_probit_tree`."""


@builder
def fit_probit_tree(
    X: object, y: ArrayLike | None = None, **options: Unpack[ProbitTreeOptions]
) -> ProbitTree:
    """Fit a probit model tree: a small tree with a linear probit model in each leaf.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, or SortedColumns
        Features. In splits, missing values go to the better child, or to the child with more
        training weight if no training row at the node had a missing value. In leaves, missing
        values are replaced by a mean, see Notes.
    y : array_like of shape (n,), optional
        Class labels. With more than two classes, each leaf has one linear function per class,
        fitted one-vs-rest.
    **options
        Options of `ProbitTreeOptions`.

    Returns
    -------
    ProbitTree
        A model that you can pass to `predict`, `predict_proba`, `describe`, `coefficients` etc.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is invalid; the message names the argument.

    Notes
    -----
    Slopes refer to the original scale of the features. A feature that is constant in a leaf has
    slope 0. Missing values are replaced by the weighted mean of the feature in the leaf, or by its
    mean over all training rows if the training data had no missing values.

    A leaf with n rows of a single class has a constant value, regardless of weights. It is
    ``Phi^-1((n + 1/2) / (n + 1))`` for this class and the negative of this value for the other
    classes. The reference uses probabilities 1 and 0 [1]_.

    References
    ----------
    .. [1] T. Qin and W.-M. Huang, "On subbagging boosted probit model trees", algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> y = [0, 0, 1, 0, 1, 1, 1, 1, 0, 1, 0, 0]
    >>> tree = pb.fit_probit_tree(X, y, max_depth=1, min_samples_leaf=4, max_iter=5)
    >>> tree.n_leaves, pb.predict(tree, X).tolist()
    (2, [0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0])
    """
    n_threads = options["n_threads"]
    rows = rows_here("fit_probit_tree", X, y, options)
    task = probit_problem(FitData(*rows, n_threads, np.random.default_rng(0)), options)
    task.settings["builder"] = "fit_probit_tree"
    cells = task.X.size * (1 + task.leaves.max_iter)
    with Workers(n_threads, cells) as workers:
        grower = ProbitGrower(task.problem, task.X, task.weights, task.limits, task.leaves, workers)
        grown = grower.grow(task.weights)
        risk = grower.risk(grown, grower.values(grown), task.weights)
    check_coefficients(grown.coefficient)
    problem = task.problem
    _, columns = tree_columns(problem, [grown.partition], task.limits.criterion)
    partition = Tree(
        **columns,
        classes=problem.classes,
        n_features=problem.n_features,
        feature_names=problem.names,
        settings=task.settings,
        stop_reason=grower.stop_reason,
        table=problem.table,
    )
    return ProbitTree(
        partition,
        grown.coefficient,
        grown.taken,
        risk,
        column_spread(task.X, task.weights),
        grown.means,
        task.means(),
        seen=problem.seen,
    )


def probit_problem(data: FitData, options: Mapping[str, Any]) -> ProbitProblem:
    """Check the data and options of a probit tree and return the problem."""
    probit_options: ProbitOptions = filled(ProbitOptions, options)
    check_values(data.X, "for linear models")
    X = read_once(values_of(data.X), data.sample_weight, TAKES)
    max_depth, tol = probit_options["max_depth"], probit_options["tol"]
    leaves = ProbitLimits(
        probit_options["max_iter"],
        tol or 0.0,
        probit_options["safeguard"],
        probit_options["complexity"],
    )
    of_tree = {**probit_options, "task": "classification", "max_depth": max_depth or None}
    # A single tree draws no random numbers.
    of_partition = data._replace(X=X, generator=np.random.default_rng(0))
    problem, limits, of_cart, _ = fit_cart_problem(of_partition, of_tree)
    values = listed_values(X.source, X.rows) if isinstance(X, SortedColumns) else X.values
    if problem.entries is not None:
        values = values[problem.entries.rows]  # the kernels use the same row numbers in all arrays
    settings = {**probit_options, "criterion": of_cart["criterion"]}
    weights = np.ones(problem.n_rows) if problem.weights is None else problem.weights
    # CART options do not accept a depth of 0, so it is set here.
    limits = replace(
        limits, depth=0 if max_depth == 0 else limits.depth, complexity=leaves.complexity
    )
    added = in_sums(values, problem.table)
    return ProbitProblem(problem, values, added, weights, limits, leaves, settings)


def check_coefficients(coefficient: FloatArray) -> None:
    """Raise ValueError if a slope exceeds the range of float64."""
    if not np.isfinite(coefficient).all():
        column = int(np.nonzero(~np.isfinite(coefficient))[-1].max()) - 1
        raise ValueError(
            f"X: column {column} varies too little: its slope exceeds the range of float64; "
            "rescale or drop the column"
        )
