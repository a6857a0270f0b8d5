"""Classification and regression trees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.columns.columns import BinnedColumns, SortedColumns
from pboost.data.columns.making import column_ranks
from pboost.data.columns.prebuilt import LEVEL_SMOOTHING, MAX_BINS
from pboost.data.prices import CostOptions, read_feature_costs
from pboost.data.read.check_xy import TASKS, check_taken
from pboost.data.read.table import EVERYTHING, Takes
from pboost.data.row_source import RowOptions, RowSource, rows_of_fit
from pboost.data.splits import HoldOut
from pboost.data.targets import (
    OF_TWO,
    ClassCriterion,
    NumberCriterion,
    TaskOption,
    class_criteria,
    task_of,
    task_of_options,
)
from pboost.data.training import Binning, Problem, reads_columns, search_option, tree_problem
from pboost.growth.step import Callback
from pboost.growth.tree import CartArrays, CartLimits, grow_tree
from pboost.models.trees import Tree
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

#: Of so many times the columns that a node is searched in, sorted orders are made at the nodes.
RANKED_FROM = 6
#: The criteria of each task, the default first.
#: Numbers of columns that follow from that of all.
FeatureCount: TypeAlias = Literal["sqrt", "log2"]
CART_CRITERIA: dict[str, tuple[str, ...]] = {
    "classification": class_criteria(2),
    "regression": get_args(NumberCriterion),
}

#: What trees are grown on besides numbers.
TAKES = EVERYTHING


class CriterionOption(TypedDict, total=False):
    """By what splits are judged.

    Parameters
    ----------
    criterion : {"gini", "entropy", "error", "kearns_mansour", "squared_error"}, optional
        Impurity that splits lower: "gini" (the default), "entropy" (base 2), "error", or, of two
        classes, "kearns_mansour"; of a regression "squared_error".
    """

    criterion: Annotated[ClassCriterion | NumberCriterion | None, Option(None)]


class SizeOptions(TypedDict, total=False):
    """How large a tree is.

    Parameters
    ----------
    max_depth : int or None
        Greatest number of comparisons for a row.
    min_samples_leaf : int
        Least number of training rows in a leaf, whatever their weights.
    min_samples_split : int
        Least number of training rows of a node that is split, at least 2.
    max_leaf_nodes : int or None
        Greatest number of leaves; with ``growth="best_first"``.
    """

    max_depth: Annotated[int | None, Option(None, check_integer, min_value=1)]
    min_samples_leaf: Annotated[int, Option(1, check_integer, min_value=1)]
    min_samples_split: Annotated[int, Option(2, check_integer, min_value=2)]
    max_leaf_nodes: Annotated[
        int | None, Option(None, check_integer, min_value=1, max_value=MOST_NODES)
    ]


class SplitOptions(TypedDict, total=False):
    """Where splits are searched, and in which order they are made.

    Parameters
    ----------
    max_features : int, float, "sqrt", "log2" or None
        Number of columns, drawn at each node, in which it is searched; a float is a share of all.
        None: all. Where all columns drawn are constant, more are drawn, until one is not.
    growth : {"depth_first", "best_first"}, optional
        Which node is split next: the first child, or the one whose split lowers the total
        impurity most. They give the same tree unless it is cut short. Default: best first where
        `max_leaf_nodes` is given, else depth first.
    """

    max_features: Annotated[FeatureCount | float | None, Option(None)]
    growth: Annotated[Literal["depth_first", "best_first"] | None, Option(None)]


class BinOptions(TypedDict, total=False):
    """Where splits are searched.

    Parameters
    ----------
    search : {"auto", "exact", "binned"}
        "exact" tries every cut between two different values; "binned" only the edges of
        `max_bins` bins of about equal weight. "auto" is exact below 1e7 rows.
    max_bins : int
        Number of bins, 2 to 256. It does not change what the exact search finds.
    """

    search: Annotated[Literal["auto", "exact", "binned"], Option("auto")]
    max_bins: Annotated[int, Option(MAX_BINS, check_integer, min_value=2, max_value=MAX_BINS)]


class SpecialOptions(TypedDict, total=False):
    """How missing values and categories are split.

    Parameters
    ----------
    missing : {"learn", "error"}
        "learn" sends missing values to the child that lowers the criterion most. "error" refuses
        them in training.
    categorical_smoothing : float
        Of categories: how many times the difference between levels that chance is expected to make,
        for those beyond two, is taken from what they differ. The levels' class shares or means are
        drawn towards that of the node accordingly; so drawn they give the order of which a set is
        an end, and say how much of what a split seems to lower counts. With 0 the set fits the
        training rows best, which it does by chance where levels are many.
    """

    missing: Annotated[Literal["learn", "error"], Option("learn")]
    categorical_smoothing: Annotated[float, Option(LEVEL_SMOOTHING, check_number, min_value=0.0)]


class SearchOptions(BinOptions, SpecialOptions, total=False):
    """How splits are searched."""


class TreeOptions(
    TaskOption,
    CriterionOption,
    SizeOptions,
    SplitOptions,
    SearchOptions,
    CostOptions,
    total=False,
):
    """What a tree is, in the order of its settings."""


class CartOptions(TreeOptions, RowOptions, FitOptions, total=False):
    """The options of `fit_cart`.

    Parameters
    ----------
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows; weight k gives the splits of k copies of the row, as long as
        `min_samples_leaf` and `min_samples_split` do not count them.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness for `max_features`.
    callback : callable, optional
        Called as ``callback(step, record)`` after each split with the number of splits so far
        and a `pboost.growth.step.CartStep`; returning True stops.
    """


@reads_columns(search_option)
@builder
def fit_cart(X: object, y: ArrayLike | None = None, **options: Unpack[CartOptions]) -> Tree:
    """Fit a classification or regression tree: splits of least impurity, until leaves are pure.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features. A test sends rows whose value is missing to the exit that lowers the criterion
        most; where no training row at the node was missing, to the exit of larger reach. A category
        is split by a set of its levels.
    y : array_like of shape (n,), optional
        Labels, of two or more different values; of a regression, finite numbers.
    **options
        Those of `CartOptions`.

    Returns
    -------
    Tree
        For `predict`, `predict_proba`, `apply`, `describe` and others.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described; the message names the argument.

    Notes
    -----
    The levels of a category are put in order, by the share of the second class or by the mean, of
    more than two classes by the first principal component of the class shares, and the beginnings
    of this order are tried as what goes to the first child. Of two classes, and of a regression,
    the best of these sets is the best of all; of more classes, that is a heuristic, and each level
    is tried against the others besides. Levels that are not at the node go where missing values do.
    Whether a value is missing can be asked, too: that is the split at the greatest number.

    Among splits whose criterion agrees to 1e-12 of the node's impurity (of its weight, in a
    classification) the lowest feature is taken, of columns that have costs the cheapest, then
    missing values in the second child rather than in the first, then the lowest threshold. A split
    that does not lower the impurity is still made, because the ones after it may.

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
    """What builders of trees are given beside their options."""

    X: Any
    y: Any
    sample_weight: Any
    n_threads: int | None
    generator: np.random.Generator

    @classmethod
    def of(cls, X: object, y: object, options: Mapping[str, Any]) -> FitData:
        """Return the data of a builder with these options."""
        generator = as_generator(options["rng"])
        return cls(*rows_of_fit(X, y, options), options["n_threads"], generator)


def check_labels(problem: Problem, classes: Array | None) -> None:
    """Raise ValueError if the labels of a problem are not those of a model that goes on."""
    data_labels = problem.classes
    same = (
        data_labels is classes
        if data_labels is None or classes is None
        else np.array_equal(data_labels, classes)
    )
    if not same:
        texts = ["numbers" if v is None else shown(v.tolist()) for v in (classes, data_labels)]
        raise ValueError(f"y: expected the labels of the model, {texts[0]}, got {texts[1]}")


def fit_cart_problem(
    data: FitData, options: Mapping[str, Any], hold: HoldOut | None = None
) -> tuple[Problem, CartLimits, dict[str, Any], int]:
    """Return what `fit_tree` takes but for the weights, of options that are checked.

    `hold` says which rows to hold out.
    """
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
    """Return the criterion of a task, checked."""
    check_choice("task", task, TASKS)
    criterion = CART_CRITERIA[task][0] if criterion is None else criterion
    return check_choice("criterion", criterion, CART_CRITERIA[task])


def cart_limits(problem: Problem, options: Mapping[str, Any]) -> CartLimits:
    """Return the limits of trees of a problem, of checked options; the criterion is known."""
    _check_together(options["criterion"], options["growth"], options["max_leaf_nodes"], problem)
    depth, leaves = options["max_depth"], options["max_leaf_nodes"]
    return CartLimits(
        options["criterion"],
        INT32_MAX if depth is None else depth,
        MOST_NODES if leaves is None else leaves,
        options["min_samples_leaf"],
        options["min_samples_split"],
        resolve_features(options["max_features"], problem.n_features),
        options["growth"] or ("depth_first" if leaves is None else "best_first"),
        categorical_smoothing=options["categorical_smoothing"],
        feature_costs=read_feature_costs(options, problem.names, problem.n_features),
    )


def limits_of_problem(problem: Problem, options: Mapping[str, Any]) -> CartLimits:
    """Return the limits of the trees of a sum, as `fit_cart_problem` does of rows in one table."""
    check_taken(problem.table, problem.names, taken_of(options["missing"]))
    criterion = check_criterion(options["task"], None)
    return cart_limits(problem, filled(TreeOptions, {**options, "criterion": criterion}))


def _check_together(
    criterion: str, growth: object, max_leaf_nodes: object, problem: Problem
) -> None:
    """Check options that depend on others, or on the data."""
    if max_leaf_nodes is not None and growth == "depth_first":
        raise ValueError('max_leaf_nodes: expected None with growth="depth_first"')
    j = 2 if problem.classes is None else len(problem.classes)
    if criterion in OF_TWO and j > 2:
        raise ValueError(f'criterion: "{criterion}" is for two classes, got {j}')


def taken_of(missing: str) -> Takes:
    """Return what columns may be; `missing` is the option."""
    return Takes(holes=missing != "error", levels=True)


def resolve_features(max_features: object, d: int, name: str = "max_features") -> int:
    """Return the number of columns in which a node is searched, of d."""
    if max_features is None:
        return d
    if isinstance(max_features, str):
        check_choice(name, max_features, get_args(FeatureCount))
        of = math.sqrt(d) if max_features == "sqrt" else math.log2(d)
        return max(1, int(of))
    if isinstance(max_features, float | np.floating):
        if not 0 < max_features <= 1:
            raise ValueError(f"{name}: expected a share in (0, 1], got {max_features}")
        return max(1, int(max_features * d))
    return check_integer(name, max_features, min_value=1, max_value=d)


def shared_columns(problem: Problem, limits: CartLimits, n_threads: int | None) -> Problem:
    """Return the problem with columns that several trees share, as they are searched."""
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
    """Fit one tree to a problem, whose options are checked; `key` is that of its random numbers."""
    if problem.elsewhere is not None:
        tree: Tree = problem.elsewhere.fit_tree(problem, limits, settings, key, n_threads, callback)
        return tree
    cells = problem.n_rows * problem.n_features
    with Workers(n_threads, cells) as workers:
        arrays = CartArrays(problem.weighted(weights, workers), limits, key)
        stop_reason = grow_tree(arrays, workers, callback)
    return arrays.model(settings, stop_reason, limits.criterion)
