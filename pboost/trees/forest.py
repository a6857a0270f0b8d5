"""Random forests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core import tree_walk
from pboost.data.bags import check_bag, make_bags
from pboost.data.columns import MAX_BINS
from pboost.data.prices import PRICE_OPTIONS, GroupOption, PriceOption, plain_options
from pboost.data.row_source import rows_of_fit
from pboost.data.special_columns import LEVEL_SMOOTHING
from pboost.data.table import Categorical
from pboost.data.training import Problem
from pboost.growth.step import Callback
from pboost.models.forest import Forest, join_trees
from pboost.models.tree_record import LEAF
from pboost.models.trees import Tree
from pboost.trees.cart import FitData, check_labels, fit_cart_problem, fit_tree, shared_columns
from pboost.trees.members import Tally, tallied, train_members
from pboost.values import (
    Bar,
    FloatArray,
    Progress,
    Seed,
    as_generator,
    check_callback,
    check_integer,
    generator_state,
    with_bar,
)
from pboost.values.options import builder

#: Rows whose values are gathered at a time for the trees that have not seen them.
BLOCK_ROWS = 64 * tree_walk.TILE_ROWS
#: Up to which difference the means of labels, and of numbers as large as 1, are the same.
SAME_MEAN = 1e-6
#: What a forest is fitted with beside its size, as in its settings.
FOREST_OPTIONS = (
    "task",
    "criterion",
    "max_depth",
    "min_leaf",
    "min_split",
    "max_leaves",
    "features_per_split",
    "search",
    "max_bins",
    "missing",
    "level_smoothing",
    "replace",
    "bag",
    *PRICE_OPTIONS,
)


@builder
def fit_forest(
    X: Any,
    y: ArrayLike | None = None,
    *,
    members: int = 100,
    task: str | None = None,
    features_per_split: str | float | None = "sqrt",
    replace: bool = True,
    bag: float | int | None = None,
    criterion: str | None = None,
    max_depth: int | None = None,
    min_leaf: int = 1,
    min_split: int = 2,
    max_leaves: int | None = None,
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
) -> Forest:
    """Fit a random forest: trees on bags of rows, each split searched in a few random columns.

    A bag is drawn as a number of copies of each row, which multiplies its weight; the columns are
    sorted or binned once for all trees. The rows that are not in the bag of a tree test it: the
    record of these tests estimates the error of the forest without other data.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features. A test sends rows whose value is missing to the exit that lowers the criterion
        most; where no training row at the node was missing, to the exit of larger reach. A category
        is split by a set of its levels.
    y : array_like of shape (n,), optional
        Labels, of two or more different values; of a regression, finite numbers.
    members : int
        Number of trees.
    task : {"classification", "regression"}, optional
        What `y` is. By default text, booleans and at most 20 different whole numbers are classes,
        and numbers that are not all whole are a regression. With more different whole numbers it
        must be given, unless `criterion` is of one task only.
    features_per_split : int, float, "sqrt", "log2" or None
        Number of columns, drawn at each node, in which it is searched; a float is a share of all,
        None all of them.
    replace : bool
        Whether a row can be drawn for a bag more than once.
    bag : float, int or None
        Rows drawn for each bag: a share in (0, 1] of the rows of positive weight, rounded to the
        nearest number, at least one; or how many; None: as many as there are. With
        ``replace=False`` fewer, for subsamples.
    criterion, max_depth, min_leaf, min_split, max_leaves :
        Options of the trees, see `fit_cart`.
    search, max_bins, missing, level_smoothing :
        Options of the trees, see `fit_cart`. `min_leaf` and `min_split` count rows once, however
        often they are in the bag.
    prices, groups, comparison_price : optional
        What columns cost, see `fit_cart`. A tree does not know what others read: in each the way to
        a node is all that is paid there, while `evaluation_cost` counts columns once for a row,
        whatever trees compare them.
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        In place of `y`: the probability of each label in each row, which then stands for each of
        them with its weight times its probability; one dimension: that of the second of two labels.
    labels : array_like of shape (J,), optional
        With `y_proba`: the labels of its columns; default 0, 1, ..., or the names of its columns.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows in their bags and in the out-of-bag error. All rows of positive
        weight are equally likely to be drawn.
    categorical : sequence of str or int, optional
        Names or positions of columns that hold categories, besides those of a data frame that hold
        text or whose type says so.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness. The first k trees are the same for any number of `members`.
    n_threads : int or None
        Threads, each of which fits whole trees, -1 for all; None: as many as the work is worth.
        The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each tree, in order, with their number so far
        and a `pboost.growth.step.MemberStep`; returning True stops. The model then has the
        trees so far, whatever the number of threads, which may have fitted a few more.
    progress : bool or callable
        True shows a bar of tqdm (extra ``progress``) on standard error; or what makes a bar, as
        ``tqdm.tqdm`` does.

    Returns
    -------
    Forest
        ``forest.oob`` has the out-of-bag predictions and error, ``forest[i]`` tree i;
        ``forest[:k]`` is the forest of the first k trees, without the record.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described; the message names the argument.

    Notes
    -----
    A class may have no row in a bag; the tree then gives it the share 0. The forest predicts the
    class of largest mean share, as in scikit-learn; in [1]_ trees vote.

    References
    ----------
    .. [1] L. Breiman, "Random forests", Machine Learning 45 (2001).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> forest = pb.fit_forest(X, X[:, 0] + X[:, 1] > 0, members=30, rng=0)
    >>> len(forest), bool(forest.oob.error < 0.1)
    (30, True)
    >>> pb.predict_proba(forest, [[2.0, 2.0, 0.0, 0.0]]).shape
    (1, 2)
    """
    check_callback(callback, progress)
    options = {
        "task": task,
        "criterion": criterion,
        "max_depth": max_depth,
        "min_leaf": min_leaf,
        "min_split": min_split,
        "max_leaves": max_leaves,
        "features_per_split": features_per_split,
        "search": search,
        "max_bins": max_bins,
        "missing": missing,
        "level_smoothing": level_smoothing,
        "replace": replace,
        "bag": bag,
        **plain_options(prices, groups, comparison_price),
    }
    members = check_integer("members", members, least=1)
    X, y, sample_weight = rows_of_fit(X, y, sample_weight, y_proba, labels, categorical)
    data = FitData(X, y, sample_weight, n_threads, as_generator(rng))
    return grow_forest(data, members, options, partial(with_bar, callback, progress))


def grow_forest(
    data: FitData, members: int, options: Mapping[str, Any], bar: Bar, given: Sequence[Tree] = ()
) -> Forest:
    """Return the forest of so many trees, of which the first may be given; see FOREST_OPTIONS."""
    of_trees = dict(options)
    bag, is_repeated = check_bag(of_trees.pop("bag")), of_trees.pop("replace")
    state = generator_state(data.generator)
    problem, limits, settings, _ = fit_cart_problem(*data, **of_trees)
    elsewhere, entries = problem.elsewhere, problem.entries
    if elsewhere is not None:
        problem = elsewhere.with_targets(problem)
    bags = make_bags(
        problem.weights, problem.n_rows, bag, is_repeated, data.generator, entries=entries
    )
    if given:
        check_labels(problem, given[0].labels)
    if elsewhere is None:
        problem = shared_columns(problem, limits, data.n_threads)
    if problem.labels is None:
        tally = Tally(np.ldexp(problem.y, problem.exponent), bags.weights, 0)
    else:
        tally = Tally(problem.label, bags.weights, len(problem.labels), entries)

    first = problem.first

    def train(member: int) -> tuple[Tree, NDArray[np.intp], FloatArray]:
        drawn, stream = bags.draw(member)
        out = first[drawn[first] == 0]
        if member < len(given):
            tree = given[member]
            _check_rows(tree, problem, drawn)
        else:
            tree = fit_tree(problem, drawn, limits, settings, int(stream.integers(2**63)), 1)
        return tree, problem.given(out), tree.value[nodes_of_rows(tree, problem, out)]

    cells = problem.n_rows * problem.n_features * members
    with bar(members, "members", len(given)) as callback:
        every = partial(train_members, train, members, data.n_threads, cells)
        if elsewhere is not None:
            own = problem, bags, limits, settings, members, data.n_threads
            every = partial(elsewhere.fit_bags, *own)
        trees = tallied(every, tally, callback, len(given))
    said = {"builder": "fit_forest", "members": members, "replace": bags.replace, "bag": bag}
    known = {} if state is None else {"rng": state}
    return join_trees(trees, {**settings, **said, **known}, tally.close(), problem.seen)


def _check_rows(tree: Tree, problem: Problem, bag: FloatArray) -> None:
    """Raise ValueError if a tree was fitted to other rows, labels or weights than these."""
    rows = np.flatnonzero(bag)
    count = np.bincount(nodes_of_rows(tree, problem, rows), minlength=tree.n_nodes)
    if problem.labels is None:
        mean = np.average(problem.y[rows], weights=bag[rows])
        known = np.ldexp(tree.value[0], -problem.exponent)
    else:
        mass = np.bincount(problem.label[rows], bag[rows], len(problem.labels))
        mean, known = mass / mass.sum(), tree.value[0]
    is_other = (count != np.where(tree.feature == LEAF, tree.n_rows, 0)).any()
    if is_other or not np.allclose(mean, known, atol=SAME_MEAN):
        raise ValueError(
            "X, y, sample_weight: expected the rows of the fit, in their order, and the same "
            "source of randomness; a tree was fitted to others"
        )


def nodes_of_rows(tree: Tree, problem: Problem, rows: NDArray[np.intp]) -> NDArray[np.int32]:
    """Return the leaf that each of the listed rows of the problem reaches, as a node."""
    node = np.empty((len(rows), 1), dtype=np.int32)
    tile = np.empty(tree.tile_width * tree_walk.TILE_ROWS)
    for start in range(0, len(rows), BLOCK_ROWS):
        block = problem.values(rows[start : start + BLOCK_ROWS])
        at = tree.walk_leaves(block, 0, len(block), tile, node[start : start + BLOCK_ROWS])
        if at < len(block):  # of a table in memory it is found before
            raise ValueError(
                "X: expected finite numbers, or missing ones where the tree takes them, got others "
                f"in row {rows[start + at]} or near it; values may have changed on disk"
            )
    return node[:, 0]
