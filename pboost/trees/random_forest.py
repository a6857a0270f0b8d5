"""Random forests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Annotated, Any, NamedTuple, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core import tree_walk
from pboost.data.feature_costs import CostOptions
from pboost.data.resampling import check_bag, make_bags
from pboost.data.row_source import RowOptions
from pboost.data.targets import TaskOption
from pboost.data.training_data import Problem
from pboost.growth.tree import CartLimits
from pboost.models.random_forest import RandomForest, join_trees
from pboost.models.single_tree import Tree
from pboost.models.tree_ensemble import LEAF
from pboost.trees.cart import (
    CriterionOption,
    FeatureCount,
    FitData,
    SearchOptions,
    SizeOptions,
    check_labels,
    features_of_forest,
    fit_cart_problem,
    fit_tree,
    shared_columns,
)
from pboost.trees.parallel_members import Tally, tallied, train_members
from pboost.values import (
    Auto,
    Bar,
    FloatArray,
    bar_of,
    check_choice,
    check_flag,
    check_integer,
    generator_state,
)
from pboost.values.options import FitOptions, Option, builder

#: Number of rows per block when out-of-bag rows are predicted.
BLOCK_ROWS = 64 * tree_walk.TILE_ROWS
#: Tolerance for equal class shares, and for equal means of targets that are scaled to at most 1.
SAME_MEAN = 1e-6


def check_features(name: str, max_features: object) -> object:
    """Reject texts other than the choices; numbers are checked once the features are known."""
    if isinstance(max_features, str):
        check_choice(name, max_features, (*get_args(Auto), *get_args(FeatureCount)))
    return max_features


class BagOptions(TypedDict, total=False):
    """The sources of randomness of a forest.

    Parameters
    ----------
    max_features : int, float, "auto", "sqrt", "log2" or None
        Number or fraction of the features to consider for each split, drawn at random at each node.
        None considers all features. "auto" is "sqrt" for classification and 0.4 for regression.
    bootstrap : bool
        If True, rows are drawn with replacement.
    max_samples : float, int or None
        Number of rows drawn for each tree, or fraction in (0, 1] of the rows with positive weight.
        None draws as many rows as have positive weight; with ``bootstrap=False``, these are all
        rows.
    """

    max_features: Annotated[Auto | FeatureCount | float | None, Option("auto", check_features)]
    bootstrap: Annotated[bool, Option(True, check_flag)]
    max_samples: Annotated[float | int | None, Option(None, check_bag)]


class ForestTreeOptions(
    TaskOption,
    BagOptions,
    CriterionOption,
    SizeOptions,
    SearchOptions,
    CostOptions,
    total=False,
):
    """The options of the trees of a forest."""


class ForestOptions(ForestTreeOptions, RowOptions, FitOptions, total=False):
    """The options of `fit_random_forest`.

    Parameters
    ----------
    min_samples_leaf : int
        Minimum number of training rows in a leaf, regardless of their weights. A row counts once,
        even if it was drawn several times.
    min_samples_split : int
        Minimum number of training rows in a node that is split, at least 2. A row counts once.
    feature_costs, cost_groups, comparison_cost : optional
        Costs of features, see `fit_cart`. During training, each tree pays for all features that it
        uses. `prediction_cost` counts a feature once per row for the whole forest.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows in training and in the out-of-bag error. All rows with a positive
        weight are equally likely to be drawn.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Seed. The first k trees do not depend on `n_estimators`.
    n_threads : int or None
        Number of threads; -1 uses all cores. By default, the number depends on the amount of work.
        The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each tree, in order, with the number of trees so
        far and a `pboost.growth.graph_growth.MemberStep`. Return True to stop.
    """


@builder
def fit_random_forest(
    X: object,
    y: ArrayLike | None = None,
    *,
    n_estimators: int = 100,
    **options: Unpack[ForestOptions],
) -> RandomForest:
    """Fit a random forest for classification or regression.

    Each tree is fitted to a random sample of the rows and considers a random subset of the features
    for each split. The error is estimated from predictions of each tree for rows outside its sample
    (out-of-bag error).

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features. Missing values go to the child that gives the better split, or to the child with
        more training weight if no training row at the node had a missing value. Categorical
        features are split by a set of categories.
    y : array_like of shape (n,), optional
        Target: class labels, two or more, or finite numbers for regression.
    n_estimators : int
        Number of trees.
    **options
        See `ForestOptions`.

    Returns
    -------
    RandomForest
        ``forest.oob`` has the out-of-bag predictions and error, ``forest[i]`` is tree i, and
        ``forest[:k]`` is a forest of the first k trees, without the out-of-bag results.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is invalid; the message names the argument.

    Notes
    -----
    The forest predicts the class with the largest mean share, as in scikit-learn. In [1]_, each
    tree votes for one class. A class without rows in the sample of a tree has the share 0 in this
    tree.

    References
    ----------
    .. [1] L. Breiman, "Random forests", Machine Learning 45 (2001).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> forest = pb.fit_random_forest(X, X[:, 0] + X[:, 1] > 0, n_estimators=30, rng=0)
    >>> len(forest), round(float(forest.oob.error), 2)
    (30, 0.06)
    >>> pb.predict_proba(forest, [[2.0, 2.0, 0.0, 0.0]]).round(2).tolist()
    [[0.0, 1.0]]
    """
    n_estimators = check_integer("n_estimators", n_estimators, min_value=1)
    return grow_forest(FitData.of(X, y, options), n_estimators, options, bar_of(options))


class ForestFit(NamedTuple):
    """The data and options of a forest, and the trees of an earlier fit to continue."""

    problem: Problem
    limits: CartLimits
    settings: dict[str, Any]
    n_threads: int | None
    generator: np.random.Generator
    max_samples: float | None
    bootstrap: bool
    n_estimators: int
    first_trees: Sequence[Tree]


def grow_forest(
    data: FitData,
    n_estimators: int,
    options: Mapping[str, Any],
    bar: Bar,
    first_trees: Sequence[Tree] = (),
) -> RandomForest:
    """Return a forest of `n_estimators` trees that begins with `first_trees`."""
    bag, is_repeated = options["max_samples"], options["bootstrap"]
    state = generator_state(data.generator)
    problem, limits, settings, _ = fit_cart_problem(data, {**options, "growth": None})
    if first_trees:
        check_labels(problem, first_trees[0].classes)
    arguments = problem, limits, settings, data.n_threads, data.generator
    fit = ForestFit(*arguments, bag, is_repeated, n_estimators, first_trees)
    with ExitStack() as ends:
        rows: Any = (
            TableMembers(fit) if problem.elsewhere is None else problem.elsewhere.members(fit, ends)
        )
        with bar(n_estimators, "members", len(first_trees)) as callback:
            trees = tallied(rows.train, rows.tally, callback, len(first_trees))
        oob = rows.tally.close()
    forest_settings = {
        "builder": "fit_random_forest",
        "max_features": features_of_forest(options["max_features"], problem),
        "n_estimators": n_estimators,
        "bootstrap": is_repeated,
        "max_samples": bag,
    }
    known = {} if state is None else {"rng": state}
    return join_trees(trees, {**settings, **forest_settings, **known}, oob, problem.seen)


class TableMembers:
    """Train the trees of a forest on one table and add up their out-of-bag predictions."""

    def __init__(self, fit: ForestFit) -> None:
        problem, entries = fit.problem, fit.problem.entries
        case = fit.max_samples, fit.bootstrap, fit.generator
        self._bags = make_bags(problem.weights, problem.n_rows, *case, entries=entries)
        self._fit, self._problem = fit, shared_columns(problem, fit.limits, fit.n_threads)
        if problem.classes is None:
            self.tally = Tally(np.ldexp(problem.y, problem.exponent), self._bags.weights, 0)
        else:
            arguments = self._bags.weights, len(problem.classes), entries
            self.tally = Tally(problem.label, *arguments)

    def train(self, take: Callable[[Any], bool]) -> None:
        """Call `take` with each tree, its out-of-bag rows and its predictions for these rows."""
        problem, fit = self._problem, self._fit
        first = problem.first

        def train(member: int) -> tuple[Tree, NDArray[np.intp], FloatArray]:
            drawn, stream = self._bags.draw(member)
            out = first[drawn[first] == 0]
            if member < len(fit.first_trees):
                tree = fit.first_trees[member]
                _check_rows(tree, problem, drawn)
            else:
                key = int(stream.integers(2**63))
                tree = fit_tree(problem, drawn, fit.limits, fit.settings, key, 1)
            return tree, problem.input_rows(out), tree.value[nodes_of_rows(tree, problem, out)]

        cells = problem.n_rows * problem.n_features * fit.n_estimators
        train_members(train, fit.n_estimators, fit.n_threads, cells, take)


def _check_rows(tree: Tree, problem: Problem, bag: FloatArray) -> None:
    """Raise ValueError if a tree was fitted to other rows, targets or weights."""
    rows = np.flatnonzero(bag)
    count = np.bincount(nodes_of_rows(tree, problem, rows), minlength=tree.n_nodes)
    if problem.classes is None:
        mean = np.average(problem.y[rows], weights=bag[rows])
    else:
        mass = np.bincount(problem.label[rows], bag[rows], len(problem.classes))
        mean = mass / mass.sum()
    check_seen(tree, count, mean, problem.exponent)


def check_seen(tree: Tree, count: NDArray[np.intp], mean: Any, exponent: int) -> None:
    """Raise ValueError if the row counts or the mean differ from the values in a tree.

    `count` contains the number of rows at each leaf. `mean` contains the class shares, or the mean
    target times 2**-exponent.
    """
    known = np.ldexp(tree.value[0], -exponent)
    is_other = (count != np.where(tree.feature == LEAF, tree.n_rows, 0)).any()
    if is_other or not np.allclose(mean, known, atol=SAME_MEAN):
        raise ValueError(
            "X, y, sample_weight: expected the rows of the first fit in the same order, and the "
            "same rng; a tree was fitted to other rows"
        )


def nodes_of_rows(tree: Tree, problem: Problem, rows: NDArray[np.intp]) -> NDArray[np.int32]:
    """Return the node number of the leaf of each listed row of the problem."""
    node = np.empty((len(rows), 1), dtype=np.int32)
    tile = np.empty(tree.tile_width * tree_walk.TILE_ROWS)
    for start in range(0, len(rows), BLOCK_ROWS):
        block = problem.values(rows[start : start + BLOCK_ROWS])
        at = tree.walk_leaves(block, 0, len(block), tile, node[start : start + BLOCK_ROWS])
        if at < len(block):  # this happens only if files have changed
            raise ValueError(
                "X: expected finite numbers (or missing values if the tree accepts them) in or "
                f"near row {rows[start + at]}; the values on disk may have changed during the fit"
            )
    return node[:, 0]
