"""Classification and regression trees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.columns.bin_and_sort import column_ranks
from pboost.data.columns.columns import BinnedColumns, SortedColumns
from pboost.data.columns.prebuilt import LEVEL_SMOOTHING, MAX_BINS
from pboost.data.feature_costs import CostOptions, read_feature_costs
from pboost.data.read.check_xy import TASKS, check_taken
from pboost.data.read.table import EVERYTHING, Takes
from pboost.data.resampling import HoldOut
from pboost.data.row_source import RowOptions, RowSource, rows_of_fit
from pboost.data.targets import (
    OF_TWO,
    ClassCriterion,
    NumberCriterion,
    TaskOption,
    class_criteria,
    task_of,
    task_of_options,
)
from pboost.data.training_data import Binning, Problem, reads_columns, search_option, tree_problem
from pboost.growth.graph_growth import Callback
from pboost.growth.tree import CartArrays, CartLimits, grow_tree
from pboost.models.single_tree import Tree
from pboost.threads import Workers
from pboost.values import (
    INT32_MAX,
    MOST_NODES,
    Array,
    FloatArray,
    Task,
    as_generator,
    bar_of,
    check_choice,
    check_integer,
    check_number,
    shown,
)
from pboost.values.options import FitOptions, Option, builder, filled

#: If the number of features is at least this multiple of `max_features`, features are sorted within
#: each node.
RANKED_FROM = 6
#: Values of `max_features` that depend on the number of features.
FeatureCount: TypeAlias = Literal["sqrt", "log2"]
#: Default of `max_features` in forests for regression. With fewer features, trees miss the useful
#: ones if these are few.
SHARE_IN_REGRESSION = 0.4
#: The criteria of each task, the default first.
CART_CRITERIA: dict[str, tuple[str, ...]] = {
    "classification": class_criteria(2),
    "regression": get_args(NumberCriterion),
}

#: The kinds of columns that trees accept.
TAKES = EVERYTHING


class CriterionOption(TypedDict, total=False):
    """The criterion of splits.

    Parameters
    ----------
    criterion : {"gini", "entropy", "error", "kearns_mansour", "squared_error"}, optional
        Impurity that splits reduce. Classification: "gini" (default), "entropy" (base 2), "error",
        or "kearns_mansour" for two classes. Regression: "squared_error".
    """

    criterion: Annotated[ClassCriterion | NumberCriterion | None, Option(None)]


class SizeOptions(TypedDict, total=False):
    """The limits on the size of a tree.

    Parameters
    ----------
    max_depth : int or None
        Maximum depth of the tree. None means no limit.
    min_samples_leaf : int
        Minimum number of training rows in a leaf, regardless of their weights.
    min_samples_split : int
        Minimum number of training rows in a node that is split, at least 2.
    max_leaf_nodes : int or None
        Maximum number of leaves. It needs ``growth="best_first"``.
    """

    max_depth: Annotated[int | None, Option(None, check_integer, min_value=1)]
    min_samples_leaf: Annotated[int, Option(1, check_integer, min_value=1)]
    min_samples_split: Annotated[int, Option(2, check_integer, min_value=2)]
    max_leaf_nodes: Annotated[
        int | None, Option(None, check_integer, min_value=1, max_value=MOST_NODES)
    ]


class SplitOptions(TypedDict, total=False):
    """The candidate features of a split, and the order of splits.

    Parameters
    ----------
    max_features : int, float, "sqrt", "log2" or None
        Number or fraction of the features to consider for each split. They are drawn at random at
        each node; if all of them are constant, more are drawn. None considers all features.
    growth : {"depth_first", "best_first"}, optional
        Node to split next: "depth_first" continues with the first child, "best_first" with the node
        whose split reduces the total impurity most. The order matters only if `max_leaf_nodes` or a
        callback ends growth. Default: "best_first" if `max_leaf_nodes` is given, else
        "depth_first".
    """

    max_features: Annotated[FeatureCount | float | None, Option(None)]
    growth: Annotated[Literal["depth_first", "best_first"] | None, Option(None)]


class BinOptions(TypedDict, total=False):
    """The candidate thresholds of a split.

    Parameters
    ----------
    search : {"auto", "exact", "binned"}
        Candidate thresholds: "exact" tries all, "binned" only the edges of `max_bins` quantile
        bins. "auto" is "exact" below 1e7 rows.
    max_bins : int
        Maximum number of bins per feature, from 2 to 256.
    """

    search: Annotated[Literal["auto", "exact", "binned"], Option("auto")]
    max_bins: Annotated[int, Option(MAX_BINS, check_integer, min_value=2, max_value=MAX_BINS)]


class SpecialOptions(TypedDict, total=False):
    """The treatment of missing values and categories.

    Parameters
    ----------
    missing : {"learn", "error"}
        "learn" sends missing values to one of the children, see `X`. "error" rejects training data
        with missing values.
    categorical_smoothing : float
        Number >= 0 by which the differences between categories are shrunk toward the node mean, in
        units of the difference expected by chance. Larger values reduce overfitting to rare
        categories; 0 means no smoothing.
    """

    missing: Annotated[Literal["learn", "error"], Option("learn")]
    categorical_smoothing: Annotated[float, Option(LEVEL_SMOOTHING, check_number, min_value=0.0)]


class SearchOptions(BinOptions, SpecialOptions, total=False):
    """All options of the split search."""


class TreeOptions(
    TaskOption,
    CriterionOption,
    SizeOptions,
    SplitOptions,
    SearchOptions,
    CostOptions,
    total=False,
):
    """The options of a tree, in the order of its settings."""


class CartOptions(TreeOptions, RowOptions, FitOptions, total=False):
    """The options of `fit_cart`.

    Parameters
    ----------
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows. A row with weight k counts like k copies of the row, except for
        `min_samples_leaf` and `min_samples_split`.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Seed for `max_features`.
    callback : callable, optional
        Called as ``callback(step, record)`` after each split with the number of splits so far and a
        `pboost.growth.graph_growth.CartStep`. Return True to stop.
    """


@reads_columns(search_option)
@builder
def fit_cart(X: object, y: ArrayLike | None = None, **options: Unpack[CartOptions]) -> Tree:
    """Fit a CART classification or regression tree.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features. Missing values go to the child that gives the better split, or to the child with
        more training weight if no training row at the node had a missing value. Categorical
        features are split by a set of categories.
    y : array_like of shape (n,), optional
        Target: class labels, two or more, or finite numbers for regression.
    **options
        See `CartOptions`.

    Returns
    -------
    Tree
        Use it with `predict`, `predict_proba`, `apply`, `describe` and others.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is invalid; the message names the argument.

    Notes
    -----
    To split a categorical feature, the categories are sorted by the share of the second class or by
    the mean, and with more than two classes by the first principal component of the class shares.
    Each prefix of this order is tried as the category set of one child. For two classes and for
    regression, this finds the best of all sets. With more classes, it is a heuristic, and sets of a
    single category are also tried. Categories that do not occur at the node go to the same child as
    missing values. A split can also separate missing values from all others; its threshold is then
    the largest number.

    Splits are tied if their criteria agree to 1e-12 of the node's impurity (in classification, of
    its weight). Ties are broken in this order: the lowest feature (with feature costs, the
    cheapest), missing values in the second child, the lowest threshold. Splits that do not lower
    the impurity are also made, since a later split may lower it.

    References
    ----------
    .. [1] L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, "Classification and
       regression trees", Wadsworth (1984).

    Examples
    --------
    >>> import pboost as pb
    >>> X = [[1, 1], [1, 2], [1, 3], [2, 2], [2, 3]]
    >>> tree = pb.fit_cart(X, [9, -4, 2, 4, 2], task="regression", max_depth=2)
    >>> print(pb.describe(tree))
    fit_cart: 3 leaves, depth 2, 2 features, numbers
    stopped: no node can be split
    2.6 (5)
      x[1] <= 1.5: 9 (1)
      x[1] >  1.5: 1 (4)
        x[0] <= 1.5: -1 (2)
        x[0] >  1.5: 3 (2)
    """
    problem, limits, settings, key = fit_cart_problem(FitData.of(X, y, options), options)
    total = None if options["max_leaf_nodes"] is None else limits.leaves - 1
    with bar_of(options)(total, "splits") as on_step:
        n_threads = options["n_threads"]
        return fit_tree(problem, problem.weights, limits, settings, key, n_threads, on_step)


class FitData(NamedTuple):
    """The training data, number of threads and random generator of a fit."""

    X: Any
    y: Any
    sample_weight: Any
    n_threads: int | None
    generator: np.random.Generator

    @classmethod
    def of(cls, X: object, y: object, options: Mapping[str, Any]) -> FitData:
        """Return the training data, number of threads and random generator of a fit."""
        generator = as_generator(options["rng"])
        return cls(*rows_of_fit(X, y, options), options["n_threads"], generator)


def check_labels(problem: Problem, classes: Array | None) -> None:
    """Raise ValueError unless a problem has the same classes as the model to continue."""
    data_labels = problem.classes
    same = (
        data_labels is classes
        if data_labels is None or classes is None
        else np.array_equal(data_labels, classes)
    )
    if not same:
        texts = ["numbers" if v is None else shown(v.tolist()) for v in (classes, data_labels)]
        raise ValueError(f"y: expected the classes of the model, {texts[0]}, got {texts[1]}")


def fit_cart_problem(
    data: FitData, options: Mapping[str, Any], hold: HoldOut | None = None
) -> tuple[Problem, CartLimits, dict[str, Any], int]:
    """Return the arguments of `fit_tree` except the weights; `hold` lists rows to hold out."""
    tree_options: TreeOptions = filled(TreeOptions, options)
    X, search = data.X, tree_options["search"]
    task: Task | None = tree_options["task"]
    criterion_task = task_of_options({"criterion": tree_options["criterion"]})
    if isinstance(X, RowSource):
        task = X.task(criterion_task if task is None else task)
    else:
        task = task_of(data.y, task, criterion_task)
    criterion = check_criterion(task, tree_options["criterion"])
    if isinstance(X, RowSource):
        problem = X.trees(task, search)
        check_taken(problem.table, problem.names, taken_of(tree_options["missing"]))
    else:
        problem = tree_problem(
            X,
            data.y,
            data.sample_weight,
            task=task,
            binning=Binning(search, tree_options["max_bins"], data.n_threads),
            takes=taken_of(tree_options["missing"]),
            hold=hold,
        )
    settings = {"builder": "fit_cart", **tree_options, "task": task, "criterion": criterion}
    limits = cart_limits(problem, settings)
    settings["growth"] = limits.growth
    is_drawn = limits.features < problem.n_features
    return problem, limits, settings, int(data.generator.integers(2**63)) if is_drawn else 0


def check_criterion(task: str, criterion: str | None) -> str:
    """Return the criterion after checking it, or the default criterion of the task."""
    check_choice("task", task, TASKS)
    criterion = CART_CRITERIA[task][0] if criterion is None else criterion
    return check_choice("criterion", criterion, CART_CRITERIA[task])


def cart_limits(problem: Problem, options: Mapping[str, Any]) -> CartLimits:
    """Return the limits of trees for checked options."""
    _check_together(options["criterion"], options["growth"], options["max_leaf_nodes"], problem)
    depth, leaves = options["max_depth"], options["max_leaf_nodes"]
    max_features = features_of_forest(options["max_features"], problem)
    return CartLimits(
        options["criterion"],
        INT32_MAX if depth is None else depth,
        MOST_NODES if leaves is None else leaves,
        options["min_samples_leaf"],
        options["min_samples_split"],
        resolve_features(max_features, problem.n_features),
        options["growth"] or ("depth_first" if leaves is None else "best_first"),
        categorical_smoothing=options["categorical_smoothing"],
        feature_costs=read_feature_costs(options, problem.names, problem.n_features),
    )


def limits_of_problem(problem: Problem, options: Mapping[str, Any]) -> CartLimits:
    """Return the limits of gradient-boosted trees."""
    check_taken(problem.table, problem.names, taken_of(options["missing"]))
    criterion = check_criterion(options["task"], None)
    return cart_limits(problem, filled(TreeOptions, {**options, "criterion": criterion}))


def _check_together(
    criterion: str, growth: object, max_leaf_nodes: object, problem: Problem
) -> None:
    """Check options that depend on other options or on the data."""
    if max_leaf_nodes is not None and growth == "depth_first":
        raise ValueError(
            'max_leaf_nodes: expected None with growth="depth_first"; use growth="best_first"'
        )
    j = 2 if problem.classes is None else len(problem.classes)
    if criterion in OF_TWO and j > 2:
        raise ValueError(f'criterion: expected two classes with "{criterion}", got {j}')


def taken_of(missing: str) -> Takes:
    """Return the kinds of columns to accept for the option `missing`."""
    return Takes(holes=missing != "error", levels=True)


def features_of_forest(max_features: Any, problem: Problem) -> Any:
    """Return `max_features` without "auto", the default of forests."""
    if not (isinstance(max_features, str) and max_features == "auto"):
        return max_features
    return SHARE_IN_REGRESSION if problem.classes is None else "sqrt"


def resolve_features(max_features: object, d: int, name: str = "max_features") -> int:
    """Return the number of features to consider, given the option and the total number d."""
    if max_features is None:
        return d
    if isinstance(max_features, str):
        check_choice(name, max_features, get_args(FeatureCount))
        of = math.sqrt(d) if max_features == "sqrt" else math.log2(d)
        return max(1, int(of))
    if isinstance(max_features, float | np.floating):
        if not 0 < max_features <= 1:
            raise ValueError(f"{name}: expected a fraction in (0, 1], got {max_features}")
        return math.ceil(max_features * d - 1e-9)  # not one more because of rounding
    return check_integer(name, max_features, min_value=1, max_value=d)


def shared_columns(problem: Problem, limits: CartLimits, n_threads: int | None) -> Problem:
    """Return the problem with its columns sorted or ranked once, for several trees."""
    columns = problem.columns
    is_wide = limits.features * RANKED_FROM <= problem.n_features
    if not is_wide or problem.table is not None or isinstance(columns, BinnedColumns):
        return problem.sorted_once(n_threads)
    rows = np.arange(problem.n_rows, dtype=np.int32)
    known = columns.packed_order if isinstance(columns, SortedColumns) else None
    return replace(problem, ranks=column_ranks(*problem.source(rows), known, n_threads))


def fit_tree(
    problem: Problem,
    weights: FloatArray | None,
    limits: CartLimits,
    settings: dict[str, Any],
    key: int,
    n_threads: int | None,
    callback: Callback | None = None,
) -> Tree:
    """Fit one tree with checked options; `key` seeds its random numbers."""
    if problem.elsewhere is not None:
        tree: Tree = problem.elsewhere.fit_tree(problem, limits, settings, key, n_threads, callback)
        return tree
    cells = problem.n_rows * problem.n_features
    with Workers(n_threads, cells) as workers:
        arrays = CartArrays(problem.weighted(weights, workers), limits, key)
        stop_reason = grow_tree(arrays, workers, callback)
    return arrays.model(settings, stop_reason, limits.criterion)
