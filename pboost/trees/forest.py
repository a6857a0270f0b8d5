"""Random forests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Annotated, Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core import tree_walk
from pboost.data.prices import CostOptions
from pboost.data.row_source import RowOptions
from pboost.data.splits import check_bag, make_bags
from pboost.data.targets import TaskOption
from pboost.data.training import Problem
from pboost.growth.tree import CartLimits
from pboost.models.forest import RandomForest, join_trees
from pboost.models.tree_record import LEAF
from pboost.models.trees import Tree
from pboost.trees.cart import (
    CriterionOption,
    FeatureCount,
    FitData,
    SearchOptions,
    SizeOptions,
    check_labels,
    fit_cart_problem,
    fit_tree,
    shared_columns,
)
from pboost.trees.members import Tally, tallied, train_members
from pboost.values import (
    Bar,
    FloatArray,
    bar_of,
    check_flag,
    check_integer,
    generator_state,
)
from pboost.values.options import FitOptions, Option, builder

#: Rows whose values are gathered at a time for the trees that have not seen them.
BLOCK_ROWS = 64 * tree_walk.TILE_ROWS
#: Up to which difference the means of labels, and of numbers as large as 1, are the same.
SAME_MEAN = 1e-6


class BagOptions(TypedDict, total=False):
    """What trees differ by.

    Parameters
    ----------
    max_features : int, float, "sqrt", "log2" or None
        Number of columns, drawn at each node, in which it is searched; a float is a share of all,
        None all of them.
    bootstrap : bool
        Whether a row can be drawn for a bag more than once.
    max_samples : float, int or None
        Rows drawn for each bag: a share in (0, 1] of the rows of positive weight, rounded to the
        nearest number, at least one; or how many; None: as many as there are. With
        ``bootstrap=False`` fewer, for subsamples.
    """

    max_features: Annotated[FeatureCount | float | None, Option("sqrt")]
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
    """What the trees of a forest are."""


class ForestOptions(ForestTreeOptions, RowOptions, FitOptions, total=False):
    """The options of `fit_random_forest`.

    Parameters
    ----------
    min_samples_leaf : int
        Least number of training rows in a leaf, whatever their weights; a row counts once, however
        often it is in the bag.
    min_samples_split : int
        Least number of training rows of a node that is split, at least 2, counted likewise.
    feature_costs, cost_groups, comparison_cost : optional
        What columns cost, see `fit_cart`. A tree does not know what others read: in each the way to
        a node is all that is paid there, while `prediction_cost` counts columns once for a row,
        whatever trees compare them.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows in their bags and in the out-of-bag error. All rows of positive
        weight are equally likely to be drawn.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness. The first k trees are the same for any number of `n_estimators`.
    n_threads : int or None
        Threads, each of which fits whole trees, -1 for all; None: as many as the work is worth.
        The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each tree, in order, with their number so far
        and a `pboost.growth.step.MemberStep`; returning True stops. The model then has the
        trees so far, whatever the number of threads, which may have fitted a few more.
    """


@builder
def fit_random_forest(
    X: object,
    y: ArrayLike | None = None,
    *,
    n_estimators: int = 100,
    **options: Unpack[ForestOptions],
) -> RandomForest:
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
    n_estimators : int
        Number of trees.
    **options
        Those of `ForestOptions`.

    Returns
    -------
    RandomForest
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
    >>> forest = pb.fit_random_forest(X, X[:, 0] + X[:, 1] > 0, n_estimators=30, rng=0)
    >>> len(forest), bool(forest.oob.error < 0.1)
    (30, True)
    >>> pb.predict_proba(forest, [[2.0, 2.0, 0.0, 0.0]]).shape
    (1, 2)
    """
    n_estimators = check_integer("n_estimators", n_estimators, min_value=1)
    return grow_forest(FitData.of(X, y, options), n_estimators, options, bar_of(options))


class ForestFit(NamedTuple):
    """What a forest is grown with; the first of its trees may be given."""

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
    """Return the forest of so many trees, of which the first may be given; see FOREST_OPTIONS."""
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
        "n_estimators": n_estimators,
        "bootstrap": is_repeated,
        "max_samples": bag,
    }
    known = {} if state is None else {"rng": state}
    return join_trees(trees, {**settings, **forest_settings, **known}, oob, problem.seen)


class TableMembers:
    """The members of a forest of one table, and the tally of rows out of their bags."""

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
        """Have trees taken in order, with the rows out of their bags and what they say of these."""
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
    """Raise ValueError if a tree was fitted to other rows, labels or weights than these."""
    rows = np.flatnonzero(bag)
    count = np.bincount(nodes_of_rows(tree, problem, rows), minlength=tree.n_nodes)
    if problem.classes is None:
        mean = np.average(problem.y[rows], weights=bag[rows])
    else:
        mass = np.bincount(problem.label[rows], bag[rows], len(problem.classes))
        mean = mass / mass.sum()
    check_seen(tree, count, mean, problem.exponent)


def check_seen(tree: Tree, count: NDArray[np.intp], mean: Any, exponent: int) -> None:
    """Raise ValueError unless a tree was fitted to rows of which its leaves have so many.

    `mean` are the shares of the classes, or the mean of the targets divided by a power of two.
    """
    known = np.ldexp(tree.value[0], -exponent)
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
