"""Classification and regression trees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.columns.columns import MAX_BINS, SEARCHES, BinnedColumns, SortedColumns
from pboost.data.columns.making import column_ranks
from pboost.data.columns.prebuilt import LEVEL_SMOOTHING
from pboost.data.prices import (
    PRICE_OPTIONS,
    GroupOption,
    PriceOption,
    plain_options,
    read_prices,
)
from pboost.data.read.check_xy import TASKS, check_taken
from pboost.data.read.table import EVERYTHING, Categorical, Takes
from pboost.data.row_source import RowSource, rows_of_fit
from pboost.data.splits import HoldOut
from pboost.data.targets import OF_TWO, class_criteria, task_of, task_of_options
from pboost.data.training import Problem, reads_columns, search_option, tree_problem
from pboost.growth.step import Callback
from pboost.growth.tree import CartArrays, CartLimits, grow_tree
from pboost.models.trees import Tree
from pboost.threads import Workers
from pboost.values import (
    INT32_MAX,
    MOST_NODES,
    Array,
    FloatArray,
    Progress,
    Seed,
    as_generator,
    check_callback,
    check_choice,
    check_integer,
    check_number,
    shown,
    with_bar,
)
from pboost.values.options import builder

CART_GROWTHS = ("depth-first", "best-first")
#: Of so many times the columns that a node is searched in, sorted orders are made at the nodes.
RANKED_FROM = 6
#: Where rows go whose value is missing, of all builders.
MISSING = ("learn", "error")
#: The criteria of each task, the default first.
CART_CRITERIA = {
    "classification": class_criteria(2),
    "regression": ("squared",),
}

#: What trees are grown on besides numbers.
TAKES = EVERYTHING


@reads_columns(search_option)
@builder
def fit_cart(
    X: Any,
    y: ArrayLike | None = None,
    *,
    task: str | None = None,
    criterion: str | None = None,
    max_depth: int | None = None,
    min_leaf: int = 1,
    min_split: int = 2,
    max_leaves: int | None = None,
    features_per_split: str | float | None = None,
    growth: str | None = None,
    search: str = "auto",
    max_bins: int = MAX_BINS,
    missing: str = "learn",
    level_smoothing: float = LEVEL_SMOOTHING,
    prices: PriceOption = None,
    groups: GroupOption = None,
    comparison_price: float | None = None,
    y_proba: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    categorical: Categorical = None,
    rng: Seed = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> Tree:
    """Fit a classification or regression tree: splits of least impurity, until leaves are pure.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features. A test sends rows whose value is missing to the exit that lowers the criterion
        most; where no training row at the node was missing, to the exit of larger reach. A category
        is split by a set of its levels.
    y : array_like of shape (n,), optional
        Labels, of two or more different values; of a regression, finite numbers.
    task : {"classification", "regression"}, optional
        What `y` is. By default text, booleans and at most 20 different whole numbers are classes,
        and numbers that are not all whole are a regression. With more different whole numbers it
        must be given, unless `criterion` is of one task only.
    criterion : str, optional
        Impurity that splits lower: "gini" (the default), "entropy" (base 2), "error", or, of two
        classes, "kearns-mansour"; of a regression "squared".
    max_depth : int or None
        Greatest number of comparisons for a row.
    min_leaf : int
        Least number of training rows in a leaf, whatever their weights.
    min_split : int
        Least number of training rows of a node that is split, at least 2.
    max_leaves : int or None
        Greatest number of leaves; with ``growth="best-first"``.
    features_per_split : int, float, "sqrt", "log2" or None
        Number of columns, drawn at each node, in which it is searched; a float is a share of all.
        None: all. Where all columns drawn are constant, more are drawn, until one is not.
    growth : {"depth-first", "best-first"}, optional
        Which node is split next: the first child, or the one whose split lowers the total
        impurity most. They give the same tree unless it is cut short. Default: best first where
        `max_leaves` is given, else depth first.
    search : {"auto", "exact", "binned"}
        "exact" tries every cut between two different values; "binned" only the edges of
        `max_bins` bins of about equal weight. "auto" is exact below 1e7 rows.
    max_bins : int
        Number of bins, 2 to 256. It does not change what the exact search finds.
    missing : {"learn", "error"}
        "learn" sends missing values to the child that lowers the criterion most. "error" refuses
        them in training.
    level_smoothing : float
        Of categories: how many times the difference between levels that chance is expected to make,
        for those beyond two, is taken from what they differ. The levels' class shares or means are
        drawn towards that of the node accordingly; so drawn they give the order of which a set is
        an end, and say how much of what a split seems to lower counts. With 0 the set fits the
        training rows best, which it does by chance where levels are many.
    prices : sequence of float or mapping, optional
        What columns cost, numbers >= 0: one for each, or a mapping of names or positions, where
        others cost nothing. A row pays for a column once. A split is then chosen by how much it
        lowers the criterion, by `comparison_price` plus what a row at the node has still to pay:
        what is on the way there is paid.
    groups : mapping or sequence of sequences of str or int, optional
        Groups of columns that are had together, by names or without: a row pays for a group
        once. A name in `prices` is that of the group's price, beside which columns cost what they
        cost by themselves; else a group costs as much as the dearest of its columns, and these
        cost nothing more.
    comparison_price : float, optional
        What a comparison costs beside, > 0: the larger it is the less prices matter. Default: 1
        percent of the mean price of a column.
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        In place of `y`: the probability of each label in each row, which then stands for each of
        them with its weight times its probability; one dimension: that of the second of two labels.
    labels : array_like of shape (J,), optional
        With `y_proba`: the labels of its columns; default 0, 1, ..., or the names of its columns.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows; weight k gives the splits of k copies of the row, as long as
        `min_leaf` and `min_split` do not count them.
    categorical : sequence of str or int, optional
        Names or positions of columns that hold categories, besides those of a data frame that hold
        text or whose type says so.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness for `features_per_split`.
    n_threads : int or None
        Threads, -1 for all; None: as many as the work is worth. The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each split with the number of splits so far
        and a `pboost.growth.step.CartStep`; returning True stops.
    progress : bool or callable
        True shows a bar of tqdm (extra ``progress``) on standard error; or what makes a bar, as
        ``tqdm.tqdm`` does.

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
    classification) the lowest feature is taken, of columns that have prices the cheapest, then
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
    check_callback(callback, progress)
    generator = as_generator(rng)
    X, y, sample_weight = rows_of_fit(X, y, sample_weight, y_proba, labels, categorical)
    problem, limits, settings, key = fit_cart_problem(
        X,
        y,
        sample_weight,
        n_threads,
        generator,
        task=task,
        criterion=criterion,
        max_depth=max_depth,
        min_leaf=min_leaf,
        min_split=min_split,
        max_leaves=max_leaves,
        features_per_split=features_per_split,
        growth=growth,
        search=search,
        max_bins=max_bins,
        missing=missing,
        level_smoothing=level_smoothing,
        prices=prices,
        groups=groups,
        comparison_price=comparison_price,
    )
    total = None if max_leaves is None else limits.leaves - 1
    with with_bar(callback, progress, total, "splits") as told:
        return fit_tree(problem, problem.weights, limits, settings, key, n_threads, told)


class FitData(NamedTuple):
    """What builders of trees are given beside their options."""

    X: Any
    y: Any
    sample_weight: Any
    n_threads: int | None
    generator: np.random.Generator


def check_labels(problem: Problem, labels: Array | None) -> None:
    """Raise ValueError if the labels of a problem are not those of a model that goes on."""
    found = problem.labels
    same = found is labels if found is None or labels is None else np.array_equal(found, labels)
    if not same:
        said = ["numbers" if v is None else shown(v.tolist()) for v in (labels, found)]
        raise ValueError(f"y: expected the labels of the model, {said[0]}, got {said[1]}")


def fit_cart_problem(
    X: Any,
    y: Any,
    sample_weight: Any,
    n_threads: int | None,
    generator: np.random.Generator,
    hold: HoldOut | None = None,
    *,
    task: str | None = None,
    criterion: str | None = None,
    max_depth: Any = None,
    min_leaf: Any = 1,
    min_split: Any = 2,
    max_leaves: Any = None,
    features_per_split: Any = None,
    growth: str | None = None,
    search: str = "auto",
    max_bins: Any = MAX_BINS,
    missing: str = "learn",
    level_smoothing: Any = LEVEL_SMOOTHING,
    prices: PriceOption = None,
    groups: GroupOption = None,
    comparison_price: Any = None,
) -> tuple[Problem, CartLimits, dict[str, Any], int]:
    """Check the arguments of `fit_cart`; returns those of `fit_tree` but for the weights.

    `hold` says which rows to hold out.
    """
    own = task_of_options({"criterion": criterion})
    if isinstance(X, RowSource):
        task = X.task(own if task is None else task)
    else:
        task = task_of(y, task, own)
    criterion = check_task(task, criterion)
    check_choice("search", search, SEARCHES)
    max_bins = check_integer("max_bins", max_bins, least=2, most=MAX_BINS)
    level_smoothing = check_number("level_smoothing", level_smoothing, least=0.0)
    if isinstance(X, RowSource):
        problem = X.trees(task, search)
        check_taken(problem.table, problem.names, taken_of(missing))
    else:
        problem = tree_problem(
            X,
            y,
            sample_weight,
            task=task,
            search=search,
            max_bins=max_bins,
            n_threads=n_threads,
            takes=taken_of(missing),
            hold=hold,
        )
    limits, settings, key = cart_limits(
        problem,
        generator,
        task=task,
        criterion=criterion,
        max_depth=max_depth,
        min_leaf=min_leaf,
        min_split=min_split,
        max_leaves=max_leaves,
        features_per_split=features_per_split,
        growth=growth,
        search=search,
        max_bins=max_bins,
        missing=missing,
        level_smoothing=level_smoothing,
        prices=plain_options(prices, groups, comparison_price),
    )
    return problem, limits, settings, key


def limits_of_problem(
    problem: Problem,
    generator: np.random.Generator,
    *,
    task: str,
    missing: str,
    level_smoothing: Any,
    **limits: Any,
) -> CartLimits:
    """Return the limits of the trees of a sum, as `fit_cart_problem` does of rows in one table."""
    check_taken(problem.table, problem.names, taken_of(missing))
    return cart_limits(
        problem,
        generator,
        task=task,
        criterion=check_task(task, None),
        missing=missing,
        level_smoothing=check_number("level_smoothing", level_smoothing, least=0.0),
        min_split=2,
        features_per_split=None,
        growth=None,
        prices=plain_options(None, None, None),
        **limits,
    )[0]


def check_task(task: str, criterion: str | None) -> str:
    """Return the criterion of a task, checked."""
    check_choice("task", task, TASKS)
    criterion = CART_CRITERIA[task][0] if criterion is None else criterion
    return check_choice("criterion", criterion, CART_CRITERIA[task])


def cart_limits(
    problem: Problem,
    generator: np.random.Generator,
    *,
    task: str,
    criterion: str,
    max_depth: Any,
    min_leaf: Any,
    min_split: Any,
    max_leaves: Any,
    features_per_split: Any,
    growth: str | None,
    search: str,
    max_bins: int,
    missing: str,
    level_smoothing: float,
    prices: Mapping[str, Any] = PRICE_OPTIONS,
) -> tuple[CartLimits, dict[str, Any], int]:
    """Check the options of `fit_cart` for a problem; returns them as limits and as settings.

    And the key of random numbers.
    """
    _check_together(criterion, growth, max_leaves, problem)
    limits = CartLimits(
        criterion,
        INT32_MAX if max_depth is None else check_integer("max_depth", max_depth, least=1),
        MOST_NODES
        if max_leaves is None
        else check_integer("max_leaves", max_leaves, least=1, most=MOST_NODES),
        check_integer("min_leaf", min_leaf, least=1),
        check_integer("min_split", min_split, least=2),
        resolve_features(features_per_split, problem.n_features),
        growth or ("depth-first" if max_leaves is None else "best-first"),
        level_smoothing=level_smoothing,
        prices=read_prices(prices, problem.names, problem.n_features),
    )
    settings = {
        "builder": "fit_cart",
        "task": task,
        "criterion": criterion,
        "max_depth": max_depth,
        "min_leaf": min_leaf,
        "min_split": min_split,
        "max_leaves": max_leaves,
        "features_per_split": features_per_split,
        "growth": limits.growth,
        "search": search,
        "max_bins": max_bins,
        "missing": missing,
        "level_smoothing": level_smoothing,
        **prices,
    }
    key = int(generator.integers(2**63)) if limits.features < problem.n_features else 0
    return limits, settings, key


def _check_together(criterion: str, growth: object, max_leaves: object, problem: Problem) -> None:
    """Check options that depend on others, or on the data."""
    if growth is not None:
        check_choice("growth", growth, CART_GROWTHS)
    if max_leaves is not None and growth == "depth-first":
        raise ValueError('max_leaves: expected None with growth="depth-first"')
    j = 2 if problem.labels is None else len(problem.labels)
    if criterion in OF_TWO and j > 2:
        raise ValueError(f'criterion: "{criterion}" is for two classes, got {j}')


def taken_of(missing: object) -> Takes:
    """Return what columns may be; `missing` is the option."""
    return Takes(holes=check_choice("missing", missing, MISSING) != "error", levels=True)


def resolve_features(features_per_split: object, d: int, name: str = "features_per_split") -> int:
    """Return the number of columns in which a node is searched, of d."""
    if features_per_split is None:
        return d
    if isinstance(features_per_split, str):
        check_choice(name, features_per_split, ("sqrt", "log2"))
        of = math.sqrt(d) if features_per_split == "sqrt" else math.log2(d)
        return max(1, int(of))
    if isinstance(features_per_split, float | np.floating):
        if not 0 < features_per_split <= 1:
            raise ValueError(f"{name}: expected a share in (0, 1], got {features_per_split}")
        return max(1, int(features_per_split * d))
    return check_integer(name, features_per_split, least=1, most=d)


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
        found: Tree = problem.elsewhere.fit_tree(
            problem, limits, settings, key, n_threads, callback
        )
        return found
    cells = problem.n_rows * problem.n_features
    with Workers(n_threads, cells) as workers:
        arrays = CartArrays(problem.weighted(weights, workers), limits, key)
        stop_reason = grow_tree(arrays, workers, callback)
    return arrays.model(settings, stop_reason, limits.criterion)
