"""Cost-complexity pruning of trees, and the price of a leaf chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core.tree_walk import weakest_links
from pboost.data.columns.columns import SortedColumns, values_of
from pboost.data.columns.making import read_once
from pboost.data.read.check_xy import (
    as_targets,
    as_weights,
    class_codes,
    scaled_weights,
)
from pboost.data.read.table import Categorical
from pboost.data.row_source import rows_here
from pboost.data.splits import any_folds
from pboost.data.targets import IMPURITIES, ClassCriterion, class_criteria
from pboost.data.training import Problem, Search, check_values, reads_columns, search_option
from pboost.models.stored import PruningTable, Stored, column
from pboost.models.tree_record import LEAF
from pboost.models.trees import Tree, tree_only
from pboost.trees.cart import TAKES, FitData, TreeOptions, fit_cart_problem, fit_tree
from pboost.values import (
    Array,
    FloatArray,
    IntArray,
    Seed,
    Task,
    as_generator,
    check_choice,
    check_integer,
    check_number,
)
from pboost.values.options import builder, checked, option_names, refuse_unknown

#: Rules by which `fit_pruned_cart` chooses a subtree.
PruningRule: TypeAlias = Literal["min", "1se"]
RULES: tuple[PruningRule, ...] = get_args(PruningRule)
#: Prices that differ by less, as a share of themselves or of the root's risk, are one.
SAME_PRICE, SAME_RISK = 1e-12, 1e-15
#: Errors of subtrees that differ by less, as a share of the largest, are equal but for rounding.
SAME_ERROR = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class PruningPath(Stored):
    """The nested subtrees of weakest-link pruning, the largest first; made by
    `cost_complexity_pruning_path`.

    Attributes
    ----------
    ccp_alpha : ndarray of float64, shape (k,)
        Price of a leaf from which on each subtree is the best, increasing; the first is 0.
    n_leaves : ndarray of int32, shape (k,)
        Their numbers of leaves, decreasing; the last is 1.
    risk : ndarray of float64, shape (k,)
        Sum over their leaves of weight times impurity.
    """

    ccp_alpha: FloatArray = column(np.float64, finite=False)
    n_leaves: IntArray = column(np.int32)
    risk: FloatArray = column(np.float64, finite=False)


def cost_complexity_pruning_path(
    tree: Tree,
    X: object = None,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    criterion: ClassCriterion | None = None,
) -> PruningPath:
    """Return the subtrees among which are the best ones for every price of a leaf.

    The cost of a subtree is the sum over its leaves of weight times impurity, its *risk*, plus
    `ccp_alpha` times the number of leaves. Of the subtrees of least cost, one is contained in all
    others; as `ccp_alpha` grows, these smallest ones are nested, and there are at most as many as
    nodes.

    Parameters
    ----------
    tree : Tree
        A fitted tree.
    X : array_like of shape (n, d), or data frame, optional
        With `y`: rows whose weights and impurities at the nodes are used. Default: those of the
        training rows, which the tree knows.
    y : array_like of shape (n,), optional
        Their labels, or targets.
    sample_weight : array_like of shape (n,), optional
        Their weights.
    criterion : {"gini", "entropy", "error", "kearns_mansour"}, optional
        Impurity of a classification tree, where it is not to be that by which it was grown.

    Returns
    -------
    PruningPath
        Prices are in units of the risk: scikit-learn's ``ccp_alpha`` is this number divided by the
        sum of the weights.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

    References
    ----------
    .. [1] L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, "Classification and
       regression trees", Wadsworth (1984), section 3.3.

    Examples
    --------
    >>> import pboost as pb
    >>> X = [[1, 1], [1, 2], [1, 3], [2, 2], [2, 3]]
    >>> tree = pb.fit_cart(X, [9, -4, 2, 4, 2], task="regression")
    >>> path = pb.models.cost_complexity_pruning_path(tree)
    >>> path.n_leaves.tolist(), path.ccp_alpha.round(6).tolist()
    ([5, 4, 2, 1], [0.0, 2.0, 17.0, 51.2])
    """
    risk, exponent = _risks(tree_only(tree), X, y, sample_weight, criterion)
    price, gain, saved = _links(tree, risk)
    gone = np.flatnonzero(np.isfinite(price))
    gone = gone[np.argsort(price[gone], kind="stable")]
    steps = price[gone]
    bar = SAME_RISK * risk[0]
    # The last of the prices that are one, and before them 0 with all that collapses there.
    is_last = np.ones(len(steps), dtype=bool)
    is_last[:-1] = np.diff(steps) > SAME_PRICE * steps[1:] + bar
    leaves = tree.n_leaves - np.cumsum(saved[gone])
    risks = _total(risk, tree) + np.cumsum(gain[gone])
    ccp_alpha, leaves, risks = steps[is_last], leaves[is_last], risks[is_last]
    if not len(ccp_alpha) or ccp_alpha[0] > bar:
        ccp_alpha = np.concatenate([[0.0], ccp_alpha])
        leaves = np.concatenate([[tree.n_leaves], leaves])
        risks = np.concatenate([[_total(risk, tree)], risks])
    ccp_alpha[0] = 0.0
    ccp_alpha, risks = (_numbers(np.ldexp, values, exponent) for values in (ccp_alpha, risks))
    return PruningPath(ccp_alpha, leaves, risks)


def prune(tree: Tree, ccp_alpha: float, *, criterion: ClassCriterion | None = None) -> Tree:
    """Return the smallest of the subtrees of least cost when a leaf costs `ccp_alpha`.

    Parameters
    ----------
    tree : Tree
        A fitted tree.
    ccp_alpha : float
        Price of a leaf, at least 0, as in `cost_complexity_pruning_path`; at infinity the root
        alone is left.
    criterion : {"gini", "entropy", "error", "kearns_mansour"}, optional
        See `cost_complexity_pruning_path`.

    Returns
    -------
    Tree
        With the same root. Where nothing is gained at ``ccp_alpha=0`` a split is removed, too.

    Raises
    ------
    ValueError, TypeError
        If `ccp_alpha` is negative or NaN, or an argument is not as described.

    Examples
    --------
    >>> import pboost as pb
    >>> X = [[1, 1], [1, 2], [1, 3], [2, 2], [2, 3]]
    >>> tree = pb.fit_cart(X, [9, -4, 2, 4, 2], task="regression")
    >>> pb.prune(tree, 20.0).n_leaves
    2
    """
    is_endless = isinstance(ccp_alpha, float | np.floating) and ccp_alpha == np.inf
    ccp_alpha = np.inf if is_endless else check_number("ccp_alpha", ccp_alpha, min_value=0.0)
    risk, _ = _risks(tree_only(tree), None, None, None, criterion)
    price = _links(tree, risk)[0]
    if is_endless:  # the price from which on the root is a leaf: records hold finite numbers
        ccp_alpha = min(float(price[0]), np.finfo(np.float64).max) if tree.n_nodes > 1 else 0.0
    slack = SAME_PRICE * ccp_alpha + SAME_RISK * risk[0]
    settings = {"pruned_at": ccp_alpha, "pruned_by": criterion or tree.settings.get("criterion")}
    at = np.isfinite(price) & (price <= ccp_alpha + slack)
    at[0] |= is_endless
    return collapsed(tree, at, settings)


def collapsed(tree: Tree, at: NDArray[np.bool_], settings: dict[str, Any]) -> Tree:
    """Return the tree with the nodes marked made leaves."""
    kept = np.ones(tree.n_nodes, dtype=bool)
    for nodes in levels(tree):
        below = tree.children[nodes]
        kept[below] = (kept[nodes] & ~at[nodes])[:, None]
    columns = tree.columns_at(kept)
    number = np.cumsum(kept) - 1
    is_leaf = at[kept] | (columns["feature"] == LEAF)
    columns["feature"] = np.where(is_leaf, LEAF, columns["feature"])
    columns["threshold"] = np.where(is_leaf, 0.0, columns["threshold"])
    columns["children"] = np.where(is_leaf[:, None], LEAF, number[columns["children"]])
    if columns["missing"] is not None:
        columns["missing"] = np.where(is_leaf, 0, columns["missing"])
    columns = tree.with_sets(columns)
    return replace(tree, settings={**tree.settings, **settings}, **columns)


def levels(tree: Tree) -> list[NDArray[np.intp]]:
    """Return the inner nodes by depth, the root first."""
    depth = tree.node_depth()
    inner = np.flatnonzero(tree.feature != LEAF)
    inner = inner[np.argsort(depth[inner], kind="stable")]
    return np.split(inner, np.flatnonzero(np.diff(depth[inner])) + 1) if len(inner) else []


def _links(tree: Tree, risk: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return where nodes collapse, and what that does; see `pboost._core.grow`."""
    n = tree.n_nodes
    price, gain, saved = np.empty(n), np.empty(n), np.empty(n, dtype=np.int32)
    work = np.empty((4, n), dtype=np.int32)
    weakest_links(tree.children, risk, price, gain, saved, work)
    return price, gain, saved


def link_prices(tree: Tree) -> FloatArray:
    """Return the price from which on each node is a leaf; -inf or inf where that is never so."""
    return _links(tree, _risks(tree, None, None, None, None)[0])[0]


def _total(risk: FloatArray, tree: Tree) -> float:
    return float(risk[tree.feature == LEAF].sum())


def _risks(
    tree: Tree, X: object, y: object, sample_weight: ArrayLike | None, criterion: str | None
) -> tuple[FloatArray, int]:
    """Return weight times impurity of each node as a leaf, in a unit, and the exponent of that."""
    if criterion is not None:
        check_choice("criterion", criterion, _criteria(tree))
    if X is None and y is None:
        if sample_weight is not None:
            raise ValueError("sample_weight: given without X and y")
        known = criterion is None or tree.classes is None
        impurity = tree.impurity if known else IMPURITIES[str(criterion)](tree.value)
        return _numbers(np.multiply, tree.weight, impurity), 0
    if X is None or y is None:
        raise ValueError("cost_complexity_pruning_path: X and y must be given together")
    at = tree.nodes_of(X)
    weights = as_weights(sample_weight, len(at))
    weights, exponent = scaled_weights(np.ones(len(at)) if weights is None else weights)
    if tree.classes is None:
        return _square_risks(tree, at, as_targets(y, len(at)), weights), exponent
    code = class_codes(tree.classes, y, len(at))
    mass = np.zeros((tree.n_nodes, len(tree.classes)))
    np.add.at(mass, (at, code), weights)
    for nodes in reversed(levels(tree)):
        mass[nodes] = mass[tree.children[nodes]].sum(axis=1)
    total = mass.sum(axis=1)
    share = mass / np.where(total > 0, total, 1.0)[:, None]
    if criterion is None and "criterion" not in tree.settings:
        raise ValueError("criterion: expected a name, as the tree does not say its own")
    if criterion is None:  # that of the fit, as a file may say it
        name = tree.settings["criterion"]
        criterion = check_choice("tree.settings['criterion']", name, _criteria(tree))
    return total * np.where(total > 0, IMPURITIES[criterion](share), 0.0), exponent


def _numbers(compute: np.ufunc, *values: object) -> FloatArray:
    """Return what is computed of risks; ValueError where it is beyond the largest number."""
    with np.errstate(over="ignore"):
        numbers: FloatArray = compute(*values)
    if not np.isfinite(numbers).all():
        raise ValueError(
            "tree: expected weights times impurities that are finite; give y or the weights in "
            "other units"
        )
    return numbers


def _criteria(tree: Tree) -> tuple[str, ...]:
    """Return the criteria by which a tree can be judged."""
    return ("squared_error",) if tree.classes is None else class_criteria(len(tree.classes))


def _square_risks(tree: Tree, at: IntArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the sums of squares about the means of the rows at each node."""
    n = tree.n_nodes
    mass = np.bincount(at, weights, n)
    mean = np.bincount(at, weights * y, n) / np.where(mass > 0, mass, 1.0)
    risk: FloatArray = np.bincount(at, weights * (y - mean[at]) ** 2, n).astype(np.float64)
    for nodes in reversed(levels(tree)):
        first, second = tree.children[nodes].T
        both = np.maximum(mass[first] + mass[second], np.finfo(np.float64).tiny)
        apart = mean[second] - mean[first]
        mass[nodes] = mass[first] + mass[second]
        mean[nodes] = mean[first] + apart * (mass[second] / both)
        between = apart**2 * (mass[first] * (mass[second] / both))
        risk[nodes] = risk[first] + risk[second] + between
    return risk


def _search_of_values(options: Mapping[str, object]) -> Search:
    """Return the search of a builder that needs the values, to predict them."""
    return search_option(options)._replace(takes_bins=False)


@reads_columns(_search_of_values)
@builder
def fit_pruned_cart(
    X: object,
    y: ArrayLike | None = None,
    *,
    task: Task | None = None,
    cv: int = 10,
    rule: PruningRule = "min",
    rng: Seed = None,
    y_proba: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    categorical_features: Categorical = None,
    n_threads: int | None = None,
    **options: Any,
) -> Tree:
    """Fit a tree and prune it at the price of a leaf that cross-validation finds best.

    A tree is grown on all rows and its nested subtrees are found (`cost_complexity_pruning_path`).
    Each stands for the prices of a leaf for which it is the best; at the geometric mean of these,
    the trees grown without each of the folds are pruned, and tested on that fold.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame or SortedColumns
        Features; missing values (NaN) and categories as in `fit_cart`.
    y : array_like of shape (n,), optional
        Labels, of two or more different values; of a regression, finite numbers.
    task : {"classification", "regression"}, optional
        What `y` is. By default text, booleans and at most 20 different whole numbers are classes,
        and numbers that are not all whole are a regression. With more different whole numbers it
        must be given, unless `criterion` is of one task only.
    cv : int
        Number of folds, 2 to the number of rows. Classes are dealt out evenly.
    rule : {"min", "1se"}
        "min": the subtree of least error, the smallest among equals. "1se": the smallest whose
        error is within one standard error of that.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Shuffles the rows; also for `max_features`.
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        In place of `y`: the probability of each label in each row, which then stands for each of
        them with its weight times its probability; one dimension: that of the second of two labels.
    classes : array_like of shape (J,), optional
        With `y_proba`: the labels of its columns; default 0, 1, ..., or the names of its columns.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows, in training and in the errors.
    categorical_features : sequence of str or int, optional
        Names or positions of columns that hold categories, besides those of a data frame that hold
        text or whose type says so.
    n_threads : int or None
        Threads, -1 for all; None: as many as the work is worth. The model does not depend on it.
    **options
        Options of `fit_cart`.

    Returns
    -------
    Tree
        ``tree.pruning`` is the table of prices, leaves, errors and standard errors.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described; the message names the argument.

    References
    ----------
    .. [1] L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, "Classification and
       regression trees", Wadsworth (1984), sections 3.4 and 8.5.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = np.where(X[:, 0] > 0, 1.0, -1.0) + np.random.default_rng(1).normal(size=300)
    >>> tree = pb.fit_pruned_cart(X, y, task="regression", rule="1se", rng=0)
    >>> tree.n_leaves, round(float(tree.threshold[0]), 1)
    (2, -0.0)
    """
    check_choice("rule", rule, RULES)
    known = [*TreeOptions.__annotations__, *option_names(fit_pruned_cart)]
    refuse_unknown(options, known, "fit_pruned_cart")
    of_trees = checked(TreeOptions, {**options, "task": task})
    generator = as_generator(rng)
    row_options = {"y_proba": y_proba, "classes": classes, "sample_weight": sample_weight}
    row_options["categorical_features"] = categorical_features
    X, y, sample_weight = rows_here("fit_pruned_cart", X, y, row_options)
    check_values(X)
    X = read_once(values_of(X), sample_weight, TAKES)
    data = FitData(X, y, sample_weight, n_threads, generator)
    problem, limits, settings, key = fit_cart_problem(data, of_trees)
    problem, weights = problem.sorted_once(n_threads), problem.weights
    # In a unit of their own, so that neither sums nor products of prices leave the numbers.
    weights, exponent = scaled_weights(np.ones(problem.n_rows) if weights is None else weights)
    source, rows = _source(X, problem)
    fold = _folds(problem, weights, check_integer("cv", cv, min_value=2), generator)
    tree = fit_tree(problem, weights, limits, settings, key, n_threads)
    path = cost_complexity_pruning_path(tree)
    # Each subtree's stretch of prices, by its geometric middle; the last one's has no end.
    middle = np.append(_geometric_means(path.ccp_alpha), np.inf) / weights.sum()
    loss, squares = np.zeros(len(middle)), np.zeros(len(middle))
    for k in range(int(fold.max()) + 1):
        train = np.where(fold == k, 0.0, weights)
        test = np.flatnonzero((fold == k) & (weights > 0))
        if not train.any() or not len(test):
            continue
        grown = fit_tree(problem, train, limits, settings, key, n_threads)
        values, price = source[rows[test]], middle * train.sum()
        for total, power in ((loss, 1), (squares, 2)):
            total += _losses(grown, problem, values, test, weights[test], power, price)
    error = loss / weights.sum()
    spread = np.maximum(squares / weights.sum() - error**2, 0.0)
    standard_error = np.sqrt(spread / np.count_nonzero(weights[problem.first]))
    best = _last_within(error, error.min())
    if rule == "1se":
        best = _last_within(error, error[best] + standard_error[best])
    pruned = prune(tree, float(path.ccp_alpha[best]))
    table = _table(path, error, standard_error, best, exponent, 2 * problem.exponent)
    pruning_settings = {
        "builder": "fit_pruned_cart",
        "cv": cv,
        "rule": rule,
        "pruned_at": float(table.ccp_alpha[best]),
    }
    return replace(
        pruned,
        weight=np.ldexp(pruned.weight, exponent),
        pruning=table,
        settings={**pruned.settings, **pruning_settings},
    )


def _last_within(error: FloatArray, bound: float) -> int:
    """Return the smallest of the subtrees whose error is at most so large, but for rounding."""
    return int(np.flatnonzero(error <= bound + SAME_ERROR * error.max())[-1])


def _source(X: Any, problem: Problem) -> tuple[Array, IntArray]:
    """Return the values of X, and where those of each row of the problem are."""
    if isinstance(X, SortedColumns):
        source, rows = X.source, X.rows
    else:
        source, rows = X.values, np.arange(len(X.values), dtype=np.int32)
    return source, rows[problem.input_rows(np.arange(problem.n_rows))]


def _folds(
    problem: Problem, weights: FloatArray, folds: int, generator: np.random.Generator
) -> IntArray:
    """Return the fold that tests each row; that of soft labels tests all entries of a row."""
    n, first, entries = problem.n_rows, problem.first, problem.entries
    label = problem.label if len(problem.label) else np.zeros(n, dtype=np.int32)
    kinds = label if entries is None else entries.likeliest
    fold = any_folds(kinds, weights[first], folds, generator)
    return fold[problem.input_rows(np.arange(n))]


def _table(
    path: PruningPath, error: FloatArray, spread: FloatArray, best: int, price: int, unit: int
) -> PruningTable:
    """Return the table, of prices and errors that are in units of powers of two."""
    is_error, smallest = error.any(), np.finfo(np.float64).tiny
    with np.errstate(over="ignore"):
        ccp_alpha, error, spread = (
            np.ldexp(values, power)
            for values, power in ((path.ccp_alpha, price), (error, unit), (spread, unit))
        )
    if not np.isfinite([ccp_alpha, error, spread]).all() or (is_error and error.max() < smallest):
        raise ValueError(
            "y: expected numbers whose squares times the weights are neither infinite nor rounded "
            "to 0; give y or the weights in other units"
        )
    return PruningTable(ccp_alpha, path.n_leaves, error, spread, best)


def _geometric_means(ccp_alpha: FloatArray) -> FloatArray:
    """Return the geometric mean of each price and the next."""
    exponent = int(np.frexp(ccp_alpha.max())[1])  # by a power of two: nothing is rounded
    scaled = np.ldexp(ccp_alpha, -exponent)
    means: FloatArray = np.ldexp(np.sqrt(scaled[:-1] * scaled[1:]), exponent)
    return means


def _losses(
    tree: Tree,
    problem: Problem,
    X: Array,
    test: NDArray[np.intp],
    weights: FloatArray,
    power: int,
    ccp_alpha: FloatArray,
) -> FloatArray:
    """Return the sums over the test rows of the loss, to a power, of a tree pruned at prices."""
    node_loss = _loss_by_node(tree, problem, X, test, weights, power)
    price = link_prices(tree)
    ends = np.isfinite(price)
    # The loss below a node once all that collapses there has; and what each collapse changes.
    after, change = np.where(tree.feature == LEAF, node_loss, 0.0), np.zeros(tree.n_nodes)
    full = np.where(tree.feature == LEAF, node_loss, 0.0).sum()
    for nodes in reversed(levels(tree)):
        below = after[tree.children[nodes]].sum(axis=1)
        after[nodes] = np.where(ends[nodes], node_loss[nodes], below)
        change[nodes] = after[nodes] - below
    gone = np.flatnonzero(ends)
    gone = gone[np.argsort(price[gone], kind="stable")]
    totals = np.concatenate([[full], full + np.cumsum(change[gone])])
    losses: FloatArray = totals[
        np.searchsorted(price[gone], ccp_alpha * (1 + SAME_PRICE), side="right")
    ]
    return losses


def _loss_by_node(
    tree: Tree,
    problem: Problem,
    X: Array,
    test: NDArray[np.intp],
    weights: FloatArray,
    power: int,
) -> FloatArray:
    """Return the sum of the losses of the test rows that come through each node, if it predicts.

    Those of a regression are in the unit of ``problem.y``.
    """
    sums = np.zeros(tree.n_nodes)
    mean, column = np.ldexp(tree.value, -problem.exponent), tree.column
    at, rows = np.zeros(len(test), dtype=np.int32), np.arange(len(test))
    while len(rows):
        if tree.classes is None:
            loss = (problem.y[test[rows]] - mean[at]) ** 2
        else:
            loss = np.argmax(tree.value, axis=1)[at] != problem.label[test[rows]]
        sums += np.bincount(at, weights[rows] * loss.astype(np.float64) ** power, tree.n_nodes)
        stays = tree.feature[at] != LEAF
        rows, at = rows[stays], at[stays]
        above = tree.goes_to_second(X[rows, column[at]], at)
        at = tree.children[at, above.astype(np.intp)]
    return sums
